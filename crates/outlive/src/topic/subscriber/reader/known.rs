//! The publishers of a topic's directory, as a subscriber found them: whom it need not look at
//! again, and when it looks.

use std::collections::HashSet;

use crate::Error;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::os::time::pause::Pause;
use crate::sync::fault;
use crate::topic::membership::entry::PublisherId;

/// Calls that find nothing between two tries to attach a ring at most.
const RETRY_STEP_MAX: u64 = 1024;

/// Those of the last look.
#[derive(Debug)]
pub(super) struct Known {
    /// They were attached or left out.
    settled: HashSet<PublisherId>,
    /// Their rings could not be looked at, and that was told.
    refused: HashSet<PublisherId>,
    /// When to try again, where there are such.
    retry: Option<Retry>,
    /// The last look was kept from something by a lack; there is another after the pause.
    lack: bool,
    pause: Pause,
    /// What it was, until it is told.
    trouble: Option<Error>,
    seen_epoch: u64,
    /// So many were settled when they were rung for a second time.
    rung_for: usize,
}

/// After the system refused a look at a ring.
#[derive(Clone, Copy, Debug)]
struct Retry {
    /// Calls that find nothing until the next try.
    left: u64,
    /// As many as there were at first, doubled each time.
    step: u64,
}

impl Known {
    /// Nobody, before the first look.
    pub(super) fn new() -> Self {
        let (settled, refused) = (HashSet::new(), HashSet::new());
        let (lack, pause, trouble) = (false, Pause::default(), None);
        let (retry, seen_epoch, rung_for) = (None, u64::MAX, 0);
        Self { settled, refused, retry, lack, pause, trouble, seen_epoch, rung_for }
    }

    /// The bell at the last look.
    #[inline]
    pub(super) fn seen_epoch(&self) -> u64 {
        self.seen_epoch
    }

    pub(super) fn contains(&self, id: PublisherId) -> bool {
        self.settled.contains(&id)
    }

    /// `id` was attached, or left out for good.
    pub(super) fn settle(&mut self, id: PublisherId) {
        self.settled.insert(id);
    }

    /// The ring of `id` could not be looked at; `true` the first time.
    pub(super) fn refuse(&mut self, id: PublisherId) -> bool {
        self.refused.insert(id)
    }

    /// Only those of `present` are there. `again`: one of them is to be tried again, after 1, 2,
    /// 4.. calls.
    pub(super) fn keep(&mut self, present: &HashSet<PublisherId>, again: bool) {
        self.settled.retain(|id| present.contains(id));
        self.refused.retain(|id| present.contains(id));
        let step = self.retry.map_or(1, |r| (r.step * 2).min(RETRY_STEP_MAX));
        self.retry = again.then_some(Retry { left: step, step });
    }

    /// All was done that the bell rang for up to `epoch`; what was lacking before is over.
    pub(super) fn looked(&mut self, epoch: u64) {
        (self.seen_epoch, self.lack) = (epoch, false);
        if !fault("known.keeps_trouble") {
            self.trouble = None;
        }
    }

    /// A look lacked memory, descriptors or room. All else was done that the bell rang for up to
    /// `epoch`: whoever waits need not wake for that again.
    pub(super) fn lacks(&mut self, epoch: u64, why: Error) {
        self.pause = self.pause.next(clock::now_ns());
        (self.seen_epoch, self.lack, self.trouble) = (epoch, true, Some(why));
    }

    /// What a look lacked, if that has yet to be told.
    #[inline]
    pub(super) fn take_trouble(&mut self) -> Option<Error> {
        self.trouble.take()
    }

    pub(super) fn has_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// Whether something was lacking at the last look.
    pub(super) fn has_lack(&self) -> bool {
        self.lack
    }

    /// When to look again for what was lacking.
    pub(super) fn next_look(&self) -> Deadline {
        if self.lack { Deadline::at_ns(self.pause.until_ns()) } else { Deadline::NEVER }
    }

    /// Whether one is to be tried again.
    #[inline]
    pub(super) fn has_retry(&self) -> bool {
        self.retry.is_some()
    }

    /// Whether one is to be tried again before a sleep: not amid a lack, which has its own time.
    #[inline]
    pub(super) fn tries_before_sleep(&self) -> bool {
        self.retry.is_some() && (!self.lack || fault("known.tries_amid_lack"))
    }

    /// Whether that is so, and not yet as rarely as it ever gets.
    pub(super) fn has_early_retry(&self) -> bool {
        self.retry.is_some_and(|retry| retry.step < RETRY_STEP_MAX)
    }

    /// Whether one is to be tried again now.
    pub(super) fn is_due(&mut self) -> bool {
        if self.lack && !fault("known.tries_amid_lack") {
            return self.next_look().has_passed();
        }
        let Some(retry) = &mut self.retry else { return false };
        retry.left = retry.left.saturating_sub(1);
        retry.left == 0
    }

    /// Whether to ring for those who have not noticed us, once for each set of publishers: one that
    /// never publishes never looks either.
    pub(super) fn ring_again(&mut self, is_unnoticed: impl FnOnce() -> bool) -> bool {
        let ring = self.rung_for < self.settled.len() && is_unnoticed();
        if ring {
            self.rung_for = self.settled.len();
        }
        ring
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn amid_a_lack_nothing_is_tried_before_its_time() {
        let mut known = Known::new();
        known.keep(&HashSet::new(), true);
        for epoch in 0..9 {
            known.lacks(epoch, Error::new(ErrorKind::OutOfMemory, "mapping", "/n", "wait"));
        }
        let tries = (0..100).filter(|_| known.is_due() || known.tries_before_sleep()).count();
        assert!(tries == 0 || known.next_look().has_passed());
        known.looked(9);
        assert!(known.tries_before_sleep(), "it is over");
    }
}
