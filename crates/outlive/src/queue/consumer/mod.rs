//! The receiving end of a queue. What has types is here and in `received`; below it `reader` and
//! the rest know bytes only: begin there.
//!
//! | file | what |
//! |---|---|
//! | `take_over` | becoming the consumer |
//! | `lanes`, `later` | its producers' lanes, and those that cannot be read now |
//! | `turn`, `order` | which lane is next: in turn, or by time stamp |
//! | `hand` | the row of messages that it took up, which most calls alone look at |
#![allow(unsafe_code)]

mod hand;
mod lanes;
mod later;
mod order;
pub(crate) mod reader;
pub(crate) mod received;
mod take_over;
mod turn;

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::event::Event;
use super::lane::ProducerId;
use super::producer::ShapeOf;
use crate::node::NodeId;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;
use crate::types::payload::fault_of;
use crate::types::{Encoding, Message, Payload};
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use crate::{Error, ErrorKind, Result};
use hand::InHand;
use reader::Reader;
use received::Received;

/// The one consumer of a queue: receives the messages of all producers, in order per producer.
///
/// Producers take turns. A dead producer's messages are received first, then
/// [`Event::ProducerDied`] is reported and its lane removed. If the consumer dies, the next one
/// resumes where it stopped; at most the message in hand comes again. The same goes for a panic
/// with a message in hand: see [`Received`].
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let mut consumer = node.queue::<[u8]>("/log")?.consumer()?;
/// let second = node.queue::<[u8]>("/log")?.consumer().unwrap_err();
/// assert_eq!(second.kind(), outlive::ErrorKind::ConsumerExists);
///
/// let mut producer = node.queue::<[u8]>("/log")?.producer()?;
/// producer.send(b"hello")?;
/// let line = consumer.receive_timeout(Duration::from_secs(1))?.expect("sent just now");
/// assert_eq!(&*line, b"hello");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Consumer<T: Payload + ?Sized> {
    pub(super) reader: Reader,
    _type: PhantomData<fn() -> Box<T>>,
}

/// A held message: see [`Consumer::hold`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Held<'a, T: Payload + ?Sized> {
    /// The message, in its lane.
    pub message: &'a T,
    /// Who sent it.
    pub producer: ProducerId,
    /// When it was sent, ns of CLOCK_MONOTONIC, in a queue with stamps.
    pub timestamp_ns: Option<u64>,
}

