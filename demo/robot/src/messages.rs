//! What the stages hand on.

use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::ethercat::FRAME_BYTES;
use crate::pose::Pose;

/// Where the tool should be.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy, Debug)]
#[zerocopy(crate = "outlive::zerocopy")]
#[message(name = "robot/Plan")]
#[repr(C)]
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
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy, Debug)]
#[zerocopy(crate = "outlive::zerocopy")]
#[message(name = "robot/Angles")]
#[repr(C)]
pub struct Angles {
    /// Angles, rad.
    pub joints: [f64; 6],
    /// The cycle they are for.
    pub cycle: u64,
    /// When the pose behind them was planned.
    pub planned_ns: u64,
}

/// A frame on the mock bus. What is beside the bytes is for the drives' log only.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy, Debug)]
#[zerocopy(crate = "outlive::zerocopy")]
#[message(name = "robot/BusFrame")]
#[repr(C)]
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
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy, Debug)]
#[zerocopy(crate = "outlive::zerocopy")]
#[message(name = "robot/Order")]
#[repr(C)]
pub struct Order {
    /// 0 nothing, 1 SIGKILL itself, 2 SIGSTOP itself, 3 loop for ever, 4 send NaN, 5 send a jump.
    pub fault: u64,
    /// 0 before its work, 1 in the middle, 2 after its work.
    pub phase: u64,
}
