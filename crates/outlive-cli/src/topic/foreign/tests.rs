//! Payloads of Protocol Buffers, JSON and ROS, read and made.

use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions,
};

use super::*;

fn field(name: &str, number: i32, of: Type, label: Label, named: &str) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(of.into()),
        type_name: (!named.is_empty()).then(|| named.into()),
        ..FieldDescriptorProto::default()
    }
}

/// ```proto
/// message Plan {
///   string goal = 1;  Step step = 2;  repeated double points = 3;  map<string, int64> costs = 4;
///   Plan next = 5;  bytes map = 6;  enum Step { WAIT = 0; DRIVE = 1; }
/// }
/// ```
fn plan() -> PayloadType {
    use Label::{Optional, Repeated};
    let entry = DescriptorProto {
        name: Some("CostsEntry".into()),
        field: vec![
            field("key", 1, Type::String, Optional, ""),
            field("value", 2, Type::Int64, Optional, ""),
        ],
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..DescriptorProto::default()
    };
    let value = |name: &str, number| EnumValueDescriptorProto {
        name: Some(name.into()),
        number: Some(number),
        options: None,
    };
    let step = EnumDescriptorProto {
        name: Some("Step".into()),
        value: vec![value("WAIT", 0), value("DRIVE", 1)],
        ..EnumDescriptorProto::default()
    };
    let plan = DescriptorProto {
        name: Some("Plan".into()),
        field: vec![
            field("goal", 1, Type::String, Optional, ""),
            field("step", 2, Type::Enum, Optional, ".robot.Plan.Step"),
            field("points", 3, Type::Double, Repeated, ""),
            field("costs", 4, Type::Message, Repeated, ".robot.Plan.CostsEntry"),
            field("next", 5, Type::Message, Optional, ".robot.Plan"),
            field("map", 6, Type::Bytes, Optional, ""),
        ],
        nested_type: vec![entry],
        enum_type: vec![step],
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("plan.proto".into()),
        package: Some("robot".into()),
        message_type: vec![plan],
        syntax: Some("proto3".into()),
        ..FileDescriptorProto::default()
    };
    let set = FileDescriptorSet { file: vec![file] }.encode_to_vec();
    PayloadType::encoded(Encoding::Protobuf, "robot.Plan", &set).unwrap()
}

#[test]
fn a_message_of_protocol_buffers_is_made_of_json_and_shown_with_its_fields() {
    let of = Foreign::of(&plan()).unwrap();
    let json = r#"{"goal": "dock", "step": "DRIVE", "points": [1.5, -2],
                   "costs": {"time": 7, "energy": -1}, "next": {"map": "AAH/"}}"#;
    let payload = of.payload(json).unwrap();
    let text = r#"{goal: "dock", step: DRIVE, points: [1.5, -2.0], costs: {energy: -1, time: 7}, "#;
    let inner = r#"next: {goal: "", step: WAIT, points: [], costs: {}, map: 0001ff}, map: }"#;
    assert_eq!(of.tree(&payload).unwrap().to_string(), format!("{text}{inner}"));
    for end in 1..payload.len() {
        // Some starts are shorter messages; none is a panic.
        let _ = of.tree(&payload[..end]);
    }
    assert!(of.tree(&payload[..payload.len() - 1]).is_err());
    let wrong = |json: &str| of.payload(json).unwrap_err();
    assert!(wrong(r#"{"gaol": "dock"}"#).contains("gaol"), "{}", wrong(r#"{"gaol": "dock"}"#));
    assert!(wrong(r#"{"goal": 7}"#).contains("string"));
    assert!(wrong("{} {}").contains("trailing"));
}

#[test]
fn schemas_are_shown_as_text() {
    let text = "\
message robot.Plan {
  string goal = 1;
  robot.Plan.Step step = 2;
  repeated double points = 3;
  map<string, int64> costs = 4;
  robot.Plan next = 5;
  bytes map = 6;
}
enum robot.Plan.Step {
  WAIT = 0;
  DRIVE = 1;
}";
    assert_eq!(schema_text(&plan()), text);
    assert_eq!(set_text(plan().schema()), Ok(format!("{text}\n")));
    assert!(set_text(b"").unwrap_err().contains("no messages") && set_text(b"x").is_err());
    let of = |encoding, name: &str, schema: &str| {
        schema_text(&PayloadType::encoded(encoding, name, schema.as_bytes()).unwrap())
    };
    assert_eq!(of(Encoding::Json, "x", r#"{"type":"object"}"#), "{\n  \"type\": \"object\"\n}");
    assert_eq!(of(Encoding::Json, "x", ""), "none");
    assert_eq!(of(Encoding::Cdr, "my/msg/Goal", "float64 x  # m\n"), "float64 x  # m");
    let binary = of(Encoding::Arrow, "x", "....");
    assert_eq!(binary, "binary, 4 bytes: arrow is carried, not read");
}

#[test]
fn a_message_of_ros_is_made_of_json_and_shown_with_its_fields() {
    let definition = b"float64 x\nstring frame\n";
    let goal = PayloadType::encoded(Encoding::Cdr, "my/msg/Goal", definition).unwrap();
    let of = Foreign::of(&goal).unwrap();
    let payload = of.payload(r#"{"x": 1.5, "frame": "map"}"#).unwrap();
    assert_eq!(of.tree(&payload).unwrap().to_string(), r#"{x: 1.5, frame: "map"}"#);
    assert!(of.tree(&payload[..payload.len() - 4]).is_err());
    assert!(of.payload(r#"{"y": 1}"#).unwrap_err().contains("no field y"));
    // One that this program knows needs no definition.
    let twist = PayloadType::encoded(Encoding::Cdr, "geometry_msgs/msg/Twist", b"").unwrap();
    assert!(Foreign::of(&twist).is_ok());
    let strange = PayloadType::encoded(Encoding::Cdr, "my/msg/Goal", b"").unwrap();
    assert!(Foreign::of(&strange).unwrap_err().contains("my/msg/Goal is not defined"));
}

#[test]
fn json_is_sent_as_it_was_typed() {
    let of = PayloadType::encoded(Encoding::Json, "robot/Goal", b"").unwrap();
    let of = Foreign::of(&of).unwrap();
    assert_eq!(of.payload(" {\"x\": 1.50}\n").unwrap(), b"{\"x\": 1.50}");
    assert!(of.payload("{x}").is_err() && of.tree(b"{\"x\"").is_err());
    assert_eq!(of.tree(b"{\"x\": [1]}").unwrap().to_string(), "{x: [1]}");
}
