//! Time stamps from the TSC, kept on CLOCK_MONOTONIC.
//!
//! # Theory of operation
//! A line `ns = base_ns + (tsc - base_tsc) * mult >> 32` predicts CLOCK_MONOTONIC. Every 2^28
//! cycles (about 0.1 s) the caller who notices takes a fresh pair (tsc, clock) and lays the next
//! line: it starts where the old one ended, so time never goes back, and aims at the true clock one
//! period on. The rate is the measured one of the last period: no frequency has to be known,
//! start-up costs nothing (the first 2^24 cycles use the clock itself), NTP's slewing is followed.
//!
//! Two processes agree as closely as each agrees with the clock: within 0.4 us over 1e8 stamps of
//! two busy processes; while the kernel changes its rate, by that change over one period (10 ppm of
//! 0.1 s = 1 us); up to 5 us in the period after the very first rate if that was measured badly.
//! Cost on the same machine: 8.7 ns, of which the TSC itself is 7.9; the clock is 17.5.
//!
//! Lines are kept in two slots: readers use the current one while the other is written, so nobody
//! ever waits. Used only where the kernel itself keeps time by the TSC; a TSC that disagrees with
//! the clock by more than 1000 ppm, period after period, is given up for good.
#![allow(unsafe_code)]

use super::monotonic::raw_ns;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Cycles after which a line is renewed; `delta * mult` of twice this fits 64 bits down to a TSC
/// of 0.25 GHz.
const PERIOD: u64 = 1 << 28;
/// How far a line is used beyond its period when the clock could not be read in peace.
const OVERTIME: u64 = PERIOD / 16;
/// Cycles over which the first rate is measured: 6 ms at 2.7 GHz.
const FIRST: u64 = 1 << 24;
/// A pair read slower than this many cycles was interrupted and is not used.
const PAIR_MAX: u64 = 1000;
/// Cores' counters may differ by less than this.
const SKEW: u64 = 1 << 12;
/// An error beyond this many ns forward is jumped over instead of slewed.
const JUMP_NS: i64 = 20_000;
/// Bad pairs and bad rates in a row before the TSC is given up.
const STRIKES_MAX: u64 = 16;

const UNKNOWN: u32 = 0;
const ON: u32 = 1;
const OFF: u32 = 2;

#[derive(Clone, Copy)]
struct Line {
    base_tsc: u64,
    base_ns: u64,
    /// ns per cycle, 32 fraction bits; 0 = no line.
    mult: u64,
}

impl Line {
    const NONE: Self = Self { base_tsc: 0, base_ns: 0, mult: 0 };

    /// The time `delta` cycles after its start; `delta` is at most twice the period.
    #[inline]
    fn at(self, delta: u64) -> u64 {
        self.base_ns + ((delta * self.mult) >> 32)
    }

    /// The time at `tsc` when the line should have been renewed but cannot be.
    fn overtime(self, tsc: u64) -> u64 {
        let delta = tsc.wrapping_sub(self.base_tsc);
        if self.mult != 0 && delta < PERIOD + OVERTIME { self.at(delta) } else { raw_ns() }
    }

    /// The next line, through the true pair (tsc, ns), at the measured rate.
    fn continued(self, tsc: u64, ns: u64, rate: u64) -> Self {
        let delta = tsc.wrapping_sub(self.base_tsc);
        let reached = self.at(delta.min(2 * PERIOD));
        let error = ns as i64 - reached as i64;
        if delta >= 2 * PERIOD || error > JUMP_NS {
            return Self { base_tsc: tsc, base_ns: ns.max(reached), mult: rate };
        }
        let bend = (i128::from(error) << 32) / i128::from(PERIOD);
        let rate = i128::from(rate);
        let mult = (rate + bend).clamp(rate / 2, rate * 2) as u64;
        Self { base_tsc: tsc, base_ns: reached, mult }
    }
}

struct Slot {
    base_tsc: AtomicU64,
    base_ns: AtomicU64,
    mult: AtomicU64,
}

