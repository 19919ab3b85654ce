//! Opening the ends of a queue.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use super::consumer::Consumer;
use super::consumer::reader::Reader;
use super::lane::layout::FIRST_BYTES;
use super::membership::meta::Meta;
use super::membership::{Queue, Site};
use super::producer::Producer;
use super::producer::writer::Writer;
use crate::Result;
use crate::domain::name::TopicName;
use crate::node::Node;
use crate::types::{Payload, PayloadType};

/// Shared memory that a producer's lane may take unless it asks for more or less, bytes.
pub const BOUND_BYTES_DEFAULT: u64 = 64 << 20;

/// A queue about to be opened; see [`Node::queue`].
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let logs = node.queue::<[u8]>("/logs")?.ordered(Duration::from_millis(5));
/// let mut consumer = logs.consumer()?;
/// let mut producer = node.queue::<[u8]>("/logs")?.bound_bytes(1 << 20).producer()?;
/// producer.send(b"ready")?;
/// let line = consumer.receive()?.expect("sent just now");
/// assert_eq!(&*line, b"ready");
/// assert!(line.timestamp_ns().is_some()); // the first member asked for stamps
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "it opens no end until `producer` or `consumer`"]
pub struct Builder<T: ?Sized> {
    options: QueueOptions,
    _type: PhantomData<fn() -> Box<T>>,
}

/// What was asked for, of whatever type.
#[derive(Clone, Debug)]
struct QueueOptions {
    node: Node,
    name: TopicName,
    bound_bytes: u64,
    first_bytes: u64,
    stamped: bool,
    holdback: Option<Duration>,
    schema: Option<Vec<u8>>,
    payload_type: Option<PayloadType>,
}

// A derived one would ask for a `T` of known size.
impl<T: ?Sized> Clone for Builder<T> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), _type: PhantomData }
    }
}

impl<T: ?Sized> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Builder").field(&self.options).finish()
    }
}

impl Node {
    /// A builder that opens queue `name` for messages of type `T`: a [`crate::Message`], a slice of
    /// them, or `[u8]` for raw bytes.
    ///
    /// # Errors
    /// `InvalidName`: names are like `/robot/commands`, at most 200 bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<[f32; 3]>("/goals")?.consumer()?;
    /// let mut producer = node.queue::<[f32; 3]>("/goals")?.producer()?;
    /// producer.send(&[0.1, 0.2, 0.3])?;
    /// assert_eq!(consumer.receive()?.expect("sent just now")[2], 0.3);
    ///
    /// let other = node.queue::<u64>("/goals")?.producer().unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn queue<T: Payload + ?Sized>(&self, name: &str) -> Result<Builder<T>> {
        let options = QueueOptions {
            node: self.clone(),
            name: TopicName::of("queue name", name)?,
            bound_bytes: BOUND_BYTES_DEFAULT,
            first_bytes: FIRST_BYTES,
            stamped: false,
            holdback: None,
            schema: None,
            payload_type: None,
        };
        Ok(Builder { options, _type: PhantomData })
    }
}

impl Builder<[u8]> {
    /// Opens ends for messages of a type known only at run time, instead of raw bytes. Messages
    /// stay bytes; a length that the type cannot have is refused.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{ErrorKind, PayloadType};
    ///
    /// let ticks = PayloadType::of::<u32>(); // or read from a file or from the domain
    /// let mut producer = node.queue::<[u8]>("/ticks")?.of_type(&ticks).producer()?;
    /// let mut consumer = node.queue::<u32>("/ticks")?.consumer()?;
    /// producer.send(&7u32.to_ne_bytes())?;
    /// assert_eq!(*consumer.receive()?.expect("sent just now"), 7);
    /// assert_eq!(producer.send(&[7]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn of_type(mut self, payload_type: &PayloadType) -> Self {
        self.options.payload_type = Some(payload_type.clone());
        self
    }
}

