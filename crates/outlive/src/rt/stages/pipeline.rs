//! Stages in a row: on one thread, on threads, or in processes.
#![deny(unsafe_code)]

use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use super::board::{Board, BoardView, Phase};
use super::runner::Runner;
use super::schedule::Schedule;
use super::stage::{Cycle, Input, Outcome, Stage, StageOptions, StageReport, Stop};
use crate::node::Node;
use crate::os::syserr;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// Stages of one process. Each cycle runs through all of them in order.
///
/// The pipeline only decides when: what the stages hand on goes through channels
/// ([`latest`](crate::rt::latest()), [`spsc`](crate::rt::spsc())) that they own.
///
/// # Examples
/// ```
/// use outlive::rt::{Input, Outcome, Pipeline, Schedule, StageOptions, Stop, latest};
/// use std::time::Duration;
///
/// let (mut plan, mut planned) = latest::<f64>();
/// let stop = Stop::new();
/// let done = stop.clone();
/// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
///     .stage("planner", StageOptions::default(), move |cycle: &outlive::rt::Cycle| {
///         plan.write(&(cycle.number as f64 * 0.001)).expect("the drive lives in this process");
///         Outcome::HandOn
///     })
///     .stage("drive", StageOptions::default(), move |cycle: &outlive::rt::Cycle| {
///         // A late planner does not hold up the drive: it has the value of before, if any.
///         let has_value = planned.read().is_ok_and(|value| value.is_some());
///         assert!(cycle.input == Input::Late || has_value);
///         if cycle.number >= 20 { done.stop() }
///         Outcome::HandOn
///     });
/// let reports = pipeline.run_threads(&stop)?;
/// assert!(reports[1].counts.run > 0);
/// # Ok::<(), outlive::Error>(())
/// ```
#[must_use = "its stages stand still until `run`"]
pub struct Pipeline<'a> {
    schedule: Schedule,
    stages: Vec<Place<'a>>,
}

struct Place<'a> {
    name: String,
    options: StageOptions,
    stage: Box<dyn Stage + 'a>,
    board: Board,
}

impl std::fmt::Debug for Pipeline<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.stages.iter().map(|s| &s.name).collect();
        f.debug_struct("Pipeline")
            .field("schedule", &self.schedule)
            .field("stages", &names)
            .finish()
    }
}

impl<'a> Pipeline<'a> {
    /// A pipeline without stages.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Pipeline, Schedule, Stop};
    /// use std::time::Duration;
    ///
    /// let mut empty = Pipeline::new(Schedule::every(Duration::from_millis(1))?);
    /// assert!(empty.run_inline(&Stop::new()).is_empty()); // returns at once
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn new(schedule: Schedule) -> Self {
        Self { schedule, stages: Vec::new() }
    }

