//! Services between here and ROS, each way.

use std::process::Command;
use std::time::Duration;

use outlive::service::Request;
use outlive::{Client, MsgPack, Node, Server};
use serde_json::{Value, json};

use crate::net::wait_for;
use crate::place::Place;

/// Services that are known here, with the ends of their names in these tests.
const ALL: [(&str, &str); 8] = [
    ("empty", "std_srvs/srv/Empty"),
    ("set", "std_srvs/srv/SetBool"),
    ("trigger", "std_srvs/srv/Trigger"),
    ("add", "example_interfaces/srv/AddTwoInts"),
    ("map", "nav_msgs/srv/GetMap"),
    ("plan", "nav_msgs/srv/GetPlan"),
    ("load", "nav_msgs/srv/SetMap"),
    ("camera", "sensor_msgs/srv/SetCameraInfo"),
];
const CALLS: i64 = 3;
const TIMEOUT: Duration = Duration::from_secs(20);

type Pack = MsgPack<Value>;

fn server(node: &Node, name: &str, of: &str) -> Server<Pack, Pack> {
    let service = node.service::<Pack, Pack>(name).expect("a name");
    let service = service.type_names(&format!("{of}_Request"), &format!("{of}_Response"));
    service.server().expect("a server")
}

fn client(node: &Node, name: &str, of: &str) -> Client<Pack, Pack> {
    let service = node.service::<Pack, Pack>(name).expect("a name");
    let service = service.type_names(&format!("{of}_Request"), &format!("{of}_Response"));
    service.client().expect("a client")
}

fn next(server: &mut Server<Pack, Pack>) -> (Request<Pack>, Value) {
    let request = wait_for("a request", || server.receive().expect("requests"));
    let value = request.decode().expect("a value");
    (request, value)
}

/// Any request or response of a type.
fn example(place: &mut Place, of: &str, side: &str) -> Value {
    let before = place.peer.told().iter().filter(|told| told["example"] == of).count();
    place.peer.tell(&json!({ "do": "example", "type": of, "side": side }));
    wait_for("an example", || {
        let all = place.peer.told().iter().filter(|told| told["example"] == of);
        all.skip(before).map(|told| told["value"].clone()).next()
    })
}

/// The hash of each type as `outlive-bridge --ros2-types` has it.
fn hash(of: &str) -> String {
    let known = Command::new(env!("CARGO_BIN_EXE_outlive-bridge")).arg("--ros2-types").output();
    let known = String::from_utf8(known.expect("a list").stdout).expect("text");
    let mut lines = known.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == of).expect("known").1.to_owned()
}

/// What a port's token is to be, whatever its number.
fn assert_token(token: &str, kind: &str, service: &str, of: &str) {
    let parts: Vec<_> = token.split('/').collect();
    let bridge = parts[2];
    let id: u64 = parts[4].parse().expect("a number");
    let (dds, service) = (of.replace("/srv/", "::srv::dds_::"), service.replace('/', "%"));
    let hash = hash(of);
    let expected = format!(
        "@ros2_lv/7/{bridge}/0/{id}/{kind}/%/%robot1/outlive/{service}/{dds}_/{hash}/::,10:,:,:,,"
    );
    assert_eq!(token, expected);
}

