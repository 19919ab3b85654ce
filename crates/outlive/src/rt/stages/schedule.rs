//! When cycles are released: at absolute times, so that nothing drifts.
#![deny(unsafe_code)]

use std::time::Duration;

use crate::os::time::clock;
use crate::{Error, ErrorKind, Result};

/// What to do with cycles whose release passed because an earlier one took too long.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Overrun, Pipeline, Schedule, StageOptions, Stop};
/// use std::time::Duration;
///
/// let schedule = Schedule::every(Duration::from_millis(1))?.overrun(Overrun::CatchUp);
/// let mut ran = Vec::new();
/// let mut pipeline = Pipeline::new(schedule).stage("log", StageOptions::default(), |c: &Cycle| {
///     ran.push(c.number);
///     if ran.len() == 1 { std::thread::sleep(Duration::from_millis(5)) } // several periods
///     if ran.len() < 8 { Outcome::HandOn } else { Outcome::Stop }
/// });
/// pipeline.run_inline(&Stop::new());
/// drop(pipeline);
/// assert!(ran.windows(2).all(|two| two[1] == two[0] + 1)); // none was skipped
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overrun {
    /// Skip cycles whose successor is released as well, and count them; the phase is kept.
    #[default]
    Skip,
    /// Run each of them, back to back, until caught up.
    CatchUp,
    /// End the loop: the lifelines of later stages find this one silent.
    Stop,
}

/// The clock of a pipeline: cycle n is released at `start + n * period`, and its result is due
/// `deadline` after that.
///
/// All stages, in every process, must have the same one; nothing checks that. With
/// `starting_at(0)` they have, by the period alone: releases are then multiples of the period on
/// CLOCK_MONOTONIC, in a process that is started again, too.
///
/// # Examples
/// ```
/// use outlive::rt::Schedule;
/// use std::time::Duration;
///
/// let schedule = Schedule::every(Duration::from_millis(1))?
///     .deadline(Duration::from_micros(800))
///     .starting_at(outlive::now_ns() + 5_000_000);
/// assert_eq!(schedule.release_ns(3), schedule.start_ns() + 3_000_000);
/// assert_eq!(schedule.deadline_ns(), 800_000);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    start_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    overrun: Overrun,
}

