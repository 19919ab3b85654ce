//! `outlive bench`: what this machine can do, and how near outlive comes to it, in under a minute.
//! The laboratory is `outlive-bench`, in `bench/`.
//!
//! | file | what |
//! |---|---|
//! | `raw` | the limits: no library in between |
//! | `ours` | the same by outlive |
//! | `pair` | two pinned processes over a few shared words |

mod ours;
mod pair;
mod raw;

use std::fs;
use std::time::Instant;

use clap::{Args, value_parser};
use outlive::{Error, ErrorKind, Result, now_ns};
use serde::Serialize;

use crate::exit::{Failure, Outcome};
use crate::output::{print, print_json, table};
use crate::stage::Stage;

/// Measure this machine's limits, and topics, queues, locks and waking beside them.
///
/// Two processes on the first two processors that this one may use. Runs alternate with those of
/// the limit; the ratio is the median of the rounds, and beside it are the least and the greatest.
/// A round in which the limit itself jumped is left out. Takes some seconds; use a quiet machine.
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

/// Our processor and the peer's.
type Cores = [usize; 2];
/// Sorted; ns, or messages per second.
type Samples = Vec<f64>;

/// Round trips of a run, and of one that sleeps.
const TRIPS: u64 = 10_000;
const WAKES: u64 = 1_000;
/// Messages of a stream, and room for them: slots of 64 B.
const STREAM: u64 = 1_000_000;
const SLOTS: usize = 1024;
const MIB: usize = 1 << 20;
/// Largest ratio of two neighbouring runs of a limit that is still the same machine.
const JUMP: f64 = 1.5;

pub(crate) fn run(args: &BenchArgs) -> Outcome {
    let cores = pair::cores()?;
    pair::pin(cores[0]);
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

fn rows(cores: Cores, rounds: u16) -> std::result::Result<Vec<Row>, Failure> {
    let root = || Stage::set("measure", 64 << 20);
    let (c, n) = (cores, rounds);
    Ok(vec![
        compare(
            "topic 64 B, one way",
            "ns",
            "eight words handed over",
            n,
            || Ok(raw::words(c, TRIPS)?),
            || Ok(ours::words(root()?.dir(), c, TRIPS)?),
        )?,
        compare(
            "topic 1 MiB loan, one way",
            "ns",
            "a pointer handed over",
            n,
            || Ok(raw::pointer(c, MIB, TRIPS)?),
            || Ok(ours::loan(root()?.dir(), c, MIB, TRIPS)?),
        )?,
        compare(
            "topic 64 B, stream",
            "1/s",
            "ring of 64 B slots",
            n,
            || Ok(raw::ring::<8>(c, SLOTS, STREAM)?),
            || Ok(ours::topic(root()?.dir(), c, SLOTS as u64, STREAM)?),
        )?,
        compare(
            "queue 8 B, stream",
            "1/s",
            "ring of 8 B slots",
            n,
            || Ok(raw::ring::<1>(c, 16 * SLOTS, STREAM)?),
            || Ok(ours::queue(root()?.dir(), c, 128 << 10, STREAM)?),
        )?,
        compare(
            "lock, a pair",
            "ns",
            "two compare-and-swaps",
            n,
            || Ok(raw::swaps(STREAM)?),
            || Ok(ours::mutex(root()?.dir(), STREAM)?),
        )?,
        compare(
            "wake of a sleeper, one way",
            "ns",
            "futex wake",
            n,
            || Ok(raw::wake(c, WAKES)?),
            || Ok(ours::wake(root()?.dir(), c, WAKES)?),
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

/// Runs limit, ours, limit, ours, ..., limit, and divides each of ours by its neighbours' mean.
fn compare(
    name: &'static str,
    unit: &'static str,
    limit: &'static str,
    rounds: u16,
    mut a: impl FnMut() -> std::result::Result<Samples, Failure>,
    mut b: impl FnMut() -> std::result::Result<Samples, Failure>,
) -> std::result::Result<Row, Failure> {
    let (mut all_a, mut all_b, mut ratios) = (a()?, Vec::new(), Vec::new());
    let mut before = at(&all_a, 50);
    for _ in 0..rounds {
        let (ours, limit) = (b()?, a()?);
        let after = at(&limit, 50);
        if before.max(after) <= JUMP * before.min(after) {
            ratios.push(at(&ours, 50) * 2.0 / (before + after));
        }
        before = after;
        all_a.extend(limit);
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

/// Times `count` round trips, numbered from 1: ns one way, without the first tenth.
fn ways(count: u64, mut trip: impl FnMut(u64) -> Result<()>) -> Result<Samples> {
    let mut ways = Vec::with_capacity(count as usize);
    for i in 1..=count {
        let start = now_ns();
        trip(i)?;
        ways.push(now_ns().saturating_sub(start) as f64 / 2.0);
    }
    ways.drain(..ways.len() / 10);
    Ok(sorted(ways))
}

/// ns of one of `count` calls, ten samples, after a tenth that does not count.
fn times(count: u64, mut call: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut all = Vec::new();
    for _ in 0..11 {
        let start = now_ns();
        (0..count / 10).try_for_each(|_| call())?;
        all.push(now_ns().saturating_sub(start) as f64 / (count / 10) as f64);
    }
    all.remove(0);
    Ok(sorted(all))
}

/// One sample: messages per second.
fn rate(count: u64, start: Instant) -> Samples {
    vec![count as f64 / start.elapsed().as_secs_f64()]
}

fn sorted(mut values: Vec<f64>) -> Samples {
    values.sort_by(f64::total_cmp);
    values
}

/// Nearest rank; the middle is the mean of both middles.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let half = sorted.len() / 2;
    match percent {
        50 if sorted.len() % 2 == 0 => (sorted[half - 1] + sorted[half]) / 2.0,
        _ => sorted[(percent * sorted.len()).div_ceil(100).max(1) - 1],
    }
}

/// What was sent has arrived.
fn same(good: bool) -> Result<()> {
    let remedy = "report it with the machine's description";
    let error = || Error::new(ErrorKind::Corrupt, "compare the answer of", "the peer", remedy);
    if good { Ok(()) } else { Err(error()) }
}

/// Ticks of all processors that the host gave to others, and all.
fn stolen() -> Option<[u64; 2]> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks = stat.lines().next()?.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.map_while(|tick| tick.parse().ok()).collect();
    Some([*ticks.get(7)?, ticks.iter().sum()])
}
