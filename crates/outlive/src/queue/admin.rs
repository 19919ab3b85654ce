//! Queues as tools see them: listing, cleaning, and the invariants of their bytes.
//!
//! | file | checked |
//! |---|---|
//! | every | header: magic, layout, kind, length; name and header agree |
//! | `consumer` | no lane has two slots; positions lie on records; progress is within its record |
//! | `lane` | each unread record is one that a producer writes; segments that are named are there |
//!
//! Not checked: payloads, and lanes that a consumer refused.

use std::path::Path;

use super::lane::ProducerId;
use super::lane::head::{Head, Next};
use super::lane::position::{Place, Position};
use super::lane::record::Shape;
use super::lane::segment::{Segment, segment_path};
use super::membership::entry::{self, Entry};
use super::membership::meta::Meta;
use super::membership::reclaim;
use super::membership::reclaim::{Unread, has_consumer};
use super::membership::table::Table;
use crate::domain::name::{TopicName, named_dirs};
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::node::peer::proof_by_name;
use crate::sync::AtomicU64;
use crate::types::{Encoding, PayloadType};
use crate::{ErrorKind, Result};

/// Messages that a look at a lane counts at most.
const COUNTED_MAX: u64 = 10_000_000;

/// A producer's lane.
///
/// Example: [`Domain::queues`](crate::Domain::queues).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaneInfo {
    /// Whose it is.
    pub producer: ProducerId,
    /// Whether its node is alive.
    pub alive: bool,
    /// Whether the producer left cleanly.
    pub closed: bool,
    /// Messages sent and not received yet.
    pub unread: u64,
    /// Messages received; updated by the consumer now and then.
    pub received: u64,
    /// Shared memory it takes, bytes.
    pub memory_bytes: u64,
}

/// A queue and who is there.
///
/// Example: [`Domain::queues`](crate::Domain::queues).
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
    align: usize,
    /// Whether messages carry a time stamp.
    pub stamped: bool,
    /// Description of the type for tools, as stored.
    pub schema: Vec<u8>,
    /// The node of the live consumer.
    pub consumer: Option<NodeId>,
    /// Lanes, including those of the dead and departed that are not drained.
    pub lanes: Vec<LaneInfo>,
}

impl Info {
    /// The type of its messages, to open it with ([`Builder::of_type`](crate::queue::Builder)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut producer = node.queue::<u32>("/ticks")?.producer()?;
    /// // A tool that was not built with the type:
    /// let queues = outlive::Domain::of_node(&node).queues()?;
    /// let ticks = queues[0].payload_type();
    /// let mut consumer = node.queue::<[u8]>("/ticks")?.of_type(&ticks).consumer()?;
    /// producer.send(&7)?;
    /// assert_eq!(&*consumer.receive()?.expect("sent just now"), 7u32.to_ne_bytes());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn payload_type(&self) -> PayloadType {
        let form = (self.element_bytes, self.align);
        PayloadType::from_parts(self.encoding, &self.type_name, form, self.schema.clone())
    }
}

