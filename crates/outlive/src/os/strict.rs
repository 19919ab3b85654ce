//! Strict mode: a token whose list head also lies in a shared page.
//!
//! The OOM killer may throw away a dying process's private memory before its threads have walked
//! their robust lists, and then a token of the C library is never marked. Shared pages are not
//! thrown away; so a helper thread registers a list of its own whose head and only entry sit in the
//! node's file. It does nothing but sleep.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use super::robust::{ListHead, WAITERS, gettid, head_of_thread};
use super::{fork, futex, syserr};
use crate::Result;
use crate::sync::{AtomicU32, Ordering};

/// Bytes that a helper needs.
pub(crate) const STRICT_BYTES: usize = 256;
/// The futex word; the list's entry follows it in the same line.
const WORD_AT: usize = 64;
const ENTRY_AT: usize = 72;

const STARTING: u32 = 0;
const RUNNING: u32 = 1;
const STOP: u32 = 2;

/// The helper thread of one node; dropping it lets its token go and ends the thread.
#[derive(Debug)]
pub(crate) struct StrictHelper {
    state: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
    born: u32,
}

impl StrictHelper {
    /// Starts the helper and waits until its token is held.
    ///
    /// # Safety
    /// - `page` points to at least `STRICT_BYTES` zero bytes, aligned to 8, in a writable shared
    ///   mapping that only this process writes.
    /// - They stay mapped there until the helper is dropped.
    ///
    /// # Errors
    /// `Io` when no thread can be made.
    ///
    /// # Crash safety
    /// **Strict.** The pending pointer covers the word before the list does.
    pub(crate) unsafe fn spawn(page: *mut u8) -> Result<Self> {
        fork::install();
        let state = Arc::new(AtomicU32::new(STARTING));
        let (theirs, page) = (Arc::clone(&state), page as usize);
        let body = move || run(page as *mut u8, &theirs);
        let spawned =
            with_signals_blocked(|| Builder::new().name("outlive-token".into()).spawn(body));
        let thread = spawned.map_err(|e| syserr::from_io("start thread", "outlive-token", e))?;
        // ORDERING(STRICT_STATE): pairs with `run`; carries the held word.
        while state.load(Ordering::Acquire) == STARTING {
            futex::wait(&state, STARTING, None);
        }
        Ok(Self { state, thread: Some(thread), born: fork::fork_generation() })
    }

    /// Where the futex word is, from the start of the page.
    pub(crate) fn word_offset(&self) -> u32 {
        WORD_AT as u32
    }
}

impl Drop for StrictHelper {
    fn drop(&mut self) {
        // A forked child has no helper: the thread and the token are the parent's.
        let thread = self.thread.take().filter(|_| self.born == fork::fork_generation());
        if let Some(thread) = thread {
            // ORDERING(STRICT_STATE): pairs with `run`.
            self.state.store(STOP, Ordering::Release);
            futex::wake(&self.state, 1);
            let _ = thread.join();
        }
    }
}

/// The helper's whole life. It must take no robust mutex of the C library.
fn run(page: *mut u8, state: &AtomicU32) {
    let old = head_of_thread();
    let head: *mut ListHead = page.cast();
    // SAFETY: the page is ours and mapped until this thread ends (`spawn`); offsets are
    // in bounds and aligned. The kernel reads head and entry at our death, hence volatile.
    unsafe {
        let entry: *mut usize = page.add(ENTRY_AT).cast();
        let word = AtomicU32::from_ptr(page.add(WORD_AT).cast());
        (&raw mut (*head).futex_offset).write_volatile(WORD_AT as isize - ENTRY_AT as isize);
        (&raw mut (*head).next).write_volatile(head.cast());
        (&raw mut (*head).pending).write_volatile(entry);
        set_head(head);
        // Dying here: pending names the word, the kernel marks it if it is ours already.
        word.store(gettid() | WAITERS, Ordering::Release);
        entry.write_volatile(head as usize);
        (&raw mut (*head).next).write_volatile(entry);
        (&raw mut (*head).pending).write_volatile(ptr::null_mut());
        // ORDERING(STRICT_STATE): pairs with `spawn`, and the load below with `drop`.
        state.store(RUNNING, Ordering::Release);
        futex::wake(state, 1);
        while state.load(Ordering::Acquire) == RUNNING {
            futex::wait(state, RUNNING, None);
        }
        // Dying here: still held, so the kernel marks it; after the store it says let go.
        word.store(0, Ordering::Release);
        futex::wake(word, i32::MAX);
        set_head(old);
    }
}

/// # Safety
/// `head` is null or a list that stays valid until replaced or until the thread is gone.
unsafe fn set_head(head: *mut ListHead) {
    // SAFETY: registers an address for the calling thread; validity is the caller's.
    unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<ListHead>()) };
}

/// Runs `make` with every signal blocked, so that a thread made in it inherits that.
fn with_signals_blocked<T>(make: impl FnOnce() -> T) -> T {
    // SAFETY: signal sets are plain bits, filled by the calls; the old mask is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let made = make();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut());
        made
    }
}
