//! What a mutex rests on: the lock word, and sleeping on it and on its owner's token.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::hold::Hold;
use super::wait::{Spin, Waiter, wake};
use super::word::{ABANDONED, CALLS, Gate, Got, HOLDER};
use crate::Result;
use crate::lock::error::{LockError, LockResult};
use crate::lock::object::Object;
use crate::lock::object::layout::head;
use crate::os::process::fork::fork_generation;
use crate::os::time::deadline::Deadline;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// A lock word in an object.
#[derive(Debug)]
pub struct Gated {
    object: Object,
    word: NonNull<AtomicU64>,
    spin: Spin,
    /// Says in the lock word that no guard holds it; 0 below guards.
    calls: u64,
}

// SAFETY: the pointer leads into `object`, which may be sent and shared.
unsafe impl Send for Gated {}
// SAFETY: as above.
unsafe impl Sync for Gated {}

impl Gated {
    /// To be used by calls: whoever comes after a thread that ended inside inherits at once.
    pub(in crate::lock) fn for_calls(object: Object) -> Self {
        let word = object.word(head::WORD);
        Self { object, word, spin: Spin::new(), calls: CALLS }
    }

    /// To be used by guards only: nobody inherits from a thread that leaked one.
    pub(in crate::lock) fn for_guards(object: Object) -> Self {
        Self { calls: 0, ..Self::for_calls(object) }
    }

    #[inline(always)]
    pub(in crate::lock) fn gate(&self) -> Gate<'_> {
        // SAFETY: `word` and those behind it lie inside `object`, which keeps them mapped.
        unsafe {
            let word = |offset| self.word.byte_add(offset - head::WORD).as_ref();
            Gate {
                word: word(head::WORD),
                heir: word(head::HEIR),
                refused_at: word(head::REFUSED_AT),
            }
        }
    }

    #[cold]
    fn release_slow(&self, me: u64) -> bool {
        self.gate().release(me, |n| wake(self.gate().word, n))
    }
}

impl Hold for Gated {
    #[inline(always)]
    fn own_id(&self) -> Option<u64> {
        self.object.own_id().map(|id| id | self.calls)
    }

    fn id(&self) -> Result<u64> {
        self.object.threads.id().map(|id| id | self.calls)
    }

    #[inline(always)]
    fn take_free(&self) -> Option<u64> {
        let me = self.own_id()?;
        self.gate().take_free(me).then_some(me)
    }

    #[cold]
    fn take_slow(&self, until: Deadline) -> LockResult<(u64, Got)> {
        let me = self.id().map_err(LockError::Failed)?;
        let gate = self.gate();
        if gate.take_free(me) {
            return Ok((me, Got::Clean));
        }
        let mut waiter = Waiter::new(&self.object.threads, &self.spin, until);
        match gate.take(me, &mut waiter) {
            Ok(got) => Ok((me, got)),
            Err(e) => Err(LockError::refused(e, until == Deadline::AT_ONCE, waiter.failure.take())),
        }
    }

    #[inline(always)]
    fn release(&self, me: u64) -> bool {
        self.object.generation == fork_generation()
            && (self.gate().release_quiet(me) || self.release_slow(me))
    }

    #[cold]
    fn abandon(&self, me: u64) -> bool {
        let holds = self.object.generation == fork_generation()
            && self.gate().word.load(Relaxed) & HOLDER == me;
        if holds {
            self.gate().close(ABANDONED, |n| wake(self.gate().word, n));
        }
        holds
    }

    fn mark_consistent(&self, me: u64) -> bool {
        self.object.generation == fork_generation() && self.gate().mark_consistent(me)
    }
}
