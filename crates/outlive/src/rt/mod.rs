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
//! | [`Lifeline`] | who must live and move, how fresh data must be, what happens when not |
//!
//! A channel has two ends, each with one owner, which may be replaced while the other lives on: its
//! calls then answer [`Lost`] until it has found the successor (`reconnect`).
//!
//! Between processes each writes only files of its own (`rt/` in the domain), which the others map
//! read-only: the death of one leaves the others' memory as it was.
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
