//! `record --profile ros2 --types`: types from `outlive types import` as the messages of ROS 2 that
//! they were made from, and back.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::*;
use outlive::{Message, Node};
use outlive_record::Recording;
use outlive_record::ros2::FromRos;

#[path = "types/golden/mod.rs"]
mod messages;
#[path = "types/golden_msgpack/mod.rs"]
mod plans;

use messages::arm_msgs::{Arm, Battery, Scan};
use plans::plan_msgs::Plan;

fn arm() -> Arm {
    let mut arm = Arm::default();
    arm.header.stamp.sec = -7;
    arm.header.frame_id = outlive::msg::Text::cut("base");
    arm.joints[1].position = 0.5;
    arm.joints[1].brakes[2] = true;
    arm.reach.corners[0].y = -2.0;
    arm.reach.corners_count = 1;
    arm
}

#[derive(serde::Deserialize)]
struct Ranges {
    ranges: Vec<f32>,
}

/// A message of a topic as a reader sees it that knows only what the file has.
fn seen<T: serde::de::DeserializeOwned>(recording: &Recording, topic: &str) -> T {
    let all = recording.messages().unwrap().map(Result::unwrap);
    let message = all.into_iter().find(|m| m.channel.topic == topic).unwrap();
    let schema = message.channel.schema.as_ref().unwrap();
    assert_eq!(schema.encoding, "ros2msg");
    let text = std::str::from_utf8(&schema.data).unwrap();
    let (from, _) = FromRos::of(&schema.name, text, None).unwrap();
    let payload = from.payload(&message.data).unwrap();
    outlive::MsgPack::<T>::new(&payload).decode().unwrap()
}

#[test]
fn imported_types_are_recorded_as_their_ros_messages_and_played_as_themselves() {
    let home = Home::new("record-types");
    let file = home.root().with_extension("mcap");
    let node = Node::builder().root(home.root()).open().unwrap();
    let arms = node.topic::<Arm>("/arm").unwrap().publisher().unwrap();
    let scans = node.topic::<Scan>("/scan").unwrap().publisher().unwrap();
    let plans = node.msgpack::<Plan>("/plan").unwrap().type_name(Plan::TYPE_NAME);
    let plans = plans.publisher().unwrap();
    let mut scan = Scan::default();
    (scan.ranges[1], scan.ranges_count, scan.intensities[0], scan.intensities_count) =
        (2.5, 2, 9, 1);
    arms.publish(&arm()).unwrap();
    scans.publish(&scan).unwrap();
    plans.publish_value(&Plan { number: 5, ..Plan::default() }).unwrap();

    let types = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types");
    let record =
        |more: &str| format!("record -a --history 9 --profile ros2 -o {} {more}", file.display());
    let dirs = ["arm_msgs", "geo_msgs", "plan_msgs"].map(|dir| types.join(dir));
    let dirs = dirs.map(|dir| format!("--types {}", dir.display())).join(" ");
    let told = home.run(&record(&format!("{dirs} --count 3"))).expect(DONE).err;
    assert!(told.contains("recorded 3 messages of 3 topics"), "{told}");

    let recording = Recording::open(&file).unwrap();
    let names: BTreeMap<_, _> = recording
        .sources
        .iter()
        .map(|s| (&*s.source.topic, s.source.ros_name().unwrap()))
        .collect();
    assert_eq!(names["/arm"], Arm::TYPE_NAME);
    assert_eq!(names["/scan"], "arm_msgs/msg/Scan");
    assert_eq!(names["/plan"], Plan::TYPE_NAME);
    let arm_seen: serde_json::Value = seen(&recording, "/arm");
    assert_eq!(arm_seen["header"]["stamp"]["sec"], -7);
    assert_eq!(arm_seen["header"]["frame_id"], "base");
    assert_eq!(arm_seen["joints"][1]["brakes"], serde_json::json!([false, false, true]));
    assert_eq!(arm_seen["joints"][0]["name"], "elbow");
    assert_eq!(arm_seen["reach"]["corners"].as_array().unwrap().len(), 1);
    assert_eq!(seen::<Ranges>(&recording, "/scan").ranges, [0.0, 2.5]);
    assert_eq!(seen::<Plan>(&recording, "/plan").number, 5);

    let other = Home::new("record-types-played");
    let player = Node::builder().root(other.root()).open().unwrap();
    let mut arms = player.topic::<Arm>("/arm").unwrap().subscriber().unwrap();
    let mut scans = player.topic::<Scan>("/scan").unwrap().subscriber().unwrap();
    let played = other.run(&format!("play {}", file.display())).expect(DONE).err;
    assert!(played.contains("played 3 messages of 3 topics"), "{played}");
    assert_eq!(*arms.receive().unwrap().unwrap(), arm());
    assert_eq!(*scans.receive().unwrap().unwrap(), scan);
}

#[test]
fn what_the_profile_leaves_out_is_told_and_is_a_loss() {
    let home = Home::new("record-types-missing");
    let file = home.root().with_extension("mcap");
    let node = Node::builder().root(home.root()).open().unwrap();
    let batteries = node.topic::<Battery>("/battery").unwrap().publisher().unwrap();
    let plans = node.msgpack::<Plan>("/plan").unwrap().type_name("robot/Plan");
    let plans = plans.publisher().unwrap();
    let numbers = node.topic::<f64>("/number").unwrap().publisher().unwrap();
    batteries.publish(&Battery::default()).unwrap();
    plans.publish_value(&Plan::default()).unwrap();
    numbers.publish(&0.5).unwrap();
    let record = |more: &str| {
        let file = file.display();
        home.run(&format!("record -a --history 9 -o {file} --overwrite --count 1 {more}"))
    };
    let told = record("--profile ros2").expect(LOSS).err;
    let missing = "/battery is left out: arm_msgs/msg/Battery is not defined: give its .msg file \
                   with --types";
    assert!(told.contains(missing), "{told}");
    assert!(told.contains("/plan is left out: ROS has no message like robot/Plan"), "{told}");
    assert!(told.contains("1 topic, ") || told.contains("of 1 topic"), "{told}");
    assert!(told.contains(", 2 topics left out"), "{told}");

    // A file that is not the one of the topic's type, and one that is none.
    let dir = home.root().with_extension("msgs");
    let path = dir.join("arm_msgs/msg/Battery.msg");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "float64 voltage\nuint16 cell_count\n").unwrap();
    let types = format!("--profile ros2 --types {}", dir.display());
    let told = record(&types).expect(LOSS).err;
    let differs = "/battery is left out: it is not laid out as arm_msgs/msg/Battery: voltage: it \
                   is f32, not F64";
    assert!(told.contains(differs), "{told}");
    std::fs::write(&path, "float64 voltage\nuint16\n").unwrap();
    let told = record(&types).expect(USAGE).err;
    assert!(told.contains("Battery.msg:2: 'uint16' is not a field"), "{told}");
    let told = record(&format!("--profile ros2 --types {}", file.display())).expect(USAGE).err;
    assert!(told.contains("is not a .msg"), "{told}");
    assert!(record(&format!("--types {}", dir.display())).expect(USAGE).err.contains("--types is"));
    assert_eq!(record("").expect(DONE).code, Some(DONE));
    std::fs::remove_dir_all(&dir).unwrap();
}
