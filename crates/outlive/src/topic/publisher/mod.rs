//! The publishing port of a topic. What has types is here, in `loan` and in `headed`; `writer`
//! knows bytes only: begin there.
//!
//! | file | what |
//! |---|---|
//! | `ring`, `named` | its ring, which chunk each entry names |
//! | `audience`, `room` | subscribers that it admitted; its wait for reliable ones |
//! | `refused` | why nothing was published |

mod audience;
mod headed;
pub(crate) mod loan;
mod named;
pub(in crate::topic) mod refused;
mod ring;
pub(super) mod room;
pub(super) mod writer;

use std::cell::Cell;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::membership::entry::PublisherId;
use crate::os::time::deadline::Deadline;
use crate::types::encoding::Encoding;
use crate::types::payload::Payload;
use crate::types::payload_type::PAYLOAD_BYTES_MAX;
use crate::{Error, ErrorKind, Result};
use loan::Loan;
use refused::TryPublishError;
use room::Waited;
use writer::Writer;

/// Sends messages on a topic. It waits only for reliable subscribers; for others the ring
/// overwrites its oldest entry, and a subscriber that was too slow learns how many messages it
/// lost.
///
/// A dead subscriber costs nothing but the chunk it was reading, which is freed once its death is
/// confirmed. Dropping the publisher keeps what it sent readable while the topic has members.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<u64>("/counter")?.publisher()?;
/// let mut subscriber = node.topic::<u64>("/counter")?.subscriber()?;
/// publisher.publish(&7)?;
/// let sample = subscriber.receive()?.expect("sent just now");
/// assert_eq!((*sample, sample.seq()), (7, 0));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Publisher<T: Payload + ?Sized> {
    pub(super) writer: RefCell<Writer>,
    /// Length of the last encoded value, bytes.
    pub(super) length_hint: Cell<usize>,
    _type: PhantomData<fn(&T)>,
}

