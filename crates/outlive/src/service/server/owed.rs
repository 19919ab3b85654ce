//! What clients are still to be told because their answers could not be sent.

use std::collections::VecDeque;

use super::Server;
use crate::queue::ProducerId;
use crate::service::wire::frame;
use crate::sync::fault;
use crate::types::Payload;
use crate::{Error, ErrorKind};

/// Requests of one client whose answer could not be sent and of which it is still to be told. From
/// here on its further requests wait; those that were handed out before may add to them.
const OWED_MAX: usize = 1024;

/// What a client is to be told instead of answers that could not be sent: the ids of its requests,
/// and what to say of each.
#[derive(Debug)]
pub(super) struct Owed {
    pub(super) client: ProducerId,
    told: VecDeque<(u64, String)>,
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Server<Q, R> {
    /// A client is to be told that there is no answer.
    #[cold]
    fn owe(&mut self, client: ProducerId, id: u64, why: String) {
        let known = self.owed.iter().position(|owed| owed.client == client);
        let i = known.unwrap_or_else(|| {
            self.owed.push(Owed { client, told: VecDeque::new() });
            self.owed.len() - 1
        });
        self.owed[i].told.push_back((id, why));
    }

    /// Tells a client at once that there is no answer, or as soon as that can be done.
    pub(super) fn will_not_answer(&mut self, client: ProducerId, id: u64, why: String) {
        self.owe(client, id, why);
        if !fault("server.refusal_waits") {
            self.pay(Some(client));
        }
    }

    /// Whether a client has left so much untaken that no more of its requests are received.
    pub(super) fn owes_too_much(&self, client: ProducerId) -> bool {
        self.owed.iter().any(|owed| owed.client == client && owed.told.len() >= OWED_MAX)
    }

    /// Tells those whose answer could not be sent, or `only` one of them; each as much as has room
    /// in its lane.
    #[cold]
    pub(super) fn pay(&mut self, only: Option<ProducerId>) {
        let mut all = std::mem::take(&mut self.owed);
        all.retain_mut(|owed| {
            while only.is_none_or(|only| only == owed.client)
                && let Some((id, why)) = owed.told.front()
            {
                match self.put(owed.client, *id, frame::REFUSED, why.as_bytes()) {
                    Err(e) if !is_final(&e) => break,
                    _ => drop(owed.told.pop_front()),
                }
            }
            !owed.told.is_empty()
        });
        self.owed = all;
    }
}

pub(super) fn no_answer(why: &Error) -> String {
    format!("no answer: {}", why.kind())
}

/// Whether a client that could not be answered cannot be told so either.
pub(super) fn is_final(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::ClientDied | ErrorKind::Corrupt)
}