/// All queues by name. Queues that are being made or removed are left out.
pub(crate) fn list(domain: &DomainPath) -> Result<Vec<Info>> {
    let mut out = Vec::new();
    for (name, dir) in named_dirs(&domain.queues())? {
        match info(domain, &name, &dir) {
            Ok(info) => out.push(info),
            // `check` says what is wrong with one that cannot be read.
            Err(e) if e.is_absent() => {}
            Err(e) => return Err(e),
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// Removes what no live member needs, unread messages too; returns files and whole queues.
pub(crate) fn clean(domain: &DomainPath) -> Result<(usize, usize)> {
    let (mut files, mut queues, mut strange) = (0, 0, None);
    for (_, dir) in named_dirs(&domain.queues())? {
        match reclaim::reclaim(domain, &dir, Unread::Remove) {
            Ok(r) => {
                files += r.files;
                queues += usize::from(r.removed_queue);
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // Told in the end: what is strange in one place keeps nobody from the others.
            Err(e) => strange = strange.or(Some(e)),
        }
    }
    strange.map_or(Ok((files, queues)), Err)
}

/// Checks all queues; returns the number of files looked at.
pub(crate) fn check(domain: &DomainPath, faults: &mut Vec<String>) -> Result<usize> {
    let mut files = 0;
    for (_, dir) in named_dirs(&domain.queues())? {
        match check_queue(domain, &dir, faults) {
            Ok(n) => files += n,
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => faults.push(e.into_fault()?),
        }
    }
    Ok(files)
}

/// Lanes with the numbers of their segments, in order.
pub(super) fn lanes(dir: &Path) -> Result<Vec<(ProducerId, Vec<u32>)>> {
    let mut lanes = reclaim::lanes(entry::list(dir)?);
    lanes.sort();
    Ok(lanes)
}

pub(crate) fn info(domain: &DomainPath, name: &TopicName, dir: &Path) -> Result<Info> {
    let meta = Meta::read(dir, &domain.access)?;
    let table = Table::open_existing(dir, domain)?;
    let mut out = Info {
        name: name.as_str().into(),
        type_name: meta.of.name.clone(),
        encoding: meta.of.encoding,
        element_bytes: meta.of.size,
        align: meta.of.align,
        stamped: meta.stamped,
        schema: meta.of.schema.clone(),
        consumer: if has_consumer(dir)? { table.owner().node() } else { None },
        lanes: Vec::new(),
    };
    for (id, segments) in lanes(dir)? {
        let newest = segments.iter().max().copied().unwrap_or(0);
        let segment = match Segment::open(dir, id, newest, domain) {
            Ok(segment) => segment,
            // Gone since, or `check` says what is wrong with it.
            Err(e) if e.is_absent() => continue,
            Err(e) => return Err(e),
        };
        let slot = table.find(id);
        let walk = Walk::from(&table, slot).run(domain, dir, id, &meta.shape());
        let bytes = |k: &u32| segment_path(dir, id, *k).metadata().map_or(0, |m| m.len());
        out.lanes.push(LaneInfo {
            producer: id,
            alive: proof_by_name(&domain.nodes(), id.node)?.is_none(),
            closed: segment.is_closed(),
            unread: walk.messages,
            received: slot.map_or(0, |slot| table.received_so_far(slot)),
            memory_bytes: segments.iter().map(bytes).sum(),
        });
    }
    Ok(out)
}

/// A walk over the unread part of a lane, which stores nothing.
struct Walk {
    from: Option<(Position, u32)>,
    messages: u64,
    /// Why it ended before the lane did: a fault, or a lack.
    broken: Option<Result<String>>,
}

impl Walk {
    fn from(table: &Table, slot: Option<usize>) -> Self {
        let start = Some((Position::START, 0));
        let from = slot.map_or(start, |slot| table.place(slot).peek());
        Self { from, messages: 0, broken: None }
    }

    fn run(mut self, domain: &DomainPath, dir: &Path, id: ProducerId, shape: &Shape) -> Self {
        let Some((at, done)) = self.from else { return self };
        if at.offset % shape.unit != 0 {
            self.broken = Some(Ok(format!("position {at:?} is inside a record")));
            return self;
        }
        // The walk keeps a position of its own.
        let (position, progress) = (AtomicU64::new(0), AtomicU64::new(0));
        let place = Place::new(&position, &progress);
        let mut head = Head::new(at, done);
        while self.messages < COUNTED_MAX {
            let segment = match Segment::open(dir, id, head.segment, domain) {
                Ok(segment) => segment,
                Err(e) => {
                    self.broken = Some(e.into_fault());
                    return self;
                }
            };
            loop {
                match head.next(segment.ring(), shape, place) {
                    Next::Item => {
                        self.messages += u64::from(head.items());
                        head.take(head.items(), place);
                    }
                    Next::Empty(_) => return self,
                    Next::Jump => break,
                    Next::Corrupt(what) => {
                        let at = head.at();
                        self.broken = Some(Ok(format!("{what} at {at} is out of range")));
                        return self;
                    }
                }
                if self.messages >= COUNTED_MAX {
                    return self;
                }
            }
            head.jump(place);
        }
        self
    }
}

pub(crate) fn check_queue(
    domain: &DomainPath,
    dir: &Path,
    faults: &mut Vec<String>,
) -> Result<usize> {
    let names = entry::list(dir)?;
    let (meta, table) = match (Meta::read(dir, &domain.access), Table::open_existing(dir, domain)) {
        (Ok(meta), Ok(table)) => (meta, table),
        (Err(e), _) | (_, Err(e)) if e.kind() == ErrorKind::NotFound => {
            // Being made or removed: then no lane may be in it any more.
            let names = entry::list(dir).unwrap_or_default();
            if names.iter().any(|e| matches!(e, Entry::Lane { .. })) {
                faults.push(format!("{}: a lane without meta or consumer", dir.display()));
            }
            return Ok(names.len());
        }
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };
    let mut seen = Vec::new();
    for (slot, id) in table.lanes() {
        if seen.contains(&id) {
            faults.push(format!("{}: producer {id} has two slots", dir.display()));
        }
        seen.push(id);
        // A slot without files is one whose lane was just ended: the next consumer frees it.
        if !names.iter().any(|e| matches!(e, Entry::Lane { owner, .. } if *owner == id)) {
            continue;
        }
        check_lane(domain, dir, (&table, slot), id, &meta.shape(), faults)?;
    }
    Ok(names.len())
}

fn check_lane(
    domain: &DomainPath,
    dir: &Path,
    (table, slot): (&Table, usize),
    id: ProducerId,
    shape: &Shape,
    faults: &mut Vec<String>,
) -> Result<()> {
    // A live consumer may move on while we read, and what it leaves behind be overwritten or gone:
    // then what was read says nothing.
    for _ in 0..3 {
        let walk = Walk::from(table, Some(slot)).run(domain, dir, id, shape);
        let (from, Some(broken)) = (walk.from, walk.broken) else { return Ok(()) };
        let broken = broken?;
        let names = match entry::list(dir) {
            Err(e) if !e.is_lack() => return Ok(()),
            names => names?,
        };
        let there = |e: &Entry| matches!(e, Entry::Lane { owner, .. } if *owner == id);
        let still = table.lane(slot) == Some(id)
            && table.place(slot).peek() == from
            && names.iter().any(there);
        if still {
            faults.push(format!("{}: lane {id}: {broken}", dir.display()));
            return Ok(());
        }
    }
    Ok(())
}
