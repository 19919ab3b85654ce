//! The answering end of a service.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::wire::body::{Body, NoBody};
use super::wire::frame;
use super::wire::frame::{ReplyHead, RequestHead, reply_bytes, request_bytes};
use super::wire::site;
use super::wire::site::Uncalled;
use crate::domain::name::TopicName;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::queue;
use crate::queue::ProducerId;
use crate::queue::consumer::reader::Reader;
use crate::queue::lane::layout::FIRST_BYTES;
use crate::queue::membership::meta::Meta;
use crate::queue::membership::{Queue, Site};
use crate::queue::producer::refused::Refused;
use crate::queue::producer::writer::Writer;
use crate::sync::fault;
use crate::types::Payload;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use crate::{Error, ErrorKind, Result};

/// Requests that are taken in while the caller looks for cancellations.
const BACKLOG_MAX: usize = 1024;
/// Cancellations kept for requests that were handed out; beyond it the oldest is forgotten, and
/// the answer to it is sent to a client that no longer wants it.
const CANCELLED_MAX: usize = 1024;
/// Requests of one client whose answer could not be sent and of which it is still to be told. From
/// here on its further requests wait; those that were handed out before may add to them.
const OWED_MAX: usize = 1024;
/// Between two attempts to tell them, ns.
const OWED_NS: u64 = 2_000_000;

/// What a server needs to find its clients.
#[derive(Debug)]
pub(super) struct Replies {
    pub(super) node: Node,
    pub(super) service: TopicName,
    /// What every reply queue must be.
    pub(super) meta: Meta,
    /// Of one lane of replies.
    pub(super) bound_bytes: u64,
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
pub(super) struct Way {
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

/// What a client is to be told instead of answers that could not be sent: the ids of its requests,
/// and what to say of each.
#[derive(Debug)]
struct Owed {
    client: ProducerId,
    told: VecDeque<(u64, String)>,
}

/// What became of the way back to a client.
enum Found {
    Way,
    /// Nobody waits there any more, or what the client calls its reply queue is none.
    Nobody,
    /// Not for now: for lack of memory, space, descriptors or rights, while somebody holds its
    /// directory, or while its word says dead and its lock does not.
    NotYet,
}

/// The one server of a service: receives the requests of all clients and answers each in its own
/// time, in any order, at once or in parts.
///
/// It skips requests whose client is dead, whose deadline has passed, that were cancelled, or that
/// were sent to an earlier server. If this process dies, its clients know at once.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let mut server = node.service::<u64, u64>("/square")?.server()?;
/// let client_node = node.clone();
/// let asking = std::thread::spawn(move || {
///     let mut client = client_node.service::<u64, u64>("/square")?.client()?;
///     Ok::<u64, outlive::Error>(*client.call(&7)?)
/// });
/// let request = loop {
///     let timeout = std::time::Duration::from_secs(5);
///     if let Some(request) = server.receive_timeout(timeout)? {
///         break request;
///     }
/// };
/// let answer = *request * *request;
/// server.respond(request, &answer)?;
/// assert_eq!(asking.join().unwrap()?, 49);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Server<Q: Payload + ?Sized, R: Payload + ?Sized> {
    reader: Reader,
    replies: Replies,
    term: u64,
    pub(super) ways: Vec<Way>,
    backlog: VecDeque<Request<Q>>,
    pub(super) cancelled: VecDeque<(ProducerId, u64)>,
    /// None of them is empty.
    owed: Vec<Owed>,
    uncalled: Option<Uncalled>,
    passed_over: u64,
    /// Of all lanes of replies together.
    memory_bytes_max: u64,
    _reply: PhantomData<fn(&R)>,
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Server<Q, R> {
    pub(super) fn new(reader: Reader, replies: Replies, uncalled: Option<Uncalled>) -> Self {
        let term = reader.term();
        Self {
            reader,
            replies,
            term,
            ways: Vec::new(),
            backlog: VecDeque::new(),
            cancelled: VecDeque::new(),
            owed: Vec::new(),
            uncalled,
            passed_over: 0,
            memory_bytes_max: u64::MAX,
            _reply: PhantomData,
        }
    }

    /// The service's name.
    pub fn service(&self) -> &str {
        self.reader.queue().name.as_str()
    }

    /// Requests that were skipped because nobody waits for them any more.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Shared memory that the lanes of replies take right now, bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.ways.iter().map(|way| way.writer.memory_bytes()).sum()
    }

