//! Files that are one recording: those of our recorder, which say so, and those of a bag of ROS 2.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcap::records::op;

use crate::about::{ABOUT, FIRST, RECOVERS, ROW, RUN};
use crate::channel::Source;
use crate::recording::{CONVERT, Part, RecordedSource, record_at};
use crate::scan::{HEAD_BYTES, Limits};
use crate::writing::is_being_written;
use crate::{Error, Recording};

/// A file may be younger than its time by so much.
const ROUNDED: Duration = Duration::from_secs(2);

/// A file with the name of one of a row.
#[derive(Debug)]
struct Found {
    number: u64,
    path: PathBuf,
    head: Head,
}

/// What the beginning of a file says.
#[derive(Debug)]
enum Head {
    /// It is of this row, which is that run under its name and begins with that number.
    Row { row: String, run: u64, first: Option<u64> },
    /// It is of no row.
    Other,
    /// Nothing that can be relied on: it may be of any row.
    Damaged,
}

/// What has a number of a row.
enum Place {
    Part(Box<Recording>),
    /// It may have been a part.
    LeftOut {
        path: PathBuf,
        bytes: u64,
        why: String,
    },
    /// A file of somebody else.
    Taken,
}

impl Recording {
    /// Reads the index at the file's end, or all of the file if it has none, because nobody
    /// finished it, or none that a checksum proves. All files of a split recording are read as one,
    /// in order; so are those of a directory, such as a bag of ROS 2.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for a file that is not MCAP; [`Error::Io`]; [`Error::Usage`] for a
    /// directory without a file, or with several that do not belong together.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_within(path, Limits::default(), false)
    }

    /// As [`Recording::open`], within limits of your own. With `check` all of the file is read,
    /// even if it has an index, so that [`Recording::damage`] is known.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn open_within(path: &Path, limits: Limits, check: bool) -> Result<Self, Error> {
        open(path, limits, check)
    }
}

/// Opens `path`, with all the files that belong to it.
fn open(path: &Path, limits: Limits, check: bool) -> Result<Recording, Error> {
    let one = |path: &Path| Recording::open_part(path, limits, check);
    // Those that are there, or `alone`, which says what is wrong.
    let whole = |found: &[Found], row: &str, alone: &Path| {
        let places = places(found, row, one)?;
        let any = places.iter().any(|(_, place)| matches!(place, Place::Part(_)));
        if any { join(path, places, limits) } else { one(alone) }
    };
    if path.is_dir() {
        let files = files_in(path)?;
        if let [only] = files.as_slice() {
            return one(only);
        }
        let count = files.len();
        let several =
            || Error::Usage(format!("{} has {count} MCAP files: name one", path.display()));
        let files = numbered(files).ok_or_else(several)?;
        let found: Vec<_> = files.into_iter().map(|(n, path)| Found::of(n, path)).collect();
        if let Some(row) = only_row(&found) {
            return whole(&found, &row, &found[0].path);
        }
        if !path.join("metadata.yaml").is_file() {
            return Err(several());
        }
        let part = |file: &Found| Ok((file.number, Place::Part(one(&file.path)?.into())));
        let parts = found.iter().map(part).collect::<Result<_, Error>>()?;
        return join(path, parts, limits);
    }
    let (stem, row) = match path.exists() {
        true => match (number_of(path), Head::of(path)) {
            (Some((stem, _)), Head::Row { row, .. }) => (stem, Some(row)),
            _ => return one(path),
        },
        // What the recorder was given, of which it made the names of files: its last run.
        false => (stem_of(path), None),
    };
    let files = match beside(path, &stem) {
        Err(e) if row.is_some() => return Ok(one(path)?.among_others(&e)),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Vec::new(),
        files => files?,
    };
    let found: Vec<_> = files.into_iter().map(|(n, path)| Found::of(n, path)).collect();
    match row.or_else(|| last_row(&found)) {
        Some(row) => whole(&found, &row, path),
        None => one(path),
    }
}

