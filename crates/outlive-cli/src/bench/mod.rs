//! `outlive bench`: what this machine can do, and how near outlive comes to it, in under a minute.
//! The laboratory is `outlive-bench`, in `bench/`.
//!
//! | file | what |
//! |---|---|
//! | `channels` | the limits, with no library in between; outlive in their place |
//! | `pair` | two pinned processes: what they do with a channel while the clock runs |

mod channels;
mod pair;

use std::array;
use std::fs;

use clap::{Args, value_parser};
use outlive::internals::pin;
use serde::Serialize;

use crate::exit::{Failure, Outcome};
use crate::output::{print, print_json, table};
use crate::stage::Stage;
use pair::{Cores, Samples, sorted};

/// Measure this machine's limits, and next to each the cost that outlive adds.
///
/// Two processes, on the first two processors available to this one. Runs of the limit and of
/// outlive alternate; the ratio is the median of the rounds, next to the smallest and the largest.
/// Rounds in which the limit itself jumped do not count. Takes a few seconds; use a quiet machine.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive bench
  outlive bench --json | jq '.rows[] | {name, ratio}'
  taskset -c 2,3 outlive bench                    on other processors")]
pub(crate) struct BenchArgs {
    /// Rounds of each comparison.
    #[arg(long, default_value_t = 8, value_parser = value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Round trips of a run, and of one that sleeps.
const TRIPS: u64 = 10_000;
const WAKES: u64 = 1_000;
/// Messages of a stream, and room for them: slots of 64 B.
const STREAM: u64 = 1_000_000;
const SLOTS: usize = 1024;
/// Largest ratio of two neighbouring runs of a limit that is still the same machine.
const JUMP: f64 = 1.5;

pub(crate) fn run(args: &BenchArgs) -> Outcome {
    let cores = pair::cores()?;
    // Refused, the thread stays where it was.
    let _ = pin(cores[0]);
    let before = stolen();
    let rows = rows(cores, args.rounds)?;
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name"));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cpu: cpu.unwrap_or("unknown").trim_start_matches(['\t', ':', ' ']).into(),
        kernel: kernel.trim().into(),
        steal: before.zip(stolen()).map(|([s, all], [s_now, all_now])| {
            s_now.saturating_sub(s) as f64 / all_now.saturating_sub(all).max(1) as f64
        }),
        rows,
    };
    if args.json { print_json(&report) } else { print(&report.text()) }
}

fn rows(c: Cores, rounds: u16) -> Result<Vec<Row>, Failure> {
    let root = || Stage::set("measure", 64 << 20);
    let eight = array::from_fn::<_, 8, _>(|word| word + 1);
    let (mib, depth, lane) = (1 << 20, SLOTS as u64, SLOTS as u64 * 128);
    let row = |name, unit, limit, a: Run, b: Run| compare([name, unit, limit], rounds, a, b);
    Ok(vec![
        row(
            "topic 64 B, one way",
            "ns",
            "eight words handed over",
            &|| Ok(channels::raw_words(c, TRIPS, eight, eight)?),
            &|| Ok(channels::words(root()?.dir(), c, TRIPS)?),
        )?,
        row(
            "topic 1 MiB loan, one way",
            "ns",
            "a pointer handed over",
            &|| Ok(channels::raw_words(c, TRIPS, [1], [1, mib / 8])?),
            &|| Ok(channels::loan(root()?.dir(), c, mib, TRIPS)?),
        )?,
        row(
            "topic 64 B, stream",
            "1/s",
            "ring of 64 B slots",
            &|| Ok(channels::raw_ring::<8>(c, SLOTS, STREAM)?),
            &|| Ok(channels::topic(root()?.dir(), c, depth, STREAM)?),
        )?,
        row(
            "queue 8 B, stream",
            "1/s",
            "ring of 8 B slots",
            &|| Ok(channels::raw_ring::<1>(c, 16 * SLOTS, STREAM)?),
            &|| Ok(channels::queue(root()?.dir(), c, lane, STREAM)?),
        )?,
        row(
            "lock, a pair",
            "ns",
            "two compare-and-swaps",
            &|| Ok(channels::raw_swaps(STREAM)?),
            &|| Ok(channels::mutex(root()?.dir(), STREAM)?),
        )?,
        row(
            "wake of a sleeper, one way",
            "ns",
            "futex wake",
            &|| Ok(channels::raw_wake(c, WAKES)?),
            &|| Ok(channels::wake(root()?.dir(), c, WAKES)?),
        )?,
    ])
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    cpu: String,
    kernel: String,
    /// Share of processor time that the host gave to others meanwhile.
    steal: Option<f64>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    unit: &'static str,
    p50: f64,
    /// `null` for rates.
    p99: Option<f64>,
    limit: &'static str,
    limit_p50: f64,
    /// To the limit of the same rounds: the median, the least and the greatest of the rounds.
    ratio: Option<[f64; 3]>,
    rounds_discarded: usize,
}

/// One run.
type Run<'a> = &'a dyn Fn() -> Result<Samples, Failure>;

