//! The EtherCAT stage: angles in, a frame out, and the lifeline that decides which.

use outlive::rt::{Cause, LatestReader, SafeState, SpscWriter, check_command};

use crate::again::Again;
use crate::cia402::{CSP, State, control, towards_operation};
use crate::ethercat::{self, COUNTER_EXPECTED, DRIVES, FRAME_BYTES, Output, to_angle, to_counts};
use crate::kinematics::{ANGLE_MAX, Joints, SPEED_MAX};
use crate::messages::{Angles, BusFrame};

/// Answers with a wrong working counter in a row that are let pass.
const BAD_ANSWERS_MAX: u32 = 2;
/// How much faster than the joints' bound a command may go before it counts as a jump: a cycle
/// that was left out doubles the step.
const STEP_SLACK: f64 = 3.0;

/// Sends frames and reads answers. It allocates nothing.
#[derive(Debug)]
pub struct Master {
    frames: SpscWriter<BusFrame>,
    answers: LatestReader<BusFrame>,
    /// What the drives said last; none before the first answer.
    inputs: Option<[ethercat::Input; DRIVES]>,
    /// Answers in a row in which no drive had moved.
    unmoved: u32,
    /// What was last sent, rad.
    sent: Option<Joints>,
    control: [u16; DRIVES],
    /// Whether the drives may be led to follow.
    enable: bool,
    period_s: f64,
    index: u8,
    bad_answers: u32,
    answered: u64,
    cycle: u64,
    planned_ns: u64,
    step: u64,
    again: [Again; 2],
}

impl Master {
    /// With both ways of the bus.
    pub fn new(
        frames: SpscWriter<BusFrame>,
        answers: LatestReader<BusFrame>,
        period_s: f64,
    ) -> Self {
        Self {
            frames,
            answers,
            inputs: None,
            unmoved: 0,
            sent: None,
            control: [control::DISABLE_VOLTAGE; DRIVES],
            enable: false,
            period_s,
            index: 0,
            bad_answers: 0,
            answered: 0,
            cycle: 0,
            planned_ns: 0,
            step: 0,
            again: Default::default(),
        }
    }

    /// Goes on with the drives' successor if they are gone.
    pub fn reconnect(&mut self) {
        let Self { frames, answers, again: [one, other], .. } = self;
        one.look(frames.seems_alive(), |t| frames.reconnect(t));
        other.look(answers.seems_alive(), |t| answers.reconnect(t));
    }

    /// From now on the drives may be led to follow; before, they are kept without power.
    pub fn enable(&mut self) {
        self.enable = true;
    }

    /// Reads the answer that has come since.
    ///
    /// # Errors
    /// `Bus` when the working counter was wrong too often, or a drive reports a fault while
    /// moving.
    pub fn read(&mut self, cycle: u64) -> Result<(), Cause> {
        self.cycle = cycle;
        let Ok(Some(answer)) = self.answers.read() else { return Ok(()) };
        if answer.seq == self.answered {
            return Ok(());
        }
        self.answered = answer.seq;
        let frame = &answer.value.bytes;
        if ethercat::check(frame).is_err() || ethercat::counter(frame) != COUNTER_EXPECTED {
            self.bad_answers += 1;
            return if self.bad_answers > BAD_ANSWERS_MAX { Err(Cause::Bus) } else { Ok(()) };
        }
        self.bad_answers = 0;
        let inputs = ethercat::inputs(frame);
        for (control, input) in self.control.iter_mut().zip(&inputs) {
            *control = match self.enable {
                true => towards_operation(input.status),
                false => control::DISABLE_VOLTAGE,
            };
        }
        let moved = |was: [ethercat::Input; DRIVES]| {
            was.iter().zip(&inputs).any(|(a, b)| a.position != b.position)
        };
        self.unmoved = if self.inputs.is_none_or(moved) { 0 } else { self.unmoved + 1 };
        let was_moving = self.step == 0 && self.sent.is_some() && self.is_operating();
        self.inputs = Some(inputs);
        if was_moving && !self.is_operating() { Err(Cause::Bus) } else { Ok(()) }
    }

    /// Whether all drives follow.
    pub fn is_operating(&self) -> bool {
        let enabled = |input: &ethercat::Input| {
            State::from_status(input.status) == Some(State::OperationEnabled)
        };
        self.inputs.is_some_and(|inputs| inputs.iter().all(enabled))
    }

    /// Checks and sends a command; before the drives follow, leads them there.
    ///
    /// # Errors
    /// What to trip on; nothing was sent then.
    pub fn command(&mut self, angles: &Angles) -> Result<(), Cause> {
        self.planned_ns = angles.planned_ns;
        self.step = 0;
        if !self.is_operating() {
            let here = self.inputs.map(|inputs| inputs.map(|i| to_angle(i.position)));
            self.send(here.unwrap_or([0.0; DRIVES]));
            return Ok(());
        }
        // The first step is from where the drives are.
        let last = self.sent.unwrap_or_else(|| self.here());
        let step_max = SPEED_MAX * self.period_s * STEP_SLACK;
        check_command(&angles.joints, &last, -ANGLE_MAX, ANGLE_MAX, step_max)?;
        self.send(angles.joints);
        self.sent = Some(angles.joints);
        Ok(())
    }

    /// Sends what was sent before once more, as a master without a lifeline does when nothing
    /// new has come.
    pub fn repeat(&mut self) {
        let last = self.sent.unwrap_or_else(|| self.here());
        self.send(last);
    }

