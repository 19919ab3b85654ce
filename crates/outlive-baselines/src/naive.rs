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

    fn unlock(&self) {
        self.owner().store(0, Relaxed);
        self.flag().store(0, Release);
    }
}

impl Use for OpenNaiveLock {
    fn alone(&self, inside: impl FnOnce(Told)) {
        while self.flag().compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            let owner = self.owner().load(Relaxed);
            if owner != 0 && is_gone(owner) {
                self.unlock();
            } else {
                pause();
            }
        }
        self.owner().store(own_pid(), Relaxed);
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
    use std::sync::Barrier;

    /// Three waiters of one dead owner, again and again, until two are inside at once.
    #[test]
    fn two_waiters_free_the_lock_of_one_dead_owner_and_meet_inside() {
        let dir = TempDir::new("naive");
        let lock = NaiveLock.open(&dir.0).unwrap();
        let mut dead = Process::fork(|| {}).unwrap();
        dead.kill();
        let (inside, met, rounds) = (AtomicU32::new(0), AtomicU32::new(0), 200_000);
        let (begin, end) = (Barrier::new(4), Barrier::new(4));
        let stop = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        begin.wait();
                        if stop.load(Relaxed) == 1 {
                            return;
                        }
                        lock.alone(|_| {
                            met.fetch_add(inside.fetch_add(1, Relaxed), Relaxed);
                            (0..300).for_each(|_| std::hint::spin_loop());
                            inside.fetch_sub(1, Relaxed);
                        });
                        end.wait();
                    }
                });
            }
            for round in 0..=rounds {
                lock.flag().store(1, Relaxed);
                lock.owner().store(dead.pid() as u32, Relaxed);
                if met.load(Relaxed) > 0 || round == rounds {
                    stop.store(1, Relaxed);
                    begin.wait();
                    break;
                }
                begin.wait();
                end.wait();
            }
        });
        assert!(met.load(Relaxed) > 0, "no double unlock in {rounds} deaths");
    }
}
