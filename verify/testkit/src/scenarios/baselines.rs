//! Locks of all kinds, killed at every instruction of a turn: how many points are fatal to those
//! who come next. For baselines that is a figure, not a failure.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::compiler_fence;
use std::time::Duration;

use outlive_baselines::{Lock, SharedFile, Told, Use};

use super::text;
use crate::process::{Exit, fork_child};
use crate::slow;
use crate::sweep::{Gate, Outcome, Point, Report, Scenario, Suite};

/// The next one gets the lock within this time, or never.
const LIMIT: Duration = Duration::from_millis(300);
const STUCK: &str = "stuck: the next one never gets it";
const TORN: &str = "torn: the next one finds half a change and is not told";

/// One turn of a lock.
#[derive(Clone, Copy, Debug)]
pub struct Turn<L> {
    /// The lock.
    pub lock: L,
    /// For reading, else alone.
    pub shared: bool,
}

/// What keeps the lock going, and the two words that change together.
#[derive(Debug)]
pub struct World<K> {
    _keeper: K,
}

fn data(dir: &Path) -> Result<SharedFile, String> {
    SharedFile::open(&dir.join("data")).map_err(text)
}

impl<L: Lock> Scenario for Turn<L> {
    type World = World<L::Keeper>;

    fn name(&self) -> String {
        let form = if self.shared { "shared" } else { "alone" };
        format!("turn: {}, {form}", self.lock.name())
    }

    fn setup(&self, dir: &Path) -> Result<Self::World, String> {
        std::fs::create_dir_all(dir.join("lock")).map_err(|e| e.to_string())?;
        data(dir)?;
        Ok(World { _keeper: self.lock.make(&dir.join("lock")).map_err(text)? })
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let (open, data) = (self.lock.open(&dir.join("lock")).map_err(text)?, data(dir)?);
        let [a, b] = [data.word64(0), data.word64(8)];
        let turn = || {
            if self.shared {
                open.shared(|_| assert_eq!(a.load(Relaxed), b.load(Relaxed)));
            } else {
                open.alone(|_| {
                    a.store(a.load(Relaxed) + 1, Relaxed);
                    compiler_fence(std::sync::atomic::Ordering::SeqCst);
                    b.store(b.load(Relaxed) + 1, Relaxed);
                });
            }
        };
        turn();
        gate.enter();
        turn();
        gate.leave();
        std::mem::forget((open, data));
        Ok(())
    }

    fn survivor(&self, dir: &Path, _: &mut Self::World, _: &Point) -> Result<Outcome, String> {
        let next = fork_child(|| {
            let (Ok(open), Ok(data)) = (self.lock.open(&dir.join("lock")), data(dir)) else {
                return 2;
            };
            let mut code = 3;
            open.alone(|told| {
                let whole = data.word64(0).load(Relaxed) == data.word64(8).load(Relaxed);
                code = match (told, whole) {
                    (Told::OwnerDied, _) => 10,
                    (Told::Nothing, true) => 11,
                    (Told::Nothing, false) => 12,
                };
            });
            code
        });
        match next.map_err(|e| e.to_string())?.wait_timeout(LIMIT * slow::times()) {
            None => Err(STUCK.into()),
            Some(Exit::Code(10)) => Ok("owner died"),
            Some(Exit::Code(11)) => Ok("whole"),
            Some(Exit::Code(12)) => Err(TORN.into()),
            Some(exit) => Err(format!("the next one failed: {exit}")),
        }
    }
}

/// Sweeps a turn of `lock`; one line each for alone and shared. Returns how many points were fatal.
pub fn fatal_points<L: Lock>(suite: &Suite, lock: L) -> u64 {
    let mut fatal = 0;
    for shared in [false, true] {
        if shared && !lock.shares() {
            continue;
        }
        let Some(report) = suite.figures(&Turn { lock, shared }) else { continue };
        let of = |what: &str| report.failures.iter().filter(|f| f.what == what).count();
        let (stuck, torn) = (of(STUCK), of(TORN));
        let form = if shared { "shared" } else { "alone" };
        println!(
            "fatal points: {}, {form}: {} of {} ({stuck} stuck, {torn} torn untold){}",
            lock.name(),
            report.failure_count,
            report.covered,
            others(&report, stuck + torn)
        );
        fatal += report.failure_count;
    }
    fatal
}

/// What went wrong beside that.
fn others(report: &Report, known: usize) -> String {
    let other = |f: &&crate::sweep::Failure| f.what != STUCK && f.what != TORN;
    match report.failures.iter().find(other) {
        Some(failure) if report.failure_count as usize > known => {
            format!("; {}: {}", failure.place().code(), failure.what)
        }
        _ => String::new(),
    }
}
