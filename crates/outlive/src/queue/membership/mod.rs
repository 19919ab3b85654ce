//! Joining a queue and seeing who is there. `entry` tells whose file is whose; `reclaim` removes
//! what nobody needs any more.
//! Begin with `Queue`, here.
//!
//! # Theory of operation
//! The queue's directory is the table of members. A joiner holds a shared lock on the directory
//! until it counts as a member; a remover needs the exclusive one and never waits for it. After
//! locking, both compare the inode at the path with the one they locked.

pub(crate) mod entry;
pub(crate) mod meta;
pub(crate) mod reclaim;
pub(crate) mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lane::layout::bell;
use super::lane::segment::segment_path;
use crate::domain::bell::Bell;
use crate::domain::joining::{Joining, join_until, must_not_be_missing};
use crate::domain::name::TopicName;
use crate::domain::path::{DomainPath, SLOW_PATH_NS_MAX};
use crate::node::Node;
use crate::node::living::living_members;
use crate::os::fs::file;
use crate::os::time::deadline::Deadline;
use crate::queue::lane::ProducerId;
use crate::queue::lane::segment::Segment;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};
use entry::{Entry, list};
use meta::Meta;
use reclaim::{Reclaimed, Unread, producers, reclaim, reclaim_by};

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
    pub(crate) unread: Unread,
    bell: Bell,
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
        let deadline = Deadline::in_ns(SLOW_PATH_NS_MAX);
        join_until("joining queue", &site.name, deadline, || {
            match Self::join_once(node, site, wanted, deadline) {
                // Removed under us: make it again.
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
                joined => joined,
            }
        })
    }

    /// As `join`, without ever waiting; `None` while somebody removes or cleans it.
    ///
    /// # Errors
    /// As `join`, without `Timeout`.
    ///
    /// # Crash safety
    /// **Strict.** As `join`.
    pub(crate) fn join_now(
        node: &Node,
        site: &Site,
        wanted: &Meta,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        let deadline = match fault("join_now.waits") {
            true => Deadline::in_ns(SLOW_PATH_NS_MAX),
            false => Deadline::AT_ONCE,
        };
        match Self::join_once(node, site, wanted, deadline) {
            Err(e) if e.kind() == ErrorKind::Timeout => Ok(None),
            joined => joined,
        }
    }

    /// As `try_join`. If that fails it tidies up, as `enter` does. A queue of another type without
    /// a live member and without a message is removed, and may be made again.
    fn join_once(
        node: &Node,
        site: &Site,
        wanted: &Meta,
        deadline: Deadline,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        match Self::try_join(node, site, wanted, deadline) {
            // Another one removes it or cleans it.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Timeout) => Err(e),
            Err(e) if e.kind() == ErrorKind::TypeMismatch && !fault("queue.nobodys_type") => {
                give_way(node.domain(), site, deadline, e).map(|()| None)
            }
            Err(e) => {
                let _ = reclaim(node.domain(), &site.dir, site.unread);
                let _ = remove_parents(&site.parents);
                Err(e)
            }
            joined => joined,
        }
    }

    fn try_join(
        node: &Node,
        site: &Site,
        wanted: &Meta,
        deadline: Deadline,
    ) -> Result<Option<(Arc<Self>, Joining)>> {
        let (domain, name, path) = (node.domain(), &site.name, site.dir.as_path());
        if !fault("queue.joins_unlisted") {
            node.must_be_listed()?;
        }
        for parent in &site.parents {
            file::make_dir(parent, &domain.access)?;
        }
        file::make_dir(path, &domain.access)?;
        let dir = file::now_dir_lock_shared(path, deadline)?;
        if !dir.still_at(path)? {
            return Ok(None);
        }
        let lane = |e: &Entry| matches!(e, Entry::Lane { .. });
        for name in ["meta", "bell", "consumer"] {
            let has_members = || Ok(list(path)?.iter().any(lane));
            must_not_be_missing("queue", &path.join(name), has_members)?;
        }
        let meta = Meta::open_or_create(path, name, wanted, &domain.access)?;
        let bell = Bell::open(path, domain, &[bell::EPOCH])?;
        let Site { name, dir: dir_path, parents, unread } = site.clone();
        let queue = Self { name, dir: dir_path, meta, node: node.clone(), parents, unread, bell };
        Ok(Some((Arc::new(queue), Joining { _dir: dir })))
    }

    /// Becomes a member by `open`, at the end of joining. If that fails it tidies up as one that
    /// leaves: it may have made the queue, and who left meanwhile could not look.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn enter<E>(
        self: Arc<Self>,
        joining: Joining,
        open: impl FnOnce(Arc<Self>) -> Result<E>,
    ) -> Result<E> {
        let opened = open(self.clone());
        drop(joining);
        if opened.is_err() {
            let _ = self.reclaim();
        }
        opened
    }

    /// How often members came or went.
    #[inline]
    pub(crate) fn epoch(&self) -> &AtomicU64 {
        self.bell.word(bell::EPOCH)
    }

    pub(crate) fn bell_word(&self) -> &AtomicU32 {
        self.bell.futex(bell::EPOCH)
    }

    /// Says that membership changed: to members by the bell, and to tools, which watch all queues
    /// or services at once, by the time of the directory that these are in.
    ///
    /// # Crash safety
    /// **Strict.** One addition. Dying before the directory is touched: the member is gone then,
    /// as its node says.
    pub(crate) fn ring_bell(&self) {
        self.bell.ring(bell::EPOCH);
        if !fault("queue.change_untold") {
            file::touch(&self.parents[0]);
        }
    }

    pub(crate) fn epoch_seen(&self) -> u64 {
        self.bell.seen(bell::EPOCH)
    }

    /// Everything in the queue's directory.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>> {
        list(&self.dir)
    }

    /// Removes what the dead left behind and nobody needs; the whole queue if nobody is left and
    /// nothing is unread.
    pub(crate) fn reclaim(&self) -> Result<Reclaimed> {
        self.bell.ask();
        let bell = Some(&self.bell);
        let reclaimed = reclaim_by(self.node.domain(), &self.dir, bell, self.unread)?;
        if reclaimed.removed_queue {
            remove_parents(&self.parents)?;
        }
        Ok(reclaimed)
    }

    /// Maps a segment of a lane of ours, and not of a namesake in a domain that was made anew.
    ///
    /// # Errors
    /// Those of [`Segment::open`]; `Corrupt` when our node is not listed any more.
    pub(crate) fn open_segment(&self, id: ProducerId, segment: u32) -> Result<Segment> {
        let opened = Segment::open(&self.dir, id, segment, self.node.domain())?;
        if !fault("lane.namesake") {
            self.node.must_be_listed()?;
        }
        Ok(opened)
    }

    /// Removes a segment, unless what lies there is a namesake's.
    pub(crate) fn unlink(&self, segment: &Path) -> Result<bool> {
        Ok((self.node.is_listed() || fault("lane.namesake")) && file::unlink(segment)?)
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
                removed += usize::from(self.unlink(&segment_path(&self.dir, id, segment))?);
            }
        }
        Ok(removed)
    }
}

