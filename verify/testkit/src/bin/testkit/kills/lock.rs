//! Random kills among three processes that lock and unlock, mixed readers and writers, of one and
//! of several threads: outlive's locks 300 kills ten times over, others' 300 kills once.
//!
//! Outlive's must show no stall over a second, no exclusion violation, no torn data untold. What
//! happens to the others is printed. Quick: 300 kills and 20.
//! `LOCK_SEED` replays the instants and victims; `LOCK_ONLY=robust` takes the locks whose name
//! contains that; `LOCK_KILLS` sets the kills of each run.

use std::process::ExitCode;

use outlive_baselines::kills::{Found, Plan, random_kills};
use outlive_baselines::{Lock, for_each_lock};
use testkit::{TempDomain, seed_from_env};

use crate::args::Quick;

const PROCESSES: usize = 3;
const THREADS: [usize; 2] = [1, 3];

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct LockKillsArgs {
    #[command(flatten)]
    quick: Quick,
    /// Without the locks of others
    #[arg(long)]
    ours: bool,
}

/// Some runs with one thread for each process, then with three.
fn kill<L: Lock>(lock: L, kills: u64, rounds: u64, seed: u64) -> Result<Found, String> {
    let mut all = Found::default();
    for threads in THREADS {
        let mut sum = Found::default();
        for round in 0..rounds {
            let dir = TempDomain::new("lock-kills").map_err(|e| e.to_string())?;
            let plan = Plan { kills, processes: PROCESSES, threads, seed: seed ^ round };
            sum.merge(random_kills(lock, dir.path(), plan).map_err(|e| e.to_string())?);
        }
        println!("{}, {PROCESSES} processes of {threads}: {sum}", lock.name());
        all.merge(sum);
    }
    Ok(all)
}

fn kill_all(quick: bool, only_ours: bool) -> Result<bool, String> {
    let seed = seed_from_env("LOCK_SEED");
    let (mut ours, mut others) = (Found::default(), Found::default());
    let only = std::env::var("LOCK_ONLY").unwrap_or_default();
    let kills = std::env::var("LOCK_KILLS").ok().and_then(|text| text.parse().ok());
    let of_others = if quick { 10 } else { 300 };
    for_each_lock!(lock => {
        let (wanted, is_ours) =
            (lock.name().contains(&only), lock.name().starts_with("outlive"));
        if wanted && is_ours {
            ours.merge(kill(lock, kills.unwrap_or(300), if quick { 1 } else { 10 }, seed)?);
        } else if wanted && !only_ours {
            others.merge(kill(lock, kills.unwrap_or(of_others), 1, seed)?);
        }
    });
    let Found { kills, stalls, violations, untold, refused, turns, .. } = ours;
    println!(
        "lock kills: outlive {kills} kills, {stalls} stalls, {violations} violations, {untold} \
         torn untold, {refused} refused, {turns} turns; others {} kills, {} stalls, {} \
         violations, {} torn untold",
        others.kills, others.stalls, others.violations, others.untold
    );
    // Locks known to stall must be seen to.
    let seen = only_ours || others.stalls > 0 || !only.is_empty();
    let tried = turns > kills || !only.is_empty();
    Ok([stalls, violations, untold, refused] == [0; 4] && tried && seen)
}

pub(crate) fn run(args: &LockKillsArgs) -> ExitCode {
    match kill_all(args.quick.quick, args.ours) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            println!("lock kills: FAILED: {e}");
            ExitCode::FAILURE
        }
    }
}
