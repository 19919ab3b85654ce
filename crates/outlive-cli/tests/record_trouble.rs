//! Recordings on disks that are full, and files with names and texts that are meant to harm.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::time::Duration;

use common::disk::on_a_disk_of;
use common::*;
use testkit::Rng;

/// Bytes of which no two chunks are the same.
fn noise(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect()
}

#[test]
fn a_full_disk_ends_with_a_summary_and_what_was_written_is_there() {
    on_a_disk_of("12m", "a_full_disk_ends_with_a_summary_and_what_was_written_is_there", |disk| {
        ["lz4", "zstd", "none"].into_iter().for_each(|compression| fill_a_disk(disk, compression));
    });
}

fn fill_a_disk(disk: &Path, compression: &str) {
    let home = Home::new(&format!("record-full-{compression}"));
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(8).publisher().unwrap();
    let file = disk.join("run.mcap");
    let record = format!("record /bytes --compression {compression} --output {}", file.display());
    let mut record = home.start(&record, b"");
    home.await_subscriber();
    let mut rng = Rng::new(1);
    while !record.is_over() {
        // Half of it shrinks.
        let bytes = [noise(&mut rng, 60_000), vec![7; 40_000]].concat();
        publisher.publish(&bytes).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let told = record.end().expect(NO_ROOM).err;
    assert!(told.contains("outlive: recorded ") && told.contains("'outlive recover'"), "{told}");
    assert!(told.contains("No space left"), "{told}");
    let seen = home.run(&format!("info {} --json", file.display()));
    let seen: serde_json::Value = serde_json::from_slice(&seen.out).unwrap();
    assert_eq!(seen["finished"], false, "{seen}");
    let messages = seen["messages"].as_u64().unwrap();
    assert!(messages > 5, "{seen}");
    assert!(told.contains(&format!("recorded {messages} messages of 1 topic, ")), "{told} {seen}");
    assert!(told.contains(" not written; "), "{told}");
    // Elsewhere there is room.
    let whole = home.root().with_file_name("whole.mcap");
    let recover = format!("recover {} --output {}", file.display(), whole.display());
    assert!(home.run(&recover).err.contains(&format!("{messages} messages into")));
    home.run(&format!("info {} --check", whole.display())).expect(DONE);
    fs::remove_file(file).unwrap();
}

/// The signal of that limit ended it without a word.
#[test]
fn a_file_at_the_limit_of_the_process_ends_with_a_summary_and_the_code_of_a_full_disk() {
    let home = Home::new("record-limit");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(8).publisher().unwrap();
    let file = home.root().with_extension("mcap");
    let mut record = testkit::spawn::spawn_program("sh");
    // Blocks of 512 bytes, or 1024 in some shells.
    record.args(["-c", "ulimit -f 40000 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_outlive")]);
    record.args(["record", "/bytes", "--output"]).arg(&file).env("OUTLIVE_DIR", home.root());
    record.stderr(std::process::Stdio::piped());
    let mut record = home.start_command(record);
    home.await_subscriber();
    let mut rng = Rng::new(1);
    while !record.is_over() {
        publisher.publish(&noise(&mut rng, 100_000)).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
    let told = record.end().expect(NO_ROOM).err;
    assert!(told.contains("outlive: recorded ") && told.contains("'outlive recover'"), "{told}");
    assert!(told.contains("File too large") && told.contains("--split-bytes"), "{told}");
    let whole = home.root().with_file_name("whole.mcap");
    let outlive = |args: &str| {
        let mut shell = testkit::spawn::spawn_program("sh");
        let outlive = env!("CARGO_BIN_EXE_outlive");
        shell.args(["-c", &format!("ulimit -f 200; exec {outlive} {args}")]);
        Ran::from(shell.output().unwrap())
    };
    let (file, whole) = (file.display(), whole.display());
    let told = outlive(&format!("recover {file} --output {whole}")).expect(NO_ROOM);
    assert!(told.err.contains("File too large"), "{}", told.err);
    let told = outlive(&format!("convert {file} --output {whole}")).expect(NO_ROOM);
    assert!(told.err.contains("File too large"), "{}", told.err);
    home.run(&format!("info {file}")).expect(DONE);
}

#[test]
fn the_oldest_files_go_while_less_of_the_disk_is_free() {
    on_a_disk_of("3m", "the_oldest_files_go_while_less_of_the_disk_is_free", |disk| {
        let home = Home::new("record-free");
        let node = outlive::Node::builder().root(home.root()).open().unwrap();
        let topic = node.topic::<[u8]>("/bytes").unwrap().depth(8);
        let publisher = topic.reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
        let file = disk.join("run.mcap");
        let split = "--split-bytes 300000 --free-bytes 1500000 --reliable --count 100";
        let record = format!("record /bytes {split} --output {}", file.display());
        let record = home.start(&record, b"");
        home.await_subscriber();
        let mut rng = Rng::new(1);
        // Three times what the disk takes.
        (0..100).for_each(|_| assert!(publisher.publish(&noise(&mut rng, 100_000)).is_ok()));
        let told = record.end().expect(DONE).err;
        assert!(told.contains("recorded 100 messages"), "{told}");
        let there = fs::read_dir(disk).unwrap().count();
        assert!((2..8).contains(&there), "{there} files are left");
        assert!(!disk.join("run_000.mcap").exists());
        let seen = home.run(&format!("info {} --json", disk.display())).expect(DONE).json();
        assert!(seen["messages"].as_u64().unwrap() > 5, "{seen}");
    });
}

/// It needed room for its first file before it made any, and left an empty file each time.
#[test]
fn a_recording_that_is_started_again_on_a_full_disk_makes_room_first() {
    const TEST: &str = "a_recording_that_is_started_again_on_a_full_disk_makes_room_first";
    on_a_disk_of("2m", TEST, |disk| {
        let home = Home::new("record-room");
        let node = outlive::Node::builder().root(home.root()).open().unwrap();
        let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(32).publisher().unwrap();
        let mut rng = Rng::new(1);
        (0..20).for_each(|_| assert!(publisher.publish(&noise(&mut rng, 50_000)).is_ok()));
        let part = |n: u32| disk.join(format!("run_{n:03}.mcap"));
        let record = |messages: u32, how: &str| {
            let count = format!("--history {messages} --count {messages} --split-bytes 100000");
            let run = disk.join("run.mcap");
            home.run(&format!("record /bytes {count} {how} --output {}", run.display()))
        };
        record(20, "").expect(DONE);
        let mut rest = fs::File::create(disk.join("rest")).unwrap();
        while rest.write_all(&[7; 4096]).is_ok() {}
        let count = || fs::read_dir(disk).unwrap().count();
        let before = count();
        record(1, "--keep-files 1000").expect(NO_ROOM);
        assert_eq!(count(), before, "it leaves nothing");
        for split in ["", "--split-bytes 100000"] {
            let new = disk.join("new.mcap");
            let how = format!("--history 1 --count 1 --overwrite {split}");
            home.run(&format!("record /bytes {how} --output {}", new.display())).expect(NO_ROOM);
            assert_eq!(count(), before, "it leaves nothing to replace: {split}");
        }

        // The oldest cannot be removed; others can.
        let mut bind = std::process::Command::new("mount");
        assert!(bind.arg("--bind").args([part(0), part(0)]).status().unwrap().success());
        let told = record(1, "--free-bytes 500000").expect(DONE).err;
        assert!(told.contains(&format!("remove {}: ", part(0).display())), "{told}");
        assert!(part(0).exists() && !part(1).exists());
        let newest = (0..100).rev().map(part).find(|part| part.exists()).unwrap();
        let seen = home.run(&format!("info {} --part --json", newest.display())).json();
        assert_eq!((&seen["messages"], &seen["finished"]), (&1.into(), &true.into()), "{seen}");
    });
}

/// It panicked, and what it had in memory was gone.
#[test]
fn without_a_thread_for_the_file_the_last_seconds_stay_in_memory() {
    let home = Home::new("record-thread");
    let dir = home.root().parent().unwrap().to_owned();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().depth(64).publisher().unwrap();
    let record = format!("record /n --last 3600 --output {}", dir.join("box.mcap").display());
    let mut record = home.outlive(&record);
    record.env("RUST_MIN_STACK", (64 << 20).to_string());
    let record = home.start_command(record);
    home.await_subscriber();
    (0..50).for_each(|i| assert!(publisher.publish(&i).is_ok()));
    let save = || home.run("service call /record/save x --timeout 60");
    let status = fs::read_to_string(format!("/proc/{}/status", record.id())).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kb: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    // Less than a thread takes; enough for clients.
    limit(record.id(), libc::RLIMIT_AS, (kb << 10) + (48 << 20));
    for _ in 0..2 {
        let told = save().expect(FAILED).err;
        assert!(told.contains("start a thread"), "{told}");
    }
    limit(record.id(), libc::RLIMIT_AS, libc::RLIM_INFINITY);
    publisher.publish(&50).unwrap();
    save().expect(DONE);
    record.signal(libc::SIGINT);
    let told = record.end().expect(DONE).err;
    assert!(told.contains("saved 51 messages") && told.contains("into a file"), "{told}");
}

/// Each try left a file that took the room of the next.
#[test]
fn the_last_seconds_leave_no_partial_file_on_a_full_disk() {
    on_a_disk_of("2m", "the_last_seconds_leave_no_partial_file_on_a_full_disk", |disk| {
        let home = Home::new("record-partial");
        let node = outlive::Node::builder().root(home.root()).open().unwrap();
        let topic = node.topic::<[u8]>("/bytes").unwrap().depth(8);
        let publisher = topic.reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
        let how = "--last 3600 --reliable --compression none";
        let record = format!("record /bytes {how} --output {}", disk.join("box.mcap").display());
        let record = home.start(&record, b"");
        home.await_subscriber();
        let rest = disk.join("rest");
        fs::write(&rest, vec![7; 1 << 20]).unwrap();
        let mut rng = Rng::new(1);
        (0..15).for_each(|_| assert!(publisher.publish(&noise(&mut rng, 100_000)).is_ok()));
        let save = || home.run("service call /record/save x --timeout 60");
        for _ in 0..2 {
            let told = save().expect(FAILED).err;
            assert!(told.contains("No space left"), "{told}");
        }
        let there: Vec<_> = fs::read_dir(disk).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(there, std::slice::from_ref(&rest));
        fs::remove_file(rest).unwrap();
        save().expect(DONE);
        record.signal(libc::SIGINT);
        let told = record.end().expect(DONE).err;
        assert!(told.contains("saved 15 messages") && told.contains("into a file"), "{told}");
    });
}

/// It wrote the file to its end, and told nobody.
#[test]
fn who_asked_for_a_file_is_answered_though_a_signal_comes_while_it_is_written() {
    let home = Home::new("record-answer");
    let dir = home.root().parent().unwrap().to_owned();
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let topic = node.topic::<[u8]>("/bytes").unwrap().depth(8);
    let publisher = topic.reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
    let how = "--last 3600 --reliable --compression zstd";
    let record = format!("record /bytes {how} --output {}", dir.join("box.mcap").display());
    let record = home.start(&record, b"");
    home.await_subscriber();
    let mut rng = Rng::new(1);
    // Its file takes a while.
    (0..30).for_each(|_| assert!(publisher.publish(&noise(&mut rng, 500_000)).is_ok()));
    let asks = home.start_open("service call /record/save x --timeout 100");
    while !dir.join("box_000.mcap").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    record.signal(libc::SIGTERM);
    let answer = asks.end().expect(DONE);
    assert!(answer.text().contains("box_000.mcap"), "{}", answer.text());
    let told = record.end().expect(DONE).err;
    assert!(told.contains("saved 30 messages") && told.contains("into a file"), "{told}");
}

/// A file of somebody else, with one message of MessagePack on a topic of any name.
fn foreign(path: &Path, topic: &str, value: &impl serde::Serialize) {
    let mut writer = mcap::Writer::new(Cursor::new(Vec::new())).unwrap();
    let about = BTreeMap::from([("outlive.publisher".to_owned(), "1.\x1b[31m2".to_owned())]);
    let channel = writer.add_channel(0, topic, "msgpack", &about).unwrap();
    let header = mcap::records::MessageHeader {
        channel_id: channel,
        sequence: 1,
        log_time: 1_000,
        publish_time: 1_000,
    };
    let data = outlive::msgpack::encode(value).unwrap();
    writer.write_to_known_channel(&header, &data).unwrap();
    writer.finish().unwrap();
    fs::write(path, writer.into_inner().into_inner()).unwrap();
}

/// The escape sequences of its names cleared the screen, set the title, and worse.
#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let home = Home::new("record-escape");
    let file = home.root().with_extension("mcap");
    let topic = "/clear\x1b[2J\x1b]0;title\x07\r/\u{9b}31m";
    foreign(&file, topic, &BTreeMap::from([("\x1b[2Jkey", "\x1b[2Jvalue")]));
    let out = home.root().with_file_name("tables");
    let file = file.display();
    for command in [
        format!("info {file}"),
        format!("info {file} --json"),
        format!("play {file}"),
        format!("play {file} --remap /none:=/x"),
        format!("convert {file} --output {}", out.display()),
        format!("recover {file}"),
    ] {
        let ran = home.run(&command);
        let said = String::from_utf8_lossy(&ran.out).into_owned() + &ran.err;
        let raw = said.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(raw, None, "{command}: {said:?}");
        assert!(!said.is_empty(), "{command} says nothing");
    }
}

