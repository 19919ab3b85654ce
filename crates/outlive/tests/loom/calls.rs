//! No call is lost: a subscriber whose descriptor an event loop waits for, against a publisher that
//! commits, looks at the request and sends one datagram per generation, and may be killed at each
//! of
//! these steps.
//!
//! The sleeper is `Reader::rest`: take what was sent; begin a generation if there was something;
//! arm
//! the request; look; let time pass; look again. The publisher is `Writer::wake`, with the memory
//! of
//! `Caller`. Time and the kernel are as in `sleeps`: a death makes the descriptor readable after
//! all
//! stores of the dead.

use std::sync::Arc;

use crate::loom::sync::{Condvar, Mutex};
use crate::loom::thread;

use crate::shared::Ring;
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::{AtomicU32, AtomicU64, caught, fault, kill_after, step, time_passes};
use crate::topic::ring::entries::Peek;
use crate::wait::wake::handshake::{self, Request};

const DEPTH: u64 = 2;
/// Steps to commit a message; one more to call.
const COMMIT: u32 = 5;
const ALIVE: u32 = u32::MAX - 1;

/// A descriptor for one waiter: readable from a call until it is taken.
struct Descriptor {
    readable: Mutex<bool>,
    called: Condvar,
}

impl Descriptor {
    fn new() -> Self {
        Self { readable: Mutex::new(false), called: Condvar::new() }
    }

    fn call(&self) {
        *self.readable.lock().unwrap() = true;
        self.called.notify_one();
    }

    fn take(&self) -> bool {
        std::mem::take(&mut *self.readable.lock().unwrap())
    }

    /// As an event loop: returns once it is readable, and takes nothing.
    fn wait(&self) {
        let mut readable = self.readable.lock().unwrap();
        while !*readable {
            readable = self.called.wait(readable).unwrap();
        }
    }
}

struct World {
    ring: Ring,
    flag: AtomicU32,
    socket: AtomicU64,
    generation: AtomicU64,
    /// 1 while the publisher lives.
    token: AtomicU64,
    descriptor: Descriptor,
}

impl World {
    fn new() -> Self {
        Self {
            ring: Ring::new(DEPTH),
            flag: AtomicU32::new(0),
            socket: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            token: AtomicU64::new(1),
            descriptor: Descriptor::new(),
        }
    }

    fn request(&self) -> Request<'_> {
        Request { flag: &self.flag, socket: &self.socket, generation: &self.generation }
    }

    /// As `Writer::publish_inline` and `Caller::call`.
    fn publish(&self, n: u64, called: &mut u64) {
        self.ring.entry(n).publish_inline(n, 0, &[0; 8]);
        if !handshake::is_wanted(std::iter::once(&self.flag)) {
            return;
        }
        if let Some((socket, generation)) = self.request().due(*called) {
            assert_eq!(socket, 7, "a request without its socket");
            step();
            self.descriptor.call();
            *called = generation;
        }
    }

    fn publisher(&self, messages: u64, steps: u32) {
        let mut called = 0;
        if !kill_after(steps, || (0..messages).for_each(|n| self.publish(n, &mut called))) {
            self.token.store(0, Release);
            self.descriptor.call();
        }
    }

    fn is_ready(&self, n: u64) -> bool {
        self.ring.entry(n).peek(n, DEPTH) == Peek::Ready
    }

    /// Receives until there is message `n`, or its publisher is dead and it was not sent.
    fn receive(&self, n: u64, generation: &mut u64) -> bool {
        loop {
            if self.is_ready(n) {
                return true;
            }
            if self.token.load(Acquire) == 0 {
                return self.is_ready(n);
            }
            let early = fault("rest.takes_late").then(|| self.is_ready(n));
            let taken = self.descriptor.take();
            if *generation == 0 || (taken && !fault("rest.keeps_generation")) {
                *generation += 1;
                self.request().arm(7, *generation);
            }
            let mut found = early.unwrap_or_else(|| self.is_ready(n));
            time_passes();
            found |= !fault("rest.looks_once") && early.is_none() && self.is_ready(n);
            // A death since the descriptor was taken makes it readable again; before, it shows
            // here.
            let dead = !fault("rest.forgets_deaths") && self.token.load(Acquire) == 0;
            if !found && !dead {
                self.descriptor.wait();
            }
        }
    }
}

fn waiting_for(messages: u64, steps: u32) {
    crate::loom::model(move || {
        let world = Arc::new(World::new());
        let publisher = thread::spawn({
            let world = Arc::clone(&world);
            move || world.publisher(messages, steps)
        });
        let mut generation = 0;
        for n in 0..messages {
            assert_eq!(world.receive(n, &mut generation), steps >= COMMIT, "message {n}");
        }
        publisher.join().unwrap();
    });
}

#[test]
fn every_message_makes_the_descriptor_readable() {
    waiting_for(2, ALIVE);
}

#[test]
fn so_does_a_death_wherever_the_caller_is_killed() {
    (0..=COMMIT + 1).for_each(|steps| waiting_for(1, steps));
}

#[test]
fn a_generation_kept_after_a_call_loses_the_next_one() {
    caught("rest.keeps_generation", || waiting_for(2, ALIVE));
}

#[test]
fn taking_after_the_look_loses_the_call_in_between() {
    caught("rest.takes_late", || waiting_for(1, ALIVE));
}

#[test]
fn one_look_right_after_arming_misses_a_commit_that_did_not_see_the_flag() {
    caught("rest.looks_once", || waiting_for(1, ALIVE));
}

#[test]
fn a_death_taken_without_a_look_at_the_token_is_lost() {
    caught("rest.forgets_deaths", || waiting_for(1, 0));
}

/// The request was raised before, and is armed for another socket: a wait set takes over from the
/// subscriber's own descriptor.
fn armed_for_another_socket() {
    crate::loom::model(|| {
        let world = Arc::new(World::new());
        world.request().arm(7, 1);
        let sleeper = thread::spawn({
            let world = Arc::clone(&world);
            move || world.request().arm(8, 2)
        });
        let (socket, generation) = world.request().due(0).expect("it is raised");
        assert!(generation == 1 || socket == 8, "generation 2 is called at the old socket");
        sleeper.join().unwrap();
    });
}

#[test]
fn a_new_generation_is_called_at_its_own_socket() {
    armed_for_another_socket();
}

#[test]
fn a_generation_that_carries_nothing_is_called_at_the_old_socket() {
    caught("request.generation.relaxed", armed_for_another_socket);
}
