//! The last seconds in memory, written into a file when that is asked for.
//!
//! # Theory of operation
//! Messages are copied once and kept by reference. To save takes the references and leaves the
//! writing to a thread of its own, so that the disk holds nobody up; what is overwritten in the
//! ring meanwhile stays in memory until it is written.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::about::EPOCH;
use crate::channel::Source;
use crate::file::{File, Key, Stamp, free};
use crate::{Error, RecordOptions};

/// What a message costs besides its bytes, about.
const ENTRY_BYTES: u64 = 128;

/// A file that was saved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// Where.
    pub path: PathBuf,
    /// Messages in it.
    pub messages: u64,
    /// From the first to the last of them.
    pub duration: Duration,
    /// Its size, bytes.
    pub file_bytes: u64,
}

pub(crate) struct Ring {
    path: PathBuf,
    options: RecordOptions,
    last_ns: u64,
    about: BTreeMap<String, String>,
    sources: HashMap<Key, Arc<Source>>,
    entries: VecDeque<Entry>,
    /// Losses by topic and publisher, and when they were seen.
    losses: VecDeque<(u64, String, u64)>,
    bytes: u64,
    /// The thread that writes a file, or why there is none.
    saving: Option<Result<JoinHandle<Result<Saved, Error>>, Error>>,
    saved_bytes: u64,
    saved_files: u64,
    /// The oldest messages had to go before their time.
    pub(crate) is_short: bool,
}

#[derive(Clone)]
struct Entry {
    key: Key,
    stamp: Stamp,
    /// When it came, ns of CLOCK_MONOTONIC: the time of day may be set.
    at_ns: u64,
    data: Arc<[u8]>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Ring {
    pub(crate) fn new(
        path: &Path,
        options: &RecordOptions,
        last: Duration,
        about: BTreeMap<String, String>,
    ) -> Self {
        // What was saved before stays, whoever saved it.
        let options = RecordOptions { overwrite: false, ..options.clone() };
        Self {
            path: path.into(),
            options,
            last_ns: last.as_nanos().min(1 << 62) as u64,
            about,
            sources: HashMap::new(),
            entries: VecDeque::new(),
            losses: VecDeque::new(),
            bytes: 0,
            saving: None,
            saved_bytes: 0,
            saved_files: 0,
            is_short: false,
        }
    }

    /// What the next file says of the time of day.
    pub(crate) fn set_epoch(&mut self, epoch_ns: u64) {
        self.about.insert(EPOCH.into(), epoch_ns.to_string());
    }

    pub(crate) fn write(
        &mut self,
        (key, source): (Key, &Source),
        stamp: Stamp,
        at_ns: u64,
        data: &[u8],
    ) {
        self.sources.entry(key).or_insert_with(|| Arc::new(source.clone()));
        self.bytes += data.len() as u64 + ENTRY_BYTES;
        self.entries.push_back(Entry { key, stamp, at_ns, data: data.into() });
        self.forget(at_ns);
    }

    pub(crate) fn lost(&mut self, now_ns: u64, by: String, count: u64) {
        self.losses.push_back((now_ns, by, count));
        self.forget(now_ns);
    }

    /// Lets go what is too old at `now_ns`, or too much.
    fn forget(&mut self, now_ns: u64) {
        let oldest = now_ns.saturating_sub(self.last_ns);
        while let Some(entry) = self.entries.front() {
            let in_time = entry.at_ns >= oldest;
            if in_time && self.bytes <= self.options.memory_bytes_max {
                break;
            }
            self.is_short |= in_time;
            self.bytes -= entry.data.len() as u64 + ENTRY_BYTES;
            self.entries.pop_front();
        }
        let oldest = self.entries.front().map_or(oldest, |entry| entry.at_ns);
        while self.losses.front().is_some_and(|(at, ..)| *at < oldest) {
            self.losses.pop_front();
        }
    }

    /// Bytes in memory, without those that are being saved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Files saved, and their bytes.
    pub(crate) fn saved(&self) -> (u64, u64) {
        (self.saved_files, self.saved_bytes)
    }

    /// Begins to write what is there at `now_ns`; false if a file is being written.
    pub(crate) fn save(&mut self, now_ns: u64, why: &str) -> bool {
        if self.saving.is_some() {
            return false;
        }
        self.forget(now_ns);
        let entries: Vec<_> = self.entries.iter().cloned().collect();
        let sources = self.sources.clone();
        let mut losses: BTreeMap<String, u64> = BTreeMap::new();
        for (_, by, count) in &self.losses {
            *losses.entry(by.clone()).or_default() += count;
        }
        let (path, options, mut about) =
            (self.path.clone(), self.options.clone(), self.about.clone());
        about.insert("why".into(), why.into());
        let first = self.saved_files;
        let thread = thread::Builder::new().spawn(move || {
            let (_, file) = free(&path, &options, &about, first)?;
            let path = file.path.clone();
            write(file, &entries, &sources, losses).inspect_err(|_| {
                // All of it is in memory: what is cut off only takes room from the next try.
                let _ = fs::remove_file(&path);
            })
        });
        let failed = |e| Error::io("start a thread to write", &self.path, e);
        self.saving = Some(thread.map_err(failed));
        true
    }

    pub(crate) fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// The file that was asked for, once it is written; `wait`s for it if that is asked for.
    pub(crate) fn take_saved(&mut self, wait: bool) -> Option<Result<Saved, Error>> {
        let known = |of: &mut Result<JoinHandle<_>, _>| {
            wait || of.as_ref().map_or(true, JoinHandle::is_finished)
        };
        self.saving.take_if(known).map(|thread| {
            let saved = thread?.join().unwrap_or_else(|_| {
                Err(Error::io("write", &self.path, std::io::Error::other("its thread panicked")))
            })?;
            self.saved_files += 1;
            self.saved_bytes += saved.file_bytes;
            Ok(saved)
        })
    }
}

fn write(
    mut file: File,
    entries: &[Entry],
    sources: &HashMap<Key, Arc<Source>>,
    losses: BTreeMap<String, u64>,
) -> Result<Saved, Error> {
    let path = file.path.clone();
    let wrong = |e| Error::writing(&path, e);
    for Entry { key, stamp, data, .. } in entries {
        if let Some(source) = sources.get(key) {
            file.write(*key, source, *stamp, data).map_err(wrong)?;
        }
    }
    file.flush((!losses.is_empty()).then_some(&losses)).map_err(wrong)?;
    let file_bytes = file.finish()?;
    let time = |entry: Option<&Entry>| entry.map_or(0, |e| e.at_ns);
    let duration_ns = time(entries.last()).saturating_sub(time(entries.first()));
    let duration = Duration::from_nanos(duration_ns);
    Ok(Saved { path, messages: entries.len() as u64, duration, file_bytes })
}
