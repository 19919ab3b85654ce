//! Hazards: how a subscriber keeps a chunk from being rewritten without asking anyone.
//!
//! # Theory of operation
//! A subscriber stores the chunk's location into a hazard word of its own node's file and then
//! reads the entry's `seq` again: still the same, so the publisher has not yet retired the chunk,
//! and it will see the hazard when it does. The publisher retires a chunk by overwriting its entry
//! and rewrites it only after a scan of all hazards that begins with a full fence.
//!
//! | who        | first                   | then                                     |
//! |------------|-------------------------|------------------------------------------|
//! | subscriber | hazard := chunk, SeqCst | read `seq`, SeqCst: unchanged => borrowed |
//! | publisher  | `seq` := other          | fence SeqCst, read hazards: none => free |
//!
//! One of the two always sees the other. Releasing is one Release store of 0, by any thread.

use crate::crash_point;
use crate::sync::Ordering::{Acquire, Release, SeqCst};
use crate::sync::{AtomicU64, fault, fence, swap_fenced, unless_fault};
use crate::topic::ring::entries::Entry;

/// Where a chunk lies: segment and index within it. One word: fields that are written one by one
/// and then copied together make the processor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Location(u64);

impl Location {
    #[inline]
    pub(crate) fn new(segment: u16, chunk: u32) -> Self {
        Self(u64::from(segment) << 32 | u64::from(chunk))
    }

    #[inline]
    pub(crate) fn segment(self) -> u16 {
        (self.0 >> 32) as u16
    }

    #[inline]
    pub(crate) fn chunk(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        self.0
    }

    /// `None` when bits are set that no location has.
    #[inline]
    pub(crate) fn decode(word: u64) -> Option<Self> {
        if word >> 48 == 0 { Some(Self(word)) } else { None }
    }
}

const HELD: u64 = 1 << 63;
const SLOT_SHIFT: u32 = 48;

/// The hazard word of `location` in the ring that the subscriber attached as source `slot`.
#[inline]
pub(crate) fn hazard_word(slot: usize, location: Location) -> u64 {
    debug_assert!(slot < 1 << 12);
    HELD | (slot as u64) << SLOT_SHIFT | location.encode()
}

/// The location that `word` holds, if it belongs to source `slot`.
#[inline]
pub(crate) fn held_by(word: u64, slot: usize) -> Option<Location> {
    if word & HELD == 0 || (word & !HELD) >> SLOT_SHIFT != slot as u64 {
        return None;
    }
    Location::decode(word & ((1 << SLOT_SHIFT) - 1))
}

/// Subscriber: borrows what `entry` names as message `cursor`, unless it was overwritten.
///
/// # Crash safety
/// **Deferred** (one chunk), as `set`.
#[inline]
pub(crate) fn borrow(hazard: &AtomicU64, word: u64, entry: Entry<'_>, cursor: u64) -> bool {
    set(hazard, word);
    crash_point!("borrow.hazard_set");
    let held = fault("borrow.no_second_look") || entry.unchanged_after_hazard(cursor);
    if !held {
        clear(hazard);
    }
    held
}

/// First half of a borrow: names the chunk.
///
/// # Crash safety
/// **Deferred** (one chunk): dying here, the chunk stays reserved until the publisher has
/// confirmed the death and scans again.
#[inline]
fn set(hazard: &AtomicU64, word: u64) {
    // ORDERING(HAZARD): full barrier between this and the second read of `seq`. A swap, because
    // who reads it also sees the `clear` of the borrow before, which another thread may have done.
    swap_fenced(hazard, word);
}

/// Ends a borrow, or takes a failed one back.
#[inline]
pub(crate) fn clear(hazard: &AtomicU64) {
    // ORDERING(HAZARD_CLEAR): pairs with `held`; our reads of the chunk come before it.
    hazard.store(0, unless_fault("hazard.clear.relaxed", Release));
}

/// Publisher, before a scan: every retired entry was overwritten before, every hazard that is set
/// after it fails its check.
#[inline]
pub(crate) fn barrier() {
    // ORDERING(HAZARD): pairs with `set` and `Entry::unchanged_after_hazard`.
    if !fault("hazard.barrier.missing") {
        fence(SeqCst);
    }
}

/// Publisher: calls `found` with every location that `hazards` hold of source `slot`.
#[inline]
pub(crate) fn held(hazards: &[AtomicU64], slot: usize, mut found: impl FnMut(Location)) {
    for hazard in hazards {
        // ORDERING(HAZARD_CLEAR): pairs with `clear`; then the chunk is ours to write.
        let word = hazard.load(unless_fault("hazard.held.relaxed", Acquire));
        if let Some(location) = held_by(word, slot) {
            found(location);
        }
    }
}

/// Subscriber: how many of its hazards are held. At 0 nobody reads through them any more.
pub(crate) fn held_count(hazards: &[AtomicU64]) -> usize {
    // ORDERING(HAZARD_CLEAR): pairs with `clear`, perhaps by another thread; then the maps may
    // go, and closing the port tells the publisher.
    let order = unless_fault("hazard.held_count.relaxed", Acquire);
    hazards.iter().filter(|hazard| hazard.load(order) != 0).count()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_hazard_word_names_its_source_and_chunk_only() {
        let at = Location::new(3, u32::MAX);
        let word = hazard_word(95, at);
        assert_eq!(held_by(word, 95), Some(at));
        assert_eq!(held_by(word, 94), None);
        assert_eq!(held_by(0, 0), None);
        assert_eq!(held_by(at.encode(), 0), None, "not marked held");
    }

    #[test]
    fn locations_round_trip_and_garbage_is_none() {
        let at = Location::new(u16::MAX, 7);
        assert_eq!(Location::decode(at.encode()), Some(at));
        assert_eq!(Location::decode(1 << 48), None);
    }
}
