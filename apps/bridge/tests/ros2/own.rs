//! Types of the user's own, and CDR as it is: each way.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use outlive::{Client, Encoding, MsgPack, Node, PayloadType, Publisher, Server, Subscriber};
use serde_json::{Value, json};

use crate::net::{Counters, count, wait_for};
use crate::place::Place;

const PART: &str = "# A part.\nfloat32 x\nint16[<=2] n\n";
const PLAN: &str = "uint8 MAX=3\nbuiltin_interfaces/Time stamp\nstring name\nPart[<=3] parts\n\
                    float64[2] ab\nbool on\n";
/// What zenoh-ros2-sdk does not read.
const BOUND: &str = "string<=8[<=2] names\nfloat64 x 1.5\n";
const NOTE: &str = "string text\nfloat64[2] at\n";
const ASK: (&str, &str) = ("my_msgs/Note note\nstring why", "bool done\nmy_msgs/Note[] notes");

/// What `outlive types import` makes of it.
#[outlive::message("my_msgs/msg/Part")]
#[derive(Debug, PartialEq)]
struct Part {
    x: f32,
    n: [i16; 2],
    n_count: u32,
}

type Pack = MsgPack<Value>;

/// A package in a folder of the test `test`.
fn package(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("own-{test}"));
    let _ = std::fs::remove_dir_all(&dir);
    for (file, text) in files {
        let path = dir.join("my_msgs").join(file);
        std::fs::create_dir_all(path.parent().expect("its folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    dir
}

fn ours(test: &str) -> PathBuf {
    let service = format!("{}\n---\n{}\n", ASK.0, ASK.1);
    package(
        test,
        &[
            ("msg/Part.msg", PART),
            ("msg/Plan.msg", PLAN),
            ("msg/Bound.msg", BOUND),
            ("msg/Note.msg", NOTE),
            ("srv/Ask.srv", &service),
        ],
    )
}

fn place(test: &str, rules: &str) -> Option<Place> {
    let mut place = Place::new("client", &format!("types = [{:?}]\n{rules}", ours(test)))?;
    let types = json!({
        "my_msgs/msg/Part": PART, "my_msgs/msg/Plan": PLAN, "my_msgs/msg/Bound": BOUND,
        "my_msgs/msg/Note": NOTE,
        "my_msgs/srv/Ask": [ASK.0, ASK.1],
    });
    place.peer.tell(&json!({ "do": "define", "types": types }));
    place.peer.hear("defined", |_| Some(()));
    Some(place)
}

/// The hash that rosbags has; zenoh-ros2-sdk takes lists with a bound for others.
fn hash(place: &mut Place, of: &str) -> Value {
    place.peer.hear("defined", |told| Some(told["defined"][of].clone()))
}

fn bridge(args: &[&str]) -> Output {
    let ran = Command::new(env!("CARGO_BIN_EXE_outlive-bridge")).args(args).output();
    ran.expect("the bridge")
}

fn plan(name: &str) -> Value {
    json!({
        "stamp": { "sec": -5, "nanosec": 7 }, "name": name,
        "parts": [{ "x": 1.5, "n": [1, -2] }, { "x": -0.25, "n": [] }],
        "ab": [0.5, 8.0], "on": true,
    })
}

fn pack(node: &Node, name: &str, of: &str) -> Publisher<Pack> {
    let topic = node.msgpack::<Value>(name).expect("a name").type_name(of);
    topic.publisher().expect("a publisher")
}

/// A topic whose payloads are CDR, with the definition that its maker has.
fn cdr() -> PayloadType {
    let text = b"float32 x # m\nint16[<=2] n\n";
    PayloadType::encoded(Encoding::Cdr, "my_msgs/msg/Part", text).expect("a type")
}

/// x, then the list n.
fn part_in_cdr(x: f32, n: &[i16]) -> Vec<u8> {
    let mut out = vec![0, 1, 0, 0];
    out.extend(x.to_le_bytes());
    out.extend((n.len() as u32).to_le_bytes());
    n.iter().for_each(|n| out.extend(n.to_le_bytes()));
    out
}

/// The value that comes there of what is published here, again and again.
fn through(place: &mut Place, topic: &str, publish: &mut dyn FnMut()) -> Value {
    wait_for(topic, || {
        publish();
        thread::sleep(Duration::from_millis(20));
        (place.peer.count("took", topic) > 0).then_some(())
    });
    place.peer.tell(&json!({ "do": "value", "topic": topic }));
    place.peer.hear("value", |told| (told["of"] == topic).then(|| told["value"].clone()))
}

#[test]
fn topics_of_own_types_and_of_cdr_are_topics_of_ros() {
    let rules = "[[ros2.topic]]\npattern = \"/out/*\"\ndirection = \"out\"\nreliable = true\n";
    let Some(mut place) = place("out", rules) else { return };
    let node = place.node("robot");
    let packed = pack(&node, "/out/packed", "my_msgs/msg/Plan");
    let fixed = node.topic::<Part>("/out/fixed").expect("a name").publisher().expect("a publisher");
    let raw = node.topic::<[u8]>("/out/raw").expect("a name").of_type(&cdr());
    let raw = raw.publisher().expect("a publisher");
    let plain = node.topic::<[u8]>("/out/plain").expect("a name");
    let twist = PayloadType::encoded(Encoding::Cdr, "geometry_msgs/msg/Vector3", b"");
    let plain = plain.of_type(&twist.expect("a type")).publisher().expect("a publisher");
    for (topic, of) in [
        ("/out/packed", "my_msgs/msg/Plan"),
        ("/out/fixed", "my_msgs/msg/Part"),
        ("/out/raw", "my_msgs/msg/Part"),
        ("/out/plain", "geometry_msgs/msg/Vector3"),
    ] {
        let hash = hash(&mut place, of);
        let how = json!({ "do": "subscribe", "topic": topic, "type": of, "hash": hash });
        place.peer.tell(&how);
        let theirs = place.peer.hear("subscribed", |told| {
            (told["subscribed"] == *topic).then(|| told["hash"].as_str().map(str::to_owned))
        });
        let (token, _) = place.token("MP", topic);
        assert!(token.contains(&theirs.expect("a hash")), "{token}");
    }
    let came = through(&mut place, "/out/packed", &mut || {
        packed.publish_value(&plan("dock")).expect("published");
    });
    assert_eq!(came, plan("dock"));
    let part = Part { x: 1.5, n: [7, 0], n_count: 1 };
    let came = through(&mut place, "/out/fixed", &mut || drop(fixed.publish(&part)));
    assert_eq!(came, json!({ "x": 1.5, "n": [7] }));
    let message = part_in_cdr(-0.5, &[1, 2]);
    let came = through(&mut place, "/out/raw", &mut || drop(raw.publish(&message)));
    assert_eq!(came, json!({ "x": -0.5, "n": [1, 2] }));
    let vector = [&[0, 1, 0, 0][..], &[1.5f64, 0.0, -2.0].map(f64::to_le_bytes).concat()].concat();
    let came = through(&mut place, "/out/plain", &mut || drop(plain.publish(&vector)));
    assert_eq!(came, json!({ "x": 1.5, "y": 0.0, "z": -2.0 }));

    // What no subscriber of ROS could read is counted, and the next one arrives.
    let bad = Part { n_count: 3, ..part };
    fixed.publish(&bad).expect("published");
    raw.publish(&message[..message.len() - 4]).expect("published");
    raw.publish(b"").expect("published");
    let mut counters = Counters::of(&node);
    counters.until("bad messages", |told| {
        let bad = |topic: &str| count(told, "out", &format!("ros2:{topic}"), "bad");
        (bad("/out/fixed"), bad("/out/raw")) == (1, 2)
    });
    let before = place.peer.count("took", "/out/raw");
    raw.publish(&message).expect("published");
    wait_for("a good one", || (place.peer.count("took", "/out/raw") > before).then_some(()));

    // Named after a message, and not laid out as one; and one that nobody defines.
    let other = pack(&node, "/out/other", "my_msgs/msg/Nothing");
    let wrong = PayloadType::encoded(Encoding::Cdr, "my_msgs/msg/Part", b"wstring x\n");
    let wrong = node.topic::<[u8]>("/out/wide").expect("a name").of_type(&wrong.expect("a type"));
    let _wrong = wrong.publisher().expect("a publisher");
    for line in [
        "/out/other is not carried to ROS 2: my_msgs/msg/Nothing is not defined: give",
        "/out/wide is not carried to ROS 2: it has text of wide letters",
    ] {
        wait_for(line, || place.said().contains(line).then_some(()));
    }
    drop(other);
    println!("ros2 own types out: MessagePack, a fixed layout, CDR with and without definition");
}

#[test]
fn messages_of_own_types_become_what_the_topic_here_is() {
    let rules = "[[ros2.topic]]\npattern = \"/in/fixed\"\ndirection = \"in\"\n\
                 encoding = \"fixed\"\n\
                 [[ros2.topic]]\npattern = \"/in/raw\"\ndirection = \"in\"\nencoding = \"cdr\"\n\
                 [[ros2.topic]]\npattern = \"/in/*\"\ndirection = \"in\"\n";
    let Some(mut place) = place("in", rules) else { return };
    let node = place.node("robot");
    // Their subscribers come first, so the topics are theirs.
    let bytes = |name: &str| node.topic::<[u8]>(name).expect("a name");
    let mut taken: Subscriber<[u8]> =
        bytes("/in/taken").of_type(&cdr()).subscriber().expect("a subscriber");
    let part = "my_msgs/msg/Part";
    for (topic, of) in [
        ("/in/packed", "my_msgs/msg/Plan"),
        ("/in/raw", part),
        ("/in/taken", part),
        ("/in/fixed", part),
    ] {
        let hash = hash(&mut place, of);
        let how = json!({ "do": "advertise", "topic": topic, "type": of, "hash": hash });
        place.peer.tell(&how);
        if topic != "/in/fixed" {
            place.token("MS", topic);
        }
    }
    let line = "topic /in/fixed of ROS 2 is not published as /in/fixed: nobody here has made it";
    wait_for(line, || place.said().contains(line).then_some(()));
    let fixed = node.topic::<Part>("/in/fixed").expect("a name");
    let mut fixed: Subscriber<Part> = fixed.subscriber().expect("a subscriber");
    place.token("MS", "/in/fixed");
    let packed = node.msgpack::<Value>("/in/packed").expect("a name");
    let mut packed: Subscriber<Pack> =
        packed.type_name("my_msgs/msg/Plan").subscriber().expect("a subscriber");
    let mut raw = bytes("/in/raw").of_type(&cdr()).subscriber().expect("the same type");
    let all = ["/in/packed", "/in/raw", "/in/taken", "/in/fixed"];
    place.peer.tell(&json!({ "do": "matched", "topics": all }));
    place.peer.hear("matched", |_| Some(()));

    let mut publish = |topic: &str, value: Value| {
        place.peer.tell(&json!({ "do": "publish", "topic": topic, "value": value }));
    };
    publish("/in/packed", plan("away"));
    let came = wait_for("a plan", || packed.receive().expect("a sample"));
    assert_eq!(came.decode().expect("a message"), plan("away"));
    let value = json!({ "x": 0.5, "n": [3] });
    for (topic, subscriber) in [("/in/raw", &mut raw), ("/in/taken", &mut taken)] {
        publish(topic, value.clone());
        let came = wait_for(topic, || subscriber.receive().expect("a sample"));
        // Up to the bytes that the package fills it up with.
        let expected = part_in_cdr(0.5, &[3]);
        assert!(came.starts_with(&expected) && came.len() < expected.len() + 4, "{came:?}");
    }
    publish("/in/fixed", value);
    let came = wait_for("a part", || fixed.receive().expect("a sample"));
    assert_eq!(*came, Part { x: 0.5, n: [3, 0], n_count: 1 });

    // A list that has no room there, and what is no message.
    publish("/in/fixed", json!({ "x": 0.0, "n": [1, 2, 3] }));
    place.peer.tell(&json!({ "do": "spoil", "topic": "/in/raw", "count": 20 }));
    let spoiled = place.peer.hear("spoiled", |told| told["spoiled"].as_u64());
    let mut counters = Counters::of(&node);
    counters.until("bad messages", |told| {
        let bad = |topic: &str| count(told, "in", &format!("ros2:{topic}"), "bad");
        (bad("/in/fixed"), bad("/in/raw")) == (1, spoiled)
    });
    assert!(fixed.receive().expect("a sample").is_none());
    assert!(raw.receive().expect("a sample").is_none());
    println!("ros2 own types in: MessagePack, a fixed layout, CDR made here and by a subscriber");
}

#[test]
fn services_of_own_types_answer_each_way() {
    let rules = "[[ros2.service]]\npattern = \"/here\"\ndirection = \"out\"\n\
                 [[ros2.service]]\npattern = \"/there\"\ndirection = \"in\"\n";
    let Some(mut place) = place("services", rules) else { return };
    let node = place.node("robot");
    let (of, timeout) = ("my_msgs/srv/Ask", Duration::from_secs(20));
    let service = |name: &str| {
        let service = node.service::<Pack, Pack>(name).expect("a name");
        service.type_names(&format!("{of}_Request"), &format!("{of}_Response"))
    };
    let asked = json!({ "note": { "text": "x", "at": [1.0, 2.5] }, "why": "to test" });
    let notes = [json!({ "text": "ö", "at": [0.0, -8.0] }), asked["note"].clone()];
    let given = json!({ "done": true, "notes": notes });
    let mut here: Server<Pack, Pack> = service("/here").server().expect("a server");
    place.token("SS", "/here");
    place.peer.tell(&json!({ "do": "client", "service": "/here", "type": of }));
    place.peer.hear("client", |told| (told["client"] == "/here").then_some(()));
    place.peer.tell(&json!({ "do": "call", "service": "/here", "value": asked }));
    let request = wait_for("a request", || here.receive().expect("requests"));
    assert_eq!(request.decode().expect("a value"), asked);
    here.respond_value(request, &given).expect("a client");
    let came = place.peer.hear("answered", |told| Some(told["value"].clone()));
    assert_eq!(came, given);

    let serve = json!({ "do": "serve", "service": "/there", "type": of, "value": given });
    place.peer.tell(&serve);
    let mut there: Client<Pack, Pack> = service("/there").client().expect("a client");
    assert!(there.wait_for_server(timeout).expect("a wait"));
    let came = wait_for("an answer", || match there.call_value(&asked, timeout) {
        Ok(value) => Some(value),
        // Its token may be there before itself.
        Err(e) if e.to_string().contains("nobody there has answered") => None,
        Err(e) => panic!("{e}"),
    });
    assert_eq!(came, given);
    let told = place.peer.hear("asked", |told| Some(told["value"].clone()));
    assert_eq!(told, asked);
}

#[test]
fn a_check_names_the_types_that_cannot_be_carried() {
    let good = ours("check");
    let bad = package(
        "bad",
        &[
            ("msg/Wide.msg", "wstring text\n"),
            ("msg/Lost.msg", "other_msgs/Thing thing\n"),
            ("msg/Fine.msg", "bool on\n"),
        ],
    );
    let broken = package("broken", &[("msg/Broken.msg", "bool on\nint32 = 5\n")]);
    let file = good.join("bridge.toml");
    let check = |section: &str, types: &Path| {
        let text = format!("namespace = \"n\"\nconnect = [\"tcp/127.0.0.1:7447\"]\n{section}");
        std::fs::write(&file, text).expect("a file");
        let (file, types) = (file.display().to_string(), types.display().to_string());
        let ran = bridge(&["--check", &file, "--types", &types]);
        (ran.status.code(), String::from_utf8(ran.stderr).expect("text"))
    };
    let rule = "[ros2]\n[[ros2.topic]]\npattern = \"/a\"\ntype = \"my_msgs/msg/Part\"\n";
    assert_eq!(check(rule, &good), (Some(0), String::new()));
    let (code, said) = check("[ros2]\n[[ros2.topic]]\npattern = \"/a\"\n", &bad);
    assert_eq!(code, Some(2));
    for line in [
        "my_msgs/msg/Wide cannot be carried: it has text of wide letters",
        "my_msgs/msg/Lost cannot be carried: other_msgs/msg/Thing is not defined",
    ] {
        assert!(said.contains(line), "{said}");
    }
    assert!(!said.contains("Fine"), "{said}");
    let (code, said) = check(rule, &bad);
    assert!(
        code == Some(2) && said.contains(":6:8: 'my_msgs/msg/Part' is not a message"),
        "{said}"
    );
    let (code, said) = check(rule, &broken);
    assert!(code == Some(2) && said.contains("Broken.msg:2: 'int32 = 5' is not a field"), "{said}");
    let (code, said) = check(&rule.replace("[ros2]", "[ros2]\ntypes = [\"/no/such\"]"), &good);
    assert!(code == Some(2) && said.contains("bridge.toml:4:9: read /no/such: No such"), "{said}");
    let (code, said) = check("[[topic]]\npattern = \"/a\"\n", &good);
    assert!(code == Some(2) && said.contains("--types is for a section [ros2]"), "{said}");

    let list = bridge(&["--ros2-types", "--types", &good.display().to_string()]);
    let list = String::from_utf8(list.stdout).expect("text");
    assert_eq!(list.lines().count(), 99 + 8 + 5);
    assert!(list.lines().any(|line| line.starts_with("my_msgs/srv/Ask RIHS01_")));
    let Some(mut place) = place("hashes", "[[ros2.topic]]\npattern = \"/x\"\n") else { return };
    for name in ["my_msgs/msg/Part", "my_msgs/msg/Plan", "my_msgs/msg/Bound", "my_msgs/msg/Note"] {
        let line = format!("{name} {}", hash(&mut place, name).as_str().expect("a hash"));
        assert!(list.lines().any(|ours| ours == line), "{line}");
    }
}
