//! What the four stages do, whatever carries it from one to the next.

use outlive::Message;
use outlive::zerocopy::IntoBytes;
use robot::cia402::{CSP, control};
use robot::drive::{Drives, Sender};
use robot::ethercat::{self, DRIVES, FRAME_BYTES, Output, to_counts};
use robot::kinematics::{HOME, Joints, solve};
use robot::messages::{Angles, BusFrame, Plan};
use robot::planner::Planner;
use robot::pose::Pose;

/// What travels: a cycle's number and the bytes of a message.
pub(super) type Packet = [u64; PACKET_WORDS];
pub(super) const PACKET_WORDS: usize = 21;
/// Parts of the work: planner, IK, EtherCAT master, mock hardware.
pub(super) const PARTS: usize = 4;

/// What one of several stages does: its share of the parts, in order.
pub(super) struct Work(Vec<Part>);

impl Work {
    /// Stage `at` of `stages`.
    pub(super) fn of(at: usize, stages: usize, period_ns: u64) -> Self {
        let share = at * PARTS / stages..(at + 1) * PARTS / stages;
        Self(share.map(|part| Part::of(part, period_ns)).collect())
    }

    /// Works on cycle `n`: what came in, into what goes out.
    pub(super) fn run(&mut self, n: u64, packet: &Packet, out: &mut Packet) {
        let Some((first, others)) = self.0.split_first_mut() else { return };
        first.run(n, packet, out);
        for part in others {
            let packet = *out;
            part.run(n, &packet, out);
        }
    }
}

enum Part {
    Planner { planner: Box<Planner>, period_s: f64 },
    Ik { last: Joints },
    Master { index: u8 },
    Hardware(Box<Drives>),
}

impl Part {
    fn of(part: usize, period_ns: u64) -> Self {
        match part {
            0 => Self::Planner { planner: Box::default(), period_s: period_ns as f64 * 1e-9 },
            1 => Self::Ik { last: HOME },
            2 => Self::Master { index: 0 },
            _ => {
                let begin = solve(&Planner::default().pose(0.0), &HOME).unwrap_or(HOME);
                Self::Hardware(Box::new(Drives::new(begin, outlive::now_ns(), 0)))
            }
        }
    }

    fn run(&mut self, n: u64, packet: &Packet, out: &mut Packet) {
        out[0] = n;
        match self {
            Self::Planner { planner, period_s } => {
                let pose = planner.pose(n as f64 * *period_s);
                put(out, &Plan::new(&pose, n, outlive::now_ns()));
            }
            Self::Ik { last } => {
                let plan: Plan = get(packet);
                *last = solve(&Pose(plan.pose), last).unwrap_or(*last);
                let Plan { cycle, planned_ns, .. } = plan;
                put(out, &Angles { joints: *last, cycle, planned_ns });
            }
            Self::Master { index } => {
                let angles: Angles = get(packet);
                *index = index.wrapping_add(1);
                let outputs: [Output; DRIVES] = std::array::from_fn(|i| Output {
                    control: control::ENABLE_OPERATION,
                    target: to_counts(angles.joints[i]),
                    mode: CSP,
                });
                let mut frame = BusFrame {
                    bytes: [0; FRAME_BYTES],
                    reserved: 0,
                    planned_ns: angles.planned_ns,
                    cycle: n,
                    step: 0,
                };
                ethercat::write(&mut frame.bytes, *index, &outputs);
                put(out, &frame);
            }
            Self::Hardware(drives) => {
                let mut frame: BusFrame = get(packet);
                drives.take(&mut frame, Sender::Master, outlive::now_ns());
                std::hint::black_box(&frame);
            }
        }
    }
}

fn put<T: Message>(packet: &mut Packet, value: &T) {
    let bytes = value.as_bytes();
    packet[1..].as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
}

fn get<T: Message>(packet: &Packet) -> T {
    T::try_read_from_bytes(&packet[1..].as_bytes()[..size_of::<T>()])
        .unwrap_or_else(|_| T::new_zeroed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_holds_every_message_and_a_cycle_runs_through() {
        for bytes in [size_of::<Plan>(), size_of::<Angles>(), size_of::<BusFrame>()] {
            assert!(bytes <= (PACKET_WORDS - 1) * 8);
        }
        for stages in [1, 2, PARTS] {
            let (mut packet, mut out) = ([0; PACKET_WORDS], [0; PACKET_WORDS]);
            for at in 0..stages {
                Work::of(at, stages, 1_000_000).run(7, &packet, &mut out);
                std::mem::swap(&mut packet, &mut out);
            }
            // The hardware sends nothing: alone, it leaves the frame where it came in.
            let frame: BusFrame = get(if stages < PARTS { &packet } else { &out });
            assert_eq!((frame.cycle, ethercat::check(&frame.bytes)), (7, Ok(())));
        }
    }
}
