//! The ways back to clients: found when a request comes, and what goes through them.
#![allow(unsafe_code)]

use crate::domain::name::TopicName;
use crate::error::Refusals;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::queue::ProducerId;
use crate::queue::lane::layout::FIRST_BYTES;
use crate::queue::membership::meta::Meta;
use crate::queue::membership::{Queue, Site};
use crate::queue::producer::refused::Refused;
use crate::queue::producer::writer::Writer;
use crate::service::wire::frame::{self, ReplyHead, reply_bytes};
use crate::service::wire::site::{self, Uncalled};
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// What a server needs to find its clients.
#[derive(Debug)]
pub(in crate::service) struct Replies {
    pub(in crate::service) node: Node,
    pub(in crate::service) service: TopicName,
    /// What every reply queue must be.
    pub(in crate::service) meta: Meta,
    /// Of one lane of replies.
    pub(in crate::service) bound_bytes: u64,
}

impl Drop for Replies {
    /// After the reader, whose owner's word says that nobody serves any more.
    fn drop(&mut self) {
        if self.node.is_own_process() {
            let domain = self.node.domain();
            // Nobody is left to call again whom this does not reach.
            let _ = site::call_clients(domain, &site::dir(domain, &self.service));
        }
    }
}

/// The way back to one client.
#[derive(Debug)]
struct Way {
    client: ProducerId,
    port: u64,
    writer: Writer,
}

impl Way {
    /// Whether a client that seems to be gone is not proven to be.
    #[cold]
    fn is_in_doubt(&self) -> bool {
        self.writer.deserted().is_none()
    }
}

/// What became of the way back to a client.
pub(super) enum Found {
    Way,
    /// Nobody waits there any more, or what the client calls its reply queue is none.
    Nobody,
    /// Not for now: for lack of memory, space, descriptors or rights, while somebody holds its
    /// directory, or while its word says dead and its lock does not.
    NotYet,
}

/// The ways back to all clients.
#[derive(Debug)]
pub(in crate::service) struct Ways {
    replies: Replies,
    open: Vec<Way>,
    uncalled: Option<Uncalled>,
    /// Of all lanes of replies together.
    memory_bytes_max: u64,
    refusals: Refusals<2>,
}

impl Ways {
    pub(super) fn new(replies: Replies, uncalled: Option<Uncalled>) -> Self {
        let refusals = refusals(replies.service.as_str());
        Self { replies, open: Vec::new(), uncalled, memory_bytes_max: u64::MAX, refusals }
    }

    pub(super) fn node(&self) -> &Node {
        &self.replies.node
    }

    fn service(&self) -> &str {
        self.replies.service.as_str()
    }

    #[cfg(test)]
    pub(in crate::service) fn len(&self) -> usize {
        self.open.len()
    }

