//! The consuming half without types: the lanes it reads, its events, its sleep.
//!
//! # Invariants
//! - The OFD lock on `consumer` is ours from before the first store into it to the end.
//! - A lane is read before its producer's token is looked at: what the dead committed counts.
//! - A lane's files are unlinked before its slot is freed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::attach;
use super::hand::{Hand, InHand, Taken};
use super::later::{Later, Pause};
use super::order::Order;
use crate::node::peer::{Dead, Life, death_of};
use crate::os::fs::file;
use crate::os::process::fork;
use crate::os::sleep::futex;
use crate::queue::lane::head::{Head, Next};
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::{Segment, segment_path};
use crate::queue::membership::Queue;
use crate::queue::membership::reclaim::is_absent;
use crate::queue::membership::table::{ProducerId, Table};
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::sync::fence;
use crate::wait::WaitSet;
use crate::wait::wake::bridge::Bridge;
use crate::{Result, crash_point};

/// What happened to the producers of a queue, in the order in which the consumer noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A producer was found.
    ProducerJoined(ProducerId),
    /// A producer left in order; everything it sent has been received.
    ProducerLeft(ProducerId),
    /// A producer's process died; everything it had sent has been received.
    ProducerDied(ProducerId),
    /// A producer's bytes are not what a producer writes; its lane is not read any more.
    ProducerCorrupt {
        /// Whose bytes they are.
        producer: ProducerId,
        /// What is wrong and what to do.
        why: String,
    },
}

/// Most events kept for a caller that never asks; the oldest go first.
const EVENTS_MAX: usize = 1024;
/// Rows received from one lane while others wait, and messages of a row received one by one.
pub(in crate::queue) const BURST: u32 = 128;
/// Rows in a row from which on more are expected.
const STREAM: u32 = 3;
/// Most pauses of a rest: where a stream was received up to its end, its producer is left alone
/// for about as long as that took. Each look takes the line that it writes.
const REST_PAUSES_MAX: u32 = 64;

/// One lane as its consumer sees it.
#[derive(Debug)]
pub(in crate::queue) struct Lane {
    pub(in crate::queue) head: Head,
    pub(in crate::queue) segment: Segment,
    pub(in crate::queue) slot: usize,
    pub(in crate::queue) id: ProducerId,
    /// The proof of its death when the producer's node file was gone already.
    pub(in crate::queue) peer: Life,
    /// Where to look whether the producer waits for room.
    pub(in crate::queue) look_at: u64,
    pub(in crate::queue) received: u64,
    /// The last time it could not be read on.
    pub(in crate::queue) pause: Pause,
}

impl Lane {
    /// Stamp of the message it shows.
    pub(in crate::queue) fn stamp(&self) -> u64 {
        self.head.stamp(self.segment.ring())
    }

    /// Whether its producer is dead, asked once its word says so.
    pub(in crate::queue) fn death(&self) -> Option<Dead> {
        death_of(&self.peer)
    }

    /// As `death`, whatever the word says.
    pub(in crate::queue) fn proof_of_death(&self) -> Option<Dead> {
        self.peer.as_ref().map_or_else(|dead| Some(*dead), |peer| peer.proof_of_death())
    }

    /// Wakes the producer if it waits for room.
    #[cold]
    #[inline(never)]
    pub(in crate::queue) fn let_go(&mut self, table: &Table) {
        self.look_at = self.head.at() + self.segment.capacity() / 4;
        table.received(self.slot).store(self.received, Relaxed);
        // ORDERING(WAITING): pairs with `handshake::sleep`; a late answer costs a short sleep.
        if self.segment.waiting().load(Relaxed) != 0 {
            crash_point!("queue.receive.before_wake");
            futex::wake(futex::low_half(table.place(self.slot).word()), i32::MAX);
        }
    }
}

/// The consumer's file, its lanes and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(in crate::queue) generation: u32,
    pub(in crate::queue) hand: Hand,
    pub(in crate::queue) shape: Shape,
    pub(in crate::queue) lanes: Vec<Lane>,
    /// The lane that is read, and how many rows of it without a look at others; `BURST` means
    /// look around.
    pub(in crate::queue) turn: usize,
    pub(in crate::queue) burst: u32,
    /// Rows received since nothing was found, without those of `burst`; at most `REST_PAUSES_MAX`.
    streak: u32,
    pub(in crate::queue) table: Table,
    pub(in crate::queue) queue: Arc<Queue>,
    /// Lanes wait for a free slot.
    pub(in crate::queue) left_out: bool,
    /// What is tried again.
    pub(in crate::queue) later: Later,
    pub(in crate::queue) events: VecDeque<Event>,
    pub(in crate::queue) events_seen: u64,
    pub(in crate::queue) seen_epoch: u64,
    pub(in crate::queue) events_told: u64,
    /// To sleep with us as its only member.
    pub(in crate::queue) set: Option<WaitSet>,
    /// What makes our descriptor readable, once somebody asked for that.
    pub(in crate::queue) bridge: Option<Box<Bridge>>,
    pub(in crate::queue) order: Option<Order>,
}

