//! The system calls of the demo: signals as a flag, death with the parent, a directory's lock.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn ask_to_stop(_signal: libc::c_int) {
    STOP.store(true, Relaxed);
}

/// From here on SIGINT and SIGTERM only raise the flag that [`stop_asked`] reads; each of them a
/// second time ends the process at once.
pub(crate) fn catch_stop_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: all zeroes is a valid sigaction: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = ask_to_stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESETHAND;
        // SAFETY: `action` is complete; its handler only stores to an atomic.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

/// Whether SIGINT or SIGTERM came.
pub(crate) fn stop_asked() -> bool {
    STOP.load(Relaxed)
}

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
