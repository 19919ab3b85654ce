//! What all parts need.

use std::fmt;
use std::io::Write;
use std::time::{Duration, Instant};

/// What ends the program.
pub(crate) type Failed = Box<dyn std::error::Error>;

/// A line for whoever runs the view.
pub(crate) fn say(line: impl fmt::Display) {
    // In one piece: others may write there, too.
    let line = format!("outlive-view: {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Between two lines about the same trouble.
const RARELY: Duration = Duration::from_secs(10);

/// Lines about what may happen very often: one now and then, and how many it stands for.
#[derive(Debug, Default)]
pub(crate) struct Rarely {
    next: Option<Instant>,
    unsaid: u64,
}

impl Rarely {
    pub(crate) fn say(&mut self, line: impl fmt::Display) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            self.unsaid += 1;
            return;
        }
        self.next = Some(Instant::now() + RARELY);
        match std::mem::take(&mut self.unsaid) {
            0 => say(line),
            n => say(format_args!("{line} ({n} more since the last line like this)")),
        }
    }
}

/// A line of figures; a reader that went away is no reason to fail.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
