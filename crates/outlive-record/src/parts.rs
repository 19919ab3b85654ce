//! Files that are one recording: those of our recorder, which say so, and those of a bag of ROS 2.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcap::records::{Record, op};

use crate::channel::Source;
use crate::file::{ABOUT, ROW};
use crate::recording::{RecordedSource, record_at};
use crate::scan::{HEAD_BYTES, Limits};
use crate::{Error, Recording};

/// What to do with a bag of ROS 2 that is not read as it is.
pub(crate) const ANEW: &str = "write it anew as MCAP, with 'ros2 bag convert', or without ROS with \
    'rosbags-convert --src BAG --dst NEW --dst-storage mcap' (pip install rosbags)";

/// One of several files.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) recording: Recording,
    /// Its channels, by their numbers in the file, with those of the whole.
    pub(crate) channels: Arc<HashMap<u16, Arc<mcap::Channel<'static>>>>,
}

/// Opens `path`, with all the files that belong to it.
pub(crate) fn open(path: &Path, limits: Limits, check: bool) -> Result<Recording, Error> {
    let one = |path: &Path| Recording::open_part(path, limits, check);
    if path.is_dir() {
        let files = files_in(path)?;
        if let [only] = files.as_slice() {
            return one(only);
        }
        let count = files.len();
        let several =
            || Error::Usage(format!("{} has {count} MCAP files: name one", path.display()));
        let row = numbered(files).ok_or_else(several)?;
        let parts = row.iter().map(|(_, path)| one(path)).collect::<Result<Vec<_>, _>>()?;
        let first = parts.first().and_then(row_of);
        let alike = first.is_some() && parts.iter().all(|part| row_of(part) == first);
        if !alike && !path.join("metadata.yaml").is_file() {
            return Err(several());
        }
        return join(path, numbers(row, parts), limits);
    }
    let (stem, given) = match path.exists() {
        true => {
            let given = one(path)?;
            let Some(((stem, _), _)) = number_of(path).zip(row_of(&given)) else {
                return Ok(given);
            };
            (stem, Some(given))
        }
        // What the recorder was given, of which it made the names of files: its last run.
        false => (stem_of(path), None),
    };
    let row = given.as_ref().and_then(row_of).map(str::to_owned);
    let mut parts = Vec::new();
    for (number, file) in beside(path, &stem).into_iter().rev() {
        let part = match &given {
            Some(given) if file.file_name() == path.file_name() => Ok(given.clone()),
            _ => one(&file),
        };
        // Others may have names like these.
        let Ok(part) = part else { continue };
        let first = parts.first().and_then(|(_, part)| row_of(part));
        let want = row.as_deref().or(first);
        if row_of(&part).is_some() && (want.is_none() || want == row_of(&part)) {
            parts.push((number, part));
        }
    }
    parts.reverse();
    match parts.is_empty() {
        // It says what is wrong.
        true => one(path),
        false => join(path, parts, limits),
    }
}

/// What our recorder has written under the name `path` in several files, by all of its runs: their
/// numbers and bytes, in order.
pub(crate) fn written(path: &Path) -> Vec<(u64, PathBuf, u64)> {
    let sized = |(number, file): (u64, PathBuf)| {
        let bytes = file.metadata().ok().filter(|of| of.is_file())?.len();
        (number < u64::MAX && is_part(&file)).then_some((number, file, bytes))
    };
    beside(path, &stem_of(path)).into_iter().filter_map(sized).collect()
}

/// Whether its beginning says that it is one of several.
fn is_part(path: &Path) -> bool {
    // What we write there is small.
    const BYTES_MAX: u64 = 1 << 20;
    let second = File::open(path).ok().and_then(|mut file| {
        let at = mcap::MAGIC.len() as u64;
        let header = record_at(&mut file, at, BYTES_MAX)?;
        record_at(&mut file, at + HEAD_BYTES + header.len() as u64, BYTES_MAX)
    });
    match second.as_deref().map(|body| mcap::parse_record(op::METADATA, body)) {
        Some(Ok(Record::Metadata(of))) => of.name == ABOUT && of.metadata.contains_key(ROW),
        _ => false,
    }
}

fn stem_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files beside `path` that have its ending and are called `stem` and a number, in order.
fn beside(path: &Path, stem: &str) -> Vec<(u64, PathBuf)> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let numbered = |file: PathBuf| {
        let (of, number) = number_of(&file).filter(|_| file.extension() == path.extension())?;
        (of == stem).then_some((number, file))
    };
    let mut files: Vec<_> = entries.filter_map(|entry| numbered(entry.path())).collect();
    files.sort();
    files
}

fn row_of(part: &Recording) -> Option<&str> {
    part.about.get(ROW).map(String::as_str)
}

