//! The terminal, written by a thread of its own: one that does not read must not hold up the
//! supervisor. Lines that find no room are counted; they are in the logs.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

const LINES: usize = 4096;
const COLOURS: [&str; 6] = ["36", "33", "35", "32", "34", "96"];

/// Prints lines with the name of who said them.
#[derive(Debug)]
pub(crate) struct Printer {
    lines: Option<Lines>,
    ended: Receiver<()>,
    /// Whether it began on a terminal, which can go away.
    terminal: bool,
}

impl Printer {
    /// `width` is that of the longest name.
    ///
    /// # Errors
    /// There is no room for the thread.
    pub(crate) fn new(width: usize) -> io::Result<Self> {
        let (to, lines) = sync_channel::<String>(LINES);
        let (done, ended) = channel();
        std::thread::Builder::new().spawn(move || {
            let mut out = io::stdout();
            for line in lines {
                // Nobody reads: the logs have it.
                let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
            }
            let _ = done.send(());
        })?;
        let terminal = io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let colour = terminal && !plain;
        Ok(Self { lines: Some(Lines { to, lost: 0, colour, width, terminal }), ended, terminal })
    }

    /// Whether there was a terminal and is none any more: one that hung up answers nothing.
    pub(crate) fn has_lost_terminal(&self) -> bool {
        self.terminal && !io::stdout().is_terminal()
    }

    /// Lines for another thread to print; none once it has ended.
    pub(crate) fn lines(&self) -> Option<Lines> {
        self.lines.clone()
    }

    pub(crate) fn line(&mut self, name: &str, number: usize, text: &str) {
        if let Some(lines) = &mut self.lines {
            lines.line(name, number, text);
        }
    }

    /// Lets the thread print what is left, also by others, for a second at most.
    pub(crate) fn end(&mut self) {
        drop(self.lines.take());
        let _ = self.ended.recv_timeout(Duration::from_secs(1));
    }
}

/// Lines of one thread on their way to the printer.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    to: SyncSender<String>,
    lost: u64,
    colour: bool,
    width: usize,
    terminal: bool,
}

impl Lines {
    pub(crate) fn line(&mut self, name: &str, number: usize, text: &str) {
        if self.lost > 0 {
            let told = format!("({} lines not shown; the logs have them)", self.lost);
            let line = self.format("run", COLOURS.len(), &told);
            if self.send(line) {
                self.lost = 0;
            }
        }
        let line = self.format(name, number, text);
        if !self.send(line) {
            self.lost += 1;
        }
    }

    fn format(&self, name: &str, number: usize, text: &str) -> String {
        // What would move the cursor or change colours stays out of a terminal.
        let text: String = match self.terminal {
            true => text.chars().filter(|c| !c.is_control() || *c == '\t').collect(),
            false => text.into(),
        };
        let width = self.width;
        match (self.colour, name) {
            (true, "run") => format!("\x1b[1m{name:<width$} | {text}\x1b[0m\n"),
            (true, _) => {
                let colour = COLOURS[number % COLOURS.len()];
                format!("\x1b[{colour}m{name:<width$} |\x1b[0m {text}\n")
            }
            _ => format!("{name:<width$} | {text}\n"),
        }
    }

    fn send(&self, line: String) -> bool {
        !matches!(self.to.try_send(line), Err(TrySendError::Full(_)))
    }
}
