//! Guard against truncated files: a fault in one of our mappings reads as zeros and marks it.
//!
//! Files are reserved in full, so only someone who truncates a file on purpose or by accident makes
//! a page vanish. The handler puts a zero page there and sets the mapping's poisoned flag; callers
//! check the flag and answer `Corrupt`. Faults elsewhere go to whoever was there before.
//! A process that installs its own SIGBUS handler later, without chaining (Python's
//! `faulthandler.enable()`), turns the guard off until it maps the next file: then the guard comes
//! first again, and that handler after it.
#![allow(unsafe_code)]

use std::ptr;

use crate::os::death::robust;
use crate::os::process::{kill, loaded};
use crate::os::syserr;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fault, fence};
use crate::{Error, ErrorKind, Result};

/// Mappings at most in one process.
pub(crate) const RANGES_MAX: usize = 1 << 14;

/// `start` is page aligned; its low bits tell the state. 0 = free, `CLAIMED` = being filled.
struct Range {
    start: AtomicU64,
    end: AtomicU64,
    poisoned: AtomicU32,
}

const CLAIMED: u64 = 1;
/// The mapping is writable: so must the zero page be.
const WRITABLE: u64 = 2;
const FLAGS: u64 = 0xfff;

static RANGES: [Range; RANGES_MAX] = [const {
    Range { start: AtomicU64::new(0), end: AtomicU64::new(0), poisoned: AtomicU32::new(0) }
}; RANGES_MAX];
/// Slots below this are in use, but for some that were freed just now: where to look first.
static FREE: AtomicU32 = AtomicU32::new(0);
/// Slots below this may be in use.
static HIGH: AtomicU32 = AtomicU32::new(0);
static DISABLED: AtomicU32 = AtomicU32::new(0);
/// 1: see `kill_instead`.
static KILLS: AtomicU32 = AtomicU32::new(0);
/// Pages of this process that were replaced so far.
static REPLACED: AtomicU32 = AtomicU32::new(0);
/// The thread that last handed a signal on. Python's faulthandler raises it again, to be called by
/// the default: without this it would go round between the two for ever.
static HANDED_ON: AtomicU32 = AtomicU32::new(0);
static PAGE: AtomicU64 = AtomicU64::new(4096);
/// The handler that was there before: its address (or SIG_DFL, SIG_IGN) and flags.
static PREVIOUS: AtomicU64 = AtomicU64::new(libc::SIG_DFL as u64);
static PREVIOUS_FLAGS: AtomicU64 = AtomicU64::new(0);

/// A mapping's place in the table; frees it on drop.
#[derive(Debug)]
pub(crate) struct Guarded(usize);

/// How many pages of mappings of this process had vanished so far.
#[inline]
pub(crate) fn replaced() -> u32 {
    REPLACED.load(Ordering::Relaxed)
}

/// Turns the guard off for this process; only before the first mapping. The environment variable
/// `OUTLIVE_NO_SIGBUS_GUARD=1` does the same.
pub(crate) fn disable() {
    DISABLED.store(1, Ordering::Relaxed);
}

/// Installs the handler once, unless turned off, and keeps it loaded. Every mapping does this.
pub(crate) fn install() {
    // Not a `Once`: a child that was forked in the middle of one would wait for its end for ever.
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    // ORDERING(SIGBUS_INSTALLED): pairs with the store below; carries DISABLED.
    if INSTALLED.load(Ordering::Acquire) != 0 {
        return;
    }
    loaded::stay();
    if std::env::var_os("OUTLIVE_NO_SIGBUS_GUARD").is_some_and(|v| v == "1") {
        disable();
    }
    if DISABLED.load(Ordering::Relaxed) == 0 {
        install_handler();
    }
    // ORDERING(SIGBUS_INSTALLED): pairs with the load above.
    INSTALLED.store(1, Ordering::Release);
}

/// Guards `[start, start + len)`, page aligned, until the result is dropped; nothing when turned
/// off. Errors: `TooManyMembers` past `RANGES_MAX`.
pub(in crate::os) fn guard(start: *mut u8, len: usize, writable: bool) -> Result<Option<Guarded>> {
    install();
    if DISABLED.load(Ordering::Relaxed) != 0 {
        return Ok(None);
    }
    if !is_ours() && !fault("sigbus.not_renewed") {
        install_handler();
    }
    let first = FREE.load(Ordering::Relaxed) as usize;
    // A slot that was freed meanwhile lies before it: in a second round.
    for i in (first..RANGES_MAX).chain(0..first) {
        let range = &RANGES[i];
        let claim = range.start.compare_exchange(0, CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
        if claim.is_err() {
            continue;
        }
        FREE.store(i as u32 + 1, Ordering::Relaxed);
        range.poisoned.store(0, Ordering::Relaxed);
        range.end.store(start as u64 + len as u64, Ordering::Relaxed);
        HIGH.fetch_max(i as u32 + 1, Ordering::Relaxed);
        let tag = if writable { WRITABLE } else { 0 };
        // ORDERING(SIGBUS_RANGE): pairs with `find`; carries end and HIGH.
        range.start.store(start as u64 | tag, Ordering::Release);
        return Ok(Some(Guarded(i)));
    }
    let remedy = "open fewer topics in one process, or set OUTLIVE_NO_SIGBUS_GUARD=1";
    Err(Error::new(ErrorKind::TooManyMembers, "guard", "mapping", remedy))
}

impl Guarded {
    /// Whether a page of the mapping had vanished and was replaced by zeros.
    #[inline]
    pub(in crate::os) fn is_poisoned(&self) -> bool {
        // ORDERING(POISON): pairs with `replace_page`; whoever read a zero of the new page before
        // this fence sees the flag.
        fence(Ordering::Acquire);
        RANGES[self.0].poisoned.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        RANGES[self.0].start.store(0, Ordering::Relaxed);
        FREE.fetch_min(self.0 as u32, Ordering::Relaxed);
    }
}

fn install_handler() {
    // SAFETY: sigaction structs are plain data; the handler is async-signal-safe (see there). The
    // previous one is known before ours can run. sysconf cannot fail for the page size.
    unsafe {
        PAGE.store(libc::sysconf(libc::_SC_PAGESIZE) as u64, Ordering::Relaxed);
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, ptr::null(), &mut old);
        remember(&old);
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_sigbus as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut new.sa_mask);
        libc::sigaction(libc::SIGBUS, &new, &mut old);
        remember(&old);
    }
}

