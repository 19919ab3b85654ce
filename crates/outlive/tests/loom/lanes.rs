//! Queues: a producer at its end of a lane against the consumer at the other, who may be killed
//! and replaced.
//!
//! Payloads are plain memory, so loom fails when the producer overwrites what is still read, or
//! when a message is seen before its payload. The file lock that passes from a dead consumer to
//! its successor is the join of its thread: the kernel frees it after the last store.

use std::sync::Arc;
use std::sync::atomic::AtomicU32 as Count;
use std::sync::atomic::Ordering::SeqCst;

use crate::loom::thread;

use crate::queue::lane::head::{Head, Next};
use crate::queue::lane::position::{Place, Position};
use crate::queue::lane::record::{RUN_BYTES, Ring, Shape, record_word};
use crate::queue::lane::tail::Tail;
use crate::shared::{Chunk, words};
use crate::sync::{AtomicU64, caught, kill_after};

const ALIVE: u32 = u32::MAX - 1;
const WORD: u64 = 8;

/// Messages of one word, each a record.
const RECORDS: Shape = Shape::new(false, 8, 8, false);
/// The same, up to seven in a line.
const RUNS: Shape = Shape::new(true, 8, 8, false);

/// One lane of one segment.
struct Lane {
    shape: Shape,
    headers: Vec<AtomicU64>,
    payloads: Vec<Chunk>,
    slot: [AtomicU64; 2],
    /// Messages that were committed; no part of the model's memory.
    sent: Count,
}

impl Lane {
    fn new(shape: Shape, capacity: u64) -> Self {
        let payloads = (0..capacity / WORD).map(|_| Chunk::new()).collect();
        let slot = [AtomicU64::new(0), AtomicU64::new(u64::MAX)];
        let headers = words((capacity / WORD) as usize);
        Self { shape, headers, payloads, slot, sent: Count::new(0) }
    }

    fn ring(&self) -> Ring<'_> {
        Ring::of(&self.headers)
    }

    fn place(&self) -> Place<'_> {
        Place::new(&self.slot[0], &self.slot[1])
    }

    fn payload(&self, offset: u64) -> &Chunk {
        &self.payloads[(offset / WORD) as usize & (self.payloads.len() - 1)]
    }

    /// Sends up to `messages`, as far as there is room.
    fn produce(&self, messages: u64) {
        let (mut tail, per_run) =
            (Tail::new(self.ring().capacity(), self.shape.unit), self.shape.per_run);
        for n in 0..messages {
            if per_run > 0 && n % 3 == 2 {
                tail.close_run(self.ring(), per_run);
            }
            if per_run == 0 {
                if !self.make_room(&mut tail, self.shape.record(WORD)) {
                    return;
                }
                tail.begin(self.ring(), self.shape.record(WORD));
                self.payload(tail.pos() + self.shape.head).write(100 + n);
                tail.commit(self.ring(), tail.pos(), self.shape.record(WORD), record_word(WORD));
            } else {
                let run = tail.open_run(per_run).or_else(|| tail.begin_run(self.ring()));
                let Some(run) = run.or_else(|| {
                    tail.close_run(self.ring(), per_run);
                    self.make_room(&mut tail, RUN_BYTES).then(|| tail.begin_run(self.ring()))?
                }) else {
                    return;
                };
                self.payload(tail.pos() + run.next(WORD)).write(100 + n);
                tail.commit_in_run(run);
            }
            self.sent.fetch_add(1, SeqCst);
        }
    }

    /// Whether there is room for a record of `need` bytes.
    fn make_room(&self, tail: &mut Tail, need: u64) -> bool {
        if !tail.fits(need) {
            let Some(consumed) = self.place().consumed() else { return false };
            tail.set_consumed(consumed.offset);
        }
        tail.fits(need)
    }

    /// Receives what is there, from message `*next` on.
    fn consume(&self, head: &mut Head, next: &mut u64) {
        loop {
            match head.next(self.ring(), &self.shape, self.place()) {
                Next::Item => {
                    assert_eq!(self.payload(head.item_at(&self.shape)).read(), 100 + *next);
                    head.take(1, self.place());
                    *next += 1;
                }
                Next::Empty(_) => return,
                other => panic!("{other:?} at message {next}"),
            }
        }
    }

    /// A new consumer.
    fn take_over(&self) -> Head {
        let (position, done) = self.place().take_over().unwrap();
        Head::new(position, done)
    }
}

/// Where the two ends take turns, more switches than elsewhere: a ring of two records passes from
/// hand to hand five times for three messages.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = crate::loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.map(|bound| bound.max(5));
    builder.check(model);
}

/// A producer, killed after `steps` stores, and a consumer that looks twice.
fn lane(shape: Shape, capacity: u64, messages: u64, steps: u32) {
    explore(move || {
        let lane = Arc::new(Lane::new(shape, capacity));
        let producer = thread::spawn({
            let lane = Arc::clone(&lane);
            move || kill_after(steps, || lane.produce(messages))
        });
        let (mut head, mut next) = (Head::new(Position::START, 0), 0);
        lane.consume(&mut head, &mut next);
        producer.join().unwrap();
        lane.consume(&mut head, &mut next);
        // Received: exactly what was committed.
        assert_eq!(next, u64::from(lane.sent.load(SeqCst)));
    });
}

