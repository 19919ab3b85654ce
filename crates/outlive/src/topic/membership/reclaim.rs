//! Removing what no member of a topic needs any more.
//!
//! What cannot be undone takes its proof: `Dead` for a subscriber's file, `Over` for a ring and its
//! data, `Deserted` for the topic as a whole. An answer that cannot be had is no proof, and stays.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::entry::{Entry, PublisherId, list, ring_path};
use super::meta::Meta;
use super::ring_header::RingHeader;
use crate::domain::bell::{Bell, in_rounds};
use crate::domain::path::DomainPath;
use crate::domain::removing::Removing;
use crate::node::NodeId;
use crate::node::peer::{Dead, Peer, proof_by_name, unlink_of};
use crate::os::fs::file;
use crate::os::fs::file::TMP_PREFIX;
use crate::sync::Ordering::Acquire;
use crate::sync::fault;
use crate::topic::ring::layout::ring;
use crate::topic::ring::listing::Listing;
use crate::{ErrorKind, Result};

/// Dead or closed rings that are kept for late joiners, beyond what live subscribers need.
const RETAINED_RINGS_MAX: usize = 4;
/// Rings that are kept for a subscriber that has not looked at them yet, however large they are.
const UNSEEN_RINGS_MIN: usize = 16;
/// And as many while all that is kept takes no more than this: one that sleeps through more
/// generations of a crashing publisher misses the oldest; the RAM disk does not fill up.
const UNSEEN_RINGS_MAX: usize = 64;
const UNSEEN_BYTES_MAX: u64 = 64 << 20;

/// What a look at a topic removed and what it left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    pub(crate) files: usize,
    /// Nodes of live members, one for each member.
    pub(crate) living: Vec<NodeId>,
    /// Somebody was joining or cleaning, so that nothing was looked at.
    pub(crate) busy: bool,
    pub(crate) removed_topic: bool,
}

/// Proof that a ring's publisher writes no more: its node is dead, or it said so itself.
#[derive(Clone, Copy, Debug)]
enum Over {
    Dead(#[allow(dead_code, reason = "the proof itself; nobody needs to ask whose it is")] Dead),
    Closed,
}

/// A ring of one that is over; `None` for the header of one that nobody can read.
struct Ring {
    id: PublisherId,
    header: Option<RingHeader>,
    over: Over,
}

/// Proof that a topic has no live member, by a look at all of them under its directory's lock.
struct Deserted(());

/// What becomes of the messages in a topic without a live member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::topic) enum Messages {
    /// They go with it: its last member has left, or somebody cleans.
    Go,
    /// They stay, and it with them, for who joins next: who asks could not join itself.
    Stay,
    /// As `Go`, and of those that are over only what a live subscriber has yet to read stays: the
    /// RAM disk is full, and the living come before those that may join late.
    Unread,
}

/// Removes what the dead left in the topic at `dir`; the whole topic if no live member is left.
///
/// # Errors
/// The first lack that kept it from judging a member, after all else was done.
///
/// # Crash safety
/// **Strict.** `pub` goes before its `data`, `meta` last: what remains is found by the next look.
pub(crate) fn reclaim(domain: &DomainPath, dir: &Path) -> Result<Reclaimed> {
    reclaim_by(domain, dir, Bell::existing(dir, domain)?.as_ref(), Messages::Go)
}

/// The same by one that could not join: of the dead it removes nothing that may be read yet.
pub(in crate::topic) fn undo_join(domain: &DomainPath, dir: &Path) -> Result<Reclaimed> {
    reclaim_by(domain, dir, Bell::existing(dir, domain)?.as_ref(), Messages::Stay)
}

/// The same by who knows the bell already.
pub(in crate::topic) fn reclaim_by(
    domain: &DomainPath,
    dir: &Path,
    bell: Option<&Bell>,
    messages: Messages,
) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    in_rounds(bell, || {
        let round = reclaim_once(domain, dir, messages)?;
        out = Reclaimed { files: out.files + round.files, ..round };
        Ok(out.busy || out.removed_topic)
    })?;
    Ok(out)
}

