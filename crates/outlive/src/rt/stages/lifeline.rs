//! Fail-stop: who must live and move, how fresh data must be, and what happens when not.
//!
//! # Theory of operation
//! A lifeline looks at its subjects once a cycle, a few loads each. The first cause it finds is
//! stored in the latch of its own board, before any action; from then on every cycle repeats the
//! action of the current step: hold, then quick-stop, then brake. Actions are idempotent and
//! happen at least once. Only `reset` takes the latch back.
//!
//! A trip cannot be undone, so it asks for proof: *died* is a file lock that the kernel has freed,
//! or a board that its owner dropped, never the word alone, which is early and only a hint. The
//! kernel frees the lock once it has given back the process's memory, most of a second for 4 GB.
//! What bounds the time to the safe state is the deadline or the age beside it, which do not ask
//! who lives.
//!
//! Each party has a latch of its own and looks at those of the others: a guard process that finds
//! the core dead, silent or latched does the same actions over a path of its own.
#![deny(unsafe_code)]

use super::board::{Board, BoardView, LATCH};
use super::latch::{Cause, Latch, NOBODY, Step};
use super::schedule::Schedule;
use crate::node::{Watch, forked_child};
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// The actions that make the robot safe. Each may be called any number of times.
///
/// # Examples
/// ```
/// use outlive::rt::{Board, Cause, Lifeline, NOBODY, SafeState, Step};
///
/// struct Arm {
///     speed: f64,
///     brakes_on: bool,
/// }
///
/// impl SafeState for Arm {
///     fn hold(&mut self) {} // the drives keep the last position
///     fn quick_stop(&mut self) { self.speed = 0.0 }
///     fn brake(&mut self) { self.brakes_on = true }
///     fn stands_still(&self) -> bool { self.speed == 0.0 }
/// }
///
/// let mut arm = Arm { speed: 0.5, brakes_on: false };
/// let mut lifeline = Lifeline::new(Board::heap());
/// lifeline.trip(Cause::Asked, NOBODY, 0, 0);
/// let steps = [1, 2, 3].map(|cycle| lifeline.step(cycle * 1_000_000, cycle, &mut arm));
/// assert_eq!(steps, [Step::Hold, Step::QuickStop, Step::Brake]); // it stands: brakes early
/// assert!(arm.brakes_on);
/// ```
pub trait SafeState {
    /// Keep the position.
    fn hold(&mut self);
    /// Stop fast.
    fn quick_stop(&mut self);
    /// Brakes on.
    fn brake(&mut self);
    /// Whether everything stands still, so that brakes may close early.
    fn stands_still(&self) -> bool {
        false
    }
}

/// Data whose age a lifeline bounds.
///
/// # Examples
/// ```
/// use outlive::rt::{Board, Cause, Freshness, Lifeline};
///
/// struct Drive {
///     lifeline: Lifeline,
///     plan: Freshness,
/// }
///
/// let mut lifeline = Lifeline::new(Board::heap());
/// let plan = lifeline.fresh("plan", 2_000_000); // at most 2 ms old
/// let mut drive = Drive { lifeline, plan };
/// drive.lifeline.arm(0);
/// drive.lifeline.saw(drive.plan, 5_000_000); // in every cycle, the newest stamp
/// assert_eq!(drive.lifeline.look(6_000_000), None);
/// assert_eq!(drive.lifeline.look(8_000_000), Some((Cause::Stale, 0)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Freshness(usize);

#[derive(Debug)]
enum Kind {
    Node(Watch),
    Silence { board: Watched, ns_max: u64 },
    OnTime { board: Watched, schedule: Schedule },
    Fresh { stamp_ns: u64, ns_max: u64 },
}

/// A board, and the trip told there that a `reset` went past.
#[derive(Debug)]
struct Watched {
    view: BoardView,
    past: Option<Latch>,
}

impl Watched {
    fn new(view: BoardView) -> Self {
        Self { view, past: None }
    }

    fn cause(&self) -> Option<Cause> {
        // Its step goes on meanwhile.
        let is_past = |latch: &Latch| self.past == Some(Latch { step: Step::Brake, ..*latch });
        if self.view.latch().is_some_and(|latch| !is_past(&latch)) {
            return Some(Cause::Told);
        }
        self.view.is_dead().then_some(Cause::Died)
    }

