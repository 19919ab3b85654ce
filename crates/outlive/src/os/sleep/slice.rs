//! How long one sleeps at a stretch: what a wake that never comes may cost.

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// Between two looks at a file lock, while only that can tell of a death.
pub(crate) const POLL_NS: u64 = 2_000_000;

static SLICE_NS: AtomicU64 = AtomicU64::new(1_000_000_000);

/// Longest sleep before everything is looked at again: bounds what a corrupted bell can cost.
pub(crate) fn slice_ns_max() -> u64 {
    SLICE_NS.load(Relaxed)
}

/// Lets a test sleep so long that a lost wake shows.
pub(crate) fn set_slice_ns_max(ns: u64) {
    SLICE_NS.store(ns, Relaxed);
}
