//! `outlive-bench`: what the machine can do, and how near outlive comes to it; beside others, too.
//!
//! | file | idea |
//! |---|---|
//! | `fan` | one to eight, large messages |
//! | `liveness` | ways to know whether a process lives |
//! | `gpu` | device memory in and out of chunks, in another process |
//! | `loads` | loads of whole programs: MessagePack to eight, seven bytes, a look from outside |
//! | `locks` | locks, outlive's, the C library's and others |
//! | `queue/` | queues, beside bare rings and what the kernel has; ablations |
//! | `service` | round trips of services |
//! | `pipeline` | a robot's control loop over every mechanism |
//! | `raw` | the limits of the machine, without a library |
//! | `topic` | outlive's topics, each beside its limit |
//! | `pair` | two pinned processes over a shared map |
//! | `report` | table, JSON, CSV |
//! | `ticks` | the cheapest clock |

mod fan;
mod gpu;
mod liveness;
mod loads;
mod locks;
mod pair;
mod pipeline;
mod queue;
mod raw;
mod report;
mod scratch;
mod service;
mod ticks;
mod topic;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, ValueEnum, value_parser};
use measure::cores::Cores;
use measure::machine::{CpuTime, Machine};
use measure::stats::{Target, interleave};
use outlive::{Error, ErrorKind, Result};

use report::{Format, Report, Row, Unit};

/// Measure latency and throughput against the limits of this machine.
///
/// Ratios are medians over rounds that alternate with the limit, with a 95 % interval. A round in
/// which the limit itself jumped is discarded and counted. Use a quiet machine.
#[derive(Debug, Parser)]
#[command(name = "outlive-bench", version)]
struct BenchArgs {
    /// What to measure.
    #[arg(value_enum, default_value = "topic")]
    what: What,
    /// A few seconds instead of minutes: fewer rounds.
    #[arg(long)]
    quick: bool,
    /// Rounds of each comparison [default: 30, quick: 8].
    #[arg(long, value_parser = value_parser!(u16).range(6..=10_000))]
    rounds: Option<u16>,
    /// Round trips of each run.
    #[arg(long, default_value_t = 10_000, value_parser = value_parser!(u64).range(10..))]
    samples: u64,
    /// Size of the large process of `liveness`, MiB; 0 leaves it out.
    #[arg(long, default_value_t = 4096, value_parser = value_parser!(u64).range(..=1 << 20))]
    large_mib: u64,
    /// `locks`: only kill holders of each lock, this many. Minutes: some locks stall after a kill.
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// `locks`: only their rows in the path of messages.
    #[arg(long)]
    messages: bool,
    /// `pipeline`: SCHED_FIFO priority of the stages; 0 for none.
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u8).range(..=90))]
    fifo: u8,
    /// `pipeline`: only this period, us.
    #[arg(long, value_parser = value_parser!(u64).range(100..=1_000_000))]
    period_us: Option<u64>,
    /// `pipeline`: spin also where there are fewer cores than stages.
    #[arg(long)]
    spin: bool,
    /// `pipeline`: write a report with plots, one HTML file that needs nothing else.
    #[arg(long)]
    html: Option<std::path::PathBuf>,
    /// `pipeline`: write the plot of latencies alone, as SVG.
    #[arg(long)]
    svg: Option<std::path::PathBuf>,
    /// `pipeline`: only rows whose name contains one of these words.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Print JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print CSV.
    #[arg(long)]
    csv: bool,
}

/// What is measured.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Topics: one-way latency beside the bare hand-over of the same run.
    Topic,
    /// Queues: throughput beside bare rings, pipes and sockets; what each check of the consumer's
    /// life costs in a send; waking, growing; ablations of a ring.
    Queue,
    /// Services: round trips beside a topic's one way and Unix sockets.
    Service,
    /// Ways to know whether a process lives: what a check costs, how late each reports a SIGKILL.
    Liveness,
    /// Locks beside the C library's and others: alone, with rivals, after a holder's death.
    Locks,
    /// A robot's control loop: latency and jitter over locks, lock-free channels, pipes, sockets.
    Pipeline,
    /// Device memory in and out of shared memory, beside the card's limit; 4 without a GPU.
    Gpu,
    /// The machine's own limits, and the method against itself.
    Raw,
}

impl BenchArgs {
    fn rounds(&self) -> usize {
        usize::from(self.rounds.unwrap_or(if self.quick { 8 } else { 30 }))
    }
}

/// Sizes of the large payloads: an image, a point cloud.
const LARGE: [(&str, usize); 2] = [("1 MiB", 1 << 20), ("10 MB", 10_000_000)];
const RING_SLOTS: usize = 1024;

