//! A reader/writer lock with its data in shared memory. `readers` is the algorithm: a line for each
//! reading thread, found again by `lines`, and for writers the word of `lock::mutex`. `raw_rwlock`
//! has calls instead of guards. Begin with `readers`.
#![allow(unsafe_code)]

pub(super) mod lines;
pub(super) mod raw_rwlock;
pub(super) mod readers;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::time::Duration;

use super::error::{Inherited, LockError, LockResult, NeedsWriter, Sealed};
use super::mutex::word::Got;
use super::object::layout;
use super::object::layout::LockKind;
use super::object::{Object, ObjectType};
use crate::Result;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::types::Message;
use raw_rwlock::RawRwLock;
use readers::Line;

/// A reader/writer lock whose holders may be killed at any instruction.
///
/// A dead reader keeps nobody out. After a writer's death the next writer gets the data with
/// `OwnerDied`, and readers are refused until it has repaired the data. Readers share no cache line
/// with each other. At most 64 threads read at once. Writers do not starve: later readers wait.
///
/// A thread that holds the lock in any form and asks for it again gets `Deadlock`. A leaked or
/// forgotten guard, for reading too, may leave references to the data behind: once its thread has
/// ended, those that it keeps out get an error of kind `Unrecoverable`; once its process has ended,
/// they get the lock.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("calibrator").open()?;
/// let gains = node.rwlock::<[f64; 3]>("/arm/gains")?;
/// *gains.write()? = [1.0, 0.1, 0.01];
/// assert_eq!(gains.read()?[0], 1.0);
/// # Ok::<(), outlive::Error>(())
/// ```
pub struct RobustRwLock<T: Message> {
    raw: RawRwLock,
    data: NonNull<T>,
}

// SAFETY: hands out `&mut T` to one thread or `&T` to several; `T: Message` is Send and Sync.
unsafe impl<T: Message> Send for RobustRwLock<T> {}
// SAFETY: as above.
unsafe impl<T: Message> Sync for RobustRwLock<T> {}

type Reading<'a, T> = LockResult<ReadGuard<'a, T>, NeedsWriter>;
type Writing<'a, T> = LockResult<WriteGuard<'a, T>, Inherited<WriteGuard<'a, T>>>;

impl<T: Message> RobustRwLock<T> {
    /// Bytes it takes in a segment or in memory of your own.
    pub const BYTES: usize = layout::rwlock_data(align_of::<T>()) + size_of::<T>();
    /// Alignment it needs there.
    pub const ALIGN: usize =
        if align_of::<T>() > layout::OBJECT_ALIGN { align_of::<T>() } else { layout::OBJECT_ALIGN };

    pub(super) fn object_type() -> ObjectType {
        ObjectType::of::<T>(LockKind::RwLock, Self::BYTES)
    }

    pub(super) fn new(object: Object) -> Self {
        let data = object.at(layout::rwlock_data(align_of::<T>())).cast();
        Self { raw: RawRwLock::for_guards(object), data }
    }

