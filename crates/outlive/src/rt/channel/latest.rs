//! The newest value, on the heap or between processes.
//!
//! A channel has one living writer and one living reader. Either may be replaced while the other
//! lives on: see `pair` for what is told to whom.
#![deny(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::file::{self, Role, Shape, tag_of};
use super::four_slot::{self, READING};
use super::pair::{Lost, Pair, Reading, Seeker, Waiting};
use crate::node::Node;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::rt::thread::memory::Words;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;
use crate::types::Message;
use crate::types::payload::bytes_mut;
use crate::{Error, ErrorKind, Result};

/// What travels through real-time channels: a [`Message`], copied word by word. Both ends must have
/// the same: name, size, alignment and every field, in order; its path in each program does not
/// matter. It may not contain a `bool`, `char` or enum, because nobody checks its bytes: use
/// [`msg::Bool`](crate::msg::Bool), or an integer.
///
/// At most [`VALUE_BYTES_MAX`] bytes; larger data belongs on a topic.
///
/// # Examples
/// ```
/// use outlive::rt::latest;
///
/// #[outlive::message("example/Goal")]
/// #[derive(Clone, Copy, Debug, PartialEq)] // `Copy` makes a message a value
/// struct Goal {
///     joints_rad: [f64; 6],
///     speed: f64,
/// }
///
/// let (mut writer, mut reader) = latest::<Goal>();
/// let goal = Goal { joints_rad: [0.1; 6], speed: 0.5 };
/// writer.write(&goal)?;
/// assert_eq!(reader.read()?.map(|newest| newest.value), Some(goal));
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
pub trait Value: Message + Copy {}

impl<T: Message + Copy> Value for T {}

/// Largest value of a real-time channel, bytes.
pub const VALUE_BYTES_MAX: usize = 4096;

/// Number and time of the value, before its own words.
const HEAD: usize = 2;
const SEQ: usize = 0;
const SENT_NS: usize = 1;

/// Words of a value and its head.
pub(in crate::rt) const fn body_words<T>() -> usize {
    HEAD + size_of::<T>().div_ceil(8)
}

/// A value as it was sent.
///
/// # Examples
/// ```
/// let (mut writer, mut reader) = outlive::rt::latest::<f64>();
/// writer.write(&0.5)?;
/// writer.write(&0.7)?;
/// let speed = reader.read()?.expect("written just now");
/// assert_eq!((speed.value, speed.seq), (0.7, 2)); // the first was replaced
/// let age_ns = outlive::now_ns() - speed.sent_ns;
/// let speed = if age_ns < 20_000_000 { speed.value } else { 0.0 }; // too old: stop
/// # let _ = speed;
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamped<T> {
    /// The value.
    pub value: T,
    /// Its number: the first has 1.
    pub seq: u64,
    /// When it was sent, ns of CLOCK_MONOTONIC.
    pub sent_ns: u64,
}

/// Stores a value and its head into a slot.
#[inline]
pub(in crate::rt) fn store<T: Value>(slot: &[AtomicU64], seq: u64, sent_ns: u64, value: &T) {
    slot[SEQ].store(seq, Relaxed);
    slot[SENT_NS].store(sent_ns, Relaxed);
    for (word, bytes) in slot[HEAD..].iter().zip(value.as_bytes().chunks(8)) {
        let mut full = [0; 8];
        full[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(full), Relaxed);
    }
}

/// Copies a value and its head out of a slot; `None` from a slot never written.
#[inline]
pub(in crate::rt) fn load<T: Value>(slot: &[AtomicU64]) -> Option<Stamped<T>> {
    let (seq, sent_ns) = (slot[SEQ].load(Relaxed), slot[SENT_NS].load(Relaxed));
    if seq == 0 {
        return None;
    }
    let mut value = T::new_zeroed();
    for (bytes, word) in bytes_mut(&mut value).chunks_mut(8).zip(&slot[HEAD..]) {
        let full = word.load(Relaxed).to_ne_bytes();
        bytes.copy_from_slice(&full[..bytes.len()]);
    }
    Some(Stamped { value, seq, sent_ns })
}

