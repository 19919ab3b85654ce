//! `outlive demo`: kills processes where it hurts, and tells whether it hurt anybody else.
//!
//! | file | what |
//! |---|---|
//! | `story`, `tally` | what happens; what is claimed at the end |
//! | `cast` | child processes |
//! | `role`, `camera`, `receiver` | what the child processes do |
//! | `protocol`, `frame` | orders and reports; frames whose every word can be checked |

mod camera;
mod cast;
mod frame;
mod protocol;
mod receiver;
mod role;
mod story;
mod tally;

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use crate::exit::{Code, Failure, Outcome};
use crate::os;
pub(crate) use role::{RoleArgs, run_role};

/// The domain of the demo, in a directory of its own.
const DOMAIN: &str = "demo";

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

/// For the test that the demo can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lie {
    /// The camera leaves a wrong word in a frame.
    Torn,
    /// One frame more is said to be published than was.
    Count,
    /// A file stays behind.
    Litter,
}

pub(crate) fn run(args: &DemoArgs) -> Outcome {
    os::catch_stop_signals()?;
    let seconds = args.seconds.clamp(1.0, 3600.0);
    story::play(Duration::from_secs_f64(seconds / 5.0), args.lie)?;
    Ok(Code::Done)
}

/// A claim that turned out not to hold.
fn untrue(claim: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Failed, format!("untrue: {claim}"))
}

/// Fails unless the claim holds.
fn must(holds: bool, claim: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(untrue(claim())) }
}

/// Prints what happens, with the time since the start.
#[derive(Debug)]
struct Teller {
    start: Instant,
    colour: bool,
}

impl Teller {
    fn new() -> Self {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { start: Instant::now(), colour }
    }

    /// Somebody who closed our output does not want to know.
    fn line(&self, line: impl std::fmt::Display) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    fn paint(&self, ansi: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{ansi}m{text}\x1b[0m") } else { text.into() }
    }

    fn killed(&self, what: impl std::fmt::Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:5.1} s  {}  {what}", self.paint("1;31", "killed")));
    }

    fn more(&self, what: impl std::fmt::Display) {
        self.line(format_args!("                 {what}"));
    }

    fn good(&self, what: &str) {
        self.line(self.paint("1;32", what));
    }
}
