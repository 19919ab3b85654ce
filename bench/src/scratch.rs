//! A directory for each run, on the RAM disk where there is one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outlive::{Error, ErrorKind, Result};

const PREFIX: &str = "outlive-bench-";

/// A domain of its own for each run, removed at its end.
pub(super) struct TempRoot(pub(super) PathBuf);

impl TempRoot {
    pub(super) fn new() -> Self {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let run = RUNS.fetch_add(1, Relaxed);
        Self(parent().join(format!("{PREFIX}{}-{run}", std::process::id())))
    }

    /// The directory exists already.
    pub(super) fn made() -> Result<Self> {
        let root = Self::new();
        std::fs::create_dir_all(&root.0).map_err(|e| {
            let name = root.0.display().to_string();
            Error::new(ErrorKind::Io, "make directory", name, "").with_source(e)
        })?;
        Ok(root)
    }
}

impl Drop for TempRoot {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what benchmarks left that a signal ended.
pub(super) fn sweep() {
    sweep_in(&parent());
}

fn parent() -> PathBuf {
    let ram = Path::new("/dev/shm");
    if ram.is_dir() { ram.into() } else { std::env::temp_dir() }
}

fn sweep_in(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
        // A number used again keeps its directory until that process ends, too.
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_benchmark_left_goes_and_nothing_else() {
        let ram = std::env::temp_dir().join(format!("{PREFIX}test-{}", std::process::id()));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let ours = format!("{PREFIX}{}-0", std::process::id());
        let left = format!("{PREFIX}{}-3", ended.id());
        let others = [format!("{PREFIX}x"), "outlive-demo-1-0".to_owned(), ours];
        for name in others.iter().chain([&left]) {
            std::fs::create_dir_all(ram.join(name)).unwrap();
        }
        sweep_in(&ram);
        assert!(!ram.join(left).exists());
        assert!(others.iter().all(|name| ram.join(name).exists()));
        std::fs::remove_dir_all(&ram).unwrap();
    }
}
