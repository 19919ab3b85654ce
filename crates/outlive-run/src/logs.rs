//! Logs: each process writes into a file of its own, so that it can write on when its supervisor
//! is dead. The supervisor reads along for the terminal, and rotates.
//!
//! # Rotation
//! The process keeps its descriptor, which appends. So the file is copied and then cut to nothing;
//! a line that is written between the last look and the cut is lost. Rotated files are
//! `NAME.log.1`, the newest, to `NAME.log.N`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes read for the terminal at once.
const READ_MAX: usize = 64 << 10;
/// Longer lines are shown in parts, bytes.
const LINE_MAX: usize = 4096;

/// The log of one process.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// Read for the terminal up to here.
    read: u64,
    /// The beginning of a line whose end has not come.
    part: Vec<u8>,
}

impl Log {
    /// Opens the log of `name` in `dir`; what is in it already is not shown again.
    pub(crate) fn open(dir: &Path, name: &str) -> io::Result<Self> {
        let path = path(dir, name);
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o640).open(&path)?;
        let read = file.metadata()?.len();
        Ok(Self { path, file, read, part: Vec::new() })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a process gets as standard output and error.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Adds a line of the supervisor's own.
    pub(crate) fn add(&mut self, line: &str) {
        let _ = writeln!(self.file, "{line}");
        self.read = self.file.metadata().map_or(self.read, |m| m.len());
    }

    /// Hands the lines that came since to `show`; true if there is more.
    pub(crate) fn follow(&mut self, mut show: impl FnMut(&str)) -> bool {
        let len = self.file.metadata().map_or(0, |m| m.len());
        if len < self.read {
            self.read = 0; // somebody cut it
        }
        if len == self.read {
            return false;
        }
        let mut bytes = vec![0; READ_MAX.min((len - self.read) as usize)];
        let Ok(n) = self.file.read_at(&mut bytes, self.read) else { return false };
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
    pub(crate) fn flush(&mut self, mut show: impl FnMut(&str)) {
        if !self.part.is_empty() {
            show(&String::from_utf8_lossy(&self.part));
            self.part.clear();
        }
    }

    /// Rotates the file if it is larger than `bytes_max`, keeping `keep` old ones.
    pub(crate) fn rotate(&mut self, bytes_max: u64, keep: u32) -> io::Result<()> {
        if self.file.metadata()?.len() <= bytes_max {
            return Ok(());
        }
        let old = |n: u32| self.path.with_extension(format!("log.{n}"));
        for n in (1..keep).rev() {
            match fs::rename(old(n), old(n + 1)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
        }
        let mut at = 0;
        if keep > 0 {
            let mut to = File::create(old(1))?;
            at = self.copy_from(at, &mut to)?;
            // Once more, so that only an instant is left in which a line can be lost.
            at = self.copy_from(at, &mut to)?;
        }
        self.file.set_len(0)?;
        // What was copied and not yet shown is not shown: it is in the rotated file.
        self.read = if at == 0 { 0 } else { self.read.saturating_sub(at) };
        Ok(())
    }

    fn copy_from(&self, mut at: u64, to: &mut File) -> io::Result<u64> {
        let mut bytes = vec![0; READ_MAX];
        loop {
            match self.file.read_at(&mut bytes, at)? {
                0 => return Ok(at),
                n => to.write_all(&bytes[..n])?,
            }
            at = to.metadata()?.len();
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
    fn rotation_keeps_every_line_and_the_writers_descriptor() {
        let dir = dir("rotate");
        let mut log = Log::open(&dir, "camera").unwrap();
        let mut writer = log.file().try_clone().unwrap();
        let mut shown = Vec::new();
        for n in 0..100 {
            writeln!(writer, "line {n}").unwrap();
            while log.follow(|line| shown.push(line.to_owned())) {}
            log.rotate(100, 50).unwrap();
        }
        assert_eq!(shown.len(), 100);
        let mut kept = Vec::new();
        for n in (0..=50).rev() {
            let name = if n == 0 { "camera.log".into() } else { format!("camera.log.{n}") };
            let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
            assert!(text.len() <= 110);
            kept.extend(text.lines().map(str::to_owned));
        }
        assert_eq!(kept, shown);
        assert!(dir.join("camera.log.5").exists());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn no_more_old_logs_are_kept_than_asked() {
        let dir = dir("keep");
        let mut log = Log::open(&dir, "a").unwrap();
        for _ in 0..5 {
            log.add(&"x".repeat(200));
            log.rotate(100, 2).unwrap();
        }
        assert!(dir.join("a.log.2").exists() && !dir.join("a.log.3").exists());
        log.add(&"x".repeat(200));
        log.rotate(100, 0).unwrap();
        assert_eq!(fs::metadata(dir.join("a.log")).unwrap().len(), 0);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_line_without_an_end_is_shown_when_asked() {
        let dir = dir("part");
        let mut log = Log::open(&dir, "a").unwrap();
        let mut writer = log.file().try_clone().unwrap();
        write!(writer, "one\ntwo").unwrap();
        let mut shown = Vec::new();
        while log.follow(|line| shown.push(line.to_owned())) {}
        assert_eq!(shown, ["one"]);
        log.flush(|line| shown.push(line.to_owned()));
        assert_eq!(shown, ["one", "two"]);
        fs::remove_dir_all(dir).unwrap();
    }
}