    /// Most shared memory that the lanes of replies to all clients may grow to together, bytes; no
    /// maximum unless set: to divide memory among many services. Memory in use stays until its
    /// replies are received, and a new client still gets a lane of 16 KiB. An answer that has no
    /// room fails with [`WouldBlock`](ErrorKind::WouldBlock), one that is larger than the maximum
    /// with [`InvalidArgument`](ErrorKind::InvalidArgument).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, [u8]>("/file")?.server()?;
    /// let mut client = node.service::<u32, [u8]>("/file")?.client()?;
    /// server.set_memory_bytes_max(64 << 10);
    /// client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// let large = server.respond(request, &[0; 100_000]).unwrap_err();
    /// assert_eq!(large.kind(), outlive::ErrorKind::InvalidArgument);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn set_memory_bytes_max(&mut self, bytes: u64) {
        self.memory_bytes_max = bytes;
    }

    /// The next request, or `None` when there is none now. Never sleeps.
    ///
    /// # Errors
    /// `ForkedChild`; `Io` when the directory of the service cannot be read. A problem with one
    /// client is not an error here: while its reply queue cannot be opened (a full RAM disk, no
    /// descriptors, no rights), its requests wait and are tried again after 2 to 250 ms.
    ///
    /// # Crash safety
    /// **Strict.** Received when this returns. If the process dies before it answers, the client
    /// gets `ServerDied`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send_until(&1, outlive::Deadline::AT_ONCE)?; // nobody waits for its answer
    /// client.send(&2)?;
    /// let request = server.receive()?.expect("sent just now");
    /// assert_eq!((*request, server.passed_over()), (2, 1));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive(&mut self) -> Result<Option<Request<Q>>> {
        // What was taken in before is a copy in a forked child.
        if !fault("service.backlog_in_child") {
            self.replies.node.tend()?;
        }
        loop {
            self.pass_over_taken_in();
            let request = match self.backlog.pop_front() {
                None => self.next_request()?,
                request => request,
            };
            let hasty = !self.owed.is_empty() || self.uncalled.is_some();
            if request.is_some() || !self.reader.rest_also(None, hasty) {
                return Ok(request);
            }
        }
    }

    /// A file descriptor for epoll, asyncio and other event loops: readable unless the last
    /// receiving call found nothing, as [`Consumer::fd`](crate::Consumer::fd).
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// As [`Server::receive`], waiting at most `timeout`. Errors: as there.
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<Request<Q>>> {
        self.receive_until(Deadline::after(timeout))
    }

    /// As [`Server::receive`], waiting until `deadline`. Errors: as there.
    pub fn receive_until(&mut self, deadline: Deadline) -> Result<Option<Request<Q>>> {
        loop {
            if let Some(request) = self.receive()? {
                return Ok(Some(request));
            }
            if deadline.has_passed() {
                return Ok(None);
            }
            self.sleep_until(deadline)?;
        }
    }

    /// Sleeps until there may be a request, at most until `deadline`. For waits that must take
    /// nothing before they have looked elsewhere.
    #[doc(hidden)]
    pub fn sleep_until(&mut self, deadline: Deadline) -> Result<()> {
        self.reader.sleep(deadline.min(self.next_due()))
    }

    /// Whether nobody waits for the answer any more: the client has cancelled the request or died,
    /// or the deadline passed. Looks at what has arrived since.
    ///
    /// # Errors
    /// As [`Server::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// assert!(!server.is_cancelled(&request)?); // ask now and then while working on it
    /// drop(client); // a kill does the same
    /// assert!(server.is_cancelled(&request)?);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn is_cancelled(&mut self, request: &Request<Q>) -> Result<bool> {
        self.take_in(BACKLOG_MAX)?;
        let cancelled = self.cancelled.contains(&(request.client, request.id));
        Ok(cancelled || self.is_over(request.client, request.deadline))
    }

    /// Whether nobody waits for an answer to a request of `client` any more, whether it was
    /// cancelled or not.
    fn is_over(&mut self, client: ProducerId, deadline: Deadline) -> bool {
        let gone = match self.ways.iter_mut().find(|way| way.client == client) {
            Some(way) => match way.writer.check_served() {
                Err(Refused::Nobody) => way.writer.deserted().is_some(),
                served => served.is_err() && !fault("service.backlog_in_child"),
            },
            None => true,
        };
        gone || deadline.has_passed()
    }

    /// Skips those next of the requests that were taken in for which nobody waits any more.
    fn pass_over_taken_in(&mut self) {
        while let Some(&Request { client, deadline, .. }) = self.backlog.front()
            && self.is_over(client, deadline)
            && !fault("service.backlog_unasked")
        {
            self.backlog.pop_front();
            self.passed_over += 1;
        }
    }

    /// Answers a request.
    ///
    /// # Errors
    /// `ClientDied`: the client died or left. An answer that is only late, or cancelled, is sent.
    /// `WouldBlock`: the client is so far behind that the bound is reached, or it may be ending.
    /// `InvalidArgument`: larger than the bound, or the request is of another server.
    /// `NoSpace`, `Corrupt`. A live client whose answer could not be sent gets `Refused` as soon as
    /// there is room for that; with 1024 of these untaken, its further requests wait.
    ///
    /// # Crash safety
    /// **Strict.** As [`crate::Producer::send`]. If the process dies first, the client gets
    /// `ServerDied`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// drop(client); // a kill does the same
    /// let gone = server.respond(request, &2).unwrap_err();
    /// assert_eq!(gone.kind(), outlive::ErrorKind::ClientDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn respond(&mut self, request: Request<Q>, response: &R) -> Result<()> {
        self.end(&request, frame::LAST, response.bytes())
    }

    /// Sends one part of the answer; more parts follow, and [`Server::respond`] sends the last.
    ///
    /// # Errors
    /// As [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/count")?.server()?;
    /// let mut client = node.service::<u32, u32>("/count")?.client()?;
    /// client.send(&2)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond_part(&request, &1)?;
    /// server.respond(request, &2)?;
    ///
    /// let mut parts = Vec::new();
    /// while let Some(reply) = client.receive()? {
    ///     parts.push((*reply.body()?, reply.is_last()));
    /// }
    /// assert_eq!(parts, [(1, false), (2, true)]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn respond_part(&mut self, request: &Request<Q>, response: &R) -> Result<()> {
        let done = self.put(request.client, request.id, frame::PART, response.bytes());
        done.map_err(|e| self.not_answered(request, e))
    }

    /// Refuses a request and says why; the client gets `Refused`.
    ///
    /// # Errors
    /// As [`Server::respond`].
    ///
    /// # Crash safety
    /// **Strict.** As [`Server::respond`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/grip")?.server()?;
    /// let mut client = node.service::<u32, u32>("/grip")?.client()?;
    /// client.send(&900)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.refuse(request, "at most 500 N")?;
    /// let error = client.receive()?.expect("refused just now").into_response().unwrap_err();
    /// assert_eq!(error.kind(), outlive::ErrorKind::Refused);
    /// assert!(error.to_string().contains("at most 500 N"));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn refuse(&mut self, request: Request<Q>, why: &str) -> Result<()> {
        self.end(&request, frame::REFUSED, why.as_bytes())
    }

    /// Sends the last answer to a request; a client must not wait for one that cannot be sent.
    fn end(&mut self, request: &Request<Q>, kind: u64, bytes: &[u8]) -> Result<()> {
        let done = self.put(request.client, request.id, kind, bytes);
        if let Err(e) = &done
            && !is_final(e)
        {
            self.owe(request.client, request.id, no_answer(e));
            self.pay(Some(request.client));
        }
        self.cancelled.retain(|known| *known != (request.client, request.id));
        done.map_err(|e| self.not_answered(request, e))
    }

    /// Of all servers that live in this process.
    fn address(&self) -> usize {
        Arc::as_ptr(self.reader.queue()).addr()
    }

    /// A client of another service is unknown here, which does not say that it died.
    #[cold]
    fn not_answered(&self, request: &Request<Q>, why: Error) -> Error {
        if why.kind() != ErrorKind::ClientDied || request.of == self.address() {
            return why;
        }
        Error::new(
            ErrorKind::InvalidArgument,
            format!("answering client {} of service", request.client),
            self.service(),
            "the request is of another server: answer it there",
        )
    }

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

    /// Whether a client has left so much untaken that no more of its requests are received.
    fn owes_too_much(&self, client: ProducerId) -> bool {
        self.owed.iter().any(|owed| owed.client == client && owed.told.len() >= OWED_MAX)
    }

    /// Tells those whose answer could not be sent, or `only` one of them; each as much as has room
    /// in its lane.
    #[cold]
    fn pay(&mut self, only: Option<ProducerId>) {
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

    /// When there is something to do without any news.
    fn next_due(&self) -> Deadline {
        let owed = if self.owed.is_empty() { Deadline::NEVER } else { Deadline::in_ns(OWED_NS) };
        let owed = owed.min(self.uncalled.as_ref().map_or(Deadline::NEVER, Uncalled::due));
        // Nobody calls when a lane that was put off has its turn.
        if fault("server.put_off_forgotten") { owed } else { owed.min(self.reader.due()) }
    }

    /// Takes requests in until `wanted` are there.
    fn take_in(&mut self, wanted: usize) -> Result<()> {
        while self.backlog.len() < wanted {
            let Some(request) = self.next_request()? else { break };
            self.backlog.push_back(request);
        }
        Ok(())
    }

    /// The next request that somebody waits for.
    fn next_request(&mut self) -> Result<Option<Request<Q>>> {
        if !self.owed.is_empty() {
            self.pay(None);
        }
        // Here too: there may always be a next request.
        if !fault("server.gone_kept") {
            self.forget_the_gone();
        }
        while self.reader.next()? {
            let (Some(hand), Some(client)) = (self.reader.in_hand(), self.reader.sender()) else {
                break;
            };
            let align = self.reader.queue().meta.of.align;
            // SAFETY: the message in hand has `bytes` bytes, aligned to 8 at least.
            let head = unsafe { RequestHead::read(hand.ptr, hand.bytes, align) };
            let Some(head) = head.filter(|h| matches!(h.kind, frame::REQUEST | frame::CANCEL))
            else {
                self.reader.refuse_in_hand("the head of a request");
                continue;
            };
            let RequestHead { kind, id, term, deadline_ns, reply_port } = head;
            let deadline = Deadline::at_ns(deadline_ns);
            if kind == frame::CANCEL {
                self.note_cancel(client, id);
            } else if (term == self.term || fault("service.any_term")) && !deadline.has_passed() {
                match self.find_way(client, reply_port)? {
                    Found::Way if self.owes_too_much(client) => {
                        self.reader.put_off();
                        continue;
                    }
                    Found::Way => {}
                    Found::Nobody => {
                        self.passed_over += 1;
                        self.reader.take(1);
                        continue;
                    }
                    Found::NotYet => {
                        self.reader.put_off();
                        continue;
                    }
                }
                let from = request_bytes(align);
                // SAFETY: `read` made sure that the message is longer than its head; the rest of
                // the message in hand.
                let body = unsafe {
                    let meta = &self.reader.queue().meta;
                    Body::copy(hand.ptr.add(from), hand.bytes - from, meta)
                };
                match body {
                    Ok(body) => {
                        self.reader.take(1);
                        return Ok(Some(Request {
                            client,
                            id,
                            of: self.address(),
                            deadline,
                            body,
                        }));
                    }
                    Err(NoBody::Length) => {
                        self.reader.refuse_in_hand("the length of a request");
                        continue;
                    }
                    // Its bytes do not fit into our memory.
                    Err(NoBody::Memory(e)) => self.owe(client, id, no_answer(&e)),
                    Err(NoBody::Value(what)) => self.owe(client, id, what),
                }
            } else {
                self.passed_over += 1;
            }
            self.reader.take(1);
        }
        self.forget_the_gone();
        self.call_again();
        // A lane that could not be opened is tried again.
        let _ = self.reader.trouble();
        Ok(None)
    }

    fn note_cancel(&mut self, client: ProducerId, id: u64) {
        let before = self.backlog.len();
        self.backlog.retain(|request| request.client != client || request.id != id);
        if self.backlog.len() < before {
            self.passed_over += 1;
        } else {
            if self.cancelled.len() >= CANCELLED_MAX {
                self.cancelled.pop_front();
            }
            self.cancelled.push_back((client, id));
        }
    }

    /// Opens the way back to a client. What is wrong with it harms nobody else.
    ///
    /// # Errors
    /// `ForkedChild`.
    fn find_way(&mut self, client: ProducerId, port: u64) -> Result<Found> {
        let known = self.ways.iter().position(|way| way.client == client && way.port == port);
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
                match self.open_way(&site) {
                    Ok(Some(writer)) => self.ways.push(Way { client, port, writer }),
                    Ok(None) => return Ok(Found::NotYet),
                    Err(e) => return failed(e),
                }
                self.ways.len() - 1
            }
        };
        match self.ways[i].writer.check_served() {
            Ok(()) => Ok(Found::Way),
            // To pass its request over cannot be undone.
            Err(Refused::Nobody) if self.ways[i].is_in_doubt() => Ok(Found::NotYet),
            Err(refused) => failed(self.ways.swap_remove(i).writer.error(refused)),
        }
    }

    /// Joins the reply queue of a client; `None` while somebody removes or cleans it.
    fn open_way(&self, site: &Site) -> Result<Option<Writer>> {
        let Replies { node, meta, bound_bytes, .. } = &self.replies;
        let Some((queue, joining)) = Queue::join_now(node, site, meta)? else { return Ok(None) };
        let open = |queue| Writer::open(queue, *bound_bytes, FIRST_BYTES);
        queue.enter(joining, open).map(Some)
    }

    /// Clients that did not hear that this server came are told now.
    #[inline]
    fn call_again(&mut self) {
        if let Some(uncalled) = self.uncalled.take_if(|_| !fault("service.called_once")) {
            let domain = self.replies.node.domain();
            self.uncalled = uncalled.again(domain, &site::dir(domain, &self.replies.service));
        }
    }

    /// Ways back to clients that died, left or are not read any more go with them.
    fn forget_the_gone(&mut self) {
        while let Some(event) = self.reader.next_event() {
            let id = match event {
                queue::Event::ProducerDied(id) | queue::Event::ProducerLeft(id) => id,
                queue::Event::ProducerCorrupt { producer, .. } => producer,
                queue::Event::ProducerJoined(_) => continue,
            };
            self.ways.retain(|way| way.client != id);
            let before = self.backlog.len();
            self.backlog.retain(|request| request.client != id);
            self.passed_over += (before - self.backlog.len()) as u64;
            self.cancelled.retain(|(client, _)| *client != id);
            self.owed.retain(|owed| owed.client != id);
        }
    }

    fn put(&mut self, client: ProducerId, id: u64, kind: u64, bytes: &[u8]) -> Result<()> {
        let Some(i) = self.ways.iter().position(|way| way.client == client) else {
            return Err(self.client_died(client));
        };
        if self.memory_bytes_max < u64::MAX {
            self.divide(i);
        }
        let way = &mut self.ways[i];
        let meta = &way.writer.queue().meta;
        if kind != frame::REFUSED && !meta.fits(bytes.len()) {
            return Err(self.misfit(bytes.len()));
        }
        let at = reply_bytes(meta.of.align);
        let (shape, total) = (*way.writer.shape(), (at + bytes.len()) as u64);
        let to = match way.writer.reserve_at_once(total, &shape) {
            Ok(to) => to,
            Err(Refused::Nobody) => {
                return Err(match way.is_in_doubt() {
                    true => self.client_in_doubt(client),
                    false => self.client_died(client),
                });
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
        let others = self.memory_bytes() - self.ways[i].writer.memory_bytes();
        let left = self.memory_bytes_max.saturating_sub(others);
        self.ways[i].writer.set_bound_bytes(left.min(self.replies.bound_bytes));
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

    #[cold]
    fn client_in_doubt(&self, client: ProducerId) -> Error {
        Error::new(
            ErrorKind::WouldBlock,
            format!("answering client {client} of service"),
            self.service(),
            "its word says that it ends, its lock that it lives: nothing was sent; if it lives, it \
             will be told that there is no answer",
        )
    }

    #[cold]
    fn client_died(&self, client: ProducerId) -> Error {
        Error::new(
            ErrorKind::ClientDied,
            format!("answering client {client} of service"),
            self.service(),
            "nobody waits for the answer: go on with the next request",
        )
    }
}

fn no_answer(why: &Error) -> String {
    format!("no answer: {}", why.kind())
}

/// Whether a client that could not be answered cannot be told so either.
fn is_final(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::ClientDied | ErrorKind::Corrupt)
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

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Member for Server<Q, R> {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        self.pass_over_taken_in();
        // What is wrong, the next call says.
        let ready = self.take_in(1).is_err() || !self.backlog.is_empty();
        look.due(self.next_due());
        ready
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        self.backlog.is_empty() && self.reader.plan(plan)
    }

    fn seat(&self) -> Option<Seat<'_>> {
        self.reader.seat()
    }

    fn awake(&mut self) {
        self.reader.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        self.reader.overslept(how)
    }
}