impl<T: Payload + ?Sized> Builder<T> {
    /// For a producer: most shared memory its lane may take, bytes; 64 MiB unless given. The lane
    /// begins small and doubles when the consumer is slow; at the bound, sends wait or return
    /// `WouldBlock`. A message must fit, with its header, into the largest power of two up to it.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _slow = node.queue::<[u8; 1000]>("/frames")?.consumer()?; // receives nothing
    /// let mut producer = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(64 << 10).producer()?;
    /// let sent = (0..100).take_while(|_| producer.try_send(&[0; 1000]).is_ok()).count();
    /// assert!((32..64).contains(&sent)); // of the 100
    /// assert!(producer.memory_bytes() <= 64 << 10);
    ///
    /// let small = node.queue::<[u8; 1000]>("/frames")?.bound_bytes(512).producer();
    /// assert_eq!(small.unwrap_err().kind(), outlive::ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn bound_bytes(mut self, bytes: u64) -> Self {
        self.options.bound_bytes = bytes;
        self
    }

    /// For a producer: the initial and minimum size of its lane, bytes; by default 16 KiB, or the
    /// size of four messages if that is more. A lane has 4 KiB at least. One that starts at its
    /// bound never grows. A stream of small messages at full speed is up to twice as fast in a lane
    /// larger than the cores' caches, such as 4 MiB.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let producer = node.queue::<u64>("/ticks")?.first_bytes(4 << 20).producer()?;
    /// assert_eq!(producer.memory_bytes(), 4 << 20); // 4 MiB from the start
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn first_bytes(mut self, bytes: u64) -> Self {
        self.options.first_bytes = bytes;
        self
    }

    /// Asks for a time stamp on every message; the first member decides. With stamps each message
    /// takes 8 bytes more and one read of the clock, and small ones do not share a cache line.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut consumer = node.queue::<u64>("/ticks")?.stamped().consumer()?; // the first member
    /// let mut producer = node.queue::<u64>("/ticks")?.producer()?; // follows it
    /// let before_ns = outlive::now_ns();
    /// producer.send(&1)?;
    /// let tick = consumer.receive()?.expect("sent just now");
    /// assert!(tick.timestamp_ns().is_some_and(|sent_ns| sent_ns >= before_ns));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn stamped(mut self) -> Self {
        self.options.stamped = true;
        self
    }

    /// For a consumer: receives the messages of all producers in the order of their time stamps
    /// (see [`Builder::stamped`], which it implies). Each producer's own order always holds;
    /// two producers' messages with the same stamp, in ns, come in either order.
    ///
    /// A message is held back until every other producer has a later one waiting, or for at most
    /// `holdback`: a producer may have taken its stamp and not yet committed. The price is that
    /// delay, and a look at every lane for each message. A message committed more than `holdback`
    /// after its stamp comes late and is counted ([`Consumer::late`]).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut log = node.queue::<u32>("/log")?.ordered(Duration::from_millis(5)).consumer()?;
    /// let mut arm = node.queue::<u32>("/log")?.producer()?;
    /// let mut base = node.queue::<u32>("/log")?.producer()?;
    /// arm.send(&1)?;
    /// base.send(&2)?;
    /// arm.send(&3)?;
    /// let mut lines = Vec::new();
    /// while lines.len() < 3 {
    ///     lines.extend(log.receive_timeout(Duration::from_secs(1))?.map(|line| *line));
    /// }
    /// assert_eq!(lines, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn ordered(mut self, holdback: Duration) -> Self {
        self.options.stamped = true;
        self.options.holdback = Some(holdback);
        self
    }

    /// A description of the type for tools, at most 64 KiB, instead of the type's own.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _producer = node.queue::<[u8]>("/log")?.schema("one line of UTF-8").producer()?;
    /// let queues = outlive::Domain::of_node(&node).queues()?;
    /// assert_eq!(queues[0].schema, b"one line of UTF-8");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn schema(mut self, schema: impl Into<Vec<u8>>) -> Self {
        self.options.schema = Some(schema.into());
        self
    }

    fn meta(&self) -> Meta {
        let payload_type = match &self.options.payload_type {
            Some(payload_type) => payload_type.clone(),
            None => PayloadType::of::<T>(),
        };
        Meta::of_type(payload_type, self.options.stamped, self.options.schema.as_deref())
    }

    fn site(&self) -> Site {
        Site::of_queue(self.options.node.domain(), self.options.name.clone())
    }

    /// Joins as a producer, creating the queue if it does not exist. It may join before the
    /// consumer; sends fail with `OwnerDied` until there is one.
    ///
    /// # Errors
    /// `TypeMismatch` naming every field that differs and who or what keeps the type;
    /// `InvalidArgument` for a bound too small for a message; `TooManyMembers` past 512 producers;
    /// `NoSpace`; `Corrupt`, `VersionMismatch` or `NotOwned` naming the file.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the lane's first segment.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut producer = node.queue::<u64>("/orders")?.producer()?; // before the consumer
    /// assert_eq!(producer.send(&1).unwrap_err().kind(), outlive::ErrorKind::OwnerDied);
    /// let mut consumer = node.queue::<u64>("/orders")?.consumer()?;
    /// producer.send(&2)?;
    /// assert_eq!(*consumer.receive()?.expect("sent just now"), 2); // 1 was never in the queue
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn producer(self) -> Result<Producer<T>> {
        self.options.node.tend()?;
        let (queue, joining) = Queue::join(&self.options.node, &self.site(), &self.meta())?;
        let open = |queue| Writer::open(queue, self.options.bound_bytes, self.options.first_bytes);
        let writer = queue.enter(joining, open)?;
        // A successor clears away what its predecessors left and nobody needs.
        let _ = writer.queue().reclaim();
        Ok(Producer::new(writer))
    }

    /// Joins as the consumer, creating the queue if it does not exist. It resumes where a dead or
    /// departed consumer stopped: the message that one had in hand comes again.
    ///
    /// # Errors
    /// `ConsumerExists` while another consumer lives; else as [`Builder::producer`].
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store that names this node as the consumer. After a death
    /// before or after it the next one does the same again.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut first = node.queue::<u64>("/orders")?.consumer()?;
    /// let mut producer = node.queue::<u64>("/orders")?.producer()?;
    /// producer.send_batch(&[1, 2])?;
    /// drop(first.receive()?.expect("sent just now"));
    /// drop(first); // leaves with one message unread
    ///
    /// let mut next = node.queue::<u64>("/orders")?.consumer()?;
    /// assert_eq!(*next.receive()?.expect("left by the first"), 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn consumer(self) -> Result<Consumer<T>> {
        self.options.node.tend()?;
        let (queue, joining) = Queue::join(&self.options.node, &self.site(), &self.meta())?;
        let reader = queue.enter(joining, |queue| Reader::open(queue, self.options.holdback))?;
        Ok(Consumer::new(reader))
    }
}
