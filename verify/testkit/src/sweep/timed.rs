//! Kills by the clock: victims asleep in the kernel, and victims at full speed.

use super::Scenario;
use super::driver::Driver;
use super::peer::Trouble;
use super::point::Place;
use super::processors::unpin;
use super::tracee::{Stop, Ticker};
use crate::crash::Aim;
use crate::rng::Rng;
use std::time::{Duration, Instant};

/// Runs in which the operation's own deadline may pass before we have looked.
const LATE_MAX: u32 = 10;

/// Kills a victim whose operation sleeps, once it does.
pub(crate) fn asleep<S: Scenario>(driver: &mut Driver<'_, S>) {
    if driver.job > 0 {
        return;
    }
    driver.report.points = 1;
    for _ in 0..LATE_MAX {
        let run = match driver.prepare(Aim::Nothing) {
            Ok(run) => run,
            Err(trouble) => return driver.fail(Place::Asleep, trouble),
        };
        driver.let_go(&run);
        let start = Ticker::now();
        // Twice in a row, or it was only passing by.
        let mut seen = 0;
        while seen < 2 {
            std::thread::sleep(Duration::from_millis(1));
            seen = if is_asleep(run.tracee.pid()) { seen + 1 } else { 0 };
            if Ticker::now().wrapping_sub(start) > Ticker::ticks(driver.options.hang_s) {
                let what = "the victim never sleeps in a system call".to_owned();
                return driver.fail(Place::Asleep, Trouble::Failed(what));
            }
        }
        if !driver.left() {
            driver.conclude(run, Place::Asleep, Stop::Trap);
            return driver.end();
        }
        // A busy machine let us look when a short wait was over.
        driver.discard(run, Place::AfterOp, Stop::Trap);
    }
    let what = format!("the operation finished without sleeping, {LATE_MAX} times");
    driver.fail(Place::Asleep, Trouble::Failed(what));
}

/// Kills victims at random instants within `window_ns`, while they repeat their operation.
pub(crate) fn at_random<S: Scenario>(driver: &mut Driver<'_, S>, kills: u64, window_ns: u64) {
    // The victim must not wait for the driver's processor.
    unpin();
    driver.report.points = driver.options.share(kills, driver.job);
    for at in driver.options.selection(kills, driver.job) {
        let ns = Rng::new(driver.options.seed.wrapping_add(at)).below(window_ns);
        let place = Place::Instant(ns);
        if driver.options.at.as_ref().is_some_and(|only| *only != place) {
            continue;
        }
        if driver.give_up() {
            break;
        }
        match driver.prepare(Aim::Nothing) {
            Ok(run) => {
                let start = Instant::now();
                driver.let_go(&run);
                crate::startup::sleep_until(start + Duration::from_nanos(ns));
                driver.conclude(run, place, Stop::Trap);
            }
            Err(trouble) => driver.fail(place, trouble),
        }
    }
    driver.end();
}

/// The kernel shows the number of the system call only of a process that is blocked.
fn is_asleep(pid: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    call.starts_with(|c: char| c.is_ascii_digit())
}
