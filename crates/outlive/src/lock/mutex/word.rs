//! The lock word: taking a lock and naming its owner are one compare-and-swap.
//!
//! # Theory of operation
//! No instant exists in which a lock is held by nobody, so a death at any instruction is told from
//! the word and the owner's token alone. A waiter announces itself in the word and sleeps on the
//! word *and* on the owner's token; the taker of a dead thread's lock gets the data marked broken.
//!
//! | word            | means                                          | next                  |
//! |-----------------|------------------------------------------------|-----------------------|
//! | 0               | free                                           | id                    |
//! | W               | free, and somebody may sleep                   | id+W; 0 if none slept |
//! | id              | held by thread `id`                            | 0, id+W               |
//! | id+W            | held, and somebody sleeps or is about to       | W                     |
//! | id+B, id+B+W    | held, data as its dead owner left it           | id, id+W, LOST        |
//! | ABANDONED       | let go by a panic: like a dead thread's        | id+B+W                |
//! | LOST            | given up for good                              | -                     |
//! | any, `id` dead  | its owner died                                 | id+B+W of the taker   |
//!
//! To each id belongs C where the lock is held by calls instead of a guard. A guard that is leaked
//! leaves references to the data behind when its thread ends; the lock is then nobody's until
//! that process ends, too. Without references (C) the next taker inherits at once.
//!
//! W stays while the lock is free, so that nobody passes the sleepers by the fast path until one
//! is found awake: a waiter that is killed after its wake loses nobody else's (the kernel passes
//! the wake on through the waiter's pending operation, the next owner's release does otherwise).
//!
//! Whoever sleeps watches the owner that it saw. When the lock changes hands, the next owner first
//! wakes one more sleeper, which then watches it in turn; one that gives up leaves that to another.
//!
//! The *heir* bounds how often a waiter is passed over: a waiter that was woken too often for
//! nothing writes its id there. While the heir lives, others that find the lock free sleep for a
//! short time before they take it. An heir that does not come, stopped or without a core, costs
//! one such sleep: hence the lock is not handed over on release, which would leave it with a
//! thread that does not run. Who may not sleep that long is refused; the first one leaves the time,
//! and whoever is refused long enough after it passes the heir over.
//!
//! # Orderings
//! | label        | stores                  | loads                     | carries          |
//! |--------------|-------------------------|---------------------------|------------------|
//! | LOCK_DATA    | `release`, Release      | taking CAS, Acquire       | the data         |
//! | LOCK_OWNER   | taking CAS, Release     | `take`, Acquire           | the owner's token |
//! | THREAD_DEATH | the kernel's mark       | `World::is_dead`, Acquire | the dead's data  |
//!
//! # Invariants
//! - Only the owner, or a taker after the owner's death, replaces an id.
//! - Whoever sleeps on the word has seen W in it, and sleeps on the value it saw.

use crate::crash_point;
use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, unless_fault};

/// Somebody sleeps on the word, or is about to.
pub(crate) const WAITERS: u64 = 1 << 31;
/// The owner inherited the data from a dead one and has not said that it is consistent.
pub(crate) const BROKEN: u64 = 1 << 30;
/// The owner holds the lock by calls, not by a guard: whoever goes on when its thread has ended
/// and its process has not meets no reference to the data.
pub(crate) const CALLS: u64 = 1 << 63;
/// The owner's id; 0 is nobody.
pub(crate) const ID: u64 = !(CALLS | WAITERS | BROKEN);
/// Who holds, and how: what `World::is_dead` takes.
pub(crate) const HOLDER: u64 = ID | CALLS;
/// Unrecoverable: an inherited lock was let go without repair. No thread has this id.
pub(crate) const LOST: u64 = 0x7fff_ffff_3fff_ffff;
/// The owner panicked. No thread has this id.
pub(crate) const ABANDONED: u64 = 0x7fff_ffff_3fff_fffe;

/// How long an heir keeps those out who do not wait.
const REFUSE_NS: u64 = 1_000_000;

/// All sleepers.
pub(crate) const ALL: i32 = i32::MAX;

/// The words of a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gate<'a> {
    pub(crate) word: &'a AtomicU64,
    /// Id of the waiter that is next, or 0.
    pub(crate) heir: &'a AtomicU64,
    /// When somebody who may not wait was first refused for its sake, ns; 0: nobody was. A time
    /// that is left from another heir lets this one be passed over early, once.
    pub(crate) refused_at: &'a AtomicU64,
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// In good order.
    Clean,
    /// From a dead owner: the data may be half written.
    Broken,
}

