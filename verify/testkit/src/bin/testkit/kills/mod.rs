//! Kills of processes at full speed, nothing stepped: what a sweep cannot reach.
//!
//! | file | what dies |
//! |---|---|
//! | `start` | a process in its first 20 ms |
//! | `lock` | holders and takers of locks, at random |
//! | `queue` | ends of a queue under load, and between commit and wake |
//! | `wake` | a publisher between commit and wake |
//!
//! Each has a seed in the environment, which it prints.

pub(crate) mod lock;
#[cfg(feature = "crash-points")]
pub(crate) mod queue;
pub(crate) mod start;
#[cfg(feature = "crash-points")]
pub(crate) mod wake;
