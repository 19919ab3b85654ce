//! What a round does: whom a fault hits, how, where and when.

use robot::cell::{GUARD, STAGES};

use super::parts::Form;

/// Whom it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Victim {
    /// The first stage.
    Planner,
    /// The second.
    Ik,
    /// The third.
    #[value(name = "ethercat")]
    EtherCat,
    /// The process beside.
    Guard,
}

impl Victim {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Planner, Self::Ik, Self::EtherCat, Self::Guard];

    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guard => GUARD,
            stage => STAGES[stage as usize],
        }
    }
}

/// What hits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP; it is continued once the drives stand, to see that nothing moves them then.
    Stop,
    /// An endless loop.
    Loop,
    /// A pose that is not a number; of the planner only.
    #[value(name = "nan")]
    NotANumber,
    /// A pose far from the one before; of the planner only.
    Jump,
    /// SIGKILL, and once the drives stand a supervisor starts the part again: it must find its
    /// place, and move nothing.
    #[value(name = "replaced")]
    Replace,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Kill, Self::Stop, Self::Loop, Self::NotANumber, Self::Jump, Self::Replace];

    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "SIGKILL",
            Self::Stop => "SIGSTOP",
            Self::Loop => "endless loop",
            Self::NotANumber => "NaN",
            Self::Jump => "jump",
            Self::Replace => "replaced",
        }
    }

    pub(super) fn order(self) -> u64 {
        match self {
            Self::Kill | Self::Replace => 1,
            Self::Stop => 2,
            Self::Loop => 3,
            Self::NotANumber => 4,
            Self::Jump => 5,
        }
    }

    pub(super) fn signal(self) -> Option<i32> {
        match self {
            Self::Kill | Self::Replace => Some(libc::SIGKILL),
            Self::Stop => Some(libc::SIGSTOP),
            _ => None,
        }
    }
}

/// Where in its cycle the fault hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The stage does it itself: before (0), in the middle of (1), after (2) its work.
    Phase(u64),
    /// A signal from outside, at any instant.
    Anywhere,
}

/// When it hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// While the drives are being enabled: nothing has moved yet.
    Enabling,
    /// Some commands after they began to move.
    Moving,
}

/// What one round does.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How the stages are spread.
    pub form: Form,
    /// Whom it hits.
    pub victim: Victim,
    /// What.
    pub fault: Fault,
    /// Where.
    pub moment: Moment,
    /// When.
    pub when: When,
    /// The period, ns.
    pub period_ns: u64,
    /// Whether there are lifelines and a guard.
    pub lifeline: bool,
    /// SCHED_FIFO priority, 0 for none.
    pub priority: u8,
    /// How much later than that, ns.
    pub run_ns: u64,
}
