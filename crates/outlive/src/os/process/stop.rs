//! SIGTERM and SIGINT as a word that can be slept on and a descriptor that becomes readable.
//!
//! # Theory of operation
//! The handler raises an `event` by the signal's number. It stays out of the way of what was there
//! before:
//!
//! | before | at the first signal of its kind | at one that comes later than `SAME` |
//! |---|---|---|
//! | the default | noted | the default: it ends the process |
//! | ignored | still ignored: we install nothing | |
//! | a handler | noted, then that handler | the same |
//!
//! Some send one request as two signals: timeout(1) signals its child, then its whole group. The
//! second would kill who is about to leave in order.
//!
//! In a forked child it is as if nobody had installed it: the child has asked for nothing.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;

use super::fork;
use super::fork::per_process::PerProcess;
use crate::Result;
use crate::os::sleep::event::Event;
use crate::os::syserr;
use crate::os::time::clock;
use crate::sync::{AtomicU32, AtomicU64, MutexGuard, Ordering, fault};

/// The signals that ask to end.
const SIGNALS: [i32; 2] = [libc::SIGTERM, libc::SIGINT];
/// In place of a signal: the program asked itself.
pub(crate) const BY_ITSELF: u32 = 1 << 16;

/// What comes within this time after the first signal of its kind is the same request, ns. People
/// who press Ctrl-C once more wait longer.
const SAME: u64 = 250_000_000;

/// Raised by the signal that asked.
static ASKED: Event = Event::new();
/// Never raised: in place of `ASKED` in a child, which inherits that as its parent left it.
static NEVER: Event = Event::new();
/// Whose handler it is: the process that installed it.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// The same as of the fork generation, which is one load.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// What was there before, by `SIGNALS`: an address (or SIG_DFL) and flags; when one came first.
static BEFORE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static BEFORE_FLAGS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static CAME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether this process has installed it, and no parent of it.
fn is_own() -> bool {
    GENERATION.load(Ordering::Relaxed) == fork::fork_generation()
}

/// What is raised by who asks.
pub(crate) fn event() -> &'static Event {
    if is_own() { &ASKED } else { &NEVER }
}

/// The signal that asked this process to end, or `BY_ITSELF`; 0 for none.
pub(crate) fn asked() -> u32 {
    event().raised()
}

/// Asks, as a signal does. Async-signal-safe.
pub(crate) fn ask(by: u32) {
    if is_own() {
        ASKED.raise(by);
    }
}

/// The descriptor that is readable once it was asked; after `install`.
pub(crate) fn fd() -> BorrowedFd<'static> {
    // SAFETY: 0 is what every process has. `install` has made the descriptor; a child that has only
    // inherited it may be out of them.
    event().fd().unwrap_or_else(|_| unsafe { BorrowedFd::borrow_raw(0) })
}

fn lock() -> MutexGuard<'static, u32> {
    static HANDLES: PerProcess<u32> = PerProcess::new();
    HANDLES.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// Installs the handlers, once for however many `remove` them; returns for which process.
///
/// # Errors
/// `Io` when the process is out of descriptors.
pub(crate) fn install() -> Result<u32> {
    let mut handles = lock();
    let (me, generation) = (std::process::id(), fork::fork_generation());
    if *handles == 0 {
        forget();
    }
    // ORDERING(STOP_OWNER): pairs with the handler; what it needs is stored before.
    // Both: a child may have its parent's number, in a namespace of its own.
    if OWNER.load(Ordering::Acquire) != me || GENERATION.load(Ordering::Relaxed) != generation {
        ASKED.fd()?;
        GENERATION.store(generation, Ordering::Relaxed);
        OWNER.store(me, Ordering::Release);
    }
    if *handles == 0 {
        (0..SIGNALS.len()).for_each(catch);
    }
    *handles += 1;
    Ok(generation)
}

/// Puts back what was there before, with the last of those who installed for the process `of`.
pub(crate) fn remove(of: u32) {
    if of != fork::fork_generation() {
        return;
    }
    let mut handles = lock();
    *handles = handles.saturating_sub(1);
    if *handles == 0 {
        for which in 0..SIGNALS.len() {
            put_back(which);
        }
    }
}