pub(in crate::rt) fn check_size<T>(name: &str) -> Result<()> {
    if size_of::<T>() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let why = format!("{} bytes: at most {VALUE_BYTES_MAX}, or use a topic", size_of::<T>());
    Err(Error::new(ErrorKind::InvalidArgument, "opening real-time channel", name, why))
}

/// Tag of a channel: its kind, its type as described, its depth.
pub(in crate::rt) fn tag<T: Value>(kind: &str, depth: usize) -> u64 {
    let [size, align, depth] = [size_of::<T>(), align_of::<T>(), depth].map(|n| n as u64);
    let numbers = [size, align, depth].map(u64::to_le_bytes).concat();
    if fault("rt_tag.name_only") {
        return tag_of(&[kind.as_bytes(), T::TYPE_NAME.as_bytes(), &numbers]);
    }
    let fields = T::describe().to_schema();
    tag_of(&[kind.as_bytes(), T::TYPE_NAME.as_bytes(), &fields, &numbers])
}

/// Writing end of a channel that holds the newest value.
///
/// # Real-time
/// A write is wait-free: no loop, no system call, no allocation.
///
/// # Examples
/// ```
/// use outlive::rt::{LatestWriter, Lost, latest};
///
/// /// Runs in the sensor's thread, which owns the writing end.
/// fn sense(mut speed: LatestWriter<f64>) -> Result<(), Lost> {
///     for n in 1..=3 {
///         speed.write(&(0.5 * f64::from(n)))?; // never waits for the reader
///     }
///     Ok(())
/// }
///
/// let (writer, mut reader) = latest();
/// std::thread::spawn(move || sense(writer)).join().expect("does not panic")?;
/// assert_eq!(reader.read()?.map(|s| (s.seq, s.value)), Some((3, 1.5))); // the newest
/// assert_eq!(reader.read(), Err(Lost::Left)); // `sense` has dropped its end
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
#[derive(Debug)]
pub struct LatestWriter<T> {
    pair: Pair,
    slots: four_slot::Writer,
    seq: u64,
    _type: PhantomData<fn(T)>,
}

/// Reading end of a channel that holds the newest value.
///
/// # Real-time
/// A read is wait-free and never torn: no loop, no system call, no allocation.
///
/// # Examples
/// ```
/// use outlive::rt::{LatestReader, latest};
///
/// /// The speed of this cycle: the newest one, or 0 without a planner.
/// fn speed(plan: &mut LatestReader<f64>) -> f64 {
///     match plan.read() {
///         Ok(Some(newest)) => newest.value,
///         Ok(None) | Err(_) => 0.0, // nothing yet, or the planner left
///     }
/// }
///
/// let (mut planner, mut plan) = latest();
/// assert_eq!(speed(&mut plan), 0.0);
/// planner.write(&1.5).expect("the reader lives");
/// assert_eq!(speed(&mut plan), 1.5);
/// drop(planner);
/// assert_eq!(speed(&mut plan), 0.0);
/// ```
#[derive(Debug)]
pub struct LatestReader<T> {
    pair: Pair,
    /// The number of the last value that was returned.
    seen: u64,
    _type: PhantomData<fn() -> T>,
}

/// One end of a channel between processes that is open while the other end may still be missing.
///
/// Open all ends of a process first, then connect them: then no start order can deadlock.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// # let _planner_goal = outlive::rt::LatestWriter::<f64>::open(&node, "goal")?;
/// # let planner_state = outlive::rt::LatestReader::<f64>::open(&node, "state")?;
/// use outlive::rt::{LatestReader, LatestWriter, Opening};
/// use std::time::Duration;
///
/// // The drive's ends; the planner, in another process, has the other two.
/// let goal: Opening<LatestReader<f64>> = LatestReader::open(&node, "goal")?;
/// let state: Opening<LatestWriter<f64>> = LatestWriter::open(&node, "state")?;
/// let mut goal = goal.connect(Duration::from_secs(5))?;
/// let mut state = state.connect(Duration::from_secs(5))?;
/// state.write(&0.5).expect("the planner lives");
/// assert_eq!(goal.read().expect("the planner lives"), None); // it has written nothing yet
/// # drop(planner_state);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "call `connect` to get the end"]
pub struct Opening<End> {
    pub(in crate::rt) waiting: Waiting,
    pub(in crate::rt) end: fn(Pair, usize) -> End,
    pub(in crate::rt) depth: usize,
}

