//! Joining a topic, seeing who is there, and removing what nobody needs any more.
//!
//! # Theory of operation
//! The topic's directory is the table of members. A joiner holds a shared lock on the directory
//! until its file is linked; a remover needs the exclusive one and never waits for it. After
//! locking, both compare the inode at the path with the one they locked.
//!
//! | file                | disposable once               | heritable until                        |
//! |---------------------|-------------------------------|----------------------------------------|
//! | `sub.<node>.<port>` | its node is gone              | -                                      |
//! | `pub`, `data`       | no live member is left        | every live subscriber has looked at it |
//! |                     |                               | and newer rings hold the history       |
//! | `meta`, `bell`      | no live member is left        | -                                      |

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layout::{bell, ring};
use super::listing::Listing;
use super::meta::{Meta, Spec};
use crate::layout::{FileHeader, FileKind, HEADER_BYTES};
use crate::name::TopicName;
use crate::node::domain::{DomainPath, SLOW_PATH_NS_MAX, open_or_create};
use crate::node::peer::{Peer, node_is_gone, port};
use crate::node::{Node, NodeId};
use crate::os::file::{self, Dir, Expect, TMP_PREFIX};
use crate::os::map::Mapping;
use crate::os::{clock, filelock, futex};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// Dead or closed rings that are kept for late joiners, beyond what live subscribers need.
const RETAINED_RINGS_MAX: usize = 4;
/// Rings that are kept for a subscriber that has not looked at them yet. One that sleeps through
/// more generations of a crashing publisher misses the oldest; the RAM disk does not fill up.
const UNSEEN_RINGS_MAX: usize = 16;

/// A topic that this process has joined.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) dir: PathBuf,
    pub(crate) meta: Meta,
    pub(crate) node: Node,
    bell: Mapping,
}

/// A publisher of a topic: the node it belongs to and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublisherId {
    /// The node.
    pub node: NodeId,
    /// Number of the port within the node; never reused.
    pub port: u64,
}

impl std::fmt::Display for PublisherId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.node, self.port)
    }
}

/// Which ports came or went: the place of their epoch in the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Ports {
    Publishers = bell::PUBLISHERS,
    Subscribers = bell::SUBSCRIBERS,
}

/// What a file in a topic's directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Publisher(PublisherId),
    Subscriber { node: NodeId, port: u64 },
    Data { owner: PublisherId, segment: usize },
    Meta,
    Bell,
    Unknown,
}

impl Entry {
    pub(crate) fn parse(name: &str) -> Self {
        let mut parts = name.split('.');
        let kind = parts.next().unwrap_or("");
        let numbers: Option<Vec<u64>> = parts.map(|p| p.parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            ("meta", Some([])) => Self::Meta,
            ("bell", Some([])) => Self::Bell,
            ("pub", Some(&[n, port])) => Self::Publisher(PublisherId { node: NodeId(n), port }),
            ("sub", Some(&[n, port])) => Self::Subscriber { node: NodeId(n), port },
            ("data", Some(&[n, port, k])) => {
                Self::Data { owner: PublisherId { node: NodeId(n), port }, segment: k as usize }
            }
            _ => Self::Unknown,
        }
    }
}

pub(crate) fn ring_path(dir: &Path, id: PublisherId) -> PathBuf {
    dir.join(format!("pub.{}.{}", id.node, id.port))
}

pub(crate) fn subscriber_path(dir: &Path, node: NodeId, port: u64) -> PathBuf {
    dir.join(format!("sub.{node}.{port}"))
}

/// Held while a member links its file; frees the directory for removal when dropped.
#[derive(Debug)]
pub(crate) struct Joining {
    _dir: Dir,
}

