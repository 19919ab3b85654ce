//! A descriptor that has news when a process dies: the kernel closes its files then.
//!
//! # Theory of operation
//! A node keeps its file open for writing, and nobody else does. When the last copy of that
//! descriptor is closed, at death, the kernel frees the lock on the file and tells who watches it
//! (inotify, IN_CLOSE_WRITE). So the news come at the instant the death can be confirmed, no
//! process id is trusted, and one descriptor serves all watched files of the process. It is added
//! to epoll sets for edges and read by nobody, so each set hears of every death.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use crate::Result;
use crate::os::fs::kept::KeptFd;
use crate::os::process::fork::per_process::PerProcess;
use crate::os::syserr;

/// Unread news beyond this many bytes are thrown away (the kernel keeps 16384 of them, then none).
const UNREAD_BYTES_MAX: libc::c_int = 64 << 10;

/// The inotify descriptor of this process.
#[derive(Debug)]
pub(crate) struct Deaths {
    fd: KeptFd,
}

impl Deaths {
    /// The one of this process, made when first asked for; a forked child makes its own.
    ///
    /// # Errors
    /// `Io` when the user is out of instances (fs.inotify.max_user_instances) or the process of
    /// descriptors.
    pub(crate) fn of_process() -> Result<Arc<Self>> {
        static ONE: PerProcess<Option<Arc<Deaths>>> = PerProcess::new();
        let mut one = ONE.get().lock().unwrap_or_else(|e| e.into_inner());
        if let Some(deaths) = &*one
            && deaths.fd.ours().is_some()
        {
            return Ok(Arc::clone(deaths));
        }
        // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
        let fd = unsafe {
            match libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) {
                fd if fd >= 0 => KeptFd::new(OwnedFd::from_raw_fd(fd), Path::new("inotify"))?,
                _ => return Err(syserr::last("make", "an inotify descriptor")),
            }
        };
        let deaths = Arc::new(Self { fd });
        *one = Some(Arc::clone(&deaths));
        Ok(deaths)
    }

    /// Watches the file of a node; again is harmless. `false`: it cannot be watched, or it is gone.
    /// Who asks looks at the node after this, not before.
    pub(crate) fn watch(&self, path: &Path) -> bool {
        let Some(fd) = self.fd.ours() else { return false };
        tidy(fd);
        let Ok(path) = syserr::c_path(path) else { return false };
        let events = libc::IN_CLOSE_WRITE | libc::IN_DELETE_SELF | libc::IN_DONT_FOLLOW;
        // SAFETY: the path lives through the call.
        unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), events) >= 0 }
    }
}

/// Throws unread news away when there are many. A set that has not taken them yet then looks at the
/// end of its slice.
fn tidy(fd: BorrowedFd<'_>) {
    let fd = fd.as_raw_fd();
    let mut unread: libc::c_int = 0;
    // SAFETY: FIONREAD stores one int; the buffer has the length given.
    unsafe {
        if libc::ioctl(fd, libc::FIONREAD, &raw mut unread) != 0 || unread < UNREAD_BYTES_MAX {
            return;
        }
        let mut buffer = [0u64; 512];
        let bytes = size_of_val(&buffer);
        while libc::read(fd, buffer.as_mut_ptr().cast(), bytes) > 0 {}
    }
}

impl AsFd for Deaths {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;
    use crate::os::fixture::{TempDir, fork_child, until};
    use crate::os::sleep::poll::{Epoll, PollFd, READABLE, poll};
    use crate::os::time::deadline::Deadline;

    #[test]
    fn a_number_that_is_another_files_is_not_read() {
        let dir = TempDir::new("deaths-closed");
        let path = dir.join("7");
        std::fs::write(&path, [0; 4096]).unwrap();
        let large = dir.join("large");
        std::fs::write(&large, vec![1; 2 * UNREAD_BYTES_MAX as usize]).unwrap();
        let child = fork_child(|| {
            let deaths = Deaths::of_process().unwrap();
            let number = deaths.fd.number();
            crate::os::fixture::close_all_descriptors();
            let files: Vec<_> =
                (0..=number).map(|_| std::fs::File::open(&large).unwrap()).collect();
            let watched = deaths.watch(&path);
            let read = files.iter().any(|mut file| file.stream_position().unwrap() > 0);
            let anew = Deaths::of_process().is_ok_and(|deaths| deaths.watch(&path));
            i32::from(watched || !anew) + 2 * i32::from(read)
        });
        assert_eq!(child.wait(), 0);
    }

    #[test]
    fn the_death_of_a_files_writer_reaches_every_set() {
        let dir = TempDir::new("deaths");
        let path = dir.join("7");
        std::fs::write(&path, [0; 4096]).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let child = fork_child(|| {
            loop {
                std::thread::park();
            }
        });
        let deaths = Deaths::of_process().unwrap();
        let sets = [Epoll::new().unwrap(), Epoll::new().unwrap()];
        let ready = |set: &Epoll| {
            poll(&mut [PollFd::new(set.as_fd().as_raw_fd(), READABLE)], Deadline::AT_ONCE) == 1
        };
        for set in &sets {
            set.add(deaths.as_fd(), 0).unwrap();
        }
        assert!(deaths.watch(&path) && deaths.watch(&path));
        assert!(!deaths.watch(&dir.join("8")));
        // Readers do not count, nor does a copy of the descriptor.
        drop((std::fs::read(&path).unwrap(), file));
        for set in &sets {
            set.take(|_| {});
            assert!(!ready(set));
        }
        child.kill();
        for set in &sets {
            until(|| ready(set));
        }
    }
}
