//! A producer's own lane: where it writes, and the segments that it has grown to.
//!
//! # Invariants
//! - Nobody else stores into the lane's files.
//! - The header at the tail is clear, so a `JUMP` can always be committed.
//! - Bytes that the position has not passed are never written.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ptr::NonNull;

use crate::os::time::clock;
use crate::queue::lane::ProducerId;
use crate::queue::lane::layout::{CAPACITY_BYTES_MAX, CAPACITY_BYTES_MIN};
use crate::queue::lane::position::{Position, SEGMENT_MAX, distance};
use crate::queue::lane::record::{Shape, record_word};
use crate::queue::lane::segment::Segment;
use crate::queue::lane::tail::{OpenRun, Tail};
use crate::queue::membership::Queue;
use crate::queue::membership::table::Table;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Result, crash_point};

/// What a lane may take, bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Its first segment; it shrinks no further.
    pub(super) first: u64,
    /// All of its segments.
    pub(super) most: u64,
}

/// The lane: its current segment, and those before it that are still read.
#[derive(Debug)]
pub(super) struct OwnLane {
    tail: Tail,
    segment: Segment,
    shape: Shape,
    number: u32,
    id: ProducerId,
    /// In the consumer's table, once that has one.
    slot: Option<usize>,
    /// Segments that the consumer has not left yet, oldest first: number and capacity.
    older: VecDeque<(u32, u64)>,
    bounds: Bounds,
    use_of_it: Use,
}

/// So long a segment is kept that was needed once: making one and opening it at the other end takes
/// some 100 us, and a stream that comes in bursts would do so in every one.
const KEPT_NS: u64 = 1_000_000_000;

/// Numbers of segments that are left to growth: enough to come from the least to the most.
const NUMBERS_KEPT: u32 = 64;

/// How much of a segment was in use.
#[derive(Debug)]
struct Use {
    /// How often the ring's end was passed.
    lap: u64,
    /// Most bytes in use since `since_ns`.
    peak: u64,
    since_ns: u64,
}

impl Use {
    /// Of a segment that was made now.
    fn new(now_ns: u64) -> Self {
        Self { lap: 0, peak: 0, since_ns: now_ns }
    }

    fn note(&mut self, bytes: u64) {
        self.peak = self.peak.max(bytes);
    }

    /// Whether `lap` is another one than at the last call.
    fn has_passed_end(&mut self, lap: u64) -> bool {
        std::mem::replace(&mut self.lap, lap) != lap
    }

    /// Most bytes in use, once that was seen for long enough; then it begins again.
    fn take(&mut self, now_ns: u64) -> Option<u64> {
        let long = now_ns.saturating_sub(self.since_ns) >= KEPT_NS || fault("lane.shrinks_at_once");
        long.then(|| std::mem::replace(self, Self { lap: self.lap, ..Self::new(now_ns) }).peak)
    }
}

// SAFETY: the raw pointer in `tail` points into `segment`, which the same struct owns; nothing in
// it is bound to a thread.
unsafe impl Send for OwnLane {}

impl OwnLane {
    /// Makes the first segment of the lane `id`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the segment.
    pub(super) fn create(queue: &Queue, id: ProducerId, bounds: Bounds) -> Result<Self> {
        let shape = queue.meta.shape();
        let mode = queue.node.domain().access.own_mode;
        Ok(Self {
            tail: Tail::new(bounds.first, shape.unit),
            segment: Segment::create(&queue.dir, id, 0, bounds.first, mode)?,
            shape,
            number: 0,
            id,
            slot: None,
            older: VecDeque::new(),
            bounds,
            use_of_it: Use::new(clock::now_ns()),
        })
    }

    pub(super) fn id(&self) -> ProducerId {
        self.id
    }

    #[inline]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Most shared memory that it may take, bytes.
    pub(super) fn bound_bytes(&self) -> u64 {
        self.bounds.most
    }

