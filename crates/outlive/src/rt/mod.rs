// May use `os`, `domain`, `types`, `node` and `wait`; not `topic`, `queue` or `lock`. `channel/` is
// the channels, `stages/` pipelines and lifelines, `thread/` the thread and its memory, `histogram`
// the times of a stage. Begin with `channel/four_slot`, then `stages/stage`.

//! The real-time core: channels, stages with absolute release times, fail-stop.
//!
//! Everything is set up first (files made, mapped and brought in, memory locked); after that a
//! cycle allocates nothing and makes no system call beyond those of the chosen [`Wait`].
//!
//! | what | |
//! |---|---|
//! | [`latest()`], [`LatestWriter`] | the newest value, wait-free on both sides |
//! | [`spsc()`], [`SpscWriter`] | every value in order, bounded |
//! | [`Pipeline`], [`Member`] | stages on one thread, on threads, in processes |
//! | [`Realtime`] | priority, core, locked memory, and what was granted |
//! | [`Lifeline`] | who must live and move, how fresh data must be, and what happens otherwise |
//!
//! A channel has two ends, each with one owner. Either may be replaced while the other lives on:
//! the other's calls then return [`Lost`] until it has found the successor (`reconnect`).
//!
//! Each process writes only files of its own (`rt/` in the domain), which the others map read-only:
//! a death does not damage the others' memory.
//!
//! # Examples
//! A channel between processes; each end opens, then connects:
//! ```
//! # let dir = outlive::doc_dir();
//! use outlive::rt::{LatestReader, LatestWriter};
//! use std::time::Duration;
//!
//! let planner = outlive::Node::builder().root(dir.path()).name("planner").open()?;
//! let drive = outlive::Node::builder().root(dir.path()).name("drive").open()?;
//! let writer = LatestWriter::<f64>::open(&planner, "speed")?;
//! let reader = LatestReader::<f64>::open(&drive, "speed")?;
//! std::thread::scope(|scope| -> outlive::Result<()> {
//!     let planner = scope.spawn(move || {
//!         let mut speed = writer.connect(Duration::from_secs(5))?;
//!         speed.write(&1.5).expect("the drive lives");
//!         Ok::<_, outlive::Error>(speed)
//!     });
//!     let mut speed = reader.connect(Duration::from_secs(5))?;
//!     let _alive = planner.join().expect("does not panic")?;
//!     assert_eq!(speed.read().expect("the planner lives").map(|s| s.value), Some(1.5));
//!     Ok(())
//! })?;
//! # Ok::<(), outlive::Error>(())
//! ```
#![deny(unsafe_code)]

pub(crate) mod channel;
mod histogram;
pub(crate) mod stages;
#[cfg(test)]
mod tests;
pub(crate) mod thread;

pub use channel::latest::{
    LatestReader, LatestWriter, Opening, Stamped, VALUE_BYTES_MAX, Value, latest,
};
pub use channel::pair::Lost;
pub use channel::spsc::{DEPTH_MAX, NotPushed, SpscReader, SpscWriter, spsc};
pub use channel::waiting::Wait;
pub use histogram::Histogram;
pub use stages::board::{Board, BoardView, Counts, Doing, Phase};
pub use stages::latch::{Cause, Latch, NOBODY, Step};
pub use stages::lifeline::{Freshness, Lifeline, SafeState, check_command};
pub use stages::pipeline::{Joining, Member, Pipeline, board_name, pass_on};
pub use stages::schedule::{Overrun, Schedule};
pub use stages::stage::{Cycle, Input, Outcome, Stage, StageOptions, StageReport, Stop};
pub use thread::realtime::{Granted, Realtime};