    /// Shared memory that the lanes take right now, bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.open.iter().map(|way| way.writer.memory_bytes()).sum()
    }

    pub(super) fn set_memory_bytes_max(&mut self, bytes: u64) {
        self.memory_bytes_max = bytes;
    }

    /// When clients that did not hear that this server came are to be told.
    pub(super) fn due(&self) -> Deadline {
        self.uncalled.as_ref().map_or(Deadline::NEVER, Uncalled::due)
    }

    /// Whether some are still to be told.
    pub(super) fn are_to_be_called(&self) -> bool {
        self.uncalled.is_some()
    }

    /// Whether nobody waits at the end of a client's way any more, or there is none.
    pub(super) fn is_gone(&mut self, client: ProducerId) -> bool {
        match self.open.iter_mut().find(|way| way.client == client) {
            Some(way) => match way.writer.check_served() {
                Err(Refused::Nobody) => way.writer.deserted().is_some(),
                served => served.is_err() && !fault("service.backlog_in_child"),
            },
            None => true,
        }
    }

    /// A client that is gone.
    pub(super) fn forget(&mut self, client: ProducerId) {
        self.open.retain(|way| way.client != client);
    }

    /// Opens the way back to a client. What is wrong with it harms nobody else.
    ///
    /// # Errors
    /// `ForkedChild`.
    pub(super) fn find(&mut self, client: ProducerId, port: u64) -> Result<Found> {
        let known = self.open.iter().position(|way| way.client == client && way.port == port);
        let i = match known {
            Some(i) => i,
            None => {
                let Replies { node, service, .. } = &self.replies;
                let site = site::replies(node.domain(), service, client.node, port);
                match site.dir.try_exists() {
                    Ok(true) => {}
                    Ok(false) => return Ok(Found::Nobody),
                    Err(_) => return Ok(Found::NotYet),
                }
                match self.open_one(&site) {
                    Ok(Some(writer)) => self.open.push(Way { client, port, writer }),
                    Ok(None) => return Ok(Found::NotYet),
                    Err(e) => return failed(e),
                }
                self.open.len() - 1
            }
        };
        match self.open[i].writer.check_served() {
            Ok(()) => Ok(Found::Way),
            // To pass its request over cannot be undone.
            Err(Refused::Nobody) if self.open[i].is_in_doubt() => Ok(Found::NotYet),
            Err(refused) => failed(self.open.swap_remove(i).writer.error(refused)),
        }
    }

    /// Joins the reply queue of a client; `None` while somebody removes or cleans it.
    fn open_one(&self, site: &Site) -> Result<Option<Writer>> {
        let Replies { node, meta, bound_bytes, .. } = &self.replies;
        let Some((queue, joining)) = Queue::join_now(node, site, meta)? else { return Ok(None) };
        let open = |queue| Writer::open(queue, *bound_bytes, FIRST_BYTES);
        queue.enter(joining, open).map(Some)
    }

    /// Clients that did not hear that this server came are told now.
    #[inline]
    pub(super) fn call_again(&mut self) {
        if let Some(uncalled) = self.uncalled.take_if(|_| !fault("service.called_once")) {
            let domain = self.replies.node.domain();
            self.uncalled = uncalled.again(domain, &site::dir(domain, &self.replies.service));
        }
    }

    pub(super) fn put(
        &mut self,
        client: ProducerId,
        id: u64,
        kind: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let Some(i) = self.open.iter().position(|way| way.client == client) else {
            return Err(self.refusals.error(ErrorKind::ClientDied));
        };
        if self.memory_bytes_max < u64::MAX {
            self.divide(i);
        }
        let way = &mut self.open[i];
        let meta = &way.writer.queue().meta;
        if kind != frame::REFUSED && !meta.fits(bytes.len()) {
            return Err(self.misfit(bytes.len()));
        }
        let at = reply_bytes(meta.of.align);
        let (shape, total) = (*way.writer.shape(), (at + bytes.len()) as u64);
        let to = match way.writer.reserve_at_once(total, &shape) {
            Ok(to) => to,
            Err(Refused::Nobody) => {
                let kind = match way.is_in_doubt() {
                    true => ErrorKind::WouldBlock,
                    false => ErrorKind::ClientDied,
                };
                return Err(self.refusals.error(kind));
            }
            Err(Refused::Failed(e)) if e.kind() == ErrorKind::Corrupt => {
                let lane = way.writer.id();
                return Err(self.lane_is_corrupt(client, lane));
            }
            Err(refused) => return Err(way.writer.error(refused)),
        };
        // SAFETY: `reserve_at_once` gave room for `total` bytes, aligned to 8 at least, which
        // nobody reads before the commit.
        unsafe {
            ReplyHead { kind, id }.write(to);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), bytes.len());
        }
        way.writer.commit(total, &shape);
        Ok(())
    }

    /// Bounds the lane of `ways[i]` by what the others leave of the maximum.
    #[cold]
    fn divide(&mut self, i: usize) {
        let others = self.memory_bytes() - self.open[i].writer.memory_bytes();
        let left = self.memory_bytes_max.saturating_sub(others);
        self.open[i].writer.set_bound_bytes(left.min(self.replies.bound_bytes));
    }

    #[cold]
    fn misfit(&self, bytes: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "answering a request of service",
            self.service(),
            format!("a response of its type cannot have {bytes} bytes"),
        )
    }

    #[cold]
    fn lane_is_corrupt(&self, client: ProducerId, lane: ProducerId) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("answering client {client} of service"),
            self.service(),
            format!(
                "the lane {lane} of replies to it is corrupt, and it does not read it any more: \
                 nothing was sent; open that client again"
            ),
        )
    }
}

/// Nobody waits for an answer, or it is in doubt whether somebody does. One text for all clients:
/// it is made when it is printed, perhaps after the next one was refused.
fn refusals(service: &str) -> Refusals<2> {
    Refusals::new(service, [ErrorKind::ClientDied, ErrorKind::WouldBlock], |at, kind| {
        let why = match kind {
            ErrorKind::ClientDied => "nobody waits for the answer: go on with the next request",
            _ => {
                "its word says that it ends, its lock that it lives: nothing was sent; if it \
                 lives, it will be told that there is no answer"
            }
        };
        Error::new(kind, "answering a client of service", at.object(), why)
    })
}

/// What an error of opening a client's reply queue says of that client.
#[cold]
fn failed(e: Error) -> Result<Found> {
    use ErrorKind::{Corrupt, NotFound, NotOwned, OwnerDied, TypeMismatch};
    Ok(match e.kind() {
        ErrorKind::ForkedChild => return Err(e),
        _ if fault("server.one_fails_all") => return Err(e),
        NotFound | OwnerDied | Corrupt | NotOwned | TypeMismatch => Found::Nobody,
        ErrorKind::VersionMismatch => Found::Nobody,
        ErrorKind::Permission if fault("server.denied_is_gone") => Found::Nobody,
        // Lack of rights is no proof that nobody waits, and who does could not be told.
        _ => Found::NotYet,
    })
}
