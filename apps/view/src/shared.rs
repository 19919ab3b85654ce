//! What all parts need.

use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use crate::log::say;

/// What ends the program.
pub(crate) type Failed = Box<dyn std::error::Error>;

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

/// A thread that prints what is sent to it. While its reader takes no more nobody waits: there is
/// room for one text, and what does not fit is skipped.
pub(crate) fn printer() -> io::Result<SyncSender<String>> {
    let (to, texts) = sync_channel::<String>(1);
    let name = "print".to_owned();
    thread::Builder::new().name(name).spawn(move || texts.iter().for_each(|text| print(&text)))?;
    Ok(to)
}

/// A reader that went away is no reason to fail.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
