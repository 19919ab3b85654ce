//! The three words that every hot call looks at: has this process forked, is our own token held,
//! has membership changed.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::membership::{Ports, Topic};
use crate::node::forked_child;
use crate::os::{fork, robust};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64};

/// Addresses of the words, so that a hot call follows no chain of pointers.
#[derive(Debug)]
pub(crate) struct Pulse {
    token: NonNull<AtomicU32>,
    epoch: NonNull<AtomicU64>,
    generation: u32,
    /// Keeps both words mapped: the topic its bell, and its node the node's file.
    _topic: Arc<Topic>,
}

// SAFETY: the words are atomics in mappings that `_topic` keeps; nothing is bound to a thread.
unsafe impl Send for Pulse {}

impl Pulse {
    /// `watched`: the ports whose coming and going matters.
    pub(crate) fn new(topic: &Arc<Topic>, watched: Ports) -> crate::Result<Self> {
        let token = NonNull::from(topic.node.own_token_word()?);
        let epoch = NonNull::from(topic.epoch(watched));
        let generation = fork::fork_generation();
        Ok(Self { token, epoch, generation, _topic: Arc::clone(topic) })
    }

    /// Refuses in a forked child, whose handles are the parent's.
    #[inline]
    pub(crate) fn check_process(&self) -> crate::Result<()> {
        if self.generation == fork::fork_generation() { Ok(()) } else { Err(forked_child()) }
    }

    /// Nothing to attend to: same process, token held, bell at `seen_epoch`.
    ///
    /// # Real-time
    /// Three loads.
    #[inline]
    pub(crate) fn is_steady(&self, seen_epoch: u64) -> bool {
        // SAFETY: both point into mappings that `_topic` keeps.
        let (token, epoch) = unsafe { (self.token.as_ref(), self.epoch.as_ref()) };
        self.generation == fork::fork_generation()
            && robust::is_alive_word(token.load(Relaxed))
            && epoch.load(Relaxed) == seen_epoch
    }
}
