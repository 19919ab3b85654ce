//! Being asked to end.

use std::ffi::c_int;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use outlive::internals::fork_generation;
use outlive::{Deadline, Shutdown};

use crate::status::{Fail, invalid, outlive_status, run};

/// Kept for good: C has no end of a scope. Of the process `OWNER`.
static SHUTDOWN: OnceLock<ManuallyDrop<Shutdown>> = OnceLock::new();
/// The fork generation of the process that installed it; 0: none. In a forked child it is
/// another's, whose process id may be the child's, in a namespace of its own.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// What this process installed.
fn installed() -> Option<&'static Shutdown> {
    let shutdown = SHUTDOWN.get().filter(|_| OWNER.load(Relaxed) == fork_generation());
    shutdown.map(|shutdown| &**shutdown)
}

#[cold]
fn install() -> Result<&'static Shutdown, Fail> {
    // Never dropped, and so never removed: also where another thread was quicker, or the parent.
    let made = ManuallyDrop::new(Shutdown::on_signals()?);
    let shutdown = SHUTDOWN.get_or_init(|| made);
    OWNER.store(fork_generation(), Relaxed);
    Ok(shutdown)
}

/// From now on SIGTERM and SIGINT ask this process to end, instead of ending it. Return from `main`
/// then, and close the nodes: others see that it left, not that it died. A second signal of a kind
/// does what it did before, unless it comes within 250 ms (`timeout` sends two). A handler of the
/// program's is called as well, and an ignored signal stays ignored. A forked child is as if this
/// was not called: call it there again.
///
/// In a wait set it is `OUTLIVE_SHUTDOWN`. `fd`, unless NULL, gets a descriptor that is readable
/// once the process was asked to end, for a loop of your own. Do not read from it or close it.
///
/// Example:
///
///     must(outlive_shutdown_on_signals(NULL));
///     raise(SIGTERM); // as systemd does
///     must(outlive_shutdown_wait(OUTLIVE_FOREVER));
///     printf("ending because of signal %d\n", outlive_shutdown_signal());
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_on_signals(
    fd: Option<&mut MaybeUninit<c_int>>,
) -> outlive_status {
    run(|| {
        let shutdown = installed().map_or_else(install, Ok)?;
        if let Some(fd) = fd {
            fd.write(shutdown.as_fd().as_raw_fd());
        }
        Ok(())
    })
}

/// Whether this process was asked to end; it stays so.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_is_asked() -> bool {
    installed().is_some_and(Shutdown::is_asked)
}

/// Asks this process to end, as a signal does, once `outlive_shutdown_on_signals` was called.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_ask() {
    if let Some(shutdown) = installed() {
        shutdown.ask();
    }
}

/// The number of the signal that asked first; 0 while none did.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_signal() -> c_int {
    installed().and_then(Shutdown::signal).unwrap_or(0)
}

#[cold]
fn not_installed(what: &str) -> Fail {
    invalid(what, "call outlive_shutdown_on_signals first; a forked child calls it again")
}

/// What `OUTLIVE_SHUTDOWN` is in a wait.
pub(crate) fn member() -> Result<&'static Shutdown, Fail> {
    installed().ok_or_else(|| not_installed("a member of kind OUTLIVE_SHUTDOWN"))
}

/// Waits until this process is asked to end. `OUTLIVE_TIMEOUT`: the deadline passed first.
/// `OUTLIVE_INVALID_ARGUMENT`: this process has not called `outlive_shutdown_on_signals`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_shutdown_wait(deadline_ns: u64) -> outlive_status {
    run(|| {
        let shutdown = installed().ok_or_else(|| not_installed("outlive_shutdown_wait"))?;
        match shutdown.wait(Deadline::at_ns(deadline_ns).remaining()) {
            true => Ok(()),
            false => Err(Fail::Quiet(outlive_status::OUTLIVE_TIMEOUT)),
        }
    })
}
