#[cfg(test)]
mod lifeline;
#[cfg(test)]
pub(super) mod pair;

use std::sync::OnceLock;
use std::time::Duration;

use super::*;
use crate::node::Node;
use crate::os::death::robust;
use crate::os::death::robust::OWNER_DIED;
use crate::os::fixture::{TempDir, is_asleep, refuse, refuse_none, until};
use crate::os::sleep::futex;
use crate::os::sleep::futex::Woken;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::{Domain, ErrorKind};

const SOON: Duration = Duration::from_secs(20);

/// Two ends connect to each other, so neither can wait for the other to have done so.
pub(super) fn together<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap(), other)
    })
}

pub(super) fn node(dir: &TempDir, name: &str) -> Node {
    Node::builder().root(dir.path()).name(name).open().unwrap()
}

#[test]
fn values_cross_between_nodes_through_files_of_their_own() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let writing = LatestWriter::<[f64; 6]>::open(&a, "arm/plan").unwrap();
    let reading = LatestReader::<[f64; 6]>::open(&b, "arm/plan").unwrap();
    let (mut writer, mut reader) =
        together(|| writing.connect(SOON).unwrap(), || reading.connect(SOON).unwrap());
    assert!(reader.read().unwrap().is_none());
    for n in 1..100u64 {
        writer.write(&[n as f64; 6]).unwrap();
        let newest = reader.read().unwrap().unwrap();
        assert_eq!((newest.seq, newest.value), (n, [n as f64; 6]));
    }

    let pushing = SpscWriter::<u32>::open(&a, "arm/frames", 4).unwrap();
    let popping = SpscReader::<u32>::open(&b, "arm/frames", 4).unwrap();
    let (mut push, mut pop) =
        together(|| pushing.connect(SOON).unwrap(), || popping.connect(SOON).unwrap());
    let sent = (0..10u32).take_while(|n| push.push(n).is_ok()).count();
    assert_eq!(sent, 4);
    let four: Vec<_> = (0..4).map(|_| pop.pop().unwrap().unwrap().value).collect();
    assert_eq!(four, [0, 1, 2, 3]);
    assert!(pop.pop().unwrap().is_none() && push.push(&4).is_ok());

    let domain = Domain::of(&Node::builder().root(dir.path())).unwrap();
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    drop((writer, reader, push, pop));
    drop((a, b));
    domain.clean().unwrap();
    assert!(!domain.dir().exists());
}

#[test]
fn another_type_or_nobody_is_told() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let _writing = LatestWriter::<[f64; 6]>::open(&a, "x").unwrap();
    let reading = LatestReader::<[f32; 6]>::open(&b, "x").unwrap();
    assert_eq!(reading.connect(SOON).unwrap_err().kind(), ErrorKind::TypeMismatch);
    let lonely = LatestReader::<u64>::open(&b, "y").unwrap();
    let none = lonely.connect(Duration::from_millis(5)).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Timeout);
    let twice = LatestWriter::<[f64; 6]>::open(&a, "x").unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
}