fn reclaim_once(domain: &DomainPath, dir: &Path, messages: Messages) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    let Some(removing) = Removing::begin(dir)? else {
        out.busy = true;
        return Ok(out);
    };
    out.files += removing.remove_unfinished()?;
    let names = removing.names();
    let mut alive = Liveness { domain, known: HashMap::new() };
    let (mut subscribers, mut rings) = (Vec::new(), Vec::new());
    let mut unknown = None;
    for name in names {
        match Entry::parse(name) {
            Entry::Subscriber { node, port } => {
                if let Some(dead) = alive.death(node)? {
                    out.files += usize::from(unlink_of(dead, node, &dir.join(name))?);
                } else {
                    out.living.push(node);
                    subscribers.push((node, port));
                }
            }
            Entry::Publisher(id) => {
                let dead = alive.death(id.node)?.map(Over::Dead);
                let header = RingHeader::open(dir, id, domain);
                let over = match &header {
                    Ok(header) => dead.or(header.is_closed().then_some(Over::Closed)),
                    Err(e) if e.kind() == ErrorKind::NotFound => continue,
                    // Nobody can read it, and nobody lives who could mend it.
                    Err(e) if e.kind() == ErrorKind::Corrupt => dead,
                    // Not to be judged from here: no memory to map it, another layout.
                    Err(e) => {
                        let lack = e.is_lack() && !fault("reclaim.unmapped_lives");
                        unknown = unknown.or_else(|| lack.then(|| e.clone()));
                        None
                    }
                };
                match over {
                    Some(over) => rings.push(Ring { id, header: header.ok(), over }),
                    None => out.living.push(id.node),
                }
            }
            _ => {}
        }
    }
    if out.living.is_empty() {
        let held = |ring: &Ring| ring.header.as_ref().is_some_and(|h| h.history() > 0);
        if messages == Messages::Stay && rings.iter().any(held) && !fault("join.failed_cleans") {
            return Ok(out);
        }
        let (files, removed_topic) = remove_topic(&removing, &Deserted(()))?;
        return Ok(Reclaimed { files: out.files + files, removed_topic, ..out });
    }
    out.files += remove_old_rings(domain, dir, names, rings, &subscribers, messages)?;
    unknown.map_or(Ok(out), Err)
}

struct Liveness<'a> {
    domain: &'a DomainPath,
    known: HashMap<NodeId, Option<Dead>>,
}

impl Liveness<'_> {
    /// Whether the node is dead for certain. An answer that cannot be had is an error: nothing is
    /// removed on a guess.
    fn death(&mut self, node: NodeId) -> Result<Option<Dead>> {
        if let Some(known) = self.known.get(&node) {
            return Ok(*known);
        }
        let death = proof_by_name(&self.domain.nodes(), node)?;
        self.known.insert(node, death);
        Ok(death)
    }
}

/// Everything of a topic without live members; `bell` and `meta` last, so that no member's file
/// outlives them.
fn remove_topic(removing: &Removing, _: &Deserted) -> Result<(usize, bool)> {
    removing.remove_all(|name| match Entry::parse(name) {
        Entry::Publisher(_) => Some(0),
        Entry::Bell => Some(2),
        Entry::Meta => Some(3),
        Entry::Unknown if !name.starts_with(TMP_PREFIX) => None,
        _ => Some(1),
    })
}

/// Rings of the dead and departed that every live subscriber has looked at, beyond the history.
fn remove_old_rings(
    domain: &DomainPath,
    dir: &Path,
    names: &[String],
    rings: Vec<Ring>,
    subscribers: &[(NodeId, u64)],
    messages: Messages,
) -> Result<usize> {
    let mut removed = 0;
    if !rings.is_empty() {
        removed += remove_read_rings(domain, dir, names, rings, subscribers, messages)?;
    }
    // Data whose ring is gone: its remover died in between.
    if names.iter().any(|name| matches!(Entry::parse(name), Entry::Data { .. })) {
        let left: HashSet<_> = list(dir)?.into_iter().collect();
        removed += remove_data(dir, names, |owner| !left.contains(&Entry::Publisher(owner)))?;
    }
    Ok(removed)
}

fn remove_read_rings(
    domain: &DomainPath,
    dir: &Path,
    names: &[String],
    mut rings: Vec<Ring>,
    subscribers: &[(NodeId, u64)],
    messages: Messages,
) -> Result<usize> {
    let open = |node| Peer::open(&domain.nodes(), node, &domain.access).ok();
    let subscribers: Vec<_> = subscribers.iter().map(|(node, port)| (open(*node), *port)).collect();
    // As deep as the deepest ring; what cannot be read now may be so deep.
    let mut depth = match Meta::read(dir, &domain.access) {
        Ok(meta) => meta.depth,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) => 0,
        Err(e) => return Err(e),
    };
    let mut history = 0u64;
    let (mut retained, mut unseen) = (0, Unseen::default());
    let mut removed = 0;
    for name in names {
        if let Entry::Publisher(id) = Entry::parse(name)
            && !rings.iter().any(|ring| ring.id == id)
            && let Some(header) = look_at_ring(dir, id, domain)?
        {
            history = history.saturating_add(header.history());
            depth = depth.max(header.depth());
        }
    }
    depth = rings.iter().flat_map(|ring| &ring.header).fold(depth, |d, h| d.max(h.depth()));
    // Youngest first.
    let birth = |ring: &Ring| ring.header.as_ref().map_or(0, RingHeader::birth);
    match fault("reclaim.node_is_age") {
        true => rings.sort_by_key(|ring| Reverse((ring.id.node, ring.id.port))),
        false => rings.sort_by_key(|ring| Reverse((birth(ring), ring.id))),
    }
    let data = data_files(names);
    let bytes = |files: &Vec<&str>| bytes_of(dir, files);
    for Ring { id, header, over } in rings {
        let (head, born) = header.as_ref().map_or((0, 0), |h| (h.messages(), h.u64_at(ring::BORN)));
        let own_history = header.as_ref().map_or(0, RingHeader::history);
        let uses: Vec<_> =
            subscribers.iter().map(|(peer, port)| use_of(peer.as_ref(), *port, id, born)).collect();
        let unread = head > 0 && !fault("reclaim.unread_ring");
        // Those that one reads are as many as it has places, and its to finish.
        let read = unread && uses.contains(&Use::Reads);
        let fits = |unseen: &Unseen| {
            unseen.rings < UNSEEN_RINGS_MIN
                || (unseen.rings < UNSEEN_RINGS_MAX && unseen.bytes < UNSEEN_BYTES_MAX)
        };
        let wait = unread && uses.contains(&Use::Unseen) && fits(&unseen);
        let wanted = own_history > 0
            && history < depth
            && retained < RETAINED_RINGS_MAX
            && messages != Messages::Unread;
        if read || wait || wanted {
            history = history.saturating_add(own_history);
            retained += 1;
            unseen.rings += 1;
            unseen.bytes +=
                header.as_ref().map_or(0, |h| h.file_bytes) + data.get(&id).map_or(0, bytes);
            continue;
        }
        removed += remove_ring(dir, names, id, over)?;
    }
    Ok(removed)
}

