//! Reads the records of a file one after the other, and around what is damaged in it.
//!
//! # Theory of operation
//! Each record says how long it is. A chunk whose bytes are wrong is left out by that length; where
//! a length itself is wrong, the next header of a chunk is looked for byte by byte. So one wrong
//! bit costs one chunk, in a file with or without an index. What a file claims is believed only
//! within [`Limits`]: a chunk of a few megabytes can hold gigabytes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::{MessageHeader, Record, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use ruzstd::decoding::FrameDecoder;

use crate::Error;

/// Opcode and length.
pub(crate) const HEAD_BYTES: u64 = 9;
/// Of a chunk's header without its text.
const CHUNK_HEAD_BYTES: u64 = 40;
/// Read at once when a chunk is looked for.
const BLOCK_BYTES: usize = 1 << 20;
/// The names of compressions are no longer.
const NAME_BYTES_MAX: usize = 8;

/// How much of a file to believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest chunk that is unpacked, and largest record outside chunks, bytes; 512 MiB. So no
    /// message is larger.
    pub chunk_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes_max: 512 << 20 }
    }
}

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// Chunks and stretches of a file that were left out.
    pub places: u64,
    /// Their bytes in the file.
    pub bytes: u64,
    /// Messages of channels that only a damaged part of the file describes.
    pub orphans: u64,
    /// What was wrong at the first of them.
    pub first: Option<String>,
    /// Why the file is not as it was written, though for that nothing is left out: its index, or
    /// the checksum of all of it, is wrong.
    pub differs: Option<String>,
}

impl Damage {
    /// Something that was read and makes no sense.
    pub(crate) fn add_record(&mut self, bytes: usize, why: impl std::fmt::Display) {
        self.places += 1;
        self.bytes += bytes as u64;
        self.first.get_or_insert_with(|| why.to_string());
    }

    /// Whether anything is wrong.
    pub fn is_some(&self) -> bool {
        self.is_loss() || self.differs.is_some()
    }

    /// Whether anything is missing.
    pub fn is_loss(&self) -> bool {
        self.places + self.orphans > 0
    }

    pub(crate) fn add_difference(&mut self, why: impl std::fmt::Display) {
        self.differs.get_or_insert_with(|| why.to_string());
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.places += other.places;
        self.bytes += other.bytes;
        self.orphans += other.orphans;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
        if self.differs.is_none() {
            self.differs.clone_from(&other.differs);
        }
    }

    fn add(&mut self, bytes: u64, at: u64, why: impl std::fmt::Display) {
        self.places += 1;
        self.bytes += bytes;
        self.first.get_or_insert_with(|| format!("at byte {at}: {why}"));
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (parts, are) = if self.places == 1 { ("part", "is") } else { ("parts", "are") };
        let Self { places, bytes, .. } = self;
        match &self.differs {
            Some(why) if !self.is_loss() => return f.write_str(why),
            Some(why) => write!(f, "{why}; ")?,
            None => {}
        }
        write!(f, "{places} damaged {parts} of {bytes} bytes {are} left out")?;
        if self.orphans > 0 {
            let messages = if self.orphans == 1 { "message" } else { "messages" };
            let they = if self.places == 1 { "it" } else { "they" };
            write!(f, ", and {} {messages} whose topic {they} described", self.orphans)?;
        }
        match &self.first {
            Some(first) => write!(f, " (the first {first})"),
            None => Ok(()),
        }
    }
}

/// A record of the file, no chunk.
pub(crate) enum Item {
    Message(MessageHeader, Vec<u8>),
    Other(u8, Vec<u8>),
}

impl Item {
    fn of(opcode: u8, body: &[u8]) -> Self {
        match (opcode, message_header(body)) {
            (op::MESSAGE, Some(header)) => Self::Message(header, body[MESSAGE_HEAD..].to_vec()),
            _ => Self::Other(opcode, body.to_vec()),
        }
    }
}

/// Bytes of a message's record before its data.
const MESSAGE_HEAD: usize = 22;

