//! Reading files, finished or not, of ours or of others.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::{Metadata, Record, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use mcap::{Message, Summary};

use crate::Error;
use crate::channel::Source;
use crate::file::{ABOUT, LOSSES};

/// A record that claims to be longer is corrupt, bytes; or twice the file, if that is more.
const RECORD_BYTES_MAX: u64 = 2 << 30;

/// What to do with a bag of ROS 2 that is not read as it is.
const ANEW: &str = "write it anew as MCAP, with 'ros2 bag convert', or without ROS with \
    'rosbags-convert --src BAG --dst NEW --dst-storage mcap' (pip install rosbags)";

/// What a file has, without its messages.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file.
    pub path: PathBuf,
    /// Its size, bytes.
    pub file_bytes: u64,
    /// Whether it was ended in order. If not it is read up to its last whole chunk.
    pub finished: bool,
    /// What the file says of its kind, `ros2` for instance.
    pub profile: String,
    /// What wrote it.
    pub library: String,
    /// Messages.
    pub messages: u64,
    /// When the first message was recorded, ns since the epoch.
    pub start_ns: u64,
    /// When the last one was.
    pub end_ns: u64,
    /// Chunks.
    pub chunks: u64,
    /// Publishers and their topics, by topic.
    pub sources: Vec<RecordedSource>,
    /// Messages that the recorder lost, by topic and publisher.
    pub losses: BTreeMap<String, u64>,
    /// What our recorder says about the file; empty if others wrote it.
    pub about: BTreeMap<String, String>,
}

/// One channel of a file.
#[derive(Clone, Debug)]
pub struct RecordedSource {
    /// Number of the channel in the file.
    pub channel: u16,
    /// Topic, type and publisher.
    pub source: Source,
    /// Messages of it.
    pub messages: u64,
}

/// Messages of a file in its order; see [`Recording::messages`].
pub struct Messages {
    path: PathBuf,
    finished: bool,
    reader: mcap::io::MessageReader<BufReader<File>>,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Recording {
    /// Reads the index at the file's end; if there is none, because nobody finished the file, all
    /// of it. Of a directory, such as a bag of ROS 2, the one MCAP file in it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for what is no MCAP file or broken before its end; [`Error::Io`];
    /// [`Error::Usage`] for a directory without a file, or with several.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let io = |e| Error::io("open", path, e);
        if path.is_dir() {
            return Self::open(&file_in(path)?);
        }
        let mut file = File::open(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        let mut recording = Self {
            path: path.into(),
            file_bytes,
            finished: false,
            profile: String::new(),
            library: String::new(),
            messages: 0,
            start_ns: 0,
            end_ns: 0,
            chunks: 0,
            sources: Vec::new(),
            losses: BTreeMap::new(),
            about: BTreeMap::new(),
        };
        match summary(&mut file, file_bytes) {
            Some(summary) if summary.stats.is_some() => {
                recording.finished = true;
                recording.indexed(&mut file, &summary)?;
            }
            found => {
                // Finished, but without an index: read like the others.
                recording.finished = found.is_some();
                file.seek(SeekFrom::Start(0)).map_err(io)?;
                recording.scan(file)?;
            }
        }
        recording.sources.sort_by(|a, b| {
            let key = |s: &RecordedSource| (s.source.topic.clone(), s.channel);
            key(a).cmp(&key(b))
        });
        Ok(recording)
    }

    /// Its messages in the order of the file, which is that of recording.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be opened.
    pub fn messages(&self) -> Result<Messages, Error> {
        let file = File::open(&self.path).map_err(|e| Error::io("open", &self.path, e))?;
        let options = self.reader_options();
        let reader = mcap::io::MessageReader::new_with_options(
            BufReader::with_capacity(1 << 20, file),
            options,
        );
        Ok(Messages { path: self.path.clone(), finished: self.finished, reader })
    }

    /// How long it lasts, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Messages that the recorder lost.
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }

