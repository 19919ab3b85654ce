//! The answering end of a service.
//! Begin with `receive`, here, and `answers`, which go by the `ways` back to clients. `owed` is
//! what could not be sent yet, `request` what the server gets.
#![allow(unsafe_code)]

mod answers;
mod owed;
pub(super) mod request;
pub(super) mod ways;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use super::wire::body::{Body, NoBody};
use super::wire::frame;
use super::wire::frame::{RequestHead, request_bytes};
use super::wire::site::Uncalled;
use crate::Result;
use crate::os::time::deadline::Deadline;
use crate::queue;
use crate::queue::ProducerId;
use crate::queue::consumer::reader::Reader;
use crate::sync::fault;
use crate::types::Payload;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use owed::{Owed, no_answer};
use request::Request;
use ways::{Found, Replies, Ways};

/// Requests that are taken in while the caller looks for cancellations.
const BACKLOG_MAX: usize = 1024;
/// Cancellations kept for requests that were handed out; beyond it the oldest is forgotten, and
/// the answer to it is sent to a client that no longer wants it.
const CANCELLED_MAX: usize = 1024;
/// Between two attempts to tell them, ns.
const OWED_NS: u64 = 2_000_000;

/// The one server of a service: receives the requests of all clients and answers each in its own
/// time, in any order, at once or in parts.
///
/// It skips requests whose client is dead, whose deadline has passed, or that were sent to an
/// earlier server; and those whose cancellation it has read: that lies behind the request, so a
/// request may be received that was cancelled already, which [`Server::is_cancelled`] tells. If
/// this process dies, its clients know at once.
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
    // After the reader: as it drops it calls clients, who look whether anybody serves.
    pub(super) ways: Ways,
    term: u64,
    backlog: VecDeque<Request<Q>>,
    pub(super) cancelled: VecDeque<(ProducerId, u64)>,
    owed: Owed,
    passed_over: u64,
    _reply: PhantomData<fn(&R)>,
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Server<Q, R> {
    pub(super) fn new(reader: Reader, replies: Replies, uncalled: Option<Uncalled>) -> Self {
        let term = reader.term();
        Self {
            reader,
            ways: Ways::new(replies, uncalled),
            term,
            backlog: VecDeque::new(),
            cancelled: VecDeque::new(),
            owed: Owed::default(),
            passed_over: 0,
            _reply: PhantomData,
        }
    }

    /// The service's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let server = node.service::<u32, u32>("plan")?.server()?;
    /// assert_eq!(server.service(), "/plan"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn service(&self) -> &str {
        self.reader.queue().name.as_str()
    }

    /// Requests that were skipped because nobody waits for them any more.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&1)?;
    /// let first = server.receive()?.expect("sent just now");
    /// let second = client.send(&2)?;
    /// client.cancel(second)?;
    /// assert!(!server.is_cancelled(&first)?); // reads what else has come
    /// assert!(server.receive()?.is_none());
    /// assert_eq!(server.passed_over(), 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Shared memory that the lanes of replies take right now, bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// assert_eq!(server.memory_bytes(), 0); // nobody was answered yet
    /// client.send(&7)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &42)?;
    /// assert!(server.memory_bytes() > 0); // the lane to this client
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.ways.memory_bytes()
    }

    /// Most shared memory that the lanes of replies to all clients may grow to together, bytes; no
    /// maximum unless set: to divide memory among many services. Memory in use stays until its
    /// replies are received, and a new client still gets a lane of 16 KiB. An answer that has no
    /// room fails with `WouldBlock`, one that is larger than the maximum with `InvalidArgument`.
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
        self.ways.set_memory_bytes_max(bytes);
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
            self.ways.node().tend()?;
        }
        loop {
            self.pass_over_taken_in();
            let request = match self.backlog.pop_front() {
                None => self.next_request()?,
                request => request,
            };
            let hasty = !self.owed.is_empty() || self.ways.are_to_be_called();
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
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let service = node.service::<u32, u32>("/plan")?;
    /// let (mut server, mut client) = (service.clone().server()?, service.client()?);
    /// let fd = server.fd()?.try_clone_to_owned().expect("a descriptor is free");
    /// assert!(server.receive()?.is_none());
    /// client.send(&7)?; // from here on it is readable
    /// let mut readable = outlive::Descriptor::readable(&fd);
    /// outlive::WaitSet::new().wait(&mut [&mut readable], Duration::from_secs(5))?;
    /// assert_eq!(*server.receive()?.expect("readable"), 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// As [`Server::receive`], waiting at most `timeout`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// assert!(server.receive_timeout(Duration::from_millis(1))?.is_none());
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&7)?;
    /// assert_eq!(*server.receive_timeout(Duration::from_secs(5))?.expect("sent just now"), 7);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<Request<Q>>> {
        self.receive_until(Deadline::after(timeout))
    }

    /// As [`Server::receive`], waiting until `deadline`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// use outlive::Deadline;
    ///
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let cycle = Deadline::after(Duration::from_millis(1));
    /// while let Some(request) = server.receive_until(cycle)? {
    ///     server.respond(request, &0)?; // as many as come in this cycle
    /// }
    /// assert!(cycle.has_passed());
    /// # Ok::<(), outlive::Error>(())
    /// ```
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
        self.ways.is_gone(client) || deadline.has_passed()
    }

    /// Tells a client at once that there is no answer, or as soon as that can be done.
    fn will_not_answer(&mut self, client: ProducerId, id: u64, why: String) {
        self.owed.add(client, id, why);
        if !fault("server.refusal_waits") {
            self.pay(Some(client));
        }
    }

    /// Tells all whose answer could not be sent, or `only` one of them, that there is none.
    fn pay(&mut self, only: Option<ProducerId>) {
        let ways = &mut self.ways;
        self.owed.pay(only, |client, id, why| ways.put(client, id, frame::REFUSED, why.as_bytes()));
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

    /// Of all servers that live in this process.
    fn address(&self) -> usize {
        Arc::as_ptr(self.reader.queue()).addr()
    }

    /// When there is something to do without any news.
    fn next_due(&self) -> Deadline {
        let owed = if self.owed.is_empty() { Deadline::NEVER } else { Deadline::in_ns(OWED_NS) };
        let owed = owed.min(self.ways.due());
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
                match self.ways.find(client, reply_port)? {
                    Found::Way if self.owed.is_too_much(client) => {
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
                    Err(NoBody::Memory(e)) => self.will_not_answer(client, id, no_answer(&e)),
                    Err(NoBody::Value(what)) => self.will_not_answer(client, id, what),
                }
            } else {
                self.passed_over += 1;
            }
            self.reader.take(1);
        }
        self.forget_the_gone();
        self.ways.call_again();
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

    /// Ways back to clients that died, left or are not read any more go with them.
    fn forget_the_gone(&mut self) {
        while let Some(event) = self.reader.next_event() {
            let id = match event {
                queue::Event::ProducerDied(id) | queue::Event::ProducerLeft(id) => id,
                queue::Event::ProducerCorrupt { producer, .. } => producer,
                queue::Event::ProducerJoined(_) => continue,
            };
            self.ways.forget(id);
            let before = self.backlog.len();
            self.backlog.retain(|request| request.client != id);
            self.passed_over += (before - self.backlog.len()) as u64;
            self.cancelled.retain(|(client, _)| *client != id);
            self.owed.forget(id);
        }
    }
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
