//! The system calls of the demo: death with the parent, a directory's lock.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};

/// Has the kernel ask what `command` starts to stop when the thread that starts it ends, however it
/// ends.
pub(crate) fn stop_with_parent(command: &mut Command) {
    let parent = process::id();
    let ask = move || {
        // SAFETY: no pointers are passed.
        let parent_now = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            libc::getppid()
        };
        if parent_now as u32 == parent { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: two system calls, and no memory is allocated.
    unsafe { command.pre_exec(ask) };
}

/// Takes the file lock of an open directory without waiting; false when another process has it.
pub(crate) fn try_lock(dir: &File) -> bool {
    // SAFETY: the descriptor is open; no pointers are passed.
    unsafe { libc::flock(dir.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}
