//! The receiving port of a topic. What has types is here, in `sample` and in `stream`; `reader`
//! knows bytes only: begin there.
//!
//! | file | what |
//! |---|---|
//! | `sources` | the rings that it reads, and whose turn it is |
//! | `raw`, `records` | a message without its type, and the memory it is copied into |
//! | `parked` | ports whose samples outlive them |

mod parked;
pub(super) mod raw;
pub(super) mod reader;
mod records;
pub(crate) mod sample;
pub(super) mod sources;
#[cfg(feature = "async")]
pub(super) mod stream;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::membership::entry::PublisherId;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;
use crate::types::describe::TypeDescription;
use crate::types::encoding::Encoding;
use crate::types::payload::Payload;
use crate::types::payload_type::PayloadType;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use raw::{Meta, RawSample};
use reader::{Event, Reader};
use sample::Sample;

/// Receives the messages of all publishers of a topic, in order per publisher.
///
/// Messages that the ring overwrote before they were read are counted exactly
/// ([`Sample::lost_before`], [`Subscriber::lost`]). A dead publisher's committed messages are
/// received first, then [`Event::PublisherDied`] is reported. A stopped publisher is alive.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let publisher = node.topic::<[u8]>("/log")?.publisher()?;
/// publisher.publish(b"first")?;
/// let mut late = node.topic::<[u8]>("/log")?.history(1).subscriber()?;
/// let sample = late.receive_timeout(Duration::from_secs(1))?.expect("from the history");
/// assert_eq!(&*sample, b"first");
/// assert!(late.receive()?.is_none());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Subscriber<T: Payload + ?Sized> {
    reader: Reader,
    /// Accepts whatever type the topic has; `T` is `[u8]` then.
    any_type: bool,
    _type: PhantomData<fn() -> Box<T>>,
}

impl<T: Payload + ?Sized> Subscriber<T> {
    pub(crate) fn new(reader: Reader, any_type: bool) -> Self {
        Self { reader, any_type, _type: PhantomData }
    }

