//! `demo-robot`: the hybrid robot, its services killed and then its kinematics.
//!
//! | file | what |
//! |---|---|
//! | `story` | what happens, and what must be true of it |
//! | `file` | the robot's file |
//! | `parts` | the stages, the guard and the drives of the core |
//! | `services` | camera, perception, dashboard |
//! | `supervise` | the supervisor, a process too, and its keeper of logs |
//! | `tally` | what the rounds came to |
//! | `witness` | how long the machine itself holds up a thread of the core's priority |
//! | `stage`, `teller` | the demo's directory; what it says, and how it fails |
//! | `os` | the few system calls |
#![deny(unsafe_code)]

mod file;
mod os;
mod parts;
mod services;
mod stage;
mod story;
mod supervise;
mod tally;
mod teller;
mod witness;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use outlive::{Node, NodeBuilder};

use supervise::{KeepLogsArgs, SuperviseArgs};
use teller::Failure;

/// The domain of the robot, in the demo's own directory.
const DOMAIN: &str = "robot";

/// Run the reference robot, kill its services, then its kinematics; watch the core.
///
/// The core (planner, inverse kinematics, EtherCAT stage, guard, mock drives; a process each) runs
/// beside a camera, two perception services and a dashboard, under the supervisor of 'outlive run'.
/// Killed services restart, and the core's latency is compared with that of windows without kills;
/// then the kinematics are killed and the drives must brake. Code 1 and a line that begins with
/// "untrue" if anything it prints does not hold. A round in which the machine stalled (a sleeper
/// beside the core overslept and the core stopped, or it stopped before any kill) is reported and
/// repeated; code 10 if that goes on with every period up to 32 ms, or for 30 s. Finished rounds
/// are reported all the same.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Examples:
  demo-robot
  demo-robot --kills 100 --rounds 10 --window-ms 10000      the measurement"
)]
struct Cli {
    #[command(flatten)]
    demo: DemoArgs,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What this program is when the demo or its supervisor starts it.
#[derive(Debug, Subcommand)]
enum Role {
    #[command(hide = true)]
    Part(PartArgs),
    #[command(hide = true)]
    Supervise(SuperviseArgs),
    #[command(hide = true)]
    KeepLogs(KeepLogsArgs),
}

/// How much of it, and how fast.
#[derive(Args, Debug)]
struct DemoArgs {
    /// Service kills, spread over the rounds.
    #[arg(long, default_value_t = 12)]
    kills: u32,
    /// Rounds: each a window without kills and one with kills. A ratio needs 6.
    #[arg(long, default_value_t = 6, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Length of a window, ms.
    #[arg(long, default_value_t = 1200, value_parser = value_parser!(u64).range(200..=600_000))]
    window_ms: u64,
    /// Period of the core, us.
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u64).range(250..=100_000))]
    period_us: u64,
    /// SCHED_FIFO priority of the core, if this user may; 0 for none.
    #[arg(long, default_value_t = 50, value_parser = value_parser!(u8).range(..=90))]
    fifo: u8,
}

/// A part of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Planner,
    Ik,
    Ethercat,
    Guard,
    Drives,
    Camera,
    Detector,
    Tracker,
    Dashboard,
}

/// A process of the robot; started by its supervisor.
#[derive(Args, Debug)]
struct PartArgs {
    part: Part,
    /// Period of the core, us.
    #[arg(long, default_value_t = 1000)]
    period_us: u64,
    /// Release of cycle 0, ns of CLOCK_MONOTONIC.
    #[arg(long, default_value_t = 0)]
    start_ns: u64,
    /// SCHED_FIFO priority; 0 for none.
    #[arg(long, default_value_t = 0)]
    fifo: u8,
}

/// Of nodes of the robot; the supervisor says where the domain is.
fn builder() -> NodeBuilder {
    Node::builder().domain(DOMAIN)
}

fn run_part(args: &PartArgs) -> Result<(), Failure> {
    let part = args.part.to_possible_value();
    let node = builder().name(part.as_ref().map_or("", |part| part.get_name())).open()?;
    match args.part {
        Part::Planner | Part::Ik | Part::Ethercat | Part::Guard | Part::Drives => {
            parts::run(args, &node)?;
        }
        Part::Camera => services::camera(&node)?,
        Part::Detector => services::detector(&node)?,
        Part::Tracker => services::tracker(&node)?,
        Part::Dashboard => services::dashboard(&node)?,
    }
    Ok(())
}

fn main() -> ExitCode {
    let Cli { demo, role } = Cli::parse();
    let done = match role {
        Some(Role::Part(args)) => run_part(&args),
        Some(Role::Supervise(args)) => supervise::run(&args),
        Some(Role::KeepLogs(args)) => supervise::keep_logs(&args),
        None => story::play(&demo),
    };
    let (code, why) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Failure::Failed(why)) => (1, why),
        Err(Failure::HeldUp(why)) => (10, why),
    };
    eprintln!("demo-robot: {why}");
    ExitCode::from(code)
}