    /// Appends a stage.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop, Wait};
    /// use std::time::Duration;
    ///
    /// let options = StageOptions { wait: Wait::for_stages(2), ..StageOptions::default() };
    /// let mut ran = Vec::new();
    /// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
    ///     .stage("sense", options, |_: &Cycle| Outcome::HandOn)
    ///     .stage("drive", options, |cycle: &Cycle| {
    ///         ran.push(cycle.number);
    ///         if ran.len() < 3 { Outcome::HandOn } else { Outcome::Stop }
    ///     });
    /// pipeline.run_inline(&Stop::new());
    /// drop(pipeline);
    /// assert_eq!(ran.len(), 3);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn stage(
        mut self,
        name: impl Into<String>,
        options: StageOptions,
        stage: impl Stage + 'a,
    ) -> Self {
        let (name, stage, board) = (name.into(), Box::new(stage), Board::heap());
        self.stages.push(Place { name, options, stage, board });
        self
    }

    /// The boards of the stages, in order; to read from other threads.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Pipeline, Schedule, StageOptions, Stop, pass_on};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let mut pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), pass_on);
    /// let (boards, stop) = (pipeline.boards(), Stop::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| pipeline.run_inline(&stop));
    ///     while boards[0].counts().run < 3 {
    ///         std::thread::sleep(Duration::from_millis(1)); // it runs meanwhile
    ///     }
    ///     stop.stop();
    /// });
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn boards(&self) -> Vec<BoardView> {
        self.stages.iter().map(|s| s.board.view()).collect()
    }

    fn runner(&self, at: usize) -> Runner {
        let view = |at: usize| self.stages.get(at).map(|s| s.board.view());
        let place = &self.stages[at];
        let around = (at.checked_sub(1).and_then(view), view(at + 1));
        Runner::new(place.name.clone(), self.schedule, place.board.share(), around)
    }

    /// Runs all stages on the calling thread, one after the other at each release. The options of
    /// the first stage hold for all, and `granted` in the first report says what came of them.
    ///
    /// # Real-time
    /// Nothing is handed between threads, so it waits only for the release.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// use std::time::Duration;
    ///
    /// let stop = Stop::new();
    /// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
    ///     .stage("sense", StageOptions::default(), |_: &Cycle| Outcome::Skip) // has nothing
    ///     .stage("drive", StageOptions::default(), |cycle: &Cycle| {
    ///         assert_eq!(cycle.input, outlive::rt::Input::Late);
    ///         stop.stop();
    ///         Outcome::HandOn
    ///     });
    /// let reports = pipeline.run_inline(&stop);
    /// assert_eq!(reports[1].counts.late, 1);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn run_inline(&mut self, stop: &Stop) -> Vec<StageReport> {
        let runners: Vec<_> = (0..self.stages.len()).map(|at| self.runner(at)).collect();
        let Some(first) = self.stages.first() else { return Vec::new() };
        let wait = first.options.wait;
        let mut granted = Some(first.options.realtime.apply());
        let schedule = self.schedule;
        let mut n = runners[0].first_cycle();
        'cycles: while !stop.is_stopped() {
            let release_ns = schedule.release_ns(n);
            if !fault("pipeline.inline_looks_busy") {
                runners.iter().for_each(|r| r.board().doing(n, Phase::Waiting));
            }
            wait.until_or(release_ns, || stop.is_stopped());
            if stop.is_stopped() {
                break;
            }
            let due_ns = schedule.due_ns(n);
            let mut input = Input::Clock;
            for (runner, place) in runners.iter().zip(&mut self.stages) {
                let before = runner.board().view().cycles_done();
                let cycle = Cycle { number: n, release_ns, due_ns, input };
                if !runner.one(&cycle, &mut *place.stage) {
                    break 'cycles;
                }
                let went_on = runner.board().view().cycles_done() > before;
                input = if went_on { Input::Ready } else { Input::Late };
            }
            let Some(next) = schedule.after(n, crate::os::time::clock::now_ns()) else { break };
            if next > n + 1 {
                runners[0].board().count(|c| c.skipped += next - n - 1);
            }
            n = next;
        }
        runners
            .iter()
            .filter(|r| r.board().is_ours())
            .for_each(|r| r.board().doing(n, Phase::Idle));
        let report = |r: &Runner| r.report(granted.take().unwrap_or_default());
        runners.iter().map(report).collect()
    }

    /// Runs each stage on a thread of its own and waits for all to end.
    ///
    /// # Errors
    /// `Io` or `OutOfMemory` when a thread cannot be made; the others are stopped first.
    ///
    /// # Panics
    /// When a stage panicked; the others are stopped first.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop, pass_on};
    /// use std::time::Duration;
    ///
    /// let stop = Stop::new();
    /// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
    ///     .stage("sense", StageOptions::default(), pass_on)
    ///     .stage("drive", StageOptions::default(), |cycle: &Cycle| {
    ///         if cycle.number >= 20 { stop.stop() } // ends both threads
    ///         Outcome::HandOn
    ///     });
    /// let reports = pipeline.run_threads(&stop)?;
    /// assert_eq!([&reports[0].name, &reports[1].name], ["sense", "drive"]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn run_threads(&mut self, stop: &Stop) -> Result<Vec<StageReport>> {
        let mut runners: Vec<_> = (0..self.stages.len()).map(|at| self.runner(at)).collect();
        // One for all: a thread that starts late is late, it does not begin elsewhere.
        let first = runners.first().map_or(0, Runner::first_cycle);
        std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(runners.len());
            for (runner, place) in runners.iter_mut().zip(&mut self.stages) {
                let Place { name, options, stage, .. } = place;
                let thread = start(scope, name, move || {
                    let _end = StopOnPanic(stop);
                    runner.run(options, &mut **stage, stop, first)
                });
                if thread.is_err() && !fault("pipeline.others_run_on") {
                    // The scope waits for the others, and nobody else ends them.
                    stop.stop();
                }
                threads.push(thread?);
            }
            let ended = |thread: ScopedJoinHandle<'_, StageReport>| {
                thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
            };
            Ok(threads.into_iter().map(ended).collect())
        })
    }
}

