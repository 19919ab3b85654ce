//! The asking end of a service.
//! Begin with `send` and `receive`, here. `calls` is both in one, `reply` what the client gets,
//! `waits` what it sleeps on.
#![allow(unsafe_code)]

mod calls;
pub(super) mod reply;
mod waits;

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::wire::frame;
use super::wire::frame::{ReplyHead, RequestHead, request_bytes};
use crate::error::{Refusal, Refusals};
use crate::os::sleep::slice::slice_ns_max;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::queue;
use crate::queue::consumer::reader::Reader;
use crate::queue::producer::refused::Refused;
use crate::queue::producer::writer::Writer;
use crate::sync::fault;
use crate::types::Payload;
use crate::wait::WaitSet;
use crate::{Error, ErrorKind, Result};
use reply::{Outcome, Reply, Ticket, Why};
use reply::{failed, late, no_server, outcome, server_died, unreadable};

/// A request that is not answered yet.
#[derive(Debug)]
struct Waiting {
    id: u64,
    deadline: Deadline,
    /// The server it was sent to.
    term: u64,
    /// Its bytes, to send them again.
    bytes: Option<Box<[u8]>>,
}

/// How long a request that is to be sent again waits where there is no room for it, ns.
const AGAIN_NS: u64 = 1_000_000;

/// Sends requests to a service's server and receives its answers, each in its own time.
///
/// If the server dies, every wait ends at once: its answers are received, then the other requests
/// fail with `ServerDied` or are sent to the next server (`Builder::resume`). A stopped server is
/// alive; use deadlines against that.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::time::Duration;
///
/// let mut server = node.service::<[f64; 2], f64>("/add")?.server()?;
/// let mut client = node.service::<[f64; 2], f64>("/add")?.client()?;
///
/// let ticket = client.send(&[1.0, 2.0])?;
/// let request = server.receive()?.expect("sent just now");
/// let sum = request[0] + request[1];
/// server.respond(request, &sum)?;
///
/// let reply = client.receive_timeout(Duration::from_secs(1))?.expect("answered just now");
/// assert_eq!((reply.ticket(), *reply.body()?), (ticket, 3.0));
///
/// drop(server);
/// assert_eq!(client.call(&[1.0, 2.0]).unwrap_err().kind(), outlive::ErrorKind::ServerDied);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Client<Q: Payload + ?Sized, R: Payload + ?Sized> {
    reader: Reader,
    writer: Writer,
    pub(super) reply_port: u64,
    resume: bool,
    next_id: u64,
    /// The server that is known.
    pub(super) term: u64,
    /// In the order in which they were sent.
    waiting: VecDeque<Waiting>,
    /// Some of them are to be sent to this server too, from this instant on.
    again_ns: Option<u64>,
    ready: VecDeque<Reply<R>>,
    /// A server whose replies cannot be read, and what is wrong with them.
    unreadable: Option<(u64, String)>,
    set: Option<WaitSet>,
    /// When the server's lock is asked next, where others wait for the descriptor.
    confirm_ns: u64,
    /// Looks at the server.
    #[cfg(test)]
    pub(super) looks: u64,
    refusals: Refusals<2>,
    /// What became of a request whose server died.
    server_died: Error,
    _type: PhantomData<fn(&Q)>,
}

impl<Q: Payload + ?Sized, R: Payload + ?Sized> Client<Q, R> {
    pub(super) fn new(reader: Reader, writer: Writer, reply_port: u64, resume: bool) -> Self {
        let kinds = [ErrorKind::ServerDied, ErrorKind::Timeout];
        let service = reader.queue().name.as_str();
        let refusals = Refusals::new(service, kinds, |at, kind| match kind {
            ErrorKind::ServerDied => no_server(at.object()),
            _ => late(at.object()),
        });
        let words = |at: &Refusal, _| server_died(at.object());
        let server_died = Error::kept(ErrorKind::ServerDied, service, words);
        Self {
            reader,
            writer,
            refusals,
            server_died,
            reply_port,
            resume,
            next_id: 1,
            term: 0,
            waiting: VecDeque::new(),
            again_ns: None,
            ready: VecDeque::new(),
            unreadable: None,
            set: None,
            confirm_ns: 0,
            #[cfg(test)]
            looks: 0,
            _type: PhantomData,
        }
    }