/// It emptied the part that it was about to read.
#[test]
fn no_part_of_a_recording_is_written_over_and_a_directory_has_a_file_beside_it() {
    let home = Home::new("recover-parts");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(16).publisher().unwrap();
    (0..10u8).for_each(|i| assert!(publisher.publish(&[i; 3000]).is_ok()));
    let dir = home.root().with_file_name("bag");
    fs::create_dir(&dir).unwrap();
    let out = dir.join("run.mcap");
    let split = "--history 16 --count 10 --split-bytes 4096 --compression none";
    home.run(&format!("record /bytes {split} --output {}", out.display())).expect(DONE);
    for (from, to) in [("run_000", "run_001"), ("run", "run_000")] {
        let path = |name: &str| dir.join(name).with_extension("mcap");
        let before = fs::read(path(to)).unwrap();
        let (from, part) = (path(from), path(to));
        let recover = format!("recover {} --output {} --overwrite", from.display(), part.display());
        let told = home.run(&recover).expect(USAGE).err;
        assert!(told.contains("would be written over itself"), "{told}");
        assert!(fs::read(&part).unwrap() == before);
    }
    let told = home.run(&format!("recover {}", dir.display())).expect(DONE).err;
    assert!(told.contains("10 messages into ") && told.contains("/bag.recovered.mcap"), "{told}");
    assert!(dir.with_extension("recovered.mcap").exists());
}

