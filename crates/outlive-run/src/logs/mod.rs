//! Logs: what processes print goes into a named pipe of each, from there by a process of its own,
//! the keeper, to disk. A thread of the supervisor reads along for the terminal.
//!
//! | file | what |
//! |---|---|
//! | `follow` | that thread |
//! | `sink` | one log on disk: bounds, rotation, what was cut |
//! | `keeper` | the process that writes them all |

mod follow;
mod keeper;
mod sink;

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags};

pub(crate) use follow::Follower;
pub use keeper::keep_logs;
pub(crate) use keeper::{DRAFT, LOCK, PLAN, Plan, end_keeper, keeper_of};

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
    /// Nobody prints into it: what has come of a line is all. Shared with who reads along.
    is_silent: Arc<AtomicBool>,
    /// Lines that found no room in the pipe.
    waiting: VecDeque<Vec<u8>>,
    lost: u64,
}

impl Log {
    /// The log of `name` in `logs`, its pipe in `dir`. A pipe that is there stays: somebody may
    /// have it open. The log itself is not touched: its disk may hang.
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
        let (is_silent, waiting, lost) = Default::default();
        Ok(Self { path, pipe_path, pipe, is_silent, waiting, lost })
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

    /// Whether nobody prints into it now.
    pub(crate) fn set_silent(&self, silent: bool) {
        self.is_silent.store(silent, Relaxed);
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

    pub(super) fn dir(label: &str) -> PathBuf {
        let name = format!("outlive-run-{label}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
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
