//! `outlive demo-robot`: the hybrid robot, its services killed and then its kinematics.
//!
//! | file | what |
//! |---|---|
//! | `story` | what happens, and what must be true of it |
//! | `file` | the robot's file |
//! | `core` | the stages, the guard and the drives of the core |
//! | `services` | camera, perception, dashboard |
//! | `tally` | what the rounds came to |
//! | `witness` | how long the machine itself holds up a thread of the core's priority |

mod core;
mod file;
mod services;
mod story;
mod tally;
mod witness;

use clap::{Args, ValueEnum, value_parser};

use crate::exit::{Code, Outcome};
use crate::os;
use crate::settings::Settings;

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

/// A process of `outlive demo-robot`; started by it.
#[derive(Args, Debug)]
pub(crate) struct RobotRoleArgs {
    part: Part,
    /// The node's name, if it is another one than the part.
    #[arg(long)]
    name: Option<String>,
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

pub(crate) fn run_role(args: &RobotRoleArgs, settings: &Settings) -> Outcome {
    let part = args.part.to_possible_value();
    let part = part.map_or(String::new(), |part| part.get_name().to_owned());
    let node = settings.node(args.name.as_deref().unwrap_or(&part))?;
    match args.part {
        Part::Planner | Part::Ik | Part::Ethercat | Part::Guard | Part::Drives => {
            core::run(args, &node)?;
        }
        Part::Camera => services::camera(&node)?,
        Part::Detector => services::detector(&node)?,
        Part::Tracker => services::tracker(&node)?,
        Part::Dashboard => services::dashboard(&node)?,
    }
    Ok(Code::Done)
}

/// Run the reference robot, kill its services, then its kinematics; watch the core.
///
/// The core (planner, inverse kinematics, EtherCAT stage, guard, mock drives; a process each)
/// beside a camera, two perception services and a dashboard, all under 'outlive run'. Killed
/// services restart and the core's latency is compared with that of windows without kills; then the
/// kinematics are killed and the drives must brake. Code 1 and a line that begins with "untrue" if
/// anything of what it prints does not hold. A round in which the machine itself stood still (a
/// sleeper beside the core overslept, too, and the core stopped) is given up, said, and played
/// again; code 10 if that goes on with every period up to 32 ms.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive demo-robot
  outlive demo-robot --kills 100 --rounds 10 --window-ms 10000      the measurement")]
pub(crate) struct DemoRobotArgs {
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

pub(crate) fn run(args: &DemoRobotArgs) -> Outcome {
    os::catch_stop_signals();
    story::play(args)?;
    Ok(Code::Done)
}
