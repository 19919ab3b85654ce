//! A condition variable for `RobustMutex`.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::time::Duration;

use super::MutexGuard;
use super::hold::Hold;
use super::raw_mutex::{Acquired, RawMutex};
use super::wait::wake;
use crate::lock::error::{Inherited, LockError, LockResult};
use crate::lock::object::layout::{LockKind, head};
use crate::lock::object::{Object, ObjectType};
use crate::node::Node;
use crate::os::process::fork;
use crate::os::sleep::futex;
use crate::os::sleep::slice::slice_ns_max;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::SeqCst;
use crate::sync::{AtomicU64, fault};
use crate::types::Message;
use crate::{Error, ErrorKind, Result};

/// Waiting for a change of data under a [`RobustMutex`](crate::lock::RobustMutex).
///
/// Killed waiters and notifiers leave nobody waiting: a waiter whose notifier died between its two
/// steps, or whose wake-up went to a waiter that died, looks again within 100 ms. Spurious wake-ups
/// are normal: check the data again.
///
/// It cannot tell whether anyone is left to notify it: wait with a deadline, or watch the node.
///
/// # Theory of operation
/// `notify` increments a change count and wakes sleepers if any waiter is counted; a waiter counts
/// itself, reads the change count while it holds the mutex, releases it, and sleeps while the count
/// is unchanged. A killed waiter stays counted, which costs each later `notify` a system call and
/// nothing else.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let node = outlive::Node::builder().root(dir.path()).name("arm").open()?;
/// let (goal, changed) = (node.mutex::<u64>("/arm/goal")?, node.condvar("/arm/goal-changed")?);
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
#[derive(Debug)]
pub struct RobustCondvar {
    object: Object,
    /// Changes, counted.
    count: NonNull<AtomicU64>,
}

// SAFETY: the pointer leads into `object`, which may be sent and shared.
unsafe impl Send for RobustCondvar {}
// SAFETY: as above.
unsafe impl Sync for RobustCondvar {}

type Held<'a, R, T> = LockResult<R, Inherited<MutexGuard<'a, T>>>;

impl RobustCondvar {
    /// Bytes it takes in a segment or in memory of your own, aligned to 64.
    pub const BYTES: usize = head::BYTES;

    pub(in crate::lock) fn object_type() -> ObjectType {
        ObjectType::without_data(LockKind::Condvar, Self::BYTES)
    }

    pub(in crate::lock) fn new(object: Object) -> Self {
        let count = object.word(head::WORD);
        Self { object, count }
    }