fn three_stages(wait: Wait, run: impl Fn(&mut Pipeline<'_>, &Stop) -> Vec<StageReport>) {
    let schedule = Schedule::every(Duration::from_millis(2)).unwrap();
    let schedule = schedule.deadline(Duration::from_secs(10)).overrun(Overrun::CatchUp);
    let options = StageOptions { wait, ..StageOptions::default() };
    let (mut one, mut first) = latest::<u64>();
    let (mut two, mut second) = spsc::<u64>(4);
    let mut ran = 0;
    let stop = Stop::new();
    let (done, ended) = (stop.clone(), stop.clone());
    let mut pipeline = Pipeline::new(schedule)
        .stage("one", options, move |c: &Cycle| {
            assert_eq!(c.input, Input::Clock);
            one.write(&c.number).unwrap();
            Outcome::HandOn
        })
        .stage("two", options, move |c: &Cycle| {
            assert_eq!(c.input, Input::Ready);
            assert!(first.read().unwrap().unwrap().value >= c.number);
            while two.push(&c.number).is_err() && !ended.is_stopped() {
                std::thread::yield_now(); // the third has no core
            }
            Outcome::HandOn
        })
        .stage("three", options, move |c: &Cycle| {
            assert_eq!(second.pop().unwrap().unwrap().value, c.number);
            ran += 1;
            if ran == 11 {
                done.stop();
            }
            Outcome::HandOn
        });
    let boards = pipeline.boards();
    let reports = run(&mut pipeline, &stop);
    assert_eq!(reports.len(), 3);
    assert_eq!(boards[2].counts().run, 11);
    assert!(boards[2].cycles_done() >= 11);
    assert_eq!(boards[2].after_release().count(), 11);
    assert_eq!(boards[2].own_time().count(), 11);
    assert_eq!(boards[2].counts().missed, 0);
}

#[test]
fn a_cycle_runs_through_all_stages_on_one_thread() {
    three_stages(Wait::SpinThenSleep { spin_ns: 0 }, |p, stop| p.run_inline(stop));
}

#[test]
fn a_stage_on_a_shared_thread_waits_for_the_one_before_it() {
    let schedule = Schedule::every(Duration::from_millis(2)).unwrap().overrun(Overrun::CatchUp);
    let second = OnceLock::<BoardView>::new();
    let mut seen = Vec::new();
    let mut pipeline = Pipeline::new(schedule)
        .stage("one", StageOptions::default(), |_: &Cycle| {
            seen.push(second.get().unwrap().doing().phase);
            if seen.len() < 3 { Outcome::HandOn } else { Outcome::Stop }
        })
        .stage("two", StageOptions::default(), pass_on);
    let boards = pipeline.boards();
    second.set(boards[1].clone()).unwrap();
    pipeline.run_inline(&Stop::new());
    drop(pipeline);
    assert_eq!(seen, [Phase::Waiting; 3]);
    assert!(boards.iter().all(|board| board.doing().phase == Phase::Idle), "it has ended");
}

#[test]
fn a_cycle_runs_through_all_stages_on_threads_whatever_the_wait() {
    for wait in [Wait::SpinThenSleep { spin_ns: 0 }, Wait::Yield, Wait::for_stages(3)] {
        three_stages(wait, |p, stop| p.run_threads(stop).unwrap());
    }
}

#[test]
fn a_late_stage_is_told_to_the_next() {
    let schedule = Schedule::every(Duration::from_millis(5)).unwrap();
    let stop = Stop::new();
    let done = stop.clone();
    let mut pipeline = Pipeline::new(schedule)
        .stage("silent", StageOptions::default(), |_: &Cycle| Outcome::Skip)
        .stage("next", StageOptions::default(), move |c: &Cycle| {
            assert_eq!(c.input, Input::Late);
            done.stop();
            Outcome::Skip
        });
    let reports = pipeline.run_threads(&stop).unwrap();
    assert_eq!(reports[1].counts.late, 1);
}

#[test]
fn members_of_two_nodes_hand_cycles_on() {
    let dir = TempDir::new("rt");
    let schedule = Schedule::every(Duration::from_millis(2)).unwrap();
    let stages = ["plan", "drive"];
    let stop = Stop::new();
    std::thread::scope(|scope| {
        for at in 0..2 {
            let (dir, stop) = (&dir, &stop);
            scope.spawn(move || {
                let node = node(dir, stages[at]);
                let member = Member::open(&node, "arm", &stages, at, schedule).unwrap();
                let mut member = member.connect(SOON).unwrap();
                let mut ready = 0;
                let mut stage = |c: &Cycle| {
                    ready += u64::from(c.input == Input::Ready);
                    if ready == 5 {
                        stop.stop();
                    }
                    Outcome::HandOn
                };
                member.run(&StageOptions::default(), &mut stage, stop);
            });
        }
    });
}

#[derive(Default)]
struct Actions(Vec<Step>, bool);

impl SafeState for Actions {
    fn hold(&mut self) {
        self.0.push(Step::Hold);
    }
    fn quick_stop(&mut self) {
        self.0.push(Step::QuickStop);
    }
    fn brake(&mut self) {
        self.0.push(Step::Brake);
    }
    fn stands_still(&self) -> bool {
        self.1
    }
}

#[test]
fn a_lifeline_holds_stops_and_brakes_in_order_and_stays_latched() {
    let own = Board::heap();
    let seen = own.view();
    let mut lifeline = Lifeline::new(own);
    let other = Board::heap();
    lifeline.moves("other", other.view(), 1000);
    lifeline.arm(10_000);
    let mut actions = Actions::default();
    other.moved(10_500);
    assert_eq!(lifeline.step(11_500, 1, &mut actions), Step::Run);
    assert_eq!(seen.latch(), None);
    assert_eq!(lifeline.step(11_501, 2, &mut actions), Step::Hold);
    let latch = seen.latch().unwrap();
    assert_eq!((latch.cause, latch.subject, latch.cycle), (Cause::Silent, 0, 2));
    other.moved(11_600); // too late: latched
    assert_eq!(lifeline.step(11_700, 3, &mut actions), Step::QuickStop);
    assert_eq!(lifeline.reset(11_700).unwrap_err().kind(), ErrorKind::Refused);
    actions.1 = true;
    assert_eq!(lifeline.step(11_800, 4, &mut actions), Step::Brake);
    assert_eq!(lifeline.step(11_900, 5, &mut actions), Step::Brake);
    assert_eq!(actions.0, [Step::Hold, Step::QuickStop, Step::Brake, Step::Brake]);
    assert_eq!(seen.latch().unwrap().at_ns, 11_501, "the first cause stays");
    assert_eq!(lifeline.reset(50_000).unwrap_err().kind(), ErrorKind::Refused, "still silent");
    other.moved(50_000);
    lifeline.reset(50_000).unwrap();
    assert_eq!((lifeline.step(50_100, 6, &mut actions), seen.latch()), (Step::Run, None));
}

#[test]
fn a_missed_deadline_is_found_at_the_deadline_and_told_on() {
    let schedule = Schedule::every(Duration::from_millis(1)).unwrap();
    let schedule = schedule.starting_at(1_000_000).deadline(Duration::from_micros(500));
    let stage = Board::heap();
    let mut lifeline = Lifeline::new(Board::heap()).hold_cycles(0);
    lifeline.on_time("core", stage.view(), schedule);
    lifeline.arm(0);
    assert_eq!(lifeline.look(1_499_999), None);
    assert_eq!(lifeline.look(1_500_000), Some((Cause::MissedDeadline, 0)));
    stages::signal::tell(stage.done(), 1, None);
    assert_eq!(lifeline.look(2_499_999), None);
    assert_eq!(lifeline.look(2_500_000), Some((Cause::MissedDeadline, 0)));
    let mut core = Lifeline::new(stage);
    core.trip(Cause::NotFinite, NOBODY, 2_000_000, 1);
    assert_eq!(lifeline.look(2_000_000), Some((Cause::Told, 0)));
    let mut actions = Actions::default();
    assert_eq!(lifeline.step(2_000_000, 1, &mut actions), Step::QuickStop, "a guard holds nothing");
}

/// As who wants no deadline writes it.
#[test]
fn a_deadline_without_end_is_never_missed() {
    let schedule = Schedule::every(Duration::from_millis(1)).unwrap().deadline(Duration::MAX);
    let (stage, mut lifeline) = (Board::heap(), Lifeline::new(Board::heap()));
    lifeline.on_time("core", stage.view(), schedule);
    lifeline.arm(0);
    assert_eq!(lifeline.look(u64::MAX - 1), None);
    let stop = Stop::new();
    let ends = stop.clone();
    let options = StageOptions { input_deadline: Some(Duration::MAX), ..Default::default() };
    let mut pipeline = Pipeline::new(schedule)
        .stage("first", StageOptions::default(), |_: &Cycle| {
            std::thread::sleep(Duration::from_millis(3));
            Outcome::HandOn
        })
        .stage("next", options, move |c: &Cycle| {
            assert_eq!((c.input, c.due_ns), (Input::Ready, u64::MAX));
            ends.stop();
            Outcome::HandOn
        });
    let reports = pipeline.run_threads(&stop).unwrap();
    assert_eq!(reports.iter().map(|r| r.counts.missed).sum::<u64>(), 0);
}

#[test]
fn commands_are_checked_value_by_value() {
    let last = [0.0; 3];
    assert_eq!(check_command(&[0.1, 0.0, -0.1], &last, -1.0, 1.0, 0.2), Ok(()));
    for (command, cause) in [
        ([f64::NAN, 0.0, 0.0], Cause::NotFinite),
        ([0.0, f64::INFINITY, 0.0], Cause::NotFinite),
        ([0.0, 0.0, 1.1], Cause::OutOfRange),
        ([0.0, 0.3, 0.0], Cause::OutOfRange),
    ] {
        assert_eq!(check_command(&command, &last, -1.0, 1.0, 0.2), Err(cause));
    }
}

#[test]
fn a_dead_owner_is_seen_through_its_board() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let board = Board::create(&a, "arm/core").unwrap();
    let view = BoardView::open(&b, "arm/core", SOON).unwrap();
    let mut lifeline = Lifeline::new(Board::heap());
    lifeline.moves("core", view, u64::MAX >> 1);
    lifeline.arm(clock::now_ns());
    board.moved(clock::now_ns());
    assert_eq!(lifeline.look(clock::now_ns()), None);
    drop((board, a));
    assert_eq!(lifeline.look(clock::now_ns()), Some((Cause::Died, 0)));
}