    fn here(&self) -> Joints {
        self.inputs.map_or([0.0; DRIVES], |inputs| inputs.map(|i| to_angle(i.position)))
    }

    fn send(&mut self, targets: Joints) {
        let outputs = std::array::from_fn(|i| Output {
            control: self.control[i],
            target: to_counts(targets[i]),
            mode: CSP,
        });
        self.send_outputs(&outputs);
    }

    fn send_outputs(&mut self, outputs: &[Output; DRIVES]) {
        self.index = self.index.wrapping_add(1);
        let mut frame = BusFrame {
            bytes: [0; FRAME_BYTES],
            reserved: 0,
            planned_ns: self.planned_ns,
            cycle: self.cycle,
            step: self.step,
        };
        ethercat::write(&mut frame.bytes, self.index, outputs);
        // A full ring: the drives do not take frames, and their watchdog stops them.
        let _ = self.frames.push(&frame);
    }

    fn send_control(&mut self, control: u16, step: u64) {
        self.step = step;
        let here = self.here().map(to_counts);
        let outputs = std::array::from_fn(|i| Output { control, target: here[i], mode: CSP });
        self.send_outputs(&outputs);
    }
}

impl SafeState for Master {
    /// Drives that do not follow yet are not led there.
    fn hold(&mut self) {
        if !self.is_operating() {
            return self.quick_stop();
        }
        self.step = 1;
        self.repeat();
    }

    fn quick_stop(&mut self) {
        self.send_control(control::QUICK_STOP, 2);
    }

    fn brake(&mut self) {
        self.send_control(control::DISABLE_VOLTAGE, 3);
    }

    fn stands_still(&self) -> bool {
        self.unmoved >= 3
    }
}

/// The guard's own way to the drives.
#[derive(Debug)]
pub struct GuardBus {
    frames: SpscWriter<BusFrame>,
    sent: u64,
    again: Again,
}

impl GuardBus {
    /// With a ring of its own.
    pub fn new(frames: SpscWriter<BusFrame>) -> Self {
        Self { frames, sent: 0, again: Again::default() }
    }

    /// Goes on with the drives' successor if they are gone.
    pub fn reconnect(&mut self) {
        let frames = &mut self.frames;
        self.again.look(frames.seems_alive(), |t| frames.reconnect(t));
    }

    fn send(&mut self, control: u16, step: u64) {
        self.sent += 1;
        let mut frame = BusFrame {
            bytes: [0; FRAME_BYTES],
            reserved: 0,
            planned_ns: 0,
            cycle: self.sent,
            step,
        };
        let output = Output { control, target: 0, mode: CSP };
        ethercat::write(&mut frame.bytes, self.sent as u8, &[output; DRIVES]);
        let _ = self.frames.push(&frame);
    }
}

impl SafeState for GuardBus {
    /// It has no position to hold.
    fn hold(&mut self) {
        self.quick_stop();
    }

    fn quick_stop(&mut self) {
        self.send(control::QUICK_STOP, 2);
    }

    fn brake(&mut self) {
        self.send(control::DISABLE_VOLTAGE, 3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{Drives, Sender};
    use crate::kinematics::HOME;
    use outlive::rt::{LatestWriter, SpscReader, latest, spsc};

    struct Bus {
        master: Master,
        frames: SpscReader<BusFrame>,
        answers: LatestWriter<BusFrame>,
        drives: Drives,
        cycle: u64,
    }

    impl Bus {
        fn new() -> Self {
            let ((frames_w, frames), (answers, answers_r)) = (spsc(64), latest());
            let master = Master::new(frames_w, answers_r, 0.002);
            Self { master, frames, answers, drives: Drives::new(HOME, 0, 100), cycle: 0 }
        }

        /// A cycle with a command, or with whatever `act` does instead.
        fn cycle(&mut self, act: impl FnOnce(&mut Master)) -> [State; DRIVES] {
            self.cycle += 1;
            self.master.read(self.cycle).unwrap();
            act(&mut self.master);
            while let Some(frame) = self.frames.pop().unwrap() {
                let mut frame = frame.value;
                self.drives.take(&mut frame, Sender::Master, self.cycle * 2_000_000);
                self.answers.write(&frame).unwrap();
            }
            self.drives.states()
        }
    }

    fn command(master: &mut Master) {
        master.command(&Angles { joints: HOME, cycle: 0, planned_ns: 0 }).unwrap();
    }

    #[test]
    fn drives_get_no_power_before_they_may_follow() {
        let mut bus = Bus::new();
        for _ in 0..10 {
            assert_eq!(bus.cycle(command), [State::SwitchOnDisabled; DRIVES]);
        }
        bus.master.enable();
        let mut cycles = 0;
        while bus.cycle(command) != [State::OperationEnabled; DRIVES] {
            cycles += 1;
            assert!(cycles < 10);
        }
    }

    #[test]
    fn holding_leads_no_drive_further_up() {
        for before in 0..6 {
            let mut bus = Bus::new();
            bus.master.enable();
            (0..before).for_each(|_| _ = bus.cycle(command));
            let followed = bus.drives.follow();
            for _ in 0..10 {
                bus.cycle(SafeState::hold);
                assert!(followed || !bus.drives.follow(), "after {before} cycles");
            }
        }
    }
}