/// Removes the queue of another type if it has neither a live member nor a message, so that it can
/// be made anew.
///
/// # Errors
/// `refused`, with who or what keeps the type; a lack of what it takes to find out.
///
/// # Crash safety
/// **Strict.** As `reclaim`.
fn give_way(domain: &DomainPath, site: &Site, deadline: Deadline, refused: Error) -> Result<()> {
    let mut left = Reclaimed::default();
    let looked = living_members(domain, deadline, || {
        left = match reclaim(domain, &site.dir, site.unread) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                Reclaimed { removed_queue: true, ..Reclaimed::default() }
            }
            left => left?,
        };
        let looked_at = !left.busy || !left.living.is_empty();
        Ok(looked_at
            .then(|| left.living.iter().copied().chain(producers(domain, &site.dir)).collect()))
    });
    let _ = remove_parents(&site.parents);
    let keeps = match looked {
        _ if left.removed_queue => return Ok(()),
        Err(e) if e.is_lack() => return Err(e),
        Ok(living) if !living.is_empty() => format!("it has live members: {living}"),
        Ok(_) if !left.busy => {
            "nobody has it open, but it holds messages that nobody received: receive them with \
             their own type, or remove them by 'outlive clean'"
                .into()
        }
        _ => return Err(refused),
    };
    Err(refused.and_remedy(&keeps))
}

/// Removes the directories above a queue that are empty; the outermost stays with the domain.
fn remove_parents(parents: &[PathBuf]) -> Result<()> {
    for parent in parents[1..].iter().rev() {
        file::remove_dir(parent)?;
    }
    Ok(())
}
