//! Damaged files are read around what is damaged; losses are counted once, and from the first one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlive::{Deadline, Node};
use outlive_record::{
    Compression, Limits, PlayOptions, Player, RecordOptions, Recorder, Recording, Selection,
    recover,
};
use testkit::{Rng, TempDomain, Watchdog};

struct Home {
    temp: TempDomain,
    _watchdog: Watchdog,
}

impl Home {
    fn new(label: &str) -> Self {
        let temp = TempDomain::new(&format!("damage-{label}")).unwrap();
        Self { temp, _watchdog: Watchdog::start(label, Duration::from_secs(300)) }
    }

    fn node(&self, name: &str) -> Node {
        Node::builder().root(self.temp.path().join("root")).name(name).open().unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }
}

/// A file with 100 messages of one publisher in about 25 chunks.
fn sample(home: &Home, compression: Compression) -> PathBuf {
    let node = home.node("sample");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(128).publisher().unwrap();
    let mut rng = Rng::new(7);
    for i in 0..100u8 {
        let noise: Vec<u8> = (0..100).map(|_| rng.next_u64() as u8).collect();
        publisher.publish(&[&[i][..], &noise].concat()).unwrap();
    }
    let options =
        RecordOptions { compression, history: 128, chunk_bytes: 500, ..RecordOptions::default() };
    let path = home.file(&format!("{compression:?}.mcap"));
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 100 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();
    path
}

/// Where the chunks begin, and how long they are.
fn chunks(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (8, Vec::new());
    while at + 9 <= bytes.len() {
        let len = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
        match bytes[at] {
            6 => found.push((at, len)),
            15 => break,
            _ => {}
        }
        at += 9 + len;
    }
    found
}

/// First bytes of the messages that can be read, and whether something was left out.
fn read(path: &Path) -> (Vec<u8>, bool) {
    let recording = Recording::open(path).unwrap();
    let mut messages = recording.messages().unwrap();
    let first = messages.by_ref().map(|m| m.unwrap().data[0]).collect();
    (first, messages.damage().is_some())
}

#[test]
fn one_damaged_chunk_costs_its_own_messages_and_no_others() {
    let home = Home::new("chunk");
    for compression in [Compression::Lz4, Compression::Zstd, Compression::None] {
        let whole = sample(&home, compression);
        let bytes = std::fs::read(&whole).unwrap();
        let (all, damaged) = read(&whole);
        assert_eq!((all, damaged), ((0..100).collect(), false));
        let chunks = chunks(&bytes);
        assert!(chunks.len() > 15, "{}", chunks.len());
        // Without its index, as one whose recorder was killed, and with it.
        let (last, len) = *chunks.last().unwrap();
        for end in [last + 9 + len, bytes.len()] {
            for (at, len) in &chunks[1..chunks.len() - 1] {
                // In its data, its length, and what it says to be.
                for place in [at + 9 + len - 20, at + 1, at + 2, *at, at + 9 + 32] {
                    let mut copy = bytes[..end].to_vec();
                    copy[place] ^= 0x55;
                    let spoiled = home.file("spoiled.mcap");
                    std::fs::write(&spoiled, &copy).unwrap();
                    let (some, damaged) = read(&spoiled);
                    let what = format!("byte {place} of the chunk at {at}, {len} long");
                    assert!(damaged, "{what}: nobody noticed");
                    assert!(some.len() >= 90, "{what}: {} left", some.len());
                    assert!(some.is_sorted(), "{what}: {some:?}");
                }
            }
        }
    }
}

/// The same file with its chunks in zstd, as others write them; without its index.
fn in_zstd(plain: &[u8]) -> Vec<u8> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let (mut out, mut at) = (plain[..8].to_vec(), 8);
    while plain[at] != 15 {
        let len = u64::from_le_bytes(plain[at + 1..at + 9].try_into().unwrap()) as usize;
        let body = &plain[at + 9..at + 9 + len];
        at += 9 + len;
        match plain[at - 9 - len] {
            6 => {
                assert_eq!(body[28..32], [0; 4], "a chunk that is not compressed");
                let packed = compress_to_vec(&body[40..], CompressionLevel::Fastest);
                let (head, name) = (&body[..28], [&[4, 0, 0, 0][..], b"zstd"].concat());
                let size = (packed.len() as u64).to_le_bytes();
                let body = [head, &name, &size, &packed].concat();
                out.push(6);
                out.extend((body.len() as u64).to_le_bytes());
                out.extend(body);
            }
            7 => {}
            opcode => {
                out.push(opcode);
                out.extend((len as u64).to_le_bytes());
                out.extend(body);
            }
        }
    }
    out
}

