//! From samples to statements: percentiles, and ratios of medians with their confidence interval.
//!
//! A machine has moods (a neighbour, a clock, where the host put our two cores), so two figures
//! taken a minute apart cannot be divided by each other. [`interleave`] runs A B A B A, divides
//! each B by the mean of the two A around it, and takes the median of those ratios. The rounds are
//! the independent observations, so the bootstrap resamples rounds, not single messages.
//!
//! Where the two A of a round disagree by more than [`JUMP`], the machine changed its mood in
//! between: such a round is counted and not used.

use serde::Serialize;

/// Largest ratio of the two A of a round that is still the same machine. Virtual machines move
/// between placements in which a cache line takes about 60 and 260 ns to the other core.
pub const JUMP: f64 = 1.5;
/// Fewer kept rounds than this are no basis for a verdict: even from their least to their greatest
/// ratio, five rounds miss the true median in 2 of 2^5 cases, six in 3 %.
pub const ROUNDS_MIN: usize = 6;
const RESAMPLES: usize = 2000;
const SEED: u64 = 0x6f75_746c_6976_6501;

/// Sorted observations of one run: nanoseconds or rates, the caller knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// All values count. At least one, none of them NaN.
    pub fn new(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a run without samples has no median");
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    /// Drops the first tenth, in which caches, page tables and clocks warm up.
    pub fn after_warm_up(mut values: Vec<f64>) -> Self {
        values.drain(..values.len() / 10);
        Self::new(values)
    }

    /// The middle.
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.0)
    }

    /// Nearest rank; `None` where not even one sample lies beyond.
    fn percentile(&self, q: f64) -> Option<f64> {
        let rank = (q * self.0.len() as f64).ceil() as usize;
        (rank < self.0.len()).then(|| self.0[rank.max(1) - 1])
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|x| (x - mean).powi(2)).sum();
        (squares / self.0.len() as f64).sqrt()
    }

    /// What is printed of them.
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.0.len(),
            mean: self.mean(),
            deviation: self.deviation(),
            p50: self.median(),
            p99: self.percentile(0.99),
            p999: self.percentile(0.999),
            max: self.0[self.0.len() - 1],
        }
    }
}

/// What is printed of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Of the samples.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Median.
    pub p50: f64,
    /// `None` where not even one sample lies beyond; so with `p999`.
    pub p99: Option<f64>,
    /// One in a thousand lies beyond.
    pub p999: Option<f64>,
    /// The largest.
    pub max: f64,
}

/// A ratio of medians and the bounds of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Of all rounds.
    pub median: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

/// B against A over interleaved rounds.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One ratio B/A for each round that counts.
    pub ratios: Vec<f64>,
    /// Rounds in which the machine jumped.
    pub discarded: usize,
    /// All samples of A and of B in the rounds that count; `None` if none does.
    pub pooled: Option<(Samples, Samples)>,
}

/// Runs A B A B ... A with `rounds` times B, and compares.
pub fn interleave<E>(
    rounds: usize,
    mut a: impl FnMut() -> Result<Samples, E>,
    mut b: impl FnMut() -> Result<Samples, E>,
) -> Result<Comparison, E> {
    let mut comparison = Comparison { ratios: Vec::new(), discarded: 0, pooled: None };
    let (mut all_a, mut all_b) = (Vec::new(), Vec::new());
    let mut before = a()?;
    for _ in 0..rounds {
        let middle = b()?;
        let after = a()?;
        let (first, last) = (before.median(), after.median());
        if first.max(last) <= JUMP * first.min(last) {
            comparison.ratios.push(middle.median() * 2.0 / (first + last));
            all_a.extend_from_slice(&after.0);
            all_b.extend_from_slice(&middle.0);
        } else {
            comparison.discarded += 1;
        }
        before = after;
    }
    if !all_a.is_empty() {
        comparison.pooled = Some((Samples::new(all_a), Samples::new(all_b)));
    }
    Ok(comparison)
}

impl Comparison {
    /// Median of the rounds' ratios with its interval; `None` under [`ROUNDS_MIN`] rounds.
    pub fn ratio(&self) -> Option<Ratio> {
        over_rounds(self.ratios.len(), |rounds| {
            Some(median(rounds.iter().map(|&round| self.ratios[round]).collect()))
        })
    }
}

/// A figure of some of `rounds` rounds, for all of them, with its interval from drawing as many
/// with replacement; `None` under [`ROUNDS_MIN`] rounds and where a draw has no such figure.
pub fn over_rounds(
    rounds: usize,
    mut figure: impl FnMut(&[usize]) -> Option<f64>,
) -> Option<Ratio> {
    if rounds < ROUNDS_MIN {
        return None;
    }
    let mut random = SplitMix(SEED);
    let mut drawn = || {
        let draw: Vec<usize> = (0..rounds).map(|_| random.below(rounds)).collect();
        figure(&draw)
    };
    let figures = (0..RESAMPLES).map(|_| drawn()).collect::<Option<Vec<f64>>>()?;
    let figures = Samples::new(figures).0;
    let tail = RESAMPLES * 25 / 1000; // 2.5 % on either side
    let all: Vec<usize> = (0..rounds).collect();
    let (low, high) = (figures[tail], figures[RESAMPLES - 1 - tail]);
    Some(Ratio { median: figure(&all)?, low, high })
}

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// For times.
    AtMost(f64),
    /// For rates.
    AtLeast(f64),
    /// Only to be seen.
    None,
}

/// How a ratio stands to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// On the right side of the target.
    Met,
    /// On the wrong side.
    Miss,
    /// There is no target.
    NoTarget,
    /// Too few rounds without a jump of the machine.
    NotRanked,
}

impl Target {
    /// By the median of the ratios; the interval is printed beside it for the reader to weigh.
    pub fn verdict(self, ratio: Option<Ratio>) -> Verdict {
        let Some(Ratio { median, .. }) = ratio else {
            return Verdict::NotRanked;
        };
        let met = match self {
            Self::AtMost(limit) => median <= limit,
            Self::AtLeast(limit) => median >= limit,
            Self::None => return Verdict::NoTarget,
        };
        if met { Verdict::Met } else { Verdict::Miss }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    median_of_sorted(&values)
}

/// The middle, or the mean of the two middles.
fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// The generator of Steele, Lea and Flood (2014): enough for a bootstrap, the same every time.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }
}

/// The numbers below `n` in an order that is `round`'s own.
pub fn shuffled(n: usize, round: usize) -> Vec<usize> {
    let mut random = SplitMix(SEED.wrapping_add(round as u64));
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, random.below(last + 1));
    }
    order
}

#[cfg(test)]
mod tests;
