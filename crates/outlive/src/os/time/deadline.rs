//! When a wait ends.

use std::time::Duration;

use super::clock;

/// When a wait ends: an instant of CLOCK_MONOTONIC, the clock of [`now_ns`](crate::now_ns).
///
/// Calls that end in `_timeout` take a duration. Those that end in `_until` take a deadline, which
/// several calls can share.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::Deadline;
/// use std::time::Duration;
///
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// let mut goals = node.topic::<f64>("/goal")?.subscriber()?;
///
/// let deadline = Deadline::after(Duration::from_millis(5)); // for both together
/// let pose = poses.receive_until(deadline)?;
/// let goal = goals.receive_until(deadline)?;
/// assert!(pose.is_none() && goal.is_none() && deadline.has_passed());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(u64);

impl Deadline {
    /// Does not wait.
    pub const AT_ONCE: Self = Self(0);
    /// Waits however long it takes.
    pub const NEVER: Self = Self(u64::MAX);

    /// At `ns` of CLOCK_MONOTONIC; 0 is [`AT_ONCE`](Self::AT_ONCE), the largest number
    /// [`NEVER`](Self::NEVER).
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    ///
    /// let start_ns = outlive::now_ns();
    /// let end_of_cycle = Deadline::at_ns(start_ns + 2_000_000);
    /// assert_eq!(end_of_cycle.as_ns(), start_ns + 2_000_000);
    /// assert_eq!(Deadline::at_ns(0), Deadline::AT_ONCE);
    /// assert_eq!(Deadline::at_ns(u64::MAX), Deadline::NEVER);
    /// ```
    #[inline]
    pub const fn at_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// `timeout` from now; saturates at the far future.
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let (soon, late) = (Duration::from_secs(1), Duration::from_secs(3600));
    /// assert!(Deadline::after(soon) < Deadline::after(late));
    /// assert!(Deadline::after(Duration::MAX) < Deadline::NEVER);
    /// ```
    #[inline]
    pub fn after(timeout: Duration) -> Self {
        Self::in_ns(timeout.as_nanos().min(1 << 62) as u64)
    }

    /// `ns` from now.
    #[inline]
    pub(crate) fn in_ns(ns: u64) -> Self {
        Self(clock::now_ns().saturating_add(ns))
    }

    /// As ns of CLOCK_MONOTONIC; see [`at_ns`](Self::at_ns).
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    ///
    /// let deadline = Deadline::after(std::time::Duration::from_secs(1));
    /// let sent = deadline.as_ns(); // for another process: its clock is the same
    /// assert_eq!(Deadline::at_ns(sent), deadline);
    /// ```
    #[inline]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Whether it is [`NEVER`](Self::NEVER).
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    ///
    /// assert!(Deadline::NEVER.is_never());
    /// assert!(!Deadline::after(std::time::Duration::MAX).is_never()); // very late, but not never
    /// ```
    #[inline]
    pub const fn is_never(self) -> bool {
        self.0 == Self::NEVER.0
    }

    /// Whether it is in the past, or now.
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    ///
    /// let start = Deadline::at_ns(outlive::now_ns());
    /// assert!(start.has_passed() && Deadline::AT_ONCE.has_passed());
    /// assert!(!Deadline::NEVER.has_passed());
    /// ```
    #[inline]
    pub fn has_passed(self) -> bool {
        !self.is_never() && (self == Self::AT_ONCE || self.has_passed_by(clock::now_ns()))
    }

    /// Whether it has passed at `now`, ns of CLOCK_MONOTONIC.
    #[inline]
    pub(crate) const fn has_passed_by(self, now: u64) -> bool {
        now >= self.0
    }

    /// How long it is until then; zero once it has passed.
    ///
    /// # Examples
    /// ```
    /// use outlive::Deadline;
    /// use std::time::Duration;
    ///
    /// let hour = Duration::from_secs(3600);
    /// assert!(Deadline::after(hour).remaining() <= hour);
    /// assert_eq!(Deadline::AT_ONCE.remaining(), Duration::ZERO);
    /// ```
    #[inline]
    pub fn remaining(self) -> Duration {
        let now = if self == Self::AT_ONCE { 0 } else { clock::now_ns() };
        Duration::from_nanos(self.0.saturating_sub(now))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::os::time::clock::set_test_offset;

    #[test]
    fn a_deadline_passes_at_its_instant() {
        let deadline = Deadline::after(Duration::from_secs(3600));
        assert!(!deadline.has_passed());
        assert!(deadline.remaining() > Duration::from_secs(3000));
        set_test_offset(3_600_000_000_000);
        assert!(deadline.has_passed());
        assert_eq!(deadline.remaining(), Duration::ZERO);
        set_test_offset(0);
        assert!(deadline.has_passed_by(deadline.as_ns()));
        assert!(!deadline.has_passed_by(deadline.as_ns() - 1));
    }

    #[test]
    fn at_once_has_always_passed_and_never_does_not() {
        assert!(Deadline::AT_ONCE.has_passed() && !Deadline::NEVER.has_passed());
        assert_eq!(Deadline::AT_ONCE.remaining(), Duration::ZERO);
        assert!(Deadline::NEVER.is_never() && !Deadline::after(Duration::MAX).is_never());
        assert!(Deadline::AT_ONCE < Deadline::in_ns(0));
        assert!(Deadline::after(Duration::MAX) < Deadline::NEVER);
        assert_eq!(Deadline::in_ns(u64::MAX), Deadline::NEVER);
    }
}
