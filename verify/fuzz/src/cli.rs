//! The command, given payloads, descriptions and JSON of others. It is a process of its own: the
//! plain runner alone uses this target, with the command's path in `OUTLIVE_COMMAND`.

use std::io::Write;
use std::process::{Command, Stdio};

use outlive::{Encoding, Node, PayloadType, Publisher};

use crate::input::Input;
use crate::world::{Dir, done, settings};

/// Codes that the command promises; a panic has another one.
const CODES: std::ops::RangeInclusive<i32> = 0..=9;

/// FlatBuffers and tables of Arrow that begin with good bytes: schema, payload.
const FOREIGN: [(Encoding, &str, &[u8], &[u8]); 2] = [
    (
        Encoding::FlatBuffer,
        "robot.Plan",
        include_bytes!("../../../crates/outlive-record/tests/foreign/plan.bfbs"),
        include_bytes!("../../../crates/outlive-record/tests/foreign/plan.bin"),
    ),
    (
        Encoding::Arrow,
        "table",
        include_bytes!("../../../crates/outlive-record/tests/foreign/table.schema"),
        include_bytes!("../../../crates/outlive-record/tests/foreign/table.arrow"),
    ),
];

/// One of them with bytes of its schema and its payload changed.
fn foreign(node: &Node, input: &mut Input<'_>) -> Option<Publisher<[u8]>> {
    let (encoding, name, schema, payload) = FOREIGN[input.byte() as usize % FOREIGN.len()];
    let [schema, payload] = [schema, payload].map(|bytes| {
        let mut bytes = bytes.to_vec();
        for _ in 0..input.byte() % 8 {
            let at = usize::from(input.byte()) << 8 | usize::from(input.byte());
            let at = at % bytes.len();
            bytes[at] = input.byte();
        }
        bytes.truncate(bytes.len() - input.byte() as usize / 8);
        bytes
    });
    let of = done(PayloadType::encoded(encoding, name, &schema))?;
    let publisher = done(done(node.topic::<[u8]>("/f"))?.of_type(&of).publisher())?;
    done(publisher.publish(&payload))?;
    Some(publisher)
}

/// Nothing without the command.
pub fn run(data: &[u8]) {
    let Some(command) = std::env::var_os("OUTLIVE_COMMAND") else { return };
    let dir = Dir::new();
    let mut input = Input(data);
    let way = input.byte();
    let outlive = |args: &[&str], stdin: &[u8]| {
        let mut child = Command::new(&command)
            .args(args)
            .env("OUTLIVE_DIR", dir.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("OUTLIVE_COMMAND can be run");
        let mut pipe = child.stdin.take().expect("piped");
        let _ = pipe.write_all(stdin); // it may not read it
        drop(pipe);
        let ended = child.wait_with_output().expect("its own child");
        let said = String::from_utf8_lossy(&ended.stderr);
        let code = ended.status.code();
        assert!(code.is_some_and(|c| CODES.contains(&c)), "{args:?}: {}: {said}", ended.status);
    };
    if way % 4 == 0 {
        let types = ["f64", "u8[]", "msgpack", "i128", "f32[]", "u64"];
        let ty = types[input.byte() as usize % types.len()];
        return outlive(&["topic", "pub", "/f", "--type", ty, "--json", "-"], input.0);
    }
    let node = settings(&dir.root(), "fuzz").open().expect("a domain can be made");
    let payloads = |publisher: &Publisher<[u8]>, mut input: Input<'_>| {
        for _ in 0..8 {
            let len = input.byte() as usize;
            done(publisher.publish(input.bytes(len)));
        }
    };
    let path = ["a", "a.b[3]", "[0]", "a[18446744073709551615]", "..", "a.b.c.d"];
    let path = path[input.byte() as usize % path.len()];
    let form = [["--json", "--full"], ["--csv", "--full"], ["--field", path]];
    let form = form[input.byte() as usize % form.len()];
    let echo = ["topic", "echo", "/f", "--history", "8", "--timeout", "0", form[0], form[1]];
    if way % 4 == 1 {
        let Some(topic) = done(node.msgpack::<u8>("/f")) else { return };
        let Some(made) = done(topic.subscriber()) else { return };
        let Some(any) = done(node.topic::<[u8]>("/f")) else { return };
        let Some(publisher) = done(any.publisher_of_any_type()) else { return };
        payloads(&publisher, input);
        outlive(&echo, b"");
        drop(made);
    } else if way % 4 == 3 {
        let Some(publisher) = foreign(&node, &mut input) else { return };
        outlive(&echo, b"");
        outlive(&["topic", "info", "/f"], b"");
        drop(publisher);
    } else {
        let schema = input.part().to_vec();
        let Some(topic) = done(node.topic::<[u8]>("/f")) else { return };
        let Some(publisher) = done(topic.schema(schema).publisher()) else { return };
        payloads(&publisher, input);
        outlive(&echo, b"");
        outlive(&["topic", "info", "/f"], b"");
        outlive(&["topic", "pub", "/f", "--json", "{\"a\": 1}"], b"");
    }
}
