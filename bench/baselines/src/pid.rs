//! A sharable mutex; beside it the owner's process id, changed by compare-and-swap only, and a
//! lockless set of the readers' ids. Who finds the lock taken asks `stat` of /proc about its owner,
//! frees it where that is gone, and else sleeps 1 us.
//!
//! The mutex and the id are two words: a process that dies between them leaves a lock that is held
//! by nobody, for ever. Nobody is told that data may be half written. A number that a stranger got
//! keeps the lock of the dead; so does a zombie.

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use outlive::Result;

use crate::memory::SharedFile;
use crate::process::{is_gone, own_pid, pause};
use crate::{Lock, Told, Use};

const WRITER: u32 = 1 << 31;
/// Readers that the set has room for.
const READERS: usize = 64;

/// The lock with an owner's process id and a set of readers.
#[derive(Clone, Copy, Debug)]
pub struct PidLock {
    /// Ask the kernel for our id once, when opening.
    pub cached: bool,
}

/// It, in one process.
#[derive(Debug)]
pub struct OpenPidLock {
    page: SharedFile,
    cached: Option<u32>,
}

impl Lock for PidLock {
    type Open = OpenPidLock;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        if self.cached { "PID lock, id cached" } else { "PID lock" }
    }

    fn shares(self) -> bool {
        true
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        SharedFile::open(dir)
    }

    fn open(self, dir: &Path) -> Result<OpenPidLock> {
        let cached = self.cached.then(own_pid);
        Ok(OpenPidLock { page: SharedFile::open(dir)?, cached })
    }
}

impl OpenPidLock {
    /// The sharable mutex: WRITER, or how many share it.
    fn mutex(&self) -> &AtomicU32 {
        self.page.word32(0)
    }

    fn owner(&self) -> &AtomicU32 {
        self.page.word32(8)
    }

    fn readers(&self) -> &[AtomicU32; READERS] {
        self.page.words32(64)
    }

    fn me(&self) -> u32 {
        self.cached.unwrap_or_else(own_pid)
    }

    fn try_lock(&self) -> bool {
        self.mutex().compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    fn try_share(&self) -> bool {
        let seen = self.mutex().load(Relaxed);
        seen & WRITER == 0
            && self.mutex().compare_exchange(seen, seen + 1, Acquire, Relaxed).is_ok()
    }

    fn replace(&self, from: u32, to: u32) -> bool {
        let same = |word: &&AtomicU32| word.load(Relaxed) == from;
        self.readers()
            .iter()
            .filter(same)
            .any(|word| word.compare_exchange(from, to, SeqCst, Relaxed).is_ok())
    }

    /// Frees what the dead hold.
    fn repair(&self) {
        let owner = self.owner().load(SeqCst);
        if owner == 0 {
            for word in self.readers() {
                let reader = word.load(Relaxed);
                let dead = reader != 0 && is_gone(reader);
                if dead && word.compare_exchange(reader, 0, SeqCst, Relaxed).is_ok() {
                    self.mutex().fetch_sub(1, Release);
                }
            }
        } else if is_gone(owner) && self.owner().compare_exchange(owner, 0, SeqCst, SeqCst).is_ok()
        {
            self.mutex().fetch_and(!WRITER, Release);
        }
    }
}

impl Use for OpenPidLock {
    fn alone(&self, inside: impl FnOnce(Told)) {
        while !self.try_lock() {
            self.repair();
            pause();
        }
        self.owner().store(self.me(), SeqCst);
        inside(Told::Nothing);
        if self.owner().compare_exchange(self.me(), 0, SeqCst, SeqCst).is_ok() {
            self.mutex().fetch_and(!WRITER, Release);
        }
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        while !self.try_share() {
            self.repair();
            pause();
        }
        while !self.replace(0, self.me()) {
            pause();
        }
        inside(Told::Nothing);
        if self.replace(self.me(), 0) {
            self.mutex().fetch_sub(1, Release);
        }
    }
}
