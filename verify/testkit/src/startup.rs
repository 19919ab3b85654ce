//! Kills programs while they start.

use crate::process::Exit;
use crate::rng::Rng;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a series of start-up kills did.
#[derive(Clone, Debug, Default)]
pub struct StartupReport {
    /// Processes started.
    pub starts: u64,
    /// Those that SIGKILL ended.
    pub kills: u64,
    /// Those that ended by themselves first.
    pub early_ends: u64,
    /// Start and text of each failed check.
    pub failures: Vec<(u64, String)>,
}

impl StartupReport {
    /// One line for the log.
    pub fn summary(&self, name: &str) -> String {
        format!(
            "start-up kills: {name}: {} starts, {} kills, {} ended first, {} failures",
            self.starts,
            self.kills,
            self.early_ends,
            self.failures.len()
        )
    }
}

/// Starts a program `starts` times, kills it within `window`, then calls `check`.
///
/// The instant is uniform in the window, counted from the return of the spawn call; `seed` fixes
/// the instants, not what the program does meanwhile. `check` gets the number of the start and the
/// instant.
pub fn kill_at_startup(
    seed: u64,
    starts: u64,
    window: Duration,
    mut command: impl FnMut(u64) -> Command,
    mut check: impl FnMut(u64, Duration) -> Result<(), String>,
) -> StartupReport {
    let mut rng = Rng::new(seed);
    let mut report = StartupReport::default();
    for n in 0..starts {
        let after = Duration::from_nanos(rng.below(window.as_nanos() as u64));
        let started = match command(n).spawn() {
            Ok(mut child) => {
                sleep_until(Instant::now() + after);
                let _ = child.kill();
                child.wait()
            }
            Err(error) => Err(error),
        };
        report.starts += 1;
        let checked = match started {
            Ok(status) => {
                use std::os::unix::process::ExitStatusExt;
                match Exit::from_status(status.into_raw()) {
                    Exit::Signal(libc::SIGKILL) => report.kills += 1,
                    _ => report.early_ends += 1,
                }
                check(n, after)
            }
            Err(error) => Err(format!("cannot start: {error}")),
        };
        if let Err(what) = checked {
            report.failures.push((n, format!("killed after {after:?}: {what}")));
        }
    }
    report
}

/// Sleeps, then spins the last stretch: a sleep alone overshoots by the timer slack.
pub(crate) fn sleep_until(instant: Instant) {
    let spin = Duration::from_micros(100);
    if let Some(rest) = instant.checked_duration_since(Instant::now() + spin) {
        std::thread::sleep(rest);
    }
    while Instant::now() < instant {
        std::hint::spin_loop();
    }
}
