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
}

impl LocklessSet {
    /// Bytes it takes in a segment or in memory of your own, aligned to 64.
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
        Self { object, capacity }
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
    pub fn insert(&self, id: u64) -> Result<bool> {
        let refuse = |kind, why: &str| Err(Error::new(kind, "inserting", format!("id {id}"), why));
        if id == 0 {
            return refuse(ErrorKind::InvalidArgument, "0 marks a free place");
        }
        if self.object.generation != fork_generation() {
            return refuse(ErrorKind::ForkedChild, "open a node of the child's own");
        }
        match self.places().insert(id) {
            Ok(new) => Ok(new),
            Err(_) => refuse(ErrorKind::NoSpace, "the set is full: make it larger"),
        }
    }

    /// Removes `id`; false if it was not a member.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS.
    pub fn remove(&self, id: u64) -> bool {
        id != 0 && self.object.generation == fork_generation() && self.places().remove(id)
    }

    /// Whether `id` is a member right now.
    pub fn contains(&self, id: u64) -> bool {
        id != 0 && self.places().contains(id)
    }

    /// All members in ascending order; ids inserted or removed meanwhile may or may not be
    /// included.
    pub fn ids(&self) -> Vec<u64> {
        let mut ids: Vec<u64> = self.places().ids().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// How many ids there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }
}
