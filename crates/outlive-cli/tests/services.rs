//! `service` and `queue send`: values of all kinds, from JSON and shown again.

mod common;

use std::process::Command;
use std::time::Duration;

use common::*;
use outlive::MsgPack;
use outlive::{Node, Payload, Server};
use serde_json::json;

#[outlive::message("test/Goal")]
#[derive(Clone, Copy, Debug)]
struct Goal {
    position: [f64; 2],
    id: u32,
    tolerance: f32,
}

const LONG: Duration = Duration::from_secs(60);

fn node(home: &Home) -> Node {
    Node::builder().root(home.root()).name("robot").open().unwrap()
}

/// The command with one argument that may have blanks in it.
fn with(mut command: Command, arg: &str) -> Ran {
    Ran::from(command.arg(arg).output().unwrap())
}

/// Answers the next request with `answer` while `ask` runs.
fn serving<Q: Payload + ?Sized, R: Payload + ?Sized, T: Send>(
    server: &mut Server<Q, R>,
    ask: impl FnOnce() -> T + Send,
    answer: impl FnOnce(&mut Server<Q, R>, outlive::service::Request<Q>),
) -> T {
    std::thread::scope(|scope| {
        let asking = scope.spawn(ask);
        let request = server.receive_timeout(LONG).unwrap().expect("a request");
        answer(server, request);
        asking.join().unwrap()
    })
}

#[test]
fn a_described_service_is_listed_and_called_with_json() {
    let home = Home::new("service");
    let node = node(&home);
    assert_eq!(home.run("service list --json").json(), json!([]));
    let mut server = node.service::<Goal, [f64]>("/plan").unwrap().server().unwrap();
    let client = node.service::<Goal, [f64]>("/plan").unwrap().client().unwrap();
    let row = home.run("service list --json").json()[0].clone();
    assert_eq!((&row["name"], &row["server"]), (&json!("/plan"), &json!(1)));
    assert_eq!((&row["clients"], &row["unread"]), (&json!([1]), &json!(0)));
    let wanted = json!({"type": "test/Goal", "encoding": "fixed", "element_bytes": 24});
    assert_eq!(row["request"], wanted);
    assert_eq!(row["response"], json!({"type": "[f64]", "encoding": "slice", "element_bytes": 8}));
    let text = home.run("service list").expect(DONE);
    let cells: Vec<_> = text.text().lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[..6], ["/plan", "test/Goal", "[f64]", "1", "1", "0"]);
    drop(client);

    let goal = r#"{"id": 7, "position": [1.5, -2], "tolerance": 0.1}"#;
    let ran = serving(
        &mut server,
        || with(home.outlive("service call plan --timeout 60"), goal),
        |server, request| {
            assert_eq!((request.position, request.id), ([1.5, -2.0], 7));
            server.respond_part(&request, &[0.5]).unwrap();
            server.respond(request, &[1.0, 2.0]).unwrap();
        },
    );
    assert_eq!(ran.expect(DONE).text(), "0.5\n1 2\n");
    let ran = serving(
        &mut server,
        || home.feed("service call /plan --json --timeout 60", goal.as_bytes()),
        |server, request| server.respond(request, &[1.0, 2.0]).unwrap(),
    );
    assert_eq!(ran.json(), json!({"bytes": 16, "last": true, "values": [1.0, 2.0], "whole": true}));
    let ran = serving(
        &mut server,
        || with(home.outlive("service call /plan --timeout 60"), goal),
        |server, request| server.refuse(request, "no such joint").unwrap(),
    );
    assert!(ran.expect(FAILED).err.contains("no such joint"));

    for (value, why) in [("{", "'{' is not JSON"), (r#"{"id": 7}"#, "position is missing")] {
        let ran = with(home.outlive("service call /plan"), value).expect(USAGE);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    // The server lives and does not answer.
    with(home.outlive("service call /plan --timeout 0.05"), goal).expect(NOT_FOUND);
    let _client = node.service::<Goal, [f64]>("/plan").unwrap().client().unwrap();
    drop(server);
    let ran = with(home.outlive("service call /plan --timeout 0.01"), goal).expect(NOT_FOUND);
    assert!(ran.err.contains("has no server"), "{}", ran.err);
    let ran = home.run("service call /nobody 1").expect(NOT_FOUND);
    assert!(ran.err.contains("no service /nobody: 'outlive service list'"), "{}", ran.err);
    home.run("service call /a//b 1").expect(USAGE);
}

#[test]
fn a_service_of_messagepack_and_one_of_bytes_are_called() {
    type Asked = MsgPack<(String, u32)>;
    let home = Home::new("service-msgpack");
    let node = node(&home);
    let builder = node.service::<Asked, MsgPack<Vec<String>>>("/repeat").unwrap();
    let mut server = builder.type_names("test/Repeat", "test/Lines").server().unwrap();
    let row = home.run("service list --json").json()[0].clone();
    assert_eq!(row["request"]["type"], "test/Repeat");
    let ran = serving(
        &mut server,
        || with(home.outlive("service call /repeat --timeout 60"), r#"["ho ho", 2]"#),
        |server, request| {
            let (what, times) = request.decode().unwrap();
            server.respond_value(request, &vec![what; times as usize]).unwrap();
        },
    );
    assert_eq!(ran.expect(DONE).text(), "[\"ho ho\", \"ho ho\"]\n");

    let mut server = node.service::<[u8], [u8]>("/bytes").unwrap().server().unwrap();
    let ran = serving(
        &mut server,
        || home.run("service call /bytes abc --timeout 60"),
        |server, request| {
            assert_eq!(&*request, b"abc");
            server.respond(request, &[1, 255]).unwrap();
        },
    );
    assert_eq!(ran.expect(DONE).text(), "01 ff\n");
}

#[test]
fn structs_arrays_and_messagepack_are_sent_on_queues() {
    let home = Home::new("queue-values");
    let node = node(&home);
    let mut goals = node.queue::<Goal>("/goals").unwrap().consumer().unwrap();
    let mut arrays = node.queue::<[i16; 3]>("/arrays").unwrap().consumer().unwrap();
    let mut values = node.queue::<MsgPack<Vec<u8>>>("/values").unwrap().consumer().unwrap();
    let goal = r#"{"id": 7, "position": [1.5, -2], "tolerance": 0.1}"#;
    with(home.outlive("queue send /goals"), goal).expect(DONE);
    let got = *goals.receive().unwrap().unwrap();
    assert_eq!((got.position, got.id, got.tolerance), ([1.5, -2.0], 7, 0.1));
    home.run("queue send /arrays [1,-2,3]").expect(DONE);
    assert_eq!(*arrays.receive().unwrap().unwrap(), [1, -2, 3]);
    home.run("queue send /arrays [4,5,6]").expect(DONE);
    assert_eq!(*arrays.receive().unwrap().unwrap(), [4, 5, 6]);
    home.run("queue send /values [7,8]").expect(DONE);
    assert_eq!(values.receive().unwrap().unwrap().decode().unwrap(), [7, 8]);
    for (args, why) in [
        ("queue send /arrays [1]", "is not of type i16: the value has 1 elements, not 3"),
        ("queue send /goals {}", "position is missing"),
        ("queue send /values {", "is not JSON"),
    ] {
        let ran = home.run(args).expect(USAGE);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    assert!(goals.receive().unwrap().is_none() && arrays.receive().unwrap().is_none());
}
