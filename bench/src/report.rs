//! The table: for people, as JSON, as CSV.

use std::io::{self, Write};

use measure::machine::Machine;
use measure::stats::{Comparison, Ratio, Samples, Summary, Target, Verdict};
use serde::Serialize;

/// How a report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// What a row's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Unit {
    Ns,
    PerSecond,
    /// A part of what would be fair: 1.
    Share,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::PerSecond => "1/s",
            Self::Share => "share",
        }
    }
}

/// One measured thing.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    name: String,
    unit: Unit,
    /// `None` if no round could be used.
    values: Option<Summary>,
    against: Option<Against>,
}

/// The row's ratio to its limit.
#[derive(Debug, Serialize)]
struct Against {
    limit: String,
    limit_values: Option<Summary>,
    ratio: Option<Ratio>,
    rounds_kept: usize,
    rounds_discarded: usize,
    target: String,
    verdict: Verdict,
}

impl Row {
    /// A figure that stands alone.
    pub(crate) fn measured(name: &str, unit: Unit, samples: &Samples) -> Self {
        Self { name: name.into(), unit, values: Some(samples.summary()), against: None }
    }

    /// B of `comparison`, and its ratio to A, which is `limit`.
    pub(crate) fn compared(
        name: &str,
        unit: Unit,
        limit: &str,
        comparison: &Comparison,
        target: Target,
    ) -> Self {
        let ratio = comparison.ratio();
        let (a, b) = comparison.pooled.as_ref().map(|(a, b)| (a.summary(), b.summary())).unzip();
        let against = Against {
            limit: limit.into(),
            limit_values: a,
            ratio,
            rounds_kept: comparison.ratios.len(),
            rounds_discarded: comparison.discarded,
            target: match target {
                Target::AtMost(limit) => format!("<= {limit:.2}"),
                Target::AtLeast(limit) => format!(">= {limit:.2}"),
                Target::None => "-".into(),
            },
            verdict: target.verdict(ratio),
        };
        Self { name: name.into(), unit, values: b, against: Some(against) }
    }
}

impl Row {
    /// Name, p50, p99 where there are enough samples, and maximum.
    pub(crate) fn figures(&self) -> (&str, f64, Option<f64>, f64) {
        let nothing = (f64::NAN, None, f64::NAN);
        let (p50, p99, max) = self.values.as_ref().map_or(nothing, |v| (v.p50, v.p99, v.max));
        (&self.name, p50, p99, max)
    }

    /// B of `comparison` in ns, and whether its median is at most `more_ns` above that of A.
    pub(crate) fn added(name: &str, limit: &str, comparison: &Comparison, more_ns: f64) -> Self {
        let mut row = Self::compared(name, Unit::Ns, limit, comparison, Target::AtMost(1.0));
        if let Some(against) = &mut row.against {
            against.target = format!("<= +{more_ns:.0} ns");
            if let Some((a, b)) = &comparison.pooled {
                let met = b.median() - a.median() <= more_ns;
                against.verdict = if met { Verdict::Met } else { Verdict::Miss };
            }
        }
        row
    }
}

/// What the kills of one lock showed.
#[derive(Debug, Serialize)]
pub(crate) struct Kills {
    pub(crate) lock: &'static str,
    pub(crate) kills: u64,
    /// Kills after which a living thread waited for more than a second.
    pub(crate) stalls: u64,
    /// Turns that found another living one inside.
    pub(crate) violations: u64,
    /// Turns that found half a change of a dead one and were not told.
    pub(crate) torn_untold: u64,
    pub(crate) longest_wait_ns: u64,
    pub(crate) fatal_points_alone: &'static str,
    pub(crate) fatal_points_shared: &'static str,
}

/// All rows of a run, and where it ran.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    /// Share of processor time that the host gave to others during the run.
    pub(crate) steal: Option<f64>,
    pub(crate) rows: Vec<Row>,
    /// What random kills did to each lock.
    pub(crate) kills: Vec<Kills>,
    /// What the reader must know beside the figures, a line each.
    pub(crate) notes: Vec<String>,
}

