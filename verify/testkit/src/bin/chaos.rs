//! Many members of every kind under seeded random kills, stops and restarts; at the end nothing
//! may be lost, torn, left or hang. See `testkit::chaos`.
//!
//! `chaos [--seed N] [--for 60s] [--sabotage lost|dup|torn|hang|file]`: a sabotage is a fault that
//! the harness commits itself; it must be found. The seed decides who is killed and stopped and
//! when; what the members are doing then is the scheduler's.

use std::process::ExitCode;
use std::time::Duration;

use testkit::chaos::{Plan, Sabotage, run};
use testkit::rng::{parse_duration, parse_u64};

const USAGE: &str = "usage: chaos [--seed N] [--for 60s] [--sabotage lost|dup|torn|hang|file]";

fn parse() -> Option<(Plan, String)> {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    let mut plan = Plan { seed: since >> 8 & 0xffff_ffff, lasts: Duration::ZERO, sabotage: None };
    let mut lasts = "60s".to_owned();
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--seed" => plan.seed = parse_u64(&value)?,
            "--for" => lasts = value,
            "--sabotage" => plan.sabotage = Some(Sabotage::parse(&value)?),
            _ => return None,
        }
    }
    plan.lasts = parse_duration(&lasts)?;
    Some((plan, lasts))
}

fn main() -> ExitCode {
    let Some((plan, lasts)) = parse() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    testkit::temp::remove_leftovers();
    let replay = format!("cargo run -p testkit --bin chaos -- --seed {} --for {lasts}", plan.seed);
    match run(&plan) {
        Ok(report) => {
            println!("chaos of {}", report.aside());
            println!("{report}");
            if report.is_clean() {
                return ExitCode::SUCCESS;
            }
        }
        Err(e) => println!("chaos: seed {}: FAILED: {e}", plan.seed),
    }
    println!("replay it: {replay}");
    ExitCode::FAILURE
}