/// A thread for stage `name`.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    #[cfg(test)]
    crate::os::fixture::may("thread", name.as_ref())?;
    let started = std::thread::Builder::new().spawn_scoped(scope, body);
    started.map_err(|e| syserr::from_io("starting", format!("stage {name}"), e))
}

struct StopOnPanic<'a>(&'a Stop);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// One stage of a pipeline whose stages are in several processes.
///
/// Each process opens its members first, all of them, then connects them.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::rt::{Cycle, Member, Outcome, Schedule, StageOptions, Stop, pass_on};
/// use std::time::Duration;
///
/// // The same in both processes: on the machine's clock.
/// let schedule = Schedule::every(Duration::from_millis(1))?.starting_at(0);
/// let (stages, stop) = (["sense", "drive"], Stop::new());
/// let sense = Member::open(&node, "arm", &stages, 0, schedule)?;
/// let drive = Member::open(&node, "arm", &stages, 1, schedule)?; // in the other process
/// let mut sense = sense.connect(Duration::from_secs(5))?;
/// let mut drive = drive.connect(Duration::from_secs(5))?;
/// let mut left = 20;
/// let mut work = |_: &Cycle| {
///     left -= 1;
///     if left == 0 { stop.stop() }
///     Outcome::HandOn
/// };
/// std::thread::scope(|scope| {
///     scope.spawn(|| sense.run(&StageOptions::default(), &mut pass_on, &stop));
///     let report = drive.run(&StageOptions::default(), &mut work, &stop);
///     assert!(report.counts.run > 0);
/// });
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Member {
    runner: Runner,
}

/// A member whose neighbours may still be missing.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// # let stages = ["sense", "plan", "drive"];
/// # let schedule = outlive::rt::Schedule::every(std::time::Duration::from_millis(1))?;
/// # let _sense = outlive::rt::Member::open(&node, "arm", &stages, 0, schedule)?;
/// use outlive::rt::{Joining, Member};
/// use std::time::Duration;
///
/// // This process runs two of the three stages: it opens both, then connects them.
/// let open = |at| Member::open(&node, "arm", &stages, at, schedule);
/// let (plan, drive): (Joining, Joining) = (open(1)?, open(2)?);
/// let plan = plan.connect(Duration::from_secs(5))?; // waits for `sense`
/// let drive = drive.connect(Duration::from_secs(5))?;
/// assert!(plan.before().is_some() && drive.before().is_some());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "call `connect` to get the member"]
pub struct Joining {
    node: Node,
    board: Board,
    name: String,
    before: Option<String>,
    after: Option<String>,
    schedule: Schedule,
}

impl Member {
    /// Creates the board of stage `at` of `stages`; all processes give the same `stages`.
    ///
    /// # Errors
    /// `InvalidName`; `InvalidArgument` when there is no such stage; `NoSpace`; `AlreadyExists`
    /// while a living node, even a stopped one, has that stage.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the board's file.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Member, Schedule};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let stages = ["sense", "drive"];
    /// let drive = Member::open(&node, "arm", &stages, 1, schedule)?;
    /// let twice = Member::open(&node, "arm", &stages, 1, schedule).unwrap_err();
    /// assert_eq!(twice.kind(), outlive::ErrorKind::AlreadyExists);
    /// assert!(Member::open(&node, "arm", &stages, 2, schedule).is_err()); // no such stage
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(
        node: &Node,
        pipeline: &str,
        stages: &[&str],
        at: usize,
        schedule: Schedule,
    ) -> Result<Joining> {
        let Some(name) = stages.get(at) else {
            let why = format!("it has {} stages", stages.len());
            let what = "joining pipeline as a stage that is not there";
            return Err(Error::new(ErrorKind::InvalidArgument, what, pipeline, why));
        };
        let full = |name: &&str| board_name(pipeline, name);
        let board = Board::create(node, &full(name))?;
        Ok(Joining {
            node: node.clone(),
            board,
            name: (*name).into(),
            before: at.checked_sub(1).map(|at| full(&stages[at])),
            after: stages.get(at + 1).map(full),
            schedule,
        })
    }

