//! A mutex without guards: calls instead, for other languages and for locks inside the user's own
//! structures.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::gated::Gated;
use super::hold::Hold;
use super::pi::Pi;
use super::word::Got;
use crate::lock::error::LockResult;
use crate::lock::object::layout;
use crate::lock::object::layout::{LockKind, head};
use crate::lock::object::{Object, ObjectType};
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;
use crate::types::PayloadType;
use crate::{Error, ErrorKind, Result};

/// How a lock was taken.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::{Acquired, RawMutex};
///
/// let bus = RawMutex::open(&node, "/arm/bus")?;
/// let user = || bus.lock().map(|_| ()).unwrap(); // its thread ends without `unlock`
/// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
/// match bus.lock()? {
///     Acquired::Clean => panic!("its owner died"),
///     Acquired::OwnerDied => bus.mark_consistent()?, // after a reset of the bus
/// }
/// bus.unlock()?;
/// assert_eq!(bus.lock()?, Acquired::Clean);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "after OwnerDied the data must be repaired and marked consistent"]
pub enum Acquired {
    /// In good order.
    Clean,
    /// From an owner that died or panicked inside: repair the data, then mark it consistent,
    /// otherwise unlocking makes the lock unrecoverable.
    OwnerDied,
}

impl From<Got> for Acquired {
    fn from(got: Got) -> Self {
        match got {
            Got::Clean => Self::Clean,
            Got::Broken => Self::OwnerDied,
        }
    }
}

/// A robust mutex that protects whatever its users agree on.
///
/// Rust programs want [`RobustMutex`](super::RobustMutex), whose guards cannot be misused.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::{Acquired, RawMutex};
/// let node = outlive::Node::builder().root(dir.path()).name("arm").open()?;
/// let lock = RawMutex::open(&node, "/arm/bus")?;
/// assert_eq!(lock.lock()?, Acquired::Clean);
/// assert!(lock.lock().is_err(), "the same thread again");
/// lock.unlock()?;
/// assert!(lock.unlock().is_err(), "nobody holds it");
///
/// // With data of a type that is known only now.
/// let count = outlive::PayloadType::of::<u64>();
/// let counter = RawMutex::open_with(&node, "/arm/count", &count, Some(&7u64.to_le_bytes()))?;
/// assert_eq!(*node.mutex::<u64>("/arm/count")?.lock()?, 7);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct RawMutex {
    rests_on: RestsOn,
    /// Where the protected data is, if there is some.
    data: NonNull<u8>,
}

#[derive(Debug)]
enum RestsOn {
    Gated(Gated),
    Pi(Pi),
}

/// Calls the same of either.
macro_rules! hold {
    ($mutex:expr, $hold:ident => $call:expr) => {
        match &$mutex.rests_on {
            RestsOn::Gated($hold) => $call,
            RestsOn::Pi($hold) => $call,
        }
    };
}

// SAFETY: the pointer leads into the object, which may be sent and shared.
unsafe impl Send for RawMutex {}
// SAFETY: as above.
unsafe impl Sync for RawMutex {}

fn object_type() -> ObjectType {
    ObjectType::without_data(LockKind::Mutex, RawMutex::BYTES)
}

impl RawMutex {
    /// Bytes it takes in memory of your own, aligned to 64.
    pub const BYTES: usize = head::BYTES;

