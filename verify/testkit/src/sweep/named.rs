//! Kills at named crash points.

use super::Scenario;
use super::driver::Driver;
use super::gate::Phase;
use super::peer::Trouble;
use super::point::Place;
use super::tracee::Stop;
use crate::crash::Aim;

/// Visits at most so many hits of each name: the first ones.
const HITS_MAX: u32 = 3;

/// Counts the hits of one whole run, then kills at each of them.
pub(crate) fn sweep<S: Scenario>(driver: &mut Driver<'_, S>) {
    let _ = driver.control.take_counts();
    visit(driver, Place::AfterOp, Aim::Nothing);
    let counts = driver.control.take_counts();
    driver.report.crash_points = counts.iter().map(|(name, _)| name.clone()).collect();
    let hits = |(name, hits): &(String, u32)| {
        let name = name.clone();
        (1..=HITS_MAX.min(*hits)).map(move |hit| Place::CrashPoint(name.clone(), hit))
    };
    let points: Vec<Place> = counts.iter().flat_map(hits).collect();
    driver.announce(points.len() as u64);
    for at in driver.options.selection(points.len() as u64, driver.job) {
        let place = points[at as usize].clone();
        if driver.options.at.as_ref().is_some_and(|only| *only != place) {
            continue;
        }
        if driver.give_up() {
            break;
        }
        if let Place::CrashPoint(name, hit) = &place {
            let aim = Aim::At(name.clone(), *hit);
            visit(driver, place, aim);
        }
    }
    driver.end();
}

/// Runs a victim at full speed to its crash point, or to the end.
fn visit<S: Scenario>(driver: &mut Driver<'_, S>, place: Place, aim: Aim) {
    let expected = if aim == Aim::Nothing { Phase::Left } else { Phase::AtCrashPoint };
    match driver.prepare(aim) {
        Ok(mut run) => {
            let mut stop = run.tracee.run();
            let reached = driver.control.phase();
            if stop == Stop::Trap && reached == Phase::Inside {
                let what = "a trap that is neither the gate nor a crash point".to_owned();
                driver.fail(place, Trouble::Failed(what));
                return;
            }
            if stop == Stop::Syscall {
                stop = Stop::Trap;
            }
            driver.report.off_target += u64::from(reached != expected);
            match place {
                Place::AfterOp => driver.conclude_baseline(run, stop),
                place => driver.conclude(run, place, stop),
            }
        }
        Err(trouble) => driver.fail(place, trouble),
    }
}
