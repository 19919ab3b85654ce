//! What the demo says: what happens, and what turned out not to hold.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// Why the demo did not come to its good end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Code 1.
    Failed(String),
    /// The machine stood still: nothing is shown, for or against. Code 10.
    HeldUp(String),
}

impl Failure {
    /// A failure of the operating system while doing `what`.
    pub(crate) fn io(what: &str, source: &io::Error) -> Self {
        Self::Failed(format!("{what}: {source}"))
    }
}

impl From<outlive::Error> for Failure {
    fn from(error: outlive::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A claim that turned out not to hold.
pub(crate) fn untrue(claim: impl Display) -> Failure {
    Failure::Failed(format!("untrue: {claim}"))
}

/// Fails unless the claim holds.
pub(crate) fn must(holds: bool, claim: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(untrue(claim())) }
}

/// Prints what happens, with the time since the start.
#[derive(Debug)]
pub(crate) struct Teller {
    start: Instant,
    colour: bool,
}

impl Teller {
    pub(crate) fn new() -> Self {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { start: Instant::now(), colour }
    }

    /// Somebody who closed our output does not want to know.
    fn line(&self, line: impl Display) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    fn paint(&self, ansi: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{ansi}m{text}\x1b[0m") } else { text.into() }
    }

    pub(crate) fn killed(&self, what: impl Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:5.1} s  {}  {what}", self.paint("1;31", "killed")));
    }

    pub(crate) fn more(&self, what: impl Display) {
        self.line(format_args!("                 {what}"));
    }

    pub(crate) fn good(&self, what: &str) {
        self.line(self.paint("1;32", what));
    }
}