    fn go_past(&mut self) {
        self.past = self.view.latch().map(|latch| Latch { step: Step::Brake, ..latch });
    }
}

#[derive(Debug)]
struct Subject {
    name: String,
    kind: Kind,
}

/// Watches its subjects and brings the robot to a safe state.
///
/// # Examples
/// ```
/// use outlive::rt::{Board, Cause, Lifeline, SafeState, Step};
///
/// #[derive(Default)]
/// struct Arm(Vec<&'static str>);
/// impl SafeState for Arm {
///     fn hold(&mut self) { self.0.push("hold") }
///     fn quick_stop(&mut self) { self.0.push("quick-stop") }
///     fn brake(&mut self) { self.0.push("brake") }
/// }
///
/// let mut lifeline = Lifeline::new(Board::heap());
/// let plan = lifeline.fresh("plan", 2_000_000); // at most 2 ms old
/// lifeline.arm(0);
/// let mut arm = Arm::default();
/// lifeline.saw(plan, 1_000_000);
/// assert_eq!(lifeline.step(2_000_000, 2, &mut arm), Step::Run);
/// for cycle in 4..7 {
///     lifeline.step(cycle * 1_000_000, cycle, &mut arm);
/// }
/// assert_eq!(arm.0, ["hold", "quick-stop", "quick-stop"]);
/// assert_eq!(lifeline.latch().map(|latch| latch.cause), Some(Cause::Stale));
/// ```
#[derive(Debug)]
pub struct Lifeline {
    board: Board,
    subjects: Vec<Subject>,
    armed_ns: Option<u64>,
    hold_cycles: u32,
    stop_cycles: u32,
    /// How often the current step's action was done.
    repeated: u32,
    latch: Option<Latch>,
}

impl Lifeline {
    /// A lifeline without subjects; `board` holds its latch. Holds for one cycle, quick-stops for
    /// 500.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, NOBODY};
    ///
    /// let board = Board::heap(); // or `Board::create`, for other processes
    /// let seen = board.view();
    /// let mut lifeline = Lifeline::new(board);
    /// lifeline.trip(Cause::Asked, NOBODY, outlive::now_ns(), 0);
    /// assert_eq!(seen.latch(), lifeline.latch());
    /// ```
    pub fn new(board: Board) -> Self {
        Self {
            board,
            subjects: Vec::new(),
            armed_ns: None,
            hold_cycles: 1,
            stop_cycles: 500,
            repeated: 0,
            latch: None,
        }
    }

    /// The board that holds its latch.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Lifeline};
    ///
    /// let guard = Lifeline::new(Board::heap());
    /// let seen = guard.board().view(); // for a watcher of the guard
    /// guard.board().moved(1_000_000);
    /// assert_eq!(seen.moved_ns(), 1_000_000);
    /// ```
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// How many cycles to hold before the quick-stop; 0 for a guard, which has no position to hold.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Board, Lifeline, SafeState};
    /// # struct Arm;
    /// # impl SafeState for Arm {
    /// #     fn hold(&mut self) {}
    /// #     fn quick_stop(&mut self) {}
    /// #     fn brake(&mut self) {}
    /// # }
    /// use outlive::rt::{Cause, NOBODY, Step};
    ///
    /// let mut guard = Lifeline::new(Board::heap()).hold_cycles(0);
    /// guard.trip(Cause::Asked, NOBODY, 0, 0);
    /// assert_eq!(guard.step(1_000_000, 1, &mut Arm), Step::QuickStop);
    /// ```
    #[must_use]
    pub fn hold_cycles(mut self, cycles: u32) -> Self {
        self.hold_cycles = cycles;
        self
    }

    /// How many cycles to quick-stop before braking, unless it stands still earlier.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Board, Lifeline, SafeState};
    /// # struct Arm;
    /// # impl SafeState for Arm {
    /// #     fn hold(&mut self) {}
    /// #     fn quick_stop(&mut self) {}
    /// #     fn brake(&mut self) {}
    /// # }
    /// use outlive::rt::{Cause, NOBODY, Step};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap()).stop_cycles(2);
    /// lifeline.trip(Cause::Asked, NOBODY, 0, 0);
    /// let steps = [1, 2, 3, 4].map(|cycle| lifeline.step(cycle * 1_000_000, cycle, &mut Arm));
    /// assert_eq!(steps, [Step::Hold, Step::QuickStop, Step::QuickStop, Step::Brake]);
    /// ```
    #[must_use]
    pub fn stop_cycles(mut self, cycles: u32) -> Self {
        self.stop_cycles = cycles;
        self
    }