fn message_header(body: &[u8]) -> Option<MessageHeader> {
    let head = body.get(..MESSAGE_HEAD)?;
    Some(MessageHeader {
        channel_id: u16::from_le_bytes(head[..2].try_into().ok()?),
        sequence: u32::from_le_bytes(head[2..6].try_into().ok()?),
        log_time: u64::from_le_bytes(head[6..14].try_into().ok()?),
        publish_time: u64::from_le_bytes(head[14..].try_into().ok()?),
    })
}

/// Goes through a file.
pub(crate) struct Scanner {
    path: PathBuf,
    file: BufReader<File>,
    /// Where the next record begins.
    at: u64,
    len: u64,
    limits: Limits,
    /// The chunk that is being read, where it is, and how long.
    chunk: Option<(LinearReader, u64, u64)>,
    over: bool,
    /// Nothing is read from here on.
    stop_at: u64,
    /// It ends as finished files do: nothing was cut off.
    whole: bool,
    pub(crate) damage: Damage,
    pub(crate) chunks: u64,
    /// Where its data end, and their checksum or 0, if it ends like a finished file.
    pub(crate) ended: Option<(u64, u32)>,
}

impl Scanner {
    /// # Errors
    /// [`Error::Corrupt`] for a file that is not MCAP; [`Error::Io`].
    pub(crate) fn open(path: &Path, limits: Limits) -> Result<Self, Error> {
        let io = |e| Error::io("open", path, e);
        let mut file = File::open(path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        let n = mcap::MAGIC.len();
        let mut ends = [[0; 8]; 2];
        let mut damage = Damage::default();
        let read = file.read_exact(&mut ends[0][..n]);
        let end = file.seek(SeekFrom::Start(len.saturating_sub(n as u64)));
        let read = read.and(end).and_then(|_| file.read_exact(&mut ends[1][..n]));
        let is_magic = ends.map(|end| end[..n] == *mcap::MAGIC);
        match (read, is_magic) {
            (Ok(()), [true, _]) => {}
            // Its end is as it should be.
            (Ok(()), [false, true]) => damage.add(n as u64, 0, "the file begins like no other"),
            (Err(e), _) if e.kind() != std::io::ErrorKind::UnexpectedEof => return Err(io(e)),
            _ => {
                let why = mcap::McapError::BadMagic.to_string();
                return Err(Error::Corrupt { path: path.into(), why });
            }
        }
        file.seek(SeekFrom::Start(n as u64)).map_err(io)?;
        Ok(Self {
            path: path.into(),
            file: BufReader::with_capacity(BLOCK_BYTES, file),
            at: n as u64,
            len,
            limits,
            chunk: None,
            over: false,
            stop_at: len,
            whole: is_magic[1],
            damage,
            chunks: 0,
            ended: None,
        })
    }

    /// Reads only from `at` to `end`, if a chunk begins there, as an index says; nothing if
    /// `end` is 0.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn only(&mut self, at: u64, end: u64) -> Result<(), Error> {
        let mut head = [0; HEAD_BYTES as usize];
        self.over = end == 0;
        if at < self.at || self.len.saturating_sub(at) < HEAD_BYTES {
            return Ok(());
        }
        self.read(at, &mut head)?;
        if head[0] == op::CHUNK {
            (self.at, self.stop_at) = (at, end);
        }
        Ok(())
    }

    /// Reads on from `at`, where a record begins.
    pub(crate) fn go_on_at(&mut self, at: u64) {
        self.at = at.min(self.len);
    }