/// Slot `turn & 1` is current. `busy` is held by whoever renews, and guards the fields below it.
struct Stamper {
    turn: AtomicU32,
    mode: AtomicU32,
    lines: [Slot; 2],
    busy: AtomicU32,
    pair_tsc: AtomicU64,
    pair_ns: AtomicU64,
    strikes: AtomicU64,
}

static STAMPER: Stamper = Stamper {
    turn: AtomicU32::new(0),
    mode: AtomicU32::new(UNKNOWN),
    lines: [const {
        Slot { base_tsc: AtomicU64::new(0), base_ns: AtomicU64::new(0), mult: AtomicU64::new(0) }
    }; 2],
    busy: AtomicU32::new(0),
    pair_tsc: AtomicU64::new(0),
    pair_ns: AtomicU64::new(0),
    strikes: AtomicU64::new(0),
};

/// See `clock::timestamp`.
#[inline]
pub(in crate::os) fn timestamp() -> u64 {
    let line = current();
    if line.mult != 0 {
        let delta = rdtsc().wrapping_sub(line.base_tsc);
        if delta < PERIOD {
            return line.at(delta);
        }
    }
    slow()
}

/// The current line, consistent.
#[inline]
fn current() -> Line {
    loop {
        // ORDERING(TSC_LINE): pairs with `publish`; carries the three words of the slot.
        let turn = STAMPER.turn.load(Ordering::Acquire);
        let slot = &STAMPER.lines[(turn & 1) as usize];
        let line = Line {
            base_tsc: slot.base_tsc.load(Ordering::Relaxed),
            base_ns: slot.base_ns.load(Ordering::Relaxed),
            mult: slot.mult.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        // Differs only if this thread was off the core while a line was renewed.
        if STAMPER.turn.load(Ordering::Relaxed) == turn {
            return line;
        }
    }
}

/// Changes with each new line.
#[cfg(test)]
pub(in crate::os) fn lines_laid() -> u32 {
    STAMPER.turn.load(Ordering::SeqCst)
}

fn publish(line: Line) {
    let turn = STAMPER.turn.load(Ordering::Relaxed).wrapping_add(1);
    fence(Ordering::Release); // a reader that sees the new words also sees the earlier turn
    let slot = &STAMPER.lines[(turn & 1) as usize];
    slot.base_tsc.store(line.base_tsc, Ordering::Relaxed);
    slot.base_ns.store(line.base_ns, Ordering::Relaxed);
    slot.mult.store(line.mult, Ordering::Relaxed);
    // ORDERING(TSC_LINE): pairs with `current`.
    STAMPER.turn.store(turn, Ordering::Release);
}

#[cold]
#[inline(never)]
fn slow() -> u64 {
    match STAMPER.mode.load(Ordering::Relaxed) {
        UNKNOWN => STAMPER.mode.store(if usable() { ON } else { OFF }, Ordering::Relaxed),
        OFF => return raw_ns(),
        _ => {}
    }
    let line = current();
    let now = rdtsc();
    if line.mult != 0 && line.base_tsc.wrapping_sub(now) < SKEW {
        return line.base_ns; // this core's counter is a little behind
    }
    // ORDERING(TSC_BUSY): pairs with the release below; carries the last pair and the strikes.
    if STAMPER.busy.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return line.overtime(now);
    }
    let stamp = match pair() {
        Some((tsc, ns)) => renew(tsc, ns),
        None => {
            strike();
            line.overtime(now)
        }
    };
    // ORDERING(TSC_BUSY): pairs with the acquire above.
    STAMPER.busy.store(0, Ordering::Release);
    stamp
}