    /// Opens the mutex `name` of the node's domain, or creates it.
    ///
    /// # Errors
    /// `TypeMismatch` when the name is another kind of object; `InvalidName`; `NoSpace`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// let user = || bus.lock().unwrap(); // ends without `unlock`
    /// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
    /// assert_eq!(bus.lock()?, Acquired::OwnerDied);
    /// bus.mark_consistent()?;
    /// bus.unlock()?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str) -> Result<Self> {
        Ok(Self::new(Object::named(node, name, &object_type(), None)?))
    }

    /// As [`open`](Self::open), with priority inheritance: the same lock as a
    /// [`PiMutex`](super::PiMutex). It has no condition variable, and must be released through the
    /// object that took it.
    ///
    /// # Errors
    /// As `open`; `Unsupported` after 1 s when its members are in another PID namespace.
    ///
    /// # Crash safety
    /// **Strict.** As `open`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawMutex};
    ///
    /// let bus = RawMutex::open_pi(&node, "/arm/bus")?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// bus.unlock()?;
    /// let plain = RawMutex::open(&node, "/arm/bus").unwrap_err();
    /// assert_eq!(plain.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open_pi(node: &Node, name: &str) -> Result<Self> {
        Self::new_pi(node, name, &object_type(), 1, None)
    }

    /// As [`open_pi`](Self::open_pi), with data as of [`open_with`](Self::open_with).
    ///
    /// # Errors
    /// As both.
    ///
    /// # Crash safety
    /// **Strict.** As `open`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{PayloadType, lock::RawMutex};
    ///
    /// let count = PayloadType::of::<u64>();
    /// let _raw = RawMutex::open_pi_with(&node, "/count", &count, Some(&7u64.to_ne_bytes()))?;
    /// assert_eq!(*node.pi_mutex::<u64>("/count")?.lock()?, 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open_pi_with(
        node: &Node,
        name: &str,
        of: &PayloadType,
        value: Option<&[u8]>,
    ) -> Result<Self> {
        let ty = Self::object_type_of(name, of, value)?;
        Self::new_pi(node, name, &ty, of.align(), value)
    }

    fn new_pi(
        node: &Node,
        name: &str,
        ty: &ObjectType,
        align: usize,
        value: Option<&[u8]>,
    ) -> Result<Self> {
        let ty = ObjectType { kind: LockKind::PiMutex, ..ty.clone() };
        let (pi, data) = Pi::open(node, name, &ty, layout::mutex_data(align), value)?;
        Ok(Self { rests_on: RestsOn::Pi(pi.for_calls()), data })
    }

    /// Places the mutex in zeroed shared memory of your own, or finds it there.
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
    /// use outlive::lock::{Acquired, RawMutex};
    ///
    /// // `page`: zeros, mapped MAP_SHARED by every process that uses the lock.
    /// // SAFETY: it stays mapped, and nobody else writes to its first `BYTES` bytes.
    /// let lock = unsafe { RawMutex::place(&node, page, RawMutex::BYTES)? };
    /// assert_eq!(lock.lock()?, Acquired::Clean);
    /// lock.unlock()?;
    /// // SAFETY: refused before anything is touched.
    /// let short = unsafe { RawMutex::place(&node, page, RawMutex::BYTES - 1) };
    /// assert_eq!(short.unwrap_err().kind(), outlive::ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &object_type())? }))
    }

    fn object_type_of(name: &str, of: &PayloadType, value: Option<&[u8]>) -> Result<ObjectType> {
        ObjectType::of_data(LockKind::Mutex, Self::bytes_with(of), name, of, value)
    }

    /// Bytes it takes in memory of your own together with data of type `of`.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, lock::RawMutex};
    ///
    /// let pose = PayloadType::of::<[f64; 3]>();
    /// assert_eq!(RawMutex::bytes_with(&pose), RawMutex::BYTES + 24); // the data follows the lock
    /// ```
    pub fn bytes_with(of: &PayloadType) -> usize {
        layout::mutex_data(of.align()).saturating_add(of.size())
    }

    /// As [`open`](Self::open), with data of a type known only at run time: the same lock as a
    /// [`RobustMutex`](super::RobustMutex) of that type. The creator stores `value`, or zeros.
    ///
    /// # Errors
    /// As `open`; `InvalidArgument` for a type that is not a single value, or a value of another
    /// size.
    ///
    /// # Crash safety
    /// **Strict.** As `open`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{PayloadType, lock::RawMutex};
    ///
    /// let count = PayloadType::of::<u64>();
    /// let _raw = RawMutex::open_with(&node, "/count", &count, Some(&7u64.to_ne_bytes()))?;
    /// assert_eq!(*node.mutex::<u64>("/count")?.lock()?, 7); // the same lock
    /// let short = RawMutex::open_with(&node, "/count", &count, Some(&[7])).unwrap_err();
    /// assert_eq!(short.kind(), outlive::ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open_with(
        node: &Node,
        name: &str,
        of: &PayloadType,
        value: Option<&[u8]>,
    ) -> Result<Self> {
        let ty = Self::object_type_of(name, of, value)?;
        let value = value.map(|value| (layout::mutex_data(of.align()), value));
        Ok(Self::with_data(Object::named(node, name, &ty, value)?, of))
    }

    /// As [`place`](Self::place), with data of type `of`, which takes `bytes_with` of it.
    ///
    /// # Errors
    /// As `place` and `open_with`.
    ///
    /// # Safety
    /// As `place`.
    ///
    /// # Crash safety
    /// **Strict.** As `place`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::{PayloadType, lock::RawMutex};
    ///
    /// let count = PayloadType::of::<u64>();
    /// let len = RawMutex::bytes_with(&count);
    /// // SAFETY: `page` is shared, stays mapped, and nobody else writes to its first `len` bytes.
    /// let lock = unsafe { RawMutex::place_with(&node, page, len, &count)? };
    /// assert_eq!(lock.data(), page.wrapping_add(RawMutex::BYTES));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place_with(
        node: &Node,
        memory: *mut u8,
        len: usize,
        of: &PayloadType,
    ) -> Result<Self> {
        let ty = Self::object_type_of("in memory", of, None)?;
        // SAFETY: the caller's promise.
        Ok(Self::with_data(unsafe { Object::placed(node, memory, len, &ty)? }, of))
    }

    fn with_data(object: Object, of: &PayloadType) -> Self {
        let data = object.at(layout::mutex_data(of.align()));
        Self { data, ..Self::new(object) }
    }

    /// The protected data, for the thread that holds the lock: as many bytes as the type that it
    /// was opened with; none without a type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{PayloadType, lock::Acquired, lock::RawMutex};
    ///
    /// let lock = RawMutex::open_with(&node, "/count", &PayloadType::of::<u64>(), None)?;
    /// assert_eq!(lock.lock()?, Acquired::Clean);
    /// // SAFETY: this thread holds the lock, and the data is a `u64`.
    /// unsafe { *lock.data().cast::<u64>() += 1 };
    /// lock.unlock()?;
    /// assert_eq!(*node.mutex::<u64>("/count")?.lock()?, 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    fn new(object: Object) -> Self {
        let data = object.at(Self::BYTES);
        Self { rests_on: RestsOn::Gated(Gated::for_calls(object)), data }
    }

    /// Whether it is one with priority inheritance.
    pub(in crate::lock) fn is_pi(&self) -> bool {
        matches!(self.rests_on, RestsOn::Pi(_))
    }

    #[cfg(test)]
    pub(in crate::lock) fn gated(&self) -> &Gated {
        let RestsOn::Gated(gated) = &self.rests_on else { panic!("one with inheritance") };
        gated
    }

    #[inline(always)]
    fn lock_by(&self, until: Deadline) -> LockResult<Acquired> {
        hold!(self, hold => match hold.take_free() {
            Some(_) => Ok(Acquired::Clean),
            None => hold.take_slow(until).map(|(_, got)| got.into()),
        })
    }

    /// Takes the lock, waiting as long as its owner lives and holds it.
    ///
    /// # Errors
    /// `Deadlock`, `Unrecoverable`, `Failed`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS that names the calling thread as owner.
    ///
    /// # Real-time
    /// One CAS when free; no system call, no allocation after the thread's first lock of a node.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, LockError, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// if bus.lock()? == Acquired::OwnerDied {
    ///     bus.mark_consistent()?; // after the repair
    /// }
    /// assert!(matches!(bus.lock(), Err(LockError::Deadlock))); // the same thread again
    /// bus.unlock()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn lock(&self) -> LockResult<Acquired> {
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
    /// use outlive::lock::{Acquired, LockError, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// assert_eq!(bus.try_lock()?, Acquired::Clean);
    /// let busy = || matches!(bus.try_lock(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// bus.unlock()?;
    ///
    /// let user = || bus.lock().unwrap(); // ends without `unlock`
    /// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
    /// assert_eq!(bus.try_lock()?, Acquired::OwnerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_lock(&self) -> LockResult<Acquired> {
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
    /// use outlive::{Deadline, lock::Acquired, lock::LockError, lock::RawMutex};
    /// use std::time::Duration;
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// let soon = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(bus.lock_until(soon), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lock_until(&self, deadline: Deadline) -> LockResult<Acquired> {
        self.lock_by(deadline)
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not hold it; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS. A death before its wake-up call wakes the waiters, too.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// let other = || bus.unlock().unwrap_err().kind(); // only the holder may
    /// let refused = std::thread::scope(|scope| scope.spawn(other).join()).unwrap();
    /// assert_eq!(refused, outlive::ErrorKind::NotOwned);
    /// bus.unlock()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn unlock(&self) -> Result<()> {
        let done = hold!(self, hold => hold.release(me(hold)?));
        if done { Ok(()) } else { Err(not_owner("letting go of")) }
    }

    /// Releases the lock with its data inconsistent, as a panic inside does: the next taker gets
    /// `OwnerDied`. For other languages, which have guards of their own.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not hold it; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** One store; a death before it has the same effect.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// bus.unlock_in_disorder()?; // an exception went through
    /// assert_eq!(bus.lock()?, Acquired::OwnerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[cold]
    pub fn unlock_in_disorder(&self) -> Result<()> {
        let as_good = fault("lock.disorder_as_good");
        let done = hold!(self, hold => match me(hold)? {
            me if as_good => hold.release(me),
            me => hold.abandon(me),
        });
        if done { Ok(()) } else { Err(not_owner("letting go of")) }
    }

    /// Declares the data inherited from a dead owner consistent again. Data that is consistent
    /// already stays so.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not hold the lock; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, LockError, RawMutex};
    ///
    /// let bus = RawMutex::open(&node, "/arm/bus")?;
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// bus.unlock_in_disorder()?;
    /// assert_eq!(bus.lock()?, Acquired::OwnerDied);
    /// bus.mark_consistent()?; // after the repair
    /// bus.unlock()?;
    ///
    /// assert_eq!(bus.lock()?, Acquired::Clean);
    /// bus.unlock_in_disorder()?;
    /// assert_eq!(bus.lock()?, Acquired::OwnerDied);
    /// bus.unlock()?; // without it
    /// assert!(matches!(bus.lock(), Err(LockError::Unrecoverable)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mark_consistent(&self) -> Result<()> {
        let done = hold!(self, hold => hold.mark_consistent(me(hold)?));
        if done { Ok(()) } else { Err(not_owner("marking consistent")) }
    }
}

/// The calling thread, as the lock's holder.
#[inline(always)]
fn me(hold: &impl Hold) -> Result<u64> {
    match hold.own_id() {
        Some(me) => Ok(me),
        None => hold.id(),
    }
}

#[cold]
pub(in crate::lock) fn not_owner(what: &str) -> Error {
    let remedy = "only the thread that holds it may";
    Error::new(ErrorKind::NotOwned, what, "a lock", remedy)
}
