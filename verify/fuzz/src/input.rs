//! Reads an input piece by piece; what is missing is zero.

/// The rest of an input.
#[derive(Clone, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.word(1) as u8
    }

    /// The next `bytes` bytes, at most 8, as a number.
    pub fn word(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let part = self.bytes(bytes);
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }

    /// The next `max` bytes, or fewer.
    pub fn bytes(&mut self, max: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(max.min(self.0.len()));
        self.0 = rest;
        part
    }

    /// A part whose length is in front of it.
    pub fn part(&mut self) -> &'a [u8] {
        let len = self.word(2) as usize;
        self.bytes(len)
    }

    /// An index below `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.word(2) as usize % len
    }
}