/// Runs limit, ours, limit, ours, ..., limit, and divides each of ours by its neighbours' mean.
fn compare(
    [name, unit, limit]: [&'static str; 3],
    rounds: u16,
    a: Run,
    b: Run,
) -> Result<Row, Failure> {
    let (mut all_a, mut all_b, mut ratios) = (a()?, Vec::new(), Vec::new());
    let mut before = at(&all_a, 50);
    for _ in 0..rounds {
        let (ours, next) = (b()?, a()?);
        let after = at(&next, 50);
        if before.max(after) <= JUMP * before.min(after) {
            ratios.push(at(&ours, 50) * 2.0 / (before + after));
        }
        before = after;
        all_a.extend(next);
        all_b.extend(ours);
    }
    let [all_a, all_b, ratios] = [all_a, all_b, ratios].map(sorted);
    Ok(Row {
        name,
        unit,
        p50: at(&all_b, 50),
        p99: (unit == "ns").then(|| at(&all_b, 99)),
        limit,
        limit_p50: at(&all_a, 50),
        ratio: (!ratios.is_empty()).then(|| [at(&ratios, 50), ratios[0], at(&ratios, 100)]),
        rounds_discarded: usize::from(rounds) - ratios.len(),
    })
}

impl Report {
    fn text(&self) -> String {
        let head = ["what", "p50", "p99", "ratio", "of each round", "limit", "p50"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for row in &self.rows {
            let [ratio, range] = match row.ratio {
                Some([mid, least, most]) => [format!("{mid:.2}"), format!("{least:.2}-{most:.2}")],
                None => ["-".into(), "the machine jumped".into()],
            };
            let show = |value: f64| human(value, row.unit);
            let p99 = row.p99.map_or("-".into(), show);
            let (name, limit) = (row.name.into(), row.limit.into());
            rows.push(vec![name, show(row.p50), p99, ratio, range, limit, show(row.limit_p50)]);
        }
        let steal = self.steal.map_or("unknown".into(), |s| format!("{:.1} %", s * 100.0));
        let (version, cpu, kernel) = (self.version, &self.cpu, &self.kernel);
        let machine = format!("outlive {version}, {cpu}, Linux {kernel}; steal {steal}\n\n");
        machine + &table(&rows, &[1, 2, 3, 6])
    }
}

/// Three digits and a unit.
fn human(mut value: f64, unit: &str) -> String {
    let steps = if unit == "ns" { ["ns", "us", "ms"] } else { ["/s", "k/s", "M/s"] };
    let mut step = 0;
    while value >= 1000.0 && step + 1 < steps.len() {
        (value, step) = (value / 1000.0, step + 1);
    }
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {}", steps[step])
}

/// Nearest rank; the middle is the mean of both middles.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let half = sorted.len() / 2;
    match percent {
        50 if sorted.len() % 2 == 0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[(percent * sorted.len()).div_ceil(100).max(1) - 1],
    }
}

/// Ticks of all processors that the host gave to others, and all.
fn stolen() -> Option<[u64; 2]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.map_while(|tick| tick.parse().ok()).collect();
    Some([*ticks.get(7)?, ticks.iter().sum()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_round_is_ours_over_the_mean_of_its_neighbours_and_a_jump_is_left_out() {
        // Limits 10, 20, 20, 20: the first round lies across a jump.
        let (turn, ours) = (Cell::new(0), Cell::new(0.0));
        let a = || Ok(vec![[10.0, 20.0, 20.0, 20.0][turn.replace(turn.get() + 1)]]);
        let b = || {
            ours.set(ours.get() + 20.0);
            Ok(vec![ours.get()])
        };
        let row = compare(["", "ns", ""], 3, &a, &b).unwrap();
        assert_eq!((row.ratio, row.rounds_discarded), (Some([2.5, 2.0, 3.0]), 1));
        assert_eq!((row.p50, row.limit_p50), (40.0, 20.0));
    }

    #[test]
    fn the_table_has_a_line_for_each_row() {
        let run = |value: f64| move || Ok(vec![value]);
        let row = compare(["topic", "ns", "raw"], 1, &run(50.0), &run(60.0)).unwrap();
        let (cpu, kernel) = ("X 1".to_owned(), "6.1".to_owned());
        let text = Report { version: "0", cpu, kernel, steal: Some(0.012), rows: vec![row] }.text();
        assert!(text.starts_with("outlive 0, X 1, Linux 6.1; steal 1.2 %\n\nwhat"), "{text}");
        assert!(text.contains("60.0 ns   1.20  1.20-1.20      raw    50.0 ns"), "{text}");
    }

    #[test]
    fn values_are_short() {
        assert_eq!(human(1.234, "ns"), "1.23 ns");
        assert_eq!(human(33_440.0, "ns"), "33.4 us");
        assert_eq!(human(4.1e8, "1/s"), "410 M/s");
        assert_eq!([at(&[1.0, 2.0], 50), at(&[1.0, 2.0, 4.0], 99)], [1.5, 4.0]);
    }
}
