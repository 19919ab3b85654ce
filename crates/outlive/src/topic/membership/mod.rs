//! Joining a topic and seeing who is there. `pulse` is what each hot call looks at: forked? did
//! members come or go? `reclaim` removes what nobody needs any more.
//! Begin with `Topic`, here.
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
//! |                     |                               | and newer rings hold the history, or a |
//! |                     |                               | publisher finds the RAM disk full      |
//! | `meta`, `bell`      | no live member is left        | -                                      |

pub(crate) mod attributes;
pub(crate) mod meta;
pub(crate) mod pulse;
pub(crate) mod reclaim;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ring::layout;
use super::ring::layout::{bell, ring};
use super::ring::listing::Listing;
use crate::domain::bell::Bell;
use crate::domain::header::{FileHeader, FileKind, HEADER_BYTES};
use crate::domain::joining::{Joining, join_until};
use crate::domain::name::{TopicName, kind_and_numbers};
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::node::peer::{Peer, Place};
use crate::node::{Node, NodeId};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};
use meta::{Meta, WantedMeta};
use reclaim::{Messages, Reclaimed, reclaim, reclaim_by, undo_join};

/// Whom a place of a subscriber's table names.
pub(in crate::topic) fn listing(place: Place<'_>) -> Listing<'_> {
    Listing::new(place.node, place.port, place.changes)
}

/// A topic that this process has joined.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) dir: PathBuf,
    pub(crate) meta: Meta,
    pub(crate) node: Node,
    bell: Bell,
}

/// A publisher of a topic: the node it belongs to and its number there.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let left = node.topic::<u32>("/wheel")?.publisher()?;
/// let right = node.topic::<u32>("/wheel")?.publisher()?;
/// let mut wheels = node.topic::<u32>("/wheel")?.subscriber()?;
/// right.publish(&7)?;
/// let sender = wheels.receive()?.expect("sent just now").publisher();
/// assert_eq!(sender, right.id());
/// assert_eq!((sender.node, left.id().node), (node.id(), node.id())); // the ports differ
/// assert_eq!(sender.to_string(), format!("{}.{}", sender.node, sender.port));
/// # Ok::<(), outlive::Error>(())
/// ```
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
        let (kind, numbers) = kind_and_numbers(name);
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

impl Topic {
    /// Joins topic `name`, making it from `wanted` if it does not exist. With `wanted` `None` any
    /// type is accepted and nothing is made. A topic of another type without a live member is
    /// removed and made again: what the dead have sent in that type goes with it.
    ///
    /// # Errors
    /// `TypeMismatch` naming every field and the live members, `Timeout`, and those of the files it
    /// opens.
    ///
    /// # Crash safety
    /// **Strict.** Directory, `meta` and `bell` appear one by one, each complete; whoever comes
    /// next makes what is missing. Removal as in `reclaim`.
    pub(crate) fn join(
        node: &Node,
        name: TopicName,
        wanted: Option<&WantedMeta>,
    ) -> Result<(Arc<Self>, Joining)> {
        let domain = node.domain();
        let path = domain.topics().join(name.file());
        let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
        join_until("joining topic", &name, deadline, || {
            match Self::try_join(node, &name, &path, wanted, deadline) {
                Err(e) if e.kind() == ErrorKind::NotFound && !domain.topics().exists() => {
                    Err(Error::new(
                        ErrorKind::NotFound,
                        "joining topic in",
                        domain.topics().display().to_string(),
                        "somebody removed it: open the nodes of the domain again",
                    ))
                }
                // Removed under us: make it again, unless we are not to make it.
                Err(e) if e.kind() == ErrorKind::NotFound && wanted.is_some() => Ok(None),
                Err(e) if e.kind() == ErrorKind::TypeMismatch && !fault("join.dead_keep_type") => {
                    // The dead hold on to no type.
                    let living = give_way(domain, &path, deadline)?;
                    if living.is_empty() {
                        return Ok(None);
                    }
                    let who = format!("{}; it has live members: {}", e.remedy(), living);
                    Err(Error::new(e.kind(), "opening topic", name.as_str(), who))
                }
                Err(e) => {
                    // What it has made so far.
                    let _ = undo_join(domain, &path);
                    Err(e)
                }
                joined => joined,
            }
        })
    }

    fn try_join(
        node: &Node,
        name: &TopicName,
        path: &Path,
        wanted: Option<&WantedMeta>,
        deadline: Deadline,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        let access = &node.domain().access;
        if wanted.is_some() {
            file::make_dir(path, access)?;
        }
        let dir = file::now_dir_lock_shared(path, deadline)?;
        if !dir.still_at(path)? {
            return Ok(None);
        }
        node.must_be_listed()?;
        must_not_be_missing(path, "meta")?;
        must_not_be_missing(path, "bell")?;
        let meta = match wanted {
            Some(wanted) => Meta::open_or_create(path, name, wanted, access)?,
            None => Meta::read(path, access)?,
        };
        let bell = Bell::open(path, node.domain(), &[bell::PUBLISHERS, bell::SUBSCRIBERS])?;
        let topic =
            Self { name: name.clone(), dir: path.to_path_buf(), meta, node: node.clone(), bell };
        Ok(Some((Arc::new(topic), Joining { _dir: dir })))
    }

