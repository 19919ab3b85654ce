//! Being asked to end.

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;

use outlive::{Deadline, Shutdown};

use crate::status::{Fail, invalid, outlive_status, run};

/// Kept for good: C has no end of a scope.
static SHUTDOWN: OnceLock<Shutdown> = OnceLock::new();

/// From now on SIGTERM and SIGINT ask this process to end, instead of ending it; the second signal
/// of each kind does what it did before. Return from `main` then, and close the nodes: others see
/// that it left, not that it died. A handler of the program's is called as well, and an ignored
/// signal stays ignored.
///
/// In a wait set it is `OUTLIVE_SHUTDOWN`. `fd`, unless NULL, gets a descriptor that is readable
/// once the process was asked to end, for a loop of your own. Do not read from it or close it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_on_signals(
    fd: Option<&mut MaybeUninit<c_int>>,
) -> outlive_status {
    run(|| {
        let shutdown = match SHUTDOWN.get() {
            Some(shutdown) => shutdown,
            None => {
                let made = Shutdown::on_signals()?;
                SHUTDOWN.get_or_init(|| made)
            }
        };
        if let Some(fd) = fd {
            fd.write(shutdown.as_fd().as_raw_fd());
        }
        Ok(())
    })
}

/// Whether this process was asked to end; it stays so.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_is_asked() -> bool {
    SHUTDOWN.get().is_some_and(Shutdown::is_asked)
}

/// Asks this process to end, as a signal does, once `outlive_shutdown_on_signals` was called.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_ask() {
    if let Some(shutdown) = SHUTDOWN.get() {
        shutdown.ask();
    }
}

/// The number of the signal that asked first; 0 while none did.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_signal() -> c_int {
    SHUTDOWN.get().and_then(Shutdown::signal).unwrap_or(0)
}

/// What `OUTLIVE_SHUTDOWN` is in a wait.
pub(crate) fn member() -> Result<&'static Shutdown, Fail> {
    let remedy = "call outlive_shutdown_on_signals first";
    SHUTDOWN.get().ok_or_else(|| invalid("a member of kind OUTLIVE_SHUTDOWN", remedy))
}

/// Waits until this process is asked to end. `OUTLIVE_TIMEOUT`: the deadline passed first.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_wait(deadline_ns: u64) -> outlive_status {
    run(|| {
        let left = Deadline::at_ns(deadline_ns).remaining();
        match SHUTDOWN.get().is_some_and(|shutdown| shutdown.wait(left)) {
            true => Ok(()),
            false => Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
    })
}
