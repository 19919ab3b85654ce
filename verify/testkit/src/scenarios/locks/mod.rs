//! Locks, killed at every instruction: of taking, letting go, taking over, repairing.
//!
//! | file | what |
//! |---|---|
//! | here | what must come of each operation |
//! | `op` | the operations |
//! | `victim` | does one |
//! | `opened` | the locks that it and the survivors have open |
//! | `survivors` | hold what it wants, wait for what it has, look at what it leaves |

mod op;
mod opened;
mod survivors;
mod victim;

use std::path::Path;

use super::{audit, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};
pub use op::Op;
use opened::Data;
pub use survivors::Survivors;
use survivors::{Wanted, leave_the_dead, permit, read, take, take_pi, write};

/// Sleeps of the survivors: a lost wake is a hang, not a delay.
const SLICE_NS: u64 = 600_000_000_000;

/// What a survivor waits for while the victim is at that.
fn wanted(op: Op) -> Option<Wanted> {
    match op {
        Op::UnlockWanted => Some(Wanted::Mutex),
        Op::PiUnlockWanted => Some(Wanted::Pi),
        Op::ReadWanted => Some(Wanted::Write),
        Op::WriteWanted => Some(Wanted::Read),
        Op::PermitWanted => Some(Wanted::Permit),
        Op::Notify => Some(Wanted::Change),
        _ => None,
    }
}

impl Scenario for Op {
    type World = Survivors;

    fn name(&self) -> String {
        let name = format!("{self:?}");
        let words = name.chars().enumerate().flat_map(|(i, c)| {
            let space = (c.is_uppercase() && i > 0).then_some(' ');
            space.into_iter().chain(c.to_lowercase())
        });
        format!("lock: {}", words.collect::<String>())
    }

    fn must_see(&self) -> &[Outcome] {
        match self {
            Self::Mutex | Self::PiMutex | Self::Write => &["before", "owner died", "after"],
            Self::UnlockWanted | Self::PiUnlockWanted | Self::WriteWanted => {
                &["owner died", "after"]
            }
            Self::TakeOver | Self::PiTakeOver | Self::WriteOver => &["owner died", "after"],
            Self::GiveUp => &["owner died", "given up"],
            Self::Permit => &["free", "owner died"],
            Self::Set => &["absent", "present"],
            _ => &[],
        }
    }

    fn setup(&self, dir: &Path) -> Result<Survivors, String> {
        outlive::internals::set_slice_ns_max(SLICE_NS);
        let inherits = [Self::TakeOver, Self::GiveUp, Self::PiTakeOver, Self::WriteOver];
        if inherits.contains(self) || *self == Self::PermitOver {
            leave_the_dead(dir)?;
        }
        let held = match self {
            Self::MutexInVain => Some(Wanted::Mutex),
            Self::PiInVain => Some(Wanted::Pi),
            Self::WriteInVain => Some(Wanted::Read),
            Self::PermitInVain => Some(Wanted::Permit),
            _ => None,
        };
        Survivors::open(dir, held)
    }

    fn at_gate(&self, dir: &Path, world: &mut Survivors) -> Result<(), String> {
        wanted(*self).map_or(Ok(()), |wanted| world.wait_for(dir, wanted))
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        victim::act(*self, dir, gate)
    }

    fn survivor(&self, dir: &Path, world: &mut Survivors, at: &Point) -> Result<Outcome, String> {
        let waited = world.end_waits()?;
        let locks = &world.locks;
        let outcome = match (self, waited) {
            (_, Some(outcome)) => outcome,
            (Self::Mutex | Self::TakeOver | Self::GiveUp, _) => take(&locks.mutex)?,
            (Self::PiMutex | Self::PiTakeOver | Self::PiInVain, _) => take_pi(&locks.pi)?,
            (Self::Write | Self::WriteOver, _) => read(&locks.rwlock)?,
            (Self::Permit | Self::PermitOver, _) => permit(&locks.semaphore)?,
            (Self::Set, _) => {
                if locks.set.remove(7) {
                    "present"
                } else {
                    "absent"
                }
            }
            (Self::LargeSet, _) => {
                let there = locks.large.contains(1 << 40);
                if there != locks.large.ids().contains(&(1 << 40)) || (at.finished && !there) {
                    return Err("the set and its members disagree".into());
                }
                if there { "present" } else { "absent" }
            }
            (Self::Create, _) => {
                let mutex = world.node.mutex::<Data>("/sweep/new").map_err(text)?;
                let rwlock = world.node.rwlock::<Data>("/sweep/new-too").map_err(text)?;
                if write(&rwlock)? != "before" {
                    return Err("a reader changed something".into());
                }
                take(&mutex)?
            }
            _ => "goes on",
        };
        let undone = outcome == "before" && self.changes();
        if at.finished && (undone || outcome == "owner died") {
            return Err(format!("it was finished, yet: {outcome}"));
        }
        if outcome == "owner died" && matches!(self, Self::Read | Self::ReadWanted) {
            return Err("a reader's death was taken for a writer's".into());
        }
        audit(dir)?;
        world.all_works(dir, *self == Self::GiveUp)?;
        audit(dir)?;
        Ok(outcome)
    }

    fn teardown(&self, dir: &Path, world: Survivors) -> Result<(), String> {
        drop(world);
        nothing_left(dir)
    }
}
