//! A directory in shared memory that goes away with the test.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "outlive-kill-";

/// A unique directory under /dev/shm (else the temporary directory), removed on drop.
///
/// It sets nothing global. Forked children may hold a copy; only the creator removes the directory.
#[derive(Debug)]
pub struct TempDomain {
    path: PathBuf,
    creator: u32,
    expect_empty: bool,
    /// Holds a shared file lock that says: in use.
    _lock: File,
}

impl TempDomain {
    /// Makes the directory; `label` becomes part of its name.
    ///
    /// # Errors
    /// When no directory can be made.
    pub fn new(label: &str) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let creator = std::process::id();
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent_dir().join(format!("{PREFIX}{label}-{creator}-{n}"));
            match fs::create_dir(&path) {
                // A killed process with our id left it; another one of its numbers is free.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                done => done?,
            }
            let lock = File::open(&path)?;
            flock(&lock, libc::LOCK_SH);
            return Ok(Self { path, creator, expect_empty: false, _lock: lock });
        }
    }

    /// Makes drop panic when something is left in the directory.
    pub fn expect_empty(mut self) -> Self {
        self.expect_empty = true;
        self
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every path below the directory, relative to it, sorted.
    pub fn listing(&self) -> Vec<String> {
        listing(&self.path)
    }
}

impl Drop for TempDomain {
    fn drop(&mut self) {
        if self.creator != std::process::id() {
            return;
        }
        let left = if self.expect_empty { self.listing() } else { Vec::new() };
        let _ = fs::remove_dir_all(&self.path);
        if !left.is_empty() && !std::thread::panicking() {
            panic!("left in {}: {left:?}", self.path.display());
        }
    }
}

/// Every path below `dir`, relative to it, sorted.
pub fn listing(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Ok(name) = path.strip_prefix(dir) {
                names.push(name.to_string_lossy().into_owned());
            }
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                todo.push(path);
            }
        }
    }
    names.sort();
    names
}

/// Removes everything in `dir`, not `dir` itself.
pub fn empty_dir(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes directories of test processes that were killed; returns how many.
pub fn remove_leftovers() -> usize {
    let mut removed = 0;
    for entry in fs::read_dir(parent_dir()).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let Ok(dir) = File::open(entry.path()) else {
            continue;
        };
        // The lock is free only when every process that could use the directory is gone. One that
        // is just being made is not locked yet, but neither is it a minute old.
        let old = dir
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|t| t.elapsed().is_ok_and(|age| age.as_secs() > 60));
        if ours && old && flock(&dir, libc::LOCK_EX | libc::LOCK_NB) {
            removed += usize::from(fs::remove_dir_all(entry.path()).is_ok());
        }
    }
    removed
}

/// Removes directories of tests whose makers are dead, however young: for whoever ended them all.
pub fn remove_dead_leftovers() {
    for entry in fs::read_dir(parent_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.starts_with(PREFIX) || name.starts_with("outlive-test-");
        let creator = name.rsplit('-').nth(1).and_then(|text| text.parse::<u32>().ok());
        let dead = creator.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
        let unused =
            || File::open(entry.path()).is_ok_and(|d| flock(&d, libc::LOCK_EX | libc::LOCK_NB));
        if ours && dead && unused() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn flock(file: &File, operation: i32) -> bool {
    // SAFETY: the descriptor is open for the whole call.
    unsafe { libc::flock(file.as_raw_fd(), operation) == 0 }
}

fn parent_dir() -> PathBuf {
    let shm = Path::new("/dev/shm");
    // SAFETY: the path is a NUL-terminated literal.
    let usable = unsafe { libc::access(c"/dev/shm".as_ptr(), libc::W_OK | libc::X_OK) == 0 };
    if usable { shm.to_path_buf() } else { std::env::temp_dir() }
}
