//! `outlive-bench pipeline`: a robot's control loop over every mechanism.
//!
//! Planner, IK, EtherCAT master and mock hardware, released every period. Rows differ only in what
//! carries a packet from stage to stage, in what memory, and in how the next one waits. Stages lie
//! on the cores in turn. Rounds run all rows, each in another order; ratios are of the medians of
//! all cycles, their 95 % interval comes from drawing rounds.
//!
//! | file | idea |
//! |---|---|
//! | `work` | what the stages do |
//! | `hops` | mutex and condition variable, a bare word, pipe, socket |
//! | `runs` | one run: one thread, threads, processes |
//! | `primitives` | what locks, wakes, atomics and system calls cost |
//! | `results` | what the runs showed |
//! | `page`, `plot` | the HTML report and its plots |
//! | `print` | table and CSV |

mod hops;
mod page;
mod plot;
mod primitives;
mod print;
mod results;
mod runs;
mod work;

use std::io::{self, Write};
use std::path::Path;

use measure::cores::Cores;
use measure::machine::{CpuTime, Machine};
use measure::stats::{over_rounds, shuffled};
use outlive::rt::Realtime;
use outlive::{Error, ErrorKind, Result};

use super::report::Format;
use super::scratch::TempRoot;
use hops::Waiting;
use results::{BEYOND_MIN, Pair, Results, line};
use runs::{Mechanism, Outcomes, Subject, Timing};

const fn row(
    name: &'static str,
    mechanism: Mechanism,
    processes: bool,
    waiting: Waiting,
) -> Subject {
    Subject { name, mechanism, processes, waiting, stages: work::PARTS }
}

/// Two stages, so that each has a core also where there are two, with lock-free channels.
const fn two_stages(name: &'static str, processes: bool, waiting: Waiting) -> Subject {
    Subject { name, mechanism: Mechanism::LockFree, processes, waiting, stages: 2 }
}

/// Every row; those that spin come last.
const SUBJECTS: [Subject; 23] = {
    use Mechanism::{Bare, Calls, LockFree, Mutex, Pipe, Socket};
    use Waiting::{Sleep, Spin, Yield};
    [
        row("one thread", Calls, false, Sleep),
        row("lock-free, heap, sleep", LockFree, false, Sleep),
        row("mutex, heap, sleep", Mutex, false, Sleep),
        row("lock-free, shared, sleep", LockFree, true, Sleep),
        row("mutex, shared, sleep", Mutex, true, Sleep),
        row("pipe, processes", Pipe, true, Sleep),
        row("Unix socket, processes", Socket, true, Sleep),
        row("bare futex, threads", Bare, false, Sleep),
        row("bare futex, processes", Bare, true, Sleep),
        row("lock-free, heap, yield", LockFree, false, Yield),
        row("mutex, heap, yield", Mutex, false, Yield),
        row("lock-free, shared, yield", LockFree, true, Yield),
        row("mutex, shared, yield", Mutex, true, Yield),
        row("bare yield, threads", Bare, false, Yield),
        row("bare yield, processes", Bare, true, Yield),
        two_stages("two stages, heap, yield", false, Yield),
        two_stages("two stages, shared, yield", true, Yield),
        two_stages("two stages, heap, spin", false, Spin),
        two_stages("two stages, shared, spin", true, Spin),
        row("lock-free, heap, spin", LockFree, false, Spin),
        row("mutex, heap, spin", Mutex, false, Spin),
        row("lock-free, shared, spin", LockFree, true, Spin),
        row("mutex, shared, spin", Mutex, true, Spin),
    ]
};

/// What is divided by what: B, A.
const PAIRS: [(&str, &str); 13] = [
    ("lock-free, shared, sleep", "lock-free, heap, sleep"),
    ("mutex, shared, sleep", "mutex, heap, sleep"),
    ("lock-free, heap, sleep", "mutex, heap, sleep"),
    ("lock-free, shared, sleep", "mutex, shared, sleep"),
    ("pipe, processes", "lock-free, shared, sleep"),
    ("Unix socket, processes", "lock-free, shared, sleep"),
    ("bare futex, processes", "bare futex, threads"),
    ("lock-free, shared, yield", "lock-free, heap, yield"),
    ("mutex, shared, yield", "mutex, heap, yield"),
    ("bare yield, processes", "bare yield, threads"),
    ("two stages, shared, yield", "two stages, heap, yield"),
    ("two stages, shared, spin", "two stages, heap, spin"),
    ("lock-free, shared, spin", "lock-free, heap, spin"),
];

