//! What the stages hand on.

use crate::ethercat::FRAME_BYTES;
use crate::pose::Pose;

/// Where the tool should be.
#[outlive::message("robot/Plan")]
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rows of the pose.
    pub pose: [[f64; 4]; 3],
    /// The cycle it is for.
    pub cycle: u64,
    /// When it was planned, ns of CLOCK_MONOTONIC.
    pub planned_ns: u64,
}

impl Plan {
    /// Of a pose.
    pub fn new(pose: &Pose, cycle: u64, planned_ns: u64) -> Self {
        Self { pose: pose.0, cycle, planned_ns }
    }
}

/// Joint angles to go to, rad.
#[outlive::message("robot/Angles")]
#[derive(Clone, Copy, Debug)]
pub struct Angles {
    /// Angles, rad.
    pub joints: [f64; 6],
    /// The cycle they are for.
    pub cycle: u64,
    /// When the pose behind them was planned.
    pub planned_ns: u64,
}

/// A frame on the mock bus. What is beside the bytes is for the drives' log only.
#[outlive::message("robot/BusFrame")]
#[derive(Clone, Copy, Debug)]
pub struct BusFrame {
    /// The Ethernet frame.
    pub bytes: [u8; FRAME_BYTES],
    /// Fills up to 8 bytes.
    pub reserved: u32,
    /// When the command in it was planned.
    pub planned_ns: u64,
    /// The cycle.
    pub cycle: u64,
    /// What the sender's lifeline says: 0 run, 1 hold, 2 quick-stop, 3 brake.
    pub step: u64,
}

/// What the harness asks a stage to do, for the proof that it does no harm.
#[outlive::message("robot/Order")]
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// 0 nothing, 1 SIGKILL itself, 2 SIGSTOP itself, 3 loop for ever, 4 send NaN, 5 send a jump.
    pub fault: u64,
    /// 0 before its work, 1 in the middle, 2 after its work.
    pub phase: u64,
}
