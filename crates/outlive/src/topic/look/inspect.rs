//! What tools see of a topic: its publishers and subscribers, what they hold, how far they are.
//!
//! Everything is read from outside and read-only, while members go on: each number was true at some
//! moment during the look. How long a sample has been held is not recorded.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::node::peer::{Peer, Place};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Acquire;
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::membership::entry::{Entry, PublisherId, list, ring_path};
use crate::topic::membership::meta::Meta;
use crate::topic::ring::entries::{Descriptor, ENTRY_HEAD_WORDS};
use crate::topic::ring::layout;
use crate::topic::ring::layout::ring;
use crate::types::describe::TypeDescription;
use crate::types::encoding::Encoding;
use crate::types::payload_type::PayloadType;
use crate::{Error, ErrorKind, Result};

/// Looks at a counter that moves under our eyes.
const LOOKS_MAX: usize = 8;

/// A publisher's ring and its counters.
///
/// Example: [`Domain::topics`](crate::Domain::topics).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PublisherInfo {
    /// Who it is.
    pub id: PublisherId,
    /// Whether its node is alive.
    pub alive: bool,
    /// Whether it left cleanly.
    pub closed: bool,
    /// Messages published.
    pub messages: u64,
    /// Payload bytes published.
    pub payload_bytes: u64,
    /// When the newest message was published, ns of CLOCK_MONOTONIC; `None` while there is none,
    /// when a volatile publisher has withdrawn it, or without time stamps.
    pub newest_ns: Option<u64>,
    /// Messages that its ring holds.
    pub depth: u64,
    /// Shared memory it takes, bytes.
    pub memory_bytes: u64,
}

/// A topic and who is there.
///
/// Example: [`Domain::topics`](crate::Domain::topics).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Its name.
    pub name: String,
    /// Type that all members agree on.
    pub type_name: String,
    /// How payloads are encoded.
    pub encoding: Encoding,
    /// Size of the type, or of one element, bytes.
    pub element_bytes: usize,
    pub(crate) align: usize,
    /// Messages that the deepest ring holds; without rings, what one of a publisher that does not
    /// ask for a depth would hold.
    pub depth: u64,
    /// Description of the type for tools, as stored; see [`Info::description`].
    pub schema: Vec<u8>,
    /// Its attributes, set by its creator.
    pub attributes: BTreeMap<String, String>,
    /// Rings, including those of the dead and departed that are still readable.
    pub publishers: Vec<PublisherInfo>,
    /// Nodes of the subscribers.
    pub subscribers: Vec<NodeId>,
}

impl Info {
    /// The type of its messages, to open it with ([`Builder::of_type`](crate::topic::Builder)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let publisher = node.topic::<f64>("/speed")?.publisher()?;
    /// let info = domain.find_topic("/speed")?.expect("opened above");
    /// let tool = node.topic::<[u8]>("/speed")?.of_type(&info.payload_type());
    /// let mut tool = tool.subscriber()?;
    /// publisher.publish(&1.5)?;
    /// assert_eq!(*tool.receive()?.expect("sent just now"), 1.5f64.to_le_bytes());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn payload_type(&self) -> PayloadType {
        let form = (self.element_bytes, self.align);
        PayloadType::from_parts(self.encoding, &self.type_name, form, self.schema.clone())
    }

    /// What payloads look like, if the topic's first member described its type.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let settings = outlive::Node::builder().root(dir.path());
    /// # let (domain, node) = (outlive::Domain::of(&settings)?, settings.open()?);
    /// let _publisher = node.topic::<outlive::msg::Twist>("/speed")?.publisher()?;
    /// let info = domain.find_topic("/speed")?.expect("opened above");
    /// let twist = info.description().expect("described by its type");
    /// let fields: Vec<_> = twist.fields().iter().map(|field| field.name()).collect();
    /// assert_eq!(fields, ["header", "linear", "angular"]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn description(&self) -> Option<TypeDescription> {
        TypeDescription::parse(&self.schema).ok()
    }
}

/// A subscriber port and its state.
///
/// Example: [`Domain::subscribers`](crate::Domain::subscribers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SubscriberInfo {
    /// Its node.
    pub node: NodeId,
    /// Number of the port within the node; never reused.
    pub port: u64,
    /// Whether its node is alive. The state of a dead one is its last.
    pub alive: bool,
    /// Whether publishers wait for it before they overwrite what it has not read.
    pub reliable: bool,
    /// Whether it sleeps until a message comes.
    pub waiting: bool,
    /// Samples it may hold at once.
    pub borrows: u64,
    /// Publishers that it reads.
    pub sources: Vec<SourceInfo>,
    /// Samples it holds. Small payloads travel inside the ring and are not held.
    pub held: Vec<HeldInfo>,
}

