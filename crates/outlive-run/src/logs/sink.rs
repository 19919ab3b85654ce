//! One log on disk: bounded in bytes and in bytes a second, rotated by renaming. What is not kept
//! is counted, and said in the log itself once there is room.
//!
//! # Rotation
//! `NAME.log.N-1` becomes `NAME.log.N`, and so on down to `NAME.log`; then a new file is made. A
//! rename needs no room, and nothing is copied: on a full disk the old ones stay as they are, and
//! nothing new is written, so nothing is rotated either. Killed in between, a number is missing,
//! and the next rotation fills it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After an error nothing is tried for so long.
const REST: Duration = Duration::from_secs(1);
/// So many seconds' worth may come at once.
const BURST_S: u64 = 4;
/// A line whose beginning was kept is kept whole, if its rest is no longer than this, bytes.
const REST_OF_LINE: usize = 4096;
/// The end of a line whose beginning was cut is waited for so long. There may never be one: the
/// process has ended, or goes on without.
const END_OF_LINE: Duration = Duration::from_secs(1);

/// Bounds of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// A file is no larger, bytes.
    pub(super) bytes_max: u64,
    /// Old files that are kept.
    pub(super) keep: u32,
    /// Kept each second in the long run, bytes.
    pub(super) rate: u64,
}

/// What was not kept, and why.
#[derive(Debug, Default)]
struct Cut {
    lines: u64,
    bytes: u64,
    why: Vec<String>,
}

/// A log on disk.
#[derive(Debug)]
pub(super) struct Sink {
    path: PathBuf,
    bounds: Bounds,
    file: Option<File>,
    size: u64,
    /// Bytes that may be written now; they grow by `rate` a second.
    tokens: u64,
    filled: Instant,
    /// The source is in mid-line, since then.
    source_mid: Option<Instant>,
    /// The file is in mid-line.
    file_mid: bool,
    cut: Option<Cut>,
    rest_until: Option<Instant>,
}

impl Sink {
    pub(super) fn new(path: PathBuf, bounds: Bounds, now: Instant) -> Self {
        let tokens = bounds.rate.saturating_mul(BURST_S);
        let (file, size, cut, rest_until) = (None, 0, None, None);
        let (source_mid, file_mid) = (None, false);
        Self {
            path,
            bounds,
            file,
            size,
            tokens,
            filled: now,
            source_mid,
            file_mid,
            cut,
            rest_until,
        }
    }

    fn burst(&self) -> u64 {
        self.bounds.rate.saturating_mul(BURST_S)
    }

    fn refill(&mut self, now: Instant) {
        let us = now.saturating_duration_since(self.filled).as_micros() as u64;
        let more = us.saturating_mul(self.bounds.rate) / 1_000_000;
        if more > 0 {
            self.tokens = self.tokens.saturating_add(more).min(self.burst());
            self.filled = now;
        }
    }

    /// Takes what a process has printed.
    pub(super) fn take(&mut self, mut bytes: &[u8], now: Instant) {
        self.refill(now);
        while !bytes.is_empty() {
            if self.cut.is_some() {
                if self.may_resume(now) && self.awaits_end(now) {
                    bytes = self.skip(bytes, line(bytes), now);
                } else if !(self.may_resume(now) && self.tell(now)) {
                    bytes = self.skip(bytes, bytes.len(), now);
                }
                continue;
            }
            let room = usize::try_from(self.tokens).unwrap_or(usize::MAX).min(bytes.len());
            let whole = if room == bytes.len() { room } else { lines_within(bytes, room) };
            let n = match whole {
                // Longer than may come at once: in parts.
                0 if self.tokens == self.burst() => room,
                0 if self.source_mid.is_some() => lines_end(bytes, REST_OF_LINE),
                n => n,
            };
            if n == 0 {
                let rate = self.bounds.rate;
                self.cut_for(format!("more than {rate} bytes a second"));
                // Not tried again: there may be room to go on, and never enough for it.
                bytes = self.skip(bytes, line(bytes), now);
                continue;
            }
            let (part, rest) = bytes.split_at(n);
            self.tokens = self.tokens.saturating_sub(n as u64);
            let written = self.write(part, now);
            self.saw(part, now);
            if let Err((left, e)) = written {
                self.fail(e, now);
                self.count(&part[part.len() - left..]);
            }
            bytes = rest;
        }
    }

