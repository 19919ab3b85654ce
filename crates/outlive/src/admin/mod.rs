//! A domain as tools see it: listing, auditing and cleaning, without becoming a member.
//!
//! May use all others, and none uses it. Begin with `Domain`, here; `freed` counts the memory that
//! a removal frees.

use std::ffi::OsStr;
use std::path::Path;

use crate::domain::name::{TopicName, named_dirs};
use crate::domain::path::DomainPath;
use crate::lock::{self, LockInfo};
use crate::node::peer::{Peer, proof_by_name};
use crate::node::{Node, NodeBuilder, NodeId, Sweep, sweep_dead};
use crate::os::fs::file;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::queue;
use crate::rt;
use crate::service;
use crate::sync::fault;
use crate::topic::look::{audit, inspect};
use crate::topic::membership::entry::{Entry, list};
use crate::topic::membership::meta::Meta;
use crate::topic::membership::reclaim::reclaim;
use crate::topic::membership::ring_header::RingHeader;
use crate::topic::{self, PublisherId, PublisherInfo, SubscriberInfo};
use crate::{ErrorKind, Result};

/// How often an audit must find something to call it a fault.
const LOOKS: u32 = 3;
/// For what is under way in between, ns.
const BETWEEN_LOOKS_NS: u64 = 1_000_000;

mod freed;

/// A domain, seen from outside.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// let domain = outlive::Domain::of(&outlive::Node::builder().root(dir.path()))?;
/// let node = outlive::Node::builder().root(dir.path()).name("camera").open()?;
/// assert_eq!(domain.nodes()?[0].name, "camera");
/// drop(node);
/// domain.clean()?;
/// assert!(!dir.path().exists());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Domain {
    path: DomainPath,
}

/// A node file and its contents.
///
/// Example: [`Domain::nodes`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeInfo {
    /// Ordinal in the domain.
    pub id: NodeId,
    /// Process id in the node's own PID namespace; for people only.
    pub pid: u32,
    /// Name given at opening.
    pub name: String,
    /// When it joined, ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// Whether its file lock is held.
    pub alive: bool,
}

/// What [`Domain::clean`] removed and what it left.
///
/// Example: [`Domain::clean`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CleanReport {
    /// Node files and doorbells of dead nodes.
    pub node_files: usize,
    /// Files in topics.
    pub topic_files: usize,
    /// Whole topics.
    pub topics: usize,
    /// Files in queues.
    pub queue_files: usize,
    /// Whole queues; messages that nobody received go with them.
    pub queues: usize,
    /// Files in services.
    pub service_files: usize,
    /// Whole services.
    pub services: usize,
    /// Locks, sets and segments that nobody has open.
    pub locks: usize,
    /// Files of real-time channels and boards.
    pub realtime_files: usize,
    /// Shared memory of all removed files, bytes.
    pub bytes: u64,
    /// Nodes that are alive and were left alone.
    pub live_nodes: usize,
    /// Whether the domain itself was removed, because nobody is left.
    pub domain_removed: bool,
}

/// What [`Domain::audit`] looked at and found.
///
/// Example: [`Domain::audit`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AuditReport {
    /// Files whose invariants were checked.
    pub files: usize,
    /// One line for each broken invariant: file, what is wrong.
    pub faults: Vec<String>,
}

