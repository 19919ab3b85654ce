//! Opening the ports of a topic.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::membership::Topic;
use super::membership::meta::WantedMeta;
use super::publisher::Publisher;
use super::publisher::writer::{PublisherOptions, Writer};
use super::ring::layout;
use super::subscriber::Subscriber;
use super::subscriber::reader::{Reader, SubscriberOptions};
use crate::domain::name::TopicName;
use crate::node::Node;
use crate::types::encoding::Encoding;
use crate::types::payload::Payload;
use crate::types::payload_type::PayloadType;
use crate::{Error, ErrorKind, Result};

/// Samples a subscriber may hold unless it asks for more.
pub const BORROWS_DEFAULT: usize = 8;
/// Shared memory a publisher may take unless it asks for more or less, bytes.
pub const MEMORY_BYTES_DEFAULT: u64 = 1 << 30;

/// A topic about to be opened; see [`Node::topic`].
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node
///     .topic::<[f32]>("/scan")?
///     .depth(4)
///     .attribute("unit", "m")
///     .reliable_timeout(std::time::Duration::from_millis(20))
///     .publisher()?;
/// publisher.publish(&[0.5, 0.75])?;
/// publisher.publish(&[0.25])?;
///
/// let late = node.topic::<[f32]>("/scan")?.history(2).reliable(true);
/// let mut subscriber = late.subscriber()?;
/// assert_eq!(subscriber.attributes()["unit"], "m");
/// assert_eq!(&*subscriber.receive()?.expect("from the history"), [0.5, 0.75]);
/// assert_eq!(&*subscriber.receive()?.expect("from the history"), [0.25]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "it opens no port until `publisher` or `subscriber`"]
pub struct Builder<T: ?Sized> {
    options: TopicOptions,
    _type: PhantomData<fn() -> Box<T>>,
}

/// What was asked for, of whatever type.
#[derive(Clone, Debug)]
struct TopicOptions {
    node: Node,
    name: TopicName,
    depth: Option<u64>,
    history: u64,
    borrows: usize,
    memory_bytes_max: u64,
    reliable: bool,
    reliable_timeout_ns: u64,
    volatile: bool,
    timestamps: bool,
    type_name: Option<String>,
    schema: Option<Vec<u8>>,
    attributes: BTreeMap<String, String>,
    payload_type: Option<PayloadType>,
}

// By hand, since a slice is no Clone.
impl<T: Payload + ?Sized> Clone for Builder<T> {
    fn clone(&self) -> Self {
        Self { options: self.options.clone(), _type: PhantomData }
    }
}

impl<T: Payload + ?Sized> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Builder").field(&self.options).finish()
    }
}

impl Node {
    /// A builder that opens topic `name` for messages of type `T`: a [`crate::Message`] (a number,
    /// an array, your struct), a slice of these, [`crate::Headed`], `MsgPack`, [`crate::Encoded`],
    /// or `[u8]` for raw bytes.
    ///
    /// # Errors
    /// `InvalidName`: names are like `/camera/front`, at most 200 bytes; a missing leading `/` is
    /// added.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{ErrorKind, topic::Builder};
    ///
    /// let poses: Builder<outlive::msg::Pose> = node.topic("/base/pose")?;
    /// let counts = node.topic::<[u64]>("/counts")?; // any number of them in each message
    /// let bytes = node.topic::<[u8]>("/serial/front")?;
    /// assert_eq!(node.topic::<u64>("two words").unwrap_err().kind(), ErrorKind::InvalidName);
    /// # drop((poses, counts, bytes));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn topic<T: Payload + ?Sized>(&self, name: &str) -> Result<Builder<T>> {
        let options = TopicOptions {
            node: self.clone(),
            name: TopicName::new(name)?,
            depth: None,
            history: 0,
            borrows: BORROWS_DEFAULT,
            memory_bytes_max: MEMORY_BYTES_DEFAULT,
            reliable: false,
            reliable_timeout_ns: 1_000_000_000,
            volatile: false,
            timestamps: true,
            type_name: None,
            schema: None,
            attributes: BTreeMap::new(),
            payload_type: None,
        };
        Ok(Builder { options, _type: PhantomData })
    }
}