/// Its data goes after it, so that what is left is found without it.
fn remove_ring(dir: &Path, names: &[String], id: PublisherId, _: Over) -> Result<usize> {
    let ring = usize::from(file::unlink(&ring_path(dir, id))?);
    Ok(ring + remove_data(dir, names, |owner| owner == id)?)
}

/// A ring that is not to be removed; `None` if it is gone, or is none that we may believe.
///
/// # Errors
/// When it cannot be looked at now. It may be the deepest: then nothing is removed.
fn look_at_ring(dir: &Path, id: PublisherId, domain: &DomainPath) -> Result<Option<RingHeader>> {
    use ErrorKind::{Corrupt, NotFound, NotOwned, VersionMismatch};
    match RingHeader::open(dir, id, domain) {
        Ok(header) => Ok(Some(header)),
        Err(e) if matches!(e.kind(), Corrupt | NotFound | NotOwned | VersionMismatch) => Ok(None),
        Err(_) if fault("reclaim.unseen_is_shallow") => Ok(None),
        Err(e) => Err(e),
    }
}

fn remove_data(dir: &Path, names: &[String], of: impl Fn(PublisherId) -> bool) -> Result<usize> {
    let mut removed = 0;
    if fault("reclaim.data_stays") {
        return Ok(removed);
    }
    for name in names {
        if let Entry::Data { owner, .. } = Entry::parse(name)
            && of(owner)
        {
            removed += usize::from(file::unlink(&dir.join(name))?);
        }
    }
    Ok(removed)
}

/// Rings of the dead that are kept, from the youngest on.
#[derive(Debug, Default)]
struct Unseen {
    rings: usize,
    bytes: u64,
}

/// The data segments that `names` has of each publisher.
fn data_files(names: &[String]) -> HashMap<PublisherId, Vec<&str>> {
    let mut files: HashMap<PublisherId, Vec<&str>> = HashMap::new();
    for name in names {
        if let Entry::Data { owner, .. } = Entry::parse(name) {
            files.entry(owner).or_default().push(name);
        }
    }
    files
}

fn bytes_of(dir: &Path, files: &[&str]) -> u64 {
    let sizes = files.iter().filter_map(|name| dir.join(name).symlink_metadata().ok());
    sizes.map(|m| m.len()).sum()
}

/// What a live subscriber has to do with the ring of one that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// It lists it among its sources, or cannot be asked.
    Reads,
    /// It has not looked at the directory since the ring was announced.
    Unseen,
    None,
}

/// `born`: the bell epoch that announced ring `id`.
fn use_of(peer: Option<&Peer>, port: u64, id: PublisherId, born: u64) -> Use {
    let Some(peer) = peer else { return Use::Reads };
    let view = match peer.claimed_port(port) {
        Ok(Some(view)) => view,
        Ok(None) => return Use::None,
        Err(_) if fault("reclaim.unasked_has_read") => return Use::None,
        Err(_) => return Use::Reads,
    };
    if view.id().load(Acquire) != port {
        return Use::None;
    }
    let seen = born != 0 && view.seen().load(Acquire) >= born;
    let mut slots = 0..view.sources();
    if slots.any(|s| Listing::of(view.source(s)).names(id.node.0, id.port)) {
        return if fault("reclaim.read_ring") { Use::Unseen } else { Use::Reads };
    }
    if seen { Use::None } else { Use::Unseen }
}