    fn reader_options(&self) -> LinearReaderOptions {
        let limit = RECORD_BYTES_MAX.max(2 * self.file_bytes) as usize;
        LinearReaderOptions::default()
            .with_prevalidate_chunk_crcs(true)
            .with_record_length_limit(limit)
    }

    /// Why it cannot be read; bags of ROS 2 used to be data bases.
    fn no_recording(&self, error: mcap::McapError) -> Error {
        let mut begin = [0; 16];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut begin));
        if read.is_ok() && &begin == b"SQLite format 3\0" {
            return self.corrupt(format!("it is a bag of ROS 2 in SQLite: {ANEW}"));
        }
        Error::reading(&self.path, error)
    }

    fn corrupt(&self, why: impl Into<String>) -> Error {
        Error::Corrupt { path: self.path.clone(), why: why.into() }
    }

    fn indexed(&mut self, file: &mut File, summary: &Summary) -> Result<(), Error> {
        let Some(stats) = &summary.stats else { return Ok(()) };
        self.messages = stats.message_count;
        (self.start_ns, self.end_ns) = (stats.message_start_time, stats.message_end_time);
        self.chunks = stats.chunk_count.into();
        for (id, channel) in &summary.channels {
            let messages = stats.channel_message_counts.get(id).copied().unwrap_or(0);
            self.channel(*id, channel, messages)?;
        }
        let header = record_at(file, mcap::MAGIC.len() as u64, self.file_bytes);
        self.header(header.as_deref())?;
        for index in &summary.metadata_indexes {
            if [ABOUT, LOSSES].contains(&index.name.as_str()) {
                let body = record_at(file, index.offset, self.file_bytes);
                let parsed = body.as_deref().map(|body| mcap::parse_record(op::METADATA, body));
                match parsed {
                    Some(Ok(Record::Metadata(metadata))) => self.metadata(metadata),
                    _ => return Err(self.corrupt("its index names metadata that is not there")),
                }
            }
        }
        Ok(())
    }

    fn header(&mut self, body: Option<&[u8]>) -> Result<(), Error> {
        match body.map(|body| mcap::parse_record(op::HEADER, body)) {
            Some(Ok(Record::Header(header))) => {
                (self.profile, self.library) = (header.profile, header.library);
                Ok(())
            }
            _ => Err(self.corrupt("its header is missing")),
        }
    }

    fn channel(&mut self, id: u16, of: &mcap::Channel<'_>, messages: u64) -> Result<(), Error> {
        let source = Source::of(of).map_err(|why| self.corrupt(why))?;
        self.sources.push(RecordedSource { channel: id, source, messages });
        Ok(())
    }

    fn metadata(&mut self, metadata: Metadata) {
        match metadata.name.as_str() {
            ABOUT => self.about = metadata.metadata,
            LOSSES => {
                let counts = metadata.metadata.into_iter();
                self.losses = counts.filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect();
            }
            _ => {}
        }
    }

    /// Reads all of a file that has no index.
    fn scan(&mut self, file: File) -> Result<(), Error> {
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut reader = LinearReader::new_with_options(self.reader_options());
        let (mut schemas, mut channels) = (HashMap::new(), HashMap::new());
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        loop {
            let (opcode, data) = match reader.next_event() {
                None => break,
                Some(Ok(LinearReadEvent::ReadRequest(n))) => {
                    let read = file.read(reader.insert(n));
                    let read = read.map_err(|e| Error::io("read", &self.path, e))?;
                    reader.notify_read(read);
                    continue;
                }
                Some(Ok(LinearReadEvent::Record { opcode, data })) => (opcode, data),
                // The end of what its writer handed over before it was killed.
                Some(Err(mcap::McapError::UnexpectedEof)) if self.file_bytes > 8 => break,
                Some(Err(e)) => return Err(self.no_recording(e)),
            };
            let record = mcap::parse_record(opcode, data);
            match record.map_err(|e| Error::reading(&self.path, e))? {
                Record::Header(h) => (self.profile, self.library) = (h.profile, h.library),
                Record::Schema { header, data } => {
                    let data = data.into_owned().into();
                    let (name, encoding) = (header.name, header.encoding);
                    let schema = mcap::Schema { id: header.id, name, encoding, data };
                    schemas.insert(header.id, Arc::new(schema));
                }
                Record::Channel(c) => {
                    let channel = mcap::Channel {
                        id: c.id,
                        topic: c.topic,
                        schema: schemas.get(&c.schema_id).cloned(),
                        message_encoding: c.message_encoding,
                        metadata: c.metadata,
                    };
                    channels.insert(c.id, channel);
                }
                Record::Message { header, .. } => {
                    let first = self.messages == 0;
                    self.messages += 1;
                    *counts.entry(header.channel_id).or_default() += 1;
                    let time = header.log_time;
                    self.start_ns = if first { time } else { self.start_ns.min(time) };
                    self.end_ns = self.end_ns.max(time);
                }
                Record::MessageIndex(_) | Record::Chunk { .. } => {}
                Record::Metadata(metadata) => self.metadata(metadata),
                Record::DataEnd(_) => break,
                _ => {}
            }
        }
        for (id, channel) in channels {
            self.channel(id, &channel, counts.get(&id).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}

impl Iterator for Messages {
    type Item = Result<Message<'static>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.reader.next()? {
            Ok(message) => Some(Ok(message)),
            Err(mcap::McapError::UnexpectedEof) if !self.finished => None,
            Err(e) => Some(Err(Error::reading(&self.path, e))),
        }
    }
}

