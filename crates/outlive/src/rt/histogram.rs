//! A histogram of times in words that anybody may read while it fills: 32 steps an octave, so a
//! value is known to 3 %. One writer.

use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

const STEP_BITS: u32 = 5;
const STEPS: u64 = 1 << STEP_BITS;
/// Values are counted up to 2^36 ns, 68 s; longer ones in the last bucket.
const OCTAVES: usize = 36 - STEP_BITS as usize;
const BUCKETS: usize = (OCTAVES + 1) * STEPS as usize;
const COUNT: usize = 0;
const SUM: usize = 1;
const MAX: usize = 2;
const FIRST: usize = 8;
/// Words of a histogram.
pub(crate) const WORDS: usize = FIRST + BUCKETS;

#[inline]
fn bucket(ns: u64) -> usize {
    if ns < STEPS {
        return ns as usize;
    }
    let octave = ns.ilog2() - STEP_BITS;
    let step = (ns >> octave) - STEPS;
    (((u64::from(octave) + 1) << STEP_BITS | step) as usize).min(BUCKETS - 1)
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let (octave, step) = (bucket as u64 >> STEP_BITS, bucket as u64 & (STEPS - 1));
    match octave {
        0 => step,
        _ => ((STEPS + step + 1) << (octave - 1)) - 1,
    }
}

/// Counts one value. Four stores, no system call.
#[inline]
pub(crate) fn record(words: &[AtomicU64], ns: u64) {
    let add = |word: &AtomicU64, by: u64| word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
    add(&words[FIRST + bucket(ns)], 1);
    add(&words[SUM], ns);
    if ns > words[MAX].load(Relaxed) {
        words[MAX].store(ns, Relaxed);
    }
    add(&words[COUNT], 1);
}