/// Ends with 4 where what is to be measured is not here, a GPU for one, or the machine stalled;
/// else with 1 after an error.
fn main() -> ExitCode {
    match run(&BenchArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("outlive-bench: {error}");
            let absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Timeout);
            ExitCode::from(if absent { 4 } else { 1 })
        }
    }
}

/// Runs everything and prints the report on standard output.
fn run(args: &BenchArgs) -> Result<()> {
    scratch::sweep();
    let format = match (args.json, args.csv) {
        (true, _) => Format::Json,
        (_, true) => Format::Csv,
        _ => Format::Table,
    };
    if matches!(args.what, What::Pipeline) {
        let options = pipeline::PipelineOptions {
            quick: args.quick,
            rounds: usize::from(args.rounds.unwrap_or(if args.quick { 6 } else { 10 })),
            fifo: args.fifo,
            spin: args.spin,
            html: args.html.as_deref(),
            svg: args.svg.as_deref(),
            rows: &args.rows,
            period_us: args.period_us,
        };
        return pipeline::run(&options, format);
    }
    if matches!(args.what, What::Gpu)
        && let Some(dir) = std::env::var_os(gpu::PEER)
    {
        return gpu::peer(dir.as_ref());
    }
    let cores = Cores::first_two()?;
    let before = CpuTime::now();
    let (mut rows, mut notes, mut kills) = (Vec::new(), Vec::new(), Vec::new());
    match args.what {
        What::Topic => {
            rows.extend(topic_rows(cores, args)?);
            let (more, said) = loads::rows(cores, args.rounds(), args.samples)?;
            rows.extend(more);
            notes.extend(said);
        }
        What::Queue => {
            let (more, said) = queue::rows(cores, args)?;
            rows.extend(more);
            notes.extend(said);
        }
        What::Service => rows.extend(service::rows(cores, args.rounds(), args.samples)?),
        What::Liveness => {
            let large_bytes = (args.large_mib as usize) << 20;
            let (more, said) = liveness::rows(cores, args.rounds(), large_bytes)?;
            rows.extend(more);
            notes.extend(said);
        }
        What::Locks => {
            if args.kills > 0 {
                let (more, said) = locks::kill_rows(args.kills)?;
                kills.extend(more);
                notes.push(said);
            }
            if args.messages {
                rows.extend(locks::message_rows(cores, args.rounds())?);
            } else if args.kills == 0 {
                let (more, said) = locks::rows(cores, args.rounds())?;
                rows.extend(more);
                notes.extend(said);
            }
        }
        What::Gpu => {
            let (more, said) = gpu::rows(args.rounds())?;
            rows.extend(more);
            notes.extend(said);
        }
        // Has a report of its own.
        What::Pipeline => {}
        What::Raw => {
            rows.extend(raw_rows(cores, args.samples)?);
            rows.extend(self_check(cores, args)?);
        }
    }
    let steal = CpuTime::now().zip(before).map(|(now, before)| now.stolen_since(before));
    let report = Report { machine: Machine::describe(), steal, rows, kills, notes };
    let mut out = io::stdout().lock();
    report.write(format, &mut out).and_then(|()| out.flush()).map_err(|source| {
        Error::new(ErrorKind::Io, "print the report to", "standard output", "").with_source(source)
    })
}

/// The limits of the machine.
fn raw_rows(cores: Cores, samples: u64) -> Result<Vec<Row>> {
    let one_way = |name: &str, samples| Row::measured(name, Unit::Ns, &samples);
    let rate = |name: &str, samples| Row::measured(name, Unit::PerSecond, &samples);
    let mut rows = vec![
        one_way("raw 56 B inline, one way", raw::inline::<7>(cores, samples)?),
        one_way("raw 64 B inline, one way", raw::inline::<8>(cores, samples)?),
        one_way("raw 4 KiB inline, one way", raw::inline::<512>(cores, samples)?),
    ];
    for (size, bytes) in LARGE {
        let (few, name) = (samples.min((4u64 << 30) / bytes as u64), |what| {
            format!("raw {size} {what}, one way")
        });
        rows.push(one_way(&name("pointer"), raw::pointer(cores, bytes, samples)?));
        rows.push(one_way(&name("copied, read"), raw::copied(cores, bytes, few)?));
    }
    rows.push(one_way("raw futex wake, one way", raw::wake(cores, samples.min(5_000))?));
    let count = samples * 100;
    rows.push(rate("raw ring, 8 B", raw::ring::<1>(cores, 16 * RING_SLOTS, count)?));
    rows.push(rate("raw ring, 64 B", raw::ring::<8>(cores, RING_SLOTS, count)?));
    Ok(rows)
}

