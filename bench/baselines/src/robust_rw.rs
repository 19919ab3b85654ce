//! A reader/writer lock of eight robust mutexes: a reader takes one of them, a writer all.
//!
//! It survives, and tells: a writer says in a flag that it writes. It costs a writer eight locks,
//! two readers whose threads share a mutex wait for each other, and the C library keeps a list.

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use outlive::Result;

use crate::memory::SharedFile;
use crate::pthread::PthreadMutex;
use crate::{Lock, Told, Use};

const PARTS: usize = 8;
const PART_BYTES: usize = 128;
const FLAG: usize = PARTS * PART_BYTES;

/// The reader/writer lock of robust mutexes.
#[derive(Clone, Copy, Debug)]
pub struct RobustRw;

/// It, in one process.
#[derive(Debug)]
pub struct OpenRobustRw(SharedFile);

impl Lock for RobustRw {
    type Open = OpenRobustRw;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        "rwlock of robust mutexes"
    }

    fn shares(self) -> bool {
        true
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        let page = SharedFile::open(dir)?;
        for part in 0..PARTS {
            let memory = page.at(part * PART_BYTES, PART_BYTES);
            // SAFETY: zeroes of a shared page, aligned, one mutex in each part.
            unsafe { PthreadMutex { robust: true }.make_at(memory)? };
        }
        Ok(page)
    }

    fn open(self, dir: &Path) -> Result<OpenRobustRw> {
        SharedFile::open(dir).map(OpenRobustRw)
    }
}

impl OpenRobustRw {
    fn part(&self, n: usize) -> *mut libc::pthread_mutex_t {
        self.0.at(n * PART_BYTES, PART_BYTES).cast()
    }

    /// A writer is inside, or died there.
    fn writing(&self) -> &AtomicU32 {
        self.0.word32(FLAG)
    }

    fn lock(&self, n: usize) {
        // SAFETY: made by `make`, mapped as long as `self`.
        unsafe {
            if libc::pthread_mutex_lock(self.part(n)) == libc::EOWNERDEAD {
                // What it means for the data says the flag.
                libc::pthread_mutex_consistent(self.part(n));
            }
        }
    }

    fn unlock(&self, n: usize) {
        // SAFETY: locked by this thread in `lock`.
        unsafe { libc::pthread_mutex_unlock(self.part(n)) };
    }

    /// Which part this thread reads on.
    fn own_part() -> usize {
        thread_local! { static PART: usize = {
            // SAFETY: takes nothing, cannot fail.
            unsafe { libc::gettid() as usize % PARTS }
        } }
        PART.with(|part| *part)
    }
}

impl Use for OpenRobustRw {
    fn alone(&self, inside: impl FnOnce(Told)) {
        (0..PARTS).for_each(|n| self.lock(n));
        let told = if self.writing().load(Relaxed) == 1 { Told::OwnerDied } else { Told::Nothing };
        self.writing().store(1, Relaxed);
        inside(told);
        self.writing().store(0, Relaxed);
        (0..PARTS).rev().for_each(|n| self.unlock(n));
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        let part = Self::own_part();
        self.lock(part);
        if self.writing().load(Relaxed) == 1 {
            // Only who is alone inside can repair.
            self.unlock(part);
            return self.alone(inside);
        }
        inside(Told::Nothing);
        self.unlock(part);
    }
}