    /// Its own board, for a lifeline that lives in the same stage.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Lifeline, Member, Schedule};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let drive = Member::open(&node, "arm", &["drive"], 0, schedule)?;
    /// let drive = drive.connect(Duration::from_secs(5))?; // it has no neighbours
    /// let lifeline = Lifeline::new(drive.board()); // others see its latch there
    /// assert_eq!(lifeline.board().view().latch(), None);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn board(&self) -> Board {
        self.runner.board().share()
    }

    /// The stage before.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Board, Lifeline, Member, Schedule};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let sense = Member::open(&node, "arm", &["sense", "drive"], 0, schedule)?;
    /// let drive = Member::open(&node, "arm", &["sense", "drive"], 1, schedule)?;
    /// let drive = drive.connect(Duration::from_secs(5))?;
    /// let before = drive.before().expect("it is the second");
    /// let mut lifeline = Lifeline::new(drive.board());
    /// lifeline.on_time("sense", before.clone(), schedule);
    /// assert!(before.seems_alive());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn before(&self) -> Option<&BoardView> {
        self.runner.before()
    }

    /// Runs the stage on the calling thread. A neighbour that dies or leaves counts as late, at the
    /// deadline or the next release, whichever is first; once another process has taken its place,
    /// the stage continues with that one. In a forked child it ends at once, without a cycle.
    ///
    /// # Real-time
    /// As [`Pipeline::run_threads`]; while a neighbour is gone, a look for its successor every
    /// 10 ms, after the cycle's work: it lists a directory and allocates.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Cycle, Input, Member, Outcome, Schedule, StageOptions, Stop};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let sense = Member::open(&node, "arm", &["sense", "drive"], 0, schedule)?;
    /// let drive = Member::open(&node, "arm", &["sense", "drive"], 1, schedule)?;
    /// let mut drive = drive.connect(Duration::from_secs(5))?;
    /// drop(sense); // the process of the stage before has ended
    /// let mut hold = |cycle: &Cycle| {
    ///     assert_eq!(cycle.input, Input::Late);
    ///     if cycle.number < 20 { Outcome::HandOn } else { Outcome::Stop }
    /// };
    /// let report = drive.run(&StageOptions::default(), &mut hold, &Stop::new());
    /// assert_eq!(report.counts.late, report.counts.run);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn run(
        &mut self,
        options: &StageOptions,
        stage: &mut dyn Stage,
        stop: &Stop,
    ) -> StageReport {
        let first = self.runner.first_cycle();
        self.runner.run(options, stage, stop, first)
    }
}

impl Joining {
    /// Waits at most `timeout` for the neighbours.
    ///
    /// # Errors
    /// `Timeout`, `Corrupt`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Member, Schedule};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?;
    /// let drive = Member::open(&node, "arm", &["sense", "drive"], 1, schedule)?;
    /// let alone = drive.connect(Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(alone.kind(), outlive::ErrorKind::Timeout); // nobody opened `sense`
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn connect(self, timeout: Duration) -> Result<Member> {
        let find = |name: &Option<String>| {
            let open = |name: &String| BoardView::open(&self.node, name, timeout);
            name.as_ref().map(open).transpose()
        };
        let (before, after) = (find(&self.before)?, find(&self.after)?);
        let Self { board, name, schedule, node, .. } = self;
        let runner = Runner::new(name, schedule, board, (before, after));
        Ok(Member { runner: runner.among(node, self.before, self.after) })
    }
}

/// The name of a stage's board.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::rt::{BoardView, Member, Schedule, board_name};
/// use std::time::Duration;
///
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let _drive = Member::open(&node, "arm", &["sense", "drive"], 1, schedule)?;
/// // A guard in another process looks at it:
/// let drive = BoardView::open(&node, &board_name("arm", "drive"), Duration::from_secs(5))?;
/// assert!(drive.seems_alive() && drive.cycles_done() == 0);
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn board_name(pipeline: &str, stage: &str) -> String {
    format!("{pipeline}/{stage}")
}

/// A stage that only hands cycles on; for measurements and tests.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Input, Outcome, Pipeline, Schedule, StageOptions, Stop, pass_on};
/// use std::time::Duration;
///
/// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
///     .stage("sense", StageOptions::default(), pass_on)
///     .stage("drive", StageOptions::default(), |cycle: &Cycle| {
///         assert_eq!(cycle.input, Input::Ready);
///         Outcome::Stop
///     });
/// let reports = pipeline.run_inline(&Stop::new());
/// assert_eq!(reports[0].counts.run, 1);
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn pass_on(_: &Cycle) -> Outcome {
    Outcome::HandOn
}
