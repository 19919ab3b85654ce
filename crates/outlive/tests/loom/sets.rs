//! The lockless set and the permits of a semaphore.

use std::sync::Arc;

use crate::loom::thread;

use crate::kernel::{Kernel, Side};
use crate::lock::mutex::word::{ALL, World as _};
use crate::lock::semaphore::permits::Permits;
use crate::lock::set::slots::{LINEAR_MAX, Places, home};
use crate::shared::{Chunk, words};
use crate::sync::{AtomicU64, caught, kill_after, step};

const NEVER: u32 = u32::MAX - 1;

struct Set {
    reach: AtomicU64,
    words: Vec<AtomicU64>,
    chunk: Chunk,
}

impl Set {
    fn new(len: usize) -> Self {
        Self { reach: AtomicU64::new(0), words: words(len), chunk: Chunk::new() }
    }

    fn places(&self) -> Places<'_> {
        Places { reach: &self.reach, words: &self.words }
    }
}

/// Two ids of a large set that belong to the same place.
fn rivals() -> (usize, u64, u64) {
    let len = LINEAR_MAX + 1;
    let other = (2..).find(|id| home(*id, len) == home(1, len)).unwrap();
    (len, 1, other)
}

#[test]
fn two_ids_for_one_place_are_both_found() {
    crate::loom::model(|| {
        let (len, one, other) = rivals();
        let set = Arc::new(Set::new(len));
        let rival = thread::spawn({
            let set = Arc::clone(&set);
            move || assert!(set.places().insert(other).unwrap() && set.places().contains(other))
        });
        assert!(set.places().insert(one).unwrap() && set.places().contains(one));
        rival.join().unwrap();
        assert!(set.places().contains(one) && set.places().contains(other));
        assert!(set.places().remove(one) && !set.places().contains(one));
        assert!(set.places().contains(other));
    });
}

/// An id is inserted and removed while another is inserted; whoever sees one sees what was before.
fn coming_and_going() {
    crate::loom::model(|| {
        let set = Arc::new(Set::new(2));
        let other = thread::spawn({
            let set = Arc::clone(&set);
            move || {
                set.chunk.write(1);
                assert!(set.places().insert(5).unwrap());
            }
        });
        assert!(set.places().insert(7).unwrap());
        if set.places().contains(5) {
            assert_eq!(set.chunk.read(), 1);
        }
        assert!(set.places().remove(7));
        other.join().unwrap();
        assert!(set.places().contains(5) && !set.places().contains(7));
        let ids: Vec<u64> = set.places().ids().collect();
        assert_eq!(ids, [5]);
    });
}

#[test]
fn ids_come_and_go() {
    coming_and_going();
}

#[test]
fn the_same_id_twice_is_one_member() {
    crate::loom::model(|| {
        let set = Arc::new(Set::new(3));
        let other = thread::spawn({
            let set = Arc::clone(&set);
            move || set.places().insert(5).unwrap()
        });
        let new = [set.places().insert(5).unwrap(), other.join().unwrap()];
        assert_ne!(new, [false, false], "nobody made it a member");
        assert!(set.places().remove(5));
        assert!(!set.places().contains(5) && !set.places().remove(5));
    });
}

#[test]
fn an_inserter_is_killed_anywhere() {
    for steps in 0..4 {
        crate::loom::model(move || {
            let (len, one, other) = rivals();
            let set = Arc::new(Set::new(len));
            assert!(set.places().insert(one).unwrap());
            let killed = thread::spawn({
                let set = Arc::clone(&set);
                move || kill_after(steps, || assert!(set.places().insert(other).is_ok()))
            });
            assert!(set.places().contains(one));
            let lived = killed.join().unwrap();
            assert!(set.places().contains(other) || !lived);
            assert_ne!(set.places().insert(other).unwrap(), lived);
        });
    }
}

#[test]
fn an_id_beyond_the_reach_is_not_found() {
    let lost = || {
        crate::loom::model(|| {
            let (len, one, other) = rivals();
            let set = Set::new(len);
            assert!(set.places().insert(one).unwrap() && set.places().insert(other).unwrap());
            assert!(set.places().contains(other));
        });
    };
    lost();
    caught("set.reach.missing", lost);
}

struct Semaphore {
    bell: AtomicU64,
    sleepers: AtomicU64,
    words: Vec<AtomicU64>,
    inside: Chunk,
    kernel: Kernel,
}

impl Semaphore {
    /// Takes the only permit, uses what it guards, gives it back.
    fn turn(&self, side: &mut Side<'_>) {
        let permits = Permits { bell: &self.bell, sleepers: &self.sleepers, words: &self.words };
        let me = side.me;
        let at = match permits.take_free(me, 0) {
            Some(at) => at,
            None => {
                let sleep = |side: &mut Side<'_>, rung| {
                    let holder = self.words[0].load(crate::sync::Ordering::Relaxed);
                    if holder != 0 {
                        side.sleep(&self.bell, rung, holder);
                    }
                    Ok(())
                };
                permits.take(me, side, sleep).unwrap().0
            }
        };
        side.done();
        self.inside.write(me);
        step();
        self.inside.write(me);
        assert!(permits.give_back(at, me, |bell| {
            self.kernel.wake(bell, ALL);
        }));
    }
}

fn permits(steps: u32) {
    crate::loom::model(move || {
        let semaphore = Arc::new(Semaphore {
            bell: AtomicU64::new(0),
            sleepers: AtomicU64::new(0),
            words: words(1),
            inside: Chunk::new(),
            kernel: Kernel::new(),
        });
        let other = thread::spawn({
            let semaphore = Arc::clone(&semaphore);
            move || semaphore.kernel.thread(2, steps, |side| semaphore.turn(side))
        });
        semaphore.kernel.thread(1, NEVER, |side| semaphore.turn(side));
        other.join().unwrap();
        semaphore.kernel.thread(3, NEVER, |side| semaphore.turn(side));
    });
}

#[test]
fn a_permit_is_held_by_one_and_comes_back_from_the_dead() {
    (0..10).for_each(permits);
    permits(NEVER);
}

#[test]
fn a_sleeper_that_does_not_watch_the_holder_outlasts_it() {
    caught("kernel.no_token", || (0..10).for_each(permits));
}
