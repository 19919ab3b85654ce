//! What a consumer cannot do now for one of its producers: it goes on with the others and tries
//! again later.
//!
//! A lane that cannot be opened, or not be followed into its next segment, for lack of memory,
//! descriptors or rights, says nothing of the other lanes. Neither does a client that its server
//! cannot answer yet. The pause before the next try doubles.

use super::reader::{BURST, Lane, Reader};
use crate::os::time::clock;
use crate::{Error, ErrorKind};

/// Pauses between two tries, ns.
const PAUSE_NS_MIN: u64 = 2_000_000;
const PAUSE_NS_MAX: u64 = 250_000_000;

/// When the next try is, and how long the pause before it was.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::queue) struct Pause {
    until_ns: u64,
    ns: u64,
}

impl Pause {
    /// One more failure. Long after the last one it is the first.
    fn next(self, now_ns: u64) -> Self {
        let again = now_ns < self.until_ns.saturating_add(4 * PAUSE_NS_MAX);
        let ns = if again { (2 * self.ns).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX) } else { PAUSE_NS_MIN };
        Self { until_ns: now_ns.saturating_add(ns), ns }
    }
}

/// What is put off.
#[derive(Debug, Default)]
pub(in crate::queue) struct Later {
    /// Lanes that are not read meanwhile.
    pub(in crate::queue) lanes: Vec<Lane>,
    /// Lanes are there that could not be attached.
    look: bool,
    pause: Pause,
    /// Why, until it is told.
    why: Option<Error>,
}

impl Reader {
    /// The message in hand is put back, and its lane not read for a while.
    #[cold]
    pub(crate) fn put_off(&mut self) {
        if self.turn < self.lanes.len() {
            self.put_off_lane(self.turn);
        }
    }

    fn put_off_lane(&mut self, i: usize) {
        self.lay_down();
        let mut lane = self.lanes.remove(i);
        lane.pause = lane.pause.next(clock::now_ns());
        self.later.lanes.push(lane);
        self.burst = BURST;
    }

    /// Lane `i` cannot be read on now.
    #[cold]
    pub(in crate::queue) fn fail_lane(&mut self, i: usize, why: Error) {
        self.put_off_lane(i);
        self.later.why = Some(why);
    }

    /// A new lane cannot be attached now.
    #[cold]
    pub(in crate::queue) fn fail_look(&mut self, why: Error) {
        if !self.later.look {
            self.later.pause = self.later.pause.next(clock::now_ns());
        }
        (self.later.look, self.later.why) = (true, Some(why));
    }

    /// Tries again what is due.
    pub(in crate::queue) fn try_again(&mut self) {
        if self.next_try_ns() > clock::now_ns() {
            return;
        }
        let now = clock::now_ns();
        let later = &mut self.later;
        if later.look && later.pause.until_ns <= now {
            later.look = false;
            self.seen_epoch = u64::MAX;
        }
        for i in (0..later.lanes.len()).rev() {
            if later.lanes[i].pause.until_ns <= now {
                self.lanes.push(later.lanes.swap_remove(i));
            }
        }
    }

    /// When that is; the end of time without any.
    #[inline]
    pub(in crate::queue) fn next_try_ns(&self) -> u64 {
        if !self.later.look && self.later.lanes.is_empty() {
            return u64::MAX;
        }
        let look = if self.later.look { self.later.pause.until_ns } else { u64::MAX };
        self.later.lanes.iter().map(|lane| lane.pause.until_ns).fold(look, u64::min)
    }

    /// What failed since the last call, of one producer alone.
    pub(crate) fn trouble(&mut self) -> Option<Error> {
        self.later.why.take()
    }

    pub(in crate::queue) fn has_trouble(&self) -> bool {
        self.later.why.is_some()
    }

    /// What a new consumer lacks for the lanes that are there already.
    pub(in crate::queue) fn lack(&mut self) -> Option<Error> {
        self.later.why.take_if(|e| is_lack(e))
    }
}

/// Whether an error says that there is too little of something now.
pub(in crate::queue) fn is_lack(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io | ErrorKind::NoSpace | ErrorKind::OutOfMemory)
}
