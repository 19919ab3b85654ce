//! A request as its server holds it.

use std::ops::Deref;

use super::wire::body::Body;
use crate::os::time::deadline::Deadline;
use crate::queue::ProducerId;
use crate::types::Payload;

/// A request, copied out of shared memory. Answer it with [`crate::Server::respond`].
///
/// If it is dropped without an answer, its client waits until its deadline, or until the server
/// dies or leaves.
#[derive(Debug)]
#[must_use = "its client waits for an answer"]
pub struct Request<Q: Payload + ?Sized> {
    pub(super) client: ProducerId,
    pub(super) id: u64,
    /// Which service's server received it: where that has its queue.
    pub(super) of: usize,
    pub(super) deadline: Deadline,
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

    /// When its client stops waiting.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }
}

impl<Q: Payload + ?Sized> Deref for Request<Q> {
    type Target = Q;

    #[inline]
    fn deref(&self) -> &Q {
        &self.body
    }
}
