//! Files being written: whole chunks only, so that a kill costs at most the last one.
//!
//! A chunk is put together in memory and handed to the system in one piece; what was handed over
//! survives the death of this process. A file that nobody finished lacks the index at its end.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::about::{ABOUT, EPOCH, FIRST, LOSSES, ROW, RUN};
use crate::channel::{Form, Source};
use crate::options::{Profile, RecordOptions};
use crate::scan::{Item, Limits, Scanner};
use crate::sink::Sink;
use crate::writing::{is_being_written, lock, taken};
use crate::{Error, parts};
use mcap::records::{MessageHeader, Metadata};

/// A message's place and times; ns since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) seq: u64,
    pub(crate) log_ns: u64,
    pub(crate) publish_ns: u64,
}

/// A channel of the file; the same for the same source and form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) topic: usize,
    /// Ordinal among the topic's publishers.
    pub(crate) source: usize,
    /// What [`Source::message`] says.
    pub(crate) form: usize,
}

/// Most files that are in the way of one name.
const FILES_MAX: u64 = 1_000_000;
/// One file, or a row of them when it is to be split.
#[derive(Debug)]
pub(crate) struct Files {
    path: PathBuf,
    options: RecordOptions,
    about: BTreeMap<String, String>,
    current: File,
    /// Its number, if it is one of several.
    number: u64,
    /// Files before this one, and their bytes.
    finished: u64,
    finished_bytes: u64,
    /// Those that are still there, of earlier runs as well, the oldest in front, and their bytes.
    kept: VecDeque<(PathBuf, u64)>,
    /// Messages given to all of them.
    messages: u64,
    /// How far they are known to be on disk.
    whole: Whole,
    /// Losses when this file began, and by now: each file says its own.
    losses_before: BTreeMap<String, u64>,
    losses: BTreeMap<String, u64>,
    /// What a person may want to know.
    pub(crate) notes: Vec<String>,
}

pub(crate) struct File {
    pub(crate) path: PathBuf,
    writer: mcap::Writer<Sink>,
    bytes: Rc<Cell<u64>>,
    /// By channel its number, and how many messages it has.
    channels: HashMap<Key, (u16, u64)>,
    began_ns: u64,
    /// The same open file, to look whether it still has a name.
    handle: fs::File,
}

/// How many messages are in all files up to a place in one of them.
#[derive(Clone, Debug)]
struct Whole {
    path: PathBuf,
    at: u64,
    messages: u64,
}

impl Whole {
    /// Messages that are in the files, after a failure as well: what is behind is read.
    fn count(&self) -> u64 {
        let Ok(mut scanner) = Scanner::open(&self.path, Limits::default()) else {
            return self.messages;
        };
        scanner.go_on_at(self.at);
        let items = std::iter::from_fn(|| scanner.next().ok().flatten());
        self.messages + items.filter(|item| matches!(item, Item::Message(..))).count() as u64
    }
}

/// A file that somebody has removed.
pub(crate) struct Gone {
    pub(crate) path: PathBuf,
    /// By channel.
    pub(crate) messages: Vec<(Key, u64)>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File").field("path", &self.path).finish_non_exhaustive()
    }
}

impl File {
    pub(crate) fn create(
        path: &Path,
        options: &RecordOptions,
        about: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let mut how = fs::OpenOptions::new();
        how.write(true);
        if options.overwrite {
            how.create(true).truncate(false);
        } else {
            how.create_new(true);
        }
        let file = how.open(path).map_err(|e| Error::io("create", path, e))?;
        if !lock(&file) {
            return Err(taken(path));
        }
        let begun = Self::begin(file, path, options, about);
        let is_empty = || fs::symlink_metadata(path).is_ok_and(|of| of.is_file() && of.len() == 0);
        if begun.is_err() && (!options.overwrite || is_empty()) {
            // We made it, or have emptied it: on a full disk each try would leave one.
            let _ = fs::remove_file(path);
        }
        begun
    }

