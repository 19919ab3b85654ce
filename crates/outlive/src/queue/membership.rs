//! Joining a queue, seeing who is there, and removing what nobody needs any more.
//!
//! # Theory of operation
//! The queue's directory is the table of members. A joiner holds a shared lock on the directory
//! until it counts as a member; a remover needs the exclusive one and never waits for it. After
//! locking, both compare the inode at the path with the one they locked.
//!
//! | file                    | who may unlink it, and when                                       |
//! |-------------------------|-------------------------------------------------------------------|
//! | `lane` k < position's   | the consumer or its successor                                     |
//! | `lane`                  | the consumer, once it is closed or its node is gone and it is     |
//! |                         | drained; without a live consumer any member or cleaner then       |
//! | `consumer` `bell` `meta`| whoever finds no live member and no message unread                |
//!
//! `Domain::clean` is told to: without live members it removes unread messages too. Lanes go before
//! `consumer`, whose positions say what was received of them, and `meta` goes last.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::head::{Head, Next};
use super::lane::Shape;
use super::layout::bell;
use super::meta::Meta;
use super::position::{Place, Position};
use super::segment::{Segment, segment_path};
use super::table::{ProducerId, Table};
use crate::layout::{FileHeader, FileKind};
use crate::name::TopicName;
use crate::node::domain::{DomainPath, SLOW_PATH_NS_MAX, open_or_create};
use crate::node::peer::node_is_gone;
use crate::node::{Node, NodeId};
use crate::os::file::{self, Dir, Expect, TMP_PREFIX};
use crate::os::map::Mapping;
use crate::os::{clock, filelock, futex};
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{AtomicU32, AtomicU64};
use crate::{Error, ErrorKind, Result};

/// Where a queue is or is to be, and what it is called.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) name: TopicName,
    pub(crate) dir: PathBuf,
    /// Directories above it that are made with it, outermost first.
    pub(crate) parents: Vec<PathBuf>,
    /// Messages that nobody received, once nobody is left.
    pub(crate) unread: Unread,
}

impl Site {
    /// A queue of its own.
    pub(crate) fn of_queue(domain: &DomainPath, name: TopicName) -> Self {
        let dir = domain.queues().join(name.file());
        Self { name, dir, parents: vec![domain.queues()], unread: Unread::Keep }
    }
}

/// A queue that this process has joined.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) name: TopicName,
    pub(crate) dir: PathBuf,
    pub(crate) meta: Meta,
    pub(crate) node: Node,
    parents: Vec<PathBuf>,
    unread: Unread,
    bell: Mapping,
}

/// What a file in a queue's directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Lane { owner: ProducerId, segment: u32 },
    Consumer,
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
            ("consumer", Some([])) => Self::Consumer,
            ("lane", Some(&[node, port, segment])) if segment <= u64::from(u32::MAX) => {
                let node = NodeId::from_raw(node);
                Self::Lane { owner: ProducerId { node, port }, segment: segment as u32 }
            }
            _ => Self::Unknown,
        }
    }
}

/// Held while a member joins; frees the directory for removal when dropped.
#[derive(Debug)]
pub(crate) struct Joining {
    _dir: Dir,
}