/// Opens those of `found` that are of `row`. Others are not read, which may be long and unfinished.
fn places(
    found: &[Found],
    row: &str,
    open: impl Fn(&Path) -> Result<Recording, Error>,
) -> Result<Vec<(u64, Place)>, Error> {
    let is_ours = |file: &Found| file.head.row() == Some(row);
    let mut first = found.iter().position(is_ours).unwrap_or(0);
    let least = match found.get(first).map(|file| &file.head) {
        Some(Head::Row { first: Some(least), .. }) => *least,
        // An older version does not say where its row begins.
        _ => u64::MAX,
    };
    let is_next = |a: &Found, b: &Found| a.number.checked_add(1) == Some(b.number);
    while first > 0
        && let before = &found[first - 1]
        && matches!(before.head, Head::Damaged)
        && before.number >= least
        && is_next(before, &found[first])
    {
        first -= 1;
    }
    let mut end = found.iter().rposition(is_ours).map_or(0, |last| last + 1);
    let began = began(row);
    // The times of files are rounded, on some disks to 2 s.
    let modified = |file: &Found| Some(file.path.metadata().ok()?.modified().ok()? + ROUNDED);
    let is_older = |file: &Found| began.zip(modified(file)).is_some_and(|(began, at)| at < began);
    // A power failure damages what was written last. What is older is of a run before.
    while end > 0
        && let Some(next) = found.get(end)
        && matches!(next.head, Head::Damaged)
        && is_next(&found[end - 1], next)
        && !is_older(next)
    {
        end += 1;
    }
    let (mut places, mut failed) = (Vec::new(), None);
    for file in &found[first..end] {
        let left_out = |why| {
            let bytes = file.path.metadata().map_or(0, |of| of.len());
            Place::LeftOut { path: file.path.clone(), bytes, why }
        };
        let place = match &file.head {
            Head::Row { row: of, .. } if of == row => match open(&file.path) {
                Ok(part) => Place::Part(part.into()),
                // Its recorder has let it go meanwhile, and the older ones before it.
                Err(_) if !file.path.exists() => {
                    places.retain(|(older, _): &(&Found, Place)| older.path.exists());
                    let taken = |(_, place): &&(&Found, Place)| matches!(place, Place::Taken);
                    let leading = places.iter().take_while(taken).count();
                    places.drain(..leading);
                    continue;
                }
                Err(e) => {
                    let why = e.to_string();
                    failed.get_or_insert(e);
                    left_out(why)
                }
            },
            Head::Damaged => {
                let path = file.path.display();
                left_out(format!("{path} cannot be read: its beginning is damaged"))
            }
            _ => Place::Taken,
        };
        places.push((file, place));
    }
    let is_part = |(_, place): &(&Found, Place)| matches!(place, Place::Part(_));
    match failed {
        Some(e) if !places.iter().any(is_part) => Err(e),
        _ => Ok(places.into_iter().map(|(file, place)| (file.number, place)).collect()),
    }
}

/// When the run of a row began, of which its name is made.
fn began(row: &str) -> Option<SystemTime> {
    let mut numbers = row.split('.').skip(1).map(|number| number.parse::<u64>().ok());
    let (since_boot_ns, boot_ns) = (numbers.next()??, numbers.next()??);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(since_boot_ns.checked_add(boot_ns)?))
}

/// The row of all files whose beginning can be read, if that is one.
fn only_row(found: &[Found]) -> Option<String> {
    let mut rows = found.iter().filter(|file| !matches!(file.head, Head::Damaged));
    let row = rows.next()?.head.row()?;
    rows.all(|file| file.head.row() == Some(row)).then(|| row.to_owned())
}

/// That of the last run. One that replaced files of an earlier run may have left its last ones.
fn last_row(found: &[Found]) -> Option<String> {
    let runs = found.iter().filter_map(|file| match &file.head {
        Head::Row { row, run, .. } => Some((run, file.number, row)),
        _ => None,
    });
    runs.max().map(|(.., row)| row.clone())
}

/// A file of a split recording.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// See [`RUN`].
    pub(crate) run: u64,
}

/// What our recorder has written under the name `path` in several files, by all of its runs, in
/// order.
pub(crate) fn written(path: &Path) -> Vec<Written> {
    let of_ours = |(number, path): (u64, PathBuf)| match Head::of(&path) {
        Head::Row { run, .. } if number < u64::MAX => {
            let bytes = path.metadata().ok()?.len();
            Some(Written { number, path, bytes, run })
        }
        _ => None,
    };
    let files = beside(path, &stem_of(path)).unwrap_or_default();
    files.into_iter().filter_map(of_ours).collect()
}

