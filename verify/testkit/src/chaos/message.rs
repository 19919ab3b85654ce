//! What travels: 64-bit words that say where they come from and that they are whole.

/// Words that every message has at least.
pub(crate) const WORDS_MIN: usize = 4;

/// The beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) slot: usize,
    pub(crate) life: usize,
    pub(crate) seq: u64,
    /// Clear time when it was filled, ns.
    pub(crate) stamp: u64,
}

/// Fills all of `words`.
pub(crate) fn fill(words: &mut [u64], head: Head) {
    words[0] = (head.slot as u64) << 32 | head.life as u64;
    words[1] = head.seq;
    words[2] = head.stamp;
    let mut x = words[0].rotate_left(17) ^ head.seq;
    for word in &mut words[WORDS_MIN..] {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        *word = x;
    }
    words[3] = sum(words);
}

/// Reads it back; what is wrong with it otherwise.
pub(crate) fn check(words: &[u64]) -> Result<Head, String> {
    if words.len() < WORDS_MIN {
        return Err(format!("a message of {} words", words.len()));
    }
    let (slot, life) = ((words[0] >> 32) as usize, (words[0] & 0xffff_ffff) as usize);
    let head = Head { slot, life, seq: words[1], stamp: words[2] };
    if sum(words) != words[3] {
        return Err(format!("a wrong checksum over {} words, it says {head:?}", words.len()));
    }
    Ok(head)
}

fn sum(words: &[u64]) -> u64 {
    let add =
        |sum: u64, word: &u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let sum = words[..3].iter().fold(words.len() as u64, add);
    words[WORDS_MIN..].iter().fold(sum, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_tells_where_it_comes_from_and_that_a_bit_was_changed() {
        let head = Head { slot: 7, life: 3, seq: 99, stamp: 5 };
        let mut words = [0; 16];
        fill(&mut words, head);
        assert_eq!(check(&words), Ok(head));
        for bit in 0..16 * 64 {
            words[bit / 64] ^= 1 << (bit % 64);
            assert!(check(&words).is_err(), "bit {bit}");
            words[bit / 64] ^= 1 << (bit % 64);
        }
        assert!(check(&words[..15]).is_err() && check(&words[..3]).is_err());
    }
}
