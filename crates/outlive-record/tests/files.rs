//! Files that were cut off or spoiled, and what is kept of types and numbers.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::record_each;
use outlive::{Deadline, Encoding, Node};
use outlive_record::{
    Compression, Limits, Message, PlayOptions, Player, Profile, RecordOptions, Recorder, Recording,
    Selection,
};
use testkit::{TempDomain, Watchdog};

struct Home {
    temp: TempDomain,
    _watchdog: Watchdog,
}

impl Home {
    fn new(label: &str) -> Self {
        let temp = TempDomain::new(&format!("record-{label}")).unwrap();
        Self { temp, _watchdog: Watchdog::start(label, Duration::from_secs(600)) }
    }

    fn node(&self, name: &str) -> Node {
        Node::builder().root(self.temp.path().join("root")).name(name).open().unwrap()
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.temp.path().join(name)
    }
}

fn messages(path: &Path) -> Vec<Message<'static>> {
    let all = Recording::open(path).unwrap().messages().unwrap();
    all.map(|m| m.unwrap()).collect()
}

/// A file with 40 messages of two topics in many chunks.
fn sample(home: &Home, compression: Compression) -> std::path::PathBuf {
    let node = home.node("sample");
    let numbers = node.topic::<f64>("/numbers").unwrap().depth(64).publisher().unwrap();
    let bytes = node.topic::<[u8]>("/bytes").unwrap().depth(64).publisher().unwrap();
    for i in 0..20u8 {
        numbers.publish(&f64::from(i)).unwrap();
        bytes.publish(&[i; 50]).unwrap();
    }
    let options =
        RecordOptions { compression, history: 64, chunk_bytes: 200, ..RecordOptions::default() };
    let path = home.file(&format!("{compression:?}.mcap"));
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 40 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    assert_eq!(recorder.finish().unwrap().messages, 40);
    path
}

#[test]
fn a_file_cut_off_anywhere_has_the_messages_of_its_whole_chunks() {
    let home = Home::new("cut");
    for compression in [Compression::Lz4, Compression::Zstd, Compression::None] {
        let whole = sample(&home, compression);
        let bytes = std::fs::read(&whole).unwrap();
        let all = messages(&whole);
        let cut = home.file("cut.mcap");
        let mut most = 0;
        for len in (0..bytes.len()).step_by(7) {
            std::fs::write(&cut, &bytes[..len]).unwrap();
            let Ok(recording) = Recording::open(&cut) else {
                assert!(len < 400, "{len} of {} bytes are a recording", bytes.len());
                continue;
            };
            let some: Vec<_> = recording.messages().unwrap().map(|m| m.unwrap()).collect();
            assert_eq!(some.len() as u64, recording.messages, "{len} bytes");
            assert!(some.len() >= most, "{len} bytes have fewer messages than a shorter file");
            most = some.len();
            let same = some.iter().zip(&all).all(|(a, b)| a == b);
            assert!(same, "{len} bytes have other messages");
        }
        assert_eq!(most, all.len(), "the index is not needed");
    }
}

#[test]
fn spoiled_bytes_are_an_error_or_unimportant_and_never_a_panic() {
    let home = Home::new("spoiled");
    let whole = sample(&home, Compression::Lz4);
    let bytes = std::fs::read(&whole).unwrap();
    let spoiled = home.file("spoiled.mcap");
    let (mut noticed, all) = (0, messages(&whole));
    for at in (0..bytes.len()).step_by(3) {
        // The upper bytes of lengths would only ask for memory that nobody has.
        let mut copy = bytes.clone();
        copy[at] ^= 0x15;
        std::fs::write(&spoiled, &copy).unwrap();
        match Recording::open(&spoiled) {
            Err(_) => noticed += 1,
            Ok(recording) => {
                let mut messages = recording.messages().unwrap();
                let some: Vec<_> = messages.by_ref().map(|m| m.unwrap()).collect();
                let damaged = messages.damage().is_some();
                noticed += usize::from(damaged);
                assert!(damaged || some == all, "byte {at} is wrong and nobody says so");
            }
        }
    }
    assert!(noticed > 100, "{noticed} wrong bytes were noticed");
    std::fs::write(&spoiled, b"no recording").unwrap();
    let why = Recording::open(&spoiled).unwrap_err().to_string();
    assert!(why.contains("spoiled.mcap cannot be read as a recording"), "{why}");
}

