//! A shared file of the user's own, as the place for locks and what they protect.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::condvar::RobustCondvar;
use super::layout::{self, LockKind};
use super::lockless_set::LocklessSet;
use super::mutex::RobustMutex;
use super::object::{Kept, Object, Spec};
use super::rwlock::RobustRwLock;
use super::semaphore::RobustSemaphore;
use crate::Result;
use crate::node::Node;
use crate::topic::Message;

/// Shared memory laid out by a type of the user's own, in which locks may be placed.
///
/// The file appears complete, with its first value. A lock is placed at an offset that is a
/// multiple of 64 (the segment itself is aligned to 64 or to `T`), in bytes that are zero at first;
/// its own data follows it. Many locks in one segment take one file descriptor.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::{RobustMutex, Segment};
/// use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[repr(C)]
/// struct Arm {
///     /// A mutex with the joint angles: 64 bytes and what it protects.
///     joints: [u64; RobustMutex::<[f64; 6]>::BYTES.div_ceil(64) * 8],
///     serial: u64,
/// }
/// impl outlive::Message for Arm {
///     const TYPE_NAME: &'static str = "example/Arm";
/// }
///
/// let node = outlive::Node::builder().root(dir.path()).name("arm").open()?;
/// let arm: Segment<Arm> = node.segment("/arm")?;
/// let joints = arm.mutex::<[f64; 6]>(std::mem::offset_of!(Arm, joints))?;
/// joints.lock()?[0] = 1.5;
/// # Ok::<(), outlive::Error>(())
/// ```
pub struct Segment<T: Message> {
    inner: Arc<Inner>,
    _type: PhantomData<T>,
}

#[derive(Debug)]
struct Inner {
    /// Keeps the bytes mapped.
    _object: Object,
    node: Node,
    data: NonNull<u8>,
}

// SAFETY: the pointer leads into `object`, which may be sent and shared.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}
impl Kept for Inner {}

impl<T: Message> Clone for Segment<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _type: PhantomData }
    }
}

impl<T: Message> fmt::Debug for Segment<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("type", &T::TYPE_NAME).finish_non_exhaustive()
    }
}

impl<T: Message> Segment<T> {
    pub(super) fn open(node: &Node, name: &str, value: Option<&T>) -> Result<Self> {
        let spec = Spec {
            kind: LockKind::Segment,
            type_name: T::TYPE_NAME.into(),
            size: size_of::<T>(),
            align: align_of::<T>(),
            count: 0,
            bytes: layout::mutex_data(align_of::<T>()) + size_of::<T>(),
        };
        let at = layout::mutex_data(align_of::<T>());
        let value = value.map(|value| (at, value.as_bytes()));
        let object = Object::named(node, name, &spec, value)?;
        let data = object.at(at);
        let inner = Inner { _object: object, node: node.clone(), data };
        Ok(Self { inner: Arc::new(inner), _type: PhantomData })
    }

    /// The shared bytes, mapped for as long as the segment or a lock in it lives.
    ///
    /// Other processes write them: go through a lock, or through atomics.
    pub fn as_ptr(&self) -> *mut T {
        self.inner.data.as_ptr().cast()
    }

    fn place(&self, offset: usize, spec: &Spec) -> Result<Object> {
        let inner = &self.inner;
        let kept: Arc<dyn Kept> = Arc::clone(inner) as Arc<dyn Kept>;
        Object::in_segment(&inner.node, kept, inner.data, size_of::<T>(), offset, spec)
    }

    /// The mutex at `offset` bytes, placed there by whoever comes first; it takes
    /// [`RobustMutex::BYTES`].
    ///
    /// # Errors
    /// `InvalidArgument` when it does not fit or is not aligned; `TypeMismatch` when something else
    /// was placed there.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a free mutex; what marks it as one is two CAS.
    pub fn mutex<U: Message>(&self, offset: usize) -> Result<RobustMutex<U>> {
        Ok(RobustMutex::new(self.place(offset, &RobustMutex::<U>::spec())?))
    }

    /// The reader/writer lock at `offset` bytes; it takes [`RobustRwLock::BYTES`]. Errors and crash
    /// safety: as [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    pub fn rwlock<U: Message>(&self, offset: usize) -> Result<RobustRwLock<U>> {
        Ok(RobustRwLock::new(self.place(offset, &RobustRwLock::<U>::spec())?))
    }

    /// The condition variable at `offset` bytes; it takes [`RobustCondvar::BYTES`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    pub fn condvar(&self, offset: usize) -> Result<RobustCondvar> {
        Ok(RobustCondvar::new(self.place(offset, &RobustCondvar::spec())?))
    }

    /// The semaphore at `offset` bytes; it takes [`RobustSemaphore::bytes`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    pub fn semaphore(&self, offset: usize, permits: usize) -> Result<RobustSemaphore> {
        let spec = RobustSemaphore::spec(permits)?;
        Ok(RobustSemaphore::new(self.place(offset, &spec)?, permits))
    }

    /// The set at `offset` bytes; it takes [`LocklessSet::bytes`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    pub fn lockless_set(&self, offset: usize, capacity: usize) -> Result<LocklessSet> {
        let spec = LocklessSet::spec(capacity)?;
        Ok(LocklessSet::new(self.place(offset, &spec)?, capacity))
    }
}
