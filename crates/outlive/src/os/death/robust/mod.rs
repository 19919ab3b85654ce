//! Tokens of threads: a futex word that the kernel marks when the thread holding it dies.
//!
//! # Theory of operation
//! A token is a robust, process-shared mutex of the C library in 64 bytes of a shared file. The C
//! library links it into the thread's robust list; at the thread's death the kernel walks that
//! list and turns the word into `OWNER_DIED`. Where the word lies in the mutex is found at run time
//! and published, so peers need one load and know nothing of the C library:
//!
//! | word | means |
//! |---|---|
//! | `tid \| WAITERS` | held: alive |
//! | `OWNER_DIED \| WAITERS` | its thread died; the kernel woke one sleeper, who wakes the rest |
//! | 0 | never taken, or let go in good order |
//!
//! Peers only load the word; whoever may write it could fake a death.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;

use crate::os::sleep::futex;
use crate::os::syserr;
use crate::sync::{AtomicU32, Ordering, fault};
use crate::{Error, ErrorKind, Result};

/// Bytes a token needs; alignment 8.
pub(crate) const TOKEN_BYTES: usize = 64;
/// The kernel wakes a sleeper at the owner's death only where this is set: set it for good.
pub(crate) const WAITERS: u32 = 0x8000_0000;
/// Set by the kernel when the owner died.
pub(crate) const OWNER_DIED: u32 = 0x4000_0000;
/// The owner's thread id.
pub(crate) const TID_MASK: u32 = 0x3fff_ffff;
/// The kernel stops after this many entries of one thread's list.
pub(in crate::os) const LIST_MAX: usize = 2048;

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= TOKEN_BYTES);
const _: () = assert!(align_of::<libc::pthread_mutex_t>() <= 8);

/// The kernel's `struct robust_list_head`; entries are `next` pointers, bit 0 marks PI locks.
#[repr(C)]
pub(in crate::os) struct ListHead {
    pub(in crate::os) next: *mut usize,
    pub(in crate::os) futex_offset: isize,
    pub(in crate::os) pending: *mut usize,
}

/// Whether a token's word says that its thread lives. A hint: it may say dead a little late, and
/// before anything irreversible the owner's file lock decides.
#[inline]
pub(crate) const fn is_alive_word(word: u32) -> bool {
    // A thread's number and no mark: positive once the waiters' bit above them is gone.
    (word << 1) as i32 > 0
}

/// Whether the kernel marked the word: its thread died holding the token.
#[inline]
pub(crate) const fn has_died(word: u32) -> bool {
    word & OWNER_DIED != 0
}

/// Wakes all who sleep on a token that has changed: the kernel wakes one of them, who calls this.
pub(crate) fn pass_on(token: &AtomicU32) {
    if !fault("token.not_passed") {
        futex::wake(token, i32::MAX);
    }
}

/// The kernel's number of the calling thread.
pub(crate) fn gettid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Makes a token and takes it for the calling thread; returns where its futex word is in the 64
/// bytes.
///
/// # Safety
/// - `ptr` points to `TOKEN_BYTES` zero bytes, aligned to 8, in a writable shared mapping that
///   only this process writes.
/// - They stay mapped there until the token is let go or the thread is gone.
///
/// # Errors
/// `Unsupported` where the C library keeps no robust list the kernel knows.
///
/// # Crash safety
/// **Strict.** Before the mutex is linked the word is 0 (nobody); after it the kernel marks it.
pub(crate) unsafe fn init_and_lock(ptr: *mut u8) -> Result<u32> {
    let mutex: *mut libc::pthread_mutex_t = ptr.cast();
    // SAFETY: zero bytes of sufficient size and alignment, ours to write (caller).
    unsafe { init_mutex(mutex)? };
    // SAFETY: initialised above.
    check("take liveness token", unsafe { libc::pthread_mutex_lock(mutex) })?;
    let Some(offset) = find_word(ptr) else {
        // SAFETY: locked above by this thread.
        unsafe { libc::pthread_mutex_unlock(mutex) };
        return Err(no_robust_list());
    };
    // SAFETY: `find_word` checked that the word lies inside the 64 bytes, aligned.
    unsafe { mark_waiters(ptr, offset) };
    Ok(offset)
}

