//! How long to wait before a restart, and when to give up.

use std::time::Duration;

use crate::config::Backoff;

/// The restarts of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restarts {
    /// When each of the last ones was, ns of CLOCK_MONOTONIC.
    at_ns: Vec<u64>,
    /// In a row, each within [`Backoff::within`] of its start.
    in_row: u32,
    /// In all.
    pub(crate) total: u64,
}

impl Restarts {
    /// Of a process that an earlier supervisor has restarted so often.
    pub(crate) fn of(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// The process that ran for `ran` has ended: how long to wait before it starts again, or
    /// `None` when the limit is reached. `chance` lies in 0..1.
    pub(crate) fn next(
        &mut self,
        rule: &Backoff,
        now_ns: u64,
        ran: Duration,
        chance: f64,
    ) -> Option<Duration> {
        let within_ns = rule.within.as_nanos() as u64;
        self.at_ns.retain(|at| now_ns.saturating_sub(*at) < within_ns);
        if self.at_ns.len() >= rule.limit as usize {
            return None;
        }
        self.at_ns.push(now_ns);
        self.in_row = if ran >= rule.within { 0 } else { self.in_row };
        let wait_s = rule.first.as_secs_f64() * rule.factor.powi(self.in_row.min(1000) as i32);
        let wait_s = wait_s.min(rule.max.as_secs_f64());
        self.in_row += 1;
        self.total += 1;
        Some(Duration::from_secs_f64(wait_s * (1.0 - rule.jitter * chance)))
    }

    /// Restarts that count towards the limit.
    pub(crate) fn counted(&self) -> usize {
        self.at_ns.len()
    }

    /// Somebody restarts it by hand: the count begins anew.
    pub(crate) fn forgive(&mut self) {
        self.at_ns.clear();
        self.in_row = 0;
    }
}

/// Numbers without a pattern, so that robots that fail together do not restart together.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// In 0..1.
    pub(crate) fn draw(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Backoff = Backoff {
        first: Duration::from_millis(100),
        max: Duration::from_secs(1),
        factor: 2.0,
        jitter: 0.5,
        limit: 6,
        within: Duration::from_secs(10),
    };

    #[test]
    fn waits_grow_to_the_largest_and_end_at_the_limit() {
        let mut restarts = Restarts::default();
        let ms: Vec<_> = (0..7)
            .map(|n| restarts.next(&RULE, n * 1_000_000, Duration::ZERO, 0.0))
            .map(|wait| wait.map_or(0, |wait| wait.as_millis()))
            .collect();
        assert_eq!(ms, [100, 200, 400, 800, 1000, 1000, 0]);
        assert_eq!((restarts.total, restarts.counted()), (6, 6));
        restarts.forgive();
        assert!(restarts.next(&RULE, 0, Duration::ZERO, 0.0).is_some());
    }

    #[test]
    fn what_ran_long_begins_with_the_first_wait_and_old_restarts_do_not_count() {
        let mut restarts = Restarts::default();
        for n in 0..100 {
            let now_ns = n * 11_000_000_000;
            let wait = restarts.next(&RULE, now_ns, Duration::from_secs(11), 0.0);
            assert_eq!(wait, Some(Duration::from_millis(100)));
        }
    }

    #[test]
    fn jitter_only_shortens() {
        let mut chance = Chance::new(7);
        let mut seen = Vec::new();
        for _ in 0..100 {
            let drawn = chance.draw();
            let wait = Restarts::default().next(&RULE, 0, Duration::ZERO, drawn).unwrap();
            assert!((50..=100).contains(&wait.as_millis()), "{wait:?}");
            seen.push(wait);
        }
        seen.dedup();
        assert!(seen.len() > 90);
    }
}
