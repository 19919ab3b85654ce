//! The newest value, on the heap or between processes.
#![deny(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::file::{self, Role, Shape, tag_of};
use super::four_slot;
use super::memory::Words;
use crate::node::Node;
use crate::os::clock;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::{Error, ErrorKind, Result};

/// What travels through real-time channels: plain data, copied word by word.
///
/// At most [`VALUE_BYTES_MAX`] bytes; larger data belongs on a topic.
pub trait Value: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Send + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + Send + 'static> Value for T {}

/// Largest value of a real-time channel, bytes.
pub const VALUE_BYTES_MAX: usize = 4096;

/// Number and time of the value, before its own words.
const HEAD: usize = 2;

/// Words of a value and its head.
pub(super) const fn body_words<T>() -> usize {
    HEAD + size_of::<T>().div_ceil(8)
}

/// A value as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped<T> {
    /// The value.
    pub value: T,
    /// Which one: the first has 1.
    pub seq: u64,
    /// When it was sent, ns of CLOCK_MONOTONIC.
    pub sent_ns: u64,
}

/// Stores a value and its head into a slot.
#[inline]
pub(super) fn store<T: Value>(slot: &[AtomicU64], seq: u64, sent_ns: u64, value: &T) {
    slot[0].store(seq, Relaxed);
    slot[1].store(sent_ns, Relaxed);
    for (word, bytes) in slot[HEAD..].iter().zip(value.as_bytes().chunks(8)) {
        let mut full = [0; 8];
        full[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(full), Relaxed);
    }
}

/// Copies a value and its head out of a slot; `None` from a slot never written.
#[inline]
pub(super) fn load<T: Value>(slot: &[AtomicU64]) -> Option<Stamped<T>> {
    let (seq, sent_ns) = (slot[0].load(Relaxed), slot[1].load(Relaxed));
    if seq == 0 {
        return None;
    }
    let mut value = T::new_zeroed();
    for (bytes, word) in value_bytes(&mut value).chunks_mut(8).zip(&slot[HEAD..]) {
        let full = word.load(Relaxed).to_ne_bytes();
        bytes.copy_from_slice(&full[..bytes.len()]);
    }
    Some(Stamped { value, seq, sent_ns })
}

fn value_bytes<T: Value>(value: &mut T) -> &mut [u8] {
    value.as_mut_bytes()
}

pub(super) fn check_size<T>(name: &str) -> Result<()> {
    if size_of::<T>() <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let why = format!("{} bytes: at most {VALUE_BYTES_MAX}, or use a topic", size_of::<T>());
    Err(Error::new(ErrorKind::InvalidArgument, "opening real-time channel", name, why))
}

/// Tag of a channel: its kind, its type, its depth.
pub(super) fn tag<T>(kind: &str, depth: usize) -> u64 {
    let sizes = [size_of::<T>() as u64, depth as u64].map(u64::to_le_bytes);
    tag_of(&[kind.as_bytes(), std::any::type_name::<T>().as_bytes(), &sizes[0], &sizes[1]])
}

/// Writing end of a channel that holds the newest value.
///
/// # Real-time
/// A write is wait-free: no loop, no system call, no allocation.
#[derive(Debug)]
pub struct LatestWriter<T> {
    own: Arc<Words>,
    peer: Arc<Words>,
    slots: four_slot::Writer,
    seq: u64,
    _type: PhantomData<fn(T)>,
}

/// Reading end of a channel that holds the newest value.
///
/// # Real-time
/// A read is wait-free and never torn: no loop, no system call, no allocation.
#[derive(Debug)]
pub struct LatestReader<T> {
    own: Arc<Words>,
    peer: Arc<Words>,
    _type: PhantomData<fn() -> T>,
}

/// One end of a channel between processes, made, while the other end may still be missing.
///
/// Open all ends of a process first, then connect them: no order of starting can block.
#[derive(Debug)]
pub struct Opening<End> {
    pub(super) node: Node,
    pub(super) name: String,
    pub(super) own: Arc<Words>,
    pub(super) peer: Shape,
    pub(super) end: fn(Arc<Words>, Arc<Words>, usize) -> End,
    pub(super) depth: usize,
}

