//! The sweep engine on toys. One thread only: the engine forks.

mod misbehaving;
mod toys;

use misbehaving::{Misbehave, Named, Way, install};
use std::process::ExitCode;
use testkit::sweep::{Place, Report, Scenario, Style, Suite, SweepOptions};
use toys::{Create, Locked, Publish};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("a correct publish survives every instruction", correct_publish_survives),
    ("jumps and single steps see the same", jumps_equal_steps),
    ("a torn publish is reported at its place", torn_publish_fails),
    ("a stride covers its share on any number of drivers", strides_cover),
    ("a world can be kept over all points", kept_world_works),
    ("a peer acts while the victim is stopped", stopped_victims_are_watched),
    ("a robust mutex survives, a naive lock does not", locks_differ),
    ("a hanging survivor is a failure, and three are enough", hangs_are_failures),
    ("long paths stop at system calls and changes", long_paths_are_swept),
    ("a hasty create is reported", hasty_create_fails),
    ("calls fail in every way, and who bears it badly is reported", failing_calls_are_swept),
    ("crash points are counted and hit", crash_points_are_hit),
    ("victims that misbehave are failures", misbehaviour_fails),
    ("runs that differ are brought to the same place", detours_are_no_obstacle),
    ("sleeping and busy victims are killed by the clock", clocks_kill),
    ("one point can be repeated", one_point_repeats),
];

fn main() -> ExitCode {
    let filter: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    for (name, test) in TESTS {
        if filter.is_empty() || filter.iter().any(|f| name.contains(f.as_str())) {
            println!("\ntest: {name}");
            test();
        }
    }
    println!("\nall engine tests passed");
    ExitCode::SUCCESS
}

fn options() -> SweepOptions {
    SweepOptions { hang_s: 10, ..SweepOptions::default() }
}

fn suite(change: impl FnOnce(&mut SweepOptions)) -> Suite {
    let mut options = options();
    change(&mut options);
    Suite::new(options)
}

fn plain(torn: bool) -> Publish {
    Publish { torn, style: Style::default() }
}

fn full(_: &mut SweepOptions) {}

fn every<S: Scenario>(change: impl FnOnce(&mut SweepOptions), scenario: &S) -> Report {
    sole(suite(change).every_instruction(scenario))
}

fn long<S: Scenario>(change: impl FnOnce(&mut SweepOptions), scenario: &S) -> Report {
    sole(suite(change).long_path(scenario))
}

fn named(broken: bool) -> Report {
    sole(suite(full).crash_points(&Named { broken }, install))
}

fn sole(report: Option<&Report>) -> Report {
    report.expect("nothing is skipped").clone()
}

fn assert_complete(report: &Report) {
    assert_eq!(report.failure_count, 0, "{report}");
    assert_eq!(report.covered, report.points, "{report}");
    assert_eq!(report.off_target, 0, "{report}");
}

fn correct_publish_survives() {
    let mut suite = suite(full);
    let report = sole(suite.every_instruction(&plain(false)));
    assert_complete(&report);
    assert!(report.points > 50 && report.kills == report.points, "{report}");
    assert!(report.outcome("before") > 30 && report.outcome("after") >= 1, "{report}");
    let summary = suite.summary();
    assert!(summary.starts_with("kill sweep: 1 scenarios, "), "{summary}");
    assert!(summary.ends_with(" kills, 0 failures"), "{summary}");
}

fn jumps_equal_steps() {
    let jumped = every(full, &plain(false));
    let stepped = every(|c| c.jump = false, &plain(false));
    assert_complete(&jumped);
    assert_complete(&stepped);
    assert_eq!(jumped.outcomes, stepped.outcomes);
    assert!(jumped.steps < stepped.steps, "{} < {}", jumped.steps, stepped.steps);
}

fn torn_publish_fails() {
    let report = every(full, &plain(true));
    assert!(!report.passed() && report.failure_count > 5, "{report}");
    // Before the early commit, and when the copy is complete, all is well.
    assert!(report.outcome("before") > 10 && report.outcome("after") > 0, "{report}");
    let first = &report.failures[0];
    assert!(matches!(first.place(), Place::Instruction(k) if *k > 10), "{first:?}");
    assert!(first.what.contains("is torn at word") && !first.point.finished, "{first:?}");
    assert!(first.location().contains("engine-"), "{}", first.location());
}

