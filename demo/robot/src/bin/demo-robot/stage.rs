//! The directory of one demo: on the RAM disk if there is one, gone when the demo is.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::os;
use crate::teller::Failure;

const PREFIX: &str = "outlive-demo-robot-";

/// A directory of its own, locked while in use, removed on drop.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: PathBuf,
    _lock: File,
}

impl Stage {
    pub(crate) fn set() -> Result<Self, Failure> {
        let ram = Path::new("/dev/shm");
        sweep(ram);
        Self::make(ram)
            .or_else(|_| Self::make(&std::env::temp_dir()))
            .map_err(|e| Failure::io("make a directory for the demo", &e))
    }

    fn make(parent: &Path) -> io::Result<Self> {
        let mut n = 0;
        loop {
            let dir = parent.join(format!("{PREFIX}{}-{n}", std::process::id()));
            n += 1;
            match DirBuilder::new().mode(0o700).create(&dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // A demo that sweeps may have come in between.
            match File::open(&dir) {
                Ok(lock) if os::try_lock(&lock) && dir.exists() => {
                    return Ok(Self { dir, _lock: lock });
                }
                _ => {}
            }
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what demos left that were themselves killed: nobody holds their lock.
fn sweep(parent: &Path) {
    let own = fs::metadata("/proc/self").map(|m| m.uid()).ok();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let dir = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && fs::symlink_metadata(&dir).is_ok_and(|m| m.is_dir() && own == Some(m.uid()));
        if ours && File::open(&dir).is_ok_and(|lock| os::try_lock(&lock)) {
            let _ = fs::remove_dir_all(&dir);
        }
    }
}