impl<End> Opening<End> {
    /// Waits at most `timeout` for the other end.
    ///
    /// # Errors
    /// `Timeout`; `TypeMismatch` when the other end has another type or depth.
    pub fn connect(self, timeout: Duration) -> Result<End> {
        let deadline = clock::in_future(timeout);
        let peer = file::find(&self.node, &self.name, self.peer, deadline)?;
        Ok((self.end)(self.own, peer, self.depth))
    }
}

/// A channel within one process; the ends may go to other threads.
///
/// # Examples
/// ```
/// let (mut writer, mut reader) = outlive::rt::latest::<[f64; 6]>();
/// assert!(reader.read().is_none());
/// writer.write(&[0.1; 6]);
/// writer.write(&[0.2; 6]);
/// let newest = reader.read().expect("two were written");
/// assert_eq!((newest.seq, newest.value), (2, [0.2; 6]));
/// ```
///
/// # Panics
/// When `T` is larger than [`VALUE_BYTES_MAX`].
pub fn latest<T: Value>() -> (LatestWriter<T>, LatestReader<T>) {
    assert!(size_of::<T>() <= VALUE_BYTES_MAX, "at most {VALUE_BYTES_MAX} bytes");
    let writers = Words::heap(four_slot::words(body_words::<T>()));
    let readers = Words::heap(8);
    let writer = writer_end(Arc::clone(&writers), Arc::clone(&readers), 0);
    (writer, reader_end(readers, writers, 0))
}

fn writer_end<T>(own: Arc<Words>, peer: Arc<Words>, _depth: usize) -> LatestWriter<T> {
    LatestWriter { own, peer, slots: four_slot::Writer::default(), seq: 0, _type: PhantomData }
}

fn reader_end<T>(own: Arc<Words>, peer: Arc<Words>, _depth: usize) -> LatestReader<T> {
    LatestReader { own, peer, _type: PhantomData }
}

fn shapes<T>() -> (Shape, Shape) {
    let tag = tag::<T>("latest", 0);
    let words = four_slot::words(body_words::<T>());
    (Shape { role: Role::Writer, tag, words }, Shape { role: Role::Reader, tag, words: 8 })
}

impl<T: Value> LatestWriter<T> {
    /// Makes the writing end of channel `name` between processes.
    ///
    /// # Errors
    /// `InvalidName`, `InvalidArgument` for a value too large, `NoSpace`, `AlreadyExists`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of this end's file.
    pub fn open(node: &Node, name: &str) -> Result<Opening<Self>> {
        check_size::<T>(name)?;
        let (own, peer) = shapes::<T>();
        let own = file::create(node, name, own)?;
        let (node, name) = (node.clone(), name.into());
        Ok(Opening { node, name, own, peer, end: writer_end, depth: 0 })
    }

    /// Makes `value` the newest. What the reader has not read is replaced.
    ///
    /// # Crash safety
    /// **Strict.** Killed in the middle, the value before stays the newest.
    #[inline]
    pub fn write(&mut self, value: &T) {
        self.seq += 1;
        let (seq, sent_ns) = (self.seq, clock::now_ns());
        let fill = |slot: &[AtomicU64]| store(slot, seq, sent_ns, value);
        self.slots.write(&self.own, &self.peer[0], body_words::<T>(), fill);
    }

    /// Whether the reader's process looks alive: one load.
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.seems_alive()
    }
}

impl<T: Value> LatestReader<T> {
    /// Makes the reading end of channel `name` between processes. Errors and crash safety: as
    /// [`LatestWriter::open`].
    pub fn open(node: &Node, name: &str) -> Result<Opening<Self>> {
        check_size::<T>(name)?;
        let (peer, own) = shapes::<T>();
        let own = file::create(node, name, own)?;
        let (node, name) = (node.clone(), name.into());
        Ok(Opening { node, name, own, peer, end: reader_end, depth: 0 })
    }

    /// The newest value; `None` before the first. A dead writer's last value stays readable: look
    /// at its age.
    #[inline]
    pub fn read(&mut self) -> Option<Stamped<T>> {
        load(four_slot::read(&self.own[0], &self.peer, body_words::<T>()))
    }

    /// Whether the writer's process looks alive: one load.
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.seems_alive()
    }
}