impl<T: Payload + ?Sized> Publisher<T> {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer: RefCell::new(writer), length_hint: Cell::new(0), _type: PhantomData }
    }

    /// Who this is, as subscribers see it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let left = node.topic::<u32>("/wheel")?.publisher()?;
    /// let right = node.topic::<u32>("/wheel")?.publisher()?;
    /// let mut wheels = node.topic::<u32>("/wheel")?.subscriber()?;
    /// right.publish(&7)?;
    /// let sample = wheels.receive()?.expect("sent just now");
    /// assert!(sample.publisher() == right.id() && sample.publisher() != left.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn id(&self) -> PublisherId {
        self.writer.borrow().id()
    }

    /// The topic's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("count")?.publisher()?;
    /// assert_eq!(publisher.topic(), "/count"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn topic(&self) -> String {
        self.writer.borrow().topic().name.as_str().to_owned()
    }

    /// The topic's attributes, set by its creator ([`Builder::attribute`](crate::topic::Builder)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<f64>("/speed")?.attribute("unit", "m/s").publisher()?;
    /// assert_eq!(publisher.attributes()["unit"], "m/s");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn attributes(&self) -> BTreeMap<String, String> {
        self.writer.borrow().topic().meta.attributes.clone()
    }

    /// Messages published so far, which is the `seq` of the next one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// publisher.publish(&7)?;
    /// assert_eq!(publisher.published(), 1);
    /// assert_eq!(publisher.publish(&8)?, 1); // the second one
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn published(&self) -> u64 {
        self.writer.borrow().published()
    }

    /// Live subscribers that receive whatever is published from here on. One that is still being
    /// opened does not count yet, so a publisher that waits for the first loses nothing to it.
    ///
    /// # Errors
    /// Those of looking at the topic's directory.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.publisher()?;
    /// assert_eq!(publisher.subscribers()?, 0);
    /// let subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// assert_eq!(publisher.subscribers()?, 1);
    /// drop(subscriber); // leaves; a kill does the same
    /// assert_eq!(publisher.subscribers()?, 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscribers(&self) -> Result<usize> {
        let mut writer = self.writer.borrow_mut();
        writer.topic().node.tend()?;
        writer.refresh()?;
        Ok(writer.subscribers())
    }

    /// How often and how long it has waited for slow reliable subscribers. Waits that end within a
    /// few us, before it yields the core, do not count.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let _slow = node.topic::<u64>("/n")?.depth(1).reliable(true).subscriber()?;
    /// let patience = Duration::from_millis(5);
    /// let publisher = node.topic::<u64>("/n")?.reliable_timeout(patience).publisher()?;
    /// publisher.publish(&0)?;
    /// assert!(publisher.publish(&1).is_err());
    /// let waited = publisher.waited();
    /// assert!(waited.messages == 1 && waited.total >= patience);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn waited(&self) -> Waited {
        self.writer.borrow().waited()
    }

    /// Bytes of shared memory this publisher takes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
    /// let empty = publisher.memory_bytes(); // its ring
    /// publisher.publish(&[7; 1_000_000])?;
    /// assert!(publisher.memory_bytes() >= empty + 1_000_000);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.writer.borrow().memory_bytes()
    }

    /// Copies `value` in and publishes it; returns its `seq`.
    ///
    /// # Errors
    /// `Timeout` when a reliable subscriber is still behind after the publisher's
    /// [`reliable_timeout`](crate::topic::Builder::reliable_timeout), `WouldBlock` where that is 0;
    /// `OutOfMemory` when the ring and what subscribers hold reach the memory bound; `NoSpace` on
    /// a full RAM disk; `Corrupt` when somebody truncated its files; `ForkedChild`. After
    /// membership changed also `Io` or `OutOfMemory`, if the topic's directory or a reliable
    /// subscriber cannot be opened. Nothing was published then, and subscribers notice nothing.
    ///
    /// # Crash safety
    /// **Strict.** A death before the commit point sends nothing; after it the message is sent and
    /// sleepers wake, even if the process dies before waking them.
    ///
    /// # Real-time
    /// Takes no lock, except one within this process when it wakes a subscriber that waits on a
    /// descriptor. Waits only for reliable subscribers, including those that join meanwhile, up to
    /// the publisher's [`reliable_timeout`](crate::topic::Builder::reliable_timeout). No system
    /// call and no allocation while nobody sleeps or joins, a chunk is free and there is nobody to
    /// wait for. While a subscriber cannot be opened, for lack of memory, descriptors or rights,
    /// each message costs a few system calls to wake it, and occasionally those of a retry.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[f32]>("/scan")?.publisher()?;
    /// assert_eq!(publisher.publish(&[0.5, 0.75])?, 0); // nobody there: kept for late joiners
    /// assert_eq!(publisher.publish(&[])?, 1); // any length
    /// let mut late = node.topic::<[f32]>("/scan")?.history(2).subscriber()?;
    /// assert_eq!(&*late.receive()?.expect("from the history"), [0.5, 0.75]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn publish(&self, value: &T) -> Result<u64> {
        let bytes = value.bytes();
        let mut writer = self.writer.borrow_mut();
        if writer.is_inline(bytes.len()) {
            return writer.publish_inline(bytes, false).map_err(|refused| writer.error(refused));
        }
        drop(writer);
        let mut loan = self.loan_bytes(bytes.len())?;
        loan.copy_from(bytes);
        loan.publish()
    }

    /// As [`Publisher::publish`], without waiting for a reliable subscriber, whatever the
    /// publisher's [`reliable_timeout`](crate::topic::Builder::reliable_timeout) is.
    ///
    /// # Errors
    /// [`TryPublishError::Behind`] (`WouldBlock`), [`TryPublishError::NoMemory`] (`OutOfMemory`);
    /// else as [`Publisher::publish`]. Nothing was published then.
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`].
    ///
    /// # Real-time
    /// As [`Publisher::publish`]. A refusal as `Behind`, or as `NoMemory` while no holder seems
    /// dead, allocates nothing, does not spin and makes no system call. [`Publisher::publish`] and
    /// [`Publisher::loan`] also find a holder whose death the kernel could not mark.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::topic::TryPublishError;
    ///
    /// let mut slow = node.topic::<u64>("/step")?.depth(2).reliable(true).subscriber()?;
    /// let publisher = node.topic::<u64>("/step")?.publisher()?;
    /// publisher.try_publish(&0)?;
    /// publisher.try_publish(&1)?;
    /// assert!(matches!(publisher.try_publish(&2), Err(TryPublishError::Behind(_))));
    /// while slow.receive()?.is_some() {}
    /// assert_eq!(publisher.try_publish(&2)?, 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_publish(&self, value: &T) -> std::result::Result<u64, TryPublishError> {
        let bytes = value.bytes();
        let mut writer = self.writer.borrow_mut();
        if writer.is_inline(bytes.len()) {
            let sent = writer.publish_inline(bytes, true);
            return sent.map_err(|refused| writer.not_published(refused));
        }
        // Before the copy, not after it.
        writer.before_publish(true).map_err(|refused| writer.not_published(refused))?;
        drop(writer);
        let mut loan = self.try_loan_bytes(bytes.len())?;
        loan.copy_from(bytes);
        loan.try_publish().map_err(|refused| refused.why)
    }

    /// Waits until the next message overwrites nothing that a live reliable subscriber has yet to
    /// read, at most until `until`, whatever the publisher's
    /// [`reliable_timeout`](crate::topic::Builder::reliable_timeout) is. For other languages, whose
    /// waits let signals through: [`Publisher::publish`] waits by itself.
    ///
    /// # Errors
    /// `WouldBlock` for [`Deadline::AT_ONCE`], else `Timeout`; those of looking at the subscribers.
    ///
    /// # Crash safety
    /// **Strict.** It publishes nothing.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind};
    ///
    /// let topic = || node.topic::<u64>("/counter");
    /// let mut slow = topic()?.depth(2).reliable(true).subscriber()?;
    /// let publisher = topic()?.publisher()?;
    /// publisher.publish(&0)?;
    /// publisher.publish(&1)?;
    /// let full = publisher.wait_for_room(Deadline::AT_ONCE).unwrap_err();
    /// assert_eq!(full.kind(), ErrorKind::WouldBlock);
    /// while slow.receive()?.is_some() {}
    /// publisher.wait_for_room(Deadline::AT_ONCE)?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_for_room(&self, until: Deadline) -> Result<()> {
        let mut writer = self.writer.borrow_mut();
        writer.wait_for_room(until).map_err(|refused| writer.error(refused))
    }

    #[inline]
    pub(super) fn loan_bytes(&self, bytes: usize) -> Result<Loan<'_, T>> {
        let mut writer = self.writer.borrow_mut();
        match writer.loan(bytes, false) {
            Ok(chunk) => Ok(Loan::new(&self.writer, chunk.location, chunk.ptr, bytes)),
            Err(refused) => Err(writer.error(refused)),
        }
    }

    #[inline]
    fn try_loan_bytes(&self, bytes: usize) -> std::result::Result<Loan<'_, T>, TryPublishError> {
        let mut writer = self.writer.borrow_mut();
        match writer.loan(bytes, true) {
            Ok(chunk) => Ok(Loan::new(&self.writer, chunk.location, chunk.ptr, bytes)),
            Err(refused) => Err(writer.not_published(refused)),
        }
    }

    /// A slot in shared memory for `len` elements (of a [`Headed`](crate::Headed): behind the
    /// header), to fill and publish without a copy. Holds whatever was there before; zeros if the
    /// type has a `bool`, `char` or enum in it.
    ///
    /// # Errors
    /// As [`Publisher::publish`]; `InvalidArgument` when `len` does not make a value of `T`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[f32]>("/scan")?.publisher()?;
    /// let mut subscriber = node.topic::<[f32]>("/scan")?.subscriber()?;
    /// let mut ranges = publisher.loan_slice(3)?;
    /// ranges.copy_from_slice(&[0.5, 0.75, 1.0]);
    /// ranges.publish()?;
    /// assert_eq!(&*subscriber.receive()?.expect("sent just now"), [0.5, 0.75, 1.0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn loan_slice(&self, len: usize) -> Result<Loan<'_, T>> {
        self.loan_bytes(self.length(len)?)
    }

    /// As [`Publisher::loan_slice`], refused as [`Publisher::try_publish`].
    ///
    /// # Errors
    /// [`TryPublishError::NoMemory`] (`OutOfMemory`); else as [`Publisher::loan_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::topic::TryPublishError;
    ///
    /// let images = node.topic::<[u8]>("/image")?.memory_bytes_max(1 << 20);
    /// let publisher = images.publisher()?;
    /// let _held = publisher.try_loan_slice(800_000)?;
    /// let full = publisher.try_loan_slice(800_000);
    /// assert!(matches!(full, Err(TryPublishError::NoMemory(_))));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn try_loan_slice(&self, len: usize) -> std::result::Result<Loan<'_, T>, TryPublishError> {
        self.try_loan_bytes(self.length(len).map_err(TryPublishError::Failed)?)
    }

    /// Bytes of a payload of `len` elements.
    fn length(&self, len: usize) -> Result<usize> {
        let bytes = T::bytes_of(len).filter(|b| *b <= PAYLOAD_BYTES_MAX);
        bytes.ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidArgument,
                "loaning on",
                self.topic(),
                format!("a payload of this topic's type cannot have {len} elements"),
            )
        })
    }

    /// Publishes each of `values`, of `bytes` bytes as `bytes_of` shows.
    #[inline(always)]
    fn publish_each<'a, V: 'a + ?Sized>(
        &self,
        bytes: usize,
        mut values: impl Iterator<Item = &'a V>,
        bytes_of: impl Fn(&'a V) -> &'a [u8],
    ) -> Result<()> {
        let mut writer = self.writer.borrow_mut();
        if writer.is_inline(bytes) {
            let sent = writer.publish_inline_batch(values.map(bytes_of));
            return sent.map_err(|refused| writer.error(refused));
        }
        drop(writer);
        values.try_for_each(|value| {
            let mut loan = self.loan_bytes(bytes)?;
            loan.copy_from(bytes_of(value));
            loan.publish().map(drop)
        })
    }
}

