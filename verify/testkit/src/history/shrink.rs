//! Makes a failing history small: leaves out members, then runs of steps, then single ones, as
//! long as it fails in the same way.

use std::time::{Duration, Instant};

use super::step::Step;

/// Leaves out what it can within `limit`. `fails`: whether such steps still fail.
pub(super) fn shrink(
    mut steps: Vec<Step>,
    limit: Duration,
    mut fails: impl FnMut(&[Step]) -> bool,
) -> Vec<Step> {
    let end = Instant::now() + limit;
    let mut members: Vec<usize> = steps.iter().map(|step| step.member).collect();
    members.sort_unstable();
    members.dedup();
    for member in members {
        let fewer: Vec<Step> = steps.iter().filter(|s| s.member != member).cloned().collect();
        if Instant::now() < end && fewer.len() < steps.len() && fails(&fewer) {
            steps = fewer;
        }
    }
    let mut run = steps.len() / 2;
    while run > 0 {
        let before = steps.len();
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + run).min(steps.len()));
            if Instant::now() > end {
                return steps;
            }
            if fails(&fewer) {
                steps = fewer;
            } else {
                at += run;
            }
        }
        // Single steps once more, as long as some of them go.
        run = if run == 1 && steps.len() < before { 1 } else { run / 2 };
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::step::Verb;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let steps: Vec<Step> =
            (0..100).map(|n| Step::new(1 + n % 5, 0, Verb::Pause, &[n as u64])).collect();
        let matters = |s: &Step| matches!(s.arg("ms"), 17 | 42);
        let small = shrink(steps, Duration::from_secs(60), |steps| {
            steps.iter().filter(|s| matters(s)).count() == 2
        });
        assert_eq!(small.iter().map(|s| s.arg("ms")).collect::<Vec<_>>(), [17, 42]);
    }
}
