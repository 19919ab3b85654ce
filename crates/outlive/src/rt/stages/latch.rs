//! What a lifeline tripped on, and how far its actions are, as words of its board.
#![deny(unsafe_code)]

use std::fmt;

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

/// Why a lifeline tripped.
///
/// # Examples
/// ```
/// use outlive::rt::{Board, Cause, Lifeline, NOBODY};
///
/// let mut lifeline = Lifeline::new(Board::heap());
/// lifeline.trip(Cause::Bus, NOBODY, outlive::now_ns(), 0); // the drives do not answer
/// let cause = lifeline.latch().expect("tripped just now").cause;
/// let remedy = match cause {
///     Cause::Died | Cause::Silent => "start its process again",
///     Cause::Bus => "check the cables",
///     _ => "read the log",
/// };
/// assert_eq!(format!("{cause}: {remedy}"), "bus fault: check the cables");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Cause {
    /// Its process died.
    Died = 1,
    /// It has not moved for too long: hung, stopped or starved.
    Silent = 2,
    /// It has not handed its cycle on by the deadline.
    MissedDeadline = 3,
    /// Its data is too old.
    Stale = 4,
    /// A command is NaN or infinite.
    NotFinite = 5,
    /// A command is outside its range, or too far from the previous one.
    OutOfRange = 6,
    /// Its own lifeline has tripped.
    Told = 7,
    /// The field bus answered wrongly.
    Bus = 8,
    /// A person or a program asked for it.
    Asked = 9,
}

impl Cause {
    fn from_raw(raw: u8) -> Self {
        match raw {
            1 => Self::Died,
            2 => Self::Silent,
            3 => Self::MissedDeadline,
            4 => Self::Stale,
            5 => Self::NotFinite,
            6 => Self::OutOfRange,
            7 => Self::Told,
            8 => Self::Bus,
            _ => Self::Asked,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Died => "died",
            Self::Silent => "silent",
            Self::MissedDeadline => "missed its deadline",
            Self::Stale => "stale",
            Self::NotFinite => "not finite",
            Self::OutOfRange => "out of range",
            Self::Told => "tripped itself",
            Self::Bus => "bus fault",
            Self::Asked => "asked for",
        })
    }
}

/// The action under way.
///
/// # Examples
/// ```
/// # use outlive::rt::SafeState;
/// # struct Arm;
/// # impl SafeState for Arm {
/// #     fn hold(&mut self) {}
/// #     fn quick_stop(&mut self) {}
/// #     fn brake(&mut self) {}
/// # }
/// use outlive::rt::{Board, Cause, Lifeline, NOBODY, Step};
///
/// let mut lifeline = Lifeline::new(Board::heap());
/// assert_eq!(lifeline.step(1_000_000, 1, &mut Arm), Step::Run); // send the command
/// lifeline.trip(Cause::Asked, NOBODY, 1_500_000, 1);
/// let step = lifeline.step(2_000_000, 2, &mut Arm); // `Arm` acts instead
/// assert!(step > Step::Run && step < Step::Brake); // in the order of the variants
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Step {
    /// All is well.
    Run = 0,
    /// Stay where you are.
    Hold = 1,
    /// Come to a stop as fast as the drives can, under control.
    QuickStop = 2,
    /// Brakes on, power off.
    Brake = 3,
}

/// The first cause, as recorded in shared memory.
///
/// # Examples
/// ```
/// use outlive::rt::{Board, Cause, Latch, Lifeline, Step};
///
/// let mut lifeline = Lifeline::new(Board::heap());
/// lifeline.fresh("plan", 2_000_000); // subject 0
/// lifeline.trip(Cause::Stale, 0, 3_000_000, 7);
/// let seen = lifeline.board().view(); // of any process
/// let Latch { cause, subject, step, cycle, at_ns, .. } = seen.latch().expect("it tripped");
/// assert_eq!((cause, subject, step), (Cause::Stale, 0, Step::Hold));
/// assert_eq!((cycle, at_ns), (7, 3_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Latch {
    /// Why.
    pub cause: Cause,
    /// Which subject it is about: its place in the order in which subjects were given to the
    /// lifeline, from 0; 255 for none of them.
    pub subject: u8,
    /// The action that has been reached.
    pub step: Step,
    /// The cycle in which it was found.
    pub cycle: u64,
    /// When, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// Its words: cause, subject and step, 0 while it is clear; when; in which cycle.
const WHAT: usize = 0;
const AT_NS: usize = 1;
const CYCLE: usize = 2;

/// The subject of a cause that is about none of the given ones.
pub const NOBODY: u8 = 255;

impl Latch {
    /// # Crash safety
    /// **Strict.** Commit point: the last store.
    pub(in crate::rt) fn store(self, words: &[AtomicU64]) {
        words[AT_NS].store(self.at_ns, Relaxed);
        words[CYCLE].store(self.cycle, Relaxed);
        let word = (self.step as u64) << 16 | u64::from(self.subject) << 8 | self.cause as u64;
        // ORDERING(LATCH): pairs with `load`; carries time and cycle.
        words[WHAT].store(word, Release);
    }

    /// # Crash safety
    /// **Strict.** One store.
    pub(in crate::rt) fn clear(words: &[AtomicU64]) {
        words[WHAT].store(0, Release);
    }

    #[inline]
    pub(in crate::rt) fn load(words: &[AtomicU64]) -> Option<Self> {
        // ORDERING(LATCH): pairs with `store`.
        let word = words[WHAT].load(Acquire);
        if word == 0 {
            return None;
        }
        let step = match word >> 16 & 0xff {
            1 => Step::Hold,
            2 => Step::QuickStop,
            _ => Step::Brake,
        };
        Some(Self {
            cause: Cause::from_raw(word as u8),
            subject: (word >> 8) as u8,
            step,
            at_ns: words[AT_NS].load(Relaxed),
            cycle: words[CYCLE].load(Relaxed),
        })
    }
}
