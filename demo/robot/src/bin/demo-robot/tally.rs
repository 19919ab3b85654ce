//! What the rounds came to, also those in which the machine itself stood still.

use std::time::Duration;

use measure::machine::{CpuTime, Machine};
use measure::stats::over_rounds;
use outlive::rt::Histogram;

use crate::teller::Teller;

/// A window of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Calm,
    Killing,
}

/// The percentiles of the core that are compared.
const SHOWN: [(f64, &str); 3] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9")];

/// Rounds with one period of the core.
pub(crate) struct Tally {
    /// Those that count, and the services killed in them.
    pub(crate) rounds: u32,
    pub(crate) kills: u32,
    /// The core's cycles in each round: in the window without kills, and in the one with.
    windows: Vec<[Histogram; 2]>,
    /// Rounds given up: the machine stood still in a window without kills, in one with, elsewhere.
    stills: [u32; 3],
    began: Option<CpuTime>,
}

impl Tally {
    pub(crate) fn begin() -> Self {
        let windows = Vec::new();
        Self { rounds: 0, kills: 0, windows, stills: [0; 3], began: CpuTime::now() }
    }

    /// A round that counts.
    pub(crate) fn add(&mut self, kills: u32, calm: Histogram, killing: Histogram) {
        self.rounds += 1;
        self.kills += kills;
        self.windows.push([calm, killing]);
    }

    /// The core's us at `share` of its cycles, all windows of `rounds` together: `[calm, killing]`.
    fn at(&self, share: f64, rounds: &[usize]) -> Option<[f64; 2]> {
        let of = |window: usize| {
            let all = rounds.iter().map(|&round| self.windows[round][window].clone());
            let ns = all.reduce(|a, b| a.and(&b))?.percentile_ns(share)?;
            Some(ns as f64 / 1000.0)
        };
        Some([of(0)?, of(1)?])
    }

    /// The machine stood still, in this window if it was one: the round does not count.
    pub(crate) fn give_up(&mut self, window: Option<Window>) {
        let at = match window {
            Some(Window::Calm) => 0,
            Some(Window::Killing) => 1,
            None => 2,
        };
        self.stills[at] += 1;
    }

    /// Whether another try with this period makes sense.
    pub(crate) fn has_hope(&self) -> bool {
        self.stills.iter().sum::<u32>() <= 2 + self.rounds
    }

    /// Kills must not be what makes the machine stand still, or giving rounds up hides what they
    /// do: how probable so uneven a split is by chance, if it is less than 1 in 100.
    pub(crate) fn is_uneven(&self) -> Option<f64> {
        let [calm, killing, _] = self.stills;
        let n = calm + killing;
        // At least `killing` heads of `n` coins.
        let (mut ways, mut p) = (1.0, 0.0);
        for heads in (killing..=n).rev() {
            p += ways * 0.5f64.powi(n as i32);
            ways = ways * f64::from(heads) / f64::from(n - heads + 1);
        }
        (p < 0.01).then_some(p)
    }

    pub(crate) fn tell(&self, teller: &Teller, period_us: u64) {
        let m = Machine::describe();
        let stolen = CpuTime::now().zip(self.began).map(|(now, began)| now.stolen_since(began));
        let stolen = stolen.map_or("unknown".into(), |share| format!("{:.1} %", share * 100.0));
        teller.more(format_args!(
            "{}, {} cores, Linux {}; steal {stolen} during the windows",
            m.cpu, m.cores, m.kernel
        ));
        let [calm, killing, elsewhere] = self.stills;
        if calm + killing + elsewhere > 0 {
            teller.more(format_args!(
                "rounds given up since the machine stood still for {:.1?} or more: {calm} in a \
                 window without kills, {killing} with, {elsewhere} elsewhere",
                still(period_us)
            ));
        }
        let rounds: Vec<usize> = (0..self.windows.len()).collect();
        for (share, name) in SHOWN {
            let Some([calm, killing]) = self.at(share, &rounds) else {
                teller.more(format_args!(
                    "windows are too short for a {name}: use a longer --window-ms"
                ));
                continue;
            };
            let ratio = over_rounds(rounds.len(), |rounds| {
                self.at(share, rounds).map(|[calm, killing]| killing / calm)
            });
            let ratio = match ratio {
                Some(r) => format!(
                    "ratio {:.2} (95 %: {:.2} to {:.2}; {} pairs of windows)",
                    r.median,
                    r.low,
                    r.high,
                    rounds.len()
                ),
                None => "no ratio: it needs 6 rounds".into(),
            };
            teller.more(format_args!(
                "core's {name} after release, all windows: {calm:.0} us without kills, \
                 {killing:.0} us with; {ratio}"
            ));
        }
    }
}

/// How late a sleeper beside the core must be for the machine to be what held the core up: the
/// deadline leaves a quarter of the period, and sleepers that wake every eighth see at least half
/// of what held it up for so long.
pub(crate) fn still(period_us: u64) -> Duration {
    Duration::from_micros(period_us / 8)
}

/// Whether the machine is why the core stopped or somebody did not come: nothing was killed yet, or
/// a sleeper beside the core was this late.
pub(crate) fn is_the_machine(struck: bool, worst: Duration, period_us: u64) -> bool {
    !struck || worst >= still(period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_untrue_before_the_first_kill() {
        let (early, late) = (Duration::from_micros(124), Duration::from_micros(125));
        assert!(is_the_machine(false, Duration::ZERO, 1000));
        assert!(!is_the_machine(true, early, 1000));
        assert!(is_the_machine(true, late, 1000));
    }

    #[test]
    fn a_period_is_given_up_after_three_tries_that_came_to_nothing() {
        let mut tally = Tally::begin();
        for _ in 0..2 {
            tally.give_up(None);
            assert!(tally.has_hope());
        }
        tally.rounds += 1;
        tally.give_up(Some(Window::Calm));
        assert!(tally.has_hope(), "one round counts already");
        tally.give_up(Some(Window::Killing));
        assert!(!tally.has_hope());
    }

    #[test]
    fn kills_that_make_the_machine_stand_still_are_told_from_chance() {
        let of = |calm: u32, killing: u32| {
            let mut tally = Tally::begin();
            (0..calm).for_each(|_| tally.give_up(Some(Window::Calm)));
            (0..killing).for_each(|_| tally.give_up(Some(Window::Killing)));
            tally.is_uneven()
        };
        // 1 of 128 and 1 of 64: binomial, p = 1/2.
        assert_eq!(of(0, 7), Some(1.0 / 128.0));
        assert_eq!(of(0, 6), None);
        assert_eq!((of(0, 0), of(9, 1), of(5, 5)), (None, None, None));
        assert!(of(2, 14).is_some());
    }
}