impl Publisher<[u8]> {
    /// As [`Publisher::publish_batch`], for a topic whose fixed-size type is known only at run
    /// time: `bytes` are whole messages, one behind the other.
    ///
    /// # Errors
    /// `InvalidArgument` where the type has no fixed size or `bytes` are not whole messages; else
    /// as [`Publisher::publish_batch`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish_batch`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let u32s = outlive::PayloadType::of::<u32>();
    /// let publisher = node.topic::<[u8]>("/ticks")?.of_type(&u32s).publisher()?;
    /// let mut subscriber = node.topic::<u32>("/ticks")?.subscriber()?;
    /// publisher.publish_batch_bytes(&[1, 0, 0, 0, 2, 0, 0, 0])?;
    /// let mut ticks = Vec::new();
    /// subscriber.receive_batch(&mut ticks, 100)?;
    /// assert_eq!(ticks, [1, 2]);
    /// assert!(publisher.publish_batch_bytes(&[3, 0, 0]).is_err()); // not a whole message
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publish_batch_bytes(&self, bytes: &[u8]) -> Result<()> {
        let writer = self.writer.borrow();
        let of = &writer.topic().meta.of;
        let item = of.size;
        if of.encoding != Encoding::Fixed || bytes.len() % item != 0 {
            let why =
                format!("{} bytes are not whole messages of its type '{}'", bytes.len(), of.name());
            let topic = writer.topic().name.as_str();
            return Err(Error::new(ErrorKind::InvalidArgument, "publishing on", topic, why));
        }
        drop(writer);
        self.publish_each(item, bytes.chunks_exact(item), |message| message)
    }
}

