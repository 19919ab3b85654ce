//! The only door to atomics. The loom models (`tests/loom/`) compile the algorithm files behind a
//! door of their own, with the same names.

pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(tsan))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(tsan)]
pub(crate) use visible::{Mutex, MutexGuard};

/// A swap that no later SeqCst load passes. loom takes SeqCst accesses for AcqRel, so there it
/// comes with the fence that the argument needs.
#[inline]
pub(crate) fn swap_fenced(word: &AtomicU64, value: u64) -> u64 {
    word.swap(value, Ordering::SeqCst)
}

/// Stands between a SeqCst read-modify-write and a SeqCst load that must not pass it: on hardware
/// the two are enough. loom takes SeqCst accesses for AcqRel and puts a fence here.
#[inline(always)]
pub(crate) fn after_rmw() {}

/// Time passes: by now hardware has made visible what either side stored before. loom has no
/// clock and puts a fence here.
#[inline(always)]
pub(crate) fn time_passes() {}

/// Whether the fault `name` is planted: by a model, or by the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) const fn fault(_name: &str) -> bool {
    false
}

/// `order`; Relaxed where the fault `name` is planted.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) const fn unless_fault(_name: &str, order: Ordering) -> Ordering {
    order
}

#[cfg(feature = "faults")]
pub(crate) use planted::{fault, unless_fault};

/// Faults planted on purpose, to see that the tests catch them: the environment names one.
#[cfg(feature = "faults")]
mod planted {
    use std::sync::OnceLock;

    use super::Ordering;

    static PLANTED: OnceLock<Option<String>> = OnceLock::new();

    pub(crate) fn fault(name: &str) -> bool {
        let planted = PLANTED.get_or_init(|| std::env::var("OUTLIVE_FAULT").ok());
        planted.as_deref() == Some(name)
    }

    pub(crate) fn unless_fault(name: &str, order: Ordering) -> Ordering {
        if fault(name) { Ordering::Relaxed } else { order }
    }
}

/// std's mutex for ThreadSanitizer, which does not see into it: an atomic repeats what it orders.
#[cfg(tsan)]
mod visible {
    use std::ops::{Deref, DerefMut};
    use std::sync;
    use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

    use super::{AtomicU32, Ordering};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T> {
        order: AtomicU32,
        inner: sync::Mutex<T>,
    }

    #[derive(Debug)]
    pub(crate) struct MutexGuard<'a, T> {
        order: &'a AtomicU32,
        inner: sync::MutexGuard<'a, T>,
    }

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self { order: AtomicU32::new(0), inner: sync::Mutex::new(value) }
        }

        fn guard<'a>(&'a self, inner: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.order.load(Ordering::Acquire);
            MutexGuard { order: &self.order, inner }
        }

        pub(crate) fn get_mut(&mut self) -> LockResult<&mut T> {
            self.inner.get_mut()
        }

        pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            match self.inner.lock() {
                Ok(inner) => Ok(self.guard(inner)),
                Err(e) => Err(PoisonError::new(self.guard(e.into_inner()))),
            }
        }

        pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
            match self.inner.try_lock() {
                Ok(inner) => Ok(self.guard(inner)),
                Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
                Err(TryLockError::Poisoned(e)) => {
                    Err(PoisonError::new(self.guard(e.into_inner())).into())
                }
            }
        }
    }

    impl<T> Drop for MutexGuard<'_, T> {
        fn drop(&mut self) {
            // Before the field `inner` unlocks.
            self.order.store(1, Ordering::Release);
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.inner
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.inner
        }
    }
}