/// Settings of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineOptions<'a> {
    pub(super) quick: bool,
    /// Rounds of each row.
    pub(super) rounds: usize,
    /// SCHED_FIFO priority of the stages, 0 for none.
    pub(super) fifo: u8,
    /// Run the spinning rows also where there are fewer cores than stages.
    pub(super) spin: bool,
    /// Where the HTML report goes.
    pub(super) html: Option<&'a Path>,
    /// Where the plot of percentiles goes.
    pub(super) svg: Option<&'a Path>,
    /// Only rows whose name contains one of these; all if there are none.
    pub(super) rows: &'a [String],
    /// Only this period, us.
    pub(super) period_us: Option<u64>,
}

/// Ratios of p50 of all cycles together; rounds are the observations.
fn pairs(period_us: u64, subjects: &[Subject], rounds: &[Vec<Outcomes>]) -> Vec<Pair> {
    let of = |name: &str| Some(&rounds[subjects.iter().position(|s| s.name == name)?]);
    let pair = |(name, to): &(&'static str, &'static str)| {
        let (b, a) = (of(name)?, of(to)?);
        let both = a.len().min(b.len());
        let ratio = over_rounds(both, |drawn| Some(middle(b, drawn)? / middle(a, drawn)?));
        (both > 0).then_some(Pair { of: name, to, period_us, rounds: both, ratio })
    };
    PAIRS.iter().filter_map(pair).collect()
}

