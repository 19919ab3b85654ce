//! Every value in order, on the heap or between processes.
//!
//! As with `latest` either end may be replaced. A new reader goes on where the old one ended, and
//! what a dead writer left is read before its successor's: nothing that was accepted is lost while
//! one end stays. What lies between two ends that are both replaced goes with them.
#![deny(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::file::{self, Role, Shape};
use super::latest::{Opening, Stamped, Value, body_words, check_size, load, store, tag};
use super::pair::{Lost, Pair, Reading, Seeker, Waiting, rest_first};
use super::ring::{self, NEXT};
use crate::node::Node;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::rt::thread::memory::{LEFT, Words};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// Most entries of a ring.
pub const DEPTH_MAX: usize = 65536;

/// Why a value was not pushed. Nothing was written.
///
/// # Examples
/// ```
/// use outlive::rt::{Lost, NotPushed, SpscWriter, spsc};
///
/// /// Whether a step was logged. A full ring costs the entry, not the cycle.
/// fn log(ring: &mut SpscWriter<u64>, step: u64) -> Result<bool, Lost> {
///     match ring.push(&step) {
///         Ok(()) => Ok(true),
///         Err(NotPushed::Full) => Ok(false),
///         Err(NotPushed::Lost(lost)) => Err(lost),
///     }
/// }
///
/// let (mut ring, reader) = spsc(1);
/// assert_eq!((log(&mut ring, 1)?, log(&mut ring, 2)?), (true, false));
/// drop(reader);
/// assert_eq!(log(&mut ring, 3), Err(Lost::Left));
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotPushed {
    /// The ring is full: the reader is slow, stopped or dead.
    Full,
    /// The reader left, or is connected to another writer.
    Lost(Lost),
}

