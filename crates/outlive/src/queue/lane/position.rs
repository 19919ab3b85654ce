//! How far a lane is consumed: two words that only the consumer stores.
//!
//! # Theory of operation
//! `position` names the record that is read next; everything before it is the producer's to
//! overwrite. `progress` counts the messages already received of that record, where a record holds
//! several; it is tagged with the record's offset and means nothing beside another position.
//!
//! | step                        | stores, in this order                                    |
//! |-----------------------------|----------------------------------------------------------|
//! | a message within a record   | progress := {offset of the record, messages done}        |
//! | the last of a record        | position := next record, then progress := none           |
//! | segment k is consumed       | position := {k + 1, 0}                                   |
//! | a new consumer takes over   | reads both, then progress := none unless its tag matches |
//!
//! Each step is one store that counts; dying between two leaves a `progress` whose tag does not
//! match, which the successor ignores and clears.
//!
//! | label     | store                | load                  | carries                         |
//! |-----------|----------------------|-----------------------|---------------------------------|
//! | LANE_FREE | `advance`, Release   | `consumed`, Acquire   | "we read these bytes; yours"    |

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{fault, unless_fault};

/// Bits of the offset, which counts 8 bytes.
const OFFSET_BITS: u32 = 40;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;
/// Offsets count bytes since the start of their segment, modulo this.
pub(crate) const OFFSET_MODULUS: u64 = 8 << OFFSET_BITS;
/// Last number a segment may have.
pub(crate) const SEGMENT_MAX: u32 = (1 << (64 - OFFSET_BITS)) - 2;
/// Most messages of one record.
pub(crate) const COUNT_MAX: u64 = (1 << (64 - OFFSET_BITS)) - 2;

/// `position` of a lane that is not read any more, because its bytes are corrupt.
pub(crate) const REFUSED: u64 = u64::MAX;
/// `progress` while nothing of the record at `position` was received.
const NONE: u64 = u64::MAX;

/// A place in a lane: segment, and bytes since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) segment: u32,
    pub(crate) offset: u64,
}

impl Position {
    pub(crate) const START: Self = Self { segment: 0, offset: 0 };

    #[inline]
    pub(crate) fn encode(self) -> u64 {
        debug_assert!(self.segment <= SEGMENT_MAX && self.offset % 8 == 0);
        u64::from(self.segment) << OFFSET_BITS | ((self.offset / 8) & OFFSET_MASK)
    }

    /// `None`: the lane is refused.
    #[inline]
    pub(crate) fn decode(word: u64) -> Option<Self> {
        if word == REFUSED {
            return None;
        }
        let segment = (word >> OFFSET_BITS) as u32;
        Some(Self { segment, offset: (word & OFFSET_MASK) * 8 })
    }
}

/// Bytes from `from` up to `to`, where both count modulo `OFFSET_MODULUS`.
#[inline]
pub(crate) const fn distance(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from) & (OFFSET_MODULUS - 1)
}

/// The two words of a lane in the `consumer` file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    position: &'a AtomicU64,
    progress: &'a AtomicU64,
}

impl<'a> Place<'a> {
    #[inline]
    pub(crate) fn new(position: &'a AtomicU64, progress: &'a AtomicU64) -> Self {
        Self { position, progress }
    }

    /// Consumer: a lane that nobody has read from.
    ///
    /// # Crash safety
    /// **Strict.** The slot is nobody's until its port is stored.
    pub(crate) fn reset(self) {
        self.progress.store(NONE, Relaxed);
        self.position.store(Position::START.encode(), Relaxed);
    }

    /// Consumer: `done` messages of the record at `offset` were received.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store.
    #[inline]
    pub(crate) fn within(self, offset: u64, done: u32) {
        // Nobody but a successor reads it, and that one comes after our death.
        self.progress.store(progress(offset, done), Relaxed);
    }

    /// Consumer: everything before `to`, in the same segment, was received. `partly`: progress was
    /// stored for the record that ends here.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position.
    #[inline]
    pub(crate) fn advance(self, to: Position, partly: bool) {
        // ORDERING(LANE_FREE): pairs with `consumed`; our reads of the record come before it.
        self.position.store(to.encode(), unless_fault("position.advance.relaxed", Release));
        if partly && !fault("position.advance.keeps_progress") {
            self.progress.store(NONE, Relaxed);
        }
    }

    /// Consumer: everything in the segments before `segment` was received.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position; the old segment is unlinked after it.
    pub(crate) fn jump(self, segment: u32) {
        // Progress is none here: the last record of the segment was left by `advance`.
        // ORDERING(LANE_FREE): pairs with `consumed`.
        self.position.store(Position { segment, offset: 0 }.encode(), Release);
    }

    /// Consumer: the lane is not read any more.
    ///
    /// # Crash safety
    /// **Poisons.** The producer's next look answers `Corrupt`; its lane goes when it goes.
    pub(crate) fn refuse(self) {
        self.position.store(REFUSED, Release);
    }