    /// Places the lock in zeroed shared memory of your own, or finds it there. The value begins as
    /// all zeros.
    ///
    /// # Errors
    /// As [`RobustMutex::place`](super::RobustMutex::place).
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the lock lives.
    /// - Nobody writes to its first `BYTES` bytes except through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a free lock; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::lock::RobustRwLock;
    ///
    /// const LEN: usize = RobustRwLock::<u64>::BYTES;
    /// // SAFETY: `page` is zeroed, shared, stays mapped, and nobody else writes to it.
    /// let map = unsafe { RobustRwLock::<u64>::place(&node, page, LEN)? };
    /// *map.write()? = 7;
    /// assert_eq!(*map.read()?, 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &Self::object_type())? }))
    }

    /// Takes the lock for reading, waiting as long as a living writer holds it.
    ///
    /// # Errors
    /// `OwnerDied` when a writer died inside, or while it waited for readers: take it with `write`
    /// and repair the data; `Unrecoverable`, `Deadlock`, `Failed`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS on the thread's line. A dead reader keeps nobody out.
    ///
    /// # Real-time
    /// One CAS on a line of its own when no writer is there; no system call.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let map = node.rwlock::<[u32; 4]>("/map")?;
    /// let cells = map.read()?;
    /// let other = || map.read().unwrap()[0]; // several at once
    /// assert_eq!(std::thread::scope(|scope| scope.spawn(other).join()).unwrap(), cells[0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn read(&self) -> Reading<'_, T> {
        self.read_by(Deadline::NEVER)
    }

    /// Takes the lock for reading if no writer is there. Errors: as `read`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `read`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let writing = map.write()?;
    /// let busy = || matches!(map.try_read(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// drop(writing);
    /// assert_eq!(*map.try_read()?, 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_read(&self) -> Reading<'_, T> {
        self.read_by(Deadline::AT_ONCE)
    }

    /// As `read`, until `deadline`; `Deadline::AT_ONCE` is `try_read`. Errors: as `read`, and
    /// `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `read`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::LockError};
    /// use std::time::Duration;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let writing = map.write()?;
    /// let cycle = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(map.read_until(cycle), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn read_until(&self, deadline: Deadline) -> Reading<'_, T> {
        self.read_by(deadline)
    }

    /// As `read`, at most for `timeout`. Errors: as `read`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `read`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let writer = || {
    ///     let _writing = map.write().unwrap();
    ///     panic!("with the lock held"); // counts as a death
    /// };
    /// std::thread::scope(|scope| scope.spawn(writer).join()).unwrap_err();
    /// let refused = map.read_timeout(Duration::from_secs(5)).unwrap_err(); // does not wait
    /// assert_eq!(refused.kind(), ErrorKind::OwnerDied); // until a writer has repaired the data
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn read_timeout(&self, timeout: Duration) -> Reading<'_, T> {
        self.read_until(Deadline::after(timeout))
    }

    #[inline(always)]
    fn read_by(&self, until: Deadline) -> Reading<'_, T> {
        let (line, me) = match self.raw.enter_again() {
            Some(entered) => entered,
            None => self.raw.read_slow(until)?,
        };
        Ok(ReadGuard { lock: self, line, me, _here: PhantomData })
    }

    /// Takes the lock for writing, waiting for living readers and writers.
    ///
    /// # Errors
    /// `OwnerDied` with the data, `Unrecoverable`, `Deadlock`, `Failed`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS that names the calling thread as owner.
    ///
    /// # Real-time
    /// One CAS and a look at each line in use when free; no system call.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.rwlock::<[u32; 2]>("/map")?;
    /// let writer = || {
    ///     map.write().unwrap()[0] = 1;
    ///     let _writing = map.write().unwrap();
    ///     panic!("before the other cell"); // counts as a death
    /// };
    /// std::thread::scope(|scope| scope.spawn(writer).join()).unwrap_err();
    /// let Err(LockError::OwnerDied(mut left)) = map.write() else { panic!("a writer died") };
    /// *left = [0; 2]; // repair
    /// drop(left.mark_consistent());
    /// assert_eq!(*map.read()?, [0; 2]); // readers are let in again
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn write(&self) -> Writing<'_, T> {
        self.write_by(Deadline::NEVER)
    }

    /// Takes the lock for writing if it is free. Errors: as `write`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `write`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let reading = map.read()?;
    /// let busy = || matches!(map.try_write(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// assert!(matches!(map.try_write(), Err(LockError::Deadlock))); // this thread reads
    /// drop(reading);
    /// *map.try_write()? += 1;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_write(&self) -> Writing<'_, T> {
        self.write_by(Deadline::AT_ONCE)
    }

    /// As `write`, until `deadline`; `Deadline::AT_ONCE` is `try_write`. Errors: as `write`, and
    /// `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `write`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::LockError};
    /// use std::time::Duration;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let reading = map.read()?;
    /// let cycle = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(map.write_until(cycle), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn write_until(&self, deadline: Deadline) -> Writing<'_, T> {
        self.write_by(deadline)
    }

    /// As `write`, at most for `timeout`. Errors: as `write`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `write`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let map = node.rwlock::<u64>("/map")?;
    /// let reading = map.read()?;
    /// std::thread::scope(|scope| {
    ///     let writer = scope.spawn(|| map.write_timeout(Duration::from_secs(5)).is_ok());
    ///     drop(reading); // the writer waits for it
    ///     assert!(writer.join().unwrap());
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn write_timeout(&self, timeout: Duration) -> Writing<'_, T> {
        self.write_until(Deadline::after(timeout))
    }

    #[inline(always)]
    fn write_by(&self, until: Deadline) -> Writing<'_, T> {
        match self.raw.take_free() {
            Some(me) => Ok(self.guard(me)),
            None => self.write_slow(until),
        }
    }

    #[cold]
    fn write_slow(&self, until: Deadline) -> Writing<'_, T> {
        match self.raw.write_slow(until) {
            Ok((me, Got::Clean)) => Ok(self.guard(me)),
            Ok((me, Got::Broken)) => Err(LockError::OwnerDied(Inherited::new(self.guard(me)))),
            Err(e) => Err(e.map(|never| match never {})),
        }
    }

    #[inline(always)]
    fn guard(&self, me: u64) -> WriteGuard<'_, T> {
        let panicking = std::thread::panicking();
        WriteGuard { lock: self, me, panicking, _here: PhantomData }
    }
}

