//! The producing half without types: its lane, how the lane grows, and how it waits for room.
//!
//! # Invariants
//! - The segment that a `JUMP` names exists before the `JUMP` is committed.
//! - Nothing is written before the consumer is known to be there: see `Addressee`.
#![allow(unsafe_code)]

mod room;

use std::ptr::NonNull;
use std::sync::Arc;

use super::addressee::{Addressee, Deserted};
use super::lane::{Bounds, OwnLane, largest_power};
use super::refused::{LaneRefusals, Refused, Sent, TrySendError};
use crate::node::NodeId;
use crate::os::fs::file;
use crate::os::sleep::futex;
use crate::os::time::deadline::Deadline;
use crate::queue::lane::ProducerId;
use crate::queue::lane::layout::{CAPACITY_BYTES_MAX, CAPACITY_BYTES_MIN, consumer};
use crate::queue::lane::position::COUNT_MAX;
use crate::queue::lane::record::{RUN_BYTES, Shape};
use crate::queue::lane::segment::segment_path;
use crate::queue::lane::tail::OpenRun;
use crate::queue::membership::Queue;
use crate::queue::membership::reclaim;
use crate::queue::membership::table::Table;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};
use crate::{Error, ErrorKind, Result, crash_point};

/// Messages up to this are copied word by word.
const WORDWISE_BYTES_MAX: usize = 128;
/// A producer's lane, and who reads it.
#[derive(Debug)]
pub(crate) struct Writer {
    // What every send looks at comes first.
    to: Addressee,
    lane: OwnLane,
    queue: Arc<Queue>,
    refusals: LaneRefusals,
}

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
        // Four messages at first, where messages have one size. Consumers take less for garbage.
        let least = if fault("queue.first_of_any_size") { 0 } else { CAPACITY_BYTES_MIN };
        let four = 4 * (shape.record(shape.item.max(1)) + shape.unit);
        let wanted = first_bytes.max(four).max(least);
        let first_bytes = wanted.min(largest).next_power_of_two().min(largest);
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
        let to = Addressee::new(table)?;
        let bounds = Bounds { first: first_bytes, most: bound_bytes };
        let lane = OwnLane::create(&queue, id, bounds)?;
        crash_point!("queue.writer.open.after_link");
        let refusals = LaneRefusals::new(queue.name.as_str());
        // Whatever fails from here on closes the lane.
        let mut writer = Self { to, lane, queue, refusals };
        let Queue { node, dir, name, unread, .. } = &*writer.queue;
        if reclaim::count_lanes(dir)? > consumer::SLOTS_MAX {
            // Several came at once. Nobody would read this lane; dying here, it is drained.
            file::unlink(&segment_path(dir, id, 0))?;
            let crowd = reclaim::thin_out(node.domain(), dir, *unread)?;
            return Err(crowd.error(name.as_str()));
        }
        writer.queue.ring_bell();
        writer.to.call(&writer.queue.node);
        Ok(writer)
    }

    pub(crate) fn id(&self) -> ProducerId {
        self.lane.id()
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    #[inline]
    pub(crate) fn shape(&self) -> &Shape {
        self.lane.shape()
    }

    /// Shared memory of the lane right now, bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.lane.memory_bytes()
    }

    pub(crate) fn set_bound_bytes(&mut self, bytes: u64) {
        self.lane.set_bound_bytes(bytes);
    }

    /// Whether this is a forked child's copy.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.to.is_forked()
    }

    /// Before anything is written: this process is the node, and a live consumer reads.
    ///
    /// # Errors
    /// `Nobody`: no live consumer, by its word. That is a hint, enough to refuse what can be
    /// tried again; what cannot be undone takes what `deserted` gives. `ForkedChild`.
    #[inline(always)]
    pub(crate) fn check_served(&mut self) -> Sent<()> {
        if self.to.is_there() || fault("send.unserved") { Ok(()) } else { self.find_consumer() }
    }

    /// As `check_served`, for who only wants to know; whom it cannot look at may be there. Nobody
    /// serves a forked child.
    #[inline]
    pub(crate) fn may_be_served(&mut self) -> bool {
        match self.check_served() {
            Err(Refused::Nobody) => false,
            Err(Refused::Failed(e)) if e.kind() == ErrorKind::ForkedChild => false,
            served => served.is_ok() || !fault("served.unseen_is_gone"),
        }
    }

    #[cold]
    fn find_consumer(&mut self) -> Sent<()> {
        self.queue.node.tend()?;
        self.to.find(&self.queue.node)
    }

    /// The node that consumes, by what the table says.
    #[cold]
    pub(crate) fn consumer_node(&self) -> Option<NodeId> {
        self.to.node()
    }

    /// The proof that nobody reads, if so; asked where `check_served` has just said `Nobody`.
    #[cold]
    pub(crate) fn deserted(&self) -> Option<Deserted> {
        self.to.deserted()
    }

    /// The error that `refused` stands for.
    #[cold]
    pub(crate) fn error(&self, refused: Refused) -> Error {
        match refused {
            Refused::Nobody => self.refusals.error(ErrorKind::OwnerDied),
            Refused::Full => self.full(ErrorKind::WouldBlock),
            Refused::Late => self.full(ErrorKind::Timeout),
            Refused::Failed(e) => e,
        }
    }

    /// The same for calls that do not wait.
    #[cold]
    pub(super) fn not_sent(&self, refused: Refused) -> TrySendError {
        match refused {
            Refused::Nobody => TrySendError::NoConsumer(self.refusals.facts().clone()),
            Refused::Full => {
                self.note_full();
                TrySendError::Full(self.refusals.facts().clone())
            }
            other => TrySendError::Failed(self.error(other)),
        }
    }

    fn full(&self, kind: ErrorKind) -> Error {
        self.note_full();
        self.refusals.error(kind)
    }

    /// What a full lane has to say.
    fn note_full(&self) {
        let lane = &self.lane;
        self.refusals.note_full(lane.memory_bytes(), lane.bound_bytes(), lane.id());
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
        deadline: Deadline,
    ) -> Sent<()> {
        self.check_served()?;
        let Shape { item, per_run, .. } = *known.unwrap_or(self.lane.shape());
        let run = match self.lane.open_run(per_run) {
            Some(run) => run,
            None if self.lane.shape().stamped => {
                // A copy, so that a message in a register can stay there until here.
                let mut copy = [0; RUN_BYTES as usize];
                let copy = &mut copy[..bytes.len()];
                copy.copy_from_slice(bytes);
                return self.send_stamped(copy, deadline);
            }
            None => match self.lane.begin_run() {
                Some(run) => run,
                None => self.begin_run_slow(deadline)?,
            },
        };
        let to = run.header.as_ptr().cast::<u8>().wrapping_add(run.next(item) as usize);
        // SAFETY: the run at the tail fits (checked when it was begun), the message is one of its
        // `per_run`, so it ends in the same line; nobody reads it before the commit.
        unsafe { copy_in(bytes, to) };
        crash_point!("queue.send.run.before_commit");
        self.lane.commit_in_run(run);
        self.after_commit(run.header);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn begin_run_slow(&mut self, deadline: Deadline) -> Sent<OpenRun> {
        self.make_room(RUN_BYTES, deadline)?;
        self.lane.begin_run().ok_or_else(|| self.corrupt("its own room").into())
    }

    /// As `send`, in a queue with stamps, whose shape no type knows.
    #[cold]
    pub(super) fn send_stamped(&mut self, bytes: &[u8], deadline: Deadline) -> Sent<()> {
        let shape = *self.lane.shape();
        self.send(bytes, &shape, deadline)
    }

    /// Sends `bytes` as one record.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the record's header.
    #[inline(always)]
    pub(crate) fn send(&mut self, bytes: &[u8], shape: &Shape, deadline: Deadline) -> Sent<()> {
        let len = bytes.len() as u64;
        self.begin(shape.record(len), deadline)?;
        // SAFETY: `begin` made room for that many bytes that nobody reads before the commit.
        let copy = |to| unsafe { copy_in(bytes, to) };
        if fault("send.commit_first") {
            let to = self.lane.place(shape.head);
            self.commit(len, shape);
            copy(to);
            return Ok(());
        }
        let header = self.lane.commit(len, shape, copy);
        self.after_commit(header);
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
        deadline: Deadline,
    ) -> Sent<()> {
        if count as u64 > COUNT_MAX {
            return Err(self.too_many(count).into());
        }
        self.send(bytes, shape, deadline)
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
    fn close_run(&mut self) {
        if let Some(header) = self.lane.close_run() {
            self.after_commit(header);
        }
    }

    /// Room for a record of `bytes` at the tail; nothing is visible before `commit`.
    ///
    /// # Errors
    /// `Nobody`; `Full` or `Late` when the lane is at its bound; `InvalidArgument` for a message
    /// larger than the bound; `NoSpace`; `Corrupt`; `ForkedChild`.
    #[inline(always)]
    pub(crate) fn reserve(
        &mut self,
        bytes: u64,
        shape: &Shape,
        deadline: Deadline,
    ) -> Sent<*mut u8> {
        self.begin(shape.record(bytes), deadline)?;
        Ok(self.lane.place(shape.head))
    }

    #[inline(always)]
    fn begin(&mut self, need: u64, deadline: Deadline) -> Sent<()> {
        self.check_served()?;
        if !self.lane.fits(need) {
            self.make_room(need, deadline)?;
        }
        self.lane.begin(need);
        Ok(())
    }

    /// Commit point of the record that `reserve` made room for.
    ///
    /// # Crash safety
    /// **Strict.** Before the store of the header nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit(&mut self, bytes: u64, shape: &Shape) {
        let header = self.lane.commit(bytes, shape, |_| ());
        self.after_commit(header);
    }

    /// Wakes the consumer if it asked for it; it sleeps on the header that was committed.
    #[inline(always)]
    fn after_commit(&mut self, header: NonNull<AtomicU64>) {
        // Dying here: the message is sent; the sleeper also waits on our token.
        crash_point!("queue.send.committed");
        if self.to.is_waiting() && !fault("send.no_wake") {
            self.wake(header);
        }
    }

    #[cold]
    fn wake(&mut self, header: NonNull<AtomicU64>) {
        self.to.call(&self.queue.node);
        crash_point!("queue.send.before_wake");
        // SAFETY: a word of our segment's ring.
        futex::wake(futex::low_half(unsafe { header.as_ref() }), i32::MAX);
    }

    #[cold]
    fn refused(&self) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("sending as producer {} to queue", self.lane.id()),
            self.queue.name.as_str(),
            "the consumer rejected this lane as corrupt: nothing was sent; reopen the producer",
        )
    }

    #[cold]
    fn corrupt(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            format!("sending as producer {} to queue", self.lane.id()),
            self.queue.name.as_str(),
            format!("{what} is out of range: open the producer again"),
        )
    }

    #[cold]
    fn too_many(&self, count: usize) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "sending to queue",
            self.queue.name.as_str(),
            format!(
                "a batch has at most {COUNT_MAX} messages, not {count}: nothing was sent; send it \
                 in parts"
            ),
        )
    }

    #[cold]
    fn too_large(&self, need: u64) -> Error {
        Error::new(
            ErrorKind::InvalidArgument,
            "sending to queue",
            self.queue.name.as_str(),
            format!(
                "a record of {need} bytes is larger than a bound of {} bytes allows: nothing was \
                 sent; raise bound_bytes",
                self.lane.bound_bytes()
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
    /// Closes the lane. What is unread stays for the consumer, which unlinks the files; those of a
    /// lane that it has refused go at once.
    fn drop(&mut self) {
        if !self.queue.node.is_own_process() {
            return;
        }
        self.close_run();
        self.lane.close();
        crash_point!("queue.writer.closed");
        if self.is_refused() {
            // Nobody reads it, and where its file was cut nobody would see that it is closed.
            let _ = self.queue.unlink_lane(self.id());
        }
        self.queue.ring_bell();
        self.to.call(&self.queue.node);
        let _ = self.queue.reclaim();
    }
}
