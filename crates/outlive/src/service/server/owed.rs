//! What clients are still to be told because their answers could not be sent.

use std::collections::VecDeque;

use crate::queue::ProducerId;
use crate::{Error, ErrorKind, Result};

/// Requests of one client whose answer could not be sent and of which it is still to be told. From
/// here on its further requests wait; those that were handed out before may add to them.
const OWED_MAX: usize = 1024;

/// What clients are to be told instead of answers that could not be sent.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// Nothing is owed to none of them.
    clients: Vec<Client>,
}

/// The ids of a client's requests, and what to say of each.
#[derive(Debug)]
struct Client {
    id: ProducerId,
    told: VecDeque<(u64, String)>,
}

impl Owed {
    pub(super) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// A client is to be told that there is no answer.
    #[cold]
    pub(super) fn add(&mut self, client: ProducerId, request: u64, why: String) {
        let known = self.clients.iter().position(|c| c.id == client);
        let i = known.unwrap_or_else(|| {
            self.clients.push(Client { id: client, told: VecDeque::new() });
            self.clients.len() - 1
        });
        self.clients[i].told.push_back((request, why));
    }

    /// Whether a client has left so much untaken that no more of its requests are received.
    pub(super) fn is_too_much(&self, client: ProducerId) -> bool {
        self.clients.iter().any(|c| c.id == client && c.told.len() >= OWED_MAX)
    }

    /// Tells those whose answer could not be sent, or `only` one of them, by `tell`; each as much
    /// as has room in its lane.
    #[cold]
    pub(super) fn pay(
        &mut self,
        only: Option<ProducerId>,
        mut tell: impl FnMut(ProducerId, u64, &str) -> Result<()>,
    ) {
        self.clients.retain_mut(|client| {
            while only.is_none_or(|only| only == client.id)
                && let Some((request, why)) = client.told.front()
            {
                match tell(client.id, *request, why) {
                    Err(e) if !is_final(&e) => break,
                    _ => drop(client.told.pop_front()),
                }
            }
            !client.told.is_empty()
        });
    }

    /// A client that is gone.
    pub(super) fn forget(&mut self, client: ProducerId) {
        self.clients.retain(|c| c.id != client);
    }
}

pub(super) fn no_answer(why: &Error) -> String {
    format!("no answer: {}", why.kind())
}

/// Whether a client that could not be answered cannot be told so either.
pub(super) fn is_final(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::ClientDied | ErrorKind::Corrupt)
}
