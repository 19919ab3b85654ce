// May use `os`, `domain`, `types`, `node` and `wait`; not `topic`, `queue` or `rt`. Begin with
// `mutex/word`, then `mutex/wait`: other locks use both.

//! Locks that survive their holder: kill it at any instruction, and the next thread gets the lock
//! and its data, with `OwnerDied`.
//!
//! [`Node::mutex`](crate::Node::mutex) and its neighbours open a lock by name. After a death
//! [`LockError::OwnerDied`] hands over the data, to be repaired.
//!
//! # Examples
//! ```
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! use outlive::{ErrorKind, lock::LockError};
//!
//! let map = node.rwlock::<[u32; 4]>("/map")?;
//! let writer = || {
//!     let mut cells = map.write().unwrap();
//!     cells[0] = 1;
//!     panic!("before the others"); // counts as a death
//! };
//! std::thread::scope(|scope| scope.spawn(writer).join()).unwrap_err();
//! assert_eq!(map.read().unwrap_err().kind(), ErrorKind::OwnerDied);
//! let Err(LockError::OwnerDied(mut cells)) = map.write() else { panic!("a writer died") };
//! *cells = [0; 4];
//! drop(cells.mark_consistent());
//! assert_eq!(*map.read()?, [0; 4]);
//! # Ok::<(), outlive::Error>(())
//! ```
//!
//! # Where it is
//!
//! | module | what |
//! |---|---|
//! | `mutex/` | the lock word, waiting for it, mutexes, the condition variable |
//! | `rwlock/` | readers' lines beside a lock word |
//! | `semaphore/`, `set/` | permits; the lockless set |
//! | `object/` | where an object lies: file, segment, the user's memory; listing, cleaning |
//! | `error` | why a lock was not taken; data of the dead |

mod error;
mod mutex;
pub(crate) mod object;
mod rwlock;
mod semaphore;
pub(crate) mod set;

pub use error::{Guard, Inherited, LockError, LockResult, NeedsWriter};
pub use mutex::condvar::RobustCondvar;
pub use mutex::raw_mutex::{Acquired, RawMutex};
pub use mutex::{MutexGuard, PiGuard, PiMutex, RobustMutex};
pub use object::admin::{LockInfo, LockState};
pub use object::layout::LockKind;
pub use object::segment::Segment;
pub use rwlock::raw_rwlock::RawRwLock;
pub use rwlock::{ReadGuard, RobustRwLock, WriteGuard};
pub use semaphore::{Permit, RobustSemaphore};
pub use set::lockless_set::LocklessSet;

use crate::Result;
use crate::node::Node;
use crate::types::Message;
use object::Object;