#[test]
fn services_here_answer_clients_in_ros() {
    let rules = "[[ros2.service]]\npattern = \"/here/*\"\ndirection = \"out\"\n\
                 [[ros2.service]]\npattern = \"/stop\"\nname = \"/robot1/stop\"\n";
    let Some(mut place) = Place::new("client", rules) else { return };
    let node = place.node("servers");
    let mut calls = 0;
    for (short, of) in ALL {
        let name = format!("/here/{short}");
        let mut server = server(&node, &name, of);
        let (token, _) = place.token("SS", &name);
        assert_token(&token, "SS", &name, of);
        place.peer.tell(&json!({ "do": "client", "service": name, "type": of }));
        let theirs = place.peer.hear("client", |told| {
            (told["client"] == *name).then(|| told["hash"].as_str().map(str::to_owned))
        });
        assert_eq!(theirs, Some(hash(of)), "{of}");
        for call in 0..CALLS {
            let asked = example(&mut place, of, "Request");
            let given = example(&mut place, of, "Response");
            place.peer.tell(&json!({ "do": "call", "service": name, "value": asked }));
            let (request, value) = next(&mut server);
            assert_eq!(value, asked, "{of}");
            server.respond_value(request, &given).expect("a client");
            let came = wait_for("an answer", || {
                let all = place.peer.told().iter().filter(|told| told["answered"] == *name);
                all.skip(call as usize).map(|told| told["value"].clone()).next()
            });
            assert_eq!(came, given, "{of}");
            calls += 1;
        }
    }
    println!("ros2 services out: {} types, {calls} calls answered", ALL.len());

    // What is attached to an answer, that there is one, and what is no request.
    let of = "std_srvs/srv/SetBool";
    let mut stop = server(&node, "/stop", of);
    let (token, _) = place.token("SS", "/robot1/stop");
    assert_token(&token, "SS", "/robot1/stop", of);
    place.peer.tell(&json!({ "do": "client", "service": "/robot1/stop", "type": of }));
    place.peer.hear("client", |told| (told["client"] == "/robot1/stop").then_some(()));
    let mut asked = 0;
    let mut ask = |place: &mut Place, how: Value| {
        let mut what =
            json!({ "do": "ask", "service": "/robot1/stop", "payload": [0, 1, 0, 0, 1] });
        what.as_object_mut().expect("a map").extend(how.as_object().expect("a map").clone());
        place.peer.tell(&what);
        asked += 1;
        asked
    };
    let replies = |place: &mut Place, number: usize| {
        wait_for("replies", || {
            let all = place.peer.told().iter().filter(|told| told["replied"] == "/robot1/stop");
            all.skip(number - 1).map(|told| told["replies"].clone()).next()
        })
    };
    let number = ask(&mut place, json!({ "seq": 41 }));
    let (request, value) = next(&mut stop);
    assert_eq!(value, json!({ "data": true }));
    stop.respond_part(&request, Pack::new(b"\xc0")).expect("a part, which ROS has not");
    stop.respond_value(request, &json!({ "success": true, "message": "x" })).expect("a client");
    let came = replies(&mut place, number);
    let one = &came[0];
    assert_eq!(came.as_array().map(Vec::len), Some(1), "{came}");
    assert_eq!(one["payload"], json!([0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 120, 0]));
    assert_eq!((&one["seq"], &one["key"]), (&json!(41), &json!(true)));
    assert_eq!(one["gid"], "client of sixtee");
    assert!(one["wall_ns"].as_u64() <= one["now_ns"].as_u64());
    assert!(one["wall_ns"].as_u64() > Some(1_700_000_000_000_000_000), "{one}");

    for (how, why) in [
        (json!({}), "no number and id attached"),
        (json!({ "seq": 1, "cut": 1 }), "no number and id attached"),
        (json!({ "seq": 1, "payload": [] }), "does not match its type"),
        (json!({ "seq": 1, "payload": [0, 1, 0, 0] }), "does not match its type"),
        (json!({ "seq": 1, "payload": [0, 9, 0, 0, 1] }), "does not match its type"),
    ] {
        let number = ask(&mut place, how.clone());
        let came = replies(&mut place, number);
        let said = came[0]["error"].as_str().unwrap_or("");
        assert!(said.contains(why), "{how}: {came}");
    }
    assert!(stop.receive().expect("requests").is_none(), "none of them has come");
    // A refusal, and a response that is none of the type.
    let number = ask(&mut place, json!({ "seq": 2 }));
    let (request, _) = next(&mut stop);
    stop.refuse(request, "not while it moves").expect("a client");
    let came = replies(&mut place, number);
    assert!(came[0]["error"].as_str().unwrap_or("").contains("not while it moves"), "{came}");
    let number = ask(&mut place, json!({ "seq": 3 }));
    let (request, _) = next(&mut stop);
    stop.respond_value(request, &json!({ "done": true })).expect("a client");
    let came = replies(&mut place, number);
    assert!(came[0]["error"].as_str().unwrap_or("").contains("no field done"), "{came}");

    // Of a type that is no service there; and the server leaves.
    let _strange = server(&node, "/here/strange", "mine/srv/Own");
    wait_for("what ROS has no service for", || {
        place.said().contains("service /here/strange is not offered to ROS 2: ").then_some(())
    });
    let number = ask(&mut place, json!({ "seq": 4 }));
    let under_way = next(&mut stop);
    drop(stop);
    drop(under_way);
    gone(&mut place, "SS", "robot1%stop");
    let came = replies(&mut place, number);
    assert!(came[0]["error"].as_str().unwrap_or("").contains("server"), "{came}");
}

