//! One victim's way: prepare, stop somewhere, kill, judge.

use super::gate::{Control, Gate, Phase};
use super::peer::{Ask, Peer, Trouble, sleeping_in};
use super::point::{Place, Point};
use super::report::Report;
use super::tracee::{Stop, Ticker, Tracee};
use super::{Scenario, SweepOptions, own_end};
use crate::crash::{self, Aim};
use crate::process::{Exit, fork_child};
use crate::temp::{TempDomain, empty_dir};
use std::path::PathBuf;

/// Makes the code under test call a function at each crash point.
pub type InstallHook = fn(fn(&'static str));

/// How many victims may miss a point, since they differ from the recorded one, before it counts.
pub(crate) const TRIES: u32 = 4;

/// A victim at its gate and the peer that will judge.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) tracee: Tracee,
    peer: Peer,
}

/// The single-threaded process that traces.
#[derive(Debug)]
pub(crate) struct Driver<'a, S> {
    pub(crate) scenario: &'a S,
    pub(crate) options: &'a SweepOptions,
    pub(crate) control: &'static Control,
    pub(crate) report: Report,
    /// Set in sweeps of named crash points.
    pub(crate) hook: Option<InstallHook>,
    pub(crate) dir: PathBuf,
    kept: Option<Peer>,
    hang_ticks: u32,
    jumps_hit: u64,
    jumps_missed: u64,
    /// Which of the drivers this is, from 0.
    pub(crate) job: u64,
    _base: TempDomain,
    _ticker: Ticker,
}

impl<'a, S: Scenario> Driver<'a, S> {
    pub(crate) fn new(
        scenario: &'a S,
        options: &'a SweepOptions,
        name: String,
        job: u64,
    ) -> std::io::Result<Self> {
        let base = TempDomain::new("sweep")?;
        // The same path for every run: its length shows in the number of instructions.
        let dir = base.path().join("run");
        std::fs::create_dir(&dir)?;
        // A thread's first hash map asks the kernel for its seed. Victims inherit the driver's, or
        // the first of them would make one system call more than the others.
        let _ = std::hash::RandomState::new();
        Ok(Self {
            scenario,
            options,
            control: Control::map()?,
            report: Report::new(name),
            hook: None,
            dir,
            kept: None,
            hang_ticks: Ticker::ticks(options.hang_s),
            jumps_hit: 0,
            jumps_missed: 0,
            job,
            _base: base,
            _ticker: Ticker::start(),
        })
    }

    /// Lets a victim at its gate go on, untraced.
    pub(crate) fn let_go(&self, run: &Run) {
        self.control.set_untraced();
        run.tracee.detach();
    }

    /// Brings a new victim to its gate; the next instruction belongs to the operation.
    pub(crate) fn prepare(&mut self, aim: Aim) -> Result<Run, Trouble> {
        self.control.reset();
        let mut peer = match self.kept.take() {
            Some(peer) => peer,
            None => {
                empty_dir(&self.dir).map_err(|e| Trouble::io("emptying the directory", &e))?;
                Peer::start(self.scenario, &self.dir, self.hang_ticks)?
            }
        };
        let child = fork_child(|| self.be_victim(aim));
        let child = child.map_err(|e| Trouble::io("fork of the victim", &e))?;
        let (mut tracee, mut stop) = Tracee::attach(child, self.hang_ticks);
        // The gate's own last instructions.
        let mut budget = 1000;
        while stop == Stop::Trap && self.control.phase() == Phase::Preparing && budget > 0 {
            stop = tracee.step();
            budget -= 1;
        }
        if stop != Stop::Trap || budget == 0 {
            return Err(self.lost("before the gate", &tracee, stop));
        }
        tracee.steps = 0;
        peer.ask(Ask::AtGate)?;
        Ok(Run { tracee, peer })
    }

    fn be_victim(&self, aim: Aim) -> i32 {
        if let Err(error) = Tracee::trace_me() {
            self.control.say(&format!("ptrace is not permitted: {error}"));
            return 4;
        }
        if let Some(install) = self.hook {
            crash::aim_at(self.control, aim);
            install(crash::hook);
        }
        match self.scenario.victim(&self.dir, &Gate::new(self.control)) {
            Ok(()) => 0,
            Err(what) => {
                self.control.say(&what);
                3
            }
        }
    }

    fn ended(&self, when: &str, exit: Exit) -> Trouble {
        match self.control.text() {
            said if said.is_empty() => Trouble::Failed(format!("the victim ended {when}: {exit}")),
            said => Trouble::Failed(format!("the victim ended {when}: {said}")),
        }
    }

    /// The victim's operation has returned.
    pub(crate) fn left(&self) -> bool {
        self.control.phase() == Phase::Left
    }

    fn lost(&self, when: &str, tracee: &Tracee, stop: Stop) -> Trouble {
        match stop {
            Stop::Stuck => {
                Trouble::Hung(format!("the victim hangs {when}; {}", sleeping_in(tracee.pid())))
            }
            Stop::Ended(exit) => self.ended(when, exit),
            stop => Trouble::Failed(format!("the victim stopped oddly {when}: {stop:?}")),
        }
    }

    /// The same for the recorded run, which every driver makes but only the first counts.
    pub(crate) fn conclude_baseline(&mut self, run: Run, stop: Stop) {
        if self.job == 0 {
            self.conclude(run, Place::AfterOp, stop);
        } else {
            self.discard(run, Place::AfterOp, stop);
        }
    }

