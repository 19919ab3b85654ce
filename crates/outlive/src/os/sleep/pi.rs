//! A lock word with priority inheritance: the kernel lends its holder the priority of its waiters.
//!
//! # Theory of operation
//! | word | means |
//! |---|---|
//! | 0 | free |
//! | tid | held by that thread of the kernel |
//! | `tid \| WAITERS` | held, and the kernel knows who waits: only it hands the word on |
//! | `OWNER_DIED`, alone or beside the others | a holder died; the next one clears it |
//!
//! The kernel finds the holder by the number in the word, in the PID namespace of whoever waits:
//! all users share one. At a thread's death it finds the words that it held by the thread's robust
//! list, whose entries lie 32 bytes behind their words. The word therefore ends a page of the file,
//! and the page mapped behind it is this process's own: nobody else writes what the list leads
//! through.
//!
//! | label   | stores                            | loads                      | carries      |
//! |---------|-----------------------------------|----------------------------|--------------|
//! | PI_HELD | `release`, AcqRel; the kernel     | `take`, AcqRel; the kernel | what is held |
#![allow(unsafe_code)]

use std::cell::Cell;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::ptr;
use std::ptr::NonNull;

use crate::crash_point;
use crate::os::PAGE;
use crate::os::death::robust;
use crate::os::death::robust::{ListHead, OWNER_DIED, TID_MASK, WAITERS};
use crate::os::fs::sigbus;
use crate::os::fs::sigbus::Guarded;
use crate::os::process::{fork, sched};
use crate::os::syserr;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{AtomicU32, fault};
use crate::{Error, ErrorKind, Result};

/// The word lies so many bytes before the end of the file.
pub(crate) const WORD_BEFORE_END: usize = 32;
/// Marks an entry of a robust list as one of this kind.
const PI: usize = 1;

/// The kernel has no thread of a higher number (PID_MAX_LIMIT).
const TID_MAX: u32 = 1 << 22;

const FUTEX_LOCK_PI: i32 = 6;
const FUTEX_UNLOCK_PI: i32 = 7;
const FUTEX_TRYLOCK_PI: i32 = 8;
/// As `FUTEX_LOCK_PI`, with a deadline of CLOCK_MONOTONIC: Linux 5.14 on.
const FUTEX_LOCK_PI2: i32 = 13;

/// Why the word was not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// Somebody holds it.
    Busy,
    /// The deadline passed.
    Expired,
    /// The calling thread holds it.
    Deadlock,
    Failed(Error),
}

/// The word and this process's entry for it.
#[derive(Debug)]
pub(crate) struct PiWord {
    /// A page of the file, then one of our own.
    start: NonNull<u8>,
    guarded: Option<Guarded>,
    /// The thread of this process that holds it by this object, or did when it ended; else 0.
    held: AtomicU32,
}

// SAFETY: an address range valid until drop; the word is atomic, the entry is its holder's.
unsafe impl Send for PiWord {}
// SAFETY: as above.
unsafe impl Sync for PiWord {}

/// The calling thread's number and list, as of a fork generation.
#[derive(Clone, Copy)]
struct Thread {
    generation: u32,
    tid: u32,
    list: *mut ListHead,
}

thread_local! {
    static THREAD: Cell<Thread> =
        const { Cell::new(Thread { generation: 0, tid: 0, list: ptr::null_mut() }) };
}

fn thread() -> std::result::Result<Thread, Refused> {
    let known = THREAD.get();
    if known.tid != 0 && known.generation == fork::fork_generation() {
        return Ok(known);
    }
    let list = robust::head_or_make();
    // SAFETY: this thread's own head, if there is one, kept valid by the C library.
    let fits = !list.is_null() && unsafe { (*list).futex_offset } == -(WORD_BEFORE_END as isize);
    if !fits {
        let remedy = "the C library must keep a robust list as glibc does: use a RobustMutex";
        let e = Error::new(ErrorKind::Unsupported, "taking", "a lock", remedy);
        return Err(Refused::Failed(e));
    }
    let new = Thread { generation: fork::fork_generation(), tid: robust::gettid(), list };
    THREAD.set(new);
    Ok(new)
}

