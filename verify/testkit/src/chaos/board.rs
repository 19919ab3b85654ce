//! The ledger and the words that all processes share; anonymous shared memory.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use zerocopy::FromZeros;

use crate::process::shared_zeroes;

/// Members at most.
pub(super) const SLOTS_MAX: usize = 48;
/// Lives of one member at most; then it is left alone.
pub(super) const LIVES_MAX: usize = 1 << 15;
/// Words of [`Board::inside`].
pub(super) const INSIDE_MAX: usize = 16;

/// [`Board::phase`]: the anchor measures the floor, then opens topics; chaos; senders end;
/// receivers drain and end; the anchor leaves its topics; it ends.
pub(super) const FLOOR: u64 = 0;
pub(super) const OPENING: u64 = 1;
pub(super) const RUN: u64 = 2;
pub(super) const SENDERS_END: u64 = 3;
pub(super) const RECEIVERS_END: u64 = 4;
pub(super) const TOPICS_END: u64 = 5;
pub(super) const ALL_END: u64 = 6;

/// What can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Committed, and never came.
    Lost,
    /// Came once more than it may.
    Duplicated,
    /// Not what was committed.
    Torn,
    /// Took too long.
    Hang,
    /// An error nobody expects, a process that ended by itself, bytes left.
    Other,
}

impl Fault {
    /// Kinds of faults.
    pub const COUNT: usize = 5;
}

/// The account of one life of a member. What the words mean depends on its kind:
///
/// | kind | tried, sent | got | done |
/// |---|---|---|---|
/// | publisher | messages tried, committed | received by the anchor | - |
/// | producer | messages tried, committed | had in hand by a consumer | let go of by it |
/// | client | requests tried, answered | had by a server | the server's life that had it, plus 1 |
/// | locker | changes under the mutex | changes under the rwlock, tried | committed |
#[derive(FromZeros)]
#[repr(C)]
pub(super) struct Life {
    pub(super) tried: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) got: AtomicU64,
    pub(super) done: AtomicU64,
}

/// A call that may be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Call {
    OpenNode,
    Join,
    Leave,
    Publish,
    Receive,
    Send,
    Consume,
    WaitForPeer,
    WaitSet,
    Ask,
    Serve,
    Lock,
    Condvar,
    Semaphore,
    Watch,
    List,
    Clean,
}

impl Call {
    const ALL: [Self; 17] = [
        Self::OpenNode,
        Self::Join,
        Self::Leave,
        Self::Publish,
        Self::Receive,
        Self::Send,
        Self::Consume,
        Self::WaitForPeer,
        Self::WaitSet,
        Self::Ask,
        Self::Serve,
        Self::Lock,
        Self::Condvar,
        Self::Semaphore,
        Self::Watch,
        Self::List,
        Self::Clean,
    ];
}

/// One member's place; its lives follow each other.
#[derive(FromZeros)]
#[repr(C)]
pub(super) struct Slot {
    /// Twice the number of calls that ended, plus 1 while it is in one.
    call: AtomicU64,
    what: AtomicU64,
    limit_ms: AtomicU64,
    /// The life that was killed last, plus 1; set before the signal.
    pub(super) killed: AtomicU64,
    lives: [Life; LIVES_MAX],
}

impl Slot {
    pub(super) fn life(&self, life: usize) -> &Life {
        &self.lives[life.min(LIVES_MAX - 1)]
    }

    /// The lives that have begun to do something.
    pub(super) fn lives(&self, begun: usize) -> impl Iterator<Item = &Life> {
        self.lives[..begun.min(LIVES_MAX)].iter()
    }

    /// A new life begins, in no call.
    pub(super) fn begin(&self) {
        self.leave();
    }

    pub(super) fn enter(&self, what: Call, limit_ms: u64) {
        self.what.store(what as u64, Relaxed);
        self.limit_ms.store(limit_ms, Relaxed);
        self.call.store(self.call.load(Relaxed) | 1, Release);
    }

    pub(super) fn leave(&self) {
        self.call.store((self.call.load(Relaxed) | 1) + 1, Release);
    }

    /// The number of the call that it is in, what and how long it may take; even: in none.
    pub(super) fn call(&self) -> (u64, Call, u64) {
        let call = self.call.load(Acquire);
        let what = Call::ALL[self.what.load(Relaxed) as usize % Call::ALL.len()];
        (call, what, self.limit_ms.load(Relaxed))
    }
}

/// See the module.
#[derive(FromZeros)]
#[repr(C)]
pub(super) struct Board {
    pub(super) phase: AtomicU64,
    /// Time in which nobody was stopped, ns; where the last such stretch began.
    pub(super) clear_ns: AtomicU64,
    pub(super) window_ns: AtomicU64,
    /// Messages received.
    pub(super) messages: AtomicU64,
    /// One more than the last phase that the anchor is done with.
    pub(super) anchor: AtomicU64,
    /// The sabotage was done.
    pub(super) sabotaged: AtomicU64,
    /// Who is inside a lock or has a permit.
    pub(super) inside: [AtomicU64; INSIDE_MAX],
    faults: [AtomicU64; Fault::COUNT],
    slots: [Slot; SLOTS_MAX],
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}

impl Board {
    /// A new one; it lives as long as the process and its children.
    pub(super) fn new() -> &'static Self {
        shared_zeroes()
    }

    pub(super) fn slot(&self, slot: usize) -> &Slot {
        &self.slots[slot]
    }

    /// The account of a source that a message names; `None` for one that cannot be.
    pub(super) fn life(&self, slot: usize, life: usize) -> Option<&Life> {
        self.slots.get(slot)?.lives.get(life)
    }

    pub(super) fn phase(&self) -> u64 {
        self.phase.load(Acquire)
    }

    pub(super) fn fault(&self, fault: Fault, n: u64, what: impl fmt::Display) {
        // A flood says no more than its beginning.
        if self.faults[fault as usize].fetch_add(n, Relaxed) < 50 {
            eprintln!("chaos: {fault:?}: {what}");
        }
    }

    pub(super) fn faults(&self) -> [u64; Fault::COUNT] {
        std::array::from_fn(|i| self.faults[i].load(Relaxed))
    }
}
