//! A reader/writer lock without data: calls instead of guards.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::lines;
use super::readers::{Entered, LINES_MAX, Line, READING, Shared};
use crate::lock::error::{LockError, LockResult, NeedsWriter};
use crate::lock::mutex::raw_mutex::{Acquired, not_owner};
use crate::lock::mutex::wait::{Spin, Waiter, wake};
use crate::lock::mutex::word::{ABANDONED, ALL, CALLS, Gate, Got, HOLDER, Refused};
use crate::lock::object::layout;
use crate::lock::object::layout::{LockKind, head};
use crate::lock::object::{Object, ObjectType};
use crate::node::Node;
use crate::os::process::fork::fork_generation;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};
use crate::types::PayloadType;
use crate::{Error, ErrorKind, Result};

/// A robust reader/writer lock that protects whatever its users agree on.
///
/// At most 64 threads read at once; another one waits. A thread that holds the lock in any form and
/// asks for it again gets `Deadlock`. Rust programs want [`RobustRwLock`](super::RobustRwLock): its
/// guards cannot be misused.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// use outlive::lock::{Acquired, RawRwLock};
/// let node = outlive::Node::builder().root(dir.path()).name("map").open()?;
/// let lock = RawRwLock::open(&node, "/map/tiles")?;
/// lock.read()?;
/// lock.unlock_read()?;
/// assert_eq!(lock.write()?, Acquired::Clean);
/// lock.unlock_write()?;
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct RawRwLock {
    object: Object,
    head: NonNull<AtomicU64>,
    /// Where the protected data is, if there is some.
    data: NonNull<u8>,
    key: u64,
    spin: Spin,
    /// As in [`RawMutex`](crate::lock::RawMutex).
    calls: u64,
}

// SAFETY: the pointer leads into `object`, which may be sent and shared.
unsafe impl Send for RawRwLock {}
// SAFETY: as above.
unsafe impl Sync for RawRwLock {}

fn object_type() -> ObjectType {
    ObjectType::without_data(LockKind::RwLock, RawRwLock::BYTES)
}

/// Wakes the writer that sleeps on a reader's line.
#[cold]
fn wake_writer(line: &AtomicU64) {
    wake(line, ALL);
}

impl RawRwLock {
    /// Bytes it takes in memory of your own, aligned to 64.
    pub const BYTES: usize = layout::rwlock_data(1);