    /// Empties a file that is locked, and writes its beginning.
    fn begin(
        file: fs::File,
        path: &Path,
        options: &RecordOptions,
        about: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let wrong = |e| Error::io("create", path, e);
        // Not before: until then another recorder may be writing it. Devices have no length.
        if file.metadata().map_err(wrong)?.len() > 0 {
            file.set_len(0).map_err(wrong)?;
        }
        let handle = file.try_clone().map_err(wrong)?;
        let bytes = Rc::new(Cell::new(0));
        let sink = Sink::new(file, bytes.clone(), options.compression, options.ahead_bytes());
        let wrong = |e| Error::writing(path, e);
        let mut writer = options
            .compression
            .into_options()
            .chunk_size(Some(options.chunk_bytes_now()))
            .profile(match options.profile {
                Profile::Outlive => "",
                Profile::Ros2 => "ros2",
            })
            .library(concat!("outlive ", env!("CARGO_PKG_VERSION")))
            .create(sink)
            .map_err(wrong)?;
        let metadata = Metadata { name: ABOUT.into(), metadata: about.clone() };
        writer.write_metadata(&metadata).and_then(|()| writer.flush()).map_err(wrong)?;
        let (path, channels) = (path.to_owned(), HashMap::new());
        let began_ns = outlive::now_ns();
        Ok(Self { path, writer, bytes, channels, began_ns, handle })
    }

    pub(crate) fn write(
        &mut self,
        key: Key,
        source: &Source,
        stamp: Stamp,
        data: &[u8],
    ) -> mcap::McapResult<()> {
        let (channel_id, messages) = match self.channels.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let Form { schema, message_encoding } = source.form(key.form);
                let schema = match schema {
                    None => 0,
                    Some((name, encoding, data)) => self.writer.add_schema(name, encoding, data)?,
                };
                let (topic, about) = (&source.topic, source.metadata());
                let id = self.writer.add_channel(schema, topic, message_encoding, &about)?;
                vacant.insert((id, 0))
            }
        };
        *messages += 1;
        let header = MessageHeader {
            channel_id: *channel_id,
            // MCAP has 32 bits for it.
            sequence: stamp.seq as u32,
            log_time: stamp.log_ns,
            publish_time: stamp.publish_ns,
        };
        self.writer.write_to_known_channel(&header, data)
    }

    /// All that it was given is on its disk, where that is `messages` in all files.
    fn whole(&self, messages: u64) -> Whole {
        Whole { path: self.path.clone(), at: self.bytes.get(), messages }
    }

    /// Hands everything over, and the losses so far if there are new ones.
    pub(crate) fn flush(&mut self, losses: Option<&BTreeMap<String, u64>>) -> mcap::McapResult<()> {
        if let Some(losses) = losses {
            let text = losses.iter().map(|(by, count)| (by.clone(), count.to_string()));
            let metadata = Metadata { name: LOSSES.into(), metadata: text.collect() };
            self.writer.write_metadata(&metadata)?;
        }
        self.writer.flush()
    }

    /// Writes the index.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.writer.finish().map_err(|e| Error::writing(&self.path, e))?;
        let mut out = self.writer.into_inner();
        out.flush().map_err(|e| Error::io("write", &self.path, e))?;
        Ok(self.bytes.get())
    }
}

