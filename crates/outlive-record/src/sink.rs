//! Where `mcap` writes: a file that knows its length, and the chunks of zstd.
//!
//! # Theory of operation
//! `mcap` compresses zstd only with zstd's C code. Here it writes chunks that are not compressed,
//! and each is compressed on its way into the file, by a compressor in Rust. What follows finds its
//! place by asking how far the file is ([`Seek::stream_position`]), so offsets are right; only the
//! index of a chunk repeats its length, and is changed as it passes by. So are the checksums of the
//! data and of the index: `mcap` would tell those of other bytes.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::rc::Rc;

use crc32fast::Hasher;
use mcap::records::op;
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes handed over in one call.
const BUFFER_BYTES: usize = 256 * 1024;
/// Opcode and length of a record.
const HEAD_BYTES: usize = 9;
/// In a chunk, before the name of its compression: two times, a size, a checksum.
const CHUNK_NAME_AT: usize = 28;
/// In a chunk that is not compressed, before its records: that, an empty name, their length.
const CHUNK_DATA_AT: usize = CHUNK_NAME_AT + 4 + 8;
/// In the index of a chunk: where the chunk begins, its length, the length of the table behind.
const INDEX_START_AT: usize = 16;
const INDEX_LENGTH_AT: usize = 24;
const INDEX_TABLE_AT: usize = 32;
/// In a footer, before its checksum: where the index and its table of contents begin.
const FOOTER_CRC_AT: usize = 16;
const NAME: &[u8] = b"zstd";

/// A file that knows its length and is never sought in.
pub(crate) struct Sink {
    to: io::BufWriter<fs::File>,
    bytes: Rc<Cell<u64>>,
    zstd: Option<Zstd>,
}

/// Records on their way.
#[derive(Default)]
struct Zstd {
    /// The beginning of a record.
    begun: Vec<u8>,
    /// By where they begin, what chunks that were compressed are long: records and compressed data.
    chunks: HashMap<u64, (u64, u64)>,
    /// Checksum of what was written of the data, and then of the index.
    sum: Hasher,
    /// The magic bytes at the beginning have passed; the footer has passed.
    head: bool,
    foot: bool,
}

impl Sink {
    /// `bytes` counts what was written. `zstd`: chunks are compressed with it.
    pub(crate) fn new(file: fs::File, bytes: Rc<Cell<u64>>, zstd: bool) -> Self {
        let to = io::BufWriter::with_capacity(BUFFER_BYTES, file);
        Self { to, bytes, zstd: zstd.then(Zstd::default) }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        if let Some(zstd) = &mut self.zstd {
            zstd.sum.update(bytes);
        }
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        Ok(())
    }

    /// Writes one whole record.
    fn record(&mut self, record: &[u8]) -> io::Result<()> {
        let at = self.bytes.get();
        let Some(zstd) = &mut self.zstd else { return self.put(record) };
        let (opcode, body) = (record[0], &record[HEAD_BYTES..]);
        let other = match opcode {
            op::CHUNK => zstd.chunk(at, body),
            op::CHUNK_INDEX => zstd.index(body),
            op::DATA_END => Some(zstd.sum.clone().finalize().to_le_bytes().to_vec()),
            op::FOOTER => zstd.footer(record),
            _ => None,
        };
        let Some(body) = other else { return self.put(record) };
        self.put(&[&[opcode][..], &(body.len() as u64).to_le_bytes()].concat())?;
        self.put(&body)?;
        if let Some(zstd) = self.zstd.as_mut().filter(|_| opcode == op::DATA_END) {
            zstd.sum = Hasher::new();
        }
        Ok(())
    }
}