impl PiWord {
    /// Maps the word at the end of a file of `len` bytes, which is a multiple of `PAGE`.
    ///
    /// # Errors
    /// `Unsupported` where pages are larger; `OutOfMemory`, `TooManyMembers`.
    pub(crate) fn map(fd: &impl AsFd, len: usize, path: &Path) -> Result<Self> {
        // SAFETY: asks for a number.
        if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } != PAGE as libc::c_long {
            let remedy = "this machine has pages of another size than 4096: use a RobustMutex";
            return Err(Error::new(ErrorKind::Unsupported, "map", syserr::show(path), remedy));
        }
        let (prot, own) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let start = unsafe {
            libc::mmap(ptr::null_mut(), 2 * PAGE, prot, own | libc::MAP_ANONYMOUS, -1, 0)
        };
        let (false, Some(start)) = (start == libc::MAP_FAILED, NonNull::new(start.cast())) else {
            return Err(syserr::last("map", syserr::show(path)));
        };
        let mut word = Self { start, guarded: None, held: AtomicU32::new(0) };
        let (raw, how) = (fd.as_fd().as_raw_fd(), libc::MAP_SHARED | libc::MAP_FIXED);
        let offset = (len - PAGE) as libc::off_t;
        // SAFETY: replaces the first of the two pages, just mapped and used by nobody.
        let page = unsafe { libc::mmap(start.as_ptr().cast(), PAGE, prot, how, raw, offset) };
        if page == libc::MAP_FAILED {
            return Err(syserr::last("map", syserr::show(path)));
        }
        word.guarded = sigbus::guard(start.as_ptr(), PAGE, true)?;
        // Both pages are there before the first lock.
        word.word().load(Relaxed);
        // SAFETY: inside our own page; nothing leads there yet.
        unsafe { word.entry().write_volatile(0) };
        Ok(word)
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: inside the first page, aligned; mapped for the life of `self`; all access, the
        // kernel's too, is atomic.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(PAGE - WORD_BEFORE_END).cast()) }
    }

    /// The entry of the holder's robust list: the first word of our own page.
    fn entry(&self) -> *mut usize {
        // SAFETY: inside the two pages.
        unsafe { self.start.as_ptr().add(PAGE).cast() }
    }

    /// Takes the word, waiting until `until`; whether a holder died.
    ///
    /// # Crash safety
    /// **Strict.** From before the first attempt until the entry is in the list the kernel finds
    /// the word by the pending operation, then by the list.
    pub(crate) fn take(&self, until: Deadline) -> std::result::Result<bool, Refused> {
        let thread = thread()?;
        let entry = self.entry();
        // SAFETY: this thread's own head; the kernel reads it at any instruction, hence volatile.
        let pending = unsafe { &raw mut (*thread.list).pending };
        // SAFETY: as above.
        unsafe { pending.write_volatile((entry as usize | PI) as *mut usize) };
        crash_point!("pi.before_take");
        // ORDERING(PI_HELD): pairs with `release` and with the kernel; after the store above.
        let taken = match self.word().compare_exchange(0, thread.tid, AcqRel, Acquire) {
            Ok(_) => Ok(()),
            Err(_) => self.take_slow(thread.tid, until),
        };
        if taken.is_ok() {
            crash_point!("pi.taken");
            self.held.store(thread.tid, Relaxed);
            // SAFETY: this thread's list; the entry is in none: the word was not held.
            unsafe { link(thread.list, entry) };
        }
        // SAFETY: as above.
        unsafe { pending.write_volatile(ptr::null_mut()) };
        taken?;
        if self.guarded.as_ref().is_some_and(Guarded::is_poisoned) {
            self.release();
            let remedy = "the file was truncated: remove it, or run `outlive clean`";
            let e = Error::new(ErrorKind::Corrupt, "taking", "a lock", remedy);
            return Err(Refused::Failed(e));
        }
        let died = self.word().load(Relaxed) & OWNER_DIED != 0;
        if died {
            self.word().fetch_and(!OWNER_DIED, Relaxed);
        }
        Ok(died)
    }

    #[cold]
    fn take_slow(&self, tid: u32, until: Deadline) -> std::result::Result<(), Refused> {
        let at_once = until == Deadline::AT_ONCE;
        loop {
            let named = self.word().load(Relaxed) & TID_MASK;
            let failed = match until {
                Deadline::AT_ONCE => self.call(FUTEX_TRYLOCK_PI, None),
                Deadline::NEVER => self.call(FUTEX_LOCK_PI, None),
                _ => self.call_until(until),
            };
            return match failed {
                0 => Ok(()),
                libc::EAGAIN if at_once && self.word().load(Relaxed) & TID_MASK != 0 => {
                    if self.word().load(Relaxed) & TID_MASK == tid {
                        return Err(Refused::Deadlock);
                    }
                    Err(Refused::Busy)
                }
                // Its holder is about to be dead.
                libc::EAGAIN | libc::EINTR | libc::EBUSY => {
                    sched::yield_now();
                    continue;
                }
                libc::ESRCH => match self.bury(named) {
                    Ok(true) => continue,
                    Ok(false) => Err(self.corrupt()),
                    Err(e) => Err(Refused::Failed(e)),
                },
                libc::ETIMEDOUT => Err(Refused::Expired),
                libc::EDEADLK => Err(Refused::Deadlock),
                libc::ENOSYS => {
                    Err(Refused::Failed(syserr::from_code("wait for", "a lock", failed)))
                }
                _ => Err(self.corrupt()),
            };
        }
    }

    /// No such thread, or none that the kernel gave the word to.
    fn corrupt(&self) -> Refused {
        let why = format!(
            "the word {:#x} names no holder that the kernel knows: stop the users and run \
             `outlive clean`",
            self.word().load(Relaxed)
        );
        Refused::Failed(Error::new(ErrorKind::Corrupt, "taking", "a lock", why))
    }

    /// The word named `tid`, which runs no more: it died, and the kernel did not say so, as where
    /// the memory of its process was thrown away first. The next one is told, as if it had. Also
    /// true where the word has changed since.
    fn bury(&self, tid: u32) -> Result<bool> {
        let seen = self.word().load(Relaxed);
        if tid == 0 || seen & TID_MASK != tid {
            return Ok(true);
        }
        if tid > TID_MAX || !sched::has_ended(tid)? || fault("pi.never_buried") {
            return Ok(false);
        }
        let left = OWNER_DIED | seen & WAITERS;
        // Who was quicker has it.
        let _ = self.word().compare_exchange(seen, left, AcqRel, Relaxed);
        Ok(true)
    }

    /// Whoever held it is gone, with all others: the next one is told.
    ///
    /// Nobody else has the file open.
    pub(crate) fn reset(&self) {
        if self.word().load(Relaxed) != 0 {
            self.word().store(OWNER_DIED, Relaxed);
        }
    }

    fn call_until(&self, until: Deadline) -> i32 {
        let failed = self.call(FUTEX_LOCK_PI2, Some(clock::kernel_time(until.as_ns())));
        if failed != libc::ENOSYS {
            return failed;
        }
        // Before Linux 5.14: a deadline of CLOCK_REALTIME. A clock that is set moves it.
        let left = until.remaining().as_nanos() as u64;
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec for the call to fill.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
        let end = (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).saturating_add(left);
        self.call(FUTEX_LOCK_PI, Some(clock::timespec(end)))
    }

    /// 0, or what failed.
    fn call(&self, op: i32, until: Option<libc::timespec>) -> i32 {
        let until = until.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the word is mapped (a vanished page is EFAULT), `until` null or valid.
        let rc = unsafe { libc::syscall(libc::SYS_futex, self.word().as_ptr(), op, 0, until) };
        if rc == 0 { 0 } else { syserr::errno() }
    }

    /// Whether the calling thread took the word by this object: the thread's list leads here.
    pub(crate) fn is_held(&self) -> bool {
        thread().is_ok_and(|thread| thread.tid == self.held.load(Relaxed))
    }

    /// Lets the word go if the calling thread holds it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS, or the kernel's handing over. Dying before it, the next
    /// one is told.
    pub(crate) fn release(&self) {
        let Ok(thread) = thread() else { return };
        if self.word().load(Relaxed) & TID_MASK != thread.tid {
            return;
        }
        let entry = self.entry();
        // SAFETY: as in `take`.
        let pending = unsafe { &raw mut (*thread.list).pending };
        // SAFETY: as in `take`; the entry was linked there by this thread.
        unsafe {
            pending.write_volatile((entry as usize | PI) as *mut usize);
            unlink(thread.list, entry);
        }
        self.held.store(0, Relaxed);
        crash_point!("pi.before_release");
        // ORDERING(PI_HELD): pairs with `take` and with the kernel; after the stores above.
        if self.word().compare_exchange(thread.tid, 0, AcqRel, Relaxed).is_err() {
            while self.call(FUTEX_UNLOCK_PI, None) == libc::EAGAIN {}
        }
        crash_point!("pi.released");
        // SAFETY: as in `take`.
        unsafe { pending.write_volatile(ptr::null_mut()) };
    }
}