impl<T: Message> fmt::Debug for RobustRwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobustRwLock").field("type", &T::TYPE_NAME).finish_non_exhaustive()
    }
}

/// The data of a [`RobustRwLock`] for reading, until dropped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let map = node.rwlock::<[u32; 4]>("/map")?;
/// let cells = map.read()?; // nobody writes meanwhile, others read
/// assert_eq!(cells.iter().sum::<u32>(), 0);
/// drop(cells);
/// map.write()?[3] = 1;
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "dropping it lets the lock go"]
pub struct ReadGuard<'a, T: Message> {
    lock: &'a RobustRwLock<T>,
    line: NonNull<Line>,
    me: u64,
    /// The reader is a thread: the guard stays with it.
    _here: PhantomData<*mut ()>,
}

// SAFETY: gives other threads `&T` only, and `T: Message` is Sync.
unsafe impl<T: Message> Sync for ReadGuard<'_, T> {}

impl<T: Message> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `data` lies in the lock's memory, sized and aligned for `T` (checked on opening),
        // any bytes are a `T`; this thread's line says that it reads, so nobody writes.
        unsafe { self.lock.data.as_ref() }
    }
}

impl<T: Message> Drop for ReadGuard<'_, T> {
    /// # Crash safety
    /// **Strict.** One store.
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.leave(self.line, self.me);
    }
}

impl<T: Message + fmt::Debug> fmt::Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The data of a [`RobustRwLock`] for writing, until dropped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let map = node.rwlock::<[u32; 4]>("/map")?;
/// let mut cells = map.write()?; // nobody else reads or writes meanwhile
/// cells.fill(1);
/// drop(cells);
/// assert_eq!(*map.read()?, [1; 4]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "dropping it lets the lock go"]
pub struct WriteGuard<'a, T: Message> {
    lock: &'a RobustRwLock<T>,
    me: u64,
    /// The thread was panicking already when it took the lock.
    panicking: bool,
    /// The owner is a thread: the guard stays with it.
    _here: PhantomData<*mut ()>,
}

// SAFETY: gives other threads `&T` only, and `T: Message` is Sync.
unsafe impl<T: Message> Sync for WriteGuard<'_, T> {}

impl<T: Message> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as in `ReadGuard`; the lock word names this thread and no line reads, so nobody
        // else writes.
        unsafe { self.lock.data.as_ref() }
    }
}

impl<T: Message> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; nobody else reads either.
        unsafe { &mut *self.lock.data.as_ptr() }
    }
}

impl<T: Message> Sealed for WriteGuard<'_, T> {
    fn mark(&self) {
        self.lock.raw.mark(self.me);
    }
}

impl<T: Message> Drop for WriteGuard<'_, T> {
    /// # Crash safety
    /// **Strict.** As [`RawRwLock::unlock_write`].
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() && !self.panicking {
            return self.lock.raw.abandon();
        }
        self.lock.raw.release(self.me);
    }
}

impl<T: Message + fmt::Debug> fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