    /// The service's name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let client = node.service::<u32, u32>("plan")?.client()?;
    /// assert_eq!(client.service(), "/plan"); // the leading slash is added
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn service(&self) -> &str {
        self.reader.queue().name.as_str()
    }

    /// Requests that are not answered yet.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let _ticket = client.send(&7)?;
    /// assert_eq!(client.waiting(), 1);
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &42)?;
    /// client.receive()?.expect("answered just now");
    /// assert_eq!(client.waiting(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Replies that [`Client::receive_for`] set aside for other requests.
    #[doc(hidden)]
    pub fn set_aside(&self) -> usize {
        self.ready.len()
    }

    /// Shared memory that the lane of requests takes right now, bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut client = node.service::<[u8], u32>("/store")?.client()?;
    /// let _server = node.service::<[u8], u32>("/store")?.server()?; // receives nothing
    /// let before = client.memory_bytes();
    /// for _ in 0..100 {
    ///     client.send(&[0; 10_000])?;
    /// }
    /// assert!(client.memory_bytes() >= before + 1_000_000); // its lane has grown
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn memory_bytes(&self) -> u64 {
        self.writer.memory_bytes()
    }

    /// Changes the bound of the lane of requests, as
    /// [`Producer::set_bound_bytes`](crate::Producer::set_bound_bytes).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _server = node.service::<[u8], u32>("/store")?.server()?; // receives nothing
    /// let mut client = node.service::<[u8], u32>("/store")?.client()?;
    /// client.set_bound_bytes(64 << 10);
    /// let mut sent = std::iter::repeat_with(|| client.send(&[0; 10_000]));
    /// let full = sent.find_map(Result::err).expect("at the bound");
    /// assert_eq!(full.kind(), outlive::ErrorKind::WouldBlock);
    /// client.set_bound_bytes(1 << 20);
    /// client.send(&[0; 10_000])?; // there is room again
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn set_bound_bytes(&mut self, bytes: u64) {
        self.writer.set_bound_bytes(bytes);
    }

    /// Whether a live server is there. It may die right after the answer. Also `true` while that
    /// cannot be determined, for lack of memory for instance; [`Client::send`] reports why.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// assert!(!client.has_server());
    /// let server = node.service::<u32, u32>("/plan")?.server()?;
    /// assert!(client.has_server());
    /// drop(server); // a kill does the same
    /// assert!(!client.has_server());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn has_server(&mut self) -> bool {
        self.writer.may_be_served()
    }

    /// Waits until a live server is there; `false` when `timeout` passed first.
    ///
    /// # Errors
    /// `ForkedChild`; `Corrupt`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    ///
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// assert!(!client.wait_for_server(Duration::from_millis(1))?); // nobody came
    /// let _server = node.service::<u32, u32>("/plan")?.server()?;
    /// assert!(client.wait_for_server(Duration::from_secs(5))?);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn wait_for_server(&mut self, timeout: Duration) -> Result<bool> {
        self.writer.wait_for_consumer(Deadline::after(timeout))
    }

    /// Sends a request; the answer comes by [`Client::receive`] and its variants.
    ///
    /// # Errors
    /// `ServerDied`: no live server, nothing was sent. `WouldBlock`: the server is so far behind
    /// that the bound is reached. `InvalidArgument`: larger than the bound. `NoSpace`. `Corrupt`:
    /// the lane is, or the one that carries this server's replies.
    ///
    /// # Crash safety
    /// **Strict.** As [`crate::Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let nobody = client.send(&7).unwrap_err();
    /// assert_eq!(nobody.kind(), outlive::ErrorKind::ServerDied);
    ///
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let ticket = client.send(&7)?; // does not wait for the answer
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &42)?;
    /// assert_eq!(client.receive()?.expect("answered just now").ticket(), ticket);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn send(&mut self, request: &Q) -> Result<Ticket> {
        self.send_until(request, Deadline::NEVER)
    }

    /// As [`Client::send`]; at `deadline` the request fails with `Timeout`, and the server skips it
    /// if it gets to it later. An answer that is there when the client looks is received, even if
    /// it came late: compare the time if it is of no use then.
    ///
    /// # Errors
    /// As [`Client::send`].
    ///
    /// # Crash safety
    /// **Strict.** As [`crate::Producer::send`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// let _busy = node.service::<u32, u32>("/plan")?.server()?; // never answers
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let soon = Deadline::after(std::time::Duration::from_millis(1));
    /// let ticket = client.send_until(&7, soon)?;
    /// let late = client.receive_for(ticket, Deadline::NEVER)?;
    /// assert_eq!(late.body().unwrap_err().kind(), outlive::ErrorKind::Timeout);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn send_until(&mut self, request: &Q, deadline: Deadline) -> Result<Ticket> {
        if let Err(refused) = self.writer.check_served() {
            return Err(self.not_sent(refused));
        }
        if self.writer.term() != self.term {
            self.meet_server()?;
        }
        if let Some((term, what)) = &self.unreadable
            && *term == self.term
        {
            return Err(unreadable(self.service(), what));
        }
        let (id, bytes) = (self.next_id, request.bytes());
        if !self.writer.queue().meta.fits(bytes.len()) {
            return Err(self.misfit(bytes.len()));
        }
        self.put(frame::REQUEST, id, deadline, bytes)?;
        self.next_id += 1;
        let bytes = self.resume.then(|| bytes.into());
        self.waiting.push_back(Waiting { id, deadline, term: self.term, bytes });
        Ok(Ticket(id))
    }

    #[cold]
    fn not_sent(&self, refused: Refused) -> Error {
        match refused {
            Refused::Nobody => self.refusals.error(ErrorKind::ServerDied),
            refused => self.writer.error(refused),
        }
    }

    /// Another server is there than the one before: what waits for that one fails or goes on.
    #[cold]
    fn meet_server(&mut self) -> Result<()> {
        self.fetch()?;
        self.settle()
    }

    #[cold]
    fn misfit(&self, bytes: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "calling service",
            self.service(),
            format!("a request of its type cannot have {bytes} bytes"),
        )
    }

    /// One message to the server.
    pub(super) fn put(
        &mut self,
        kind: u64,
        id: u64,
        deadline: Deadline,
        bytes: &[u8],
    ) -> Result<()> {
        let at = request_bytes(self.writer.queue().meta.of.align);
        let shape = *self.writer.shape();
        let total = (at + bytes.len()) as u64;
        let room = self.writer.reserve_at_once(total, &shape);
        let to = room.map_err(|refused| self.not_sent(refused))?;
        let (term, reply_port) = (self.term, self.reply_port);
        let deadline_ns = deadline.as_ns();
        let head = RequestHead { kind, id, term, deadline_ns, reply_port };
        // SAFETY: `reserve_at_once` gave room for `total` bytes, aligned to 8 at least, which
        // nobody reads before the commit.
        unsafe {
            head.write(to);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), bytes.len());
        }
        self.writer.commit(total, &shape);
        Ok(())
    }

    /// Takes the replies that are there.
    fn fetch(&mut self) -> Result<()> {
        while let Some(reply) = self.next_reply()? {
            self.ready.push_back(reply);
        }
        Ok(())
    }

    /// The next reply to a request that waits for one.
    fn next_reply(&mut self) -> Result<Option<Reply<R>>> {
        while self.reader.next()? {
            let Some(hand) = self.reader.in_hand() else { break };
            let align = self.reader.queue().meta.of.align;
            // SAFETY: the message in hand has `bytes` bytes, aligned to 8 at least.
            let head = unsafe { ReplyHead::read(hand.ptr, hand.bytes, align) };
            let known = head.and_then(|h| self.waiting.iter().position(|w| w.id == h.id));
            let (Some(head), Some(i)) = (head, known) else {
                self.reader.take(1);
                continue;
            };
            let from = frame::reply_bytes(align);
            // SAFETY: `read` made sure that the message is longer than its head.
            let (ptr, bytes) = unsafe { (hand.ptr.add(from), hand.bytes - from) };
            let queue = self.reader.queue();
            // SAFETY: the rest of the message in hand.
            let outcome = unsafe { outcome(head.kind, ptr, bytes, queue) };
            let outcome = outcome.inspect_err(|e| self.reader.failed(e))?;
            let Some(outcome) = outcome else {
                // No server writes this: it is not read any more, so nothing else comes.
                self.reader.refuse_in_hand("a reply");
                continue;
            };
            if !matches!(outcome, Outcome::Part(_)) {
                self.waiting.remove(i);
            }
            self.reader.take(1);
            return Ok(Some(Reply { ticket: Ticket(head.id), outcome }));
        }
        while let Some(event) = self.reader.next_event() {
            self.heed(event);
        }
        self.reader.trouble().map_or(Ok(None), Err)
    }

    /// Nothing comes any more in a lane that is not read any more.
    #[cold]
    fn heed(&mut self, event: queue::Event) {
        let queue::Event::ProducerCorrupt { producer, why } = event else { return };
        // What waits for an earlier server ends by that one's end.
        if self.writer.consumer_node() != Some(producer.node) {
            return;
        }
        let what = why.split(':').next().unwrap_or_default();
        let what = format!("in its lane {producer} of replies {what}");
        let service = self.service().to_owned();
        self.fail_all(|| failed(&service, Why::Unreadable(what.clone())));
        self.unreadable = Some((self.term, what));
    }

    #[cold]
    fn fail_all(&mut self, outcome: impl Fn() -> Outcome<R>) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.fail(waiting.id, outcome());
        }
    }

    #[cold]
    fn fail(&mut self, id: u64, outcome: Outcome<R>) {
        self.ready.push_back(Reply { ticket: Ticket(id), outcome });
    }

    /// Ends the requests whose time is up.
    fn expire(&mut self) {
        if self.waiting.iter().all(|w| w.deadline.is_never()) {
            return;
        }
        let now = clock::now_ns();
        while let Some(i) = self.waiting.iter().position(|w| w.deadline.has_passed_by(now)) {
            if let Some(late) = self.waiting.remove(i) {
                let timeout = self.refusals.error(ErrorKind::Timeout);
                self.fail(late.id, Outcome::Ended(timeout));
            }
        }
    }

    /// Every reply that was there has been taken: is the server that the rest was sent to alive?
    fn settle(&mut self) -> Result<()> {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let alive = match self.writer.look_at_consumer() {
            Ok(()) => true,
            Err(Refused::Nobody) => false,
            Err(refused) => return Err(self.writer.error(refused)),
        };
        if alive && self.writer.term() == self.term {
            self.writer.check_accepted()?;
        } else if alive || self.writer.is_over(self.term).is_some() {
            // Else its word alone says that it died, which the next look asks again.
            // What it committed before it went is visible now.
            self.fetch()?;
            if alive {
                self.term = self.writer.term();
                self.again_ns = Some(0);
            } else if !self.puts_off_ends() {
                let died = self.server_died.clone();
                self.fail_all(|| Outcome::Ended(died.clone()));
            }
        }
        self.fail_those_of_earlier_servers();
        self.expire();
        if alive { self.send_again() } else { Ok(()) }
    }

    /// Whether the end of a server is no news now: its requests are sent again, or an answer of it
    /// may be in a lane that could not be read on, which is tried again.
    fn puts_off_ends(&self) -> bool {
        self.resume || self.reader.puts_off() || fault("service.death_untold")
    }

    fn fail_those_of_earlier_servers(&mut self) {
        while self.waiting.front().is_some_and(|w| w.term != self.term)
            && !self.puts_off_ends()
            && let Some(waiting) = self.waiting.pop_front()
        {
            self.fail(waiting.id, Outcome::Ended(self.server_died.clone()));
        }
    }

    /// Sends what an earlier server left unanswered, in its order.
    fn send_again(&mut self) -> Result<()> {
        // What it answered may be in a lane that could not be read on.
        if self.reader.puts_off() || self.again_ns.is_none_or(|at| at > 0 && at > clock::now_ns()) {
            return Ok(());
        }
        while let Some(i) = self.waiting.iter().position(|w| w.term != self.term) {
            let (id, deadline) = (self.waiting[i].id, self.waiting[i].deadline);
            let Some(bytes) = self.waiting[i].bytes.take() else { break };
            let sent = self.put(frame::REQUEST, id, deadline, &bytes);
            self.waiting[i].bytes = Some(bytes);
            match sent {
                Ok(()) => self.waiting[i].term = self.term,
                // It is gone again: the next look begins anew.
                Err(e) if e.kind() == ErrorKind::ServerDied => return Ok(()),
                // The server has yet to pass over what was sent to its predecessor.
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    self.again_ns = Some(clock::now_ns() + AGAIN_NS);
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        self.again_ns = None;
        Ok(())
    }

    /// When there is something to do without any news.
    fn next_due(&self) -> Deadline {
        let deadlines = self.waiting.iter().map(|w| w.deadline);
        let again = self.again_ns.filter(|at| *at > 0).map(Deadline::at_ns);
        // Nobody calls when a lane that could not be read on has its turn.
        deadlines.chain(again).fold(self.reader.due(), Ord::min)
    }

    /// The next reply; where there is none, looks at the server.
    fn look(&mut self) -> Result<Option<Reply<R>>> {
        if let Some(reply) = self.next_reply()? {
            return Ok(Some(reply));
        }
        if self.ready.is_empty() && !self.waiting.is_empty() {
            self.settle().inspect_err(|e| self.reader.failed(e))?;
        }
        Ok(self.ready.pop_front())
    }

    /// The next reply to any request, or the news that one failed; `None` when there is none now.
    /// Never sleeps.
    ///
    /// # Errors
    /// `ForkedChild`, `Corrupt`. What happened to one request is in its reply.
    ///
    /// # Crash safety
    /// **Strict.** As [`crate::Consumer::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/plan")?.server()?;
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// assert!(client.receive()?.is_none());
    /// client.send(&7)?;
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &42)?;
    /// assert_eq!(*client.receive()?.expect("answered just now").body()?, 42);
    ///
    /// client.send(&8)?;
    /// drop(server); // a kill does the same
    /// let failed = client.receive()?.expect("news of the request").into_response().unwrap_err();
    /// assert_eq!(failed.kind(), outlive::ErrorKind::ServerDied);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive(&mut self) -> Result<Option<Reply<R>>> {
        self.must_be_ours()?;
        loop {
            let reply = match self.ready.pop_front() {
                None => self.look()?,
                reply => reply,
            };
            if reply.is_some() || !self.rest() {
                return Ok(reply);
            }
        }
    }

    /// A forked child has only a copy of the replies that were set aside.
    fn must_be_ours(&self) -> Result<()> {
        if fault("service.backlog_in_child") { Ok(()) } else { self.reader.queue().node.tend() }
    }

    /// Nothing was found: with a descriptor, makes it quiet. `true`: look again.
    fn rest(&mut self) -> bool {
        if self.reader.has_fd() && clock::now_ns() >= self.confirm_ns {
            self.confirm_ns = clock::now_ns() + slice_ns_max();
            if self.is_unserved() {
                return true;
            }
        }
        let server = if self.waiting.is_empty() { None } else { self.writer.consumer_peer() };
        self.reader.rest_also(server, self.again_ns.is_some_and(|at| at > 0))
    }

    /// A file descriptor for epoll, asyncio and other event loops: readable unless the last
    /// receiving call found nothing, as [`Consumer::fd`](crate::Consumer::fd). Replies that
    /// [`Client::receive_for`] set aside for other requests count as found: receive them before
    /// waiting.
    ///
    /// The server's end makes it readable at once; a passed deadline or a new server, at most 100
    /// ms later.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::time::Duration;
    /// let mut server = node.service::<u64, u64>("/twice")?.server()?;
    /// let mut client = node.service::<u64, u64>("/twice")?.client()?;
    /// let fd = client.fd()?.try_clone_to_owned().unwrap();
    /// let ticket = client.send(&21)?;
    /// assert!(client.receive()?.is_none());
    /// let request = server.receive()?.expect("sent just now");
    /// server.respond(request, &42)?; // from here on it is readable
    ///
    /// let mut readable = outlive::Descriptor::readable(&fd);
    /// outlive::WaitSet::new().wait(&mut [&mut readable], Duration::from_secs(5))?;
    /// assert_eq!(*client.receive()?.expect("readable").body()?, 42);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.reader.fd()
    }

    /// As [`Client::receive`], waiting at most `timeout`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let _server = node.service::<u32, u32>("/plan")?.server()?; // never answers
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// client.send(&7)?;
    /// let none = client.receive_timeout(std::time::Duration::from_millis(1))?;
    /// assert!(none.is_none() && client.waiting() == 1); // a reply may still come
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<Reply<R>>> {
        self.receive_until(Deadline::after(timeout))
    }

    /// As [`Client::receive`], waiting until `deadline`.
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
    /// let server = node.service::<u32, u32>("/plan")?.server()?; // never answers
    /// let mut client = node.service::<u32, u32>("/plan")?.client()?;
    /// let deadline = Deadline::after(Duration::from_millis(1)); // of several waits together
    /// client.send(&7)?;
    /// assert!(client.receive_until(deadline)?.is_none());
    /// assert!(client.receive_until(deadline)?.is_none()); // has passed: only looks
    /// drop(server); // a kill does the same
    /// assert!(client.receive_until(Deadline::NEVER)?.is_some()); // returns at once
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_until(&mut self, deadline: Deadline) -> Result<Option<Reply<R>>> {
        loop {
            if let Some(reply) = self.receive()? {
                return Ok(Some(reply));
            }
            if deadline.has_passed() {
                return Ok(None);
            }
            self.sleep_until(deadline)?;
        }
    }

    /// As [`Client::receive_until`], for the next reply to one request only; others are kept.
    ///
    /// # Errors
    /// `Timeout`; as [`Client::receive`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::Deadline;
    /// let mut server = node.service::<u32, u32>("/double")?.server()?;
    /// let mut client = node.service::<u32, u32>("/double")?.client()?;
    /// let (first, second) = (client.send(&1)?, client.send(&2)?);
    /// while let Some(request) = server.receive()? {
    ///     let answer = *request * 2;
    ///     server.respond(request, &answer)?;
    /// }
    /// assert_eq!(*client.receive_for(second, Deadline::AT_ONCE)?.body()?, 4);
    /// assert_eq!(client.set_aside(), 1);
    /// assert_eq!(client.receive()?.expect("set aside").ticket(), first);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn receive_for(&mut self, ticket: Ticket, deadline: Deadline) -> Result<Reply<R>> {
        self.must_be_ours()?;
        loop {
            let found = self.ready.iter().position(|reply| reply.ticket == ticket);
            if let Some(reply) = found.and_then(|i| self.ready.remove(i)) {
                return Ok(reply);
            }
            while let Some(reply) = self.next_reply()? {
                if reply.ticket == ticket {
                    return Ok(reply);
                }
                self.ready.push_back(reply);
            }
            if self.ready.iter().any(|reply| reply.ticket == ticket) {
                continue;
            }
            if !self.waiting.iter().any(|w| w.id == ticket.0) {
                return Err(self.unknown(ticket));
            }
            self.settle().inspect_err(|e| self.reader.failed(e))?;
            if self.ready.iter().any(|reply| reply.ticket == ticket) {
                continue;
            }
            if deadline.has_passed() {
                if self.rest() {
                    continue;
                }
                return Err(self.refusals.error(ErrorKind::Timeout));
            }
            self.sleep_until(deadline)?;
        }
    }

    /// Cancels a request: no reply to it will arrive, and the server is notified.
    ///
    /// # Errors
    /// When the server could not be notified: `WouldBlock`, `ServerDied`, or for lack of something
    /// `OutOfMemory`, `NoSpace`, `Io`. The request is cancelled all the same.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let mut server = node.service::<u32, u32>("/slow")?.server()?;
    /// let mut client = node.service::<u32, u32>("/slow")?.client()?;
    /// let ticket = client.send(&1)?;
    /// let request = server.receive()?.expect("sent just now");
    /// client.cancel(ticket)?;
    /// assert!(server.is_cancelled(&request)?); // it may stop working on it
    /// assert_eq!(client.waiting(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn cancel(&mut self, ticket: Ticket) -> Result<()> {
        self.ready.retain(|reply| reply.ticket != ticket);
        let Some(i) = self.waiting.iter().position(|w| w.id == ticket.0) else { return Ok(()) };
        let Some(waiting) = self.waiting.remove(i) else { return Ok(()) };
        self.put(frame::CANCEL, waiting.id, waiting.deadline, &[])
    }

    #[cold]
    fn unknown(&self, ticket: Ticket) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "waiting for a reply of service",
            self.service(),
            format!("request {} is answered, cancelled, or not of this client", ticket.0),
        )
    }
}