/// Nobody has asked yet.
fn forget() {
    ASKED.clear();
    CAME.iter().for_each(|came| came.store(0, Ordering::Relaxed));
}

fn catch(which: usize) {
    // SAFETY: sigaction structs are plain data; the handler is async-signal-safe, and what was
    // there is noted before it can run.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(SIGNALS[which], std::ptr::null(), &mut old);
        if old.sa_sigaction == libc::SIG_IGN || old.sa_sigaction == on_stop as *const () as usize {
            return;
        }
        BEFORE_FLAGS[which].store(old.sa_flags as u64, Ordering::Relaxed);
        // ORDERING(STOP_BEFORE): pairs with `before`; carries the flags.
        BEFORE[which].store(old.sa_sigaction as u64, Ordering::Release);
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_stop as *const () as usize;
        // Calls of the program go on: it is woken where it waits for us.
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut new.sa_mask);
        libc::sigaction(SIGNALS[which], &new, std::ptr::null_mut());
    }
}

/// What was there before, and its flags.
fn before(which: usize) -> (usize, i32) {
    // ORDERING(STOP_BEFORE): pairs with `catch`.
    let handler = BEFORE[which].load(Ordering::Acquire) as usize;
    (handler, BEFORE_FLAGS[which].load(Ordering::Relaxed) as i32)
}

/// Async-signal-safe. One that has taken the place of ours meanwhile stays.
fn put_back(which: usize) {
    // SAFETY: as in `catch`.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(SIGNALS[which], std::ptr::null(), &mut now);
        if now.sa_sigaction != on_stop as *const () as usize {
            return;
        }
        let (handler, flags) = before(which);
        let mut old: libc::sigaction = std::mem::zeroed();
        old.sa_sigaction = handler;
        old.sa_flags = flags;
        libc::sigemptyset(&mut old.sa_mask);
        libc::sigaction(SIGNALS[which], &old, std::ptr::null_mut());
    }
}

