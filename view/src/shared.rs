//! What all parts need.

use std::fmt;
use std::io::Write;

/// What ends the program.
pub(crate) type Failed = Box<dyn std::error::Error>;

/// A line for whoever runs the view.
pub(crate) fn say(line: impl fmt::Display) {
    // In one piece: others may write there, too.
    let line = format!("outlive-view: {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A line of figures; a reader that went away is no reason to fail.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