#[test]
fn a_bag_is_read_by_its_directory_and_one_in_sqlite_says_what_to_do() {
    let home = Home::new("bag");
    let whole = sample(&home, Compression::None);
    let bag = home.file("bag");
    let why = |path: &Path| Recording::open(path).unwrap_err().to_string();
    std::fs::create_dir(&bag).unwrap();
    assert!(why(&bag).contains("has 0 MCAP files"), "{}", why(&bag));
    std::fs::copy(&whole, bag.join("bag_0.mcap")).unwrap();
    std::fs::write(bag.join("metadata.yaml"), "version: 9").unwrap();
    let recording = Recording::open(&bag).unwrap();
    assert_eq!((recording.path, recording.messages), (bag.join("bag_0.mcap"), 40));
    // A bag says that its files belong together; other files may only be beside each other.
    std::fs::copy(&whole, bag.join("bag_1.mcap")).unwrap();
    assert_eq!(Recording::open(&bag).unwrap().messages, 80);
    std::fs::remove_file(bag.join("metadata.yaml")).unwrap();
    assert!(why(&bag).contains("has 2 MCAP files"), "{}", why(&bag));
    let old = home.file("old");
    std::fs::create_dir(&old).unwrap();
    let sqlite = old.join("bag_0.db3");
    std::fs::write(&sqlite, b"SQLite format 3\0 and all its pages").unwrap();
    for path in [&old, &sqlite] {
        let why = why(path);
        assert!(why.contains("ros2 bag convert") && why.contains("rosbags-convert"), "{why}");
    }
    for name in ["bag_0.db3.zstd", "bag_0.mcap.zstd"] {
        std::fs::rename(&sqlite, old.join(name)).unwrap();
        assert!(why(&old).contains("rosbags-convert"), "{}", why(&old));
        std::fs::rename(old.join(name), &sqlite).unwrap();
    }
    // With one of MCAP beside it, that one is meant; not if its messages are compressed.
    std::fs::copy(&whole, old.join("bag_0.mcap")).unwrap();
    assert_eq!(Recording::open(&old).unwrap().messages, 40);
    std::fs::write(old.join("metadata.yaml"), "a:\n  compression_mode: MESSAGE\n").unwrap();
    assert!(why(&old).contains("with compressed messages: convert it"), "{}", why(&old));
}