impl Reader {
    /// Becomes the consumer of `queue`; the caller holds the joining lock.
    ///
    /// # Errors
    /// `ConsumerExists` while another one lives, or is still being taken down after 10 s.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the owner word. The lock frees itself at our death,
    /// and whoever comes next does the same again.
    pub(crate) fn open(queue: Arc<Queue>, holdback: Option<Duration>) -> Result<Self> {
        let order = holdback.map(|d| Order::new(d.as_nanos().min(1 << 62) as u64));
        let table = attach::lock_table(&queue)?;
        crash_point!("queue.take_over.locked");
        let mut reader = Self {
            generation: fork::fork_generation(),
            hand: Hand::empty()?,
            shape: queue.meta.shape(),
            lanes: Vec::new(),
            turn: 0,
            burst: BURST,
            streak: 0,
            table,
            left_out: false,
            later: Later::default(),
            events: VecDeque::new(),
            events_seen: 0,
            seen_epoch: u64::MAX,
            events_told: 0,
            set: None,
            bridge: None,
            order,
            queue,
        };
        // Everything the predecessor stored happened before its lock was free.
        fence(Acquire);
        reader.table.waiting().store(0, Relaxed);
        reader.look()?;
        if let Some(e) = reader.lack() {
            return Err(e);
        }
        crash_point!("queue.take_over.before_owner");
        let node = reader.queue.node.id();
        reader.table.set_owner(Some(node));
        crash_point!("queue.take_over.owned");
        reader.queue.ring_bell();
        Ok(reader)
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Names us as the consumer, and no other one before or after.
    pub(crate) fn term(&self) -> u64 {
        self.table.owner().raw()
    }

    /// Messages that came later than their stamp would have it.
    pub(crate) fn late(&self) -> u64 {
        self.order.map_or(0, |order| order.late)
    }

    pub(crate) fn producers(&self) -> impl Iterator<Item = ProducerId> {
        self.lanes.iter().chain(&self.later.lanes).map(|lane| lane.id)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Events noticed so far.
    pub(crate) fn events_seen(&self) -> u64 {
        self.events_seen
    }

    pub(in crate::queue) fn event(&mut self, event: Event) {
        self.events_seen += 1;
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Looks for a message: `true` when there is one, see `in_hand`.
    ///
    /// # Crash safety
    /// **Strict.** Nothing is received before `take`.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.next_at_once(None).is_some() { Ok(true) } else { self.next_slow() }
    }

    /// As `next`, only in the lane whose turn it is; also what it found. `known`: the bytes of a
    /// message, where the type says.
    #[inline(always)]
    pub(crate) fn next_at_once(&mut self, known: Option<usize>) -> Option<InHand> {
        if let Some(hand) = self.hand.show(known) {
            return Some(hand);
        }
        self.next_row();
        self.hand.show(known)
    }

    /// Takes up what the lane whose turn it is has next, if anything.
    #[inline(never)]
    fn next_row(&mut self) {
        // In a queue with stamps `burst` is always at its end.
        let Some(lane) = self.lanes.get_mut(self.turn) else { return };
        if self.burst < BURST && self.generation == fork::fork_generation() {
            let place = self.table.place(lane.slot);
            if lane.head.next(lane.segment.ring(), &self.shape, place) == Next::Item {
                self.hand.take_up(&lane.head, &lane.segment, &self.shape, place);
            }
        }
    }

    /// What `next` found; `None` before it found something.
    #[inline(always)]
    pub(crate) fn in_hand(&self) -> Option<InHand> {
        self.hand.show(None)
    }

    /// Tells the lane what was received of the row in hand, and lets go of the rest.
    pub(in crate::queue) fn lay_down(&mut self) {
        let taken = self.hand.lay_down();
        self.note(taken);
    }

    /// The lane whose turn it is learns that `taken` messages of its row were received.
    fn note(&mut self, taken: u32) {
        if let Some(lane) = self.lanes.get_mut(self.turn).filter(|_| taken > 0) {
            lane.head.taken(taken);
            lane.received += u64::from(taken);
        }
    }

    /// Takes up what the lane whose turn it is has found.
    fn take_up(&mut self) -> bool {
        let Some(lane) = self.lanes.get(self.turn) else { return false };
        let place = self.table.place(lane.slot);
        self.hand.take_up(&lane.head, &lane.segment, &self.shape, place);
        true
    }

    /// Who sent what is in hand.
    #[inline]
    pub(crate) fn sender(&self) -> Option<ProducerId> {
        self.lanes.get(self.turn).map(|lane| lane.id)
    }

    /// When it was committed, in a queue with stamps.
    #[inline]
    pub(crate) fn stamp(&self) -> Option<u64> {
        if self.shape.stamped { self.lanes.get(self.turn).map(Lane::stamp) } else { None }
    }

    /// Where what is in hand lies in its lane: the record, and the messages of it that are done.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        let lane = self.lanes.get(self.turn)?;
        let (position, done) = self.table.place(lane.slot).peek()?;
        Some((position.encode(), done.into()))
    }

    /// What every slow path does first: our token, who is there.
    pub(in crate::queue) fn attend(&mut self) -> Result<()> {
        self.queue.node.tend()?;
        self.table.check_poisoned()?;
        if self.next_try_ns() != u64::MAX {
            self.try_again();
        }
        if self.queue.epoch().load(Relaxed) != self.seen_epoch {
            self.look()?;
        }
        Ok(())
    }

    /// Ends the turn of the current lane and looks at all others.
    #[cold]
    #[inline(never)]
    pub(in crate::queue) fn next_slow(&mut self) -> Result<bool> {
        self.lay_down();
        self.attend()?;
        if self.order.is_some() {
            return Ok(self.next_in_order()? && self.take_up());
        }
        let rows = if self.shape.stamped { 0 } else { self.burst };
        self.burst = if self.shape.stamped { BURST } else { 0 };
        self.streak = (self.streak + rows).min(REST_PAUSES_MAX);
        if self.next_lane()? {
            return Ok(true);
        }
        let rest = std::mem::take(&mut self.streak);
        if rest < STREAM {
            return Ok(false);
        }
        (0..rest).for_each(|_| std::hint::spin_loop());
        self.next_lane()
    }

    /// Looks at the other lanes, then at the one whose turn it was.
    fn next_lane(&mut self) -> Result<bool> {
        // A lane may end while we look: once more for those that moved up.
        for _ in 0..2 * self.lanes.len() {
            self.turn = if self.turn + 1 < self.lanes.len() { self.turn + 1 } else { 0 };
            if self.advance(self.turn)? {
                return Ok(self.take_up());
            }
            if self.lanes.is_empty() {
                break;
            }
        }
        Ok(false)
    }

    /// Brings lane `i` to its next message; `false` when it has none, or is there no more.
    pub(in crate::queue) fn advance(&mut self, i: usize) -> Result<bool> {
        loop {
            let Some(lane) = self.lanes.get_mut(i) else { return Ok(false) };
            let place = self.table.place(lane.slot);
            match lane.head.next(lane.segment.ring(), &self.shape, place) {
                Next::Item => return Ok(true),
                Next::Jump => self.follow(i)?,
                Next::Corrupt(what) => {
                    let why = format!("{what} is out of range: restart that producer");
                    self.refuse(i, why);
                    return Ok(false);
                }
                Next::Empty(_) => {
                    lane.let_go(&self.table);
                    return self.look_at_producer(i);
                }
            }
            if i >= self.lanes.len() {
                return Ok(false);
            }
        }
    }

    /// Lane `i` is empty: is its producer still there? `true` when it has a message after all.
    #[cold]
    fn look_at_producer(&mut self, i: usize) -> Result<bool> {
        let lane = &mut self.lanes[i];
        if lane.segment.is_poisoned() {
            self.refuse(i, "somebody truncated its file: restart that producer".into());
            return Ok(false);
        }
        let left = lane.segment.is_closed();
        let news = match (left, lane.death()) {
            (true, _) => Event::ProducerLeft(lane.id),
            (false, Some(dead)) => {
                debug_assert_eq!(dead.node(), lane.id.node);
                Event::ProducerDied(lane.id)
            }
            (false, None) => return Ok(false),
        };
        // What it committed before it went is visible now: drain once more, then end the lane.
        fence(Acquire);
        if !lane.head.is_empty(lane.segment.ring().peek(lane.head.at())) {
            return self.advance(i);
        }
        let lane = self.lanes.remove(i);
        self.end_lane(lane.id, Some(lane.slot))?;
        self.look_again();
        self.event(news);
        Ok(false)
    }

    /// Goes on in the next segment of lane `i`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position. Dying after it, the old segment is
    /// unlinked by the successor.
    fn follow(&mut self, i: usize) -> Result<()> {
        let lane = &self.lanes[i];
        let (id, old) = (lane.id, lane.head.segment);
        let domain = self.queue.node.domain();
        let next = match Segment::open(&self.queue.dir, id, old + 1, domain) {
            Ok(next) => next,
            Err(e) if is_absent(&e) => {
                self.refuse(i, e.to_string());
                return Ok(());
            }
            Err(e) => {
                self.fail_lane(i, e);
                return Ok(());
            }
        };
        let Some(lane) = self.lanes.get_mut(i) else { return Ok(()) };
        lane.head.jump(self.table.place(lane.slot));
        lane.segment = next;
        crash_point!("queue.follow.before_unlink");
        if !fault("follow.no_unlink") {
            file::unlink(&segment_path(&self.queue.dir, id, old))?;
        }
        lane.let_go(&self.table);
        Ok(())
    }

    /// `n` messages in hand were received.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one store of the lane's position or progress. Dying before it,
    /// the successor receives them again.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32) {
        crash_point!("queue.receive.before_take");
        if !self.hand.take_some(n) {
            self.take_last(n);
        }
    }

