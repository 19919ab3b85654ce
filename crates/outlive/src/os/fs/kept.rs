//! Descriptors that are kept for long. A program may lose them: whoever closes all descriptors, as
//! daemons do, or one of theirs twice, closes ours, and the number may then be another file's.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use super::file::{self, Expect};
use crate::os::syserr;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// A descriptor, and the file that it was opened for.
#[derive(Debug)]
pub(crate) struct KeptFd {
    fd: ManuallyDrop<OwnedFd>,
    file: (u64, u64),
}

/// The file of a `KeptFd`, now.
#[derive(Debug)]
pub(crate) enum Now<'a> {
    Ours(BorrowedFd<'a>),
    Again(OwnedFd),
}

impl KeptFd {
    /// `path` is for messages.
    pub(crate) fn new(fd: OwnedFd, path: &Path) -> Result<Self> {
        let file = file::identity(&fd, path)?;
        Ok(Self::of(fd, file))
    }

    /// Of the file with that identity.
    pub(crate) fn of(fd: OwnedFd, file: (u64, u64)) -> Self {
        Self { fd: ManuallyDrop::new(fd), file }
    }

    /// The descriptor, unless it was closed.
    pub(crate) fn ours(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.fd.as_fd();
        (self.is_ours() || fault("descriptor.of_a_stranger")).then_some(fd)
    }

    /// A file that cannot be asked about is ours: else its lock would be held for ever.
    fn is_ours(&self) -> bool {
        // SAFETY: a stat struct is integers, filled by the call.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            match libc::fstat(self.fd.as_raw_fd(), &mut stat) {
                0 => (stat.st_dev, stat.st_ino) == self.file,
                _ => syserr::errno() != libc::EBADF,
            }
        }
    }

    /// The file: if the descriptor was closed, by its path.
    ///
    /// # Errors
    /// `NotFound` when neither is there any more; those of `open_checked`.
    pub(crate) fn now(&self, path: &Path, writable: bool) -> Result<Now<'_>> {
        if let Some(fd) = self.ours() {
            return Ok(Now::Ours(fd));
        }
        let (fd, _) = file::open_checked(path, Expect { writable, min_len: 0, owner: None })?;
        if file::identity(&fd, path)? == self.file {
            return Ok(Now::Again(fd));
        }
        let remedy = "another file lies there, and its descriptor was closed: close only your own";
        Err(Error::new(ErrorKind::NotFound, "open", syserr::show(path), remedy))
    }

    /// The number.
    pub(crate) fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Device and inode.
    pub(crate) fn file(&self) -> (u64, u64) {
        self.file
    }
}

/// As it is: for whoever has opened it right now.
impl AsFd for KeptFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for KeptFd {
    fn drop(&mut self) {
        if self.ours().is_some() {
            // SAFETY: never used again; the number is still that of our file.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

impl AsFd for Now<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Ours(fd) => fd.as_fd(),
            Self::Again(fd) => fd.as_fd(),
        }
    }
}

/// Whether a number is still that of an eventfd, a timerfd or the like, as far as that can be seen:
/// they all are one file without a type. Async-signal-safe.
pub(in crate::os) fn is_anonymous(number: RawFd) -> bool {
    // SAFETY: a stat struct is integers, filled by the call.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(number, &mut stat) == 0 && stat.st_mode & libc::S_IFMT == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::{TempDir, fork_child};

    fn open(path: &Path) -> OwnedFd {
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .unwrap()
            .into()
    }

    /// In a child, whose descriptors nobody else uses.
    #[test]
    fn a_number_that_is_another_files_is_left_alone() {
        let dir = TempDir::new("kept");
        let (own, other) = (dir.join("own"), dir.join("other"));
        let child = fork_child(|| {
            let kept = KeptFd::new(open(&own), &own).unwrap();
            let number = kept.number();
            if !matches!(kept.now(&own, true), Ok(Now::Ours(_))) {
                return 1;
            }
            // SAFETY: what a program does that closes what is not its own.
            unsafe { libc::close(number) };
            if !matches!(kept.now(&own, true), Ok(Now::Again(_))) {
                return 2;
            }
            let stranger = open(&other);
            if stranger.as_raw_fd() != number {
                return 3;
            }
            if !matches!(kept.now(&own, true), Ok(Now::Again(_))) {
                return 4;
            }
            if kept.now(&other, true).map_err(|e| e.kind()).err() != Some(ErrorKind::NotFound) {
                return 5;
            }
            drop(kept);
            // SAFETY: asks whether a descriptor is open.
            if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 { 6 } else { 0 }
        });
        assert_eq!(child.wait(), 0);
    }
}
