//! Many members of every kind under seeded random kills, stops and restarts; at the end nothing
//! may be lost, torn, left or hang. See `testkit::chaos`.

use std::process::ExitCode;
use std::time::Duration;

use testkit::chaos::{Plan, Sabotage, run as run_plan};

use crate::args::{Slow, fresh_seed, in_words, number, time};

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct ChaosArgs {
    /// Who is killed and stopped, and when; what the members do then is the scheduler's
    #[arg(long, value_name = "N", value_parser = number)]
    seed: Option<u64>,
    /// How long
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    lasts: Duration,
    #[command(flatten)]
    slow: Slow,
    /// A fault that the harness commits itself: it must be found
    #[arg(long)]
    sabotage: Option<Sabotage>,
    /// The kernel's OOM killer does it; for root, with an oom_score_adj of -1000, on a machine
    /// that has nothing else to lose
    #[arg(long)]
    out_of_memory: bool,
}

pub(crate) fn run(args: &ChaosArgs) -> ExitCode {
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let ChaosArgs { lasts, sabotage, out_of_memory, .. } = *args;
    let plan = Plan { seed, lasts, sabotage, out_of_memory };
    args.slow.apply();
    testkit::temp::remove_leftovers();
    match run_plan(&plan) {
        Ok(report) => {
            println!("chaos of {}", report.aside());
            println!("{report}");
            if report.is_clean() {
                return ExitCode::SUCCESS;
            }
        }
        Err(e) => println!("chaos: seed {seed}: FAILED: {e}"),
    }
    let lasts = in_words(args.lasts);
    let also = if out_of_memory { " --out-of-memory" } else { "" };
    println!("replay it: cargo run -p testkit -- chaos --seed {seed} --for {lasts}{also}");
    ExitCode::FAILURE
}
