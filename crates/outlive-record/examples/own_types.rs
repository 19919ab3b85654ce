//! Records types of one's own, for `scripts/recording-tests`: `own_types FILE`.
//!
//! Any MCAP reader that knows ROS 2 shows their fields.

use std::path::Path;

use outlive::msg::{Optional, Text};
use outlive::{Deadline, Headed, Node};
use outlive_record::{RecordOptions, Recorder, Selection};

#[outlive::message("robot/Gripper")]
struct Gripper {
    stamp_ns: u64,
    force_limit_n: Optional<f64>,
    opening_m: f32,
    force_n: [f32; 2],
    mode: Mode,
    calibrated: bool,
    tool: Text<18>,
    fingers: [Finger; 2],
}

#[outlive::message]
#[repr(u8)]
#[allow(dead_code, reason = "a gripper may be idle")]
enum Mode {
    Idle,
    Holding,
}

#[outlive::message]
struct Finger {
    joints_rad: [f64; 3],
    name: Text<8>,
}

#[outlive::message("robot/ScanHeader")]
struct ScanHeader {
    stamp_ns: u64,
    number: u32,
    beams: u32,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: own_types FILE")?;
    let node = Node::open("robot")?;
    let grippers = node.topic::<Gripper>("/gripper")?.publisher()?;
    let scans = node.topic::<Headed<ScanHeader, [u16; 2]>>("/scan")?.publisher()?;
    let angles = node.topic::<[f64]>("/angles")?.publisher()?;
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), Path::new(&path), options)?;

    let finger = |name, angle| Finger { joints_rad: [angle; 3], name: Text::cut(name) };
    let mut gripper = grippers.loan()?;
    *gripper = Gripper {
        stamp_ns: 1 << 60,
        force_limit_n: Some(2.5).into(),
        opening_m: 0.5,
        force_n: [1.5, 1.25],
        mode: Mode::Holding,
        calibrated: true,
        tool: Text::cut("ä tool"),
        fingers: [finger("left", 0.25), finger("right", -0.25)],
    };
    gripper.publish()?;
    let header = ScanHeader { stamp_ns: 7, number: 1, beams: 3 };
    scans.publish_headed(header, &[[1, 2], [3, 4], [5, 6]])?;
    angles.publish(&[0.5, -1.0])?;
    while recorder.progress().messages < 3 {
        recorder.step(Deadline::AT_ONCE)?;
    }
    recorder.finish()?;
    Ok(())
}