#[test]
fn a_board_that_is_dropped_has_left_for_a_view_beside_it_too() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let board = Board::create(&a, "x").unwrap();
    let (here, there) = (board.view(), BoardView::open(&b, "x", SOON).unwrap());
    drop(board);
    assert!(here.is_dead() && there.is_dead());
    let again = Board::create(&a, "x").unwrap();
    drop(here);
    let seen = BoardView::open(&b, "x", SOON).unwrap();
    assert!(seen.seems_alive(), "the file of the second one is still there");
    drop(again);
    assert!(seen.is_dead());
}

/// It tripped when the thread that had opened the node ended, while a token was held by such a
/// thread: the word said dead, which is a hint.
#[test]
fn a_lifeline_does_not_trip_on_a_word_that_says_dead() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let board = Board::create(&a, "arm/core").unwrap();
    let mut lifeline = Lifeline::new(Board::heap());
    lifeline.node("node", b.watch(a.id()).unwrap());
    lifeline.moves("core", BoardView::open(&b, "arm/core", SOON).unwrap(), 1000);
    lifeline.arm(0);
    board.moved(1000);
    let held = a.token_word().load(Relaxed);
    a.token_word().store(OWNER_DIED, Relaxed);
    assert_eq!(lifeline.look(1000), None, "a hint");
    assert_eq!(lifeline.look(2001), Some((Cause::Silent, 1)), "its deadline asks for no proof");
    a.token_word().store(held, Relaxed);
    drop((board, a));
    assert_eq!(lifeline.look(1000), Some((Cause::Died, 0)), "proof");
}