impl<T: Payload + ?Sized> Consumer<T> {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, _type: PhantomData }
    }

    /// The queue's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let consumer = node.queue::<u64>("jobs")?.consumer()?;
    /// assert_eq!(consumer.queue(), "/jobs"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn queue(&self) -> &str {
        self.reader.queue().name.as_str()
    }

    /// Looks for a message; what it found is in the reader's hand.
    #[inline(always)]
    fn next(&mut self) -> Result<Option<InHand>> {
        if let Some(hand) = self.reader.next_at_once(ShapeOf::<T>::ITEM) {
            // The lane's end has checked the length of a fixed-size message.
            let checked = T::ENCODING == Encoding::Fixed || self.reader.shape().item != 0;
            if checked || self.fits(hand.bytes) {
                return self.valid(hand).map(Some);
            }
        }
        self.next_slow()
    }

    /// `hand`, unless its first message has a value that `T` does not have: that one is received
    /// then, so that it is in nobody's way.
    #[inline(always)]
    fn valid(&mut self, hand: InHand) -> Result<InHand> {
        match T::CHECKED && Self::count_valid(&hand, 1) == 0 {
            false => Ok(hand),
            true => Err(self.wrong_value(&hand)),
        }
    }

    /// How many of the first `most` messages of `hand` are valid, up to the first that is not.
    #[inline(always)]
    fn count_valid(hand: &InHand, most: u32) -> u32 {
        if !T::CHECKED || fault("receive.value_unchecked") {
            return most;
        }
        let is_valid = |i: &u32| {
            // SAFETY: `hand` holds `count >= most` messages of `bytes` bytes, one behind the other;
            // nobody writes there before they are taken.
            T::is_valid(unsafe {
                std::slice::from_raw_parts(hand.ptr.add(*i as usize * hand.bytes), hand.bytes)
            })
        };
        (0..most).take_while(is_valid).count() as u32
    }

    #[cold]
    fn wrong_value(&mut self, hand: &InHand) -> Error {
        // SAFETY: as in `count_valid`.
        let bytes = unsafe { std::slice::from_raw_parts(hand.ptr, hand.bytes) };
        let what = fault_of::<T>(bytes);
        self.reader.take(1);
        let e = Error::new(ErrorKind::Corrupt, "receiving from queue", self.queue(), what);
        self.reader.failed(&e);
        e
    }

    #[cold]
    fn no_memory(&mut self, messages: usize) -> Error {
        let remedy = format!("{messages} messages more do not fit: free memory, or ask for fewer");
        let e = Error::new(ErrorKind::OutOfMemory, "receiving from queue", self.queue(), remedy);
        self.reader.failed(&e);
        e
    }

    #[cold]
    #[inline(never)]
    fn next_slow(&mut self) -> Result<Option<InHand>> {
        loop {
            while self.reader.next()? {
                match self.reader.in_hand() {
                    Some(hand) if T::ENCODING != Encoding::Fixed && !self.fits(hand.bytes) => {
                        self.reader.refuse_in_hand("a message's length");
                    }
                    Some(hand) => return self.valid(hand).map(Some),
                    None => return Ok(None),
                }
            }
            if let Some(e) = self.reader.trouble() {
                return Err(e);
            }
            if !self.reader.rest() {
                return Ok(None);
            }
        }
    }

    #[inline(always)]
    fn fits(&self, bytes: usize) -> bool {
        T::fits(bytes) && (T::ENCODING != Encoding::Bytes || self.reader.queue().meta.fits(bytes))
    }

    /// The next message, or `None` when there is none now. Never sleeps.
    ///
    /// # Errors
    /// `ForkedChild`. `Corrupt` for a message with a value that `T` does not have, such as a `bool`
    /// of 2: it counts as received. `OutOfMemory`, `Io`, `Permission` or the like when a producer's
    /// file cannot be opened: only while there is nothing from the others; it is tried again after
    /// 2 to 250 ms. A producer whose bytes are corrupt is reported as [`Event::ProducerCorrupt`]
    /// and no longer read.
    ///
    /// # Crash safety
    /// **Strict.** The message counts as received when it is dropped, by one store. After a death
    /// before that, or if a panic drops it, it is received again: see [`Received`].
    ///
    /// # Real-time
    /// No lock. No system call while there is a message, except where a producer joined, a lane
    /// continues in a larger segment or ends, or its producer waits for room. Where a stream was
    /// received up to its end, it looks twice, and in between leaves its producers alone for at
    /// most 64 pauses of the processor (1 to 3 us).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/jobs")?.producer()?;
    /// assert!(consumer.receive()?.is_none()); // at once
    /// producer.send(&7)?;
    /// let job = consumer.receive()?.expect("sent just now");
    /// assert_eq!(*job, 7);
    /// drop(job); // from here on it is received
    /// assert!(consumer.receive()?.is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn receive(&mut self) -> Result<Option<Received<'_, T>>> {
        match self.next()? {
            Some(hand) => Ok(Some(Received::new(&mut self.reader, hand, 1))),
            None => Ok(None),
        }
    }

    /// Waits up to `timeout` for the next message. Returns `None` on timeout, or earlier for a new
    /// event ([`Consumer::next_event`]), or for a producer's end that an earlier call noticed and
    /// nobody has fetched; that ends only one wait.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let jobs = node.queue::<u64>("/jobs")?;
    /// let sending = std::thread::spawn(move || jobs.producer()?.send(&7));
    /// let job = loop {
    ///     // `None` may also be the news that a producer has joined.
    ///     if let Some(job) = consumer.receive_timeout(Duration::from_secs(5))? {
    ///         break *job;
    ///     }
    /// };
    /// assert_eq!(job, 7);
    /// # sending.join().unwrap()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<Received<'_, T>>> {
        self.receive_until(Deadline::after(timeout))
    }

    /// As [`Consumer::receive_timeout`], until `deadline`.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/jobs")?.producer()?;
    /// producer.send_batch(&[1, 2, 3])?;
    /// let cycle = Deadline::after(Duration::from_millis(5));
    /// let mut jobs = Vec::new();
    /// loop {
    ///     match consumer.receive_until(cycle)? {
    ///         Some(job) => jobs.push(*job), // also past the deadline, if it is there
    ///         None if cycle.has_passed() => break,
    ///         None => {} // an event
    ///     }
    /// }
    /// assert_eq!(jobs, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_until(&mut self, deadline: Deadline) -> Result<Option<Received<'_, T>>> {
        match self.wait(deadline)? {
            Some(hand) => Ok(Some(Received::new(&mut self.reader, hand, 1))),
            None => Ok(None),
        }
    }

    /// Waits as [`Consumer::receive_until`], without taking the message: `true` when there is one.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    ///
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/jobs")?.producer()?;
    /// assert!(!consumer.wait_for_message(Deadline::AT_ONCE)?);
    /// producer.send(&7)?;
    /// assert!(consumer.wait_for_message(Deadline::NEVER)?);
    /// assert_eq!(*consumer.receive()?.expect("still there"), 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_for_message(&mut self, deadline: Deadline) -> Result<bool> {
        Ok(self.wait(deadline)?.is_some())
    }

    fn wait(&mut self, deadline: Deadline) -> Result<Option<InHand>> {
        let events = self.reader.events_seen();
        loop {
            if let Some(hand) = self.next()? {
                return Ok(Some(hand));
            }
            if deadline.has_passed() || self.reader.tells_news(events) {
                return Ok(None);
            }
            self.reader.sleep(deadline)?;
        }
    }

    /// For other languages' interfaces, which keep the message in structs of their own: the next
    /// message, without borrowing the consumer. It stays in its lane and remains the next one until
    /// [`let_go`](Self::let_go) acknowledges it; not calling that is [`Received::nack`].
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    ///
    /// # Crash safety
    /// **Strict.** As `receive`; it counts as received once it is let go.
    #[doc(hidden)]
    #[inline(always)]
    pub fn hold(&mut self) -> Result<Option<Held<'_, T>>> {
        let Some(hand) = self.next()? else { return Ok(None) };
        // SAFETY: as in `Received::deref`; the borrow of `self` keeps it in its lane.
        let message = unsafe { T::cast(hand.ptr, hand.bytes) };
        let reader = &self.reader;
        let producer = reader.sender().unwrap_or(ProducerId { node: NodeId::from_raw(0), port: 0 });
        Ok(Some(Held { message, producer, timestamp_ns: reader.stamp() }))
    }

    /// Acknowledges the message that [`hold`](Self::hold) showed last. Once for each, with no other
    /// call in between.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    #[doc(hidden)]
    #[inline(always)]
    pub fn let_go(&mut self) {
        if self.reader.in_hand().is_some() {
            self.reader.take(1);
        }
    }

    /// A file descriptor for epoll, asyncio and other event loops: readable unless the last
    /// receiving call found nothing. So: wait until it is readable, receive until there is nothing,
    /// look at the events, wait again. Do not read from it.
    ///
    /// It is open as long as the consumer. For costs and loops see
    /// [`Subscriber::fd`](crate::Subscriber::fd). In an ordered queue it is readable every 2 ms
    /// while a message is held back.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// let mut jobs = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/jobs")?.producer()?;
    /// let fd = jobs.fd()?.try_clone_to_owned().unwrap();
    /// while jobs.receive()?.is_some() || jobs.next_event().is_some() {}
    /// producer.send(&7)?; // from here on it is readable
    ///
    /// let mut readable = outlive::Descriptor::readable(&fd);
    /// outlive::WaitSet::new().wait(&mut [&mut readable], Duration::from_secs(5))?;
    /// assert_eq!(*jobs.receive()?.expect("readable"), 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// What happened to producers since the last call; oldest first.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::queue::Event;
    ///
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/jobs")?.producer()?;
    /// let id = producer.id();
    /// producer.send(&7)?;
    /// drop(producer); // leaves; a kill would give `ProducerDied`
    /// while consumer.receive()?.is_some() {}
    /// let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
    /// assert_eq!(events, [Event::ProducerJoined(id), Event::ProducerLeft(id)]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn next_event(&mut self) -> Option<Event> {
        self.reader.next_event()
    }

    /// Producers that are being read.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let producer = node.queue::<u64>("/jobs")?.producer()?;
    /// consumer.receive()?; // finds it
    /// assert_eq!(consumer.producers(), [producer.id()]);
    /// drop(producer);
    /// consumer.receive()?; // its lane is empty: gone
    /// assert!(consumer.producers().is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn producers(&self) -> Vec<ProducerId> {
        self.reader.producers().collect()
    }

    /// Messages of an ordered queue that were delivered out of order, because they were committed
    /// later than the holdback allows.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut log = node.queue::<u32>("/log")?.ordered(Duration::from_millis(5)).consumer()?;
    /// let mut producer = node.queue::<u32>("/log")?.producer()?;
    /// producer.send(&1)?;
    /// while log.receive_timeout(Duration::from_secs(1))?.is_none() {}
    /// assert_eq!(log.late(), 0); // otherwise allow a longer holdback
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn late(&self) -> u64 {
        self.reader.late()
    }
}

