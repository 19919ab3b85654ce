//! The thread that holds a node's liveness token, and does nothing else.
//!
//! # Theory of operation
//! The kernel marks a futex word at the end of the *thread* that holds it, so the thread must end
//! when the process does and not before. This one runs no code of anybody else: all signals are
//! blocked in it, nobody knows its handle, and it only sleeps. Its robust list, head and only
//! entry, lies in the node's file beside the word. The OOM killer may throw away a dying process's
//! private memory before its threads have walked their lists; shared pages stay.
//!
//! | the process | the holder | the word |
//! |---|---|---|
//! | is killed, exits, becomes another program | is ended by the kernel | marked |
//! | closes the node | is told, and joined | 0, before that |
//! | forks | is not in the child | the parent's, and held |
//!
//! It has the scheduling policy, the priority and the cores of the thread that opened the node: its
//! last steps mark the word, and a death is told no later than that thread's own would be.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;

use super::robust::{ListHead, WAITERS, gettid, head_of_thread};
use crate::os::process::fork;
use crate::os::sleep::futex;
use crate::os::syserr;
use crate::os::time::deadline::Deadline;
use crate::sync::{AtomicU32, Ordering, fault};
use crate::{Error, ErrorKind};

type Result<T, E = Error> = std::result::Result<T, E>;

/// Bytes that a holder needs in the node's file; aligned to 8.
pub(crate) const HOLDER_BYTES: usize = 64;
/// The list's entry, and the futex word, which peers look at.
const ENTRY_AT: usize = 24;
pub(crate) const WORD_AT: usize = 32;

const STARTING: u32 = 0;
const RUNNING: u32 = 1;
const STOP: u32 = 2;
/// The kernel takes no list of the thread.
const REFUSED: u32 = 3;

/// Stack of the first try. What the C library itself needs on it differs: doubled up to the last.
const STACK_BYTES_FIRST: usize = 64 << 10;
const STACK_BYTES_LAST: usize = 16 << 20;

/// The holder of one node; dropping it lets the token go and ends the thread.
#[derive(Debug)]
pub(crate) struct Holder {
    shared: Box<Shared>,
    thread: libc::pthread_t,
    born: u32,
}

/// What the thread is given.
#[derive(Debug)]
struct Shared {
    state: AtomicU32,
    page: *mut u8,
}

// SAFETY: `page` points into a shared mapping that outlives the thread; everything in it is reached
// as atomics, or by the thread alone. A `pthread_t` may be joined by any thread.
unsafe impl Send for Holder {}
// SAFETY: as above; through `&Holder` nothing is reached but the atomic state.
unsafe impl Sync for Holder {}

impl Holder {
    /// Starts the thread and waits until the token is held.
    ///
    /// # Safety
    /// - `page` points to at least `HOLDER_BYTES` zero bytes, aligned to 8, in a writable shared
    ///   mapping that only this process writes.
    /// - They stay mapped there until the holder is dropped.
    ///
    /// # Errors
    /// `Io` or `OutOfMemory` when no thread can be made, `Permission` when that is forbidden,
    /// `Unsupported` when the kernel takes no robust list.
    ///
    /// # Crash safety
    /// **Strict.** The pending pointer covers the word before the list does.
    pub(crate) unsafe fn spawn(page: *mut u8) -> Result<Self> {
        fork::install();
        let shared = Box::new(Shared { state: AtomicU32::new(STARTING), page });
        let thread = with_signals_blocked(|| start(&shared))?;
        let state = &shared.state;
        // ORDERING(HOLDER_STATE): pairs with `run`; carries the held word.
        while state.load(Ordering::Acquire) == STARTING {
            futex::wait(state, STARTING, Deadline::NEVER);
        }
        let holder = Self { shared, thread, born: fork::fork_generation() };
        if holder.shared.state.load(Ordering::Acquire) == REFUSED {
            let remedy = "a filter of system calls forbids set_robust_list: allow it";
            return Err(Error::new(ErrorKind::Unsupported, "take", "the liveness token", remedy));
        }
        Ok(holder)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: inside the bytes of `spawn`, aligned, mapped as long as `self`.
        unsafe { AtomicU32::from_ptr(self.shared.page.add(WORD_AT).cast()) }
    }
}

impl Drop for Holder {
    /// # Crash safety
    /// **Strict.** Commit point: the store of 0. Before it the kernel marks the word; after it the
    /// word is nobody's, and the kernel leaves it alone.
    fn drop(&mut self) {
        // A forked child has no such thread, and the token is the parent's.
        if self.born != fork::fork_generation() {
            return;
        }
        let word = self.word();
        word.store(0, Ordering::Release);
        futex::wake(word, i32::MAX);
        // ORDERING(HOLDER_STATE): pairs with `run`.
        self.shared.state.store(STOP, Ordering::Release);
        futex::wake(&self.shared.state, 1);
        // SAFETY: made by `start` and joined here only. It runs nothing but `run`, which ends.
        unsafe { libc::pthread_join(self.thread, ptr::null_mut()) };
    }
}

