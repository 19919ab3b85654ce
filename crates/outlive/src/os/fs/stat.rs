//! What the kernel says of an open file: which it is, how long it is.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Result;
use crate::os::syserr;
use crate::os::syserr::show;

/// Whether the file at `path` is still the open one. Check after locking a file that others may
/// unlink.
pub(crate) fn same_file(fd: &impl AsFd, path: &Path) -> Result<bool> {
    let here = stat(fd, path)?;
    match std::fs::symlink_metadata(path) {
        Ok(there) => Ok((here.st_dev, here.st_ino) == (there.dev(), there.ino())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(syserr::from_io("check", show(path), e)),
    }
}

/// Device and inode of an open file: the same for two descriptors if and only if they are of one
/// file. `path` is for messages.
pub(crate) fn identity(fd: &impl AsFd, path: &Path) -> Result<(u64, u64)> {
    stat(fd, path).map(|s| (s.st_dev, s.st_ino))
}

/// Length of an open file; `path` is for messages.
pub(crate) fn len_of(fd: &impl AsFd, path: &Path) -> Result<u64> {
    #[cfg(test)]
    crate::os::fixture::may("stat", path)?;
    Ok(stat(fd, path)?.st_size as u64)
}

fn stat(fd: &impl AsFd, path: &Path) -> Result<libc::stat> {
    // SAFETY: a stat struct is integers, filled by the call.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        match libc::fstat(fd.as_fd().as_raw_fd(), &mut stat) {
            0 => Ok(stat),
            _ => Err(syserr::last("check", show(path))),
        }
    }
}