impl Topic {
    /// Joins topic `name`, making it from `spec` if it does not exist. With `spec` `None` any
    /// type is accepted and nothing is made.
    ///
    /// # Errors
    /// `TypeMismatch` naming every field, `Timeout`, and those of the files it opens.
    ///
    /// # Crash safety
    /// **Strict.** Directory, `meta` and `bell` appear one by one, each complete; whoever comes
    /// next makes what is missing.
    pub(crate) fn join(
        node: &Node,
        name: TopicName,
        spec: Option<&Spec>,
    ) -> Result<(Arc<Self>, Joining)> {
        let domain = node.domain();
        let path = domain.topics().join(name.file());
        let deadline = clock::now_ns() + SLOW_PATH_NS_MAX;
        loop {
            match Self::try_join(node, &name, &path, spec, deadline) {
                Ok(Some(joined)) => return Ok(joined),
                Ok(None) => {}
                Err(e) if e.kind() == ErrorKind::NotFound && !domain.topics().exists() => {
                    return Err(Error::new(
                        ErrorKind::NotFound,
                        "joining topic in",
                        domain.topics().display().to_string(),
                        "somebody removed it: open the nodes of the domain again",
                    ));
                }
                // Removed under us: make it again, unless we are not to make it.
                Err(e) if e.kind() == ErrorKind::NotFound && spec.is_some() => {}
                Err(e) => return Err(e),
            }
            if clock::now_ns() >= deadline {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    "joining topic",
                    name.as_str(),
                    "a stopped 'outlive clean' may hold its directory: continue or end it",
                ));
            }
        }
    }

    fn try_join(
        node: &Node,
        name: &TopicName,
        path: &Path,
        spec: Option<&Spec>,
        deadline: u64,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        let access = &node.domain().access;
        if spec.is_some() {
            file::make_dir(path, access)?;
        }
        let dir = file::now_dir_lock_shared(path, deadline)?;
        if !dir.still_at(path)? {
            return Ok(None);
        }
        node.must_be_listed()?;
        must_not_be_missing(path, "meta")?;
        must_not_be_missing(path, "bell")?;
        let meta = match spec {
            Some(spec) => Meta::open_or_create(path, name, spec, access)?,
            None => Meta::read(path, access)?,
        };
        let bell = open_bell(path, node.domain())?;
        let topic =
            Self { name: name.clone(), dir: path.to_path_buf(), meta, node: node.clone(), bell };
        Ok(Some((Arc::new(topic), Joining { _dir: dir })))
    }

    /// How often ports of that kind came or went.
    #[inline]
    pub(crate) fn epoch(&self, of: Ports) -> &AtomicU64 {
        // `open_bell` checked that the words are there.
        match self.bell.atomic_u64(of as usize) {
            Ok(word) => word,
            Err(_) => unreachable!("checked by open_bell"),
        }
    }

    /// The futex half of an epoch, to sleep on.
    pub(crate) fn bell_word(&self, of: Ports) -> &AtomicU32 {
        futex::low_half(self.epoch(of))
    }

    /// Says that a port of that kind came or went; returns the new epoch.
    pub(crate) fn ring_bell(&self, of: Ports) -> u64 {
        if fault("bell.not_rung") {
            return self.epoch(of).load(Relaxed);
        }
        // ORDERING(BELL): pairs with `Topic::epoch_seen`; the member's file is linked before it.
        let epoch = self.epoch(of).fetch_add(1, Release).wrapping_add(1);
        futex::wake(self.bell_word(of), i32::MAX);
        epoch
    }

    /// The epoch, read before a look at the directory.
    pub(crate) fn epoch_seen(&self, of: Ports) -> u64 {
        // ORDERING(BELL): pairs with `ring_bell`.
        self.epoch(of).load(Acquire)
    }

    /// Everything in the topic's directory.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        list(&self.dir)
    }

    /// Removes what the dead left behind and nobody needs; whole topic if nobody is left.
    pub(crate) fn reclaim(&self) -> Result<Reclaimed> {
        reclaim(self.node.domain(), &self.dir)
    }
}

/// `meta` and `bell` come before the first member and go after the last: beside members one is not
/// made anew, since they would have another.
fn must_not_be_missing(dir: &Path, name: &str) -> Result<()> {
    let path = dir.join(name);
    let missing = || path.symlink_metadata().is_err();
    let member = |e: &Entry| matches!(e, Entry::Publisher(_) | Entry::Subscriber { .. });
    // Looked at again: a quicker joiner may have made both between the two looks.
    if missing() && list(dir)?.iter().any(member) && missing() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "joining topic by",
            path.display().to_string(),
            "somebody removed it: stop the members of the topic and run 'outlive clean'",
        ));
    }
    Ok(())
}

fn open_bell(dir: &Path, domain: &DomainPath) -> Result<Mapping> {
    let path = dir.join("bell");
    let owner = domain.access.owner_required();
    let expect = Expect { writable: true, min_len: bell::BYTES as u64, owner };
    let total_bytes = bell::BYTES as u64;
    let fd = open_or_create(&path, domain.access.shared_mode, expect, |map| {
        FileHeader { kind: FileKind::Bell, total_bytes, node: 0, port: 0 }.write(map)
    })?;
    let map = Mapping::map_own(&fd, bell::BYTES, &path)?;
    FileHeader::read(&map, FileKind::Bell, total_bytes)?;
    map.atomic_u64(bell::PUBLISHERS)?;
    map.atomic_u64(bell::SUBSCRIBERS)?;
    Ok(map)
}

