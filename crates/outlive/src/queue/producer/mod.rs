//! The sending end of a queue. What has types is here and in `slot`; `writer` knows bytes only:
//! over its `lane`, and the consumer that it writes to (`addressee`). `refused` says why nothing
//! was sent.
//! Begin with `writer`.

mod addressee;
mod lane;
pub(crate) mod refused;
pub(super) mod slot;
pub(crate) mod writer;

use std::marker::PhantomData;
use std::time::Duration;

use super::lane::ProducerId;
use super::lane::record::Shape;
use crate::os::time::deadline::Deadline;
use crate::types::{Encoding, Message, Payload};
use crate::{Error, ErrorKind, Result};
use refused::{Sent, TrySendError};
use slot::Slot;
use writer::Writer;

/// Sends messages to the one consumer of a queue, through a lane of its own.
///
/// A full lane grows up to its bound; then sends wait or are refused. Without a live consumer every
/// send fails with `OwnerDied` at once and puts nothing in the queue, even a send that is waiting
/// when the consumer dies. A stopped consumer is alive.
///
/// Messages sent before this process dies are received. Dropping the producer leaves unread
/// messages to the consumer.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut producer = node.queue::<u64>("/commands")?.producer()?;
/// let nobody = producer.send(&7).unwrap_err();
/// assert_eq!(nobody.kind(), outlive::ErrorKind::OwnerDied);
///
/// let mut consumer = node.queue::<u64>("/commands")?.consumer()?;
/// producer.send(&7)?;
/// assert_eq!(*consumer.receive()?.expect("sent just now"), 7);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Producer<T: Payload + ?Sized> {
    writer: Writer,
    _type: PhantomData<fn(&T)>,
}

/// The shape of records without stamps, known at compile time; but what is opened for raw bytes
/// may carry a type that is known at run time only, and so may an alignment be.
pub(super) struct ShapeOf<T: Payload + ?Sized>(PhantomData<fn(&T)>);

impl<T: Payload + ?Sized> ShapeOf<T> {
    pub(super) const PLAIN: Shape = Shape::new(
        matches!(T::ENCODING, Encoding::Fixed),
        size_of::<T::Element>(),
        align_of::<T::Element>(),
        false,
    );

    /// Bytes of a message, where they are always as many.
    pub(super) const ITEM: Option<usize> = match T::ENCODING {
        Encoding::Fixed if size_of::<T::Element>() > 0 => Some(size_of::<T::Element>()),
        _ => None,
    };

    /// Whether `PLAIN` is the shape. By reference it stays a constant.
    pub(super) const KNOWN: Option<&'static Shape> = match T::ENCODING {
        Encoding::Bytes => None,
        encoding if encoding.is_foreign() => None,
        _ => Some(&Self::PLAIN),
    };
}