impl Files {
    pub(crate) fn create(
        path: &Path,
        options: &RecordOptions,
        mut about: BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let there = if options.splits() { parts::written(path) } else { Vec::new() };
        // Any of them: one that replaces the files of an earlier run begins with the first.
        if let Some(file) = there.iter().find(|file| is_being_written(&file.path)) {
            return Err(taken(&file.path));
        }
        if options.splits() {
            // No two begin in one instant in one process.
            let row = format!("{}.{}", std::process::id(), outlive::now_ns());
            let epoch = about.get(EPOCH).map_or("", String::as_str);
            about.insert(ROW.into(), format!("{row}.{epoch}"));
            let before = there.iter().map(|file| file.run).max().unwrap_or(0);
            about.insert(RUN.into(), before.saturating_add(1).to_string());
        }
        let old = if options.overwrite { Vec::new() } else { there };
        let next = old.last().map_or(0, |file| file.number + 1);
        let mut kept = old.into_iter().map(|file| (file.path, file.bytes)).collect();
        let mut notes = Vec::new();
        // First of all: the disk may have no room for the beginning of a file.
        let_go(path, options, &mut kept, &mut notes);
        let (number, current) = match options.splits() {
            true => free(path, options, &about, next)?,
            false => (0, File::create(path, options, &about)?),
        };
        if options.splits() {
            about.insert(FIRST.into(), number.to_string());
        }
        let (path, options) = (path.to_owned(), options.clone());
        let whole = current.whole(0);
        Ok(Self {
            path,
            options,
            about,
            current,
            messages: 0,
            whole,
            number,
            finished: 0,
            finished_bytes: 0,
            kept,
            losses_before: BTreeMap::new(),
            losses: BTreeMap::new(),
            notes,
        })
    }

    /// Appends a message.
    pub(crate) fn write(
        &mut self,
        key: Key,
        source: &Source,
        stamp: Stamp,
        data: &[u8],
    ) -> Result<(), Error> {
        if self.is_full() {
            self.finished += 1;
            self.let_go();
            let (number, next) =
                free(&self.path, &self.options, &self.about, self.number.saturating_add(1))?;
            self.number = number;
            let before = std::mem::replace(&mut self.current, next);
            let path = before.path.clone();
            let bytes = before.finish()?;
            self.finished_bytes += bytes;
            self.whole = self.current.whole(self.messages);
            self.kept.push_back((path, bytes));
            self.losses_before.clone_from(&self.losses);
            self.let_go();
        }
        let current = &mut self.current;
        let written = current.write(key, source, stamp, data);
        written.map_err(|e| Error::writing(&current.path, e))?;
        self.messages += 1;
        Ok(())
    }

    fn is_full(&self) -> bool {
        let (now, options) = (outlive::now_ns(), &self.options);
        let long = |d: Duration| u128::from(now - self.current.began_ns) >= d.as_nanos();
        let large = |bytes| self.current.bytes.get() >= bytes;
        !self.current.channels.is_empty()
            && (options.split_bytes.is_some_and(large) || options.split_after.is_some_and(long))
    }

    fn let_go(&mut self) {
        let_go(&self.path, &self.options, &mut self.kept, &mut self.notes);
    }

    /// What the next file says of the time of day; the name of the row stays.
    pub(crate) fn set_epoch(&mut self, epoch_ns: u64) {
        self.about.insert(EPOCH.into(), epoch_ns.to_string());
    }

    /// Begins the current file anew if somebody has removed it; how many messages of which channel
    /// were in it then.
    pub(crate) fn begin_anew_if_gone(&mut self) -> Result<Option<Gone>, Error> {
        let gone = self.current.handle.metadata().is_ok_and(|m| m.nlink() == 0);
        if !gone {
            return Ok(None);
        }
        let path = self.current.path.clone();
        let next = File::create(&path, &self.options, &self.about)?;
        let before = std::mem::replace(&mut self.current, next);
        let messages = before.channels.iter().map(|(key, (_, messages))| (*key, *messages));
        let messages: Vec<_> = messages.collect();
        self.messages -= messages.iter().map(|(_, messages)| messages).sum::<u64>();
        self.whole = self.current.whole(self.messages);
        Ok(Some(Gone { path, messages }))
    }

    /// Hands over what was written so far, so that it survives our death. First of all makes room:
    /// one file may be written for long.
    pub(crate) fn flush(&mut self, losses: Option<&BTreeMap<String, u64>>) -> Result<(), Error> {
        self.let_go();
        let own = losses.map(|losses| {
            self.losses.clone_from(losses);
            let before = |by: &String| self.losses_before.get(by).copied().unwrap_or(0);
            let own = losses.iter().map(|(by, count)| (by.clone(), count - before(by)));
            own.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>()
        });
        let current = &mut self.current;
        let own = own.filter(|own| !own.is_empty());
        current.flush(own.as_ref()).map_err(|e| Error::writing(&current.path, e))?;
        self.whole = current.whole(self.messages);
        Ok(())
    }

