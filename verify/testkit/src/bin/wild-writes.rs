//! Wild writes: seeded rounds of a member that scribbles over everything it can reach.
//!
//! `--seeds N`: so many rounds (default 1200; `--quick`: 60). `--seed N`: only that one, to replay.
//! `--from N`: the first of them.

use std::process::ExitCode;

use testkit::rng::parse_u64;
use testkit::wild::{Found, round};

fn argument(name: &str) -> Option<u64> {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next().and_then(|text| parse_u64(&text))
}

fn main() -> ExitCode {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let seeds = match argument("--seed") {
        Some(seed) => seed..seed + 1,
        None => {
            let first = argument("--from").unwrap_or(1);
            first..first + argument("--seeds").unwrap_or(if quick { 60 } else { 1200 })
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
