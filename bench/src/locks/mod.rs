//! Locks, outlive's and others: pairs without a rival, rivals, readers, the death of a holder;
//! random kills; and in the path of messages.
//!
//! | file | what |
//! |---|---|
//! | `measure` | what is done while the clock runs |
//! | `forms` | alone, shared |
//! | `messages` | a ring that a lock guards, beside our topic |
//! | `kills` | stalls and violations after random kills |

mod forms;
mod kills;
mod measure;
mod messages;

use ::measure::cores::Cores;
use ::measure::stats::{Comparison, Samples, Target, interleave};
use outlive::Result;
use outlive_baselines::{Lock, OursMutex, OursRwLock, PthreadMutex, PthreadRwLock, for_each_lock};

use super::pair::Reaper;
use super::report::{Kills, Row, Unit};
use forms::{Alone, Form, Shared};
use measure::{Load, bare_pairs, contended, pairs, pairs_together, take_over};

/// Locks and unlocks of one run without a rival.
const PAIRS: u64 = 1_000_000;
/// SIGKILLs of one run.
const DEATHS: usize = 20;
/// Rounds of rows that have no target.
const ROUNDS_OF_OTHERS: usize = 8;

const PLAIN: PthreadMutex = PthreadMutex { robust: false };
const ROBUST: PthreadMutex = PthreadMutex { robust: true };

/// The target of a row of `lock`, and how often it is measured.
struct Aim {
    target: Target,
    rounds: usize,
}

/// Only outlive's locks have targets.
fn aim(lock: impl Lock, target: Target, rounds: usize) -> Aim {
    if is_ours(lock) {
        Aim { target, rounds }
    } else {
        Aim { target: Target::None, rounds: rounds.min(ROUNDS_OF_OTHERS) }
    }
}

fn is_ours(lock: impl Lock) -> bool {
    [OursMutex.name(), OursRwLock.name()].contains(&lock.name())
}

/// Whether it is what the others are compared with.
fn is(lock: impl Lock, limit: impl Lock) -> bool {
    lock.name() == limit.name()
}

/// All rows, and what must be said beside them.
pub(super) fn rows(cores: Cores, rounds: usize) -> Result<(Vec<Row>, Vec<String>)> {
    let (mut rows, mut notes) = (alone(cores, rounds)?, Vec::new());
    rows.extend(shared(cores, rounds)?);
    rivals(cores, rounds, &mut rows, &mut notes)?;
    rows.extend(readers(cores, rounds)?);
    rows.extend(deaths(cores, rounds)?);
    Ok((rows, notes))
}

/// Taken alone, without a rival.
fn alone(cores: Cores, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let plain = || pairs(cores, PLAIN, Alone, 0, PAIRS);
    let rw = |readers| move || pairs(cores, PthreadRwLock, Alone, readers, PAIRS);
    for_each_lock!(lock => {
        if is(lock, OursRwLock) {
            for readers in [0, 8] {
                let ours = || pairs(cores, lock, Alone, readers, PAIRS);
                let c = interleave(rounds, rw(readers), ours)?;
                let name = format!("{}, write pair, {readers} readers", lock.name());
                let (limit, target) = (PthreadRwLock.name(), Target::AtMost(1.0));
                rows.push(Row::compared(&name, Unit::Ns, limit, &c, target));
            }
        } else if is(lock, PLAIN) {
            rows.push(Row::measured(&format!("{}, pair", PLAIN.name()), Unit::Ns, &plain()?));
            let c = interleave(rounds, plain, || bare_pairs(cores, PAIRS))?;
            let name = "two bare compare-and-swaps";
            rows.push(Row::compared(name, Unit::Ns, PLAIN.name(), &c, Target::None));
        } else {
            let aim = aim(lock, Target::AtMost(0.9), rounds);
            let c = interleave(aim.rounds, plain, || pairs(cores, lock, Alone, 0, PAIRS))?;
            let name = format!("{}, pair", lock.name());
            rows.push(Row::compared(&name, Unit::Ns, PLAIN.name(), &c, aim.target));
        }
    });
    Ok(rows)
}

/// Shared, without a writer.
fn shared(cores: Cores, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let limit = PthreadRwLock.name();
    let plain = || pairs(cores, PthreadRwLock, Shared, 0, PAIRS);
    let two = || pairs_together(cores, PthreadRwLock, PAIRS / 4);
    for_each_lock!(lock => {
        if is(lock, PthreadRwLock) {
            rows.push(Row::measured(&format!("{limit}, read pair"), Unit::Ns, &plain()?));
            rows.push(Row::measured(&format!("{limit}, two read at once"), Unit::Ns, &two()?));
        } else if lock.shares() {
            let goal = aim(lock, Target::AtMost(0.5), rounds);
            let c = interleave(goal.rounds, plain, || pairs(cores, lock, Shared, 0, PAIRS))?;
            let name = format!("{}, read pair", lock.name());
            rows.push(Row::compared(&name, Unit::Ns, limit, &c, goal.target));
            let goal = aim(lock, Target::AtMost(0.1), rounds);
            let c = interleave(goal.rounds, two, || pairs_together(cores, lock, PAIRS / 4))?;
            let name = format!("{}, two read at once", lock.name());
            rows.push(Row::compared(&name, Unit::Ns, limit, &c, goal.target));
        }
    });
    Ok(rows)
}

