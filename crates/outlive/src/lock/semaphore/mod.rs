//! A semaphore whose permits come back when their holder dies.
//! Begin with `permits`, the algorithm: a word for each permit names the thread that has it.
#![allow(unsafe_code)]

pub(super) mod permits;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::time::Duration;

use super::error::{LockError, LockResult};
use super::mutex::wait::{Spin, Waiter, wake};
use super::mutex::word::{ALL, Got};
use super::object::layout;
use super::object::layout::{LockKind, head};
use super::object::{Object, ObjectType};
use crate::node::Node;
use crate::os::process::fork::fork_generation;
use crate::os::time::deadline::Deadline;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::{Error, ErrorKind, Result};
use permits::Permits;

/// A counting semaphore: each permit lets one thread in. A killed holder's permit comes back.
///
/// A thread may hold several permits. One that holds them all, through any node of its process, and
/// wants another gets `Deadlock`. A forgotten permit comes back when its thread ends.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("vision").open()?;
/// let gpu = node.semaphore("/gpu", 2)?;
/// let permit = gpu.acquire()?;
/// assert!(!permit.owner_died() && gpu.available() == 1);
/// drop(permit);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct RobustSemaphore {
    object: Object,
    permits: usize,
    spin: Spin,
}

impl RobustSemaphore {
    /// Bytes it takes in a segment or in memory of your own, aligned to 64.
    ///
    /// # Examples
    /// ```
    /// use outlive::lock::RobustSemaphore;
    ///
    /// assert_eq!(RobustSemaphore::bytes(2) % 64, 0);
    /// assert!(RobustSemaphore::bytes(2) < RobustSemaphore::bytes(1024));
    /// ```
    pub const fn bytes(permits: usize) -> usize {
        layout::words_bytes(permits)
    }

    pub(super) fn object_type(permits: usize) -> Result<ObjectType> {
        if permits == 0 || permits > layout::PERMITS_MAX {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "opening a semaphore of",
                format!("{permits} permits"),
                format!("it has 1 to {}", layout::PERMITS_MAX),
            ));
        }
        let plain = ObjectType::without_data(LockKind::Semaphore, Self::bytes(permits));
        Ok(ObjectType { count: permits, ..plain })
    }

    pub(super) fn new(object: Object, permits: usize) -> Self {
        Self { object, permits, spin: Spin::new() }
    }

    /// Places it in zeroed shared memory of your own, or finds it there.
    ///
    /// # Errors
    /// As [`RobustMutex::place`](super::RobustMutex::place).
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the semaphore lives.
    /// - Nobody writes to its first `bytes(permits)` bytes except through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a semaphore; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::lock::RobustSemaphore;
    ///
    /// const LEN: usize = RobustSemaphore::bytes(2);
    /// // SAFETY: `page` is zeroed, shared, stays mapped, and nobody else writes to it.
    /// let gpu = unsafe { RobustSemaphore::place(&node, 2, page, LEN)? };
    /// assert_eq!(gpu.available(), 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, permits: usize, memory: *mut u8, len: usize) -> Result<Self> {
        let ty = Self::object_type(permits)?;
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &ty)? }, permits))
    }

    fn words(&self) -> Permits<'_> {
        // SAFETY: the object has these words (`ty`), and keeps them mapped; all access is atomic.
        unsafe {
            let words = self.object.word(layout::WORDS);
            Permits {
                bell: self.object.word(head::WORD).as_ref(),
                sleepers: self.object.word(head::DRAIN).as_ref(),
                words: NonNull::slice_from_raw_parts(words, self.permits).as_ref(),
            }
        }
    }

    /// Takes a permit, waiting as long as living threads hold all of them.
    ///
    /// # Errors
    /// `Deadlock` when the calling thread holds them all; `Failed`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS that names the calling thread as holder.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let gpu = node.semaphore("/gpu", 2)?;
    /// let (_first, _second) = (gpu.acquire()?, gpu.acquire()?);
    /// assert!(matches!(gpu.acquire(), Err(LockError::Deadlock))); // this thread holds both
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn acquire(&self) -> LockResult<Permit<'_>> {
        self.acquire_by(Deadline::NEVER)
    }

    /// Takes a permit that is free or a dead thread's. Errors: as `acquire`, and `WouldBlock`.
    ///
    /// # Crash safety
    /// **Strict.** As `acquire`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let gpu = node.semaphore("/gpu", 1)?;
    /// let permit = gpu.try_acquire()?;
    /// let busy = || matches!(gpu.try_acquire(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// drop(permit);
    ///
    /// let user = || std::mem::forget(gpu.acquire().unwrap()); // ends with the permit
    /// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
    /// assert!(gpu.try_acquire()?.owner_died());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn try_acquire(&self) -> LockResult<Permit<'_>> {
        self.acquire_by(Deadline::AT_ONCE)
    }

    /// As `acquire`, until `deadline`; `Deadline::AT_ONCE` is `try_acquire`. Errors: as `acquire`,
    /// and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `acquire`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::LockError};
    /// use std::time::Duration;
    ///
    /// let gpu = node.semaphore("/gpu", 1)?;
    /// let permit = gpu.acquire()?;
    /// let cycle = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(gpu.acquire_until(cycle), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn acquire_until(&self, deadline: Deadline) -> LockResult<Permit<'_>> {
        self.acquire_by(deadline)
    }

    /// As `acquire`, at most for `timeout`. Errors: as `acquire`, and `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `acquire`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let gpu = node.semaphore("/gpu", 1)?;
    /// let permit = gpu.acquire()?;
    /// std::thread::scope(|scope| -> outlive::Result<()> {
    ///     let next = scope.spawn(|| gpu.acquire_timeout(Duration::from_secs(5)).map(drop));
    ///     drop(permit); // the other thread gets it
    ///     Ok(next.join().unwrap()?)
    /// })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn acquire_timeout(&self, timeout: Duration) -> LockResult<Permit<'_>> {
        self.acquire_until(Deadline::after(timeout))
    }

    fn acquire_by(&self, until: Deadline) -> LockResult<Permit<'_>> {
        let me = self.object.threads.id().map_err(LockError::Failed)?;
        let words = self.words();
        let permit = |at, got| Permit { semaphore: self, at, me, got, _here: PhantomData };
        // Threads begin at different permits, so that they meet less often.
        if let Some(at) = words.take_free(me, me as usize % self.permits) {
            return Ok(permit(at, Got::Clean));
        }
        let mut waiter = Waiter::new(&self.object.threads, &self.spin, until);
        let sleep = |waiter: &mut Waiter<'_>, rung| {
            let holders = words.words.iter().map(|word| word.load(Relaxed));
            waiter.sleep_on_many(words.bell, rung, holders)
        };
        match words.take(me, &mut waiter, sleep) {
            Ok((at, got)) => Ok(permit(at, got)),
            Err(e) => Err(LockError::refused(e, until == Deadline::AT_ONCE, waiter.failure.take())),
        }
    }

    /// How many permits there are.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gpu = node.semaphore("/gpu", 2)?;
    /// let _permit = gpu.acquire()?;
    /// assert_eq!((gpu.permits(), gpu.available()), (2, 1));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// How many are free right now; others may take them at once. Those of dead holders count as
    /// held.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gpu = node.semaphore("/gpu", 2)?;
    /// let user = || std::mem::forget(gpu.acquire().unwrap()); // ends with the permit
    /// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
    /// assert_eq!(gpu.available(), 1); // it comes back when somebody needs it:
    /// let _both = (gpu.acquire()?, gpu.acquire()?);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn available(&self) -> usize {
        self.words().words.iter().filter(|word| word.load(Relaxed) == 0).count()
    }
}

