//! Sleeping on shared words, read-only mapped ones included.
//! Begin with `wait` and `wake`; `wait_many` sleeps on several words where the kernel can.
#![allow(unsafe_code)]

use crate::os::process::sched;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Why a sleep ended. Spurious ends are normal: look at the words again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The word of that index was woken or had changed.
    Word(usize),
    /// The deadline passed.
    Timeout,
    /// A signal handler ran.
    Interrupted,
}

/// `futex_waitv` is missing here, or more than `WAIT_WORDS_MAX` words were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoWaitv;

/// One word to sleep on, and the value that means "nothing new".
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitWord<'a> {
    /// The word; a read-only mapping is enough.
    pub(crate) word: &'a AtomicU32,
    /// Sleep only while the word still has this value.
    pub(crate) expected: u32,
}

/// The half of a 64-bit word that changes with every increment: what one sleeps on.
#[inline]
pub(crate) fn low_half(word: &AtomicU64) -> &AtomicU32 {
    const AT: usize = if cfg!(target_endian = "big") { 4 } else { 0 };
    // SAFETY: inside the 64-bit word, aligned to 4, and borrowed from it. Both are atomics, and
    // nobody mixes sizes but the kernel, which compares the half.
    unsafe { AtomicU32::from_ptr(word.as_ptr().cast::<u8>().add(AT).cast()) }
}

/// The kernel's limit on words in one sleep.
pub(crate) const WAIT_WORDS_MAX: usize = 128;

/// Same number on every architecture; the C library has no wrapper.
const SYS_FUTEX_WAITV: libc::c_long = 449;
const FUTEX2_SIZE_U32: u32 = 2;

/// The kernel's `struct futex_waitv`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct KernelWaiter {
    val: u64,
    uaddr: u64,
    flags: u32,
    reserved: u32,
}

/// Wakes up to `n` sleepers of the word, in any process; returns how many, or `-errno`.
///
/// # Real-time
/// One system call; does not block.
pub(crate) fn wake(word: &AtomicU32, n: i32) -> i64 {
    // SAFETY: FUTEX_WAKE uses the address as a key and touches no memory; a bad one is an error.
    let rc = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, n) };
    if rc < 0 { -i64::from(crate::os::syserr::errno()) } else { rc }
}

/// Sleeps while the word equals `expected`, until woken or until `deadline`.
pub(crate) fn wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> Woken {
    let ts = kernel_time(deadline);
    let ts = ts.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word is a live mapping (a vanished page is EFAULT), `ts` null or valid for the
    // call; FUTEX_WAIT_BITSET takes an absolute time and ignores the fifth argument.
    let rc = unsafe {
        let (op, any) = (libc::FUTEX_WAIT_BITSET, u32::MAX);
        let no_word = std::ptr::null::<u32>();
        libc::syscall(libc::SYS_futex, word.as_ptr(), op, expected, ts, no_word, any)
    };
    if rc == 0 {
        return Woken::Word(0);
    }
    match crate::os::syserr::errno() {
        libc::EAGAIN => Woken::Word(0),
        libc::ETIMEDOUT => Woken::Timeout,
        libc::EINTR => Woken::Interrupted,
        _ => unusable(),
    }
}

/// Sleeps while every word has its expected value. No words: sleeps until the deadline.
///
/// # Errors
/// `NoWaitv` when this kernel or container has no `futex_waitv`, or for more than
/// `WAIT_WORDS_MAX` words: wait on one word, or on a doorbell.
pub(crate) fn wait_many(words: &[WaitWord<'_>], deadline: Deadline) -> Result<Woken, NoWaitv> {
    if words.len() > WAIT_WORDS_MAX || !has_waitv() {
        return Err(NoWaitv);
    }
    if words.is_empty() {
        let never = AtomicU32::new(0);
        return Ok(wait(&never, 0, deadline));
    }
    let mut waiters = [KernelWaiter::default(); WAIT_WORDS_MAX];
    for (to, from) in waiters.iter_mut().zip(words) {
        to.val = u64::from(from.expected);
        to.uaddr = from.word.as_ptr() as u64;
        to.flags = FUTEX2_SIZE_U32;
    }
    let ts = kernel_time(deadline);
    let ts = ts.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array holds `words.len()` waiters, `ts` is null or valid for the call; the words
    // are live mappings (a vanished page is EFAULT).
    let rc = unsafe {
        let (list, n, flags) = (waiters.as_ptr(), words.len(), 0);
        libc::syscall(SYS_FUTEX_WAITV, list, n, flags, ts, libc::CLOCK_MONOTONIC)
    };
    if rc >= 0 {
        return Ok(Woken::Word(rc as usize));
    }
    match crate::os::syserr::errno() {
        libc::EAGAIN => Ok(Woken::Word(first_changed(words))),
        libc::ETIMEDOUT => Ok(Woken::Timeout),
        libc::EINTR => Ok(Woken::Interrupted),
        libc::ENOSYS | libc::EPERM => {
            WAITV.store(NO, Ordering::Relaxed);
            Err(NoWaitv)
        }
        _ => Ok(unusable()),
    }
}

/// As the kernel wants it; `None` never ends.
fn kernel_time(deadline: Deadline) -> Option<libc::timespec> {
    (!deadline.is_never()).then(|| clock::kernel_time(deadline.as_ns()))
}

fn first_changed(words: &[WaitWord<'_>]) -> usize {
    words.iter().position(|w| w.word.load(Ordering::Relaxed) != w.expected).unwrap_or(0)
}

/// A word's page is gone: its mapping will be found poisoned. The pause keeps a loop from spinning.
#[cold]
fn unusable() -> Woken {
    sched::sleep_until(Deadline::in_ns(1_000_000));
    Woken::Word(0)
}

const UNKNOWN: u32 = 0;
const YES: u32 = 1;
const NO: u32 = 2;
static WAITV: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether `futex_waitv` works here: Linux 5.16 on, not filtered, not turned off by
/// `OUTLIVE_NO_WAITV=1`. Asked once.
pub(crate) fn has_waitv() -> bool {
    match WAITV.load(Ordering::Relaxed) {
        UNKNOWN => probe_waitv(),
        known => known == YES,
    }
}

/// Forces the answer of `has_waitv` for this process.
pub(crate) fn set_waitv_for_tests(on: bool) {
    WAITV.store(if on { YES } else { NO }, Ordering::Relaxed);
}

#[cold]
fn probe_waitv() -> bool {
    let off = std::env::var_os("OUTLIVE_NO_WAITV").is_some_and(|v| v == "1");
    // SAFETY: no waiters is an error that touches no memory: EINVAL where the call exists.
    let rc = unsafe {
        let (no_list, no_time) = (std::ptr::null::<KernelWaiter>(), std::ptr::null::<u8>());
        libc::syscall(SYS_FUTEX_WAITV, no_list, 0, 0, no_time, 0)
    };
    let on = !off && rc == -1 && crate::os::syserr::errno() == libc::EINVAL;
    WAITV.store(if on { YES } else { NO }, Ordering::Relaxed);
    on
}

#[cfg(test)]
mod tests;
