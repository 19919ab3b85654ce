//! A received message, still in its lane.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Deref;

use super::hand::InHand;
use super::reader::Reader;
use crate::node::NodeId;
use crate::queue::lane::ProducerId;
use crate::sync::fault;
use crate::types::Payload;

/// A message, or several in a row, lent from the lane. It counts as received once it is
/// acknowledged: by [`ack`](Self::ack), or by dropping it. If the process dies before, the next
/// consumer receives it again.
///
/// A panic does not acknowledge: a message dropped while its thread unwinds is received again, by
/// this consumer if somebody catches the panic, else by the next. [`nack`](Self::nack) puts it back
/// without a panic.
///
/// It trusts the producer to keep to the protocol; [`crate::Consumer::copy_to`] trusts nobody.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut consumer = node.queue::<u64>("/work")?.consumer()?;
/// let mut producer = node.queue::<u64>("/work")?.producer()?;
/// producer.send_batch(&[1, 2])?;
///
/// let job = consumer.receive()?.expect("sent just now");
/// job.nack(); // not now
/// let job = consumer.receive()?.expect("put back");
/// assert_eq!(*job, 1);
/// job.ack();
/// assert_eq!(*consumer.receive()?.expect("sent with it"), 2);
/// # Ok::<(), outlive::Error>(())
/// ```
pub struct Received<'c, T: Payload + ?Sized> {
    reader: &'c mut Reader,
    ptr: *const u8,
    bytes: usize,
    count: u32,
    /// It was received by a thread that was unwinding already.
    unwinding: bool,
    _type: PhantomData<&'c T>,
}

impl<'c, T: Payload + ?Sized> Received<'c, T> {
    /// The first `count` messages of `hand`, which `reader` just gave; together a `T`.
    #[inline(always)]
    pub(in crate::queue) fn new(reader: &'c mut Reader, hand: InHand, count: u32) -> Self {
        let bytes = hand.bytes * count as usize;
        debug_assert!(T::fits(bytes) && count <= hand.count);
        if fault("receive.taken_early") {
            reader.take(count);
        }
        let unwinding = std::thread::panicking();
        Self { reader, ptr: hand.ptr, bytes, count, unwinding, _type: PhantomData }
    }

    /// Acknowledges it, as dropping does, even in a thread that unwinds.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one store. After a death before it the next consumer receives the
    /// message again.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut first = node.queue::<u64>("/work")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/work")?.producer()?;
    /// producer.send_batch(&[1, 2])?;
    /// first.receive()?.expect("sent just now").ack(); // done with 1
    /// drop(first);
    /// let mut next = node.queue::<u64>("/work")?.consumer()?;
    /// assert_eq!(*next.receive()?.expect("not acknowledged"), 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline(always)]
    pub fn ack(mut self) {
        self.unwinding = true;
    }

    /// Puts it back: it does not count as received and stays its producer's first message. The next
    /// receiving call returns it again (of several in a row, one or all); after a wait of a
    /// [`WaitSet`](crate::WaitSet) other producers may come first. Nothing from its producer
    /// overtakes it.
    ///
    /// The consumer's position stays where it is, so a successor begins with this message, and its
    /// producer's lane fills up behind it. Use it for work that cannot be done *yet*; acknowledge
    /// what can never be done, or it is delivered forever.
    ///
    /// # Crash safety
    /// Writes nothing.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut first = node.queue::<u64>("/work")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/work")?.producer()?;
    /// producer.send(&1)?;
    /// first.receive()?.expect("sent just now").nack();
    /// drop(first); // a death with the message in hand does the same
    /// let mut next = node.queue::<u64>("/work")?.consumer()?;
    /// assert_eq!(*next.receive()?.expect("put back"), 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn nack(self) {
        std::mem::forget(self);
    }

    /// Who sent it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/jobs")?.consumer()?;
    /// let mut arm = node.queue::<u64>("/jobs")?.producer()?;
    /// let base = node.queue::<u64>("/jobs")?.producer()?;
    /// arm.send(&7)?;
    /// let job = consumer.receive()?.expect("sent just now");
    /// assert!(job.producer() == arm.id() && job.producer() != base.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn producer(&self) -> ProducerId {
        // There is one while a message is in hand.
        self.reader.sender().unwrap_or(ProducerId { node: NodeId::from_raw(0), port: 0 })
    }

    /// Where it lies in its producer's lane: the same for every consumer that receives it, and
    /// different for every other message of that producer (within 8 TiB). For programs that must
    /// not forward a message twice, even after one of them was killed.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/work")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/work")?.producer()?;
    /// producer.send_batch(&[1, 2])?;
    /// let job = consumer.receive()?.expect("sent just now");
    /// let forwarded = (job.producer(), job.place()); // note both, then acknowledge
    /// job.nack();
    /// let again = consumer.receive()?.expect("put back");
    /// assert_eq!((again.producer(), again.place()), forwarded);
    /// again.ack();
    /// assert_ne!(consumer.receive()?.expect("the second").place(), forwarded.1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn place(&self) -> (u64, u64) {
        self.reader.place().unwrap_or_default()
    }

    /// When it was sent, ns of CLOCK_MONOTONIC, in a queue with time stamps. Messages of one batch
    /// share one.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/ticks")?.stamped().consumer()?;
    /// let mut producer = node.queue::<u64>("/ticks")?.producer()?;
    /// producer.send_batch(&[1, 2])?;
    /// let first = consumer.receive()?.expect("sent just now").timestamp_ns();
    /// assert!(first.is_some_and(|ns| ns <= outlive::now_ns()));
    /// assert_eq!(consumer.receive()?.expect("of the same batch").timestamp_ns(), first);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn timestamp_ns(&self) -> Option<u64> {
        self.reader.stamp()
    }

    /// The payload's bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u32>("/ticks")?.consumer()?;
    /// let mut producer = node.queue::<u32>("/ticks")?.producer()?;
    /// producer.send(&0x0102_0304)?;
    /// let tick = consumer.receive()?.expect("sent just now");
    /// assert_eq!(tick.as_bytes(), 0x0102_0304u32.to_ne_bytes());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        self.deref().bytes()
    }
}

// SAFETY: a borrow of the reader, which may be sent, and of bytes that nobody writes meanwhile.
unsafe impl<T: Payload + ?Sized> Send for Received<'_, T> {}
// SAFETY: shared access only reads those bytes.
unsafe impl<T: Payload + ?Sized> Sync for Received<'_, T> {}

impl<T: Payload + ?Sized> Deref for Received<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lane's end checked length and alignment, the consumer validity. The
        // position is not past them before `self` is dropped, so no producer writes there, and the
        // reader, borrowed exclusively, keeps the segment mapped.
        unsafe { T::cast(self.ptr, self.bytes) }
    }
}

impl<T: Payload + ?Sized> Drop for Received<'_, T> {
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position or the progress. What a panic drops is
    /// not taken: it stays in hand, or is left to the next consumer with everything behind it.
    #[inline(always)]
    fn drop(&mut self) {
        let failed = !self.unwinding && std::thread::panicking();
        if !fault("receive.taken_early") && (!failed || fault("receive.panic_acknowledges")) {
            self.reader.take(if fault("slice.acks_one") { 1 } else { self.count });
        }
    }
}

impl<T: Payload + ?Sized + std::fmt::Debug> std::fmt::Debug for Received<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let producer = self.producer();
        f.debug_struct("Received").field("producer", &producer).field("payload", &&**self).finish()
    }
}