impl<T: Payload + ?Sized> Producer<T> {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer, _type: PhantomData }
    }

    #[cfg(test)]
    pub(crate) fn consumer_node(&self) -> Option<crate::node::NodeId> {
        self.writer.consumer_node()
    }

    /// Who this is, as the consumer sees it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u32>("/jobs")?.consumer()?;
    /// let mut arm = node.queue::<u32>("/jobs")?.producer()?;
    /// let base = node.queue::<u32>("/jobs")?.producer()?;
    /// arm.send(&1)?;
    /// let job = consumer.receive()?.expect("sent just now");
    /// assert_eq!(job.producer(), arm.id());
    /// assert!(arm.id() != base.id() && arm.id().node == base.id().node);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn id(&self) -> ProducerId {
        self.writer.id()
    }

    /// The queue's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let producer = node.queue::<u64>("jobs")?.producer()?;
    /// assert_eq!(producer.queue(), "/jobs"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn queue(&self) -> &str {
        self.writer.queue().name.as_str()
    }

    /// Shared memory that the lane takes right now, bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[u8; 1000]>("/frames")?.consumer()?;
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.producer()?;
    /// assert_eq!(producer.memory_bytes(), 16 << 10); // 16 KiB
    /// producer.send_batch(&[[0; 1000]; 100])?; // unread, so the lane grows
    /// assert!(producer.memory_bytes() > 100_000);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes()
    }

    /// Changes the lane's bound ([`Builder::bound_bytes`](crate::queue::Builder::bound_bytes)),
    /// clamped to between 4096 bytes and 1 TiB: to divide memory among many lanes. Memory in use
    /// stays until its messages are received. A message that the lane has no room for and the new
    /// bound excludes fails with [`InvalidArgument`](crate::ErrorKind::InvalidArgument).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _slow = node.queue::<[u8; 1000]>("/frames")?.consumer()?; // receives nothing
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(16 << 10).producer()?;
    /// while producer.try_send(&[0; 1000]).is_ok() {}
    /// producer.set_bound_bytes(64 << 10);
    /// producer.try_send(&[0; 1000])?; // there is room again
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn set_bound_bytes(&mut self, bytes: u64) {
        self.writer.set_bound_bytes(bytes);
    }

    /// Whether a live consumer reads the queue, according to its word. It may die right after;
    /// [`Producer::wait_for_consumer`] asks the kernel, too. Also `true` while that cannot be
    /// determined, for lack of memory for instance; [`Producer::send`] reports why.
    ///
    /// # Real-time
    /// Three loads while it lives. Its identity is looked up once.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut producer = node.queue::<u64>("/orders")?.producer()?;
    /// assert!(!producer.has_consumer());
    /// let consumer = node.queue::<u64>("/orders")?.consumer()?;
    /// assert!(producer.has_consumer());
    /// drop(consumer);
    /// assert!(!producer.has_consumer());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn has_consumer(&mut self) -> bool {
        self.writer.may_be_served()
    }

    /// Waits until a live consumer reads the queue; `false` when `timeout` passed first. Checks the
    /// file lock of the consumer's node, even if `timeout` is zero.
    ///
    /// # Errors
    /// `ForkedChild`; `Corrupt`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut producer = node.queue::<u64>("/orders")?.producer()?;
    /// assert!(!producer.wait_for_consumer(Duration::from_millis(1))?);
    /// let orders = node.queue::<u64>("/orders")?;
    /// let consumer = std::thread::spawn(move || orders.consumer());
    /// assert!(producer.wait_for_consumer(Duration::from_secs(5))?);
    /// producer.send(&1)?;
    /// # drop(consumer.join());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_for_consumer(&mut self, timeout: Duration) -> Result<bool> {
        self.writer.wait_for_consumer(Deadline::after(timeout))
    }

    /// Sends a copy of `value`. At the bound it waits, for as long as the consumer lives.
    ///
    /// # Errors
    /// `OwnerDied`: no live consumer, or it died while this call waited. `InvalidArgument`: the
    /// message is larger than the bound allows. `NoSpace` on a full RAM disk. `Corrupt`: the
    /// consumer refused the lane, or somebody truncated a file. In each case nothing was sent.
    ///
    /// # Crash safety
    /// **Strict.** A death before the commit point sends nothing; after it the message is sent and
    /// a sleeping consumer wakes, even if the process dies before waking it.
    ///
    /// # Real-time
    /// Allocates nothing, takes no lock and makes no system call while the consumer is awake and
    /// the lane has room, except where the lane shrinks: with `first_bytes` as large as
    /// `bound_bytes` it never does. If the lane is full, it looks for room for some us, checks the
    /// file lock of the consumer's node, grows the lane, and at the bound sleeps.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[f64; 2]>("/goals")?.consumer()?;
    /// let mut producer = node.queue::<[f64; 2]>("/goals")?.producer()?;
    /// producer.send(&[1.0, 2.0])?;
    /// drop(producer); // what was sent stays
    /// assert_eq!(*consumer.receive()?.expect("sent just now"), [1.0, 2.0]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn send(&mut self, value: &T) -> Result<()> {
        self.put(value, Deadline::NEVER).map_err(|refused| self.writer.error(refused))
    }

    /// As [`Producer::send`], without waiting: one look for room, no spinning.
    ///
    /// # Errors
    /// [`TrySendError::Full`] (`WouldBlock`): the lane is at its bound. Else as [`Producer::send`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Real-time
    /// As [`Producer::send`] while the lane has room. A lane below its bound grows, which takes
    /// system calls, even where it fails for lack of space. At the bound, and without a consumer,
    /// it allocates nothing, takes no lock and makes no system call: the consumer's word is enough
    /// to refuse. The calls that wait, and [`Producer::wait_for_consumer`] with a timeout of zero,
    /// also find a consumer whose death the kernel could not mark there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::queue::TrySendError;
    ///
    /// let mut consumer = node.queue::<[u8; 1000]>("/frames")?.consumer()?;
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(16 << 10).producer()?;
    /// let mut sent = 0u64;
    /// let full = loop {
    ///     match producer.try_send(&[0; 1000]) {
    ///         Ok(()) => sent += 1,
    ///         Err(refused) => break refused,
    ///     }
    /// };
    /// assert!(matches!(full, TrySendError::Full(_)) && sent > 0);
    /// let frames = std::iter::from_fn(|| consumer.receive().unwrap().map(drop));
    /// assert_eq!(frames.count() as u64, sent); // the refused one is not among them
    /// producer.try_send(&[0; 1000])?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn try_send(&mut self, value: &T) -> std::result::Result<(), TrySendError> {
        self.put(value, Deadline::AT_ONCE).map_err(|refused| self.writer.not_sent(refused))
    }

    /// As [`Producer::send`], waiting at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`; else as [`Producer::send`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let consumer = node.queue::<[u8; 1000]>("/frames")?.consumer()?; // receives nothing
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(16 << 10).producer()?;
    /// let full = loop {
    ///     if let Err(e) = producer.send_timeout(&[0; 1000], Duration::from_millis(1)) {
    ///         break e;
    ///     }
    /// };
    /// assert_eq!(full.kind(), ErrorKind::Timeout);
    /// drop(consumer);
    /// let nobody = producer.send_timeout(&[0; 1000], Duration::from_secs(5)).unwrap_err();
    /// assert_eq!(nobody.kind(), ErrorKind::OwnerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn send_timeout(&mut self, value: &T, timeout: Duration) -> Result<()> {
        let deadline = Deadline::after(timeout);
        self.put(value, deadline).map_err(|refused| self.writer.error(refused))
    }

    /// As [`Producer::send`], waiting until `deadline`; [`Deadline::AT_ONCE`] is
    /// [`Producer::try_send`] with an [`Error`].
    ///
    /// # Errors
    /// `Timeout`, `WouldBlock` at once; else as [`Producer::send`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind};
    /// use std::time::Duration;
    ///
    /// let _slow = node.queue::<[u8; 1000]>("/frames")?.consumer()?; // receives nothing
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(16 << 10).producer()?;
    /// let cycle = Deadline::after(Duration::from_millis(5)); // for all of them together
    /// let late = (0..100).find_map(|_| producer.send_until(&[0; 1000], cycle).err());
    /// assert_eq!(late.expect("100 do not fit").kind(), ErrorKind::Timeout);
    /// assert!(cycle.has_passed());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn send_until(&mut self, value: &T, deadline: Deadline) -> Result<()> {
        self.put(value, deadline).map_err(|refused| self.writer.error(refused))
    }

    #[inline(always)]
    fn put(&mut self, value: &T, deadline: Deadline) -> Sent<()> {
        let bytes = value.bytes();
        self.check(bytes.len())?;
        match ShapeOf::<T>::KNOWN {
            known @ Some(shape) if shape.per_run > 0 => {
                self.writer.send_in_run(bytes, known, deadline)
            }
            _ if self.writer.shape().stamped => self.writer.send_stamped(bytes, deadline),
            Some(shape) => self.writer.send(bytes, shape, deadline),
            None if self.writer.shape().per_run > 0 => {
                self.writer.send_in_run(bytes, None, deadline)
            }
            None => {
                let shape = *self.writer.shape();
                self.writer.send(bytes, &shape, deadline)
            }
        }
    }

    /// Where the type is known at run time only, so is the length.
    #[inline(always)]
    fn check(&self, bytes: usize) -> Result<()> {
        // A shape with a size is nearer than the queue's type and says the same.
        let fits = match self.writer.shape().item {
            _ if T::ENCODING != Encoding::Bytes => true,
            0 => self.writer.queue().meta.fits(bytes),
            item => item == bytes as u64,
        };
        if fits { Ok(()) } else { Err(self.misfit(bytes)) }
    }

    #[cold]
    fn misfit(&self, bytes: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "sending to queue",
            self.queue(),
            format!("{bytes} bytes are not a message of its type '{}'", self.type_name()),
        )
    }

    /// Name of the queue's type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let ticks = outlive::PayloadType::of::<u32>();
    /// let producer = node.queue::<[u8]>("/ticks")?.of_type(&ticks).producer()?;
    /// assert_eq!(producer.type_name(), "u32");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn type_name(&self) -> &str {
        self.writer.queue().meta.of.name()
    }

    /// Room in the lane for a slice of `len` elements, to fill and commit without a copy. Holds
    /// whatever was there before. At the bound it waits.
    ///
    /// # Errors
    /// As [`Producer::send`]; `InvalidArgument` when `len` does not make a value of `T`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[f32]>("/scans")?.consumer()?;
    /// let mut producer = node.queue::<[f32]>("/scans")?.producer()?;
    /// let mut ranges = producer.reserve_slice(360)?;
    /// ranges.fill(1.5);
    /// ranges.commit();
    /// assert_eq!(consumer.receive()?.expect("committed").len(), 360);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reserve_slice(&mut self, len: usize) -> Result<Slot<'_, T>> {
        self.slot(len, Deadline::NEVER)
    }

    /// As [`Producer::reserve_slice`], without waiting, as [`Producer::try_send`].
    ///
    /// # Errors
    /// [`TrySendError::Full`] (`WouldBlock`); else as [`Producer::reserve_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::queue::TrySendError;
    ///
    /// let mut producer = node.queue::<[f32]>("/scans")?.producer()?;
    /// let nobody = producer.try_reserve_slice(360).unwrap_err();
    /// assert!(matches!(nobody, TrySendError::NoConsumer(_)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn try_reserve_slice(
        &mut self,
        len: usize,
    ) -> std::result::Result<Slot<'_, T>, TrySendError> {
        self.try_slot(len)
    }

    /// As [`Producer::reserve_slice`], waiting until `deadline`; [`Deadline::AT_ONCE`] is
    /// [`Producer::try_reserve_slice`] with an [`Error`].
    ///
    /// # Errors
    /// `Timeout`, `WouldBlock` at once; else as [`Producer::reserve_slice`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind};
    ///
    /// let _slow = node.queue::<[u8]>("/images")?.consumer()?; // receives nothing
    /// let mut producer = node.queue::<[u8]>("/images")?.bound_bytes(64 << 10).producer()?;
    /// producer.reserve_slice_until(40_000, Deadline::NEVER)?.commit();
    /// let full = producer.reserve_slice_until(40_000, Deadline::AT_ONCE).unwrap_err();
    /// assert_eq!(full.kind(), ErrorKind::WouldBlock);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reserve_slice_until(&mut self, len: usize, deadline: Deadline) -> Result<Slot<'_, T>> {
        self.slot(len, deadline)
    }

    fn slot(&mut self, len: usize, deadline: Deadline) -> Result<Slot<'_, T>> {
        match self.reserve_bytes(len, deadline) {
            Ok((ptr, bytes)) => Ok(Slot::new(&mut self.writer, ptr, bytes)),
            Err(refused) => Err(self.writer.error(refused)),
        }
    }

    fn try_slot(&mut self, len: usize) -> std::result::Result<Slot<'_, T>, TrySendError> {
        match self.reserve_bytes(len, Deadline::AT_ONCE) {
            Ok((ptr, bytes)) => Ok(Slot::new(&mut self.writer, ptr, bytes)),
            Err(refused) => Err(self.writer.not_sent(refused)),
        }
    }

    fn reserve_bytes(&mut self, len: usize, deadline: Deadline) -> Sent<(*mut u8, usize)> {
        let Some(bytes) = T::bytes_of(len).filter(|b| *b <= 1 << 40) else {
            return Err(self.no_length(len).into());
        };
        self.check(bytes)?;
        // A record of its own: a run's header counts what is before it.
        self.writer.end_run()?;
        let shape = *self.writer.shape();
        Ok((self.writer.reserve(bytes as u64, &shape, deadline)?, bytes))
    }

    #[cold]
    fn no_length(&self, len: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "reserving in queue",
            self.queue(),
            format!("{len} elements are not a message of this queue's type"),
        )
    }
}