/// Lays the next line through the fresh pair; the caller holds `busy`.
fn renew(tsc: u64, ns: u64) -> u64 {
    let line = current(); // somebody may have renewed it meanwhile
    let last_tsc = STAMPER.pair_tsc.load(Ordering::Relaxed);
    let last_ns = STAMPER.pair_ns.load(Ordering::Relaxed);
    if last_tsc == 0 {
        keep_pair(tsc, ns);
        return ns;
    }
    let behind = last_tsc.wrapping_sub(tsc) < SKEW;
    let cycles = if behind { 0 } else { tsc.wrapping_sub(last_tsc) };
    if line.mult == 0 && cycles < FIRST {
        return ns;
    }
    if line.mult != 0 && cycles < PERIOD / 2 {
        return line.overtime(tsc.max(line.base_tsc));
    }
    keep_pair(tsc, ns);
    let rate = (u128::from(ns.saturating_sub(last_ns)) << 32) / u128::from(cycles);
    let rate = u64::try_from(rate).unwrap_or(0);
    if line.mult == 0 {
        if rate != 0 && rate < 1 << 34 {
            publish(Line { base_tsc: tsc, base_ns: ns, mult: rate });
        } else {
            strike();
        }
        return ns;
    }
    let next = if rate.abs_diff(line.mult) > line.mult / 1000 {
        // A suspended machine, a TSC set back, or a TSC that is no clock: start over.
        if strike() {
            return ns;
        }
        let start = ns.max(line.at(PERIOD));
        Line { base_tsc: tsc, base_ns: start, mult: line.mult }
    } else {
        STAMPER.strikes.store(0, Ordering::Relaxed);
        line.continued(tsc, ns, rate)
    };
    publish(next);
    next.base_ns
}

fn keep_pair(tsc: u64, ns: u64) {
    STAMPER.pair_tsc.store(tsc, Ordering::Relaxed);
    STAMPER.pair_ns.store(ns, Ordering::Relaxed);
}

/// Counts a failure; true when it was one too many and the TSC is given up.
fn strike() -> bool {
    let last = STAMPER.strikes.fetch_add(1, Ordering::Relaxed) >= STRIKES_MAX;
    if last {
        STAMPER.mode.store(OFF, Ordering::Relaxed);
        publish(Line::NONE);
    }
    last
}

/// The TSC and the clock at the same moment, or nothing when interrupted three times.
fn pair() -> Option<(u64, u64)> {
    for _ in 0..3 {
        let before = rdtsc();
        let ns = raw_ns();
        let width = rdtsc().wrapping_sub(before);
        if width < PAIR_MAX {
            return Some((before + width / 2, ns));
        }
    }
    None
}

/// Whether the kernel itself keeps time by an invariant TSC.
fn usable() -> bool {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(source).is_ok_and(|s| s.trim() == "tsc")
}

#[inline]
fn rdtsc() -> u64 {
    // SAFETY: reads a counter; has no memory effects. Linux allows it in user mode unless a
    // process forbids it to itself with PR_SET_TSC, and then the clock's vDSO is off limits too.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2 GHz: half a ns per cycle.
    const HALF: u64 = 1 << 31;

    #[test]
    fn a_line_goes_on_where_the_old_one_ended_and_aims_at_the_clock() {
        let line = Line { base_tsc: 1000, base_ns: 5_000_000, mult: HALF };
        let tsc = 1000 + PERIOD;
        let reached = line.at(PERIOD);
        for error in [-15_000i64, -1, 0, 1, 15_000] {
            let next = line.continued(tsc, reached.saturating_add_signed(error), HALF);
            assert_eq!(next.base_ns, reached);
            let truth = line.at(2 * PERIOD).saturating_add_signed(error);
            assert!(next.at(PERIOD).abs_diff(truth) <= 1, "error {error}");
        }
    }

    #[test]
    fn a_line_jumps_forward_but_never_back() {
        let line = Line { base_tsc: 0, base_ns: 0, mult: HALF };
        let reached = line.at(PERIOD);
        assert_eq!(line.continued(PERIOD, reached + 1_000_000, HALF).base_ns, reached + 1_000_000);
        let back = line.continued(PERIOD, reached - 100_000_000, HALF);
        assert_eq!((back.base_ns, back.mult), (reached, HALF / 2));
        // Nobody asked for long: no slewing.
        let late = line.continued(10 * PERIOD, 5 * PERIOD, HALF);
        assert_eq!((late.base_ns, late.mult), (5 * PERIOD, HALF));
    }
}
