//! Locks, killed at every instruction: of taking, letting go, taking over, repairing.
//!
//! | file | what |
//! |---|---|
//! | here | the operations, and what must come of each |
//! | `victim` | does one |
//! | `survivors` | hold what it wants, wait for what it has, look at what it leaves |

mod survivors;
mod victim;

use std::path::Path;

use super::{audit, nothing_left, text};
use crate::sweep::{Gate, Outcome, Point, Scenario};
pub use survivors::Survivors;
use survivors::{Wanted, leave_the_dead, permit, read, take, take_pi, write};

/// Two words that change together.
type Data = [u64; 2];

/// Sleeps of the survivors: a lost wake is a hang, not a delay.
const SLICE_NS: u64 = 600_000_000_000;

/// What the victim does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes a free mutex, changes the data, lets go.
    Mutex,
    /// Lets go of a mutex that a survivor sleeps for.
    UnlockWanted,
    /// Takes a mutex over from a dead process, repairs it, lets go.
    TakeOver,
    /// Takes it over and gives it up.
    GiveUp,
    /// Waits for a mutex that a survivor holds, in vain.
    MutexInVain,
    /// As `Mutex`, with priority inheritance.
    PiMutex,
    /// As `UnlockWanted`, with priority inheritance.
    PiUnlockWanted,
    /// As `TakeOver`, with priority inheritance.
    PiTakeOver,
    /// As `MutexInVain`, with priority inheritance.
    PiInVain,
    /// Reads.
    Read,
    /// Ends reading while a writer waits.
    ReadWanted,
    /// Takes a reader/writer lock for writing, changes the data, lets go.
    Write,
    /// Ends writing while a reader waits.
    WriteWanted,
    /// Waits for a survivor to end reading, in vain.
    WriteInVain,
    /// Takes a reader/writer lock over from a dead writer.
    WriteOver,
    /// Takes a permit and gives it back.
    Permit,
    /// Gives a permit back that a survivor sleeps for.
    PermitWanted,
    /// Takes a dead process's permit over.
    PermitOver,
    /// Waits for a permit in vain.
    PermitInVain,
    /// Puts an id into a small set and takes it out.
    Set,
    /// Puts an id into a large set that is nearly full.
    LargeSet,
    /// Notifies a sleeping survivor.
    Notify,
    /// Makes a lock, registers as a thread, takes it for the first time.
    Create,
    /// Leaves with locks that it used.
    Leave,
}

impl Op {
    /// Short operations, for sweeps of every instruction.
    pub const HOT: [Self; 16] = [
        Self::Mutex,
        Self::UnlockWanted,
        Self::TakeOver,
        Self::GiveUp,
        Self::PiMutex,
        Self::PiUnlockWanted,
        Self::PiTakeOver,
        Self::Read,
        Self::ReadWanted,
        Self::Write,
        Self::WriteWanted,
        Self::WriteOver,
        Self::Permit,
        Self::PermitWanted,
        Self::PermitOver,
        Self::Set,
    ];
    /// Operations that wait or make files, for sweeps of system calls and changes.
    pub const LONG: [Self; 8] = [
        Self::MutexInVain,
        Self::PiInVain,
        Self::WriteInVain,
        Self::PermitInVain,
        Self::LargeSet,
        Self::Notify,
        Self::Create,
        Self::Leave,
    ];

    /// What a survivor waits for while the victim is at it.
    fn wanted(self) -> Option<Wanted> {
        match self {
            Self::UnlockWanted => Some(Wanted::Mutex),
            Self::PiUnlockWanted => Some(Wanted::Pi),
            Self::ReadWanted => Some(Wanted::Write),
            Self::WriteWanted => Some(Wanted::Read),
            Self::PermitWanted => Some(Wanted::Permit),
            Self::Notify => Some(Wanted::Change),
            _ => None,
        }
    }
}

fn say(error: impl std::fmt::Display) -> String {
    error.to_string()
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
        self.wanted().map_or(Ok(()), |wanted| world.wait_for(dir, wanted))
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

impl Op {
    /// Whether the data or somebody's knowledge is another once it is finished.
    fn changes(self) -> bool {
        use Op::{Create, Mutex, Notify, TakeOver, UnlockWanted, Write, WriteOver, WriteWanted};
        use Op::{PiMutex, PiTakeOver, PiUnlockWanted};
        matches!(
            self,
            Mutex | UnlockWanted | TakeOver | Write | WriteWanted | WriteOver | Create | Notify
        ) || matches!(self, PiMutex | PiUnlockWanted | PiTakeOver)
    }
}
