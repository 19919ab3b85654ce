//! Tables of payloads: `topic echo --csv` and `convert`.

mod common;

use std::fs;

use common::*;
use outlive::describe::Scalar;
use outlive::{Encoding, PayloadType, TypeDescription, msgpack};

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
