//! Tables of payloads: `topic echo --csv` and `convert`.

mod common;

use std::fs;

use common::*;
use outlive::describe::Scalar;
use outlive::{Encoding, PayloadType, TypeDescription, msgpack};
use prost_reflect::prost_types::OneofDescriptorProto;
use proto::{Type, message, set};

/// What both make of a topic with these messages.
struct Tables {
    echo: Ran,
    convert: Ran,
    table: String,
}

impl Tables {
    fn of(label: &str, of: &PayloadType, payloads: &[&[u8]]) -> Self {
        let home = Home::new(label);
        let node = outlive::Node::builder().root(home.root()).open().unwrap();
        let topic = node.topic::<[u8]>("/t").unwrap().of_type(of).depth(8);
        let publisher = topic.publisher().unwrap();
        for payload in payloads {
            publisher.publish(payload).unwrap();
        }
        let echo = home.run("topic echo /t --csv --history 8 --timeout 0");
        let file = home.root().with_file_name("rows.mcap");
        let (path, count) = (file.display(), payloads.len());
        home.run(&format!("record /t --history 8 --count {count} -o {path}")).expect(DONE);
        let convert = home.run(&format!("convert {path}"));
        let table = fs::read_to_string(file.with_extension("").join("t.csv")).unwrap();
        Self { echo, convert, table }
    }

    /// Lines of both, without what each says of every message; both ended with that code.
    fn lines(self, code: i32) -> Vec<String> {
        let cut = |text: &str, columns: usize| -> Vec<String> {
            let last = |line: &str| line.splitn(columns + 1, ',').last().unwrap().to_owned();
            text.lines().map(last).collect()
        };
        let shown = cut(self.echo.expect(code).text(), 6);
        self.convert.expect(code);
        assert_eq!(shown, cut(&self.table, 5));
        shown
    }
}

fn encoded(encoding: Encoding, name: &str, schema: &[u8]) -> PayloadType {
    PayloadType::encoded(encoding, name, schema).unwrap()
}

/// The first one made all of the topic a column of hexadecimal digits, and later ones were rows of
/// empty cells.
#[test]
fn what_is_not_of_its_type_has_no_row_and_is_counted() {
    let json = encoded(Encoding::Json, "robot/Goal", b"");
    let all: &[&[u8]] = &[b"{damaged", b"", br#"{"x": 1, "y": 2}"#, b"{", br#"{"x": 3}"#];
    let tables = Tables::of("tables-damaged", &json, all);
    let told = [&tables.echo.err, &tables.convert.err].map(String::clone);
    assert_eq!(tables.lines(CORRUPT), ["x,y", "1,2", "3,"]);
    for (told, why) in
        told.iter().zip(["left out 3 messages: not of the topic's type", "3 messages are damaged"])
    {
        assert!(told.contains(why), "{told}");
    }
}

/// ```proto
/// message Plan { string goal = 1; At at = 2; oneof how { double fast = 3; Plan then = 4; } }
/// message At { double x = 1; double y = 2; }
/// ```
fn plan() -> PayloadType {
    let mut plan = message(
        "Plan",
        &[
            ("goal", Type::String, ""),
            ("at", Type::Message, ".robot.At"),
            ("fast", Type::Double, ""),
            ("then", Type::Message, ".robot.Plan"),
        ],
    );
    plan.oneof_decl = vec![OneofDescriptorProto { name: Some("how".into()), options: None }];
    plan.field[2..].iter_mut().for_each(|field| field.oneof_index = Some(0));
    let at = message("At", &[("x", Type::Double, ""), ("y", Type::Double, "")]);
    encoded(Encoding::Protobuf, "robot.Plan", &set(vec![plan, at]))
}

/// What the first message had not set was missing in all rows.
#[test]
fn columns_of_protocol_buffers_are_those_of_the_schema() {
    let x = [&[0x09][..], &1.5f64.to_le_bytes()].concat();
    let second = [&[0x12, x.len() as u8][..], &x, b"\x22\x03\x0a\x01b"].concat();
    let lines = Tables::of("tables-protobuf", &plan(), &[b"\x0a\x01a", &second]).lines(DONE);
    let then = r#""{""goal"":""b""}""#;
    assert_eq!(lines, ["goal,at.x,at.y,fast,then", "a,,,,", &format!(",1.5,0.0,,{then}")]);
}

/// Kept beside what reads them.
macro_rules! made {
    ($file:literal) => {
        include_bytes!(concat!("../../outlive-record/tests/foreign/", $file))
    };
}

#[test]
fn columns_of_flatbuffers_are_those_of_the_schema() {
    let (schema, full) = (made!("plan.bfbs"), made!("plan.bin"));
    // A table without fields.
    let empty = [8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0];
    let of = encoded(Encoding::FlatBuffer, "robot.Plan", schema);
    let lines = Tables::of("tables-flatbuffer", &of, &[&empty, full]).lines(DONE);
    let head = "goal,step,at.x,at.y,at.z,boxes,notes,names,data,numbers,steps,big,on,maybe,ratio,\
                next_type,next.text,next.level,next.seconds,then_type,then,inner,flags";
    assert_eq!(lines[0], head);
    assert_eq!(lines[1], ",Drive,,,,,,,,,,0,true,,0.5,NONE,,,,,,,0");
    assert!(lines[2].starts_with("dock,Dock,1.5,-2.0,0.0,"), "{}", lines[2]);
    assert!(lines[2].contains(",true,0,0.5,Pause,,,2.5,"), "{}", lines[2]);
}

/// Their cells were empty.
#[test]
fn a_name_with_a_dot_or_a_bracket_has_its_cells() {
    let value: serde_json::Value = serde_json::from_str(r#"{"left.arm": 1, "b[0]": 2}"#).unwrap();
    let payload = msgpack::encode(&value).unwrap();
    let of = PayloadType::msgpack("map").unwrap();
    let lines = Tables::of("tables-names", &of, &[&payload]).lines(DONE);
    assert_eq!(lines, ["b[0],left.arm", "2,1"]);

    let f64s = || TypeDescription::scalar(Scalar::F64);
    let described =
        TypeDescription::struct_of(24, 8).field("a.b", 0, f64s()).field("c[0]", 8, f64s().array(2));
    let of = PayloadType::fixed("odd", &described).unwrap();
    let payload = [1.5f64, 2.5, 3.5].map(f64::to_le_bytes).concat();
    let lines = Tables::of("tables-fields", &of, &[&payload]).lines(DONE);
    assert_eq!(lines, ["a.b,c[0][0],c[0][1]", "1.5,2.5,3.5"]);
}