    /// How often ports of that kind came or went.
    #[inline]
    pub(crate) fn epoch(&self, of: Ports) -> &AtomicU64 {
        self.bell.word(of as usize)
    }

    pub(crate) fn bell_word(&self, of: Ports) -> &AtomicU32 {
        self.bell.futex(of as usize)
    }

    /// Says that a port of that kind came or went; returns the new epoch.
    pub(crate) fn ring_bell(&self, of: Ports) -> u64 {
        self.bell.ring(of as usize)
    }

    pub(crate) fn epoch_seen(&self, of: Ports) -> u64 {
        self.bell.seen(of as usize)
    }

    /// Everything in the topic's directory.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        list(&self.dir)
    }

    /// Removes what the dead left behind and nobody needs; whole topic if nobody is left.
    pub(crate) fn reclaim(&self) -> Result<Reclaimed> {
        self.reclaim_by(Messages::Go)
    }

    /// The same by one that could not open its port: messages of the dead stay, see `undo_join`.
    pub(super) fn undo_join(&self) -> Result<Reclaimed> {
        self.reclaim_by(Messages::Stay)
    }

    /// The same on a RAM disk that has no room for so many bytes: what is kept for those that may
    /// join late goes, too. Whether it may be worth trying again.
    pub(super) fn make_room(&self, bytes: u64) -> bool {
        file::is_full(&self.dir, bytes)
            && !fault("room.for_late_joiners")
            && self.reclaim_by(Messages::Unread).is_ok_and(|done| done.files > 0)
    }

    fn reclaim_by(&self, messages: Messages) -> Result<Reclaimed> {
        self.bell.ask();
        reclaim_by(self.node.domain(), &self.dir, Some(&self.bell), messages)
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
    pub(super) fn messages(&self) -> u64 {
        let first = self.u64_at(ring::ENTRIES);
        self.u64_at(ring::HEAD).max(u64::from(first != 0 && first % 2 == 0))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.map.atomic_u32(ring::STATE).is_ok_and(|w| w.load(Acquire) == ring::STATE_CLOSED)
    }

    /// Messages that late joiners may find in it.
    pub(super) fn history(&self) -> u64 {
        let keeps = self.u64_at(ring::VOLATILE) != 1;
        if keeps { self.messages().min(self.depth()) } else { 0 }
    }

    /// Messages it holds; 0 if it claims what none may have.
    pub(super) fn depth(&self) -> u64 {
        let depth = self.u64_at(ring::DEPTH);
        if layout::is_depth(depth) { depth } else { 0 }
    }

    pub(super) fn birth(&self) -> u64 {
        birth(self.u64_at(ring::BORN))
    }
}

/// Where a ring comes among those of its topic by age, from the epoch that announced it: each
/// has another, and later ones have larger ones. Not announced yet: the youngest.
pub(crate) fn birth(born: u64) -> u64 {
    born.wrapping_sub(1)
}

/// Removes the topic of another type if all its members are dead or have left, so that it can be
/// made anew. Answers with the names of the live ones, if there are any.
///
/// # Crash safety
/// **Strict.** As `reclaim`.
fn give_way(domain: &DomainPath, dir: &Path, deadline: Deadline) -> Result<Names> {
    loop {
        let left = match reclaim(domain, dir) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Names::default()),
            left => left?,
        };
        if !left.busy {
            let names = Names::of(domain, left.living);
            // Who is dying lets its token go some time before its lock.
            if names.is_empty() || names.looks_alive || deadline.has_passed() {
                return Ok(names);
            }
        } else if deadline.has_passed() {
            return Ok(Names::default());
        }
        sched::sleep_until(Deadline::in_ns(1_000_000));
    }
}

/// Nodes by name, for people.
#[derive(Debug, Default)]
struct Names {
    all: Vec<String>,
    looks_alive: bool,
}

/// Names of nodes in one error.
const NAMES_MAX: usize = 8;

impl Names {
    fn of(domain: &DomainPath, mut nodes: Vec<NodeId>) -> Self {
        nodes.sort();
        nodes.dedup();
        let mut names = Self::default();
        for node in nodes {
            let peer = Peer::open(&domain.nodes(), node, &domain.access);
            names.looks_alive |= peer.as_ref().map_or(true, |peer| peer.hint().is_alive());
            let name = peer.and_then(|peer| peer.describe()).map(|(_, _, name)| name);
            names.all.push(name.map_or(format!("node {node}"), |n| format!("{n} (node {node})")));
        }
        names
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = self.all.len().min(NAMES_MAX);
        f.write_str(&self.all[..shown].join(", "))?;
        match self.all.len() - shown {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
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
