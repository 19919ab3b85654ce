//! Why a lock was not taken, and data whose owner died.

use std::convert::Infallible;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::mutex::word::Refused;
use crate::{Error, ErrorKind};

/// Why a lock was not taken, or not cleanly.
///
/// `?` turns it into an [`Error`]. For `OwnerDied` that releases the lock without repair and makes
/// it unrecoverable: handle that case wherever a lock protects something.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::{LockError, RobustMutex};
///
/// /// Counts a message, unless another thread is counting.
/// fn count(messages: &RobustMutex<u64>) -> outlive::Result<bool> {
///     match messages.try_lock() {
///         Ok(mut count) => *count += 1,
///         Err(LockError::OwnerDied(mut left)) => {
///             *left = 1; // repair: start again
///             drop(left.mark_consistent());
///         }
///         Err(LockError::WouldBlock) => return Ok(false),
///         Err(e) => return Err(e.into()), // `Unrecoverable`, `Deadlock`, `Failed`
///     }
///     Ok(true)
/// }
///
/// let messages = node.mutex_with::<u64>("/messages", &7)?;
/// assert!(count(&messages)?);
/// assert_eq!(*messages.lock()?, 8);
/// # let owner = || { let _held = messages.lock().unwrap(); panic!("with the lock held") };
/// # std::thread::scope(|scope| scope.spawn(owner).join()).unwrap_err();
/// # assert!(count(&messages)?);
/// # assert_eq!(*messages.lock()?, 1);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LockError<G> {
    /// The lock is taken, but its owner died or panicked inside: repair the data, then call
    /// [`Inherited::mark_consistent`].
    OwnerDied(G),
    /// It was inherited from a dead owner and released without repair. Remove it with
    /// [`Node::remove_lock`](crate::Node::remove_lock) and open it again. One inside a segment goes
    /// only with its segment, which can be removed once nobody has it open.
    Unrecoverable,
    /// The calling thread holds it already, for reading or writing.
    Deadlock,
    /// The deadline passed.
    Timeout,
    /// It is held, and the call does not wait.
    WouldBlock,
    /// The caller could not take part: a forked child, too many threads, a file that cannot be
    /// read. Of kind `Unrecoverable`: the owner's thread leaked its guard and ended a second or
    /// more ago while its process lives on (before that the lock counts as held); once the process
    /// has ended, too, the next taker inherits.
    Failed(Error),
}

/// The result of taking a lock; `G` is what comes with `OwnerDied`.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::{LockResult, Permit, RobustSemaphore};
/// use std::time::Duration;
///
/// fn device(gpus: &RobustSemaphore) -> LockResult<Permit<'_>> {
///     gpus.acquire_timeout(Duration::from_secs(5))
/// }
///
/// let gpus = node.semaphore("/gpu", 2)?;
/// assert!(device(&gpus)?.index() < 2);
/// # Ok::<(), outlive::Error>(())
/// ```
pub type LockResult<T, G = Infallible> = std::result::Result<T, LockError<G>>;

impl<G> LockError<G> {
    /// The kind of the [`Error`] it turns into.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    ///
    /// let map = node.mutex::<u64>("/map")?;
    /// let held = map.lock()?;
    /// let again = map.lock().unwrap_err(); // the same thread
    /// assert_eq!(again.kind(), ErrorKind::Deadlock);
    /// assert_eq!(outlive::Error::from(again).kind(), ErrorKind::Deadlock);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OwnerDied(_) => ErrorKind::OwnerDied,
            Self::Unrecoverable => ErrorKind::Unrecoverable,
            Self::Deadlock => ErrorKind::Deadlock,
            Self::Timeout => ErrorKind::Timeout,
            Self::WouldBlock => ErrorKind::WouldBlock,
            Self::Failed(e) => e.kind(),
        }
    }

    #[cold]
    pub(super) fn refused(refused: Refused, tried: bool, failure: Option<Error>) -> Self {
        match refused {
            Refused::Deadlock => Self::Deadlock,
            Refused::Lost => Self::Unrecoverable,
            Refused::Expired if tried => Self::WouldBlock,
            Refused::Expired => Self::Timeout,
            Refused::WriterDied | Refused::Leaked | Refused::Leaving | Refused::Failed => {
                Self::Failed(failure.unwrap_or_else(|| describe(ErrorKind::OwnerDied)))
            }
        }
    }

    pub(super) fn map<H>(self, into: impl FnOnce(G) -> H) -> LockError<H> {
        match self {
            Self::OwnerDied(guard) => LockError::OwnerDied(into(guard)),
            Self::Unrecoverable => LockError::Unrecoverable,
            Self::Deadlock => LockError::Deadlock,
            Self::Timeout => LockError::Timeout,
            Self::WouldBlock => LockError::WouldBlock,
            Self::Failed(e) => LockError::Failed(e),
        }
    }
}

