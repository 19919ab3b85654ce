//! What the runs showed: all that is printed.

use measure::machine::Machine;
use measure::stats::Ratio;
use serde::Serialize;

use super::runs::{Outcomes, Subject, Timing};
use crate::report::Row;

/// Samples that must lie beyond a percentile before it is printed.
pub(super) const BEYOND_MIN: usize = 10;

/// One row at one period, all rounds together.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) period_us: u64,
    pub(super) cycles: usize,
    pub(super) mean_us: f64,
    pub(super) p50_us: Option<f64>,
    pub(super) p95_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    pub(super) p999_us: Option<f64>,
    pub(super) max_us: f64,
    /// Standard deviation of the distance between ends of following cycles.
    pub(super) jitter_us: f64,
    /// Its worst deviation from the period.
    pub(super) jitter_max_us: f64,
    /// The article's jitter: the period less the mean latency.
    pub(super) article_jitter_us: f64,
    pub(super) misses: u64,
    /// Share of one core.
    pub(super) cpu: f64,
    /// Share of the machine's time that the host gave to others meanwhile.
    pub(super) steal: f64,
    #[serde(skip)]
    pub(super) latency_ns: Vec<f64>,
    #[serde(skip)]
    pub(super) deviation_ns: Vec<f64>,
}

/// B's median latency over A's, of all cycles.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) of: &'static str,
    pub(super) to: &'static str,
    pub(super) period_us: u64,
    pub(super) rounds: usize,
    pub(super) ratio: Option<Ratio>,
}

/// Everything that is printed.
#[derive(Debug, Serialize)]
pub(super) struct Results {
    pub(super) machine: Machine,
    pub(super) scheduler: String,
    pub(super) lines: Vec<Line>,
    pub(super) pairs: Vec<Pair>,
    pub(super) primitives: Vec<Row>,
    pub(super) notes: Vec<String>,
}

/// Nearest rank of sorted values; `None` where fewer than [`BEYOND_MIN`] lie beyond.
fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    (rank + BEYOND_MIN <= sorted.len()).then(|| sorted[rank.max(1) - 1])
}

pub(super) fn line(subject: &Subject, timing: &Timing, rounds: &[Outcomes], steal: f64) -> Line {
    let all = |of: fn(&Outcomes) -> &Vec<f64>| -> Vec<f64> {
        rounds.iter().flat_map(|r| of(r).iter().copied()).collect()
    };
    let (latency_ns, deviation_ns) = (all(|r| &r.latency_ns), all(|r| &r.deviation_ns));
    let mut sorted = latency_ns.clone();
    sorted.sort_by(f64::total_cmp);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let us = |q: f64| percentile(&sorted, q).map(|ns| ns / 1e3);
    let off = mean(&deviation_ns);
    let variance = mean(&deviation_ns.iter().map(|d| (d - off).powi(2)).collect::<Vec<_>>());
    let worst = deviation_ns.iter().fold(0.0, |worst: f64, d| worst.max(d.abs()));
    let cpu = rounds.iter().map(|r| r.cpu).sum::<f64>() / rounds.len().max(1) as f64;
    Line {
        name: subject.name,
        period_us: timing.period_ns / 1000,
        cycles: latency_ns.len(),
        mean_us: mean(&latency_ns) / 1e3,
        p50_us: us(0.5),
        p95_us: us(0.95),
        p99_us: us(0.99),
        p999_us: us(0.999),
        max_us: sorted.last().copied().unwrap_or(0.0) / 1e3,
        jitter_us: variance.sqrt() / 1e3,
        jitter_max_us: worst / 1e3,
        article_jitter_us: (timing.period_ns as f64 - mean(&latency_ns)) / 1e3,
        misses: rounds.iter().map(|r| r.misses).sum(),
        cpu,
        steal,
        latency_ns,
        deviation_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_refused_below_enough_samples() {
        let sorted: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(percentile(&sorted, 0.5), Some(500.0));
        assert_eq!(percentile(&sorted, 0.99), Some(990.0));
        assert_eq!(percentile(&sorted, 0.999), None);
        assert_eq!(percentile(&[], 0.5), None);
    }
}