impl<T: Payload + ?Sized> Member for Consumer<T> {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        self.reader.is_ready(look)
    }

    fn told(&mut self) {
        self.reader.told();
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        self.reader.plan(plan)
    }

    fn seat(&self) -> Option<Seat<'_>> {
        self.reader.seat()
    }

    fn awake(&mut self) {
        self.reader.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        self.reader.overslept(how)
    }
}

impl<T: Message> Consumer<T> {
    /// Copies the next message into `to`; `false` when there is none now. Trusts no producer
    /// beyond the copy: what is read later cannot change.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Crash safety
    /// **Strict.** The message is received when this returns.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[f64; 6]>("/goals")?.consumer()?;
    /// let mut producer = node.queue::<[f64; 6]>("/goals")?.producer()?;
    /// let mut goal = [0.0; 6];
    /// assert!(!consumer.copy_to(&mut goal)?); // nothing yet
    /// producer.send(&[0.5; 6])?;
    /// assert!(consumer.copy_to(&mut goal)?);
    /// assert_eq!(goal, [0.5; 6]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn copy_to(&mut self, to: &mut T) -> Result<bool> {
        let Some(hand) = self.next()? else { return Ok(false) };
        // Of a checked type it may have changed since the check: the copy is looked at again.
        let mut copy = MaybeUninit::<T>::uninit();
        let at = if T::CHECKED { copy.as_mut_ptr() } else { std::ptr::from_mut(to) };
        // SAFETY: a message of the queue's type has its size; `at` is ordinary memory, `to` only if
        // any bytes are a valid `T`. A broken producer that writes meanwhile makes a mixed copy.
        unsafe { std::ptr::copy_nonoverlapping(hand.ptr, at.cast::<u8>(), size_of::<T>()) };
        if T::CHECKED {
            // SAFETY: as many bytes were just copied there.
            let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), size_of::<T>()) };
            if !T::is_valid(bytes) {
                return Err(self.wrong_value(&hand));
            }
            // SAFETY: filled and just found valid.
            *to = unsafe { copy.assume_init() };
        }
        self.reader.take(1);
        Ok(true)
    }

    /// The next adjacent messages, as one slice without a copy: a batch, or a few that were sent
    /// one by one. Dropping the slice acknowledges them together.
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Consumer::receive`], for all of them together.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u32>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u32>("/jobs")?.producer()?;
    /// producer.send_batch(&[1, 2, 3])?;
    /// let jobs = consumer.receive_slice()?.expect("sent just now");
    /// assert_eq!(jobs.iter().sum::<u32>(), 6);
    /// jobs.ack(); // all three
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn receive_slice(&mut self) -> Result<Option<Received<'_, [T]>>> {
        match self.next()? {
            Some(hand) => {
                let count = Self::count_valid(&hand, hand.count);
                Ok(Some(Received::new(&mut self.reader, hand, count)))
            }
            None => Ok(None),
        }
    }

    /// Waits for messages as [`Consumer::receive_until`] and returns them as
    /// [`Consumer::receive_slice`].
    ///
    /// # Errors
    /// As [`Consumer::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let mut consumer = node.queue::<u32>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u32>("/jobs")?.producer()?;
    /// producer.send_batch(&[1, 2, 3])?;
    /// let soon = Deadline::after(Duration::from_secs(5));
    /// let jobs = consumer.receive_slice_until(soon)?.expect("sent just now");
    /// assert_eq!(*jobs, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_slice_until(&mut self, deadline: Deadline) -> Result<Option<Received<'_, [T]>>> {
        match self.wait(deadline)? {
            Some(hand) => {
                let count = Self::count_valid(&hand, hand.count);
                Ok(Some(Received::new(&mut self.reader, hand, count)))
            }
            None => Ok(None),
        }
    }

    /// Appends the available messages to `to`, at most `max`; returns how many. Never sleeps.
    ///
    /// # Errors
    /// As [`Consumer::receive`], and `OutOfMemory` where `to` cannot grow. What was appended before
    /// is received, the rest comes with the next call.
    ///
    /// # Crash safety
    /// **Strict.** Each counts as received as it is appended: if the process dies with them, they
    /// are gone. To receive them again instead, use [`Consumer::receive_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u32>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u32>("/jobs")?.producer()?;
    /// producer.send_batch(&[1, 2, 3])?;
    /// let mut jobs = Vec::new();
    /// assert_eq!(consumer.receive_batch(&mut jobs, 2)?, 2);
    /// assert_eq!(jobs, [1, 2]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_batch(&mut self, to: &mut Vec<T>, max: usize) -> Result<usize> {
        let mut got = 0;
        while got < max {
            let Some(hand) = self.next()? else { break };
            let n = (Self::count_valid(&hand, hand.count) as usize).min(max - got);
            if fault("batch.ends_without_memory") {
                to.reserve(n);
            }
            if to.try_reserve(n).is_err() {
                return Err(self.no_memory(n));
            }
            // SAFETY: room for `n` messages was reserved behind `len`; the source holds
            // `count >= n` messages of the size of `T`, which are valid.
            unsafe {
                let end = to.as_mut_ptr().add(to.len()).cast::<u8>();
                std::ptr::copy_nonoverlapping(hand.ptr, end, n * size_of::<T>());
                to.set_len(to.len() + n);
            }
            let taken = n - usize::from(n > 1 && fault("batch.last_comes_again"));
            self.reader.take(taken as u32);
            got += n;
        }
        Ok(got)
    }
}
