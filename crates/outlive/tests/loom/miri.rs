//! loom's names with real threads behind them, for Miri, which has a scheduler, a detector of
//! races and stale values of its own. loom looks at every way of a small model; this walks some
//! ways through it by chance, under rules that loom does not know: C++20's, and those of Rust for
//! plain memory. A walk follows from Miri's seed.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use crate::sync::planted;

/// Walks of one model, and of a mutant, most of which end it long before.
const WALKS: u32 = 10;
const WALKS_OF_A_MUTANT: u32 = 1000;
/// A thread goes on without a pause for so many accesses on average, in this walk.
const PACES: [u64; 4] = [2, 4, 8, 16];

std::thread_local! {
    static CHANCE: Cell<u64> = Cell::new(RandomState::new().hash_one(0) | 1);
    static PACE: Cell<u64> = const { Cell::new(4) };
}

/// Below `n`, by chance (xorshift64).
fn chance(n: u64) -> u64 {
    let mut x = CHANCE.get();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    CHANCE.set(x);
    x % n
}

/// Before each access to a shared word: another thread may go on here.
pub(crate) fn may_pause() {
    if chance(PACE.get()) == 0 {
        std::thread::yield_now();
    }
}

/// The mutant of this run, if it is one: then there is nothing to do but its model.
pub(crate) fn mutant() -> Option<String> {
    std::env::var("OUTLIVE_MUTANT").ok()
}

pub(crate) fn model(body: impl Fn()) {
    let walks = match (planted().is_some(), mutant().is_some()) {
        (true, true) => WALKS_OF_A_MUTANT,
        (false, true) => 0,
        _ => WALKS,
    };
    for _ in 0..walks {
        PACE.set(PACES[chance(PACES.len() as u64) as usize]);
        body();
    }
}

pub(crate) mod model {
    pub(crate) struct Builder {
        pub(crate) preemption_bound: Option<usize>,
    }

    impl Builder {
        pub(crate) fn new() -> Self {
            Self { preemption_bound: None }
        }

        pub(crate) fn check(&self, body: impl Fn()) {
            super::model(body);
        }
    }
}

pub(crate) mod thread {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    pub(crate) use std::thread::yield_now;

    use super::{CHANCE, PACE, chance};
    use crate::sync::{plant, planted};

    /// What loom's threads share without a thought, since they run one at a time.
    struct Shared<T>(T);

    // SAFETY: Miri tells of each race.
    unsafe impl<T> Send for Shared<T> {}

    impl<T> Shared<T> {
        fn into_inner(self) -> T {
            self.0
        }
    }

    pub(crate) struct JoinHandle<T>(std::thread::JoinHandle<Shared<T>>);

    impl<T> JoinHandle<T> {
        pub(crate) fn join(self) -> std::thread::Result<T> {
            self.0.join().map(Shared::into_inner)
        }
    }

    pub(crate) fn spawn<T: 'static>(body: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
        let body = Shared(body);
        // A thread takes so long to begin that the other one would be over.
        let begun = std::sync::Arc::new(AtomicBool::new(false));
        let begins = begun.clone();
        let (fault, pace, seed) = (planted(), PACE.get(), chance(u64::MAX) | 1);
        let thread = std::thread::spawn(move || {
            (CHANCE.set(seed), PACE.set(pace), plant(fault));
            begins.store(true, Relaxed);
            yield_now();
            Shared(body.into_inner()())
        });
        while !begun.load(Relaxed) {
            yield_now();
        }
        JoinHandle(thread)
    }
}

pub(crate) mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, atomic};
}

pub(crate) mod cell {
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

pub(crate) use std::thread_local;