impl Drop for PiWord {
    fn drop(&mut self) {
        if self.held.load(Relaxed) != 0 {
            // A guard was forgotten: the list of its thread leads here.
            std::mem::forget(self.guarded.take());
            return;
        }
        self.guarded = None;
        // SAFETY: our own range; nothing borrowed from it outlives `self`, no list leads there.
        unsafe { libc::munmap(self.start.as_ptr().cast(), 2 * PAGE) };
    }
}

/// Where an entry's neighbour is told who comes before it: the C libraries keep that there.
const PREVIOUS: usize = size_of::<usize>();

/// Puts `entry` first in the list.
///
/// # Safety
/// `list` is the calling thread's, `entry` is writable and in no list.
unsafe fn link(list: *mut ListHead, entry: *mut usize) {
    // SAFETY: the list and its entries are this thread's (caller); an entry has a word before it.
    unsafe {
        let first = (&raw const (*list).next).read_volatile() as usize;
        entry.write_volatile(first);
        let next = first & !PI;
        if next != list as usize && next != 0 {
            ((next - PREVIOUS) as *mut usize).write_volatile(entry as usize);
        }
        (&raw mut (*list).next).write_volatile((entry as usize | PI) as *mut usize);
    }
}

/// Takes `entry` out of the list.
///
/// # Safety
/// As `link`; the entry may be in the list.
unsafe fn unlink(list: *mut ListHead, entry: *mut usize) {
    let mut at = list.cast::<usize>();
    for _ in 0..robust::LIST_MAX {
        // SAFETY: `at` is the head or an entry of this thread's list (caller).
        unsafe {
            let next = at.read_volatile() & !PI;
            if next == entry as usize {
                let after = entry.read_volatile();
                at.write_volatile(after);
                let after = after & !PI;
                if after != list as usize && after != 0 {
                    ((after - PREVIOUS) as *mut usize).write_volatile(at as usize);
                }
                return;
            }
            if next == list as usize || next == 0 {
                return;
            }
            at = next as *mut usize;
        }
    }
}

const _: () = assert!(std::mem::offset_of!(ListHead, next) == 0);
