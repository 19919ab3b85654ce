//! Mock drives: CiA 402 states, a lag, a quick-stop ramp, a brake, a watchdog, and a log of every
//! command. They sit at the other end of the bus and trust nobody.

use crate::cia402::{CSP, State};
use crate::ethercat::{self, DRIVES, Input, Output, to_angle, to_counts};
use crate::messages::BusFrame;

/// Time constant with which a drive follows its target, s. This example's own.
pub const LAG_S: f64 = 0.002;
/// Quick-stop ramp (object 0x6085), rad/s^2. This example's own.
pub const RAMP: f64 = 40.0;
/// The watchdog of the process data: 100 ms (default of register 0x0420, ETG.1000.4).
pub const WATCHDOG_NS: u64 = 100_000_000;

/// Slower than this is a standstill, rad/s.
const STANDSTILL: f64 = 1e-4;

#[derive(Clone, Copy, Debug)]
struct Drive {
    state: State,
    position: f64,
    velocity: f64,
    target: f64,
    reset_bit: bool,
}

impl Drive {
    fn new(position: f64) -> Self {
        let state = State::SwitchOnDisabled;
        Self { state, position, velocity: 0.0, target: position, reset_bit: false }
    }

    fn command(&mut self, output: Output) {
        let bit = output.control & 0x80 != 0;
        let before = self.state;
        self.state = self.state.after(output.control, bit && !self.reset_bit);
        self.reset_bit = bit;
        if self.state == State::OperationEnabled {
            if before != State::OperationEnabled {
                self.target = self.position;
            } else if output.mode == CSP {
                self.target = to_angle(output.target);
            }
        }
    }

    fn advance(&mut self, dt_s: f64) {
        match self.state {
            State::OperationEnabled => {
                let next = self.target + (self.position - self.target) * (-dt_s / LAG_S).exp();
                self.velocity = (next - self.position) / dt_s;
                self.position = next;
            }
            State::QuickStopActive | State::FaultReactionActive => {
                let slower = (self.velocity.abs() - RAMP * dt_s).max(0.0);
                self.velocity = slower.copysign(self.velocity);
                self.position += self.velocity * dt_s;
                if slower < STANDSTILL && self.state == State::FaultReactionActive {
                    self.state = State::Fault;
                }
            }
            // Power off: the brake holds.
            _ => self.velocity = 0.0,
        }
    }

    fn input(&self) -> Input {
        Input { status: self.state.status(), position: to_counts(self.position), mode: CSP }
    }
}

/// Who sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The EtherCAT stage.
    Master,
    /// The guard.
    Guard,
}

/// One command as the drives took it.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// When, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// From whom.
    pub sender: Sender,
    /// Its cycle.
    pub cycle: u64,
    /// When it was planned.
    pub planned_ns: u64,
    /// What the sender's lifeline said.
    pub step: u64,
    /// Control word of the first drive.
    pub control: u16,
    /// Whether any drive follows after it.
    pub follows: bool,
    /// Whether it gave any following drive a target other than it had, by a count or more.
    pub new_target: bool,
    /// Whether a motor moved by it: a drive that follows was away from this command's target and
    /// turned by a count or more before the next command.
    pub moved: bool,
}

/// All drives, and what they were told.
#[derive(Debug)]
pub struct Drives {
    drives: [Drive; DRIVES],
    now_ns: u64,
    last_frame_ns: Option<u64>,
    log: Vec<Record>,
    /// Positions when the last command came.
    came_at: [f64; DRIVES],
    /// The guard has stopped them: no other sender is obeyed until power was off.
    guarded: bool,
}

impl Drives {
    /// At `position`, rad, without power. The log holds `log_max` commands; later ones are not
    /// logged (and not asked about).
    pub fn new(position: [f64; DRIVES], now_ns: u64, log_max: usize) -> Self {
        Self {
            drives: position.map(Drive::new),
            now_ns,
            last_frame_ns: None,
            log: Vec::with_capacity(log_max),
            came_at: position,
            guarded: false,
        }
    }

    /// Takes a frame, as it passes; writes the answer into it.
    ///
    /// Allocates nothing.
    pub fn take(&mut self, frame: &mut BusFrame, sender: Sender, now_ns: u64) {
        self.advance(now_ns);
        if ethercat::check(&frame.bytes).is_err() {
            return;
        }
        self.close_record();
        self.last_frame_ns = Some(now_ns);
        let obeyed = sender == Sender::Guard || !self.guarded;
        let (mut new_target, mut first) = (false, 0);
        for (i, drive) in self.drives.iter_mut().enumerate() {
            let output = ethercat::exchange(&mut frame.bytes, i, &drive.input());
            if i == 0 {
                first = output.control;
            }
            if obeyed {
                let before = drive.target;
                drive.command(output);
                new_target |= drive.state == State::OperationEnabled
                    && to_counts(drive.target) != to_counts(before);
            }
        }
        if sender == Sender::Guard && frame.step >= 2 {
            self.guarded = true;
        }
        let BusFrame { cycle, planned_ns, step, .. } = *frame;
        if self.log.len() < self.log.capacity() {
            let record = Record {
                at_ns: now_ns,
                sender,
                cycle,
                planned_ns,
                step,
                control: first,
                follows: self.follow(),
                new_target,
                moved: false,
            };
            self.log.push(record);
        }
    }