#[cold]
fn describe(kind: ErrorKind) -> Error {
    let remedy = match kind {
        ErrorKind::OwnerDied => "repair the data and call mark_consistent",
        ErrorKind::Unrecoverable => {
            "remove it with 'outlive lock remove' or Node::remove_lock, then open it again; one \
             inside a segment goes with the segment, once nobody has that open"
        }
        ErrorKind::Deadlock => "let go of the guard or permit that this thread holds",
        ErrorKind::Timeout => {
            "allow more time; 'outlive lock list' names the holder, 'outlive node list' its process"
        }
        _ => "",
    };
    Error::new(kind, "taking", "a lock", remedy)
}

impl<G> From<LockError<G>> for Error {
    #[cold]
    fn from(error: LockError<G>) -> Self {
        match error {
            LockError::Failed(e) => e,
            other => describe(other.kind()),
        }
    }
}

impl<G> fmt::Display for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(e) => e.fmt(f),
            other => describe(other.kind()).fmt(f),
        }
    }
}

impl<G: fmt::Debug> std::error::Error for LockError<G> {}

/// A guard over data that a dead owner may have left half written.
///
/// Dropping it without [`mark_consistent`](Self::mark_consistent) makes the lock unrecoverable:
/// every later call fails. If its taker dies too, the next one inherits again.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{ErrorKind, lock::LockError};
///
/// let map = node.mutex::<u64>("/map")?;
/// let owner = || {
///     let _held = map.lock().unwrap();
///     panic!("with the lock held"); // counts as a death
/// };
/// std::thread::scope(|scope| scope.spawn(owner).join()).unwrap_err();
/// let Err(LockError::OwnerDied(left)) = map.lock() else { panic!("its owner died") };
/// drop(left); // without repair
/// assert_eq!(map.lock().unwrap_err().kind(), ErrorKind::Unrecoverable);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it makes the lock unrecoverable"]
pub struct Inherited<G: Guard>(G);

mod sealed {
    pub trait Sealed {
        /// The data is repaired.
        fn mark(&self);
    }
}
pub(super) use sealed::Sealed;

/// Guards that give write access to what they protect.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::{Guard, Inherited, LockError};
/// use std::ops::DerefMut;
///
/// /// The same repair for mutexes and reader/writer locks.
/// fn repaired<G: Guard + DerefMut<Target = [u32; 4]>>(mut left: Inherited<G>) -> G {
///     *left = [0; 4];
///     left.mark_consistent()
/// }
///
/// let map = node.mutex_with::<[u32; 4]>("/map", &[1; 4])?;
/// let owner = || {
///     let _held = map.lock().unwrap();
///     panic!("with the lock held"); // counts as a death
/// };
/// std::thread::scope(|scope| scope.spawn(owner).join()).unwrap_err();
/// let Err(LockError::OwnerDied(left)) = map.lock() else { panic!("its owner died") };
/// assert_eq!(*repaired(left), [0; 4]);
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait Guard: Sealed {}
impl<G: Sealed> Guard for G {}

impl<G: Guard> Inherited<G> {
    pub(super) fn new(guard: G) -> Self {
        Self(guard)
    }

    /// Declares the data consistent again; from now on the lock is like any other.
    ///
    /// # Crash safety
    /// **Strict.** One store; after a death before it the next taker inherits again.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::lock::LockError;
    ///
    /// let map = node.mutex::<[u32; 4]>("/map")?;
    /// let owner = || {
    ///     map.lock().unwrap()[0] = 1;
    ///     let _held = map.lock().unwrap();
    ///     panic!("with the lock held"); // counts as a death
    /// };
    /// std::thread::scope(|scope| scope.spawn(owner).join()).unwrap_err();
    /// let Err(LockError::OwnerDied(mut left)) = map.lock() else { panic!("its owner died") };
    /// assert_eq!(left[0], 1); // as the owner left it
    /// *left = [0; 4];
    /// let guard = left.mark_consistent(); // an ordinary guard again
    /// assert_eq!(*guard, [0; 4]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn mark_consistent(self) -> G {
        self.0.mark();
        self.0
    }
}

impl<G: Guard + Deref> Deref for Inherited<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.0
    }
}

impl<G: Guard + DerefMut> DerefMut for Inherited<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.0
    }
}

/// A writer died inside a reader/writer lock: take it for writing to repair the data.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::lock::{LockError, NeedsWriter};
///
/// let map = node.rwlock::<u64>("/map")?;
/// let writer = || {
///     let _held = map.write().unwrap();
///     panic!("with the lock held"); // counts as a death
/// };
/// std::thread::scope(|scope| scope.spawn(writer).join()).unwrap_err();
/// assert!(matches!(map.read(), Err(LockError::OwnerDied(NeedsWriter))));
/// let Err(LockError::OwnerDied(mut left)) = map.write() else { panic!("a writer died") };
/// *left = 7; // repair
/// drop(left.mark_consistent());
/// assert_eq!(*map.read()?, 7);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedsWriter;