    /// The topic's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let subscriber = node.topic::<u64>("count")?.subscriber()?;
    /// assert_eq!(subscriber.topic(), "/count"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn topic(&self) -> &str {
        self.reader.topic().name.as_str()
    }

    /// The next message, or `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// `TooManyBorrows` when as many samples are held as `borrows` allows: nothing is consumed, and
    /// nobody else notices. `OutOfMemory`, likewise. `ForkedChild`. `Corrupt` for a message with a
    /// value that `T` does not have, such as a `bool` of 2: that one is skipped. `Io`, `NoSpace` or
    /// `OutOfMemory` when a new publisher's ring cannot be opened: only while there is nothing from
    /// the others; it is tried again after 2 to 250 ms. A publisher whose bytes are corrupt is
    /// reported as [`Event::PublisherCorrupt`] and no longer read.
    ///
    /// # Crash safety
    /// **Deferred** (one chunk): if the process dies holding a sample, its chunk returns to the
    /// publisher once the death is confirmed.
    ///
    /// # Real-time
    /// No lock, no wait. No system call unless a publisher waits for this subscriber, joined, left
    /// or has a token that says dead; for the last three it reads the topic's directory and may
    /// open rings, also while there are messages. No allocation otherwise, unless more samples are
    /// held than ever before, and more than [`borrows`](crate::topic::Builder::borrows). Against a
    /// publisher that overwrites each message while it is read, a call tries the oldest message
    /// left, then up to 7 times one in the middle of the ring, and returns `None`; what it skipped
    /// counts as lost.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.depth(4).publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// assert!(subscriber.receive()?.is_none());
    /// for n in 0..10 {
    ///     publisher.publish(&n)?; // waits for nobody: the ring holds 4
    /// }
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// assert_eq!((*sample, sample.lost_before()), (6, 6));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn receive(&mut self) -> Result<Option<Sample<T>>> {
        self.receive_by(Reader::take)
    }

    #[inline]
    fn receive_by(
        &mut self,
        take: impl Fn(&mut Reader) -> Result<Option<RawSample>>,
    ) -> Result<Option<Sample<T>>> {
        loop {
            let e = match take(&mut self.reader).map(|raw| raw.map(Sample::of)) {
                Ok(Some(Ok(sample))) => return Ok(Some(sample)),
                Ok(Some(Err(raw))) => Sample::<T>::fault(self.topic(), &raw),
                Ok(None) if self.reader.rest() => continue,
                Ok(None) => return Ok(None),
                Err(e) => e,
            };
            self.reader.failed(&e);
            return Err(e);
        }
    }

    /// The newest message, or `None` when there is no new one; everything older is skipped and
    /// counted by [`Subscriber::skipped`], not as lost.
    ///
    /// Among several publishers the newest by time stamp.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/setpoint")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/setpoint")?.subscriber()?;
    /// for value in 0..10 {
    ///     publisher.publish(&value)?;
    /// }
    /// assert_eq!(*subscriber.latest()?.expect("new ones"), 9);
    /// assert!(subscriber.latest()?.is_none());
    /// assert_eq!((subscriber.skipped(), subscriber.lost()), (9, 0));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn latest(&mut self) -> Result<Option<Sample<T>>> {
        self.receive_by(Reader::take_newest)
    }

    /// The earliest published of the available messages, over all publishers; in order per
    /// publisher as always.
    ///
    /// A message stamped before another but committed after it (its publisher was interrupted in
    /// between) comes late: only what has arrived is ordered. Two publishers' messages with the
    /// same stamp, in ns, come in either order. Costs one look at every publisher's ring per
    /// message.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let left = node.topic::<u32>("/wheel")?.publisher()?;
    /// let right = node.topic::<u32>("/wheel")?.publisher()?;
    /// let mut wheels = node.topic::<u32>("/wheel")?.subscriber()?;
    /// left.publish(&1)?;
    /// right.publish(&2)?;
    /// left.publish(&3)?;
    /// let mut order = Vec::new();
    /// while let Some(sample) = wheels.receive_in_order()? {
    ///     order.push(*sample);
    /// }
    /// assert_eq!(order, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_in_order(&mut self) -> Result<Option<Sample<T>>> {
        self.receive_by(Reader::take_oldest)
    }

    /// Iterates over what is there now, without waiting. Ends after the first error: one that
    /// consumes nothing would come again without end.
    ///
    /// # Errors
    /// As [`Subscriber::receive`]. What is behind the error is left for the next call.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// # let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// # publisher.publish(&1)?;
    /// # publisher.publish(&2)?;
    /// let sum: u64 = subscriber.drain().map(|sample| sample.map(|s| *s)).sum::<Result<_, _>>()?;
    /// assert_eq!(sum, 3);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn drain(&mut self) -> impl Iterator<Item = Result<Sample<T>>> {
        let mut failed = false;
        std::iter::from_fn(move || {
            let over = failed && !fault("drain.repeats_errors");
            let next = if over { None } else { self.receive().transpose() };
            failed |= matches!(next, Some(Err(_)));
            next
        })
    }

    /// Calls `each` with every message until it returns `Break` or `timeout` passes without one.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::{ops::ControlFlow, time::Duration};
    ///
    /// let publisher = node.topic::<u32>("/step")?.publisher()?;
    /// let mut subscriber = node.topic::<u32>("/step")?.subscriber()?;
    /// for step in [1, 2, 3] {
    ///     publisher.publish(&step)?;
    /// }
    /// let mut sum = 0;
    /// subscriber.for_each(Duration::from_secs(1), |step| {
    ///     sum += *step;
    ///     if *step == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    /// })?;
    /// assert_eq!(sum, 3);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn for_each(
        &mut self,
        timeout: Duration,
        mut each: impl FnMut(Sample<T>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut deadline = Deadline::after(timeout);
        loop {
            match self.receive_until(deadline)? {
                Some(sample) => match each(sample) {
                    ControlFlow::Break(()) => return Ok(()),
                    ControlFlow::Continue(()) => deadline = Deadline::after(timeout),
                },
                None if deadline.has_passed() => return Ok(()),
                // An event.
                None => {}
            }
        }
    }

    /// Copies the payload of the next message into `to`, which is cleared first, and returns where
    /// it came from; the sample is released at once.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[f32]>("/scan")?.publisher()?;
    /// let mut subscriber = node.topic::<[f32]>("/scan")?.subscriber()?;
    /// publisher.publish(&[0.5, 0.75])?;
    /// let mut bytes = Vec::new(); // keeps its memory from one message to the next
    /// let meta = subscriber.copy_bytes(&mut bytes)?.expect("sent just now");
    /// assert_eq!((bytes.len(), meta.seq), (8, 0));
    /// assert!(subscriber.copy_bytes(&mut bytes)?.is_none() && bytes.len() == 8);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn copy_bytes(&mut self, to: &mut Vec<u8>) -> Result<Option<Meta>> {
        let Some(sample) = self.receive()? else { return Ok(None) };
        to.clear();
        to.extend_from_slice(sample.as_bytes());
        Ok(Some(*sample.meta()))
    }

    /// Messages that [`Subscriber::latest`] skipped.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/setpoint")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/setpoint")?.subscriber()?;
    /// publisher.publish_batch(&[1, 2, 3])?;
    /// assert_eq!(*subscriber.latest()?.expect("sent just now"), 3);
    /// assert_eq!(subscriber.skipped(), 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn skipped(&self) -> u64 {
        self.reader.skipped()
    }

    /// Waits up to `timeout` for the next message. Returns `None` on timeout, or earlier for a new
    /// event ([`Subscriber::next_event`]), or for a publisher's end that an earlier call noticed
    /// and nobody has asked about; that ends one wait only.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// assert!(subscriber.receive_timeout(Duration::from_millis(1))?.is_none());
    /// publisher.publish(&7)?;
    /// let sample = subscriber.receive_timeout(Duration::from_secs(5))?;
    /// assert_eq!(*sample.expect("sent just now"), 7);
    /// let id = publisher.id();
    /// drop(publisher); // leaves; a kill ends the wait, too
    /// assert!(subscriber.receive_timeout(Duration::from_secs(60))?.is_none());
    /// let events = std::iter::from_fn(|| subscriber.next_event());
    /// assert_eq!(events.last(), Some(outlive::topic::Event::PublisherLeft(id)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<Sample<T>>> {
        self.receive_until(Deadline::after(timeout))
    }

    /// As [`Subscriber::receive_timeout`], until `deadline`.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// publisher.publish(&7)?;
    /// let (mut sum, deadline) = (0, Deadline::after(Duration::from_millis(5)));
    /// while !deadline.has_passed() {
    ///     sum += subscriber.receive_until(deadline)?.map_or(0, |n| *n);
    /// }
    /// assert_eq!(sum, 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_until(&mut self, deadline: Deadline) -> Result<Option<Sample<T>>> {
        let events = self.reader.events_seen();
        loop {
            if let Some(sample) = self.receive()? {
                return Ok(Some(sample));
            }
            if deadline.has_passed() || self.reader.tells_news(events) {
                return Ok(None);
            }
            self.reader.sleep(deadline)?;
        }
    }

    /// Sleeps until there may be a message or an event, at most until `deadline`. For waits that
    /// must take nothing before they have looked elsewhere.
    #[doc(hidden)]
    pub fn sleep_until(&mut self, deadline: Deadline) -> Result<()> {
        self.reader.sleep(deadline)
    }

    /// Copies the next message into `to`; for fixed-size types. Needs no trust in the publisher
    /// after that: the copy cannot change.
    ///
    /// # Errors
    /// As [`Subscriber::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8; 6]>("/mac")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8; 6]>("/mac")?.subscriber()?;
    /// publisher.publish(b"robot1")?;
    /// let mut mac = [0; 6];
    /// let meta = subscriber.copy_to(&mut mac)?.expect("sent just now");
    /// assert_eq!((&mac, meta.publisher), (b"robot1", publisher.id()));
    /// assert!(subscriber.copy_to(&mut mac)?.is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn copy_to(&mut self, to: &mut T) -> Result<Option<Meta>>
    where
        T: Sized + Clone,
    {
        let Some(sample) = self.receive()? else { return Ok(None) };
        sample.clone_to(self.topic(), to).inspect_err(|e| self.reader.failed(e))?;
        Ok(Some(*sample.meta()))
    }

    /// Appends the messages that are there to `to`, at most `max` and as many as the rings of all
    /// publishers hold; returns how many. Never waits. Small ones take half the time of as many
    /// calls of [`Subscriber::receive`]. Up to a whole ring of one publisher comes before the
    /// next one's turn.
    ///
    /// # Errors
    /// As [`Subscriber::receive`]; what was appended before is received.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u32>("/ticks")?.publisher()?;
    /// let mut subscriber = node.topic::<u32>("/ticks")?.subscriber()?;
    /// publisher.publish_batch(&[1, 2, 3])?;
    /// let mut ticks = Vec::new();
    /// assert_eq!(subscriber.receive_batch(&mut ticks, 2)?, 2);
    /// assert_eq!(subscriber.receive_batch(&mut ticks, 2)?, 1); // appended
    /// assert_eq!(ticks, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_batch(&mut self, to: &mut Vec<T>, max: usize) -> Result<usize>
    where
        T: Sized,
    {
        let before = to.len();
        // One that sends as fast as we read must not keep us here.
        let mut most = max.min(self.reader.room().max(1));
        loop {
            self.reader.take_values(to, most - (to.len() - before))?;
            if to.len() - before == most {
                // Whoever was found meanwhile, as by the first call, has a ring, too.
                let room = max.min(self.reader.room());
                if room <= most {
                    break;
                }
                most = room;
                continue;
            }
            if to.try_reserve(1).is_err() {
                let e = self.reader.no_memory();
                self.reader.failed(&e);
                return Err(e);
            }
            let Some(sample) = self.receive()? else { break };
            let value = sample.value(self.topic());
            to.push(value.inspect_err(|e| self.reader.failed(e))?);
        }
        Ok(to.len() - before)
    }

    /// A descriptor for epoll, `poll`, `select`, asyncio and the like: readable unless the last
    /// receiving call, of any kind, found nothing; even then once for new events.
    ///
    /// So the loop is: wait until it is readable, receive until there is nothing, look at the
    /// events, wait again. The first call makes it; it stays the same and closes with the
    /// subscriber. Do not read from it. Both level- and edge-triggered (EPOLLET) epoll work; after
    /// an error there is a new edge.
    ///
    /// | readable because of | how soon |
    /// |---|---|
    /// | a message; a publisher that joins or leaves | at once: the publisher sends a datagram |
    /// | a publisher's death, even between commit and datagram | at once: the kernel reports it |
    /// | nothing; time to look | 100 ms after the last time, 10 ms where inotify is not available |
    ///
    /// The last row bounds the delay of what is missed: a message whose publisher looked before it
    /// could see us wait, a datagram that could not be sent. So a loop over a quiet topic wakes
    /// about ten times a second and receives nothing.
    ///
    /// Costs three descriptors, a socket file on the RAM disk, and one datagram (a few us) per
    /// publisher each time we wait; nothing before the first call.
    ///
    /// # Errors
    /// `NoSpace`, `ForkedChild`, or `Io` when the process is out of descriptors.
    ///
    /// # Crash safety
    /// **Strict.** The socket file is removed with its node.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// let fd = subscriber.fd()?.try_clone_to_owned().unwrap();
    /// assert!(subscriber.receive()?.is_none(), "from here on it is not readable");
    /// publisher.publish(&7)?;
    ///
    /// // Any loop that can wait for a descriptor; this one is of this crate.
    /// let mut readable = outlive::Descriptor::readable(&fd);
    /// outlive::WaitSet::new().wait(&mut [&mut readable], Duration::from_secs(5))?;
    /// assert_eq!(*subscriber.receive()?.expect("readable"), 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// What happened to publishers, one event at a time, oldest first; `None` if there is nothing
    /// new. Receiving calls notice it, and waits in a [`WaitSet`](crate::WaitSet).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::topic::Event;
    ///
    /// let publisher = node.topic::<u32>("/step")?.publisher()?;
    /// let id = publisher.id();
    /// let mut subscriber = node.topic::<u32>("/step")?.subscriber()?;
    /// publisher.publish(&7)?;
    /// drop(publisher);
    /// assert_eq!(*subscriber.receive()?.expect("sent before it left"), 7);
    /// assert!(subscriber.receive()?.is_none());
    /// assert_eq!(subscriber.next_event(), Some(Event::PublisherJoined(id)));
    /// assert_eq!(subscriber.next_event(), Some(Event::PublisherLeft(id)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn next_event(&mut self) -> Option<Event> {
        self.reader.next_event()
    }

    /// Messages lost so far, over all publishers: overwritten before this subscriber read them.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.depth(4).publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// for n in 0..10 {
    ///     publisher.publish(&n)?;
    /// }
    /// assert_eq!(subscriber.lost(), 0); // counted while receiving
    /// assert_eq!(subscriber.drain().count(), 4);
    /// assert_eq!(subscriber.lost(), 6);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn lost(&self) -> u64 {
        self.reader.lost()
    }

    /// Samples of this subscriber held right now.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/image")?.subscriber()?;
    /// publisher.publish(&[7; 10_000])?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// assert_eq!(subscriber.borrowed(), 1);
    /// drop(sample);
    /// assert_eq!(subscriber.borrowed(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn borrowed(&self) -> usize {
        self.reader.borrowed()
    }

    /// Publishers that are being read.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// subscriber.receive()?;
    /// assert_eq!(subscriber.publishers(), [publisher.id()]);
    /// drop(publisher);
    /// subscriber.receive()?;
    /// assert!(subscriber.publishers().is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publishers(&self) -> Vec<PublisherId> {
        self.reader.publishers().collect()
    }

    /// Name of the topic's type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _publisher = node.topic::<outlive::msg::Pose>("/pose")?.publisher()?;
    /// let tool = node.topic::<[u8]>("/pose")?.subscriber_of_any_type()?;
    /// assert_eq!(tool.type_name(), "outlive/Pose");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn type_name(&self) -> &str {
        self.reader.topic().meta.of.name()
    }

    /// How the topic's payloads are encoded.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Encoding;
    ///
    /// let _publisher = node.topic::<[f32]>("/scan")?.publisher()?;
    /// let tool = node.topic::<[u8]>("/scan")?.subscriber_of_any_type()?;
    /// assert_eq!((tool.type_name(), tool.encoding()), ("f32", Encoding::Slice));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn encoding(&self) -> Encoding {
        self.reader.topic().meta.of.encoding
    }

    /// The topic's type as a value, to open ports of the same type elsewhere, such as in a tool
    /// that copies messages of any type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # let other = outlive::Node::builder().root(dir.path()).domain("other").open()?;
    /// let publisher = node.topic::<f64>("/speed")?.publisher()?;
    /// let mut from = node.topic::<[u8]>("/speed")?.subscriber_of_any_type()?;
    /// let to = other.topic::<[u8]>("/speed")?.of_type(&from.payload_type()).publisher()?;
    /// let mut copied = other.topic::<f64>("/speed")?.subscriber()?;
    /// publisher.publish(&1.5)?;
    /// to.publish(from.receive()?.expect("sent just now").as_bytes())?;
    /// assert_eq!(*copied.receive()?.expect("sent just now"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn payload_type(&self) -> PayloadType {
        self.reader.topic().meta.of.clone()
    }

    /// Messages that the deepest of the rings being read holds; without any, what the ring of a
    /// publisher that does not ask for a depth would hold.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// assert_eq!(subscriber.depth(), 16);
    /// let publisher = node.topic::<u64>("/n")?.depth(100).publisher()?;
    /// publisher.publish(&7)?;
    /// subscriber.receive()?;
    /// assert_eq!(subscriber.depth(), 128); // a power of two
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn depth(&self) -> u64 {
        self.reader.depth()
    }

    /// What the topic's payloads look like, if its first member described its type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _publisher = node.topic::<outlive::msg::Pose>("/pose")?.publisher()?;
    /// let tool = node.topic::<[u8]>("/pose")?.subscriber_of_any_type()?;
    /// let pose = tool.description().expect("described by its type");
    /// assert_eq!((pose.size(), pose.fields()[1].name()), (96, "position"));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn description(&self) -> Option<TypeDescription> {
        TypeDescription::parse(&self.reader.topic().meta.of.schema).ok()
    }

    /// The topic's attributes, set by its creator ([`Builder::attribute`](crate::topic::Builder)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _publisher = node.topic::<f64>("/speed")?.attribute("unit", "m/s").publisher()?;
    /// let subscriber = node.topic::<f64>("/speed")?.subscriber()?;
    /// assert_eq!(subscriber.attributes()["unit"], "m/s");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.reader.topic().meta.attributes.clone()
    }

    /// Whether this subscriber reads a topic of any type as bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let subscriber = node.topic::<f64>("/speed")?.subscriber()?;
    /// let tool = node.topic::<[u8]>("/speed")?.subscriber_of_any_type()?;
    /// assert!(tool.is_any_type() && !subscriber.is_any_type());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_any_type(&self) -> bool {
        self.any_type
    }
}

impl<T: Payload + ?Sized> Member for Subscriber<T> {
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