impl Zstd {
    /// How long what begins with `bytes` is, if that can be told: a record, or magic bytes.
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        if !self.head || self.foot {
            return Some(mcap::MAGIC.len());
        }
        let length = bytes.get(1..HEAD_BYTES)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(length)).ok()?.checked_add(HEAD_BYTES)
    }

    /// A chunk of `body`, compressed; `None` where that saves nothing.
    fn chunk(&mut self, at: u64, body: &[u8]) -> Option<Vec<u8>> {
        let (head, data) = body.split_at_checked(CHUNK_DATA_AT)?;
        if head[CHUNK_NAME_AT..CHUNK_NAME_AT + 4] != [0; 4] {
            return None;
        }
        let packed = compressed(data)?;
        let mut out = Vec::with_capacity(CHUNK_DATA_AT + NAME.len() + packed.len());
        out.extend(&head[..CHUNK_NAME_AT]);
        name(&mut out);
        out.extend((packed.len() as u64).to_le_bytes());
        out.extend(&packed);
        let length = (HEAD_BYTES + out.len()) as u64;
        self.chunks.insert(at, (length, packed.len() as u64));
        Some(out)
    }

    /// The index of a chunk that was compressed.
    fn index(&self, body: &[u8]) -> Option<Vec<u8>> {
        let number = |at: usize| Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?));
        let (length, packed) = *self.chunks.get(&number(INDEX_START_AT)?)?;
        let table = body.get(INDEX_TABLE_AT..INDEX_TABLE_AT + 4)?.try_into().ok()?;
        // The table, and the length of the indexes of messages.
        let name_at = INDEX_TABLE_AT + 4 + u32::from_le_bytes(table) as usize + 8;
        let unpacked = number(name_at + 4 + 8)?;
        let mut out = body[..INDEX_LENGTH_AT].to_vec();
        out.extend(length.to_le_bytes());
        out.extend(body.get(INDEX_TABLE_AT..name_at)?);
        name(&mut out);
        out.extend(packed.to_le_bytes());
        out.extend(unpacked.to_le_bytes());
        Some(out)
    }

    /// The footer, which has the checksum of the index and of itself up to there.
    fn footer(&mut self, record: &[u8]) -> Option<Vec<u8>> {
        self.foot = true;
        let before = record.get(..HEAD_BYTES + FOOTER_CRC_AT)?;
        self.sum.update(before);
        let sum = self.sum.clone().finalize();
        Some([&before[HEAD_BYTES..], &sum.to_le_bytes()].concat())
    }
}

fn name(out: &mut Vec<u8>) {
    out.extend((NAME.len() as u32).to_le_bytes());
    out.extend(NAME);
}

/// `data` in zstd, if that is less. The compressor is young: what it wrote is read once.
fn compressed(data: &[u8]) -> Option<Vec<u8>> {
    let packed = compress_to_vec(data, CompressionLevel::Fastest);
    if packed.len() >= data.len() {
        return None;
    }
    let mut again = vec![0; data.len()];
    let read = FrameDecoder::new().decode_all(&packed, &mut again);
    (read.is_ok_and(|n| n == data.len()) && again == data).then_some(packed)
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(zstd) = &mut self.zstd else {
            let n = self.to.write(bytes)?;
            self.bytes.set(self.bytes.get() + n as u64);
            return Ok(n);
        };
        let whole = |zstd: &Zstd, bytes: &[u8]| zstd.length(bytes).filter(|n| *n <= bytes.len());
        let mut begun = std::mem::take(&mut zstd.begun);
        // Chunks come whole: they are not copied.
        let mut rest = if begun.is_empty() {
            bytes
        } else {
            begun.extend(bytes);
            &begun[..]
        };
        while let Some(zstd) = &mut self.zstd
            && let Some(length) = whole(zstd, rest)
        {
            let (record, behind) = rest.split_at(length);
            rest = behind;
            match zstd.head && !zstd.foot {
                true => self.record(record)?,
                false => {
                    zstd.head = true;
                    self.put(record)?;
                }
            }
        }
        if let Some(zstd) = &mut self.zstd {
            zstd.begun = rest.to_vec();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::Current(0) => Ok(self.bytes.get()),
            SeekFrom::Start(at) if at == self.bytes.get() => Ok(at),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever it is given, no chunk is compressed into something else.
    #[test]
    fn what_is_compressed_comes_back() {
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let mut smaller = 0;
        for round in 0..300 {
            let size = (next() % [10, 1000, 200_000][round % 3]) as usize;
            let kinds = 1 + next() % 5;
            let mut data = Vec::with_capacity(size);
            while data.len() < size {
                let n = 1 + (next() % 400) as usize;
                match next() % kinds {
                    0 => data.extend(std::iter::repeat_n(next() as u8, n)),
                    1 => (0..n).for_each(|_| data.push(next() as u8)),
                    2 => (0..n).for_each(|i| data.extend((i as f32 * 0.1).to_le_bytes())),
                    3 => data.extend(b"a text of which there is more, ".repeat(n % 7)),
                    _ => {
                        let from = data.len() - data.len().min(1 + next() as usize % 5000);
                        data.extend_from_within(from..data.len().min(from + n));
                    }
                }
                if data.is_empty() {
                    data.push(0);
                }
            }
            let packed = compress_to_vec(&data[..], CompressionLevel::Fastest);
            let mut again = vec![0; data.len()];
            let read = FrameDecoder::new().decode_all(&packed, &mut again).unwrap();
            assert!(read == data.len() && again == data, "round {round}");
            smaller += u32::from(compressed(&data).is_some());
        }
        assert!(smaller > 100, "only {smaller} became smaller");
    }
}
