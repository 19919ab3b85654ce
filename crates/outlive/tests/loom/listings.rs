//! Who looks at whose hazards: a publisher that acknowledges, scans and forgets as `Writer`, a
//! subscriber that attaches, copies or borrows, and leaves as `Source` and `Reader`.
//!
//! Not caught, rightly: a relaxed naming. Acknowledged before a chunk is retired, the fences of
//! scan and borrow order all that counts; and a place is cleared before it names another, so that
//! a stale word matches nobody.

use std::sync::Arc;

use crate::loom::thread;

use crate::shared::{Ring, words};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, caught, fault, not_caught};
use crate::topic::chunks::hazard::{self, Location};
use crate::topic::ring::entries::Peek;
use crate::topic::ring::listing::Listing;

/// Node and port of the publisher and of the subscriber.
const PUBLISHER: (u64, u64) = (1, 7);
const SUBSCRIBER: (u64, u64) = (2, 7);

/// A ring of one entry and two chunks: message n is in chunk n % 2 and says 10 + n. Copies race
/// with writes on purpose, so that chunks are atomics here.
struct World {
    ring: Ring,
    chunks: Vec<AtomicU64>,
    ack: Vec<AtomicU64>,
    source: Vec<AtomicU64>,
    hazards: Vec<AtomicU64>,
    port: AtomicU64,
}

fn listing(words: &[AtomicU64]) -> Listing<'_> {
    Listing::new(&words[0], &words[1], &words[3])
}

fn location(n: u64) -> Location {
    Location::new(0, (n % 2) as u32)
}

/// When the publisher acknowledges the subscriber.
#[derive(Clone, Copy, PartialEq)]
enum Admit {
    First,
    BeforeScan,
    AfterScan,
    Never,
}

impl World {
    /// Message 0 is there.
    fn new() -> Self {
        let world = Self {
            ring: Ring::new(1),
            chunks: words(2),
            ack: words(4),
            source: words(4),
            hazards: words(1),
            port: AtomicU64::new(SUBSCRIBER.1),
        };
        world.publish(0);
        world
    }

    fn publish(&self, n: u64) {
        self.chunks[n as usize % 2].store(10 + n, Relaxed);
        self.ring.entry(n).publish_chunk(n, 0, location(n).encode(), 8);
    }

    fn attach(&self) {
        listing(&self.source).name(PUBLISHER.0, PUBLISHER.1);
    }

    fn admit(&self) {
        listing(&self.ack).name(SUBSCRIBER.0, SUBSCRIBER.1);
    }

    fn is_attached(&self) -> bool {
        listing(&self.source).names(PUBLISHER.0, PUBLISHER.1)
    }

    /// As `Writer::scan`: whether chunk `n` % 2, retired, is free.
    fn scan(&self, n: u64, admitted: bool) -> bool {
        let early = fault("scan.slot_before_barrier").then(|| self.is_attached());
        hazard::barrier();
        let mut free = true;
        if admitted && early.unwrap_or_else(|| self.is_attached()) {
            hazard::held(&self.hazards, 0, |held| free &= held != location(n));
        }
        free
    }

    /// Message 1 in place of 0, and 2 in its chunk if that is free.
    fn publish_two(&self, admit: Admit) {
        let mut listed = false;
        let mut at = |now| {
            if admit == now {
                self.admit();
                listed = !fault("scan.list_before_admission");
            }
            listed
        };
        at(Admit::First);
        self.publish(1);
        let listed = at(Admit::BeforeScan);
        let free = self.scan(0, listed);
        at(Admit::AfterScan);
        if free {
            self.publish(2);
        }
    }

    /// Reads message `n` once, whole: borrowed where the publisher has acknowledged us, else
    /// copied. `false` when there is none now.
    fn read(&self, cursor: &mut u64) -> bool {
        let n = *cursor;
        let entry = self.ring.entry(n);
        match entry.peek(n, 1) {
            Peek::Ready => {}
            Peek::Overrun { oldest } => {
                *cursor = oldest;
                return true;
            }
            _ => return false,
        }
        let Some(at) = Location::decode(entry.body()[0].load(Relaxed)) else { panic!("torn") };
        let copy = || self.chunks[at.chunk() as usize].load(Relaxed);
        let listed =
            fault("borrow.unacknowledged") || listing(&self.ack).names(SUBSCRIBER.0, SUBSCRIBER.1);
        let (payload, good) = if listed {
            let word = hazard::hazard_word(0, at);
            let held = hazard::borrow(&self.hazards[0], word, entry, n);
            let payload = held.then(copy);
            if held {
                hazard::clear(&self.hazards[0]);
            }
            (payload.unwrap_or_default(), held)
        } else {
            (copy(), entry.unchanged(n))
        };
        if good {
            assert_eq!(payload, 10 + n, "message {n}, borrowed: {listed}");
            *cursor += 1;
        }
        true
    }
}

