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

mod board;
pub(crate) mod file;
pub(crate) mod four_slot;
mod histogram;
mod latch;
mod latest;
mod lifeline;
mod memory;
mod pair;
#[cfg(test)]
mod pair_tests;
mod pipeline;
mod realtime;
pub(crate) mod ring;
mod schedule;
pub(crate) mod signal;
mod spsc;
mod stage;
#[cfg(test)]
mod tests;
mod waiting;

pub use board::{Board, BoardView, Counts, Doing, Phase};
pub use histogram::Histogram;
pub use latch::{Cause, Latch, NOBODY, Step};
pub use latest::{LatestReader, LatestWriter, Opening, Stamped, VALUE_BYTES_MAX, Value, latest};
pub use lifeline::{Freshness, Lifeline, SafeState, check_command};
pub use pair::Lost;
pub use pipeline::{Joining, Member, Pipeline, board_name, pass_on};
pub use realtime::{Granted, Realtime};
pub use schedule::{Overrun, Schedule};
pub use spsc::{DEPTH_MAX, NotPushed, SpscReader, SpscWriter, spsc};
pub use stage::{Cycle, Input, Outcome, Stage, StageOptions, StageReport, Stop};
pub use waiting::Wait;
