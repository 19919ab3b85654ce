//! No wake is lost: a subscriber that sleeps as `Reader::sleep`, by `handshake`, against a
//! publisher that commits, looks at the flag and wakes, and may be killed at each of these steps.
//!
//! The model leans on two things outside the program. *Time*: by the end of the short first sleep
//! each side's store is visible to the other's next look (`time_passes`; a fence on both sides
//! says the same). The short sleep itself ends unwoken, the worst case. *The kernel*: a futex
//! compares and sleeps under one lock; when a thread dies, the kernel marks its token after all
//! its stores and wakes a sleeper on it. Without either the model loses wakes: see the mutants.

use std::convert::Infallible;
use std::sync::Arc;

use crate::loom::thread;

use crate::futex::{Futex, address};
use crate::os::time::deadline::Deadline;
use crate::shared::Ring;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, caught, fault, kill_after};
use crate::topic::ring::entries::Peek;
use crate::wait::wake::handshake::{self, FIRST_SLICE_NS, Slept};

const DEPTH: u64 = 2;
/// Steps to commit a message; one more to wake.
const COMMIT: u32 = 5;
const ALIVE: u32 = u32::MAX - 1;

#[derive(Clone, Copy, PartialEq)]
enum By {
    Words,
    Doorbell,
}

struct World {
    by: By,
    ring: Ring,
    flag: AtomicU32,
    bell: AtomicU32,
    /// 1 while the publisher lives.
    token: AtomicU64,
    futex: Futex,
}

impl World {
    fn new(by: By) -> Self {
        Self {
            by,
            ring: Ring::new(DEPTH),
            flag: AtomicU32::new(0),
            bell: AtomicU32::new(0),
            token: AtomicU64::new(1),
            futex: Futex::new(),
        }
    }

    /// As `Writer::publish_inline`.
    fn publish(&self, n: u64) {
        self.ring.entry(n).publish_inline(n, 0, &[0; 8]);
        if !handshake::is_wanted(std::iter::once(&self.flag)) {
            return;
        }
        if fault("sleep.on_flag") {
            return self.futex.wake(address(&self.flag));
        }
        match self.by {
            By::Words => self.futex.wake(address(self.ring.entry(n).word())),
            By::Doorbell => {
                self.bell.fetch_add(1, Release);
                self.futex.wake(address(&self.bell));
            }
        }
    }

    /// Sends `messages` messages and lives, or is killed `steps` steps into it.
    fn publisher(&self, messages: u64, steps: u32) {
        if !kill_after(steps, || (0..messages).for_each(|n| self.publish(n))) {
            self.token.store(0, Release);
            self.futex.wake(address(&self.token));
        }
    }

    /// As `Subscriber::receive_until`: whether there is message `n`; not, if its publisher died
    /// before it sent it.
    fn receive(&self, n: u64) -> bool {
        loop {
            if self.is_ready(n) {
                return true;
            }
            if self.token.load(Acquire) == 0 {
                return !fault("receive.no_second_look") && self.is_ready(n);
            }
            let slept: Result<(), Infallible> = handshake::sleep(
                &self.flag,
                handshake::WAITING_WORDS,
                Deadline::NEVER,
                2 * FIRST_SLICE_NS,
                || 0,
                |until| Ok(self.sleep_once(n, until)),
            );
            slept.unwrap();
        }
    }

    fn is_ready(&self, n: u64) -> bool {
        self.ring.entry(n).peek(n, DEPTH) == Peek::Ready
    }

    /// As `Reader::sleep_once`.
    fn sleep_once(&self, n: u64, until: Deadline) -> Option<Slept> {
        let rung = self.bell.load(Acquire);
        let entry = self.ring.entry(n);
        let seen = entry.seen_empty(n, DEPTH)?;
        if self.token.load(Acquire) == 0 {
            return None;
        }
        if until.as_ns() == FIRST_SLICE_NS {
            return Some(Slept::Slice);
        }
        let mut words = vec![address(entry.word()), address(&self.token)];
        if fault("sleep.not_on_token") {
            words.pop();
        }
        let alive = || fault("sleep.not_on_token") || self.token.load(Relaxed) == 1;
        if fault("sleep.on_flag") {
            words[0] = address(&self.flag);
            self.futex.wait(&words, || self.flag.load(Relaxed) != 0 && alive());
        } else if self.by == By::Doorbell {
            // Tokens are polled there: a dead publisher is seen at the end of a slice.
            words[0] = address(&self.bell);
            let late = fault("doorbell.read_late").then(|| self.bell.load(Acquire));
            let rung = late.unwrap_or(rung);
            self.futex.wait(&words, || self.bell.load(Relaxed) == rung && alive());
        } else {
            self.futex.wait(&words, || entry.word().load(Relaxed) == seen && alive());
        }
        Some(Slept::Woken)
    }
}

fn sleeping_for(messages: u64, by: By, steps: u32) {
    crate::loom::model(move || {
        let world = Arc::new(World::new(by));
        let publisher = thread::spawn({
            let world = Arc::clone(&world);
            move || world.publisher(messages, steps)
        });
        for n in 0..messages {
            assert_eq!(world.receive(n), steps >= COMMIT, "message {n}");
        }
        publisher.join().unwrap();
    });
}

fn sleeping(by: By, steps: u32) {
    sleeping_for(1, by, steps);
}

#[test]
fn a_sleeper_wakes_for_every_message() {
    sleeping_for(2, By::Words, ALIVE);
}

#[test]
fn a_doorbell_wakes_its_sleeper() {
    sleeping_for(2, By::Doorbell, ALIVE);
}

#[test]
fn a_sleeper_wakes_wherever_its_waker_is_killed() {
    (0..=COMMIT + 1).for_each(|steps| sleeping(By::Words, steps));
}

#[test]
fn stores_that_never_become_visible_lose_the_wake() {
    caught("time.stands_still", || sleeping(By::Words, ALIVE));
}

#[test]
fn a_long_first_sleep_loses_the_wake() {
    caught("sleep.first_is_long", || sleeping(By::Words, ALIVE));
}

#[test]
fn sleeping_on_the_flag_itself_loses_the_wake() {
    caught("sleep.on_flag", || sleeping(By::Words, ALIVE));
}

#[test]
fn sleeping_without_the_token_outlasts_the_waker() {
    caught("sleep.not_on_token", || sleeping(By::Words, COMMIT));
}

#[test]
fn a_death_noticed_without_a_second_look_loses_the_message() {
    caught("receive.no_second_look", || sleeping(By::Words, COMMIT));
}

#[test]
fn a_doorbell_read_after_the_look_loses_the_ring() {
    caught("doorbell.read_late", || sleeping(By::Doorbell, ALIVE));
}