impl<T: Message> Producer<T> {
    /// Room in the lane for one message, to fill and commit without a copy. Holds whatever was
    /// there before. At the bound it waits.
    ///
    /// # Errors
    /// As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[f32; 256]>("/scans")?.consumer()?;
    /// let mut producer = node.queue::<[f32; 256]>("/scans")?.producer()?;
    /// let mut ranges = producer.reserve()?;
    /// ranges.fill(1.5);
    /// ranges.commit();
    /// assert_eq!(consumer.receive()?.unwrap()[255], 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reserve(&mut self) -> Result<Slot<'_, T>> {
        self.slot(1, Deadline::NEVER)
    }

    /// As [`Producer::reserve`], without waiting, as [`Producer::try_send`].
    ///
    /// # Errors
    /// [`TrySendError::Full`] (`WouldBlock`); else as [`Producer::reserve`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::queue::TrySendError;
    ///
    /// let mut consumer = node.queue::<[f32; 256]>("/scans")?.consumer()?;
    /// let mut producer = node.queue::<[f32; 256]>("/scans")?.producer()?;
    /// match producer.try_reserve() {
    ///     Ok(mut ranges) => {
    ///         ranges.fill(1.5);
    ///         ranges.commit();
    ///     }
    ///     Err(TrySendError::Full(_)) => println!("the consumer is behind: drop this scan"),
    ///     Err(e) => return Err(e.into()),
    /// }
    /// assert_eq!(consumer.receive()?.expect("committed")[255], 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn try_reserve(&mut self) -> std::result::Result<Slot<'_, T>, TrySendError> {
        self.try_slot(1)
    }

    /// Sends all of `values`, or none: they become visible with one store and lie one behind the
    /// other, which is several times as fast as sending them one by one. At the bound it waits.
    ///
    /// # Errors
    /// As [`Producer::send`], for all of them together; `InvalidArgument` for more than 16 777 214.
    /// An empty slice sends nothing.
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/ticks")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/ticks")?.producer()?;
    /// producer.send_batch(&[1, 2, 3])?;
    /// assert_eq!(*consumer.receive()?.unwrap(), 1);
    /// let mut rest = Vec::new();
    /// assert_eq!(consumer.receive_batch(&mut rest, 100)?, 2);
    /// assert_eq!(rest, [2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn send_batch(&mut self, values: &[T]) -> Result<()> {
        self.put_batch(values, Deadline::NEVER).map_err(|refused| self.writer.error(refused))
    }

    /// As [`Producer::send_batch`], without waiting, as [`Producer::try_send`].
    ///
    /// # Errors
    /// [`TrySendError::Full`] (`WouldBlock`): there is no room for all of them. Else as
    /// [`Producer::send_batch`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::queue::TrySendError;
    ///
    /// let mut consumer = node.queue::<[u8; 1000]>("/frames")?.consumer()?;
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(64 << 10).producer()?;
    /// producer.try_send_batch(&[[0; 1000]; 20])?;
    /// let full = producer.try_send_batch(&[[1; 1000]; 50]).unwrap_err();
    /// assert!(matches!(full, TrySendError::Full(_)));
    /// let mut frames = Vec::new();
    /// assert_eq!(consumer.receive_batch(&mut frames, 100)?, 20); // and none of the 50
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn try_send_batch(&mut self, values: &[T]) -> std::result::Result<(), TrySendError> {
        self.put_batch(values, Deadline::AT_ONCE).map_err(|refused| self.writer.not_sent(refused))
    }

    /// As [`Producer::send_batch`], waiting until `deadline`; [`Deadline::AT_ONCE`] is
    /// [`Producer::try_send_batch`] with an [`Error`].
    ///
    /// # Errors
    /// `Timeout`, `WouldBlock` at once; else as [`Producer::send_batch`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind};
    /// use std::time::Duration;
    ///
    /// let mut producer = node.queue::<u64>("/ticks")?.producer()?;
    /// let consumer = node.queue::<u64>("/ticks")?.consumer()?;
    /// let soon = Deadline::after(Duration::from_secs(5));
    /// producer.send_batch_until(&[1, 2, 3], soon)?;
    /// drop(consumer);
    /// let nobody = producer.send_batch_until(&[4, 5], soon).unwrap_err(); // does not wait
    /// assert_eq!(nobody.kind(), ErrorKind::OwnerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn send_batch_until(&mut self, values: &[T], deadline: Deadline) -> Result<()> {
        self.put_batch(values, deadline).map_err(|refused| self.writer.error(refused))
    }

    #[inline(always)]
    fn put_batch(&mut self, values: &[T], deadline: Deadline) -> Sent<()> {
        if values.is_empty() {
            return Ok(());
        }
        let shape = match self.writer.shape().stamped {
            true => *self.writer.shape(),
            false => ShapeOf::<T>::PLAIN,
        };
        self.writer.end_run()?;
        self.writer.send_batch(<[T]>::bytes(values), values.len(), &shape, deadline)
    }
}

