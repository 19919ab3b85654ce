//! Every value in order, on the heap or between processes.
#![deny(unsafe_code)]

use std::marker::PhantomData;
use std::sync::Arc;

use super::file::{self, Role, Shape};
use super::latest::{Opening, Stamped, Value, body_words, check_size, load, store, tag};
use super::memory::Words;
use super::ring;
use crate::node::Node;
use crate::os::clock;
use crate::sync::AtomicU64;
use crate::{Error, ErrorKind, Result};

/// Most entries of a ring.
pub const DEPTH_MAX: usize = 65536;

/// The ring is full: the reader is slow, stopped or dead. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Writing end of a bounded ring.
///
/// # Real-time
/// A push is wait-free: no loop, no system call, no allocation.
#[derive(Debug)]
pub struct SpscWriter<T> {
    own: Arc<Words>,
    peer: Arc<Words>,
    depth: usize,
    ring: ring::Writer,
    seq: u64,
    _type: PhantomData<fn(T)>,
}

/// Reading end of a bounded ring.
///
/// # Real-time
/// A pop is wait-free: no loop, no system call, no allocation.
#[derive(Debug)]
pub struct SpscReader<T> {
    own: Arc<Words>,
    peer: Arc<Words>,
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
/// assert_eq!(reader.pop().map(|sent| sent.value), Some(7));
/// ```
///
/// # Panics
/// When `depth` is 0 or above [`DEPTH_MAX`], or `T` too large.
pub fn spsc<T: Value>(depth: usize) -> (SpscWriter<T>, SpscReader<T>) {
    check::<T>("ring", depth).expect("depth and size in range");
    let writers = Words::heap(ring::words(depth, body_words::<T>()));
    let readers = Words::heap(8);
    let writer = writer_end(Arc::clone(&writers), Arc::clone(&readers), depth);
    (writer, reader_end(readers, writers, depth))
}

fn writer_end<T>(own: Arc<Words>, peer: Arc<Words>, depth: usize) -> SpscWriter<T> {
    SpscWriter { own, peer, depth, ring: ring::Writer::default(), seq: 0, _type: PhantomData }
}

fn reader_end<T>(own: Arc<Words>, peer: Arc<Words>, depth: usize) -> SpscReader<T> {
    SpscReader { own, peer, depth, next: 0, _type: PhantomData }
}

fn check<T>(name: &str, depth: usize) -> Result<()> {
    if !(1..=DEPTH_MAX).contains(&depth) {
        let why = format!("depth {depth}: use 1 to {DEPTH_MAX}");
        return Err(Error::new(ErrorKind::InvalidArgument, "opening ring", name, why));
    }
    check_size::<T>(name)
}

fn shapes<T>(depth: usize) -> (Shape, Shape) {
    let tag = tag::<T>("spsc", depth);
    let words = ring::words(depth, body_words::<T>());
    (Shape { role: Role::Writer, tag, words }, Shape { role: Role::Reader, tag, words: 8 })
}

impl<T: Value> SpscWriter<T> {
    /// Makes the writing end of ring `name` between processes; both ends give the same `depth`.
    ///
    /// # Errors
    /// `InvalidName`; `InvalidArgument` for depth or size out of range; `NoSpace`; `AlreadyExists`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of this end's file.
    pub fn open(node: &Node, name: &str, depth: usize) -> Result<Opening<Self>> {
        check::<T>(name, depth)?;
        let (own, peer) = shapes::<T>(depth);
        let own = file::create(node, name, own)?;
        let (node, name) = (node.clone(), name.into());
        Ok(Opening { node, name, own, peer, end: writer_end, depth })
    }

    /// Appends a value.
    ///
    /// # Errors
    /// [`Full`]; nothing is overwritten.
    ///
    /// # Crash safety
    /// **Strict.** Killed in the middle, nothing was sent.
    #[inline]
    pub fn push(&mut self, value: &T) -> std::result::Result<(), Full> {
        let (seq, sent_ns) = (self.seq + 1, clock::now_ns());
        let fill = |slot: &[AtomicU64]| store(slot, seq, sent_ns, value);
        let body = body_words::<T>();
        if !self.ring.push(&self.own, &self.peer[0], self.depth, body, fill) {
            return Err(Full);
        }
        self.seq = seq;
        Ok(())
    }

    /// Whether the reader's process looks alive: one load.
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.seems_alive()
    }
}

impl<T: Value> SpscReader<T> {
    /// Makes the reading end of ring `name` between processes. Errors and crash safety: as
    /// [`SpscWriter::open`].
    pub fn open(node: &Node, name: &str, depth: usize) -> Result<Opening<Self>> {
        check::<T>(name, depth)?;
        let (peer, own) = shapes::<T>(depth);
        let own = file::create(node, name, own)?;
        let (node, name) = (node.clone(), name.into());
        Ok(Opening { node, name, own, peer, end: reader_end, depth })
    }

    /// The oldest value that was not read; `None` when there is none.
    ///
    /// # Crash safety
    /// **Strict.** Killed in the middle, it is as if not read.
    #[inline]
    pub fn pop(&mut self) -> Option<Stamped<T>> {
        let (depth, body) = (self.depth, body_words::<T>());
        ring::pop(&mut self.next, &self.own[0], &self.peer, depth, body, load)?
    }

    /// Whether the writer's process looks alive: one load.
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.peer.seems_alive()
    }
}