#[test]
fn types_depths_attributes_and_numbers_come_back() {
    let home = Home::new("types");
    let node = home.node("maker");
    let imu = node.topic::<outlive::msg::Imu>("/imu").unwrap().depth(32);
    let imu = imu.attribute("frame", "base").publisher().unwrap();
    let slices = node.topic::<[u16]>("/slices").unwrap().publisher().unwrap();
    let text = node.msgpack::<String>("/text").unwrap().publisher().unwrap();
    let path = home.file("types.mcap");
    let mut recorder =
        Recorder::start(&node, Selection::all(), &path, RecordOptions::default()).unwrap();
    use outlive::zerocopy::FromZeros;
    imu.publish(&outlive::msg::Imu::new_zeroed()).unwrap();
    slices.publish(&[1, 2, 3]).unwrap();
    text.publish_value(&"hello".into()).unwrap();
    while recorder.progress().messages < 3 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();

    let recording = Recording::open(&path).unwrap();
    assert!(recording.finished);
    let by_topic: BTreeMap<_, _> =
        recording.sources.iter().map(|s| (s.source.topic.as_str(), &s.source)).collect();
    let of = outlive::PayloadType::of::<outlive::msg::Imu>();
    assert_eq!(by_topic["/imu"].payload_type, of);
    assert_eq!(by_topic["/imu"].depth, Some(32));
    assert_eq!(by_topic["/imu"].attributes["frame"], "base");
    assert_eq!(by_topic["/imu"].publisher, imu.id().to_string());
    assert_eq!(by_topic["/slices"].payload_type.encoding(), Encoding::Slice);
    assert_eq!(by_topic["/text"].payload_type.encoding(), Encoding::MessagePack);

    // Played elsewhere, the types open again.
    let other = Node::builder().root(home.file("other")).open().unwrap();
    let mut player = Player::open(&other, recording.clone(), PlayOptions::default()).unwrap();
    let mut imu = other.topic::<outlive::msg::Imu>("/imu").unwrap().depth(32).subscriber().unwrap();
    let mut slices = other.topic::<[u16]>("/slices").unwrap().subscriber().unwrap();
    let mut text = other.msgpack::<String>("/text").unwrap().subscriber().unwrap();
    player.play(|_| true).unwrap();
    assert!(imu.receive().unwrap().is_some());
    assert_eq!(&slices.receive().unwrap().unwrap()[..], [1, 2, 3]);
    assert_eq!(text.receive().unwrap().unwrap().decode().unwrap(), "hello");
    drop((player, imu, slices, text));

    // A topic of another type is in the way.
    let _taken = other.topic::<f64>("/imu").unwrap().subscriber().unwrap();
    let why = Player::open(&other, recording.clone(), PlayOptions::default()).unwrap_err();
    assert!(why.to_string().contains("/imu") && why.to_string().contains("type"), "{why}");
    let remap = vec![("/imu".into(), "/imu2".into())];
    let options = PlayOptions { remap, ..PlayOptions::default() };
    let player = Player::open(&other, recording, options).unwrap();
    assert_eq!(player.topics(), ["/imu2", "/slices", "/text"]);
}

#[test]
fn a_type_of_ones_own_is_cdr_in_the_file_and_played_byte_by_byte() {
    let home = Home::new("own");
    let node = home.node("maker");
    let text = b"outlive-type 1 align 8\nstruct:24\n 0 u8 flag\n 8 f64 x\n 16 char[7] name\n";
    let of = outlive::TypeDescription::parse(text).unwrap();
    let of = outlive::PayloadType::fixed("robot/State", &of).unwrap();
    let open = |node: &Node| node.topic::<[u8]>("/state").unwrap().of_type(&of);
    let publisher = open(&node).publisher().unwrap();
    // Zero, and with bytes that no field has.
    let sent = [vec![0; 24], (1..=24).collect::<Vec<u8>>()];
    let options = RecordOptions { history: 16, ..RecordOptions::default() };
    let path = home.file("own.mcap");
    for payload in &sent {
        publisher.publish(payload).unwrap();
    }
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 2 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();

    let read = messages(&path);
    let schema = read[0].channel.schema.as_ref().unwrap();
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("robot/msg/State", "ros2msg"));
    assert!(schema.data.starts_with(b"uint8 flag\nfloat64 x\nstring name\n"));
    assert!(read.iter().all(|m| m.channel.message_encoding == "cdr" && m.data[0..2] == [0, 1]));
    assert!(read[0].data.len() < read[1].data.len(), "nothing is kept of zeros");
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.sources[0].source.payload_type, of);
    assert_eq!(recording.sources[0].source.ros_name(), None);
    let other = Node::builder().root(home.file("other")).open().unwrap();
    let mut states = open(&other).subscriber().unwrap();
    Player::open(&other, recording, PlayOptions::default()).unwrap().play(|_| true).unwrap();
    for payload in sent {
        assert_eq!(states.receive().unwrap().unwrap()[..], payload);
    }
}

#[test]
fn messagepack_is_json_in_the_file_where_it_can_be_and_played_by_one_publisher() {
    recorded_as_json("json", None);
    // Each message in a file of its own.
    recorded_as_json("json-split", Some(Duration::ZERO));
}

