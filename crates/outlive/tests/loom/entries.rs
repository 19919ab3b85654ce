//! Inline messages: the publisher of `ring` against a subscriber that reads as `Source::take`.

use std::sync::Arc;

use crate::loom::thread;

use crate::shared::Ring;
use crate::sync::Ordering::Relaxed;
use crate::sync::{caught, kill_after};
use crate::topic::ring::entries::{Descriptor, Peek};

/// Stores of one inline message: twice its seq, time stamp, descriptor, one word of body.
const STEPS: u32 = 5;

fn publish(ring: &Ring, n: u64) {
    ring.entry(n).publish_inline(n, 100 + n, &(200 + n).to_ne_bytes());
}

#[derive(Default)]
struct Subscriber {
    cursor: u64,
    lost: u64,
    received: u64,
}

impl Subscriber {
    /// Reads until there is nothing; each message must be the one at the cursor, and whole.
    fn drain(&mut self, ring: &Ring) -> Peek {
        loop {
            let n = self.cursor;
            let entry = ring.entry(n);
            match entry.peek(n, ring.depth) {
                Peek::Ready => {}
                Peek::Overrun { oldest } => {
                    assert!(oldest > n);
                    self.lost += oldest - n;
                    self.cursor = oldest;
                    continue;
                }
                nothing => return nothing,
            }
            let (stamp, descriptor) = (entry.timestamp(), entry.descriptor());
            let body = entry.body()[0].load(Relaxed);
            if !entry.unchanged(n) {
                continue;
            }
            assert_eq!(Descriptor::decode(descriptor), Some(Descriptor::Inline { bytes: 8 }));
            assert_eq!((stamp, body), (100 + n, 200 + n), "message {n} is torn");
            self.received += 1;
            self.cursor += 1;
        }
    }
}

/// Messages up to `first` are there already; `first` and the next are published while the
/// subscriber, which has read none, reads. The publisher is killed after `steps` stores.
fn while_reading(depth: u64, first: u64, steps: u32) {
    crate::loom::model(move || {
        let ring = Arc::new(Ring::new(depth));
        (0..first).for_each(|n| publish(&ring, n));
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || kill_after(steps, || (first..first + 2).for_each(|n| publish(&ring, n)))
        });
        let mut subscriber = Subscriber::default();
        assert!(matches!(subscriber.drain(&ring), Peek::Empty { .. }));
        assert_eq!(publisher.join().unwrap(), steps >= 2 * STEPS);

        let committed = first + u64::from(steps.min(2 * STEPS) / STEPS);
        let busy = steps < 2 * STEPS && steps % STEPS != 0;
        assert_eq!(subscriber.drain(&ring), Peek::Empty { busy });
        assert_eq!(subscriber.cursor, committed);
        assert_eq!(subscriber.received + subscriber.lost, committed);
    });
}

const ALIVE: u32 = u32::MAX - 1;

#[test]
fn messages_arrive_whole_in_order_and_losses_are_counted() {
    while_reading(2, 1, ALIVE);
    while_reading(2, 2, ALIVE);
}

#[test]
fn a_ring_of_one_entry_is_enough() {
    while_reading(1, 0, ALIVE);
    while_reading(1, 1, ALIVE);
}

#[test]
fn a_publisher_killed_at_any_store_has_sent_a_message_or_not() {
    for steps in 0..2 * STEPS {
        while_reading(1, 1, steps);
        while_reading(2, 2, steps);
    }
}

fn mutant() {
    while_reading(1, 1, ALIVE);
}

#[test]
fn without_the_fence_after_busy_a_new_body_passes_for_the_old() {
    caught("ring.begin.no_fence", mutant);
}

#[test]
fn without_the_fence_before_the_second_look_a_new_body_passes_for_the_old() {
    caught("ring.unchanged.no_fence", mutant);
}

#[test]
fn a_relaxed_commit_shows_a_message_before_its_body() {
    caught("ring.commit.relaxed", mutant);
}

#[test]
fn a_relaxed_first_look_shows_a_message_before_its_body() {
    caught("ring.peek.relaxed", mutant);
}

#[test]
fn a_commit_before_the_body_shows_what_is_not_there() {
    caught("publish.commit_first", mutant);
}

#[test]
fn a_body_written_into_an_entry_that_is_not_taken_passes_for_the_old() {
    caught("publish.no_begin", mutant);
}