/// Only `info` said so.
#[test]
fn a_missing_part_of_a_recording_has_a_code_in_all_commands_that_read_it() {
    let home = Home::new("record-missing");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(16).publisher().unwrap();
    (0..10u8).for_each(|i| assert!(publisher.publish(&[i; 3000]).is_ok()));
    let run = home.root().with_file_name("run.mcap");
    let split = "--history 16 --count 10 --split-bytes 4096 --compression none";
    home.run(&format!("record /bytes {split} --output {}", run.display())).expect(DONE);
    fs::remove_file(run.with_file_name("run_001.mcap")).unwrap();
    for (command, code) in
        [("info", CORRUPT), ("play", CORRUPT), ("convert", CORRUPT), ("recover", LOSS)]
    {
        let told = home.run(&format!("{command} {}", run.display())).expect(code).err;
        assert!(told.contains("run_001.mcap is missing"), "{command}: {told}");
    }
}

#[test]
fn files_are_kept_only_of_a_recording_that_is_split() {
    let home = Home::new("record-keep");
    let record =
        format!("record -a --for 0 --output {}", home.root().with_extension("x").display());
    for keep in ["--keep-files 3", "--keep-bytes 3", "--free-bytes 3"] {
        let told = home.run(&format!("{record} {keep}")).expect(USAGE).err;
        assert!(told.contains("--split-bytes"), "{told}");
        home.run(&format!("{record} --last 3 {keep}")).expect(USAGE);
        home.run(&format!("{record} --last 3 --split-seconds 9 {keep}")).expect(USAGE);
    }
}

