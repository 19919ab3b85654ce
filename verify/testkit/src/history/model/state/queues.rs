//! Queues, and their producers.

use std::collections::BTreeSet;

use crate::history::step::Handle;

/// A queue by its name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    pub(crate) type_: Option<u64>,
    /// Producers whose messages may be there, also those that have gone.
    pub(crate) lanes: Vec<Handle>,
}

#[derive(Clone, Debug)]
pub(crate) struct Producer {
    pub(crate) queue: u64,
    pub(crate) bound: u64,
    /// Bytes of each message that was sent.
    pub(crate) sent: Vec<u64>,
    pub(crate) taken: u64,
    /// Consumers that were told that it came, and that it ended.
    pub(crate) joined: BTreeSet<Handle>,
    pub(crate) ended: BTreeSet<Handle>,
}

impl Producer {
    pub(crate) fn unread(&self) -> u64 {
        self.sent.len() as u64 - self.taken
    }

    pub(crate) fn unread_bytes(&self) -> u64 {
        self.sent[self.taken as usize..].iter().sum()
    }
}