/// In ns, as far as they go.
pub(in crate::rt) fn span_ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Schedule {
    /// Cycles every `period`, each due at its end, starting 10 ms from now.
    ///
    /// # Errors
    /// `InvalidArgument` for a period below 10 us or above an hour.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// assert_eq!((schedule.period_ns(), schedule.deadline_ns()), (1_000_000, 1_000_000));
    /// assert!(Schedule::every(Duration::from_micros(9)).is_err()); // too short
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn every(period: Duration) -> Result<Self> {
        let period_ns = span_ns(period);
        if !(10_000..=3_600_000_000_000).contains(&period_ns) {
            let (object, why) = (format!("{period:?}"), "use a period of 10 us to 1 h");
            return Err(Error::new(ErrorKind::InvalidArgument, "making schedule", object, why));
        }
        let start_ns = clock::now_ns() + 10_000_000;
        Ok(Self { start_ns, period_ns, deadline_ns: period_ns, overrun: Overrun::Skip })
    }

    /// The release of cycle 0, ns of CLOCK_MONOTONIC. Give it to other processes.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let start_ns = outlive::now_ns() + 50_000_000; // sent to the other processes
    /// let schedule = Schedule::every(Duration::from_millis(2))?.starting_at(start_ns);
    /// assert_eq!(schedule.release_ns(10), start_ns + 20_000_000);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn starting_at(mut self, start_ns: u64) -> Self {
        self.start_ns = start_ns;
        self
    }

    /// When a cycle is due, after its release; with `Duration::MAX` never.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let soon = Duration::from_micros(800); // after the release of the cycle
    /// let schedule = Schedule::every(Duration::from_millis(1))?.deadline(soon);
    /// assert_eq!(schedule.deadline_ns(), 800_000);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ns = span_ns(deadline);
        self
    }

    /// What to do after an overrun.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Cycle, Outcome, Overrun, Pipeline, Schedule, StageOptions, Stop};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?.overrun(Overrun::Stop);
    /// let slow = |_: &Cycle| {
    ///     std::thread::sleep(Duration::from_millis(5)); // longer than a period
    ///     Outcome::HandOn
    /// };
    /// let mut pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), slow);
    /// let reports = pipeline.run_inline(&Stop::new()); // returns after the first overrun
    /// assert_eq!(reports[0].counts.run, 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[must_use]
    pub fn overrun(mut self, overrun: Overrun) -> Self {
        self.overrun = overrun;
        self
    }

    /// The release of cycle 0, ns.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let start_ns = schedule.start_ns(); // sent to the other processes
    /// let theirs = Schedule::every(Duration::from_millis(1))?.starting_at(start_ns);
    /// assert_eq!(theirs, schedule);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn start_ns(&self) -> u64 {
        self.start_ns
    }

    /// The period, ns.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(2))?;
    /// let step_s = schedule.period_ns() as f64 / 1e9; // for a controller
    /// assert_eq!(step_s, 0.002);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// When a cycle is due after its release, ns.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Schedule;
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(2))?;
    /// assert_eq!(schedule.deadline_ns(), schedule.period_ns()); // unless another one is given
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// The release of cycle `n`, ns.
    ///
    /// # Examples
    /// A loop of your own at the same times:
    /// ```
    /// use outlive::rt::{Schedule, Wait};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// for n in 0..3 {
    ///     Wait::SpinThenSleep { spin_ns: 0 }.until(schedule.release_ns(n));
    ///     // The work of cycle n.
    /// }
    /// assert!(outlive::now_ns() >= schedule.start_ns() + 2 * schedule.period_ns());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn release_ns(&self, n: u64) -> u64 {
        self.start_ns.saturating_add(n.saturating_mul(self.period_ns))
    }

    /// When cycle `n` is due, ns.
    #[inline]
    pub(in crate::rt) fn due_ns(&self, n: u64) -> u64 {
        self.release_ns(n).saturating_add(self.deadline_ns)
    }

    /// The cycle after `n` at `now_ns`; `None` where an overrun ends the loop.
    #[inline]
    pub(in crate::rt) fn after(&self, n: u64, now_ns: u64) -> Option<u64> {
        let next = n.saturating_add(1);
        match self.overrun {
            Overrun::CatchUp => Some(next),
            Overrun::Stop if now_ns >= self.release_ns(next.saturating_add(1)) => None,
            Overrun::Stop => Some(next),
            // The last one released.
            Overrun::Skip => {
                let released = now_ns.saturating_sub(self.start_ns) / self.period_ns;
                Some(next.max(released))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule() -> Schedule {
        Schedule::every(Duration::from_millis(1)).unwrap().starting_at(5_000_000)
    }

    #[test]
    fn releases_do_not_drift() {
        let s = schedule();
        assert_eq!(s.release_ns(1_000_000), 5_000_000 + 1_000_000 * 1_000_000);
        assert_eq!(s.after(3, s.release_ns(3) + 10), Some(4));
    }

    #[test]
    fn what_is_beyond_the_clock_is_never_released() {
        let s = schedule().starting_at(u64::MAX - 10);
        assert_eq!((s.release_ns(0), s.release_ns(1)), (u64::MAX - 10, u64::MAX));
        assert_eq!((s.due_ns(1), s.release_ns(u64::MAX)), (u64::MAX, u64::MAX));
        assert_eq!(s.overrun(Overrun::Stop).after(u64::MAX, 0), Some(u64::MAX));
    }

    #[test]
    fn after_an_overrun_the_policy_decides() {
        let s = schedule();
        let late = s.release_ns(7) + 10; // cycle 3 took until the middle of 7
        assert_eq!(s.after(3, late), Some(7));
        assert_eq!(s.overrun(Overrun::CatchUp).after(3, late), Some(4));
        assert_eq!(s.overrun(Overrun::Stop).after(3, late), None);
        assert_eq!(s.after(3, s.release_ns(4) + 10), Some(4), "a little late is not an overrun");
    }

    #[test]
    fn periods_out_of_range_are_refused() {
        for period in [Duration::ZERO, Duration::from_micros(9), Duration::from_secs(3601)] {
            assert!(Schedule::every(period).is_err());
        }
    }
}