/// Why a lock was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The caller holds it already.
    Deadlock,
    /// Given up for good.
    Lost,
    /// The time is over.
    Expired,
    /// A reader met a writer that died inside.
    WriterDied,
    /// The holder's thread has ended and left its guard behind in a process that lives.
    Leaked,
    /// As `Leaked`, but the process may be ending.
    Leaving,
    /// `World` could not tell; it knows why.
    Failed,
}

/// What the algorithm needs of clock, kernel and peers.
pub(crate) trait World {
    /// Whether the `HOLDER` is dead for certain, and all that it may have left behind.
    fn is_dead(&mut self, holder: u64) -> Result<bool, Refused>;
    /// Whether `id` is the calling thread, as a member of another node.
    fn is_caller(&mut self, id: u64) -> bool;
    /// Spins while `busy` holds and spinning is worth it; false when it is time to sleep.
    fn spin(&mut self, busy: impl Fn() -> bool) -> bool;
    /// Whether the caller must not wait any longer.
    fn expired(&mut self) -> bool;
    /// Sleeps while `word` has the value `expected`, thread `watched` lives, and for a bounded
    /// time.
    fn sleep(&mut self, word: &AtomicU64, expected: u64, watched: u64);
    /// As `sleep`, at most as long as stores take to become visible everywhere.
    fn nap(&mut self, word: &AtomicU64, expected: u64, watched: u64);
    /// Sleeps a little; there is no word to wait for.
    fn pause(&mut self);
    /// Wakes up to `n` sleepers of `word`; returns how many there were.
    fn wake(&self, word: &AtomicU64, n: i32) -> i64;
    /// Whether any of the caller's sleeps ended by a wake, which others may have needed.
    fn was_woken(&self) -> bool;
    /// Whether the caller has waited so long that it is to be the heir.
    fn is_starving(&mut self) -> bool;
    /// As `sleep`, for a short time, to let `heir` take the free lock; true when the time is over
    /// and nothing has happened.
    fn stand_back(&mut self, word: &AtomicU64, expected: u64, heir: u64) -> bool;
    /// The time, ns.
    fn now_ns(&self) -> u64;
}

