//! What a sweep found.

use super::peer::Trouble;
use super::point::{Place, Point, locate, symbolize};
use std::collections::BTreeMap;
use std::fmt;

/// One point at which the promise did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Where the victim died.
    pub point: Point,
    /// What was wrong.
    pub what: String,
}

/// Figures and failures of one scenario.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The scenario and the kind of sweep.
    pub name: String,
    /// Points that exist.
    pub points: u64,
    /// Points taken, all with a verdict.
    pub covered: u64,
    /// Points where the run differed from the recorded one, so that the kill came elsewhere.
    pub off_target: u64,
    /// Instructions of the operation that were single-stepped.
    pub steps: u64,
    /// Victims killed.
    pub kills: u64,
    /// How often survivors saw what.
    pub outcomes: BTreeMap<String, u64>,
    /// Failed points; `failures` holds the first of them.
    pub failure_count: u64,
    /// The first failures, in the order of points.
    pub failures: Vec<Failure>,
    /// Hangs among the failures.
    pub hangs: u64,
    /// Crash points that were hit (named sweeps only).
    pub crash_points: Vec<String>,
    /// Given up early, after too many failures.
    pub gave_up: bool,
    /// Seconds it took, by the clock.
    pub seconds: f64,
}

const KEPT_FAILURES: usize = 1000;
const SHOWN_FAILURES: usize = 6;

impl Report {
    pub(crate) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    /// True when every covered point kept the promise.
    pub fn passed(&self) -> bool {
        self.failure_count == 0 && self.covered > 0
    }

    /// A failure of the scenario as a whole: a full sweep never saw one of `labels`.
    pub(crate) fn demand(&mut self, labels: &[&str]) {
        let full = self.covered >= self.points && !self.gave_up && self.failure_count == 0;
        for label in labels {
            if full && self.outcome(label) == 0 {
                let (mark, instruction_pointer) = (0, 0);
                let place = Place::AfterOp;
                let point = Point { place, finished: true, mark, instruction_pointer };
                let what = format!("no kill led to the outcome \"{label}\"");
                self.failure_count += 1;
                self.failures.push(Failure { point, what });
            }
        }
    }

    /// How often the survivors saw `label`.
    pub fn outcome(&self, label: &str) -> u64 {
        self.outcomes.get(label).copied().unwrap_or(0)
    }

    pub(crate) fn tally(&mut self, point: Point, verdict: Result<String, Trouble>) {
        self.covered += 1;
        self.points = self.points.max(self.covered);
        match verdict {
            Ok(label) => *self.outcomes.entry(label).or_insert(0) += 1,
            Err(trouble) => {
                let what = match trouble {
                    Trouble::Failed(what) => what,
                    Trouble::Hung(what) => {
                        self.hangs += 1;
                        what
                    }
                };
                self.failure_count += 1;
                if self.failures.len() < KEPT_FAILURES {
                    self.failures.push(Failure { point, what });
                }
            }
        }
    }

