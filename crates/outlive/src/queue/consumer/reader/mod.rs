//! The consuming half without types: the lanes it reads, its events, its sleep.
//!
//! # Invariants
//! - The OFD lock on `consumer` is ours from before the first store into it to the end.
//! - A lane is read before its producer's token is looked at: what the dead committed counts.
//! - A lane's files are unlinked before its slot is freed.

mod asleep;
mod attach;

use std::sync::Arc;
use std::time::Duration;

use super::hand::{Hand, InHand, Taken};
use super::lanes::{Lane, Lanes};
use super::later::Later;
use super::order::Order;
use super::take_over::lock_table;
use super::turn::Turn;
use crate::os::time::clock;
use crate::queue::event::Event;
use crate::queue::lane::ProducerId;
use crate::queue::lane::head::Next;
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::segment_path;
use crate::queue::membership::Queue;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::sync::fence;
use crate::wait::alone::Alone;
use crate::wait::news::News;
use crate::{Result, crash_point};

/// The consumer's lanes and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Reader {
    hand: Hand,
    turn: Turn,
    lanes: Lanes,
    queue: Arc<Queue>,
    later: Later,
    news: News<Event>,
    alone: Alone,
    order: Option<Order>,
    /// Behind a descriptor: when the locks of its producers are asked next.
    ask_ns: u64,
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
        let table = lock_table(&queue)?;
        crash_point!("queue.take_over.locked");
        let mut reader = Self {
            hand: Hand::empty()?,
            turn: Turn::new(),
            lanes: Lanes::new(table, queue.meta.shape()),
            later: Later::new(),
            news: News::default(),
            alone: Alone::default(),
            order: holdback.map(Order::new),
            ask_ns: 0,
            queue,
        };
        // Everything the predecessor stored happened before its lock was free.
        fence(Acquire);
        reader.lanes.table().waiting().store(0, Relaxed);
        reader.look()?;
        if let Some(e) = reader.later.take_lack() {
            return Err(e);
        }
        crash_point!("queue.take_over.before_owner");
        let node = reader.queue.node.id();
        reader.lanes.table().set_owner(Some(node));
        crash_point!("queue.take_over.owned");
        reader.queue.ring_bell();
        Ok(reader)
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn shape(&self) -> &Shape {
        self.lanes.shape()
    }

    /// Names us as the consumer, and no other one before or after.
    pub(crate) fn term(&self) -> u64 {
        self.lanes.table().owner().raw()
    }

    /// Messages that came later than their stamp would have it.
    pub(crate) fn late(&self) -> u64 {
        self.order.map_or(0, |order| order.late())
    }

    pub(crate) fn producers(&self) -> impl Iterator<Item = ProducerId> {
        self.lanes.all().map(Lane::id)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.news.pop()
    }

    /// Events noticed so far.
    pub(crate) fn events_seen(&self) -> u64 {
        self.news.seen()
    }

    /// Looks for a message: `true` when there is one, see `in_hand`.
    ///
    /// # Crash safety
    /// **Strict.** Nothing is received before `take`.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.next_at_once(None).is_some() {
            return Ok(true);
        }
        self.next_slow().inspect_err(|e| self.failed(e))
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
        // In a queue with stamps it never goes on.
        if self.turn.goes_on() {
            self.lanes.next_into(self.turn.lane(), &mut self.hand);
        }
    }

    /// What `next` found; `None` before it found something.
    #[inline(always)]
    pub(crate) fn in_hand(&self) -> Option<InHand> {
        self.hand.show(None)
    }

    /// Tells the lane what was received of the row in hand, and lets go of the rest.
    fn lay_down(&mut self) {
        let taken = self.hand.lay_down();
        self.lanes.note(self.turn.lane(), taken);
    }

    /// Takes up what the lane whose turn it is has found.
    fn take_up(&mut self) -> bool {
        self.lanes.take_up(self.turn.lane(), &mut self.hand)
    }

    /// The lane whose turn it is.
    #[inline]
    fn lane(&self) -> Option<&Lane> {
        self.lanes.get(self.turn.lane())
    }

    /// Who sent what is in hand.
    #[inline]
    pub(crate) fn sender(&self) -> Option<ProducerId> {
        self.lane().map(Lane::id)
    }

    /// When it was committed, in a queue with stamps.
    #[inline]
    pub(crate) fn stamp(&self) -> Option<u64> {
        if self.shape().stamped { self.lane().map(Lane::stamp) } else { None }
    }

    /// Where what is in hand lies in its lane: the record, and the messages of it that are done.
    pub(crate) fn place(&self) -> Option<(u64, u64)> {
        let (position, done) = self.lanes.table().place(self.lane()?.slot()).peek()?;
        Some((position.encode(), done.into()))
    }

    /// What every slow path does first: our token, who is there.
    fn attend(&mut self) -> Result<()> {
        self.queue.node.tend()?;
        self.lanes.table().check_poisoned()?;
        self.later.unlink_kept(&self.queue);
        if self.next_try_ns() != u64::MAX {
            self.try_again();
        }
        if self.queue.epoch().load(Relaxed) != self.later.seen_epoch() {
            self.look()?;
        }
        Ok(())
    }

    /// Ends the turn of the current lane and looks at all others.
    #[cold]
    #[inline(never)]
    fn next_slow(&mut self) -> Result<bool> {
        self.lay_down();
        self.attend()?;
        if self.order.is_some() {
            return Ok(self.next_in_order()? && self.take_up());
        }
        self.turn.look_around(self.shape().stamped);
        Ok(self.next_lane()? || self.turn.rest() && self.next_lane()?)
    }

    /// Looks at the other lanes, then at the one whose turn it was.
    fn next_lane(&mut self) -> Result<bool> {
        for _ in 0..self.lanes.len() {
            let lanes = self.lanes.len();
            self.turn.pass_on(lanes);
            if self.advance(self.turn.lane())? {
                return Ok(self.take_up());
            }
            // It ended, and another one moved up to its place.
            if self.lanes.len() < lanes && !fault("turn.skips_moved_up") {
                self.turn.step_back(self.lanes.len());
            }
        }
        Ok(false)
    }

    /// The turn of the lane that has the message with the earliest stamp, if that may be given out.
    fn next_in_order(&mut self) -> Result<bool> {
        let mut earliest: Option<(u64, usize)> = None;
        let mut all_show = true;
        let mut i = 0;
        while i < self.lanes.len() {
            let before = self.lanes.len();
            if self.advance(i)? {
                let stamp = self.lanes.get(i).map_or(0, Lane::stamp);
                if earliest.is_none_or(|(first, _)| stamp < first) {
                    earliest = Some((stamp, i));
                }
            } else if self.lanes.len() < before {
                // It ended and another moved to its place; the earliest is before it.
                continue;
            } else {
                all_show = false;
            }
            i += 1;
        }
        // One that is put off may have an earlier message.
        all_show &= !self.puts_off();
        let Some(order) = &mut self.order else { return Ok(false) };
        let Some((stamp, i)) = earliest else {
            order.nothing();
            return Ok(false);
        };
        let out = order.gives_out(stamp, all_show, clock::now_ns());
        if out {
            self.turn.give_to(i);
        }
        Ok(out)
    }

    /// Brings lane `i` to its next message; `false` when it has none, or is there no more.
    fn advance(&mut self, i: usize) -> Result<bool> {
        while let Some(next) = self.lanes.next(i) {
            match next {
                Next::Item => return Ok(true),
                Next::Jump => self.follow(i),
                Next::Corrupt(what) => {
                    let why = format!("{what} is out of range: restart that producer");
                    self.refuse(i, why);
                    return Ok(false);
                }
                Next::Empty(_) => {
                    self.lanes.let_go(i);
                    return self.look_at_producer(i);
                }
            }
        }
        Ok(false)
    }

    /// Lane `i` is empty: is its producer still there? `true` when it has a message after all.
    #[cold]
    fn look_at_producer(&mut self, i: usize) -> Result<bool> {
        let Some(lane) = self.lanes.get(i) else { return Ok(false) };
        if lane.is_cut() {
            self.refuse(i, "somebody truncated its file: restart that producer".into());
            return Ok(false);
        }
        let (id, death) = (lane.id(), lane.death());
        let Some(news) = lane.departure(death) else { return Ok(false) };
        // What it committed before it went is visible now: drain once more, then end the lane.
        fence(Acquire);
        if !lane.is_drained() {
            return self.advance(i);
        }
        // Until its files are gone it is a lane of ours, and its end no news.
        let slot = lane.slot();
        if let Err(e) = self.end_lane(id, Some(slot)) {
            self.fail_lane(i, e);
            return Ok(false);
        }
        self.lanes.remove(i);
        self.later.slot_is_free();
        self.news.push(news);
        Ok(false)
    }

    /// Goes on in the next segment of lane `i`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position. Dying after it, the old segment is
    /// unlinked by the successor.
    fn follow(&mut self, i: usize) {
        let Some(lane) = self.lanes.get(i) else { return };
        let (id, old) = (lane.id(), lane.number());
        let next = match self.queue.open_segment(id, old + 1) {
            Ok(next) => next,
            Err(e) if e.is_absent() => {
                self.refuse(i, e.to_string());
                return;
            }
            Err(e) => {
                self.fail_lane(i, e);
                return;
            }
        };
        self.lanes.jump(i, next);
        crash_point!("queue.follow.before_unlink");
        let path = segment_path(&self.queue.dir, id, old);
        // The lane has left it, whether it goes now or later.
        let kept = !fault("follow.no_unlink") && self.queue.unlink(&path).is_err();
        self.lanes.leave_segment(i);
        if kept && !fault("follow.unlink_forgotten") {
            self.later.keep(path);
        }
    }

    /// `n` messages in hand were received.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one store of the lane's position or progress. Dying before it,
    /// the successor receives them again.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32) {
        crash_point!("queue.receive.before_take");
        if let Some(over) = self.hand.take_some(n) {
            self.take_last(over);
        }
    }

    /// As `take`, of all that the hand showed and `over` behind that. A call, so that the rest is
    /// small enough for a caller's loop, drop and all.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(never)]
    fn take_last(&mut self, over: u32) {
        match self.hand.take_last(over) {
            Taken::Some => {}
            Taken::Pause(taken) => self.pause(taken),
            Taken::All(row) => self.end_row(row),
        }
    }

    /// Lets the other lanes have their turn amid a row.
    #[cold]
    fn pause(&mut self, taken: u32) {
        self.lanes.note(self.turn.lane(), taken);
        self.turn.end();
    }

    /// The last of `row` messages was received.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline]
    fn end_row(&mut self, row: u32) {
        let (lane, stream) = (self.turn.lane(), self.turn.is_stream());
        if stream && self.lanes.pass_row(lane, row, &mut self.hand) {
            self.turn.count_in_stream();
        } else {
            self.end_other_row(row, stream);
        }
    }

    /// As `end_row`, whatever the row was.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(never)]
    fn end_other_row(&mut self, row: u32, stream: bool) {
        self.turn.count();
        self.lanes.end_row(self.turn.lane(), row, stream, &mut self.hand);
    }

    /// As after `rows` rows.
    #[cfg(test)]
    pub(in crate::queue) fn set_rows(&mut self, rows: u32) {
        self.turn.set_rows(rows);
    }
}

impl Drop for Reader {
    /// Leaves the queue to a successor. What is unread stays.
    fn drop(&mut self) {
        if !self.queue.node.is_own_process() {
            return;
        }
        self.lay_down();
        self.lanes.tell_received();
        let table = self.lanes.table();
        table.waiting().store(0, Relaxed);
        table.set_owner(None);
        crash_point!("queue.consumer.left");
        table.unlock();
        self.queue.ring_bell();
        let _ = self.queue.reclaim();
    }
}
