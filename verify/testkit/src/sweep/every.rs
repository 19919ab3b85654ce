//! Kills after every single instruction.

use super::Scenario;
use super::driver::{Driver, TRIES};
use super::gate::Phase;
use super::peer::Trouble;
use super::point::Place;
use super::trace::{Kinds, Segment, advance};
use super::tracee::Stop;
use crate::crash::Aim;

/// Records one whole run, then visits each of its instructions with a fresh victim.
pub(crate) fn sweep<S: Scenario>(driver: &mut Driver<'_, S>) {
    let Some(trace) = record(driver) else { return };
    driver.announce(trace.len());
    let single = match driver.options.at {
        Some(Place::Instruction(k)) => Some(k),
        _ => None,
    };
    for k in driver.options.selection(trace.len(), driver.job) {
        if single.is_some_and(|only| only != k) {
            continue;
        }
        if driver.give_up() {
            break;
        }
        kill_at(driver, &trace, k);
    }
    driver.end();
}

/// Steps through the operation once; the kill comes after it.
fn record<S: Scenario>(driver: &mut Driver<'_, S>) -> Option<Segment> {
    let mut run = match driver.prepare(Aim::Nothing) {
        Ok(run) => run,
        Err(trouble) => {
            driver.fail(Place::AfterOp, trouble);
            return None;
        }
    };
    let (mut trace, mut kinds) = (Segment::default(), Kinds::default());
    let mut stop = Stop::Trap;
    while stop == Stop::Trap && driver.control.phase() != Phase::Left {
        if trace.len() >= driver.options.steps_max {
            let what = format!("more than {} instructions: does it spin?", trace.len());
            driver.fail(Place::AfterOp, Trouble::Failed(what));
            return None;
        }
        let address = run.tracee.instruction_pointer();
        let rest = trace.push(address, kinds.at(&run.tracee, address));
        stop = advance(&mut run.tracee, address, rest);
    }
    driver.conclude_baseline(run, stop);
    let most = driver.scenario.instructions_max();
    if stop == Stop::Trap && trace.len() > most {
        let what = format!("{} instructions, at most {most} are expected", trace.len());
        driver.fail(Place::AfterOp, Trouble::Failed(what));
    }
    (stop == Stop::Trap).then_some(trace)
}

/// Kills a fresh victim before instruction `k`; the last tries go step by step.
fn kill_at<S: Scenario>(driver: &mut Driver<'_, S>, trace: &Segment, k: u64) {
    let place = Place::Instruction(k);
    for tries_left in (0..TRIES).rev() {
        let jump = driver.may_jump() && tries_left >= TRIES / 2;
        let mut run = match driver.prepare(Aim::Nothing) {
            Ok(run) => run,
            Err(trouble) => return driver.fail(place, trouble),
        };
        let stop = trace.reach(&mut run.tracee, driver.control, k, jump);
        let inside = driver.control.phase() == Phase::Inside;
        let on_target = stop == Stop::Trap && inside && trace.is_at(&run.tracee, k);
        if driver.settle(run, &place, stop, on_target, jump, tries_left) {
            return;
        }
    }
}
