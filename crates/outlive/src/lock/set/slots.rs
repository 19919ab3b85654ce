//! A bounded set of 64-bit ids, without locks: each place is one word.
//!
//! # Theory of operation
//! Small sets are searched in full; large ones from a place that the id's hash names, over as many
//! places as the *reach* says: so far has any id ever lain from its place. A place is 0 or an id: a
//! removal stores 0 and leaves no mark, since nobody stops searching at a free place.
//!
//! | label     | stores                  | loads                         | carries              |
//! |-----------|-------------------------|-------------------------------|----------------------|
//! | SET_ID    | `insert`, CAS Release   | `contains`, `remove`, Acquire | what was done before |
//! | SET_REACH | `insert`, before the id | all, Acquire                  | how far to look      |
//!
//! # Invariants
//! - An id lies within the reach from its place; the reach never shrinks.
//! - Two threads that insert the same id at the same time may put it in two places; it is one
//!   member all the same: `remove` takes every copy.

use crate::crash_point;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::unless_fault;

/// Sets up to this size are searched linearly.
pub(crate) const LINEAR_MAX: usize = 64;

/// No place is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Where `id` belongs in a set of `len` places.
pub(crate) fn home(id: u64, len: usize) -> usize {
    if len <= LINEAR_MAX {
        return 0;
    }
    let hash = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // The high half of a product spreads evenly over any length.
    ((u128::from(hash ^ hash >> 32) * len as u128) >> 64) as usize
}

/// How many places to look at from there; what others say of the reach is bounded by `len`.
pub(crate) fn search_length(reach: u64, len: usize) -> usize {
    if len <= LINEAR_MAX { len } else { len.min(usize::try_from(reach).unwrap_or(len)).max(1) }
}

/// The words of a set; ids are not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places<'a> {
    pub(crate) reach: &'a AtomicU64,
    pub(crate) words: &'a [AtomicU64],
}

impl<'a> Places<'a> {
    /// The place at distance `d` from where the id belongs.
    fn at(&self, id: u64, d: usize) -> &'a AtomicU64 {
        let len = self.words.len();
        &self.words[(home(id, len) + d) % len]
    }

    /// How many places to look at.
    fn search_length(&self) -> usize {
        // ORDERING(SET_REACH): pairs with `insert`.
        let reach = self.reach.load(unless_fault("set.reach.relaxed", Acquire));
        search_length(reach, self.words.len())
    }

    /// Whether `id` is a member.
    pub(crate) fn contains(&self, id: u64) -> bool {
        // ORDERING(SET_ID): pairs with `insert`.
        (0..self.search_length()).any(|d| self.at(id, d).load(Acquire) == id)
    }

    /// Makes `id` a member; false if it was one.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS. Dying before it, others look a little farther.
    pub(crate) fn insert(&self, id: u64) -> Result<bool, Full> {
        loop {
            let searched = self.search_length();
            let mut free = None;
            for d in 0..searched {
                // ORDERING(SET_ID): pairs with the CAS below.
                let seen = self.at(id, d).load(Acquire);
                if seen == id {
                    return Ok(false);
                }
                if seen == 0 && free.is_none() {
                    free = Some(d);
                }
            }
            let beyond = || searched..self.words.len();
            let free = free.or_else(|| beyond().find(|d| self.at(id, *d).load(Relaxed) == 0));
            let Some(d) = free else {
                return if crate::sync::fault("set.full_unchecked") { Ok(true) } else { Err(Full) };
            };
            if d >= searched && !crate::sync::fault("set.reach.missing") {
                // ORDERING(SET_REACH): pairs with `reach`; before the id, so that whoever is told
                // of the id finds it.
                self.reach.fetch_max(d as u64 + 1, AcqRel);
                crash_point!("set.reach_grown");
            }
            // ORDERING(SET_ID): pairs with the loads.
            match self.at(id, d).compare_exchange(0, id, AcqRel, Relaxed) {
                Ok(_) => return Ok(true),
                Err(seen) if seen == id => return Ok(false),
                // Somebody took the place: that was progress.
                Err(_) => {}
            }
        }
    }

    /// Removes `id`; false if it was not a member.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the CAS.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut removed = false;
        crash_point!("set.before_remove");
        for d in 0..self.search_length() {
            let place = self.at(id, d);
            // ORDERING(SET_ID): pairs with `insert`.
            removed |=
                place.load(Acquire) == id && place.compare_exchange(id, 0, AcqRel, Relaxed).is_ok();
        }
        removed
    }

    /// All members at some moment each.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + use<'a> {
        // ORDERING(SET_ID): pairs with `insert`.
        self.words.iter().map(|word| word.load(Acquire)).filter(|id| *id != 0)
    }
}
