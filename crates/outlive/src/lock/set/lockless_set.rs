//! A bounded set of ids in shared memory.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::slots::Places;
use crate::lock::object::layout;
use crate::lock::object::layout::{LockKind, head};
use crate::lock::object::{Object, ObjectType};
use crate::node::Node;
use crate::os::process::fork::fork_generation;
use crate::{Error, ErrorKind, Result};

/// A bounded set of 64-bit ids that any number of threads and processes change without a lock.
///
/// Ids have no owner: those that a killed process inserted stay until somebody removes them. Up to
/// 64 places are searched one by one, larger sets by hash.
///
/// # Memory ordering
/// What a thread did before `insert` is visible to any thread that sees the id.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("fleet").open()?;
/// let set = node.lockless_set("/fleet/ready", 16)?;
/// assert!(set.insert(7)? && !set.insert(7)?);
/// assert!(set.contains(7) && set.ids() == [7]);
/// assert!(set.remove(7) && !set.contains(7));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct LocklessSet {
    object: Object,
    capacity: usize,
    /// What an insert answers that finds no place: without its id, since it is made when printed.
    full: Error,
}

impl LocklessSet {
    /// Bytes it takes in a segment or in memory of your own, aligned to 64.
    ///
    /// # Examples
    /// ```
    /// use outlive::lock::LocklessSet;
    ///
    /// assert_eq!(LocklessSet::bytes(16), 64 + 16 * 8);
    /// ```
    pub const fn bytes(capacity: usize) -> usize {
        layout::words_bytes(capacity)
    }

    pub(in crate::lock) fn object_type(capacity: usize) -> Result<ObjectType> {
        if capacity == 0 || capacity > layout::SET_MAX {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "opening a set of",
                format!("{capacity} ids"),
                format!("it has room for 1 to {}", layout::SET_MAX),
            ));
        }
        let plain = ObjectType::without_data(LockKind::Set, Self::bytes(capacity));
        Ok(ObjectType { count: capacity, ..plain })
    }

    pub(in crate::lock) fn new(object: Object, capacity: usize) -> Self {
        let full = Error::kept(ErrorKind::NoSpace, "a set", |at, kind| {
            Error::new(kind, "inserting into", at.object(), "it is full: make it larger")
        });
        Self { object, capacity, full }
    }

    /// Places it in zeroed shared memory of your own, or finds it there.
    ///
    /// # Errors
    /// As [`RobustMutex::place`](crate::lock::RobustMutex::place).
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the set lives.
    /// - Nobody writes to its first `bytes(capacity)` bytes except through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is an empty set; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::lock::LocklessSet;
    ///
    /// const LEN: usize = LocklessSet::bytes(16);
    /// // SAFETY: `page` is zeroed, shared, stays mapped, and nobody else writes to it.
    /// let ready = unsafe { LocklessSet::place(&node, 16, page, LEN)? };
    /// assert!(ready.insert(7)? && ready.contains(7));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, capacity: usize, memory: *mut u8, len: usize) -> Result<Self> {
        let ty = Self::object_type(capacity)?;
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &ty)? }, capacity))
    }

    fn places(&self) -> Places<'_> {
        // SAFETY: the object has these words (`ty`), and keeps them mapped; all access is atomic.
        unsafe {
            let words = self.object.word(layout::WORDS);
            Places {
                reach: self.object.word(head::WORD).as_ref(),
                words: NonNull::slice_from_raw_parts(words, self.capacity).as_ref(),
            }
        }
    }

    /// Adds `id`; false if it was a member already. Two threads that insert the same id at the same
    /// time may both get true.
    ///
    /// # Errors
    /// `NoSpace` when all places are taken; `InvalidArgument` for id 0; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS.
    ///
    /// # Real-time
    /// No system call; a bounded search unless others keep changing the same places.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    ///
    /// let ready = node.lockless_set("/fleet/ready", 2)?;
    /// assert!(ready.insert(7)?);
    /// assert!(!ready.insert(7)?); // a member already
    /// assert_eq!(ready.insert(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// ready.insert(8)?;
    /// assert_eq!(ready.insert(9).unwrap_err().kind(), ErrorKind::NoSpace);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn insert(&self, id: u64) -> Result<bool> {
        if id == 0 {
            return Err(not_inserted(ErrorKind::InvalidArgument, id, "0 marks a free place"));
        }
        if self.object.generation != fork_generation() {
            let why = "open a node of the child's own";
            return Err(not_inserted(ErrorKind::ForkedChild, id, why));
        }
        self.places().insert(id).map_err(|_| self.full.clone())
    }

    /// Removes `id`; false if it was not a member.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ready = node.lockless_set("/fleet/ready", 1)?;
    /// ready.insert(7)?;
    /// assert!(ready.remove(7) && !ready.remove(7));
    /// assert!(ready.insert(8)?); // in the place of 7
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn remove(&self, id: u64) -> bool {
        id != 0 && self.object.generation == fork_generation() && self.places().remove(id)
    }

    /// Whether `id` is a member right now.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ready = node.lockless_set("/fleet/ready", 16)?;
    /// let robot = || ready.insert(7).unwrap(); // its thread ends, its id stays
    /// std::thread::scope(|scope| scope.spawn(robot).join()).unwrap();
    /// assert!(ready.contains(7) && !ready.contains(8));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn contains(&self, id: u64) -> bool {
        id != 0 && self.places().contains(id)
    }

    /// All members in ascending order; ids inserted or removed meanwhile may or may not be
    /// included.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ready = node.lockless_set("/fleet/ready", 16)?;
    /// for id in [9, 7, 8] {
    ///     ready.insert(id)?;
    /// }
    /// assert_eq!(ready.ids(), [7, 8, 9]);
    /// assert_eq!(ready.capacity(), 16);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.places().ids().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// How many ids there is room for.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ready = node.lockless_set("/fleet/ready", 16)?;
    /// ready.insert(7)?;
    /// assert_eq!(ready.capacity() - ready.ids().len(), 15); // room for more
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}

#[cold]
fn not_inserted(kind: ErrorKind, id: u64, why: &str) -> Error {
    Error::new(kind, "inserting", format!("id {id}"), why)
}