    /// Kills the victim where it stands and lets the peer judge; `stop` is the last one seen.
    pub(crate) fn conclude(&mut self, run: Run, place: Place, stop: Stop) {
        let (point, verdict) = self.kill(run, place, stop);
        self.report.tally(point, verdict);
    }

    /// The same for a run that went astray: judged too, but counted only when it fails.
    pub(crate) fn discard(&mut self, run: Run, place: Place, stop: Stop) {
        let (point, verdict) = self.kill(run, place, stop);
        if verdict.is_err() {
            self.report.tally(point, verdict);
        }
    }

    fn kill(&mut self, run: Run, place: Place, stop: Stop) -> (Point, Result<String, Trouble>) {
        let Run { mut tracee, mut peer } = run;
        let mut point = self.point(&tracee, place);
        let verdict = match stop {
            Stop::Stuck | Stop::Ended(_) => Err(self.lost("in the operation", &tracee, stop)),
            _ => self.act(&mut tracee, &mut peer, &mut point),
        };
        self.report.steps += tracee.steps;
        self.report.kills += 1;
        let exit = tracee.kill();
        if at_full_speed(&point.place) {
            // It went on until the very end.
            (point.finished, point.mark) = (self.left(), self.control.mark());
        }
        let verdict = verdict.and_then(|()| match exit {
            Exit::Signal(libc::SIGKILL) => self.judge(peer, &point),
            _ => Err(self.ended("by itself", exit)),
        });
        (point, verdict)
    }

    /// Lets the peer judge what a victim did that has ended by itself; see `failing`.
    pub(crate) fn conclude_by_itself(&mut self, run: Run, place: Place, stop: Stop) {
        let Run { tracee, peer } = run;
        let mut point = self.point(&tracee, place);
        let ended = match stop {
            Stop::Ended(exit) => {
                own_end::accept(exit, &self.control.text()).map_err(Trouble::Failed)
            }
            stop => Err(self.lost("with a call that fails", &tracee, stop)),
        };
        self.report.kills += 1;
        tracee.kill();
        let verdict = ended.and_then(|done| {
            point.finished = done;
            self.judge(peer, &point)
        });
        if self.job == 0 || point.place != Place::AfterOp || verdict.is_err() {
            self.report.tally(point, verdict);
        }
    }

    /// Says how many points the operation has besides its end; drivers may see different ones.
    pub(crate) fn announce(&mut self, total: u64) {
        let share = self.options.share(total, self.job);
        self.report.points = share + u64::from(self.job == 0);
    }

    /// A failure without a run: setup or preparation did not work.
    pub(crate) fn fail(&mut self, place: Place, trouble: Trouble) {
        let (mark, instruction_pointer) = (self.control.mark(), 0);
        let point = Point { place, finished: false, mark, instruction_pointer };
        self.report.tally(point, Err(trouble));
    }

    fn point(&self, tracee: &Tracee, place: Place) -> Point {
        let finished = self.left();
        let instruction_pointer = tracee.instruction_pointer();
        Point { place, finished, mark: self.control.mark(), instruction_pointer }
    }

    /// What happens between the stop and the kill.
    fn act(&self, tracee: &mut Tracee, peer: &mut Peer, at: &mut Point) -> Result<(), Trouble> {
        let style = self.scenario.style();
        if style.act_while_stopped {
            peer.ask(Ask::Stopped(at))?;
        }
        if style.finish_op && !at.finished && !at_full_speed(&at.place) {
            while !self.left() {
                let stop = tracee.run();
                if stop != Stop::Trap {
                    return Err(self.lost("when it went on", tracee, stop));
                }
            }
            (at.finished, at.mark) = (true, self.control.mark());
        }
        Ok(())
    }

    fn judge(&mut self, mut peer: Peer, at: &Point) -> Result<String, Trouble> {
        let label = peer.ask(Ask::Dead(at))?;
        if self.scenario.style().keep_world {
            self.kept = Some(peer);
        } else {
            peer.ask(Ask::End)?;
        }
        Ok(label)
    }

    /// Ends a world that was kept over all points.
    pub(crate) fn end(&mut self) {
        if let Some(mut peer) = self.kept.take()
            && let Err(trouble) = peer.ask(Ask::End)
        {
            self.fail(Place::AfterOp, trouble);
        }
    }

    /// True when enough failures were seen.
    pub(crate) fn give_up(&mut self) -> bool {
        let report = &mut self.report;
        report.gave_up |= report.failure_count >= self.options.failures_max || report.hangs >= 3;
        report.gave_up
    }

    /// Breakpoints are worth a try: they are on, and they work on this machine.
    pub(crate) fn may_jump(&self) -> bool {
        self.options.jump && (self.jumps_hit > 0 || self.jumps_missed < 8)
    }

    /// Kills and judges; false when the run went astray and another one should try.
    pub(crate) fn settle(
        &mut self,
        run: Run,
        place: &Place,
        stop: Stop,
        on_target: bool,
        jumped: bool,
        tries_left: u32,
    ) -> bool {
        if jumped {
            self.jumps_hit += u64::from(on_target);
            self.jumps_missed += u64::from(!on_target);
        }
        let ended = matches!(stop, Stop::Ended(_) | Stop::Stuck);
        if !on_target && !ended && tries_left > 0 {
            self.discard(run, place.clone(), stop);
            return false;
        }
        self.report.off_target += u64::from(!on_target);
        self.conclude(run, place.clone(), stop);
        true
    }
}

/// The victim of such a place is not stopped before the kill.
fn at_full_speed(place: &Place) -> bool {
    matches!(place, Place::Asleep | Place::Instant(_))
}
