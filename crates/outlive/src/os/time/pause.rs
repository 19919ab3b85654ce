//! How long one waits before it tries again what failed: the pause doubles.

/// Pauses between two tries, ns.
const PAUSE_NS_MIN: u64 = 2_000_000;
const PAUSE_NS_MAX: u64 = 250_000_000;

/// When the next try is, and how long the pause before it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pause {
    until_ns: u64,
    ns: u64,
}

impl Pause {
    /// One more failure. Long after the last one it is the first.
    pub(crate) fn next(self, now_ns: u64) -> Self {
        let again = now_ns < self.until_ns.saturating_add(4 * PAUSE_NS_MAX);
        let ns = if again { (2 * self.ns).clamp(PAUSE_NS_MIN, PAUSE_NS_MAX) } else { PAUSE_NS_MIN };
        Self { until_ns: now_ns.saturating_add(ns), ns }
    }

    /// When the next try is, ns of CLOCK_MONOTONIC.
    pub(crate) fn until_ns(self) -> u64 {
        self.until_ns
    }
}