impl std::fmt::Display for NotPushed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full => f.write_str("the ring is full"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for NotPushed {}

/// Writing end of a bounded ring.
///
/// # Real-time
/// A push is wait-free: no loop, no system call, no allocation.
///
/// # Examples
/// ```
/// use outlive::rt::{NotPushed, SpscWriter, spsc};
///
/// fn send_all(mut ring: SpscWriter<u64>) {
///     for n in 1..=100 {
///         while ring.push(&n) == Err(NotPushed::Full) {
///             std::thread::yield_now(); // this thread may wait for the reader
///         }
///     }
/// }
///
/// let (writer, mut reader) = spsc(16);
/// let sender = std::thread::spawn(move || send_all(writer));
/// let mut received = Vec::new();
/// while let Ok(sent) = reader.pop() { // until the writer has left and all is read
///     received.extend(sent.map(|sent| sent.value));
/// }
/// assert_eq!(received, (1..=100).collect::<Vec<_>>());
/// # sender.join().expect("does not panic");
/// ```
#[derive(Debug)]
pub struct SpscWriter<T> {
    pair: Pair,
    depth: usize,
    ring: ring::Writer,
    seq: u64,
    _type: PhantomData<fn(T)>,
}

/// Reading end of a bounded ring.
///
/// # Real-time
/// A pop is wait-free: no loop, no system call, no allocation.
///
/// # Examples
/// ```
/// use outlive::rt::{Lost, SpscReader, spsc};
///
/// /// What has come since the last cycle, oldest first.
/// fn drain(ring: &mut SpscReader<u64>) -> Result<Vec<u64>, Lost> {
///     std::iter::from_fn(|| ring.pop().transpose()).map(|sent| Ok(sent?.value)).collect()
/// }
///
/// let (mut writer, mut ring) = spsc(16);
/// for n in [7, 8, 9] {
///     writer.push(&n).expect("there is room");
/// }
/// assert_eq!(drain(&mut ring)?, [7, 8, 9]);
/// assert!(drain(&mut ring)?.is_empty());
/// drop(writer);
/// assert_eq!(drain(&mut ring), Err(Lost::Left));
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
#[derive(Debug)]
pub struct SpscReader<T> {
    pair: Pair,
    depth: usize,
    next: u64,
    _type: PhantomData<fn() -> T>,
}

/// A ring within one process; the ends may go to other threads.
///
/// # Examples
/// ```
/// let (mut writer, mut reader) = outlive::rt::spsc::<u64>(2);
/// assert_eq!([7, 8, 9].map(|n| writer.push(&n).is_ok()), [true, true, false]);
/// assert_eq!(reader.pop()?.map(|sent| sent.value), Some(7));
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
///
/// # Panics
/// When `depth` is 0 or above [`DEPTH_MAX`], or `T` too large.
pub fn spsc<T: Value>(depth: usize) -> (SpscWriter<T>, SpscReader<T>) {
    check::<T>("ring", depth).expect("depth and size in range");
    let (writers, readers) = Words::heap_pair(ring::words(depth, body_words::<T>()), 8);
    let writer = writer_end(Pair::heap(Arc::clone(&writers), Arc::clone(&readers)), depth);
    (writer, reader_end(Pair::heap(readers, writers), depth))
}

fn writer_end<T>(pair: Pair, depth: usize) -> SpscWriter<T> {
    SpscWriter { pair, depth, ring: ring::Writer::default(), seq: 0, _type: PhantomData }
}

fn reader_end<T>(pair: Pair, depth: usize) -> SpscReader<T> {
    let next = pair.own[NEXT].load(Relaxed); // as `start` left it
    SpscReader { pair, depth, next, _type: PhantomData }
}

/// Puts a reader to where it is to read what `writer` wrote.
fn start(own: &Words, writer: &Words, depth: usize) -> Result<()> {
    // Loaded after *paired*, which carries it.
    let start = writer.start().load(Relaxed);
    if !ring::is_possible(start, writer, depth) {
        let what = "connecting to the writing end of a ring";
        let why =
            "it names a place that its ring does not have: end its process and start it again";
        let object = format!("of {}", writer.serial());
        return Err(Error::new(ErrorKind::Corrupt, what, object, why));
    }
    own[NEXT].store(start, Relaxed);
    Ok(())
}

const EACH: Reading = Reading { take: start, unread };

/// Nothing is popped before `connect` returns.
fn unread(own: &Words, writer: &Words, depth: usize) -> u64 {
    ring::waiting(own[NEXT].load(Relaxed), writer, depth)
}

fn check<T>(name: &str, depth: usize) -> Result<()> {
    if !(1..=DEPTH_MAX).contains(&depth) {
        let why = format!("depth {depth}: use 1 to {DEPTH_MAX}");
        return Err(Error::new(ErrorKind::InvalidArgument, "opening ring", name, why));
    }
    check_size::<T>(name)
}

fn shapes<T: Value>(depth: usize) -> (Shape, Shape) {
    let tag = tag::<T>("spsc", depth);
    let words = ring::words(depth, body_words::<T>());
    (Shape { role: Role::Writer, tag, words }, Shape { role: Role::Reader, tag, words: 8 })
}

impl<T: Value> SpscWriter<T> {
    /// Creates the writing end of ring `name` between processes; both ends give the same `depth`.
    ///
    /// # Errors
    /// `InvalidName`; `InvalidArgument` for depth or size out of range; `NoSpace`; `AlreadyExists`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of this end's file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{SpscReader, SpscWriter};
    /// use std::time::Duration;
    ///
    /// let writer = SpscWriter::<u64>::open(&node, "steps", 16)?;
    /// let reader = SpscReader::<u64>::open(&node, "steps", 16)?; // in the other process
    /// let mut writer = writer.connect(Duration::from_secs(5))?;
    /// let mut reader = reader.connect(Duration::from_secs(5))?;
    /// writer.push(&7).expect("there is room");
    /// assert_eq!(reader.pop().expect("the writer lives").map(|s| s.value), Some(7));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str, depth: usize) -> Result<Opening<Self>> {
        check::<T>(name, depth)?;
        let (own, peer) = shapes::<T>(depth);
        let own = file::create(node, name, own)?;
        let seeker = Seeker { node: node.clone(), name: name.into(), peer };
        let waiting = Waiting::new(own, seeker, depth, EACH);
        Ok(Opening { waiting, end: writer_end, depth })
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`NotPushed::Full`]: nothing is overwritten. [`NotPushed::Lost`] when the reader left or is
    /// connected to another writer. A killed reader is not reported here: ask
    /// [`seems_alive`](Self::seems_alive); its successor gets what is pushed meanwhile.
    ///
    /// # Crash safety
    /// **Strict.** A death in the middle sends nothing.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Lost, NotPushed, spsc};
    ///
    /// let (mut writer, mut reader) = spsc::<u64>(2);
    /// writer.push(&1)?;
    /// writer.push(&2)?;
    /// assert_eq!(writer.push(&3), Err(NotPushed::Full)); // nothing is overwritten
    /// reader.pop().expect("the writer lives");
    /// writer.push(&3)?;
    /// drop(reader);
    /// assert_eq!(writer.push(&4), Err(NotPushed::Lost(Lost::Left)));
    /// # Ok::<(), outlive::rt::NotPushed>(())
    /// ```
    #[inline]
    pub fn push(&mut self, value: &T) -> std::result::Result<(), NotPushed> {
        self.pair.check().map_err(NotPushed::Lost)?;
        let (seq, sent_ns) = (self.seq + 1, clock::now_ns());
        let fill = |slot: &[AtomicU64]| store(slot, seq, sent_ns, value);
        let body = body_words::<T>();
        if !self.ring.push(&self.pair.own, &self.pair.peer[NEXT], self.depth, body, fill) {
            return Err(NotPushed::Full);
        }
        self.seq = seq;
        Ok(())
    }

    /// Finds the reader or its successor, waiting at most `timeout`; returns at once while the
    /// reader is there. A new reader continues where the old one ended: it gets every accepted
    /// value that the old one had not popped.
    ///
    /// # Errors
    /// As [`LatestWriter::reconnect`](crate::rt::LatestWriter::reconnect).
    ///
    /// # Real-time
    /// A slow path, as there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{NotPushed, SpscReader, SpscWriter};
    /// use std::time::Duration;
    ///
    /// let soon = Duration::from_secs(5);
    /// let writer = SpscWriter::<u64>::open(&node, "steps", 16)?;
    /// let reader = SpscReader::<u64>::open(&node, "steps", 16)?;
    /// let (mut writer, reader) = (writer.connect(soon)?, reader.connect(soon)?);
    /// writer.push(&1).expect("there is room");
    /// drop(reader); // its process has ended, with 1 unread
    /// assert!(matches!(writer.push(&2), Err(NotPushed::Lost(_))));
    ///
    /// let successor = SpscReader::<u64>::open(&node, "steps", 16)?;
    /// let mut reader = std::thread::scope(|scope| {
    ///     let connecting = scope.spawn(move || successor.connect(soon));
    ///     writer.reconnect(soon)?;
    ///     connecting.join().expect("does not panic")
    /// })?;
    /// assert_eq!(reader.pop().expect("the writer lives").map(|s| s.value), Some(1));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reconnect(&mut self, timeout: Duration) -> Result<()> {
        let (ring, depth) = (&mut self.ring, self.depth);
        let start = |had: Option<&Words>| {
            if let Some(reader) = had {
                // Loaded after its *paired*: if it left, this was its last position.
                ring.took(reader[NEXT].load(Relaxed), depth);
            }
            if fault("rt_pair.starts_anew") { ring.head() } else { ring.untaken() }
        };
        self.pair.offer(Deadline::after(timeout), start)
    }

    /// Whether the reader's process looks alive and the reader has not left: three loads.
    ///
    /// # Examples
    /// ```
    /// let (writer, reader) = outlive::rt::spsc::<u64>(16);
    /// assert!(writer.seems_alive());
    /// drop(reader);
    /// assert!(!writer.seems_alive());
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.pair.peer.seems_alive()
    }
}

