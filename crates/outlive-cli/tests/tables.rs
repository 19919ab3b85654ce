//! Tables of payloads: `topic echo --csv` and `convert`.

mod common;

use std::fs;

use common::*;
use outlive::describe::Scalar;
use outlive::{PayloadType, TypeDescription, msgpack};

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
