//! Whose turn it is among a consumer's lanes, and for how long.

use crate::os::process::fork;

/// Rows received from one lane while others wait, and messages of a row received one by one.
pub(super) const BURST: u32 = 128;
/// Rows in a row from which on more are expected.
const STREAM: u32 = 3;
/// Most pauses of a rest: where a stream was received up to its end, its producer is left alone
/// for about as long as that took. Each look takes the line that it writes.
const REST_PAUSES_MAX: u32 = 64;

/// The lane that is read.
#[derive(Debug)]
pub(super) struct Turn {
    lane: usize,
    /// Rows of it without a look at others; `BURST` means look around. In a queue with stamps it is
    /// never set back.
    rows: u32,
    /// Rows received since nothing was found, without `rows`; at most `REST_PAUSES_MAX`.
    streak: u32,
    /// A forked child has no turn.
    generation: u32,
}

impl Turn {
    pub(super) fn new() -> Self {
        Self { lane: 0, rows: BURST, streak: 0, generation: fork::fork_generation() }
    }

    #[inline(always)]
    pub(super) fn lane(&self) -> usize {
        self.lane
    }

    /// Whether the lane may be read without a look at the others.
    #[inline(always)]
    pub(super) fn goes_on(&self) -> bool {
        self.rows < BURST && self.generation == fork::fork_generation()
    }

    /// Whether the next row is taken up at once: in a stream the next call finds it in hand. Not
    /// where messages come one by one: the answer to this one would wait for the line of the next.
    #[inline(always)]
    pub(super) fn is_stream(&self) -> bool {
        (STREAM - 1..BURST - 1).contains(&self.rows)
    }

    /// One more row of a stream was received.
    #[inline(always)]
    pub(super) fn count_in_stream(&mut self) {
        self.rows += 1;
    }

    /// One more row was received.
    #[inline]
    pub(super) fn count(&mut self) {
        self.rows = self.rows.saturating_add(1);
    }

    /// The next call looks around.
    pub(super) fn end(&mut self) {
        self.rows = BURST;
    }

    /// A look at all lanes begins: one of them is next.
    pub(super) fn look_around(&mut self, stamped: bool) {
        let rows = if stamped { 0 } else { self.rows };
        self.rows = if stamped { BURST } else { 0 };
        self.streak = (self.streak + rows).min(REST_PAUSES_MAX);
    }

    /// Nothing was found: rests if that was the end of a stream; `true` when it did.
    pub(super) fn rest(&mut self) -> bool {
        let rest = std::mem::take(&mut self.streak);
        if rest < STREAM {
            return false;
        }
        (0..rest).for_each(|_| std::hint::spin_loop());
        true
    }

    pub(super) fn give_to(&mut self, lane: usize) {
        self.lane = lane;
    }

    /// The turn of the next one of `lanes`.
    pub(super) fn pass_on(&mut self, lanes: usize) {
        self.lane = if self.lane + 1 < lanes { self.lane + 1 } else { 0 };
    }

    /// The turn of the one before, of `lanes`.
    pub(super) fn step_back(&mut self, lanes: usize) {
        self.lane = if self.lane > 0 { self.lane - 1 } else { lanes.saturating_sub(1) };
    }

    /// As after as many rows.
    #[cfg(test)]
    pub(super) fn set_rows(&mut self, rows: u32) {
        self.rows = rows;
    }
}