    /// As `take`, where that ends what the hand showed. A call, so that the rest is small enough
    /// for a caller's loop, drop and all.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(never)]
    fn take_last(&mut self, n: u32) {
        match self.hand.take_last(n) {
            Taken::Some => {}
            Taken::Pause(taken) => self.pause(taken),
            Taken::All(row) => self.end_row(row),
        }
    }

    /// Lets the other lanes have their turn amid a row.
    #[cold]
    fn pause(&mut self, taken: u32) {
        self.note(taken);
        self.burst = BURST;
    }

    /// The last of `row` messages was received.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline]
    fn end_row(&mut self, row: u32) {
        let Some(lane) = self.lanes.get_mut(self.turn) else { return };
        // In a stream the next row at once: the next call finds it in hand. Not where messages
        // come one by one: the answer to this one would wait for the line of the next.
        let stream = (STREAM - 1..BURST - 1).contains(&self.burst);
        let (ring, place) = (lane.segment.ring(), self.table.place(lane.slot));
        let found = match stream {
            true if lane.head.is_full_run(&self.shape) => {
                lane.head.pass_run(ring, &self.shape, place)
            }
            true if lane.head.is_one(&self.shape) => lane.head.pass_one(ring, place),
            _ => return self.end_other_row(row, stream),
        };
        lane.received += u64::from(row);
        self.burst += 1;
        if found {
            self.hand.take_up_next(&lane.head, &lane.segment, &self.shape);
        }
        if lane.head.at() >= lane.look_at {
            lane.let_go(&self.table);
        }
    }