/// What a robot says is nothing that a spreadsheet may run.
#[test]
fn cells_that_begin_a_formula_are_text() {
    let home = Home::new("convert-formula");
    let file = home.root().with_extension("mcap");
    let out = home.root().with_file_name("tables");
    let texts = ["=HYPERLINK(\"http://x\")", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "fine"];
    let keys = (0..texts.len()).map(|n| format!("={n}"));
    let value: BTreeMap<String, &str> = keys.zip(texts).collect();
    foreign(&file, "/text", &value);
    home.run(&format!("convert {} --output {}", file.display(), out.display())).expect(DONE);
    let table = fs::read_to_string(out.join("text.csv")).unwrap();
    let mut cells = 0;
    // No text here has a comma in it, or a line's end but the one.
    for cell in table.split([',', '\n']) {
        let text = cell.trim_matches('"');
        let number = text.parse::<f64>().is_ok();
        assert!(number || !text.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
        cells += u32::from(text.starts_with('\''));
    }
    assert_eq!(cells, 7 + 6, "all names and all but one text:\n{table}");
}

/// A chunk of 7.5 MB that holds 1.9 GB took 14.9 GB.
#[test]
fn a_large_message_becomes_a_cell_in_little_more_memory_than_it_takes() {
    const BYTES: usize = 64 << 20;
    let home = Home::new("convert-large");
    let file = home.root().with_extension("mcap");
    let out = home.root().with_file_name("tables");
    let lz4 = mcap::WriteOptions::new().compression(Some(mcap::Compression::Lz4));
    let mut writer = lz4.create(Cursor::new(Vec::new())).unwrap();
    let channel = writer.add_channel(0, "/zeros", "", &BTreeMap::new()).unwrap();
    let header = mcap::records::MessageHeader {
        channel_id: channel,
        sequence: 1,
        log_time: 1,
        publish_time: 1,
    };
    writer.write_to_known_channel(&header, &vec![0; BYTES]).unwrap();
    writer.finish().unwrap();
    fs::write(&file, writer.into_inner().into_inner()).unwrap();
    assert!(fs::metadata(&file).unwrap().len() < 1 << 20);
    // Four times the message, the program and all it maps included.
    let mut convert = std::process::Command::new("sh");
    convert.args(["-c", "ulimit -v 262144 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_outlive")]);
    convert.arg("convert").arg(&file).arg("--output").arg(&out).env("OUTLIVE_DIR", home.root());
    Ran::from(convert.output().unwrap()).expect(DONE);
    let table = fs::metadata(out.join("zeros.csv")).unwrap().len();
    assert!(table > 2 * BYTES as u64, "{table} bytes, two for each");
}

