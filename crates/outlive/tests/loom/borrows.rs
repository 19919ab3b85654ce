//! Borrowed chunks: the publisher of `hazard` against a subscriber that borrows as
//! `Source::take_chunk`, and against a thread that drops a sample somewhere else.
//!
//! Not caught, rightly: the fence in `Entry::unchanged_after_hazard` (`ring.recheck.no_fence`).
//! It orders the second look after the read of the descriptor; here the fence that loom needs in
//! `swap_fenced` does that already.

use std::sync::Arc;

use crate::loom::thread;

use crate::shared::{Chunk, Ring, words};
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, caught, fault, not_caught, swap_fenced};
use crate::topic::chunks::hazard::{self, Location};
use crate::topic::ring::entries::Peek;

const SLOT: usize = 3;

/// A ring of one entry, two chunks, one hazard. Message n is in chunk n % 2 and says 10 + n.
struct World {
    ring: Ring,
    chunks: [Chunk; 2],
    hazards: Vec<AtomicU64>,
}

fn location(n: u64) -> Location {
    Location::new(0, (n % 2) as u32)
}

impl World {
    /// Message 0 is there.
    fn new() -> Arc<Self> {
        let chunks = [Chunk::new(), Chunk::new()];
        let world = Self { ring: Ring::new(1), chunks, hazards: words(1) };
        world.publish(0);
        Arc::new(world)
    }

    /// The chunk is the publisher's own: unpublished, or free since a scan.
    fn publish(&self, n: u64) {
        self.chunks[n as usize % 2].write(10 + n);
        self.ring.entry(n).publish_chunk(n, 0, location(n).encode(), 8);
    }

    /// As `Writer::scan` with a subscriber attached: whether chunk `n` % 2, retired, is free.
    fn scan(&self, n: u64) -> bool {
        hazard::barrier();
        let mut free = true;
        hazard::held(&self.hazards, SLOT, |held| free &= held != location(n));
        free
    }

    /// Publishes message 1 and, if it gets chunk 0 back, message 2.
    fn publish_two(&self) {
        self.publish(1);
        if self.scan(0) {
            self.publish(2);
        }
    }

    /// Borrows the next message from `cursor` on, if there is one; the hazard is free.
    fn borrow(&self, mut cursor: u64) -> Option<u64> {
        loop {
            let entry = self.ring.entry(cursor);
            match entry.peek(cursor, 1) {
                Peek::Ready => {}
                Peek::Overrun { oldest } => {
                    cursor = oldest;
                    continue;
                }
                _ => return None,
            }
            let Some(at) = Location::decode(entry.body()[0].load(Relaxed)) else { panic!("torn") };
            let free = &self.hazards[0];
            let word = hazard::hazard_word(SLOT, at);
            let held = if fault("borrow.look_before_hazard") {
                let held = entry.unchanged_after_hazard(cursor);
                swap_fenced(free, word);
                held
            } else {
                hazard::borrow(free, word, entry, cursor)
            };
            if held {
                assert_eq!(at, location(cursor), "message {cursor} names another's chunk");
                return Some(cursor);
            }
        }
    }

    fn read_and_drop(&self, n: u64) {
        for _ in 0..2 {
            assert_eq!(self.chunks[n as usize % 2].read(), 10 + n, "message {n} was rewritten");
        }
        hazard::clear(&self.hazards[0]);
    }
}

fn one_subscriber() {
    crate::loom::model(|| {
        let world = World::new();
        let publisher = thread::spawn({
            let world = Arc::clone(&world);
            move || world.publish_two()
        });
        let mut cursor = 0;
        while let Some(n) = world.borrow(cursor) {
            world.read_and_drop(n);
            cursor = n + 1;
        }
        publisher.join().unwrap();
    });
}

/// The sample of message 0 ends in a thread of its own, while its subscriber goes on with the
/// same hazard word.
fn a_sample_elsewhere() {
    crate::loom::model(|| {
        let world = World::new();
        assert_eq!(world.borrow(0), Some(0));
        let spawn = |run: fn(&World)| {
            let world = Arc::clone(&world);
            thread::spawn(move || run(&world))
        };
        let publisher = spawn(World::publish_two);
        let holder = spawn(|world| world.read_and_drop(0));
        let is_free = world.hazards[0].load(Relaxed) == 0;
        if let Some(n) = is_free.then(|| world.borrow(1)).flatten() {
            world.read_and_drop(n);
        }
        holder.join().unwrap();
        publisher.join().unwrap();
    });
}

#[test]
fn a_chunk_is_not_rewritten_while_it_is_borrowed() {
    one_subscriber();
}

#[test]
fn a_sample_may_end_in_another_thread() {
    a_sample_elsewhere();
}

#[test]
fn a_relaxed_hazard_is_seen_too_late() {
    caught("swap.relaxed", one_subscriber);
}

#[test]
fn a_scan_without_a_barrier_misses_a_hazard() {
    caught("hazard.barrier.missing", one_subscriber);
}

#[test]
fn looking_before_the_hazard_is_set_borrows_what_is_free() {
    caught("borrow.look_before_hazard", one_subscriber);
}

#[test]
fn a_borrow_without_a_second_look_holds_what_was_overwritten() {
    caught("borrow.no_second_look", one_subscriber);
}

#[test]
fn a_relaxed_end_of_a_borrow_lets_reads_slip_behind_it() {
    caught("hazard.clear.relaxed", one_subscriber);
}

#[test]
fn a_relaxed_scan_writes_before_the_reads_are_over() {
    caught("hazard.held.relaxed", one_subscriber);
}

#[test]
fn a_hazard_that_is_stored_instead_of_swapped_hides_the_end_before() {
    caught("swap.is_store", a_sample_elsewhere);
}

#[test]
fn the_fence_of_the_second_look_is_covered_by_that_of_the_swap() {
    not_caught("ring.recheck.no_fence", one_subscriber);
}