impl<T: Payload + ?Sized> Builder<T> {
    /// For a publisher: messages its ring holds, 1 to 65536, rounded up to a power of two. Unless
    /// given, what the first member of the topic asked for, else 16.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u32>("/n")?.depth(3).publisher()?; // rounded up to 4
    /// for n in 0..10 {
    ///     publisher.publish(&n)?;
    /// }
    /// let mut late = node.topic::<u32>("/n")?.history(100).subscriber()?;
    /// let numbers: Vec<u32> = late.drain().map(|n| n.map(|n| *n)).collect::<Result<_, _>>()?;
    /// assert_eq!((late.depth(), numbers), (4, vec![6, 7, 8, 9]));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn depth(mut self, messages: u64) -> Self {
        self.options.depth = Some(messages);
        self
    }

    /// For a subscriber: how many messages from before it joined to receive; 0 unless given. These
    /// are the newest by time stamp over all publishers, including those that died or left.
    /// Messages without a stamp count as the oldest, in the order in which their publishers joined.
    /// Overwritten messages are gone.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u32>("/n")?.publisher()?;
    /// for n in 0..5 {
    ///     publisher.publish(&n)?;
    /// }
    /// let mut late = node.topic::<u32>("/n")?.history(2).subscriber()?;
    /// assert_eq!(*late.receive()?.expect("from the history"), 3);
    /// assert_eq!(*late.receive()?.expect("from the history"), 4);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn history(mut self, messages: u64) -> Self {
        self.options.history = messages;
        self
    }

    /// For a subscriber: how many samples it may hold at once, 1 to 64; 8 unless given.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::ErrorKind;
    ///
    /// let publisher = node.topic::<[u8]>("/image")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/image")?.borrows(1).subscriber()?;
    /// publisher.publish(&[1; 10_000])?;
    /// publisher.publish(&[2; 10_000])?;
    /// let held = subscriber.receive()?.expect("sent above");
    /// assert_eq!(subscriber.receive().unwrap_err().kind(), ErrorKind::TooManyBorrows);
    /// drop(held);
    /// assert_eq!(subscriber.receive()?.expect("still there")[0], 2);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn borrows(mut self, samples: usize) -> Self {
        self.options.borrows = samples;
        self
    }

    /// For a publisher: most shared memory for its chunks, bytes; 1 GiB unless given. Memory
    /// grows on demand; it needs (depth + borrowed + loaned) chunks at most. If the bound does not
    /// hold depth + 1 messages, every message is refused once it is reached, even if nobody reads.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let images = node.topic::<[u8; 100_000]>("/image")?.memory_bytes_max(1 << 20);
    /// let publisher = images.publisher()?;
    /// let loans: Vec<_> = std::iter::from_fn(|| publisher.loan().ok()).collect();
    /// assert!(!loans.is_empty() && loans.len() <= 10);
    /// let full = publisher.loan().unwrap_err(); // nobody reads, and the bound is reached
    /// assert_eq!(full.kind(), outlive::ErrorKind::OutOfMemory);
    /// drop(loans);
    /// publisher.loan()?.publish()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn memory_bytes_max(mut self, bytes: u64) -> Self {
        self.options.memory_bytes_max = bytes;
        self
    }

    /// A description of the payload for tools, at most 64 KiB, instead of the type's own
    /// ([`crate::Message::describe`]). All members that give one must give the same.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let speed = || node.topic::<f64>("/speed");
    /// let _publisher = speed()?.schema("m/s, forward").publisher()?;
    /// let info = domain.find_topic("/speed")?.expect("opened above");
    /// assert_eq!(info.schema, b"m/s, forward");
    /// let other = speed()?.schema("km/h").subscriber().unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn schema(mut self, schema: impl Into<Vec<u8>>) -> Self {
        self.options.schema = Some(schema.into());
        self
    }

    /// Adds an attribute for people and tools, such as a unit or a frame; the last value of a key
    /// counts. Only the member that creates the topic sets its attributes; those of later members
    /// are ignored.
    ///
    /// A key has 1 to 64 letters, digits, `_`, `-`, `.` and `/`; a value up to 1024 bytes without
    /// control characters; at most 64 attributes and 16 KiB in all, else opening fails with
    /// `InvalidArgument`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<f64>("/speed")?.attribute("unit", "m/s").publisher()?;
    /// let subscriber = node.topic::<f64>("/speed")?.attribute("unit", "km/h").subscriber()?;
    /// assert_eq!(subscriber.attributes()["unit"], "m/s"); // the creator's
    /// assert_eq!(publisher.attributes(), subscriber.attributes());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn attribute(mut self, key: &str, value: &str) -> Self {
        self.options.attributes.insert(key.into(), value.into());
        self
    }

    /// Another name for the type than its own.
    #[cfg(feature = "msgpack")]
    pub(super) fn named(mut self, type_name: &str) -> Self {
        self.options.type_name = Some(type_name.into());
        self
    }

    /// For a subscriber: before publishers overwrite a message that it has not read, they wait for
    /// it, up to their `reliable_timeout`. Each subscriber chooses for itself; nobody waits for the
    /// dead.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut slow = node.topic::<u64>("/step")?.depth(1).reliable(true).subscriber()?;
    /// let publisher = node.topic::<u64>("/step")?.reliable_timeout(Duration::from_millis(5));
    /// let publisher = publisher.publisher()?;
    /// publisher.publish(&0)?;
    /// let refused = publisher.publish(&1).unwrap_err();
    /// assert_eq!(refused.kind(), outlive::ErrorKind::Timeout);
    /// assert_eq!(*slow.receive()?.expect("not overwritten"), 0);
    /// drop(slow); // leaves; nobody waits for the dead either
    /// publisher.publish(&2)?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reliable(mut self, reliable: bool) -> Self {
        self.options.reliable = reliable;
        self
    }

    /// For a publisher: how long one publish waits for the slowest live reliable subscriber; 1 s
    /// unless given, in every language. With zero it does not wait (`WouldBlock`).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let _slow = node.topic::<u64>("/step")?.depth(1).reliable(true).subscriber()?;
    /// let publisher = node.topic::<u64>("/step")?.reliable_timeout(Duration::ZERO).publisher()?;
    /// publisher.publish(&0)?;
    /// let refused = publisher.publish(&1).unwrap_err();
    /// assert_eq!(refused.kind(), outlive::ErrorKind::WouldBlock);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reliable_timeout(mut self, timeout: Duration) -> Self {
        self.options.reliable_timeout_ns = timeout.as_nanos().min(1 << 62) as u64;
        self
    }

    /// For a publisher: drops each message once every subscriber has read it, keeping none for late
    /// joiners, so that the next one reuses memory that is still in the cache. For large loans.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<[u8]>("/image")?.volatile(true).publisher()?;
    /// let mut early = node.topic::<[u8]>("/image")?.subscriber()?;
    /// publisher.publish(&[7; 100_000])?;
    /// assert_eq!(early.receive()?.expect("sent just now")[0], 7);
    /// let mut late = node.topic::<[u8]>("/image")?.history(1).subscriber()?;
    /// assert!(late.receive()?.is_none(), "no message is kept for it");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn volatile(mut self, volatile: bool) -> Self {
        self.options.volatile = volatile;
        self
    }

    /// For a publisher: whether its messages carry the time of publishing; `true` unless given.
    /// Without it [`Meta::timestamp_ns`](crate::topic::Meta::timestamp_ns) is 0, and among several
    /// publishers its messages count as the oldest.
    ///
    /// Reading the clock costs about 10 ns, and several times that in the latency of a small
    /// message to a subscriber that spins: nothing else in `publish` stalls the processor.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<u64>("/n")?.timestamps(false).publisher()?;
    /// let mut subscriber = node.topic::<u64>("/n")?.subscriber()?;
    /// publisher.publish(&7)?;
    /// assert_eq!(subscriber.receive()?.expect("sent just now").timestamp_ns(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn timestamps(mut self, timestamps: bool) -> Self {
        self.options.timestamps = timestamps;
        self
    }

    fn publisher_options(&self) -> PublisherOptions {
        PublisherOptions {
            memory_bytes_max: self.options.memory_bytes_max,
            depth: self.options.depth.map_or(0, u64::next_power_of_two),
            reliable_timeout_ns: self.options.reliable_timeout_ns,
            volatile: self.options.volatile,
            timestamps: self.options.timestamps,
        }
    }

    fn subscriber_options(&self) -> SubscriberOptions {
        SubscriberOptions {
            history: self.options.history,
            borrows: self.options.borrows,
            reliable: self.options.reliable,
        }
    }

    fn checked_depth(&self) -> Result<u64> {
        match self.options.depth {
            Some(n) if n == 0 || n > layout::DEPTH_MAX => Err(Error::new(
                ErrorKind::InvalidArgument,
                "opening topic",
                self.options.name.as_str(),
                format!("a depth of {n} is out of range: use 1 to {}", layout::DEPTH_MAX),
            )),
            depth => Ok(depth.unwrap_or(0)),
        }
    }

    fn meta(&self) -> Result<WantedMeta> {
        let depth = self.checked_depth()?;
        let wanted = match &self.options.payload_type {
            Some(payload_type) => WantedMeta::of_type(payload_type.clone()),
            None => WantedMeta::of::<T>(),
        };
        let mut wanted = WantedMeta { depth, ..wanted };
        wanted.of.name = self.options.type_name.clone().unwrap_or(wanted.of.name);
        wanted.of.schema = self.options.schema.clone().unwrap_or(wanted.of.schema);
        wanted.attributes.clone_from(&self.options.attributes);
        Ok(wanted)
    }

    /// Joins as a publisher, creating the topic if it does not exist. A topic of another type whose
    /// members are all dead or gone is replaced; what they sent is lost with it, read or not.
    ///
    /// # Errors
    /// `TypeMismatch` naming every field that differs and the live members; `InvalidArgument`;
    /// `NoSpace`; `Corrupt`, `VersionMismatch` or `NotOwned` naming the file.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the ring file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.topic::<f64>("/speed")?.publisher()?;
    /// publisher.publish(&1.5)?; // nobody needs to be there
    /// let other = node.topic::<f32>("/speed")?.publisher().unwrap_err();
    /// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
    /// drop(publisher); // the last member: the topic may have another type now
    /// node.topic::<f32>("/speed")?.publisher()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publisher(self) -> Result<Publisher<T>> {
        self.options.node.tend()?;
        let (wanted, options) = (self.meta()?, self.publisher_options());
        join_as_publisher(&self.options.node, self.options.name, Some(&wanted), options)
    }

    /// Joins as a subscriber, creating or replacing the topic as [`Builder::publisher`] does.
    ///
    /// # Errors
    /// As [`Builder::publisher`]; `InvalidArgument` for `borrows` out of range.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the `sub` file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut subscriber = node.topic::<f64>("/speed")?.subscriber()?; // creates the topic
    /// assert!(subscriber.receive()?.is_none());
    /// node.topic::<f64>("/speed")?.publisher()?.publish(&1.5)?;
    /// assert_eq!(*subscriber.receive()?.expect("its publisher may have left"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscriber(self) -> Result<Subscriber<T>> {
        self.options.node.tend()?;
        let (wanted, options) = (self.meta()?, self.subscriber_options());
        let reader = join_as_reader(&self.options.node, self.options.name, Some(&wanted), options)?;
        Ok(Subscriber::new(reader, false))
    }
}

