//! A request as its server holds it.

use std::ops::Deref;

use super::wire::body::Body;
use crate::queue::ProducerId;
use crate::types::Payload;

/// A request, copied out of shared memory. Answer it with [`crate::Server::respond`].
///
/// Dropped without an answer, its client waits until its deadline, or until the server dies or
/// leaves.
#[derive(Debug)]
#[must_use = "its client waits for an answer"]
pub struct Request<Q: Payload + ?Sized> {
    pub(super) client: ProducerId,
    pub(super) id: u64,
    pub(super) deadline_ns: u64,
    pub(super) body: Body<Q>,
}

impl<Q: Payload + ?Sized> Request<Q> {
    /// Who sent it.
    pub fn client(&self) -> ProducerId {
        self.client
    }

    /// Its number among the requests of that client.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// When its client stops waiting, ns of CLOCK_MONOTONIC; `None` for never.
    pub fn deadline_ns(&self) -> Option<u64> {
        Some(self.deadline_ns).filter(|ns| *ns != u64::MAX)
    }
}

impl<Q: Payload + ?Sized> Deref for Request<Q> {
    type Target = Q;

    #[inline]
    fn deref(&self) -> &Q {
        &self.body
    }
}
