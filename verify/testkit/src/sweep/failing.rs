//! Lets each system call of an operation fail, in each way it can.
//!
//! The victim is not killed: it returns an error or succeeds, and ends by itself. An error that it
//! calls `afterwards: ...` is a failure: it must work once the fault is gone. So is a panic, a
//! signal, and a loop of calls without end. Lack of memory for the allocator may abort it: that is
//! a death like others.

use super::driver::{Driver, Run};
use super::peer::Trouble;
use super::point::Place;
use super::tracee::Stop;
use super::{Scenario, errors};
use crate::crash::Aim;

/// A victim that makes so many calls while one keeps failing spins.
const CALLS_MAX: u64 = 50_000;
const TRIES: u32 = 3;

/// One call of the recorded run, and how it can fail.
struct Call {
    number: i64,
    errors: &'static [i32],
}

/// Records the calls of one whole run, then visits each of them with each of its errors.
pub(crate) fn sweep<S: Scenario>(driver: &mut Driver<'_, S>) {
    let Some(calls) = record(driver) else { return };
    let points = points(&calls);
    driver.announce(points.len() as u64);
    for at in driver.options.selection(points.len() as u64, driver.job) {
        let place = &points[at as usize];
        if driver.options.at.as_ref().is_some_and(|only| only != place) {
            continue;
        }
        if driver.give_up() {
            break;
        }
        fail_at(driver, place);
    }
    driver.end();
}

fn points(calls: &[Call]) -> Vec<Place> {
    let mut points = Vec::new();
    for (s, call) in calls.iter().enumerate() {
        for &error in call.errors {
            points.push(Place::Failing(s as u64, call.number, error, false));
            if errors::may_last(error) {
                points.push(Place::Failing(s as u64, call.number, error, true));
            }
        }
    }
    points
}

/// How a victim's run through its operation ended.
enum End {
    /// It left the operation, or ended by itself in it.
    Through(Stop),
    /// Another call than the recorded one stood at the place.
    Astray(Stop),
    Spins,
    NotHere(std::io::Error),
}

fn record<S: Scenario>(driver: &mut Driver<'_, S>) -> Option<Vec<Call>> {
    let mut run = match driver.prepare(Aim::Nothing) {
        Ok(run) => run,
        Err(trouble) => {
            driver.fail(Place::AfterOp, trouble);
            return None;
        }
    };
    let mut calls = Vec::new();
    let end = pass(driver, &mut run, |_, number, errors| {
        calls.push(Call { number, errors });
        None
    });
    match end {
        End::Through(stop) => {
            let stop = to_its_end(driver, &mut run, stop);
            driver.conclude_by_itself(run, Place::AfterOp, stop);
            Some(calls)
        }
        _ => {
            let what = "the operation makes calls without end, or cannot be looked at here";
            driver.fail(Place::AfterOp, Trouble::Failed(what.into()));
            None
        }
    }
}

/// Takes the victim through its operation; `errno` chooses for each call what it answers instead.
fn pass<S: Scenario>(
    driver: &Driver<'_, S>,
    run: &mut Run,
    mut errno: impl FnMut(u64, i64, &'static [i32]) -> Option<i32>,
) -> End {
    for ordinal in 0..CALLS_MAX {
        let stop = run.tracee.run_to_syscall();
        if stop != Stop::Syscall || driver.left() {
            return End::Through(stop);
        }
        let (number, args) = (run.tracee.syscall_number(), run.tracee.arguments());
        let error = errno(ordinal, number, errors::of(number, args));
        if let Some(_error) = error
            && let Err(e) = run.tracee.skip_syscall()
        {
            return End::NotHere(e);
        }
        let stop = run.tracee.run_to_syscall();
        if stop != Stop::Syscall {
            return End::Through(stop);
        }
        if let Some(error) = error
            && let Err(e) = run.tracee.answer_syscall(-i64::from(error))
        {
            return End::NotHere(e);
        }
    }
    End::Spins
}

/// After the operation nothing fails any more; the victim says how it went.
fn to_its_end<S: Scenario>(driver: &Driver<'_, S>, run: &mut Run, mut stop: Stop) -> Stop {
    while driver.left() && matches!(stop, Stop::Trap | Stop::Syscall) {
        stop = run.tracee.run();
    }
    stop
}

fn fail_at<S: Scenario>(driver: &mut Driver<'_, S>, place: &Place) {
    let Place::Failing(at, expected, error, lasts) = *place else { return };
    for tries_left in (0..TRIES).rev() {
        let mut run = match driver.prepare(Aim::Nothing) {
            Ok(run) => run,
            Err(trouble) => return driver.fail(place.clone(), trouble),
        };
        let mut astray = false;
        let end = pass(driver, &mut run, |ordinal, number, errors| {
            astray |= ordinal == at && number != expected;
            let here = ordinal == at && number == expected;
            let later = lasts && ordinal > at && errors.contains(&error);
            (here || later).then_some(error)
        });
        let end = match end {
            End::Through(stop) if astray => End::Astray(stop),
            end => end,
        };
        match end {
            End::Astray(_) if tries_left > 0 => drop(run.tracee.kill()),
            End::Through(stop) | End::Astray(stop) => {
                driver.report.off_target += u64::from(astray);
                let stop = to_its_end(driver, &mut run, stop);
                return driver.conclude_by_itself(run, place.clone(), stop);
            }
            End::Spins => {
                let what = format!("{CALLS_MAX} system calls and no end: spins");
                run.tracee.kill();
                return driver.fail(place.clone(), Trouble::Hung(what));
            }
            End::NotHere(e) => {
                run.tracee.kill();
                let what = format!("system calls cannot be changed here: {e}");
                return driver.fail(place.clone(), Trouble::Failed(what));
            }
        }
    }
}