    /// Looks after what has to be said, and whether the file is still where it was.
    pub(super) fn tick(&mut self, now: Instant) {
        self.refill(now);
        if self.cut.is_some() && !self.awaits_end(now) && self.may_resume(now) {
            self.tell(now);
        }
        // Somebody may have moved it, removed it or cut it.
        let there = fs::metadata(&self.path).ok();
        let Some(file) = &self.file else { return };
        match (file.metadata(), there) {
            (Ok(ours), Some(there)) if ours.ino() == there.ino() => self.size = ours.len(),
            _ => self.file = None,
        }
    }

    /// Says what is left to say.
    pub(super) fn end(&mut self, now: Instant) {
        if self.cut.is_some() {
            self.tell(now);
        }
    }

    /// Whether it is in a line that may soon have its end.
    fn awaits_end(&self, now: Instant) -> bool {
        self.source_mid.is_some_and(|since| now.saturating_duration_since(since) < END_OF_LINE)
    }

    /// The source has come so far.
    fn saw(&mut self, part: &[u8], now: Instant) {
        self.source_mid = match part.iter().rposition(|b| *b == b'\n') {
            Some(end) if end + 1 == part.len() => None,
            Some(_) => Some(now),
            None => self.source_mid.or(Some(now)),
        };
    }

    fn may_resume(&self, now: Instant) -> bool {
        let rested = self.rest_until.is_none_or(|until| now >= until);
        rested && self.tokens >= self.burst() / 2
    }

    fn cut_for(&mut self, why: String) {
        let cut = self.cut.get_or_insert_default();
        if !cut.why.contains(&why) && cut.why.len() < 4 {
            cut.why.push(why);
        }
    }

    fn fail(&mut self, error: io::Error, now: Instant) {
        self.cut_for(error.to_string());
        self.rest_until = Some(now + REST);
        self.file = None;
    }

    fn count(&mut self, bytes: &[u8]) {
        let cut = self.cut.get_or_insert_default();
        cut.bytes += bytes.len() as u64;
        cut.lines += bytes.iter().filter(|b| **b == b'\n').count() as u64;
    }

    /// Counts the first `n` bytes; what comes after them.
    fn skip<'a>(&mut self, bytes: &'a [u8], n: usize, now: Instant) -> &'a [u8] {
        let (cut, rest) = bytes.split_at(n);
        self.count(cut);
        self.saw(cut, now);
        rest
    }

    /// Says what was cut; true once it is written.
    fn tell(&mut self, now: Instant) -> bool {
        let Some(cut) = self.cut.take() else { return true };
        let Cut { lines, bytes, why } = &cut;
        let begin = if self.file_mid { "\n" } else { "" };
        let why = why.join(", ");
        let line = format!("{begin}outlive: {lines} lines ({bytes} bytes) not kept: {why}\n");
        match self.write(line.as_bytes(), now) {
            Ok(()) => {
                self.rest_until = None;
                self.tokens = self.tokens.saturating_sub(line.len() as u64);
                true
            }
            Err((_, e)) => {
                self.cut = Some(cut);
                self.fail(e, now);
                false
            }
        }
    }

    /// Writes all; or how many bytes are left, and why.
    fn write(&mut self, mut bytes: &[u8], _now: Instant) -> Result<(), (usize, io::Error)> {
        while !bytes.is_empty() {
            let n = match self.room_for(bytes) {
                Ok(n) => n,
                Err(e) => return Err((bytes.len(), e)),
            };
            let Some(file) = &mut self.file else { continue };
            match file.write(&bytes[..n]) {
                Ok(0) => return Err((bytes.len(), io::ErrorKind::WriteZero.into())),
                Ok(n) => {
                    self.size += n as u64;
                    self.file_mid = bytes[n - 1] != b'\n';
                    bytes = &bytes[n..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err((bytes.len(), e)),
            }
        }
        Ok(())
    }

    /// How much of `bytes` goes into the file as it is, or after it was rotated; lines are kept
    /// together if they are not longer than a file.
    fn room_for(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for _ in 0..2 {
            if self.file.is_none() {
                let mut open = OpenOptions::new();
                let file = open.append(true).create(true).mode(0o640).open(&self.path)?;
                self.size = file.metadata()?.len();
                self.file = Some(file);
            }
            let room = self.bounds.bytes_max.saturating_sub(self.size);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            if bytes.len() <= room {
                return Ok(bytes.len());
            }
            match lines_within(bytes, room) {
                0 if self.size == 0 => return Ok(room.max(1)),
                0 => self.rotate()?,
                n => return Ok(n),
            }
        }
        Err(io::Error::other("it was rotated and is full again"))
    }

    fn rotate(&mut self) -> io::Result<()> {
        if self.bounds.keep == 0 {
            if let Some(file) = &self.file {
                file.set_len(0)?;
            }
            self.size = 0;
            return Ok(());
        }
        for n in (1..self.bounds.keep).rev() {
            rename(&old(&self.path, n), &old(&self.path, n + 1))?;
        }
        rename(&self.path, &old(&self.path, 1))?;
        self.file = None;
        Ok(())
    }
}

/// The bytes of whole lines among the first `room`.
fn lines_within(bytes: &[u8], room: usize) -> usize {
    let room = room.min(bytes.len());
    bytes[..room].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1)
}