impl Builder<[u8]> {
    /// Opens ports for payloads of a type known only at run time, instead of raw bytes. Payloads
    /// stay bytes: see [`PayloadType`]. Its publishers do not check their lengths, unlike those of
    /// queues: [`PayloadType::accepts`] does. A wrong one is `Corrupt` for its subscribers.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let f64s = outlive::PayloadType::of::<f64>(); // or made from a description at run time
    /// let publisher = node.topic::<[u8]>("/speed")?.of_type(&f64s).publisher()?;
    /// let mut subscriber = node.topic::<f64>("/speed")?.subscriber()?;
    /// publisher.publish(&1.5f64.to_le_bytes())?;
    /// assert_eq!(*subscriber.receive()?.expect("sent just now"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn of_type(mut self, payload_type: &PayloadType) -> Self {
        self.options.payload_type = Some(payload_type.clone());
        self
    }

    /// Joins an existing topic of any type and receives its payloads as bytes; for tools.
    ///
    /// # Errors
    /// `NotFound` when the topic does not exist; else as [`Builder::subscriber`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let any = || node.topic::<[u8]>("/speed");
    /// let nothing = any()?.subscriber_of_any_type().unwrap_err();
    /// assert_eq!(nothing.kind(), outlive::ErrorKind::NotFound);
    ///
    /// let publisher = node.topic::<f64>("/speed")?.publisher()?;
    /// let mut tool = any()?.subscriber_of_any_type()?;
    /// publisher.publish(&1.5)?;
    /// assert_eq!(*tool.receive()?.expect("sent just now"), 1.5f64.to_le_bytes());
    /// assert_eq!((tool.type_name(), tool.is_any_type()), ("f64", true));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscriber_of_any_type(self) -> Result<Subscriber<[u8]>> {
        self.options.node.tend()?;
        let options = self.subscriber_options();
        let reader = join_as_reader(&self.options.node, self.options.name, None, options)?;
        let any = reader.topic().meta.of.encoding != Encoding::Bytes;
        Ok(Subscriber::new(reader, any))
    }

    /// Joins an existing topic of any type and publishes payloads given as bytes; for tools. Bytes
    /// that are not a payload of the topic's type are refused by its subscribers, not here.
    ///
    /// # Errors
    /// `NotFound` when the topic does not exist; else as [`Builder::publisher`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Builder::publisher`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut subscriber = node.topic::<u32>("/n")?.subscriber()?;
    /// let tool = node.topic::<[u8]>("/n")?.publisher_of_any_type()?;
    /// tool.publish(&7u32.to_le_bytes())?;
    /// assert_eq!(*subscriber.receive()?.expect("sent just now"), 7);
    /// tool.publish(b"seven")?; // 5 bytes are not a u32: refused by the subscriber
    /// assert_eq!(subscriber.receive().unwrap_err().kind(), outlive::ErrorKind::Corrupt);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publisher_of_any_type(self) -> Result<Publisher<[u8]>> {
        self.options.node.tend()?;
        self.checked_depth()?;
        let options = self.publisher_options();
        join_as_publisher(&self.options.node, self.options.name, None, options)
    }
}

/// A joiner clears away what its predecessors left and nobody needs, and what others could not
/// remove that met it while they left. One that failed may leave a topic without a member: it takes
/// that away unless there are messages in it.
fn join_as_publisher<T: Payload + ?Sized>(
    node: &Node,
    name: TopicName,
    wanted: Option<&WantedMeta>,
    options: PublisherOptions,
) -> Result<Publisher<T>> {
    let (topic, joining) = Topic::join(node, name, wanted)?;
    let writer = Writer::open(&topic, options);
    drop(joining);
    let _ = if writer.is_ok() { topic.reclaim() } else { topic.undo_join() };
    Ok(Publisher::new(writer?))
}

/// As `join_as_publisher`.
fn join_as_reader(
    node: &Node,
    name: TopicName,
    wanted: Option<&WantedMeta>,
    options: SubscriberOptions,
) -> Result<Reader> {
    let (topic, joining) = Topic::join(node, name, wanted)?;
    let reader = Reader::open(Arc::clone(&topic), options);
    drop(joining);
    let _ = if reader.is_ok() { topic.reclaim() } else { topic.undo_join() };
    reader
}