impl<End> Opening<End> {
    /// Waits at most `timeout` for the other end to connect to this one. If the other end was
    /// connected to another end before, it must call `reconnect`.
    ///
    /// While it waits, the open ends of its process connect, too. A ring's reader then gets what
    /// its writer pushed, even if that writer has ended by the time of the reader's own `connect`.
    ///
    /// # Errors
    /// `Timeout`; `TypeMismatch` when the other end has another type or depth.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the other end's number. If one end dies in the
    /// middle, the other gets an error from its next call, and reconnects.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{LatestReader, LatestWriter};
    /// use std::time::Duration;
    ///
    /// let speed = LatestWriter::<f64>::open(&node, "speed")?;
    /// let alone = speed.connect(Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(alone.kind(), outlive::ErrorKind::Timeout);
    ///
    /// let speed = LatestWriter::<f64>::open(&node, "speed")?; // both ends first
    /// let seen = LatestReader::<f64>::open(&node, "speed")?;
    /// let _writer = speed.connect(Duration::from_secs(5))?;
    /// let _reader = seen.connect(Duration::from_secs(5))?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn connect(self, timeout: Duration) -> Result<End> {
        let pair = self.waiting.connect(Deadline::after(timeout))?;
        Ok((self.end)(pair, self.depth))
    }
}

/// A channel within one process; the ends may go to other threads.
///
/// # Examples
/// ```
/// let (mut writer, mut reader) = outlive::rt::latest::<[f64; 6]>();
/// assert!(reader.read()?.is_none());
/// writer.write(&[0.1; 6])?;
/// writer.write(&[0.2; 6])?;
/// let newest = reader.read()?.expect("two were written");
/// assert_eq!((newest.seq, newest.value), (2, [0.2; 6]));
/// drop(reader);
/// assert_eq!(writer.write(&[0.3; 6]), Err(outlive::rt::Lost::Left));
/// # Ok::<(), outlive::rt::Lost>(())
/// ```
///
/// # Panics
/// When `T` is larger than [`VALUE_BYTES_MAX`].
pub fn latest<T: Value>() -> (LatestWriter<T>, LatestReader<T>) {
    assert!(size_of::<T>() <= VALUE_BYTES_MAX, "at most {VALUE_BYTES_MAX} bytes");
    let (writers, readers) = Words::heap_pair(four_slot::words(body_words::<T>()), 8);
    let writer = writer_end(Pair::heap(Arc::clone(&writers), Arc::clone(&readers)), 0);
    (writer, reader_end(Pair::heap(readers, writers), 0))
}

fn writer_end<T>(pair: Pair, _depth: usize) -> LatestWriter<T> {
    LatestWriter { pair, slots: four_slot::Writer::default(), seq: 0, _type: PhantomData }
}

fn reader_end<T>(pair: Pair, _depth: usize) -> LatestReader<T> {
    LatestReader { pair, seen: 0, _type: PhantomData }
}

/// What has not been read may be replaced.
const NEWEST: Reading = Reading { take: |_, _, _| Ok(()), unread: |_, _, _| 0 };

fn shapes<T: Value>() -> (Shape, Shape) {
    let tag = tag::<T>("latest", 0);
    let words = four_slot::words(body_words::<T>());
    (Shape { role: Role::Writer, tag, words }, Shape { role: Role::Reader, tag, words: 8 })
}

