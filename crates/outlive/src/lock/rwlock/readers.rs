//! Many readers or one writer: a line for each reading thread, so that readers share nothing.
//!
//! # Theory of operation
//! A reader marks its own line and then looks at the lock word; a writer takes the lock word and
//! then looks at all lines. Both are full barriers, so one of the two sees the other: the reader
//! backs out, or the writer waits until the line is left. A line of a dead thread does not count.
//!
//! | line | means                       | who stores the next                           |
//! |------|-----------------------------|-----------------------------------------------|
//! | 0    | free                        | anybody: id, its bit in `bitmap` set before   |
//! | id   | thread `id` is out          | `id`: id+R; anybody who needs a line: its own |
//! | id+R | thread `id` reads, or tries | `id`: id; anybody once `id` is dead           |
//!
//! An idle line may be taken by another thread, so lines bound how many read at once, not how many
//! ever do. Bits of `bitmap` are set for good.
//!
//! A writer that waits for a line sleeps on that line and on its reader's token; `drain` is only a
//! request that makes leaving readers call wake. Leaving has no barrier between its store and its
//! look at `drain`: the writer's first sleep is short, and by its end each side sees what the other
//! stored.
//!
//! # Orderings
//! | label      | stores                        | loads                      | carries        |
//! |------------|-------------------------------|----------------------------|----------------|
//! | READER_IN  | `enter`, CAS SeqCst           | `drain`, SeqCst            | "I read"       |
//! | WRITER_IN  | the taking CAS, SeqCst        | `enter`, SeqCst            | "I write"      |
//! | READER_OUT | `leave`, Release              | `drain`, SeqCst            | the reads      |
//! | READER_BIT | `claim`, SeqCst               | `drain`, `claim`, SeqCst   | the line's use |
//! | LOCK_DATA  | `Gate::release_all`, Release  | `enter`, SeqCst            | the data       |
//!
//! Starvation: a writer keeps later readers out while it waits for those inside; readers are woken
//! together when it leaves, and one that has waited long becomes the heir, for whom writers wait.

use crate::crash_point;
use crate::lock::mutex::word::{
    ALL, BROKEN, CALLS, Gate, Got, HOLDER, ID, LOST, Refused, WAITERS, World,
};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, after_rmw, fault, time_passes, unless_fault};

/// The line's thread reads.
pub(crate) const READING: u64 = WAITERS;
/// Most lines of a lock: as many threads may read at once.
pub(crate) const LINES_MAX: usize = 64;

/// A reading thread's line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) word: AtomicU64,
}

/// The words of a reader/writer lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) gate: Gate<'a>,
    /// Lines that were ever used.
    pub(crate) bitmap: &'a AtomicU64,
    /// Not 0: a writer sleeps on a line.
    pub(crate) drain: &'a AtomicU64,
    pub(crate) lines: &'a [Line],
}

/// What came of an attempt to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// The lock is held for reading.
    In,
    /// A writer is there.
    Blocked,
    /// Somebody else has taken the line meanwhile.
    NoLine,
    /// The thread reads already.
    Nested,
}