    /// As `end_row`, whatever the row was.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(never)]
    fn end_other_row(&mut self, row: u32, stream: bool) {
        let Some(lane) = self.lanes.get_mut(self.turn) else { return };
        let (ring, place) = (lane.segment.ring(), self.table.place(lane.slot));
        lane.received += u64::from(row);
        // An ordered queue never sets it back.
        self.burst = self.burst.saturating_add(1);
        if lane.head.take(row, place) && stream && lane.head.next_at_once(ring, &self.shape) {
            self.hand.take_up(&lane.head, &lane.segment, &self.shape, place);
        }
        if lane.head.at() >= lane.look_at {
            lane.let_go(&self.table);
        }
    }
}

impl Drop for Reader {
    /// Leaves the queue to a successor. What is unread stays.
    fn drop(&mut self) {
        if !self.queue.node.is_own_process() {
            return;
        }
        self.lay_down();
        let table = &self.table;
        for lane in self.lanes.iter().chain(&self.later.lanes) {
            table.received(lane.slot).store(lane.received, Relaxed);
        }
        table.waiting().store(0, Relaxed);
        table.set_owner(None);
        crash_point!("queue.consumer.left");
        table.unlock();
        self.queue.ring_bell();
        let _ = self.queue.reclaim();
    }
}
