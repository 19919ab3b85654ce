//! Logs: what processes print goes into a named pipe of each, from there by a process of its own,
//! the keeper, to disk. The supervisor reads along for the terminal.
//!
//! | file | what |
//! |---|---|
//! | `sink` | one log on disk: bounds, rotation, what was cut |
//! | `keeper` | the process that writes them all |

mod keeper;
mod sink;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub use keeper::keep_logs;
pub(crate) use keeper::{DRAFT, LOCK, PLAN, Plan, end_keeper, keeper_of};

/// Bytes read for the terminal at once.
const READ_MAX: usize = 64 << 10;
/// The terminal is no further behind, bytes.
const BEHIND_MAX: u64 = 256 << 10;
/// Longer lines are shown in parts, bytes.
const LINE_MAX: usize = 4096;
/// What a pipe is to hold while nobody reads it, bytes.
const PIPE_BYTES: usize = 256 << 10;
/// Lines of the supervisor's own that wait for room in its pipe.
const WAITING_MAX: usize = 1000;

/// How the name of a pipe ends.
pub(crate) const PIPE_END: &str = ".out";

/// The log of one process.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    pipe_path: PathBuf,
    pipe: File,
    /// What is read for the terminal, and up to where.
    file: Option<File>,
    read: u64,
    /// The beginning of a line whose end has not come.
    part: Vec<u8>,
    /// Lines that found no room in the pipe.
    waiting: VecDeque<Vec<u8>>,
    lost: u64,
}

impl Log {
    /// Opens the log of `name` in `logs`, its pipe in `dir`; what is in the log already is not
    /// shown again. A pipe that is there stays: somebody may have it open.
    pub(crate) fn open(logs: &Path, dir: &Path, name: &str) -> io::Result<Self> {
        let path = path(logs, name);
        let pipe_path = dir.join(format!("{name}{PIPE_END}"));
        let there = fs::symlink_metadata(&pipe_path).map(|m| m.file_type().is_fifo());
        if !there.as_ref().is_ok_and(|fifo| *fifo) {
            if there.is_ok() {
                fs::remove_file(&pipe_path)?;
            }
            let mode = Mode::RUSR | Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, &pipe_path, kind, mode, 0)?;
        }
        // Open for reading too: opening waits for nobody, and a dead reader is no SIGPIPE.
        let mut open = OpenOptions::new();
        open.read(true).write(true);
        if name == "run" {
            // The supervisor itself waits for nobody.
            open.custom_flags(OFlags::NONBLOCK.bits() as i32);
        }
        let pipe = open.open(&pipe_path)?;
        // The kernel may have a smaller bound for us.
        let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE_BYTES);
        let file = File::open(&path).ok();
        let read = file.as_ref().and_then(|f| f.metadata().ok()).map_or(0, |m| m.len());
        let (part, waiting, lost) = (Vec::new(), VecDeque::new(), 0);
        Ok(Self { path, pipe_path, pipe, file, read, part, waiting, lost })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where its pipe is.
    pub(crate) fn pipe_path(&self) -> &Path {
        &self.pipe_path
    }

    /// What a process gets as standard output and error.
    pub(crate) fn pipe(&self) -> &File {
        &self.pipe
    }

    /// Adds a line of the supervisor's own; never waits.
    pub(crate) fn add(&mut self, line: &str) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.waiting.push_back(format!("{line}\n").into_bytes());
        self.push();
    }

    /// Hands on what waits for room in the pipe.
    pub(crate) fn push(&mut self) {
        if self.lost > 0 && !self.waiting.is_empty() {
            let line = format!("outlive: {} lines not kept: the pipe was full\n", self.lost);
            if self.pipe.write(line.as_bytes()).is_err() {
                return;
            }
            self.lost = 0;
        }
        while let Some(line) = self.waiting.front_mut() {
            // Up to a page it is written whole or not at all.
            match self.pipe.write(line) {
                Ok(n) if n < line.len() => drop(line.drain(..n)),
                Ok(_) => drop(self.waiting.pop_front()),
                Err(_) => return,
            }
        }
    }

    /// Hands the lines that came since to `show`; true if there is more.
    pub(crate) fn follow(&mut self, show: &mut dyn FnMut(&str)) -> bool {
        let now = fs::metadata(&self.path).ok().map(|m| m.ino());
        let ours = self.file.as_ref().and_then(|f| f.metadata().ok());
        if self.show(ours.as_ref().map_or(0, |m| m.len()), show) {
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
        (self.file, self.read) = (File::open(&self.path).ok(), 0);
        self.file.is_some()
    }

    fn show(&mut self, len: u64, show: &mut dyn FnMut(&str)) -> bool {
        let Some(file) = &self.file else { return false };
        if len < self.read {
            self.read = 0; // somebody cut it
        }
        if len - self.read > BEHIND_MAX {
            self.part.clear();
            show("(lines not shown; the logs have them)");
            self.read = len - READ_MAX as u64;
        }
        if len == self.read {
            return false;
        }
        let mut bytes = vec![0; READ_MAX.min((len - self.read) as usize)];
        let Ok(n) = file.read_at(&mut bytes, self.read) else { return false };
        self.read += n as u64;
        for byte in &bytes[..n] {
            if *byte == b'\n' || self.part.len() >= LINE_MAX {
                show(&String::from_utf8_lossy(&self.part));
                self.part.clear();
            }
            if *byte != b'\n' {
                self.part.push(*byte);
            }
        }
        self.read < len
    }

    /// Shows what has come of a line without an end.
    pub(crate) fn flush(&mut self, show: &mut dyn FnMut(&str)) {
        if !self.part.is_empty() {
            show(&String::from_utf8_lossy(&self.part));
            self.part.clear();
        }
    }
}

/// Where the log of `name` is.
pub(crate) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.log"))
}

/// Where logs are unless the file says otherwise: of root `/var/log/outlive/ROBOT`, of others
/// `~/.local/state/outlive/ROBOT`.
pub(crate) fn default_dir(robot: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    match (rustix::process::geteuid().is_root(), state.filter(|s| s.is_absolute()), home) {
        (true, ..) => PathBuf::from("/var/log/outlive").join(robot),
        (_, Some(state), _) => state.join("outlive").join(robot),
        (_, _, Some(home)) => home.join(".local/state/outlive").join(robot),
        _ => std::env::temp_dir().join(format!("outlive-logs-{robot}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(label: &str) -> PathBuf {
        let name = format!("outlive-run-{label}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_line_without_an_end_is_shown_when_asked_and_a_rotated_file_to_its_end() {
        let dir = dir("part");
        let path = path(&dir, "a");
        fs::write(&path, "old\n").unwrap();
        let mut log = Log::open(&dir, &dir, "a").unwrap();
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

    #[test]
    fn the_supervisor_waits_for_no_keeper() {
        let dir = dir("wait");
        let mut log = Log::open(&dir, &dir, "run").unwrap();
        let line = "x".repeat(1000);
        // Twice what pipe and list hold.
        (0..2600).for_each(|_| log.add(&line));
        assert!(log.lost > 0 && log.waiting.len() == WAITING_MAX);
        fs::remove_dir_all(dir).unwrap();
    }
}
