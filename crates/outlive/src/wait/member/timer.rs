//! Points in time as members of a wait.

use std::time::Duration;

use super::{Look, Member, Plan};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;

/// Ready once, or periodically.
///
/// A periodic timer keeps its grid: however late it is checked, it is next ready at the first
/// instant of `first + n * period` that is still to come. It is not a descriptor and costs no
/// system call: the set's sleep ends when it is due.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let mut tick = outlive::Timer::every(Duration::from_millis(2));
/// let mut set = outlive::WaitSet::new();
/// let ready = set.wait(&mut [&mut tick], Duration::from_secs(5))?;
/// assert_eq!(ready.collect::<Vec<_>>(), [0]);
/// assert!(tick.fired() >= 1);
/// assert_eq!(tick.fired(), 0, "asked twice within one period");
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it rings in a wait set only"]
pub struct Timer {
    /// When it is ready next; `u64::MAX`: never.
    next_ns: u64,
    /// 0: once.
    period_ns: u64,
}

impl Timer {
    /// Ready once, from `instant_ns` of CLOCK_MONOTONIC on ([`crate::now_ns`]).
    ///
    /// # Examples
    /// ```
    /// let start_ns = outlive::now_ns();
    /// let timer = outlive::Timer::at(start_ns + 2_000_000); // the same in several programs
    /// assert_eq!(timer.next_ns(), Some(start_ns + 2_000_000));
    /// ```
    pub fn at(instant_ns: u64) -> Self {
        Self { next_ns: instant_ns, period_ns: 0 }
    }

    /// Ready once, `delay` from now.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut timer = outlive::Timer::after(Duration::from_millis(1));
    /// outlive::WaitSet::new().wait(&mut [&mut timer], Duration::from_secs(60))?;
    /// assert_eq!(timer.fired(), 1);
    /// assert_eq!(timer.next_ns(), None); // once only
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn after(delay: Duration) -> Self {
        Self::at(Deadline::after(delay).as_ns())
    }

    /// Ready every `period` (at least 1 ns), the first time one period from now.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut tick = outlive::Timer::every(Duration::from_millis(1));
    /// let mut set = outlive::WaitSet::new();
    /// let mut ticks = 0;
    /// while ticks < 3 {
    ///     set.wait(&mut [&mut tick], Duration::from_secs(60))?;
    ///     ticks += tick.fired();
    /// }
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn every(period: Duration) -> Self {
        Self::periodic(Deadline::after(period).as_ns(), period)
    }

    /// Ready at `first_ns` of CLOCK_MONOTONIC and every `period` (at least 1 ns) after it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let full_second_ns = (outlive::now_ns() / 1_000_000_000 + 1) * 1_000_000_000;
    /// let mut tick = outlive::Timer::periodic(full_second_ns, Duration::from_millis(250));
    /// assert_eq!(tick.next_ns(), Some(full_second_ns));
    /// ```
    pub fn periodic(first_ns: u64, period: Duration) -> Self {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { next_ns: first_ns, period_ns }
    }

    /// How often it became due since the last call; it stays ready until this is called. More than
    /// 1 means that periods were missed.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut tick = outlive::Timer::every(Duration::from_millis(1));
    /// assert_eq!(outlive::Timer::after(Duration::from_secs(3600)).fired(), 0);
    /// std::thread::sleep(Duration::from_millis(3)); // too long for a period of 1 ms
    /// assert!(tick.fired() >= 3, "two periods or more were missed");
    /// ```
    pub fn fired(&mut self) -> u64 {
        let now = clock::now_ns();
        if now < self.next_ns {
            return 0;
        }
        if self.period_ns == 0 {
            self.stop();
            return 1;
        }
        if fault("timer.off_grid") {
            self.next_ns = now.saturating_add(self.period_ns);
            return 1;
        }
        let times = (now - self.next_ns) / self.period_ns + 1;
        self.next_ns = self.next_ns.saturating_add(times.saturating_mul(self.period_ns));
        times
    }

    /// When it is next ready, ns of CLOCK_MONOTONIC; `None` if never.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let before_ns = outlive::now_ns();
    /// let mut tick = outlive::Timer::every(Duration::from_secs(3600));
    /// assert!(tick.next_ns().is_some_and(|ns| ns >= before_ns + 3_600_000_000_000));
    /// tick.stop();
    /// assert_eq!(tick.next_ns(), None);
    /// ```
    pub fn next_ns(&self) -> Option<u64> {
        (self.next_ns != u64::MAX).then_some(self.next_ns)
    }

    /// Stops it: it is never ready again.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut tick = outlive::Timer::every(Duration::from_millis(1));
    /// std::thread::sleep(Duration::from_millis(2));
    /// tick.stop(); // though it was due
    /// let mut set = outlive::WaitSet::new();
    /// assert!(set.wait(&mut [&mut tick], Duration::from_millis(5))?.is_empty());
    /// assert_eq!(tick.fired(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn stop(&mut self) {
        (self.next_ns, self.period_ns) = (u64::MAX, 0);
    }
}

impl Member for Timer {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        if !fault("timer.not_awaited") {
            look.due(Deadline::at_ns(self.next_ns));
        }
        look.now >= self.next_ns
    }

    fn plan<'a>(&'a self, _plan: &mut Plan<'a>) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::time::clock::set_test_offset;

    #[test]
    fn a_late_look_counts_the_periods_and_keeps_to_the_grid() {
        let first = clock::now_ns() + 1_000_000_000;
        let mut timer = Timer::periodic(first, Duration::from_secs(1));
        assert_eq!(timer.fired(), 0);
        set_test_offset(4_500_000_000);
        let fired = timer.fired();
        assert!(fired >= 4);
        assert_eq!(timer.next_ns(), Some(first + fired * 1_000_000_000));
        assert_eq!(timer.fired(), 0);
        set_test_offset(0);
    }

    #[test]
    fn a_single_shot_is_fired_once_and_a_stopped_one_never() {
        let mut once = Timer::after(Duration::ZERO);
        assert!(once.is_ready(&mut Look::at(clock::now_ns())));
        assert_eq!((once.fired(), once.fired(), once.next_ns()), (1, 0, None));
        assert!(!once.is_ready(&mut Look::at(u64::MAX - 1)));
        let mut stopped = Timer::every(Duration::from_nanos(0));
        stopped.stop();
        assert_eq!(stopped.fired(), 0);
        let mut far = Timer::every(Duration::MAX);
        assert_eq!(far.fired(), 0);
    }
}
