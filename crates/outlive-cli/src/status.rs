//! One line at a terminal that says how far a command is; nothing anywhere else.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::os;

/// Between two changes of the line, ns.
const EVERY_NS: u64 = 250_000_000;
/// Cells of a bar.
const BAR: usize = 20;

/// Whether the line is there: what else goes to standard error removes it first.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Shows the line while it lives.
#[derive(Debug)]
pub(crate) struct Status {
    at_terminal: bool,
    since_ns: u64,
    /// What was counted when the line was last shown.
    counted: [u64; 2],
}

impl Status {
    pub(crate) fn new() -> Self {
        let at_terminal = io::stderr().is_terminal();
        Self { at_terminal, since_ns: outlive::now_ns(), counted: [0; 2] }
    }

    /// Shows what `text` makes of the rates of `counts` per second, if it is time to.
    pub(crate) fn show(&mut self, counts: [u64; 2], text: impl FnOnce([u64; 2]) -> String) {
        if !self.at_terminal {
            return;
        }
        let passed_ns = outlive::now_ns().saturating_sub(self.since_ns);
        if passed_ns < EVERY_NS {
            return;
        }
        let rate =
            |n: u64, before: u64| (n.saturating_sub(before) as f64 * 1e9 / passed_ns as f64) as u64;
        let rates = [0, 1].map(|i| rate(counts[i], self.counted[i]));
        // A line that wraps cannot be taken back.
        let width = os::columns().unwrap_or(80).saturating_sub(1);
        let text: String = text(rates).chars().take(width).collect();
        SHOWN.store(true, Relaxed);
        let _ = io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
        (self.since_ns, self.counted) = (outlive::now_ns(), counts);
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        clear();
    }
}

/// Removes the line, if there is one.
pub(crate) fn clear() {
    if SHOWN.swap(false, Relaxed) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

/// `[#####---------------]  25 %`
pub(crate) fn bar(done: u64, all: u64) -> String {
    let share = if all == 0 { 1.0 } else { (done as f64 / all as f64).clamp(0.0, 1.0) };
    let full = (share * BAR as f64) as usize;
    format!("[{}{}] {:3.0} %", "#".repeat(full), "-".repeat(BAR - full), share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_full_at_the_end_and_never_longer() {
        assert_eq!(bar(0, 8), "[--------------------]   0 %");
        assert_eq!(bar(2, 8), "[#####---------------]  25 %");
        assert_eq!(bar(8, 8), "[####################] 100 %");
        assert_eq!((bar(9, 8), bar(0, 0)), (bar(8, 8), bar(8, 8)));
    }
}
