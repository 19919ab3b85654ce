//! A mutex with its data in shared memory, and what other locks take from it. Begin with `word`, in
//! which taking a lock and naming its owner are one step.
//!
//! | file | what |
//! |---|---|
//! | `word`, `wait` | the lock word, and how a thread waits for one; other locks use both |
//! | `gated`, `pi`, `hold` | over a word of ours, of the kernel's; what both do |
//! | `raw_mutex` | calls instead of guards, over `hold` |
//! | `condvar` | over `gated` |
#![allow(unsafe_code)]

pub(super) mod condvar;
pub(super) mod gated;
pub(super) mod hold;
pub(super) mod pi;
pub(super) mod raw_mutex;
pub(super) mod wait;
pub(super) mod word;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::time::Duration;

use super::error::{Inherited, LockError, LockResult, Sealed};
use super::object::layout;
use super::object::layout::LockKind;
use super::object::{Object, ObjectType};
use crate::Result;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::types::Message;
use gated::Gated;
use hold::Hold;
use pi::Pi;
use word::Got;

/// A mutex whose owner may be killed at any instruction: the next one gets the data, with
/// `OwnerDied`.
///
/// It lies in a file of the domain ([`Node::mutex`]), in a [`Segment`](super::Segment), or in
/// shared memory of your own. Any number of threads may use one handle.
///
/// A panic that drops the guard counts as the owner's death. A leaked or forgotten guard may leave
/// references to the data behind: once its thread has ended, others get an error of kind
/// `Unrecoverable`; once its process has ended, too, they inherit.
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
pub struct RobustMutex<T: Message, H: Hold = Gated> {
    hold: H,
    data: NonNull<T>,
}

/// As [`RobustMutex`], for threads with real-time priorities: while a thread waits, the holder runs
/// with that thread's priority (the kernel's priority-inheritance futex), so that no thread of a
/// priority in between keeps both from running. The lock then goes to the waiter with the highest
/// priority.
///
/// It lies in a file of the domain ([`Node::pi_mutex`]). All its members must be in one PID
/// namespace: the kernel finds the holder by its thread id. Where threads wait for such mutexes of
/// each other, one of them gets `Deadlock`. It has no condition variable. After a thread's first
/// lock, taking and releasing it while nobody waits takes no system call; waiting takes one.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::LockError;
/// let node = outlive::Node::builder().root(dir.path()).name("arm").open()?;
/// let goal = node.pi_mutex::<[f64; 6]>("/arm/goal")?;
/// match goal.lock() {
///     Ok(mut goal) => goal[0] = 0.5,
///     Err(LockError::OwnerDied(mut left)) => {
///         *left = [0.0; 6]; // repair
///         drop(left.mark_consistent());
///     }
///     Err(e) => return Err(e.into()),
/// }
/// # Ok::<(), outlive::Error>(())
/// ```
pub type PiMutex<T> = RobustMutex<T, Pi>;

// SAFETY: hands out `&mut T` to one thread at a time; `T: Message` is Send and Sync.
unsafe impl<T: Message, H: Hold> Send for RobustMutex<T, H> {}
// SAFETY: as above.
unsafe impl<T: Message, H: Hold> Sync for RobustMutex<T, H> {}

type Held<'a, T, H> = LockResult<MutexGuard<'a, T, H>, Inherited<MutexGuard<'a, T, H>>>;

impl<T: Message> RobustMutex<T> {
    /// Bytes it takes in a segment or in memory of your own.
    pub const BYTES: usize = layout::mutex_data(align_of::<T>()) + size_of::<T>();
    /// Alignment it needs there.
    pub const ALIGN: usize =
        if align_of::<T>() > layout::OBJECT_ALIGN { align_of::<T>() } else { layout::OBJECT_ALIGN };

    pub(super) fn object_type() -> ObjectType {
        ObjectType::of::<T>(LockKind::Mutex, Self::BYTES)
    }

    pub(super) fn new(object: Object) -> Self {
        let data = object.at(layout::mutex_data(align_of::<T>())).cast();
        Self { hold: Gated::for_guards(object), data }
    }

