//! Starts and supervises the processes of a robot, as `robot.toml` says.
//!
//! | file | what |
//! |---|---|
//! | `config/` | reads the file; each fault with line, column and remedy |
//! | `supervisor/` | the loop: start, restart, stop, adopt, reload |
//! | `spawn`, `proc`, `cgroup` | a process of its own session; who it is, and all it started |
//! | `leftover` | ends what a dead supervisor left |
//! | `backoff`, `health` | waits before restarts; readiness and heartbeats |
//! | `state`, `control` | what a supervisor says about itself; requests to it |
//! | `logs/`, `printer` | what processes print, on its way to disk; the terminal |
//! | `notify`, `os` | systemd; system calls |
//!
//! # Examples
//! ```no_run
//! use outlive_run::{SupervisorOptions, Supervisor, config::Config, keep_logs};
//!
//! // Started again by the supervisor, as its keeper of logs.
//! let args: Vec<String> = std::env::args().collect();
//! if let [_, role, dir, number] = args.as_slice()
//!     && role == "keep-logs"
//! {
//!     keep_logs(dir.as_ref(), number.parse()?)?;
//!     return Ok(());
//! }
//! let config = Config::load("robot.toml".as_ref())?;
//! let domain = outlive::Domain::of(&outlive::Node::builder())?;
//! let outcome = Supervisor::start(config, domain, SupervisorOptions::default())?.run();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod backoff;
mod cgroup;
pub mod config;
mod control;
mod health;
mod leftover;
mod logs;
mod notify;
mod os;
mod printer;
mod proc;
mod spawn;
mod state;
mod supervisor;

pub use control::{Answer, Request, ask};
pub use leftover::end_orphans;
pub use logs::keep_logs;
pub use proc::Identity;
pub use state::{Phase, RunDir, State, Status};
pub use supervisor::{Outcome, StartError, Supervisor, SupervisorOptions};