    /// Time passes.
    pub fn advance(&mut self, now_ns: u64) {
        let dt_ns = now_ns.saturating_sub(self.now_ns);
        if dt_ns == 0 {
            return;
        }
        let silent_ns = self.last_frame_ns.map_or(0, |last| now_ns.saturating_sub(last));
        for drive in &mut self.drives {
            let powered = matches!(drive.state, State::OperationEnabled | State::SwitchedOn);
            if silent_ns > WATCHDOG_NS && powered {
                drive.state = State::FaultReactionActive;
            }
            drive.advance(dt_ns as f64 * 1e-9);
        }
        self.now_ns = now_ns;
    }

    fn close_record(&mut self) {
        let count = std::f64::consts::TAU / ethercat::COUNTS_PER_TURN;
        let follows = self.follow();
        let turned =
            self.drives.iter().zip(self.came_at).any(|(d, was)| (d.position - was).abs() >= count);
        if let Some(last) = self.log.last_mut() {
            last.moved = follows && turned;
        }
        self.came_at = self.positions();
    }

    /// Where they are, rad.
    pub fn positions(&self) -> [f64; DRIVES] {
        self.drives.map(|d| d.position)
    }

    /// Their states.
    pub fn states(&self) -> [State; DRIVES] {
        self.drives.map(|d| d.state)
    }

    /// Whether any of them follows its target.
    pub fn follow(&self) -> bool {
        self.drives.iter().any(|d| d.state == State::OperationEnabled)
    }

    /// Whether none moves.
    pub fn stand_still(&self) -> bool {
        self.drives.iter().all(|d| d.velocity.abs() < STANDSTILL)
    }

    /// Every command taken, in order.
    pub fn log(&self) -> &[Record] {
        &self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cia402::control;

    const MS: u64 = 1_000_000;

    fn frame(control: u16, target: f64, step: u64) -> BusFrame {
        let mut frame = BusFrame {
            bytes: [0; ethercat::FRAME_BYTES],
            reserved: 0,
            planned_ns: 0,
            cycle: 0,
            step,
        };
        let output = Output { control, target: to_counts(target), mode: CSP };
        ethercat::write(&mut frame.bytes, 0, &[output; DRIVES]);
        frame
    }

    fn enabled() -> (Drives, u64) {
        let mut drives = Drives::new([0.0; DRIVES], 0, 1000);
        for (i, word) in
            [control::SHUTDOWN, control::SWITCH_ON, control::ENABLE_OPERATION].iter().enumerate()
        {
            drives.take(&mut frame(*word, 0.0, 0), Sender::Master, i as u64 * MS + 1);
        }
        assert_eq!(drives.states(), [State::OperationEnabled; DRIVES]);
        (drives, 3 * MS)
    }

    #[test]
    fn a_drive_follows_with_lag_and_stops_at_its_ramp() {
        let (mut drives, mut now) = enabled();
        for i in 1..=50 {
            now += MS;
            let target = 0.001 * f64::from(i);
            drives.take(&mut frame(control::ENABLE_OPERATION, target, 0), Sender::Master, now);
        }
        let before = drives.positions()[0];
        assert!(before < 0.05 && before > 0.04, "{before}");
        assert!(drives.log().last().unwrap().new_target);
        drives.take(&mut frame(control::QUICK_STOP, 0.0, 2), Sender::Guard, now);
        // 1 rad/s at 40 rad/s^2: still after 25 ms, 12.5 mrad on.
        drives.advance(now + 10 * MS);
        assert!(!drives.stand_still());
        for i in 11..40 {
            drives.advance(now + i * MS);
        }
        assert!(drives.stand_still());
        let moved = drives.positions()[0] - before;
        assert!(moved > 0.008 && moved < 0.016, "{moved}");
        // A late enable, also by way of power off, comes from the master: not obeyed.
        let rest = drives.positions();
        for word in [control::ENABLE_OPERATION, control::DISABLE_VOLTAGE, control::SHUTDOWN] {
            drives.take(&mut frame(word, 1.0, 0), Sender::Master, now + 50 * MS);
        }
        drives.advance(now + 60 * MS);
        assert_eq!((drives.positions(), drives.states()), (rest, [State::QuickStopActive; DRIVES]));
    }

    #[test]
    fn silence_trips_the_watchdog() {
        let (mut drives, now) = enabled();
        drives.advance(now + WATCHDOG_NS - MS);
        assert_eq!(drives.states()[0], State::OperationEnabled);
        drives.advance(now + WATCHDOG_NS + MS);
        drives.advance(now + WATCHDOG_NS + 2 * MS);
        assert_eq!(drives.states(), [State::Fault; DRIVES]);
    }

    #[test]
    fn the_answer_counts_every_drive_and_garbage_moves_none() {
        let (mut drives, now) = enabled();
        let mut good = frame(control::ENABLE_OPERATION, 0.5, 0);
        drives.take(&mut good, Sender::Master, now);
        assert_eq!(ethercat::counter(&good.bytes), ethercat::COUNTER_EXPECTED);
        let mut bad = good;
        bad.bytes[12] = 0;
        let taken = drives.log().len();
        drives.take(&mut bad, Sender::Master, now + MS);
        assert_eq!(drives.log().len(), taken);
    }
}
