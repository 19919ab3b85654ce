//! Says what happens.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

/// Prints what happens, with the time since the start.
#[derive(Debug)]
pub(super) struct Teller {
    start: Instant,
    colour: bool,
}

impl Teller {
    pub(super) fn new() -> Self {
        let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { start: Instant::now(), colour }
    }

    /// Somebody who closed our output does not want to know.
    pub(super) fn line(&self, line: impl std::fmt::Display) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }

    fn paint(&self, ansi: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{ansi}m{text}\x1b[0m") } else { text.into() }
    }

    pub(super) fn killed(&self, what: impl std::fmt::Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:5.1} s  {}  {what}", self.paint("1;31", "killed")));
    }

    pub(super) fn more(&self, what: impl std::fmt::Display) {
        self.line(format_args!("                 {what}"));
    }

    pub(super) fn good(&self, what: &str) {
        self.line(self.paint("1;32", what));
    }
}