/// A file of somebody else, with a message on each topic, in one chunk.
fn file_of(path: &Path, topics: &[(&str, &BTreeMap<String, String>)]) {
    let plain = mcap::WriteOptions::new().compression(None);
    let mut writer = plain.create(Cursor::new(Vec::new())).unwrap();
    for (topic, about) in topics {
        let channel_id = writer.add_channel(0, topic, "msgpack", about).unwrap();
        let header = mcap::records::MessageHeader {
            channel_id,
            sequence: 1,
            log_time: 1_000,
            publish_time: 1_000,
        };
        let data = outlive::msgpack::encode(&[7; 100][..]).unwrap();
        writer.write_to_known_channel(&header, &data).unwrap();
    }
    writer.finish().unwrap();
    fs::write(path, writer.into_inner().into_inner()).unwrap();
}

/// They said only that there is no such topic.
#[test]
fn a_file_of_which_nothing_can_be_read_is_damaged_and_not_without_topics() {
    let home = Home::new("record-nothing");
    let file = home.root().with_extension("mcap");
    file_of(&file, &[("/a", &BTreeMap::new())]);
    let whole = file.display().to_string();
    let mut bytes = fs::read(&file).unwrap();
    let data = [7; 100];
    let at = bytes.windows(data.len()).position(|part| part == data).unwrap();
    bytes[at] = 8;
    // Without its index.
    bytes.truncate(at + data.len());
    let damaged = home.root().with_file_name("damaged.mcap");
    fs::write(&damaged, &bytes).unwrap();
    for command in ["convert", "play"] {
        let told = home.run(&format!("{command} {}", damaged.display())).expect(CORRUPT).err;
        assert!(told.contains(": 1 damaged part of "), "{command}: {told}");
        let told = home.run(&format!("{command} {whole} --topic /b")).expect(NOT_FOUND).err;
        assert!(told.contains("'outlive info' lists its topics"), "{command}: {told}");
    }
}