/// `run_003.mcap`: `run` and 3.
fn number_of(path: &Path) -> Option<(String, u64)> {
    let stem = path.file_stem()?.to_str()?;
    let (name, number) = stem.rsplit_once('_')?;
    Some((name.into(), number.parse().ok()?))
}

type Row = Vec<((String, u64), PathBuf)>;

/// In order, if all have the same name but for their number.
fn numbered(files: Vec<PathBuf>) -> Option<Row> {
    let named = files.into_iter().map(|file| Some((number_of(&file)?, file)));
    let mut row = named.collect::<Option<Row>>()?;
    row.sort();
    let name = row.first()?.0.0.clone();
    row.iter().all(|((of, _), _)| *of == name).then_some(row)
}

fn numbers(row: Row, parts: Vec<Recording>) -> Vec<(u64, Recording)> {
    row.into_iter().zip(parts).map(|(((_, number), _), part)| (number, part)).collect()
}

/// Those files as one recording, which is called `path`.
fn join(path: &Path, parts: Vec<(u64, Recording)>, limits: Limits) -> Result<Recording, Error> {
    let mut whole = Recording::empty(path, limits);
    whole.finished = true;
    whole.start_ns = u64::MAX;
    let mut next = parts.first().map(|(number, _)| *number);
    for (number, part) in parts {
        while next.is_some_and(|next| next < number) {
            let name = part.path.with_file_name(part_name(&part.path, next.unwrap_or(0)));
            // Our recorder leaves out a number that another file has.
            if !name.exists() {
                whole.damage.add_record(0, format!("{} is missing", name.display()));
            }
            // A number far away is no row of files that have gone.
            next = next.map(|next| if number - next > 1000 { number } else { next + 1 });
        }
        next = number.checked_add(1);
        whole.take(part)?;
    }
    if whole.start_ns == u64::MAX {
        whole.start_ns = 0;
    }
    Ok(whole)
}

fn part_name(like: &Path, number: u64) -> String {
    let name = number_of(like).map_or(String::new(), |(name, _)| name);
    let ending = like.extension().unwrap_or_default().to_string_lossy();
    format!("{name}_{number:03}.{ending}")
}

impl Recording {
    /// Adds what follows.
    fn take(&mut self, part: Recording) -> Result<(), Error> {
        if self.parts.is_empty() {
            self.profile.clone_from(&part.profile);
            self.library.clone_from(&part.library);
            self.about.clone_from(&part.about);
        }
        self.file_bytes += part.file_bytes;
        self.finished &= part.finished;
        self.messages += part.messages;
        self.chunks += part.chunks;
        if part.messages > 0 {
            self.start_ns = self.start_ns.min(part.start_ns);
            self.end_ns = self.end_ns.max(part.end_ns);
        }
        for (by, count) in &part.losses {
            *self.losses.entry(by.clone()).or_default() += count;
        }
        let mut damage = part.damage.clone();
        damage.first = damage.first.map(|first| format!("{}: {first}", part.path.display()));
        self.damage.merge(&damage);
        let mut channels = HashMap::new();
        for recorded in &part.sources {
            let at = self.sources.iter().position(|s| same(&s.source, &recorded.source));
            let at = match at {
                Some(at) => at,
                None => {
                    let why = || format!("{}: more than 65536 publishers", self.path.display());
                    let channel =
                        u16::try_from(self.sources.len()).map_err(|_| Error::Usage(why()))?;
                    let source = recorded.source.clone();
                    self.sources.push(RecordedSource { channel, source, messages: 0 });
                    self.sources.len() - 1
                }
            };
            let of = &mut self.sources[at];
            of.messages += recorded.messages;
            if let Some(channel) = part.channels.get(&recorded.channel) {
                let channel = mcap::Channel { id: of.channel, ..(**channel).clone() };
                channels.insert(recorded.channel, Arc::new(channel));
            }
        }
        self.files.push(part.path.clone());
        self.parts.push(Part { recording: part, channels: Arc::new(channels) });
        Ok(())
    }
}

fn same(a: &Source, b: &Source) -> bool {
    (&a.topic, &a.publisher, &a.payload_type) == (&b.topic, &b.publisher, &b.payload_type)
        && (a.depth, &a.attributes, a.ros_name()) == (b.depth, &b.attributes, b.ros_name())
        && a.is_coded_as(b)
}

/// The MCAP files in a directory.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>, Error> {
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
    match (found.is_empty(), other) {
        (true, Some(how)) => {
            let why = format!("it is a bag of ROS 2 {how}: {ANEW}");
            Err(Error::Corrupt { path: dir.into(), why })
        }
        (true, None) => Err(Error::Usage(format!("{} has 0 MCAP files: name one", dir.display()))),
        _ => Ok(found),
    }
}
