//! How long one sleeps at a stretch: what a wake that never comes may cost.

use crate::os::time::clock;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU64, fault};

/// Between two looks at a file lock, while only that can tell of a death.
pub(crate) const POLL_NS: u64 = 2_000_000;

/// The longest time between two looks of one who has waited long.
const SELDOM_NS: u64 = 50_000_000;

/// When somebody who waits looks for deaths, where one sleep cannot be on a word and on tokens:
/// every [`POLL_NS`] at first, then after an eighth of the time waited so far. So a death is seen
/// late by an eighth of the wait at most, and a long wait costs no processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    began_ns: u64,
}

impl Looks {
    pub(crate) fn begin() -> Self {
        Self { began_ns: clock::now_ns() }
    }

    /// How long to sleep before the next look.
    pub(crate) fn pause_ns(self) -> u64 {
        if fault("sleep.looks_often") {
            return POLL_NS;
        }
        (clock::now_ns().saturating_sub(self.began_ns) / 8).clamp(POLL_NS, SELDOM_NS)
    }
}

static SLICE_NS: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Longest sleep before everything is looked at again: bounds what a corrupted bell can cost.
pub(crate) fn slice_ns_max() -> u64 {
    SLICE_NS.load(Relaxed)
}

/// Lets a test sleep so long that a lost wake shows.
pub(crate) fn set_slice_ns_max(ns: u64) {
    SLICE_NS.store(ns, Relaxed);
}
