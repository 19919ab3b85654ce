//! What came of a round: the drives' log against the moment of the fault.

use outlive::rt::{Cause, Latch};
use robot::cell::CellOptions;
use robot::drive::{Record, Sender};

use super::drives::Watched;
use super::plan::{Fault, Plan};

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A command of the safe state came, and no drive follows.
    Told,
    /// None came in time: the drives' own watchdog stopped them.
    Watchdog,
    /// A drive still follows, or nobody told them anything.
    Never,
    /// The part that was started again did not find its place.
    NotReplaced,
    /// The robot had tripped before the fault: the round says nothing.
    TooEarly,
}

impl End {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Watchdog => "watchdog",
            Self::Never => "never",
            Self::NotReplaced => "not replaced",
            Self::TooEarly => "too early",
        }
    }
}

/// For how long those who had to act did not run, ns: time that the machine took, not the design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// The harness, between reading the clock and the signal.
    pub strike_ns: u64,
    /// The one who told the drives first woke up so much later than it should have looked.
    pub find_ns: u64,
    /// The same, between finding the cause and sending the command.
    pub act_ns: u64,
    /// The drives' thread ticked so much later than its sixteenth of a period.
    pub take_ns: u64,
}

impl Gaps {
    /// All of them together.
    pub fn sum_ns(&self) -> u64 {
        self.strike_ns + self.find_ns + self.act_ns + self.take_ns
    }
}

/// What came of a round.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How it ended.
    pub end: End,
    /// From the fault until the drives took the first command of the safe state, ns.
    pub safe_ns: Option<u64>,
    /// The same for the first quick-stop.
    pub quick_stop_ns: Option<u64>,
    /// Of `safe_ns`, when those who had to act did not run.
    pub gaps: Gaps,
    /// Commands after the first of the safe state that gave a drive a new target or enabled one,
    /// or that moved a motor after the quick-stop. None is right.
    pub moved_after: u64,
    /// Commands older than a period and a deadline that moved a motor.
    pub stale_moves: u64,
    /// Why, by the core's and the guard's lifeline.
    pub causes: [Option<Cause>; 2],
    /// Where the victim was hit.
    pub hit: String,
}

/// When and where the fault hit.
#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) at_ns: u64,
    /// How long the harness took for it.
    pub(super) took_ns: u64,
    /// When the killed or stopped process last moved: from then on it did not.
    pub(super) moved_ns: u64,
    pub(super) place: String,
    /// Whether the part that was started again works.
    pub(super) replaced: Option<bool>,
}

impl Verdict {
    /// Of a robot that had tripped before.
    pub(super) fn too_early(latches: [Option<Latch>; 2]) -> Self {
        Self {
            end: End::TooEarly,
            safe_ns: None,
            quick_stop_ns: None,
            gaps: Gaps::default(),
            moved_after: 0,
            stale_moves: 0,
            causes: latches.map(|latch| latch.map(|l| l.cause)),
            hit: String::new(),
        }
    }

    /// Time to the safe state less the time that those who had to act did not run, ns.
    pub fn net_ns(&self) -> Option<u64> {
        Some(self.safe_ns?.saturating_sub(self.gaps.sum_ns()))
    }
}

/// Judges a round; `latches` are those of the core and of the guard.
pub(super) fn judge(
    plan: &Plan,
    options: &CellOptions,
    watched: &Watched,
    latches: [Option<Latch>; 2],
    hit: &Hit,
) -> Verdict {
    let log = watched.drives.log();
    let first = |step: u64| log.iter().position(|r| r.step >= step);
    let (safe, quick) = (first(1), first(2));
    // A signal takes effect when the kernel gets to it.
    let hit_ns = hit.at_ns.max(hit.moved_ns);
    let after = |at: Option<usize>| at.map(|at| log[at].at_ns.saturating_sub(hit_ns));
    let wrong = |at: &usize| {
        let enabled = log[*at].follows && !log[*at - 1].follows;
        log[*at].new_target || enabled || (quick.is_some_and(|q| *at >= q) && log[*at].moved)
    };
    let stale = |r: &&Record| {
        let old = r.at_ns > r.planned_ns + options.age_ns_max();
        r.moved && r.at_ns > hit_ns && old && r.step == 0
    };
    let before = |latch: &Latch| latch.at_ns < hit.at_ns;
    let end = match safe {
        _ if latches.iter().flatten().any(before) => End::TooEarly,
        _ if watched.drives.follow() => End::Never,
        _ if hit.replaced == Some(false) => End::NotReplaced,
        Some(_) => End::Told,
        None if watched.watchdog => End::Watchdog,
        None => End::Never,
    };
    let moved_after = safe.map_or(0, |safe| (safe + 1..log.len()).filter(wrong).count());
    Verdict {
        end,
        safe_ns: after(safe),
        quick_stop_ns: after(quick),
        gaps: safe.map(|at| gaps(options, watched, latches, hit, at)).unwrap_or_default(),
        moved_after: moved_after as u64,
        stale_moves: log.iter().filter(stale).count() as u64,
        causes: latches.map(|latch| latch.map(|l| l.cause)),
        hit: match plan.fault {
            Fault::NotANumber | Fault::Jump => plan.fault.name().into(),
            _ => hit.place.clone(),
        },
    }
}

/// Who did not run between the fault and the first command of the safe state.
fn gaps(
    options: &CellOptions,
    watched: &Watched,
    latches: [Option<Latch>; 2],
    hit: &Hit,
    safe: usize,
) -> Gaps {
    let (record, sent_ns) = (&watched.drives.log()[safe], watched.sent_ns[safe]);
    let (latch, look_ns) = match record.sender {
        Sender::Master => (latches[0], options.input_limit_ns(2)),
        Sender::Guard => (latches[1], options.deadline_ns()),
    };
    let (mut find_ns, mut act_ns) = (0, 0);
    if let Some(latch) = latch {
        let due_ns = options.start_ns + latch.cycle * options.period_ns + look_ns;
        find_ns = latch.at_ns.saturating_sub(due_ns.max(hit.at_ns).max(hit.moved_ns));
        act_ns = sent_ns.saturating_sub(latch.at_ns);
    }
    let take_ns = watched.late_between(sent_ns, record.at_ns);
    let strike_ns = (hit.at_ns + hit.took_ns).saturating_sub(hit.at_ns.max(hit.moved_ns));
    Gaps { strike_ns, find_ns, act_ns, take_ns }
}
