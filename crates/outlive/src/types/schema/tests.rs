//! Schemas that are stored, compared and refused.

use super::*;

/// A field of bytes on the wire, of fewer than 16384.
fn bytes(number: u8, of: &[u8]) -> Vec<u8> {
    let (tag, len) = (number << 3 | 2, of.len());
    match len {
        0..128 => [&[tag, len as u8], of].concat(),
        _ => [&[tag, len as u8 | 0x80, (len >> 7) as u8], of].concat(),
    }
}

fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

fn field(name: &str, at: u8, sort: u8, of: &str) -> Vec<u8> {
    let of = if of.is_empty() { Vec::new() } else { bytes(6, of.as_bytes()) };
    let parts = [bytes(1, name.as_bytes()), number(3, at), number(4, 1), number(5, sort), of];
    bytes(2, &parts.concat())
}

fn file(name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
    let package = bytes(2, b"robot");
    bytes(1, &[bytes(1, name.as_bytes()), package, parts.concat()].concat())
}

/// `message Plan { string goal = 1; Step step = 2; enum Step { WAIT = 0; DRIVE = 1; } }`
fn plan(goal: u8, drive: &str) -> Vec<u8> {
    let value = |name: &str, n| bytes(2, &[bytes(1, name.as_bytes()), number(2, n)].concat());
    let step = [bytes(1, b"Step"), value("WAIT", 0), value(drive, 1)].concat();
    let fields = [field("goal", 1, goal, ""), field("step", 2, 14, ".robot.Plan.Step")].concat();
    bytes(4, &[bytes(1, b"Plan"), fields, bytes(4, &step)].concat())
}

fn other(name: &str) -> Vec<u8> {
    bytes(4, &bytes(1, name.as_bytes()))
}

const STRING: u8 = 9;
const INT32: u8 = 5;

fn set(plan: Vec<u8>) -> Vec<u8> {
    let import = bytes(3, b"base.proto");
    let comments = bytes(9, b"what the authors wrote");
    let plan = file("plan.proto", &[import, plan, comments]);
    [plan, file("unused.proto", &[other("Unused")]), file("base.proto", &[other("Base")])].concat()
}

fn proto(schema: &[u8]) -> Of<'_> {
    (Encoding::Protobuf, "robot.Plan", schema)
}

#[test]
fn of_a_set_the_needed_files_are_stored_imports_first_and_without_comments() {
    let plain = file("plan.proto", &[bytes(3, b"base.proto"), plan(STRING, "DRIVE")]);
    let wanted = [file("base.proto", &[other("Base")]), plain].concat();
    let all = set(plan(STRING, "DRIVE"));
    assert_eq!(stored(proto(&all)), Ok(wanted.clone()));
    assert_eq!(stored(proto(&wanted)), Ok(wanted), "once more changes nothing");
}

#[test]
fn sets_agree_if_the_fields_do_and_each_difference_is_named() {
    let ours = set(plan(STRING, "DRIVE"));
    let theirs = stored(proto(&ours)).unwrap();
    assert_eq!(differences(proto(&theirs), proto(&ours)), [""; 0]);
    assert_eq!(differences(proto(&[]), proto(&ours)), [""; 0], "no schema agrees with any");
    let changed = set(plan(INT32, "GO"));
    let lines = [
        "robot.Plan has 'string goal = 1', this program has 'int32 goal = 1'",
        "robot.Plan.Step has 'DRIVE = 1', this program has 'GO = 1'",
    ];
    assert_eq!(differences(proto(&ours), proto(&changed)), lines);
    let more = [plan(STRING, "DRIVE"), Vec::new()].concat();
    let two = bytes(4, &[bytes(1, b"Plan"), field("goal", 1, STRING, "")].concat());
    let lines = differences(proto(&set(more)), proto(&set(two)));
    assert_eq!(
        lines,
        [
            "'robot.Plan.Step step = 2' of robot.Plan is missing in this program",
            "'WAIT = 0' of robot.Plan.Step is missing in this program",
            "'DRIVE = 1' of robot.Plan.Step is missing in this program"
        ]
    );
}

#[test]
fn a_set_that_lacks_what_is_needed_says_what() {
    let lacks = |of: Of<'_>| stored(of).unwrap_err();
    let all = set(plan(STRING, "DRIVE"));
    let none = lacks((Encoding::Protobuf, "robot.Goal", &all));
    assert!(
        none.ends_with("it has no message robot.Goal, but robot.Base, robot.Plan, robot.Unused")
    );
    let alone = file("plan.proto", &[bytes(3, b"base.proto"), plan(STRING, "DRIVE")]);
    assert!(lacks(proto(&alone)).contains("it lacks base.proto, which plan.proto imports"));
    let circle = [
        file("plan.proto", &[bytes(3, b"a.proto"), plan(STRING, "DRIVE")]),
        file("a.proto", &[bytes(3, b"plan.proto")]),
    ];
    assert!(lacks(proto(&circle.concat())).contains("in a circle"));
    let strange = bytes(4, &[bytes(1, b"Plan"), field("x", 1, 11, ".other.X")].concat());
    let strange = file("plan.proto", &[strange]);
    assert!(lacks(proto(&strange)).contains("it lacks other.X, which a field names"));
    let apart = bytes(4, &[bytes(1, b"Plan"), field("x", 1, 11, ".robot.Base")].concat());
    let apart = [file("plan.proto", &[apart]), file("base.proto", &[other("Base")])].concat();
    assert!(lacks(proto(&apart)).contains("it lacks robot.Base, which a field names"));
    // A message of 70 inside one another, from the inside out.
    let name = bytes(1, b"M");
    let deep = (0..70).fold(name.clone(), |inner, _| [name.clone(), bytes(3, &inner)].concat());
    let deep = file("deep.proto", &[bytes(4, &deep)]);
    assert!(lacks(proto(&deep)).contains("nested more than 32 deep"));
}