    fn add(&mut self, name: &str, kind: Kind) -> usize {
        assert!(self.subjects.len() < usize::from(NOBODY), "at most 255 subjects");
        self.subjects.push(Subject { name: name.into(), kind });
        self.subjects.len() - 1
    }

    /// A node that must live. A large process's death is reported late: give it a board and a
    /// deadline as well ([`moves`](Self::moves)).
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).name("drive").open()?;
    /// # let planner = outlive::Node::builder().root(dir.path()).name("planner").open()?;
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.node("planner", node.watch(planner.id())?);
    /// lifeline.arm(outlive::now_ns());
    /// assert_eq!(lifeline.look(outlive::now_ns()), None);
    /// drop(planner); // leaves; a kill does the same
    /// assert_eq!(lifeline.look(outlive::now_ns()), Some((Cause::Died, 0)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn node(&mut self, name: &str, watch: Watch) {
        self.add(name, Kind::Node(watch));
    }

    /// A stage or guard that must live, move at least every `ns_max`, and not have tripped.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let guard = Board::heap(); // moves once in each turn of its loop
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.moves("guard", guard.view(), 2_000_000); // at least every 2 ms
    /// lifeline.arm(1_000_000);
    /// guard.moved(5_000_000);
    /// assert_eq!(lifeline.look(7_000_000), None);
    /// assert_eq!(lifeline.look(7_000_001), Some((Cause::Silent, 0)));
    /// ```
    pub fn moves(&mut self, name: &str, board: BoardView, ns_max: u64) {
        self.add(name, Kind::Silence { board: Watched::new(board), ns_max });
    }

    /// A stage that must live, hand every cycle on by its deadline, and not have tripped.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, Schedule};
    /// use std::time::Duration;
    ///
    /// let schedule = Schedule::every(Duration::from_millis(1))?.starting_at(1_000_000);
    /// let planner = Board::heap(); // of a stage that hands nothing on
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.on_time("planner", planner.view(), schedule);
    /// lifeline.arm(0);
    /// assert_eq!(lifeline.look(1_999_999), None); // cycle 0 is due at the end of its period
    /// assert_eq!(lifeline.look(2_000_000), Some((Cause::MissedDeadline, 0)));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn on_time(&mut self, name: &str, board: BoardView, schedule: Schedule) {
        self.add(name, Kind::OnTime { board: Watched::new(board), schedule });
    }

    /// Watches the board of a successor wherever one was given under `name`. A trip stays;
    /// [`reset`](Self::reset) then checks the successor.
    ///
    /// # Errors
    /// `NotFound` when no board was given under that name.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let (guard, successor) = (Board::heap(), Board::heap());
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.moves("guard", guard.view(), 2_000_000);
    /// lifeline.arm(0);
    /// drop(guard);
    /// assert_eq!(lifeline.look(1_000_000), Some((Cause::Died, 0)));
    /// lifeline.replace("guard", successor.view())?; // started again
    /// assert_eq!(lifeline.look(1_000_000), None);
    /// assert!(lifeline.replace("planner", successor.view()).is_err()); // no such subject
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn replace(&mut self, name: &str, new: BoardView) -> Result<()> {
        let replaced = self.replace_each(name, |kind| match kind {
            Kind::Silence { board, .. } | Kind::OnTime { board, .. } => {
                *board = Watched::new(new.clone());
                true
            }
            _ => false,
        });
        replaced.then_some(()).ok_or_else(|| not_given(name, "no board was given under that name"))
    }

    /// As [`replace`](Self::replace), for a subject given by [`node`](Self::node): watches the
    /// successor's node.
    ///
    /// # Errors
    /// `NotFound` when no node was given under that name.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).name("drive").open()?;
    /// # let planner = || outlive::Node::builder().root(dir.path()).name("planner").open();
    /// # let (first, second) = (planner()?, planner()?);
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.node("planner", node.watch(first.id())?);
    /// lifeline.arm(0);
    /// drop(first);
    /// assert_eq!(lifeline.look(outlive::now_ns()), Some((Cause::Died, 0)));
    /// lifeline.replace_node("planner", node.watch(second.id())?)?;
    /// assert_eq!(lifeline.look(outlive::now_ns()), None);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn replace_node(&mut self, name: &str, new: Watch) -> Result<()> {
        let replaced = self.replace_each(name, |kind| match kind {
            Kind::Node(watch) => {
                *watch = new.clone();
                true
            }
            _ => false,
        });
        replaced.then_some(()).ok_or_else(|| not_given(name, "no node was given under that name"))
    }

    /// Whether `replace` found one of that name that is of its kind; it is shown all of them.
    fn replace_each(&mut self, name: &str, mut replace: impl FnMut(&mut Kind) -> bool) -> bool {
        let named = self.subjects.iter_mut().filter(|subject| subject.name == name);
        named.filter_map(|subject| replace(&mut subject.kind).then_some(())).count() > 0
    }

    /// Data that must not be older than `ns_max`; report its age with [`saw`](Self::saw).
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// let plan = lifeline.fresh("plan", 2_000_000); // at most 2 ms old
    /// let pose = lifeline.fresh("pose", 1_000_000);
    /// lifeline.arm(0);
    /// lifeline.saw(plan, 5_000_000);
    /// lifeline.saw(pose, 5_000_000);
    /// assert_eq!(lifeline.look(6_500_000), Some((Cause::Stale, 1))); // the pose
    /// ```
    pub fn fresh(&mut self, name: &str, ns_max: u64) -> Freshness {
        Freshness(self.add(name, Kind::Fresh { stamp_ns: 0, ns_max }))
    }

    /// The newest stamp of that data, ns of CLOCK_MONOTONIC.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, latest};
    ///
    /// let (mut writer, mut reader) = latest::<f64>();
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// let plan = lifeline.fresh("plan", 2_000_000); // at most 2 ms old
    /// lifeline.arm(outlive::now_ns());
    /// writer.write(&1.5)?;
    /// let sent_ns = reader.read()?.expect("written just now").sent_ns;
    /// lifeline.saw(plan, sent_ns); // the time of sending, not of reading
    /// assert_eq!(lifeline.look(sent_ns + 3_000_000), Some((Cause::Stale, 0)));
    /// # Ok::<(), outlive::rt::Lost>(())
    /// ```
    #[inline]
    pub fn saw(&mut self, data: Freshness, sent_ns: u64) {
        if let Some(Subject { kind: Kind::Fresh { stamp_ns, .. }, .. }) =
            self.subjects.get_mut(data.0)
        {
            *stamp_ns = sent_ns;
        }
    }

    /// Starts the supervision. For a subject that has not moved or sent yet, its time starts here.
    ///
    /// Arm before the motors get power: an earlier fault trips nothing.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.fresh("plan", 2_000_000); // nothing has been seen yet
    /// assert_eq!(lifeline.look(9_000_000), None); // not armed
    /// lifeline.arm(10_000_000);
    /// assert_eq!(lifeline.look(12_000_000), None); // 2 ms from arming on
    /// assert_eq!(lifeline.look(12_000_001), Some((Cause::Stale, 0)));
    /// ```
    pub fn arm(&mut self, now_ns: u64) {
        self.armed_ns = Some(now_ns);
    }

    /// Checks all subjects and returns the first cause.
    ///
    /// # Real-time
    /// A few loads per subject; one system call where the word says dead and the lock is still
    /// held.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let (guard, planner) = (Board::heap(), Board::heap());
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.moves("guard", guard.view(), 2_000_000); // subject 0
    /// lifeline.moves("planner", planner.view(), 2_000_000); // subject 1
    /// lifeline.arm(0);
    /// drop(planner);
    /// assert_eq!(lifeline.look(1_000_000), Some((Cause::Died, 1)));
    /// assert_eq!(lifeline.latch(), None); // `step` would have tripped
    /// ```
    #[must_use = "the actions follow from it"]
    pub fn look(&self, now_ns: u64) -> Option<(Cause, u8)> {
        let armed_ns = self.armed_ns?;
        let too_old = |stamp: u64, ns_max: u64| {
            // A stamp of the future is garbage, and no sign of life.
            now_ns.saturating_sub(stamp.max(armed_ns)) > ns_max
                || stamp > now_ns.saturating_add(1 << 30)
        };
        let judge = |kind: &Kind| match kind {
            Kind::Node(watch) if fault("lifeline.by_hint") => {
                (!watch.seems_alive()).then_some(Cause::Died)
            }
            Kind::Node(watch) => (!watch.is_alive()).then_some(Cause::Died),
            Kind::Fresh { stamp_ns, ns_max } => too_old(*stamp_ns, *ns_max).then_some(Cause::Stale),
            Kind::Silence { board, ns_max } => board
                .cause()
                .or_else(|| too_old(board.view.moved_ns(), *ns_max).then_some(Cause::Silent)),
            Kind::OnTime { board, schedule } => board.cause().or_else(|| {
                let since = now_ns.checked_sub(schedule.due_ns(0))?;
                // Cycles that are due, of those released after arming.
                let due = since / schedule.period_ns() + 1;
                let counts = schedule.release_ns(due - 1) >= armed_ns;
                (counts && board.view.cycles_done() < due).then_some(Cause::MissedDeadline)
            }),
        };
        self.subjects.iter().enumerate().find_map(|(at, s)| Some((judge(&s.kind)?, at as u8)))
    }

    /// Trips, unless it has already: the first cause stays.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the latch, before any action. After a death beyond it, the watcher
    /// of this board takes the actions. In a forked child nobody sees it: the board is its
    /// parent's.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, NOBODY, check_command};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// let (command, last) = ([0.1, f64::NAN], [0.1, 0.2]);
    /// if let Err(cause) = check_command(&command, &last, -1.0, 1.0, 0.05) {
    ///     lifeline.trip(cause, NOBODY, 1_000_000, 1);
    /// }
    /// lifeline.trip(Cause::Asked, NOBODY, 2_000_000, 2); // too late: the first cause stays
    /// assert_eq!(lifeline.latch().map(|latch| latch.cause), Some(Cause::NotFinite));
    /// ```
    pub fn trip(&mut self, cause: Cause, subject: u8, now_ns: u64, cycle: u64) {
        if self.latch.is_none() {
            let step = if self.hold_cycles > 0 { Step::Hold } else { Step::QuickStop };
            self.set(Latch { cause, subject, step, cycle, at_ns: now_ns });
        }
    }

    fn set(&mut self, latch: Latch) {
        if self.board.is_ours() {
            latch.store(&self.board.words()[LATCH..]);
        }
        self.latch = Some(latch);
        self.repeated = 0;
    }

    /// Call this once a cycle: it checks the subjects and takes the action of the current step.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Board, Lifeline, SafeState};
    /// # struct Arm;
    /// # impl SafeState for Arm {
    /// #     fn hold(&mut self) {}
    /// #     fn quick_stop(&mut self) {}
    /// #     fn brake(&mut self) {}
    /// # }
    /// use outlive::rt::{Cause, NOBODY, Step};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// assert_eq!(lifeline.step(1_000_000, 1, &mut Arm), Step::Run);
    /// lifeline.trip(Cause::Bus, NOBODY, 1_500_000, 1);
    /// assert_eq!(lifeline.step(2_000_000, 2, &mut Arm), Step::Hold); // calls `Arm::hold`
    /// assert_eq!(lifeline.step(3_000_000, 3, &mut Arm), Step::QuickStop);
    /// ```
    pub fn step(&mut self, now_ns: u64, cycle: u64, actions: &mut dyn SafeState) -> Step {
        if self.latch.is_none()
            && let Some((cause, subject)) = self.look(now_ns)
        {
            self.trip(cause, subject, now_ns, cycle);
        }
        let Some(latch) = self.latch else { return Step::Run };
        let next = match latch.step {
            Step::Hold if self.repeated >= self.hold_cycles => Some(Step::QuickStop),
            Step::QuickStop if self.repeated >= self.stop_cycles || actions.stands_still() => {
                (self.repeated > 0).then_some(Step::Brake)
            }
            _ => None,
        };
        let step = next.unwrap_or(latch.step);
        if next.is_some() {
            self.set(Latch { step, ..latch });
        }
        self.repeated = self.repeated.saturating_add(1);
        match step {
            Step::Run => {}
            Step::Hold => actions.hold(),
            Step::QuickStop => actions.quick_stop(),
            Step::Brake => actions.brake(),
        }
        step
    }

    /// What it tripped on.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, NOBODY};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// assert_eq!(lifeline.latch(), None);
    /// lifeline.trip(Cause::Bus, NOBODY, 1_000_000, 7);
    /// let latch = lifeline.latch().expect("tripped just now");
    /// assert_eq!((latch.cause, latch.cycle), (Cause::Bus, 7));
    /// ```
    pub fn latch(&self) -> Option<Latch> {
        self.latch
    }

    /// The name of a latch's subject; empty for [`NOBODY`].
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// lifeline.fresh("plan", 2_000_000);
    /// lifeline.trip(Cause::Stale, 0, 1_000_000, 1);
    /// let latch = lifeline.latch().expect("tripped just now");
    /// assert_eq!(format!("{}: {}", lifeline.subject(&latch), latch.cause), "plan: stale");
    /// ```
    pub fn subject(&self, latch: &Latch) -> &str {
        self.subjects.get(usize::from(latch.subject)).map_or("", |s| &s.name)
    }

    /// Clears the latch, when a person says so. Latches of others do not prevent that: each party
    /// resets its own, and only a new trip of theirs trips this one again.
    ///
    /// # Errors
    /// `Refused` before the brakes are on, and while any subject still gives another cause;
    /// `ForkedChild`.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Board, Lifeline, SafeState};
    /// # struct Arm;
    /// # impl SafeState for Arm {
    /// #     fn hold(&mut self) {}
    /// #     fn quick_stop(&mut self) {}
    /// #     fn brake(&mut self) {}
    /// # }
    /// use outlive::rt::{Cause, NOBODY, Step};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap()).stop_cycles(1);
    /// lifeline.trip(Cause::Asked, NOBODY, 0, 0);
    /// lifeline.step(1_000_000, 1, &mut Arm); // holds
    /// assert_eq!(lifeline.reset(1_000_000).unwrap_err().kind(), outlive::ErrorKind::Refused);
    /// for cycle in [2, 3] {
    ///     lifeline.step(cycle * 1_000_000, cycle, &mut Arm); // stops, then brakes
    /// }
    /// lifeline.reset(4_000_000)?;
    /// assert_eq!(lifeline.step(4_000_000, 4, &mut Arm), Step::Run);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn reset(&mut self, now_ns: u64) -> Result<()> {
        if !self.board.is_ours() {
            return Err(forked_child());
        }
        let refuse =
            |why: String| Err(Error::new(ErrorKind::Refused, "resetting", "the lifeline", why));
        match self.latch {
            None => return Ok(()),
            Some(latch) if latch.step != Step::Brake => {
                return refuse("the brakes are not on yet: wait for them".into());
            }
            Some(_) => {}
        }
        // Two that watch each other would keep each other tripped for ever.
        for subject in &mut self.subjects {
            if let Kind::Silence { board, .. } | Kind::OnTime { board, .. } = &mut subject.kind {
                board.go_past();
            }
        }
        if let Some((cause, subject)) = self.look(now_ns) {
            let name = &self.subjects[usize::from(subject)].name;
            return refuse(format!("{name}: {cause}: mend that first"));
        }
        self.latch = None;
        self.repeated = 0;
        Latch::clear(&self.board.words()[LATCH..]);
        Ok(())
    }
}