impl Domain {
    /// The domain that nodes with these settings join. Creates nothing.
    ///
    /// # Errors
    /// `InvalidName`; `NotOwned` when this user can have no directory on the RAM disk.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let settings = outlive::Node::builder().root(dir.path()).domain("arm");
    /// let domain = outlive::Domain::of(&settings)?;
    /// assert!(domain.nodes()?.is_empty() && !domain.dir().exists());
    /// let camera = settings.name("camera").open()?;
    /// assert_eq!(domain.nodes()?[0].id, camera.id());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn of(settings: &NodeBuilder) -> Result<Self> {
        Ok(Self { path: settings.domain_path()? })
    }

    /// The domain that `node` joined.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let domain = outlive::Domain::of_node(&node);
    /// assert_eq!(domain.nodes()?.len(), 1);
    /// drop(node); // the domain does not keep it
    /// assert!(domain.nodes()?.is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn of_node(node: &Node) -> Self {
        Self { path: node.domain().clone() }
    }

    /// Its name: the one given, or `$OUTLIVE_DOMAIN`, or `default`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let settings = outlive::Node::builder().root(dir.path()).domain("arm");
    /// let domain = outlive::Domain::of(&settings)?;
    /// assert_eq!(domain.name(), "arm");
    /// assert_eq!(domain.dir(), dir.path().join("arm"));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.path.dir.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// Its directory.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let settings = outlive::Node::builder().root(dir.path()).domain("arm");
    /// let domain = outlive::Domain::of(&settings)?;
    /// assert!(domain.dir().ends_with("arm") && !domain.dir().exists()); // nobody has joined
    /// let _node = settings.open()?;
    /// assert!(domain.dir().exists());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn dir(&self) -> &Path {
        &self.path.dir
    }

    /// The layout version of its files; `None` if there is no domain. This build's is
    /// [`LAYOUT_VERSION`](crate::LAYOUT_VERSION).
    ///
    /// # Errors
    /// Those of opening its file `id`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// let settings = outlive::Node::builder().root(dir.path());
    /// let domain = outlive::Domain::of(&settings)?;
    /// assert_eq!(domain.layout_version()?, None); // nobody has joined yet
    /// let _node = settings.open()?;
    /// assert_eq!(domain.layout_version()?, Some(outlive::LAYOUT_VERSION));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn layout_version(&self) -> Result<Option<u32>> {
        Ok(self.path.layout()?.map(|(version, _)| version))
    }

    /// `VersionMismatch` for a domain of another layout, which else would seem empty: nothing in it
    /// can be read.
    fn must_be_readable(&self) -> Result<()> {
        match self.path.layout()? {
            Some((_, Err(e))) if e.kind() == ErrorKind::VersionMismatch => Err(e),
            _ => Ok(()),
        }
    }

    /// `None` for what is not there, if the domain can be read.
    fn found<T>(&self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(e) if e.kind() == ErrorKind::NotFound => self.must_be_readable().map(|()| None),
            outcome => outcome.map(Some),
        }
    }

    /// All node files, in order of joining. Those that are gone, damaged or another user's are left
    /// out.
    ///
    /// # Errors
    /// Those of reading the directory, and its files, such as `Io` without a free descriptor;
    /// `VersionMismatch` for a domain of another layout. A domain that does not exist is empty.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let domain = outlive::Domain::of(&settings)?;
    /// let camera = settings.clone().name("camera").open()?;
    /// let planner = settings.name("planner").open()?;
    /// let nodes = domain.nodes()?;
    /// assert_eq!((nodes[0].name.as_str(), nodes[0].alive), ("camera", true));
    /// assert_eq!((nodes[1].id, nodes[1].pid), (planner.id(), std::process::id()));
    /// drop(camera); // left; one that was killed is listed as dead until it is cleaned up
    /// assert_eq!(domain.nodes()?.len(), 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn nodes(&self) -> Result<Vec<NodeInfo>> {
        self.must_be_readable()?;
        let dir = self.path.nodes();
        let mut out = Vec::new();
        for name in file::names_in(&dir)? {
            let Ok(ordinal) = name.parse() else { continue };
            let id = NodeId(ordinal);
            let peer = match Peer::open(&dir, id, &self.path.access) {
                Ok(peer) => peer,
                Err(e) if e.is_unreadable() => continue,
                // Nobody is left out, and so taken for dead, who could not be asked.
                Err(e) => return Err(e),
            };
            let (pid, started_ns, name) = peer.describe()?;
            out.push(NodeInfo {
                id,
                pid,
                name,
                started_ns,
                alive: peer.proof_of_death().is_none(),
            });
        }
        out.sort_by_key(|n| n.id);
        Ok(out)
    }

    /// All topics by name. Topics that are being created or removed are left out.
    ///
    /// # Errors
    /// Those of reading the directory; `VersionMismatch` for a domain of another layout.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let publisher = node.topic::<[f32]>("/scan")?.publisher()?;
    /// publisher.publish(&[0.5, 0.75, 1.0])?;
    /// let scan = &domain.topics()?[0];
    /// assert_eq!((scan.name.as_str(), scan.type_name.as_str()), ("/scan", "f32"));
    /// let of = &scan.publishers[0];
    /// assert_eq!((of.id, of.messages, of.payload_bytes), (publisher.id(), 1, 12));
    /// assert!(of.alive && !of.closed);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn topics(&self) -> Result<Vec<topic::Info>> {
        self.must_be_readable()?;
        let mut out = Vec::new();
        for (name, dir) in named_dirs(&self.path.topics())? {
            match self.topic(&name, &dir) {
                Ok(info) => out.push(info),
                // `audit` says what is wrong with one that cannot be read.
                Err(e) if e.is_unreadable() => {}
                Err(e) => return Err(e),
            }
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    /// The topic `name`; `None` if there is none, or it is being created or removed.
    ///
    /// # Errors
    /// `InvalidName`; those of reading its files.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let _subscriber = node.topic::<u64>("/count")?.subscriber()?;
    /// let count = domain.find_topic("/count")?.expect("opened above");
    /// assert_eq!((count.publishers.len(), count.subscribers), (0, vec![node.id()]));
    /// assert!(domain.find_topic("/cuont")?.is_none());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn find_topic(&self, name: &str) -> Result<Option<topic::Info>> {
        let name = TopicName::new(name)?;
        self.found(self.topic(&name, &self.path.topics().join(name.file())))
    }

    /// The subscribers of topic `name`, by node and port: what they hold and how far they have
    /// read. `None` if there is no such topic.
    ///
    /// # Errors
    /// As [`Domain::find_topic`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let publisher = node.topic::<[u8]>("/scan")?.publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/scan")?.borrows(2).subscriber()?;
    /// publisher.publish(&[7; 1000])?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    ///
    /// let seen = &domain.subscribers("/scan")?.expect("it exists")[0];
    /// assert_eq!((seen.borrows, seen.held.len()), (2, 1));
    /// assert_eq!((seen.held[0].publisher, seen.held[0].seq), (publisher.id(), Some(0)));
    /// assert_eq!(seen.sources[0].publisher, publisher.id());
    /// assert!(seen.sources[0].next <= 1); // updated now and then
    /// drop(sample);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscribers(&self, name: &str) -> Result<Option<Vec<SubscriberInfo>>> {
        let name = TopicName::new(name)?;
        self.found(inspect::subscribers(&self.path, &self.path.topics().join(name.file())))
    }

    /// When the messages in the ring of `publisher` of topic `name` were published: their numbers
    /// and ns of CLOCK_MONOTONIC, in order. Messages without a time stamp are left out; empty once
    /// the publisher is gone.
    ///
    /// # Errors
    /// `InvalidName`; those of reading its files.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let publisher = node.topic::<u64>("/count")?.publisher()?;
    /// publisher.publish(&7)?;
    /// publisher.publish(&8)?;
    /// let stamps = domain.publish_times("/count", publisher.id())?;
    /// assert_eq!((stamps[0].0, stamps[1].0), (0, 1));
    /// assert!(stamps[0].1 <= stamps[1].1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn publish_times(&self, name: &str, publisher: PublisherId) -> Result<Vec<(u64, u64)>> {
        let name = TopicName::new(name)?;
        let dir = self.path.topics().join(name.file());
        Ok(self.found(inspect::stamps(&self.path, &dir, publisher))?.unwrap_or_default())
    }

    fn topic(&self, name: &TopicName, dir: &Path) -> Result<topic::Info> {
        let meta = Meta::read(dir, &self.path.access)?;
        let mut publishers = Vec::new();
        let mut subscribers = Vec::new();
        for entry in list(dir)? {
            match entry {
                Entry::Publisher(id) => publishers.extend(self.publisher(dir, id, &meta)?),
                Entry::Subscriber { node, .. } => subscribers.push(node),
                _ => {}
            }
        }
        publishers.sort_by_key(|p| p.id);
        subscribers.sort();
        Ok(topic::Info {
            name: name.as_str().into(),
            type_name: meta.of.name,
            encoding: meta.of.encoding,
            element_bytes: meta.of.size,
            align: meta.of.align,
            depth: publishers.iter().map(|p| p.depth).max().unwrap_or(meta.depth),
            schema: meta.of.schema,
            attributes: meta.attributes,
            publishers,
            subscribers,
        })
    }

    fn publisher(&self, dir: &Path, id: PublisherId, meta: &Meta) -> Result<Option<PublisherInfo>> {
        let seen = RingHeader::open(dir, id, &self.path)
            .and_then(|header| Ok((header, inspect::count(&self.path, dir, id, meta)?)));
        let (header, count) = match seen {
            Ok(seen) => seen,
            Err(e) if e.is_unreadable() => return Ok(None),
            Err(e) => return Err(e),
        };
        let data = format!("data.{}.{}.", id.node, id.port);
        let names = file::names_in(dir)?;
        let segments = names.iter().filter(|n| n.starts_with(&data));
        let data_bytes: u64 =
            segments.filter_map(|n| dir.join(n).metadata().ok()).map(|m| m.len()).sum();
        Ok(Some(PublisherInfo {
            id,
            // Nobody counts as dead whose file cannot be asked.
            alive: !matches!(proof_by_name(&self.path.nodes(), id.node), Ok(Some(_))),
            closed: header.is_closed(),
            messages: count.messages,
            payload_bytes: count.payload_bytes,
            newest_ns: count.newest_ns,
            depth: count.depth,
            memory_bytes: header.file_bytes + data_bytes,
        }))
    }

    /// All queues by name. Queues that are being created or removed are left out.
    ///
    /// # Errors
    /// Those of reading the directory; `VersionMismatch` for a domain of another layout.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let consumer = node.queue::<u32>("/jobs")?.consumer()?;
    /// let mut producer = node.queue::<u32>("/jobs")?.producer()?;
    /// producer.send(&7)?;
    /// let jobs = &domain.queues()?[0];
    /// assert_eq!((jobs.name.as_str(), jobs.consumer), ("/jobs", Some(node.id())));
    /// assert_eq!((jobs.lanes[0].producer, jobs.lanes[0].unread), (producer.id(), 1));
    /// drop(consumer);
    /// assert_eq!(domain.queues()?[0].consumer, None); // the message waits for the next one
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn queues(&self) -> Result<Vec<queue::Info>> {
        self.must_be_readable()?;
        queue::admin::list(&self.path)
    }

    /// The messages of queue `name` that its consumer has not received yet, at most `max` of them,
    /// producer by producer. They stay where they are; those that the consumer receives meanwhile
    /// are left out. `None` if there is no such queue.
    ///
    /// # Errors
    /// `InvalidName`; those of reading its files.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let mut consumer = node.queue::<[u8]>("/jobs")?.consumer()?;
    /// node.queue::<[u8]>("/jobs")?.producer()?.send(b"one")?;
    /// let unread = domain.unread("/jobs", 10)?.expect("it exists");
    /// assert_eq!((unread.len(), unread[0].timestamp_ns), (1, None)); // without time stamps
    /// assert_eq!(unread[0].payload, b"one");
    /// assert_eq!(&*consumer.receive()?.expect("still there"), b"one");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn unread(&self, name: &str, max: usize) -> Result<Option<Vec<queue::Unread>>> {
        let name = TopicName::new(name)?;
        self.found(queue::peek::unread(&self.path, &self.path.queues().join(name.file()), max))
    }

    /// All services by name. Services that are being created or removed are left out.
    ///
    /// # Errors
    /// Those of reading the directory; `VersionMismatch` for a domain of another layout.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let mut server = node.service::<f64, f64>("/root")?.server()?;
    /// let mut client = node.service::<f64, f64>("/root")?.client()?;
    /// client.send(&2.25)?;
    /// let root = &domain.services()?[0];
    /// assert_eq!((root.name.as_str(), root.unread), ("/root", 1));
    /// assert_eq!((root.server, root.clients.len()), (Some(node.id()), 1));
    /// assert_eq!((root.request.name(), root.response.name()), ("f64", "f64"));
    /// # server.receive()?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn services(&self) -> Result<Vec<service::Info>> {
        self.must_be_readable()?;
        service::admin::list(&self.path)
    }

    /// All locks, sets and segments by name. Files that cannot be read are left out.
    ///
    /// # Errors
    /// Those of reading the directory; `VersionMismatch` for a domain of another layout.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// use outlive::lock::LockState;
    ///
    /// let battery = node.mutex::<f64>("/battery")?;
    /// let guard = battery.lock()?;
    /// let lock = &domain.locks()?[0];
    /// assert_eq!((lock.name.as_str(), lock.data_bytes), ("/battery", 8));
    /// assert!(matches!(lock.state, LockState::Held { node: by, .. } if by == node.id()));
    /// drop(guard);
    /// assert_eq!(domain.locks()?[0].state, LockState::Free);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn locks(&self) -> Result<Vec<LockInfo>> {
        self.must_be_readable()?;
        lock::object::admin::list(&self.path)
    }

    /// Removes the lock, set or segment `name`, as [`Node::remove_lock`] does; false if there is
    /// none.
    ///
    /// # Errors
    /// `InvalidName`; `WouldBlock` while somebody has it open, unless it is an unrecoverable lock;
    /// `Timeout` after 10 s when a stopped process is removing locks; `VersionMismatch` for a
    /// domain of another layout.
    ///
    /// # Crash safety
    /// **Strict.** One unlink.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// drop(node.mutex::<u64>("/map")?);
    /// assert!(domain.remove_lock("/map")? && !domain.remove_lock("/map")?);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn remove_lock(&self, name: &str) -> Result<bool> {
        self.must_be_readable()?;
        lock::object::admin::remove_named(&self.path, name)
    }

    /// Removes everything that dead processes left behind and no live one needs, and the domain's
    /// directory, too, when nobody is left. Never touches what a live or stopped process uses. A
    /// domain of another layout is removed as a whole, once nobody is left in it.
    ///
    /// # Errors
    /// `Timeout` when a stopped process holds the domain's lock; else the first problem found,
    /// after cleaning everything else: `Timeout`, too, when a stopped process is removing locks.
    ///
    /// # Crash safety
    /// **Strict.** After a death at any point the next call continues.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let subscriber = node.topic::<u64>("/count")?.subscriber()?;
    /// let report = domain.clean()?;
    /// assert_eq!((report.live_nodes, report.topics, report.domain_removed), (1, 0, false));
    /// drop((subscriber, node));
    /// assert!(domain.clean()?.domain_removed && !domain.dir().exists());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn clean(&self) -> Result<CleanReport> {
        let mut report = CleanReport::default();
        let Some(lock) = self.path.lock_existing()? else { return Ok(report) };
        let mut strange = None;
        let before = freed::Before::of(self.dir());
        for (_, dir) in named_dirs(&self.path.topics())? {
            match reclaim(&self.path, &dir) {
                Ok(r) => {
                    report.topic_files += r.files;
                    report.topics += usize::from(r.removed_topic);
                }
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                // Told in the end: what is strange in one place keeps nobody from the others.
                Err(e) => strange = strange.or(Some(e)),
            }
        }
        match queue::admin::clean(&self.path) {
            Ok(done) => (report.queue_files, report.queues) = done,
            Err(e) => strange = strange.or(Some(e)),
        }
        match service::admin::clean(&self.path) {
            Ok(done) => (report.service_files, report.services) = done,
            Err(e) => strange = strange.or(Some(e)),
        }
        match lock::object::admin::clean(&self.path) {
            Ok(done) => report.locks = done,
            Err(e) => strange = strange.or(Some(e)),
        }
        match rt::channel::file::clean(&self.path) {
            Ok(done) => report.realtime_files = done,
            Err(e) => strange = strange.or(Some(e)),
        }
        match sweep_dead(&self.path, Sweep::All) {
            Ok(done) => report.node_files = done,
            Err(e) => strange = strange.or(Some(e)),
        }
        // The sweep has left those that are alive, whether this process can read them or not.
        report.live_nodes = file::names_in(&self.path.nodes())?.iter().filter(is_node_file).count();
        if lock.is_of_another_layout() {
            strange = None;
            if report.live_nodes == 0 {
                lock.remove_contents()?;
            }
        }
        if report.live_nodes == 0 {
            report.domain_removed = lock.remove_domain()?;
        }
        report.bytes = before.freed();
        strange.map_or(Ok(report), Err)
    }

    /// Checks the invariants of all files of the domain, read-only, while members keep running.
    ///
    /// Not checked: payloads, and whether a borrowed chunk is also free in its publisher's
    /// private list.
    ///
    /// # Errors
    /// Those of reading directories; `OutOfMemory` and `Io` when this process has no memory or no
    /// descriptors left to look at a file. A broken invariant, or a file that cannot be read for
    /// another reason, is not an error but a fault in the report.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Domain;
    ///
    /// let publisher = node.topic::<u64>("/counter")?.publisher()?;
    /// publisher.publish(&1)?;
    /// let report = Domain::of_node(&node).audit()?;
    /// assert!(report.files > 0 && report.faults.is_empty());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn audit(&self) -> Result<AuditReport> {
        let mut report = self.look()?;
        // Files are listed, then read: a member that leaves meanwhile looks like a fault for once.
        for _ in 1..if fault("audit.looks_once") { 1 } else { LOOKS } {
            if report.faults.is_empty() {
                break;
            }
            sched::sleep_until(Deadline::in_ns(BETWEEN_LOOKS_NS));
            let before: Vec<_> = report.faults.iter().map(|fault| object_of(fault)).collect();
            let mut seen = self.look()?.faults;
            seen.retain(|fault| before.contains(&object_of(fault)));
            report.faults = seen;
        }
        Ok(report)
    }

    fn look(&self) -> Result<AuditReport> {
        let mut report = AuditReport::default();
        let nodes = self.path.nodes();
        for name in file::names_in(&nodes)? {
            let Ok(ordinal) = name.parse() else { continue };
            report.files += 1;
            match Peer::open(&nodes, NodeId(ordinal), &self.path.access) {
                Ok(peer) => audit::check_node(&peer, &mut report.faults)?,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => report.faults.push(e.into_fault()?),
            }
        }
        for (_, dir) in named_dirs(&self.path.topics())? {
            match audit::check_topic(&self.path, &dir, &mut report.faults) {
                Ok(files) => report.files += files,
                Err(e) => report.faults.push(e.into_fault()?),
            }
        }
        report.files += queue::admin::check(&self.path, &mut report.faults)?;
        report.files += service::admin::check(&self.path, &mut report.faults)?;
        report.files += lock::object::admin::check(&self.path, &mut report.faults)?;
        report.files += rt::channel::file::check(&self.path, &mut report.faults)?;
        Ok(report)
    }
}

/// What a fault is of: its text begins so.
fn object_of(fault: &str) -> &str {
    fault.split_once(": ").map_or(fault, |(object, _)| object)
}

fn is_node_file(name: &&String) -> bool {
    name.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests;
