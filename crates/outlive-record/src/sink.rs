//! Where `mcap` writes: a file that knows its length, and chunks compressed on several cores.
//!
//! # Theory of operation
//! `mcap` would compress on the thread that records, and zstd only with zstd's C code. Here it
//! writes chunks that are not compressed. Threads compress them while the next one is gathered, and
//! all that `mcap` writes goes into the file in its order. So `mcap` knows places as they would be
//! without compression; between two chunks those differ from the file's by a constant, and what
//! names places (the indexes, the footer) is changed as it passes by. So are the checksums of the
//! data and of the index: `mcap` would tell those of other bytes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::rc::Rc;

use crc32fast::Hasher;
use mcap::records::op;

use crate::options::Compression;
use crate::pack::{Packer, Packing};

/// Bytes handed over in one call.
const BUFFER_BYTES: usize = 256 * 1024;
/// Opcode and length of a record.
const HEAD_BYTES: usize = 9;
/// In a chunk, before the name of its compression: two times, a size, a checksum.
const CHUNK_NAME_AT: usize = 28;
/// In a chunk that is not compressed, before its records: that, an empty name, their length.
const CHUNK_DATA_AT: usize = CHUNK_NAME_AT + 4 + 8;
/// In the index of a chunk: where the chunk begins, its length, the table of its messages' indexes.
const INDEX_START_AT: usize = 16;
const INDEX_LENGTH_AT: usize = 24;
const INDEX_TABLE_AT: usize = 32;
/// An entry of that table: a channel, and a place.
const INDEX_ENTRY_BYTES: usize = 2 + 8;
/// In a footer, before its checksum: where the index and its table of contents begin.
const FOOTER_CRC_AT: usize = 16;

/// A file that knows its length and is never sought in.
pub(crate) struct Sink {
    to: io::BufWriter<fs::File>,
    bytes: Rc<Cell<u64>>,
    queue: Option<Queue>,
}

/// Records on their way.
struct Queue {
    packer: Packer,
    /// Most bytes that wait at once.
    bytes_max: usize,
    /// The beginning of a record.
    begun: Vec<u8>,
    /// Memory of a chunk that was written, for the next one.
    spare: Vec<u8>,
    /// Bytes that `mcap` has written.
    said: u64,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    places: Places,
    /// Checksum of what was written of the data, and then of the index.
    sum: Hasher,
    /// The magic bytes at the beginning have passed; the footer has passed.
    head: bool,
    foot: bool,
    /// Something could not be written: what comes after it would be in its place.
    broken: Option<io::ErrorKind>,
}

/// What is written once all before it is.
enum Waiting {
    /// Also where it ends, as `mcap` was told.
    Chunk(Packing, u64),
    Records(Vec<u8>),
}

/// For places that `mcap` was told, those in the file.
#[derive(Default)]
struct Places {
    /// Where the distance of both changes: told, and in the file. Ascending.
    turns: Vec<(u64, u64)>,
}

impl Places {
    /// What is written next differs in length.
    fn turn(&mut self, told: u64, real: u64) {
        self.turns.push((told, real));
    }

    fn real(&self, told: u64) -> u64 {
        let behind = self.turns.partition_point(|(at, _)| *at <= told);
        let (at, real) = behind.checked_sub(1).map_or((0, 0), |last| self.turns[last]);
        real + (told - at)
    }

    /// Replaces the place that stands in `body` at `at`.
    fn correct(&self, body: &mut [u8], at: usize) -> Option<()> {
        let real = self.real(number(body, at)?);
        body[at..at + 8].copy_from_slice(&real.to_le_bytes());
        Some(())
    }

    /// The same with a length at `length_at` of what is there; how long it was said to be, and is.
    fn correct_span(&self, body: &mut [u8], at: usize, length_at: usize) -> Option<[u64; 2]> {
        let (start, told) = (number(body, at)?, number(body, length_at)?);
        let real = self.real(start.checked_add(told)?) - self.real(start);
        self.correct(body, at)?;
        body[length_at..length_at + 8].copy_from_slice(&real.to_le_bytes());
        Some([told, real])
    }
}

impl Sink {
    /// `bytes` counts what was written. About `ahead` bytes may wait for their compression.
    pub(crate) fn new(
        file: fs::File,
        bytes: Rc<Cell<u64>>,
        compression: Compression,
        ahead: u64,
    ) -> Self {
        let to = io::BufWriter::with_capacity(BUFFER_BYTES, file);
        let queue = Packer::new(compression).map(|packer| Queue {
            bytes_max: usize::try_from(ahead).unwrap_or(usize::MAX),
            packer,
            begun: Vec::new(),
            spare: Vec::new(),
            said: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            places: Places::default(),
            sum: Hasher::new(),
            head: false,
            foot: false,
            broken: None,
        });
        Self { to, bytes, queue }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        if let Some(queue) = &mut self.queue {
            queue.sum.update(bytes);
        }
        self.bytes.set(self.bytes.get() + bytes.len() as u64);
        Ok(())
    }

