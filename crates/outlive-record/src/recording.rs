//! Reading files, finished or not, of ours or of others.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::{Metadata, Record, op};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use mcap::{Message, Summary};

use crate::Error;
use crate::about::{ABOUT, LOSSES};
use crate::channel::Source;
use crate::scan::{Channels, Damage, HEAD_BYTES, Item, Limits, Scanner, checksum};

/// What to do with a bag of ROS 2 that is not read as it is.
pub(crate) const CONVERT: &str = "convert it to MCAP with 'ros2 bag convert', or without ROS with \
    'rosbags-convert --src BAG --dst NEW --dst-storage mcap' (pip install rosbags)";

/// An index that claims to be longer is none, bytes.
const RECORD_BYTES_MAX: u64 = 2 << 30;
/// Of a footer's record; it is followed by magic bytes.
const FOOTER_BYTES: usize = HEAD_BYTES as usize + 20;
/// In it, before its checksum: that much the checksum of the index covers of it.
const FOOTER_CRC_AT: usize = FOOTER_BYTES - 4;

/// What a file has, without its messages; or several files that are one recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What was opened.
    pub path: PathBuf,
    /// The file, or all of them in order.
    pub files: Vec<PathBuf>,
    /// Their size, bytes.
    pub file_bytes: u64,
    /// Whether it was finished. If not, it is read up to its last whole chunk.
    pub finished: bool,
    /// The profile that the file names, `ros2` for instance.
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
    /// What could not be read, of a file that was read to its end: one without an index, or whose
    /// index is damaged.
    pub damage: Damage,
    limits: Limits,
    pub(crate) channels: HashMap<u16, Arc<mcap::Channel<'static>>>,
    /// It was not read, but its index, which is proved.
    is_indexed: bool,
    /// Where its chunks are, in their order; none where no index says so.
    index: Vec<Chunk>,
    /// Its files, if there are several.
    pub(crate) parts: Vec<Part>,
    /// Those that are missing or cannot be read at all.
    pub(crate) gaps: Damage,
    /// The latter.
    pub(crate) left_out: Vec<PathBuf>,
}

/// One of several files.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) recording: Recording,
    /// Its channels, by their numbers in the file, with those of the whole.
    pub(crate) channels: Arc<HashMap<u16, Arc<mcap::Channel<'static>>>>,
}

/// What the index says of a chunk.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    at: u64,
    end: u64,
    first_ns: u64,
    last_ns: u64,
}

/// One channel of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedSource {
    /// Number of the channel in the file.
    pub channel: u16,
    /// Topic, type and publisher.
    pub source: Source,
    /// Messages of it.
    pub messages: u64,
}

/// Messages of a file in its order; see [`Recording::messages`].
///
/// What is damaged is left out; [`Messages::damage`] says what that was.
pub struct Messages {
    /// Files that follow.
    next: VecDeque<Piece>,
    /// With the messages that were read of it.
    current: Option<(Scanner, Channels, Piece, u64)>,
    limits: Limits,
    first_ns: u64,
    last_ns: u64,
    /// Of files that were read, and files that cannot be.
    damage: Damage,
    failed: bool,
}

/// What is to be read of a file.
struct Piece {
    path: PathBuf,
    known: HashMap<u16, Arc<mcap::Channel<'static>>>,
    /// As the whole recording has them, of a part.
    renamed: Option<Arc<HashMap<u16, Arc<mcap::Channel<'static>>>>>,
    /// Where chunks begin and end.
    span: Option<(u64, u64)>,
    /// How many messages its index counts, or how many chunks within `span`; none if that was not
    /// believed.
    count: Option<u64>,
}

/// The end of a file, with its index.
#[derive(Default)]
struct Ending {
    index: Option<Summary>,
    /// A checksum proves the index.
    is_proved: bool,
    /// What is damaged.
    wrong: Option<&'static str>,
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("damage", &self.damage()).finish_non_exhaustive()
    }
}

impl Recording {
    pub(crate) fn empty(path: &Path, limits: Limits) -> Self {
        Self {
            path: path.into(),
            files: Vec::new(),
            file_bytes: 0,
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
            damage: Damage::default(),
            limits,
            channels: HashMap::new(),
            is_indexed: false,
            index: Vec::new(),
            parts: Vec::new(),
            gaps: Damage::default(),
            left_out: Vec::new(),
        }
    }