/// Async-signal-safe: atomics and system calls only.
extern "C" fn on_stop(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let saved = syserr::errno();
    let Some(which) = SIGNALS.iter().position(|s| *s == signal) else { return };
    let (handler, flags) = before(which);
    // SAFETY: no pointers.
    let me = unsafe { libc::getpid() } as u32;
    // ORDERING(STOP_OWNER): pairs with `install`.
    let ours = OWNER.load(Ordering::Acquire) == me && is_own();
    let now = clock::now_ns();
    let first = CAME[which].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    let same = if fault("stop.repeat_kills") { 0 } else { SAME };
    let again = first.is_err_and(|first| now.saturating_sub(first) >= same);
    if ours {
        ask(signal as u32);
    }
    // SAFETY: `handler` is what sigaction returned, of the kind its flags say; the calls are
    // async-signal-safe.
    unsafe {
        if handler == libc::SIG_DFL {
            if again || !ours {
                put_back(which);
                // Blocked until this handler returns, then fatal.
                let tid = libc::syscall(libc::SYS_gettid);
                libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal);
            }
        } else if flags & libc::SA_SIGINFO != 0 {
            type Full = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Full>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
        }
    }
    syserr::set_errno(saved);
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::os::fixture::fork_child;
    use crate::os::sleep::futex;
    use crate::os::sleep::poll::{PollFd, READABLE, poll};
    use crate::os::time::deadline::Deadline;

    static SEEN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn of_the_program(_signal: i32) {
        SEEN.fetch_add(1, Ordering::Relaxed);
    }

    fn set(signal: i32, handler: usize) {
        // SAFETY: as in `catch`; the handlers are SIG_DFL, SIG_IGN and one that counts.
        unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = handler;
            libc::sigaction(signal, &new, std::ptr::null_mut());
        }
    }

    fn send(signal: i32) {
        // SAFETY: no pointers.
        unsafe { libc::kill(libc::getpid(), signal) };
    }

    fn readable() -> bool {
        poll(&mut [PollFd::new(fd().as_raw_fd(), READABLE)], Deadline::AT_ONCE) == 1
    }

    #[test]
    fn the_first_signal_asks_and_a_later_one_ends_the_process() {
        let child = fork_child(|| {
            set(libc::SIGTERM, libc::SIG_DFL);
            if install().is_err() || asked() != 0 || readable() {
                return 1;
            }
            send(libc::SIGTERM);
            if asked() != libc::SIGTERM as u32 || !readable() {
                return 2;
            }
            clock::set_test_offset(SAME as i64);
            send(libc::SIGTERM);
            3
        });
        assert_eq!(child.wait(), -libc::SIGTERM);
    }

    #[test]
    fn a_request_that_is_sent_as_two_signals_is_one() {
        let child = fork_child(|| {
            set(libc::SIGTERM, libc::SIG_DFL);
            if install().is_err() {
                return 1;
            }
            send(libc::SIGTERM);
            // However long it takes to get here, no more than a moment has passed by this clock.
            clock::set_test_offset(-(SAME as i64) * 1000);
            send(libc::SIGTERM);
            if asked() == libc::SIGTERM as u32 { 0 } else { 2 }
        });
        assert_eq!(child.wait(), 0);
    }

    #[test]
    fn a_handler_of_the_program_is_called_and_put_back_and_what_is_ignored_stays_so() {
        let child = fork_child(|| {
            set(libc::SIGINT, of_the_program as *const () as usize);
            set(libc::SIGTERM, libc::SIG_IGN);
            let (Ok(of), Ok(_)) = (install(), install()) else { return 1 };
            send(libc::SIGTERM);
            if asked() != 0 {
                return 2;
            }
            send(libc::SIGINT);
            send(libc::SIGINT);
            if asked() != libc::SIGINT as u32 || SEEN.load(Ordering::Relaxed) != 2 {
                return 3;
            }
            remove(of);
            remove(of);
            send(libc::SIGINT);
            if SEEN.load(Ordering::Relaxed) == 3 { 0 } else { 4 }
        });
        assert_eq!(child.wait(), 0);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let child = fork_child(|| {
            set(libc::SIGTERM, libc::SIG_DFL);
            if install().is_err() {
                return 1;
            }
            // SAFETY: a grandchild that only signals us and leaves.
            unsafe {
                if libc::fork() == 0 {
                    let parent = libc::getppid();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    libc::kill(parent, libc::SIGTERM);
                    libc::_exit(0);
                }
            }
            while asked() == 0 {
                futex::wait(event().word(), 0, Deadline::NEVER);
            }
            0
        });
        assert_eq!(child.wait(), 0);
    }

    #[test]
    fn a_forked_child_is_ended_as_if_nobody_had_installed_anything() {
        let child = fork_child(|| {
            set(libc::SIGTERM, libc::SIG_DFL);
            if install().is_err() {
                return 1;
            }
            // SAFETY: a grandchild that only signals itself; then our own child is reaped.
            let status = unsafe {
                let pid = libc::fork();
                if pid == 0 {
                    send(libc::SIGTERM);
                    libc::_exit(1);
                }
                let mut status = 0;
                libc::waitpid(pid, &mut status, 0);
                status
            };
            let ended = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGTERM;
            if !ended || asked() != 0 || readable() {
                return 2;
            }
            ask(BY_ITSELF);
            let asked_there = fork_child(|| i32::from(asked() != 0)).wait();
            if asked() == BY_ITSELF && asked_there == 0 { 0 } else { 3 }
        });
        assert_eq!(child.wait(), 0);
    }

    /// It may drop what it inherited after it has installed its own.
    #[test]
    fn a_forked_child_that_removes_what_its_parent_installed_keeps_its_own() {
        let child = fork_child(|| {
            set(libc::SIGTERM, libc::SIG_DFL);
            let Ok(of) = install() else { return 1 };
            let child = fork_child(|| {
                if install().is_err() {
                    return 2;
                }
                remove(of);
                send(libc::SIGTERM);
                if asked() == libc::SIGTERM as u32 { 0 } else { 3 }
            });
            if child.wait() == 0 { 0 } else { 4 }
        });
        assert_eq!(child.wait(), 0);
    }
}
