//! Lifelines that watch each other, whose subjects are replaced, and in a forked child.

use std::time::Duration;

use super::{Actions, SOON, node, once};
use crate::ErrorKind;
use crate::os::fixture::{TempDir, fork_child};
use crate::rt::*;

const NEVER: u64 = u64::MAX >> 1;

/// Steps until the brakes are on.
fn brake(lifeline: &mut Lifeline, now: u64) {
    while lifeline.step(now, now, &mut Actions::default()) != Step::Brake {}
}

/// Each refused for the other's latch, for ever.
#[test]
fn lifelines_that_watch_each_other_are_reset_in_either_order() {
    let later = Schedule::every(Duration::from_millis(1)).unwrap().starting_at(NEVER);
    for order in [[0, 1], [1, 0]] {
        let boards = [Board::heap(), Board::heap()];
        let views = boards.each_ref().map(Board::view);
        let mut lines = boards.map(|own| Lifeline::new(own).hold_cycles(0).stop_cycles(1));
        lines[0].on_time("other", views[1].clone(), later);
        lines[1].moves("other", views[0].clone(), NEVER);
        lines.iter_mut().for_each(|line| line.arm(0));
        lines[0].trip(Cause::Bus, NOBODY, 100, 1);
        for line in &mut lines {
            brake(line, 100);
        }
        assert_eq!(lines[1].latch().map(|latch| latch.cause), Some(Cause::Told));
        for at in order {
            lines[at].reset(200).unwrap();
            assert_eq!(lines[at].step(200, 2, &mut Actions::default()), Step::Run);
        }
        for line in &mut lines {
            assert_eq!(line.step(300, 3, &mut Actions::default()), Step::Run);
        }
        let [one, other] = &mut lines;
        one.trip(Cause::Asked, NOBODY, 400, 4);
        assert_eq!(other.step(400, 4, &mut Actions::default()), Step::QuickStop, "told again");
        brake(one, 400);
        one.reset(500).unwrap();
        assert_eq!(one.look(600), None, "the latch that the reset went past");
        brake(other, 600);
        other.reset(700).unwrap();
        other.trip(Cause::Asked, NOBODY, 800, 8);
        assert_eq!(one.look(800), Some((Cause::Told, 0)));
    }
}

/// Only the first was, and `reset` refused for the others for ever.
#[test]
fn all_subjects_of_a_name_are_replaced() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let later = Schedule::every(Duration::from_millis(1)).unwrap().starting_at(NEVER);
    let mut lifeline = Lifeline::new(Board::heap());
    let board = Board::create(&a, "arm/plan").unwrap();
    let view = BoardView::open(&b, "arm/plan", SOON).unwrap();
    lifeline.node("plan", b.watch(a.id()).unwrap());
    lifeline.moves("plan", view.clone(), NEVER);
    lifeline.on_time("plan", view, later);
    lifeline.arm(0);
    drop((board, a));
    assert_eq!(lifeline.look(1000), Some((Cause::Died, 0)));
    let a = node(&dir, "a");
    let _board = Board::create(&a, "arm/plan").unwrap();
    lifeline.replace("plan", BoardView::open(&b, "arm/plan", SOON).unwrap()).unwrap();
    assert_eq!(lifeline.look(1000), Some((Cause::Died, 0)), "its node");
    lifeline.replace_node("plan", b.watch(a.id()).unwrap()).unwrap();
    let other = lifeline.replace_node("other", b.watch(a.id()).unwrap()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::NotFound);
    assert_eq!(lifeline.look(1000), None);
}

/// It tripped its parent's lifeline, took the latch back, and ran its parent's cycles.
#[test]
fn a_forked_child_neither_trips_nor_resets_nor_runs_its_parents() {
    let dir = TempDir::new("rt");
    let a = node(&dir, "a");
    let schedule = Schedule::every(Duration::from_millis(1)).unwrap();
    let mut plan = Member::open(&a, "arm", &["plan"], 0, schedule).unwrap().connect(SOON).unwrap();
    let line = |name| Lifeline::new(Board::create(&a, name).unwrap()).hold_cycles(0).stop_cycles(1);
    let (mut calm, mut tripped) = (line("calm"), line("tripped"));
    tripped.trip(Cause::Asked, NOBODY, 100, 1);
    brake(&mut tripped, 100);
    let child = fork_child(|| {
        calm.trip(Cause::Asked, NOBODY, 200, 2);
        let acts = calm.step(200, 2, &mut Actions::default()) == Step::QuickStop;
        let refused = tripped.reset(200).is_err_and(|e| e.kind() == ErrorKind::ForkedChild);
        once(&mut plan);
        i32::from(!acts) + 2 * i32::from(!refused)
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(calm.board().view().latch(), None);
    assert_eq!(tripped.board().view().latch(), tripped.latch());
    let board = plan.board().view();
    assert_eq!((board.counts().run, board.cycles_done(), board.moved_ns()), (0, 0, 0));
}
