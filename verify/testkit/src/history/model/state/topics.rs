//! Topics, and their ends.

use std::collections::BTreeMap;

use crate::history::step::Handle;

/// A topic by its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topic {
    pub(crate) type_: Option<u64>,
    /// Publishers since it was made, by birth.
    pub(crate) rings: Vec<Handle>,
}

#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    pub(crate) topic: u64,
    pub(crate) depth: u64,
    pub(crate) volatile: bool,
    pub(crate) waits: bool,
    /// It waits as long as it takes.
    pub(crate) patient: bool,
    /// Messages that it may have published since it began to wait.
    pub(crate) pending: u64,
    /// It began to wait where it lacked something: its message may find no place.
    pub(crate) lacking: bool,
    /// When each message was published.
    pub(crate) sent: Vec<u64>,
    pub(crate) born_at: u64,
    pub(crate) ended_at: Option<u64>,
    /// Its ring has been found unwanted: it may be gone. Or what it holds is not known.
    pub(crate) unsure: bool,
}

impl Publisher {
    pub(crate) fn count(&self) -> u64 {
        self.sent.len() as u64
    }

    /// The oldest message that its ring may hold.
    pub(crate) fn lowest(&self) -> u64 {
        self.count().saturating_sub(self.depth)
    }

    /// The oldest message that its ring holds for sure.
    pub(crate) fn floor(&self) -> u64 {
        (self.count() + self.pending).saturating_sub(self.depth)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Subscriber {
    pub(crate) topic: u64,
    pub(crate) reliable: bool,
    pub(crate) borrows: u64,
    pub(crate) opened_at: u64,
    /// When it last found nothing.
    pub(crate) looked_at: u64,
    /// It was limited: what could not be mapped was passed over.
    pub(crate) blurred: bool,
    /// It was limited once: of what the dead left, some could be mapped sooner than older ones.
    pub(crate) unsorted: bool,
    pub(crate) cursors: BTreeMap<Handle, Cursor>,
}

/// How far a subscriber is in a ring.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    pub(crate) next: u64,
    /// It may begin so far back.
    pub(crate) earliest: u64,
    pub(crate) joined: bool,
    pub(crate) ended: bool,
}
