//! Wild writes: seeded rounds of a member that scribbles over everything it can reach.

use std::process::ExitCode;

use testkit::wild::{Found, round};

use crate::args::{Quick, number};

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct WildWritesArgs {
    #[command(flatten)]
    quick: Quick,
    /// Rounds, a seed each [default: 1200; quick: 60]
    #[arg(long, value_name = "N", value_parser = number)]
    seeds: Option<u64>,
    /// The first of them
    #[arg(long, value_name = "N", default_value = "1", value_parser = number)]
    from: u64,
    /// Only this one, to replay it
    #[arg(long, value_name = "N", value_parser = number)]
    seed: Option<u64>,
}

pub(crate) fn run(args: &WildWritesArgs) -> ExitCode {
    let seeds = match args.seed {
        Some(seed) => seed..seed + 1,
        None => {
            let count = args.seeds.unwrap_or(if args.quick.quick { 60 } else { 1200 });
            args.from..args.from + count
        }
    };
    let mut all = Found::default();
    for seed in seeds {
        match round(seed) {
            Ok(found) => {
                let bad = found.crashes.iter().chain(&found.hangs).chain(&found.wrong);
                bad.for_each(|what| println!("WRONG: {what}; replay: --seed {seed}"));
                all.merge(found);
            }
            Err(e) => {
                println!("wild writes: FAILED: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    println!("wild writes: {all}");
    let tried = all.writes > 0 && all.operations > 0;
    if all.is_good() && tried { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
