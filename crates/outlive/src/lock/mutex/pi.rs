//! What a mutex rests on that lends its holder the priority of those who wait for it: the kernel's
//! word says who holds it, and a second one how it was let go.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::hold::Hold;
use super::wait::{PAUSE_NS, leaked};
use super::word::{ABANDONED, BROKEN, CALLS, Got, HOLDER, ID, LOST};
use crate::crash_point;
use crate::lock::error::{LockError, LockResult};
use crate::lock::object::layout::head;
use crate::lock::object::{Object, ObjectType};
use crate::node::Node;
use crate::node::threads::tokens::Verdict;
use crate::os::process::fork::fork_generation;
use crate::os::process::sched;
use crate::os::sleep::pi::{PiWord, Refused};
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// The longest that those who come into a namespace together try to move the object there.
const MOVE_NS: u64 = 1_000_000_000;

/// A word of the kernel's in an object's file.
#[derive(Debug)]
pub struct Pi {
    object: Object,
    futex: PiWord,
    /// Who holds it, or how it was let go.
    word: NonNull<AtomicU64>,
    /// As in `Gated`.
    calls: u64,
}

// SAFETY: the pointer leads into `object`, which may be sent and shared.
unsafe impl Send for Pi {}
// SAFETY: as above.
unsafe impl Sync for Pi {}

impl Pi {
    /// Opens the object `name`, or makes it, with `value` at its offset; and where its data is.
    pub(in crate::lock) fn open(
        node: &Node,
        name: &str,
        ty: &ObjectType,
        data: usize,
        value: Option<&[u8]>,
    ) -> Result<(Self, NonNull<u8>)> {
        let here = sched::pid_namespace()?;
        let deadline = Deadline::in_ns(MOVE_NS);
        loop {
            let object = Object::named(node, name, ty, value.map(|value| (data, value)))?;
            let futex = match object.pi_word(ty) {
                // Removed meanwhile: the next one is another.
                Err(e) if e.kind() == ErrorKind::NotFound && !deadline.has_passed() => continue,
                futex => futex?,
            };
            if Self::is_here(&object, &futex, here)? {
                let (word, data) = (object.word(head::WORD), object.at(data));
                return Ok((Self { object, futex, word, calls: 0 }, data));
            }
            if deadline.has_passed() {
                let remedy = "it is open in another PID namespace: share one, or use a RobustMutex";
                return Err(Error::new(ErrorKind::Unsupported, "opening pi-mutex", name, remedy));
            }
            // Perhaps by one who came here together with us, and finds us in its way: let go for a
            // while, each for another one.
            drop((object, futex));
            let ns = PAUSE_NS + sched::random_u128() as u64 % (4 * PAUSE_NS);
            sched::sleep_until(Deadline::in_ns(ns));
        }
    }

    /// Whether its users are in the PID namespace `here`. If nobody else has it open, they are.
    fn is_here(object: &Object, futex: &PiWord, here: u64) -> Result<bool> {
        // SAFETY: inside the object, which keeps it mapped; all access is atomic.
        let namespace = unsafe { object.word(head::BITMAP).as_ref() };
        let has = namespace.compare_exchange(0, here, AcqRel, Acquire);
        if has.is_ok() || has == Err(here) {
            return Ok(true);
        }
        object.if_alone(|| {
            // As after the restart of a container: those of the other namespace are gone, and the
            // lock of the file orders whoever comes next.
            futex.reset();
            namespace.store(here, Relaxed);
        })
    }

    /// To be used by calls; else by guards only. See `Gated`.
    pub(in crate::lock) fn for_calls(self) -> Self {
        Self { calls: CALLS, ..self }
    }

