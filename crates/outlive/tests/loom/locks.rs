//! A lock excludes, loses no wake, and tells of a death, wherever a holder or a waiter is killed.
//!
//! What is modelled is the code of `lock/mutex/word.rs` between a kernel of the models' own. Sleeps
//! here have no bound: what only ends by the bound of a sleep is a deadlock, which loom reports.

use std::sync::Arc;

use crate::loom::thread;

use crate::kernel::{Kernel, Side};
use crate::lock::mutex::word::{Gate, Got, Refused};
use crate::shared::Chunk;
use crate::sync::{AtomicU64, caught, step};

const NEVER: u32 = u32::MAX - 1;
/// Most steps of one turn.
const TURN: u32 = 12;

struct World {
    word: AtomicU64,
    heir: AtomicU64,
    refused_at: AtomicU64,
    /// Two halves that change together.
    data: [Chunk; 2],
    kernel: Kernel,
}

impl World {
    fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            heir: AtomicU64::new(0),
            refused_at: AtomicU64::new(0),
            data: [Chunk::new(), Chunk::new()],
            kernel: Kernel::new(),
        }
    }

    fn gate(&self) -> Gate<'_> {
        Gate { word: &self.word, heir: &self.heir, refused_at: &self.refused_at }
    }

    fn take(&self, side: &mut Side<'_>) -> Result<Got, Refused> {
        if self.gate().take_free(side.me) {
            return Ok(Got::Clean);
        }
        let got = self.gate().take(side.me, side);
        side.done();
        got
    }

    fn release(&self, me: u64) {
        if !self.gate().release_quiet(me) {
            self.gate().release(me, |n| self.kernel.wake(&self.word, n));
        }
    }

    /// Takes the lock, changes both halves, lets go. The next one finds them equal, or is told.
    fn turn(&self, side: &mut Side<'_>) {
        match self.take(side) {
            Ok(Got::Clean) => {
                assert_eq!(self.data[0].read(), self.data[1].read(), "torn, and nobody said so");
            }
            Ok(Got::Broken) => {
                self.data[1].write(self.data[0].read());
                assert!(self.gate().mark_consistent(side.me));
            }
            Err(Refused::Expired) if side.tries => return,
            Err(e) => panic!("{e:?}"),
        }
        let next = self.data[0].read() + 1;
        self.data[0].write(next);
        step();
        self.data[1].write(next);
        self.release(side.me);
    }
}

/// Two threads that take turns; each is killed after so many steps.
fn turns(steps: [u32; 2], greedy: bool) {
    crate::loom::model(move || {
        let world = Arc::new(World::new());
        let run = move |world: &World, id: u64| {
            world.kernel.thread(id, steps[id as usize - 1], |side| {
                side.greedy = greedy;
                world.turn(side);
            })
        };
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || run(&world, 2)
        });
        let alive = u64::from(run(&world, 1)) + u64::from(other.join().unwrap());
        let mut done = 0;
        world.kernel.thread(3, NEVER, |side| {
            world.turn(side);
            done = world.data[0].read();
        });
        assert!(done > alive, "a turn of the living is missing");
    });
}

#[test]
fn two_threads_take_turns() {
    turns([NEVER, NEVER], false);
}

#[test]
fn two_threads_take_turns_and_want_to_be_next() {
    turns([NEVER, NEVER], true);
}

#[test]
fn a_holder_or_waiter_is_killed_anywhere() {
    for steps in 0..TURN {
        turns([steps, NEVER], steps % 2 == 0);
    }
}

/// Thread 1 holds the lock; thread 2 waits, and is killed after so many steps; thread 3 waits too.
fn two_waiters(steps: u32, greedy: bool) {
    crate::loom::model(move || {
        let world = Arc::new(World::new());
        assert!(world.gate().take_free(1));
        let waiter = |id: u64, steps| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.kernel.thread(id, steps, |side| {
                    side.greedy = greedy;
                    world.turn(side);
                })
            })
        };
        let waiters = [waiter(2, steps), waiter(3, NEVER)];
        world.release(1);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

#[test]
fn a_waiter_killed_after_its_wake_loses_nobody_elses() {
    (0..TURN).for_each(|steps| two_waiters(steps, false));
}

#[test]
fn an_heir_that_dies_keeps_nobody_out() {
    (0..TURN).for_each(|steps| two_waiters(steps, true));
}

#[test]
fn data_without_release_or_acquire_is_torn() {
    caught("lock.release.relaxed", || turns([NEVER, NEVER], false));
    caught("lock.take.relaxed", || turns([NEVER, NEVER], false));
}

#[test]
fn a_waiter_that_is_not_announced_sleeps_for_ever() {
    caught("lock.announce.missing", || turns([NEVER, NEVER], false));
}

#[test]
fn a_waiter_that_does_not_watch_the_owner_outlasts_it() {
    caught("kernel.no_token", || (0..TURN).for_each(|steps| turns([steps, NEVER], false)));
}

#[test]
fn without_the_pending_operation_a_killed_waiter_takes_a_wake_with_it() {
    caught("kernel.no_pending", || (0..TURN).for_each(|steps| two_waiters(steps, false)));
}

#[test]
fn a_sleeper_that_watches_the_owner_before_outlasts_the_one_after() {
    caught("lock.watch.not_passed", || (0..TURN).for_each(|steps| two_waiters(steps, false)));
}

#[test]
fn a_holder_that_wakes_nobody_leaves_the_waiter_asleep() {
    caught("lock.no_wake", || turns([NEVER, NEVER], false));
}

#[test]
fn a_dead_holder_that_counts_as_alive_is_waited_for() {
    caught("lock.dead_is_alive", || (0..TURN).for_each(|steps| turns([steps, NEVER], false)));
}
