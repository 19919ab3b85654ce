//! The instructions of one run, and the quickest way back to any of them.

use super::arch;
use super::gate::{Control, Phase};
use super::tracee::{Stop, Tracee};
use std::collections::HashMap;

/// Marks an entry that a breakpoint cannot single out.
const NO_ANCHOR: u32 = u32::MAX;

/// What kind of instruction sits at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Syscall,
    /// Repeats itself; its length in bytes.
    Repeat(u64),
}

/// Instructions executed between two system calls (or in the whole operation).
///
/// Entry `i` is the address of the instruction that runs as step `i`. A repeating string
/// instruction has two entries: its first iteration and all the others.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    addresses: Vec<u64>,
    /// How often the address ran before, in this segment.
    earlier: Vec<u32>,
    runs: HashMap<u64, u32>,
    /// Number of the system call that ends the segment.
    pub(crate) syscall: Option<i64>,
    /// Steps after which shared bytes differed from before.
    pub(crate) changes: Vec<u64>,
}

impl Segment {
    pub(crate) fn len(&self) -> u64 {
        self.addresses.len() as u64
    }

    /// Adds the instruction about to run; true when it is the rest of a repeating one.
    pub(crate) fn push(&mut self, address: u64, kind: Kind) -> bool {
        let rest = matches!(kind, Kind::Repeat(_)) && self.addresses.last() == Some(&address);
        let earlier = if rest {
            NO_ANCHOR
        } else {
            let runs = self.runs.entry(address).or_insert(0);
            *runs += 1;
            *runs - 1
        };
        self.addresses.push(address);
        self.earlier.push(earlier);
        rest
    }

    /// The cheapest entry to run to at full speed before stepping to `target`.
    fn anchor(&self, target: usize) -> usize {
        let (mut best, mut cost) = (0, target);
        for at in (0..=target.min(self.addresses.len().saturating_sub(1))).rev() {
            let steps = target - at;
            if steps >= cost || at == 0 {
                break;
            }
            // One stop for each earlier run of the address, and the breakpoint itself.
            let price = steps.saturating_add(self.earlier[at] as usize).saturating_add(3);
            if self.earlier[at] != NO_ANCHOR && price < cost {
                (best, cost) = (at, price);
            }
        }
        best
    }

    /// Takes a tracee at the start of the segment to `target`; `jump` allows breakpoints.
    pub(crate) fn reach(
        &self,
        tracee: &mut Tracee,
        control: &Control,
        target: u64,
        jump: bool,
    ) -> Stop {
        let target = target as usize;
        let anchor = self.anchor(target);
        if !jump || anchor == 0 {
            return self.walk(tracee, control, target);
        }
        let hits = self.earlier[anchor] + 1;
        let left = || control.phase() == Phase::Left;
        let mut stop = tracee.run_to(self.addresses[anchor], hits, left);
        for at in anchor..target {
            if stop != Stop::Trap || left() {
                break;
            }
            stop = advance(tracee, self.addresses[at], self.is_rest(at));
        }
        stop
    }

    /// Steps to `target`: to its address, run as often as in the recorded run.
    ///
    /// Counting steps would miss: code that looks at the clock takes another path each time.
    fn walk(&self, tracee: &mut Tracee, control: &Control, target: usize) -> Stop {
        // The end of the segment, and the rest of a repeating instruction, have no address of their
        // own: go to the entry before.
        let known = target.min(self.addresses.len().saturating_sub(1));
        let entry = if self.is_rest(known) { known - 1 } else { known };
        let Some(&address) = self.addresses.get(entry) else { return Stop::Trap };
        let mut hits_left = self.earlier[entry];
        let mut budget = 4 * self.len() + 10_000;
        let mut last = None;
        let mut at = tracee.instruction_pointer();
        while at != address || hits_left > 0 {
            // Entries that repeat themselves count once.
            hits_left -= u32::from(at == address && last != Some(at));
            let stop = advance(tracee, at, last == Some(at));
            if stop != Stop::Trap || control.phase() == Phase::Left || budget == 0 {
                return stop;
            }
            budget -= 1;
            last = Some(at);
            at = tracee.instruction_pointer();
        }
        for at in entry..target {
            let stop = advance(tracee, self.addresses[at], self.is_rest(at));
            if stop != Stop::Trap {
                return stop;
            }
        }
        Stop::Trap
    }

    fn is_rest(&self, entry: usize) -> bool {
        self.earlier.get(entry) == Some(&NO_ANCHOR)
    }

    /// True when a tracee that reached `target` stands where the recorded run stood.
    pub(crate) fn is_at(&self, tracee: &Tracee, target: u64) -> bool {
        self.addresses.get(target as usize).is_none_or(|&a| a == tracee.instruction_pointer())
    }
}

/// Executes one entry of a trace: one instruction, or all further iterations of a repeating one.
pub(crate) fn advance(tracee: &mut Tracee, address: u64, rest_of_repeat: bool) -> Stop {
    let repeat = if rest_of_repeat { arch::repeat_bytes(tracee.code(address)) } else { None };
    let Some(bytes) = repeat else { return tracee.step() };
    let mut stop = tracee.run_to(address + bytes, 1, || false);
    // No breakpoints here: iterate. Bounded by the length of the string.
    while stop == Stop::Trap && tracee.instruction_pointer() == address {
        stop = tracee.step();
    }
    stop
}

/// Remembers what kind of instruction each address holds.
#[derive(Debug, Default)]
pub(crate) struct Kinds(HashMap<u64, Kind>);

impl Kinds {
    pub(crate) fn at(&mut self, tracee: &Tracee, address: u64) -> Kind {
        *self.0.entry(address).or_insert_with(|| {
            let code = tracee.code(address);
            match arch::repeat_bytes(code) {
                Some(bytes) => Kind::Repeat(bytes),
                None if arch::is_syscall(code) => Kind::Syscall,
                None => Kind::Plain,
            }
        })
    }
}
