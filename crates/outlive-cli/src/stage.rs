//! The directory of one demo or measurement: on the RAM disk if it has room, gone when that is.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::os;

/// A directory of its own, locked while in use, removed on drop.
#[derive(Debug)]
pub(crate) struct Stage {
    dir: PathBuf,
    _lock: File,
}

impl Stage {
    /// For `what`, which needs so much room.
    pub(crate) fn set(what: &str, needed: u64) -> Result<Self, Failure> {
        let ram = Path::new("/dev/shm");
        let prefix = format!("outlive-{what}-");
        sweep(ram, &prefix);
        let mut found = Err(io::ErrorKind::StorageFull.into());
        if os::free_bytes(ram).is_some_and(|free| free >= needed) {
            found = Self::make(ram, &prefix);
        }
        found
            .or_else(|_| Self::make(&std::env::temp_dir(), &prefix))
            .map_err(|e| Failure::io(&format!("make a directory for the {what}"), &e))
    }

    fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        let mut n = 0;
        loop {
            let dir = parent.join(format!("{prefix}{}-{n}", std::process::id()));
            n += 1;
            match DirBuilder::new().mode(0o700).create(&dir) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Another one that sweeps may have come in between.
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

    /// Everything that is in it, the directory itself included; empty once it is gone.
    pub(crate) fn listing(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> =
            self.dir.exists().then(|| self.dir.clone()).into_iter().collect();
        let mut at = 0;
        while at < found.len() {
            let inside = fs::read_dir(&found[at]).into_iter().flatten().flatten();
            found.extend(inside.map(|entry| entry.path()));
            at += 1;
        }
        found
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what those left that were themselves killed: nobody holds their lock.
fn sweep(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let dir = entry.path();
        let ours = entry.file_name().to_string_lossy().starts_with(prefix)
            && fs::symlink_metadata(&dir).is_ok_and(|m| m.is_dir() && own(m.uid()));
        if ours && File::open(&dir).is_ok_and(|lock| os::try_lock(&lock)) {
            let _ = fs::remove_dir_all(&dir);
        }
    }
}

fn own(uid: u32) -> bool {
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == uid)
}
