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

use super::reader::Reader;
use crate::Result;
use crate::os::time::clock;

/// What the clocks of two processes may differ by, ns; far more than they do.
const AHEAD_NS: u64 = 1_000_000;

/// The state of an ordered consumer.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Order {
    pub(in crate::queue) holdback_ns: u64,
    /// Stamp of the last message given out.
    last: u64,
    pub(in crate::queue) late: u64,
    /// When the message that is held back is given out.
    pub(in crate::queue) due_ns: Option<u64>,
}

impl Order {
    pub(in crate::queue) fn new(holdback_ns: u64) -> Self {
        Self { holdback_ns, last: 0, late: 0, due_ns: None }
    }
}

impl Reader {
    /// The message with the earliest stamp, if it may be given out.
    pub(in crate::queue) fn next_in_order(&mut self) -> Result<bool> {
        let mut earliest: Option<(u64, usize)> = None;
        let mut all_show = true;
        let mut i = 0;
        while i < self.lanes.len() {
            let before = self.lanes.len();
            if self.advance(i)? {
                let stamp = self.lanes[i].stamp();
                if earliest.is_none_or(|(first, _)| stamp < first) {
                    earliest = Some((stamp, i));
                }
            } else if self.lanes.len() < before {
                // It ended and another moved to its place; the earliest is before it.
                continue;
            } else {
                all_show = false;
            }
            i += 1;
        }
        let Some(order) = &mut self.order else { return Ok(false) };
        order.due_ns = None;
        let Some((stamp, i)) = earliest else { return Ok(false) };
        let now = clock::now_ns();
        let due = stamp.saturating_add(order.holdback_ns);
        let is_ahead = stamp > now.saturating_add(AHEAD_NS);
        if !all_show && !is_ahead && stamp >= order.last && now < due {
            order.due_ns = Some(due);
            return Ok(false);
        }
        order.late += u64::from(stamp < order.last);
        if !is_ahead {
            order.last = order.last.max(stamp);
        }
        self.turn = i;
        Ok(true)
    }
}