    /// Takes one whole record.
    fn record(&mut self, record: &[u8]) -> io::Result<()> {
        let Some(queue) = &mut self.queue else { return self.put(record) };
        let (opcode, end) = (record[0], queue.said + record.len() as u64);
        match opcode {
            op::CHUNK => return self.pack(record.to_vec()),
            op::DATA_END => self.settle(true)?,
            _ if !queue.waiting.is_empty() => {
                queue.waiting_bytes += record.len();
                if let Some(Waiting::Records(records)) = queue.waiting.back_mut() {
                    records.extend(record);
                } else {
                    queue.waiting.push_back(Waiting::Records(record.to_vec()));
                }
                return self.settle(false);
            }
            _ => {}
        }
        let Some(queue) = &mut self.queue else { return Ok(()) };
        let mut body = record[HEAD_BYTES..].to_vec();
        // What does not look like `mcap`'s passes as it is.
        let corrected = match opcode {
            op::CHUNK_INDEX => queue.index(&mut body),
            op::METADATA_INDEX | op::ATTACHMENT_INDEX => queue.places.correct(&mut body, 0),
            op::SUMMARY_OFFSET => queue.places.correct_span(&mut body, 1, 9).map(drop),
            op::DATA_END => queue.end(&mut body),
            op::FOOTER => queue.footer(&mut body),
            _ => None,
        };
        if corrected.is_none() {
            return self.put(record);
        }
        self.put(&[&[opcode][..], &(body.len() as u64).to_le_bytes()].concat())?;
        self.put(&body)?;
        let Some(queue) = &mut self.queue else { return Ok(()) };
        if opcode == op::DATA_END {
            queue.sum = Hasher::new();
        }
        if HEAD_BYTES + body.len() != record.len() {
            queue.places.turn(end, self.bytes.get());
        }
        Ok(())
    }

    /// Takes a chunk, a whole record.
    fn pack(&mut self, record: Vec<u8>) -> io::Result<()> {
        if let Some(queue) = &mut self.queue {
            let (bytes, end) = (record.len(), queue.said + record.len() as u64);
            queue.waiting.push_back(Waiting::Chunk(queue.packer.pack(record), end));
            queue.waiting_bytes += bytes;
        }
        self.settle(false)
    }

    /// Writes what is ready of all that waits, in order; waits where too much does, or for all.
    fn settle(&mut self, all: bool) -> io::Result<()> {
        while let Some(queue) = &mut self.queue
            && let Some(first) = queue.waiting.front_mut()
        {
            let must = all || queue.waiting_bytes > queue.bytes_max;
            if let Waiting::Chunk(packing, _) = first
                && !packing.is_ready(must)
            {
                break;
            }
            let Some(first) = queue.waiting.pop_front() else { break };
            match first {
                Waiting::Chunk(packing, end) => {
                    queue.waiting_bytes -= packing.record().len();
                    self.chunk(&packing)?;
                    if let Some(queue) = &mut self.queue {
                        queue.places.turn(end, self.bytes.get());
                        queue.spare = packing.into_memory().unwrap_or_default();
                    }
                }
                Waiting::Records(records) => {
                    queue.waiting_bytes -= records.len();
                    self.put(&records)?;
                }
            }
        }
        Ok(())
    }

    /// A chunk as it was packed, or as it is where that saves nothing.
    fn chunk(&mut self, packing: &Packing) -> io::Result<()> {
        let record = packing.record();
        let Some((name, packed)) = packing.packed() else { return self.put(record) };
        let mut head = Vec::with_capacity(HEAD_BYTES + CHUNK_DATA_AT + name.len());
        let body_bytes = CHUNK_DATA_AT + name.len() + packed.len();
        head.push(record[0]);
        head.extend((body_bytes as u64).to_le_bytes());
        head.extend(&record[HEAD_BYTES..HEAD_BYTES + CHUNK_NAME_AT]);
        put_name(&mut head, name);
        head.extend((packed.len() as u64).to_le_bytes());
        self.put(&head)?;
        self.put(packed)
    }