#[test]
fn a_lifeline_does_not_trip_when_the_thread_that_opened_the_node_ends() {
    let dir = TempDir::new("rt");
    let b = node(&dir, "b");
    let open = || {
        let a = node(&dir, "a");
        let board = Board::create(&a, "arm/core").unwrap();
        (a, board)
    };
    let (a, board) = std::thread::scope(|scope| scope.spawn(open).join().unwrap());
    let mut lifeline = Lifeline::new(Board::heap());
    lifeline.node("node", b.watch(a.id()).unwrap());
    lifeline.moves("core", BoardView::open(&b, "arm/core", SOON).unwrap(), u64::MAX >> 1);
    lifeline.arm(0);
    board.moved(1000);
    assert_eq!(lifeline.look(1000), None);
    drop((board, a));
    assert_eq!(lifeline.look(1000), Some((Cause::Died, 0)));
}

/// A type of the same name, with its fields in another order or under other names, and the same
/// type in another place of the program.
#[cfg(feature = "derive")]
macro_rules! command {
    ($module:ident, $($field:ident),*) => {
        mod $module {
            #[outlive::message("test/Command")]
            #[derive(Clone, Copy, Debug)]
            pub(super) struct Command {
                $(pub(super) $field: f64),*
            }
        }
    };
}
#[cfg(feature = "derive")]
command!(here, speed, torque);
#[cfg(feature = "derive")]
command!(there, speed, torque);
#[cfg(feature = "derive")]
command!(turned, torque, speed);