/// How far a subscriber has read a publisher.
///
/// Example: [`Domain::subscribers`](crate::Domain::subscribers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceInfo {
    /// The publisher.
    pub publisher: PublisherId,
    /// The message it reads next. Updated when it finds nothing to read and every few messages, so
    /// it may have read more.
    pub next: u64,
}

/// A sample that a subscriber holds.
///
/// Example: [`Domain::subscribers`](crate::Domain::subscribers).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeldInfo {
    /// Whose message it is.
    pub publisher: PublisherId,
    /// Its number, while the publisher's ring still names it; `None` once it is overwritten.
    pub seq: Option<u64>,
    /// Segment of the publisher's memory.
    pub segment: u16,
    /// Chunk within the segment.
    pub chunk: u32,
}

/// The subscribers of the topic in `dir`, by node and port.
pub(crate) fn subscribers(domain: &DomainPath, dir: &Path) -> Result<Vec<SubscriberInfo>> {
    let meta = Meta::read(dir, &domain.access)?;
    let mut out = Vec::new();
    let mut rings = HashMap::new();
    for entry in list(dir)? {
        let Entry::Subscriber { node, port } = entry else { continue };
        let peer = match Peer::open(&domain.nodes(), node, &domain.access) {
            Ok(peer) => peer,
            // Its file goes before its port in the topic does.
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            Err(e) => return Err(e),
        };
        out.extend(subscriber(&peer, port, |id, location| {
            let named = rings.entry(id).or_insert_with(|| named_chunks(domain, dir, id, &meta));
            named.get(&location).copied()
        })?);
    }
    out.sort_by_key(|s| (s.node, s.port));
    Ok(out)
}

/// `None` when the port is closed by now.
fn subscriber(
    peer: &Peer,
    port_id: u64,
    mut seq_of: impl FnMut(PublisherId, Location) -> Option<u64>,
) -> Result<Option<SubscriberInfo>> {
    let Some(view) = peer.claimed_port(port_id)? else { return Ok(None) };
    // ORDERING(PORT_ID): pairs with `Ports::allocate`; carries the zeroed block.
    if view.id().load(Acquire) != port_id {
        return Ok(None);
    }
    let sources: Vec<_> = (0..view.sources())
        .filter_map(|slot| {
            let Place { node, port, cursor, changes } = view.source(slot);
            let before = changes.load(Acquire);
            let publisher =
                PublisherId { node: NodeId(node.load(Acquire)), port: port.load(Acquire) };
            let info = SourceInfo { publisher, next: cursor.load(Acquire) };
            let settled = before % 2 == 0 && changes.load(Acquire) == before;
            (settled && publisher.port != 0).then_some((slot, info))
        })
        .collect();
    let mut held = Vec::new();
    for hazard in view.hazards() {
        let word = hazard.load(Acquire);
        let owner = sources.iter().find_map(|(slot, s)| Some((s, hazard::held_by(word, *slot)?)));
        let Some((source, location)) = owner else { continue };
        let (segment, chunk) = (location.segment(), location.chunk());
        let publisher = source.publisher;
        held.push(HeldInfo { publisher, seq: seq_of(publisher, location), segment, chunk });
    }
    held.sort_by_key(|h| (h.publisher, h.seq));
    Ok(Some(SubscriberInfo {
        node: peer.id(),
        port: port_id,
        alive: peer.proof_of_death().is_none(),
        reliable: view.reliable().load(Acquire) != 0,
        waiting: view.waiting().load(Acquire) != 0,
        borrows: view.borrows().load(Acquire),
        sources: sources.into_iter().map(|(_, info)| info).collect(),
        held,
    }))
}

/// Which message lies in which chunk, as far as the ring says. Empty if it cannot be read.
fn named_chunks(
    domain: &DomainPath,
    dir: &Path,
    id: PublisherId,
    meta: &Meta,
) -> HashMap<Location, u64> {
    let Ok(ring) = Ring::open(domain, dir, id, meta) else { return HashMap::new() };
    let named = |index: u64| {
        let at = ring.entry(index);
        let seq = ring.word(at);
        let chunk = matches!(Descriptor::decode(ring.word(at + 16))?, Descriptor::Chunk { .. });
        let location = Location::decode(ring.word(at + ENTRY_HEAD_WORDS * 8))?;
        let committed = seq != 0 && seq % 2 == 0 && ring.word(at) == seq;
        (chunk && committed).then(|| (location, seq / 2 - 1))
    };
    (0..ring.depth).filter_map(named).collect()
}

