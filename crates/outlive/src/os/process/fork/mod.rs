//! What a forked child must know and must not keep, and what runs when a thread ends.
//!
//! A child is not the node: it sees another `fork_generation`, and the descriptors whose locks mean
//! "alive" are replaced by inert ones, so that its life does not prolong the parent's.
//!
//! | made by | sees another generation | loses the descriptors |
//! |---|---|---|
//! | `fork` | from the start | before `fork` returns |
//! | raw `clone`, which runs no handlers | from the start: the kernel clears its page | later |
//! | `vfork`, `clone` with `CLONE_VM` | no: it has its parent's memory, and may only `exec` | - |
//!
//! Later: at its first call that opens something or answers `ForkedChild`.
#![allow(unsafe_code)]

pub(crate) mod per_process;
pub(crate) mod wiped;

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr::NonNull;

use crate::os::fs::filelock;
use crate::os::fs::kept::{KeptFd, Now};
use crate::os::syserr;
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fault};
use crate::{Error, ErrorKind, Result};

/// A word alone in its pages, which the kernel clears in children (`MADV_WIPEONFORK`, Linux 4.14).
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct Pages {
    /// 0 until `install`, and in a child that nobody has told of it; `TAKEN` inside `begin`.
    generation: AtomicU32,
}

static PAGES: Pages = Pages { generation: AtomicU32::new(0) };
/// The last generation of this line of processes.
static LAST: AtomicU32 = AtomicU32::new(0);
const TAKEN: u32 = u32::MAX;
/// Looks at somebody else's `begin`, some system calls long. Where the page cannot be cleared, it
/// may be that of a thread that a child does not have.
const TAKEN_TRIES_MAX: u32 = 100_000;

/// How often this process's line has been forked; differs between a parent and its children. 0
/// before `install`, and in a child until it opens something of its own.
#[inline(always)]
pub(crate) fn fork_generation() -> u32 {
    if fault("fork.child_is_parent") {
        return 0;
    }
    PAGES.generation.load(Ordering::Relaxed)
}

/// Descriptors at most that a child must not keep: one for each node, queue's consumer and lock.
pub(crate) const CLOSE_MAX: usize = 16384;
/// Tries to open a file while nobody forks.
const TRIES_MAX: u32 = 1000;
/// `fd + 1`, 0 for a free slot, or `BEING_SET`.
static CLOSE: [AtomicU32; CLOSE_MAX] = [const { AtomicU32::new(0) }; CLOSE_MAX];
/// The inode of each: a number that is another file's by now is left alone.
static INODES: [AtomicU64; CLOSE_MAX] = [const { AtomicU64::new(0) }; CLOSE_MAX];
const BEING_SET: u32 = 1 << 31;

/// Forks that this process has begun and ended; they differ while one is under way.
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// From now on `fork_generation` counts. Called by all that needs it; again is harmless.
#[inline]
pub(crate) fn install() {
    if matches!(PAGES.generation.load(Ordering::Relaxed), 0 | TAKEN) {
        begin();
    }
}

/// Gives this process its generation: the first of its line, or a child that was made without our
/// handlers. Not a `Once`: a child that was forked in the middle of one would wait for ever.
#[cold]
fn begin() {
    static INSTALLED: AtomicU32 = AtomicU32::new(0);
    // Before anything is written there, so that a child never finds `TAKEN`. Twice is harmless.
    if INSTALLED.load(Ordering::Relaxed) == 0 {
        let bytes = align_of::<Pages>();
        let advice = if fault("wiped.kept") { libc::MADV_NORMAL } else { libc::MADV_WIPEONFORK };
        // SAFETY: whole pages that hold nothing but the word. A kernel that cannot do it (before
        // 4.14, or with larger pages) leaves raw clones unnoticed. The handlers are
        // async-signal-safe, as a child of a threaded process needs; they can only be refused for
        // lack of memory, and then forks are noticed as raw clones are.
        unsafe {
            libc::madvise((&raw const PAGES).cast_mut().cast(), bytes, advice);
            libc::pthread_atfork(Some(begins), Some(ends), Some(in_child));
        }
        INSTALLED.store(1, Ordering::Relaxed);
    }
    let word = &PAGES.generation;
    for _ in 0..TAKEN_TRIES_MAX {
        // ORDERING(GENERATION): pairs with the store below; who waited finds the table emptied.
        match word.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Acquire) {
            Ok(_) => break,
            Err(TAKEN) => super::sched::yield_now(),
            Err(_) => return,
        }
    }
    if LAST.load(Ordering::Relaxed) != 0 {
        lose_descriptors();
    }
    // ORDERING(GENERATION): pairs with the exchange above; carries the emptied table.
    word.store(LAST.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Release);
}