    /// Places it in zeroed shared memory of your own, or finds it there.
    ///
    /// # Errors
    /// As [`RobustMutex::place`](crate::lock::RobustMutex::place).
    ///
    /// # Safety
    /// - `memory` starts `len` bytes that stay mapped for as long as the condition variable lives.
    /// - Nobody writes to its first `BYTES` bytes except through this type.
    ///
    /// # Crash safety
    /// **Strict.** Zeroed memory is a condition variable; two CAS mark it as one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use libc::{MAP_ANONYMOUS, MAP_SHARED, PROT_READ, PROT_WRITE, mmap};
    /// # let (all, kind) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    /// # // SAFETY: a new mapping.
    /// # let page = unsafe { mmap(std::ptr::null_mut(), 8192, all, kind, -1, 0) }.cast::<u8>();
    /// use outlive::lock::RobustCondvar;
    ///
    /// // SAFETY: `page` is zeroed, shared, stays mapped, and nobody else writes to it.
    /// let changed = unsafe { RobustCondvar::place(&node, page, RobustCondvar::BYTES)? };
    /// changed.notify_all(); // nobody waits
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &Self::object_type())? }))
    }

    fn count(&self) -> &AtomicU64 {
        // SAFETY: inside `object`, which keeps it mapped.
        unsafe { self.count.as_ref() }
    }

    fn sleepers(&self) -> &AtomicU64 {
        // SAFETY: as in `count`.
        unsafe { self.object.word(head::DRAIN).as_ref() }
    }

    /// Releases the mutex, waits for a notification, and takes the mutex again.
    ///
    /// # Errors
    /// Those of [`RobustMutex::lock`](super::RobustMutex::lock), from taking it again; `OwnerDied`
    /// comes with the data.
    ///
    /// # Crash safety
    /// **Strict.** A death here leaves the mutex free or owned by a dead thread, as anywhere.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *goal.lock().unwrap() = 7;
    ///         changed.notify_one();
    ///     });
    ///     let mut guard = goal.lock().unwrap();
    ///     while *guard == 0 {
    ///         guard = changed.wait(guard).unwrap(); // wake-ups may be spurious
    ///     }
    ///     assert_eq!(*guard, 7);
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait<'a, T: Message>(&self, guard: MutexGuard<'a, T>) -> Held<'a, MutexGuard<'a, T>, T> {
        self.wait_by(guard, Deadline::NEVER).map(|(guard, _)| guard)
    }

    /// As `wait`, until `deadline`; returns whether a notification came. The mutex is taken again
    /// in either case, however long that takes.
    ///
    /// # Errors
    /// As `wait`.
    ///
    /// # Crash safety
    /// **Strict.** As `wait`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// let deadline = Deadline::after(Duration::from_millis(5)); // for the whole loop
    /// let mut guard = goal.lock()?;
    /// while *guard == 0 && !deadline.has_passed() {
    ///     (guard, _) = changed.wait_until(guard, deadline)?;
    /// }
    /// assert_eq!(*guard, 0); // nobody has set it; the mutex is held
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_until<'a, T: Message>(
        &self,
        guard: MutexGuard<'a, T>,
        deadline: Deadline,
    ) -> Held<'a, (MutexGuard<'a, T>, bool), T> {
        self.wait_by(guard, deadline)
    }

    /// As `wait_until`, at most for `timeout`.
    ///
    /// # Errors
    /// As `wait`.
    ///
    /// # Crash safety
    /// **Strict.** As `wait`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// let guard = goal.lock()?;
    /// let (guard, notified) = changed.wait_timeout(guard, Duration::from_millis(5))?;
    /// assert!(!notified && *guard == 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_timeout<'a, T: Message>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> Held<'a, (MutexGuard<'a, T>, bool), T> {
        self.wait_by(guard, Deadline::after(timeout))
    }

    fn wait_by<'a, T: Message>(
        &self,
        guard: MutexGuard<'a, T>,
        until: Deadline,
    ) -> Held<'a, (MutexGuard<'a, T>, bool), T> {
        let lock = guard.lock();
        // In a forked child nobody lets the mutex go, and the sleepers are the parent's.
        self.object.threads.id().and_then(|_| lock.hold.id()).map_err(LockError::Failed)?;
        let let_go = || {
            drop(guard);
            true
        };
        let notified = self.sleep(until, let_go, || true);
        lock.lock().map(|guard| (guard, notified))
    }

    /// As [`wait_until`](Self::wait_until), for a mutex without a guard, which this thread holds
    /// before and after; for other languages.
    ///
    /// # Errors
    /// `Failed` with `NotOwned` when this thread does not hold it, with `Unsupported` for a mutex
    /// with priority inheritance, which stays as it is; else those of
    /// [`RawMutex::lock`](crate::lock::RawMutex::lock), and then it is not held.
    ///
    /// # Crash safety
    /// **Strict.** As `wait`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::Acquired, lock::RawMutex};
    /// use std::time::Duration;
    ///
    /// let (goal, changed) = (RawMutex::open(&node, "/goal")?, node.condvar("/goal-changed")?);
    /// assert_eq!(goal.lock()?, Acquired::Clean);
    /// let soon = Deadline::after(Duration::from_millis(5));
    /// assert_eq!(changed.wait_raw(&goal, soon)?, (Acquired::Clean, false)); // timed out
    /// goal.unlock()?; // it was taken again
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_raw(&self, mutex: &RawMutex, deadline: Deadline) -> LockResult<(Acquired, bool)> {
        let notified = self.wait_raw_while(mutex, deadline, || true).map_err(LockError::Failed)?;
        mutex.lock().map(|acquired| (acquired, notified))
    }

    /// As [`wait_raw`](Self::wait_raw), while `go_on` returns true, but does not take the mutex
    /// again: the caller does, with a call that it can interrupt. `go_on` is called without the
    /// mutex, at least every 100 ms and after every signal that the thread handled; no notification
    /// is missed because of it.
    ///
    /// # Errors
    /// `NotOwned` when this thread does not hold the mutex; `Unsupported` for one with priority
    /// inheritance, which stays as it is.
    ///
    /// # Crash safety
    /// **Strict.** As `wait`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, lock::Acquired, lock::RawMutex};
    ///
    /// let (goal, changed) = (RawMutex::open(&node, "/goal")?, node.condvar("/goal-changed")?);
    /// assert_eq!(goal.lock()?, Acquired::Clean);
    /// let interrupted = true; // by a signal handler, say
    /// assert!(!changed.wait_raw_while(&goal, Deadline::NEVER, || !interrupted)?);
    /// assert!(goal.unlock().is_err()); // it was not taken again
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_raw_while(
        &self,
        mutex: &RawMutex,
        deadline: Deadline,
        go_on: impl FnMut() -> bool,
    ) -> Result<bool> {
        if mutex.is_pi() {
            let remedy = "a mutex with priority inheritance has no condition variable: use one \
                          without";
            return Err(Error::new(ErrorKind::Unsupported, "waiting with", "a mutex", remedy));
        }
        let mut freed = Ok(());
        let let_go = || {
            freed = mutex.unlock();
            freed.is_ok()
        };
        let notified = self.sleep(deadline, let_go, go_on);
        freed.map(|()| notified)
    }

    /// Sleeps if the mutex could be let go; whether a notification came.
    fn sleep(
        &self,
        until: Deadline,
        let_go: impl FnOnce() -> bool,
        mut go_on: impl FnMut() -> bool,
    ) -> bool {
        // ORDERING(CONDVAR): pairs with `notify`: it sees the sleeper, or we see its change.
        self.sleepers().fetch_add(1, SeqCst);
        let seen = self.count().load(SeqCst);
        let free = let_go();
        let mut notified = false;
        while free && !notified {
            let now = clock::now_ns();
            if until.has_passed_by(now) {
                break;
            }
            let slice = until.min(Deadline::at_ns(now.saturating_add(slice_ns_max() / 10)));
            futex::wait(futex::low_half(self.count()), seen as u32, slice);
            notified = self.count().load(SeqCst) != seen;
            if !notified && !go_on() {
                break;
            }
        }
        self.sleepers().fetch_sub(1, SeqCst);
        notified
    }

    /// Wakes one waiter, if there is any. With or without the mutex held.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the count. After a death before the wake a waiter looks within 100
    /// ms.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// changed.notify_one(); // nobody waits: it is not kept for a later waiter
    /// let (_guard, notified) = changed.wait_timeout(goal.lock()?, Duration::from_millis(5))?;
    /// assert!(!notified);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes all waiters.
    ///
    /// # Crash safety
    /// **Strict.** As `notify_one`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let (goal, changed) = (node.mutex::<u64>("/goal")?, node.condvar("/goal-changed")?);
    /// let waiter = || {
    ///     let mut guard = goal.lock().unwrap();
    ///     while *guard == 0 {
    ///         guard = changed.wait(guard).unwrap();
    ///     }
    ///     *guard
    /// };
    /// std::thread::scope(|scope| {
    ///     let waiting = [scope.spawn(waiter), scope.spawn(waiter)];
    ///     *goal.lock().unwrap() = 7;
    ///     changed.notify_all();
    ///     assert_eq!(waiting.map(|thread| thread.join().unwrap()), [7, 7]);
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn notify_all(&self) {
        self.notify(i32::MAX);
    }

    fn notify(&self, n: i32) {
        if self.object.generation != fork::fork_generation() {
            return; // the parent's
        }
        // ORDERING(CONDVAR): pairs with `wait_by`.
        self.count().fetch_add(1, SeqCst);
        if self.sleepers().load(SeqCst) != 0 && !fault("condvar.no_wake") {
            wake(self.count(), if fault("condvar.wakes_one") { 1 } else { n });
        }
    }
}
