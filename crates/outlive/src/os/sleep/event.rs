//! Something that happens once: a word that can be slept on, and a descriptor that becomes
//! readable. A signal handler may raise it.
//!
//! # Theory of operation
//! Raising stores the word, wakes the sleepers on it and writes to an eventfd, if one was made:
//! system calls that a handler may make. Whoever makes the descriptor looks at the word afterwards,
//! and whoever raises looks for the descriptor afterwards, so that one of them sees the other.
//!
//! In a forked child the word is its own, and the descriptor is its parent's: it counts as none. It
//! stays open there, for the number may be that of another file by now.
//!
//! | label | stores | loads | carries |
//! |---|---|---|---|
//! | EVENT_RAISED | `raise`, SeqCst | `raised`, `fd` | nothing; against EVENT_FD |
//! | EVENT_FD | `fd`, SeqCst | `raise`, SeqCst | nothing; against EVENT_RAISED |
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use super::futex;
use crate::Result;
use crate::os::fs::kept;
use crate::os::process::fork;
use crate::os::syserr;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fault};

/// See the module.
#[derive(Debug)]
pub(crate) struct Event {
    /// By what it was raised; 0: not.
    raised: AtomicU32,
    /// The eventfd plus 1, and above it the fork generation that made it; 0: none yet.
    fd: AtomicU64,
}

impl Event {
    pub(crate) const fn new() -> Self {
        Self { raised: AtomicU32::new(0), fd: AtomicU64::new(0) }
    }

    /// The word to sleep on while it is 0.
    pub(crate) fn word(&self) -> &AtomicU32 {
        &self.raised
    }

    /// By what it was raised first; 0: not.
    #[inline]
    pub(crate) fn raised(&self) -> u32 {
        // ORDERING(EVENT_RAISED): pairs with `raise`.
        self.raised.load(SeqCst)
    }

    /// Raises it, unless it is. Async-signal-safe; `errno` stays.
    pub(crate) fn raise(&self, by: u32) {
        let saved = syserr::errno();
        // ORDERING(EVENT_RAISED): pairs with `raised` and `fd`.
        let _ = self.raised.compare_exchange(0, by, SeqCst, Relaxed);
        if fault("stop.no_wake") {
            return;
        }
        futex::wake(&self.raised, if fault("event.wakes_one") { 1 } else { i32::MAX });
        if fault("event.fd_unsignalled") {
            return;
        }
        self.made().into_iter().for_each(signal);
        syserr::set_errno(saved);
    }

    /// It has not happened. By who waits for it; what is raised meanwhile may be lost.
    pub(crate) fn clear(&self) {
        self.raised.store(0, Relaxed);
        let mut count = 0u64;
        if let Some(fd) = self.made() {
            // SAFETY: 8 bytes that live through the call.
            unsafe { libc::read(fd, (&raw mut count).cast(), size_of_val(&count)) };
        }
        // Raised in between: the descriptor says so again.
        if self.raised() != 0 {
            self.made().into_iter().for_each(signal);
        }
    }

    /// Its descriptor, if this process has made it.
    fn made(&self) -> Option<RawFd> {
        // ORDERING(EVENT_FD): pairs with `fd`.
        ours(self.fd.load(SeqCst))
    }

    /// The descriptor that is readable once it was raised.
    ///
    /// # Errors
    /// `Io` when the process is out of descriptors.
    pub(crate) fn fd(&self) -> Result<BorrowedFd<'_>> {
        fork::install();
        loop {
            let kept = self.fd.load(Relaxed);
            if let Some(fd) = ours(kept) {
                // SAFETY: once made it stays open until `self` is dropped.
                return Ok(unsafe { BorrowedFd::borrow_raw(fd) });
            }
            let event = make()?;
            let new = u64::from(fork::fork_generation()) << 32 | (event.as_raw_fd() as u64 + 1);
            // ORDERING(EVENT_FD): pairs with `made`, of `raise`.
            if self.fd.compare_exchange(kept, new, SeqCst, Relaxed).is_err() {
                continue; // another thread was quicker
            }
            let fd = event.into_raw_fd();
            // ORDERING(EVENT_RAISED): pairs with `raise`, which did not see the descriptor.
            if self.raised() != 0 {
                signal(fd);
            }
        }
    }
}

/// The descriptor that is kept, if it is of this process, and nobody has closed it.
fn ours(kept: u64) -> Option<RawFd> {
    let ours = (kept >> 32) as u32 == fork::fork_generation();
    let number = (ours && kept as u32 != 0).then(|| kept as u32 as RawFd - 1);
    number.filter(|number| kept::is_anonymous(*number))
}

fn make() -> Result<OwnedFd> {
    // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
    unsafe {
        match libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(syserr::last("make", "a descriptor to be woken by")),
        }
    }
}

/// Async-signal-safe.
fn signal(fd: RawFd) {
    let one = 1u64;
    // SAFETY: 8 bytes that live through the call, to a descriptor that is open.
    unsafe { libc::write(fd, (&raw const one).cast(), size_of_val(&one)) };
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(fd) = ours(self.fd.load(Relaxed)) {
            // SAFETY: made by `fd` in this process; nobody else knows of it.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::fork_child;

    #[test]
    fn a_number_that_is_another_files_is_not_written() {
        let dir = crate::os::fixture::TempDir::new("event-closed");
        let child = fork_child(|| {
            let event = Event::new();
            let number = event.fd().unwrap().as_raw_fd();
            crate::os::fixture::close_all_descriptors();
            let make = |n: i32| std::fs::File::create(dir.join(&n.to_string())).unwrap();
            let files: Vec<_> = (0..=number).map(make).collect();
            event.raise(1);
            event.clear();
            event.raise(1);
            let again = event.fd().unwrap().as_raw_fd();
            drop(event);
            let is_alone = |file: &std::fs::File| file.metadata().is_ok_and(|m| m.len() == 0);
            i32::from(again == number || !files.iter().all(is_alone))
        });
        assert_eq!(child.wait(), 0);
    }

    /// As a daemon does: it closes what it inherited and opens files of its own.
    #[test]
    fn a_forked_child_closes_no_descriptor_that_has_the_number_of_the_parents() {
        let event = Event::new();
        let parents = event.fd().unwrap().as_raw_fd();
        let child = fork_child(|| {
            // SAFETY: system calls on descriptors of this process, which runs nothing else.
            unsafe {
                libc::dup2(0, parents);
                let own = event.fd().map_or(-1, |fd| fd.as_raw_fd());
                if own < 0 || own == parents {
                    return 1;
                }
                if libc::fcntl(parents, libc::F_GETFD) < 0 {
                    return 2;
                }
                drop(event);
                i32::from(libc::fcntl(own, libc::F_GETFD) >= 0) * 3
            }
        });
        assert_eq!(child.wait(), 0);
    }
}
