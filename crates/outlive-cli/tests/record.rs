//! Messages into files and back: `record`, `info`, `play`.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::*;

const INT: i32 = libc::SIGINT;
const TERM: i32 = libc::SIGTERM;
const KILL: i32 = libc::SIGKILL;

fn info(home: &Home, file: &Path) -> serde_json::Value {
    home.run(&format!("info {} --json", file.display())).expect(DONE).json()
}

/// Waits until the file has so many messages in whole chunks.
fn await_recorded(home: &Home, file: &Path, messages: u64) {
    loop {
        let ran = home.run(&format!("info {} --json", file.display()));
        if ran.code == Some(DONE) && ran.json()["messages"].as_u64().unwrap() >= messages {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Topic, type and payloads in order, of each publisher.
fn content(file: &Path) -> Vec<(String, String, Vec<Vec<u8>>)> {
    let recording = outlive_record::Recording::open(file).unwrap();
    let mut data: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for message in recording.messages().unwrap() {
        let message = message.unwrap();
        data.entry(message.channel.id).or_default().push(message.data.into_owned());
    }
    let sources = recording.sources.iter();
    let mut all: Vec<_> = sources
        .map(|s| {
            let of = &s.source.payload_type;
            let name = format!("{} {:?} {:?}", of.name(), of.encoding(), s.source.depth);
            (s.source.topic.clone(), name, data.remove(&s.channel).unwrap_or_default())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn what_is_recorded_is_played_byte_for_byte_though_its_publishers_were_killed() {
    let home = Home::new("record-play");
    let (first, second) =
        (home.root().with_extension("1.mcap"), home.root().with_extension("2.mcap"));
    let record =
        home.start(&format!("record --all --history 64 --output {}", first.display()), b"");
    let data = noise(40 * 5000);
    let blobs =
        "topic pub /blob --from-stdin --frame-bytes 5000 --depth 64 --rate 400 --linger inf";
    let blobs = home.start(blobs, &data[..60_000]);
    let numbers = "topic pub /pose --type f64[] --json [1.5,-2] --depth 64 --rate 200 --count 20 \
                   --linger inf";
    let numbers = home.start(numbers, b"");
    let words = r#"topic pub /words --type msgpack --json {"a":[1,"b"]} --count 1 --linger inf"#;
    let words = home.start(words, b"");
    await_recorded(&home, &first, 12 + 20 + 1);
    for publisher in [blobs, numbers, words] {
        publisher.signal(KILL);
        publisher.end();
    }
    record.signal(INT);
    let told = record.end().expect(DONE).err;
    assert!(told.contains("recorded 33 messages of 3 topics"), "{told}");

    let again = format!("record --all --count 33 --output {}", second.display());
    let again = home.start(&again, b"");
    let play = format!("play {} --rate 2 --wait-for-subscribers 1", first.display());
    let played = home.run(&play).expect(DONE);
    assert!(played.err.contains("played 33 messages of 3 topics"), "{}", played.err);
    again.end().expect(DONE);
    let (before, after) = (content(&first), content(&second));
    assert_eq!(before.iter().map(|(.., m)| m.len()).collect::<Vec<_>>(), [12, 20, 1]);
    assert!(before == after, "other messages came back");
    assert_eq!(before[0].2.concat(), data[..60_000]);
}

#[test]
fn the_file_of_a_killed_recorder_is_readable_up_to_its_last_chunk() {
    ["lz4", "zstd", "none"].into_iter().for_each(kill_a_recorder);
}

fn kill_a_recorder(compression: &str) {
    let home = Home::new(&format!("record-killed-{compression}"));
    let file = home.root().with_extension("mcap");
    let record = format!("record /n --compression {compression} --output {}", file.display());
    let record = home.start(&record, b"");
    let publish = "topic pub /n --from-stdin --frame-bytes 1 --rate 200 --linger inf";
    let publisher = home.start(publish, &[7; 10_000]);
    await_recorded(&home, &file, 100);
    record.signal(KILL);
    record.end();
    let seen = info(&home, &file);
    let messages = seen["messages"].as_u64().unwrap();
    assert_eq!((&seen["finished"], messages >= 100), (&false.into(), true), "{seen}");
    publisher.signal(KILL);
    publisher.end();
    let play = format!("play {} --rate 1000", file.display());
    let played = home.run(&play).expect(DONE);
    assert!(played.err.contains("is unfinished"), "{}", played.err);
    assert!(played.err.contains(&format!("played {messages} messages")), "{}", played.err);
}

#[test]
fn losses_are_counted_told_and_written_into_the_file() {
    let home = Home::new("record-loss");
    let file = home.root().with_extension("mcap");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/fast").unwrap().depth(4).publisher().unwrap();
    publisher.publish(&[0]).unwrap();
    let record = format!("record /fast --history 1 --count 5 --output {}", file.display());
    let record = home.start(&record, b"");
    // A subscriber can be seen before it knows where it begins; with this message it does.
    await_recorded(&home, &file, 1);
    record.stop();
    for i in 0..10 {
        publisher.publish(&[i]).unwrap();
    }
    record.signal(libc::SIGCONT);
    let told = record.end().expect(LOSS).err;
    assert!(told.contains("lost 6 messages of publisher"), "{told}");
    let seen = info(&home, &file);
    assert_eq!((&seen["lost"], &seen["messages"]), (&6.into(), &5.into()), "{seen}");
    let by = format!("/fast {}", publisher.id());
    assert_eq!(seen["losses"][by], 6, "{seen}");
}

#[test]
fn a_reliable_recorder_loses_nothing_and_a_signal_finishes_the_file() {
    let home = Home::new("record-reliable");
    let file = home.root().with_extension("mcap");
    let out = file.display();
    let record = format!("record --reliable --regex /(fast|slow) --output {out}");
    let record = home.start(&record, b"");
    let publish = "topic pub /fast --from-stdin --frame-bytes 100 --depth 4 \
                   --wait-for-subscribers 1 --reliable-timeout 60";
    let data = noise(3000 * 100);
    home.feed(publish, &data).expect(DONE);
    record.signal(TERM);
    record.end().expect(DONE);
    let seen = info(&home, &file);
    assert_eq!((&seen["finished"], &seen["lost"]), (&true.into(), &0.into()), "{seen}");
    assert!(content(&file)[0].2.concat() == data, "{seen}");
}

#[test]
fn what_cannot_be_played_or_read_says_why() {
    let home = Home::new("record-wrong");
    let file = home.root().with_extension("mcap");
    let out = file.display();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<f64>("/n").unwrap().publisher().unwrap();
    publisher.publish(&1.5).unwrap();
    home.run(&format!("record /n --history 1 --count 1 --output {out}")).expect(DONE);
    let twice = home.run(&format!("record /n --output {out}")).expect(FAILED);
    assert!(twice.err.contains("exists"), "{}", twice.err);
    drop(publisher);
    let _other = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let wrong = home.run(&format!("play {out}")).expect(MISMATCH);
    assert!(wrong.err.contains("type is u32") && wrong.err.contains("f64"), "{}", wrong.err);
    home.run(&format!("play {out} --remap /n:=/m")).expect(DONE);
    home.run(&format!("play {out} --remap /none:=/m")).expect(USAGE);
    home.run(&format!("play {out} --topic /none")).expect(NOT_FOUND);
    home.run(&format!("info {out}.gone")).expect(NOT_FOUND);
    std::fs::write(&file, b"garbage, and some more of it").unwrap();
    let garbage = home.run(&format!("info {out}")).expect(CORRUPT);
    assert!(garbage.err.contains("cannot be read as a recording"), "{}", garbage.err);
}

#[test]
fn the_last_seconds_are_saved_by_a_signal_and_by_a_service() {
    let home = Home::new("record-last");
    let dir = home.root().parent().unwrap().to_owned();
    let box_of = |n: u32| dir.join(format!("box_{n:03}.mcap"));
    let record = format!("record /n --last 3600 --output {}", dir.join("box.mcap").display());
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().depth(64).publisher().unwrap();
    let record = home.start(&record, b"");
    home.await_subscriber();
    (0..50).for_each(|i| assert!(publisher.publish(&i).is_ok()));
    let ask = ["service", "call", "/record/save", "it fell", "--json", "--full"];
    let messages_of = |n| content(&box_of(n)).first().map_or(0, |(.., messages)| messages.len());
    let mut asked = home.outlive("");
    let said = Ran::from(asked.args(ask).output().unwrap()).expect(DONE).out;
    assert!(String::from_utf8(said).unwrap().contains("box_000.mcap"));
    let about = outlive_record::Recording::open(&box_of(0)).unwrap().about;
    assert_eq!((messages_of(0), about["why"].as_str()), (50, "it fell"));
    publisher.publish(&50).unwrap();
    record.signal(libc::SIGUSR1);
    while !box_of(1).exists()
        || !outlive_record::Recording::open(&box_of(1)).is_ok_and(|r| r.finished)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    record.signal(INT);
    let told = record.end().expect(DONE).err;
    assert_eq!(messages_of(1), 51, "{told}");
    assert!(told.contains("saved 50 messages, ") && told.contains("into 2 files"), "{told}");
    let left: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "two files and the root: {left:?}");
}

/// One wrong bit made all of an unfinished file unreadable, and ended with 1 where 5 is promised.
#[test]
fn damage_is_skipped_told_and_ends_with_its_code() {
    let home = Home::new("record-damage");
    let file = home.root().with_extension("mcap");
    let out = file.display();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/frames").unwrap().depth(64).publisher().unwrap();
    for i in 0..40u8 {
        // More than a chunk each.
        publisher.publish(&noise(300_000 + usize::from(i))).unwrap();
    }
    let split = "--split-bytes 4000000";
    home.run(&format!("record /frames --history 64 --count 40 {split} --output {out}"))
        .expect(DONE);
    let part = file.with_file_name(format!("{}_000.mcap", file.file_stem().unwrap().display()));
    // The limit of a message as well: it is in one chunk.
    let left = home.root().with_extension("left.mcap");
    let recover = format!("recover --overwrite --output {}", left.display());
    for (command, code) in [
        ("info --check", CORRUPT),
        ("play --rate 1000 --remap /frames:=/small", CORRUPT),
        ("convert", CORRUPT),
        (recover.as_str(), LOSS),
    ] {
        let small = format!("{command} --chunk-bytes-max 300000 {}", part.display());
        let told = home.run(&small).expect(code).err;
        assert!(told.contains("at most 300000 are read (--chunk-bytes-max)"), "{told}");
    }
    let mut bytes = std::fs::read(&part).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    bytes.truncate(bytes.len() * 9 / 10);
    std::fs::write(&part, bytes).unwrap();
    let out = part.display();
    let told = home.run(&format!("info {out}")).expect(CORRUPT);
    assert!(told.err.contains("1 damaged part of"), "{}", told.err);
    assert!(told.text().contains("unfinished"), "{}", told.text());
    let told = home.run(&format!("play {out} --rate 1000 --remap /frames:=/again")).expect(CORRUPT);
    assert!(told.err.contains("played ") && told.err.contains("damaged"), "{}", told.err);
    home.run(&format!("convert {out}")).expect(CORRUPT);
    let told = home.run(&format!("recover {out}")).expect(LOSS);
    assert!(told.err.contains("recovered.mcap"), "{}", told.err);
    let mended = part.with_extension("recovered.mcap");
    assert_eq!(info(&home, &mended)["finished"], true);
    home.run(&format!("info --check {}", mended.display())).expect(DONE);
}

/// Its messages were left out in silence, or it had no topic, and `--check` found nothing.
#[test]
fn a_wrong_bit_in_the_index_is_told_and_costs_nothing() {
    let home = Home::new("record-index");
    let file = home.root().with_extension("mcap");
    let out = file.display();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<f64>("/angle").unwrap().publisher().unwrap();
    for compression in ["lz4", "zstd", "none"] {
        for _ in 0..3 {
            publisher.publish(&0.5).unwrap();
        }
        let how = format!("--overwrite --compression {compression} --output {out}");
        home.run(&format!("record /angle --history 3 --count 3 {how}")).expect(DONE);
        home.run(&format!("info --check {out}")).expect(DONE);
        let mut bytes = std::fs::read(&file).unwrap();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        // The statistics, in which the only channel has its count at the end.
        let mut at = number(bytes.len() - 28);
        while bytes[at] != 11 {
            at += 9 + number(at + 1);
        }
        let channel = at + 9 + number(at + 1) - 10;
        assert_eq!(bytes[channel..channel + 4], [1, 0, 3, 0]);
        bytes[channel] ^= 2;
        std::fs::write(&file, &bytes).unwrap();
        let why = "the checksum of its index is wrong, so all of it was read";
        for (command, code, says) in [
            ("info", CORRUPT, why),
            ("info --check", CORRUPT, why),
            ("play --rate 1000 --remap /angle:=/again", CORRUPT, "played 3 messages"),
            ("convert --overwrite", CORRUPT, "3 messages of 1 topic"),
            ("recover --overwrite", DONE, "3 messages into"),
        ] {
            let told = home.run(&format!("{command} {out}")).expect(code).err;
            assert!(told.contains(why) && told.contains(says), "{command}: {told}");
        }
        let whole = file.with_extension("recovered.mcap");
        home.run(&format!("info --check {}", whole.display())).expect(DONE);
        assert_eq!(info(&home, &whole)["messages"], 3);
    }
}

/// Each message had a file of its own.
#[test]
fn a_split_that_makes_a_file_for_each_message_is_refused() {
    let home = Home::new("record-tiny");
    let file = home.root().with_extension("mcap");
    for split in ["seconds 0", "seconds 0.09", "seconds -1", "bytes 0", "bytes 4095"] {
        let split = format!("--split-{split} --output {}", file.display());
        home.run(&format!("record --all --for 0 {split}")).expect(USAGE);
    }
}

#[test]
fn a_topic_that_is_excluded_is_not_recorded() {
    let home = Home::new("record-exclude");
    let file = home.root().with_extension("mcap");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    for name in ["/camera/front", "/camera/rear", "/imu"] {
        let publisher = node.topic::<f64>(name).unwrap().publisher().unwrap();
        publisher.publish(&1.0).unwrap();
        std::mem::forget(publisher);
    }
    let record =
        format!("record --all --exclude /camera/* --history 1 --for 1 --output {}", file.display());
    home.run(&record).expect(DONE);
    let seen = info(&home, &file);
    let names: Vec<_> = seen["topics"].as_array().unwrap().iter().map(|t| &t["name"]).collect();
    assert_eq!(names, ["/imu"], "{seen}");
}

#[test]
fn a_split_recording_is_read_as_one_and_its_parts_alone_when_that_is_asked() {
    let home = Home::new("record-parts");
    let dir = home.root().with_extension("runs");
    std::fs::create_dir(&dir).unwrap();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/frames").unwrap().depth(64).publisher().unwrap();
    for i in 0..20u8 {
        publisher.publish(&noise(300_000 + usize::from(i))).unwrap();
    }
    let out = dir.join("run.mcap");
    let record = "record /frames --history 64 --count 20 --split-bytes 1000000 --output";
    home.run(&format!("{record} {}", out.display())).expect(DONE);
    let part = dir.join("run_001.mcap");
    for path in [&dir, &part, &out] {
        let seen = info(&home, path);
        assert_eq!(seen["messages"], 20, "{seen}");
        assert!(seen["files"].as_array().unwrap().len() > 3, "{seen}");
    }
    let alone = home.run(&format!("info {} --part --json", part.display())).expect(DONE).json();
    assert!(alone["messages"].as_u64().unwrap() < 10, "{alone}");
    let told = home.run(&format!("info {}", dir.display())).expect(DONE);
    assert!(told.text().contains(" files, finished"), "{}", told.text());
    let told = home.run(&format!("play {} --rate 1000 --remap /frames:=/again", part.display()));
    assert!(told.expect(DONE).err.contains("played 20 messages"));
    let tables = dir.with_extension("tables");
    let convert = format!("convert {} --output {}", dir.display(), tables.display());
    assert!(home.run(&convert).expect(DONE).err.contains("20 messages of 1 topic,"));
}

#[test]
fn a_file_that_exists_is_kept_and_the_remedy_is_named() {
    let home = Home::new("exists");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    publisher.publish(&1).unwrap();
    let file = home.root().with_file_name("exists.mcap");
    let record = format!("record -a -o {} --history 1 --count 1", file.display());
    home.run(&record).expect(DONE);
    let before = std::fs::read(&file).unwrap();
    let ran = home.run(&record).expect(FAILED);
    assert!(ran.err.contains("exists.mcap exists: --overwrite replaces it"), "{}", ran.err);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    home.run(&format!("{record} --overwrite")).expect(DONE);

    // Without a name it has the time in it.
    let dir = home.root().with_file_name("here");
    std::fs::create_dir(&dir).unwrap();
    let mut command = home.outlive("record --all --history 1 --count 1");
    command.current_dir(&dir);
    let ran = home.start_command(command).end().expect(DONE);
    let name = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap().file_name();
    let name = name.to_string_lossy();
    assert!(name.starts_with("record_2") && name.ends_with(".mcap"), "{name}");
    assert!(ran.err.contains(&format!("into {name} of")), "{}", ran.err);
}

/// It recorded nothing, said nothing, and ended with 0.
#[test]
fn a_named_topic_that_never_appears_is_4_and_named_with_what_was_meant() {
    let home = Home::new("record-absent");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let left = node.topic::<u64>("/a/left").unwrap().publisher().unwrap();
    left.publish(&7).unwrap();
    let file = home.root().with_extension("mcap");
    let record = format!("record --for 0.1 --history 1 --overwrite -o {}", file.display());
    let waiting = "outlive: waiting for topic /a/lft; did you mean /a/left?\n";
    for (args, code, messages, told, untold) in [
        ("/a/lft", NOT_FOUND, 0, vec![waiting, "topic /a/lft never appeared\n"], "nobody"),
        ("/a/left", DONE, 1, vec![], "waiting"),
        ("a/left", DONE, 1, vec![], "waiting"),
        ("/a/left /a/lft", NOT_FOUND, 1, vec![waiting, "topic /a/lft never appeared\n"], "nobody"),
        ("/c /d", NOT_FOUND, 0, vec!["waiting for topic /d\n", "topics /c, /d never"], "mean"),
        ("/b/* /?", DONE, 0, vec!["no topic matched /b/*, /?\n"], "waiting"),
        ("--regex /b", DONE, 0, vec!["no topic matched /b\n"], "waiting"),
        ("/a/* /b/*", DONE, 1, vec![], "matched"),
        ("-a --exclude /a/*", DONE, 0, vec!["no topic to record appeared\n"], "waiting"),
        ("/a/left --exclude /a/*", DONE, 0, vec!["topic /a/left is excluded\n"], "matched"),
    ] {
        let ran = home.run(&format!("{record} {args}"));
        let said = format!("{args}: {}", ran.err);
        assert_eq!(ran.code, Some(code), "{said}");
        assert!(ran.err.contains(&format!("recorded {messages} message")), "{said}");
        assert!(told.iter().all(|told| ran.err.contains(told)), "{said}");
        assert!(!ran.err.contains(untold), "{said}");
    }
    // One that nobody publishes on is there, and one that comes is waited for.
    let _reader = node.topic::<u64>("/read").unwrap().subscriber().unwrap();
    home.run(&format!("{record} /read")).expect(DONE);
    let late = home.start(&format!("{} /late", record.replace("0.1", "inf --count 1")), b"");
    home.await_nodes(2);
    let publisher = node.topic::<u64>("/late").unwrap().publisher().unwrap();
    publisher.publish(&7).unwrap();
    let told = late.end().expect(DONE).err;
    assert!(told.contains("waiting for topic /late\n") && !told.contains("never"), "{told}");
    let alone = home.run(&format!("{record} /b --domain empty")).expect(NOT_FOUND).err;
    assert!(alone.contains("waiting for topic /b\n"), "{alone}");
    assert_eq!(alone.matches("nobody is in domain empty").count(), 1, "{alone}");
}