    /// Producer: where the consumer is; `None` when it refused the lane.
    #[inline]
    pub(crate) fn consumed(self) -> Option<Position> {
        // ORDERING(LANE_FREE): pairs with `advance` and `jump`; then the bytes are ours to write.
        Position::decode(self.position.load(unless_fault("position.consumed.relaxed", Acquire)))
    }

    /// New consumer: where its predecessor was, and how many messages of that record are done.
    ///
    /// # Crash safety
    /// **Strict.** Clears a progress without meaning; again is harmless.
    pub(crate) fn take_over(self) -> Option<(Position, u32)> {
        let (position, done) = self.peek()?;
        if done == 0 {
            self.progress.store(NONE, Relaxed);
        }
        Some((position, done))
    }

    /// Where the consumer is, and how many messages of that record are done; while nobody stores.
    pub(crate) fn peek(self) -> Option<(Position, u32)> {
        let position = Position::decode(self.position.load(Acquire))?;
        let progress = self.progress.load(Relaxed);
        let fits = progress != NONE && progress & !COUNT_MASK == tag(position.offset);
        let done = if fits { (progress & COUNT_MASK) as u32 } else { 0 };
        Some((position, if fault("position.take_over.no_progress") { 0 } else { done }))
    }

    /// Messages received of the record at the position.
    #[inline]
    pub(crate) fn progress(self) -> &'a AtomicU64 {
        self.progress
    }

    /// The word that a blocked producer sleeps on.
    #[inline]
    pub(crate) fn word(self) -> &'a AtomicU64 {
        self.position
    }
}

const COUNT_MASK: u64 = (1 << (64 - OFFSET_BITS)) - 1;

/// `progress` once `done` messages of the record at `offset` were received.
#[inline]
pub(crate) const fn progress(offset: u64, done: u32) -> u64 {
    tag(offset) | done as u64
}

#[inline]
const fn tag(offset: u64) -> u64 {
    (offset / 8) << (64 - OFFSET_BITS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words() -> (AtomicU64, AtomicU64) {
        (AtomicU64::new(0), AtomicU64::new(NONE))
    }

    #[test]
    fn positions_round_trip_and_offsets_count_modulo() {
        for (segment, offset) in [(0, 0), (1, 8), (SEGMENT_MAX, OFFSET_MODULUS - 8)] {
            let p = Position { segment, offset };
            assert_eq!(Position::decode(p.encode()), Some(p));
        }
        let wrapped = Position { segment: 3, offset: OFFSET_MODULUS + 16 };
        assert_eq!(Position::decode(wrapped.encode()), Some(Position { segment: 3, offset: 16 }));
        assert_eq!(Position::decode(REFUSED), None);
        assert_eq!(distance(OFFSET_MODULUS - 8, OFFSET_MODULUS + 8), 16);
        assert_eq!(distance(OFFSET_MODULUS - 8, 8), 16);
    }

    #[test]
    fn a_successor_resumes_at_the_message_where_its_predecessor_died() {
        let (position, progress) = words();
        let place = Place::new(&position, &progress);
        let at = |offset| Position { segment: 2, offset };
        place.reset();
        assert_eq!(place.take_over(), Some((Position::START, 0)));
        place.advance(at(64), false);
        assert_eq!(place.take_over(), Some((at(64), 0)));
        place.within(64, 5);
        assert_eq!(place.take_over(), Some((at(64), 5)));
        assert_eq!(place.take_over(), Some((at(64), 5)), "again is harmless");
        place.advance(at(128), true);
        assert_eq!(place.take_over(), Some((at(128), 0)));
    }

    #[test]
    fn a_progress_of_another_record_is_ignored_and_cleared() {
        // Died between the store of the position and that of the progress.
        let (position, progress) = words();
        let place = Place::new(&position, &progress);
        place.within(64, 5);
        position.store(Position { segment: 0, offset: 128 }.encode(), Relaxed);
        assert_eq!(place.take_over(), Some((Position { segment: 0, offset: 128 }, 0)));
        assert_eq!(progress.load(Relaxed), NONE);
    }

    #[test]
    fn a_finished_record_leaves_no_progress_that_could_fit_the_next_segment() {
        let (position, progress) = words();
        let place = Place::new(&position, &progress);
        place.within(0, 5);
        place.advance(Position { segment: 0, offset: 64 }, true);
        place.jump(1);
        assert_eq!(place.take_over(), Some((Position { segment: 1, offset: 0 }, 0)));
    }

    #[test]
    fn a_refused_lane_has_no_position() {
        let (position, progress) = words();
        let place = Place::new(&position, &progress);
        place.refuse();
        assert_eq!(place.consumed(), None);
        assert_eq!(place.take_over(), None);
    }
}