#[cfg(feature = "derive")]
#[test]
fn the_same_type_elsewhere_is_taken_and_another_order_of_fields_is_not() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let writing = LatestWriter::<here::Command>::open(&a, "x").unwrap();
    let reading = LatestReader::<there::Command>::open(&b, "x").unwrap();
    let (mut writer, mut reader) =
        together(|| writing.connect(SOON).unwrap(), || reading.connect(SOON).unwrap());
    writer.write(&here::Command { speed: 1.0, torque: 2.0 }).unwrap();
    let there::Command { speed, torque } = reader.read().unwrap().unwrap().value;
    assert_eq!((speed, torque), (1.0, 2.0));

    let _writing = SpscWriter::<here::Command>::open(&a, "y", 4).unwrap();
    let reading = SpscReader::<turned::Command>::open(&b, "y", 4).unwrap();
    assert_eq!(reading.connect(SOON).unwrap_err().kind(), ErrorKind::TypeMismatch);
}

/// It never came back: those before it ran on, and nobody stopped them.
#[test]
fn a_stage_whose_thread_cannot_be_made_stops_those_before_it() {
    let stop = Stop::new();
    let seen = stop.clone();
    let caller = std::thread::spawn(move || {
        refuse("thread", "two", libc::EAGAIN, 1);
        let schedule = Schedule::every(Duration::from_millis(1)).unwrap();
        let mut pipeline = Pipeline::new(schedule)
            .stage("one", StageOptions::default(), |_: &Cycle| Outcome::HandOn)
            .stage("two", StageOptions::default(), |_: &Cycle| Outcome::HandOn);
        pipeline.run_threads(&stop).unwrap_err()
    });
    until(|| caller.is_finished());
    assert_eq!(caller.join().unwrap().kind(), ErrorKind::Io);
    assert!(seen.is_stopped());
}

/// It slept on until the release, an hour away.
#[test]
fn a_first_stage_that_waits_for_its_release_sees_the_stop() {
    for wait in [Wait::SpinThenSleep { spin_ns: 0 }, Wait::Park { lead_ns: 50_000 }] {
        for inline in [true, false] {
            let hour = Duration::from_secs(3600);
            let start_ns = clock::now_ns() + 3_600_000_000_000;
            let schedule = Schedule::every(hour).unwrap().starting_at(start_ns);
            let (stop, (tell, told)) = (Stop::new(), std::sync::mpsc::channel());
            let ends = stop.clone();
            let caller = std::thread::spawn(move || {
                tell.send(robust::gettid() as i32).unwrap();
                let options = StageOptions { wait, ..StageOptions::default() };
                let mut pipeline = Pipeline::new(schedule).stage("one", options, pass_on);
                match inline {
                    true => pipeline.run_inline(&ends),
                    false => pipeline.run_threads(&ends).unwrap(),
                }
            });
            let tid = told.recv().unwrap();
            until(|| is_asleep(tid));
            stop.stop();
            until(|| caller.is_finished());
            assert_eq!(caller.join().unwrap()[0].counts.run, 0);
        }
    }
}

/// One that hands on and ends.
fn once(member: &mut Member) {
    let mut ran = false;
    let mut stage = |_: &Cycle| match std::mem::replace(&mut ran, true) {
        false => Outcome::HandOn,
        true => Outcome::Stop,
    };
    member.run(&StageOptions::default(), &mut stage, &Stop::new());
}

/// It read the request of the board that it knew, whose owner is gone.
#[test]
fn a_successor_whose_board_cannot_be_opened_is_woken() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let schedule = Schedule::every(Duration::from_millis(1)).unwrap();
    let joining = Member::open(&a, "arm", &["plan", "drive"], 0, schedule).unwrap();
    let old = Board::create(&b, "arm/drive").unwrap();
    let mut plan = joining.connect(SOON).unwrap();
    drop(old);
    let _new = Board::create(&b, "arm/drive").unwrap();
    refuse("map", ".b.", libc::ENOMEM, u32::MAX);
    once(&mut plan);
    let board = plan.board().view();
    let (tell, told) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        tell.send(robust::gettid() as i32).unwrap();
        let word = futex::low_half(board.done());
        futex::wait(word, board.cycles_done() as u32, Deadline::after(SOON))
    });
    let tid = told.recv().unwrap();
    until(|| is_asleep(tid));
    once(&mut plan);
    assert!(refuse_none() < u32::MAX, "nobody looked for the new board");
    assert_eq!(sleeper.join().unwrap(), Woken::Word(0));
}