/// Whether `word` names the calling thread as the holder. If it does not although the thread took
/// the token, somebody cut or overwrote the file. Then `unlock` cannot take the token out of the
/// thread's list of robust mutexes, and its bytes have to stay mapped: the C library writes into
/// the neighbours of what it takes out.
pub(crate) fn is_ours(word: &AtomicU32) -> bool {
    word.load(Ordering::Relaxed) & TID_MASK == gettid()
}

/// Lets a token go; the word becomes 0 and sleepers are woken. A no-op by any other thread.
///
/// # Safety
/// `ptr` is a token made by `init_and_lock` in this process and still mapped there.
///
/// # Crash safety
/// **Strict.** Dying inside: the C library's pending operation lets the kernel mark or wake.
pub(crate) unsafe fn unlock(ptr: *mut u8) {
    // SAFETY: a live robust mutex (caller); robust ones check their owner and answer EPERM.
    unsafe { libc::pthread_mutex_unlock(ptr.cast()) };
}

/// Takes a token again that its thread let go or died with; false while a living thread holds it.
///
/// # Safety
/// `ptr` is a token made by `init_and_lock` in this process and still mapped there.
///
/// # Crash safety
/// **Strict.** As `init_and_lock`. Between lock and mark the word lacks `WAITERS`: a death there
/// wakes nobody, and sleepers find it at the end of their bounded sleep.
pub(crate) unsafe fn relock(ptr: *mut u8) -> Result<bool> {
    let mutex: *mut libc::pthread_mutex_t = ptr.cast();
    // SAFETY: a live robust mutex (caller).
    let mut rc = unsafe { libc::pthread_mutex_trylock(mutex) };
    if rc == libc::EOWNERDEAD {
        // SAFETY: this thread holds the mutex with its owner dead, as the call demands.
        rc = unsafe { libc::pthread_mutex_consistent(mutex) };
    }
    if rc == libc::EBUSY {
        return Ok(false);
    }
    check("take liveness token", rc)?;
    let offset = find_word(ptr).ok_or_else(no_robust_list)?;
    // SAFETY: `find_word` checked that the word lies inside the 64 bytes, aligned.
    unsafe { mark_waiters(ptr, offset) };
    Ok(true)
}

/// While it lives, this thread's death passes on a wake it may just have got from a token's death:
/// the kernel then wakes one more sleeper of that word. Hold it around a sleep on the token.
#[derive(Debug)]
#[must_use = "dropping it ends the promise"]
pub(crate) struct PendingGuard {
    head: *mut ListHead,
    /// Belongs to the thread that made it.
    _here: PhantomData<*mut ()>,
}

/// Points this thread's pending operation at a token's word; a read-only mapping is enough.
///
/// The kernel acts on it only where the word has no owner, so it can mark nobody dead. On a thread
/// without a robust list (none can be made) it does nothing: the bounded sleep remains.
///
/// The thread must take no robust mutex while the guard lives; a sleep does not.
pub(crate) fn pending_guard(word: &AtomicU32) -> PendingGuard {
    let head = head_or_make();
    if !head.is_null() {
        // SAFETY: `head` is this thread's list head, which the C library keeps valid for the
        // thread's life. The kernel reads `pending` when the thread dies, at any instruction,
        // hence volatile. Entry address = word address - futex_offset; bit 0 stays clear because
        // words and offsets are multiples of 4.
        unsafe {
            let entry = (word.as_ptr() as usize).wrapping_sub((*head).futex_offset as usize);
            (&raw mut (*head).pending).write_volatile(entry as *mut usize);
        }
    }
    PendingGuard { head, _here: PhantomData }
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        if !self.head.is_null() {
            // SAFETY: this thread's own head (the guard cannot leave the thread).
            unsafe { (&raw mut (*self.head).pending).write_volatile(ptr::null_mut()) };
        }
    }
}