/// It ended as if the command had been wrong, and named no file.
#[test]
fn a_topic_whose_name_is_none_in_a_file_is_its_damage() {
    let home = Home::new("play-name");
    let file = home.root().with_extension("mcap");
    file_of(&file, &[("/a//b", &BTreeMap::new()), ("/right", &BTreeMap::new())]);
    let play = format!("play {} --rate 1000", file.display());
    let told = home.run(&play).expect(CORRUPT).err;
    assert!(told.contains("/a//b") && told.contains("--remap"), "{told}");
    assert!(told.contains(&file.display().to_string()), "{told}");
    home.run(&format!("{play} --remap /a//b:=/c")).expect(DONE);
    home.run(&format!("{play} --remap /a//b:=c//d")).expect(USAGE);
}

/// It copied such a channel, and called the result whole.
#[test]
fn a_channel_that_cannot_be_understood_is_left_out_of_what_is_recovered() {
    let home = Home::new("recover-channel");
    let file = home.root().with_extension("mcap");
    let about = BTreeMap::from([("outlive.encoding".to_owned(), "nonsense".to_owned())]);
    file_of(&file, &[("/wrong", &about), ("/right", &BTreeMap::new())]);
    let whole = home.root().with_file_name("whole.mcap");
    let recover = format!("recover {} --output {}", file.display(), whole.display());
    let told = home.run(&recover).expect(LOSS).err;
    assert!(told.contains("1 message into") && told.contains("outlive.encoding"), "{told}");
    home.run(&format!("info {} --check", whole.display())).expect(DONE);
}

/// It ended with the code of a failure, and the topics behind it were not written.
#[test]
fn a_topic_whose_name_no_file_can_have_is_left_out_of_what_is_converted() {
    let home = Home::new("convert-name");
    let file = home.root().with_extension("mcap");
    let long = format!("/{}", "n".repeat(300));
    file_of(&file, &[(&long, &BTreeMap::new()), ("/ok", &BTreeMap::new())]);
    let out = home.root().with_file_name("tables");
    let convert = format!("convert {} --output {}", file.display(), out.display());
    let told = home.run(&convert).expect(LOSS).err;
    assert!(told.contains(&format!("{long} is left out")), "{told}");
    assert!(told.contains("1 message of 1 topic"), "{told}");
    assert!(out.join("ok.csv").exists());
}

/// It was said that the header is missing.
#[test]
fn a_limit_of_no_bytes_is_out_of_range() {
    let home = Home::new("record-limit-0");
    let file = home.root().with_extension("mcap");
    file_of(&file, &[("/a", &BTreeMap::new())]);
    for command in ["recover", "info", "play", "convert"] {
        let limit = format!("{command} {} --chunk-bytes-max 0", file.display());
        let told = home.run(&limit).expect(USAGE).err;
        assert!(told.contains("--chunk-bytes-max"), "{told}");
    }
}
