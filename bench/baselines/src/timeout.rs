//! A lock that is taken over when its owner has held it for 10 ms.
//!
//! A slow owner, one that was stopped or had no core, goes on inside beside the one that took over.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use outlive::Result;

use crate::memory::SharedFile;
use crate::{Lock, Told, Use};

/// Longer than anybody should hold it.
const LIMIT: Duration = Duration::from_millis(10);

/// The lock that is taken over after a time.
#[derive(Clone, Copy, Debug)]
pub struct TimeoutLock;

/// It, in one process.
#[derive(Debug)]
pub struct OpenTimeoutLock(SharedFile);

impl Lock for TimeoutLock {
    type Open = OpenTimeoutLock;
    type Keeper = SharedFile;

    fn name(self) -> &'static str {
        "take-over by timeout"
    }

    fn shares(self) -> bool {
        false
    }

    fn make(self, dir: &Path) -> Result<SharedFile> {
        SharedFile::open(dir)
    }

    fn open(self, dir: &Path) -> Result<OpenTimeoutLock> {
        SharedFile::open(dir).map(OpenTimeoutLock)
    }
}

impl OpenTimeoutLock {
    /// Odd: held. Each taking has a number of its own.
    fn word(&self) -> &AtomicU64 {
        self.0.word64(0)
    }

    fn take(&self) -> (u64, Told) {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let seen = self.word().load(Relaxed);
            let held = seen % 2 == 1;
            let (next, told) =
                if held { (seen + 2, Told::OwnerDied) } else { (seen + 1, Told::Nothing) };
            if seen != last {
                (last, since) = (seen, Instant::now());
            }
            if held && since.elapsed() < LIMIT {
                std::thread::yield_now();
            } else if self.word().compare_exchange(seen, next, Acquire, Relaxed).is_ok() {
                return (next, told);
            }
        }
    }
}

impl Use for OpenTimeoutLock {
    fn alone(&self, inside: impl FnOnce(Told)) {
        let (turn, told) = self.take();
        inside(told);
        // Fails where somebody took it over.
        let _ = self.word().compare_exchange(turn, turn + 1, Release, Relaxed);
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        self.alone(inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TempDir;
    use std::sync::atomic::AtomicU32;

    /// The owner lives and works on while another one is inside.
    #[test]
    fn a_slow_owner_and_its_heir_are_inside_at_once() {
        let dir = TempDir::new("timeout");
        let lock = TimeoutLock.open(&dir.0).unwrap();
        let (inside, met) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                lock.alone(|_| {
                    inside.fetch_add(1, Relaxed);
                    while met.load(Relaxed) == 0 {
                        std::thread::sleep(LIMIT); // slow, not dead
                    }
                    inside.fetch_sub(1, Relaxed);
                });
            });
            while inside.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            lock.alone(|told| {
                assert_eq!(told, Told::OwnerDied, "nobody had died");
                met.store(inside.load(Relaxed), Relaxed);
            });
        });
        assert_eq!(met.load(Relaxed), 1, "two inside at once");
    }
}
