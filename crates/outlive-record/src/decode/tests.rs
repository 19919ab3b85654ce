//! Payloads of Protocol Buffers, JSON and ROS, read and made.

use prost_reflect::prost::Message;
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

fn path(text: &str) -> Path {
    Path::typed(text).unwrap()
}

/// ```proto
/// message Plan {
///   string goal = 1;  Step step = 2;  repeated double points = 3;  map<string, int64> costs = 4;
///   Plan next = 5;  bytes map = 6;  enum Step { WAIT = 0; DRIVE = 1; }
/// }
/// ```
fn plan() -> PayloadType {
    let entry = [("key", 1, Type::String), ("value", 2, Type::Int64)];
    plan_with(entry.map(|(name, number, of)| field(name, number, of, Label::Optional, "")).into())
}

/// The same with other fields of `CostsEntry`.
fn plan_with(entry: Vec<FieldDescriptorProto>) -> PayloadType {
    use Label::{Optional, Repeated};
    let entry = DescriptorProto {
        name: Some("CostsEntry".into()),
        field: entry,
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

/// The library that reads them takes such an entry, and panicked when it was looked at.
#[test]
fn a_map_without_key_or_value_or_with_a_key_that_none_can_be_is_no_schema() {
    use Label::{Optional, Repeated};
    let (key, value) = ("key", "value");
    let text = |name, number| field(name, number, Type::String, Optional, "");
    for entry in [
        vec![],
        vec![text(key, 1)],
        vec![text(value, 2)],
        vec![text(key, 3), text(value, 2)],
        vec![field(key, 1, Type::Bytes, Optional, ""), text(value, 2)],
        vec![field(key, 1, Type::Double, Optional, ""), text(value, 2)],
        vec![field(key, 1, Type::Float, Optional, ""), text(value, 2)],
        vec![field(key, 1, Type::Enum, Optional, ".robot.Plan.Step"), text(value, 2)],
        vec![field(key, 1, Type::Message, Optional, ".robot.Plan"), text(value, 2)],
        vec![field(key, 1, Type::String, Repeated, ""), text(value, 2)],
        vec![text(key, 1), field(value, 2, Type::Int64, Repeated, "")],
    ] {
        let broken = plan_with(entry);
        // `costs`, with an entry that has neither.
        let shown = Foreign::of(&broken).map(|of| of.tree(&[0x22, 0x00]));
        let why = "robot.Plan.CostsEntry is not a valid map entry";
        assert!(shown.as_ref().is_err_and(|e| e.contains(why)), "{shown:?}");
        let listed = set_text(broken.schema());
        assert!(listed.as_ref().is_err_and(|e| e.contains(why)), "{listed:?}");
        let _ = schema_text(&broken);
    }
    for of in [Type::Bool, Type::Uint64, Type::Sint32, Type::Fixed32] {
        let entry = vec![field(key, 1, of, Optional, ""), text(value, 2)];
        assert!(Foreign::of(&plan_with(entry)).unwrap().tree(&[0x22, 0x00]).is_ok());
    }
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
    assert!(binary.starts_with("binary, 4 bytes: its schema is damaged: "), "{binary}");
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
fn null_is_no_number_in_a_float_of_a_message_of_ros_and_what_is_absent_is_zero() {
    let definition = b"float64 x\nfloat32 y\nfloat64[] all\nint32 n\nfloat64[2] two\n";
    let of = PayloadType::encoded(Encoding::Cdr, "my/msg/Goal", definition).unwrap();
    let of = Foreign::of(&of).unwrap();
    let shown = |json: &str| of.tree(&of.payload(json).unwrap()).unwrap().to_string();
    assert_eq!(
        shown(r#"{"x": null, "y": "-inf", "all": [null, "inf", "nan", 1], "n": null}"#),
        "{x: NaN, y: -inf, all: [NaN, inf, NaN, 1.0], n: 0, two: [0.0, 0.0]}"
    );
    assert_eq!(shown("{}"), "{x: 0.0, y: 0.0, all: [], n: 0, two: [0.0, 0.0]}");
    assert!(of.payload(r#"{"x": "infinite"}"#).unwrap_err().contains("x: text instead of"));
}

#[test]
fn json_is_sent_as_it_was_typed() {
    let of = PayloadType::encoded(Encoding::Json, "robot/Goal", b"").unwrap();
    let of = Foreign::of(&of).unwrap();
    assert_eq!(of.payload(" {\"x\": 1.50}\n").unwrap(), b"{\"x\": 1.50}");
    assert!(of.payload("{x}").is_err() && of.tree(b"{\"x\"").is_err());
    assert_eq!(of.tree(b"{\"x\": [1]}").unwrap().to_string(), "{x: [1]}");
}

/// Made by flatc of plan.fbs and plan.json, by pyarrow of make.py.
macro_rules! made {
    ($file:literal) => {
        include_bytes!(concat!("../../tests/foreign/", $file))
    };
}

fn flat(schema: &[u8]) -> Result<Foreign, String> {
    let of = PayloadType::encoded(Encoding::FlatBuffer, "robot.Plan", schema);
    Foreign::of(&of.map_err(|e| e.to_string())?)
}

#[test]
fn a_flatbuffer_is_shown_with_its_fields_by_its_binary_schema() {
    let of = flat(made!("plan.bfbs")).unwrap();
    let text = concat!(
        r#"{goal: "dock", step: Dock, at: {x: 1.5, y: -2.0, z: 0.0}, "#,
        r#"boxes: [{low: {x: 0.0, y: 0.0, z: 0.0}, high: {x: 1.0, y: 2.0, z: 3.0}, id: 7, "#,
        r#"marks: [1, 2, 3]}], notes: [{text: "a", level: 7}, {text: "b", level: -1}], "#,
        r#"names: ["x", "ö"], data: 0001ff, numbers: [-1, 2], steps: [Wait, Drive], "#,
        r#"big: 18446744073709551615, on: true, maybe: 0, ratio: 0.5, next_type: Pause, "#,
        r#"next: {seconds: 2.5}, then_type: [Note, Pause], "#,
        r#"then: [{text: "n", level: 7}, {seconds: 1.0}], "#,
        r#"inner: {goal: "in", step: Drive, big: 0, on: true, ratio: 0.5, next_type: NONE, "#,
        r#"flags: 0}, flags: 3}"#
    );
    assert_eq!(of.tree(made!("plan.bin")).unwrap().to_string(), text);
    let schema = PayloadType::encoded(Encoding::FlatBuffer, "robot.Plan", made!("plan.bfbs"));
    let shown = schema_text(&schema.unwrap());
    for line in [
        "table robot.Plan {\n  goal: string;\n  step: robot.Step;\n  at: robot.Vec3;",
        "  boxes: [robot.Box];",
        "  numbers: [int16];",
        "  ratio: float64;",
        "struct robot.Box {\n  low: robot.Vec3;\n  high: robot.Vec3;\n  id: uint16;\n  \
         marks: [uint8:3];\n}",
        "enum robot.Step {\n  Dock = -2,\n  Wait = 0,\n  Drive = 3,\n}",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let other = PayloadType::encoded(Encoding::FlatBuffer, "robot.Other", made!("plan.bfbs"));
    let why = Foreign::of(&other.unwrap()).unwrap_err();
    assert_eq!(why, "its schema has no table robot.Other");
}

#[test]
fn a_table_of_arrow_is_shown_by_its_columns() {
    let of = |schema: &[u8]| {
        Foreign::of(&PayloadType::encoded(Encoding::Arrow, "table", schema).unwrap())
    };
    let tree = of(made!("table.schema")).unwrap().tree(made!("table.arrow")).unwrap();
    for (column, text) in [
        ("x", "[1.5, nil, -2.0]"),
        ("half", "[0.5, 1.0, -2.0]"),
        ("n", "[-1, 0, 127]"),
        ("big", "[0, 1, 18446744073709551615]"),
        ("on", "[true, false, nil]"),
        ("name", r#"["dock", nil, "grüß"]"#),
        ("long", r#"["a", "", "c"]"#),
        ("data", "[00ff, , nil]"),
        ("id", "[616263, 646566, 676869]"),
        ("list", "[[1, 2], [], nil]"),
        ("pair", "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]"),
        ("at", "[{x: 1, y: [0.5]}, nil, {x: 3, y: []}]"),
        ("mode", r#"["auto", "hand", "auto"]"#),
        ("price", r#"["1.25", "-0.05", nil]"#),
        ("when", "[1700000000000000000, 0, nil]"),
        ("day", "[19000, 0, 1]"),
        ("took", "[1, 2, 3]"),
        ("none", "[nil, nil, nil]"),
        ("map", r#"[[{key: "a", value: 1}], [], nil]"#),
        ("view", r#"["short", "a text of more than 12 bytes", nil]"#),
    ] {
        assert_eq!(tree.at(&path(column)).expect(column).to_string(), text, "{column}");
    }
    // The payload has its schema itself.
    assert_eq!(of(b"").unwrap().tree(made!("table.arrow")).unwrap(), tree);
    let shown = of(made!("table.schema")).unwrap();
    let Form::Arrow(arrow) = &shown.0 else { panic!("{shown:?}") };
    let text = arrow.text().unwrap();
    assert!(text.starts_with("x: float64\nhalf: float16\nn: int8\nbig: uint64\n"), "{text}");
    assert!(text.contains("at: struct\n  x: int32\n  y: list\n    item: float64"), "{text}");
    assert!(text.contains("mode: text, by dictionary"), "{text}");
    assert!(of(made!("plan.bfbs")).unwrap_err().contains("its schema is damaged"));
}

#[test]
fn damaged_payloads_and_schemas_that_lie_are_errors_or_other_values() {
    let (bfbs, plan) = (made!("plan.bfbs"), made!("plan.bin"));
    let (schema, table) = (made!("table.schema"), made!("table.arrow"));
    let arrow = |schema: &[u8]| {
        PayloadType::encoded(Encoding::Arrow, "table", schema).map_err(|e| e.to_string())
    };
    let arrow = |schema: &[u8]| arrow(schema).and_then(|of| Foreign::of(&of));
    let (of_plan, of_table) = (flat(bfbs).unwrap(), arrow(schema).unwrap());
    let untold = arrow(b"").unwrap();
    // What each change shows; a panic or an endless walk ends the test.
    fn changes(bytes: &[u8], mut show: impl FnMut(&[u8]) -> Result<Tree, String>) -> [usize; 2] {
        let mut ends = [0, 0];
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len() {
            for value in [0, 0xff, bytes[at].wrapping_add(1)] {
                changed[at] = value;
                ends[usize::from(show(&changed).is_err())] += 1;
            }
            changed[at] = bytes[at];
        }
        ends
    }
    let (set, json) = (self::plan(), r#"{"costs": {"time": 7}, "next": {"goal": "dock"}}"#);
    let payload = Foreign::of(&set).unwrap().payload(json).unwrap();
    let protobuf = |set: &[u8]| {
        let _ = set_text(set);
        let of = PayloadType::encoded(Encoding::Protobuf, "robot.Plan", set);
        Foreign::of(&of.map_err(|e| e.to_string())?)
    };
    let all = [
        changes(set.schema(), |bytes| protobuf(bytes)?.tree(&payload)),
        changes(plan, |bytes| of_plan.tree(bytes)),
        changes(bfbs, |bytes| flat(bytes)?.tree(plan)),
        changes(table, |bytes| of_table.tree(bytes)),
        changes(table, |bytes| untold.tree(bytes)),
        changes(schema, |bytes| arrow(bytes)?.tree(table)),
    ];
    for [fine, errors] in all {
        assert!(fine > 0 && errors > 0, "{all:?}");
    }
    for len in 0..plan.len() {
        let _ = of_plan.tree(&plan[..len]);
    }
    for len in 0..bfbs.len() {
        let _ = flat(&bfbs[..len]).and_then(|of| of.tree(plan));
    }
    for len in 0..table.len() {
        let _ = of_table.tree(&table[..len]);
    }
    let short = of_table.tree(&table[..table.len() - 200]).unwrap_err();
    assert!(short.contains("bytes and needs"), "{short}");
    assert!(of_plan.tree(b"").is_err() && of_table.tree(b"").is_err());
}

/// A table that has only the field of that id, with the offset to what is behind it.
fn table_with(id: usize) -> Vec<u8> {
    let slots = 22;
    let vtable_bytes = 4 + 2 * slots;
    let mut bytes = (4 + vtable_bytes as u32).to_le_bytes().to_vec();
    bytes.extend((vtable_bytes as u16).to_le_bytes());
    bytes.extend(8u16.to_le_bytes());
    (0..slots).for_each(|slot| bytes.extend(u16::to_le_bytes(if slot == id { 4 } else { 0 })));
    bytes
}

#[test]
fn a_small_flatbuffer_does_not_become_a_large_tree() {
    let of = flat(made!("plan.bfbs")).unwrap();
    let put = |bytes: &mut Vec<u8>, value: usize| bytes.extend((value as u32).to_le_bytes());
    // `inner` of `inner` ..., with one vtable for all.
    let mut bytes = table_with(18);
    for _ in 0..200 {
        let vtable = 4;
        let back = bytes.len() - vtable;
        put(&mut bytes, back);
        put(&mut bytes, 4);
    }
    let why = of.tree(&bytes).unwrap_err();
    assert!(why.starts_with("inner.inner.") && why.ends_with("it is nested too deep"), "{why}");
    // `names`, which are all the same text.
    let names = |many: usize| {
        let mut bytes = table_with(5);
        let back = bytes.len() - 4;
        put(&mut bytes, back);
        put(&mut bytes, 4);
        put(&mut bytes, many);
        (0..many).for_each(|i| put(&mut bytes, 4 * (many - i)));
        put(&mut bytes, 4000);
        bytes.resize(bytes.len() + 4000, b'x');
        bytes
    };
    let tree = of.tree(&names(100)).unwrap();
    assert_eq!(tree.at(&path("names[99]")).unwrap().to_string().len(), 4002);
    let why = of.tree(&names(100_000)).unwrap_err();
    assert!(why.contains("so often that it is too large"), "{why}");
}

/// A part of a FlatBuffer, and where in it the table or the vector begins.
type Built = (Vec<u8>, usize);

enum Part {
    Here(Vec<u8>),
    Far(Built),
}

/// Appends parts, and writes at the given places where they are.
fn lead_to(bytes: &mut Vec<u8>, parts: Vec<(usize, Built)>) {
    for (from, (part, at)) in parts {
        let by = (bytes.len() + at - from) as u32;
        bytes[from..from + 4].copy_from_slice(&by.to_le_bytes());
        bytes.extend(part);
    }
}

fn built(parts: Vec<(usize, Part)>) -> Built {
    let mut places = vec![0; parts.iter().map(|(id, _)| id + 1).max().unwrap_or(0)];
    let at = 4 + 2 * places.len();
    let (mut table, mut far) = ((at as u32).to_le_bytes().to_vec(), Vec::new());
    for (id, part) in parts {
        places[id] = table.len() as u16;
        match part {
            Part::Here(bytes) => table.extend(bytes),
            Part::Far(part) => {
                far.push((at + table.len(), part));
                table.extend([0; 4]);
            }
        }
    }
    let head = [at as u16, table.len() as u16];
    let mut bytes: Vec<u8> = head.iter().chain(&places).flat_map(|n| n.to_le_bytes()).collect();
    bytes.extend(table);
    lead_to(&mut bytes, far);
    (bytes, at)
}

fn vector(len: usize, bytes: &[u8]) -> Part {
    Part::Far(([&(len as u32).to_le_bytes()[..], bytes].concat(), 0))
}

fn tables(all: Vec<Built>) -> Part {
    let mut bytes = (all.len() as u32).to_le_bytes().to_vec();
    bytes.resize(4 + 4 * all.len(), 0);
    lead_to(&mut bytes, all.into_iter().enumerate().map(|(i, of)| (4 + 4 * i, of)).collect());
    Part::Far((bytes, 0))
}

/// A column `c` of a sort of type, with a dictionary or children.
fn column(sort: u8, more: Vec<(usize, Part)>) -> Built {
    let plain = Part::Far(built(vec![]));
    let own = vec![(0, vector(1, b"c")), (2, Part::Here(vec![sort])), (3, plain)];
    built(own.into_iter().chain(more).collect())
}

fn message(sort: u8, head: Built, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as i64).to_le_bytes().to_vec();
    let parts = vec![(1, Part::Here(vec![sort])), (2, Part::Far(head)), (3, Part::Here(len))];
    let (bytes, at) = built(parts);
    let (len, at) = (4 + bytes.len() as u32, 4 + at as u32);
    [&len.to_le_bytes()[..], &at.to_le_bytes(), &bytes, body].concat()
}

/// A record batch with so many rows in each node, and these buffers.
fn batch(rows: &[usize], buffers: &[&[u8]]) -> (Built, Vec<u8>) {
    let pair = |a: usize, b: usize| [(a as i64).to_le_bytes(), (b as i64).to_le_bytes()].concat();
    let nodes: Vec<u8> = rows.iter().flat_map(|rows| pair(*rows, 0)).collect();
    let (mut places, mut body) = (Vec::new(), Vec::new());
    for buffer in buffers {
        places.extend(pair(body.len(), buffer.len()));
        body.extend_from_slice(buffer);
    }
    let nodes = vector(rows.len(), &nodes);
    (built(vec![(1, nodes), (2, vector(buffers.len(), &places))]), body)
}

const BOOL: u8 = 6;
const TEXT: u8 = 5;
const LIST: u8 = 12;
const STRUCT: u8 = 13;

/// A table of one column.
fn arrow_of(column: Built, more: &[Vec<u8>]) -> Result<Tree, String> {
    let of = PayloadType::encoded(Encoding::Arrow, "table", b"").unwrap();
    let schema = message(1, built(vec![(1, tables(vec![column]))]), b"");
    Foreign::of(&of).unwrap().tree(&[schema, more.concat()].concat())
}

/// Texts of `len` bytes, each by an index of a byte.
fn by_dictionary(len: usize) -> Result<Tree, String> {
    let bits = Part::Here(8i32.to_le_bytes().to_vec());
    let index = built(vec![(0, bits), (1, Part::Here(vec![1]))]);
    let dictionary = built(vec![(1, Part::Far(index))]);
    let ends = [0u32.to_le_bytes(), (len as u32).to_le_bytes()].concat();
    let (data, body) = batch(&[1], &[b"", &ends, &vec![b'x'; len]]);
    let texts = message(2, built(vec![(1, Part::Far(data))]), &body);
    let (head, body) = batch(&[100_000], &[b"", &[0; 100_000]]);
    let column = column(TEXT, vec![(4, Part::Far(dictionary))]);
    arrow_of(column, &[texts, message(3, head, &body)])
}

#[test]
fn a_table_of_arrow_is_not_too_large_because_its_values_are_small() {
    let (bits, rows) = (vec![0x55; 50_000], 400_000);
    let shown = |tree: Result<Tree, String>, path: &str| {
        tree.map(|tree| tree.at(&self::path(path)).map(Tree::to_string))
    };
    let last = |text: &str| -> Result<_, String> { Ok(Some(text.to_owned())) };
    let (head, body) = batch(&[rows], &[b"", &bits]);
    let bools = arrow_of(column(BOOL, vec![]), &[message(3, head, &body)]);
    assert_eq!(shown(bools, "c[399998]"), last("true"));

    let of = |sort| column(sort, vec![(5, tables(vec![column(BOOL, vec![])]))]);
    let ends = [0u32.to_le_bytes(), (rows as u32).to_le_bytes()].concat();
    let (head, body) = batch(&[1, rows], &[b"", &ends, b"", &bits]);
    let lists = arrow_of(of(LIST), &[message(3, head, &body)]);
    assert_eq!(shown(lists, "c[0][399999]"), last("false"));
    let (head, body) = batch(&[rows, rows], &[b"", b"", &bits]);
    let structs = arrow_of(of(STRUCT), &[message(3, head, &body)]);
    assert_eq!(shown(structs, "c[399998].c"), last("true"));

    assert!(shown(by_dictionary(30), "c[99999]").unwrap().is_some());
    let why = by_dictionary(4000).unwrap_err();
    assert!(why.contains("so often that it is too large"), "{why}");
}