/// Median latency of the cycles of these rounds, ns.
fn middle(rounds: &[Outcomes], drawn: &[usize]) -> Option<f64> {
    let mut all: Vec<f64> =
        drawn.iter().flat_map(|&round| rounds[round].latency_ns.iter().copied()).collect();
    let at = all.len() / 2;
    (!all.is_empty()).then(|| *all.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// How the stages are scheduled, and whether the kernel grants it: asked on a thread that ends.
fn scheduler(fifo: u8) -> String {
    if fifo == 0 {
        return "SCHED_OTHER".into();
    }
    let ask = move || Realtime { priority: Some(fifo), ..Realtime::default() }.apply().priority;
    match std::thread::spawn(ask).join() {
        Ok(Some(Ok(()))) => format!("SCHED_FIFO {fifo} granted, for rows that sleep"),
        Ok(Some(Err(why))) => format!("SCHED_FIFO {fifo} refused ({why}): SCHED_OTHER"),
        _ => "scheduler unknown".into(),
    }
}

/// The runs of each row at one period.
#[derive(Debug)]
struct Ran {
    rounds: Vec<Vec<Outcomes>>,
    /// Shares of the time of each row's runs, added up.
    stolen: Vec<f64>,
    /// What ended the rounds early: a stage waited too long.
    stalled: Option<Error>,
}

/// Runs all rows in each round, until one times out.
fn run_rounds(
    subjects: &[Subject],
    rounds: usize,
    mut run: impl FnMut(&Subject) -> Result<Outcomes>,
) -> Result<Ran> {
    let stolen = vec![0.0; subjects.len()];
    let mut ran = Ran { rounds: vec![Vec::new(); subjects.len()], stolen, stalled: None };
    for round in 0..rounds {
        // Shuffled: what ran before leaves a mood, and no row always follows the same one.
        for at in shuffled(subjects.len(), round) {
            let before = CpuTime::now();
            match run(&subjects[at]) {
                Ok(outcomes) => ran.rounds[at].push(outcomes),
                Err(e) if e.kind() == ErrorKind::Timeout => {
                    ran.stalled = Some(e);
                    return Ok(ran);
                }
                Err(e) => return Err(e),
            }
            let now = CpuTime::now().zip(before);
            ran.stolen[at] += now.map_or(0.0, |(now, before)| now.stolen_since(before));
        }
    }
    Ok(ran)
}

/// Runs everything and writes the report: after a `Timeout` that of the finished runs.
///
/// # Errors
/// When a stage fails or times out, or the report cannot be written.
pub(super) fn run(options: &PipelineOptions<'_>, format: Format) -> Result<()> {
    let cores = Cores::first_two()?;
    let machine = Machine::describe();
    let mut notes = Vec::new();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if let Some(load) = load.split(' ').next() {
        notes.push(format!("Threads that ran or wanted to in the minute before it began: {load}."));
    }
    // A stage that spins takes the core from the one it waits for.
    let starves = |s: &Subject| s.waiting == Waiting::Spin && s.stages > machine.cores;
    let asked = |s: &Subject| {
        options.rows.is_empty() || options.rows.iter().any(|part| s.name.contains(&**part))
    };
    let (starving, subjects): (Vec<Subject>, Vec<Subject>) =
        SUBJECTS.into_iter().filter(asked).partition(|s| starves(s) && !options.spin);
    if !starving.is_empty() {
        notes.push(format!(
            "Rows that spin with more stages than the {} cores are left out: a stage that spins \
             takes the core from the one it waits for (--spin runs them anyway).",
            machine.cores
        ));
    }
    if subjects.is_empty() {
        let (object, why) = (options.rows.join(", "), "see the names in a run without --rows");
        return Err(Error::new(ErrorKind::InvalidArgument, "measure rows", object, why));
    }
    let periods_us = match (options.period_us, options.quick) {
        (Some(period), _) => vec![period],
        (None, true) => vec![1000],
        (None, false) => vec![1000, 2000, 4000, 10_000],
    };
    // Before any thread of ours: rows in processes fork.
    let (mut lines, mut ratios, mut stalled) = (Vec::new(), Vec::new(), None);
    for period_us in periods_us {
        // 10 s a row, as in the article, and a little more, so that at 1 ms p99.9 has its samples
        // though cycles are missed; a quarter of a second in each of a few quick rounds.
        let round_us = if options.quick { 250_000 } else { 10_500_000 / options.rounds as u64 };
        let timing = Timing {
            period_ns: period_us * 1000,
            warm_up: if options.quick { 20 } else { 100 },
            cycles: (round_us / period_us).max(20),
            priority: options.fifo,
            lead_ns: if options.quick { 15_000_000 } else { 150_000_000 },
        };
        let run = |subject: &Subject| subject.run(&TempRoot::made()?.0, &timing);
        let ran = run_rounds(&subjects, options.rounds, run)?;
        let rows = subjects.iter().zip(&ran.rounds).zip(ran.stolen);
        for ((subject, rounds), stolen) in rows.filter(|((_, rounds), _)| !rounds.is_empty()) {
            lines.push(line(subject, &timing, rounds, stolen / rounds.len() as f64));
        }
        ratios.extend(pairs(period_us, &subjects, &ran.rounds));
        if let Some(error) = ran.stalled {
            notes.push(format!(
                "The machine stalled: {error}. Only the runs finished before that are shown."
            ));
            stalled = Some(error);
            break;
        }
    }
    if let Some(error) = stalled.take_if(|_| lines.is_empty()) {
        return Err(error);
    }
    notes.push(format!(
        "Latency counts from the scheduled release to the end of the last stage. Two stages do the \
         work of the four. Jitter is the \
         deviation of the distance between ends of following cycles. A percentile needs \
         {BEYOND_MIN} samples beyond it."
    ));
    let scheduler = scheduler(options.fifo);
    let primitives = primitives::rows(cores, options.quick)?;
    let results = Results { machine, scheduler, lines, pairs: ratios, primitives, notes };
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|e| {
            let name = path.display().to_string();
            Error::new(ErrorKind::Io, "write the report to", name, "").with_source(e)
        })
    };
    if let Some(path) = options.html {
        write(path, page::render(&results))?;
    }
    if let Some(path) = options.svg {
        write(path, plot::file(&results))?;
    }
    let mut out = io::stdout().lock();
    let written = match format {
        Format::Table => print::table(&results, &mut out),
        Format::Json => serde_json::to_writer_pretty(&mut out, &results)
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out)),
        Format::Csv => print::csv(&results, &mut out),
    };
    written.and_then(|()| out.flush()).map_err(|source| {
        Error::new(ErrorKind::Io, "print the report to", "standard output", "").with_source(source)
    })?;
    stalled.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use outlive::now_ns;

    use super::*;

    #[test]
    fn every_row_runs_a_few_cycles_and_the_page_stands_alone() {
        let Ok(scratch) = TempRoot::made() else { return };
        let (period_ns, lead_ns) = (2_000_000, 3_000_000);
        let timing = Timing { period_ns, warm_up: 1, cycles: 40, priority: 0, lead_ns };
        let mut lines = Vec::new();
        // Rows in processes fork, which a test with its threads must not: the command's test does.
        for subject in SUBJECTS.iter().filter(|s| !s.processes && s.waiting == Waiting::Sleep) {
            // On a busy machine all cycles of a run may end too late.
            let outcomes = loop {
                let outcomes = subject.run(&scratch.0, &timing).unwrap();
                let ended = outcomes.latency_ns.len() as u64;
                assert!(ended + outcomes.misses >= 40, "{subject:?}: {ended} ended");
                if ended > 0 {
                    break outcomes;
                }
            };
            lines.push(line(subject, &timing, &[outcomes], 0.0));
        }
        let results = Results {
            machine: Machine::describe(),
            scheduler: "SCHED_OTHER".into(),
            lines,
            pairs: Vec::new(),
            primitives: Vec::new(),
            notes: vec!["a < b".into()],
        };
        let page = page::render(&results);
        assert!(page.contains("<svg") && page.contains("a &lt; b"));
        assert!(!page.contains("http://") && !page.contains("https://"), "nothing from elsewhere");
        assert!(plot::file(&results).starts_with("<svg xmlns="));
    }

    #[test]
    fn a_timeout_keeps_the_runs_that_were_finished() {
        let subjects = &SUBJECTS[1..4];
        let (whole, mut left) = (2, 7);
        let ran = run_rounds(subjects, 10, |_| {
            if left == 0 {
                return Err(Error::new(ErrorKind::Timeout, "measure", "row", ""));
            }
            left -= 1;
            Ok(Outcomes { latency_ns: vec![5.0], ..Outcomes::default() })
        })
        .unwrap();
        assert_eq!(ran.stalled.map(|e| e.kind()), Some(ErrorKind::Timeout));
        let mut counts: Vec<usize> = ran.rounds.iter().map(Vec::len).collect();
        counts.sort_unstable();
        assert_eq!(counts, [whole, whole, whole + 1]);
        // A row has a pair for the rounds that both have.
        let pairs = pairs(1000, subjects, &ran.rounds);
        assert_eq!(pairs.iter().map(|p| p.rounds).collect::<Vec<_>>(), [whole; 2]);
        let failed = Error::new(ErrorKind::OwnerDied, "measure", "row", "");
        let mut failed = Some(failed);
        let run = |_: &Subject| Err(failed.take().expect("one run"));
        assert_eq!(run_rounds(subjects, 10, run).unwrap_err().kind(), ErrorKind::OwnerDied);
    }

    /// Else the end of the line takes its place where only the newest packet is kept.
    #[test]
    fn the_last_cycle_has_its_period_before_the_end_follows() {
        let Ok(scratch) = TempRoot::made() else { return };
        let (period_ns, lead_ns) = (50_000_000, 1_000_000);
        let timing = Timing { period_ns, warm_up: 0, cycles: 1, priority: 0, lead_ns };
        for subject in SUBJECTS.iter().filter(|s| !s.processes && s.waiting == Waiting::Sleep) {
            let began = now_ns();
            subject.run(&scratch.0, &timing).unwrap();
            assert!(now_ns() - began >= period_ns, "{subject:?}");
        }
    }
}
