//! Topics in third-party encodings: what their readers find in a file, and what is played again.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlive::{Deadline, Encoding, Node, PayloadType};
use outlive_record::{PlayOptions, Player, Profile, RecordOptions, Recorder, Recording, Selection};
use testkit::{TempDomain, Watchdog};

struct Home {
    temp: TempDomain,
    _watchdog: Watchdog,
}

impl Home {
    fn new(label: &str) -> Self {
        let temp = TempDomain::new(&format!("foreign-{label}")).unwrap();
        Self { temp, _watchdog: Watchdog::start(label, Duration::from_secs(600)) }
    }

    fn node(&self, name: &str) -> Node {
        Node::builder().root(self.temp.path().join(name)).name(name).open().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }
}

/// A field of bytes on the wire.
fn field(number: u8, of: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, of.len() as u8], of].concat()
}

/// `package robot; message Plan { string goal = 1; }`
fn plan_set() -> Vec<u8> {
    let goal = [field(1, b"goal"), vec![3 << 3, 1, 4 << 3, 1, 5 << 3, 9]].concat();
    let plan = [field(1, b"Plan"), field(2, &goal)].concat();
    let syntax = [vec![12 << 3 | 2, 6], b"proto3".to_vec()].concat();
    let file = [field(1, b"plan.proto"), field(2, b"robot"), field(4, &plan), syntax];
    field(1, &file.concat())
}

const GOAL: &[u8] = b"float64 x\nstring frame\n";
const BINARY: &[u8] = b"\0\0\0\0BFBSschema";
const JSON: &[u8] = b"{\"type\":\"object\"}";

/// Topic, its type, how MCAP calls messages and schemas, a payload.
fn topics() -> Vec<(&'static str, PayloadType, &'static str, &'static str, Vec<u8>)> {
    let of = |encoding, name, schema: &[u8]| PayloadType::encoded(encoding, name, schema).unwrap();
    let cdr = [&[0, 1, 0, 0][..], &1.5f64.to_le_bytes(), &[4, 0, 0, 0], b"map\0"].concat();
    let plan = of(Encoding::Protobuf, "robot.Plan", &plan_set());
    let arrow = of(Encoding::Arrow, "table", b"schema message");
    vec![
        ("/cdr", of(Encoding::Cdr, "my/msg/Goal", GOAL), "cdr", "ros2msg", cdr),
        ("/plan", plan, "protobuf", "protobuf", field(1, b"dock")),
        (
            "/buffer",
            of(Encoding::FlatBuffer, "x.Y", BINARY),
            "flatbuffer",
            "flatbuffer",
            vec![9; 9],
        ),
        ("/json", of(Encoding::Json, "goal", JSON), "json", "jsonschema", b"{\"x\": 1.50}".into()),
        ("/table", arrow, "arrow", "arrow", vec![7; 300]),
    ]
}

/// Records one message of each of the topics that `profile` takes.
fn record(home: &Home, path: &Path, profile: Profile, messages: u64) -> Vec<String> {
    let node = home.node("record");
    let publishers: Vec<_> = topics()
        .into_iter()
        .map(|(name, of, .., payload)| {
            let publisher = node.topic::<[u8]>(name).unwrap().of_type(&of).publisher().unwrap();
            publisher.publish(&payload).unwrap();
            publisher
        })
        .collect();
    let options = RecordOptions { profile, history: 8, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), path, options).unwrap();
    let mut notes = recorder.take_notes();
    while recorder.progress().messages < messages {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        notes.extend(recorder.take_notes());
    }
    assert_eq!(recorder.finish().unwrap().messages, messages);
    drop(publishers);
    notes
}

#[test]
fn others_find_their_own_messages_and_schemas_and_play_gives_back_the_same_topics() {
    let home = Home::new("all");
    let path = home.file("all.mcap");
    record(&home, &path, Profile::Outlive, 5);

    let file = std::fs::read(&path).unwrap();
    let found: HashMap<_, _> = mcap::MessageStream::new(&file)
        .unwrap()
        .map(|message| message.unwrap())
        .map(|message| (message.channel.topic.clone(), message))
        .collect();
    for (name, of, messages, schemas, payload) in topics() {
        let message = &found[name];
        let schema = message.channel.schema.as_ref().unwrap();
        let says = (message.channel.message_encoding.as_str(), schema.encoding.as_str());
        assert_eq!(says, (messages, schemas), "{name}");
        assert_eq!((schema.name.as_str(), &schema.data[..]), (of.name(), of.schema()), "{name}");
        assert_eq!(message.data, payload, "{name}");
    }

    let node = home.node("play");
    let recording = Recording::open(&path).unwrap();
    let types: BTreeMap<_, _> = recording
        .sources
        .iter()
        .map(|s| (s.source.topic.clone(), s.source.payload_type.clone()))
        .collect();
    let mut player = Player::open(&node, recording, PlayOptions::default()).unwrap();
    let mut subscribers: Vec<_> = topics()
        .into_iter()
        .map(|(name, of, .., payload)| {
            assert_eq!(types[name], of);
            let topic = node.topic::<[u8]>(name).unwrap().of_type(&of);
            (topic.subscriber().unwrap(), payload)
        })
        .collect();
    player.play(|_| true).unwrap();
    for (subscriber, payload) in &mut subscribers {
        assert_eq!(*subscriber.receive().unwrap().unwrap(), payload[..], "{}", subscriber.topic());
    }
}