#[test]
fn chunks_in_zstd_are_read_and_damaged_ones_left_out() {
    let home = Home::new("zstd");
    let bytes = in_zstd(&std::fs::read(sample(&home, Compression::None)).unwrap());
    let path = home.file("zstd.mcap");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path), ((0..100).collect(), false));
    let chunks = chunks(&[&bytes[..], &[15; 9]].concat());
    // Every byte of one, its header as well: whatever it says, nothing panics.
    let (at, len) = chunks[5];
    for place in at..at + 9 + len {
        for flip in [0x01, 0x80, 0xff] {
            let mut copy = bytes.clone();
            copy[place] ^= flip;
            std::fs::write(&path, &copy).unwrap();
            let (some, _) = read(&path);
            assert!(some.len() >= 90 && some.is_sorted(), "byte {place}: {some:?}");
        }
    }
    let limits = Limits { chunk_bytes_max: 100 };
    std::fs::write(&path, &bytes).unwrap();
    let recording = Recording::open_within(&path, limits, false).unwrap();
    assert!(recording.damage.first.unwrap().contains("--chunk-bytes-max"));
}

#[test]
fn what_is_left_of_a_damaged_file_becomes_a_whole_one() {
    let home = Home::new("recover");
    let whole = sample(&home, Compression::Lz4);
    let mut bytes = std::fs::read(&whole).unwrap();
    let chunks = chunks(&bytes);
    let (at, len) = chunks[chunks.len() / 2];
    bytes[at + 9 + len - 20] ^= 1;
    bytes.truncate(chunks.last().unwrap().0 + 30);
    let spoiled = home.file("spoiled.mcap");
    std::fs::write(&spoiled, &bytes).unwrap();
    let from = Recording::open(&spoiled).unwrap();
    assert!(!from.finished && from.damage.is_some(), "{:?}", from.damage);
    assert!(from.messages > 85 && from.messages < 100, "{}", from.messages);
    let to = home.file("mended.mcap");
    let done = recover(&from, &to, Compression::Lz4, false).unwrap();
    assert_eq!(done.messages, from.messages);
    assert!(done.damage.is_some());
    let mended = Recording::open(&to).unwrap();
    assert!(mended.finished && !mended.damage.is_some());
    assert_eq!((mended.messages, &mended.about), (from.messages, &from.about));
    assert_eq!(mended.sources[0].source.payload_type, from.sources[0].source.payload_type);
    assert_eq!(read(&to).0, read(&spoiled).0);
    assert!(
        recover(&from, &to, Compression::Lz4, false).unwrap_err().to_string().contains("exists")
    );
    assert!(recover(&from, &spoiled, Compression::Lz4, true).is_err(), "not over itself");
    // It plays what is there, and says what is not.
    let node = home.node("play");
    let mut player = Player::open(&node, from, PlayOptions::default()).unwrap();
    player.play(|_| true).unwrap();
    assert!(player.damage().is_some() && player.played().messages == done.messages);
}