/// Whether a fault comes to us first.
fn is_ours() -> bool {
    // SAFETY: asks only; a sigaction is plain data.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGBUS, ptr::null(), &mut now);
        now.sa_sigaction == on_sigbus as *const () as usize
    }
}

/// Faults that are not the guard's kill the process at once; `false` when there is no guard.
pub(in crate::os) fn kill_instead() -> bool {
    install();
    KILLS.store(1, Ordering::Relaxed);
    DISABLED.load(Ordering::Relaxed) == 0
}

fn remember(old: &libc::sigaction) {
    if old.sa_sigaction == on_sigbus as *const () as usize {
        return; // another thread was quicker
    }
    PREVIOUS_FLAGS.store(old.sa_flags as u64, Ordering::Relaxed);
    // ORDERING(SIGBUS_PREVIOUS): pairs with `previous`; carries the flags.
    PREVIOUS.store(old.sa_sigaction as u64, Ordering::Release);
}

/// Async-signal-safe: atomics and raw system calls only.
extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let saved = syserr::errno();
    // SAFETY: the kernel passes a valid siginfo; codes above 0 are faults and carry an address.
    let address = unsafe { if (*info).si_code > 0 { (*info).si_addr() as u64 } else { 0 } };
    if !replace_page(address) {
        previous(signal, info, context);
    }
    syserr::set_errno(saved);
}

/// Puts a zero page under a faulting address of ours; false if it is not ours.
fn replace_page(address: u64) -> bool {
    let Some((range, start)) = find(address).filter(|_| !fault("sigbus.unguarded")) else {
        return false;
    };
    let page = PAGE.load(Ordering::Relaxed);
    let prot =
        if start & WRITABLE != 0 { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // ORDERING(POISON): pairs with `is_poisoned`; set before the zero page can be read.
    range.poisoned.store(1, Ordering::Release);
    REPLACED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: replaces one page inside a live mapping of ours, which is still being read (that is
    // the fault), so nobody is unmapping it. The raw call takes no lock of the C library.
    let rc = unsafe {
        let at = address & !(page - 1);
        libc::syscall(libc::SYS_mmap, at, page, prot as usize, flags as usize, -1isize, 0usize)
    };
    rc != -1
}

fn find(address: u64) -> Option<(&'static Range, u64)> {
    if address == 0 {
        return None;
    }
    let high = HIGH.load(Ordering::Relaxed) as usize;
    for range in &RANGES[..high.min(RANGES_MAX)] {
        // ORDERING(SIGBUS_RANGE): pairs with `guard`.
        let start = range.start.load(Ordering::Acquire);
        let end = range.end.load(Ordering::Acquire);
        let used = start > CLAIMED && (start & !FLAGS..end).contains(&address);
        // Read again: the slot may have been freed and filled between the two loads.
        if used && range.start.load(Ordering::Relaxed) == start {
            return Some((range, start));
        }
    }
    None
}

/// Hands the signal to whoever had it before us; the default is to die of it.
fn previous(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if KILLS.load(Ordering::Relaxed) != 0 {
        kill::kill();
    }
    // ORDERING(SIGBUS_PREVIOUS): pairs with `remember`.
    let mut handler = PREVIOUS.load(Ordering::Acquire) as usize;
    // SAFETY: the kernel passes a valid siginfo.
    let sent = unsafe { (*info).si_code } <= 0;
    if HANDED_ON.swap(robust::gettid(), Ordering::Relaxed) == robust::gettid() && sent {
        handler = libc::SIG_DFL;
    }
    hand_on(handler, signal, info, context);
}

fn hand_on(handler: usize, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let flags = PREVIOUS_FLAGS.load(Ordering::Relaxed) as i32;
    // SAFETY: `handler` is what sigaction returned, of the kind its flags say; the calls are
    // async-signal-safe.
    unsafe {
        let fault = (*info).si_code > 0;
        if handler == libc::SIG_IGN && !fault {
            return; // sent by someone and ignored before us; a fault cannot be ignored
        }
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, ptr::null_mut());
            // Blocked until this handler returns, then fatal.
            let (pid, tid) = (libc::getpid(), libc::syscall(libc::SYS_gettid));
            libc::syscall(libc::SYS_tgkill, pid, tid, signal);
        } else if flags & libc::SA_SIGINFO != 0 {
            type Full = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Full>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
        }
    }
}

#[cfg(test)]
mod tests;
