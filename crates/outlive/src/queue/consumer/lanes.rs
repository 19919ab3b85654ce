//! The lanes of a queue as its consumer sees them, and their slots in its table.

use std::sync::Arc;

use super::hand::Hand;
use crate::crash_point;
use crate::node::peer::{Dead, Life, Peer, death_of};
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::os::time::pause::Pause;
use crate::queue::event::Event;
use crate::queue::lane::ProducerId;
use crate::queue::lane::head::{Head, Next};
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::Segment;
use crate::queue::membership::table::Table;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;

/// One lane.
#[derive(Debug)]
pub(super) struct Lane {
    head: Head,
    segment: Segment,
    slot: usize,
    id: ProducerId,
    /// The proof of its death when the producer's node file was gone already.
    peer: Life,
    /// Where to look whether the producer waits for room.
    look_at: u64,
    received: u64,
    /// The last time it could not be read on.
    pause: Pause,
}

impl Lane {
    /// A lane from `head` on; `received` messages of it were received before.
    pub(super) fn new(
        id: ProducerId,
        slot: usize,
        head: Head,
        segment: Segment,
        peer: Life,
        received: u64,
    ) -> Self {
        let look_at = head.at() + segment.capacity() / 4;
        Self { head, segment, slot, id, peer, look_at, received, pause: Pause::default() }
    }

    #[inline]
    pub(super) fn id(&self) -> ProducerId {
        self.id
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }

    /// Number of the segment that is read.
    pub(super) fn number(&self) -> u32 {
        self.head.segment
    }

    /// Stamp of the message it shows.
    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        self.head.stamp(self.segment.ring())
    }

    pub(super) fn shows_message(&self) -> bool {
        self.head.items() > 0
    }

    /// Whether everything committed was received.
    pub(super) fn is_drained(&self) -> bool {
        self.head.is_empty(self.segment.ring().peek(self.head.at()))
    }

    /// How its producer went, if it did. `death` is asked for before: who closes and then ends left
    /// in order.
    pub(super) fn departure(&self, death: Option<Dead>) -> Option<Event> {
        match (self.segment.is_closed(), death) {
            (true, _) => Some(Event::ProducerLeft(self.id)),
            (false, Some(dead)) => {
                debug_assert_eq!(dead.node(), self.id.node);
                Some(Event::ProducerDied(self.id))
            }
            (false, None) => None,
        }
    }

    /// A truncated file reads as empty for ever: nothing else would tell.
    pub(super) fn is_cut(&self) -> bool {
        self.segment.is_poisoned()
    }

    pub(super) fn peer(&self) -> Option<&Arc<Peer>> {
        self.peer.as_ref().ok()
    }

    /// Whether its producer is dead, asked once its word says so.
    pub(super) fn death(&self) -> Option<Dead> {
        death_of(&self.peer)
    }

    /// As `death`, whatever the word says.
    pub(super) fn proof_of_death(&self) -> Option<Dead> {
        self.peer.as_ref().map_or_else(|dead| Some(*dead), |peer| peer.proof_of_death())
    }

    /// The header that the next commit changes, and its value; `None` when there is something to
    /// do.
    pub(super) fn sleep_word(&self) -> Option<(&AtomicU32, u32)> {
        let word = self.segment.ring().peek(self.head.at());
        let quiet = self.head.is_empty(word) && !self.segment.is_closed();
        quiet.then(|| (self.segment.header_half(self.head.at()), word as u32))
    }

    /// Notes where it is, and for others how far that is.
    fn tell(&mut self, table: &Table) {
        self.look_at = self.head.at() + self.segment.capacity() / 4;
        table.received(self.slot).store(self.received, Relaxed);
    }

    /// Wakes the producer if it waits for room.
    #[cold]
    #[inline(never)]
    fn let_go(&mut self, table: &Table) {
        self.tell(table);
        // ORDERING(WAITING): pairs with `handshake::sleep`; a late answer costs a short sleep.
        if self.segment.waiting().load(Relaxed) != 0 {
            crash_point!("queue.receive.before_wake");
            futex::wake(futex::low_half(table.place(self.slot).word()), i32::MAX);
        }
    }
}

/// The lanes that are read, and those that are not for a while.
#[derive(Debug)]
pub(super) struct Lanes {
    read: Vec<Lane>,
    shape: Shape,
    table: Table,
    put_off: Vec<Lane>,
}