/// The one file in a bag.
fn file_in(dir: &Path) -> Result<PathBuf, Error> {
    let io = |e| Error::io("read", dir, e);
    let (mut found, mut other) = (Vec::new(), None);
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".db3") || name.ends_with(".db3.zstd") {
            other = Some("in SQLite");
        } else if name.ends_with(".mcap.zstd") {
            other = Some("compressed as a whole");
        } else if name.ends_with(".mcap") && path.is_file() {
            found.push(path);
        }
    }
    // A bag of messages that are compressed one by one says so nowhere else.
    let about = std::fs::read_to_string(dir.join("metadata.yaml")).unwrap_or_default();
    if about.lines().any(|line| line.trim().eq_ignore_ascii_case("compression_mode: message")) {
        (found, other) = (Vec::new(), Some("with compressed messages"));
    }
    match (found.as_slice(), other) {
        ([one], _) => Ok(one.clone()),
        ([], Some(how)) => {
            let why = format!("it is a bag of ROS 2 {how}: {ANEW}");
            Err(Error::Corrupt { path: dir.into(), why })
        }
        (others, _) => Err(Error::Usage(format!(
            "{} has {} MCAP files: name one",
            dir.display(),
            others.len()
        ))),
    }
}

/// The index at the end; `None` if there is none.
fn summary(file: &mut File, file_bytes: u64) -> Option<Summary> {
    let options = SummaryReaderOptions::default()
        .with_file_size(file_bytes)
        .with_record_length_limit(RECORD_BYTES_MAX.min(file_bytes) as usize);
    let mut reader = SummaryReader::new_with_options(options);
    while let Some(event) = reader.next_event() {
        match event.ok()? {
            SummaryReadEvent::ReadRequest(n) => {
                let read = file.read(reader.insert(n)).ok()?;
                reader.notify_read(read);
            }
            SummaryReadEvent::SeekRequest(to) => reader.notify_seeked(file.seek(to).ok()?),
        }
    }
    reader.finish()
}

/// The body of the record at `offset`, if it is one.
fn record_at(file: &mut File, offset: u64, file_bytes: u64) -> Option<Vec<u8>> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut head = [0; 9];
    file.read_exact(&mut head).ok()?;
    let len = u64::from_le_bytes(head[1..].try_into().ok()?);
    if len > file_bytes {
        return None;
    }
    let mut body = vec![0; len as usize];
    file.read_exact(&mut body).ok()?;
    Some(body)
}
