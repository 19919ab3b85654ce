//! Real-time channels: four slots, the ring, and the signal between stages.

use std::sync::Arc;

use crate::loom::thread;

use crate::rt::channel::{four_slot, ring};
use crate::rt::stages::signal;
use crate::shared::words;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, caught, kill_after};

const BODY: usize = 2;

/// The two words of value `n`.
fn fill(n: u64) -> impl Fn(&[AtomicU64]) {
    move |slot| {
        slot[0].store(n, Relaxed);
        slot[1].store(100 + n, Relaxed);
    }
}

fn newest(reading: &AtomicU64, writers: &[AtomicU64]) -> u64 {
    let slot = four_slot::read(reading, writers, BODY);
    let (first, second) = (slot[0].load(Relaxed), slot[1].load(Relaxed));
    assert!(first == 0 && second == 0 || second == 100 + first, "torn: {first} {second}");
    first
}

/// A writer that is killed after `steps` stores, and a reader that looks `looks` times.
fn latest(values: u64, looks: u32, steps: u32) {
    crate::loom::model(move || {
        let own = Arc::new(words(four_slot::words(BODY)));
        let reading = Arc::new(AtomicU64::new(0));
        let writer = thread::spawn({
            let (own, reading) = (Arc::clone(&own), Arc::clone(&reading));
            move || {
                let mut writer = four_slot::Writer::default();
                kill_after(steps, || {
                    for n in 1..=values {
                        writer.write(&own, &reading, BODY, fill(n));
                    }
                })
            }
        });
        let mut last = 0;
        for _ in 0..looks {
            let n = newest(&reading, &own);
            assert!(n >= last, "{n} after {last}");
            last = n;
        }
        let ended = writer.join().unwrap();
        let n = newest(&reading, &own);
        assert!(n >= last && n <= values);
        assert!(!ended || n == values, "{n} is not the newest");
    });
}

const ALIVE: u32 = u32::MAX - 1;

#[test]
fn the_newest_value_is_whole_and_never_older_than_the_last() {
    latest(3, 2, ALIVE);
    latest(2, 3, ALIVE);
}

#[test]
fn a_writer_killed_at_any_store_leaves_a_whole_value() {
    for steps in 0..12 {
        latest(3, 1, steps);
    }
}

#[test]
fn without_the_writers_fence_a_value_is_torn() {
    caught("four_slot.write.no_fence", || latest(4, 2, ALIVE));
}

#[test]
fn without_the_readers_fence_a_value_is_torn() {
    caught("four_slot.read.no_fence", || latest(4, 2, ALIVE));
}

#[test]
fn a_relaxed_choice_of_slot_shows_a_value_before_its_words() {
    caught("four_slot.look.relaxed", || latest(3, 2, ALIVE));
}

fn every(depth: usize, values: u64) {
    crate::loom::model(move || {
        let own = Arc::new(words(ring::words(depth, BODY)));
        let position = Arc::new(AtomicU64::new(0));
        let writer = thread::spawn({
            let (own, position) = (Arc::clone(&own), Arc::clone(&position));
            move || {
                let mut writer = ring::Writer::default();
                (1..=values)
                    .take_while(|n| writer.push(&own, &position, depth, BODY, fill(*n)))
                    .count() as u64
            }
        });
        let (mut next, mut got) = (0, 0);
        let mut pop = |got: &mut u64| {
            ring::pop(&mut next, &position, &own, depth, BODY, |entry| {
                *got += 1;
                assert_eq!(entry[0].load(Relaxed), *got);
                assert_eq!(entry[1].load(Relaxed), 100 + *got);
            })
        };
        pop(&mut got);
        pop(&mut got);
        let sent = writer.join().unwrap();
        while pop(&mut got).is_some() {}
        assert_eq!(got, sent);
    });
}

#[test]
fn every_value_arrives_whole_and_in_order() {
    every(1, 3);
    every(2, 4);
}

#[test]
fn a_relaxed_push_shows_a_value_before_its_words() {
    caught("rt_ring.push.relaxed", || every(2, 2));
}

#[test]
fn a_relaxed_pop_reads_a_value_before_it_is_there() {
    caught("rt_ring.pop.relaxed", || every(2, 2));
}

/// The sleeper either sees the cycle or is woken.
fn hand_over() {
    crate::loom::model(|| {
        let (done, request) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let teller = thread::spawn({
            let (done, request) = (Arc::clone(&done), Arc::clone(&request));
            move || signal::tell(&done, 1, Some(&request))
        });
        let sleeps = signal::about_to_sleep(&done, 1, &request).is_some();
        let wakes = teller.join().unwrap();
        assert!(!sleeps || wakes, "it sleeps and nobody wakes it");
    });
}

#[test]
fn no_wake_is_lost() {
    hand_over();
}

#[test]
fn without_either_fence_a_wake_is_lost() {
    caught("signal.tell.no_fence", hand_over);
    caught("signal.sleep.no_fence", hand_over);
}