    /// Places the mutex in zeroed shared memory of your own, or finds it there. The value begins as
    /// all zeros.
    ///
    /// # Errors
    /// `InvalidArgument` for memory that is null, too small, misaligned or not shared;
    /// `TypeMismatch`, `VersionMismatch` or `OtherDomain` when something else was placed there.
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the mutex lives.
    /// - Nobody writes to its first `BYTES` bytes except through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a free mutex; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::lock::RobustMutex;
    ///
    /// // `page`: zeros, mapped MAP_SHARED by every process that uses the lock.
    /// // SAFETY: it stays mapped, and nobody else writes to it.
    /// let map = unsafe { RobustMutex::<u64>::place(&node, page, 4096)? };
    /// *map.lock()? = 7;
    /// // SAFETY: as above.
    /// let same = unsafe { RobustMutex::<u64>::place(&node, page, 4096)? };
    /// assert_eq!(*same.lock()?, 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &Self::object_type())? }))
    }
}

impl<T: Message> PiMutex<T> {
    pub(super) fn open(node: &Node, name: &str, value: Option<&T>) -> Result<Self> {
        let data = layout::mutex_data(align_of::<T>());
        let ty = ObjectType { kind: LockKind::PiMutex, ..RobustMutex::<T>::object_type() };
        let (hold, data) = Pi::open(node, name, &ty, data, value.map(|v| v.as_bytes()))?;
        Ok(Self { hold, data: data.cast() })
    }
}

impl<T: Message, H: Hold> RobustMutex<T, H> {
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
    /// Otherwise it spins a little and sleeps; a waiter that was woken 16 times and found the lock
    /// taken goes next, unless it needs over 0.5 ms to wake.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let pose = node.mutex::<[f64; 2]>("/pose")?;
    /// let writer = || {
    ///     let mut pose = pose.lock().unwrap();
    ///     pose[0] = 1.0;
    ///     panic!("before pose[1]"); // counts as a death
    /// };
    /// std::thread::scope(|scope| scope.spawn(writer).join()).unwrap_err();
    /// let Err(LockError::OwnerDied(mut left)) = pose.lock() else { panic!("its owner died") };
    /// *left = [0.0; 2]; // repair
    /// drop(left.mark_consistent());
    /// assert_eq!(*pose.lock()?, [0.0; 2]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn lock(&self) -> Held<'_, T, H> {
        self.lock_by(Deadline::NEVER)
    }

    /// Takes the lock if it is free or its owner is dead. Errors: as `lock`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.mutex::<u64>("/map")?;
    /// let held = map.lock()?;
    /// let busy = || matches!(map.try_lock(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// assert!(matches!(map.try_lock(), Err(LockError::Deadlock))); // this thread holds it
    /// drop(held);
    /// *map.try_lock()? += 1;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_lock(&self) -> Held<'_, T, H> {
        self.lock_by(Deadline::AT_ONCE)
    }

    /// As `lock`, until `deadline`; `Deadline::AT_ONCE` is `try_lock`. Errors: as `lock`, and
    /// `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::LockError};
    /// use std::time::Duration;
    ///
    /// let (map, pose) = (node.mutex::<u64>("/map")?, node.mutex::<u64>("/pose")?);
    /// let held = pose.lock()?;
    /// let both = || {
    ///     let cycle = Deadline::after(Duration::from_millis(5)); // for both locks together
    ///     let _map = map.lock_until(cycle).unwrap();
    ///     matches!(pose.lock_until(cycle), Err(LockError::Timeout))
    /// };
    /// assert!(std::thread::scope(|scope| scope.spawn(both).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn lock_until(&self, deadline: Deadline) -> Held<'_, T, H> {
        self.lock_by(deadline)
    }

    /// As `lock`, at most for `timeout`. Errors: as `lock`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.mutex::<u64>("/map")?;
    /// let timeout = std::time::Duration::from_millis(5);
    /// let late = || matches!(map.lock_timeout(timeout), Err(LockError::Timeout));
    /// let _held = map.lock()?;
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lock_timeout(&self, timeout: Duration) -> Held<'_, T, H> {
        self.lock_until(Deadline::after(timeout))
    }

    #[inline(always)]
    fn lock_by(&self, until: Deadline) -> Held<'_, T, H> {
        match self.hold.take_free() {
            Some(me) => Ok(self.guard(me)),
            None => self.lock_slow(until),
        }
    }

    #[cold]
    fn lock_slow(&self, until: Deadline) -> Held<'_, T, H> {
        match self.hold.take_slow(until) {
            Ok((me, Got::Clean)) => Ok(self.guard(me)),
            Ok((me, Got::Broken)) => Err(LockError::OwnerDied(Inherited::new(self.guard(me)))),
            Err(e) => Err(e.map(|never| match never {})),
        }
    }

    #[inline(always)]
    fn guard(&self, me: u64) -> MutexGuard<'_, T, H> {
        let panicking = std::thread::panicking();
        MutexGuard { lock: self, me, panicking, _here: PhantomData }
    }
}

