//! What all routes to and from ROS 2 have in common, as parts of one node there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outlive_record::ros2::{epoch_moved, epoch_ns};

use super::known::Known;
use super::names::{Participant, Port, Topic};
use super::qos::Qos;
use crate::shared::Shared;

/// What to add to CLOCK_MONOTONIC for the time since 1970, ns; the same for all routes, so that
/// stamps that are the same here are the same there.
#[derive(Clone)]
pub(super) struct Epoch(Arc<AtomicU64>);

impl Epoch {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(epoch_ns())))
    }

    /// One that is so much.
    #[cfg(test)]
    pub(super) fn at_ns(ns: u64) -> Self {
        Self(Arc::new(AtomicU64::new(ns)))
    }

    pub(super) fn ns(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// The time of day may have been set.
    pub(super) fn look(&self) {
        if let Some(now) = epoch_moved(self.ns()) {
            self.0.store(now, Relaxed);
        }
    }
}

/// What routes need to be part of the graph.
pub(super) struct Member {
    pub(super) shared: Arc<Shared>,
    pub(super) participant: Participant,
    pub(super) known: Known,
    pub(super) epoch: Epoch,
    /// Ports numbered so far; 0 is the node.
    ports: AtomicU64,
}

impl Member {
    pub(super) fn new(shared: Arc<Shared>, participant: Participant, known: Known) -> Self {
        Self { shared, participant, known, epoch: Epoch::new(), ports: AtomicU64::new(1) }
    }

    /// The token of one more port.
    pub(super) fn port_token(&self, port: Port, topic: &Topic, qos: Qos) -> String {
        let id = self.ports.fetch_add(1, Relaxed);
        self.participant.port_token(id, port, topic, qos)
    }
}
