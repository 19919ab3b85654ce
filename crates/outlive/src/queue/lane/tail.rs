//! The producer's end of a lane: where it writes next, and how far it may. See `lane`.
//!
//! # Taking lines back
//! The consumer has read the lines of the last round, so its cache shares them, and the first store
//! into each must take it back. The core does that for all stores that wait in its store buffer at
//! once; with several per line that buffer holds those of a few lines only. So one store into each
//! of `AHEAD_LINES` lines is made ahead, one behind the other. For the same reason a message costs
//! two stores and no more: how many the open run has is read back from its header.
//! Figures: bench/results/2026-11.md.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::record::{
    HEADER_BYTES, JUMP, KIND_BITS, KIND_MASK, ONE, PAD, RUN, RUN_BYTES, RUN_CLOSED, Ring,
};
use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicU64, fault, unless_fault};

/// The producer's end of a lane: where it writes next, and how far it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Start of the next record, or of the open run.
    pos: u64,
    /// Records must end here at the latest: free space and the ring's end.
    limit: u64,
    /// Everything before it is consumed.
    consumed: u64,
    /// Where the last padding began, and its end.
    padding: (u64, u64),
    capacity: u64,
    unit: u64,
    /// Header of the run at `pos`: open, or full and not left yet.
    open: Option<NonNull<AtomicU64>>,
    /// Headers of runs are clear up to and including the one here.
    clear_to: u64,
    /// Where records are small: lines up to here were taken back.
    ours_to: u64,
}

/// Lines that are taken back together.
const AHEAD_LINES: u64 = 16;

/// Records up to this are small. The stores of a larger one fill several lines anyway.
const AHEAD_BYTES_MAX: u64 = 256;

/// A run to which messages are added: its header, and what that says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRun {
    /// As it is written there; `RUN` before the first message.
    word: u64,
    pub(in crate::queue) header: NonNull<AtomicU64>,
}

impl OpenRun {
    /// Where the next message of `item` bytes goes, from the header on.
    #[inline(always)]
    pub(crate) fn next(self, item: u64) -> u64 {
        // Of a header with room its low half is all.
        HEADER_BYTES + u64::from(self.word as u32 >> KIND_BITS) * item
    }
}

impl Tail {
    /// The end of an empty segment.
    pub(crate) fn new(capacity: u64, unit: u64) -> Self {
        let mut tail = Self {
            pos: 0,
            limit: 0,
            consumed: 0,
            padding: (0, 0),
            capacity,
            unit,
            open: None,
            clear_to: 0,
            ours_to: 0,
        };
        tail.set_consumed(0);
        tail
    }

    /// The end of a segment through which `pos` bytes have gone.
    #[cfg(test)]
    pub(in crate::queue) fn later(capacity: u64, unit: u64, pos: u64) -> Self {
        let mut tail = Self { pos, clear_to: pos, ours_to: pos, ..Self::new(capacity, unit) };
        tail.set_consumed(pos);
        tail
    }

    #[inline]
    pub(crate) fn pos(&self) -> u64 {
        self.pos
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes that the consumer has not let go of, as far as is known.
    pub(crate) fn used(&self) -> u64 {
        self.behind_run() - self.consumed
    }

    /// Whether everything is consumed, as far as is known; an open run counts as not.
    pub(crate) fn is_drained(&self) -> bool {
        self.open.is_none() && self.consumed == self.pos
    }

    /// Whether every message is consumed: a consumer with nothing to receive may leave padding
    /// unread for as long as it likes.
    pub(crate) fn is_drained_but_for_padding(&self) -> bool {
        let (from, end) = self.padding;
        let padding = end == self.pos && from <= self.consumed && !fault("lane.padding_counts");
        self.is_drained() || self.open.is_none() && padding
    }

    /// The consumer has let go of everything before `consumed`.
    pub(crate) fn set_consumed(&mut self, consumed: u64) {
        debug_assert!(consumed <= self.pos + RUN_BYTES);
        self.consumed = consumed;
        self.limit = self.space().min(self.lap_end());
    }

    /// Room for a header is kept behind it.
    fn space(&self) -> u64 {
        self.consumed + self.capacity - self.unit
    }

    fn lap_end(&self) -> u64 {
        (self.pos & !(self.capacity - 1)) + self.capacity
    }

    /// Whether a record of `bytes`, payload and head, may be written at `pos` now.
    #[inline(always)]
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        self.open.is_none() && self.pos + bytes <= self.limit
    }

    /// Whether records can go on for a while, a quarter of the ring or up to its end.
    pub(crate) fn has_plenty(&self) -> bool {
        self.used() <= self.capacity / 4 * 3
    }

    /// How often the ring's end was passed.
    pub(crate) fn lap(&self) -> u64 {
        self.pos / self.capacity
    }

    /// Whether a record of `bytes` fits into this segment at all.
    pub(crate) fn can_hold(&self, bytes: u64) -> bool {
        bytes <= self.capacity - self.unit
    }

