//! Sweeps: one operation after the other, ended or failing at each of its points.
//!
//! A file for each subcommand says which scenarios are swept, and how. The scenarios are in
//! `testkit::scenarios`, the engine that stops, kills and judges is `testkit::sweep`. It forks, so
//! these run in a process with a single thread. `SWEEP_...` variables take part of a sweep or one
//! point of it: see `testkit::sweep::SweepOptions`. Begin at `kill`.

#[cfg(feature = "crash-points")]
pub(crate) mod crash_points;
pub(crate) mod fail;
pub(crate) mod kill;
pub(crate) mod lock;
pub(crate) mod queue;

use testkit::sweep::{Suite, SweepOptions};

use crate::args::Quick;

/// So many points of a scenario are a quick sweep of it.
const QUICK_POINTS: u64 = 150;

const VARIABLES: &str = "\
Environment:
  SWEEP_ONLY=NAME  only scenarios whose name contains it
  SWEEP_AT=POINT   only this point, as a failure names it: i12
  SWEEP_SEED=N     which part a quick sweep takes; it is printed
More in verify/testkit/src/sweep/options.rs.";

/// Options of a sweep.
#[derive(clap::Args, Debug)]
#[command(after_help = VARIABLES)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    quick: Quick,
}

impl SweepArgs {
    fn suite(&self) -> Suite {
        Suite::new(options(self.quick))
    }
}

/// What the environment says; `SWEEP_POINTS` comes before `--quick`.
fn options(quick: Quick) -> SweepOptions {
    let options = SweepOptions::from_env();
    let points_max = options.points_max.or(quick.quick.then_some(QUICK_POINTS));
    SweepOptions { points_max, ..options }
}
