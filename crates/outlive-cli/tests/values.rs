//! Values of described types, numbers and MessagePack: from JSON, and shown again.

mod common;

use std::process::Command;
use std::time::Duration;

use common::*;
use outlive::{MsgPack, PayloadType, msgpack};
use serde_json::{Value, json};

#[outlive::message("test/Goal")]
#[derive(Clone, Copy, Debug)]
struct Goal {
    position: [f64; 2],
    id: u32,
    tolerance: f32,
}

#[outlive::message("test/Arm")]
struct Arm {
    key: char,
    mode: Mode,
    ready: bool,
    reserved: [u8; 2],
    limit: outlive::msg::Optional<f64>,
}

#[outlive::message]
#[derive(Debug, PartialEq)]
#[repr(u8)]
enum Mode {
    Idle,
    Driving,
}

#[test]
fn truth_enums_and_characters_are_written_and_shown_by_name_also_those_that_are_none() {
    let home = Home::new("arm");
    let node = node(&home);
    let mut subscriber = node.topic::<Arm>("/arm").unwrap().subscriber().unwrap();
    let value = r#"{"key": "k", "mode": "driving", "ready": true, "reserved": [0, 0],
                    "limit": {"present": true, "value": 0.5}}"#;
    with(home.outlive("topic pub /arm --json"), value).expect(DONE);
    let got = subscriber.receive().unwrap().unwrap();
    assert_eq!(
        (got.key, &got.mode, got.ready, got.limit.get()),
        ('k', &Mode::Driving, true, Some(0.5))
    );
    let bytes = got.as_bytes().to_vec();

    let echo = |args: &str| format!("topic echo /arm --history 8 --timeout 0 {args}");
    let line = home.run(&echo("")).expect(DONE);
    let shown = "{key: \"k\", mode: Driving, ready: true, reserved: [0, 0], \
                 limit: {present: true, value: 0.5}}\n";
    assert!(line.text().ends_with(shown), "{}", line.text());
    let object: Value = home.run(&echo("--json --field mode")).json();
    assert_eq!(object["fields"], json!({"mode": "Driving"}));

    let raw = subscriber.payload_type();
    let raw = node.topic::<[u8]>("/arm").unwrap().of_type(&raw).publisher().unwrap();
    let bad: Vec<u8> = bytes.iter().enumerate().map(|(i, b)| if i == 4 { 9 } else { *b }).collect();
    raw.publish(&bad).unwrap();
    let line = home.run(&echo("--field mode")).expect(DONE);
    assert!(line.text().ends_with("  9\n"), "{}", line.text());
}

fn node(home: &Home) -> outlive::Node {
    outlive::Node::builder().root(home.root()).open().unwrap()
}

/// The command with one argument that may have blanks in it.
fn with(mut command: Command, arg: &str) -> Ran {
    Ran::from(command.arg(arg).output().unwrap())
}

