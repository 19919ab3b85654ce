//! Ends a test that hangs.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Aborts the process, naming the test, unless it is dropped in time.
///
/// It is a thread: start it after the forks of a test, not before.
#[derive(Debug)]
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Starts the clock; 60 s suit most tests.
    pub fn start(what: &str, limit: Duration) -> Self {
        let (alive, gone) = channel::<()>();
        let what = what.to_owned();
        std::thread::spawn(move || {
            if gone.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: {what} hangs for {limit:?}; aborting");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}
