//! The loop of a stage: it waits for the one before, works, and tells the one after.
#![deny(unsafe_code)]

use std::time::Duration;

use super::board::{Board, BoardView, Phase};
use super::schedule::{Schedule, span_ns};
use super::signal;
use super::stage::{Cycle, Input, Outcome, Stage, StageOptions, StageReport, Stop};
use crate::node::Node;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::rt::channel::waiting::STOP_SLICE_NS;
use crate::rt::thread::realtime::Granted;
use crate::sync::fault;

/// Between two looks for the successor of a neighbour that is gone.
const LOOK_NS: u64 = 10_000_000;

/// Where a stage's neighbours are found again.
#[derive(Debug)]
struct Neighbours {
    node: Node,
    before: Option<String>,
    after: Option<String>,
    /// When to look next.
    next_ns: u64,
}

/// A stage's board and its neighbours'.
#[derive(Debug)]
pub(super) struct Runner {
    name: String,
    schedule: Schedule,
    board: Board,
    before: Option<BoardView>,
    after: Option<BoardView>,
    /// Of a stage that works with other processes.
    neighbours: Option<Neighbours>,
}

/// Whether there was a neighbour that is gone, by its word.
#[inline]
fn is_gone(neighbour: &Option<BoardView>) -> bool {
    neighbour.as_ref().is_some_and(|view| !view.seems_alive())
}

impl Runner {
    /// Between the stages `before` and `after` of its own process.
    pub(super) fn new(
        name: String,
        schedule: Schedule,
        board: Board,
        (before, after): (Option<BoardView>, Option<BoardView>),
    ) -> Self {
        Self { name, schedule, board, before, after, neighbours: None }
    }

    /// The neighbours, found by these names, live in other processes.
    pub(super) fn among(
        mut self,
        node: Node,
        before: Option<String>,
        after: Option<String>,
    ) -> Self {
        self.neighbours = Some(Neighbours { node, before, after, next_ns: 0 });
        self
    }

    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    pub(super) fn before(&self) -> Option<&BoardView> {
        self.before.as_ref()
    }

    /// Runs cycles from `first` on until `stop`, an [`Outcome::Stop`], or an overrun that ends the
    /// loop.
    ///
    /// # Real-time
    /// A cycle allocates nothing and makes no system call beyond those of the chosen wait, and
    /// one wake when the next stage sleeps or is gone; but while a neighbour is gone it looks for
    /// its successor every 10 ms, after its work: that lists a directory, and maps a file once.
    pub(super) fn run(
        &mut self,
        options: &StageOptions,
        stage: &mut dyn Stage,
        stop: &Stop,
        first: u64,
    ) -> StageReport {
        if !self.board.is_ours() {
            return self.report(Granted::default());
        }
        let granted = options.realtime.apply();
        let mut n = first;
        while !stop.is_stopped() {
            let cycle = self.wait(options, n, stop);
            if stop.is_stopped() {
                break;
            }
            if !self.one(&cycle, stage) {
                break;
            }
            self.rejoin();
            let now = clock::now_ns();
            let Some(next) = self.schedule.after(n, now) else { break };
            if next > n + 1 {
                self.board.count(|c| c.skipped += next - n - 1);
            }
            n = next;
        }
        if self.board.is_ours() {
            self.board.doing(n, Phase::Idle);
        }
        self.report(granted)
    }

    pub(super) fn report(&self, granted: Granted) -> StageReport {
        StageReport { name: self.name.clone(), granted, counts: self.board.view().counts() }
    }

    /// Looks for the successor of a neighbour that is gone.
    #[inline]
    fn rejoin(&mut self) {
        if is_gone(&self.before) || is_gone(&self.after) {
            self.look_around();
        }
    }

    #[cold]
    fn look_around(&mut self) {
        let Some(neighbours) = &mut self.neighbours else { return };
        let now = clock::now_ns();
        if now < neighbours.next_ns {
            return;
        }
        neighbours.next_ns = now + LOOK_NS;
        let sides = [(&mut self.before, &neighbours.before), (&mut self.after, &neighbours.after)];
        for (view, name) in sides {
            if let (Some(old), Some(name)) = (view.as_ref(), name)
                && !old.seems_alive()
                && let Ok(new) = BoardView::open(&neighbours.node, name, Duration::ZERO)
            {
                *view = Some(new);
            }
        }
    }

    pub(super) fn first_cycle(&self) -> u64 {
        let (now, s) = (clock::now_ns(), &self.schedule);
        if now <= s.start_ns() { 0 } else { (now - s.start_ns()) / s.period_ns() + 1 }
    }

    fn wait(&self, options: &StageOptions, n: u64, stop: &Stop) -> Cycle {
        self.board.doing(n, Phase::Waiting);
        let release_ns = self.schedule.release_ns(n);
        let due_ns = self.schedule.due_ns(n);
        let input = match &self.before {
            None => {
                options.wait.until_or(release_ns, || stop.is_stopped());
                Input::Clock
            }
            Some(before) => {
                let after = |span| release_ns.saturating_add(span_ns(span));
                let limit = Deadline::at_ns(options.input_deadline.map_or(due_ns, after));
                let expected = after(options.offset);
                // A successor is looked for between cycles, and not ahead of their releases.
                let of_gone = limit.min(Deadline::at_ns(self.schedule.release_ns(n + 1)));
                let request = self.board.request();
                // In slices, so that `stop` and a death are seen also where the deadline is far
                // away.
                loop {
                    // Asked before the last look at `done`: what was handed on before it counts.
                    let is_gone = is_gone(&self.before) && !fault("stage.waits_for_the_gone");
                    let limit = if is_gone { of_gone } else { limit };
                    let slice = limit.min(Deadline::in_ns(STOP_SLICE_NS));
                    if options.wait.reached(before.done(), n + 1, request, expected, slice) {
                        break Input::Ready;
                    }
                    if slice == limit || stop.is_stopped() {
                        break Input::Late;
                    }
                }
            }
        };
        Cycle { number: n, release_ns, due_ns, input }
    }

    /// Runs one cycle; false when the loop is to end.
    #[inline]
    pub(super) fn one(&self, cycle: &Cycle, stage: &mut dyn Stage) -> bool {
        self.board.doing(cycle.number, Phase::Running);
        let began = clock::now_ns();
        let outcome = stage.cycle(cycle);
        let ended = clock::now_ns();
        if !self.board.is_ours() {
            return false; // forked amid its work
        }
        self.board.doing(cycle.number, Phase::HandingOn);
        self.board.moved(ended);
        match outcome {
            Outcome::HandOn => {
                let request = self.after.as_ref().map(BoardView::request);
                let asks = signal::tell(self.board.done(), cycle.number + 1, request);
                // The successor of one that is gone asks on a board that we do not see yet.
                let may_ask = || is_gone(&self.after) && !fault("stage.successor_unwoken");
                if asks || may_ask() {
                    futex::wake(futex::low_half(self.board.done()), i32::MAX);
                }
            }
            Outcome::Skip => {}
            Outcome::Stop => return false,
        }
        self.board.record(ended.saturating_sub(cycle.release_ns), ended.saturating_sub(began));
        self.board.count(|c| {
            c.run += 1;
            c.late += u64::from(cycle.input == Input::Late);
            c.missed += u64::from(ended > cycle.due_ns && outcome == Outcome::HandOn);
        });
        true
    }
}
