//! A shared file of the user's own, as the place for locks and what they protect.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::layout::{self, LockKind};
use super::{Kept, Object, ObjectType};
use crate::lock::mutex::RobustMutex;
use crate::lock::mutex::condvar::RobustCondvar;
use crate::lock::rwlock::RobustRwLock;
use crate::lock::semaphore::RobustSemaphore;
use crate::lock::set::lockless_set::LocklessSet;
use crate::node::Node;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};
use crate::types::Message;
use crate::{Error, ErrorKind, Result};

/// Shared memory with the layout of a type of yours, in which locks may be placed.
///
/// The file appears complete, with its first value. A lock is placed at an offset that is a
/// multiple of 64 (the segment itself is aligned to 64 or to `T`), in bytes that are zero at first;
/// its own data follows it. Objects may not overlap: the file records which bytes each takes, for
/// up to 16384 of them. Many locks in one segment take one file descriptor.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::{RobustMutex, Segment};
///
/// #[outlive::message("example/Arm")]
/// struct Arm {
///     /// A mutex with the joint angles: 64 bytes and what it protects.
///     joints: [u64; RobustMutex::<[f64; 6]>::BYTES.div_ceil(64) * 8],
///     serial: u64,
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
    object: Object,
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
    pub(in crate::lock) fn open(node: &Node, name: &str, value: Option<&T>) -> Result<Self> {
        let (size, align) = (size_of::<T>(), align_of::<T>());
        let bytes = layout::segment_bytes(size, align).unwrap_or(usize::MAX);
        let ty = ObjectType::of::<T>(LockKind::Segment, bytes);
        let at = layout::mutex_data(align_of::<T>());
        let value = value.map(|value| (at, value.as_bytes()));
        let object = Object::named(node, name, &ty, value)?;
        let data = object.at(at);
        if let Some((_, bytes)) = value.filter(|_| fault("segment.opener_fills")) {
            // SAFETY: inside the object, which has room for as many bytes there.
            unsafe { data.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        let inner = Inner { object, node: node.clone(), data };
        Ok(Self { inner: Arc::new(inner), _type: PhantomData })
    }

    /// The shared bytes, mapped for as long as the segment or a lock in it lives.
    ///
    /// Other processes write them: go through a lock, or through atomics.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let limits = node.segment_with("/limits", &[-1.0, 1.0])?;
    /// // SAFETY: nobody writes there after the creation.
    /// assert_eq!(unsafe { *limits.as_ptr() }, [-1.0, 1.0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_ptr(&self) -> *mut T {
        self.inner.data.as_ptr().cast()
    }

    fn place(&self, offset: usize, ty: &ObjectType) -> Result<Object> {
        let inner = &self.inner;
        let kept: Arc<dyn Kept> = Arc::clone(inner) as Arc<dyn Kept>;
        let len = size_of::<T>();
        let register = || self.register(offset, ty);
        if !fault("segment.look_first") {
            self.must_be_beside(offset, ty)?;
        }
        Object::in_segment(&inner.node, kept, inner.data, len, offset, ty, register)
    }

    /// The lines that an object takes: from the first one to before the last one.
    fn lines(offset: usize, ty: &ObjectType) -> Result<(u64, u64)> {
        let unit = layout::OBJECT_ALIGN;
        let (first, count) = ((offset / unit) as u64, ty.bytes.div_ceil(unit) as u64);
        let end = first.checked_add(count).filter(|end| *end <= u64::from(u32::MAX));
        let Some(end) = end else {
            return Err(refused(offset, ty, "a segment has at most 256 GiB".into()));
        };
        Ok((first, end))
    }

    /// The words of the table of objects; all access is atomic.
    fn table(&self) -> impl Iterator<Item = &AtomicU64> {
        let table = layout::placed(size_of::<T>(), align_of::<T>()).unwrap_or(usize::MAX);
        // SAFETY: `segment_bytes` has room for so many words; all access is atomic.
        let word = move |at| unsafe { self.inner.object.word(table + 8 * at).as_ref() };
        (0..layout::placed_count(size_of::<T>())).map(word)
    }

    /// Refuses a place that begins among the bytes of another object, before a look at what is
    /// there: data of that object, which may look like anything.
    fn must_be_beside(&self, offset: usize, ty: &ObjectType) -> Result<()> {
        let (first, end) = Self::lines(offset, ty)?;
        let seen = self.table().map(|word| word.load(Relaxed)).take_while(|seen| *seen != 0);
        seen.filter(|seen| seen >> 32 < first)
            .try_for_each(|seen| must_not_overlap(seen, (first, end), offset, ty))
    }

    /// Writes down which bytes the object takes, unless one that overlaps is written down.
    ///
    /// Each takes the first free word of a table that only grows, so it has seen all before it.
    /// Its words carry nothing else: no order is needed.
    ///
    /// # Crash safety
    /// **Strict.** One CAS. Dying after it: the place is reserved for such an object.
    fn register(&self, offset: usize, ty: &ObjectType) -> Result<()> {
        let (first, end) = Self::lines(offset, ty)?;
        let entry = first << 32 | (end - first);
        for word in self.table() {
            let mut seen = word.load(Relaxed);
            if seen == 0 {
                match word.compare_exchange(0, entry, Relaxed, Relaxed) {
                    Ok(_) => return Ok(()),
                    Err(now) => seen = now,
                }
            }
            if seen == entry {
                return Ok(());
            }
            must_not_overlap(seen, (first, end), offset, ty)?;
        }
        let why = "the table of the segment's objects is full";
        Err(Error::new(ErrorKind::TooManyMembers, placing(ty), at_offset(offset), why))
    }

    /// The mutex at `offset` bytes, placed there by the first caller; it takes
    /// [`RobustMutex::BYTES`].
    ///
    /// # Errors
    /// `InvalidArgument` when it does not fit, is not aligned or overlaps another object;
    /// `TypeMismatch` when something else was placed there; `TooManyMembers`.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a free mutex; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let arm = node.segment::<[u64; 64]>("/arm")?;
    /// let (goal, pose) = (arm.mutex::<f64>(0)?, arm.mutex::<[f64; 3]>(128)?);
    /// *goal.lock()? = 1.5;
    /// assert_eq!(pose.lock()?[0], 0.0);
    /// let overlap = arm.mutex::<f64>(64).unwrap_err(); // the data of the first one is there
    /// assert_eq!(overlap.kind(), outlive::ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mutex<U: Message>(&self, offset: usize) -> Result<RobustMutex<U>> {
        Ok(RobustMutex::new(self.place(offset, &RobustMutex::<U>::object_type())?))
    }

    /// The reader/writer lock at `offset` bytes; it takes [`RobustRwLock::BYTES`]. Errors and crash
    /// safety: as [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::RobustRwLock;
    ///
    /// const WORDS: usize = RobustRwLock::<[f64; 3]>::BYTES.div_ceil(64) * 8;
    /// let arm = node.segment::<[u64; WORDS]>("/arm")?;
    /// let gains = arm.rwlock::<[f64; 3]>(0)?;
    /// gains.write()?[0] = 1.0;
    /// assert_eq!(gains.read()?[0], 1.0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn rwlock<U: Message>(&self, offset: usize) -> Result<RobustRwLock<U>> {
        Ok(RobustRwLock::new(self.place(offset, &RobustRwLock::<U>::object_type())?))
    }

    /// The condition variable at `offset` bytes; it takes [`RobustCondvar::BYTES`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let arm = node.segment::<[u64; 64]>("/arm")?;
    /// let (goal, changed) = (arm.mutex::<u64>(0)?, arm.condvar(128)?);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *goal.lock().unwrap() = 7;
    ///         changed.notify_all();
    ///     });
    ///     let mut guard = goal.lock().unwrap();
    ///     while *guard == 0 {
    ///         guard = changed.wait(guard).unwrap();
    ///     }
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn condvar(&self, offset: usize) -> Result<RobustCondvar> {
        Ok(RobustCondvar::new(self.place(offset, &RobustCondvar::object_type())?))
    }

    /// The semaphore at `offset` bytes; it takes [`RobustSemaphore::bytes`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let shared = node.segment::<[u64; 64]>("/devices")?;
    /// let gpu = shared.semaphore(0, 2)?;
    /// let _permit = gpu.acquire()?;
    /// assert_eq!(shared.semaphore(0, 2)?.available(), 1); // the same one
    /// let other = shared.semaphore(0, 3).unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn semaphore(&self, offset: usize, permits: usize) -> Result<RobustSemaphore> {
        let ty = RobustSemaphore::object_type(permits)?;
        Ok(RobustSemaphore::new(self.place(offset, &ty)?, permits))
    }

    /// The set at `offset` bytes; it takes [`LocklessSet::bytes`]. Errors: as
    /// [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let shared = node.segment::<[u64; 64]>("/fleet")?;
    /// let ready = shared.lockless_set(0, 16)?;
    /// ready.insert(7)?;
    /// assert_eq!(shared.lockless_set(0, 16)?.ids(), [7]); // the same one
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lockless_set(&self, offset: usize, capacity: usize) -> Result<LocklessSet> {
        let ty = LocklessSet::object_type(capacity)?;
        Ok(LocklessSet::new(self.place(offset, &ty)?, capacity))
    }
}

fn placing(ty: &ObjectType) -> String {
    format!("placing {}", ty.kind.as_str())
}

fn at_offset(offset: usize) -> String {
    format!("offset {offset} of a segment")
}

#[cold]
fn refused(offset: usize, ty: &ObjectType, why: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, placing(ty), at_offset(offset), why)
}

/// Refuses lines that an object has which is written down as `seen`.
fn must_not_overlap(
    seen: u64,
    (first, end): (u64, u64),
    offset: usize,
    ty: &ObjectType,
) -> Result<()> {
    let (from, to) = (seen >> 32, (seen >> 32).saturating_add(seen & 0xffff_ffff));
    if from >= end || first >= to || fault("segment.overlap") {
        return Ok(());
    }
    let unit = layout::OBJECT_ALIGN as u64;
    let (from, to, end) = (from * unit, to * unit, end * unit);
    let why = format!(
        "it takes bytes {offset} to {end}, and another object those from {from} to {to}: move one \
         of them"
    );
    Err(refused(offset, ty, why))
}
