//! The shared memory of a round.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

use zerocopy::FromZeros;

use crate::process::shared_zeroes;

/// What the processes of a round tell each other; zeroed anonymous shared memory.
#[repr(C)]
#[derive(Debug, Default, FromZeros)]
pub(crate) struct Board {
    /// 1: end.
    pub(crate) stop: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) attacks: AtomicU64,
    pub(crate) stops: AtomicU64,
    pub(crate) joins: AtomicU64,
    /// The talker's publisher: node and port, and whether contents can be vouched for.
    pub(crate) talker: [AtomicU64; 2],
    pub(crate) intact: AtomicU64,
    /// Messages that the calm publisher sent, once it has ended.
    pub(crate) calm_sent: AtomicU64,
    /// The nodes of the calm pair, whose files the operator spares.
    pub(crate) calm_nodes: [AtomicU64; 2],
    pub(crate) members: [Member; MEMBERS],
}

/// One survivor.
#[repr(C)]
#[derive(Debug, Default, FromZeros)]
pub(crate) struct Member {
    pub(crate) ready: AtomicU64,
    /// Operations done, errors they told of, messages received.
    pub(crate) done: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) received: AtomicU64,
    /// Messages that nobody committed, lost or torn; operations far beyond their deadline.
    pub(crate) wrong: AtomicU64,
    pub(crate) slow: AtomicU64,
}

pub(crate) const MEMBERS: usize = 5;

impl Board {
    pub(super) fn map() -> &'static Self {
        shared_zeroes()
    }

    pub(crate) fn ends(&self) -> bool {
        self.stop.load(Acquire) != 0
    }
}