/// The bytes up to the end of the first line, 0 if that is not among the first `max`.
fn lines_end(bytes: &[u8], max: usize) -> usize {
    bytes.iter().take(max).position(|b| *b == b'\n').map_or(0, |at| at + 1)
}

/// The bytes of the first line, or all if it has no end there.
fn line(bytes: &[u8]) -> usize {
    bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |at| at + 1)
}

/// The `n`th rotated file.
pub(super) fn old(path: &Path, n: u32) -> PathBuf {
    path.with_extension(format!("log.{n}"))
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: Bounds = Bounds { bytes_max: 1 << 30, keep: 3, rate: 1 << 30 };

    fn dir(label: &str) -> PathBuf {
        let name = format!("outlive-run-{label}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// All of a log, the oldest first.
    fn kept(path: &Path, files: u32) -> String {
        let older = (1..=files).rev().map(|n| fs::read_to_string(old(path, n)).unwrap_or_default());
        older.collect::<String>() + &fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn rotation_keeps_every_line_and_no_file_is_larger_than_asked() {
        let dir = dir("rotate");
        let path = dir.join("camera.log");
        let now = Instant::now();
        let mut sink = Sink::new(path.clone(), Bounds { bytes_max: 100, keep: 50, ..PLENTY }, now);
        let said: String = (0..300).map(|n| format!("line {n}\n")).collect();
        // In parts that have nothing to do with lines.
        said.as_bytes().chunks(37).for_each(|part| sink.take(part, now));
        assert_eq!(kept(&path, 50), said);
        for file in fs::read_dir(&dir).unwrap().flatten() {
            assert!(file.metadata().unwrap().len() <= 100, "{file:?}");
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn no_more_old_logs_are_kept_than_asked() {
        let dir = dir("keep");
        let (path, now) = (dir.join("a.log"), Instant::now());
        let line = "x".repeat(90) + "\n";
        for (keep, files) in [(2, 3), (0, 1)] {
            let mut sink = Sink::new(path.clone(), Bounds { bytes_max: 100, keep, ..PLENTY }, now);
            (0..9).for_each(|_| sink.take(line.as_bytes(), now));
            assert_eq!(fs::read_dir(&dir).unwrap().count(), files);
            (1..4).for_each(|n| drop(fs::remove_file(old(&path, n))));
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_comes_too_fast_is_cut_in_whole_lines_and_counted() {
        let dir = dir("rate");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), Bounds { rate: 1000, ..PLENTY }, now);
        let lines: String = (0..10_000).map(|n| format!("{n:9}\n")).collect();
        lines.as_bytes().chunks(777).for_each(|part| sink.take(part, now));
        assert_eq!(fs::metadata(&path).unwrap().len(), 4000);
        sink.tick(now);
        assert_eq!(fs::metadata(&path).unwrap().len(), 4000, "not yet");
        now += Duration::from_secs(3);
        sink.take(b"and on\n", now);
        let text = fs::read_to_string(&path).unwrap();
        let end = "      399\noutlive: 9600 lines (96000 bytes) not kept: more than 1000 bytes a \
                   second\nand on\n";
        assert!(text.ends_with(end), "{}", &text[3900..]);
        fs::remove_dir_all(dir).unwrap();
    }

    /// It was not told while the source was in mid-line: of a process that ended so, never.
    #[test]
    fn what_was_cut_is_told_also_if_its_last_line_has_no_end() {
        let dir = dir("no-end");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), Bounds { rate: 1000, ..PLENTY }, now);
        let lines: String = (0..1000).map(|n| format!("{n:9}\n")).collect();
        sink.take(lines.as_bytes(), now);
        sink.take(b"no end", now);
        now += Duration::from_secs(3);
        sink.tick(now);
        let told = "outlive: 600 lines (6006 bytes) not kept: more than 1000 bytes a second\n";
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with(told), "{}", &text[3900..]);
        sink.take(b"later\n", now);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with(&format!("{told}later\n")), "{}", &text[3900..]);
        fs::remove_dir_all(dir).unwrap();
    }

    /// One that is printed dot by dot was cut up to its end, however long that took.
    #[test]
    fn the_end_of_a_line_that_was_cut_is_waited_for_a_second_only() {
        let dir = dir("dots");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), Bounds { rate: 1000, ..PLENTY }, now);
        sink.take(&b"chatty\n".repeat(1000), now);
        for _ in 0..30 {
            now += Duration::from_millis(100);
            sink.take(b".", now);
        }
        let text = fs::read_to_string(&path).unwrap();
        let (_, told) = text.split_at(text.find("outlive: ").expect("nothing was said"));
        let (told, dots) = told.split_once('\n').unwrap();
        assert!(told.starts_with("outlive: 429 lines (30"), "{told}");
        assert!(dots.len() > 5 && dots.bytes().all(|b| b == b'.'), "{dots}");
        fs::remove_dir_all(dir).unwrap();
    }

    /// There was room enough to go on, but not for that line: it went round for ever.
    #[test]
    fn a_line_that_is_longer_than_what_may_come_now_is_cut_and_said() {
        let dir = dir("longer");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        let bounds = Bounds { bytes_max: 10_000, keep: 1, rate: 1000 };
        let mut sink = Sink::new(path.clone(), bounds, now);
        sink.take(&b"short\n".repeat(100), now);
        for _ in 0..2000 {
            sink.take(&[&[b'x'; 3500], b"\n".as_slice()].concat(), now);
        }
        assert!(kept(&path, 1).len() < 4000, "what is said counts too");
        now += Duration::from_secs(4);
        sink.tick(now);
        sink.take(b"and on\n", now);
        let end = "not kept: more than 1000 bytes a second\nand on\n";
        assert!(kept(&path, 1).ends_with(end), "{}", kept(&path, 1));
        fs::remove_dir_all(dir).unwrap();
    }

    /// A read ends in mid-line, with nothing left of what may come now.
    #[test]
    fn a_line_that_was_begun_is_kept_whole() {
        let dir = dir("begun");
        let (path, now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), Bounds { rate: 25, ..PLENTY }, now);
        sink.take(&[b"chatty 0\n".repeat(11).as_slice(), b"c"].concat(), now);
        sink.take(&b"hatty 0\n".repeat(2), now);
        sink.end(now + Duration::from_secs(9));
        let text = fs::read_to_string(&path).unwrap();
        let (last, told) = text.split_at(text.find("outlive: ").unwrap());
        assert_eq!(last, "chatty 0\n".repeat(12));
        assert_eq!(told, "outlive: 1 lines (8 bytes) not kept: more than 25 bytes a second\n");
        fs::remove_dir_all(dir).unwrap();
    }

    /// Also in mid-line: what was written of it gets an end.
    #[test]
    fn a_disk_that_is_full_is_told_once_there_is_room() {
        let dir = dir("full");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), PLENTY, now);
        sink.take(b"half a li", now);
        // Always full.
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        sink.tick(now);
        sink.take(b"ne\nlost\nhalf", now);
        now += Duration::from_secs(2);
        sink.take(b" lost\n", now);
        fs::remove_file(&path).unwrap();
        now += Duration::from_secs(2);
        sink.tick(now);
        sink.take(b"new\n", now);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "\noutlive: 3 lines (18 bytes) not kept: No space left on device (os error 28)\nnew\n"
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn after_an_error_nothing_is_tried_for_a_second() {
        let dir = dir("rest");
        let (path, mut now) = (dir.join("a.log"), Instant::now());
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut sink = Sink::new(path.clone(), PLENTY, now);
        sink.take(b"lost\n", now);
        fs::remove_file(&path).unwrap();
        now += Duration::from_millis(900);
        sink.take(b"too early\n", now);
        assert!(!path.exists());
        now += Duration::from_millis(200);
        sink.take(b"new\n", now);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("2 lines (15 bytes) not kept") && text.ends_with("new\n"), "{text}");
        fs::remove_dir_all(dir).unwrap();
    }

    /// One line that never ends, and one that is longer than a file.
    #[test]
    fn a_line_without_an_end_stays_within_the_bounds() {
        let dir = dir("endless");
        let (path, now) = (dir.join("a.log"), Instant::now());
        let mut sink = Sink::new(path.clone(), Bounds { bytes_max: 100, keep: 1, rate: 250 }, now);
        (0..100).for_each(|_| sink.take(&[b'x'; 100], now));
        assert_eq!(kept(&path, 1).len(), 200);
        sink.end(now + Duration::from_secs(9));
        assert!(kept(&path, 1).ends_with("bytes) not kept: more than 250 bytes a second\n"));
        fs::remove_dir_all(dir).unwrap();
    }
}