impl Found {
    fn of(number: u64, path: PathBuf) -> Self {
        let head = Head::of(&path);
        Self { number, path, head }
    }
}

impl Head {
    fn row(&self) -> Option<&str> {
        match self {
            Self::Row { row, .. } => Some(row),
            _ => None,
        }
    }

    fn of(path: &Path) -> Self {
        match path.metadata() {
            Ok(of) if of.is_file() => match Self::read(path, of.len()) {
                Some(head) => head,
                // Its recorder is about to write it, or has let it go meanwhile.
                None if is_being_written(path) || !path.exists() => Self::Other,
                None => Self::Damaged,
            },
            Ok(_) => Self::Other,
            Err(e) if e.kind() == ErrorKind::NotFound => Self::Other,
            Err(_) => Self::Damaged,
        }
    }

    /// `None` if it is damaged.
    fn read(path: &Path, bytes: u64) -> Option<Self> {
        // What we write there is small.
        const BYTES_MAX: u64 = 1 << 20;
        let magic = mcap::MAGIC;
        let at = magic.len() as u64;
        let mut file = File::open(path).ok()?;
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        Read::by_ref(&mut file).take(at).read_to_end(&mut begin).ok()?;
        if begin != magic {
            // A power failure leaves a file empty, cut short, or full of zeros.
            if magic.starts_with(&begin) || begin.iter().all(|byte| *byte == 0) {
                return None;
            }
            file.seek(SeekFrom::Start(bytes.saturating_sub(at))).ok()?;
            Read::by_ref(&mut file).take(at).read_to_end(&mut end).ok()?;
            if end != magic {
                return Some(Self::Other);
            }
        }
        let header = record_at(&mut file, op::HEADER, at, BYTES_MAX)?;
        let at = at + HEAD_BYTES + header.len() as u64;
        let mut header = header.as_slice();
        // Damaged, it does not cost what the next record says.
        let library = text(&mut header).and_then(|_profile| text(&mut header));
        if library.is_some_and(|library| library.ends_with(RECOVERS)) {
            return Some(Self::Other);
        }
        let about = record_at(&mut file, op::METADATA, at, BYTES_MAX);
        match about.as_deref().and_then(about_of) {
            Some(about) => {
                let number = |key| about.get(key).and_then(|text| text.parse().ok());
                Some(about.get(ROW).map_or(Self::Other, |row| Self::Row {
                    row: (*row).to_owned(),
                    run: number(RUN).unwrap_or(0),
                    first: number(FIRST),
                }))
            }
            // Our recorder always says what it is about.
            None => (!library?.starts_with("outlive ")).then_some(Self::Other),
        }
    }
}

/// What a record of metadata says, if it is that of our recorder. Of a damaged one no length is
/// believed.
fn about_of(mut body: &[u8]) -> Option<HashMap<&str, &str>> {
    if text(&mut body)? != ABOUT {
        return None;
    }
    let (len, mut rest) = body.split_first_chunk()?;
    if u32::from_le_bytes(*len) as usize != rest.len() {
        return None;
    }
    let mut about = HashMap::new();
    while !rest.is_empty() {
        about.insert(text(&mut rest)?, text(&mut rest)?);
    }
    Some(about)
}

/// The next text of a record.
fn text<'a>(body: &mut &'a [u8]) -> Option<&'a str> {
    let (len, rest) = body.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *body = rest;
    str::from_utf8(text).ok()
}

fn stem_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files beside `path` that have its ending and are called `stem` and a number, in order.
fn beside(path: &Path, stem: &str) -> Result<Vec<(u64, PathBuf)>, Error> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let io = |e| Error::io("read", dir, e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(io)? {
        let file = entry.map_err(io)?.path();
        let number = number_of(&file).filter(|_| file.extension() == path.extension());
        if let Some((of, number)) = number
            && of == stem
        {
            files.push((number, file));
        }
    }
    files.sort();
    Ok(files)
}

/// `run_003.mcap`: `run` and 3.
fn number_of(path: &Path) -> Option<(String, u64)> {
    let stem = path.file_stem()?.to_str()?;
    let (name, number) = stem.rsplit_once('_')?;
    Some((name.into(), number.parse().ok()?))
}