impl Queue {
    /// Joins the queue at `site`, making it as `wanted` if it does not exist.
    ///
    /// # Errors
    /// `TypeMismatch` naming every field, `Timeout`, and those of the files it opens.
    ///
    /// # Crash safety
    /// **Strict.** Directory, `meta`, `bell` and `consumer` appear one by one, each complete;
    /// whoever comes next makes what is missing.
    pub(crate) fn join(node: &Node, site: &Site, wanted: &Meta) -> Result<(Arc<Self>, Joining)> {
        let deadline = clock::now_ns() + SLOW_PATH_NS_MAX;
        loop {
            match Self::try_join(node, site, wanted, deadline) {
                Ok(Some(joined)) => return Ok(joined),
                Ok(None) => {}
                // Removed under us: make it again.
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
            if clock::now_ns() >= deadline {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    "joining queue",
                    site.name.as_str(),
                    "a stopped 'outlive clean' may hold its directory: continue or end it",
                ));
            }
        }
    }

    fn try_join(
        node: &Node,
        site: &Site,
        wanted: &Meta,
        deadline: u64,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        let (domain, name, path) = (node.domain(), &site.name, site.dir.as_path());
        for parent in &site.parents {
            file::make_dir(parent, &domain.access)?;
        }
        file::make_dir(path, &domain.access)?;
        let dir = file::now_dir_lock_shared(path, deadline)?;
        if !dir.still_at(path)? {
            return Ok(None);
        }
        let meta = Meta::open_or_create(path, name, wanted, &domain.access)?;
        let bell = open_bell(path, domain)?;
        let Site { name, dir: dir_path, parents, unread } = site.clone();
        let queue = Self { name, dir: dir_path, meta, node: node.clone(), parents, unread, bell };
        Ok(Some((Arc::new(queue), Joining { _dir: dir })))
    }

    #[inline]
    pub(crate) fn epoch(&self) -> &AtomicU64 {
        // `open_bell` checked that the word is there.
        match self.bell.atomic_u64(bell::EPOCH) {
            Ok(word) => word,
            Err(_) => unreachable!("checked by open_bell"),
        }
    }

    /// The futex half of the epoch, to sleep on.
    pub(crate) fn bell_word(&self) -> &AtomicU32 {
        futex::low_half(self.epoch())
    }

    /// Says that membership changed.
    pub(crate) fn ring_bell(&self) {
        // ORDERING(QUEUE_BELL): pairs with `epoch_seen`; the member's file is linked before it.
        self.epoch().fetch_add(1, Release);
        futex::wake(self.bell_word(), i32::MAX);
    }

    /// The epoch, read before a look at the directory.
    pub(crate) fn epoch_seen(&self) -> u64 {
        // ORDERING(QUEUE_BELL): pairs with `ring_bell`.
        self.epoch().load(Acquire)
    }

    /// Everything in the queue's directory.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        list(&self.dir)
    }

    /// Removes what the dead left behind and nobody needs; the whole queue if nobody is left and
    /// nothing is unread.
    pub(crate) fn reclaim(&self) -> Result<Reclaimed> {
        let reclaimed = reclaim(self.node.domain(), &self.dir, self.unread)?;
        if reclaimed.removed_queue {
            // The outermost stays with the domain; what is between goes when it is empty.
            for parent in self.parents[1..].iter().rev() {
                file::remove_dir(parent)?;
            }
        }
        Ok(reclaimed)
    }

    /// Removes all segments of a lane.
    ///
    /// # Crash safety
    /// **Strict.** The slot in the table stays until all are gone; the next consumer goes on.
    pub(crate) fn unlink_lane(&self, id: ProducerId) -> Result<usize> {
        let mut removed = 0;
        for entry in self.entries()? {
            if let Entry::Lane { owner, segment } = entry
                && owner == id
            {
                removed += usize::from(file::unlink(&segment_path(&self.dir, id, segment))?);
            }
        }
        Ok(removed)
    }
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
    map.atomic_u64(bell::EPOCH)?;
    Ok(map)
}

pub(crate) fn list(dir: &Path) -> Result<Vec<Entry>> {
    Ok(file::open_dir(dir)?.entries()?.iter().map(|name| Entry::parse(name)).collect())
}

/// Whether a consumer holds the queue's `consumer` file.
pub(crate) fn has_consumer(dir: &Path) -> Result<bool> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match file::open_checked(&dir.join("consumer"), expect) {
        Ok((fd, _)) => filelock::is_locked(&fd),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// What to do with messages that were never received, once no live member is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    Keep,
    Remove,
}

/// What a look at a queue removed and what it left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reclaimed {
    pub(crate) files: usize,
    pub(crate) live_members: usize,
    pub(crate) removed_queue: bool,
}