pub(crate) fn list(dir: &Path) -> Result<Vec<Entry>> {
    Ok(file::open_dir(dir)?.entries()?.iter().map(|name| Entry::parse(name)).collect())
}

/// The `seq` of a ring's first entry lies before it.
const FIRST_SEQ_END: usize = ring::ENTRIES + 8;

/// The fixed part of a ring file, for counters and for decisions about removing it.
pub(crate) struct RingHeader {
    pub(crate) map: Mapping,
    pub(crate) file_bytes: u64,
}

impl RingHeader {
    pub(crate) fn open(dir: &Path, id: PublisherId, domain: &DomainPath) -> Result<Self> {
        let path = ring_path(dir, id);
        let owner = domain.access.owner_required();
        let expect = Expect { writable: false, min_len: FIRST_SEQ_END as u64, owner };
        let (fd, file_bytes): (OwnedFd, u64) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, FIRST_SEQ_END, &path)?;
        FileHeader::read(&map, FileKind::Ring, file_bytes)?;
        Ok(Self { map, file_bytes })
    }

    pub(crate) fn u64_at(&self, offset: usize) -> u64 {
        self.map.atomic_u64(offset).map_or(0, |w| w.load(Relaxed))
    }

    /// Messages published, 1 too few where the publisher died before it had counted the last; but
    /// never 0 where there is one.
    fn messages(&self) -> u64 {
        let first = self.u64_at(ring::ENTRIES);
        self.u64_at(ring::HEAD).max(u64::from(first != 0 && first % 2 == 0))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.map.atomic_u32(ring::STATE).is_ok_and(|w| w.load(Acquire) == ring::STATE_CLOSED)
    }
}

/// What a look at a topic removed and what it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    pub(crate) files: usize,
    pub(crate) live_members: usize,
    pub(crate) removed_topic: bool,
}

/// Removes what the dead left in the topic at `dir`; the whole topic if no live member is left.
///
/// # Crash safety
/// **Strict.** `pub` goes before its `data`, `meta` last: what remains is found by the next look.
pub(crate) fn reclaim(domain: &DomainPath, dir: &Path) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    let lock = file::open_dir(dir)?;
    // Somebody is joining or cleaning: then it is not for us to remove anything.
    if !lock.try_lock_exclusive()? || !lock.still_at(dir)? {
        out.live_members = 1;
        return Ok(out);
    }
    let names = lock.entries()?;
    let mut alive = Liveness { domain, known: HashMap::new() };
    let mut subscribers = Vec::new();
    let mut rings = Vec::new();
    for name in &names {
        match Entry::parse(name) {
            Entry::Subscriber { node, port } => {
                if alive.is_gone(node)? {
                    out.files += usize::from(file::unlink(&dir.join(name))?);
                } else {
                    out.live_members += 1;
                    subscribers.push((node, port));
                }
            }
            Entry::Publisher(id) => {
                let gone = alive.is_gone(id.node)?;
                match RingHeader::open(dir, id, domain) {
                    Ok(header) if gone || header.is_closed() => rings.push((id, Some(header))),
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    // Nobody can read it, and nobody lives who could mend it.
                    Err(e) if gone && e.kind() == ErrorKind::Corrupt => rings.push((id, None)),
                    // Alive, or not to be judged from here: another layout, no memory to map it.
                    _ => out.live_members += 1,
                }
            }
            _ if name.starts_with(TMP_PREFIX) => out.files += remove_unfinished(&dir.join(name))?,
            _ => {}
        }
    }
    if out.live_members == 0 {
        out.files += remove_topic(dir, &names)?;
        out.removed_topic = file::remove_dir(dir)?;
        return Ok(out);
    }
    out.files += remove_old_rings(domain, dir, &names, rings, &subscribers)?;
    Ok(out)
}

/// Unlinks an unfinished file whose maker is gone: its lock is free.
pub(crate) fn remove_unfinished(path: &Path) -> Result<usize> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match file::open_checked(path, expect) {
        Ok((fd, _)) if !filelock::is_locked(&fd)? => Ok(usize::from(file::unlink(path)?)),
        _ => Ok(0),
    }
}

struct Liveness<'a> {
    domain: &'a DomainPath,
    known: HashMap<NodeId, bool>,
}