/// In order, with their numbers, if all have the same name but for these.
fn numbered(files: Vec<PathBuf>) -> Option<Vec<(u64, PathBuf)>> {
    let named = files.into_iter().map(|file| Some((number_of(&file)?, file)));
    let mut row = named.collect::<Option<Vec<_>>>()?;
    row.sort();
    let name = row.first()?.0.0.clone();
    let same = row.iter().all(|((of, _), _)| *of == name);
    same.then(|| row.into_iter().map(|((_, number), file)| (number, file)).collect())
}

/// Those files as one recording, which is called `path`.
fn join(path: &Path, places: Vec<(u64, Place)>, limits: Limits) -> Result<Recording, Error> {
    let mut whole = Recording::empty(path, limits);
    whole.finished = true;
    whole.start_ns = u64::MAX;
    let like = places.iter().find_map(|(_, place)| match place {
        Place::Part(part) => Some(part.path.clone()),
        _ => None,
    });
    let like = like.unwrap_or_default();
    let mut next = places.first().map(|(number, _)| *number);
    for (number, place) in places {
        while next.is_some_and(|next| next < number) {
            let name = like.with_file_name(part_name(&like, next.unwrap_or(0)));
            whole.gaps.add_record(0, format!("{} is missing", name.display()));
            // A number far away is no row of files that have gone.
            next = next.map(|next| if number - next > 1000 { number } else { next + 1 });
        }
        next = number.checked_add(1);
        match place {
            Place::Part(part) => whole.take(*part)?,
            Place::LeftOut { path, bytes, why } => {
                whole.gaps.add_record(bytes as usize, why);
                whole.left_out.push(path);
            }
            Place::Taken => {}
        }
    }
    if whole.start_ns == u64::MAX {
        whole.start_ns = 0;
    }
    let of_parts = std::mem::replace(&mut whole.damage, whole.gaps.clone());
    whole.damage.merge(&of_parts);
    Ok(whole)
}

fn part_name(like: &Path, number: u64) -> String {
    let name = number_of(like).map_or(String::new(), |(name, _)| name);
    let ending = like.extension().unwrap_or_default().to_string_lossy();
    format!("{name}_{number:03}.{ending}")
}

impl Recording {
    /// A part, where it cannot be seen which others there are.
    fn among_others(mut self, why: &Error) -> Self {
        let path = self.path.display();
        self.gaps.add_record(0, format!("what else belongs to {path} is not known: {why}"));
        let own = std::mem::replace(&mut self.damage, self.gaps.clone());
        self.damage.merge(&own);
        self
    }

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
        let named = |why: String| format!("{}: {why}", part.path.display());
        (damage.first, damage.differs) = (damage.first.map(named), damage.differs.map(named));
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
            let why = format!("it is a bag of ROS 2 {how}: {CONVERT}");
            Err(Error::Corrupt { path: dir.into(), why })
        }
        (true, None) => Err(Error::Usage(format!("{} has 0 MCAP files: name one", dir.display()))),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// One of them was said to be missing.
    #[test]
    fn the_oldest_files_may_go_while_a_row_is_opened() {
        let dir = testkit::TempDomain::new("parts-oldest").unwrap();
        fs::create_dir_all(dir.path()).unwrap();
        let file = |n: u64| dir.path().join(format!("run_{n:03}.mcap"));
        let found = |number| {
            let (path, row) = (file(number), "row".to_owned());
            fs::write(&path, b"").unwrap();
            let head =
                if number == 1 { Head::Other } else { Head::Row { row, run: 1, first: None } };
            Found { number, path, head }
        };
        for first in [0, 2] {
            let found: Vec<_> = (0..4).map(found).collect();
            let open = |path: &Path| {
                if path == file(2) {
                    (first..3).for_each(|n| fs::remove_file(file(n)).unwrap());
                }
                let opened = File::open(path).map(|_| Recording::empty(path, Limits::default()));
                opened.map_err(|e| Error::io("open", path, e))
            };
            let places = places(&found, "row", open).unwrap();
            let whole = join(&file(0), places, Limits::default()).unwrap();
            // One that goes alone is missing.
            let alone = first == 2;
            let left = if alone { vec![file(0), file(3)] } else { vec![file(3)] };
            assert_eq!((whole.files, whole.damage.places), (left, u64::from(alone)));
        }
    }
}