fn strides_cover() {
    let all = every(|c| c.jobs = 2, &plain(false));
    assert_complete(&all);
    let mut covered = 0;
    for offset in 0..3 {
        let part = |c: &mut SweepOptions| (c.stride, c.offset, c.jobs) = (3, Some(offset), 2);
        let report = every(part, &plain(false));
        assert!(report.passed() && report.points == all.points, "{report}");
        // Each run takes the finished operation too.
        covered += report.covered - 1;
    }
    assert_eq!(covered, all.points - 1);
    let few = every(|c| c.points_max = Some(10), &plain(false));
    assert!(few.passed() && few.covered <= 11, "{few}");
}

fn kept_world_works() {
    let style = Style { keep_world: true, ..Style::default() };
    let report = every(full, &Publish { torn: false, style });
    assert_complete(&report);
}

fn stopped_victims_are_watched() {
    let style = Style { act_while_stopped: true, ..Style::default() };
    assert_complete(&every(full, &Publish { torn: false, style }));
    let report = every(full, &Publish { torn: true, style });
    assert!(report.failure_count > 5, "{report}");

    let style = Style { finish_op: true, ..style };
    let report = every(full, &Publish { torn: false, style });
    assert_complete(&report);
    assert_eq!(report.outcome("after"), report.points);
    let report = every(full, &Publish { torn: true, style });
    assert!(report.failure_count > 5, "seen only while stopped: {report}");
}

fn locks_differ() {
    let robust = Locked { robust: true, patient: false };
    let report = every(full, &robust);
    assert_complete(&report);
    assert!(report.outcome("clean") > 5 && report.outcome("owner died") > 5, "{report}");
    let naive = Locked { robust: false, patient: false };
    let report = every(full, &naive);
    assert!(report.failures.iter().any(|f| f.what == "the lock is stuck"), "{report}");
    assert!(report.outcome("clean") > 2, "{report}");
}

fn hangs_are_failures() {
    let patient = Locked { robust: false, patient: true };
    let report = every(|c| c.hang_s = 1, &patient);
    assert!(report.gave_up && report.hangs == 3, "{report}");
    assert!(report.failures[0].what.contains("survivor hangs"), "{report}");
}

fn long_paths_are_swept() {
    let report = long(full, &Create { hasty: false });
    assert_complete(&report);
    assert!(report.points > 64 + 10, "64 stores and some system calls: {report}");
    assert!(
        report.outcome("complete") > 0 && report.outcome("absent, made again") > 64,
        "{report}"
    );
    // The same points without breakpoints.
    let stepped = long(|c| c.jump = false, &Create { hasty: false });
    assert_complete(&stepped);
    assert_eq!(report.outcomes, stepped.outcomes);
    // A path without system calls has changes, too.
    let report = long(full, &plain(false));
    assert_complete(&report);
    assert!(report.points > 20, "{report}");
}

fn hasty_create_fails() {
    let report = long(full, &Create { hasty: true });
    assert!(report.failures.iter().any(|f| f.what == "visible with 0 bytes"), "{report}");
    let no_magic = |f: &&testkit::sweep::Failure| f.what == "visible without its magic number";
    let found = report.failures.iter().filter(no_magic).count();
    assert!(found > 10, "{report}");
}

fn failing_calls_are_swept() {
    let report = sole(suite(full).failing_calls(&Create { hasty: false }));
    assert_complete(&report);
    assert!(report.outcome("absent, made again") > 10, "{report}");
    assert!(report.outcome("complete") > 0, "{report}");
    let report = sole(suite(full).failing_calls(&Create { hasty: true }));
    let found = report.failures.iter().find(|f| f.what == "visible with 0 bytes");
    let place = found.expect("a file that could not grow").place();
    assert!(matches!(place, Place::Failing(_, libc::SYS_ftruncate, ..)), "{report}");
}