    /// Makes ready for a record of `bytes` at `pos`, where they fit.
    #[inline(always)]
    pub(crate) fn begin(&mut self, ring: Ring<'_>, bytes: u64) {
        let end = self.pos + bytes;
        if end > self.ours_to && bytes <= AHEAD_BYTES_MAX {
            self.take_back(ring, end);
        }
    }

    /// Takes back the lines behind `end`, as far as there is room.
    #[inline(never)]
    fn take_back(&mut self, ring: Ring<'_>, end: u64) {
        let from = end.next_multiple_of(RUN_BYTES);
        self.ours_to = from + AHEAD_LINES * RUN_BYTES;
        for at in (from..self.room_up_to(self.ours_to)).step_by(RUN_BYTES as usize) {
            ring.clear(at);
        }
    }

    /// `offset`, or as far as there is room.
    fn room_up_to(&self, offset: u64) -> u64 {
        if fault("tail.ahead.unlimited") { offset } else { offset.min(self.limit) }
    }

    /// Commit point of the record of `bytes` at `at`, which is `pos`; its payload is written.
    ///
    /// # Crash safety
    /// **Strict.** Before the last store nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit(&mut self, ring: Ring<'_>, at: u64, bytes: u64, word: u64) {
        debug_assert!(at == self.pos && self.fits(bytes));
        let end = at + bytes;
        ring.clear(end);
        ring.store(at, word);
        (self.pos, self.clear_to) = (end, end);
    }

    /// The open run, of at most `per_run` messages; `None` when one must be begun.
    #[inline(always)]
    pub(crate) fn open_run(&self, per_run: u32) -> Option<OpenRun> {
        let header = self.open?;
        // SAFETY: `begin_run` took it from the lane's ring, which outlives the tail.
        let word = unsafe { header.as_ref() }.load(Relaxed);
        (word < u64::from(per_run) * ONE).then_some(OpenRun { word, header })
    }

    /// Opens a run, behind the one that is full; a message follows at once. `None`: there is no
    /// room.
    #[inline(always)]
    pub(crate) fn begin_run(&mut self, ring: Ring<'_>) -> Option<OpenRun> {
        let pos = self.behind_run();
        if pos + RUN_BYTES > self.limit {
            return None;
        }
        self.pos = pos;
        if pos >= self.clear_to {
            self.clear_ahead(ring);
        }
        let header = ring.word(pos);
        self.open = Some(header);
        Some(OpenRun { word: RUN, header })
    }

    /// Where the next record starts once no message is added to the run at `pos`.
    #[inline(always)]
    fn behind_run(&self) -> u64 {
        self.pos + if self.open.is_some() { RUN_BYTES } else { 0 }
    }

    /// Clears the headers of the lines behind `pos`, as far as there is room.
    #[inline(never)]
    fn clear_ahead(&mut self, ring: Ring<'_>) {
        let to = self.room_up_to(self.pos + AHEAD_LINES * RUN_BYTES);
        for at in (self.pos + RUN_BYTES..=to).step_by(RUN_BYTES as usize) {
            ring.clear(at);
        }
        self.clear_to = to;
    }

    /// Commit point of one more message of `run`, at `pos`.
    ///
    /// # Crash safety
    /// **Strict.** Before the store nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit_in_run(&mut self, run: OpenRun) {
        // SAFETY: as in `open_run`.
        let header = unsafe { run.header.as_ref() };
        // ORDERING(LANE_READY): pairs with `peek`; carries the message.
        header.store(run.word + ONE, unless_fault("lane.commit.relaxed", Release));
    }

    /// Ends the run at `pos`, if any, so that another record can follow; returns the offset of
    /// one that was not full.
    ///
    /// # Crash safety
    /// **Strict.** Says only that no more messages come in this line.
    pub(crate) fn close_run(&mut self, ring: Ring<'_>, per_run: u32) -> Option<u64> {
        let (at, open) = (self.pos, self.open_run(per_run));
        (self.pos, self.open) = (self.behind_run(), None);
        ring.store(at, (open?.word & !KIND_MASK) | RUN_CLOSED);
        Some(at)
    }

    /// Goes on at the ring's start where a record of `bytes` would cross its end; returns the
    /// offset of the padding.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the padding's header. It carries no message.
    pub(crate) fn pad(&mut self, ring: Ring<'_>, bytes: u64) -> Option<u64> {
        if !self.can_pad(bytes) {
            return None;
        }
        let (at, end) = (self.pos, self.lap_end());
        ring.clear(end);
        ring.store(at, (end - at) << KIND_BITS | PAD);
        self.pos = end;
        self.padding = (at, end);
        self.clear_to = end;
        self.set_consumed(self.consumed);
        Some(at)
    }

    /// Whether `pad` would help a record of `bytes`.
    pub(crate) fn can_pad(&self, bytes: u64) -> bool {
        let end = self.lap_end();
        self.open.is_none() && self.pos + bytes > end && end <= self.space() && self.can_hold(bytes)
    }

    /// Leaves the segment for the next one, which exists already; returns the offset of the mark.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store. Dying before it, the next segment is nobody's.
    pub(crate) fn jump(&self, ring: Ring<'_>) -> u64 {
        debug_assert!(self.open.is_none());
        ring.store(self.pos, JUMP);
        self.pos
    }
}