fn recorded_as_json(label: &str, split_after: Option<Duration>) {
    let home = Home::new(label);
    let node = home.node("maker");
    let topic = || node.msgpack::<BTreeMap<String, f64>>("/state").unwrap().type_name("robot/S");
    let publisher = topic().depth(8).publisher().unwrap();
    // The second has no JSON.
    for x in [0.5, f64::NAN, 3.0] {
        publisher.publish_value(&BTreeMap::from([("x".into(), x)])).unwrap();
    }
    let path = home.file("json.mcap");
    let options = RecordOptions { history: 16, split_after, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 3 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();

    let read = messages(&path);
    assert_eq!((&*read[0].data, &*read[2].data), (&b"{\"x\":0.5}"[..], &b"{\"x\":3.0}"[..]));
    let schema = read[0].channel.schema.as_ref().unwrap();
    assert_eq!((schema.name.as_str(), schema.encoding.as_str()), ("robot/S", "jsonschema"));
    assert!(schema.data.starts_with(b"{\"properties\":{\"x\":{\"type\":\"number\"}}"));
    let encodings: Vec<_> = read.iter().map(|m| m.channel.message_encoding.as_str()).collect();
    assert_eq!(encodings, ["json", "msgpack", "json"]);

    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.sources.len(), 2);
    let other = Node::builder().root(home.file("other")).open().unwrap();
    let states = other.msgpack::<BTreeMap<String, f64>>("/state").unwrap().type_name("robot/S");
    let mut states = states.depth(8).subscriber().unwrap();
    Player::open(&other, recording, PlayOptions::default()).unwrap().play(|_| true).unwrap();
    let mut seen = Vec::new();
    while let Some(state) = states.receive().unwrap() {
        seen.push((state.meta().publisher, state.meta().seq, state.decode().unwrap()["x"]));
    }
    let numbers: Vec<_> = seen.iter().map(|(_, seq, x)| (*seq, x.to_bits())).collect();
    assert_eq!(numbers, [(0, 0.5f64.to_bits()), (1, f64::NAN.to_bits()), (2, 3.0f64.to_bits())]);
    assert!(seen.iter().all(|(publisher, ..)| *publisher == seen[0].0), "one publisher");
}

#[test]
fn a_file_for_ros_has_its_messages_and_plays_into_the_same_types() {
    use outlive::msg::{Header, Pose};
    let home = Home::new("ros2");
    let node = home.node("maker");
    let pose = node.topic::<Pose>("/pose").unwrap().depth(8).publisher().unwrap();
    let plan = node.msgpack::<(u8, u8)>("/plan").unwrap().type_name("robot/Plan");
    let plan = plan.publisher().unwrap();
    let text = node.msgpack::<BTreeMap<String, String>>("/text").unwrap();
    let text = text.type_name("std_msgs/msg/String").publisher().unwrap();
    let path = home.file("ros2.mcap");
    let options = RecordOptions { profile: Profile::Ros2, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let notes = recorder.take_notes().join("; ");
    let left_out = "/plan is left out: ROS has no message like robot/Plan";
    assert!(notes.contains(left_out), "{notes}");
    let sent = Pose { header: Header::now("map"), ..Pose::default() };
    pose.publish(&sent).unwrap();
    plan.publish_value(&(1, 2)).unwrap();
    let message = |key: &str| BTreeMap::from([(key.to_owned(), "hello".to_owned())]);
    text.publish_value(&message("data")).unwrap();
    text.publish_value(&message("date")).unwrap();
    while recorder.progress().messages < 2 || recorder.progress().left_out < 1 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    let notes = recorder.take_notes().join("; ");
    assert!(notes.contains("/text: some messages are left out: the definition has no field date"));
    recorder.finish().unwrap();

    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.profile.as_str(), recording.messages), ("ros2", 2));
    let names: Vec<_> = recording.sources.iter().map(|s| s.source.ros_name().unwrap()).collect();
    assert_eq!(names, ["geometry_msgs/msg/PoseStamped", "std_msgs/msg/String"]);
    let of = outlive::PayloadType::of::<Pose>();
    assert_eq!(recording.sources[0].source.payload_type, of);
    let other = Node::builder().root(home.file("other")).open().unwrap();
    let mut player = Player::open(&other, recording, PlayOptions::default()).unwrap();
    let mut poses = other.topic::<Pose>("/pose").unwrap().depth(8).subscriber().unwrap();
    let texts = other.msgpack::<BTreeMap<String, String>>("/text").unwrap();
    let mut texts = texts.type_name("std_msgs/msg/String").subscriber().unwrap();
    player.play(|_| true).unwrap();
    assert_eq!((player.played().messages, player.played().invalid), (2, 0));
    let got = poses.receive().unwrap().unwrap();
    assert_eq!(got.position, sent.position);
    let since = got.header.stamp_ns - sent.header.stamp_ns;
    assert!(since > 1 << 60, "stamps count from 1970, {since} more");
    assert_eq!(texts.receive_value().unwrap().unwrap()["data"], "hello");
}

