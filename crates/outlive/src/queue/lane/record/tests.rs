//! Lanes as memory images: what is in the ring, what the consumer makes of it.

use super::super::head::{Head, Next};
use super::super::position::{OFFSET_MODULUS, Place, Position, REFUSED, distance};
use super::super::tail::Tail;
use super::*;

const PLAIN: Shape = Shape::new(false, 1, 1, false);
const SMALL: Shape = Shape::new(true, 8, 8, false);
const LARGE: Shape = Shape::new(true, 100, 4, false);

struct Lane {
    words: Vec<AtomicU64>,
    slot: [AtomicU64; 2],
    shape: Shape,
    tail: Tail,
    head: Head,
}

impl Lane {
    fn new(capacity: u64, shape: Shape) -> Self {
        let words = (0..capacity / 8).map(|_| AtomicU64::new(0)).collect();
        let slot = [AtomicU64::new(0), AtomicU64::new(0)];
        Place::new(&slot[0], &slot[1]).reset();
        let tail = Tail::new(capacity, shape.unit);
        Self { words, slot, shape, tail, head: Head::new(Position::START, 0) }
    }

    /// One through which `pos` bytes have gone.
    fn later(capacity: u64, shape: Shape, pos: u64) -> Self {
        let mut lane = Self::new(capacity, shape);
        lane.tail = Tail::later(capacity, shape.unit, pos);
        lane.place().advance(Position { segment: 0, offset: pos }, false);
        lane.take_over();
        lane
    }

