//! Kills a long operation at every system call and at every change of shared bytes.

use super::Scenario;
use super::driver::{Driver, Run, TRIES};
use super::gate::Phase;
use super::peer::Trouble;
use super::point::Place;
use super::trace::{Kind, Kinds, Segment, advance};
use super::tracee::Stop;
use super::watch::Watch;
use crate::crash::Aim;

/// Records one whole run, then visits each interesting point of it with a fresh victim.
pub(crate) fn sweep<S: Scenario>(driver: &mut Driver<'_, S>) {
    let Some(trace) = record(driver) else { return };
    let points = points(&trace);
    driver.announce(points.len() as u64);
    for at in driver.options.selection(points.len() as u64, driver.job) {
        let place = &points[at as usize];
        if driver.options.at.as_ref().is_some_and(|only| only != place) {
            continue;
        }
        if driver.give_up() {
            break;
        }
        kill_at(driver, &trace, place);
    }
    driver.end();
}

/// Steps through the operation once, noting system calls and changes; the kill comes after it.
fn record<S: Scenario>(driver: &mut Driver<'_, S>) -> Option<Vec<Segment>> {
    let mut run = match driver.prepare(Aim::Nothing) {
        Ok(run) => run,
        Err(trouble) => {
            driver.fail(Place::AfterOp, trouble);
            return None;
        }
    };
    let mut watch = Watch::new(&driver.dir, driver.options.watch_bytes);
    watch.rescan(run.tracee.pid());
    let (mut trace, mut kinds) = (vec![], Kinds::default());
    let mut segment = Segment::default();
    let mut stop = Stop::Trap;
    while stop == Stop::Trap && driver.control.phase() != Phase::Left {
        let address = run.tracee.instruction_pointer();
        let kind = kinds.at(&run.tracee, address);
        if kind == Kind::Syscall {
            stop = entry_and_exit(&mut run, &mut segment);
            trace.push(std::mem::take(&mut segment));
            watch.rescan(run.tracee.pid());
            continue;
        }
        if segment.len() >= driver.options.steps_max {
            let what = format!("{} instructions without a system call: spins?", segment.len());
            driver.fail(Place::AfterOp, Trouble::Failed(what));
            return None;
        }
        let rest = segment.push(address, kind);
        stop = advance(&mut run.tracee, address, rest);
        if watch.changed() {
            segment.changes.push(segment.len());
        }
    }
    trace.push(segment);
    driver.conclude_baseline(run, stop);
    (stop == Stop::Trap).then_some(trace)
}

fn entry_and_exit(run: &mut Run, segment: &mut Segment) -> Stop {
    let stop = run.tracee.run_to_syscall();
    if stop != Stop::Syscall {
        return stop;
    }
    segment.syscall = Some(run.tracee.syscall_number());
    match run.tracee.run_to_syscall() {
        Stop::Syscall => Stop::Trap,
        stop => stop,
    }
}

fn points(trace: &[Segment]) -> Vec<Place> {
    let mut points = Vec::new();
    for (s, segment) in trace.iter().enumerate() {
        let s = s as u64;
        points.extend(segment.changes.iter().map(|&d| Place::Change(s, d)));
        if let Some(number) = segment.syscall {
            points.extend([Place::SyscallEntry(s, number), Place::SyscallExit(s, number)]);
        }
    }
    points
}

fn kill_at<S: Scenario>(driver: &mut Driver<'_, S>, trace: &[Segment], place: &Place) {
    for tries_left in (0..TRIES).rev() {
        let changes = matches!(place, Place::Change(..));
        let jump = changes && driver.may_jump() && tries_left >= TRIES / 2;
        let mut run = match driver.prepare(Aim::Nothing) {
            Ok(run) => run,
            Err(trouble) => return driver.fail(place.clone(), trouble),
        };
        let (stop, on_target) = reach(driver, &mut run, trace, place, jump);
        if driver.settle(run, place, stop, on_target, jump, tries_left) {
            return;
        }
    }
}

/// Goes to a point; the flag says whether the run agreed with the recorded one.
fn reach<S: Scenario>(
    driver: &Driver<'_, S>,
    run: &mut Run,
    trace: &[Segment],
    place: &Place,
    jump: bool,
) -> (Stop, bool) {
    let (calls, steps) = match *place {
        Place::SyscallEntry(s, _) => (s, None),
        Place::SyscallExit(s, _) => (s + 1, None),
        Place::Change(s, d) => (s, Some(d)),
        _ => (0, None),
    };
    let mut agrees = true;
    let mut enter = |run: &mut Run, number: Option<i64>| {
        let stop = run.tracee.run_to_syscall();
        agrees &= stop == Stop::Syscall && number == Some(run.tracee.syscall_number());
        stop
    };
    for segment in &trace[..calls as usize] {
        let mut stop = enter(run, segment.syscall);
        if stop == Stop::Syscall {
            stop = run.tracee.run_to_syscall();
        }
        if stop != Stop::Syscall {
            return (stop, false);
        }
    }
    match (place, steps) {
        (Place::SyscallEntry(_, number), _) => {
            let stop = enter(run, Some(*number));
            (stop, agrees)
        }
        (Place::Change(s, _), Some(d)) => {
            let segment = &trace[*s as usize];
            let stop = segment.reach(&mut run.tracee, driver.control, d, jump);
            let inside = driver.control.phase() == Phase::Inside;
            (stop, agrees && stop == Stop::Trap && inside && segment.is_at(&run.tracee, d))
        }
        _ => (Stop::Syscall, agrees),
    }
}
