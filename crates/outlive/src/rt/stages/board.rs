//! What a stage says about itself, in words that only it writes: how far it is, what it is doing,
//! when it last moved, whether its lifeline has tripped, and its times.
//!
//! | words     | what                                                             |
//! |-----------|------------------------------------------------------------------|
//! | 0         | cycles handed on: 1 + the number of the last one; sleepers wait on it |
//! | 8         | this stage sleeps for the one before it                          |
//! | 16 ..     | doing, last movement, counters: [`Doing`], [`Counts`]            |
//! | 24 ..     | the latch: [`Latch`]                                             |
//! | 32 ..     | histogram of hand-over after release, then of the stage's own time |
#![deny(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use super::latch::Latch;
use crate::Result;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::rt::channel::file;
use crate::rt::channel::file::{Role, Shape, tag_of};
use crate::rt::histogram;
use crate::rt::histogram::Histogram;
use crate::rt::thread::memory::Words;
use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

const DONE: usize = 0;
const REQUEST: usize = 8;
const DOING: usize = 16;
const MOVED: usize = 17;
const RUN: usize = 18;
const LATE: usize = 19;
const MISSED: usize = 20;
const SKIPPED: usize = 21;
pub(in crate::rt) const LATCH: usize = 24;
const AFTER_RELEASE: usize = 32;
const OWN_TIME: usize = AFTER_RELEASE + histogram::WORDS;
const WORDS: usize = OWN_TIME + histogram::WORDS;

/// What a stage is in the middle of.
///
/// Example: [`BoardView::doing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Not started yet, or ended.
    Idle = 0,
    /// Waits for its release or for the stage before it.
    Waiting = 1,
    /// Runs its cycle.
    Running = 2,
    /// Hands the cycle on.
    HandingOn = 3,
}

/// A stage's place in its loop.
///
/// Example: [`BoardView::doing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doing {
    /// The cycle.
    pub cycle: u64,
    /// The phase of it.
    pub phase: Phase,
}

/// Counters of a stage since it began.
///
/// Example: [`BoardView::counts`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Cycles run.
    pub run: u64,
    /// Cycles whose input timed out.
    pub late: u64,
    /// Cycles handed on after the deadline.
    pub missed: u64,
    /// Cycles skipped because the stage was too slow.
    pub skipped: u64,
}

/// A board, to write: where a stage or guard shows how far it is.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::rt::{Board, BoardView};
/// use std::time::Duration;
///
/// let board = Board::create(&node, "guard")?;
/// let seen = BoardView::open(&node, "guard", Duration::from_secs(1))?;
/// board.moved(outlive::now_ns());
/// assert!(seen.moved_ns() > 0 && seen.seems_alive());
/// drop(board); // its file is gone, and the name free
/// assert!(seen.is_dead());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Debug)]
pub struct Board {
    words: Arc<Words>,
    owner: Arc<Owner>,
}

