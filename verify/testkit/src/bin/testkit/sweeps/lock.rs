//! Kills locks at every instruction of taking, letting go, taking over and repairing.
//!
//! Then the same kills for a turn of other people's locks: what is fatal to them is printed as
//! their figure. `SWEEP_ONLY=turn` does only that, too.

use std::process::ExitCode;

use outlive_baselines::{Lock, for_each_lock};
use testkit::scenarios::baselines::fatal_points;
use testkit::scenarios::locks::Op;
use testkit::sweep::{Suite, SweepOptions};

use super::SweepArgs;
use crate::args::{Quick, Slow};

/// Options of the sweep.
#[derive(clap::Args, Debug)]
pub(crate) struct LockSweepArgs {
    #[command(flatten)]
    sweep: SweepArgs,
    /// Only the locks of others, and outlive's beside them
    #[arg(long)]
    baselines: bool,
    #[command(flatten)]
    slow: Slow,
}

/// Of outlive's own, which may have none, and of all.
fn baselines(quick: Quick) -> (u64, u64) {
    let options = super::options(quick);
    // Each fatal point takes a wait in vain.
    let points_max = options.points_max.map(|points| points / 4);
    let options = SweepOptions { failures_max: u64::MAX, points_max, ..options };
    let suite = Suite::new(options);
    let (mut ours, mut all) = (0, 0);
    for_each_lock!(lock => {
        let fatal = fatal_points(&suite, lock);
        ours += if lock.name().starts_with("outlive") { fatal } else { 0 };
        all += fatal;
    });
    (ours, all)
}

pub(crate) fn run(args: &LockSweepArgs) -> ExitCode {
    args.slow.apply();
    let mut suite = args.sweep.suite();
    if !args.baselines {
        for op in Op::HOT {
            suite.every_instruction(&op);
        }
        for op in Op::LONG {
            suite.long_path(&op);
        }
    }
    let (ours, all) = baselines(args.sweep.quick);
    println!("fatal points: outlive {ours}, others {}", all - ours);
    let swept = suite.reports().is_empty() || suite.finish() == ExitCode::SUCCESS;
    // Locks known to break must be seen to break, or the harness sees nothing.
    let seen = all > 0 || std::env::var_os("SWEEP_ONLY").is_some();
    if swept && ours == 0 && seen { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