#[test]
fn for_ros_its_own_messages_are_kept_and_the_others_left_out_by_name() {
    let home = Home::new("ros");
    let path = home.file("ros.mcap");
    let notes = record(&home, &path, Profile::Ros2, 1).join("\n");
    assert!(notes.contains("/plan is left out: ROS has no message like robot.Plan"), "{notes}");
    let recording = Recording::open(&path).unwrap();
    let [only] = recording.sources.as_slice() else { panic!("{:?}", recording.sources) };
    assert_eq!((only.source.topic.as_str(), only.source.payload_type.schema()), ("/cdr", GOAL));
}

#[test]
fn channels_of_others_become_such_topics_unless_their_schema_is_none() {
    let home = Home::new("others");
    let path = home.file("others.mcap");
    let mut file = Vec::new();
    let mut writer = mcap::Writer::new(std::io::Cursor::new(&mut file)).unwrap();
    let set = plan_set();
    let mut add = |topic: &str, (name, encoding, data): (&str, &str, &[u8]), messages: &str| {
        let schema = match encoding {
            "" => 0,
            _ => writer.add_schema(name, encoding, data).unwrap(),
        };
        let channel = writer.add_channel(schema, topic, messages, &BTreeMap::new()).unwrap();
        let header = mcap::records::MessageHeader {
            channel_id: channel,
            sequence: 0,
            log_time: 1,
            publish_time: 1,
        };
        writer.write_to_known_channel(&header, b"{}").unwrap();
    };
    add("/plan", ("robot.Plan", "protobuf", &set), "protobuf");
    add("/broken", ("robot.Plan", "protobuf", &set[..9]), "protobuf");
    add("/absent", ("robot.Goal", "protobuf", &set), "protobuf");
    add("/json", ("", "", b""), "json");
    add("/twist", ("geometry_msgs/msg/Twist", "ros2msg", b""), "cdr");
    writer.finish().unwrap();
    drop(writer);
    std::fs::write(&path, &file).unwrap();
    let recording = Recording::open(&path).unwrap();
    let of: HashMap<_, _> = recording
        .sources
        .iter()
        .map(|s| (s.source.topic.as_str(), &s.source.payload_type))
        .map(|(topic, of)| (topic, (of.encoding(), of.name(), of.schema().len())))
        .collect();
    assert_eq!(of["/plan"], (Encoding::Protobuf, "robot.Plan", set.len()));
    assert_eq!(of["/broken"], (Encoding::Bytes, "u8", 0));
    assert_eq!(of["/absent"], (Encoding::Bytes, "u8", 0));
    assert_eq!(of["/json"], (Encoding::Json, "/json", 0));
    assert_eq!(of["/twist"].0, Encoding::MessagePack, "as before");
}

/// Others could not read it, though `echo` could.
#[test]
fn a_message_of_ros_whose_topic_has_no_definition_is_recorded_with_the_one_of_its_name() {
    let home = Home::new("known");
    let of = |name| PayloadType::encoded(Encoding::Cdr, name, b"").unwrap();
    let names = ["geometry_msgs/msg/Vector3", "my/msg/Goal", "my/msg/Lost"];
    let node = home.node("record");
    let publish = |name| {
        let publisher = node.topic::<[u8]>(name).unwrap().of_type(&of(name)).publisher().unwrap();
        publisher.publish(&[0, 1, 0, 0, 7]).unwrap();
        publisher
    };
    let publishers = names.map(publish);
    for profile in [Profile::Outlive, Profile::Ros2] {
        let mut options = RecordOptions { profile, history: 8, ..RecordOptions::default() };
        options.definitions.insert("my/msg/Goal", "float64 x\nstring frame\n");
        let path = home.file(&format!("{profile:?}.mcap"));
        let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
        while recorder.progress().messages < 3 {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&path).unwrap();
        let schema = |name: &str| {
            let mut of = recording.sources.iter().map(|s| &s.source.payload_type);
            of.find(|of| of.name() == name).unwrap().schema().to_vec()
        };
        let schemas = names.map(|name| String::from_utf8(schema(name)).unwrap());
        assert_eq!(schemas, ["float64 x\nfloat64 y\nfloat64 z\n", "float64 x\nstring frame\n", ""]);

        // Who knew it without plays along.
        let node = home.node(&format!("play-{profile:?}"));
        let topic = node.topic::<[u8]>(names[0]).unwrap().of_type(&of(names[0]));
        let mut subscriber = topic.subscriber().unwrap();
        let mut player = Player::open(&node, recording, PlayOptions::default()).unwrap();
        player.play(|_| true).unwrap();
        assert_eq!(*subscriber.receive().unwrap().unwrap(), [0, 1, 0, 0, 7]);
    }
    drop(publishers);
}