#[test]
fn any_bytes_are_read_as_a_set_without_a_panic() {
    let all = set(plan(STRING, "DRIVE"));
    for end in 0..all.len() {
        let _ = stored(proto(&all[..end]));
        let _ = differences(proto(&all[..end]), proto(&all));
    }
    for at in 0..all.len() {
        for bit in 0..8 {
            let mut broken = all.clone();
            broken[at] ^= 1 << bit;
            let _ = stored(proto(&broken));
            let _ = differences(proto(&broken), proto(&all));
        }
    }
    assert!(stored(proto(b"outlive-type 1 align 8\n")).unwrap_err().contains("protoc"));
}

#[test]
fn of_json_schema_white_space_does_not_count() {
    let json = |text: &str| stored((Encoding::Json, "x", text.as_bytes()));
    let compact = json("{ \"a b\\\" \": [1,\n\t2] }").unwrap();
    assert_eq!(String::from_utf8(compact).unwrap(), "{\"a b\\\" \":[1,2]}");
    for (bad, why) in [
        ("[1]", "it is not a JSON object"),
        ("{\"a\": 1", "its end is missing"),
        ("{\"a\": 1]", "byte 7 closes nothing"),
        ("{\"a}", "byte 1 begins text without end"),
    ] {
        assert!(json(bad).unwrap_err().ends_with(why), "{bad}: {:?}", json(bad));
    }
    assert!(json(&"{".repeat(200)).unwrap_err().contains("nested more than 128 deep"));
    assert!(stored((Encoding::Json, "x", b"{\xff}")).unwrap_err().contains("from byte 1"));
    let of = |text: &'static str| (Encoding::Json, "x", text.as_bytes());
    let lines = differences(of("{\"type\":\"object\"}"), of("{\"type\":\"array\"}"));
    let line = "its schema has '{\"type\":\"object\"}' from byte 0, \
                this program has '{\"type\":\"array\"}'";
    assert_eq!(lines, [line]);
}

#[test]
fn of_a_definition_of_ros_comments_do_not_count_but_values_do() {
    let of = |text: &'static str| (Encoding::Cdr, "x/msg/Y", text.as_bytes());
    let ours = of("# Where it is.\nfloat64  x  # m\n\nstring NAME=\"a#b\"\n");
    assert_eq!(differences(of("float64 x\nstring NAME=\"a#b\""), ours), [""; 0]);
    let line = "its definition has 'float32 x', this program has 'float64 x'";
    assert_eq!(differences(of("float32 x\nstring NAME=\"a#b\""), ours), [line]);
    let line = "its definition has 'string NAME=\"a#c\"', this program has 'string NAME=\"a#b\"'";
    assert_eq!(differences(of("float64 x\nstring NAME=\"a#c\""), ours), [line]);
    let bare = of("string name 'x'\nfloat64 y\nstring z");
    let told = of("string name 'x'  # What\nfloat64 y # it's\nstring z# \"\n");
    assert_eq!(differences(bare, told), [""; 0]);
    assert_eq!(differences(told, bare), [""; 0]);
    let line = "its definition has 'nothing more', this program has 'string NAME=\"a#b\"'";
    assert_eq!(differences(of("float64 x"), ours), [line]);
}

#[test]
fn of_a_definition_of_ros_the_order_of_the_types_within_does_not_count() {
    let of = |text: &'static str| (Encoding::Cdr, "x/msg/Y", text.as_bytes());
    let ours = of("a/A a\nb/B[2] b\n===\nMSG: a/A\nint8 x\n===\nMSG: b/B\nint8 y\n");
    let theirs =
        of("a/msg/A a\nb/msg/B[2] b\n=====\nMSG: b/msg/B\nint8 y\n=====\nMSG: a/msg/A\nint8 x\n");
    assert_eq!(differences(theirs, ours), [""; 0]);
    let other = of("a/A a\nb/B[2] b\n===\nMSG: b/B\nint8 x\n===\nMSG: a/A\nint8 x\n");
    let line = "its definition has 'int8 x', this program has 'int8 y'";
    assert_eq!(differences(other, ours), [line]);
    let swapped = of("b/B[2] b\na/A a\n===\nMSG: a/A\nint8 x\n===\nMSG: b/B\nint8 y\n");
    let line = "its definition has 'b/B[2] b', this program has 'a/A a'";
    assert_eq!(differences(swapped, ours), [line]);
}

#[test]
fn a_schema_that_no_topic_holds_is_refused() {
    let large = vec![b'x'; SCHEMA_BYTES_MAX + 1];
    for encoding in [Encoding::Cdr, Encoding::Arrow] {
        assert!(stored((encoding, "x", &large)).unwrap_err().contains("a topic holds 65536"));
        assert!(stored((encoding, "x", &large[1..])).is_ok());
    }
    let no_schema = stored((Encoding::FlatBuffer, "x", b"table X {}")).unwrap_err();
    assert!(no_schema.contains("flatc --binary --schema"));
}