    /// How the last holder left the data; the caller has the futex. `died`: the kernel says that a
    /// holder died; its token may still be about to say so. `None`: a thread left its guard, and
    /// its process may be ending.
    fn left(&self, died: bool) -> LockResult<Option<Got>> {
        // ORDERING(PI_STATE): pairs with `let_go`; the data comes with the futex.
        let word = self.word().load(Acquire);
        let id = match word & ID {
            0 => return Ok(Some(Got::Clean)),
            LOST => return Err(LockError::Unrecoverable),
            ABANDONED => return Ok(Some(Got::Broken)),
            _ if fault("pi.death_untold") => return Ok(Some(Got::Clean)),
            id => id,
        };
        match self.object.threads.judge(id).map_err(LockError::Failed)? {
            Verdict::Dead => Ok(Some(Got::Broken)),
            Verdict::Alive(token) if died || token.node_is_gone() => Ok(Some(Got::Broken)),
            Verdict::Ended(_) if word & CALLS != 0 => Ok(Some(Got::Broken)),
            Verdict::Ended(peer) if peer.is_gone() || fault("pi.leak_inherited") => {
                Ok(Some(Got::Broken))
            }
            Verdict::Ended(peer) if peer.may_be_ending(id) && !fault("pi.leak_told_at_exit") => {
                Ok(None)
            }
            Verdict::Ended(_) => Err(LockError::Failed(leaked(id))),
            Verdict::Alive(_) => {
                let remedy = "its holder lives and does not hold it: stop the users and run \
                              `outlive clean`";
                Err(LockError::Failed(Error::new(ErrorKind::Corrupt, "taking", "a lock", remedy)))
            }
        }
    }

    /// Whether `me` holds it, through this object: the list of its thread leads here.
    fn holds(&self, me: u64) -> bool {
        self.object.generation == fork_generation()
            && self.word().load(Relaxed) & HOLDER == me
            && (self.futex.is_held() || fault("pi.any_object"))
    }

    /// Lets go what `me` holds, with the data left as `state` says.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the state. Dying before the word is let go: the
    /// kernel passes the lock on, and its taker finds the state.
    fn let_go(&self, state: u64) {
        crash_point!("pi.before_state");
        // ORDERING(PI_STATE): pairs with `left`; after the last store to the data.
        self.word().store(state, Release);
        self.futex.release();
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: inside `object`, which keeps it mapped; all access is atomic.
        unsafe { self.word.as_ref() }
    }
}

impl Hold for Pi {
    #[inline(always)]
    fn own_id(&self) -> Option<u64> {
        self.object.own_id().map(|id| id | self.calls)
    }

    fn id(&self) -> Result<u64> {
        self.object.threads.id().map(|id| id | self.calls)
    }

    /// None: the kernel's word may have to be taken through the kernel.
    #[inline(always)]
    fn take_free(&self) -> Option<u64> {
        None
    }

    fn take_slow(&self, until: Deadline) -> LockResult<(u64, Got)> {
        let me = match self.own_id() {
            Some(me) => me,
            None => self.id().map_err(LockError::Failed)?,
        };
        let got = loop {
            let died = self.futex.take(until).map_err(|refused| match refused {
                Refused::Busy => LockError::WouldBlock,
                Refused::Expired => LockError::Timeout,
                Refused::Deadlock => LockError::Deadlock,
                Refused::Failed(e) => LockError::Failed(e),
            })?;
            let left = self.left(died);
            if let Ok(Some(got)) = left {
                break got;
            }
            // Nobody may wait for us while we wait for nobody who holds it.
            self.futex.release();
            left?;
            if until == Deadline::AT_ONCE {
                return Err(LockError::WouldBlock);
            }
            if until.has_passed() {
                return Err(LockError::Timeout);
            }
            sched::sleep_until(until.min(Deadline::in_ns(PAUSE_NS)));
        };
        let broken = if got == Got::Broken { BROKEN } else { 0 };
        // Before any store to the data: a holder that died without this has changed nothing.
        self.word().swap(me | broken, AcqRel);
        crash_point!("pi.entered");
        Ok((me, got))
    }

    fn release(&self, me: u64) -> bool {
        let holds = self.holds(me);
        if holds {
            let broken = self.word().load(Relaxed) & BROKEN != 0;
            self.let_go(if broken { LOST } else { 0 });
        }
        holds
    }

    #[cold]
    fn abandon(&self, me: u64) -> bool {
        let holds = self.holds(me);
        if holds {
            self.let_go(ABANDONED);
        }
        holds
    }

    fn mark_consistent(&self, me: u64) -> bool {
        let holds = self.holds(me);
        if holds && self.word().load(Relaxed) & BROKEN != 0 {
            self.word().fetch_and(!BROKEN, Relaxed);
        }
        holds
    }
}
