//! The logs as they are read along for the terminal: by a thread of its own, which a disk that
//! hangs holds up. The supervisor waits for it a second once, and for its last lines.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use super::{Log, sink};
use crate::printer::Lines;

/// Between two looks.
const TURN: Duration = Duration::from_millis(50);
/// How long the supervisor waits until it is known where a log ends now.
const BEGIN_MAX: Duration = Duration::from_secs(1);
/// Bytes read for the terminal at once, and so often in a turn that a chatterbox keeps nobody
/// waiting.
const READ_MAX: usize = 64 << 10;
const READS: usize = 4;
/// The terminal is no further behind, bytes.
const BEHIND_MAX: u64 = 256 << 10;
/// Longer lines are shown in parts, bytes.
const LINE_MAX: usize = 4096;

/// A log to be read along from its end; who told of it hears when that is known.
type Told = (Followed, Sender<()>);

/// The thread that reads along. Dropped, it shows what is left and ends.
#[derive(Debug)]
pub(crate) struct Follower {
    to: Sender<Told>,
    /// It has not answered in time: its disk hangs.
    hangs: bool,
}

impl Follower {
    /// One that hands what it reads to `lines`.
    ///
    /// # Errors
    /// There is no room for the thread.
    pub(crate) fn start(lines: Lines) -> io::Result<Self> {
        let (to, told) = channel();
        thread::Builder::new().name("follow-logs".into()).spawn(move || run(&told, lines))?;
        Ok(Self { to, hangs: false })
    }

    /// Shows what comes in `log` from now on, as said by `name`, until `log` is dropped.
    pub(crate) fn follow(&mut self, log: &Log, name: &str, number: usize) {
        let (noted, is_noted) = channel();
        let _ = self.to.send((Followed::new(log, name, number), noted));
        if !self.hangs {
            self.hangs = is_noted.recv_timeout(BEGIN_MAX) == Err(RecvTimeoutError::Timeout);
        }
    }
}

fn run(told: &Receiver<Told>, mut lines: Lines) {
    let mut all = Vec::new();
    loop {
        match told.recv_timeout(TURN) {
            Ok((mut log, noted)) => {
                log.begin();
                all.push(log);
                let _ = noted.send(());
            }
            Err(e) => {
                all.retain_mut(|log| log.show(&mut lines));
                if e == RecvTimeoutError::Disconnected {
                    return;
                }
            }
        }
    }
}

/// A log that is read along.
#[derive(Debug)]
struct Followed {
    name: String,
    number: usize,
    path: PathBuf,
    is_silent: Arc<AtomicBool>,
    file: Option<File>,
    /// Up to where it was read.
    at: u64,
    /// The beginning of a line whose end has not come.
    part: Vec<u8>,
}

impl Followed {
    fn new(log: &Log, name: &str, number: usize) -> Self {
        let (path, is_silent) = (log.path.clone(), log.is_silent.clone());
        Self { name: name.into(), number, path, is_silent, file: None, at: 0, part: Vec::new() }
    }

    /// What is in it already is not shown again.
    fn begin(&mut self) {
        self.file = File::open(&self.path).ok();
        self.at = self.file.as_ref().and_then(|f| f.metadata().ok()).map_or(0, |m| m.len());
    }

    /// Shows what came since; whether more may come.
    fn show(&mut self, lines: &mut Lines) -> bool {
        // In this order: what was printed before is in the log.
        let is_last = Arc::strong_count(&self.is_silent) == 1;
        let is_silent = is_last || self.is_silent.load(Relaxed);
        let (name, number) = (std::mem::take(&mut self.name), self.number);
        let mut show = |line: &str| lines.line(&name, number, line);
        for _ in 0..READS {
            if !self.follow(&mut show) {
                break;
            }
        }
        if is_silent {
            self.flush(&mut show);
        }
        self.name = name;
        !is_last
    }

    /// Hands the lines that came since to `show`; true if there is more.
    fn follow(&mut self, show: &mut dyn FnMut(&str)) -> bool {
        let now = fs::metadata(&self.path).ok().map(|m| m.ino());
        let ours = self.file.as_ref().and_then(|f| f.metadata().ok());
        if self.read(ours.as_ref().map_or(0, |m| m.len()), show) {
            return true;
        }
        if now.is_none() || now == ours.as_ref().map(|m| m.ino()) {
            return false;
        }
        // Rotated: what is left of the old one was shown just now.
        let before = sink::old(&self.path, 1);
        if ours.is_some_and(|m| fs::metadata(before).is_ok_and(|b| b.ino() != m.ino())) {
            show("(lines not shown; the logs have them)");
        }
        (self.file, self.at) = (File::open(&self.path).ok(), 0);
        self.file.is_some()
    }

    fn read(&mut self, len: u64, show: &mut dyn FnMut(&str)) -> bool {
        let Some(file) = &self.file else { return false };
        if len < self.at {
            self.at = 0; // somebody cut it
        }
        if len - self.at > BEHIND_MAX {
            self.part.clear();
            show("(lines not shown; the logs have them)");
            self.at = len - READ_MAX as u64;
        }
        if len == self.at {
            return false;
        }
        let mut bytes = vec![0; READ_MAX.min((len - self.at) as usize)];
        let Ok(n) = file.read_at(&mut bytes, self.at) else { return false };
        self.at += n as u64;
        for byte in &bytes[..n] {
            if *byte == b'\n' || self.part.len() >= LINE_MAX {
                show(&String::from_utf8_lossy(&self.part));
                self.part.clear();
            }
            if *byte != b'\n' {
                self.part.push(*byte);
            }
        }
        self.at < len
    }

    /// Shows what has come of a line without an end.
    fn flush(&mut self, show: &mut dyn FnMut(&str)) {
        if !self.part.is_empty() {
            show(&String::from_utf8_lossy(&self.part));
            self.part.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;

    use super::super::{path, tests::dir};
    use super::*;

    #[test]
    fn a_line_without_an_end_is_shown_when_asked_and_a_rotated_file_to_its_end() {
        let dir = dir("part");
        let path = path(&dir, "a");
        fs::write(&path, "old\n").unwrap();
        let mut log = Followed::new(&Log::open(&dir, &dir, "a").unwrap(), "a", 0);
        log.begin();
        let mut shown = Vec::new();
        let mut append = |path: &Path, text: &str| {
            let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            while log.follow(&mut |line| shown.push(line.to_owned())) {}
            log.flush(&mut |line| shown.push(line.to_owned()));
        };
        append(&path, "one\ntwo");
        fs::rename(&path, dir.join("a.log.1")).unwrap();
        append(&dir.join("a.log.1"), "three\n");
        append(&path, "four\n");
        assert_eq!(shown, ["one", "two", "three", "four"]);
        fs::remove_dir_all(dir).unwrap();
    }
}