/// This thread's robust list head as the kernel knows it; null before the first robust lock on
/// some C libraries (musl).
pub(in crate::os) fn head_of_thread() -> *mut ListHead {
    let mut head: *mut ListHead = ptr::null_mut();
    let mut len = 0usize;
    // SAFETY: asks for the calling thread (0) and fills the two locals.
    let rc =
        unsafe { libc::syscall(libc::SYS_get_robust_list, 0usize, &raw mut head, &raw mut len) };
    if rc == 0 && len == size_of::<ListHead>() { head } else { ptr::null_mut() }
}

/// As `head_of_thread`, and makes the C library register a list where it has not yet.
pub(in crate::os) fn head_or_make() -> *mut ListHead {
    let head = head_of_thread();
    if !head.is_null() {
        return head;
    }
    let mut mutex = MaybeUninit::<libc::pthread_mutex_t>::zeroed();
    // SAFETY: a mutex of this frame, initialised, locked, unlocked and destroyed here.
    unsafe {
        if init_mutex(mutex.as_mut_ptr()).is_ok()
            && libc::pthread_mutex_lock(mutex.as_mut_ptr()) == 0
        {
            libc::pthread_mutex_unlock(mutex.as_mut_ptr());
        }
        libc::pthread_mutex_destroy(mutex.as_mut_ptr());
    }
    head_of_thread()
}

/// Where the futex word of the token at `ptr`, held by this thread, lies in its 64 bytes.
fn find_word(ptr: *mut u8) -> Option<u32> {
    let head = head_of_thread();
    if head.is_null() {
        return None;
    }
    let base = ptr as usize;
    // SAFETY: the head and the entries linked from it are kept valid by the C library, and only
    // this thread changes its list.
    unsafe {
        let mut entry = (*head).next;
        for _ in 0..LIST_MAX {
            let at = entry as usize & !1;
            if at == head as usize || at == 0 {
                return None;
            }
            if (base..base + TOKEN_BYTES).contains(&at) {
                let word = at.wrapping_add_signed((*head).futex_offset);
                let fits = word >= base && word + 4 <= base + TOKEN_BYTES && word % 4 == 0;
                // The pattern: a held word carries our thread id.
                let held = fits && (word as *const u32).read_volatile() & TID_MASK == gettid();
                return held.then(|| (word - base) as u32);
            }
            entry = (at as *const *mut usize).read_volatile();
        }
    }
    None
}

/// Sets `WAITERS` in a held token.
///
/// # Safety
/// `ptr + offset` is the aligned futex word of a mapped token.
unsafe fn mark_waiters(ptr: *mut u8, offset: u32) {
    // SAFETY: in bounds and aligned (caller); all accesses by others are atomic.
    let word = unsafe { AtomicU32::from_ptr(ptr.add(offset as usize).cast()) };
    word.fetch_or(WAITERS, Ordering::AcqRel);
}

/// # Safety
/// `mutex` points to writable, zeroed, aligned memory for a mutex.
unsafe fn init_mutex(mutex: *mut libc::pthread_mutex_t) -> Result<()> {
    let mut attr = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    let attr = attr.as_mut_ptr();
    // SAFETY: `attr` is initialised by the first call before the others use it, and destroyed once;
    // the mutex memory is ours (caller).
    unsafe {
        check("make liveness token", libc::pthread_mutexattr_init(attr))?;
        let mut rc = libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED);
        if rc == 0 {
            rc = libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST);
        }
        if rc == 0 {
            rc = libc::pthread_mutex_init(mutex, attr);
        }
        libc::pthread_mutexattr_destroy(attr);
        check("make liveness token", rc)
    }
}

fn check(what: &'static str, rc: i32) -> Result<()> {
    if rc == 0 { Ok(()) } else { Err(syserr::from_code(what, "robust mutex", rc)) }
}

#[cold]
fn no_robust_list() -> Error {
    let remedy = "the C library must keep its robust list with the kernel (glibc and musl do)";
    Error::new(ErrorKind::Unsupported, "find liveness token", "robust list", remedy)
}

#[cfg(test)]
mod tests;
