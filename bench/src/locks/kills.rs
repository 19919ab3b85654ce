//! What random kills of its holders do to each lock.

use outlive::Result;
use outlive_baselines::Lock;
use outlive_baselines::kills::{Plan, random_kills};

use crate::report::Kills;
use crate::scratch::TempRoot;

/// Processes that lock and unlock at the same time, and threads in each.
const PROCESSES: usize = 3;
const THREADS: usize = 2;
const SEED: u64 = 1;

/// Instructions of a turn after which a kill is fatal to the next one: alone, shared. Recorded from
/// a full run of `cargo run --profile sweep -p testkit -- lock-sweep --baselines` (x86_64,
/// glibc 2.36, rustc 1.95); the numbers move with the compiler, the zeroes do not.
const FATAL_POINTS: [(&str, &str, &str); 11] = [
    ("outlive mutex", "0 of 71", "-"),
    ("outlive rwlock", "0 of 74", "0 of 75"),
    ("pthread mutex", "37 of 67", "-"),
    ("pthread robust mutex", "0 of 141", "-"),
    ("pthread rwlock", "54 of 88", "45 of 76"),
    ("naive PID lock", "22 of 67", "-"),
    ("PID lock", "32 of 84", "42 of 115"),
    ("PID lock, id cached", "30 of 80", "40 of 111"),
    ("rwlock of robust mutexes", "0 of 1341", "0 of 209"),
    ("central tracker", "0 of 63", "-"),
    ("take-over by timeout", "0 of 258", "-"),
];

/// Kills holders of `lock`, so many.
pub(super) fn of<L: Lock>(lock: L, kills: u64) -> Result<Kills> {
    let root = TempRoot::made()?;
    let plan = Plan { kills, processes: PROCESSES, threads: THREADS, seed: SEED };
    let found = random_kills(lock, &root.0, plan)?;
    let recorded = FATAL_POINTS.iter().find(|(name, ..)| *name == lock.name());
    let (alone, shared) = recorded.map_or(("-", "-"), |(_, alone, shared)| (*alone, *shared));
    Ok(Kills {
        lock: lock.name(),
        kills: found.kills,
        stalls: found.stalls,
        violations: found.violations,
        torn_untold: found.untold,
        longest_wait_ns: found.longest_ns,
        fatal_points_alone: alone,
        fatal_points_shared: shared,
    })
}

/// What the table of kills needs to be read.
pub(super) const NOTE: &str = "random kills: 3 processes of 2 threads, mixed readers and writers; \
    after each kill every living thread has to get a turn within 1 s.\nfatal points: instructions \
    of one turn, alone and shared, after which the next one never gets in or is not told; recorded \
    from testkit lock-sweep --baselines, not measured in this run.";
