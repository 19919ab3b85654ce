//! The producing half without types: its lane, how the lane grows, and how it waits for room.
//!
//! # Invariants
//! - Nobody else stores into the lane's files.
//! - The segment that a `JUMP` names exists before the `JUMP` is committed.
//! - The header at the tail is clear, so a `JUMP` can always be committed.
//! - Bytes that the position has not passed are never written.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use super::refused::{Refused, Sent, TrySendError, figures, full, nobody};
use super::room::largest_power;
use crate::error::Refusal;
use crate::node::NodeId;
use crate::node::peer::Peer;
use crate::os::death::robust;
use crate::os::fs::file;
use crate::os::process::wiped::Wiped;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::queue::lane::layout::{CAPACITY_BYTES_MAX, CAPACITY_BYTES_MIN, consumer};
use crate::queue::lane::position::COUNT_MAX;
use crate::queue::lane::record::{RUN_BYTES, Shape, record_word};
use crate::queue::lane::segment::{Segment, segment_path};
use crate::queue::lane::tail::{OpenRun, Tail};
use crate::queue::membership::Queue;
use crate::queue::membership::reclaim;
use crate::queue::membership::table::{ProducerId, Table};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::wait::wake::call::Caller;
use crate::{Error, ErrorKind, Result, crash_point};

/// How long a call may wait for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Never,
    /// Until this instant, ns of CLOCK_MONOTONIC.
    Until(u64),
}

impl Wait {
    /// Until `deadline_ns`; not at all for 0.
    #[inline]
    pub(crate) fn until(deadline_ns: u64) -> Self {
        if deadline_ns == 0 { Self::Never } else { Self::Until(deadline_ns) }
    }
}

/// Messages up to this are copied word by word.
const WORDWISE_BYTES_MAX: usize = 128;
/// What no consumer's word is.
const NOT_SEEN: u64 = u64::MAX;
/// The word of no consumer.
pub(in crate::queue) static NOBODY: AtomicU32 = AtomicU32::new(0);

/// Proof that the consumer that was there does not read any more: it has left, or its node is dead.
#[derive(Debug)]
#[must_use]
pub(crate) struct Deserted(());

/// A producer's lane and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Writer {
    // What every send looks at comes first.
    /// The consumer's word as it was when `token` was found; another value means look again, and
    /// so does a fork.
    pub(in crate::queue) owner_seen: Wiped,
    /// A consumer's word whose node is not there any more.
    pub(in crate::queue) gone: u64,
    pub(in crate::queue) owner: NonNull<AtomicU64>,
    /// `NOBODY` before there was one.
    pub(in crate::queue) token: NonNull<AtomicU32>,
    pub(in crate::queue) tail: Tail,
    pub(in crate::queue) segment: Segment,
    pub(in crate::queue) number: u32,
    pub(in crate::queue) shape: Shape,
    pub(in crate::queue) queue: Arc<Queue>,
    pub(in crate::queue) id: ProducerId,
    pub(in crate::queue) table: Table,
    pub(in crate::queue) slot: Option<usize>,
    /// The consumer's node; keeps `token` mapped.
    pub(in crate::queue) peer: Option<Arc<Peer>>,
    /// How to wake the consumer that is named here, where words alone do not.
    pub(in crate::queue) caller: Caller,
    pub(in crate::queue) called: u64,
    /// Segments that the consumer has not left yet, oldest first: number and capacity.
    pub(in crate::queue) older: VecDeque<(u32, u64)>,
    pub(in crate::queue) first_bytes: u64,
    pub(in crate::queue) bound_bytes: u64,
    /// How often the ring's end was passed, and most bytes in use since the last time.
    pub(in crate::queue) lap: u64,
    pub(in crate::queue) peak: u64,
    /// The lane could not grow when it last had to, and not for its bound.
    pub(in crate::queue) is_stuck: bool,
    /// What a refusal says, once somebody prints it.
    pub(in crate::queue) refusal: Refusal,
}