    /// What it takes already stays until it is received.
    pub(super) fn set_bound_bytes(&mut self, bytes: u64) {
        self.bounds.most = bytes.clamp(CAPACITY_BYTES_MIN, CAPACITY_BYTES_MAX);
    }

    /// Shared memory that it takes right now, bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.older.iter().map(|(_, bytes)| bytes).sum::<u64>() + self.tail.capacity()
    }

    /// The run at the tail, if it has room for one more of `per_run` messages.
    #[inline(always)]
    pub(super) fn open_run(&self, per_run: u32) -> Option<OpenRun> {
        self.tail.open_run(per_run)
    }

    /// Begins a run; `None`: there is no room.
    #[inline(always)]
    pub(super) fn begin_run(&mut self) -> Option<OpenRun> {
        self.tail.begin_run(self.segment.ring())
    }

    /// Commit point of one more message of `run`.
    ///
    /// # Crash safety
    /// **Strict.** Before the store nothing happened, after it the message is sent.
    #[inline(always)]
    pub(super) fn commit_in_run(&mut self, run: OpenRun) {
        self.tail.commit_in_run(run);
    }

    /// Ends the run at the tail, if any; returns the header of one that was not full.
    ///
    /// # Crash safety
    /// **Strict.** One store, which carries no message.
    pub(super) fn close_run(&mut self) -> Option<NonNull<AtomicU64>> {
        let at = self.tail.close_run(self.segment.ring(), self.shape.per_run)?;
        Some(self.segment.ring().word(at))
    }

    /// Whether a record of `need` bytes, payload and head, may be written at the tail now.
    #[inline(always)]
    pub(super) fn fits(&self, need: u64) -> bool {
        self.tail.fits(need)
    }

    /// Makes ready for a record of `need` bytes, which fit.
    #[inline(always)]
    pub(super) fn begin(&mut self, need: u64) {
        self.tail.begin(self.segment.ring(), need);
    }

    /// Where the payload of the record that was begun goes, `head` bytes behind its start.
    #[inline]
    pub(super) fn place(&self, head: u64) -> *mut u8 {
        self.segment.at(self.tail.pos() + head)
    }

    /// Commit point of the record that was begun, of `bytes` bytes, which `fill` writes where it is
    /// told; returns its header.
    ///
    /// # Crash safety
    /// **Strict.** Before the store of the header nothing happened, after it the message is sent.
    #[inline(always)]
    pub(super) fn commit(
        &mut self,
        bytes: u64,
        shape: &Shape,
        fill: impl FnOnce(*mut u8),
    ) -> NonNull<AtomicU64> {
        // Found once: for all the compiler knows `fill` changes the fields.
        let (ring, at) = (self.segment.ring(), self.tail.pos());
        let header = ring.word(at);
        fill(self.segment.at(at + shape.head));
        if shape.stamped {
            // Carried by the commit.
            ring.header(at + 8).store(clock::timestamp(), Relaxed);
        }
        crash_point!("queue.send.before_commit");
        self.tail.commit(ring, at, shape.record(bytes), record_word(bytes));
        header
    }

    /// Whether any segment may hold a record of `need` bytes.
    pub(super) fn may_hold(&self, need: u64) -> bool {
        need <= largest_power(self.bounds.most) - self.shape.unit
    }

    /// Whether the current segment can hold one, empty.
    pub(super) fn can_hold(&self, need: u64) -> bool {
        self.tail.can_hold(need)
    }

    /// Whether records can go on for a while.
    pub(super) fn has_plenty(&self) -> bool {
        self.tail.has_plenty()
    }

    /// Its slot in the consumer's table.
    pub(super) fn find_slot(&mut self, table: &Table) -> Option<usize> {
        self.slot = self.slot.or_else(|| table.find(self.id));
        self.slot
    }

    /// As the last look found it.
    pub(super) fn slot(&self) -> Option<usize> {
        self.slot
    }

    /// The consumer is at `at`; `None`: it cannot be there.
    pub(super) fn set_consumed(&mut self, at: Position) -> Option<()> {
        while self.older.front().is_some_and(|(number, _)| *number < at.segment) {
            self.older.pop_front();
        }
        self.tail.set_consumed(self.consumed_at(at)?);
        self.use_of_it.note(self.tail.used());
        Some(())
    }

    /// What a consumer at `at` has consumed of the current segment; `None`: it cannot be there.
    fn consumed_at(&self, at: Position) -> Option<u64> {
        if at.segment < self.number {
            return Some(0);
        }
        let behind = distance(at.offset, self.tail.pos());
        let possible = at.segment == self.number
            && behind <= self.tail.pos()
            && behind <= self.tail.capacity();
        possible.then(|| self.tail.pos() - behind)
    }

    /// Whether there is something to do for one that wants `need` bytes, were the consumer at `at`.
    pub(super) fn would_move(&self, at: Position, need: u64) -> bool {
        let Some(consumed) = self.consumed_at(at) else { return true };
        let mut tail = self.tail;
        tail.set_consumed(consumed);
        // Each segment that the consumer leaves is memory for a larger one.
        let left_behind = self.older.front().is_some_and(|(number, _)| *number < at.segment);
        // So is the one that it has drained, if it reads no other: see `larger`.
        let is_last = at.segment == self.number || fault("lane.last_unasked");
        let drained = is_last && tail.is_drained() && !fault("lane.drained_unasked");
        let too_small = !tail.can_hold(need) && self.number < SEGMENT_MAX;
        tail.fits(need) || tail.can_pad(need) || left_behind || too_small && drained
    }

    /// Whether the lane only grows from here on: after the last number comes no segment.
    fn is_short_of_numbers(&self) -> bool {
        self.number > SEGMENT_MAX - NUMBERS_KEPT
    }

    /// Goes on at the ring's start where a record of `need` bytes would cross its end; returns the
    /// header of the padding.
    ///
    /// # Crash safety
    /// **Strict.** As `Tail::pad`.
    pub(super) fn pad(&mut self, need: u64) -> Option<NonNull<AtomicU64>> {
        let at = self.tail.pad(self.segment.ring(), need)?;
        Some(self.segment.ring().word(at))
    }

    /// Bytes of the segment with which the lane can go on; `None` at the bound. Who is `at_once`
    /// leaves padding that is in the way for a segment as large; an awake consumer reads it sooner
    /// than one is made, so who may wait does.
    pub(super) fn larger(&self, need: u64, at_once: bool) -> Option<u64> {
        let least = (need + self.shape.unit).next_power_of_two();
        let capacity = (self.tail.capacity() * 2).max(least).max(self.bounds.first);
        // What is consumed entirely is left behind at once and does not count.
        let drained = self.older.is_empty()
            && (self.tail.is_drained() || at_once && self.tail.is_drained_but_for_padding());
        let in_use = if drained { 0 } else { self.memory_bytes() };
        if self.number >= SEGMENT_MAX {
            None
        } else if in_use + capacity <= self.bounds.most {
            Some(capacity)
        } else {
            // Smaller may still do for a large message.
            let helps = least > self.tail.capacity() || at_once && !self.is_short_of_numbers();
            (drained && least <= self.bounds.most && helps).then_some(least)
        }
    }

    /// After a round: bytes of the segment that would have done, if that is far smaller, going by
    /// the last second.
    pub(super) fn smaller(&mut self, need: u64) -> Option<u64> {
        if !self.use_of_it.has_passed_end(self.tail.lap()) || self.is_short_of_numbers() {
            return None;
        }
        let (peak, now) = (self.use_of_it.take(clock::now_ns())?, self.tail.capacity());
        let too_large = now > 4 * self.bounds.first && peak < now / 16 && self.older.is_empty();
        let least = (4 * peak).max(need + self.shape.unit).next_power_of_two();
        let capacity = least.max(self.bounds.first);
        (too_large && capacity < now).then_some(capacity)
    }

    /// Makes the next segment; `None` at the last number.
    pub(super) fn next_segment(&self, queue: &Queue, capacity: u64) -> Result<Option<Segment>> {
        if self.number >= SEGMENT_MAX {
            return Ok(None);
        }
        if !fault("grow.into_anothers") {
            queue.node.must_be_listed()?;
        }
        let mode = queue.node.domain().access.own_mode;
        Segment::create(&queue.dir, self.id, self.number + 1, capacity, mode).map(Some)
    }

    /// Leaves the current segment for the next one, which exists already; returns the header.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the `JUMP`.
    pub(super) fn jump(&self) -> NonNull<AtomicU64> {
        let at = self.tail.jump(self.segment.ring());
        self.segment.ring().word(at)
    }

    /// Goes on in the next segment, once the jump to it is committed.
    pub(super) fn go_on_in(&mut self, next: Segment) {
        self.older.push_back((self.number, self.tail.capacity()));
        self.tail = Tail::new(next.capacity(), self.shape.unit);
        self.segment = next;
        self.number += 1;
        self.use_of_it = Use::new(clock::now_ns());
    }

    /// The producer's waiting flag.
    pub(super) fn waiting(&self) -> &AtomicU32 {
        self.segment.waiting()
    }

    /// Whether somebody truncated the current segment.
    pub(super) fn is_poisoned(&self) -> bool {
        self.segment.is_poisoned()
    }

    /// No more messages come.
    ///
    /// # Crash safety
    /// **Strict.** As `Segment::close`.
    pub(super) fn close(&self) {
        self.segment.close();
    }
}

