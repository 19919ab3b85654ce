//! An opt-in that turns fatal faults into SIGKILL.
//!
//! A process that dies of a fault writes its core first, if it may, and its threads hold their
//! tokens until that is done: 17 s for 1 GB. SIGKILL writes none, so the death is told at once.
#![allow(unsafe_code)]

use std::ptr;

use super::kill::kill;
use crate::os::fs::sigbus;
use crate::sync::{AtomicU32, Ordering, fault};

/// What the kernel sends for a thread's own error, and `abort`. SIGBUS is `sigbus`'s.
const FATAL: [i32; 6] =
    [libc::SIGSEGV, libc::SIGILL, libc::SIGFPE, libc::SIGABRT, libc::SIGSYS, libc::SIGTRAP];

/// From here on a fatal fault, in any thread, kills the process at once: no core, no handler of
/// others. Again is harmless.
pub(crate) fn kill_on_faults() {
    if fault("faults.not_killed") {
        return;
    }
    FATAL.iter().for_each(|signal| handle(*signal));
    if !sigbus::kill_instead() {
        handle(libc::SIGBUS);
    }
}

/// `kill_on_faults` if the environment asks for it with `OUTLIVE_KILL_ON_FAULTS=1`. Asked once.
pub(crate) fn as_environment_says() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    if ASKED.swap(1, Ordering::Relaxed) == 0
        && std::env::var_os("OUTLIVE_KILL_ON_FAULTS").is_some_and(|v| v == "1")
    {
        kill_on_faults();
    }
}

fn handle(signal: i32) {
    // SAFETY: a sigaction is plain data; the handler makes system calls only.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_fault as *const () as usize;
        new.sa_flags = libc::SA_ONSTACK;
        libc::sigemptyset(&mut new.sa_mask);
        libc::sigaction(signal, &new, ptr::null_mut());
    }
}

extern "C" fn on_fault(_: i32) {
    kill();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::fork_child;

    #[test]
    fn a_fault_kills_at_once_and_writes_no_core() {
        let faults: [fn(); 4] = [
            // SAFETY: ends this child.
            || unsafe { libc::abort() },
            // SAFETY: a fault is what is asked for.
            || unsafe { ptr::without_provenance_mut::<u64>(8).write_volatile(1) },
            // SAFETY: sends a signal to this child.
            || unsafe { _ = libc::raise(libc::SIGFPE) },
            // SAFETY: as above.
            || unsafe { _ = libc::raise(libc::SIGBUS) },
        ];
        for fault in faults {
            let child = fork_child(|| {
                // A failing test leaves no core either.
                let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                // SAFETY: sets a limit of this child.
                unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
                kill_on_faults();
                fault();
                0
            });
            assert_eq!(child.wait(), -libc::SIGKILL);
        }
    }
}
