//! System calls without a safe wrapper elsewhere.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, waitpid};

/// Runs `prepare` in the child between fork and exec. It must not allocate nor take a lock: the
/// other threads of this process are not there.
pub(crate) fn in_child(
    command: &mut Command,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the one caller, `spawn`, makes system calls only.
    unsafe { command.pre_exec(prepare) };
}

/// The signal does what it does by default, whatever handler was inherited. Async-signal-safe.
pub(crate) fn default_action(signal: Signal) {
    // SAFETY: sets no handler.
    unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) };
}

/// Gives the calling process SCHED_FIFO.
pub(crate) fn fifo(priority: u8) -> io::Result<()> {
    // SAFETY: all zeroes is a valid sched_param; musl's has more fields than glibc's.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = i32::from(priority);
    // The call itself: musl's function of this name refuses.
    // SAFETY: 0 is the calling thread; `param` is read during the call.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &param) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A child that has ended and is not reaped.
pub(crate) fn ended_child() -> Option<i32> {
    // SAFETY: all zeroes is a valid siginfo.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable for the call.
    let rc = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, flags) };
    // SAFETY: after success the field is set, 0 if no child has ended.
    let pid = unsafe { info.si_pid() };
    (rc == 0 && pid > 0).then_some(pid)
}

/// Reaps a child if it has ended; false if it is none of ours.
pub(crate) fn reap(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| waitpid(Some(pid), WaitOptions::NOHANG).is_ok())
}

/// Whether the process of a pidfd has ended.
pub(crate) fn has_ended(process: impl AsFd) -> bool {
    let mut fds = [PollFd::new(&process, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(n) if n > 0)
}

/// Processes that lose their parent become children of this one.
pub(crate) fn adopt_grandchildren() {
    // SAFETY: integers only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// A file at the limit of its size is an error of the write and no signal.
pub(crate) fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal installs no handler.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