impl Report {
    pub(crate) fn write(&self, format: Format, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Table => self.write_table(out),
            Format::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            Format::Csv => self.write_csv(out),
        }
    }

    fn write_table(&self, out: &mut dyn Write) -> io::Result<()> {
        let m = &self.machine;
        writeln!(out, "outlive {}, commit {}, rustc {}", m.version, m.commit, m.rustc)?;
        let steal = self.steal.map_or("unknown".into(), |s| format!("{:.1} %", s * 100.0));
        writeln!(out, "{}, {} cores, Linux {}, steal {steal}\n", m.cpu, m.cores, m.kernel)?;
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(34);
        writeln!(
            out,
            "{:<width$} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "what", "samples", "p50", "p99", "p99.9", "max", "mean", "sd"
        )?;
        for row in &self.rows {
            write!(out, "{:<width$}", row.name)?;
            let Some(v) = &row.values else {
                writeln!(out, " no round without a jump of the machine")?;
                continue;
            };
            let cell = |value: Option<f64>| value.map_or("-".into(), |x| human(x, row.unit));
            // A rate's slow end is not its 99th percentile.
            let tail = [v.p99, v.p999, Some(v.max)].map(|x| x.filter(|_| row.unit == Unit::Ns));
            let [p99, p999, max] = tail.map(cell);
            let [p50, mean, sd] = [v.p50, v.mean, v.deviation].map(|x| cell(Some(x)));
            write!(out, " {:>8} {p50:>9} {p99:>9} {p999:>9} {max:>9}", v.count)?;
            writeln!(out, " {mean:>9} {sd:>9}")?;
        }
        self.write_kills(out)?;
        for note in &self.notes {
            writeln!(out, "\n{note}")?;
        }
        let compared = || self.rows.iter().filter_map(|r| Some((r, r.against.as_ref()?)));
        if compared().next().is_none() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<width$} {:>6} {:>13} {:>7} {:>9} {:>8}",
            "ratio of medians", "ratio", "95 %", "rounds", "discarded", "target"
        )?;
        for (row, a) in compared() {
            let ratio = a.ratio.map_or("-".into(), |r| format!("{:.3}", r.median));
            let range = a.ratio.map_or("-".into(), |r| format!("{:.3}-{:.3}", r.low, r.high));
            let (kept, gone, target) = (a.rounds_kept, a.rounds_discarded, &a.target);
            let verdict = match a.verdict {
                Verdict::Met => "met",
                Verdict::Miss => "MISS",
                Verdict::NoTarget => "",
                Verdict::NotRanked => "not ranked: the machine jumped",
            };
            write!(out, "{:<width$} {ratio:>6} {range:>13} {kept:>7} {gone:>9} ", row.name)?;
            writeln!(out, "{target:>8} {verdict}  (to {})", a.limit)?;
        }
        Ok(())
    }

    fn write_kills(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.kills.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\n{:<26} {:>6} {:>7} {:>11} {:>12} {:>13} {:>13} {:>13}",
            "after kills of its holders",
            "kills",
            "stalls",
            "violations",
            "torn untold",
            "longest wait",
            "fatal, alone",
            "fatal, shared"
        )?;
        for k in &self.kills {
            let longest = human(k.longest_wait_ns as f64, Unit::Ns);
            write!(out, "{:<26} {:>6} {:>7} {:>11}", k.lock, k.kills, k.stalls, k.violations)?;
            let (alone, shared) = (k.fatal_points_alone, k.fatal_points_shared);
            writeln!(out, " {:>12} {longest:>13} {alone:>13} {shared:>13}", k.torn_untold)?;
        }
        Ok(())
    }

    fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "name,unit,samples,p50,p99,p999,max,limit,ratio,low,high,kept,discarded,target,verdict"
        )?;
        let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.4}"));
        for row in &self.rows {
            let v = row.values.as_ref();
            let mut cells = vec![
                quoted(&row.name),
                row.unit.as_str().into(),
                v.map_or(String::new(), |v| v.count.to_string()),
                number(v.map(|v| v.p50)),
                number(v.and_then(|v| v.p99)),
                number(v.and_then(|v| v.p999)),
                number(v.map(|v| v.max)),
            ];
            match &row.against {
                None => cells.extend(std::iter::repeat_n(String::new(), 8)),
                Some(a) => cells.extend([
                    quoted(&a.limit),
                    number(a.ratio.map(|r| r.median)),
                    number(a.ratio.map(|r| r.low)),
                    number(a.ratio.map(|r| r.high)),
                    a.rounds_kept.to_string(),
                    a.rounds_discarded.to_string(),
                    a.target.clone(),
                    format!("{:?}", a.verdict),
                ]),
            }
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }
}