impl<T: Message, H: Hold> fmt::Debug for RobustMutex<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobustMutex").field("type", &T::TYPE_NAME).finish_non_exhaustive()
    }
}

/// The data of a [`RobustMutex`] or [`PiMutex`], until dropped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let map = node.mutex::<[u32; 4]>("/map")?;
/// let mut cells = map.lock()?;
/// cells[3] = 1; // nobody else reads or writes meanwhile
/// drop(cells);
/// assert_eq!(map.lock()?.iter().sum::<u32>(), 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "dropping it lets the lock go"]
pub struct MutexGuard<'a, T: Message, H: Hold = Gated> {
    lock: &'a RobustMutex<T, H>,
    me: u64,
    /// The thread was panicking already when it took the lock.
    panicking: bool,
    /// The owner is a thread: the guard stays with it.
    _here: PhantomData<*mut ()>,
}

/// The data of a [`PiMutex`], until dropped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::PiGuard;
///
/// fn home(goal: &mut PiGuard<'_, [f64; 6]>) {
///     goal.fill(0.0);
/// }
///
/// let goal = node.pi_mutex_with("/arm/goal", &[0.5; 6])?;
/// home(&mut goal.lock()?);
/// assert_eq!(*goal.lock()?, [0.0; 6]);
/// # Ok::<(), outlive::Error>(())
/// ```
pub type PiGuard<'a, T> = MutexGuard<'a, T, Pi>;

// SAFETY: gives other threads `&T` only, and `T: Message` is Sync.
unsafe impl<T: Message, H: Hold> Sync for MutexGuard<'_, T, H> {}

impl<'a, T: Message> MutexGuard<'a, T> {
    pub(super) fn lock(&self) -> &'a RobustMutex<T> {
        self.lock
    }
}

impl<T: Message, H: Hold> Deref for MutexGuard<'_, T, H> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `data` lies in the lock's memory, sized and aligned for `T` (checked on opening),
        // any bytes are a `T`; the lock word names this thread, so nobody else writes.
        unsafe { self.lock.data.as_ref() }
    }
}

impl<T: Message, H: Hold> DerefMut for MutexGuard<'_, T, H> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; nobody else reads either.
        unsafe { &mut *self.lock.data.as_ptr() }
    }
}

impl<T: Message, H: Hold> Sealed for MutexGuard<'_, T, H> {
    fn mark(&self) {
        // False only where the word was overwritten by a wild write.
        let _ = self.lock.hold.mark_consistent(self.me);
    }
}

impl<T: Message, H: Hold> Drop for MutexGuard<'_, T, H> {
    /// # Crash safety
    /// **Strict.** As [`RawMutex::unlock`](super::RawMutex::unlock).
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.panicking {
            self.lock.hold.abandon(self.me);
        } else {
            self.lock.hold.release(self.me);
        }
    }
}

impl<T: Message + fmt::Debug, H: Hold> fmt::Debug for MutexGuard<'_, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