/// All handles of a board together: with the last it has left, also for views in this process.
#[derive(Debug)]
struct Owner(Arc<Words>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A board, to read: the caller's own or another's.
///
/// # Examples
/// ```
/// use outlive::rt::{BoardView, Pipeline, Schedule, StageOptions, pass_on};
/// use std::time::Duration;
///
/// fn line(board: &BoardView) -> String {
///     let (doing, counts) = (board.doing(), board.counts());
///     format!("{:?} in cycle {}, {} late", doing.phase, doing.cycle, counts.late)
/// }
///
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let pipeline = Pipeline::new(schedule).stage("drive", StageOptions::default(), pass_on);
/// let boards = pipeline.boards(); // for any thread, also while the pipeline runs
/// assert_eq!(line(&boards[0]), "Idle in cycle 0, 0 late"); // not started yet
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BoardView {
    words: Arc<Words>,
}

fn shape() -> Shape {
    Shape { role: Role::Board, tag: tag_of(&[b"board"]), words: WORDS }
}

impl Board {
    /// A board for other threads of this process.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline};
    ///
    /// let (guard, core) = (Board::heap(), Board::heap());
    /// let mut lifeline = Lifeline::new(guard);
    /// lifeline.moves("core", core.view(), 2_000_000);
    /// lifeline.arm(0);
    /// assert_eq!(lifeline.look(1_000_000), None);
    /// drop(core);
    /// assert_eq!(lifeline.look(1_000_000), Some((Cause::Died, 0)));
    /// ```
    pub fn heap() -> Self {
        Self::of(Words::heap(WORDS))
    }

    /// A board that other processes can read under `name`.
    ///
    /// # Errors
    /// `InvalidName`, `NoSpace`; `AlreadyExists` while a living node, even a stopped one, has it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of its file, which stays readable after a death.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::Board;
    ///
    /// let board = Board::create(&node, "guard")?;
    /// let second = Board::create(&node, "guard").unwrap_err();
    /// assert_eq!(second.kind(), outlive::ErrorKind::AlreadyExists);
    /// drop(board); // a death frees the name, too
    /// Board::create(&node, "guard")?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn create(node: &Node, name: &str) -> Result<Self> {
        Ok(Self::of(file::create(node, name, shape())?))
    }

    fn of(words: Arc<Words>) -> Self {
        let owner = Arc::new(Owner(Arc::clone(&words)));
        Self { words, owner }
    }

    /// The same board, to read.
    ///
    /// # Examples
    /// ```
    /// let board = outlive::rt::Board::heap();
    /// let seen = board.view(); // for the thread that watches
    /// board.moved(1_000_000);
    /// assert_eq!(seen.moved_ns(), 1_000_000);
    /// ```
    pub fn view(&self) -> BoardView {
        BoardView { words: Arc::clone(&self.words) }
    }

    /// A second handle for the same thread of control: a stage's runner and its lifeline share
    /// one board and write different words of it.
    pub(crate) fn share(&self) -> Self {
        Self { words: Arc::clone(&self.words), owner: Arc::clone(&self.owner) }
    }

    /// Whether this process may write it: not a forked child its parent's.
    #[inline]
    pub(in crate::rt) fn is_ours(&self) -> bool {
        self.words.are_ours()
    }

    pub(in crate::rt) fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    #[inline]
    pub(in crate::rt) fn done(&self) -> &AtomicU64 {
        &self.words[DONE]
    }

    #[inline]
    pub(in crate::rt) fn request(&self) -> &AtomicU64 {
        &self.words[REQUEST]
    }

    /// Shows that its owner is moving, without a cycle: for loops outside a pipeline. Does nothing
    /// in a forked child.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    ///
    /// # Examples
    /// ```
    /// let board = outlive::rt::Board::heap();
    /// assert_eq!(board.view().moved_ns(), 0); // it has not begun
    /// board.moved(outlive::now_ns()); // once in each turn of the loop
    /// assert!(board.view().moved_ns() > 0);
    /// ```
    #[inline]
    pub fn moved(&self, now_ns: u64) {
        if self.is_ours() {
            self.words[MOVED].store(now_ns, Release);
        }
    }

    #[inline]
    pub(in crate::rt) fn doing(&self, cycle: u64, phase: Phase) {
        self.words[DOING].store(cycle << 8 | phase as u64, Release);
    }

    #[inline]
    pub(in crate::rt) fn count(&self, what: impl Fn(&mut Counts)) {
        let mut counts = self.view_counts();
        what(&mut counts);
        self.words[RUN].store(counts.run, Relaxed);
        self.words[LATE].store(counts.late, Relaxed);
        self.words[MISSED].store(counts.missed, Relaxed);
        self.words[SKIPPED].store(counts.skipped, Relaxed);
    }

    fn view_counts(&self) -> Counts {
        counts(&self.words)
    }

    #[inline]
    pub(in crate::rt) fn record(&self, after_release_ns: u64, own_ns: u64) {
        histogram::record(&self.words[AFTER_RELEASE..OWN_TIME], after_release_ns);
        histogram::record(&self.words[OWN_TIME..WORDS], own_ns);
    }
}

fn counts(words: &[AtomicU64]) -> Counts {
    let [run, late, missed, skipped] = [RUN, LATE, MISSED, SKIPPED].map(|i| words[i].load(Relaxed));
    Counts { run, late, missed, skipped }
}