#[test]
fn json_becomes_a_described_value_and_echo_shows_its_fields() {
    let home = Home::new("goal");
    let node = node(&home);
    let mut subscriber = node.topic::<Goal>("/goal").unwrap().subscriber().unwrap();
    let value = r#"{"id": 7, "position": [1.5, -2], "tolerance": 0.1}"#;
    let echo = |args: &str| format!("topic echo /goal --history 8 --timeout 0 {args}");
    let publish = home.outlive("topic pub /goal");
    assert!(with(publish, value).expect(DONE).err.contains("published 1 message\n"));
    let got = subscriber.receive().unwrap().unwrap();
    assert_eq!((got.position, got.id, got.tolerance), ([1.5, -2.0], 7, 0.1));

    let line = home.run(&echo("")).expect(DONE);
    let shown = "  24 B  {position: [1.5, -2.0], id: 7, tolerance: 0.1}\n";
    assert!(line.text().ends_with(shown), "{}", line.text());
    let parts = home.run(&echo("--field position[1] --field id")).expect(DONE);
    assert!(parts.text().ends_with("  24 B  -2.0  7\n"), "{}", parts.text());
    let object: Value = home.run(&echo("--json")).json();
    let whole = json!({"position": [1.5, -2.0], "id": 7, "tolerance": 0.1});
    assert_eq!((&object["value"]["id"], &object["whole"]), (&json!(7), &json!(true)));
    assert_eq!(object["value"]["position"], whole["position"]);
    let object: Value = home.run(&echo("--json --field position")).json();
    assert_eq!(object["fields"], json!({"position": [1.5, -2.0]}));
    let table = home.run(&echo("--csv")).expect(DONE);
    let lines: Vec<_> = table.text().lines().collect();
    let head = "node,port,seq,timestamp_ns,lost_before,bytes,\
                position[0],position[1],id,tolerance";
    assert_eq!((lines.len(), lines[0]), (2, head));
    assert!(lines[1].ends_with(",0,24,1.5,-2.0,7,0.1"), "{}", lines[1]);

    let wrong = home.run(&echo("--field pos")).expect(USAGE);
    assert!(wrong.err.contains("no field 'pos' among position, id, tolerance"), "{}", wrong.err);
    for (value, why) in [
        (r#"{"id": 7, "position": [1.5, -2]}"#, "tolerance is missing"),
        (
            r#"{"id": -7, "position": [1, 2], "tolerance": 1}"#,
            "id must be a u32 (0 to 4294967295), not -7",
        ),
        ("{", "'{' is not JSON: EOF"),
        ("x", "'x' is not JSON"),
    ] {
        let ran = with(home.outlive("topic pub /goal"), value).expect(USAGE);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    assert!(subscriber.receive().unwrap().is_none(), "nothing of that was sent");
}

#[test]
fn lines_of_json_become_messagepack_and_come_out_again() {
    let home = Home::new("msgpack");
    let publish = "topic pub /m --type msgpack - --linger inf";
    let input = b"{\"z\": {\"b\": [1, 2.5]}, \"a\": \"x, y\"}\n\n{\"a\": null}\n";
    let publisher = home.start(publish, input);
    home.await_messages(2);
    let echo = |args: &str| format!("topic echo /m --history 8 --timeout 0 {args}");
    let text = home.run(&echo("")).expect(DONE);
    let lines: Vec<_> = text.text().lines().collect();
    assert!(lines[0].ends_with(r#"  {z: {b: [1, 2.5]}, a: "x, y"}"#), "{}", lines[0]);
    assert!(lines[1].ends_with("  {a: nil}"), "{}", lines[1]);
    let table = home.run(&echo("--csv")).expect(DONE);
    let lines: Vec<_> = table.text().lines().collect();
    assert!(lines[0].ends_with(",bytes,z.b,a"), "{}", lines[0]);
    assert!(lines[1].ends_with(r#","[1,2.5]","x, y""#), "{}", lines[1]);
    assert!(lines[2].ends_with(",,"), "{}", lines[2]);
    let one = home.run(&echo("--json --field z.b[1] --count 1")).json();
    assert_eq!(one["fields"], json!({"z.b[1]": 2.5}));
    publisher.signal(libc::SIGINT);
    publisher.end().expect(DONE);
}

/// Reading ended there, with code 0.
#[test]
fn lines_that_are_no_text_are_bytes_or_an_error_and_so_is_what_cannot_be_read() {
    let home = Home::new("lines");
    let node = node(&home);
    let mut bytes = node.topic::<[u8]>("/log").unwrap().subscriber().unwrap();
    let mut text = node.msgpack::<String>("/text").unwrap().subscriber().unwrap();
    let ran = home.feed("topic pub /log -", b"a\n\xe4\r\n\n\0b").expect(DONE);
    assert!(ran.err.contains("published 3 messages"), "{}", ran.err);
    let mut next = || bytes.receive().unwrap().map(|m| m.to_vec());
    assert_eq!([next(), next(), next()], [&b"a"[..], b"\xe4", b"\0b"].map(|m| Some(m.to_vec())));
    let ran = home.feed("topic pub /text -", b"a\n\n\xe4\nb\n").expect(USAGE);
    assert!(ran.err.contains("line 3 of standard input is not UTF-8"), "{}", ran.err);
    assert_eq!(text.receive().unwrap().unwrap().decode().unwrap(), "a");
    assert!(text.receive().unwrap().is_none());

    let mut dir = home.outlive("topic pub /log -");
    dir.stdin(std::fs::File::open("/").unwrap());
    let ran = Ran::from(dir.output().unwrap()).expect(FAILED);
    assert!(ran.err.contains("read standard input: Is a directory"), "{}", ran.err);
    // Longer than what is read at once, and all there before it looks.
    let long = [&[b'x'; 200_000][..], b"\ny\nz"].concat();
    home.feed("topic pub /log -", &long).expect(DONE);
    let mut next = || bytes.receive().unwrap().map(|m| m.len());
    assert_eq!([next(), next(), next(), next()], [Some(200_000), Some(1), Some(1), None]);
}

/// A publisher's escape sequences cleared the screen of who looked.
#[test]
fn control_characters_in_keys_do_not_reach_the_terminal() {
    let home = Home::new("keys");
    let node = node(&home);
    let value = json!({"\u{1b}]0;x\u{7}\u{1b}[2J\n\u{9b}31m": {"a\rb": 1}});
    let publisher = node.msgpack::<Value>("/evil").unwrap().publisher().unwrap();
    publisher.publish_value(&value).unwrap();
    let (of, bytes) = (PayloadType::msgpack("evil").unwrap(), msgpack::encode(&value).unwrap());
    let queue = || node.queue::<[u8]>("/evil").unwrap().of_type(&of);
    let _consumer = queue().consumer().unwrap();
    queue().producer().unwrap().send(&bytes).unwrap();
    let service = node.service::<[u8], MsgPack<Value>>("/evil").unwrap();
    let mut server = service.server().unwrap();
    let called = home.start_open("service call /evil x --timeout 60");
    let request = server.receive_timeout(Duration::from_secs(60)).unwrap().expect("a request");
    server.respond(request, MsgPack::new(&bytes)).unwrap();
    for ran in [
        home.run("topic echo /evil --history 1 --timeout 0"),
        home.run("queue echo /evil"),
        called.end(),
    ] {
        let ran = ran.expect(DONE);
        let raw = ran.text().chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(raw, None, "{:?}", ran.text());
        assert!(ran.text().contains(r"\u{1b}]0;x\u{7}\u{1b}[2J\n\u{9b}31m: "), "{}", ran.text());
        assert_eq!(ran.text().lines().filter(|l| l.contains("31m")).count(), 1);
    }
}

#[test]
fn numbers_and_slices_can_be_made_from_nothing() {
    let home = Home::new("numbers");
    let publisher = home.start_open("topic pub /n --type f64[] [1,2.5] --linger inf");
    home.await_messages(1);
    let line = home.run("topic echo /n --history 1 --timeout 0").expect(DONE);
    assert!(line.text().ends_with("  16 B  1 2.5\n"), "{}", line.text());
    let table = home.run("topic echo /n --history 1 --timeout 0 --csv").expect(DONE);
    assert!(table.text().contains("bytes,value\n"), "{}", table.text());
    assert!(table.text().ends_with(",16,\"[1.0,2.5]\"\n"), "{}", table.text());
    publisher.signal(libc::SIGINT);
    publisher.end().expect(DONE);
}

#[test]
fn what_cannot_be_published_has_its_code() {
    let home = Home::new("pub-codes");
    for (value, r#type) in [
        ("1", "i64"),
        ("1.5", "f64"),
        ("-1.5", "f64"),
        ("[1,2]", "f64[]"),
        ("{\"a\":1}", "msgpack"),
        ("it's", "msgpack"),
    ] {
        let ran = home.run(&format!("topic pub /a {value}")).expect(NOT_FOUND);
        // The line that is proposed does it, in a shell too.
        let proposed = ran.err.trim().rsplit_once("outlive topic pub ").unwrap().1.to_owned();
        assert!(proposed.ends_with(&format!("--type {type}")), "{}", ran.err);
        let mut shell = testkit::spawn::spawn_program("sh");
        let outlive = env!("CARGO_BIN_EXE_outlive");
        shell.args(["-c", &format!("{outlive} topic pub {proposed}")]);
        let done = shell.env("OUTLIVE_DIR", home.root()).output().unwrap();
        assert!(done.status.success(), "{proposed}: {}", String::from_utf8_lossy(&done.stderr));
    }
    for args in [
        "topic pub /a",
        "topic pub /a --type u64",
        "topic pub /a --type string 1",
        "topic pub /a --type msgpack[] 1",
        "topic pub /a 1 --from-stdin --frame-bytes 4",
        "topic pub /a 1 --json 1",
        "topic pub /a 1 2",
        "topic pub /a --type f64 --from-stdin --frame-bytes 4",
        "topic echo /a --csv --json",
        "topic echo /a --raw --field x",
    ] {
        home.run(args).expect(USAGE);
    }
    let node = node(&home);
    let _publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    home.run("topic pub /n --type f64 1").expect(MISMATCH);
    home.run("topic echo /n --field x --timeout 0").expect(USAGE);
}

#[test]
fn the_topic_says_what_a_typed_value_is() {
    let home = Home::new("typed");
    let node = node(&home);
    let mut speed = node.topic::<f32>("/speed").unwrap().subscriber().unwrap();
    let mut count = node.topic::<u8>("/count").unwrap().subscriber().unwrap();
    let mut text = node.topic::<[u8]>("/text").unwrap().subscriber().unwrap();
    let mut mode = node.msgpack::<String>("/mode").unwrap().subscriber().unwrap();
    for value in ["1.5", "-2", "nan", "inf"] {
        home.run(&format!("topic pub /speed {value}")).expect(DONE);
    }
    let mut next = || *speed.receive().unwrap().unwrap();
    assert_eq!((next(), next()), (1.5, -2.0));
    assert!(next().is_nan() && next().is_infinite());
    with(home.outlive("topic pub /text"), "{ not JSON").expect(DONE);
    assert_eq!(&*text.receive().unwrap().unwrap(), b"{ not JSON", "bytes are sent as they are");
    with(home.outlive("topic pub /mode"), "go home").expect(DONE);
    assert_eq!(mode.receive().unwrap().unwrap().decode().unwrap(), "go home");
    for (topic, value, why) in [
        ("/count", "256", "must be a u8 (0 to 255), not 256"),
        ("/count", "-1", "must be a u8 (0 to 255), not -1"),
        ("/count", "1.5", "must be a u8 (0 to 255), not 1.5"),
        ("/count", "[1]", "must be a u8 (0 to 255), not [1]"),
        ("/count", "x", "'x' is not JSON"),
        ("/speed", "1e300", "must fit an f32, 1e+300 does not"),
        ("/speed", "fast", "must be a number, not \"fast\""),
        ("/mode", "{\"a\":", "is not JSON: EOF"),
    ] {
        let ran = home.run(&format!("topic pub {topic} {value}")).expect(USAGE);
        assert!(ran.err.contains(why), "{topic} {value}: {}", ran.err);
    }
    assert!(count.receive().unwrap().is_none(), "nothing of that was sent");
    home.run("topic pub /count 255").expect(DONE);
    assert_eq!(*count.receive().unwrap().unwrap(), 255);
}

/// `package robot; message Plan { string goal = 1; repeated double points = 2; }` as protoc writes
/// it.
fn plan_set() -> Vec<u8> {
    let field = |number: u8, of: &[u8]| [&[number << 3 | 2, of.len() as u8], of].concat();
    let member = |name: &str, number: u8, label: u8, of: u8| {
        let rest = vec![3 << 3, number, 4 << 3, label, 5 << 3, of];
        field(2, &[field(1, name.as_bytes()), rest].concat())
    };
    let members = [member("goal", 1, 1, 9), member("points", 2, 3, 1)].concat();
    let plan = [field(1, b"Plan"), members].concat();
    let parts =
        [field(1, b"plan.proto"), field(2, b"robot"), field(4, &plan), field(12, b"proto3")];
    field(1, &parts.concat())
}

#[test]
fn a_message_of_protocol_buffers_is_published_shown_recorded_and_played() {
    let home = Home::new("protobuf");
    let set = home.root().with_extension("bin");
    std::fs::write(&set, plan_set()).unwrap();
    let shown = set.display();
    let publish =
        format!("topic pub /plan - --type protobuf:robot.Plan --schema {shown} --linger inf");
    let publisher = home.start(&publish, b"{\"goal\": \"dock\", \"points\": [1.5, -2]}\n");
    home.await_messages(1);
    let echo = |args: &str| format!("topic echo /plan --history 8 --timeout 0 {args}");
    let line = home.run(&echo("")).expect(DONE);
    let text = "  {goal: \"dock\", points: [1.5, -2.0]}\n";
    assert!(line.text().ends_with(text), "{}", line.text());
    let part = home.run(&echo("--json --field points[1]")).json();
    assert_eq!(part["fields"], json!({"points[1]": -2.0}));
    let info = home.run("topic info /plan").expect(DONE);
    let fields = "    string goal = 1;\n    repeated double points = 2;\n";
    let schema = format!("Schema\n  message robot.Plan {{\n{fields}  }}\n");
    assert!(info.text().contains(&schema), "{}", info.text());

    let file = home.root().with_extension("mcap");
    home.run(&format!("record /plan --history 8 --count 1 --output {}", file.display()))
        .expect(DONE);
    publisher.signal(libc::SIGINT);
    publisher.end().expect(DONE);
    let echo = home.start("topic echo /plan --count 1", b"");
    let play = format!("play {} --wait-for-subscribers 1", file.display());
    home.run(&play).expect(DONE);
    assert!(echo.end().expect(DONE).text().ends_with(text));
}

#[test]
fn a_wrong_schema_a_wrong_value_and_another_topic_say_what_is_wrong() {
    let home = Home::new("schemas");
    let set = home.root().with_extension("bin");
    let pub_as = |of: &str, value: &str| {
        let schema = set.display();
        with(home.outlive(&format!("topic pub /x --type {of} --schema {schema}")), value)
    };
    std::fs::write(&set, plan_set()).unwrap();
    let none = pub_as("protobuf:robot.Goal", "{}").expect(USAGE);
    assert!(none.err.contains("it has no message robot.Goal, but robot.Plan"), "{}", none.err);
    let value = pub_as("protobuf:robot.Plan", r#"{"gaol": 1}"#).expect(USAGE);
    assert!(value.err.contains("gaol"), "{}", value.err);
    let unknown = pub_as("proto:robot.Plan", "{}").expect(USAGE);
    assert!(
        unknown.err.contains("use cdr, protobuf, flatbuffer, json or arrow"),
        "{}",
        unknown.err
    );
    std::fs::write(&set, &plan_set()[..20]).unwrap();
    let broken = pub_as("protobuf:robot.Plan", "{}").expect(USAGE);
    assert!(broken.err.contains("it is not a FileDescriptorSet"), "{}", broken.err);
    std::fs::write(&set, vec![b' '; 70_000]).unwrap();
    let large = pub_as("cdr:my/msg/Goal", "{}").expect(USAGE);
    assert!(large.err.contains("its schema has 70000 bytes, a topic holds 65536"), "{}", large.err);
    let missing = home.run("topic pub /x 1 --type json:x --schema /nowhere/x").expect(FAILED);
    assert!(missing.err.contains("reading /nowhere/x"), "{}", missing.err);

    // Another schema of the same name is refused by fields.
    std::fs::write(&set, plan_set()).unwrap();
    let node = node(&home);
    let plan =
        outlive::PayloadType::encoded(outlive::Encoding::Protobuf, "robot.Plan", &plan_set());
    let cut = node.topic::<[u8]>("/cut").unwrap().of_type(&plan.unwrap()).publisher().unwrap();
    cut.publish(b"\x0a\x04do").unwrap();
    let shown = home.run("topic echo /cut --history 1 --timeout 0").expect(DONE);
    let text = shown.text();
    assert!(text.contains("  0a 04 64 6f  (not of its type: failed to decode"), "{text}");
    let of = |set: &[u8]| {
        outlive::PayloadType::encoded(outlive::Encoding::Protobuf, "robot.Plan", set).unwrap()
    };
    let mut other = plan_set();
    let at = other.windows(4).position(|w| w == b"goal").unwrap() + 4 + 5;
    other[at] = 5;
    let _member = node.topic::<[u8]>("/x").unwrap().of_type(&of(&other)).subscriber().unwrap();
    let refused = pub_as("protobuf:robot.Plan", "{}").expect(MISMATCH);
    let why = "robot.Plan has 'int32 goal = 1', this program has 'string goal = 1'";
    assert!(refused.err.contains(why), "{}", refused.err);
}