/// The method against itself: a ratio far from 1 means that nothing else here can be believed.
fn self_check(cores: Cores, args: &BenchArgs) -> Result<[Row; 2]> {
    let rounds = args.rounds();
    let inline = || raw::inline::<8>(cores, args.samples);
    let ring = || raw::ring::<8>(cores, RING_SLOTS, args.samples * 100);
    let (times, rates) = (interleave(rounds, inline, inline)?, interleave(rounds, ring, ring)?);
    let row = Row::compared;
    Ok([
        row("self-check: raw 64 B inline", Unit::Ns, "itself", &times, Target::AtMost(1.1)),
        row("self-check: raw ring, 64 B", Unit::PerSecond, "itself", &rates, Target::AtLeast(0.9)),
    ])
}

/// Topics, each row beside its limit.
fn topic_rows(cores: Cores, args: &BenchArgs) -> Result<Vec<Row>> {
    let (rounds, samples) = (args.rounds(), args.samples);
    let mut rows = Vec::new();
    let unstamped = topic::EchoOptions { timestamps: false, ..topic::USUAL };
    for (what, options) in [("64 B", topic::USUAL), ("64 B, no time stamps", unstamped)] {
        let c = interleave(
            rounds,
            || raw::inline::<8>(cores, samples),
            || topic::inline::<8>(cores, options, samples),
        )?;
        let (name, limit) = (format!("topic {what}, one way"), "raw 64 B inline");
        rows.push(Row::compared(&name, Unit::Ns, limit, &c, Target::AtMost(1.25)));
    }
    let few = |bytes: usize| samples.min((2u64 << 30) / bytes as u64).max(100);
    let c = interleave(
        rounds,
        || raw::copied(cores, 4096, samples),
        || topic::copied(cores, 4096, samples),
    )?;
    let limit = "raw 4 KiB copied, read";
    rows.push(Row::compared("topic 4 KiB, one way", Unit::Ns, limit, &c, Target::AtMost(1.25)));
    for (size, bytes) in LARGE {
        let c = interleave(
            rounds,
            || raw::pointer(cores, bytes, samples),
            || topic::loan(cores, bytes, samples),
        )?;
        let (name, limit) = (format!("topic {size} loan, one way"), format!("raw {size} pointer"));
        rows.push(Row::compared(&name, Unit::Ns, &limit, &c, Target::AtMost(1.5)));
    }
    for (size, bytes) in LARGE {
        let count = few(bytes) / if args.quick { 4 } else { 1 };
        let c = interleave(
            rounds,
            || raw::copied(cores, bytes, count),
            || topic::copied(cores, bytes, count),
        )?;
        let (name, limit) = (format!("topic {size} copied, read"), format!("raw {size} copied"));
        rows.push(Row::compared(&name, Unit::Ns, &limit, &c, Target::AtMost(1.05)));
    }
    let count = samples * 100;
    let c = interleave(
        rounds,
        || raw::ring::<8>(cores, RING_SLOTS, count),
        || topic::stream::<8>(cores, RING_SLOTS as u64, count),
    )?;
    let name = "topic 64 B stream, reliable";
    rows.push(Row::compared(name, Unit::PerSecond, "raw ring, 64 B", &c, Target::AtLeast(0.3)));
    let c = interleave(rounds, || fan::raw(cores), || fan::topic(cores))?;
    let name = "topic 10 MB to 8, handed over";
    rows.push(Row::compared(name, Unit::PerSecond, "raw hand-over", &c, Target::AtLeast(0.9)));
    let wakes = samples.min(2000);
    let c = interleave(rounds, || raw::wake(cores, wakes), || topic::wake(cores, wakes))?;
    rows.push(Row::compared("topic, waking", Unit::Ns, "raw futex wake", &c, Target::AtMost(1.1)));
    rows.extend(publish_costs(cores, rounds, samples * 20)?);
    Ok(rows)
}

/// What a publish costs with subscribers watching, beside none, in ns more.
fn publish_costs(cores: Cores, rounds: usize, count: u64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let none = interleave(
        rounds,
        || topic::publish_cost(cores, 0, count),
        || topic::publish_cost(cores, 0, count),
    )?;
    rows.push(Row::compared("publish, 0 watching", Unit::Ns, "itself", &none, Target::None));
    for (watching, more) in [(1, 10.0), (8, 10.0), (64, 60.0)] {
        let c = interleave(
            rounds,
            || topic::publish_cost(cores, 0, count),
            || topic::publish_cost(cores, watching, count),
        )?;
        let name = format!("publish, {watching} watching");
        rows.push(Row::added(&name, "none", &c, more));
    }
    Ok(rows)
}