unsafe extern "C" fn begins() {
    BEGUN.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn ends() {
    ENDED.fetch_add(1, Ordering::SeqCst);
}

/// A descriptor whose lock must not live on in a forked child.
#[derive(Debug)]
pub(crate) struct NotInChild {
    fd: KeptFd,
    page: Option<Page>,
    born: u32,
}

/// A page of the file, mapped through the descriptor and never touched: with it the kernel keeps
/// the lock when somebody closes the descriptor. Children do not get it.
#[derive(Debug)]
struct Page(NonNull<c_void>);

// SAFETY: an address that is only unmapped.
unsafe impl Send for Page {}
// SAFETY: the same.
unsafe impl Sync for Page {}

impl Page {
    fn of(fd: &impl AsFd) -> Result<Option<Self>> {
        if fault("lock.by_descriptor_alone") {
            return Ok(None);
        }
        Self::unmap_left();
        let number = fd.as_fd().as_raw_fd();
        // SAFETY: a new map, which nobody accesses.
        unsafe {
            let start =
                libc::mmap(std::ptr::null_mut(), 1, libc::PROT_NONE, libc::MAP_SHARED, number, 0);
            if start == libc::MAP_FAILED {
                return Err(syserr::last("map", "the file of a lock"));
            }
            let page = NonNull::new(start).map(Self);
            if libc::madvise(start, 1, libc::MADV_DONTFORK) == 0 {
                return Ok(page);
            }
            if let Some(page) = page {
                page.unmap();
            }
            Ok(None)
        }
    }

    /// In the process that has mapped it. Without memory for that, the next one that is mapped
    /// tries again: until then the lock may be held.
    fn unmap(self) {
        if !unmap(self.0.as_ptr()) {
            let left = |slot: &AtomicPtr<c_void>| {
                let (none, page) = (std::ptr::null_mut(), self.0.as_ptr());
                slot.compare_exchange(none, page, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            };
            LEFT.iter().any(left);
        }
    }

    fn unmap_left() {
        for slot in &LEFT {
            let page = slot.swap(std::ptr::null_mut(), Ordering::Relaxed);
            if let Some(page) = NonNull::new(page) {
                Self(page).unmap();
            }
        }
    }
}

/// Pages that could not be unmapped.
static LEFT: [AtomicPtr<c_void>; 16] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 16];

fn unmap(page: *mut c_void) -> bool {
    // SAFETY: mapped by `Page::of`, and by nobody used.
    unsafe { libc::munmap(page, 1) == 0 }
}

impl NotInChild {
    /// Opens the file to be locked; `open` makes a new open file each time. Lock it afterwards.
    ///
    /// # Errors
    /// Those of `open`; as `register_close_in_child`.
    pub(crate) fn open(open: impl FnMut() -> Result<OwnedFd>) -> Result<Self> {
        Self::beside_no_fork(open, |_| Ok(None))
    }

    /// As `open`, for a lock that says that somebody lives: it stays when a program closes
    /// descriptors that are not its own. `open` opens a regular file.
    ///
    /// # Errors
    /// Those of `open`, and of a map.
    pub(crate) fn open_for_life(open: impl FnMut() -> Result<OwnedFd>) -> Result<Self> {
        Self::beside_no_fork(open, Page::of)
    }

    fn beside_no_fork(
        mut open: impl FnMut() -> Result<OwnedFd>,
        page: impl Fn(&OwnedFd) -> Result<Option<Page>>,
    ) -> Result<Self> {
        install();
        let mut tries = 0;
        loop {
            let ended = ENDED.load(Ordering::SeqCst);
            let fd = open()?;
            let page = page(&fd)?;
            let fd = Self::new(fd, page)?;
            tries += 1;
            // A child forked in between has the same open file and would share its lock. SeqCst
            // with `begins` and `ends`: a fork that this misses comes after the registration.
            if BEGUN.load(Ordering::SeqCst) == ended || tries == TRIES_MAX {
                return Ok(fd);
            }
        }
    }

    fn new(fd: OwnedFd, page: Option<Page>) -> Result<Self> {
        let held =
            Self { fd: KeptFd::new(fd, Path::new("a lock"))?, page, born: fork_generation() };
        register_close_in_child(held.fd.number(), held.fd.file().1)?;
        Ok(held)
    }

    /// Lets the lock go. One whose descriptor was closed goes with the owner.
    pub(crate) fn unlock(&self) {
        if let Some(fd) = self.fd.ours() {
            filelock::unlock(&fd);
        }
    }

    /// Device and inode of the file.
    pub(crate) fn file(&self) -> (u64, u64) {
        self.fd.file()
    }

    /// The file at `path`, even if the descriptor was closed.
    pub(crate) fn now(&self, path: &Path) -> Result<Now<'_>> {
        self.fd.now(path, true)
    }
}