    /// As [`Recording::open_within`], for this one file, even if it is part of a recording.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_part(path: &Path, limits: Limits, check: bool) -> Result<Self, Error> {
        let io = |e| Error::io("open", path, e);
        if path.is_dir() {
            let why = format!("{} is a directory: name a file in it", path.display());
            return Err(Error::Usage(why));
        }
        let mut file = File::open(path).map_err(io)?;
        let mut recording = Self::empty(path, limits);
        let file_bytes = file.metadata().map_err(io)?.len();
        (recording.files, recording.file_bytes) = (vec![path.into()], file_bytes);
        let ending = Ending::of(&mut file, file_bytes);
        recording.finished = ending.index.is_some();
        if let Some(summary) = &ending.index {
            // Parts of a damaged file may be described nowhere else.
            let owned =
                |(id, channel): (&u16, &Arc<mcap::Channel<'static>>)| (*id, channel.clone());
            recording.channels = summary.channels.iter().map(owned).collect();
        }
        if let Some(why) = ending.wrong {
            recording.damage.add_difference(format_args!("{why}, so all of it was read"));
        }
        let index = ending.index.as_ref();
        let index = index.filter(|of| of.stats.is_some() && ending.is_proved && !check);
        let indexed = index.map(|summary| recording.indexed(&mut file, summary));
        recording.is_indexed = indexed == Some(Ok(()));
        if !recording.is_indexed {
            recording.scan(&mut file, &ending, check)?;
        }
        if let Some(Err(why)) = indexed
            && !recording.damage.is_some()
        {
            recording.damage.add_difference(why);
        }
        recording.sources.sort_by(|a, b| {
            let key = |s: &RecordedSource| (s.source.topic.clone(), s.channel);
            key(a).cmp(&key(b))
        });
        Ok(recording)
    }

    /// Its messages in the order in which they were recorded. A file of a split recording that is
    /// gone by then counts as damage.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be opened.
    pub fn messages(&self) -> Result<Messages, Error> {
        self.messages_between(0, u64::MAX)
    }

    /// The messages that were recorded from `first_ns` to `last_ns`, ns since the epoch. Chunks
    /// before and after them are not read if the file has an index that a checksum proves.
    ///
    /// # Errors
    /// As [`Recording::messages`].
    pub fn messages_between(&self, first_ns: u64, last_ns: u64) -> Result<Messages, Error> {
        let piece = |of: &Self, renamed| {
            let span = of.span(first_ns, last_ns);
            let within = |(at, end)| of.index.iter().filter(|c| at <= c.at && c.end <= end).count();
            let count = span.map_or(of.messages, |span| within(span) as u64);
            let count = of.is_indexed.then_some(count);
            let path = of.files.first().unwrap_or(&of.path).clone();
            Piece { path, known: of.channels.clone(), renamed, span, count }
        };
        let next = match self.parts.is_empty() {
            true => VecDeque::from([piece(self, None)]),
            false => {
                let parts = self.parts.iter().filter(|part| {
                    // What is damaged may be anywhere.
                    let of = &part.recording;
                    of.index.is_empty() || (of.start_ns <= last_ns && of.end_ns >= first_ns)
                });
                parts.map(|part| piece(&part.recording, Some(part.channels.clone()))).collect()
            }
        };
        let (current, limits) = (None, self.limits);
        let damage = Damage { differs: self.damage.differs.clone(), ..self.gaps.clone() };
        let mut all = Messages { next, current, limits, first_ns, last_ns, damage, failed: false };
        all.open_next()?;
        Ok(all)
    }

    /// Where in the file those chunks are that have messages of that time.
    fn span(&self, first_ns: u64, last_ns: u64) -> Option<(u64, u64)> {
        if (first_ns, last_ns) == (0, u64::MAX) || self.index.is_empty() {
            return None;
        }
        let has = |chunk: &&Chunk| chunk.first_ns <= last_ns && chunk.last_ns >= first_ns;
        let first = self.index.iter().find(has).map_or(0, |chunk| chunk.at);
        Some((first, self.index.iter().rev().find(has).map_or(0, |chunk| chunk.end)))
    }

    /// How long it lasts, ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Messages that the recorder lost.
    pub fn lost(&self) -> u64 {
        self.losses.values().sum()
    }