impl<T: Value> SpscReader<T> {
    /// Creates the reading end of ring `name` between processes. Errors and crash safety: as
    /// [`SpscWriter::open`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{SpscReader, SpscWriter};
    /// use std::time::Duration;
    ///
    /// let writer = SpscWriter::<u64>::open(&node, "steps", 16)?;
    /// let reader = SpscReader::<u64>::open(&node, "steps", 8)?; // another depth
    /// let mismatch = reader.connect(Duration::from_secs(5)).unwrap_err();
    /// assert_eq!(mismatch.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str, depth: usize) -> Result<Opening<Self>> {
        check::<T>(name, depth)?;
        let (peer, own) = shapes::<T>(depth);
        let own = file::create(node, name, own)?;
        let seeker = Seeker { node: node.clone(), name: name.into(), peer };
        let waiting = Waiting::new(own, seeker, depth, EACH);
        Ok(Opening { waiting, end: reader_end, depth })
    }

    /// The oldest unread value; `None` when there is none.
    ///
    /// # Errors
    /// [`Lost`] when the writer left and all its values were popped, or when it is connected to
    /// another reader, which gets them.
    ///
    /// # Crash safety
    /// **Strict.** After a death in the middle the value counts as unread: the next reader gets it.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Lost, spsc};
    ///
    /// let (mut writer, mut reader) = spsc::<u64>(16);
    /// for n in [7, 8] {
    ///     writer.push(&n).expect("there is room");
    /// }
    /// drop(writer); // what it pushed stays
    /// assert_eq!(reader.pop()?.map(|s| (s.seq, s.value)), Some((1, 7)));
    /// assert_eq!(reader.pop()?.map(|s| (s.seq, s.value)), Some((2, 8)));
    /// assert_eq!(reader.pop(), Err(Lost::Left));
    /// # Ok::<(), outlive::rt::Lost>(())
    /// ```
    #[inline]
    pub fn pop(&mut self) -> std::result::Result<Option<Stamped<T>>, Lost> {
        self.pair.check_owner()?;
        let value = self.take();
        if self.pair.check_read()? && value.is_none() {
            return self.last();
        }
        Ok(value)
    }

    #[inline]
    fn take(&mut self) -> Option<Stamped<T>> {
        let (depth, body) = (self.depth, body_words::<T>());
        ring::pop(&mut self.next, &self.pair.own[NEXT], &self.pair.peer, depth, body, load)?
    }

    /// What a writer that left pushed between our look and its leaving.
    #[cold]
    fn last(&mut self) -> std::result::Result<Option<Stamped<T>>, Lost> {
        self.take().map_or(Err(Lost::Left), |value| Ok(Some(value)))
    }

    /// Finds the writer or its successor, waiting at most `timeout`; returns at once while the
    /// writer is there.
    ///
    /// # Errors
    /// `WouldBlock` while values of the old writer must be popped first; else as
    /// [`LatestWriter::reconnect`](crate::rt::LatestWriter::reconnect).
    ///
    /// # Real-time
    /// A slow path, as there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    /// use outlive::rt::{SpscReader, SpscWriter};
    /// use std::time::Duration;
    ///
    /// let soon = Duration::from_secs(5);
    /// let writer = SpscWriter::<u64>::open(&node, "steps", 16)?;
    /// let reader = SpscReader::<u64>::open(&node, "steps", 16)?;
    /// let (mut writer, mut reader) = (writer.connect(soon)?, reader.connect(soon)?);
    /// writer.push(&1).expect("there is room");
    /// drop(writer); // its process has ended, with 1 unread
    /// let successor = SpscWriter::<u64>::open(&node, "steps", 16)?;
    /// let connecting = std::thread::spawn(move || successor.connect(soon));
    /// let first_that = reader.reconnect(soon).unwrap_err();
    /// assert_eq!(first_that.kind(), ErrorKind::WouldBlock);
    /// assert_eq!(reader.pop().expect("it is there").map(|s| s.value), Some(1));
    /// reader.reconnect(soon)?;
    /// # drop(connecting.join());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reconnect(&mut self, timeout: Duration) -> Result<()> {
        let (own, old) = (Arc::clone(&self.pair.own), Arc::clone(&self.pair.peer));
        let serial = own.serial();
        let (next, depth) = (&mut self.next, self.depth);
        let take = |writer: &Words| {
            let ours = old.paired().load(Relaxed) & !LEFT == serial;
            let left = if ours { ring::waiting(*next, &old, depth) } else { 0 };
            if left > 0 && !fault("rt_pair.drops_the_rest") {
                return Err(rest_first(left));
            }
            start(&own, writer, depth)?;
            *next = own[NEXT].load(Relaxed);
            Ok(())
        };
        self.pair.accept(Deadline::after(timeout), take)
    }

    /// Whether the writer's process looks alive and the writer has not left: three loads.
    ///
    /// # Examples
    /// ```
    /// let (writer, reader) = outlive::rt::spsc::<u64>(16);
    /// assert!(reader.seems_alive());
    /// drop(writer);
    /// assert!(!reader.seems_alive());
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.pair.peer.seems_alive()
    }
}