    /// Opens the lock `name` of the node's domain, or creates it.
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
    /// use outlive::lock::{Acquired, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// let writer = || map.write().unwrap(); // ends without `unlock_write`
    /// std::thread::scope(|scope| scope.spawn(writer).join()).unwrap();
    /// assert_eq!(map.read().unwrap_err().kind(), outlive::ErrorKind::OwnerDied);
    /// assert_eq!(map.write()?, Acquired::OwnerDied);
    /// map.mark_consistent()?;
    /// map.unlock_write()?;
    /// map.read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str) -> Result<Self> {
        Ok(Self::new(Object::named(node, name, &object_type(), None)?))
    }

    /// Places the lock in zeroed shared memory of your own, or finds it there.
    ///
    /// # Errors
    /// As [`RawMutex::place`](crate::lock::RawMutex::place).
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
    /// use outlive::lock::RawRwLock;
    ///
    /// // SAFETY: `page` is zeroed, shared, stays mapped, and nobody else writes to it.
    /// let map = unsafe { RawRwLock::place(&node, page, RawRwLock::BYTES)? };
    /// map.read()?;
    /// map.unlock_read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub unsafe fn place(node: &Node, memory: *mut u8, len: usize) -> Result<Self> {
        // SAFETY: the caller's promise.
        Ok(Self::new(unsafe { Object::placed(node, memory, len, &object_type())? }))
    }

    fn object_type_of(name: &str, of: &PayloadType, value: Option<&[u8]>) -> Result<ObjectType> {
        ObjectType::of_data(LockKind::RwLock, Self::bytes_with(of), name, of, value)
    }

    /// Bytes it takes in memory of your own together with data of type `of`.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, lock::RawRwLock};
    ///
    /// let pose = PayloadType::of::<[f64; 3]>();
    /// assert_eq!(RawRwLock::bytes_with(&pose), RawRwLock::BYTES + 24); // the data comes last
    /// ```
    pub fn bytes_with(of: &PayloadType) -> usize {
        layout::rwlock_data(of.align()).saturating_add(of.size())
    }

    /// As [`open`](Self::open), with data: as
    /// [`RawMutex::open_with`](crate::lock::RawMutex::open_with).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Crash safety
    /// **Strict.** As `open`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{PayloadType, lock::RawRwLock};
    ///
    /// let count = PayloadType::of::<u64>();
    /// let _raw = RawRwLock::open_with(&node, "/count", &count, Some(&7u64.to_ne_bytes()))?;
    /// assert_eq!(*node.rwlock::<u64>("/count")?.read()?, 7); // the same lock
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open_with(
        node: &Node,
        name: &str,
        of: &PayloadType,
        value: Option<&[u8]>,
    ) -> Result<Self> {
        let ty = Self::object_type_of(name, of, value)?;
        let value = value.map(|value| (layout::rwlock_data(of.align()), value));
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
    /// use outlive::{PayloadType, lock::RawRwLock};
    ///
    /// let count = PayloadType::of::<u64>();
    /// let len = RawRwLock::bytes_with(&count);
    /// // SAFETY: `page` is shared, stays mapped, and nobody else writes to its first `len` bytes.
    /// let lock = unsafe { RawRwLock::place_with(&node, page, len, &count)? };
    /// assert_eq!(lock.data(), page.wrapping_add(RawRwLock::BYTES));
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
        let data = object.at(layout::rwlock_data(of.align()));
        Self { data, ..Self::new(object) }
    }

    /// The protected data, for the thread that holds the lock: as many bytes as the type that it
    /// was opened with; none without a type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{PayloadType, lock::RawRwLock};
    ///
    /// let of = PayloadType::of::<u64>();
    /// let lock = RawRwLock::open_with(&node, "/count", &of, Some(&7u64.to_ne_bytes()))?;
    /// lock.read()?;
    /// // SAFETY: this thread reads under the lock, and the data is a `u64`.
    /// assert_eq!(unsafe { *lock.data().cast::<u64>() }, 7);
    /// lock.unlock_read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub(in crate::lock) fn new(object: Object) -> Self {
        let (head, data) = (object.word(0), object.at(Self::BYTES));
        let (key, spin) = (lines::next_key(), Spin::new());
        Self { object, head, data, key, spin, calls: CALLS }
    }

    /// To be used by guards only: nobody inherits from a thread that leaked one.
    pub(in crate::lock) fn for_guards(object: Object) -> Self {
        Self { calls: 0, ..Self::new(object) }
    }

    fn id(&self) -> Result<u64> {
        self.object.threads.id().map(|id| id | self.calls)
    }

    #[inline(always)]
    pub(in crate::lock) fn shared(&self) -> Shared<'_> {
        // SAFETY: `head` starts the object, whose layout has these words and lines, and which
        // keeps them mapped; all access is atomic.
        unsafe {
            let word = |offset| self.head.byte_add(offset).as_ref();
            let lines = self.head.byte_add(layout::LINES).cast::<Line>();
            Shared {
                gate: Gate {
                    word: word(head::WORD),
                    heir: word(head::HEIR),
                    refused_at: word(head::REFUSED_AT),
                },
                bitmap: word(head::BITMAP),
                drain: word(head::DRAIN),
                lines: NonNull::slice_from_raw_parts(lines, LINES_MAX).as_ref(),
            }
        }
    }

    /// Reads on the line this thread read on before, if no writer is there.
    #[inline(always)]
    pub(in crate::lock) fn enter_again(&self) -> Option<(NonNull<Line>, u64)> {
        if self.object.generation != fork_generation() {
            return None;
        }
        let (line, me) = lines::recall(self.key)?;
        // SAFETY: remembered for this handle, so it lies in its object.
        let entered = self.shared().enter(unsafe { line.as_ref() }, me, wake_writer);
        (entered == Entered::In).then_some((line, me))
    }

    #[cold]
    pub(in crate::lock) fn read_slow(
        &self,
        until: Deadline,
    ) -> LockResult<(NonNull<Line>, u64), NeedsWriter> {
        let me = self.id().map_err(LockError::Failed)?;
        let shared = self.shared();
        let mut waiter = Waiter::new(&self.object.threads, &self.spin, until);
        match shared.read(me, None, &mut waiter) {
            Ok(at) => {
                let line = NonNull::from(&shared.lines[at]);
                lines::remember(self.key, line, me);
                Ok((line, me))
            }
            Err(Refused::WriterDied) => Err(LockError::OwnerDied(NeedsWriter)),
            Err(e) => Err(LockError::refused(e, until == Deadline::AT_ONCE, waiter.failure.take())),
        }
    }

    /// Ends reading on `line`. In a forked child nothing happens: the parent reads.
    #[inline(always)]
    pub(in crate::lock) fn leave(&self, line: NonNull<Line>, me: u64) {
        if self.object.generation == fork_generation() {
            // SAFETY: the line was entered through this handle, whose object keeps it mapped.
            self.shared().leave(unsafe { line.as_ref() }, me, wake_writer);
        }
    }

    /// Takes the lock for writing if it is free and nobody reads or waits.
    #[inline(always)]
    pub(in crate::lock) fn take_free(&self) -> Option<u64> {
        let me = self.object.own_id()? | self.calls;
        let shared = self.shared();
        if !shared.gate.take_free(me) {
            return None;
        }
        if shared.is_drained() {
            return Some(me);
        }
        // The slow path takes it anew.
        if !shared.gate.release_quiet(me) {
            shared.gate.release_all(me, |n| wake(shared.gate.word, n));
        }
        None
    }

    #[cold]
    pub(in crate::lock) fn write_slow(&self, until: Deadline) -> LockResult<(u64, Got)> {
        let me = self.id().map_err(LockError::Failed)?;
        let mut waiter = Waiter::new(&self.object.threads, &self.spin, until);
        match self.shared().write(me, &mut waiter) {
            Ok(got) => Ok((me, got)),
            Err(e) => Err(LockError::refused(e, until == Deadline::AT_ONCE, waiter.failure.take())),
        }
    }

    /// Lets go what `me` holds for writing. In a forked child nothing happens.
    #[inline(always)]
    pub(in crate::lock) fn release(&self, me: u64) {
        let gate = self.shared().gate;
        if self.object.generation == fork_generation() && !gate.release_quiet(me) {
            self.release_slow(me);
        }
    }

    #[cold]
    fn release_slow(&self, me: u64) -> bool {
        let gate = self.shared().gate;
        gate.release_all(me, |n| wake(gate.word, n))
    }

    /// The data is repaired, by its holder; in a forked child nothing happens, as on `release`.
    pub(in crate::lock) fn mark(&self, me: u64) {
        if self.object.generation == fork_generation() {
            // False only where the word was overwritten by a wild write.
            let _ = self.shared().gate.mark_consistent(me);
        }
    }

    /// Lets go after a panic inside: the next writer is told that the owner died.
    #[cold]
    pub(in crate::lock) fn abandon(&self) {
        if self.object.generation == fork_generation() {
            let gate = self.shared().gate;
            gate.close(ABANDONED, |n| wake(gate.word, n));
        }
    }

    #[inline(always)]
    fn read_by(&self, until: Deadline) -> LockResult<(), NeedsWriter> {
        match self.enter_again() {
            Some(_) => Ok(()),
            None => self.read_slow(until).map(drop),
        }
    }

    /// Takes the lock for reading, waiting as long as a living writer holds it.
    ///
    /// # Errors
    /// `OwnerDied` when a writer died inside, or while it waited for readers: somebody must take it
    /// for writing and repair the data; `Unrecoverable`, `Deadlock`, `Failed`.
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
    /// use outlive::lock::{LockError, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// map.read()?;
    /// let other = || map.read().unwrap(); // both read
    /// std::thread::scope(|scope| scope.spawn(other).join()).unwrap();
    /// assert!(matches!(map.read(), Err(LockError::Deadlock))); // this thread again
    /// map.unlock_read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn read(&self) -> LockResult<(), NeedsWriter> {
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
    /// use outlive::lock::{Acquired, LockError, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// let busy = || matches!(map.try_read(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// map.unlock_write()?;
    /// map.try_read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_read(&self) -> LockResult<(), NeedsWriter> {
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
    /// use outlive::{Deadline, lock::Acquired, lock::LockError, lock::RawRwLock};
    /// use std::time::Duration;
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// let soon = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(map.read_until(soon), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn read_until(&self, deadline: Deadline) -> LockResult<(), NeedsWriter> {
        self.read_by(deadline)
    }

    /// Ends reading.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not read; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{ErrorKind, lock::RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// map.read()?;
    /// map.unlock_read()?;
    /// assert_eq!(map.unlock_read().unwrap_err().kind(), ErrorKind::NotOwned);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn unlock_read(&self) -> Result<()> {
        let own_process = self.object.generation == fork_generation();
        if let Some((at, me)) = lines::recall(self.key).filter(|_| own_process) {
            // SAFETY: remembered for this handle, so it lies in its object.
            let line = unsafe { at.as_ref() };
            if line.word.load(Relaxed) == me | READING {
                self.shared().leave(line, me, wake_writer);
                return Ok(());
            }
        }
        self.unlock_read_slow()
    }

    #[cold]
    fn unlock_read_slow(&self) -> Result<()> {
        let me = self.id()?;
        let shared = self.shared();
        let reads = |line: &&Line| line.word.load(Relaxed) == me | READING;
        match shared.lines.iter().find(reads) {
            Some(line) => {
                shared.leave(line, me, wake_writer);
                Ok(())
            }
            None => Err(not_owner("letting go of")),
        }
    }

    #[inline(always)]
    fn write_by(&self, until: Deadline) -> LockResult<Acquired> {
        match self.take_free() {
            Some(_) => Ok(Acquired::Clean),
            None => self.write_slow(until).map(|(_, got)| got.into()),
        }
    }

    /// Takes the lock for writing, waiting for living readers and writers.
    ///
    /// # Errors
    /// `Unrecoverable`, `Deadlock`, `Failed`.
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
    /// use outlive::lock::{Acquired, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// // The reader's thread ends without `unlock_read`: a dead reader keeps nobody out.
    /// std::thread::scope(|scope| scope.spawn(|| map.read().unwrap()).join()).unwrap();
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// map.unlock_write()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn write(&self) -> LockResult<Acquired> {
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
    /// use outlive::lock::{Acquired, LockError, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.try_write()?, Acquired::Clean);
    /// let busy = || matches!(map.try_write(), Err(LockError::WouldBlock));
    /// assert!(std::thread::scope(|scope| scope.spawn(busy).join()).unwrap());
    /// map.unlock_write()?;
    ///
    /// let reader = || map.read().unwrap(); // ends without `unlock_read`
    /// std::thread::scope(|scope| scope.spawn(reader).join()).unwrap();
    /// assert_eq!(map.try_write()?, Acquired::Clean); // a dead reader keeps nobody out
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn try_write(&self) -> LockResult<Acquired> {
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
    /// use outlive::{Deadline, lock::LockError, lock::RawRwLock};
    /// use std::time::Duration;
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// map.read()?;
    /// let soon = Deadline::after(Duration::from_millis(5));
    /// let late = || matches!(map.write_until(soon), Err(LockError::Timeout));
    /// assert!(std::thread::scope(|scope| scope.spawn(late).join()).unwrap());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn write_until(&self, deadline: Deadline) -> LockResult<Acquired> {
        self.write_by(deadline)
    }

    /// Ends writing.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not hold it for writing; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one CAS. A death before its wake-up call wakes the waiters, too.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// assert!(map.unlock_read().is_err()); // it writes
    /// map.unlock_write()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn unlock_write(&self) -> Result<()> {
        let me = self.object.own_id().map(|id| id | self.calls);
        let quiet = me.is_some_and(|me| self.shared().gate.release_quiet(me));
        if quiet { Ok(()) } else { self.unlock_write_slow() }
    }

    #[cold]
    fn unlock_write_slow(&self) -> Result<()> {
        let me = self.id()?;
        if self.shared().gate.release_quiet(me) || self.release_slow(me) {
            return Ok(());
        }
        Err(not_owner("letting go of"))
    }

    /// Releases the lock with its data inconsistent, as a panic inside does: the next writer gets
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
    /// use outlive::lock::{Acquired, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// map.unlock_in_disorder()?; // an exception went through
    /// assert_eq!(map.read().unwrap_err().kind(), outlive::ErrorKind::OwnerDied);
    /// assert_eq!(map.write()?, Acquired::OwnerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[cold]
    pub fn unlock_in_disorder(&self) -> Result<()> {
        let me = self.id()?;
        if self.shared().gate.word.load(Relaxed) & HOLDER != me {
            return Err(not_owner("letting go of"));
        }
        match fault("lock.disorder_as_good") {
            true => self.release(me),
            false => self.abandon(),
        }
        Ok(())
    }

    /// Declares the data inherited from a dead writer consistent again. Data that is consistent
    /// already stays so.
    ///
    /// # Errors
    /// `NotOwned` when the calling thread does not hold it for writing; `ForkedChild`.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::{Acquired, RawRwLock};
    ///
    /// let map = RawRwLock::open(&node, "/map")?;
    /// assert_eq!(map.write()?, Acquired::Clean);
    /// map.unlock_in_disorder()?;
    /// assert_eq!(map.write()?, Acquired::OwnerDied);
    /// map.mark_consistent()?; // after the repair; else the lock becomes unrecoverable
    /// map.unlock_write()?;
    /// map.read()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mark_consistent(&self) -> Result<()> {
        let me = self.id()?;
        let marked = self.shared().gate.mark_consistent(me);
        if marked {
            return Ok(());
        }
        let remedy = "only the thread that holds it for writing may";
        Err(Error::new(ErrorKind::NotOwned, "marking consistent", "a lock", remedy))
    }
}