    /// Why it cannot be read; bags of ROS 2 used to be data bases.
    fn no_recording(&self, error: Error) -> Error {
        let mut begin = [0; 16];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut begin));
        if read.is_ok() && &begin == b"SQLite format 3\0" {
            return self.corrupt(format!("it is a bag of ROS 2 in SQLite: {CONVERT}"));
        }
        error
    }

    fn corrupt(&self, why: impl Into<String>) -> Error {
        Error::Corrupt { path: self.path.clone(), why: why.into() }
    }

    fn indexed(&mut self, file: &mut File, summary: &Summary) -> Result<(), String> {
        let Some(stats) = &summary.stats else { return Ok(()) };
        self.messages = stats.message_count;
        (self.start_ns, self.end_ns) = (stats.message_start_time, stats.message_end_time);
        self.chunks = stats.chunk_count.into();
        let most = self.file_bytes.min(self.limits.chunk_bytes_max);
        let header = record_at(file, op::HEADER, mcap::MAGIC.len() as u64, most);
        self.header(header.as_deref())?;
        let (mut about, mut losses) = (None, None);
        for index in &summary.metadata_indexes {
            if [ABOUT, LOSSES].contains(&index.name.as_str()) {
                let body = record_at(file, op::METADATA, index.offset, most);
                let parsed = body.as_deref().map(|body| mcap::parse_record(op::METADATA, body));
                match parsed {
                    Some(Ok(Record::Metadata(metadata))) if metadata.name == ABOUT => {
                        about = Some(metadata);
                    }
                    Some(Ok(Record::Metadata(metadata))) => losses = Some(metadata),
                    _ => return Err("its index names metadata that is not there".into()),
                }
            }
        }
        let mut sources = Vec::new();
        for (id, channel) in &summary.channels {
            let messages = stats.channel_message_counts.get(id).copied().unwrap_or(0);
            let source = Source::of(channel)?;
            sources.push(RecordedSource { channel: *id, source, messages });
        }
        self.sources = sources;
        self.index = chunks(summary, stats.chunk_count, self.file_bytes);
        about.into_iter().chain(losses).for_each(|metadata| self.metadata(metadata));
        Ok(())
    }

    fn header(&mut self, body: Option<&[u8]>) -> Result<(), String> {
        match body.map(|body| mcap::parse_record(op::HEADER, body)) {
            Some(Ok(Record::Header(header))) => {
                (self.profile, self.library) = (header.profile, header.library);
                Ok(())
            }
            _ => Err("its header is missing".into()),
        }
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

    /// Reads all of a file that has no index, or one that is not to be believed. `check`: also its
    /// checksum.
    fn scan(&mut self, file: &mut File, ending: &Ending, check: bool) -> Result<(), Error> {
        let mut scanner =
            Scanner::open(&self.path, self.limits).map_err(|e| self.no_recording(e))?;
        let mut known = Channels::known(self.channels.clone());
        let listed = std::mem::take(&mut self.channels);
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        let mut times: Option<(u64, u64)> = None;
        let mut records = 0;
        (self.messages, self.sources) = (0, Vec::new());
        while let Some(item) = scanner.next()? {
            records += 1;
            let (opcode, body) = match item {
                Item::Message(header, _) => {
                    *counts.entry(header.channel_id).or_default() += 1;
                    let (first, last) = times.unwrap_or((header.log_time, header.log_time));
                    times = Some((first.min(header.log_time), last.max(header.log_time)));
                    continue;
                }
                Item::Other(opcode, body) => (opcode, body),
            };
            match mcap::parse_record(opcode, &body) {
                Ok(Record::Header(h)) => (self.profile, self.library) = (h.profile, h.library),
                Ok(Record::Metadata(metadata)) => self.metadata(metadata),
                Ok(record) => known.take(&record),
                Err(e) => scanner.damage.add_record(body.len(), e),
            }
        }
        if records == 0 {
            return Err(self.corrupt("its header is missing"));
        }
        (self.start_ns, self.end_ns) = times.unwrap_or_default();
        self.chunks = scanner.chunks;
        if !scanner.damage.is_some() {
            let differs = match &ending.index {
                Some(index) if ending.wrong.is_none() => self.difference(file, index, &counts),
                _ => None,
            };
            let differs = differs.or_else(|| match scanner.ended {
                Some((at, sum)) if check && sum != 0 => {
                    (checksum(file, 0, at) != Some(sum)).then(|| {
                        "the checksum of its data is wrong, though all chunks are right".into()
                    })
                }
                None if self.finished => Some("nothing marks the end of its data".into()),
                _ => None,
            });
            differs.into_iter().for_each(|why| scanner.damage.add_difference(why));
        }
        for (id, channel) in &known.channels {
            let of_index = listed.get(id).is_some_and(|of| Arc::ptr_eq(of, channel));
            if of_index && !ending.is_proved && !counts.contains_key(id) {
                // There is none, perhaps.
                continue;
            }
            let messages = counts.remove(id).unwrap_or(0);
            match Source::of(channel) {
                Ok(source) => {
                    self.messages += messages;
                    self.sources.push(RecordedSource { channel: *id, source, messages });
                }
                Err(why) => {
                    scanner.damage.add_record(0, why);
                    scanner.damage.orphans += messages;
                }
            }
        }
        self.finished |= scanner.ended.is_some();
        self.damage.merge(&scanner.damage);
        self.damage.orphans += counts.values().sum::<u64>();
        self.channels = known.channels;
        Ok(())
    }

    /// Where the index of a file disagrees with what was read of it, so many messages by channel.
    fn difference(
        &self,
        file: &mut File,
        index: &Summary,
        counts: &BTreeMap<u16, u64>,
    ) -> Option<String> {
        let chunks = index.chunk_indexes.iter();
        let chunks = chunks.map(|c| (op::CHUNK, c.chunk_start_offset, c.chunk_length));
        let others = index.metadata_indexes.iter().map(|m| (op::METADATA, m.offset, m.length));
        let attached = index.attachment_indexes.iter();
        let attached = attached.map(|a| (op::ATTACHMENT, a.offset, a.length));
        for (opcode, at, bytes) in chunks.chain(others).chain(attached) {
            if head_at(file, at) != Some((opcode, bytes.saturating_sub(HEAD_BYTES))) {
                return Some(format!("its index names a record at byte {at} that is not there"));
            }
        }
        let stats = index.stats.as_ref()?;
        let messages = counts.values().sum::<u64>();
        let by_channel = &stats.channel_message_counts;
        let wrong = |(id, count): (&u16, &u64)| counts.get(id).copied().unwrap_or(0) != *count;
        if stats.message_count != messages || by_channel.iter().any(wrong) {
            let said = stats.message_count;
            return Some(format!("its index counts {said} messages, and {messages} are there"));
        }
        let times = (stats.message_start_time, stats.message_end_time);
        let listed: BTreeSet<_> =
            index.chunk_indexes.iter().map(|chunk| chunk.chunk_start_offset).collect();
        if u64::from(stats.chunk_count) != self.chunks
            || (!listed.is_empty() && listed.len() as u64 != self.chunks)
            || (messages > 0 && times != (self.start_ns, self.end_ns))
        {
            return Some("its index has other chunks or times than its data".into());
        }
        None
    }
}