/// The publisher acknowledges the subscriber while that one, which has attached, reads.
fn joining(admit: Admit) {
    crate::loom::model(move || {
        let world = Arc::new(World::new());
        world.attach();
        let publisher = thread::spawn({
            let world = Arc::clone(&world);
            move || world.publish_two(admit)
        });
        let mut cursor = 0;
        while world.read(&mut cursor) {}
        publisher.join().unwrap();
    });
}

/// The publisher knows the subscriber already when that one attaches and borrows.
fn attaching() {
    crate::loom::model(|| {
        let world = Arc::new(World::new());
        world.admit();
        let publisher = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.publish(1);
                if world.scan(0, true) {
                    world.publish(2);
                }
            }
        });
        world.attach();
        let mut cursor = 0;
        while world.read(&mut cursor) {}
        publisher.join().unwrap();
    });
}

/// A place is reused for another port of our node, while we ask whether it names ours, which has
/// the number of the port that it named before.
fn reused_place() {
    crate::loom::model(|| {
        let place = Arc::new(words(4));
        listing(&place).name(3, 7);
        let owner = thread::spawn({
            let place = Arc::clone(&place);
            move || {
                listing(&place).clear();
                listing(&place).name(2, 8);
            }
        });
        assert!(!listing(&place).names(2, 7), "nobody ever named us");
        owner.join().unwrap();
        assert!(listing(&place).names(2, 8));
    });
}

/// The last sample ends in a thread of its own; its subscriber sees that and closes the port; the
/// publisher sees that and looks at no hazard any more.
fn leaving() {
    crate::loom::model(|| {
        let world = Arc::new(World::new());
        world.admit();
        world.attach();
        assert!(hazard::borrow(
            &world.hazards[0],
            hazard::hazard_word(0, location(0)),
            world.ring.entry(0),
            0
        ));
        let chunk = Arc::new(crate::shared::Chunk::new());
        let holder = thread::spawn({
            let (world, chunk) = (Arc::clone(&world), Arc::clone(&chunk));
            move || {
                chunk.read();
                hazard::clear(&world.hazards[0]);
            }
        });
        let subscriber = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                if hazard::held_count(&world.hazards) == 0 {
                    world.port.store(0, Release);
                }
            }
        });
        world.publish(1);
        let open = world.port.load(Acquire) == SUBSCRIBER.1;
        if !open || world.scan(0, true) {
            chunk.write(12);
        }
        holder.join().unwrap();
        subscriber.join().unwrap();
    });
}

#[test]
fn a_joining_subscriber_copies_until_it_is_acknowledged_then_borrows() {
    for admit in [Admit::First, Admit::BeforeScan, Admit::AfterScan, Admit::Never] {
        joining(admit);
    }
}

#[test]
fn a_scan_misses_only_hazards_that_fail_their_check() {
    attaching();
}

#[test]
fn a_reused_place_never_names_half_of_two() {
    reused_place();
}

#[test]
fn a_port_closes_after_its_last_sample() {
    leaving();
}

#[test]
fn borrowing_unacknowledged_is_torn() {
    caught("borrow.unacknowledged", || joining(Admit::Never));
}

#[test]
fn an_acknowledgement_before_scans_count_it_is_torn() {
    caught("scan.list_before_admission", || joining(Admit::First));
}

#[test]
fn a_place_looked_up_before_the_barrier_is_torn() {
    caught("scan.slot_before_barrier", attaching);
}

#[test]
fn a_scan_without_a_barrier_misses_the_place() {
    caught("hazard.barrier.missing", attaching);
}

#[test]
fn half_of_two_without_the_fence_of_the_change() {
    caught("listing.change.no_fence", reused_place);
}

#[test]
fn half_of_two_without_the_fence_of_the_check() {
    caught("listing.names.no_fence", reused_place);
}

#[test]
fn half_of_two_without_the_check() {
    caught("listing.names.unchecked", reused_place);
}

#[test]
fn clearing_before_covers_a_relaxed_naming() {
    not_caught("listing.name.relaxed", reused_place);
}

#[test]
fn half_of_two_with_a_relaxed_look() {
    caught("listing.names.relaxed", reused_place);
}

#[test]
fn a_port_that_closes_on_a_relaxed_look_forgets_a_reader() {
    caught("hazard.held_count.relaxed", leaving);
}