// SAFETY: the raw pointers point into mappings that the same struct owns (`table`) or keeps alive
// (`peer`); nothing in it is bound to a thread.
unsafe impl Send for Writer {}

impl Writer {
    /// Opens a lane of `queue`; the caller holds the joining lock.
    ///
    /// # Errors
    /// `InvalidArgument` for a bound that holds no message; `TooManyMembers`; `NoSpace`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the first segment.
    pub(crate) fn open(queue: Arc<Queue>, bound_bytes: u64, first_bytes: u64) -> Result<Self> {
        let shape = queue.meta.shape();
        let bound_bytes = bound_bytes.min(CAPACITY_BYTES_MAX);
        let largest = largest_power(bound_bytes);
        // Four messages at first, where messages have one size.
        let wanted = first_bytes.max(4 * (shape.record(shape.item.max(1)) + shape.unit));
        let first_bytes = wanted.next_power_of_two().min(largest);
        let holds = first_bytes.saturating_sub(shape.unit);
        if bound_bytes < CAPACITY_BYTES_MIN || holds < shape.record(shape.item) {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "opening a producer of",
                queue.name.as_str(),
                format!(
                    "a bound of {bound_bytes} bytes holds no message of {} bytes: use {} or more",
                    shape.item,
                    (shape.record(shape.item) + shape.unit)
                        .next_power_of_two()
                        .max(CAPACITY_BYTES_MIN)
                ),
            ));
        }
        let node = &queue.node;
        let id = ProducerId { node: node.id(), port: node.next_port_serial() };
        if reclaim::count_lanes(&queue.dir)? >= consumer::SLOTS_MAX {
            let crowd = reclaim::thin_out(node.domain(), &queue.dir, queue.unread)?;
            if !crowd.has_room() {
                return Err(crowd.error(queue.name.as_str()));
            }
        }
        let table = Table::open(&queue.dir, node.domain(), false)?;
        let owner_seen = Wiped::new()?;
        owner_seen.set(NOT_SEEN);
        let mode = node.domain().access.own_mode;
        let segment = Segment::create(&queue.dir, id, 0, first_bytes, mode)?;
        crash_point!("queue.writer.open.after_link");
        if reclaim::count_lanes(&queue.dir)? > consumer::SLOTS_MAX {
            // Several came at once. Nobody would read this lane; dying here, it is drained.
            file::unlink(&segment_path(&queue.dir, id, 0))?;
            let crowd = reclaim::thin_out(node.domain(), &queue.dir, queue.unread)?;
            return Err(crowd.error(queue.name.as_str()));
        }
        let owner = NonNull::from(table.owner_word());
        let mut writer = Self {
            owner_seen,
            gone: 0,
            owner,
            token: NonNull::from(&NOBODY),
            tail: Tail::new(first_bytes, shape.unit),
            segment,
            number: 0,
            shape,
            id,
            table,
            slot: None,
            peer: None,
            caller: Caller::default(),
            called: 0,
            older: VecDeque::new(),
            first_bytes,
            bound_bytes,
            lap: 0,
            peak: 0,
            is_stuck: false,
            refusal: Refusal::new(queue.name.as_str()),
            queue,
        };
        writer.queue.ring_bell();
        writer.call_consumer();
        Ok(writer)
    }

    pub(crate) fn id(&self) -> ProducerId {
        self.id
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    #[inline]
    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Shared memory of the lane right now, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.older.iter().map(|(_, bytes)| bytes).sum::<u64>() + self.tail.capacity()
    }

    /// Whether a live consumer reads this queue, by its word: three loads.
    #[inline(always)]
    fn is_served(&self) -> bool {
        // SAFETY: `owner` points into `table`, `token` into the file that `peer` keeps mapped.
        let (owner, token) = unsafe { (self.owner.as_ref(), self.token.as_ref()) };
        owner.load(Relaxed) == self.owner_seen.get() && robust::is_alive_word(token.load(Relaxed))
    }

    /// Whether this is a forked child's copy, where the kernel cleared the word. Else 0 is never
    /// in it: a consumer's word counts from 1.
    #[inline]
    pub(in crate::queue) fn is_forked(&self) -> bool {
        self.owner_seen.get() == 0
    }

    /// Before anything is written: this process is the node, and a live consumer reads.
    ///
    /// # Errors
    /// `Nobody`: no live consumer, by its word. That is a hint, enough to refuse what can be
    /// tried again; what cannot be undone takes what `deserted` gives. `ForkedChild`.
    #[inline(always)]
    pub(crate) fn check_served(&mut self) -> Sent<()> {
        if self.is_served() || fault("send.unserved") { Ok(()) } else { self.find_consumer() }
    }

    #[cold]
    fn find_consumer(&mut self) -> Sent<()> {
        self.queue.node.tend()?;
        self.table.check_poisoned()?;
        let owner = self.table.owner();
        if owner.raw() != self.owner_seen.get() || self.peer.is_none() {
            (self.token, self.peer) = (NonNull::from(&NOBODY), None);
            self.owner_seen.set(NOT_SEEN);
            let Some(node) = owner.node() else { return Err(Refused::Nobody) };
            let peer = match self.queue.node.peer(node) {
                Ok(peer) => peer,
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    self.gone = owner.raw();
                    return Err(Refused::Nobody);
                }
                Err(e) => return Err(e.into()),
            };
            self.token = NonNull::from(peer.token());
            self.peer = Some(peer);
            self.owner_seen.set(owner.raw());
        }
        let Some(peer) = &self.peer else { return Err(Refused::Nobody) };
        // The hint is enough to refuse: nothing was sent, and the next one may try again.
        if !peer.hint().is_alive() {
            return Err(Refused::Nobody);
        }
        Ok(())
    }

    /// The node that consumes, by what the table says.
    #[cold]
    pub(crate) fn consumer_node(&self) -> Option<NodeId> {
        self.table.owner().node()
    }

    /// The proof that nobody reads, if so; asked where `check_served` has just said `Nobody`.
    #[cold]
    pub(crate) fn deserted(&self) -> Option<Deserted> {
        let owner = self.table.owner();
        let left = owner.node().is_none() || owner.raw() == self.gone;
        // Another one than the last look found is news.
        let known = self.peer.as_ref().filter(|_| self.owner_seen.get() == owner.raw());
        let dead = || known.is_some_and(|peer| peer.proof_of_death().is_some());
        (left || fault("queue.deserted_by_hint") || dead()).then_some(Deserted(()))
    }

    /// The error that `refused` stands for.
    #[cold]
    pub(crate) fn error(&self, refused: Refused) -> Error {
        match refused {
            Refused::Nobody => nobody(&self.refusal),
            Refused::Full => full(self.told(), ErrorKind::WouldBlock),
            Refused::Late => full(self.told(), ErrorKind::Timeout),
            Refused::Failed(e) => e,
        }
    }

    /// The same for calls that do not wait.
    #[cold]
    pub(super) fn not_sent(&self, refused: Refused) -> TrySendError {
        match refused {
            Refused::Nobody => TrySendError::NoConsumer(self.refusal.clone()),
            Refused::Full => TrySendError::Full(self.told().clone()),
            other => TrySendError::Failed(self.error(other)),
        }
    }

    /// What a full lane has to say.
    fn told(&self) -> &Refusal {
        self.refusal.set(figures(self.memory_bytes(), self.bound_bytes, self.id));
        &self.refusal
    }

    /// Address of `offset` in the current segment, to write the payload of a record at the tail.
    #[inline(always)]
    fn payload(&self, offset: u64) -> *mut u8 {
        self.segment.at(offset)
    }

    /// Sends one message of a queue with runs: `bytes` are as long as its type. `known`: its
    /// shape, where the type knows it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the run's header.
    #[inline(always)]
    pub(crate) fn send_in_run(
        &mut self,
        bytes: &[u8],
        known: Option<&Shape>,
        wait: Wait,
    ) -> Sent<()> {
        self.check_served()?;
        let Shape { item, per_run, .. } = *known.unwrap_or(&self.shape);
        let run = match self.tail.open_run(per_run) {
            Some(run) => run,
            None if self.shape.stamped => {
                // A copy, so that a message in a register can stay there until here.
                let mut copy = [0; RUN_BYTES as usize];
                let copy = &mut copy[..bytes.len()];
                copy.copy_from_slice(bytes);
                return self.send_stamped(copy, wait);
            }
            None => match self.tail.begin_run(self.segment.ring()) {
                Some(run) => run,
                None => self.begin_run_slow(wait)?,
            },
        };
        let to = run.header.as_ptr().cast::<u8>().wrapping_add(run.next(item) as usize);
        // SAFETY: the run at the tail fits (checked when it was begun), the message is one of its
        // `per_run`, so it ends in the same line; nobody reads it before the commit.
        unsafe { copy_in(bytes, to) };
        crash_point!("queue.send.run.before_commit");
        self.tail.commit_in_run(run);
        self.after_commit(run.header);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn begin_run_slow(&mut self, wait: Wait) -> Sent<OpenRun> {
        self.make_room(RUN_BYTES, wait)?;
        self.tail.begin_run(self.segment.ring()).ok_or_else(|| self.corrupt("its own room").into())
    }

    /// As `send`, in a queue with stamps, whose shape no type knows.
    #[cold]
    pub(in crate::queue) fn send_stamped(&mut self, bytes: &[u8], wait: Wait) -> Sent<()> {
        let shape = self.shape;
        self.send(bytes, &shape, wait)
    }

    /// Sends `bytes` as one record.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the record's header.
    #[inline(always)]
    pub(crate) fn send(&mut self, bytes: &[u8], shape: &Shape, wait: Wait) -> Sent<()> {
        let to = self.reserve(bytes.len() as u64, shape, wait)?;
        let early = fault("send.commit_first");
        if early {
            self.commit(bytes.len() as u64, shape);
        }
        // SAFETY: `reserve` gives room for that many bytes that nobody reads before the commit.
        unsafe { copy_in(bytes, to) };
        if !early {
            self.commit(bytes.len() as u64, shape);
        }
        Ok(())
    }

    /// Sends `count` messages, together `bytes`, as one record.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the record's header.
    #[inline]
    pub(crate) fn send_batch(
        &mut self,
        bytes: &[u8],
        count: usize,
        shape: &Shape,
        wait: Wait,
    ) -> Sent<()> {
        if count as u64 > COUNT_MAX {
            return Err(self.too_large(shape.record(bytes.len() as u64)).into());
        }
        self.send(bytes, shape, wait)
    }

    /// Ends the run at the tail, if one is open: another record follows.
    ///
    /// # Errors
    /// As `check_served`: a forked child would end its parent's run.
    #[inline]
    pub(crate) fn end_run(&mut self) -> Sent<()> {
        self.check_served()?;
        self.close_run();
        Ok(())
    }

    /// As `end_run`, once this process is known to be the node.
    ///
    /// # Crash safety
    /// **Strict.** One store, which carries no message.
    pub(in crate::queue) fn close_run(&mut self) {
        if let Some(at) = self.tail.close_run(self.segment.ring(), self.shape.per_run) {
            self.after_commit(self.segment.ring().word(at));
        }
    }

    /// Room for a record of `bytes` at the tail; nothing is visible before `commit`.
    ///
    /// # Errors
    /// `Nobody`; `Full` or `Late` when the lane is at its bound; `InvalidArgument` for a message
    /// larger than the bound; `NoSpace`; `Corrupt`; `ForkedChild`.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, bytes: u64, shape: &Shape, wait: Wait) -> Sent<*mut u8> {
        self.check_served()?;
        let need = shape.record(bytes);
        if !self.tail.fits(need) {
            self.make_room(need, wait)?;
        }
        self.tail.begin(self.segment.ring(), need);
        Ok(self.payload(self.tail.pos() + shape.head))
    }

    /// Commit point of the record that `reserve` made room for.
    ///
    /// # Crash safety
    /// **Strict.** Before the store of the header nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit(&mut self, bytes: u64, shape: &Shape) {
        let at = self.tail.pos();
        if shape.stamped {
            // Carried by the commit.
            self.segment.ring().header(at + 8).store(clock::timestamp(), Relaxed);
        }
        crash_point!("queue.send.before_commit");
        self.tail.commit(self.segment.ring(), shape.record(bytes), record_word(bytes));
        self.after_commit(self.segment.ring().word(at));
    }

    /// Wakes the consumer if it asked for it; it sleeps on the header that was committed.
    #[inline(always)]
    pub(in crate::queue) fn after_commit(&mut self, header: NonNull<AtomicU64>) {
        // Dying here: the message is sent; the sleeper also waits on our token.
        crash_point!("queue.send.committed");
        // ORDERING(WAITING): pairs with `handshake::sleep`; a late answer costs a short sleep.
        // SAFETY: both words are in `table`; so near to each other, one pointer does for both.
        let waiting = unsafe { self.owner.byte_add(consumer::WAITING - consumer::OWNER).as_ref() };
        if futex::low_half(waiting).load(Relaxed) != 0 && !fault("send.no_wake") {
            self.wake(header);
        }
    }

    /// Rings or calls a consumer that asked for that.
    fn call_consumer(&mut self) {
        let owner = self.table.owner();
        if self.called != owner.raw() {
            (self.called, self.caller) = (owner.raw(), Caller::default());
        }
        if let Some(node) = owner.node() {
            self.caller.call(self.queue.node.domain(), node, self.table.request());
        }
    }

    #[cold]
    fn wake(&mut self, header: NonNull<AtomicU64>) {
        self.call_consumer();
        crash_point!("queue.send.before_wake");
        // SAFETY: a word of our segment's ring.
        futex::wake(futex::low_half(unsafe { header.as_ref() }), i32::MAX);
    }

    #[cold]
    pub(in crate::queue) fn refused(&self) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("sending as producer {} to queue", self.id),
            self.queue.name.as_str(),
            "the consumer rejected this lane as corrupt: nothing was sent; reopen the producer",
        )
    }

    #[cold]
    pub(in crate::queue) fn corrupt(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("sending as producer {} to queue", self.id),
            self.queue.name.as_str(),
            format!("{what} is out of range: open the producer again"),
        )
    }

    #[cold]
    pub(in crate::queue) fn too_large(&self, need: u64) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "sending to queue",
            self.queue.name.as_str(),
            format!(
                "a record of {need} bytes is larger than a bound of {} bytes allows: nothing was \
                 sent; raise bound_bytes",
                self.bound_bytes
            ),
        )
    }
}

/// Copies `bytes` to `to`, short ones word by word: their sender has just stored them that way, and
/// a wider load has to wait until those stores, and all stores into the lane before them, have
/// left the store buffer.
///
/// # Safety
/// `to` is aligned to 8, has room for them, and nobody reads there.
#[inline(always)]
unsafe fn copy_in(bytes: &[u8], to: *mut u8) {
    let (from, len) = (bytes.as_ptr(), bytes.len());
    if len <= WORDWISE_BYTES_MAX && len % 8 == 0 {
        for i in 0..len / 8 {
            // SAFETY: within both, by the caller.
            unsafe {
                let word = from.cast::<u64>().add(i).read_unaligned();
                (*to.cast::<AtomicU64>().add(i)).store(word, Relaxed);
            }
        }
    } else {
        // SAFETY: by the caller.
        unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
}

impl Drop for Writer {
    /// Closes the lane. What is unread stays for the consumer, which unlinks the files.
    fn drop(&mut self) {
        if !self.queue.node.is_own_process() {
            return;
        }
        self.close_run();
        self.segment.close();
        crash_point!("queue.writer.closed");
        self.queue.ring_bell();
        self.call_consumer();
        let _ = self.queue.reclaim();
    }
}
