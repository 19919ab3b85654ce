//! The kill sweep: SIGKILL at every point of an operation, then a look at the survivors.
//!
//! The driver traces a victim with ptrace. A first run records which instructions the operation
//! executes; then, for each of them, a fresh victim is brought to that place (a hardware breakpoint
//! takes it near, single steps do the rest), killed, and the peer judges. All processes are forks
//! of one program with one thread, so addresses are the same in each run.
//!
//! A stopped victim has drained its stores and is not inside a system call; for the rest there are
//! kills of sleeping victims and at random instants, and loom.
//!
//! ```no_run
//! use std::{fs, path::Path};
//! use testkit::sweep::{SweepOptions, Gate, Outcome, Point, Scenario, Suite};
//!
//! struct Rename;
//!
//! impl Scenario for Rename {
//!     type World = ();
//!     fn name(&self) -> String {
//!         "rename".into()
//!     }
//!     fn must_see(&self) -> &[Outcome] {
//!         &["before", "after"]
//!     }
//!     fn setup(&self, dir: &Path) -> Result<(), String> {
//!         fs::write(dir.join("draft"), "whole").map_err(|e| e.to_string())
//!     }
//!     fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
//!         gate.enter();
//!         let done = fs::rename(dir.join("draft"), dir.join("file"));
//!         gate.leave();
//!         done.map_err(|e| e.to_string())
//!     }
//!     fn survivor(&self, dir: &Path, _: &mut (), at: &Point) -> Result<Outcome, String> {
//!         match fs::read_to_string(dir.join("file")) {
//!             Ok(text) if text == "whole" => Ok("after"),
//!             Err(_) if !at.finished => Ok("before"),
//!             other => Err(format!("{other:?}")),
//!         }
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let mut suite = Suite::new(SweepOptions::from_env());
//!     suite.every_instruction(&Rename);
//!     suite.long_path(&Rename);
//!     suite.finish()
//! }
//! ```

mod arch;
mod driver;
mod errors;
mod every;
mod failing;
mod gate;
mod long;
mod named;
mod options;
mod own_end;
mod peer;
mod point;
mod processors;
mod ptrace;
mod report;
mod scenario;
mod suite;
mod timed;
mod trace;
mod tracee;
mod watch;

pub(crate) use arch::trap;
pub use driver::InstallHook;
pub use gate::Gate;
pub(crate) use gate::{Control, Phase};
pub use options::SweepOptions;
pub use point::{Place, Point, locate, symbolize};
pub use processors::unpin;
pub use report::{Failure, Report};
pub use scenario::{Outcome, Scenario, Style};
pub use suite::Suite;