impl Producer<[u8]> {
    /// As [`Producer::send_batch`], for a queue whose fixed-size type is known only at run time:
    /// `bytes` are whole messages, one behind the other. Waits until `deadline`.
    ///
    /// # Errors
    /// `InvalidArgument` where the type has no fixed size or `bytes` are not whole messages;
    /// `WouldBlock` at once; else as [`Producer::send_until`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Deadline, ErrorKind, PayloadType};
    ///
    /// let mut consumer = node.queue::<u32>("/ticks")?.consumer()?;
    /// let ticks = PayloadType::of::<u32>();
    /// let mut producer = node.queue::<[u8]>("/ticks")?.of_type(&ticks).producer()?;
    /// producer.send_batch_bytes(&[0; 12], Deadline::NEVER)?;
    /// assert_eq!(consumer.receive_slice()?.expect("sent just now").len(), 3);
    /// let broken = producer.send_batch_bytes(&[0; 13], Deadline::NEVER).unwrap_err();
    /// assert_eq!(broken.kind(), ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn send_batch_bytes(&mut self, bytes: &[u8], deadline: Deadline) -> Result<()> {
        let shape = *self.writer.shape();
        let whole = shape.item != 0 && bytes.len() as u64 % shape.item == 0;
        if !whole {
            return Err(self.misfit(bytes.len()));
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let count = bytes.len() as u64 / shape.item;
        let sent = self
            .writer
            .end_run()
            .and_then(|()| self.writer.send_batch(bytes, count as usize, &shape, deadline));
        sent.map_err(|refused| self.writer.error(refused))
    }
}
