//! Priorities, memory that stays, timers that are not rounded.
#![allow(unsafe_code)]

use crate::os::syserr;
use crate::{Error, ErrorKind, Result};

/// Gives the calling thread SCHED_FIFO. Errors: `InvalidArgument`, `Permission`.
pub(crate) fn fifo(priority: u8) -> Result<()> {
    let object = format!("SCHED_FIFO {priority}");
    if !(1..=99).contains(&priority) {
        let remedy = "use a priority from 1 to 99";
        return Err(Error::new(ErrorKind::InvalidArgument, "ask for", object, remedy));
    }
    // SAFETY: 0 is the calling thread; all zeroes are a valid `param`, read during the call.
    let rc = unsafe {
        let mut param: libc::sched_param = std::mem::zeroed();
        param.sched_priority = i32::from(priority);
        // The call itself: musl's function of this name refuses.
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const param)
    };
    if rc == 0 {
        return Ok(());
    }
    if syserr::errno() == libc::EPERM {
        let remedy = "raise the limit rtprio (`ulimit -r`), or grant CAP_SYS_NICE";
        return Err(Error::new(ErrorKind::Permission, "ask for", object, remedy));
    }
    Err(syserr::last("ask for", object))
}

/// Keeps all pages of the process in RAM, now and later. Errors: `Permission`, `OutOfMemory`.
pub(crate) fn lock_memory() -> Result<()> {
    // SAFETY: takes flags only.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => {
            let code = syserr::errno();
            let kind = if code == libc::ENOMEM { ErrorKind::OutOfMemory } else { ErrorKind::Io };
            let kind = if code == libc::EPERM { ErrorKind::Permission } else { kind };
            let remedy = "raise the limit memlock (`ulimit -l`), or grant CAP_IPC_LOCK";
            Err(Error::new(kind, "lock in RAM", "the memory of this process", remedy))
        }
    }
}

/// Lets timers of the calling thread fire when they are due; by default they may be 50 us late.
pub(crate) fn no_timer_slack() {
    // SAFETY: takes integers; 1 ns is the least.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Touches `bytes` of the stack below the caller; returns how many.
#[inline(never)]
pub(crate) fn touch_stack(bytes: usize) -> usize {
    const PART: usize = 16 << 10;
    let mut part = [0u8; PART];
    std::hint::black_box(&mut part);
    match bytes.saturating_sub(PART) {
        0 => PART.min(bytes),
        rest => {
            let below = touch_stack(rest);
            // After the call, so that this frame stays while the next ones are touched.
            std::hint::black_box(&mut part);
            PART + below
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_out_of_range_are_refused() {
        for priority in [0, 100] {
            assert_eq!(fifo(priority).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn the_stack_is_touched_as_far_as_asked() {
        assert_eq!(touch_stack(0), 0);
        assert_eq!(touch_stack(100 << 10), 100 << 10);
    }
}
