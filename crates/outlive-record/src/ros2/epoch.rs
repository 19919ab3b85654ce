//! The time of day from the machine's own clock.

use std::time::SystemTime;

use outlive::now_ns;

/// Looks at both clocks, of which the shortest counts.
const LOOKS: usize = 5;
/// Both clocks run at one pace: less than this is that of the looks, ns.
const MOVED_NS: u64 = 5_000_000;

/// What to add to CLOCK_MONOTONIC for the time since 1970, ns.
pub fn epoch_ns() -> u64 {
    let look = |_| {
        let before = now_ns();
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let took = now_ns().saturating_sub(before);
        let day_ns = since_epoch.map_or(0, |d| d.as_nanos() as u64);
        (took, day_ns.saturating_sub(before + took / 2))
    };
    // Not one that was interrupted between the two.
    (0..LOOKS).map(look).min().map_or(0, |(_, ns)| ns)
}

/// The same, if it was `before` and is another now: the time of day was set, or the machine slept.
/// Else `before` stays, so that stamps that are the same here are the same with it added.
///
/// # Examples
/// ```
/// use outlive_record::ros2::{epoch_moved, epoch_ns};
///
/// let found = epoch_ns();
/// assert_eq!(epoch_moved(found), None);
/// assert!(epoch_moved(found - 3_600_000_000_000).is_some());
/// ```
pub fn epoch_moved(before: u64) -> Option<u64> {
    Some(epoch_ns()).filter(|now| now.abs_diff(before) >= MOVED_NS)
}
