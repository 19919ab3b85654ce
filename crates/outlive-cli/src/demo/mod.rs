//! `outlive demo`: kills processes where it hurts, and tells whether it hurt anybody else.
//!
//! | file | what |
//! |---|---|
//! | `story` | what happens; begin here |
//! | `tally`, `claim`, `teller` | what is claimed at the end; what is said meanwhile |
//! | `cast` | child processes |
//! | `camera`, `receiver`, `starter` | what the child processes do |
//! | `role` | what each of them has: arguments, orders, reports |
//! | `protocol`, `frame` | orders and reports; frames whose every word can be checked |

mod camera;
mod cast;
mod claim;
mod frame;
mod protocol;
mod receiver;
mod role;
mod starter;
mod story;
mod tally;
mod teller;

use std::time::Duration;

use clap::Args;

use crate::exit::{Code, Outcome};
use crate::options::DomainOptions;
use crate::os;
use role::Part;
pub(crate) use role::RoleArgs;
use story::Lie;

/// Kill processes mid-frame, with a frame in hand and mid-start; watch the others carry on.
///
/// A camera (1920x1080, 30 Hz, 6.2 MB frames), a fast viewer, a slow viewer and a recorder, each
/// its own process, in a directory of their own. Needs about 160 MB of RAM disk and leaves nothing.
/// If anything it prints does not hold, it fails with code 1 and a line that begins with
/// "outlive: untrue:".
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Approximate duration.
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    seconds: f64,
    /// Break a promise on purpose: the demo must notice.
    #[arg(long, hide = true)]
    lie: Option<Lie>,
}

pub(crate) fn run(args: &DemoArgs) -> Outcome {
    os::catch_stop_signals()?;
    let seconds = args.seconds.clamp(1.0, 3600.0);
    story::play(Duration::from_secs_f64(seconds / 5.0), args.lie)?;
    Ok(Code::Done)
}

/// What a child process does.
pub(crate) fn run_role(args: &RoleArgs, options: &DomainOptions) -> Outcome {
    os::die_with_parent(args.parent);
    match args.part {
        Part::Camera => camera::run(args, options),
        Part::Receiver => receiver::run(args, options),
        Part::Starter => starter::run(args, options),
    }
}