/// Removes what the dead left in the queue at `dir`; the whole queue if nobody needs it.
///
/// # Crash safety
/// **Strict.** Lanes go before `consumer`, `meta` last: what remains is found by the next look.
pub(crate) fn reclaim(domain: &DomainPath, dir: &Path, unread: Unread) -> Result<Reclaimed> {
    let mut out = Reclaimed::default();
    let lock = file::open_dir(dir)?;
    // Somebody is joining or cleaning: then it is not for us to remove anything.
    if !lock.try_lock_exclusive()? || !lock.still_at(dir)? {
        out.live_members = 1;
        return Ok(out);
    }
    let names = lock.entries()?;
    for name in names.iter().filter(|n| n.starts_with(TMP_PREFIX)) {
        out.files += remove_unfinished(&dir.join(name))?;
    }
    let served = has_consumer(dir)?;
    out.live_members += usize::from(served);
    let mut lanes: Vec<(ProducerId, Vec<u32>)> = Vec::new();
    for name in &names {
        if let Entry::Lane { owner, segment } = Entry::parse(name) {
            match lanes.iter_mut().find(|(id, _)| *id == owner) {
                Some((_, segments)) => segments.push(segment),
                None => lanes.push((owner, vec![segment])),
            }
        }
    }
    let mut kept = 0;
    for (id, segments) in &lanes {
        let newest = segments.iter().max().copied().unwrap_or(0);
        let open = Segment::open(dir, *id, newest, domain).is_ok_and(|s| !s.is_closed());
        if open && !node_is_gone(&domain.nodes(), id.node)? {
            out.live_members += 1;
        } else if !served && !is_unread(domain, dir, *id)? {
            for &segment in segments {
                out.files += usize::from(file::unlink(&segment_path(dir, *id, segment))?);
            }
        } else {
            kept += 1;
        }
    }
    if out.live_members == 0 && (kept == 0 || unread == Unread::Remove) {
        out.files += remove_queue(dir, &names)?;
        out.removed_queue = file::remove_dir(dir)?;
    }
    Ok(out)
}

/// Unlinks an unfinished file whose maker is gone: its lock is free.
fn remove_unfinished(path: &Path) -> Result<usize> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match file::open_checked(path, expect) {
        Ok((fd, _)) if !filelock::is_locked(&fd)? => Ok(usize::from(file::unlink(path)?)),
        _ => Ok(0),
    }
}

fn remove_queue(dir: &Path, names: &[String]) -> Result<usize> {
    let order = |name: &String| match Entry::parse(name) {
        Entry::Lane { .. } => 0,
        Entry::Meta => 2,
        _ => 1,
    };
    let mut names: Vec<_> = names.iter().filter(|n| Entry::parse(n) != Entry::Unknown).collect();
    names.sort_by_key(|n| order(n));
    let mut removed = 0;
    for name in names {
        removed += usize::from(file::unlink(&dir.join(name))?);
    }
    Ok(removed)
}

/// Whether a lane holds a message that no consumer received. The lane has no live producer and
/// the queue no live consumer. A lane that cannot be read is nobody's to receive.
fn is_unread(domain: &DomainPath, dir: &Path, id: ProducerId) -> Result<bool> {
    let (table, meta) = match (Table::open_existing(dir, domain), Meta::read(dir, &domain.access)) {
        (Ok(table), Ok(meta)) => (table, meta),
        (Err(e), _) | (_, Err(e)) if e.kind() == ErrorKind::NotFound => return Ok(false),
        (Err(e), _) | (_, Err(e)) => return Err(e),
    };
    let slot = table.find(id);
    let from = match slot {
        Some(slot) => table.place(slot).peek(),
        None => Some((Position::START, 0)),
    };
    Ok(from.is_some_and(|(at, done)| first_unread(domain, dir, id, at, done, &meta.shape())))
}

/// Walks a lane from `at` without storing anything.
fn first_unread(
    domain: &DomainPath,
    dir: &Path,
    id: ProducerId,
    at: Position,
    done: u32,
    shape: &Shape,
) -> bool {
    // The walk keeps its own position.
    let (position, progress) = (AtomicU64::new(0), AtomicU64::new(0));
    let place = Place::new(&position, &progress);
    let mut head = Head::new(at, done);
    if at.offset % shape.unit != 0 {
        return false;
    }
    while let Ok(segment) = Segment::open(dir, id, head.segment, domain) {
        match head.next(segment.ring(), shape, place) {
            Next::Item => return true,
            Next::Jump => head.jump(place),
            Next::Empty(_) | Next::Corrupt(_) => return false,
        }
    }
    false
}