impl<T: Value> LatestWriter<T> {
    /// Creates the writing end of channel `name` between processes.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidArgument` for a value too large, `NoSpace`; `AlreadyExists` while a
    /// living node, even a stopped one, has a writing end of that name; `Timeout` after 10 s when a
    /// stopped process is in the middle of creating an end.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of this end's file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{LatestReader, LatestWriter};
    /// use std::time::Duration;
    ///
    /// let writer = LatestWriter::<f64>::open(&node, "speed")?;
    /// let reader = LatestReader::<f64>::open(&node, "speed")?; // in the other process
    /// let mut writer = writer.connect(Duration::from_secs(5))?;
    /// let mut reader = reader.connect(Duration::from_secs(5))?;
    /// writer.write(&1.5).expect("the reader lives");
    /// assert_eq!(reader.read().expect("the writer lives").map(|s| s.value), Some(1.5));
    ///
    /// let second = LatestWriter::<f64>::open(&node, "speed").unwrap_err();
    /// assert_eq!(second.kind(), outlive::ErrorKind::AlreadyExists);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str) -> Result<Opening<Self>> {
        check_size::<T>(name)?;
        let (own, peer) = shapes::<T>();
        let own = file::create(node, name, own)?;
        let seeker = Seeker { node: node.clone(), name: name.into(), peer };
        let waiting = Waiting::new(own, seeker, 0, NEWEST);
        Ok(Opening { waiting, end: writer_end, depth: 0 })
    }

    /// Makes `value` the newest. What the reader has not read is replaced.
    ///
    /// # Errors
    /// [`Lost`] when the reader left or is connected to another writer, and in a forked child;
    /// nothing is written then. A killed reader is not reported here: ask
    /// [`seems_alive`](Self::seems_alive).
    ///
    /// # Crash safety
    /// **Strict.** After a death in the middle the previous value stays the newest.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Lost, latest};
    ///
    /// let (mut writer, mut reader) = latest::<f64>();
    /// writer.write(&1.0)?;
    /// writer.write(&2.0)?; // 1.0 was not read: it is gone
    /// assert_eq!(reader.read()?.map(|s| (s.seq, s.value)), Some((2, 2.0)));
    /// drop(reader);
    /// assert_eq!(writer.write(&3.0), Err(Lost::Left));
    /// # Ok::<(), outlive::rt::Lost>(())
    /// ```
    #[inline]
    pub fn write(&mut self, value: &T) -> std::result::Result<(), Lost> {
        self.pair.check()?;
        self.seq += 1;
        let (seq, sent_ns) = (self.seq, clock::now_ns());
        let fill = |slot: &[AtomicU64]| store(slot, seq, sent_ns, value);
        self.slots.write(&self.pair.own, &self.pair.peer[READING], body_words::<T>(), fill);
        Ok(())
    }

    /// Finds the reader or its successor, waiting at most `timeout`; returns at once while the
    /// reader is there. A new reader gets the newest value, however old.
    ///
    /// # Errors
    /// `Timeout`; until the other end has connected, calls return [`Lost`]. `TypeMismatch`;
    /// `NotFound` on the heap, where there can be no successor.
    ///
    /// # Real-time
    /// A slow path: it allocates, lists a directory and maps a file, even with a timeout of 0. Call
    /// it from a loop while there is nobody to write for.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{LatestReader, LatestWriter, Lost};
    /// use std::time::Duration;
    ///
    /// let soon = Duration::from_secs(5);
    /// let writer = LatestWriter::<f64>::open(&node, "speed")?;
    /// let reader = LatestReader::<f64>::open(&node, "speed")?;
    /// let (mut writer, reader) = (writer.connect(soon)?, reader.connect(soon)?);
    /// drop(reader); // its process has ended
    /// assert_eq!(writer.write(&1.0), Err(Lost::Left));
    ///
    /// let successor = LatestReader::<f64>::open(&node, "speed")?;
    /// let mut reader = std::thread::scope(|scope| {
    ///     let connecting = scope.spawn(move || successor.connect(soon));
    ///     writer.reconnect(soon)?;
    ///     connecting.join().expect("does not panic")
    /// })?;
    /// writer.write(&2.0).expect("the successor lives");
    /// assert_eq!(reader.read().expect("the writer lives").map(|s| s.value), Some(2.0));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reconnect(&mut self, timeout: Duration) -> Result<()> {
        self.pair.offer(Deadline::after(timeout), |_| 0)
    }

    /// Whether the reader's process looks alive and the reader has not left: three loads.
    ///
    /// # Examples
    /// ```
    /// let (writer, reader) = outlive::rt::latest::<f64>();
    /// assert!(writer.seems_alive());
    /// drop(reader);
    /// assert!(!writer.seems_alive());
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.pair.peer.seems_alive()
    }
}