    fn place(&self) -> Place<'_> {
        Place::new(&self.slot[0], &self.slot[1])
    }

    /// As `OwnLane::set_consumed`.
    fn look(&mut self) {
        // The consumer may have passed a run that is not left yet.
        let end = self.tail.pos() + RUN_BYTES;
        let behind = distance(self.place().consumed().unwrap().offset, end);
        self.tail.set_consumed(end - behind);
    }

    /// Sends a message of `bytes` whose words all are `value`.
    fn send(&mut self, value: u64, bytes: u64) -> bool {
        self.look();
        let ring = Ring::of(&self.words);
        self.tail.close_run(ring, self.shape.per_run);
        let need = self.shape.record(bytes);
        if !self.tail.fits(need) {
            self.tail.pad(ring, need);
        }
        if !self.tail.fits(need) {
            return false;
        }
        self.tail.begin(ring, need);
        for i in 0..bytes.div_ceil(8) {
            ring.header(self.tail.pos() + self.shape.head + 8 * i).store(value, Relaxed);
        }
        self.tail.commit(ring, self.tail.pos(), need, record_word(bytes));
        true
    }

    /// Sends one small message.
    fn send_in_run(&mut self, value: u64) -> bool {
        self.look();
        let ring = Ring::of(&self.words);
        let run = self.tail.open_run(self.shape.per_run).or_else(|| self.tail.begin_run(ring));
        let Some(run) = run else { return false };
        ring.header(self.tail.pos() + run.next(self.shape.item)).store(value, Relaxed);
        self.tail.commit_in_run(run);
        true
    }

    fn next(&mut self) -> Next {
        let place = Place::new(&self.slot[0], &self.slot[1]);
        self.head.next(Ring::of(&self.words), &self.shape, place)
    }

    fn receive(&mut self) -> Option<u64> {
        match self.next() {
            Next::Item => {
                let value =
                    Ring::of(&self.words).header(self.head.item_at(&self.shape)).load(Relaxed);
                self.head.take(1, Place::new(&self.slot[0], &self.slot[1]));
                Some(value)
            }
            Next::Empty(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// A new consumer, after the old one died.
    fn take_over(&mut self) {
        let (position, done) = self.place().take_over().unwrap();
        self.head = Head::new(position, done);
    }
}

/// A new lane, and one through which so much has gone that its offsets begin anew: 8 TiB.
const BEGINNINGS: [u64; 2] = [0, OFFSET_MODULUS - (64 << 10)];

#[test]
fn records_of_all_sizes_go_round_the_ring_and_none_is_lost() {
    BEGINNINGS.into_iter().for_each(|pos| go_round(Lane::later(4096, PLAIN, pos)));
}

fn go_round(mut lane: Lane) {
    let (mut sent, mut got) = (0, 0);
    for round in 0..5000u64 {
        while lane.send(sent, 8 + sent * 37 % 600) {
            sent += 1;
        }
        for _ in 0..1 + round % 9 {
            if let Some(value) = lane.receive() {
                assert_eq!(value, got);
                got += 1;
            }
        }
        if round % 5 == 0 {
            lane.take_over();
        }
    }
    while let Some(value) = lane.receive() {
        assert_eq!(value, got);
        got += 1;
    }
    assert!(sent == got && sent > 5000);
    lane.look();
    assert!(lane.tail.is_drained());
}

#[test]
fn a_full_ring_takes_nothing_more_and_still_has_room_to_jump() {
    let mut lane = Lane::new(4096, LARGE);
    let mut sent = 0;
    while lane.send(sent, 100) {
        sent += 1;
    }
    assert_eq!(sent, (4096 - 8) / LARGE.record(100));
    lane.tail.jump(Ring::of(&lane.words));
    for i in 0..sent {
        assert_eq!(lane.receive(), Some(i));
    }
    assert_eq!(lane.next(), Next::Jump);
    let place = Place::new(&lane.slot[0], &lane.slot[1]);
    lane.head.jump(place);
    assert_eq!(place.take_over(), Some((Position { segment: 1, offset: 0 }, 0)));
}

#[test]
fn a_message_as_large_as_the_ring_needs_an_empty_ring_only() {
    let mut lane = Lane::new(4096, PLAIN);
    assert!(lane.send(1, 2000));
    assert!(!lane.send(2, 4080));
    assert_eq!(lane.receive(), Some(1));
    assert!(!lane.send(2, 4080), "the padding has to be consumed first");
    assert_eq!(lane.receive(), None);
    assert!(lane.send(2, 4080));
    assert_eq!(lane.receive(), Some(2));
    assert!(!lane.tail.can_hold(PLAIN.record(4081)));
}

#[test]
fn small_messages_share_a_line_and_are_received_one_by_one() {
    assert_eq!(SMALL.per_run, 7);
    BEGINNINGS.into_iter().for_each(|pos| share_lines(Lane::later(4096, SMALL, pos)));
}

fn share_lines(mut lane: Lane) {
    let (mut sent, mut got) = (0, 0);
    for round in 0..5000u64 {
        for _ in 0..round % 11 {
            if round % 13 == 12 {
                let ring = Ring::of(&lane.words);
                lane.tail.close_run(ring, SMALL.per_run);
            }
            sent += u64::from(lane.send_in_run(sent));
        }
        for _ in 0..round % 17 {
            if let Some(value) = lane.receive() {
                assert_eq!(value, got);
                got += 1;
            }
            if round % 5 == 0 {
                lane.take_over();
            }
        }
    }
    while lane.receive().is_some() {
        got += 1;
    }
    assert!(sent == got && sent > 5000);
}

#[test]
fn a_full_run_counts_as_used_until_it_is_consumed_and_is_closed_without_a_store() {
    let mut lane = Lane::new(4096, SMALL);
    (0..7).for_each(|i| assert!(lane.send_in_run(i)));
    assert_eq!((lane.tail.pos(), lane.tail.used()), (0, RUN_BYTES));
    (0..7).for_each(|i| assert_eq!(lane.receive(), Some(i)));
    assert_eq!(lane.tail.close_run(Ring::of(&lane.words), SMALL.per_run), None);
    assert_eq!(lane.words[0].load(Relaxed), 7 << KIND_BITS | RUN);
    lane.tail.set_consumed(lane.head.at());
    assert!(lane.tail.is_drained());
    assert!(lane.send(9, 8) && lane.receive() == Some(9));
}

#[test]
fn a_successor_resumes_within_a_batch_and_within_a_run() {
    let mut lane = Lane::new(4096, SMALL);
    assert!(lane.send(7, 8 * 20));
    assert!(lane.send_in_run(1) && lane.send_in_run(2));
    for left in (0..22).rev() {
        assert!(lane.receive().is_some());
        lane.take_over();
        lane.take_over();
        let items = match lane.next() {
            Next::Item => lane.head.items(),
            _ => 0,
        };
        assert_eq!(items, if left >= 2 { (left - 2).max(2 * u32::from(left == 2)) } else { left });
    }
    assert_eq!(lane.receive(), None);
    assert!(lane.send_in_run(3));
    assert_eq!(lane.receive(), Some(3));
}

#[test]
fn a_death_before_the_commit_leaves_nothing() {
    let mut lane = Lane::new(4096, PLAIN);
    lane.send(1, 8);
    let ring = Ring::of(&lane.words);
    // Payload written, next header cleared, own header not stored.
    ring.header(lane.tail.pos() + 8).store(99, Relaxed);
    ring.clear(lane.tail.pos() + 16);
    assert_eq!(lane.receive(), Some(1));
    assert_eq!(lane.next(), Next::Empty(0));
}

#[test]
fn old_bytes_are_never_taken_for_a_header() {
    let mut lane = Lane::new(4096, PLAIN);
    // Every word of the payload looks like a header.
    let trap = record_word(8);
    for _ in 0..2000 {
        assert!(lane.send(trap, 24));
        assert_eq!(lane.receive(), Some(trap));
        assert_eq!(lane.next(), Next::Empty(0));
    }
}

#[test]
fn headers_that_no_producer_stores_are_corrupt() {
    let bad = [
        record_word(5000),
        record_word(u64::MAX >> KIND_BITS),
        record_word(0) | 1 << 7,
        PAD | 64 << KIND_BITS,
        PAD | 4096 << KIND_BITS,
        JUMP | 1 << 20,
        77,
        u64::MAX,
        1 << 63,
        RUN | 8 << KIND_BITS,
        RUN,
        RUN_CLOSED,
        record_word(12),
    ];
    for shape in [SMALL, LARGE] {
        for word in bad {
            let mut lane = Lane::new(4096, shape);
            lane.words[0].store(word, Relaxed);
            assert!(matches!(lane.next(), Next::Corrupt(_)), "{word:#x} {shape:?}");
        }
    }
    let mut lane = Lane::new(4096, PLAIN);
    lane.words[0].store(RUN | 1 << KIND_BITS, Relaxed);
    assert!(matches!(lane.next(), Next::Corrupt(_)), "no runs in this queue");
}

#[test]
fn a_refused_lane_shows_in_its_position() {
    let lane = Lane::new(4096, PLAIN);
    lane.place().refuse();
    assert_eq!(lane.place().word().load(Relaxed), REFUSED);
}

#[test]
fn shapes_keep_payloads_aligned() {
    for (size, align) in [(1, 1), (8, 8), (16, 16), (100, 4), (4096, 4096), (24, 8)] {
        for stamped in [false, true] {
            let shape = Shape::new(true, size, align, stamped);
            assert_eq!(shape.head % align as u64, 0);
            assert_eq!(shape.unit % align as u64, 0);
            assert!(shape.head >= 8 && (!stamped || shape.head >= 16 && shape.per_run == 0));
            assert!(u64::from(shape.per_run) * size as u64 <= RUN_BYTES - 8);
        }
    }
}

#[test]
fn a_header_that_says_less_than_was_received_is_corrupt() {
    for word in [0, RUN | 1 << KIND_BITS, RUN | 2 << KIND_BITS, RUN_CLOSED | 2 << KIND_BITS] {
        for successor in [false, true] {
            let mut lane = Lane::new(4096, SMALL);
            (0..3).for_each(|i| assert!(lane.send_in_run(i)));
            (0..3).for_each(|i| assert_eq!(lane.receive(), Some(i)));
            if successor {
                lane.take_over();
            }
            assert_eq!(lane.next(), Next::Empty(RUN | 3 << KIND_BITS));
            assert!(lane.head.is_empty(RUN | 3 << KIND_BITS));
            lane.words[0].store(word, Relaxed);
            assert!(!lane.head.is_empty(word), "{word:#x}: nobody sleeps on it");
            let next = lane.next();
            assert!(matches!(next, Next::Corrupt(_)), "{word:#x} {successor}: {next:?}");
        }
    }
}
