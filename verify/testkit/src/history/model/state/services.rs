//! Ends of services, and requests.

use std::collections::BTreeSet;

use crate::history::step::Handle;

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) service: u64,
    pub(crate) resume: bool,
    pub(crate) asked: Vec<Asked>,
}

/// A request, as its client sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) ticket: Handle,
    /// As the library counts.
    pub(crate) number: u64,
    /// Its time was up before anybody could see it.
    pub(crate) late: bool,
    /// Given up by its client, and whether the server was told, as far as that is known.
    pub(crate) given_up: bool,
    pub(crate) told: Option<bool>,
    /// The server that it was sent to last, for sure.
    pub(crate) at: Handle,
    /// Servers that have received it.
    pub(crate) handed: BTreeSet<Handle>,
    /// Answers on their way: by which server, which part, how it is.
    pub(crate) answers: Vec<(Handle, u64, u64)>,
    /// Its end was told.
    pub(crate) done: bool,
}

impl Asked {
    pub(crate) fn is_open(&self) -> bool {
        !self.done && !self.given_up
    }

    /// Whether it waits for more than is on its way: only then another server is asked.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.is_open() && self.answers.iter().all(|(.., kind)| *kind == 0)
    }
}

/// What a server has in its hand.
#[derive(Clone, Debug)]
pub(crate) struct InHand {
    pub(crate) of: Handle,
    pub(crate) client: Handle,
    pub(crate) ticket: Handle,
    pub(crate) parts: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) service: u64,
    /// Requests that it has seen, but not given out yet.
    pub(crate) seen: BTreeSet<Handle>,
}