impl Ending {
    fn of(file: &mut File, file_bytes: u64) -> Self {
        let mut end = [0; FOOTER_BYTES + mcap::MAGIC.len()];
        let at = file_bytes.saturating_sub(end.len() as u64);
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut end));
        let (footer, magic) = end.split_at(FOOTER_BYTES);
        let head = Some((op::FOOTER, (FOOTER_BYTES as u64) - HEAD_BYTES));
        let ends = [head_of(footer) == head, magic == mcap::MAGIC];
        if read.is_err() || ends == [false; 2] {
            // It was cut off.
            return Self::default();
        }
        let index = summary(file, file_bytes);
        let begin = u64::from_le_bytes(footer[9..17].try_into().unwrap_or_default());
        let sum = u32::from_le_bytes(footer[FOOTER_CRC_AT..].try_into().unwrap_or_default());
        let mut proves = || checksum(file, begin, at + FOOTER_CRC_AT as u64) == Some(sum);
        let wrong = match () {
            () if ends != [true; 2] => Some("its last bytes are wrong"),
            // It has no index.
            () if begin == 0 => None,
            () if sum != 0 && !proves() => Some("the checksum of its index is wrong"),
            () => None,
        };
        Self { index, is_proved: wrong.is_none() && sum != 0, wrong }
    }
}