/// Makes the thread: on a small stack, since all of it is locked in RAM after `mlockall`, and
/// through the C library alone, so that nothing is allocated in it.
fn start(shared: &Shared) -> Result<libc::pthread_t> {
    let mut stack_bytes = STACK_BYTES_FIRST;
    loop {
        // SAFETY: `shared` lives until the thread has been joined (`Holder`).
        match unsafe { create(stack_bytes, ptr::from_ref(shared)) } {
            Ok(thread) => return Ok(thread),
            Err(libc::EINVAL) if stack_bytes < STACK_BYTES_LAST => stack_bytes *= 2,
            Err(code) => return Err(no_thread(code, stack_bytes)),
        }
    }
}

/// # Safety
/// `shared` is valid until the thread has ended.
unsafe fn create(stack_bytes: usize, shared: *const Shared) -> Result<libc::pthread_t, i32> {
    // SAFETY: the attributes are initialised before they are used and destroyed once; `run` takes
    // what it is given.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let mut code = libc::pthread_attr_init(&mut attributes);
        if code != 0 {
            return Err(code);
        }
        code = libc::pthread_attr_setstacksize(&mut attributes, stack_bytes);
        if code == 0 {
            code = libc::pthread_create(&mut thread, &attributes, run, shared as *mut c_void);
        }
        libc::pthread_attr_destroy(&mut attributes);
        if code == 0 { Ok(thread) } else { Err(code) }
    }
}

#[cold]
fn no_thread(code: i32, stack_bytes: usize) -> Error {
    let (kind, remedy) = match code {
        // The C library says the same of memory and of threads.
        libc::EAGAIN | libc::ENOMEM if !is_room_for(stack_bytes) => {
            (ErrorKind::OutOfMemory, "each node needs a thread: raise `ulimit -v`, or free memory")
        }
        libc::EAGAIN => (
            ErrorKind::Io,
            "each node needs a thread: raise `ulimit -u` or the control group's pids.max; a thread \
             under SCHED_DEADLINE makes none: open the node before",
        ),
        libc::EPERM | libc::EACCES => {
            (ErrorKind::Permission, "each node needs a thread: allow clone in the filter of calls")
        }
        _ => return syserr::from_code("start thread", "outlive-token", code),
    };
    let source = std::io::Error::from_raw_os_error(code);
    Error::new(kind, "start thread", "outlive-token", remedy).with_source(source)
}

/// Whether so much more address space can be had.
fn is_room_for(bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new map that nobody touches, taken back at once.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), 2 * bytes, libc::PROT_NONE, flags, -1, 0);
        at != libc::MAP_FAILED && libc::munmap(at, 2 * bytes) == 0
    }
}

/// The thread's whole life. It must take no robust mutex of the C library, and allocates nothing.
extern "C" fn run(shared: *mut c_void) -> *mut c_void {
    // SAFETY: what `create` was given, valid until this thread has been joined.
    let shared = unsafe { &*shared.cast::<Shared>() };
    let (page, state) = (shared.page, &shared.state);
    // SAFETY: names the calling thread; for people who look at a process.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"outlive-token".as_ptr()) };
    let old = head_of_thread();
    let head: *mut ListHead = page.cast();
    // SAFETY: the bytes are ours and mapped until this thread is joined (`spawn`); offsets are in
    // bounds and aligned. The kernel reads head and entry at our death, hence volatile.
    let held = unsafe {
        let entry: *mut usize = page.add(ENTRY_AT).cast();
        let word = AtomicU32::from_ptr(page.add(WORD_AT).cast());
        (&raw mut (*head).futex_offset).write_volatile(WORD_AT as isize - ENTRY_AT as isize);
        (&raw mut (*head).next).write_volatile(head.cast());
        (&raw mut (*head).pending).write_volatile(entry);
        let registered = set_head(head);
        if registered {
            // Dying here: pending names the word, the kernel marks it if it is ours already.
            word.store(gettid() | WAITERS, Ordering::Release);
            entry.write_volatile(head as usize);
            if !fault("holder.unlisted") {
                (&raw mut (*head).next).write_volatile(entry);
            }
            (&raw mut (*head).pending).write_volatile(ptr::null_mut());
        }
        registered
    };
    // ORDERING(HOLDER_STATE): pairs with `spawn`, and the load below with `drop`.
    state.store(if held { RUNNING } else { REFUSED }, Ordering::Release);
    futex::wake(state, 1);
    while state.load(Ordering::Acquire) == RUNNING {
        futex::wait(state, RUNNING, Deadline::NEVER);
    }
    // SAFETY: the C library's own list of this thread, as it was.
    unsafe { set_head(old) };
    ptr::null_mut()
}

/// # Safety
/// `head` is null or a list that stays valid until replaced or until the thread is gone.
unsafe fn set_head(head: *mut ListHead) -> bool {
    // SAFETY: registers an address for the calling thread; validity is the caller's.
    unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<ListHead>()) == 0 }
}

/// Runs `make` with every signal blocked, so that a thread made in it inherits that.
fn with_signals_blocked<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: signal sets are plain bits, filled by the calls; the old mask is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        if !fault("holder.takes_signals") {
            libc::sigfillset(&mut all);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let made = make();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
        made
    }
}

const _: () = assert!(size_of::<ListHead>() <= ENTRY_AT && WORD_AT + 4 <= HOLDER_BYTES);
const _: () = assert!(ENTRY_AT % 8 == 0 && WORD_AT % 4 == 0);

#[cfg(test)]
mod tests;