    /// All records that `bytes` complete.
    fn records(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(queue) = &mut self.queue else { return self.put(bytes) };
        let mut begun = std::mem::take(&mut queue.begun);
        if !begun.is_empty() {
            begun.extend_from_slice(bytes);
        }
        // A chunk, in pieces of which its messages are the last.
        if begun.first() == Some(&op::CHUNK) && queue.length(&begun) == Some(begun.len()) {
            let length = begun.len() as u64;
            self.pack(begun)?;
            if let Some(queue) = &mut self.queue {
                queue.said += length;
                queue.begun = std::mem::take(&mut queue.spare);
                queue.begun.clear();
            }
            return Ok(());
        }
        let is_begun = !begun.is_empty();
        let mut rest = if is_begun { &begun[..] } else { bytes };
        while let Some(queue) = &mut self.queue
            && let Some(length) = queue.length(rest).filter(|length| *length <= rest.len())
        {
            let (record, behind) = rest.split_at(length);
            rest = behind;
            let is_magic = !queue.head || queue.foot;
            queue.head = true;
            if is_magic {
                self.put(record)?
            } else {
                self.record(record)?
            }
            if let Some(queue) = &mut self.queue {
                queue.said += length as u64;
            }
        }
        let left = rest.len();
        if is_begun {
            begun.drain(..begun.len() - left);
        } else {
            begun.extend_from_slice(&bytes[bytes.len() - left..]);
        }
        if let Some(queue) = &mut self.queue {
            queue.begun = begun;
        }
        Ok(())
    }

    /// After a failure nothing more is written: it would be in the place of what failed.
    fn unless_broken(&mut self, write: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        if let Some(kind) = self.queue.as_ref().and_then(|queue| queue.broken) {
            return Err(kind.into());
        }
        let done = write(self);
        if let (Some(queue), Err(error)) = (&mut self.queue, &done) {
            queue.broken = Some(error.kind());
            queue.waiting.clear();
        }
        done
    }
}

impl Queue {
    /// How long what begins with `bytes` is, if that can be told: a record, or magic bytes.
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        if !self.head || self.foot {
            return Some(mcap::MAGIC.len());
        }
        let length = bytes.get(1..HEAD_BYTES)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(length)).ok()?.checked_add(HEAD_BYTES)
    }

    /// The index of a chunk.
    fn index(&self, body: &mut Vec<u8>) -> Option<()> {
        let [told, real] = self.places.correct_span(body, INDEX_START_AT, INDEX_LENGTH_AT)?;
        let table = body.get(INDEX_TABLE_AT..INDEX_TABLE_AT + 4)?.try_into().ok()?;
        let begin = INDEX_TABLE_AT + 4;
        let end = begin + u32::from_le_bytes(table) as usize;
        for entry in (begin..end).step_by(INDEX_ENTRY_BYTES) {
            self.places.correct(body, entry + 2)?;
        }
        // What was compressed is shorter, its name included.
        if real != told {
            // The table, and the length of the indexes of messages.
            let name_at = end + 8;
            let unpacked = number(body, name_at + 4 + 8)?;
            let name = self.packer.name();
            let packed = real - (HEAD_BYTES + CHUNK_DATA_AT + name.len()) as u64;
            body.truncate(name_at);
            put_name(body, name);
            body.extend(packed.to_le_bytes());
            body.extend(unpacked.to_le_bytes());
        }
        Some(())
    }

    /// The end of the data, which has its checksum.
    fn end(&self, body: &mut [u8]) -> Option<()> {
        let sum = self.sum.clone().finalize();
        body.get_mut(..4)?.copy_from_slice(&sum.to_le_bytes());
        Some(())
    }

    /// The footer, which has the checksum of the index and of itself up to there.
    fn footer(&mut self, body: &mut [u8]) -> Option<()> {
        self.foot = true;
        for at in [0, 8] {
            if number(body, at)? > 0 {
                self.places.correct(body, at)?;
            }
        }
        let (before, sum) = body.split_at_mut_checked(FOOTER_CRC_AT)?;
        let mut all = self.sum.clone();
        all.update(&[op::FOOTER]);
        all.update(&((FOOTER_CRC_AT + 4) as u64).to_le_bytes());
        all.update(before);
        sum.get_mut(..4)?.copy_from_slice(&all.finalize().to_le_bytes());
        Some(())
    }
}

fn number(body: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(body.get(at..at + 8)?.try_into().ok()?))
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.as_bytes());
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.queue.is_none() {
            let n = self.to.write(bytes)?;
            self.bytes.set(self.bytes.get() + n as u64);
            return Ok(n);
        }
        self.unless_broken(|sink| sink.records(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_broken(|sink| sink.settle(true).and_then(|()| sink.to.flush()))
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let told = self
            .queue
            .as_ref()
            .map_or(self.bytes.get(), |queue| queue.said + queue.begun.len() as u64);
        match to {
            SeekFrom::Current(0) => Ok(told),
            SeekFrom::Start(at) if at == told => Ok(at),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Whoever wants to know asks `flush`.
        let _ = self.flush();
    }
}