impl Messages {
    /// What has been left out so far.
    pub fn damage(&self) -> Damage {
        let mut damage = self.damage.clone();
        if let Some((scanner, ..)) = &self.current {
            damage.merge(&scanner.damage);
        }
        damage
    }

    /// Begins with the next file; false if there is none.
    fn open_next(&mut self) -> Result<bool, Error> {
        self.damage = self.damage();
        self.current = None;
        while let Some(piece) = self.next.pop_front() {
            let mut scanner = match Scanner::open(&piece.path, self.limits) {
                // Its recorder has let it go since, perhaps.
                Err(Error::Io { source, .. })
                    if piece.renamed.is_some() && source.kind() == ErrorKind::NotFound =>
                {
                    self.damage.add_record(0, format!("{} is missing", piece.path.display()));
                    continue;
                }
                opened => opened?,
            };
            if let Some((at, end)) = piece.span {
                scanner.only(at, end)?;
            }
            let channels = Channels::known(piece.known.clone());
            self.current = Some((scanner, channels, piece, 0));
            return Ok(true);
        }
        Ok(false)
    }

    fn read(&mut self) -> Result<Option<Message<'static>>, Error> {
        while let Some((scanner, channels, piece, messages)) = &mut self.current {
            let Some(item) = scanner.next()? else {
                let found = if piece.span.is_some() { scanner.chunks } else { *messages };
                if piece.count.is_some_and(|count| count != found) && !scanner.damage.is_some() {
                    scanner.damage.add_difference("its index counts other messages than are there");
                }
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            match item {
                Item::Message(header, data) => {
                    *messages += 1;
                    let id = &header.channel_id;
                    let channel = match &piece.renamed {
                        Some(renamed) => renamed.get(id),
                        None => channels.channels.get(id),
                    };
                    let Some(channel) = channel else {
                        // Its publisher came after we had opened the row.
                        let is_new =
                            channels.channels.contains_key(id) && !piece.known.contains_key(id);
                        scanner.damage.orphans += u64::from(!is_new);
                        continue;
                    };
                    if !(self.first_ns..=self.last_ns).contains(&header.log_time) {
                        continue;
                    }
                    return Ok(Some(Message {
                        channel: channel.clone(),
                        sequence: header.sequence,
                        log_time: header.log_time,
                        publish_time: header.publish_time,
                        data: data.into(),
                    }));
                }
                Item::Other(opcode, body) => match mcap::parse_record(opcode, &body) {
                    Ok(record) => channels.take(&record),
                    Err(e) => scanner.damage.add_record(body.len(), e),
                },
            }
        }
        Ok(None)
    }
}

impl Iterator for Messages {
    type Item = Result<Message<'static>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = if self.failed { Ok(None) } else { self.read() };
        self.failed = read.is_err();
        read.transpose()
    }
}

/// Where the chunks are, in their order, if the index says so of all.
fn chunks(summary: &Summary, count: u32, file_bytes: u64) -> Vec<Chunk> {
    let mut all = Vec::new();
    for of in &summary.chunk_indexes {
        let end = of.chunk_start_offset.checked_add(of.chunk_length);
        let Some(end) = end.filter(|end| *end <= file_bytes) else { return Vec::new() };
        let (first_ns, last_ns) = (of.message_start_time, of.message_end_time);
        all.push(Chunk { at: of.chunk_start_offset, end, first_ns, last_ns });
    }
    all.sort_by_key(|chunk| chunk.at);
    if all.len() == count as usize { all } else { Vec::new() }
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

/// The body of the record at `offset`, if it is such a one of at most so many bytes.
pub(crate) fn record_at(file: &mut File, opcode: u8, offset: u64, most: u64) -> Option<Vec<u8>> {
    let (of, len) = head_at(file, offset)?;
    if of != opcode || len > most {
        return None;
    }
    let mut body = vec![0; len as usize];
    file.read_exact(&mut body).ok()?;
    Some(body)
}

/// Opcode and length of what is at `offset`.
fn head_at(file: &mut File, offset: u64) -> Option<(u8, u64)> {
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut head = [0; HEAD_BYTES as usize];
    file.read_exact(&mut head).ok()?;
    head_of(&head)
}

fn head_of(record: &[u8]) -> Option<(u8, u64)> {
    let (opcode, length) = record.get(..HEAD_BYTES as usize)?.split_first()?;
    Some((*opcode, u64::from_le_bytes(length.try_into().ok()?)))
}
