//! The lock by which a file is known to be written, for as long as its recorder lives.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::Error;

/// Takes the lock of a file, for as long as we write it; false if another recorder has it.
pub(crate) fn lock(file: &fs::File) -> bool {
    // Who asks below has it for an instant.
    const TRIES: u32 = 50;
    (0..TRIES).any(|nth| {
        if nth > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Some disks have no locks.
        rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) != Err(Errno::WOULDBLOCK)
    })
}

pub(crate) fn taken(path: &Path) -> Error {
    let path = path.display();
    Error::Usage(format!("{path} is being recorded by another process: give another name"))
}

/// Whether its recorder lives.
pub(crate) fn is_being_written(path: &Path) -> bool {
    let lock = |file: &fs::File| rustix::fs::flock(file, FlockOperation::NonBlockingLockShared);
    fs::File::open(path).is_ok_and(|file| lock(&file) == Err(Errno::WOULDBLOCK))
}
