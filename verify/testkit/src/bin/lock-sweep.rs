//! Kills locks at every instruction of taking, letting go, taking over and repairing. `--quick`
//! takes a seeded part of the points.
//!
//! Then the same kills for a turn of other people's locks: what is fatal to them is printed as
//! their figure. `--baselines` does only that; `SWEEP_ONLY=turn` too.

use std::process::ExitCode;

use outlive_baselines::{Lock, for_each_lock};
use testkit::scenarios::baselines::fatal_points;
use testkit::scenarios::locks::Op;
use testkit::sweep::{Config, Suite};

/// Of outlive's own, which may have none, and of all.
fn baselines() -> (u64, u64) {
    let config = Config::from_env();
    // Each fatal point takes a wait in vain.
    let points_max = config.points_max.map(|points| points / 4);
    let config = Config { failures_max: u64::MAX, points_max, ..config };
    let suite = Suite::new(config);
    let (mut ours, mut all) = (0, 0);
    for_each_lock!(lock => {
        let fatal = fatal_points(&suite, lock);
        ours += if lock.name().starts_with("outlive") { fatal } else { 0 };
        all += fatal;
    });
    (ours, all)
}

fn main() -> ExitCode {
    let mut suite = Suite::from_env();
    if !std::env::args().any(|arg| arg == "--baselines") {
        for op in Op::HOT {
            suite.every_instruction(&op);
        }
        for op in Op::LONG {
            suite.long_path(&op);
        }
    }
    let (ours, all) = baselines();
    println!("fatal points: outlive {ours}, others {}", all - ours);
    let swept = suite.reports().is_empty() || suite.finish() == ExitCode::SUCCESS;
    // Locks known to break must be seen to break, or the harness sees nothing.
    let seen = all > 0 || std::env::var_os("SWEEP_ONLY").is_some();
    if swept && ours == 0 && seen { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
