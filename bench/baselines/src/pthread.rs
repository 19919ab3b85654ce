//! The C library's: mutex, robust mutex, reader/writer lock, all process-shared.

use std::mem::MaybeUninit;
use std::path::Path;

use outlive::Result;

use crate::memory::{SharedFile, failed};
use crate::{Lock, Told, Use};

/// The C library's mutex, plain or robust.
#[derive(Clone, Copy, Debug)]
pub struct PthreadMutex {
    /// A dead owner's passes on with `EOWNERDEAD`; else it stays locked.
    pub robust: bool,
}

/// It, in one process.
#[derive(Debug)]
pub struct OpenPthreadMutex {
    mutex: *mut libc::pthread_mutex_t,
    /// Keeps the page; `None` where the memory is the caller's.
    _page: Option<SharedFile>,
}

// SAFETY: a mutex is there to be shared; its page is kept mapped.
unsafe impl Send for OpenPthreadMutex {}
// SAFETY: as above.
unsafe impl Sync for OpenPthreadMutex {}

pub(crate) fn check(what: &str, code: i32) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(failed(what, "a lock of the C library", std::io::Error::from_raw_os_error(code)))
}

impl PthreadMutex {
    /// Makes a mutex in memory of the caller's.
    ///
    /// # Errors
    /// `Io` when the C library refuses.
    ///
    /// # Safety
    /// `memory` is zeroed, shared, aligned, has room for a mutex and is mapped until nobody uses
    /// it any more.
    pub unsafe fn make_at(self, memory: *mut u8) -> Result<OpenPthreadMutex> {
        let mutex: *mut libc::pthread_mutex_t = memory.cast();
        let mut attr = MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: `attr` is initialised first; the memory is as promised.
        unsafe {
            check("make", libc::pthread_mutexattr_init(attr))?;
            check("make", libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED))?;
            if self.robust {
                check("make", libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST))?;
            }
            check("make", libc::pthread_mutex_init(mutex, attr))?;
        }
        Ok(OpenPthreadMutex { mutex, _page: None })
    }
}

impl Lock for PthreadMutex {
    type Open = OpenPthreadMutex;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        if self.robust { "pthread robust mutex" } else { "pthread mutex" }
    }

    fn shares(self) -> bool {
        false
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        let page = SharedFile::open(dir)?;
        // SAFETY: a page of zeroes, shared; others map it anew.
        unsafe { self.make_at(page.at(0, 64))? };
        Ok(page)
    }

    fn open(self, dir: &Path) -> Result<OpenPthreadMutex> {
        let page = SharedFile::open(dir)?;
        Ok(OpenPthreadMutex { mutex: page.at(0, 64).cast(), _page: Some(page) })
    }
}

impl OpenPthreadMutex {
    /// Whether a living thread holds it, asked by a trylock. Who gets it that way keeps it.
    #[inline(always)]
    pub fn is_held(&self) -> bool {
        // SAFETY: made by `make_at`, still mapped.
        unsafe { libc::pthread_mutex_trylock(self.mutex) == libc::EBUSY }
    }

    /// Takes it and keeps it.
    pub fn seize(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_lock(self.mutex) };
    }
}

impl Use for OpenPthreadMutex {
    #[inline(always)]
    fn alone(&self, inside: impl FnOnce(Told)) {
        // SAFETY: made by `make`, mapped; unlocked by the thread that locked it.
        let told = match unsafe { libc::pthread_mutex_lock(self.mutex) } {
            libc::EOWNERDEAD => Told::OwnerDied,
            _ => Told::Nothing,
        };
        inside(told);
        // SAFETY: as above.
        unsafe {
            if told == Told::OwnerDied {
                libc::pthread_mutex_consistent(self.mutex);
            }
            libc::pthread_mutex_unlock(self.mutex);
        }
    }

    #[inline(always)]
    fn shared(&self, inside: impl FnOnce(Told)) {
        self.alone(inside);
    }
}

/// The C library's reader/writer lock.
#[derive(Clone, Copy, Debug)]
pub struct PthreadRwLock;

/// It, in one process.
#[derive(Debug)]
pub struct OpenPthreadRwLock {
    lock: *mut libc::pthread_rwlock_t,
    _page: SharedFile,
}

// SAFETY: as for the mutex.
unsafe impl Send for OpenPthreadRwLock {}
// SAFETY: as above.
unsafe impl Sync for OpenPthreadRwLock {}

impl Lock for PthreadRwLock {
    type Open = OpenPthreadRwLock;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        "pthread rwlock"
    }

    fn shares(self) -> bool {
        true
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        let page = SharedFile::open(dir)?;
        let mut attr = MaybeUninit::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: as in `PthreadMutex::make_at`.
        unsafe {
            let shared = libc::PTHREAD_PROCESS_SHARED;
            check("make", libc::pthread_rwlockattr_init(attr))?;
            check("make", libc::pthread_rwlockattr_setpshared(attr, shared))?;
            check("make", libc::pthread_rwlock_init(page.at(0, 64).cast(), attr))?;
        }
        Ok(page)
    }

    fn open(self, dir: &Path) -> Result<OpenPthreadRwLock> {
        let page = SharedFile::open(dir)?;
        Ok(OpenPthreadRwLock { lock: page.at(0, 64).cast(), _page: page })
    }
}

impl Use for OpenPthreadRwLock {
    #[inline(always)]
    fn alone(&self, inside: impl FnOnce(Told)) {
        // SAFETY: made by `make`, mapped; unlocked by the thread that locked it.
        unsafe { libc::pthread_rwlock_wrlock(self.lock) };
        inside(Told::Nothing);
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_unlock(self.lock) };
    }

    #[inline(always)]
    fn shared(&self, inside: impl FnOnce(Told)) {
        // SAFETY: as in `alone`.
        unsafe { libc::pthread_rwlock_rdlock(self.lock) };
        inside(Told::Nothing);
        // SAFETY: as in `alone`.
        unsafe { libc::pthread_rwlock_unlock(self.lock) };
    }
}