impl Node {
    /// Opens the mutex `name`, or creates it with its value all zeros.
    ///
    /// It stays until nobody has it open and somebody cleans the domain.
    ///
    /// # Errors
    /// `TypeMismatch` when the name is of another type or kind of object; `InvalidName`; `NoSpace`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let speed = node.mutex::<f64>("/base/speed")?;
    /// *speed.lock()? = 1.5;
    /// let same = node.mutex::<f64>("/base/speed")?; // by name, from any process
    /// assert_eq!(*same.lock()?, 1.5);
    /// let other = node.mutex::<u32>("/base/speed").unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mutex<T: Message>(&self, name: &str) -> Result<RobustMutex<T>> {
        open_mutex(self, name, None)
    }

    /// As [`mutex`](Self::mutex); the creator stores `value`.
    ///
    /// # Errors
    /// As `mutex`.
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`: the value is there when the file appears.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gains = node.mutex_with("/arm/gains", &[1.0, 0.1, 0.01])?;
    /// let opened = node.mutex_with("/arm/gains", &[9.0; 3])?; // exists: 9.0 is not stored
    /// assert_eq!(*opened.lock()?, [1.0, 0.1, 0.01]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mutex_with<T: Message>(&self, name: &str, value: &T) -> Result<RobustMutex<T>> {
        open_mutex(self, name, Some(value))
    }

    /// Opens the mutex `name` with priority inheritance, or creates it with its value all zeros.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex). A `RobustMutex` of that name is a `TypeMismatch`. `Unsupported`
    /// after 1 s when its members are in another PID namespace.
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let goal = node.pi_mutex::<u64>("/arm/goal")?;
    /// *goal.lock()? = 7;
    /// assert_eq!(*goal.lock()?, 7);
    /// let plain = node.mutex::<u64>("/arm/goal").unwrap_err(); // another kind of lock
    /// assert_eq!(plain.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn pi_mutex<T: Message>(&self, name: &str) -> Result<PiMutex<T>> {
        PiMutex::open(self, name, None)
    }

    /// As [`pi_mutex`](Self::pi_mutex); the creator stores `value`.
    ///
    /// # Errors
    /// As `pi_mutex`.
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let limits = node.pi_mutex_with("/arm/limits", &[-1.0, 1.0])?;
    /// assert_eq!(*limits.lock()?, [-1.0, 1.0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn pi_mutex_with<T: Message>(&self, name: &str, value: &T) -> Result<PiMutex<T>> {
        PiMutex::open(self, name, Some(value))
    }

    /// Opens the reader/writer lock `name`, or creates it with its value all zeros.
    ///
    /// It stays until nobody has it open and somebody cleans the domain.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let map = node.rwlock::<[u32; 4]>("/map")?;
    /// map.write()?[0] = 1;
    /// assert_eq!(*node.rwlock::<[u32; 4]>("/map")?.read()?, [1, 0, 0, 0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn rwlock<T: Message>(&self, name: &str) -> Result<RobustRwLock<T>> {
        open_rwlock(self, name, None)
    }

    /// As [`rwlock`](Self::rwlock); the creator stores `value`.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gains = node.rwlock_with("/arm/gains", &[1.0, 0.1, 0.01])?;
    /// let opened = node.rwlock_with("/arm/gains", &[9.0; 3])?; // exists: 9.0 is not stored
    /// assert_eq!(opened.read()?[0], 1.0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn rwlock_with<T: Message>(&self, name: &str, value: &T) -> Result<RobustRwLock<T>> {
        open_rwlock(self, name, Some(value))
    }

    /// Opens the condition variable `name`, or creates it. Errors: as [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// let (guard, notified) = changed.wait_timeout(goal.lock()?, Duration::from_millis(1))?;
    /// assert!(*guard == 0 && !notified);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn condvar(&self, name: &str) -> Result<RobustCondvar> {
        let object = Object::named(self, name, &RobustCondvar::object_type(), None)?;
        Ok(RobustCondvar::new(object))
    }

    /// Opens the semaphore `name`, or creates it with `permits` permits, 1 to 1024.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex); `TypeMismatch` also for another number of permits;
    /// `InvalidArgument` for one out of range.
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gpu = node.semaphore("/gpu", 2)?;
    /// let permit = gpu.acquire()?;
    /// let same = node.semaphore("/gpu", 2)?;
    /// assert_eq!(same.available(), 1);
    /// let other = node.semaphore("/gpu", 3).unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn semaphore(&self, name: &str, permits: usize) -> Result<RobustSemaphore> {
        let ty = RobustSemaphore::object_type(permits)?;
        let object = Object::named(self, name, &ty, None)?;
        Ok(RobustSemaphore::new(object, permits))
    }

    /// Opens the set `name`, or creates it with room for `capacity` ids, 1 to 16777216.
    ///
    /// # Errors
    /// As [`semaphore`](Self::semaphore).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ready = node.lockless_set("/fleet/ready", 2)?;
    /// assert!(ready.insert(7)? && ready.insert(8)?);
    /// assert_eq!(ready.insert(9).unwrap_err().kind(), outlive::ErrorKind::NoSpace);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lockless_set(&self, name: &str, capacity: usize) -> Result<LocklessSet> {
        let ty = LocklessSet::object_type(capacity)?;
        let object = Object::named(self, name, &ty, None)?;
        Ok(LocklessSet::new(object, capacity))
    }

    /// Opens the segment `name`, or creates it filled with zeros: a place for locks.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let shared = node.segment::<[u64; 8]>("/counters")?;
    /// // SAFETY: the segment is mapped and aligned; all its users access this word as an atomic.
    /// let first = unsafe { AtomicU64::from_ptr(shared.as_ptr().cast()) };
    /// assert_eq!(first.fetch_add(1, Ordering::Relaxed), 0); // zeros at first
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn segment<T: Message>(&self, name: &str) -> Result<Segment<T>> {
        Segment::open(self, name, None)
    }

    /// As [`segment`](Self::segment); the creator stores `value`.
    ///
    /// # Errors
    /// As [`mutex`](Self::mutex).
    ///
    /// # Crash safety
    /// **Strict.** As `mutex`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ports = node.segment_with("/ports", &[7u16, 8, 9])?;
    /// let opened = node.segment_with("/ports", &[0u16; 3])?; // exists: zeros are not stored
    /// // SAFETY: nobody writes here after the creation.
    /// assert_eq!(unsafe { *opened.as_ptr() }, [7, 8, 9]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn segment_with<T: Message>(&self, name: &str, value: &T) -> Result<Segment<T>> {
        Segment::open(self, name, Some(value))
    }
}

fn open_mutex<T: Message>(node: &Node, name: &str, value: Option<&T>) -> Result<RobustMutex<T>> {
    let data = object::layout::mutex_data(align_of::<T>());
    let ty = RobustMutex::<T>::object_type();
    Ok(RobustMutex::new(Object::named(node, name, &ty, value.map(|v| (data, v.as_bytes())))?))
}

fn open_rwlock<T: Message>(node: &Node, name: &str, value: Option<&T>) -> Result<RobustRwLock<T>> {
    let data = object::layout::rwlock_data(align_of::<T>());
    let ty = RobustRwLock::<T>::object_type();
    Ok(RobustRwLock::new(Object::named(node, name, &ty, value.map(|v| (data, v.as_bytes())))?))
}

#[cfg(test)]
mod tests;