/// Waits until the token of a port of the bridge has gone.
fn gone(place: &mut Place, kind: &str, name: &str) {
    place.peer.hear("token", |told| {
        let key = told["token"].as_str()?;
        let fits = key.contains(&format!("/{kind}/%/%robot1/outlive/%{name}/"));
        (fits && told["there"] == false).then_some(())
    });
}

#[test]
fn services_in_ros_answer_clients_here() {
    let rules = "[[ros2.service]]\npattern = \"/there/*\"\ndirection = \"in\"\n\
                 [[ros2.service]]\npattern = \"/dock\"\nname = \"/robot1/dock\"\n";
    let Some(mut place) = Place::new("client", rules) else { return };
    let node = place.node("clients");
    let mut calls = 0;
    for (short, of) in ALL {
        let name = format!("/there/{short}");
        let given = example(&mut place, of, "Response");
        place.peer.tell(&json!({ "do": "serve", "service": name, "type": of, "value": given }));
        let theirs = place.peer.hear("served", |told| {
            (told["served"] == *name).then(|| told["hash"].as_str().map(str::to_owned))
        });
        assert_eq!(theirs, Some(hash(of)), "{of}");
        let mut client = client(&node, &name, of);
        assert!(client.wait_for_server(TIMEOUT).expect("a wait"), "{name}");
        let (token, gid) = place.token("SC", &name);
        assert_token(&token, "SC", &name, of);
        let mut asked = Vec::new();
        for _ in 0..CALLS {
            let request = example(&mut place, of, "Request");
            let came = wait_for("an answer", || match client.call_value(&request, TIMEOUT) {
                Ok(value) => Some(value),
                // Its token may be there before itself.
                Err(e) if e.to_string().contains("nobody there has answered") => None,
                Err(e) => panic!("{e}"),
            });
            assert_eq!(came, given, "{of}");
            asked.push(request);
            calls += 1;
        }
        // What they tell of it comes on another way than their answers.
        let told = wait_for("what they were asked", || {
            let told = place.peer.told().to_vec();
            let count = |what| told.iter().filter(|told| told[what] == *name).count();
            (count("asked").min(count("called")) >= asked.len()).then_some(told)
        });
        let theirs: Vec<_> =
            told.iter().filter(|t| t["asked"] == *name).map(|t| t["value"].clone()).collect();
        assert_eq!(theirs, asked, "{of}");
        // Numbers that rise, the id that comes of the token.
        let attached: Vec<_> = told.iter().filter(|told| told["called"] == *name).collect();
        assert_eq!(attached.len(), asked.len());
        let mut before = 0;
        for told in attached {
            assert!(told["seq"].as_i64() > Some(before), "{told}");
            before = told["seq"].as_i64().unwrap_or(0);
            assert_eq!((told["gid"].as_str(), told["bytes"].as_u64()), (Some(&*gid), Some(33)));
            assert!(told["wall_ns"].as_u64() > Some(1_700_000_000_000_000_000), "{told}");
            assert!(told["wall_ns"].as_u64() <= told["now_ns"].as_u64(), "{told}");
        }
    }
    println!("ros2 services in: {} types, {calls} calls answered", ALL.len());

    // One that fails, then leaves; and what is no request of its type.
    let of = "std_srvs/srv/Trigger";
    let mut dock = client(&node, "/dock", of);
    assert!(!dock.has_server());
    let serve = json!({
        "do": "serve", "service": "/robot1/dock", "type": of,
        "value": { "success": true, "message": "" }, "error": "no dock in sight",
    });
    place.peer.tell(&serve);
    assert!(dock.wait_for_server(TIMEOUT).expect("a wait"));
    let failed = wait_for("an error", || {
        let failed = dock.call_value(&json!({}), TIMEOUT).expect_err("it always fails");
        (!failed.to_string().contains("nobody there has answered")).then_some(failed)
    });
    assert_eq!(failed.kind(), outlive::ErrorKind::Refused, "{failed}");
    assert!(failed.to_string().contains("no dock in sight"), "{failed}");
    let failed = dock.call_value(&json!({ "now": true }), TIMEOUT).expect_err("no request of it");
    assert!(failed.to_string().contains("no field now"), "{failed}");
    place.peer.tell(&json!({ "do": "leave", "service": "/robot1/dock" }));
    wait_for("a server that goes", || (!dock.has_server()).then_some(()));
    gone(&mut place, "SC", "robot1%dock");
    let failed = dock.call_value(&json!({}), TIMEOUT).expect_err("nobody is there");
    assert_eq!(failed.kind(), outlive::ErrorKind::ServerDied, "{failed}");
}
