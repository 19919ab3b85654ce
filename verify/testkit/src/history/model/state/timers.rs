//! Timers.

/// Ready from an instant on, once or periodically; ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// `u64::MAX`: never.
    pub(crate) next: u64,
    /// 0: once.
    pub(crate) period: u64,
}

impl Timer {
    /// How often it is due until then.
    pub(crate) fn due(self, now: u64) -> u64 {
        match now.checked_sub(self.next) {
            None => 0,
            Some(_) if self.period == 0 => 1,
            Some(late) => late / self.period + 1,
        }
    }
}