#[test]
fn a_recording_is_not_replaced_unless_that_is_asked_for() {
    let home = Home::new("replace");
    let node = home.node("recorder");
    let path = home.file("there.mcap");
    std::fs::write(&path, b"precious").unwrap();
    let start = |options| Recorder::start(&node, Selection::all(), &path, options);
    let why = start(RecordOptions::default()).unwrap_err().to_string();
    assert!(why.contains("there.mcap") && why.contains("exists"), "{why}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    start(RecordOptions { overwrite: true, ..RecordOptions::default() }).unwrap().finish().unwrap();
    assert_eq!(Recording::open(&path).unwrap().messages, 0);
}

/// They were left out without a word.
#[test]
fn limits_of_what_is_kept_are_for_split_recordings() {
    let home = Home::new("limits");
    let node = home.node("recorder");
    let start = |options| Recorder::start(&node, Selection::all(), &home.file("x.mcap"), options);
    let (keep_files, last) = (Some(3), Some(Duration::from_secs(3)));
    let why = start(RecordOptions { keep_files, ..RecordOptions::default() }).unwrap_err();
    assert!(why.to_string().contains("split_bytes or split_after"), "{why}");
    let why = start(RecordOptions { keep_files, last, ..RecordOptions::default() }).unwrap_err();
    assert!(why.to_string().contains("split_bytes or split_after"), "{why}");
    assert!(!home.file("x.mcap").exists());
}

#[test]
fn a_long_recording_is_split_into_files_that_stand_alone() {
    let home = Home::new("split");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(64).publisher().unwrap();
    let options = RecordOptions {
        split_bytes: Some(20_000),
        chunk_bytes: 4096,
        compression: Compression::None,
        ..RecordOptions::default()
    };
    let path = home.file("run.mcap");
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    for i in 0..60u8 {
        publisher.publish(&[i; 1000]).unwrap();
        while recorder.progress().messages <= u64::from(i) {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
    }
    let done = recorder.finish().unwrap();
    assert!(done.files >= 3, "{done:?}");
    let mut next = 0;
    for number in 0..done.files {
        let part = home.file(&format!("run_{number:03}.mcap"));
        let part = Recording::open_part(&part, Limits::default(), false).unwrap();
        assert!(part.finished);
        for message in part.messages().unwrap().map(Result::unwrap) {
            assert_eq!((message.sequence, message.data[0]), (next, next as u8));
            next += 1;
        }
    }
    assert_eq!(next, 60);
}

/// In `dir`, so many messages of `/bytes` in several files; another publisher has every tenth.
fn split(home: &Home, dir: &Path, count: u8) -> u64 {
    std::fs::create_dir(dir).unwrap();
    let node = home.node("both");
    let topic = || node.topic::<[u8]>("/bytes").unwrap().depth(64).publisher().unwrap();
    let publishers = [topic(), topic()];
    let options = RecordOptions {
        split_bytes: Some(20_000),
        chunk_bytes: 4096,
        compression: Compression::None,
        ..RecordOptions::default()
    };
    let path = dir.join("run.mcap");
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    for i in 0..count {
        publishers[usize::from(i % 10 == 9)].publish(&[i; 1000]).unwrap();
        while recorder.progress().messages <= u64::from(i) {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
    }
    recorder.finish().unwrap().files
}

#[test]
fn the_files_of_a_split_recording_are_read_as_one() {
    let home = Home::new("row");
    let dir = home.file("runs");
    let files = split(&home, &dir, 100);
    assert!(files >= 4, "{files}");
    // Of another recording, whose names go on where these end.
    let other = home.file("others");
    split(&home, &other, 25);
    let stranger = dir.join(format!("run_{files:03}.mcap"));
    std::fs::copy(other.join("run_000.mcap"), &stranger).unwrap();
    let numbers = |path: &Path| messages(path).iter().map(|m| m.data[0]).collect::<Vec<_>>();
    let part = |n: u64| dir.join(format!("run_{n:03}.mcap"));
    // Any part stands for all, and so does the name that the recorder was given last.
    for path in [part(0), part(2)] {
        assert_eq!(numbers(&path), (0..100).collect::<Vec<_>>(), "{}", path.display());
    }
    assert!(numbers(&dir.join("run.mcap")).len() < 25);
    std::fs::remove_file(&stranger).unwrap();
    assert_eq!(numbers(&dir.join("run.mcap")), (0..100).collect::<Vec<_>>());
    let whole = Recording::open(&dir).unwrap();
    assert_eq!(numbers(&dir), (0..100).collect::<Vec<_>>());
    assert_eq!((whole.messages, whole.finished), (100, true));
    assert_eq!((whole.files.len() as u64, whole.sources.len()), (files, 2));
    let sums: Vec<_> = whole.sources.iter().map(|s| s.messages).collect();
    assert_eq!(sums, [90, 10], "a publisher is one, whatever its number in each file");
    let ids: Vec<_> = whole.sources.iter().map(|s| s.channel).collect();
    let of =
        messages(&dir).into_iter().map(|m| m.channel.id == ids[usize::from(m.data[0] % 10 == 9)]);
    assert!(of.into_iter().all(|same| same));
    let size = |n| std::fs::metadata(part(n)).unwrap().len();
    assert_eq!(whole.file_bytes, (0..files).map(size).sum::<u64>());
    let again = home.node("player");
    let mut player =
        Player::open(&again, whole, PlayOptions { rate: 1e3, ..PlayOptions::default() }).unwrap();
    player.play(|_| true).unwrap();
    assert_eq!(player.played().messages, 100);
    // The oldest may have been let go; one that is missing in between is told.
    std::fs::remove_file(part(0)).unwrap();
    assert!(!Recording::open(&dir).unwrap().damage.is_some());
    std::fs::remove_file(part(2)).unwrap();
    let damage = Recording::open(&part(1)).unwrap().damage;
    assert!(damage.first.as_ref().unwrap().contains("run_002.mcap is missing"), "{damage}");
}

/// Records so many messages, each in a file of its own; the numbers of the files there afterwards.
fn run(home: &Home, first: u8, count: u8, options: RecordOptions) -> Vec<u64> {
    let path = home.file("run.mcap");
    record_each(&home.node("both"), &path, first, count, options);
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let name = |file: std::fs::DirEntry| file.file_name().into_string().unwrap();
    let number = |name: String| name.strip_prefix("run_")?.strip_suffix(".mcap")?.parse().ok();
    let mut numbers: Vec<u64> = files.filter_map(|file| number(name(file.unwrap()))).collect();
    numbers.sort();
    numbers
}

/// It began at the first number again, and died hours later at a file of its first run.
#[test]
fn a_split_recording_that_is_started_again_goes_on_behind_its_old_files() {
    let home = Home::new("again");
    let keep = |keep_files| RecordOptions { keep_files, ..RecordOptions::default() };
    let part = |n: u64| home.file(&format!("run_{n:03}.mcap"));
    let numbers = |path: &Path| messages(path).iter().map(|m| m.data[0]).collect::<Vec<_>>();
    assert_eq!(run(&home, 0, 5, keep(Some(3))), [2, 3, 4]);
    assert_eq!(run(&home, 10, 2, keep(None)), [2, 3, 4, 5, 6]);
    // Each part stands for its run, and the name for the last one.
    assert_eq!(numbers(&part(2)), [2, 3, 4]);
    assert_eq!(numbers(&part(5)), [10, 11]);
    assert_eq!(numbers(&home.file("run.mcap")), [10, 11]);
    // Those of earlier runs are the oldest.
    assert_eq!(run(&home, 20, 2, keep(Some(4))), [5, 6, 7, 8]);

    // What is not of a split recording is in nobody's way, and nobody's to remove.
    for name in ["run_020.mcap", "run_18446744073709551615.mcap", "run_010.mcap"] {
        std::fs::write(home.file(name), b"precious").unwrap();
    }
    let all = run(&home, 30, 3, keep(Some(3)));
    assert_eq!(all, [9, 10, 11, 12, 20, u64::MAX]);
    assert_eq!(std::fs::read(part(10)).unwrap(), b"precious");
    let recording = Recording::open(&part(9)).unwrap();
    assert!(!recording.damage.is_some(), "{}", recording.damage);
    assert_eq!(numbers(&part(12)), [30, 31, 32]);
    // One that was killed at once left nothing in its file.
    std::fs::write(part(13), b"").unwrap();
    assert_eq!(run(&home, 40, 1, keep(Some(3)))[..4], [10, 11, 12, 13]);
    let over = RecordOptions { overwrite: true, ..keep(None) };
    assert_eq!(run(&home, 50, 1, over)[0], 0, "unless asked to overwrite");
}

#[test]
fn a_name_that_is_being_recorded_is_nobody_elses() {
    let home = Home::new("twice");
    let node = home.node("recorder");
    let split_after = Some(Duration::from_secs(60));
    let path = home.file("run.mcap");
    let options = RecordOptions { split_after, ..RecordOptions::default() };
    let start = || Recorder::start(&node, Selection::all(), &path, options.clone());
    let first = start().unwrap();
    let why = start().unwrap_err().to_string();
    assert!(why.contains("run_000.mcap is being recorded by another process"), "{why}");
    first.finish().unwrap();
    start().unwrap().finish().unwrap();
    assert!(home.file("run_001.mcap").exists());
}

/// The second one emptied what the first one wrote, or removed it.
#[test]
fn a_file_that_is_being_written_is_neither_replaced_nor_removed() {
    let home = Home::new("taken");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().publisher().unwrap();
    let begin = |name: &str, options: &RecordOptions| {
        let path = home.file(&format!("{name}.mcap"));
        Recorder::start(&node, Selection::all(), &path, options.clone())
    };
    let over = RecordOptions { overwrite: true, ..RecordOptions::default() };
    let long = RecordOptions { split_after: Some(Duration::from_secs(60)), ..over.clone() };
    let keep = RecordOptions {
        keep_files: Some(2),
        overwrite: false,
        split_after: long.split_after,
        ..over.clone()
    };
    // Of an earlier run, whose first file is replaced.
    run(&home, 0, 4, RecordOptions::default());
    for (name, options, others) in [("one", &over, vec![&over]), ("run", &long, vec![&long, &keep])]
    {
        let mut first = begin(name, options).unwrap();
        publisher.publish(&[7]).unwrap();
        while first.progress().messages < 1 {
            first.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
        for other in others {
            let why = begin(name, other).unwrap_err();
            assert!(why.to_string().contains("is being recorded by another process"), "{why}");
            assert!(matches!(why, outlive_record::Error::Usage(_)), "{why:?}");
        }
        assert_eq!(first.finish().unwrap().messages, 1);
        let file = if name == "one" { "one.mcap" } else { "run_000.mcap" };
        let recording = Recording::open(&home.file(file)).unwrap();
        assert_eq!((recording.messages, recording.finished), (1, true));
        begin(name, options).unwrap().finish().unwrap();
    }
}

#[test]
fn what_lies_before_the_start_is_not_read() {
    let home = Home::new("seek");
    let dir = home.file("runs");
    let files = split(&home, &dir, 100);
    let all = messages(&dir);
    let middle = all[70].log_time;
    // Everything before is spoiled: whoever reads it notices.
    for n in 0..files {
        let path = dir.join(format!("run_{n:03}.mcap"));
        let mut bytes = std::fs::read(&path).unwrap();
        for i in 0..70u8 {
            while let Some(at) = bytes.windows(900).position(|w| w.iter().all(|b| *b == i + 1)) {
                bytes[at] ^= 0xff;
                bytes[at + 450] ^= 0xff;
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let recording = Recording::open(&dir).unwrap();
    let mut some = recording.messages_between(all[80].log_time, all[90].log_time).unwrap();
    let numbers: Vec<_> = some.by_ref().map(|m| m.unwrap().data[0]).collect();
    assert_eq!(numbers, (80..=90).collect::<Vec<_>>());
    assert!(!some.damage().is_some(), "{}", some.damage());
    let node = home.node("player");
    let start = Duration::from_nanos(all[80].log_time - recording.start_ns);
    let options = PlayOptions { start, rate: 1e3, ..PlayOptions::default() };
    let mut player = Player::open(&node, recording, options).unwrap();
    player.play(|_| true).unwrap();
    assert_eq!((player.played().messages, player.damage().is_some()), (20, false));
    let mut before = Recording::open(&dir).unwrap().messages_between(0, middle).unwrap();
    assert!(before.by_ref().count() < 60 && before.damage().is_some());
}

#[test]
fn the_last_seconds_are_saved_when_asked_and_memory_stays_bounded() {
    let home = Home::new("last");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(64).publisher().unwrap();
    let options = RecordOptions {
        last: Some(Duration::from_secs(3600)),
        // Of a kilobyte each, about ten.
        memory_bytes_max: 11_300,
        // No file of an earlier recorder, which had something to save.
        overwrite: true,
        ..RecordOptions::default()
    };
    let path = home.file("box.mcap");
    std::fs::write(home.file("box_000.mcap"), b"of an earlier recorder").unwrap();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let feed = |recorder: &mut Recorder, from: u8, to: u8| {
        for i in from..to {
            publisher.publish(&[i; 1000]).unwrap();
            while recorder.progress().messages <= u64::from(i) {
                recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
            }
            assert!(recorder.progress().memory_bytes <= 11_300);
        }
    };
    let saved = |recorder: &mut Recorder| loop {
        if let Some(saved) = recorder.take_saved() {
            break saved.unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    feed(&mut recorder, 0, 5);
    assert!(recorder.save("first").unwrap() && !recorder.save("too early").unwrap());
    let first = saved(&mut recorder);
    assert_eq!((&first.path, first.messages), (&home.file("box_001.mcap"), 5));
    feed(&mut recorder, 5, 40);
    assert!(recorder.save("second").unwrap());
    let second = saved(&mut recorder);
    assert_eq!((&second.path, second.messages), (&home.file("box_002.mcap"), 10));
    assert_eq!(recorder.finish().unwrap().files, 2);

    let sequences: Vec<_> =
        messages(&second.path).iter().map(|m| (m.sequence, m.data[0])).collect();
    assert_eq!(sequences, (30..40).map(|i| (i, i as u8)).collect::<Vec<_>>());
    let about = Recording::open(&second.path).unwrap().about;
    assert_eq!(about["why"], "second");
    assert_eq!(std::fs::read(home.file("box_000.mcap")).unwrap(), b"of an earlier recorder");
}

#[test]
fn what_is_older_than_the_last_seconds_is_not_saved() {
    let home = Home::new("old");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().publisher().unwrap();
    let last = Some(Duration::from_nanos(1));
    let options = RecordOptions { last, ..RecordOptions::default() };
    let path = home.file("box.mcap");
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    publisher.publish(&[1]).unwrap();
    while recorder.progress().messages < 1 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    std::thread::sleep(Duration::from_millis(1));
    assert!(recorder.save("").unwrap());
    assert_eq!(recorder.finish().unwrap().files, 1);
    assert_eq!(Recording::open(&home.file("box_000.mcap")).unwrap().messages, 0);
}