/// A consumer killed after `steps` stores, and its successor, while a producer sends.
fn take_over(shape: Shape, capacity: u64, messages: u64, steps: u32) {
    crate::loom::model(move || {
        let lane = Arc::new(Lane::new(shape, capacity));
        let producer = thread::spawn({
            let lane = Arc::clone(&lane);
            move || lane.produce(messages)
        });
        let mut taken = 0;
        let died = !kill_after(steps, || {
            lane.consume(&mut Head::new(Position::START, 0), &mut taken);
        });
        let mut head = lane.take_over();
        let mut next = taken;
        if died && head.next(lane.ring(), &shape, lane.place()) == Next::Item {
            // The one in hand comes again, or its receipt was the last thing stored.
            let first = lane.payload(head.item_at(&lane.shape)).read() - 100;
            assert!(first == taken || first == taken + 1, "{first} after {taken}");
            next = first;
        }
        lane.consume(&mut head, &mut next);
        producer.join().unwrap();
        lane.consume(&mut head, &mut next);
        let sent = u64::from(lane.sent.load(SeqCst));
        assert!(next == sent || died && next + 1 == sent && taken + 1 == sent, "{next} {sent}");
    });
}

/// Two segments with a batch each; the consumer is killed at every store on its way through.
fn jump(steps: u32) -> bool {
    let whole = Arc::new(Count::new(0));
    let told = Arc::clone(&whole);
    crate::loom::model(move || {
        const BATCH: u64 = 3;
        let lanes = [Lane::new(RUNS, 256), Lane::new(RUNS, 256)];
        for (k, lane) in lanes.iter().enumerate() {
            let mut tail = Tail::new(256, RUNS.unit);
            (0..BATCH).for_each(|i| lane.payload(WORD + WORD * i).write(3 * k as u64 + i));
            tail.commit(
                lane.ring(),
                tail.pos(),
                RUNS.record(BATCH * WORD),
                record_word(BATCH * WORD),
            );
            if k == 0 {
                tail.jump(lane.ring());
            }
        }
        // One slot for the lane: that of its first segment.
        let place = lanes[0].place();
        let read = |head: &mut Head, next: &mut u64| {
            loop {
                let lane = &lanes[head.segment as usize];
                match head.next(lane.ring(), &RUNS, place) {
                    Next::Item => {
                        let value = lane.payload(head.item_at(&RUNS)).read();
                        assert!(value == *next || value + 1 == *next, "{value} after {next}");
                        head.take(1, place);
                        *next = value + 1;
                    }
                    Next::Jump => head.jump(place),
                    _ => return,
                }
            }
        };
        let mut next = 0;
        let whole = kill_after(steps, || read(&mut Head::new(Position::START, 0), &mut next));
        let mut successor = lanes[0].take_over();
        // Killed inside `take`, after its store: that message is not in `next` yet.
        if let Next::Item = successor.next(lanes[successor.segment as usize].ring(), &RUNS, place) {
            let at = successor.item_at(&RUNS);
            let first = lanes[successor.segment as usize].payload(at).read();
            assert!(first == next || first == next + 1, "{first} after {next}");
            next = first;
        } else if !whole && next % BATCH == BATCH - 1 {
            next += 1;
        }
        read(&mut successor, &mut next);
        assert_eq!(next, 2 * BATCH);
        told.store(u32::from(whole), SeqCst);
    });
    whole.load(SeqCst) == 1
}

#[test]
fn records_arrive_whole_in_order_and_none_is_overwritten() {
    lane(RECORDS, 32, 3, ALIVE);
    lane(RECORDS, 64, 4, ALIVE);
}

#[test]
fn messages_of_a_run_arrive_whole_and_in_order() {
    lane(RUNS, 128, 2, ALIVE);
    lane(RUNS, 128, 4, ALIVE);
}

#[test]
fn a_producer_killed_at_any_store_has_sent_a_message_or_not() {
    for steps in 0..6 {
        lane(RECORDS, 32, 3, steps);
        lane(RUNS, 128, 3, steps);
    }
}

#[test]
fn a_consumer_killed_at_any_store_is_followed_by_one_that_goes_on() {
    for steps in 0..5 {
        take_over(RECORDS, 32, 3, steps);
        take_over(RUNS, 128, 3, steps);
    }
}

#[test]
fn a_take_over_on_the_way_into_the_next_segment_loses_and_skips_nothing() {
    let whole = (0..20).find(|&steps| jump(steps));
    assert!(whole.is_some_and(|steps| steps > 6), "{whole:?}");
}

#[test]
fn without_clearing_the_next_header_old_bytes_are_taken_for_a_record() {
    caught("lane.clear.missing", || lane(RECORDS, 32, 3, ALIVE));
}

#[test]
fn lines_taken_back_beyond_the_room_lose_messages() {
    caught("tail.ahead.unlimited", || lane(RUNS, 128, 8, ALIVE));
}

#[test]
fn a_relaxed_commit_shows_a_record_before_its_payload() {
    caught("lane.commit.relaxed", || lane(RECORDS, 32, 2, ALIVE));
}

#[test]
fn a_relaxed_look_shows_a_record_before_its_payload() {
    caught("lane.peek.relaxed", || lane(RECORDS, 32, 2, ALIVE));
}

#[test]
fn a_relaxed_position_lets_the_producer_overwrite_what_is_read() {
    caught("position.advance.relaxed", || lane(RECORDS, 32, 3, ALIVE));
}

#[test]
fn a_relaxed_look_at_the_position_lets_the_producer_overwrite_what_is_read() {
    caught("position.consumed.relaxed", || lane(RECORDS, 32, 3, ALIVE));
}

#[test]
fn a_progress_kept_into_the_next_segment_skips_messages() {
    caught("position.advance.keeps_progress", || assert!((0..20).any(jump)));
}

#[test]
fn a_take_over_without_progress_repeats_messages() {
    caught("position.take_over.no_progress", || assert!((0..20).any(jump)));
}