/// Counters of a ring that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub(crate) messages: u64,
    pub(crate) payload_bytes: u64,
    /// When the newest of them was published, if that is said and still there.
    pub(crate) newest_ns: Option<u64>,
    /// Messages that the ring holds.
    pub(crate) depth: u64,
}

/// Messages and bytes of publisher `id`, with the time stamp of the newest message.
pub(crate) fn count(
    domain: &DomainPath,
    dir: &Path,
    id: PublisherId,
    meta: &Meta,
) -> Result<Count> {
    let ring = Ring::open(domain, dir, id, meta)?;
    let mut count = Count { messages: 0, payload_bytes: 0, newest_ns: None, depth: ring.depth };
    for _ in 0..LOOKS_MAX {
        count.messages = ring.word(ring::HEAD);
        count.payload_bytes = ring.word(ring::PAYLOAD_BYTES);
        let Some(newest) = count.messages.checked_sub(1) else { break };
        let at = ring.entry(newest % ring.depth);
        let committed = |seq: u64| seq == newest.wrapping_mul(2).wrapping_add(2);
        let before = ring.word(at);
        let newest_ns = ring.word(at + 8);
        let whole = committed(before) && committed(ring.word(at));
        count.newest_ns = Some(newest_ns).filter(|ns| whole && *ns != 0);
        if ring.word(ring::HEAD) == count.messages {
            break;
        }
    }
    Ok(count)
}

/// Numbers and time stamps of the messages in the ring of publisher `id`, by number.
pub(crate) fn stamps(domain: &DomainPath, dir: &Path, id: PublisherId) -> Result<Vec<(u64, u64)>> {
    let meta = Meta::read(dir, &domain.access)?;
    let ring = Ring::open(domain, dir, id, &meta)?;
    let stamp = |index: u64| {
        let at = ring.entry(index);
        let (seq, stamp_ns) = (ring.word(at), ring.word(at + 8));
        let committed = seq != 0 && seq % 2 == 0 && ring.word(at) == seq;
        (committed && stamp_ns != 0).then(|| (seq / 2 - 1, stamp_ns))
    };
    let mut stamps: Vec<_> = (0..ring.depth).filter_map(stamp).collect();
    stamps.sort_unstable();
    Ok(stamps)
}

/// A whole ring, mapped to read.
pub(in crate::topic) struct Ring {
    map: Mapping,
    entry_bytes: usize,
    pub(in crate::topic) depth: u64,
}

impl Ring {
    /// # Errors
    /// `Corrupt` where it is shorter than it says.
    pub(in crate::topic) fn open(
        domain: &DomainPath,
        dir: &Path,
        id: PublisherId,
        meta: &Meta,
    ) -> Result<Self> {
        let path = ring_path(dir, id);
        let owner = domain.access.owner_required();
        let expect = Expect { writable: false, min_len: ring::ENTRIES as u64, owner };
        let (fd, file_bytes) = file::open_checked(&path, expect)?;
        let bytes_max = layout::ring_bytes(layout::DEPTH_MAX as usize, meta.entry_bytes);
        let map = Mapping::map_peer(&fd, (file_bytes as usize).min(bytes_max), &path)?;
        FileHeader::read(&map, FileKind::Ring, file_bytes)?;
        let depth = map.atomic_u64(ring::DEPTH)?.load(Acquire);
        let fits = |depth| layout::ring_bytes(depth as usize, meta.entry_bytes) <= map.len();
        if !layout::is_depth(depth) || !fits(depth) {
            let remedy = "its depth is out of range: restart its publisher";
            let path = path.display().to_string();
            return Err(Error::new(ErrorKind::Corrupt, "reading", path, remedy));
        }
        Ok(Self { map, entry_bytes: meta.entry_bytes, depth })
    }

    pub(in crate::topic) fn entry(&self, index: u64) -> usize {
        ring::ENTRIES + index as usize * self.entry_bytes
    }

    pub(in crate::topic) fn word(&self, offset: usize) -> u64 {
        self.map.atomic_u64(offset).map_or(0, |word| word.load(Acquire))
    }
}
