//! A flag, and beside it the owner's process id: looked at and stored, never compared and swapped.
//!
//! Two waiters that find the same owner dead both free the lock, the second one under the feet of
//! whoever has taken it since. A process that dies between the flag and the id leaves it locked.

use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use outlive::Result;

use crate::memory::SharedFile;
use crate::process::{is_gone, own_pid, pause};
use crate::{Lock, Told, Use};

/// The naive lock with an owner's process id.
#[derive(Clone, Copy, Debug)]
pub struct NaiveLock;

/// It, in one process.
#[derive(Debug)]
pub struct OpenNaiveLock(SharedFile);

impl Lock for NaiveLock {
    type Open = OpenNaiveLock;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        "naive PID lock"
    }

    fn shares(self) -> bool {
        false
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        SharedFile::open(dir)
    }

    fn open(self, dir: &Path) -> Result<OpenNaiveLock> {
        SharedFile::open(dir).map(OpenNaiveLock)
    }
}

impl OpenNaiveLock {
    fn flag(&self) -> &AtomicU32 {
        self.0.word32(0)
    }

    fn owner(&self) -> &AtomicU32 {
        self.0.word32(8)
    }

    fn try_take(&self) -> bool {
        let taken = self.flag().compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        if taken {
            self.owner().store(own_pid(), Relaxed);
        }
        taken
    }

    fn owner_is_gone(&self) -> bool {
        let owner = self.owner().load(Relaxed);
        owner != 0 && is_gone(owner)
    }

    fn unlock(&self) {
        self.owner().store(0, Relaxed);
        self.flag().store(0, Release);
    }
}

impl Use for OpenNaiveLock {
    fn alone(&self, inside: impl FnOnce(Told)) {
        while !self.try_take() {
            if self.owner_is_gone() {
                self.unlock();
            } else {
                pause();
            }
        }
        inside(Told::Nothing);
        self.unlock();
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        self.alone(inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;
    use crate::tests::TempDir;

    /// The steps of two waiters as `alone` takes them, in the order that lets both in.
    #[test]
    fn two_waiters_free_the_lock_of_one_dead_owner_and_meet_inside() {
        let dir = TempDir::new("naive");
        let (one, two) = (NaiveLock.open(&dir.0).unwrap(), NaiveLock.open(&dir.0).unwrap());
        let mut dead = Process::fork(|| {}).unwrap();
        dead.kill();
        one.flag().store(1, Relaxed);
        one.owner().store(dead.pid() as u32, Relaxed);
        assert!(one.owner_is_gone() && two.owner_is_gone());
        one.unlock();
        assert!(one.try_take() && !two.try_take());
        two.unlock();
        assert!(two.try_take(), "both are inside");
    }
}
