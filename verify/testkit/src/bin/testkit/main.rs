//! `testkit`: what kills, breaks and crowds processes on purpose, and judges those beside them.
//!
//! | where | what |
//! |---|---|
//! | `sweeps/` | one operation, ended or failing at each of its points, single-stepped |
//! | `kills/` | processes at full speed, killed at random or named instants |
//! | `runs/` | long lives of many members, and a whole robot |
//! | `faults/` | the library misbehaves on purpose: which check sees it |
//! | `args` | how all of them read their arguments |
//!
//! Begin at [`Command`]. Members and parts are this program again, started in a role: a role is
//! played before any argument is read, so it starts as fast as it can.

mod args;
#[cfg(feature = "faults")]
mod faults;
mod kills;
mod runs;
mod sweeps;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use testkit::spawn::Role;
use testkit::{failstop, history};

/// Kill, break and crowd processes that share memory, and judge the survivors.
#[derive(Debug, Parser)]
#[command(name = "testkit", after_help = NOTES)]
#[command(args_override_self = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const NOTES: &str = "\
Run it by cargo:
  cargo run --profile sweep -p testkit -- kill-sweep
  cargo run --profile sweep -p testkit --features crash-points -- wake-test --quick
  cargo run --profile test -p testkit --features faults -- faults
crash-points, queue-kills, wake-test and wild-writes need the feature `crash-points`, faults needs
`faults`; without it they are not listed. Exit codes: 0 passed, 1 failed, 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Kill nodes and topics at each instruction, system call and change of shared bytes
    KillSweep(sweeps::SweepArgs),
    /// Let each system call fail in each way that Linux knows
    FailSweep(sweeps::SweepArgs),
    /// Kill locks like that, then count what is fatal to other people's
    LockSweep(sweeps::lock::LockSweepArgs),
    /// Kill queues and services like that
    QueueSweep(sweeps::SweepArgs),
    /// Kill at each named crash point, and check that each was met
    #[cfg(feature = "crash-points")]
    CrashPoints(sweeps::SweepArgs),
    /// Kill processes in their first 20 ms
    StartKills(args::Quick),
    /// Kill holders of locks at random, outlive's and other people's
    LockKills(kills::lock::LockKillsArgs),
    /// Kill and replace the ends of a queue under load, and between commit and wake
    #[cfg(feature = "crash-points")]
    QueueKills(args::Quick),
    /// Kill a publisher between commit and wake, with eight sleepers
    #[cfg(feature = "crash-points")]
    WakeTest(args::Quick),
    /// Kill, stop and restart members of all kinds, and account for every message
    Chaos(runs::chaos::ChaosArgs),
    /// Live random histories and compare them step by step with a model
    Histories(runs::histories::HistoriesArgs),
    /// Let a member scribble over all that it can reach
    #[cfg(feature = "crash-points")]
    WildWrites(runs::wild_writes::WildWritesArgs),
    /// Count what 1,000 topics, 64 subscribers and 200 nodes cost
    Scale(runs::scale::ScaleArgs),
    /// Kill, stop and hang each part of the robot, and watch its motors
    FailStop(runs::fail_stop::FailStopArgs),
    /// Plant faults in the library, one at a time, and see each caught
    #[cfg(feature = "faults")]
    Faults(faults::FaultsArgs),
}

impl Command {
    fn run(&self) -> ExitCode {
        match self {
            Self::KillSweep(args) => sweeps::kill::run(args),
            Self::FailSweep(args) => sweeps::fail::run(args),
            Self::LockSweep(args) => sweeps::lock::run(args),
            Self::QueueSweep(args) => sweeps::queue::run(args),
            #[cfg(feature = "crash-points")]
            Self::CrashPoints(args) => sweeps::crash_points::run(args),
            Self::StartKills(args) => kills::start::run(*args),
            Self::LockKills(args) => kills::lock::run(args),
            #[cfg(feature = "crash-points")]
            Self::QueueKills(args) => kills::queue::run(*args),
            #[cfg(feature = "crash-points")]
            Self::WakeTest(args) => kills::wake::run(*args),
            Self::Chaos(args) => runs::chaos::run(args),
            Self::Histories(args) => runs::histories::run(args),
            #[cfg(feature = "crash-points")]
            Self::WildWrites(args) => runs::wild_writes::run(args),
            Self::Scale(args) => runs::scale::run(args),
            Self::FailStop(args) => runs::fail_stop::run(args),
            #[cfg(feature = "faults")]
            Self::Faults(args) => faults::run(args),
        }
    }
}

/// What a subcommand that this program was built without has to be built with.
fn how_to_build(name: &str) -> Option<String> {
    let (built, profile, feature) = match name {
        "crash-points" | "queue-kills" | "wake-test" | "wild-writes" => {
            (cfg!(feature = "crash-points"), "sweep", "crash-points")
        }
        "faults" => (cfg!(feature = "faults"), "test", "faults"),
        _ => return None,
    };
    (!built).then(|| {
        format!(
            "{name} needs a library built with the feature `{feature}`:\n  \
             cargo run --profile {profile} -p testkit --features {feature} -- {name}"
        )
    })
}

fn play(role: &Role) -> ExitCode {
    match role.name.as_str() {
        history::ROLE => history::play(role),
        kills::start::ROLE => kills::start::play(role),
        failstop::GUARD | failstop::STAGES => failstop::play(role),
        name => refuse(&format!("there is no role {name}")),
    }
}

fn refuse(why: &str) -> ExitCode {
    eprintln!("testkit: {why}");
    ExitCode::from(2)
}

fn main() -> ExitCode {
    if let Some(role) = testkit::role() {
        return play(&role);
    }
    let name = std::env::args().nth(1).unwrap_or_default();
    match how_to_build(&name) {
        Some(how) => refuse(&how),
        None => Cli::parse().command.run(),
    }
}