    /// Bytes handed over, over all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.finished_bytes + self.current.bytes.get()
    }

    /// Finishes the last file. Returns the bytes of all, and how many they are; of a failure also
    /// the messages that are in them.
    pub(crate) fn finish(self) -> Result<(u64, u64), (Error, u64)> {
        let Self { current, whole, finished, finished_bytes, .. } = self;
        let bytes = current.finish().map_err(|e| (e, whole.count()))?;
        Ok((finished_bytes + bytes, finished + 1))
    }

    /// Leaves them as they are after a failure. Returns the messages that are in them.
    pub(crate) fn leave(self) -> u64 {
        let Self { current, whole, .. } = self;
        // It may have something to write yet.
        drop(current);
        whole.count()
    }
}

/// Removes the oldest files where fewer are to be kept, or more room is to be free. One that cannot
/// be removed stays and is named: to record goes before.
fn let_go(
    path: &Path,
    options: &RecordOptions,
    kept: &mut VecDeque<(PathBuf, u64)>,
    notes: &mut Vec<String>,
) {
    loop {
        // With the one that is being written, or is about to be.
        let files = kept.len() as u64 + 1;
        let bytes = kept.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let room = fs_free(path.parent());
        let much = options.keep_files.is_some_and(|most| files > most)
            || options.keep_bytes.is_some_and(|most| bytes > most)
            || options.free_bytes.zip(room).is_some_and(|(least, room)| room < least);
        if !much {
            return;
        }
        let Some((path, _)) = kept.pop_front() else { return };
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                notes.push(Error::io("remove", &path, e).to_string());
            }
            _ => {}
        }
    }
}

/// Bytes that are free on the disk of a directory.
fn fs_free(dir: Option<&Path>) -> Option<u64> {
    let dir = dir.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Begins the first of the numbered files from `number` on that is not there yet, unless existing
/// ones are to be replaced.
pub(crate) fn free(
    path: &Path,
    options: &RecordOptions,
    about: &BTreeMap<String, String>,
    number: u64,
) -> Result<(u64, File), Error> {
    let last = number.saturating_add(FILES_MAX);
    let begins = about.contains_key(ROW) && !about.contains_key(FIRST);
    for number in number..last {
        let mut about = Cow::Borrowed(about);
        if begins {
            about.to_mut().insert(FIRST.into(), number.to_string());
        }
        match File::create(&numbered(path, number), options, &about) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (number, file)),
        }
    }
    let path = numbered(path, last);
    Err(Error::io("create", &path, io::ErrorKind::AlreadyExists.into()))
}

/// `run.mcap` as `run_000.mcap`.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    path.with_file_name(format!("{stem}_{number:03}{ending}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_numbered_before_the_ending() {
        assert_eq!(numbered(Path::new("/a/run.mcap"), 7), Path::new("/a/run_007.mcap"));
        assert_eq!(numbered(Path::new("run"), 1234), Path::new("run_1234"));
    }

    /// Within one long file the disk filled up while older ones could go.
    #[test]
    fn older_files_go_while_one_is_being_written() {
        let dir = testkit::TempDomain::new("file-room").unwrap();
        fs::create_dir_all(dir.path()).unwrap();
        let path = dir.path().join("run.mcap");
        let split_after = Some(Duration::from_secs(3600));
        let options = RecordOptions { split_after, ..RecordOptions::default() };
        let begin = || Files::create(&path, &options, BTreeMap::new()).unwrap();
        assert!(begin().finish().is_ok());
        let mut files = begin();
        files.flush(None).unwrap();
        let there = || [0, 1].map(|number| numbered(&path, number).exists());
        assert_eq!(there(), [true, true], "there is room");
        // Others fill the disk.
        files.options.free_bytes = Some(u64::MAX);
        files.flush(None).unwrap();
        assert_eq!(there(), [false, true]);
    }
}
