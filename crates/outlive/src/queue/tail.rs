//! The producer's end of a lane: where it writes next, and how far it may. See `lane`.

use super::lane::{HEADER_BYTES, JUMP, KIND_BITS, PAD, RUN, RUN_BYTES, RUN_CLOSED, Ring};

/// The producer's end of a lane: where it writes next, and how far it may.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tail {
    /// Start of the next record, or of the open run.
    pos: u64,
    /// Records must end here at the latest: free space and the ring's end.
    limit: u64,
    /// Everything before it is consumed.
    consumed: u64,
    capacity: u64,
    unit: u64,
    /// Messages in the open run; 0 when none is open.
    run: u32,
}

/// A run to which messages are added: its offset, and how many it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenRun {
    pub(crate) at: u64,
    count: u32,
}

impl OpenRun {
    /// Where the next message of `item` bytes goes, as an offset.
    #[inline(always)]
    pub(crate) fn next(self, item: u64) -> u64 {
        self.at + HEADER_BYTES + u64::from(self.count) * item
    }
}

impl Tail {
    /// The end of an empty segment.
    pub(crate) fn new(capacity: u64, unit: u64) -> Self {
        let mut tail = Self { pos: 0, limit: 0, consumed: 0, capacity, unit, run: 0 };
        tail.set_consumed(0);
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
        self.pos + if self.run > 0 { RUN_BYTES } else { 0 } - self.consumed
    }

    /// Whether everything is consumed, as far as is known; an open run counts as not.
    pub(crate) fn is_drained(&self) -> bool {
        self.run == 0 && self.consumed == self.pos
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
        self.run == 0 && self.pos + bytes <= self.limit
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

    /// Commit point of the record of `bytes` at `pos`, whose payload is written.
    ///
    /// # Crash safety
    /// **Strict.** Before the last store nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit(&mut self, ring: Ring<'_>, bytes: u64, word: u64) {
        debug_assert!(self.fits(bytes));
        ring.clear(self.pos + bytes);
        ring.store(self.pos, word);
        self.pos += bytes;
    }

    /// The open run; `None` when one must be begun.
    #[inline(always)]
    pub(crate) fn open_run(&self) -> Option<OpenRun> {
        (self.run > 0).then_some(OpenRun { at: self.pos, count: self.run })
    }

    /// Makes ready for a run at `pos`, where `RUN_BYTES` fit.
    #[inline(always)]
    pub(crate) fn begin_run(&mut self, ring: Ring<'_>) -> OpenRun {
        debug_assert!(self.fits(RUN_BYTES));
        ring.clear(self.pos + RUN_BYTES);
        OpenRun { at: self.pos, count: 0 }
    }

    /// Commit point of one more message of `open`, the run at `pos`.
    ///
    /// # Crash safety
    /// **Strict.** Before the store nothing happened, after it the message is sent.
    #[inline(always)]
    pub(crate) fn commit_in_run(&mut self, ring: Ring<'_>, open: OpenRun, per_run: u32) {
        let count = open.count + 1;
        ring.store(open.at, u64::from(count) << KIND_BITS | RUN);
        if count == per_run {
            self.pos = open.at + RUN_BYTES;
            self.run = 0;
        } else {
            self.run = count;
        }
    }

    /// Ends the open run, so that another record can follow; returns its offset.
    ///
    /// # Crash safety
    /// **Strict.** Says only that no more messages come in this line.
    pub(crate) fn close_run(&mut self, ring: Ring<'_>) -> Option<u64> {
        if self.run == 0 {
            return None;
        }
        let at = self.pos;
        ring.store(at, u64::from(self.run) << KIND_BITS | RUN_CLOSED);
        self.pos += RUN_BYTES;
        self.run = 0;
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
        self.set_consumed(self.consumed);
        Some(at)
    }

    /// Whether `pad` would help a record of `bytes`.
    pub(crate) fn can_pad(&self, bytes: u64) -> bool {
        let end = self.lap_end();
        self.run == 0 && self.pos + bytes > end && end <= self.space() && self.can_hold(bytes)
    }

    /// Leaves the segment for the next one, which exists already; returns the offset of the mark.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store. Dying before it, the next segment is nobody's.
    pub(crate) fn jump(&self, ring: Ring<'_>) -> u64 {
        debug_assert!(self.run == 0);
        ring.store(self.pos, JUMP);
        self.pos
    }
}
