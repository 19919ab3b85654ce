//! The statistics against values worked out by hand.

use super::*;
use std::convert::Infallible;

/// One run whose samples are all `value`.
fn flat(value: f64) -> Samples {
    Samples::new(vec![value; 4])
}

/// Plays back the medians of A and of B.
fn played(a: &[f64], b: &[f64]) -> Comparison {
    let (mut a, mut b) = (a.iter(), b.iter());
    let next_a = || Ok::<_, Infallible>(flat(*a.next().unwrap()));
    let rounds = b.len();
    interleave(rounds, next_a, || Ok(flat(*b.next().unwrap()))).unwrap()
}

#[test]
fn the_median_is_the_middle_or_the_mean_of_the_middles() {
    assert_eq!(Samples::new(vec![3.0, 1.0, 2.0]).median(), 2.0);
    assert_eq!(Samples::new(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
    assert_eq!(Samples::new(vec![7.0]).median(), 7.0);
}

#[test]
fn percentiles_are_nearest_ranks_of_one_to_a_thousand() {
    let summary = Samples::new((1..=1000).rev().map(f64::from).collect()).summary();
    assert_eq!(summary.count, 1000);
    assert_eq!(summary.p50, 500.5);
    assert_eq!(summary.p99, Some(990.0));
    assert_eq!(summary.p999, Some(999.0));
    assert_eq!(summary.max, 1000.0);
}

#[test]
fn a_percentile_with_no_sample_beyond_is_not_claimed() {
    let summary = Samples::new((1..=101).map(f64::from).collect()).summary();
    assert_eq!(summary.p99, Some(100.0));
    assert_eq!(summary.p999, None);
    assert_eq!(Samples::new(vec![1.0; 99]).summary().p99, None);
}

#[test]
fn warm_up_is_the_first_tenth_in_time_not_in_size() {
    let mut values = vec![1.0; 100];
    values[..10].fill(1e9);
    assert_eq!(Samples::after_warm_up(values).summary().max, 1.0);
    assert_eq!(Samples::after_warm_up(vec![5.0]).median(), 5.0);
}

#[test]
fn a_round_is_b_over_the_mean_of_both_neighbours() {
    let c = played(&[100.0, 120.0, 100.0, 100.0], &[110.0, 220.0, 150.0]);
    assert_eq!(c.ratios, [1.0, 2.0, 1.5]);
    assert_eq!(c.discarded, 0);
    assert_eq!(c.pooled.unwrap().1.summary().count, 12);
}

#[test]
fn slow_drift_cancels_out() {
    let a: Vec<f64> = (0..=20).map(|i| 100.0 + f64::from(i)).collect();
    let b: Vec<f64> = (0..20).map(|i| 2.0 * (100.5 + f64::from(i))).collect();
    let ratio = played(&a, &b).ratio().unwrap();
    assert!((ratio.low - 2.0).abs() < 1e-9 && (ratio.high - 2.0).abs() < 1e-9);
}

#[test]
fn rounds_across_a_jump_are_discarded_and_counted() {
    let a = [60.0, 61.0, 260.0, 259.0, 60.0, 60.0, 61.0, 60.0, 61.0];
    let c = played(&a, &[66.0, 66.0, 286.0, 66.0, 66.0, 66.0, 66.0, 66.0]);
    assert_eq!(c.discarded, 2);
    assert_eq!(c.ratios.len(), 6);
    assert!((c.ratio().unwrap().median - 1.1).abs() < 0.01);
    let at_the_limit = played(&[100.0, 150.0], &[100.0]);
    assert_eq!(at_the_limit.discarded, 0);
}

#[test]
fn too_few_rounds_are_not_ranked() {
    let a = [60.0, 260.0, 60.0, 60.0, 60.0, 60.0, 60.0, 61.0];
    let c = played(&a, &[60.0; 7]);
    assert_eq!((c.ratios.len(), c.discarded), (5, 2));
    assert_eq!(c.ratio(), None);
    assert_eq!(Target::AtMost(10.0).verdict(c.ratio()), Verdict::NotRanked);
    let none = played(&[60.0, 260.0], &[60.0]);
    assert!(none.pooled.is_none());
}

#[test]
fn the_interval_holds_the_median_is_seeded_and_shrinks_with_rounds() {
    let noisy = |n: u32| {
        let b: Vec<f64> = (0..n).map(|i| 100.0 + f64::from(i * 37 % 21)).collect();
        played(&vec![100.0; n as usize + 1], &b).ratio().unwrap()
    };
    let (few, many) = (noisy(7), noisy(210));
    for r in [few, many] {
        assert!(r.low <= r.median && r.median <= r.high, "{r:?}");
    }
    assert!(many.high - many.low < few.high - few.low, "{few:?} {many:?}");
    assert_eq!(noisy(7), few);
}

/// Of many experiments about 95 in 100 intervals must hold the truth; the percentile bootstrap of a
/// median of 15 is known to come out near that.
#[test]
fn the_interval_covers_the_truth_about_as_often_as_it_says() {
    let mut random = SplitMix(7);
    let mut uniform = || random.next() as f64 / u64::MAX as f64;
    let experiments = 300;
    let covered = (0..experiments).filter(|_| {
        let b: Vec<f64> = (0..15).map(|_| 100.0 + 40.0 * (uniform() - 0.5)).collect();
        let r = played(&[100.0; 16], &b).ratio().unwrap();
        r.low <= 1.0 && 1.0 <= r.high
    });
    let share = covered.count() as f64 / f64::from(experiments);
    assert!((0.90..=0.99).contains(&share), "{share}");
}

#[test]
fn a_missed_target_is_marked() {
    let ratio = |median| Some(Ratio { median, low: 0.0, high: 9.0 });
    assert_eq!(Target::AtMost(1.25).verdict(ratio(1.25)), Verdict::Met);
    assert_eq!(Target::AtMost(1.25).verdict(ratio(1.26)), Verdict::Miss);
    assert_eq!(Target::AtLeast(0.3).verdict(ratio(0.3)), Verdict::Met);
    assert_eq!(Target::AtLeast(0.3).verdict(ratio(0.29)), Verdict::Miss);
}

#[test]
fn a_failing_run_ends_the_comparison_with_its_error() {
    let broken = interleave(3, || Ok(flat(1.0)), || Err("peer died"));
    assert_eq!(broken.unwrap_err(), "peer died");
}

#[test]
fn each_round_has_its_own_order_of_all_rows() {
    let orders: Vec<Vec<usize>> = (0..100).map(|round| shuffled(5, round)).collect();
    for order in &orders {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2, 3, 4]);
    }
    for place in 0..5 {
        assert!(orders.iter().any(|order| order[place] == 0), "never at {place}");
    }
    assert_eq!(shuffled(5, 3), orders[3], "the same every time");
    assert_eq!(shuffled(0, 0), [0; 0]);
}