#[cold]
fn not_given(name: &str, why: &str) -> Error {
    Error::new(ErrorKind::NotFound, "replacing a subject of the lifeline", name, why)
}

/// Whether a command may go to the drives: finite, within `low..=high`, and at most `step_max`
/// from `last`, value by value.
///
/// # Errors
/// The cause to trip on.
///
/// # Examples
/// ```
/// use outlive::rt::{Cause, check_command};
///
/// let last = [0.10, 0.20];
/// let check = |command| check_command(&command, &last, -1.0, 1.0, 0.05);
/// assert_eq!(check([0.12, 0.18]), Ok(()));
/// assert_eq!(check([0.12, f64::INFINITY]), Err(Cause::NotFinite));
/// assert_eq!(check([0.12, 0.30]), Err(Cause::OutOfRange)); // a step of 0.1
/// ```
pub fn check_command<const N: usize>(
    command: &[f64; N],
    last: &[f64; N],
    low: f64,
    high: f64,
    step_max: f64,
) -> std::result::Result<(), Cause> {
    if command.iter().any(|x| !x.is_finite()) {
        return Err(Cause::NotFinite);
    }
    let in_range = command.iter().all(|x| (low..=high).contains(x));
    let near = command.iter().zip(last).all(|(x, y)| (x - y).abs() <= step_max);
    if in_range && near { Ok(()) } else { Err(Cause::OutOfRange) }
}