/// What a series of runs with rivals showed beside the rate.
#[derive(Default)]
struct Beside {
    shares: Vec<f64>,
    lost: u64,
}

/// Rates of `lock` against `limit`.
fn against<L: Lock, B: Lock>(
    cores: Cores,
    (limit, lock): (B, L),
    form: impl Form,
    load: Load,
    rounds: usize,
) -> Result<(Comparison, Beside)> {
    let mut beside = Beside::default();
    let c = interleave(
        rounds,
        || contended(cores, limit, form, load).map(|c| c.rate),
        || {
            let run = contended(cores, lock, form, load)?;
            beside.shares.push(run.share);
            beside.lost += run.lost;
            Ok::<_, outlive::Error>(run.rate)
        },
    )?;
    Ok((c, beside))
}

/// Two processes that both want it.
fn rivals(cores: Cores, rounds: usize, rows: &mut Vec<Row>, notes: &mut Vec<String>) -> Result<()> {
    let loads =
        [("no work", 0, 0), ("0.1 us in and out", 100, 100), ("0.1 us in, 1 out", 100, 1000)];
    for (n, (what, inside_ns, outside_ns)) in loads.into_iter().enumerate() {
        let load = Load { processes: 2, inside_ns, outside_ns };
        for_each_lock!(lock => {
            // The others under the load in the middle only.
            if n == 1 || is(lock, OursMutex) || is(lock, PLAIN) {
                let goal = aim(lock, Target::AtLeast(1.0), rounds);
                let (c, beside) = against(cores, (PLAIN, lock), Alone, load, goal.rounds)?;
                let name = format!("{}, two, {what}", lock.name());
                let target = if is(lock, OursMutex) { goal.target } else { Target::None };
                rows.push(Row::compared(&name, Unit::PerSecond, PLAIN.name(), &c, target));
                let shares = Samples::new(beside.shares);
                rows.push(Row::measured("  share of the busier", Unit::Share, &shares));
                if beside.lost > 0 {
                    let (name, lost) = (lock.name(), beside.lost);
                    notes.push(format!("{name}: {lost} turns had another one inside, no kill"));
                }
            }
        });
    }
    Ok(())
}

/// Eight processes that read.
fn readers(cores: Cores, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let load = measure::Load { processes: 8, inside_ns: 100, outside_ns: 100 };
    for_each_lock!(lock => {
        if lock.shares() && !is(lock, PthreadRwLock) {
            let goal = aim(lock, Target::AtLeast(1.0), rounds);
            let (c, _) = against(cores, (PthreadRwLock, lock), Shared, load, goal.rounds)?;
            let (name, limit) = (format!("{}, eight readers", lock.name()), PthreadRwLock.name());
            rows.push(Row::compared(&name, Unit::PerSecond, limit, &c, goal.target));
        }
    });
    Ok(rows)
}

/// From the SIGKILL of the holder to the next one inside, of locks that survive it.
fn deaths(cores: Cores, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let limit = ROBUST.name();
    let robust = || take_over(cores, ROBUST, DEATHS);
    // For who asks /proc a body that is not reaped lives.
    let _reaper = Reaper::kernel();
    for_each_lock!(lock => {
        let stays_locked = is(lock, PLAIN) || is(lock, PthreadRwLock);
        if !stays_locked && !is(lock, ROBUST) {
            let goal = aim(lock, Target::AtMost(1.1), rounds.min(10));
            let rounds = goal.rounds.min(if is_ours(lock) { 10 } else { 6 });
            let c = interleave(rounds, robust, || take_over(cores, lock, DEATHS))?;
            let name = format!("{}, SIGKILL to next", lock.name());
            rows.push(Row::compared(&name, Unit::Ns, limit, &c, goal.target));
        }
    });
    Ok(rows)
}

/// Each lock in the path of messages, against our topic.
pub(super) fn message_rows(cores: Cores, rounds: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for load in [messages::Load::Small, messages::Load::Large] {
        let name = format!("topic, {}", load.name());
        let topic = || messages::topic(cores, load);
        rows.push(Row::measured(&name, Unit::PerSecond, &topic()?));
        for_each_lock!(lock => {
            let rounds = rounds.min(ROUNDS_OF_OTHERS);
            let c = interleave(rounds, topic, || messages::ring(cores, lock, load))?;
            let ring = format!("ring, {}", lock.name());
            rows.push(Row::compared(&ring, Unit::PerSecond, &name, &c, Target::None));
        });
    }
    Ok(rows)
}

/// Random kills of each lock's holders, `kills` of each; and how to read them.
pub(super) fn kill_rows(kills: u64) -> Result<(Vec<Kills>, String)> {
    let mut rows = Vec::new();
    for_each_lock!(lock => rows.push(kills::of(lock, kills)?));
    Ok((rows, kills::NOTE.into()))
}
