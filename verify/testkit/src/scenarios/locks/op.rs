//! What a victim does.

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

    /// Whether the data or somebody's knowledge is another once it is finished.
    pub(super) fn changes(self) -> bool {
        use Op::{Create, Mutex, Notify, TakeOver, UnlockWanted, Write, WriteOver, WriteWanted};
        use Op::{PiMutex, PiTakeOver, PiUnlockWanted};
        matches!(
            self,
            Mutex | UnlockWanted | TakeOver | Write | WriteWanted | WriteOver | Create | Notify
        ) || matches!(self, PiMutex | PiUnlockWanted | PiTakeOver)
    }
}