impl<T: Value> LatestReader<T> {
    /// Creates the reading end of channel `name` between processes. Errors and crash safety: as
    /// [`LatestWriter::open`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{LatestReader, LatestWriter};
    /// use std::time::Duration;
    ///
    /// let writer = LatestWriter::<f32>::open(&node, "speed")?;
    /// let reader = LatestReader::<f64>::open(&node, "speed")?; // another type
    /// let mismatch = reader.connect(Duration::from_secs(5)).unwrap_err();
    /// assert_eq!(mismatch.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str) -> Result<Opening<Self>> {
        check_size::<T>(name)?;
        let (peer, own) = shapes::<T>();
        let own = file::create(node, name, own)?;
        let seeker = Seeker { node: node.clone(), name: name.into(), peer };
        let waiting = Waiting::new(own, seeker, 0, NEWEST);
        Ok(Opening { waiting, end: reader_end, depth: 0 })
    }

    /// The newest value; `None` before the first. A killed writer's last value stays readable:
    /// check its age.
    ///
    /// # Errors
    /// [`Lost`] when the writer left and its last value was read, when it is connected to another
    /// reader, and in a forked child.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Lost, latest};
    ///
    /// let (mut writer, mut reader) = latest::<f64>();
    /// assert!(reader.read()?.is_none()); // nothing was written yet
    /// writer.write(&1.5)?;
    /// let speed = reader.read()?.expect("written just now");
    /// assert_eq!(reader.read()?, Some(speed)); // the same again: check its number or its age
    /// assert!(speed.sent_ns <= outlive::now_ns());
    /// drop(writer);
    /// assert_eq!(reader.read(), Err(Lost::Left));
    /// # Ok::<(), outlive::rt::Lost>(())
    /// ```
    #[inline]
    pub fn read(&mut self) -> std::result::Result<Option<Stamped<T>>, Lost> {
        self.pair.check_owner()?;
        let newest = self.look();
        if self.pair.check_read()? {
            return self.last();
        }
        self.seen = newest.map_or(self.seen, |newest| newest.seq);
        Ok(newest)
    }

    #[inline]
    fn look(&self) -> Option<Stamped<T>> {
        load(four_slot::read(&self.pair.own[READING], &self.pair.peer, body_words::<T>()))
    }

    /// What a writer that left has left, once.
    #[cold]
    fn last(&mut self) -> std::result::Result<Option<Stamped<T>>, Lost> {
        match self.look().filter(|last| last.seq != self.seen) {
            None => Err(Lost::Left),
            last => {
                self.seen = last.map_or(self.seen, |last| last.seq);
                Ok(last)
            }
        }
    }

    /// Finds the writer or its successor, waiting at most `timeout`; returns at once while the
    /// writer is there. Errors and real-time: as [`LatestWriter::reconnect`]; until it succeeds,
    /// the old writer's last value stays readable.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{LatestReader, LatestWriter, Lost};
    /// use std::time::Duration;
    ///
    /// let soon = Duration::from_secs(5);
    /// let writer = LatestWriter::<f64>::open(&node, "speed")?;
    /// let reader = LatestReader::<f64>::open(&node, "speed")?;
    /// let (writer, mut reader) = (writer.connect(soon)?, reader.connect(soon)?);
    /// drop(writer); // its process has ended
    /// assert_eq!(reader.read(), Err(Lost::Left));
    ///
    /// let successor = LatestWriter::<f64>::open(&node, "speed")?;
    /// let mut writer = std::thread::scope(|scope| {
    ///     let connecting = scope.spawn(move || successor.connect(soon));
    ///     reader.reconnect(soon)?;
    ///     connecting.join().expect("does not panic")
    /// })?;
    /// writer.write(&2.0).expect("the reader lives");
    /// assert_eq!(reader.read().expect("the successor lives").map(|s| s.value), Some(2.0));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reconnect(&mut self, timeout: Duration) -> Result<()> {
        let seen = &mut self.seen;
        let take = |_: &Words| {
            *seen = 0;
            Ok(())
        };
        self.pair.accept(Deadline::after(timeout), take)
    }

    /// Whether the writer's process looks alive and the writer has not left: three loads.
    ///
    /// # Examples
    /// ```
    /// let (writer, reader) = outlive::rt::latest::<f64>();
    /// assert!(reader.seems_alive());
    /// drop(writer);
    /// assert!(!reader.seems_alive());
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.pair.peer.seems_alive()
    }
}
