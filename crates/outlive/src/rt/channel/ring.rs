//! Every value in order, from one writer to one reader: a bounded ring, without waiting.
//!
//! The writer owns `HEAD` and the entries, the reader owns its position, in its own file. Full is
//! told, nothing is overwritten.
//!
//! # Crash safety
//! **Strict.** Commit point of a push: the store of `HEAD`; of a pop: the store of the position.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Release};
use crate::sync::unless_fault;

/// In the reader's words: its position.
pub(crate) const NEXT: usize = 0;
const HEAD: usize = 0;
const ENTRIES: usize = 8;

/// Words of the writer's side: `depth` entries of `body` words.
pub(crate) const fn words(depth: usize, body: usize) -> usize {
    ENTRIES + depth * super::four_slot::stride(body)
}

/// What the writer remembers.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    head: u64,
    /// The reader's position at the last look: at most `depth` behind.
    tail: u64,
}

impl Writer {
    /// The reader's position. One that no reader can have leads to no room, not out of the ring.
    #[inline]
    pub(crate) fn took(&mut self, position: u64, depth: usize) {
        if self.head.wrapping_sub(position) <= depth as u64 {
            self.tail = position;
        }
    }

    /// The next entry to be written.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The first entry that no reader is known to have taken.
    pub(crate) fn untaken(&self) -> u64 {
        self.tail
    }

    /// Lets `fill` write the next entry; false when the ring is full, and then nothing is written.
    #[inline]
    pub(crate) fn push(
        &mut self,
        own: &[AtomicU64],
        position: &AtomicU64,
        depth: usize,
        body: usize,
        fill: impl FnOnce(&[AtomicU64]),
    ) -> bool {
        if self.head.wrapping_sub(self.tail) >= depth as u64 {
            // ORDERING(RT_ROOM): pairs with `pop`; the entry was read.
            self.took(position.load(unless_fault("rt_ring.room.relaxed", Acquire)), depth);
            if self.head.wrapping_sub(self.tail) >= depth as u64 {
                return false;
            }
        }
        fill(entry(own, depth, body, self.head));
        self.head += 1;
        // ORDERING(RT_VALUE): pairs with `pop`; carries the entry.
        own[HEAD].store(self.head, unless_fault("rt_ring.push.relaxed", Release));
        true
    }
}

/// Whether a reader may be at `next`.
pub(crate) fn is_possible(next: u64, writers: &[AtomicU64], depth: usize) -> bool {
    writers[HEAD].load(Acquire).wrapping_sub(next) <= depth as u64
}

/// Entries that a reader at `next` has not taken; 0 when the writer's word cannot be true.
pub(crate) fn waiting(next: u64, writers: &[AtomicU64], depth: usize) -> u64 {
    // ORDERING(RT_VALUE): pairs with `push`.
    let waiting = writers[HEAD].load(Acquire).wrapping_sub(next);
    if waiting > depth as u64 { 0 } else { waiting }
}

/// Lets `take` read the oldest entry and lets go of it; `None` when there is none.
#[inline]
pub(crate) fn pop<R>(
    next: &mut u64,
    position: &AtomicU64,
    writers: &[AtomicU64],
    depth: usize,
    body: usize,
    take: impl FnOnce(&[AtomicU64]) -> R,
) -> Option<R> {
    // ORDERING(RT_VALUE): pairs with `push`.
    let head = writers[HEAD].load(unless_fault("rt_ring.pop.relaxed", Acquire));
    let waiting = head.wrapping_sub(*next);
    if waiting == 0 || waiting > depth as u64 {
        return None;
    }
    let taken = take(entry(writers, depth, body, *next));
    *next += 1;
    // ORDERING(RT_ROOM): pairs with `push`; our reads come before it.
    position.store(*next, unless_fault("rt_ring.release.relaxed", Release));
    Some(taken)
}

#[inline]
fn entry(words: &[AtomicU64], depth: usize, body: usize, n: u64) -> &[AtomicU64] {
    let at = ENTRIES + (n % depth as u64) as usize * super::four_slot::stride(body);
    &words[at..at + body]
}
