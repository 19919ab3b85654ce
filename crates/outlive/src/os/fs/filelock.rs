//! OFD locks on whole files: released by the kernel when the last copy of the descriptor is gone.
//!
//! The lock belongs to the open file description, so a thread that ends does not release it, and
//! two descriptors of one process exclude each other like two processes.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

use crate::os::process::sched;
use crate::os::syserr;
use crate::os::time::deadline::Deadline;
use crate::{Error, ErrorKind, Result};

/// Takes the write lock if nobody else holds a lock. The descriptor must be writable.
///
/// # Crash safety
/// **Strict.** The kernel drops the lock with the last descriptor.
pub(crate) fn try_lock_write(fd: &impl AsFd) -> Result<bool> {
    let mut lock = whole_file(libc::F_WRLCK as _);
    match control(fd, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(libc::EAGAIN | libc::EACCES) => Ok(false),
        Err(e) => Err(syserr::from_code("lock", "file", e)),
    }
}

/// Takes the shared lock, which any number may hold, unless somebody holds the write lock.
///
/// # Crash safety
/// **Strict.** As `try_lock_write`.
pub(crate) fn try_lock_read(fd: &impl AsFd) -> Result<bool> {
    let mut lock = whole_file(libc::F_RDLCK as _);
    match control(fd, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(libc::EAGAIN | libc::EACCES) => Ok(false),
        Err(e) => Err(syserr::from_code("lock", "file", e)),
    }
}

/// Takes the write lock, asking again every 50 us to 2 ms. Errors: `Timeout` past `deadline`.
pub(crate) fn lock_write_until(fd: &impl AsFd, deadline: Deadline) -> Result<()> {
    let mut pause_ns = 50_000;
    while !try_lock_write(fd)? {
        if deadline.has_passed() {
            let remedy = "another process holds it: see `outlive doctor`, or allow more time";
            return Err(Error::new(ErrorKind::Timeout, "lock", "file", remedy));
        }
        sched::sleep_until(deadline.min(Deadline::in_ns(pause_ns)));
        pause_ns = (pause_ns * 2).min(2_000_000);
    }
    Ok(())
}

/// Lets go of the lock of this descriptor.
pub(crate) fn unlock(fd: &impl AsFd) {
    let mut lock = whole_file(libc::F_UNLCK as _);
    // Unlocking a valid descriptor cannot fail but for lack of kernel memory to split a range,
    // and a whole file has none to split.
    let _ = control(fd, libc::F_OFD_SETLK, &mut lock);
}

/// Whether another descriptor, here or in any process, holds the write lock. Read access is enough.
///
/// The descriptor's own lock does not count: ask on a descriptor of its own.
pub(crate) fn is_locked(fd: &impl AsFd) -> Result<bool> {
    let mut lock = whole_file(libc::F_RDLCK as _);
    control(fd, libc::F_OFD_GETLK, &mut lock)
        .map_err(|e| syserr::from_code("ask for the lock of", "file", e))?;
    Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
}

fn whole_file(kind: libc::c_short) -> libc::flock {
    // SAFETY: a flock is integers; all zero is "from 0 to the end", and l_pid must be 0.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock
}

fn control(
    fd: &impl AsFd,
    command: libc::c_int,
    lock: &mut libc::flock,
) -> std::result::Result<(), i32> {
    loop {
        // SAFETY: the descriptor is open for the borrow, `lock` is a valid flock for the command.
        let rc = unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), command, &raw mut *lock) };
        if rc != -1 {
            return Ok(());
        }
        match syserr::errno() {
            libc::EINTR => {}
            e => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};

    use super::*;
    use crate::os::fixture::{TempDir, until};

    fn two(dir: &TempDir) -> (File, File) {
        let path = dir.join("lock");
        let one = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let two = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        (one, two)
    }

    #[test]
    fn two_descriptors_exclude_each_other() {
        let dir = TempDir::new("filelock");
        let (one, two) = two(&dir);
        assert!(try_lock_write(&one).unwrap());
        assert!(try_lock_write(&one).unwrap(), "again is harmless");
        assert!(!try_lock_write(&two).unwrap());
        unlock(&one);
        assert!(try_lock_write(&two).unwrap());
    }

    #[test]
    fn a_read_only_descriptor_can_ask() {
        let dir = TempDir::new("filelock");
        let (one, _two) = two(&dir);
        let asking = File::open(dir.join("lock")).unwrap();
        assert!(!is_locked(&asking).unwrap());
        assert!(try_lock_write(&one).unwrap());
        assert!(is_locked(&asking).unwrap());
        assert!(!is_locked(&one).unwrap(), "one's own lock does not count");
        drop(one);
        // A child that another test forked meanwhile may have a copy for a moment.
        until(|| !is_locked(&asking).unwrap());
    }

    #[test]
    fn waiting_for_a_lock_ends_at_the_deadline_or_with_the_lock() {
        let dir = TempDir::new("filelock");
        let (one, two) = two(&dir);
        assert!(try_lock_write(&one).unwrap());
        let deadline = Deadline::in_ns(5_000_000);
        assert_eq!(lock_write_until(&two, deadline).unwrap_err().kind(), ErrorKind::Timeout);
        assert!(deadline.has_passed());
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| lock_write_until(&two, Deadline::NEVER));
            unlock(&one);
            waiter.join().unwrap().unwrap();
        });
    }
}
