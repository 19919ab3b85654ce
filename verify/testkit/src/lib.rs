//! Kill harness: sweeps that SIGKILL a process at every instruction, and helpers for tests with
//! several processes.

pub mod actor;
pub mod browser;
pub mod chaos;
pub mod crash;
pub mod failstop;
pub mod history;
pub mod process;
pub mod rng;
pub mod scenarios;
pub mod slow;
pub mod spawn;
pub mod startup;
pub mod sweep;
pub mod temp;
pub mod watchdog;
pub mod wild;

pub use actor::Actor;
pub use process::{Child, Exit, fork_child};
pub use rng::{Rng, seed_from_env};
pub use spawn::{role, spawn_self, spawn_test};
pub use temp::TempDomain;
pub use watchdog::Watchdog;
