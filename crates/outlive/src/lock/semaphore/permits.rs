//! Permits of a semaphore: one word each, holding the id of the thread that has it.
//!
//! # Theory of operation
//! | word | means                  | who stores the next                          |
//! |------|------------------------|----------------------------------------------|
//! | 0    | free                   | anybody: its id                              |
//! | id   | held by thread `id`    | `id`: 0; anybody once `id` is dead: its own  |
//!
//! A permit of a dead thread needs no giving back: whoever wants one takes it over. Who finds none
//! counts itself as a sleeper, looks once more, and sleeps on the *bell*, which a release rings
//! when there are sleepers. A killed sleeper stays counted: later releases ring for nobody.
//!
//! | label      | stores                            | loads                | carries           |
//! |------------|-----------------------------------|----------------------|-------------------|
//! | PERMIT     | `give_back`, swap SeqCst          | `take`, CAS Acquire  | what it guards    |
//! | BELL       | `give_back`: word, then sleepers  | sleeper, then words  | "look once more"  |

use crate::crash_point;
use crate::lock::mutex::word::{CALLS, Got, Refused, World};
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use crate::sync::{AtomicU64, after_rmw, fault};

/// The words of a semaphore.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permits<'a> {
    pub(crate) bell: &'a AtomicU64,
    pub(crate) sleepers: &'a AtomicU64,
    pub(crate) words: &'a [AtomicU64],
}

impl Permits<'_> {
    /// Takes a free permit, looking first at `hint`; returns which.
    ///
    /// # Crash safety
    /// **Strict.** One CAS.
    #[inline]
    pub(crate) fn take_free(&self, me: u64, hint: usize) -> Option<usize> {
        let (before, after) = self.words.split_at(hint.min(self.words.len()));
        let free = |word: &AtomicU64| {
            // ORDERING(PERMIT): pairs with `give_back`. SeqCst orders a sleeper's last look.
            word.load(SeqCst) == 0 && word.compare_exchange(0, me, AcqRel, Relaxed).is_ok()
        };
        let found = after.iter().position(free).map(|at| at + before.len());
        found.or_else(|| before.iter().position(free))
    }

    /// Takes a dead thread's permit.
    ///
    /// # Crash safety
    /// **Strict.** One CAS.
    pub(crate) fn take_over<W: World>(
        &self,
        me: u64,
        world: &mut W,
    ) -> Result<Option<usize>, Refused> {
        let (mut own, mut unjudged) = (0, None);
        for (at, word) in self.words.iter().enumerate() {
            // ORDERING(LOCK_OWNER): the id was in its place before it came here.
            let seen = word.load(Acquire);
            if seen == me {
                own += 1;
                continue;
            }
            if seen == 0 || fault("semaphore.permit_lost") {
                continue;
            }
            // A permit leaves no references behind.
            let dead = match world.is_dead(seen | CALLS) {
                // Any other permit will do, if there is one.
                Err(e) if !fault("semaphore.needs_verdict") => {
                    unjudged = Some(e);
                    false
                }
                dead => dead?,
            };
            if dead && word.compare_exchange(seen, me, AcqRel, Relaxed).is_ok() {
                crash_point!("semaphore.taken_over");
                return Ok(Some(at));
            }
            // By another node: it would wait for itself all the same.
            own += usize::from(!dead && world.is_caller(seen));
        }
        match unjudged {
            Some(e) => Err(e),
            None if own == self.words.len() => Err(Refused::Deadlock),
            None => Ok(None),
        }
    }

    /// Takes any permit, waiting as `world` allows; `sleep` sleeps while the bell has that value
    /// and the holders live.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS. A sleeper that dies stays counted, see above.
    pub(crate) fn take<W: World>(
        &self,
        me: u64,
        world: &mut W,
        mut sleep: impl FnMut(&mut W, u64) -> Result<(), Refused>,
    ) -> Result<(usize, Got), Refused> {
        let mut counted = false;
        let taken = loop {
            // ORDERING(BELL): sleepers first, then bell and words; see `give_back`.
            let rung = self.bell.load(SeqCst);
            if let Some(at) = self.take_free(me, 0) {
                break Ok((at, Got::Clean));
            }
            match self.take_over(me, world) {
                Ok(Some(at)) if fault("semaphore.death_untold") => break Ok((at, Got::Clean)),
                Ok(Some(at)) => break Ok((at, Got::Broken)),
                Ok(None) => {}
                Err(e) => break Err(e),
            }
            if world.expired() {
                break Err(Refused::Expired);
            }
            if !counted {
                self.sleepers.fetch_add(1, SeqCst);
                after_rmw();
                counted = true;
                crash_point!("semaphore.counted");
                continue;
            }
            if let Err(e) = sleep(world, rung) {
                break Err(e);
            }
        };
        if counted {
            self.sleepers.fetch_sub(1, SeqCst);
        }
        taken
    }

    /// Gives the permit back; false when `me` does not hold it. `ring` wakes all sleepers.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the word. Dying before the bell: sleepers watch our token too.
    #[inline]
    pub(crate) fn give_back(&self, at: usize, me: u64, ring: impl Fn(&AtomicU64)) -> bool {
        // ORDERING(PERMIT, BELL): pairs with `take_free` and with a sleeper's last look.
        crash_point!("semaphore.before_give_back");
        let given = self.words[at].compare_exchange(me, 0, SeqCst, Relaxed).is_ok();
        after_rmw();
        if given && self.sleepers.load(SeqCst) != 0 && !fault("semaphore.no_bell") {
            crash_point!("semaphore.before_bell");
            self.bell.fetch_add(1, SeqCst);
            ring(self.bell);
        }
        given
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Holder 1 cannot be judged, holder 2 is dead.
    struct Lacking;

    impl World for Lacking {
        fn is_dead(&mut self, holder: u64) -> Result<bool, Refused> {
            if holder == 1 | CALLS { Err(Refused::Failed) } else { Ok(holder == 2 | CALLS) }
        }
        fn is_caller(&mut self, _: u64) -> bool {
            false
        }
        fn spin(&mut self, _: impl Fn() -> bool) -> bool {
            false
        }
        fn expired(&mut self) -> bool {
            true
        }
        fn sleep(&mut self, _: &AtomicU64, _: u64, _: u64) {}
        fn nap(&mut self, _: &AtomicU64, _: u64, _: u64) {}
        fn pause(&mut self) {}
        fn wake(&self, _: &AtomicU64, _: i32) -> i64 {
            0
        }
        fn was_woken(&self) -> bool {
            false
        }
        fn is_starving(&mut self) -> bool {
            false
        }
        fn stand_back(&mut self, _: &AtomicU64, _: u64, _: u64) -> bool {
            true
        }
        fn now_ns(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_holder_that_cannot_be_judged_hides_no_dead_one() {
        let (bell, sleepers) = (AtomicU64::new(0), AtomicU64::new(0));
        let takes = |holders: [u64; 2]| {
            let words = holders.map(AtomicU64::new);
            let permits = Permits { bell: &bell, sleepers: &sleepers, words: &words };
            permits.take_over(4, &mut Lacking)
        };
        assert_eq!(takes([1, 2]), Ok(Some(1)));
        assert_eq!(takes([1, 3]), Err(Refused::Failed), "perhaps it is dead");
        assert_eq!(takes([3, 3]), Ok(None));
        assert_eq!(takes([4, 4]), Err(Refused::Deadlock));
    }
}
