//! The two words that every hot call looks at: has this process forked, has membership changed.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use crate::node::forked_child;
use crate::os::process::fork;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;
use crate::topic::membership::{Ports, Topic};

/// Address of the epoch, so that a hot call follows no chain of pointers.
#[derive(Debug)]
pub(crate) struct Pulse {
    epoch: NonNull<AtomicU64>,
    generation: u32,
    /// Keeps the bell mapped.
    topic: Arc<Topic>,
}

// SAFETY: the epoch is an atomic in a mapping that `topic` keeps; nothing is bound to a thread.
unsafe impl Send for Pulse {}

impl Pulse {
    /// `watched`: the ports whose coming and going matters.
    pub(crate) fn new(topic: &Arc<Topic>, watched: Ports) -> Self {
        let epoch = NonNull::from(topic.epoch(watched));
        let generation = fork::fork_generation();
        Self { epoch, generation, topic: Arc::clone(topic) }
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    /// Refuses in a forked child, whose handles are the parent's.
    #[inline]
    pub(crate) fn check_process(&self) -> crate::Result<()> {
        if self.generation == fork::fork_generation() { Ok(()) } else { Err(forked_child()) }
    }

    /// Nothing to attend to: same process, bell at `seen_epoch`.
    ///
    /// # Real-time
    /// Two loads.
    #[inline]
    pub(crate) fn is_steady(&self, seen_epoch: u64) -> bool {
        // SAFETY: it points into a mapping that `topic` keeps.
        let epoch = unsafe { self.epoch.as_ref() };
        self.generation == fork::fork_generation() && epoch.load(Relaxed) == seen_epoch
    }
}
