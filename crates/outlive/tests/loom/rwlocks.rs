//! Readers and a writer exclude each other, lose no wake, and die where they like.

use std::sync::Arc;

use crate::loom::thread;

use crate::kernel::{Kernel, Side};
use crate::lock::mutex::word::{ALL, Gate, Got, Refused};
use crate::lock::rwlock::readers::{Entered, Line, Shared};
use crate::shared::Chunk;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, caught, step};

const NEVER: u32 = u32::MAX - 1;
/// Most steps of a writer's turn, and of a reader's.
const TURN: u32 = 12;

struct World {
    word: AtomicU64,
    heir: AtomicU64,
    refused_at: AtomicU64,
    bitmap: AtomicU64,
    drain: AtomicU64,
    lines: Vec<Line>,
    data: [Chunk; 2],
    kernel: Kernel,
}

impl World {
    /// With lines that the readers have claimed before, or none.
    fn new(claimed: bool) -> Self {
        let word = |value| AtomicU64::new(value);
        let lines = (0..2).map(|n| Line { word: word(if claimed { n + 1 } else { 0 }) }).collect();
        Self {
            word: word(0),
            heir: word(0),
            refused_at: word(0),
            bitmap: word(if claimed { 3 } else { 0 }),
            drain: word(0),
            lines,
            data: [Chunk::new(), Chunk::new()],
            kernel: Kernel::new(),
        }
    }

    fn shared(&self) -> Shared<'_> {
        Shared {
            gate: Gate { word: &self.word, heir: &self.heir, refused_at: &self.refused_at },
            bitmap: &self.bitmap,
            drain: &self.drain,
            lines: &self.lines,
        }
    }

    /// Reads both halves, unless a writer died inside.
    fn read(&self, side: &mut Side<'_>) {
        let (shared, me) = (self.shared(), side.me);
        let wake = |line: &AtomicU64| {
            self.kernel.wake(line, ALL);
        };
        // As a thread that knows its line, or one that does not.
        let known = self.lines.iter().position(|line| line.word.load(Relaxed) == me);
        let entered = known.map(|at| (at, shared.enter(&self.lines[at], me, wake)));
        let at = match entered {
            Some((at, Entered::In)) => at,
            _ => match shared.read(me, None, side) {
                Ok(at) => at,
                Err(Refused::WriterDied) => return side.done(),
                Err(e) => panic!("{e:?}"),
            },
        };
        side.done();
        let first = self.data[0].read();
        step();
        assert_eq!(first, self.data[1].read(), "torn");
        shared.leave(&self.lines[at], me, wake);
    }

    fn write(&self, side: &mut Side<'_>) {
        let (shared, me) = (self.shared(), side.me);
        let got = if shared.gate.take_free(me) {
            shared.drain_or_release(me, Got::Clean, side)
        } else {
            shared.write(me, side)
        };
        side.done();
        if got.unwrap() == Got::Broken {
            self.data[1].write(self.data[0].read());
            assert!(shared.gate.mark_consistent(me));
        }
        assert_eq!(self.data[0].read(), self.data[1].read(), "torn, and nobody said so");
        let next = self.data[0].read() + 1;
        self.data[0].write(next);
        step();
        self.data[1].write(next);
        if !shared.gate.release_quiet(me) {
            shared.gate.release_all(me, |n| self.kernel.wake(&self.word, n));
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Read,
    Write,
}

/// Two threads; each is killed after so many steps. A third writes at the end.
fn both(does: [Does; 2], steps: [u32; 2], claimed: bool) {
    crate::loom::model(move || {
        let world = Arc::new(World::new(claimed));
        let run = move |world: &World, id: u64| {
            let at = id as usize - 1;
            world.kernel.thread(id, steps[at], |side| match does[at] {
                Does::Read => world.read(side),
                Does::Write => world.write(side),
            })
        };
        let other = thread::spawn({
            let world = Arc::clone(&world);
            move || run(&world, 2)
        });
        run(&world, 1);
        other.join().unwrap();
        world.kernel.thread(3, NEVER, |side| world.write(side));
    });
}

use Does::{Read, Write};

#[test]
fn a_reader_and_a_writer() {
    both([Read, Write], [NEVER, NEVER], true);
}

#[test]
fn a_reader_that_needs_a_line_and_a_writer() {
    both([Read, Write], [NEVER, NEVER], false);
}

#[test]
fn two_readers_that_need_lines() {
    both([Read, Read], [NEVER, NEVER], false);
}

#[test]
fn two_writers() {
    both([Write, Write], [NEVER, NEVER], true);
}

#[test]
fn a_reader_is_killed_anywhere() {
    (0..TURN).for_each(|steps| both([Read, Write], [steps, NEVER], steps % 2 == 0));
}

#[test]
fn a_writer_is_killed_anywhere() {
    (0..TURN).for_each(|steps| both([Read, Write], [NEVER, steps], steps % 2 == 0));
    (0..TURN).for_each(|steps| both([Write, Write], [NEVER, steps], true));
}

/// A writer lets go and its thread ends while a reader looks at it.
fn a_writer_ends() {
    crate::loom::model(|| {
        let world = Arc::new(World::new(true));
        let writer = thread::spawn({
            let world = Arc::clone(&world);
            move || {
                world.kernel.thread(2, NEVER, |side| {
                    side.ends = true;
                    world.write(side);
                })
            }
        });
        world.kernel.thread(1, NEVER, |side| {
            let shared = world.shared();
            let at = shared.read(1, None, side).expect("nobody died inside");
            shared.leave(&shared.lines[at], 1, |line| {
                world.kernel.wake(line, ALL);
            });
        });
        writer.join().unwrap();
    });
}

#[test]
fn a_writer_that_let_go_and_ended_did_not_die_inside() {
    a_writer_ends();
    caught("rwlock.read.old_owner", a_writer_ends);
}

#[test]
fn without_a_barrier_on_either_side_both_are_inside() {
    caught("rwlock.enter.relaxed", || both([Read, Write], [NEVER, NEVER], true));
    caught("rwlock.drain.no_barrier", || both([Read, Write], [NEVER, NEVER], true));
}

#[test]
fn a_reader_that_leaves_without_release_is_overwritten() {
    caught("rwlock.leave.relaxed", || both([Read, Write], [NEVER, NEVER], true));
}

#[test]
fn a_reader_that_sees_the_writer_leave_without_release_reads_torn() {
    caught("lock.release.relaxed", || both([Read, Write], [NEVER, NEVER], true));
}

#[test]
fn a_line_in_use_whose_bit_is_not_set_is_not_waited_for() {
    caught("rwlock.claim.no_bit", || both([Read, Write], [NEVER, NEVER], false));
}

#[test]
fn stores_that_never_become_visible_keep_the_writer_asleep() {
    caught("time.stands_still", || both([Read, Write], [NEVER, NEVER], true));
}
