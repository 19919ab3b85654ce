//! Locks between processes, behind one trait: outlive's, the C library's, and those that people
//! write themselves. Written anew to be measured and killed, never to be used.
//!
//! | file | lock | after a SIGKILL of its holder |
//! |---|---|---|
//! | `ours` | outlive's mutex and reader/writer lock | passes on, told |
//! | `pthread` | the C library's mutexes, its reader/writer lock | locked; robust: told |
//! | `naive` | a flag and the owner's process id | passes on, or locked, or free for two |
//! | `pid` | sharable mutex, atomic owner id, set of readers | passes on untold, or locked |
//! | `robust_rw` | reader/writer lock of eight robust mutexes | passes on, told |
//! | `tracker` | freed by a process that watches all | told, while the tracker lives |
//! | `timeout` | taken over after 10 ms | told, and so it is of slow owners |
//!
//! `kills` kills their holders at random.

mod memory;
mod naive;
mod ours;
mod pid;
mod process;
mod pthread;
mod robust_rw;
mod timeout;
mod tracker;

pub mod kills;

use std::path::Path;

pub use memory::SharedFile;
pub use naive::NaiveLock;
pub use ours::{OursMutex, OursRwLock};
use outlive::Result;
pub use pid::PidLock;
pub use process::Process;
pub use pthread::{OpenPthreadMutex, PthreadMutex, PthreadRwLock};
pub use robust_rw::RobustRw;
pub use timeout::TimeoutLock;
pub use tracker::{Tracker, TrackerLock};

/// What somebody who takes a lock is told about the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing: it let go, as far as the lock knows.
    Nothing,
    /// It died inside: the data may be half written. Only said to those who are alone inside.
    OwnerDied,
}

/// A lock that several processes can open in a directory.
pub trait Lock: Copy {
    /// It, in one process.
    type Open: Use;
    /// What must live as long as the lock is used.
    type Keeper;

    /// A short name for tables.
    fn name(self) -> &'static str;

    /// Whether several may be inside for reading; else `shared` is `alone`.
    fn shares(self) -> bool;

    /// Makes it, before anybody opens it.
    ///
    /// # Errors
    /// When the directory, the memory or the tracker cannot be made.
    fn make(self, dir: &Path) -> Result<Self::Keeper>;

    /// Opens it in this process.
    ///
    /// # Errors
    /// When it was not made, or the process cannot take part.
    fn open(self, dir: &Path) -> Result<Self::Open>;
}

/// The ways in. Neither runs `inside` where the lock is given up for good.
pub trait Use: Sync {
    /// Runs `inside` while nobody else is inside.
    fn alone(&self, inside: impl FnOnce(Told));
    /// Runs `inside` while nobody is inside alone.
    fn shared(&self, inside: impl FnOnce(Told));
}

/// Runs `$body` once for each lock, bound to `$lock`: outlive's first, then the C library's.
#[macro_export]
macro_rules! for_each_lock {
    ($lock:ident => $body:expr) => {{
        $crate::for_each_lock!(@one $lock $body;
            $crate::OursMutex,
            $crate::OursRwLock,
            $crate::PthreadMutex { robust: false },
            $crate::PthreadMutex { robust: true },
            $crate::PthreadRwLock,
            $crate::NaiveLock,
            $crate::PidLock { cached: false },
            $crate::PidLock { cached: true },
            $crate::RobustRw,
            $crate::TrackerLock,
            $crate::TimeoutLock
        );
    }};
    (@one $lock:ident $body:expr; $($value:expr),*) => { $( { let $lock = $value; $body } )* };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{Acquire, Relaxed};

    /// A directory of its own, removed at the end.
    pub(crate) struct TempDir(pub(crate) PathBuf);

    impl TempDir {
        pub(crate) fn new(label: &str) -> Self {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
            let dir = std::env::temp_dir().join(format!("baselines-{label}-{pid}-{n}"));
            std::fs::create_dir_all(&dir).unwrap();
            Self(dir)
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// A process that holds the lock until it is killed.
    pub(crate) fn hold(lock: impl Lock, dir: &Path) -> Process {
        let said = SharedFile::open(&dir.join("said")).unwrap();
        let holder = Process::fork(|| {
            lock.open(dir).unwrap().alone(|_| {
                said.word32(0).store(1, Relaxed);
                loop {
                    std::thread::park();
                }
            });
        });
        while said.word32(0).load(Acquire) == 0 {
            std::thread::yield_now();
        }
        holder.unwrap()
    }

    pub(crate) fn hold_and_die(lock: impl Lock, dir: &Path) {
        hold(lock, dir).kill();
    }

    #[test]
    fn each_lock_keeps_threads_apart_and_lets_them_all_through() {
        for_each_lock!(lock => {
            let dir = TempDir::new("apart");
            let _keeper = lock.make(&dir.0).unwrap();
            let open = lock.open(&dir.0).unwrap();
            let (count, torn) = (AtomicU64::new(0), AtomicU64::new(0));
            let taken_over = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            open.alone(|told| {
                                taken_over.fetch_add(u64::from(told != Told::Nothing), Relaxed);
                                let seen = count.load(Relaxed);
                                std::thread::yield_now();
                                count.store(seen + 1, Relaxed);
                            });
                            open.shared(|told| {
                                taken_over.fetch_add(u64::from(told != Told::Nothing), Relaxed);
                                let seen = count.load(Relaxed);
                                std::hint::spin_loop();
                                torn.fetch_add(u64::from(count.load(Relaxed) != seen), Relaxed);
                            });
                        }
                    });
                }
            });
            let name = lock.name();
            // On a machine that stands still for 10 ms the slow owner has company, as it says.
            if taken_over.load(Relaxed) == 0 || name != TimeoutLock.name() {
                let outcome = (count.load(Relaxed), torn.load(Relaxed), taken_over.load(Relaxed));
                assert_eq!(outcome, (600, 0, 0), "{name}");
            }
        });
    }

    /// Whether somebody gets in after the death of a holder, and is told.
    fn after_death(lock: impl Lock) -> Option<Told> {
        let dir = TempDir::new("death");
        let _keeper = lock.make(&dir.0).unwrap();
        hold_and_die(lock, &dir.0);
        let said = SharedFile::open(&dir.0.join("said")).unwrap();
        let mut next = Process::fork(|| {
            let told = |told| said.word32(8).store(1 + told as u32, Relaxed);
            lock.open(&dir.0).unwrap().alone(told);
        })
        .unwrap();
        next.ends_within(std::time::Duration::from_millis(500));
        match said.word32(8).load(Acquire) {
            0 => None,
            1 => Some(Told::Nothing),
            _ => Some(Told::OwnerDied),
        }
    }

    #[test]
    fn who_passes_on_is_as_the_table_says() {
        let told = Some(Told::OwnerDied);
        assert_eq!(after_death(OursMutex), told);
        assert_eq!(after_death(OursRwLock), told);
        assert_eq!(after_death(PthreadMutex { robust: true }), told);
        assert_eq!(after_death(RobustRw), told);
        assert_eq!(after_death(TimeoutLock), told);
        assert_eq!(after_death(PidLock { cached: true }), Some(Told::Nothing));
        assert_eq!(after_death(NaiveLock), Some(Told::Nothing));
        assert_eq!(after_death(PthreadMutex { robust: false }), None);
        assert_eq!(after_death(PthreadRwLock), None);
    }
}