/// Times counted so far, ns. Percentiles are accurate to 3 %, the maximum is exact.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
/// use std::time::Duration;
///
/// let mut left = 200;
/// let count_down = move |_: &Cycle| {
///     left -= 1;
///     if left > 0 { Outcome::HandOn } else { Outcome::Stop }
/// };
/// let schedule = Schedule::every(Duration::from_micros(100))?;
/// let mut pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), count_down);
/// pipeline.run_inline(&Stop::new());
/// let times = pipeline.boards()[0].own_time();
/// assert_eq!(times.count(), 199); // the last one was not handed on
/// assert!(times.mean_ns() <= times.max_ns());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Histogram {
    pub(crate) fn copy(words: &[AtomicU64]) -> Self {
        let buckets: Vec<u64> =
            words[FIRST..FIRST + BUCKETS].iter().map(|w| w.load(Relaxed)).collect();
        Self {
            count: buckets.iter().sum(),
            sum_ns: words[SUM].load(Relaxed),
            max_ns: words[MAX].load(Relaxed),
            buckets,
        }
    }

    /// How many were counted.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// assert_eq!(board.own_time().count(), 0); // not started yet
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// assert_eq!(board.own_time().count(), 200);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean, ns; 0 if nothing was counted.
    ///
    /// # Examples
    /// ```
    /// let times = outlive::rt::Board::heap().view().own_time(); // of nobody
    /// assert_eq!((times.count(), times.mean_ns()), (0, 0));
    /// ```
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count).unwrap_or(0)
    }

    /// The longest, ns.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let times = board.own_time();
    /// assert!(times.mean_ns() <= times.max_ns());
    /// assert!(times.percentile_ns(0.99).is_some_and(|p99| p99 <= times.max_ns()));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// What was counted after `before`, an earlier copy of the same. Accurate to 3 %, as is its
    /// maximum.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let before = board.own_time();
    /// pipeline.run_inline(&Stop::new()); // another 200 cycles
    /// assert_eq!(board.own_time().count(), 400);
    /// assert_eq!(board.own_time().since(&before).count(), 200);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn since(&self, before: &Self) -> Self {
        let both = self.buckets.iter().zip(&before.buckets);
        let buckets: Vec<u64> = both.map(|(now, then)| now.saturating_sub(*then)).collect();
        let last = buckets.iter().rposition(|n| *n > 0);
        Self {
            count: buckets.iter().sum(),
            sum_ns: self.sum_ns.saturating_sub(before.sum_ns),
            max_ns: last.map_or(0, |at| upper(at).min(self.max_ns)),
            buckets,
        }
    }

    /// What this and `other` counted, together.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let (run, handed_on) = (board.own_time(), board.after_release());
    /// assert_eq!(run.and(&run).count(), 400); // here twice the same; usually two stages
    /// assert_eq!(run.and(&handed_on).max_ns(), run.max_ns().max(handed_on.max_ns()));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn and(&self, other: &Self) -> Self {
        let both = self.buckets.iter().zip(&other.buckets);
        Self {
            buckets: both.map(|(a, b)| a + b).collect(),
            count: self.count + other.count,
            sum_ns: self.sum_ns + other.sum_ns,
            max_ns: self.max_ns.max(other.max_ns),
        }
    }

    /// The `q` quantile (0.99: p99), ns, at most 3 % too large; `None` with too few samples for one
    /// to lie beyond it.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let times = board.own_time();
    /// assert_eq!(times.count(), 200);
    /// assert!(times.percentile_ns(0.99).is_some_and(|p99| p99 <= times.max_ns()));
    /// assert_eq!(times.percentile_ns(0.999), None); // that takes 1000 samples
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn percentile_ns(&self, q: f64) -> Option<u64> {
        let rank = (q * self.count as f64).ceil() as u64;
        if rank >= self.count {
            return None;
        }
        let mut seen = 0;
        let at = self.buckets.iter().position(|n| {
            seen += n;
            seen >= rank.max(1)
        });
        at.map(|at| upper(at).min(self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_to_three_percent() {
        let mut n = 0u64;
        while n < 1 << 36 {
            let (low, up) = (n, upper(bucket(n)));
            assert!(up >= low && up - low <= low / 31, "{n}: {up}");
            assert!(bucket(n) == 0 || upper(bucket(n) - 1) < n);
            n += 1 + n / 50;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn what_came_since_is_counted_alone() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        record(&words, 900_000);
        let before = Histogram::copy(&words);
        assert_eq!(before.since(&before).max_ns(), 0);
        for n in 1..=100 {
            record(&words, n * 1000);
        }
        let h = Histogram::copy(&words).since(&before);
        assert_eq!((h.count(), h.mean_ns()), (100, 50_500));
        assert!((100_000..104_000).contains(&h.max_ns()), "{}", h.max_ns());
        assert!(h.percentile_ns(0.99).is_some_and(|p99| p99 < 103_000));
    }

    #[test]
    fn two_together_are_what_one_would_have_counted() {
        let words = || (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (some, others, all) = (words(), words(), words());
        for n in 1..=1000 {
            record(if n % 3 == 0 { &some } else { &others }, n * 1000);
            record(&all, n * 1000);
        }
        let (all, both) =
            (Histogram::copy(&all), Histogram::copy(&some).and(&Histogram::copy(&others)));
        let seen = |h: &Histogram| (h.count(), h.mean_ns(), h.max_ns(), h.percentile_ns(0.99));
        assert_eq!(seen(&both), seen(&all));
    }

    #[test]
    fn percentiles_need_a_sample_beyond_them() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        for n in 1..=100 {
            record(&words, n * 1000);
        }
        let h = Histogram::copy(&words);
        assert_eq!((h.count(), h.max_ns(), h.mean_ns()), (100, 100_000, 50_500));
        let p50 = h.percentile_ns(0.5).unwrap();
        assert!((50_000..52_000).contains(&p50), "{p50}");
        assert_eq!(h.percentile_ns(0.999), None);
    }
}