    /// The next record, of those inside chunks and those outside.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            if let Some(record) = self.next_of_chunk() {
                return Ok(Some(record));
            }
            if self.over {
                return Ok(None);
            }
            if let Some(record) = self.next_of_file()? {
                return Ok(Some(record));
            }
        }
    }

    /// The next record of the chunk that was read last.
    fn next_of_chunk(&mut self) -> Option<Item> {
        let (reader, at, bytes) = self.chunk.as_mut()?;
        let wrong = loop {
            match reader.next_event() {
                // All of it was handed over.
                Some(Ok(LinearReadEvent::ReadRequest(n))) => {
                    reader.insert(n);
                    reader.notify_read(0);
                }
                Some(Ok(LinearReadEvent::Record { opcode, data })) => {
                    return Some(Item::of(opcode, data));
                }
                None => break None,
                Some(Err(e)) => break Some(e),
            }
        };
        let (at, bytes) = (*at, *bytes);
        match wrong {
            Some(e) => self.damage.add(bytes, at, e),
            None => self.chunks += 1,
        }
        self.chunk = None;
        None
    }

    /// The next record of the file, if it is no chunk; else the chunk is there afterwards.
    fn next_of_file(&mut self) -> Result<Option<Item>, Error> {
        let (at, left) = (self.at, self.len - self.at);
        let mut head = [0; HEAD_BYTES as usize];
        if left < HEAD_BYTES || at >= self.stop_at {
            self.over = true;
            return Ok(None);
        }
        self.read(at, &mut head)?;
        let (opcode, bytes) = (head[0], length(&head));
        let known = match opcode {
            op::HEADER | op::ATTACHMENT | op::METADATA | op::DATA_END => true,
            op::SCHEMA..=op::MESSAGE_INDEX => true,
            // One of these may have been a chunk's; all others are of an index.
            0x80.. => !self.has_chunk(at)?,
            _ => false,
        };
        if !known || bytes > left - HEAD_BYTES {
            self.look_for_chunk(at, known)?;
            return Ok(None);
        }
        self.at = at + HEAD_BYTES + bytes;
        match opcode {
            op::CHUNK => self.begin_chunk(at, bytes)?,
            op::MESSAGE_INDEX => {
                let mut head = [0; 6];
                self.read(at + HEAD_BYTES, &mut head[..bytes.min(6) as usize])?;
                let listed = u32::from_le_bytes(head[2..].try_into().unwrap_or_default());
                if bytes != 6 + u64::from(listed) {
                    self.look_for_chunk(at, true)?;
                }
            }
            // Behind it there is only what is in the file already.
            op::DATA_END if bytes == 4 => {
                let mut sum = [0; 4];
                self.read(at + HEAD_BYTES, &mut sum)?;
                (self.over, self.ended) = (true, Some((at, u32::from_le_bytes(sum))));
            }
            op::HEADER | op::SCHEMA | op::CHANNEL | op::MESSAGE | op::METADATA => {
                if bytes > self.limits.chunk_bytes_max {
                    self.damage.add(bytes, at, self.too_large("record", bytes));
                    return Ok(None);
                }
                let mut body = vec![0; bytes as usize];
                self.read(at + HEAD_BYTES, &mut body)?;
                return Ok(Some(Item::of(opcode, &body)));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether the record at `at` looks like a chunk, but for its opcode.
    fn has_chunk(&mut self, at: u64) -> Result<bool, Error> {
        let left = self.len - at;
        let mut head = [0; HEAD_BYTES as usize + CHUNK_HEAD_BYTES as usize + NAME_BYTES_MAX];
        let n = head.len().min(left as usize);
        self.read(at, &mut head[..n])?;
        Ok(is_chunk(&head[..n], left))
    }

    fn too_large(&self, what: &str, bytes: u64) -> String {
        let most = self.limits.chunk_bytes_max;
        format!("a {what} of {bytes} bytes; at most {most} are read (--chunk-bytes-max)")
    }

    fn begin_chunk(&mut self, at: u64, bytes: u64) -> Result<(), Error> {
        let mut head = vec![0; (CHUNK_HEAD_BYTES as usize + NAME_BYTES_MAX).min(bytes as usize)];
        self.read(at + HEAD_BYTES, &mut head)?;
        let left = self.len - at - HEAD_BYTES;
        let sizes = chunk_sizes(&head).filter(|(_, needed)| *needed <= left);
        let Some((unpacked, needed)) = sizes else {
            return self.look_for_chunk(at, true);
        };
        let whole = HEAD_BYTES + needed;
        if needed != bytes {
            // One of the two is wrong; its checksum says which, and what follows is looked for.
            self.damage.add(needed.abs_diff(bytes), at, "a chunk with two lengths");
            self.at = at + whole;
        }
        let (most, bytes) = (self.limits.chunk_bytes_max, needed);
        if unpacked > most || bytes > most {
            self.damage.add(whole, at, self.too_large("chunk", unpacked.max(bytes)));
            return Ok(());
        }
        let options = LinearReaderOptions::default()
            .with_skip_start_magic(true)
            .with_skip_end_magic(true)
            .with_prevalidate_chunk_crcs(true)
            .with_record_length_limit(most as usize);
        let mut reader = LinearReader::new_with_options(options);
        let path = &self.path;
        self.file.seek(SeekFrom::Start(at)).map_err(|e| Error::io("read", path, e))?;
        if head.get(32..36) == Some(&b"zstd"[..]) {
            let mut packed = vec![0; whole as usize];
            self.file.read_exact(&mut packed).map_err(|e| Error::io("read", path, e))?;
            match without_zstd(&packed, unpacked) {
                Ok(plain) => {
                    reader.insert(plain.len()).copy_from_slice(&plain);
                    reader.notify_read(plain.len());
                }
                Err(why) => {
                    self.damage.add(whole, at, why);
                    return Ok(());
                }
            }
        } else {
            let room = reader.insert(whole as usize);
            self.file.read_exact(room).map_err(|e| Error::io("read", path, e))?;
            room[1..HEAD_BYTES as usize].copy_from_slice(&needed.to_le_bytes());
            reader.notify_read(whole as usize);
        }
        self.chunk = Some((reader, at, whole));
        Ok(())
    }

    /// Goes on at the next chunk behind `from`. If there is none, an unfinished file was cut off
    /// there.
    fn look_for_chunk(&mut self, from: u64, known: bool) -> Result<(), Error> {
        let mut at = from + 1;
        let overlap = HEAD_BYTES as usize + CHUNK_HEAD_BYTES as usize + NAME_BYTES_MAX;
        let mut block = vec![0; BLOCK_BYTES];
        while at < self.len {
            let n = BLOCK_BYTES.min((self.len - at) as usize);
            self.read(at, &mut block[..n])?;
            for i in 0..n {
                let left = self.len - at - i as u64;
                if block[i] == op::CHUNK && is_chunk(&block[i..n], left) {
                    self.at = at + i as u64;
                    let why = if known { "a wrong length" } else { "no record" };
                    self.damage.add(self.at - from, from, why);
                    return Ok(());
                }
            }
            if n < BLOCK_BYTES {
                break;
            }
            at += (n - overlap) as u64;
        }
        self.over = true;
        if self.whole {
            let why = "a wrong length, and no chunk behind it";
            self.damage.add(self.len - from, from, why);
        }
        Ok(())
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<(), Error> {
        let here = self.file.stream_position();
        let moved = here.and_then(|here| self.file.seek_relative(at as i64 - here as i64));
        let read = moved.and_then(|()| self.file.read_exact(into));
        read.map_err(|e| Error::io("read", &self.path, e))
    }
}

/// The checksum of the bytes of a file from one place to another; none if they cannot be read.
pub(crate) fn checksum(file: &mut File, from: u64, to: u64) -> Option<u32> {
    file.seek(SeekFrom::Start(from)).ok()?;
    let bytes = to.checked_sub(from)?;
    let mut block = vec![0; bytes.min(BLOCK_BYTES as u64) as usize];
    let (mut sum, mut rest) = (crc32fast::Hasher::new(), file.take(bytes));
    loop {
        match rest.read(&mut block).ok()? {
            0 => return (rest.limit() == 0).then(|| sum.finalize()),
            n => sum.update(&block[..n]),
        }
    }
}

fn length(head: &[u8]) -> u64 {
    u64::from_le_bytes(head[1..9].try_into().unwrap_or_default())
}

/// How many bytes a chunk with this header says it holds, and how long its record must be; `None`
/// if it cannot be one.
fn chunk_sizes(head: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
    let name_bytes = u32::from_le_bytes(head.get(28..32)?.try_into().ok()?) as usize;
    if name_bytes > NAME_BYTES_MAX {
        return None;
    }
    let packed = number(32 + name_bytes)?;
    let needed = packed.checked_add(CHUNK_HEAD_BYTES + name_bytes as u64)?;
    (number(0)? <= number(8)?).then_some((number(16)?, needed))
}

/// The record of a chunk in zstd, as one that is not compressed: the library reads zstd only with
/// its C code.
fn without_zstd(record: &[u8], unpacked: u64) -> Result<Vec<u8>, String> {
    let (head, packed) = record[HEAD_BYTES as usize..].split_at(CHUNK_HEAD_BYTES as usize + 4);
    let body_at = (HEAD_BYTES + CHUNK_HEAD_BYTES) as usize;
    let mut out = Vec::with_capacity(body_at);
    out.push(op::CHUNK);
    out.extend((CHUNK_HEAD_BYTES + unpacked).to_le_bytes());
    out.extend(&head[..28]);
    out.extend([0; 4]);
    out.extend(unpacked.to_le_bytes());
    out.resize(body_at + unpacked as usize, 0);
    let decoded = FrameDecoder::new().decode_all(packed, &mut out[body_at..]);
    match decoded.map_err(|e| format!("its zstd is damaged: {e}"))? as u64 {
        n if n == unpacked => Ok(out),
        n => Err(format!("it holds {n} bytes of the {unpacked} that it says")),
    }
}

fn is_chunk(record: &[u8], left: u64) -> bool {
    if record.len() < (HEAD_BYTES + CHUNK_HEAD_BYTES) as usize {
        return false;
    }
    let bytes = length(record);
    let names = [&b""[..], b"lz4", b"zstd"];
    let head = &record[HEAD_BYTES as usize..];
    let name_bytes = u32::from_le_bytes(head[28..32].try_into().unwrap_or_default()) as usize;
    bytes <= left.saturating_sub(HEAD_BYTES)
        && head.get(32..32usize.saturating_add(name_bytes)).is_some_and(|n| names.contains(&n))
        && chunk_sizes(head).is_some_and(|(_, needed)| needed == bytes)
}

/// What records say of schemas and channels.
#[derive(Default)]
pub(crate) struct Channels {
    schemas: HashMap<u16, Arc<mcap::Schema<'static>>>,
    pub(crate) channels: HashMap<u16, Arc<mcap::Channel<'static>>>,
}

impl Channels {
    /// Those of an index. A channel that a chunk describes again may name a schema that is only in
    /// another chunk.
    pub(crate) fn known(channels: HashMap<u16, Arc<mcap::Channel<'static>>>) -> Self {
        let schemas = channels.values().filter_map(|channel| channel.schema.clone());
        Self { schemas: schemas.map(|schema| (schema.id, schema)).collect(), channels }
    }

    /// Keeps it, if it is one of these.
    pub(crate) fn take(&mut self, record: &Record<'_>) {
        match record {
            Record::Schema { header, data } => {
                let data = data.to_vec().into();
                let (name, encoding) = (header.name.clone(), header.encoding.clone());
                let schema = mcap::Schema { id: header.id, name, encoding, data };
                self.schemas.insert(header.id, Arc::new(schema));
            }
            Record::Channel(c) => {
                let channel = mcap::Channel {
                    id: c.id,
                    topic: c.topic.clone(),
                    schema: self.schemas.get(&c.schema_id).cloned(),
                    message_encoding: c.message_encoding.clone(),
                    metadata: c.metadata.clone(),
                };
                self.channels.insert(c.id, Arc::new(channel));
            }
            _ => {}
        }
    }
}
