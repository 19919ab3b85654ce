//! Receiving by time stamp over all lanes.
//!
//! # Theory of operation
//! A stamp is taken before the commit, so an empty lane may still bring an earlier message. The
//! earliest message at hand is given out once every other lane shows a later one, or once it is
//! older than the holdback. What comes with an earlier stamp than one given out already is late:
//! given out at once, and counted.
//!
//! Stamps are claims. One from the future, of a producer with another clock, is not waited for, and
//! does not make those late that follow it.

use std::time::Duration;

/// What the clocks of two processes may differ by, ns; far more than they do.
const AHEAD_NS: u64 = 1_000_000;

/// The state of an ordered consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    holdback_ns: u64,
    /// Stamp of the last message given out.
    last: u64,
    late: u64,
    /// When the message that is held back is given out.
    due_ns: Option<u64>,
}

impl Order {
    pub(super) fn new(holdback: Duration) -> Self {
        let holdback_ns = holdback.as_nanos().min(1 << 62) as u64;
        Self { holdback_ns, last: 0, late: 0, due_ns: None }
    }

    /// Messages that came later than their stamp would have it.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// No message shows.
    pub(super) fn nothing(&mut self) {
        self.due_ns = None;
    }

    /// Whether the earliest message that shows is given out now; else it is held back. `all_show`:
    /// no lane is empty or put off.
    pub(super) fn gives_out(&mut self, stamp: u64, all_show: bool, now_ns: u64) -> bool {
        let due = stamp.saturating_add(self.holdback_ns);
        let is_ahead = stamp > now_ns.saturating_add(AHEAD_NS);
        if !all_show && !is_ahead && stamp >= self.last && now_ns < due {
            self.due_ns = Some(due);
            return false;
        }
        self.due_ns = None;
        self.late += u64::from(stamp < self.last);
        if !is_ahead {
            self.last = self.last.max(stamp);
        }
        true
    }
}