/// The largest power of two up to `bytes`.
pub(super) fn largest_power(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { 1 << bytes.ilog2() }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::domain::name::TopicName;
    use crate::os::fixture::TempDir;
    use crate::queue::membership::Site;
    use crate::queue::membership::meta::Meta;
    use crate::types::PayloadType;

    /// A lane of 16 KiB at first, of `most` bytes at most, in a new queue.
    fn lane_of(dir: &TempDir, most: u64) -> (std::sync::Arc<Queue>, OwnLane) {
        let node = crate::Node::builder().root(dir.join("root")).open().unwrap();
        let site = Site::of_queue(node.domain(), TopicName::of("queue name", "q").unwrap());
        let meta = Meta::of_type(PayloadType::of::<[u8]>(), false, None);
        let (queue, _joining) = Queue::join(&node, &site, &meta).unwrap();
        let id = ProducerId { node: node.id(), port: node.next_port_serial() };
        let lane = OwnLane::create(&queue, id, Bounds { first: 16 << 10, most }).unwrap();
        (queue, lane)
    }

    /// What a sleeper asks before it sleeps must know each reason for which it would go on.
    #[test]
    fn a_drained_lane_is_looked_at_by_who_needs_all_of_it() {
        let dir = TempDir::new("lane-too-small");
        let (_queue, mut lane) = lane_of(&dir, 256 << 10);
        let shape = *lane.shape();
        let (small, large) = (shape.record(100), shape.record(140_000));
        lane.begin(small);
        lane.commit(100, &shape, |_| ());
        assert_eq!((lane.can_hold(large), lane.larger(large, false)), (false, None));
        assert!(!lane.would_move(Position::START, large), "a message is not received yet");
        let drained = Position { segment: 0, offset: small };
        assert!(lane.would_move(drained, large), "it can go on in a larger segment");
        lane.set_consumed(drained).unwrap();
        assert_eq!(lane.larger(large, false), Some(256 << 10));
    }

    /// It would look again and again, without sleeping.
    #[test]
    fn an_empty_segment_is_nothing_to_do_while_the_one_before_it_is_read() {
        let dir = TempDir::new("lane-empty-tail");
        let (queue, mut lane) = lane_of(&dir, 256 << 10);
        let shape = *lane.shape();
        let large = shape.record(140_000);
        lane.begin(shape.record(100));
        lane.commit(100, &shape, |_| ());
        lane.go_on_in(lane.next_segment(&queue, 32 << 10).unwrap().unwrap());
        assert_eq!(lane.larger(large, false), None);
        assert!(!lane.would_move(Position::START, large), "a message is not received yet");
        let next = Position { segment: 1, offset: 0 };
        assert!(lane.would_move(next, large), "nothing is left to receive");
        lane.set_consumed(next).unwrap();
        assert_eq!(lane.larger(large, false), Some(256 << 10));
    }

    #[test]
    fn a_segment_that_is_left_behind_is_looked_at_though_others_follow() {
        let dir = TempDir::new("lane-three");
        let (queue, mut lane) = lane_of(&dir, 224 << 10);
        let large = lane.shape().record(100_000);
        lane.go_on_in(lane.next_segment(&queue, 32 << 10).unwrap().unwrap());
        lane.go_on_in(lane.next_segment(&queue, 64 << 10).unwrap().unwrap());
        assert_eq!(lane.larger(large, false), None);
        assert!(!lane.would_move(Position::START, large));
        let second = Position { segment: 1, offset: 0 };
        assert!(lane.would_move(second, large), "the first is memory that it does not take now");
        lane.set_consumed(second).unwrap();
        assert_eq!(lane.larger(large, false), Some(128 << 10));
        assert!(!lane.would_move(second, large), "that has been looked at");
    }

    /// Sends small messages, received at once, until the ring's end is passed.
    fn go_round(lane: &mut OwnLane) {
        let shape = *lane.shape();
        let lap = lane.tail.lap();
        while lane.tail.lap() == lap {
            lane.begin(shape.record(1016));
            lane.commit(1016, &shape, |_| ());
            let at = Position { segment: lane.number, offset: lane.tail.pos() };
            lane.set_consumed(at).unwrap();
        }
    }

    /// Of 10 in a second there are enough for 19 days only.
    #[test]
    fn a_lane_with_few_numbers_left_only_grows() {
        let dir = TempDir::new("lane-numbers");
        let (queue, mut lane) = lane_of(&dir, 1 << 20);
        lane.go_on_in(lane.next_segment(&queue, 256 << 10).unwrap().unwrap());
        let need = lane.shape().record(1016);
        let shrinks = |lane: &mut OwnLane| {
            go_round(lane);
            crate::os::time::clock::set_test_offset(2 * KEPT_NS as i64);
            let smaller = lane.smaller(need);
            crate::os::time::clock::set_test_offset(0);
            smaller
        };
        assert_eq!(shrinks(&mut lane), Some(16 << 10));
        lane.number = SEGMENT_MAX - NUMBERS_KEPT + 1;
        lane.use_of_it = Use::new(clock::now_ns());
        assert_eq!(shrinks(&mut lane), None);
        assert_eq!(lane.larger(need, false), Some(512 << 10));
    }

    #[test]
    fn an_idle_lane_goes_on_behind_its_padding() {
        let dir = TempDir::new("lane-padding");
        let (queue, mut lane) = lane_of(&dir, 256 << 10);
        lane.go_on_in(lane.next_segment(&queue, 256 << 10).unwrap().unwrap());
        let shape = *lane.shape();
        let large = shape.record(140_000);
        lane.begin(large);
        lane.commit(140_000, &shape, |_| ());
        assert_eq!(lane.larger(large, true), None, "a message is not received yet");
        let received = Position { segment: 1, offset: large };
        assert!(lane.would_move(received, large));
        lane.set_consumed(received).unwrap();
        assert!(lane.pad(large).is_some() && !lane.fits(large));
        assert_eq!(lane.larger(large, true), Some(256 << 10), "the padding is not a message");
        assert_eq!(lane.larger(large, false), None, "who may wait waits until it is read");
        assert!(!lane.would_move(received, large), "that has been looked at");
        let read = Position { segment: 1, offset: 256 << 10 };
        assert!(lane.would_move(read, large), "it fits now");
        // A segment for each message, while there are numbers.
        lane.number = SEGMENT_MAX - NUMBERS_KEPT + 1;
        assert_eq!(lane.larger(large, true), None);
    }
}