impl AsFd for NotInChild {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for NotInChild {
    fn drop(&mut self) {
        // In a child the lock is the parent's, which a raw clone still could let go.
        if self.born == fork_generation() {
            self.unlock();
            if let Some(page) = self.page.take() {
                page.unmap();
            }
            unregister_close_in_child(self.fd.number());
        }
    }
}

/// Makes every later forked child lose this descriptor; its number stays taken by an inert one, so
/// that the child's copy of the owner may close it. Errors: `TooManyMembers` past `CLOSE_MAX`.
pub(crate) fn register_close_in_child(fd: RawFd, inode: u64) -> Result<()> {
    install();
    if let Some(slot) = replace_slot(0, BEING_SET) {
        INODES[slot].store(inode, Ordering::Relaxed);
        // ORDERING(CLOSE): pairs with `lose_descriptors`; carries the inode.
        CLOSE[slot].store(fd as u32 + 1, Ordering::Release);
        return Ok(());
    }
    let (what, object) = ("guard against fork", format!("descriptor {fd}"));
    Err(Error::new(ErrorKind::TooManyMembers, what, object, "open fewer nodes in one process"))
}

/// Ends `register_close_in_child`; call it after unlocking and before closing the descriptor.
pub(crate) fn unregister_close_in_child(fd: RawFd) {
    replace_slot(fd as u32 + 1, 0);
}

fn replace_slot(from: u32, to: u32) -> Option<usize> {
    let replace = |slot: &AtomicU32| {
        slot.load(Ordering::Relaxed) == from
            && slot.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    CLOSE.iter().position(replace)
}

/// Runs in the child between `fork` and its return: async-signal-safe calls only.
unsafe extern "C" fn in_child() {
    lose_descriptors();
    PAGES.generation.store(LAST.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// In a child, before it has a generation: async-signal-safe calls only.
fn lose_descriptors() {
    // Maps that a child does not have.
    LEFT.iter().for_each(|slot| slot.store(std::ptr::null_mut(), Ordering::Relaxed));
    // Forks of other threads that were under way are none of the child's.
    ENDED.store(BEGUN.load(Ordering::Relaxed), Ordering::Relaxed);
    let mut inert = -1;
    for (slot, inode) in CLOSE.iter().zip(&INODES) {
        // ORDERING(CLOSE): pairs with `register_close_in_child`, in a thread that forked beside it.
        let value = slot.load(Ordering::Acquire);
        if matches!(value, 0 | BEING_SET) {
            continue;
        }
        let fd = value as RawFd - 1;
        slot.store(0, Ordering::Relaxed);
        if inode_of(fd).is_some_and(|now| now != inode.load(Ordering::Relaxed)) {
            continue;
        }
        // SAFETY: system calls on numbers; `fd` was open in the parent, so it is here, and nobody
        // else runs in the child yet. A plain close is the last resort (no descriptors left).
        unsafe {
            if inert < 0 {
                inert = libc::eventfd(0, libc::EFD_CLOEXEC);
            }
            if inert < 0 || libc::dup3(inert, fd, libc::O_CLOEXEC) < 0 {
                libc::close(fd);
            }
        }
    }
    if inert >= 0 {
        // SAFETY: opened above.
        unsafe { libc::close(inert) };
    }
}

fn inode_of(fd: RawFd) -> Option<u64> {
    // SAFETY: a stat struct is integers, filled by the call, which is async-signal-safe.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &mut stat) == 0).then_some(stat.st_ino)
    }
}

/// What to run when a thread ends.
pub(crate) type ExitHook = fn(*mut c_void);

/// The thread's hooks, owned by its slot of the pthread key.
struct Hooks(Vec<(ExitHook, *mut c_void)>);

/// The key + 1; 0 until it is made.
static KEY: AtomicU32 = AtomicU32::new(0);

fn key() -> Result<libc::pthread_key_t> {
    // ORDERING(EXIT_KEY): pairs with the exchange below; the C library knows the key by then.
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        return Ok(key);
    }
    let mut key = 0;
    // SAFETY: fills `key`; the destructor takes what `hooks_of_thread` stores.
    let rc = unsafe { libc::pthread_key_create(&mut key, Some(run_hooks)) };
    if rc != 0 {
        return Err(syserr::from_code("watch for the end of", "thread", rc));
    }
    // ORDERING(EXIT_KEY): pairs with the load above.
    match KEY.compare_exchange(0, key + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Ok(key),
        Err(other) => {
            // SAFETY: made above and never used.
            unsafe { libc::pthread_key_delete(key) };
            Ok(other - 1)
        }
    }
}

/// Runs `hook(ptr)` when the calling thread ends (returns, is cancelled or calls `pthread_exit`),
/// last registered first. Not at `exit` of the process: its death needs no hook.
///
/// # Safety
/// `ptr` stays valid for the hook until the thread has ended. The hook must not use thread-locals
/// with destructors (their order is unspecified).
///
/// # Errors
/// `Io` when the process is out of thread keys.
pub(crate) unsafe fn thread_exit_hook(hook: ExitHook, ptr: *mut c_void) -> Result<()> {
    let hooks = hooks_of_thread()?;
    // SAFETY: this thread's own list, not borrowed elsewhere: hooks run only after it ends.
    unsafe { (*hooks).0.push((hook, ptr)) };
    Ok(())
}

/// Takes a hook of the calling thread out; false when this thread has none for `ptr`.
#[cfg(test)]
pub(crate) fn remove_thread_exit_hook(ptr: *mut c_void) -> bool {
    let Ok(hooks) = hooks_of_thread() else {
        return false;
    };
    // SAFETY: as in `thread_exit_hook`.
    let list = unsafe { &mut (*hooks).0 };
    let found = list.iter().rposition(|h| h.1 == ptr);
    found.map(|at| list.remove(at)).is_some()
}

fn hooks_of_thread() -> Result<*mut Hooks> {
    let key = key()?;
    // SAFETY: the key is never deleted; the destructor takes back the Box put here.
    unsafe {
        let known: *mut Hooks = libc::pthread_getspecific(key).cast();
        if !known.is_null() {
            return Ok(known);
        }
        let new = Box::into_raw(Box::new(Hooks(Vec::new())));
        match libc::pthread_setspecific(key, new.cast()) {
            0 => Ok(new),
            rc => {
                drop(Box::from_raw(new));
                Err(syserr::from_code("watch for the end of", "thread", rc))
            }
        }
    }
}

unsafe extern "C" fn run_hooks(hooks: *mut c_void) {
    // SAFETY: the Box that `hooks_of_thread` stored for this thread; the key's slot is empty now.
    let hooks = unsafe { Box::from_raw(hooks.cast::<Hooks>()) };
    for (hook, ptr) in hooks.0.into_iter().rev() {
        hook(ptr);
    }
}

#[cfg(test)]
mod tests;
