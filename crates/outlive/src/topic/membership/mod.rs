//! Joining a topic and seeing who is there. `entry` tells whose file is whose; `pulse` is what each
//! hot call looks at: forked? did members come or go? `reclaim` removes what nobody needs any more.
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
pub(crate) mod entry;
pub(crate) mod meta;
pub(crate) mod pulse;
pub(crate) mod reclaim;
pub(crate) mod ring_header;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ring::layout::bell;
use crate::domain::bell::Bell;
use crate::domain::header::{FileHeader, FileKind, HEADER_BYTES};
use crate::domain::joining::{Joining, join_until, must_not_be_missing};
use crate::domain::name::TopicName;
use crate::domain::path::SLOW_PATH_NS_MAX;
use crate::node::Node;
use crate::node::living::living_members;
use crate::os::fs::file;
use crate::os::time::deadline::Deadline;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};
use entry::{Entry, list, subscriber_path};
use meta::{Meta, WantedMeta};
use reclaim::{Messages, Reclaimed, reclaim, reclaim_by, undo_join};

/// A topic that this process has joined.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: TopicName,
    pub(crate) dir: PathBuf,
    pub(crate) meta: Meta,
    pub(crate) node: Node,
    bell: Bell,
}

/// Which ports came or went: the place of their epoch in the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Ports {
    Publishers = bell::PUBLISHERS,
    Subscribers = bell::SUBSCRIBERS,
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
                    let living =
                        living_members(domain, deadline, || match reclaim(domain, &path) {
                            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Some(Vec::new())),
                            left => left.map(|left| (!left.busy).then_some(left.living)),
                        })?;
                    if living.is_empty() {
                        return Ok(None);
                    }
                    Err(e.and_remedy(&format!("it has live members: {living}")))
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
        let member = |e: &Entry| matches!(e, Entry::Publisher(_) | Entry::Subscriber { .. });
        for name in ["meta", "bell"] {
            let has_members = || Ok(list(path)?.iter().any(member));
            must_not_be_missing("topic", &path.join(name), has_members)?;
        }
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
            && self.reclaim_by(Messages::Unread).map_or_else(|e| e.is_lack(), |done| done.files > 0)
    }

    fn reclaim_by(&self, messages: Messages) -> Result<Reclaimed> {
        self.bell.ask();
        reclaim_by(self.node.domain(), &self.dir, Some(&self.bell), messages)
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