fn crash_points_are_hit() {
    let report = named(false);
    assert_complete(&report);
    assert_eq!(report.crash_points, ["toy.before", "toy.loop", "toy.after"]);
    // Each of them once, the loop three times of five, and the finished operation.
    assert_eq!(report.points, 1 + 3 + 1 + 1);
    assert_eq!((report.outcome("before"), report.outcome("after")), (4, 2));
    let report = named(true);
    assert_eq!(report.failure_count, 3, "{report}");
    let place = Place::CrashPoint("toy.loop".into(), 1);
    assert_eq!(report.failures[0].place(), &place);
}

fn misbehaviour_fails() {
    for (way, text) in [
        (Way::SetupFails, "setup: no room"),
        (Way::SetupPanics, "the world is flat"),
        (Way::PreparationFails, "before the gate: no warm-up"),
        (Way::ExitsInside, "in the operation: exit code 7"),
        (Way::SurvivorDies, "the peer died in survivor: signal 6"),
        (Way::Spins, "does it spin?"),
        (Way::LeavesFiles, "teardown: files left"),
        (Way::SeesNothing, "no kill led to the outcome \"owner died\""),
    ] {
        let limits = |c: &mut SweepOptions| (c.steps_max, c.failures_max) = (20_000, 5);
        let report = every(limits, &Misbehave { way });
        assert!(!report.passed(), "{way:?}: {report}");
        let what = &report.failures[0].what;
        assert!(what.contains(text), "{way:?}: {what}");
    }
    let hang = |c: &mut SweepOptions| c.hang_s = 1;
    let report = every(hang, &Misbehave { way: Way::Sleeps });
    assert!(report.failures[0].what.contains("hangs in the operation"), "{report}");
    for way in [Way::Threads, Way::Signals] {
        let report = every(full, &Misbehave { way });
        assert!(report.passed(), "{report}");
    }
}

fn detours_are_no_obstacle() {
    let straight = every(full, &Misbehave { way: Way::Wanders });
    let stepped = every(|c| c.jump = false, &Misbehave { way: Way::Wanders });
    for report in [straight, stepped] {
        assert!(report.passed() && report.covered == report.points, "{report}");
        assert!(report.outcome("behind the detour") > 20, "{report}");
    }
}

fn clocks_kill() {
    let asleep = sole(suite(full).asleep(&Misbehave { way: Way::Sleeps }));
    assert_complete(&asleep);
    assert_eq!((asleep.points, asleep.outcome("fine")), (1, 1));
    let awake = sole(suite(|c| c.hang_s = 1).asleep(&Misbehave { way: Way::Repeats }));
    assert!(awake.failures[0].what.contains("never sleeps"), "{awake}");
    let quick = sole(suite(full).asleep(&Misbehave { way: Way::Threads }));
    assert!(quick.failures[0].what.contains("finished without sleeping"), "{quick}");
    let window = std::time::Duration::from_micros(500);
    let mut suite = suite(|c| c.jobs = 2);
    let random = sole(suite.random_instants(&Misbehave { way: Way::Repeats }, 50, window));
    assert_complete(&random);
    let window = std::time::Duration::from_millis(20);
    let dead = sole(suite.random_instants(&Misbehave { way: Way::Aborts }, 20, window));
    assert!(dead.failures[0].what.contains("by itself: signal 6"), "{dead}");
    let early = sole(suite.random_instants(&Misbehave { way: Way::Signals }, 20, window));
    assert_complete(&early);
    assert!(random.points == 50 && random.outcome("fine") > 10, "{random}");
}

fn one_point_repeats() {
    let at = |c: &mut SweepOptions| (c.at, c.jobs) = (Some(Place::Instruction(20)), 2);
    let report = every(at, &plain(false));
    assert!(report.passed() && report.covered == 2, "{report}");
    let none = |c: &mut SweepOptions| c.only = Some("nothing of that name".into());
    let mut suite = suite(none);
    assert!(suite.every_instruction(&plain(false)).is_none());
    assert!(suite.reports().is_empty());
}