impl Liveness<'_> {
    /// Whether the node is dead for certain. An answer that cannot be had is an error: nothing is
    /// removed on a guess.
    fn is_gone(&mut self, node: NodeId) -> Result<bool> {
        if let Some(gone) = self.known.get(&node) {
            return Ok(*gone);
        }
        let gone = fault("reclaim.of_the_living") || node_is_gone(&self.domain.nodes(), node)?;
        self.known.insert(node, gone);
        Ok(gone)
    }
}

/// Everything of a topic without live members; `bell` and `meta` last, so that no member's file
/// outlives them.
fn remove_topic(dir: &Path, names: &[String]) -> Result<usize> {
    let order = |name: &String| match Entry::parse(name) {
        Entry::Publisher(_) => 0,
        Entry::Bell => 2,
        Entry::Meta => 3,
        _ => 1,
    };
    let mut names: Vec<_> = names.iter().collect();
    names.sort_by_key(|n| order(n));
    let mut removed = 0;
    for name in names {
        if Entry::parse(name) != Entry::Unknown || name.starts_with(TMP_PREFIX) {
            removed += usize::from(file::unlink(&dir.join(name))?);
        }
    }
    Ok(removed)
}

/// Rings of the dead and departed that every live subscriber has looked at, beyond the history.
fn remove_old_rings(
    domain: &DomainPath,
    dir: &Path,
    names: &[String],
    rings: Vec<(PublisherId, Option<RingHeader>)>,
    subscribers: &[(NodeId, u64)],
) -> Result<usize> {
    let mut removed = 0;
    if !rings.is_empty() {
        removed += remove_read_rings(domain, dir, names, rings, subscribers)?;
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
    mut rings: Vec<(PublisherId, Option<RingHeader>)>,
    subscribers: &[(NodeId, u64)],
) -> Result<usize> {
    let open = |node| Peer::open(&domain.nodes(), node, &domain.access).ok();
    let subscribers: Vec<_> = subscribers.iter().map(|(node, port)| (open(*node), *port)).collect();
    let depth = Meta::read(dir, &domain.access).map_or(0, |m| m.depth);
    let mut history = 0u64;
    let mut retained = 0;
    let mut removed = 0;
    for name in names {
        if let Entry::Publisher(id) = Entry::parse(name)
            && !rings.iter().any(|(r, _)| *r == id)
            && let Ok(header) = RingHeader::open(dir, id, domain)
        {
            history = history.saturating_add(header.u64_at(ring::HEAD));
        }
    }
    // Youngest first: a larger node ordinal joined later.
    rings.sort_by_key(|(id, _)| std::cmp::Reverse((id.node, id.port)));
    for (id, header) in rings {
        let (head, born) = header.as_ref().map_or((0, 0), |h| (h.messages(), h.u64_at(ring::BORN)));
        let unseen = head > 0
            && !fault("reclaim.unread_ring")
            && subscribers.iter().any(|(peer, port)| !is_done(peer.as_ref(), *port, id, born));
        let wanted = head > 0 && history < depth && retained < RETAINED_RINGS_MAX;
        if (unseen && retained < UNSEEN_RINGS_MAX) || wanted {
            history = history.saturating_add(head);
            retained += 1;
            continue;
        }
        removed += usize::from(file::unlink(&ring_path(dir, id))?);
        removed += remove_data(dir, names, |owner| owner == id)?;
    }
    Ok(removed)
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

/// Whether the subscriber has no use for ring `id`: it has looked at the directory since the bell
/// epoch `born` that announced the ring, and is not reading it.
fn is_done(peer: Option<&Peer>, port: u64, id: PublisherId, born: u64) -> bool {
    let Some(view) = peer.and_then(|peer| peer.claimed_port(port)) else { return peer.is_some() };
    let open = view.id().load(Acquire) == port;
    let seen = born != 0 && view.seen().load(Acquire) >= born;
    let mut slots = 0..port::SOURCES_MAX;
    !open || (seen && !slots.any(|s| Listing(view.source(s)).names(id.node.0, id.port)))
}

/// Links the file that says which port of the node's file belongs to a subscriber.
pub(crate) fn link_subscriber(topic: &Topic, port: u64) -> Result<()> {
    let node = topic.node.id();
    let path = subscriber_path(&topic.dir, node, port);
    let mode = topic.node.domain().access.own_mode;
    let draft = file::Draft::new(&topic.dir, HEADER_BYTES as u64, mode)?;
    let total_bytes = HEADER_BYTES as u64;
    FileHeader { kind: FileKind::Subscriber, total_bytes, node: node.0, port }
        .write(&draft.map()?)?;
    draft.link(&path).map(drop)
}