impl Gate<'_> {
    /// Takes the lock if it is free and nobody waits.
    ///
    /// # Crash safety
    /// **Strict.** One CAS.
    #[inline(always)]
    pub(crate) fn take_free(self, me: u64) -> bool {
        // ORDERING(LOCK_DATA, LOCK_OWNER, WRITER_IN): pairs with `release`; names us to others. A
        // full barrier for writers, who look at the readers' lines next.
        let order = unless_fault("lock.take.relaxed", SeqCst);
        crash_point!("lock.before_take");
        let taken = self.word.compare_exchange(0, me, order, Relaxed).is_ok();
        crash_point!("lock.taken");
        taken
    }

    /// Takes the lock for thread `me`, waiting as `world` allows.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS that names `me`. Dying before it leaves at most W or an
    /// heir that is found dead; after it the lock is a dead thread's.
    #[cold]
    pub(crate) fn take<W: World>(self, me: u64, world: &mut W) -> Result<Got, Refused> {
        // Once we have slept others may sleep too, whatever the word says.
        let mut slept = 0;
        let taken = loop {
            // ORDERING(LOCK_OWNER): pairs with the CAS below and in `take_free`.
            let seen = self.word.load(Acquire);
            let owner = seen & ID;
            if owner == 0 {
                let next = self.heir.load(Relaxed) & ID;
                if next == 0 || next == me & ID || !self.may_come(next, world) {
                    if next != me & ID {
                        self.forget_heir(next);
                    }
                    self.pass_watch(seen & slept, world);
                    if self.replace(seen, me | seen & WAITERS | slept) {
                        break Ok(Got::Clean);
                    }
                } else if world.expired() {
                    if !self.pass_over(next, world.now_ns()) {
                        break Err(Refused::Expired);
                    }
                } else if seen & WAITERS != 0 {
                    if world.stand_back(self.word, WAITERS, next) {
                        self.forget_heir(next);
                    }
                    slept = WAITERS;
                } else {
                    // Closes the fast path for the heir's sake.
                    self.announce(seen);
                }
                continue;
            }
            if owner == me & ID {
                break Err(Refused::Deadlock);
            }
            if owner == LOST {
                break Err(Refused::Lost);
            }
            if world.spin(|| self.word.load(Relaxed) & ID == owner) {
                continue;
            }
            match self.is_dead(seen, world) {
                Ok(false) if world.is_caller(owner) => break Err(Refused::Deadlock),
                Ok(false) => {}
                Ok(true) => {
                    self.pass_watch(seen, world);
                    crash_point!("lock.before_take_over");
                    if crate::sync::fault("lock.death_untold") && self.replace(seen, me | WAITERS) {
                        break Ok(Got::Clean);
                    }
                    if self.replace(seen, me | BROKEN | WAITERS) {
                        crash_point!("lock.after_take_over");
                        break Ok(Got::Broken);
                    }
                    continue;
                }
                // It may have let go and ended since we looked.
                Err(Refused::Leaked) if self.word.load(Acquire) & ID != owner => continue,
                Err(Refused::Leaving) if world.expired() => break Err(Refused::Expired),
                Err(Refused::Leaving) => {
                    self.pass_watch(seen, world);
                    world.pause();
                    continue;
                }
                Err(e) => break Err(e),
            }
            if world.expired() {
                break Err(Refused::Expired);
            }
            if seen & WAITERS == 0 && !self.announce(seen) {
                continue;
            }
            crash_point!("lock.announced");
            if world.is_starving() {
                self.become_heir(me);
            }
            world.sleep(self.word, seen | WAITERS, owner);
            slept = WAITERS;
        };
        self.end_wait(me, slept != 0 && taken.is_err(), world);
        taken
    }

    /// Before the lock changes hands, or while its owner may be ending: one more sleeper wakes and
    /// finds the owner, so that the owner's end is seen by all.
    pub(in crate::lock) fn pass_watch<W: World>(self, seen: u64, world: &mut W) {
        if seen & WAITERS != 0 && !crate::sync::fault("lock.watch.not_passed") {
            world.wake(self.word, 1);
        }
    }

    /// Whether the owner in `seen` is dead; ids of no thread count as such, LOST excepted.
    pub(in crate::lock) fn is_dead<W: World>(
        self,
        seen: u64,
        world: &mut W,
    ) -> Result<bool, Refused> {
        // ORDERING(THREAD_DEATH): pairs with the kernel's mark; `is_dead` acquires it.
        if crate::sync::fault("lock.dead_is_alive") {
            return Ok(false);
        }
        if seen & ID == ABANDONED { Ok(true) } else { world.is_dead(seen & HOLDER) }
    }

    fn replace(self, seen: u64, new: u64) -> bool {
        // ORDERING(LOCK_DATA, LOCK_OWNER, WRITER_IN): as in `take_free`.
        let order = unless_fault("lock.take.relaxed", SeqCst);
        self.word.compare_exchange(seen, new, order, Relaxed).is_ok()
    }

    /// Says in the word that somebody is about to sleep.
    pub(in crate::lock) fn announce(self, seen: u64) -> bool {
        let new = if crate::sync::fault("lock.announce.missing") { seen } else { seen | WAITERS };
        self.word.compare_exchange(seen, new, Relaxed, Relaxed).is_ok()
    }

    pub(in crate::lock) fn become_heir(self, me: u64) {
        if self.heir.compare_exchange(0, me & ID, Relaxed, Relaxed).is_ok() {
            self.refused_at.store(0, Relaxed);
        }
    }

    /// Whether `heir` may still take its turn. So may one that cannot be judged: it has its time,
    /// as others have, and is then passed over.
    fn may_come<W: World>(self, heir: u64, world: &mut W) -> bool {
        !matches!(world.is_dead(heir | CALLS), Ok(true))
    }

    /// `heir` is next no longer: it has the lock, gave up, died, or did not come.
    fn forget_heir(self, heir: u64) {
        let mut seen = self.heir.load(Relaxed);
        // Again at most once: a build before this one may leave bits of its own beside the id.
        while seen & ID == heir && heir != 0 {
            match self.heir.compare_exchange(seen, 0, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// The lock is free, `heir` lives and has not come, and the caller waits no longer: whether
    /// another was refused long enough ago that the heir has had its time.
    #[cold]
    fn pass_over(self, heir: u64, now_ns: u64) -> bool {
        let at = self.refused_at.load(Relaxed);
        if at == 0 {
            let _ = self.refused_at.compare_exchange(0, now_ns, Relaxed, Relaxed);
            return false;
        }
        // Apart, not after: who left it may be in another time namespace.
        let late = now_ns.abs_diff(at) > REFUSE_NS && !crate::sync::fault("lock.heir.never_passed");
        if late {
            self.forget_heir(heir);
            self.refused_at.store(0, Relaxed);
        }
        late
    }

    /// Ends a wait: no heir any more. Who slept and is `refused` may have been woken for a free
    /// lock, or as the only one that watches the owner: one more wakes. Who woke by itself passes
    /// nothing on, so that those who often wait for a short time keep no long sleeper awake.
    pub(in crate::lock) fn end_wait<W: World>(self, me: u64, refused: bool, world: &mut W) {
        self.forget_heir(me & ID);
        let watches = world.was_woken() && !crate::sync::fault("lock.watch.kept");
        if refused && (watches || self.word.load(Relaxed) & ID == 0) {
            world.wake(self.word, 1);
        }
    }

    /// Lets go what `me` holds, if nobody waits and the data is not broken.
    ///
    /// # Crash safety
    /// **Strict.** One CAS.
    #[inline(always)]
    pub(crate) fn release_quiet(self, me: u64) -> bool {
        // ORDERING(LOCK_DATA): pairs with the taking CAS.
        let order = unless_fault("lock.release.relaxed", Release);
        crash_point!("lock.before_release");
        self.word.compare_exchange(me, 0, order, Relaxed).is_ok()
    }

    /// Lets go what `me` holds and wakes whom it may concern; false when `me` does not hold it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store. Dying between it and the wake: sleepers watch our
    /// token too, and wake by it.
    #[cold]
    pub(crate) fn release(self, me: u64, wake: impl Fn(i32) -> i64) -> bool {
        let seen = self.word.load(Relaxed);
        if seen & HOLDER != me {
            return false;
        }
        if seen & BROKEN != 0 && !crate::sync::fault("lock.repair_unasked") {
            self.close(LOST, wake);
            return true;
        }
        // ORDERING(LOCK_DATA): pairs with the taking CAS.
        let order = unless_fault("lock.release.relaxed", Release);
        self.word.swap(WAITERS, order);
        crash_point!("lock.released");
        if crate::sync::fault("lock.no_wake") {
            return true;
        }
        // With an heir among the sleepers the first may not be the one that is to come.
        let n = if self.heir.load(Relaxed) == 0 { 1 } else { ALL };
        if wake(n) == 0 && self.heir.load(Relaxed) == 0 {
            // Nobody slept: open the fast path again. Whoever sleeps by now saw W, or was awake
            // and sets it again when it takes the lock or sleeps.
            let _ = self.word.compare_exchange(WAITERS, 0, Relaxed, Relaxed);
        }
        true
    }

    /// As `release`, for a lock whose sleepers may all go at once: readers.
    ///
    /// # Crash safety
    /// **Strict.** As `release`.
    #[cold]
    pub(crate) fn release_all(self, me: u64, wake: impl Fn(i32) -> i64) -> bool {
        let seen = self.word.load(Relaxed);
        if seen & HOLDER != me {
            return false;
        }
        if seen & BROKEN != 0 {
            self.close(LOST, wake);
            return true;
        }
        // All are woken, so nobody is left to be passed by the fast path, the heir excepted.
        let keep = if self.heir.load(Relaxed) == 0 { 0 } else { WAITERS };
        // ORDERING(LOCK_DATA): pairs with the taking CAS.
        self.word.swap(keep, unless_fault("lock.release.relaxed", Release));
        crash_point!("rwlock.released");
        wake(ALL);
        true
    }

    /// Ends holding with a word that nobody's id is: LOST or ABANDONED.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    #[cold]
    pub(crate) fn close(self, word: u64, wake: impl Fn(i32) -> i64) {
        // ORDERING(LOCK_DATA): pairs with the taking CAS of the next owner, if any.
        self.word.swap(word, Release);
        wake(ALL);
    }

    /// The holder `me` has repaired the data, if that was needed; whether `me` holds it.
    ///
    /// # Crash safety
    /// **Strict.** One store; before it the next taker is told again.
    pub(crate) fn mark_consistent(self, me: u64) -> bool {
        let seen = self.word.load(Relaxed);
        if seen & HOLDER != me {
            return false;
        }
        if seen & BROKEN != 0 {
            self.word.fetch_and(!BROKEN, Relaxed);
        }
        true
    }
}