    /// Adds the figures of a driver that took other points of the same scenario.
    pub(crate) fn merge(&mut self, other: Self) {
        self.points += other.points;
        self.covered += other.covered;
        self.off_target += other.off_target;
        self.steps += other.steps;
        self.kills += other.kills;
        for (label, count) in other.outcomes {
            *self.outcomes.entry(label).or_insert(0) += count;
        }
        self.failure_count += other.failure_count;
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|failure| failure.point.place.rank());
        self.failures.truncate(KEPT_FAILURES);
        self.hangs += other.hangs;
        for name in other.crash_points {
            if !self.crash_points.contains(&name) {
                self.crash_points.push(name);
            }
        }
        self.gave_up |= other.gave_up;
        self.seconds = self.seconds.max(other.seconds);
    }

    /// One line for each field, for the way from a driver to the suite.
    pub(crate) fn encode(&self) -> String {
        let mut text = format!(
            "figures {} {} {} {} {} {} {} {} {}\n",
            self.points,
            self.covered,
            self.off_target,
            self.steps,
            self.kills,
            self.failure_count,
            self.hangs,
            u8::from(self.gave_up),
            self.seconds
        );
        for (label, count) in &self.outcomes {
            text += &format!("outcome {count} {label}\n");
        }
        for name in &self.crash_points {
            text += &format!("crash_point {name}\n");
        }
        for failure in &self.failures {
            let what = failure.what.replace('\n', " | ");
            text += &format!("failure {}\t{what}\n", failure.point.encode());
        }
        text
    }

    pub(crate) fn decode(name: &str, text: &str) -> Option<Self> {
        let mut report = Self::new(name.to_owned());
        let mut complete = false;
        for line in text.lines() {
            let (key, rest) = line.split_once(' ')?;
            match key {
                "figures" => {
                    let mut n = rest.split(' ');
                    let mut next = || n.next()?.parse::<u64>().ok();
                    report.points = next()?;
                    report.covered = next()?;
                    report.off_target = next()?;
                    report.steps = next()?;
                    report.kills = next()?;
                    report.failure_count = next()?;
                    report.hangs = next()?;
                    report.gave_up = next()? != 0;
                    report.seconds = n.next()?.parse().ok()?;
                    complete = true;
                }
                "outcome" => {
                    let (count, label) = rest.split_once(' ')?;
                    report.outcomes.insert(label.to_owned(), count.parse().ok()?);
                }
                "crash_point" => report.crash_points.push(rest.to_owned()),
                "failure" => {
                    let (point, what) = rest.split_once('\t')?;
                    let (point, what) = (Point::decode(point)?, what.to_owned());
                    report.failures.push(Failure { point, what });
                }
                _ => return None,
            }
        }
        complete.then_some(report)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = |n: u64| n as f64 / self.seconds.max(1e-6);
        write!(
            f,
            "{}: {} of {} points, {} steps, {:.2} s, {:.0} steps/s, {:.0} kills/s",
            self.name,
            self.covered,
            self.points,
            self.steps,
            self.seconds,
            per_second(self.steps),
            per_second(self.kills)
        )?;
        if self.off_target > 0 {
            write!(f, ", {} off target", self.off_target)?;
        }
        if self.gave_up {
            write!(f, ", GIVEN UP early")?;
        }
        for (label, count) in &self.outcomes {
            write!(f, ", {label} {count}")?;
        }
        if self.failure_count > 0 {
            write!(f, ", FAILED {}", self.failure_count)?;
        }
        // Neighbours with the same complaint share a line.
        let groups: Vec<_> = self.failures.chunk_by(|a, b| a.what == b.what).collect();
        for group in groups.iter().take(SHOWN_FAILURES) {
            let Failure { point, what } = &group[0];
            write!(f, "\n  FAILED at SWEEP_AT={}", point.place.code())?;
            if let [_, .., last] = group {
                write!(f, " (and {} more, to {})", group.len() - 1, last.point.place.code())?;
            }
            write!(f, ": {what}\n    {point}")?;
            if let Some(symbol) = symbolize(point.instruction_pointer) {
                write!(f, "\n    {symbol}")?;
            }
        }
        match groups.len().saturating_sub(SHOWN_FAILURES) {
            0 => Ok(()),
            more => write!(f, "\n  ... and {more} more groups of failures"),
        }
    }
}

impl Failure {
    /// Module and offset of the instruction that would have come next.
    pub fn location(&self) -> String {
        locate(self.point.instruction_pointer)
    }

    /// The place of the kill.
    pub fn place(&self) -> &Place {
        &self.point.place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_the_way_to_the_suite() {
        let places = [
            "i7",
            "e3:202",
            "x3:202",
            "c4:17",
            "f3:202:12",
            "F3:2:5",
            "n2:a.b",
            "t8",
            "asleep",
            "done",
        ];
        let mut report = Report::new("name".into());
        for (n, code) in places.iter().enumerate() {
            let place = Place::parse(code).expect("a place");
            assert_eq!(place.code(), *code);
            let point = Point { place, finished: n % 2 == 1, mark: 5, instruction_pointer: 99 };
            report.tally(point, Err(Trouble::Failed("no good".into())));
        }
        let point = report.failures[0].point.clone();
        report.tally(point, Ok("owner died".into()));
        report.crash_points.push("a.b".into());
        report.seconds = 1.5;
        let copy = Report::decode("name", &report.encode()).expect("a report");
        assert_eq!(copy.failures, report.failures);
        assert_eq!((copy.outcomes, copy.crash_points), (report.outcomes, report.crash_points));
        assert_eq!((copy.covered, copy.failure_count, copy.seconds), (11, 10, 1.5));
        assert!(Report::decode("name", "").is_none(), "a driver that died left no figures");
        assert!(Place::parse("q1").is_none() && Place::parse("").is_none());
    }
}