/// Three digits and a unit: `62.1 ns`, `33.4 us`, `412 M/s`.
fn human(value: f64, unit: Unit) -> String {
    let steps = match unit {
        Unit::Ns => ["ns", "us", "ms", "s"],
        Unit::PerSecond => ["/s", "k/s", "M/s", "G/s"],
        Unit::Share => [""; 4],
    };
    let (mut value, mut step) = (value, 0);
    while value >= 1000.0 && step + 1 < steps.len() {
        (value, step) = (value / 1000.0, step + 1);
    }
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", steps[step])
}

/// A CSV cell that may hold commas and quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::stats::interleave;

    fn report() -> Report {
        let flat = |value: f64| Samples::new(vec![value; 2000]);
        let same = |a: f64, b: f64| {
            interleave(8, || Ok::<_, ()>(flat(a)), || Ok(flat(b))).expect("no errors above")
        };
        let mut place = 60.0;
        let jumping = interleave(
            8,
            || {
                place = 320.0 - place;
                Ok::<_, ()>(flat(place))
            },
            || Ok(flat(60.0)),
        );
        let rows = vec![
            Row::measured("raw, 64 B", Unit::Ns, &flat(62.04)),
            Row::measured("ring", Unit::PerSecond, &flat(4.1e8)),
            Row::compared("topic", Unit::Ns, "raw", &same(60.0, 90.0), Target::AtMost(1.25)),
            Row::compared("queue", Unit::PerSecond, "ring", &same(4.0, 2.0), Target::AtLeast(0.5)),
            Row::compared("torn", Unit::Ns, "raw", &jumping.expect("none"), Target::AtMost(1.0)),
        ];
        let (kills, notes) = (Vec::new(), Vec::new());
        Report { machine: Machine::describe(), steal: Some(0.0123), rows, kills, notes }
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        report().write(format, &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn the_table_shows_values_misses_and_rounds_it_refuses_to_rank() {
        let table = written(Format::Table);
        let line = |name: &str| table.lines().filter(|l| l.starts_with(name)).collect::<String>();
        assert!(line("raw, 64 B").contains("62.0 ns"), "{table}");
        assert!(line("ring").contains("410 M/s"), "{table}");
        assert!(line("topic").contains("1.500") && line("topic").contains("MISS"), "{table}");
        assert!(line("queue").contains(">= 0.50 met"), "{table}");
        assert!(line("torn").contains("not ranked"), "{table}");
        assert!(table.contains("steal 1.2 %"), "{table}");
    }

    #[test]
    fn json_and_csv_hold_every_row() {
        let json: serde_json::Value = serde_json::from_str(&written(Format::Json)).expect("JSON");
        assert_eq!(json["rows"][2]["against"]["verdict"], "miss");
        assert_eq!(json["rows"][0]["values"]["p50"], 62.04);
        assert_eq!(json["rows"][4]["values"], serde_json::Value::Null);
        let csv = written(Format::Csv);
        let columns: Vec<_> =
            csv.lines().map(|l| l.replace("raw, ", "").split(',').count()).collect();
        assert_eq!(columns, [15; 6], "{csv}");
        assert!(csv.contains("\"raw, 64 B\",ns,2000,62.0400"), "{csv}");
    }

    #[test]
    fn values_are_short() {
        assert_eq!(human(1.234, Unit::Ns), "1.23 ns");
        assert_eq!(human(33_440.0, Unit::Ns), "33.4 us");
        assert_eq!(human(2.5e9, Unit::PerSecond), "2.50 G/s");
        assert_eq!(human(7e12, Unit::Ns), "7000 s");
    }
}
