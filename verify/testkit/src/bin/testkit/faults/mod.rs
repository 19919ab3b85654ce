//! Faults planted on purpose, one at a time: each must be caught, and without it the same check
//! must pass.
//!
//! The library is built with the feature `faults`; `OUTLIVE_FAULT` names the one that misbehaves.

mod all;
mod check;
mod found;
mod list;
mod lives;
mod locks;
mod real_time;
mod sweeps;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use all::all;
use check::{Check, Fault, Programs, Verdict};
use testkit::process::Affinity;

/// A check with a fault planted, or none.
type Job = (Option<&'static str>, Check);

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct FaultsArgs {
    /// The checks that are slow to build, too
    #[arg(long)]
    all: bool,
    /// Write the table into docs/internals/faults.md; else it must be as it would be written
    #[arg(long)]
    write: bool,
    /// Every check against every fault
    #[arg(long)]
    explore: bool,
    /// What `cargo test --test loom` said, whose mutants are faults as well
    #[arg(long, value_name = "FILE")]
    loom: Option<String>,
    /// Faults of the library whose name contains one of these; the sum is of all
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
    /// One sweep, in this process
    #[arg(long, value_name = "NAME", exclusive = true)]
    sweep: Option<String>,
    /// One kept history
    #[arg(long, value_name = "NAME", exclusive = true)]
    history: Option<String>,
}

/// A planted fault may need luck to show: a thread at the right place, a point that a thinned-out
/// sweep meets. It has so many chances; the check without a fault has one.
const ROUNDS: u64 = 8;

/// Whether a check takes part: those of the kit's tests are slow to build.
fn takes_part(check: Check, all: bool) -> bool {
    all || !matches!(check, Check::Kit(..))
}

fn programs(all: bool) -> Result<Programs, String> {
    let features = "faults,crash-points";
    let unit = ["-p", "outlive", "--features", features, "--lib", "--test", check::VALUES];
    let mut programs = Programs::build(&unit)?;
    if all {
        let kit = self::all().flat_map(|fault| fault.caught_by).filter_map(|check| match check {
            Check::Kit(program, _) => Some(*program),
            _ => None,
        });
        let kit: BTreeSet<&str> = kit.collect();
        let tests = kit.into_iter().flat_map(|program| ["--test", program]);
        let targets: Vec<&str> =
            ["-p", "testkit", "--features", "faults"].into_iter().chain(tests).collect();
        programs.merge(Programs::build(&targets)?);
    }
    Ok(programs)
}

/// Workers for each processor where checks are single tests: many a fault makes one hang, until its
/// time is up.
const WORKERS_OF_TESTS: usize = 3;

/// Runs the jobs on all processors, each on one of its own: a sweep pins itself to the first.
fn run_all(programs: &Programs, jobs: &[Job]) -> Result<Vec<Verdict>, String> {
    let verdicts = Mutex::new(BTreeMap::new());
    let failed = Mutex::new(None);
    let do_one = |at: usize, (fault, check): Job| {
        let mut verdict = programs.run(check, fault);
        // A sweep takes its other chances by itself.
        let rounds = if matches!(check, Check::Sweep(_)) { 1 } else { ROUNDS };
        for _ in 1..rounds {
            if fault.is_some() && matches!(verdict, Ok(Verdict::Passed)) {
                verdict = programs.run(check, fault);
            }
        }
        match verdict {
            Ok(verdict) => drop(verdicts.lock().unwrap().insert(at, verdict)),
            Err(e) => *failed.lock().unwrap() = Some(e),
        }
    };
    let is_test = |(_, job): &(usize, &Job)| matches!(job.1, Check::Unit(_) | Check::Value(_));
    let (tests, others): (Vec<_>, Vec<_>) = jobs.iter().enumerate().partition(is_test);
    for (jobs, workers) in [(tests, WORKERS_OF_TESTS), (others, 1)] {
        let next = AtomicUsize::new(0);
        let work = &|cpu: usize| {
            Affinity::one(cpu).apply();
            while let Some(&(at, &job)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                do_one(at, job);
            }
        };
        std::thread::scope(|scope| {
            for cpu in Affinity::current().cpus() {
                for _ in 0..workers {
                    scope.spawn(move || work(cpu));
                }
            }
        });
    }
    match failed.into_inner().unwrap() {
        Some(e) => Err(e),
        None => Ok(verdicts.into_inner().unwrap().into_values().collect()),
    }
}

fn is_meant(args: &FaultsArgs, fault: &Fault) -> bool {
    args.only.is_empty() || args.only.iter().any(|part| fault.name.contains(part.as_str()))
}

/// What the run found out about the faults of the library.
fn plant(args: &FaultsArgs) -> Result<Vec<String>, String> {
    let chosen: Vec<&Fault> = all().filter(|fault| is_meant(args, fault)).collect();
    let part = |check: &Check| takes_part(*check, args.all || args.explore);
    let declared = chosen.iter().flat_map(|f| f.caught_by.iter().copied()).filter(part);
    let mut baseline: BTreeSet<Check> = declared.collect();
    if args.explore {
        baseline.extend(sweeps::names().map(Check::Sweep));
    }
    let mut jobs: Vec<Job> = baseline.iter().map(|check| (None, *check)).collect();
    for fault in &chosen {
        let checks: Vec<Check> = match args.explore {
            true => baseline.iter().copied().collect(),
            false => fault.caught_by.iter().copied().filter(part).collect(),
        };
        jobs.extend(checks.into_iter().map(|check| (Some(fault.name), check)));
    }
    let verdicts = run_all(&programs(args.all || args.explore)?, &jobs)?;
    let mut wrong = Vec::new();
    for ((fault, check), verdict) in jobs.iter().zip(verdicts) {
        let expected = fault.map(|name| {
            let fault = chosen.iter().find(|f| f.name == name);
            fault.is_some_and(|f| f.caught_by.contains(check))
        });
        match (expected, verdict) {
            (None, Verdict::Failed(why)) => {
                wrong.push(format!("{check} fails without any fault: {why}"));
            }
            (Some(true), Verdict::Passed) => {
                wrong.push(format!("{check} does not catch {}", fault.unwrap_or("")));
            }
            (Some(false), Verdict::Failed(_)) => {
                println!("{check} catches {} as well", fault.unwrap_or(""));
            }
            _ => {}
        }
    }
    Ok(wrong)
}

fn plant_all(args: &FaultsArgs) -> Result<bool, String> {
    let models = table::models()?;
    let part = |check| takes_part(check, args.all);
    let mut wrong = Vec::new();
    if let Some(log) = &args.loom {
        let said = std::fs::read_to_string(log).map_err(|e| format!("{log}: {e}"))?;
        let caught: BTreeSet<&str> =
            said.lines().filter_map(|line| line.trim().strip_prefix("caught: ")).collect();
        let missing = models.iter().filter(|name| !caught.contains(name.as_str()));
        wrong.extend(missing.map(|name| format!("no model of {log} caught {name}")));
    }
    wrong.extend(plant(args)?);
    if args.write {
        table::write(&models)?;
    } else if !table::is_current(&models)? {
        wrong.push("the table in docs/internals/faults.md is old: run it with --write".into());
    }
    testkit::temp::remove_dead_leftovers();
    for what in &wrong {
        println!("WRONG: {what}");
    }
    let meant = all().filter(|fault| is_meant(args, fault));
    println!("{}", table::summary(&models, args.loom.is_some(), meant, part, wrong.len()));
    Ok(wrong.is_empty())
}

/// One kept history.
fn passes(name: &str) -> ExitCode {
    testkit::history::mount_disk();
    match testkit::history::replay_file(&testkit::history::kept_dir().join(format!("{name}.txt"))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(found) => {
            println!("{found}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn run(args: &FaultsArgs) -> ExitCode {
    if let Some(name) = &args.history {
        return passes(name);
    }
    if let Some(name) = &args.sweep {
        let rounds = if std::env::var_os("OUTLIVE_FAULT").is_some() { ROUNDS } else { 1 };
        return if sweeps::passes(name, rounds) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match plant_all(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            println!("faults: FAILED: {e}");
            ExitCode::FAILURE
        }
    }
}