impl Shared<'_> {
    /// Tries to read on `line`, which belonged to `me` when last seen.
    ///
    /// # Crash safety
    /// **Strict.** Dying after the CAS: the line is a dead thread's and does not count.
    #[inline(always)]
    pub(crate) fn enter(&self, line: &Line, me: u64, wake: impl Fn(&AtomicU64)) -> Entered {
        // ORDERING(READER_IN): pairs with `drain`; full barrier before the look at the word.
        let order = unless_fault("rwlock.enter.relaxed", SeqCst);
        if let Err(seen) = line.word.compare_exchange(me, me | READING, order, Relaxed) {
            return if seen == me | READING { Entered::Nested } else { Entered::NoLine };
        }
        if !fault("rwlock.enter.relaxed") {
            after_rmw();
        }
        // ORDERING(WRITER_IN, LOCK_DATA): pairs with the taking CAS and with `release_all`.
        if self.gate.word.load(SeqCst) & ID == 0 {
            return Entered::In;
        }
        self.leave(line, me, wake);
        Entered::Blocked
    }

    /// Ends reading.
    ///
    /// # Crash safety
    /// **Strict.** One store. Dying before the wake: the writer watches our token too.
    #[inline(always)]
    pub(crate) fn leave(&self, line: &Line, me: u64, wake: impl Fn(&AtomicU64)) {
        // ORDERING(READER_OUT): pairs with `drain`; our reads come before the writer's writes.
        line.word.store(me, unless_fault("rwlock.leave.relaxed", Release));
        // No barrier here: see above.
        time_passes();
        if self.gate.word.load(Relaxed) & ID != 0 {
            crash_point!("rwlock.left");
            if self.drain.load(Relaxed) != 0 {
                wake(&line.word);
            }
        }
    }

    /// Takes the lock for reading, on a line of its own choice; returns which.
    ///
    /// # Crash safety
    /// **Strict.** As `enter`; an announcement or an heir that is left is found dead.
    #[cold]
    pub(crate) fn read<W: World>(
        &self,
        me: u64,
        line: Option<usize>,
        world: &mut W,
    ) -> Result<usize, Refused> {
        let mut slept = false;
        let mut line = line;
        let read = loop {
            // ORDERING(LOCK_OWNER): pairs with the taking CAS.
            let seen = self.gate.word.load(Acquire);
            let owner = seen & ID;
            if owner == 0 {
                match self.try_line(me, &mut line, world) {
                    Ok(true) => break Ok(line.unwrap_or(0)),
                    Ok(false) => continue,
                    Err(e) => break Err(e),
                }
            }
            if owner == me & ID {
                break Err(Refused::Deadlock);
            }
            if owner == LOST {
                break Err(Refused::Lost);
            }
            if world.spin(|| self.gate.word.load(Relaxed) & ID == owner) {
                continue;
            }
            match self.gate.is_dead(seen, world) {
                Ok(false) if self.is_held_by_caller(seen, world) => break Err(Refused::Deadlock),
                Ok(false) => {}
                // It may have let go and ended since we looked: only who still holds died inside.
                Ok(true) if self.still_holds(owner) => break Err(Refused::WriterDied),
                Ok(true) => continue,
                Err(Refused::Leaked) if !self.still_holds(owner) => continue,
                Err(Refused::Leaving) if world.expired() => break Err(Refused::Expired),
                Err(Refused::Leaving) => {
                    self.gate.pass_watch(seen, world);
                    world.pause();
                    continue;
                }
                Err(e) => break Err(e),
            }
            if world.expired() {
                break Err(Refused::Expired);
            }
            if seen & WAITERS == 0 && !self.gate.announce(seen) {
                continue;
            }
            if world.is_starving() {
                self.gate.become_heir(me);
            }
            world.sleep(self.gate.word, seen | WAITERS, owner);
            slept = true;
        };
        // A writer may sleep beside us on a word that we alone were woken for.
        self.gate.end_wait(me, slept && read.is_err(), world);
        read
    }

    /// Whether the calling thread is inside as a member of another node: as the owner in `seen`, or
    /// as a reader for whom that owner waits.
    fn is_held_by_caller<W: World>(&self, seen: u64, world: &mut W) -> bool {
        let lines = self.lines.iter().map(|line| line.word.load(Relaxed));
        let reads = lines.filter(|line| line & READING != 0);
        reads.chain([seen]).any(|holder| world.is_caller(holder & ID))
    }

    /// Whether the word names `owner`, whose death was seen before; ids are never used again.
    fn still_holds(&self, owner: u64) -> bool {
        // ORDERING(THREAD_DEATH): after its last store, which the verdict acquired.
        fault("rwlock.read.old_owner") || self.gate.word.load(Acquire) & ID == owner
    }

    /// One attempt on a line, which is claimed if need be; false: look at the word again.
    fn try_line<W: World>(
        &self,
        me: u64,
        line: &mut Option<usize>,
        world: &mut W,
    ) -> Result<bool, Refused> {
        let Some(at) = *line else {
            *line = self.claim(me, world)?;
            if line.is_none() {
                // As many read as can: wait for one to leave.
                if world.expired() {
                    return Err(Refused::Expired);
                }
                world.pause();
            }
            return Ok(false);
        };
        match self.enter(&self.lines[at], me, |line| {
            world.wake(line, ALL);
        }) {
            Entered::In => return Ok(true),
            Entered::Blocked => {}
            Entered::NoLine => *line = None,
            Entered::Nested => return Err(Refused::Deadlock),
        }
        Ok(false)
    }

    /// Finds `me` a line: its own, a free one, a dead thread's, an idle one. `None`: all read.
    ///
    /// # Errors
    /// `Deadlock`; where all read, why one of them could not be judged.
    ///
    /// # Crash safety
    /// **Strict.** Dying after the CAS leaves an idle line, which is anybody's.
    fn claim<W: World>(&self, me: u64, world: &mut W) -> Result<Option<usize>, Refused> {
        // ORDERING(READER_BIT): pairs with the `fetch_or` below: who sees the bit and reads on the
        // line comes after it for `drain` too.
        let used = self.bitmap.load(SeqCst);
        let in_use = |at: &usize| used >> at & 1 == 1;
        let all = || 0..self.lines.len().min(LINES_MAX);
        let take = |at: usize, seen: u64| {
            self.lines[at].word.compare_exchange(seen, me, AcqRel, Relaxed).is_ok()
        };
        for at in all().filter(in_use) {
            let seen = self.lines[at].word.load(Relaxed);
            if seen & ID == me & ID {
                if seen & READING != 0 {
                    return Err(Refused::Deadlock);
                }
                // Ours by another handle, of guards or of calls.
                if seen == me || take(at, seen) {
                    return Ok(Some(at));
                }
            }
        }
        let mut unjudged = None;
        for at in all().filter(in_use) {
            // ORDERING(LOCK_OWNER): the id was in its place before it came here.
            let seen = self.lines[at].word.load(Acquire);
            // Nothing is left behind on an idle line.
            let holder = if seen & READING == 0 { seen | CALLS } else { seen & HOLDER };
            let left = match seen {
                0 => true,
                _ => match world.is_dead(holder) {
                    Err(Refused::Leaked | Refused::Leaving) => false,
                    // Any other line will do, if there is one.
                    Err(e) if !fault("rwlock.claim.needs_verdict") => {
                        unjudged = Some(e);
                        false
                    }
                    dead => dead?,
                },
            };
            if left && take(at, seen) {
                return Ok(Some(at));
            }
        }
        for at in all().filter(|at| !in_use(at)) {
            // ORDERING(READER_BIT): pairs with `drain`, and comes before any reading there.
            if !fault("rwlock.claim.no_bit") {
                self.bitmap.fetch_or(1 << at, SeqCst);
            }
            crash_point!("rwlock.line_marked");
            if take(at, 0) {
                return Ok(Some(at));
            }
        }
        for at in all() {
            let seen = self.lines[at].word.load(Relaxed);
            if seen & READING == 0 && take(at, seen) {
                return Ok(Some(at));
            }
        }
        unjudged.map_or(Ok(None), Err)
    }

    /// Takes the lock for writing.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS on the word. Dying while readers are waited for counts as
    /// dying inside: nobody can tell whether anything was written.
    #[cold]
    pub(crate) fn write<W: World>(&self, me: u64, world: &mut W) -> Result<Got, Refused> {
        let reads = self.lines.iter().map(|line| line.word.load(Relaxed));
        let mut holders = reads.filter(|seen| seen & READING != 0).map(|seen| seen & ID);
        if holders.any(|id| id == me & ID || world.is_caller(id)) {
            // Also where another writer waits for us to leave.
            return Err(Refused::Deadlock);
        }
        let got = self.gate.take(me, world)?;
        crash_point!("rwlock.taken");
        self.drain_or_release(me, got, world)
    }

    /// The second half of `write`, after the lock word was taken.
    ///
    /// # Crash safety
    /// **Strict.** As `write`.
    #[inline]
    pub(crate) fn drain_or_release<W: World>(
        &self,
        me: u64,
        got: Got,
        world: &mut W,
    ) -> Result<Got, Refused> {
        match self.drain(me, world) {
            Ok(()) => Ok(got),
            Err(e) => {
                let wake = |n| world.wake(self.gate.word, n);
                if got == Got::Broken {
                    // Not repaired: the next one is told again.
                    self.gate.close(crate::lock::mutex::word::ABANDONED, wake);
                } else {
                    self.gate.release_all(me, wake);
                }
                Err(e)
            }
        }
    }

    /// Whether no line reads right now; the caller has taken the lock word.
    #[inline(always)]
    pub(crate) fn is_drained(&self) -> bool {
        if !fault("rwlock.drain.no_barrier") {
            after_rmw();
        }
        // ORDERING(READER_BIT): pairs with `claim`.
        let mut used = if fault("rwlock.no_drain") { 0 } else { self.bitmap.load(SeqCst) };
        let mut seen = 0;
        // A line that was never used is 0: looking at it is quicker than to pass it over.
        // ORDERING(READER_IN, WRITER_IN, READER_OUT): pairs with `enter` and `leave`.
        let (fours, rest) = self.lines.as_chunks::<4>();
        for four in fours {
            if used == 0 {
                break;
            }
            let [a, b, c, d] = four.each_ref().map(|line| line.word.load(SeqCst));
            seen |= (a | b) | (c | d);
            used >>= 4;
        }
        seen = rest.iter().fold(seen, |seen, line| seen | line.word.load(SeqCst));
        seen & READING == 0
    }

    /// Waits until no living thread reads.
    #[cold]
    fn drain<W: World>(&self, me: u64, world: &mut W) -> Result<(), Refused> {
        if self.is_drained() {
            return Ok(());
        }
        // ORDERING(READER_BIT): as in `is_drained`; lines marked later see our word.
        let used = self.bitmap.load(SeqCst);
        let mut drained = Ok(());
        for (at, line) in self.lines.iter().enumerate().take(LINES_MAX) {
            if used >> at & 1 == 1 && drained.is_ok() {
                drained = self.drain_line(line, me, world);
            }
        }
        if self.drain.load(Relaxed) != 0 {
            self.drain.store(0, Relaxed);
        }
        drained
    }

    fn drain_line<W: World>(&self, line: &Line, me: u64, world: &mut W) -> Result<(), Refused> {
        let mut napped = false;
        loop {
            // ORDERING(READER_IN, READER_OUT, LOCK_OWNER): pairs with `enter` and `leave`.
            let seen = line.word.load(SeqCst);
            if seen & READING == 0 {
                return Ok(());
            }
            let reader = seen & ID;
            if reader == me & ID {
                return Err(Refused::Deadlock);
            }
            if world.spin(|| line.word.load(Relaxed) == seen) {
                continue;
            }
            match world.is_dead(seen & HOLDER) {
                Ok(false) => {}
                Ok(true) => {
                    // Only to spare later writers the question.
                    let _ = line.word.compare_exchange(seen, 0, AcqRel, Relaxed);
                    return Ok(());
                }
                // ORDERING(READER_OUT): it may have left and ended since we looked.
                Err(Refused::Leaked) if line.word.load(SeqCst) != seen => continue,
                Err(Refused::Leaving) if world.expired() => return Err(Refused::Expired),
                Err(Refused::Leaving) => {
                    world.pause();
                    continue;
                }
                Err(e) => return Err(e),
            }
            if world.expired() {
                return Err(Refused::Expired);
            }
            self.drain.store(1, SeqCst);
            crash_point!("rwlock.draining");
            if !napped {
                world.nap(&line.word, seen, reader);
                time_passes();
                napped = true;
            } else {
                world.sleep(&line.word, seen, reader);
            }
        }
    }
}

const _: () = assert!(READING & BROKEN == 0);