impl Lanes {
    pub(super) fn new(table: Table, shape: Shape) -> Self {
        Self { read: Vec::new(), shape, table, put_off: Vec::new() }
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    #[inline]
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn len(&self) -> usize {
        self.read.len()
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> Option<&Lane> {
        self.read.get(i)
    }

    /// Those that are read.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.read.iter()
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Lane> {
        self.read.iter().chain(&self.put_off)
    }

    pub(super) fn add(&mut self, lane: Lane) {
        self.read.push(lane);
    }

    pub(super) fn remove(&mut self, i: usize) -> Lane {
        self.read.remove(i)
    }

    /// Takes out the lane of `id`, wherever it is.
    pub(super) fn take_out(&mut self, id: ProducerId) -> Option<Lane> {
        [&mut self.read, &mut self.put_off].into_iter().find_map(|lanes| {
            let i = lanes.iter().position(|lane| lane.id == id)?;
            Some(lanes.remove(i))
        })
    }

    /// Takes out lane `i` for good: its producer's bytes are not what a producer writes.
    pub(super) fn refuse(&mut self, i: usize) -> ProducerId {
        let lane = self.read.remove(i);
        let place = self.table.place(lane.slot);
        place.refuse();
        futex::wake(futex::low_half(place.word()), i32::MAX);
        lane.id
    }

    /// Does not read lane `i` for a while.
    pub(super) fn put_off(&mut self, i: usize) {
        let mut lane = self.read.remove(i);
        lane.pause = lane.pause.next(clock::now_ns());
        self.put_off.push(lane);
    }

    /// When the first of those is read again; the end of time without any.
    #[inline]
    pub(super) fn next_try_ns(&self) -> u64 {
        self.put_off.iter().map(|lane| lane.pause.until_ns()).fold(u64::MAX, u64::min)
    }

    /// Reads those again that are due; whether there are any.
    pub(super) fn try_again(&mut self, now_ns: u64) -> bool {
        let before = self.read.len();
        for i in (0..self.put_off.len()).rev() {
            if self.put_off[i].pause.until_ns() <= now_ns {
                self.read.push(self.put_off.swap_remove(i));
            }
        }
        self.read.len() > before
    }

    /// Brings lane `i` to its next message; `None` where there is no such lane.
    pub(super) fn next(&mut self, i: usize) -> Option<Next> {
        let lane = self.read.get_mut(i)?;
        Some(lane.head.next(lane.segment.ring(), &self.shape, self.table.place(lane.slot)))
    }

    /// Goes on with `next`, the segment behind the one that lane `i` reads.
    pub(super) fn jump(&mut self, i: usize, next: Segment) {
        let Some(lane) = self.read.get_mut(i) else { return };
        lane.head.jump(self.table.place(lane.slot));
        lane.segment = next;
    }

    /// Wakes the producer of lane `i` if it waits for room.
    pub(super) fn let_go(&mut self, i: usize) {
        if let Some(lane) = self.read.get_mut(i) {
            lane.let_go(&self.table);
        }
    }

    /// Lane `i` has left a segment, whose memory is room: wakes the producer. Its flag may be in a
    /// later one.
    pub(super) fn leave_segment(&mut self, i: usize) {
        if let Some(lane) = self.read.get_mut(i) {
            lane.tell(&self.table);
            futex::wake(futex::low_half(self.table.place(lane.slot).word()), i32::MAX);
        }
    }

    /// Puts into `hand` what lane `i` has next, if anything.
    #[inline(always)]
    pub(super) fn next_into(&mut self, i: usize, hand: &mut Hand) {
        let Some(lane) = self.read.get_mut(i) else { return };
        let place = self.table.place(lane.slot);
        if lane.head.next(lane.segment.ring(), &self.shape, place) == Next::Item {
            hand.take_up(&lane.head, &lane.segment, &self.shape, place);
        }
    }

    /// Puts into `hand` what lane `i` has found.
    pub(super) fn take_up(&mut self, i: usize, hand: &mut Hand) -> bool {
        let Some(lane) = self.read.get(i) else { return false };
        hand.take_up(&lane.head, &lane.segment, &self.shape, self.table.place(lane.slot));
        true
    }

    /// Lane `i` learns that `taken` messages of its row were received.
    pub(super) fn note(&mut self, i: usize, taken: u32) {
        if let Some(lane) = self.read.get_mut(i).filter(|_| taken > 0) {
            lane.head.taken(taken);
            lane.received += u64::from(taken);
        }
    }

    /// In a stream: the last of `row` messages of lane `i` was received, and the next row is put
    /// into `hand`. `false` where that takes `end_row`.
    ///
    /// # Crash safety
    /// **Strict.** As `Head::take`.
    #[inline(always)]
    pub(super) fn pass_row(&mut self, i: usize, row: u32, hand: &mut Hand) -> bool {
        let Some(lane) = self.read.get_mut(i) else { return false };
        let (ring, place) = (lane.segment.ring(), self.table.place(lane.slot));
        let found = if lane.head.is_full_run(&self.shape) {
            lane.head.pass_run(ring, &self.shape, place)
        } else if lane.head.is_one(&self.shape) {
            lane.head.pass_one(ring, place)
        } else {
            return false;
        };
        lane.received += u64::from(row);
        if found {
            hand.take_up_next(&lane.head, &lane.segment, &self.shape);
        }
        if lane.head.at() >= lane.look_at {
            lane.let_go(&self.table);
        }
        true
    }

    /// As `pass_row`, whatever the row was and `stream` or not.
    ///
    /// # Crash safety
    /// **Strict.** As `Head::take`.
    #[inline]
    pub(super) fn end_row(&mut self, i: usize, row: u32, stream: bool, hand: &mut Hand) {
        let Some(lane) = self.read.get_mut(i) else { return };
        let (ring, place) = (lane.segment.ring(), self.table.place(lane.slot));
        lane.received += u64::from(row);
        if lane.head.take(row, place) && stream && lane.head.next_at_once(ring, &self.shape) {
            hand.take_up(&lane.head, &lane.segment, &self.shape, place);
        }
        if lane.head.at() >= lane.look_at {
            lane.let_go(&self.table);
        }
    }

    /// Tells in the table how many messages were received, for those who look at the queue.
    pub(super) fn tell_received(&self) {
        for lane in self.all() {
            self.table.received(lane.slot).store(lane.received, Relaxed);
        }
    }
}
