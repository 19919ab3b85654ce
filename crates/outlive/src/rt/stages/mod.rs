//! A pipeline of stages that run by the clock and stop together: who may say stop (`latch`,
//! `signal`), who lives (`board`, `lifeline`), the loop (`schedule`, `runner`, `pipeline`) around
//! each `stage`. Begin with `stage`.

pub(super) mod board;
pub(super) mod latch;
pub(super) mod lifeline;
pub(super) mod pipeline;
mod runner;
pub(super) mod schedule;
pub(crate) mod signal;
pub(super) mod stage;