impl<T: Payload> Publisher<T> {
    /// Publishes each of `values` as a message, in order. Those that travel inside the ring (up to
    /// 1024 bytes) take half the time of as many [`Publisher::publish`] and share one time stamp;
    /// after a wait for a reliable subscriber the rest get a new one. Larger ones have one each.
    ///
    /// # Errors
    /// As [`Publisher::publish`]. Those before the one that failed are sent:
    /// [`Publisher::published`] tells how many.
    ///
    /// # Crash safety
    /// **Strict.** As [`Publisher::publish`] for each: if the publisher dies midway, the messages
    /// committed so far arrive whole.
    ///
    /// # Real-time
    /// As [`Publisher::publish`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u32>("/ticks")?.publisher()?;
    /// let mut subscriber = node.topic::<u32>("/ticks")?.subscriber()?;
    /// publisher.publish_batch(&[1, 2, 3])?;
    /// let mut ticks = Vec::new();
    /// assert_eq!(subscriber.receive_batch(&mut ticks, 100)?, 3);
    /// assert_eq!(ticks, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn publish_batch(&self, values: &[T]) -> Result<()> {
        self.publish_each(size_of::<T>(), values.iter(), T::bytes)
    }

    /// A slot in shared memory to fill and publish without a copy. Holds whatever was there
    /// before; zeros if the type has a `bool`, `char` or enum in it.
    ///
    /// # Errors
    /// As [`Publisher::publish`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[f32; 256]>("/scan")?.publisher()?;
    /// let mut ranges = publisher.loan()?;
    /// ranges.fill(1.5);
    /// ranges.publish()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn loan(&self) -> Result<Loan<'_, T>> {
        self.loan_bytes(size_of::<T>())
    }

    /// As [`Publisher::loan`], refused as [`Publisher::try_publish`].
    ///
    /// # Errors
    /// [`TryPublishError::NoMemory`] (`OutOfMemory`); else as [`Publisher::loan`].
    ///
    /// # Real-time
    /// A refusal as `NoMemory` while no holder seems dead allocates nothing and makes no system
    /// call. Memory below its bound grows, which takes system calls.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::topic::TryPublishError;
    ///
    /// let images = node.topic::<[u8; 800_000]>("/image")?.memory_bytes_max(1 << 20);
    /// let publisher = images.publisher()?;
    /// let mut first = publisher.try_loan()?;
    /// assert!(matches!(publisher.try_loan(), Err(TryPublishError::NoMemory(_))));
    /// first.fill(128);
    /// first.publish()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_loan(&self) -> std::result::Result<Loan<'_, T>, TryPublishError> {
        self.try_loan_bytes(size_of::<T>())
    }
}
