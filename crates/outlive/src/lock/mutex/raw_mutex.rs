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
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &object_type())? }))
    }

    fn object_type_of(name: &str, of: &PayloadType, value: Option<&[u8]>) -> Result<ObjectType> {
        ObjectType::of_data(LockKind::Mutex, Self::bytes_with(of), name, of, value)
    }

    /// Bytes it takes in memory of your own together with data of type `of`.
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
    #[inline]
    pub fn lock(&self) -> LockResult<Acquired> {
        self.lock_by(Deadline::NEVER)
    }

    /// Takes the lock if it is free or its owner is dead. Errors: as `lock`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
    #[inline]
    pub fn try_lock(&self) -> LockResult<Acquired> {
        self.lock_by(Deadline::AT_ONCE)
    }

    /// As `lock`, until `deadline`; `Deadline::AT_ONCE` is `try_lock`. Errors: as `lock`, and
    /// `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `lock`.
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
