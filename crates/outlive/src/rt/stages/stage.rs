//! A stage as its author sees it: the cycle, its work, how it runs and what it did.
#![deny(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use super::board::Counts;
use crate::rt::channel::waiting::Wait;
use crate::rt::thread::realtime::{Granted, Realtime};
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// What a cycle of a stage has to work on.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Input, Outcome, Pipeline, Schedule, StageOptions, Stop};
/// use std::time::Duration;
///
/// let (options, mut inputs) = (StageOptions::default(), Vec::new());
/// let mut images = [Outcome::HandOn, Outcome::Skip].into_iter(); // none in the second cycle
/// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
///     .stage("camera", options, |_: &Cycle| images.next().expect("two cycles"))
///     .stage("drive", options, |cycle: &Cycle| {
///         inputs.push(cycle.input);
///         if inputs.len() < 2 { Outcome::HandOn } else { Outcome::Stop }
///     });
/// pipeline.run_inline(&Stop::new());
/// drop(pipeline);
/// assert_eq!(inputs, [Input::Ready, Input::Late]);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It is the first: the release itself.
    Clock,
    /// The stage before has handed this cycle on.
    Ready,
    /// The stage before has not, and the time for it has passed.
    Late,
}

/// One cycle, as a stage sees it.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Input, Outcome, Pipeline, Schedule, StageOptions, Stop};
/// use std::time::Duration;
///
/// let work = |cycle: &Cycle| {
///     assert_eq!(cycle.input, Input::Clock); // the first stage has no other input
///     assert_eq!(cycle.due_ns, cycle.release_ns + 1_000_000); // at the end of its period
///     let left_ns = cycle.due_ns.saturating_sub(outlive::now_ns());
///     println!("cycle {} has {left_ns} ns for its work", cycle.number);
///     Outcome::Stop
/// };
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// Pipeline::new(schedule).stage("drive", StageOptions::default(), work).run_inline(&Stop::new());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cycle {
    /// Its number.
    pub number: u64,
    /// Its scheduled release, ns of CLOCK_MONOTONIC.
    pub release_ns: u64,
    /// When its result is due, ns.
    pub due_ns: u64,
    /// Whether there is input.
    pub input: Input,
}

/// What a stage made of a cycle.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
/// use std::time::Duration;
///
/// let mut outcomes = [Outcome::HandOn, Outcome::Skip, Outcome::Stop].into_iter();
/// let camera = |_: &Cycle| outcomes.next().expect("`Stop` ends the loop");
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let mut pipeline = Pipeline::new(schedule).stage("camera", StageOptions::default(), camera);
/// let reports = pipeline.run_inline(&Stop::new());
/// assert_eq!(reports[0].counts.run, 2); // the last cycle does not count
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its output is there: the next stage may go on.
    HandOn,
    /// It has none: the next stage finds its input late.
    Skip,
    /// The loop ends.
    Stop,
}

/// The work of a stage. It must not allocate, lock or block if its cycle needs a bound.
///
/// Closures are stages.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, Stage, StageOptions, Stop};
/// use std::time::Duration;
///
/// /// Raises the speed step by step, up to 2 m/s.
/// struct Ramp(f64);
///
/// impl Stage for Ramp {
///     fn cycle(&mut self, _: &Cycle) -> Outcome {
///         self.0 += 0.5;
///         if self.0 < 2.0 { Outcome::HandOn } else { Outcome::Stop }
///     }
/// }
///
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let mut pipeline = Pipeline::new(schedule).stage("ramp", StageOptions::default(), Ramp(0.0));
/// assert_eq!(pipeline.run_inline(&Stop::new())[0].counts.run, 3); // the last does not count
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait Stage: Send {
    /// Works on one cycle.
    ///
    /// # Examples
    /// A stage under test, without a pipeline:
    /// ```
    /// use outlive::rt::{Cycle, Input, Outcome, Stage};
    ///
    /// let mut drive = |cycle: &Cycle| match cycle.input {
    ///     Input::Late => Outcome::Skip,
    ///     _ => Outcome::HandOn,
    /// };
    /// let late = Cycle { number: 7, release_ns: 0, due_ns: 1_000_000, input: Input::Late };
    /// assert_eq!(drive.cycle(&late), Outcome::Skip);
    /// ```
    fn cycle(&mut self, cycle: &Cycle) -> Outcome;
}