/// A permit of a [`RobustSemaphore`], until dropped.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let gpu = node.semaphore("/gpu", 1)?;
/// let permit = gpu.acquire()?;
/// if permit.owner_died() {
///     println!("reset device {} first", permit.index());
/// }
/// assert_eq!(gpu.available(), 0);
/// drop(permit); // it comes back; so it does when its thread ends
/// assert_eq!(gpu.available(), 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it gives the permit back"]
pub struct Permit<'a> {
    semaphore: &'a RobustSemaphore,
    at: usize,
    me: u64,
    got: Got,
    /// The holder is a thread: the permit stays with it.
    _here: PhantomData<*mut ()>,
}

impl Permit<'_> {
    /// Which of the permits it is, from 0: for instance the number of a device.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gpus = ["cuda:0", "cuda:1"];
    /// let free = node.semaphore("/gpu", gpus.len())?;
    /// let (one, other) = (free.acquire()?, free.acquire()?);
    /// assert_ne!(gpus[one.index()], gpus[other.index()]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.at
    }

    /// Whether the previous holder died with it: what it guards may be inconsistent.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let gpu = node.semaphore("/gpu", 1)?;
    /// let user = || std::mem::forget(gpu.acquire().unwrap()); // ends with the permit
    /// std::thread::scope(|scope| scope.spawn(user).join()).unwrap();
    /// let permit = gpu.acquire()?;
    /// assert!(permit.owner_died()); // reset the device first
    /// drop(permit);
    /// assert!(!gpu.acquire()?.owner_died());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn owner_died(&self) -> bool {
        self.got == Got::Broken
    }
}

impl Drop for Permit<'_> {
    /// # Crash safety
    /// **Strict.** One CAS; sleepers are woken by it or by the process's death.
    fn drop(&mut self) {
        if self.semaphore.object.generation == fork_generation() {
            self.semaphore.words().give_back(self.at, self.me, |bell: &AtomicU64| {
                wake(bell, ALL);
            });
        }
    }
}