/// Poses of two publishers, the second of which came late, in about 20 chunks; the time of the last
/// one before it.
fn late_publisher(home: &Home) -> (PathBuf, u64) {
    let node = home.node("both");
    let topic = || node.topic::<outlive::msg::Pose>("/pose").unwrap().depth(64);
    let options = RecordOptions {
        compression: Compression::None,
        chunk_bytes: 500,
        ..RecordOptions::default()
    };
    let path = home.file("late.mcap");
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let mut feed = |publisher: &outlive::Publisher<outlive::msg::Pose>, of: u64| {
        (0..20).for_each(|_| assert!(publisher.publish(&Default::default()).is_ok()));
        while recorder.progress().messages < of {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
    };
    let first = topic().publisher().unwrap();
    feed(&first, 20);
    let second = topic().publisher().unwrap();
    feed(&second, 40);
    recorder.finish().unwrap();
    let all: Vec<_> = Recording::open(&path).unwrap().messages().unwrap().flatten().collect();
    (path, all[19].log_time)
}

/// Its channel lost the schema, which is in the first chunk only.
#[test]
fn a_late_publisher_keeps_its_type_without_the_chunk_that_has_the_schema() {
    let home = Home::new("schema");
    let (path, late_ns) = late_publisher(&home);
    // The first chunk is not read, and is as it should be.
    let recording = Recording::open(&path).unwrap();
    let late: Vec<_> = recording.messages_between(late_ns, u64::MAX).unwrap().flatten().collect();
    let described = late.iter().filter(|m| m.channel.schema.is_some()).count();
    assert_eq!((late.len(), described), (21, 21));

    let mut bytes = std::fs::read(&path).unwrap();
    let chunks = chunks(&bytes);
    let (at, len) = chunks[0];
    bytes[at + 9 + len - 20] ^= 1;
    let (last, len) = *chunks.last().unwrap();
    // With its index, and without it as one whose recorder was killed.
    for (name, end) in [("spoiled", bytes.len()), ("killed", last + 9 + len)] {
        let spoiled = home.file(&format!("{name}.mcap"));
        std::fs::write(&spoiled, &bytes[..end]).unwrap();
        let from = Recording::open_within(&spoiled, Limits::default(), true).unwrap();
        let to = home.file(&format!("{name}.recovered.mcap"));
        recover(&from, &to, Compression::Lz4, false).unwrap();
        for path in [&spoiled, &to] {
            let recording = Recording::open(path).unwrap();
            let node = home.node("play");
            let mut player = Player::open(&node, recording, PlayOptions::default()).unwrap();
            player.play(|_| true).unwrap();
            let played = player.played();
            assert_eq!(played.invalid, 0, "{}: {played:?}", path.display());
            assert!(played.messages >= 20, "{}: {played:?}", path.display());
        }
    }
}

/// A few megabytes can hold gigabytes; whoever reads it says how much it takes.
#[test]
fn a_chunk_that_holds_too_much_counts_as_damaged() {
    let home = Home::new("bomb");
    let node = home.node("bomb");
    let publisher = node.topic::<[u8]>("/zeros").unwrap().depth(2).publisher().unwrap();
    publisher.publish(&vec![0; 8 << 20]).unwrap();
    let path = home.file("bomb.mcap");
    let options = RecordOptions { history: 2, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    while recorder.progress().messages < 1 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();
    assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
    let limits = Limits { chunk_bytes_max: 4 << 20 };
    let small = Recording::open_within(&path, limits, true).unwrap();
    assert!(small.damage.to_string().contains("at most 4194304 are read"), "{}", small.damage);
    assert_eq!((small.messages, small.messages().unwrap().count()), (0, 0));
    let whole = Recording::open_within(&path, Limits::default(), true).unwrap();
    assert_eq!((whole.messages, whole.messages().unwrap().count()), (1, 1));
}

/// Others write files without chunks: the same limit holds for each message of them.
#[test]
fn a_message_outside_chunks_that_is_too_large_counts_as_damaged() {
    let home = Home::new("message");
    let mut writer = mcap::WriteOptions::new()
        .use_chunks(false)
        .create(std::io::Cursor::new(Vec::new()))
        .unwrap();
    let channel = writer.add_channel(0, "/bytes", "x", &BTreeMap::new()).unwrap();
    for (sequence, bytes) in [100, 9000, 100, 8000].into_iter().enumerate() {
        let sequence = sequence as u32;
        let head = mcap::records::MessageHeader {
            channel_id: channel,
            sequence,
            log_time: u64::from(sequence),
            publish_time: 0,
        };
        writer.write_to_known_channel(&head, &vec![7; bytes]).unwrap();
    }
    writer.finish().unwrap();
    let path = home.file("plain.mcap");
    std::fs::write(&path, writer.into_inner().into_inner()).unwrap();
    let all = |chunk_bytes_max| {
        let limits = Limits { chunk_bytes_max };
        let recording = Recording::open_within(&path, limits, true).unwrap();
        let sizes = recording.messages().unwrap().map(|m| m.unwrap().data.len());
        (sizes.collect::<Vec<_>>(), recording.damage)
    };
    let (sizes, damage) = all(8022);
    assert_eq!((sizes, damage.places), (vec![100, 100, 8000], 1), "{damage}");
    let why = "a record of 9022 bytes; at most 8022 are read (--chunk-bytes-max)";
    assert!(damage.to_string().contains(why), "{damage}");
    let (sizes, damage) = all(9022);
    assert_eq!((sizes, damage.is_some()), (vec![100, 9000, 100, 8000], false), "{damage}");
}

/// A length was believed up to that of the file, however large.
#[test]
fn records_that_an_index_names_are_bounded_as_all_others() {
    let home = Home::new("bounded");
    let whole = sample(&home, Compression::Lz4);
    let bytes = std::fs::read(&whole).unwrap();
    assert!(!Recording::open(&whole).unwrap().damage.is_some());
    let header = u64::from_le_bytes(bytes[9..17].try_into().unwrap());
    let open = |chunk_bytes_max| {
        let limits = Limits { chunk_bytes_max };
        Recording::open_within(&whole, limits, false)
    };
    assert!(!open(10_000).unwrap().damage.is_some());
    let why = open(header - 1).unwrap_err().to_string();
    assert!(why.contains("its header is missing"), "{why}");
}

/// It said 289 recorded, none lost.
#[test]
fn what_a_late_topic_lost_before_it_was_joined_is_counted() {
    let home = Home::new("late");
    let (node, other) = (home.node("record"), home.node("publish"));
    let path = home.file("late.mcap");
    let early = other.topic::<[u8]>("/early").unwrap().depth(8).publisher().unwrap();
    for _ in 0..50 {
        early.publish(&[1]).unwrap();
    }
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let late = other.topic::<[u8]>("/late").unwrap().depth(16).publisher().unwrap();
    for _ in 0..300 {
        late.publish(&[1]).unwrap();
    }
    early.publish(&[2]).unwrap();
    while recorder.progress().messages + recorder.progress().lost < 301 {
        recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
    }
    let done = recorder.finish().unwrap();
    // Of what was there before us nothing is lost.
    assert_eq!((done.messages, done.lost), (17, 284));
    let recording = Recording::open(&path).unwrap();
    let by = format!("/late {}", late.id());
    assert_eq!(recording.losses, BTreeMap::from([(by, 284)]));
}

/// Five of them left "0 messages of 0 topics".
#[test]
fn a_topic_that_was_only_seen_is_named() {
    let home = Home::new("seen");
    let (node, other) = (home.node("record"), home.node("publish"));
    let path = home.file("seen.mcap");
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    // The first makes the directory of topics.
    let stays = other.topic::<u8>("/stays").unwrap().publisher().unwrap();
    recorder.step(Deadline::after(Duration::from_millis(1))).unwrap();
    for n in 0..5 {
        let topic = other.topic::<u8>(&format!("/short/{n}")).unwrap();
        topic.publisher().unwrap().publish(&1).unwrap();
    }
    stays.publish(&1).unwrap();
    let mut notes = String::new();
    while !notes.contains("/short/4") {
        recorder.step(Deadline::after(Duration::from_millis(1))).unwrap();
        notes += &recorder.take_notes().join("\n");
    }
    assert!(notes.contains("/short/0 was gone before it could be joined"), "{notes}");
    let done = recorder.finish().unwrap();
    assert_eq!((done.missed, done.messages), (5, 1), "{notes}");
}

#[test]
fn losses_of_split_files_add_up_once_and_old_files_go() {
    let home = Home::new("split");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(4).publisher().unwrap();
    for (keep_files, keep_bytes) in [(None, None), (Some(2), None), (None, Some(20_000))] {
        let options = RecordOptions {
            split_bytes: Some(4000),
            compression: Compression::None,
            flush_every: Duration::ZERO,
            keep_files,
            keep_bytes,
            ..RecordOptions::default()
        };
        let name = format!("run{}.mcap", keep_files.or(keep_bytes).unwrap_or(0));
        let path = home.file(&name);
        let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
        for _ in 0..30 {
            for _ in 0..20 {
                publisher.publish(&[1; 500]).unwrap();
            }
            let before = recorder.progress().messages;
            while recorder.progress().messages == before {
                recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
            }
        }
        let done = recorder.finish().unwrap();
        assert!(done.files > 5 && done.lost > 100, "{done:?}");
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        let parts = (0..done.files).map(|n| path.with_file_name(format!("{stem}_{n:03}.mcap")));
        let there: Vec<_> = parts.filter(|path| path.exists()).collect();
        let bytes = |path: &PathBuf| std::fs::metadata(path).unwrap().len();
        match (keep_files, keep_bytes) {
            (None, None) => {
                let part = |p: &PathBuf| Recording::open_part(p, Limits::default(), false).unwrap();
                let lost = there.iter().map(|p| part(p).lost()).sum::<u64>();
                assert_eq!((there.len() as u64, lost), (done.files, done.lost));
                assert_eq!(Recording::open(&there[0]).unwrap().lost(), done.lost);
                let largest = there.iter().map(bytes).max();
                assert!(largest.unwrap() < 12_000, "chunks are no larger than files: {largest:?}");
            }
            (Some(keep), _) => assert_eq!(there.len() as u64, keep, "{there:?}"),
            (_, Some(keep)) => {
                // The newest; besides the one that was written last.
                let kept: u64 = there[..there.len() - 1].iter().map(bytes).sum();
                assert!(there.len() > 2 && kept <= keep, "{kept} {there:?}");
                let next = bytes(&there[0]);
                assert!(kept + 2 * next > keep, "more of them would do: {kept} {next}");
                assert!(there.last().unwrap().exists() && !home.file("run20000_000.mcap").exists());
            }
        }
    }
}

#[test]
fn a_file_that_was_removed_is_begun_anew() {
    let home = Home::new("removed");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(64).publisher().unwrap();
    let path = home.file("run.mcap");
    let options = RecordOptions { flush_every: Duration::ZERO, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    for n in [5, 3] {
        for _ in 0..n {
            publisher.publish(&[1; 500]).unwrap();
        }
        while recorder.progress().messages < n {
            recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
        }
        if n == 5 {
            std::fs::remove_file(&path).unwrap();
            recorder.step(Deadline::after(Duration::ZERO)).unwrap();
        }
    }
    let notes = recorder.take_notes().join("\n");
    assert!(notes.contains("was removed with 5 messages"), "{notes}");
    let done = recorder.finish().unwrap();
    assert_eq!((done.messages, done.lost), (3, 5));
    assert_eq!(Recording::open(&path).unwrap().messages, 3);
}

/// The summary counted them, and the file said that nothing was lost.
#[test]
fn a_file_begun_anew_says_what_was_lost_with_the_old_one_and_in_it() {
    let home = Home::new("removed-lost");
    let node = home.node("both");
    let publisher = node.topic::<[u8]>("/bytes").unwrap().depth(4).publisher().unwrap();
    let publish = |n: u64| {
        for _ in 0..n {
            publisher.publish(&[1; 500]).unwrap();
        }
    };
    let path = home.file("run.mcap");
    let options = RecordOptions { flush_every: Duration::ZERO, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let step = |recorder: &mut Recorder, messages: u64| {
        while recorder.progress().messages < messages {
            recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
        }
    };
    // Of 10, 4 are read; they go with their file, as do 2 of the next.
    for n in [10, 2] {
        publish(n);
        step(&mut recorder, n.min(4));
        std::fs::remove_file(&path).unwrap();
        recorder.step(Deadline::AT_ONCE).unwrap();
    }
    publish(3);
    step(&mut recorder, 3);
    let done = recorder.finish().unwrap();
    assert_eq!((done.messages, done.lost), (3, 12));
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.messages, recording.lost()), (3, 12));
    let by: Vec<_> = recording.losses.keys().cloned().collect();
    assert_eq!(by, [format!("/bytes {}", publisher.id())]);
}