impl<F: FnMut(&Cycle) -> Outcome + Send> Stage for F {
    fn cycle(&mut self, cycle: &Cycle) -> Outcome {
        self(cycle)
    }
}

/// How a stage runs.
///
/// # Examples
/// ```
/// use outlive::rt::{Outcome, Pipeline, Realtime, Schedule, StageOptions, Stop, Wait, pass_on};
/// use std::time::Duration;
///
/// let options = StageOptions {
///     wait: Wait::for_stages(2),
///     realtime: Realtime { stack_bytes: 64 << 10, ..Realtime::default() },
///     input_deadline: Some(Duration::from_micros(300)), // then it runs without input
///     ..StageOptions::default()
/// };
/// let stop = Stop::new();
/// let work = |_: &outlive::rt::Cycle| { stop.stop(); Outcome::HandOn };
/// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
///     .stage("sense", options, pass_on)
///     .stage("drive", options, work);
/// assert_eq!(pipeline.run_threads(&stop)?[1].granted.stack_bytes, 64 << 10);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StageOptions {
    /// How it waits.
    pub wait: Wait,
    /// What it asks of the kernel.
    pub realtime: Realtime,
    /// How long after the release its input is expected; used by [`Wait::Park`].
    pub offset: Duration,
    /// How long after the release it waits for its input; the schedule's deadline unless given. At
    /// most a period while the stage before is gone.
    pub input_deadline: Option<Duration>,
}

impl Default for StageOptions {
    /// Sleeps without spinning, asks for nothing.
    fn default() -> Self {
        Self {
            wait: Wait::SpinThenSleep { spin_ns: 0 },
            realtime: Realtime::default(),
            offset: Duration::ZERO,
            input_deadline: None,
        }
    }
}

/// Ends loops, from any thread.
///
/// # Examples
/// ```
/// use outlive::rt::{Pipeline, Schedule, StageOptions, Stop, pass_on};
/// use std::time::Duration;
///
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let mut pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), pass_on);
/// let stop = Stop::new();
/// std::thread::scope(|scope| {
///     let running = scope.spawn(|| pipeline.run_inline(&stop));
///     stop.stop(); // or in a handler, on a clone
///     running.join().expect("does not panic");
/// });
/// assert!(stop.is_stopped());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicU64>,
}

impl Stop {
    /// Not stopped: loops that were given it run until [`stop`](Self::stop).
    ///
    /// # Examples
    /// ```
    /// assert!(!outlive::rt::Stop::new().is_stopped());
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the loops before their next cycle.
    ///
    /// # Examples
    /// ```
    /// let stop = outlive::rt::Stop::new();
    /// let button = stop.clone(); // for another thread
    /// std::thread::spawn(move || button.stop()).join().expect("does not panic");
    /// assert!(stop.is_stopped());
    /// ```
    pub fn stop(&self) {
        self.flag.store(1, Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    ///
    /// # Examples
    /// A loop of your own ends with the pipeline's:
    /// ```
    /// let (stop, mut turns) = (outlive::rt::Stop::new(), 0);
    /// while !stop.is_stopped() {
    ///     turns += 1;
    ///     if turns == 3 { stop.stop() }
    /// }
    /// assert_eq!(turns, 3);
    /// ```
    pub fn is_stopped(&self) -> bool {
        self.flag.load(Relaxed) != 0
    }
}

/// What a stage's loop did.
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, StageReport, Stop};
/// use std::time::Duration;
///
/// let mut left = 3;
/// let work = |_: &Cycle| {
///     left -= 1;
///     if left > 0 { Outcome::HandOn } else { Outcome::Stop }
/// };
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let mut pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), work);
/// let reports: Vec<StageReport> = pipeline.run_threads(&Stop::new())?;
/// let StageReport { name, granted, counts, .. } = &reports[0];
/// assert_eq!((name.as_str(), counts.run), ("drive", 2)); // the last cycle does not count
/// assert!(granted.is_complete(), "{granted}"); // nothing was asked for
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct StageReport {
    /// Its name.
    pub name: String,
    /// What the kernel granted.
    pub granted: Granted,
    /// Its counters.
    pub counts: Counts,
}
