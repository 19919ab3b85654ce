//! A mutex with its data in shared memory.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::time::Duration;

use super::error::{Inherited, LockError, LockResult, Sealed};
use super::layout::{self, LockKind};
use super::object::{Object, Spec};
use super::raw_mutex::RawMutex;
use super::wait::{FOREVER, NEVER};
use super::word::Got;
use crate::node::Node;
use crate::topic::Message;
use crate::{Result, now_ns};

/// A mutex whose owner may be killed at any instruction: the next one gets the data, and is told.
///
/// It lies in a file of the domain ([`Node::mutex`]), in a [`Segment`](super::Segment), or in
/// shared memory of the user's own. Any number of threads may use one handle.
///
/// A thread that ends while it holds the lock, a panic that drops the guard, and a forgotten guard
/// whose thread ends all count as the owner's death.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::LockError;
/// let node = outlive::Node::builder().root(dir.path()).name("planner").open()?;
/// let counter = node.mutex::<u64>("/shared/counter")?;
/// *counter.lock()? += 1;
///
/// let mut guard = match counter.lock() {
///     Ok(guard) => guard,
///     Err(LockError::OwnerDied(mut left)) => {
///         *left = 0; // repair
///         left.mark_consistent()
///     }
///     Err(e) => return Err(e.into()),
/// };
/// assert_eq!(*guard, 1);
/// *guard += 1;
/// # drop(guard);
/// # Ok::<(), outlive::Error>(())
/// ```
pub struct RobustMutex<T: Message> {
    raw: RawMutex,
    data: NonNull<T>,
}

// SAFETY: hands out `&mut T` to one thread at a time; `T: Message` is Send and Sync.
unsafe impl<T: Message> Send for RobustMutex<T> {}
// SAFETY: as above.
unsafe impl<T: Message> Sync for RobustMutex<T> {}

type Held<'a, T> = LockResult<MutexGuard<'a, T>, Inherited<MutexGuard<'a, T>>>;

impl<T: Message> RobustMutex<T> {
    /// Bytes it takes in a segment or in memory of the user's own.
    pub const BYTES: usize = layout::mutex_data(align_of::<T>()) + size_of::<T>();
    /// Alignment it needs there.
    pub const ALIGN: usize =
        if align_of::<T>() > layout::OBJECT_ALIGN { align_of::<T>() } else { layout::OBJECT_ALIGN };

    pub(super) fn spec() -> Spec {
        Spec {
            kind: LockKind::Mutex,
            type_name: T::TYPE_NAME.into(),
            size: size_of::<T>(),
            align: align_of::<T>(),
            count: 0,
            bytes: Self::BYTES,
        }
    }

    pub(super) fn new(object: Object) -> Self {
        let data = object.at(layout::mutex_data(align_of::<T>())).cast();
        Self { raw: RawMutex::new(object), data }
    }

    /// Places the mutex into zeroed shared memory of the user's own, or finds it there. The value
    /// begins as all zero bytes.
    ///
    /// # Errors
    /// `InvalidArgument` for memory that is null, too small, misaligned or not shared;
    /// `TypeMismatch`, `VersionMismatch` or `OtherDomain` when something else was placed there.
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the mutex lives.
    /// - Nobody writes to its first `BYTES` bytes but through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a free mutex; what marks it as one is two CAS.
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &Self::spec())? }))
    }

    /// Takes the lock, waiting as long as its owner lives and holds it.
    ///
    /// # Errors
    /// `OwnerDied` with the data, `Unrecoverable`, `Deadlock`, `Failed`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS that names the calling thread as owner.
    ///
    /// # Real-time
    /// One CAS when free; no system call, no allocation after the thread's first lock of a node.
    /// Otherwise it spins a little and sleeps; whoever was woken 16 times in vain is next, unless
    /// it then takes more than 0.5 ms to come.
    #[inline]
    pub fn lock(&self) -> Held<'_, T> {
        self.lock_by(FOREVER)
    }

    /// Takes the lock if it is free or its owner is dead. Errors: as `lock`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    #[inline]
    pub fn try_lock(&self) -> Held<'_, T> {
        self.lock_by(NEVER)
    }

    /// As `lock`, until the moment `deadline_ns` of [`now_ns`]. Errors: as `lock`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    #[inline]
    pub fn lock_until(&self, deadline_ns: u64) -> Held<'_, T> {
        self.lock_by(deadline_ns.clamp(1, FOREVER - 1))
    }

    /// As `lock`, at most for `timeout`. Errors: as `lock`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    pub fn lock_timeout(&self, timeout: Duration) -> Held<'_, T> {
        self.lock_until(deadline(timeout))
    }

    #[inline(always)]
    fn lock_by(&self, until: u64) -> Held<'_, T> {
        match self.raw.take_free() {
            Some(me) => Ok(self.guard(me)),
            None => self.lock_slow(until),
        }
    }

    #[cold]
    fn lock_slow(&self, until: u64) -> Held<'_, T> {
        match self.raw.take_slow(until) {
            Ok((me, Got::Clean)) => Ok(self.guard(me)),
            Ok((me, Got::Broken)) => Err(LockError::OwnerDied(Inherited::new(self.guard(me)))),
            Err(e) => Err(e.map(|never| match never {})),
        }
    }

    #[inline(always)]
    fn guard(&self, me: u64) -> MutexGuard<'_, T> {
        let panicking = std::thread::panicking();
        MutexGuard { lock: self, me, panicking, _here: PhantomData }
    }
}

pub(super) fn deadline(timeout: Duration) -> u64 {
    now_ns().saturating_add(timeout.as_nanos().min(1 << 62) as u64)
}

impl<T: Message> fmt::Debug for RobustMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobustMutex").field("type", &T::TYPE_NAME).finish_non_exhaustive()
    }
}

/// The data of a [`RobustMutex`], until dropped.
#[must_use = "dropping it lets the lock go"]
pub struct MutexGuard<'a, T: Message> {
    lock: &'a RobustMutex<T>,
    me: u64,
    /// The thread was panicking already when it took the lock.
    panicking: bool,
    /// The owner is a thread: the guard stays with it.
    _here: PhantomData<*mut ()>,
}

// SAFETY: gives other threads `&T` only, and `T: Message` is Sync.
unsafe impl<T: Message> Sync for MutexGuard<'_, T> {}

impl<'a, T: Message> MutexGuard<'a, T> {
    pub(super) fn lock(&self) -> &'a RobustMutex<T> {
        self.lock
    }
}

impl<T: Message> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `data` lies in the lock's memory, sized and aligned for `T` (checked on opening),
        // any bytes are a `T`; the lock word names this thread, so nobody else writes.
        unsafe { self.lock.data.as_ref() }
    }
}

impl<T: Message> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; nobody else reads either.
        unsafe { &mut *self.lock.data.as_ptr() }
    }
}

impl<T: Message> Sealed for MutexGuard<'_, T> {
    fn mark(&self) {
        // False only where the word was overwritten by a wild write.
        let _ = self.lock.raw.gate().mark_consistent(self.me);
    }
}

impl<T: Message> Drop for MutexGuard<'_, T> {
    /// # Crash safety
    /// **Strict.** As [`RawMutex::unlock`].
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.panicking {
            return self.lock.raw.abandon();
        }
        self.lock.raw.release(self.me);
    }
}

impl<T: Message + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