impl BoardView {
    /// Finds the board `name` of a living node, waiting for it at most `timeout`.
    ///
    /// # Errors
    /// `Timeout` when nobody created it, `Corrupt`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::rt::{Board, BoardView};
    /// use std::time::Duration;
    ///
    /// let missing = BoardView::open(&node, "guard", Duration::from_millis(1)).unwrap_err();
    /// assert_eq!(missing.kind(), outlive::ErrorKind::Timeout);
    /// let board = Board::create(&node, "guard")?;
    /// let seen = BoardView::open(&node, "guard", Duration::from_secs(5))?;
    /// board.moved(1_000_000);
    /// assert_eq!(seen.moved_ns(), 1_000_000);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn open(node: &Node, name: &str, timeout: Duration) -> Result<Self> {
        let words = file::find(node, name, shape(), Deadline::after(timeout))?;
        Ok(Self { words })
    }

    #[inline]
    pub(in crate::rt) fn done(&self) -> &AtomicU64 {
        &self.words[DONE]
    }

    #[inline]
    pub(in crate::rt) fn request(&self) -> &AtomicU64 {
        &self.words[REQUEST]
    }

    /// Whether its owner looks alive and has not dropped it: three loads. A hint, early rather than
    /// certain; a hung or stopped owner is alive.
    ///
    /// # Examples
    /// ```
    /// let guard = outlive::rt::Board::heap();
    /// let seen = guard.view();
    /// assert!(seen.seems_alive());
    /// drop(guard);
    /// assert!(!seen.seems_alive()); // `is_dead` is the proof
    /// ```
    #[inline]
    pub fn seems_alive(&self) -> bool {
        self.words.seems_alive()
    }

    /// Whether its owner is certainly dead, or has dropped it: not a hint. No system call while the
    /// owner looks alive.
    ///
    /// # Examples
    /// ```
    /// let board = outlive::rt::Board::heap();
    /// let seen = board.view();
    /// assert!(seen.seems_alive() && !seen.is_dead());
    /// drop(board);
    /// assert!(!seen.seems_alive() && seen.is_dead());
    /// ```
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.words.is_dead()
    }

    /// Cycles handed on: 1 + the number of the last one.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// // Here every cycle was handed on, but for any that were skipped.
    /// assert!(board.cycles_done() >= board.counts().run);
    /// assert_eq!(board.counts().run, 200);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    #[inline]
    pub fn cycles_done(&self) -> u64 {
        self.words[DONE].load(Acquire)
    }

    /// When its owner last moved, ns of CLOCK_MONOTONIC; 0 before it began.
    ///
    /// # Examples
    /// ```
    /// let guard = outlive::rt::Board::heap();
    /// let seen = guard.view();
    /// assert_eq!(seen.moved_ns(), 0); // it has not begun
    /// guard.moved(5_000_000);
    /// let now_ns = 7_000_000;
    /// assert_eq!(now_ns - seen.moved_ns(), 2_000_000); // silent for 2 ms
    /// ```
    #[inline]
    pub fn moved_ns(&self) -> u64 {
        self.words[MOVED].load(Acquire)
    }

    /// What its owner is in the middle of; for the dead, where they died.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Cycle, Outcome, Phase, Pipeline, Schedule, StageOptions, Stop};
    /// use std::time::Duration;
    ///
    /// let pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?);
    /// let mut pipeline = pipeline.stage("drive", StageOptions::default(), |cycle: &Cycle| {
    ///     if cycle.number < 3 { Outcome::HandOn } else { panic!("a bug") }
    /// });
    /// let seen = pipeline.boards();
    /// let run = std::panic::AssertUnwindSafe(|| pipeline.run_inline(&Stop::new()));
    /// std::panic::catch_unwind(run).unwrap_err();
    /// assert_eq!(seen[0].doing().phase, Phase::Running); // it died in its cycle
    /// assert!(seen[0].doing().cycle >= 3);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn doing(&self) -> Doing {
        let word = self.words[DOING].load(Acquire);
        let phase = match word as u8 {
            1 => Phase::Waiting,
            2 => Phase::Running,
            3 => Phase::HandingOn,
            _ => Phase::Idle,
        };
        Doing { cycle: word >> 8, phase }
    }

    /// Its counters.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Counts, Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// use std::time::Duration;
    ///
    /// let (options, mut left) = (StageOptions::default(), 3);
    /// let mut pipeline = Pipeline::new(Schedule::every(Duration::from_millis(1))?)
    ///     .stage("camera", options, |_: &Cycle| Outcome::Skip) // it has no image
    ///     .stage("drive", options, |_: &Cycle| {
    ///         left -= 1;
    ///         if left > 0 { Outcome::HandOn } else { Outcome::Stop }
    ///     });
    /// let boards = pipeline.boards();
    /// pipeline.run_inline(&Stop::new());
    /// let Counts { run, late, .. } = boards[1].counts();
    /// assert_eq!((run, late), (2, 2));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn counts(&self) -> Counts {
        counts(&self.words)
    }

    /// Whether its lifeline has tripped, and why.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{Board, Cause, Lifeline, NOBODY};
    ///
    /// let mut lifeline = Lifeline::new(Board::heap());
    /// let seen = lifeline.board().view();
    /// assert_eq!(seen.latch(), None);
    /// lifeline.trip(Cause::Asked, NOBODY, 1_000_000, 7);
    /// let latch = seen.latch().expect("tripped just now");
    /// assert_eq!((latch.cause, latch.cycle, latch.at_ns), (Cause::Asked, 7, 1_000_000));
    /// ```
    #[inline]
    pub fn latch(&self) -> Option<Latch> {
        Latch::load(&self.words[LATCH..AFTER_RELEASE])
    }

    /// Times from a cycle's scheduled release until the stage handed it on.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let (from_release, own) = (board.after_release(), board.own_time());
    /// assert_eq!(from_release.count(), own.count());
    /// assert!(from_release.max_ns() >= own.max_ns()); // it counts from the release
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn after_release(&self) -> Histogram {
        Histogram::copy(&self.words[AFTER_RELEASE..OWN_TIME])
    }

    /// Times that the stage itself took.
    ///
    /// # Examples
    /// ```
    /// # use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop};
    /// # let schedule = Schedule::every(std::time::Duration::from_micros(100))?;
    /// # let (mut cycles, options) = (0u64, StageOptions::default());
    /// # let mut pipeline = Pipeline::new(schedule).stage("drive", options, |_: &Cycle| {
    /// #     cycles += 1;
    /// #     if cycles % 201 > 0 { Outcome::HandOn } else { Outcome::Stop }
    /// # });
    /// # let board = pipeline.boards().remove(0);
    /// pipeline.run_inline(&Stop::new()); // 200 cycles
    /// let own = board.own_time();
    /// assert_eq!(own.count(), 200);
    /// println!("{} ns on average, {} ns at most", own.mean_ns(), own.max_ns());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn own_time(&self) -> Histogram {
        Histogram::copy(&self.words[OWN_TIME..WORDS])
    }
}
