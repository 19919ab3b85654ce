//! Which files are one recording, and which of them are missing or damaged.

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::record_each;
use outlive::{Deadline, Node};
use outlive_record::{
    Compression, Limits, PlayOptions, Player, RecordOptions, Recorder, Recording, Selection,
    recover,
};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use testkit::{TempDomain, Watchdog};

struct Home {
    temp: TempDomain,
    _watchdog: Watchdog,
}

impl Home {
    fn new(label: &str) -> Self {
        let temp = TempDomain::new(&format!("parts-{label}")).unwrap();
        Self { temp, _watchdog: Watchdog::start(label, Duration::from_secs(300)) }
    }

    fn node(&self) -> Node {
        Node::builder().root(self.temp.path().join("root")).name("both").open().unwrap()
    }

    /// Of the recordings, which have a directory of their own.
    fn file(&self, name: &str) -> PathBuf {
        let dir = self.temp.path().join("files");
        std::fs::create_dir_all(&dir).unwrap();
        dir.join(name)
    }

    fn dir(&self) -> PathBuf {
        self.file("run.mcap").parent().unwrap().to_owned()
    }

    fn part(&self, number: u64) -> PathBuf {
        self.file(&format!("run_{number:03}.mcap"))
    }

    /// Records so many messages, each in a file of its own.
    fn run(&self, first: u8, count: u8, overwrite: bool) {
        let options = RecordOptions { overwrite, ..RecordOptions::default() };
        record_each(&self.node(), &self.file("run.mcap"), first, count, options);
    }
}

/// First bytes of the messages, and what is missing.
fn read(path: &Path) -> (Vec<u8>, String) {
    let recording = Recording::open(path).unwrap();
    let mut messages = recording.messages().unwrap();
    let numbers = messages.by_ref().map(|m| m.unwrap().data[0]).collect();
    let damage = messages.damage();
    assert_eq!(damage, recording.damage, "messages say the same as the recording");
    (numbers, if damage.is_some() { damage.to_string() } else { String::new() })
}

fn damaged(bytes: &[u8], how: &str) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    match how {
        "empty" => copy.clear(),
        "cut off" => copy.truncate(5),
        "zeros" => copy.fill(0),
        // Its length.
        "header" => copy[9..17].fill(0xff),
        // The length of a text in it.
        "profile" => copy[17..21].fill(0xff),
        "about" => {
            let name = [&7u32.to_le_bytes()[..], b"outlive"].concat();
            let at = bytes.windows(name.len()).position(|w| w == name).unwrap();
            copy[at + 4] ^= 1;
        }
        _ => unreachable!(),
    }
    copy
}

/// It was taken for a file of somebody else, and nobody said a word.
#[test]
fn a_damaged_file_in_the_middle_or_at_the_end_of_a_row_is_reported() {
    let home = Home::new("middle");
    home.run(0, 3, false);
    for (nth, left) in [(1, [0, 2]), (2, [0, 1])] {
        let path = home.part(nth);
        let whole = std::fs::read(&path).unwrap();
        for how in ["empty", "cut off", "zeros", "header", "about"] {
            std::fs::write(&path, damaged(&whole, how)).unwrap();
            let dir = path.parent().unwrap();
            for open in [&home.file("run.mcap"), &home.part(0), dir] {
                let (numbers, damage) = read(open);
                let what = format!("{how} {nth}, {}: {damage}", open.display());
                assert_eq!(numbers, left, "{what}");
                let name = format!("run_{nth:03}.mcap cannot be read");
                assert!(damage.starts_with("1 damaged") && damage.contains(&name), "{what}");
            }
        }
        std::fs::write(&path, &whole).unwrap();
    }
    assert_eq!(read(&home.part(0)), (vec![0, 1, 2], String::new()));
}

#[test]
fn a_file_of_somebody_else_with_a_name_of_the_row_is_no_damage() {
    let home = Home::new("others");
    home.run(0, 3, false);
    let other = Home::new("others-row");
    other.run(50, 1, false);
    let of_other = std::fs::read(other.part(0)).unwrap();
    let mut writer = mcap::Writer::new(std::io::Cursor::new(Vec::new())).unwrap();
    writer.finish().unwrap();
    let foreign = writer.into_inner().into_inner();
    for bytes in [&b"precious text"[..], b"short", &of_other, &foreign] {
        std::fs::write(home.part(1), bytes).unwrap();
        assert_eq!(read(&home.part(0)), (vec![0, 2], String::new()));
        let damage = Recording::open(&home.part(2)).unwrap().damage;
        assert!(!damage.is_some(), "{damage}");
    }
    std::fs::remove_file(home.part(1)).unwrap();
    // Its recorder lives, and has yet to write it.
    let file = std::fs::File::create(home.part(1)).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert_eq!(read(&home.part(0)), (vec![0, 2], String::new()));
}

/// The rest of the first run was shown.
#[test]
fn the_name_alone_means_the_last_run_also_after_one_that_replaced_files() {
    let home = Home::new("last");
    let name = home.file("run.mcap");
    home.run(0, 5, false);
    home.run(50, 2, true);
    assert_eq!(read(&name), (vec![50, 51], String::new()));
    assert_eq!(read(&home.part(3)), (vec![2, 3, 4], String::new()));
    home.run(60, 2, false);
    assert_eq!(read(&name), (vec![60, 61], String::new()));
    home.run(70, 1, true);
    assert_eq!(read(&name), (vec![70], String::new()));
    assert_eq!(read(&home.part(1)), (vec![51], String::new()));
}

/// It was damage for `Recording` alone: who played or recovered it heard nothing.
#[test]
fn a_missing_part_is_damage_for_whoever_reads_the_messages() {
    let home = Home::new("missing");
    home.run(0, 3, false);
    std::fs::remove_file(home.part(1)).unwrap();
    let name = home.file("run.mcap");
    let (numbers, damage) = read(&name);
    assert_eq!(numbers, [0, 2]);
    assert!(damage.contains("run_001.mcap is missing"), "{damage}");
    let from = Recording::open(&name).unwrap();
    let to = home.file("whole.mcap");
    let done = recover(&from, &to, Compression::Lz4, false).unwrap();
    assert_eq!((done.messages, done.damage.places), (2, 1));
    let mut player = Player::open(&home.node(), from, PlayOptions::default()).unwrap();
    // In each round once.
    for _ in 0..2 {
        player.play(|_| true).unwrap();
        assert_eq!(player.damage().places, 1, "{}", player.damage());
    }
}

/// Each was read to its end, one without an index unpacked as well, and then dropped.
#[test]
fn files_of_other_runs_are_not_read_to_open_one() {
    const BYTES: u64 = 32 << 20;
    let home = Home::new("little");
    home.run(0, 2, false);
    home.run(10, 2, false);
    for number in 0..2 {
        // Its recorder was killed; it takes no room on the disk.
        let file = std::fs::OpenOptions::new().write(true).open(home.part(number)).unwrap();
        file.set_len(BYTES).unwrap();
    }
    // By this thread.
    let read_bytes = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").ok()?;
        text.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse::<u64>().ok()
    };
    let Some(before) = read_bytes() else {
        println!("skipped: this kernel does not count what a thread reads");
        return;
    };
    for path in [home.file("run.mcap"), home.part(3)] {
        assert_eq!(Recording::open(&path).unwrap().messages, 2);
    }
    let bytes = read_bytes().unwrap() - before;
    assert!(bytes < BYTES / 4, "{bytes} bytes of small files");
}

/// It was an empty recording that is finished, and nobody said a word.
#[test]
fn a_file_whose_directory_cannot_be_listed_is_read_all_the_same() {
    let home = Home::new("hidden");
    home.run(0, 2, false);
    let mode = |mode| std::fs::set_permissions(home.dir(), PermissionsExt::from_mode(mode));
    mode(0o311).unwrap();
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // The superuser lists anything.
            let none = CapabilitySet::empty();
            let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, none).unwrap();
            let alone = Recording::open_part(&home.part(1), Limits::default(), false).unwrap();
            let name = Recording::open(&home.file("run.mcap")).unwrap_err().to_string();
            (read(&home.part(1)), alone.damage.is_some(), name)
        });
        reader.join()
    });
    mode(0o755).unwrap();
    let ((numbers, damage), of_alone, name) = seen.unwrap();
    assert_eq!((numbers, of_alone), (vec![1], false));
    assert!(damage.contains("run_001.mcap is not known: read "), "{damage}");
    assert!(name.contains("read ") && name.contains("Permission denied"), "{name}");
}

/// It named the row of its source: each file had all messages, and was the recorder's to remove.
#[test]
fn a_recovered_file_is_of_no_row() {
    let home = Home::new("recovered");
    home.run(0, 2, false);
    let other = Home::new("recovered-other");
    let whole = |to: &Path| {
        let from = Recording::open(&home.file("run.mcap")).unwrap();
        assert_eq!(recover(&from, to, Compression::Lz4, false).unwrap().messages, 2);
    };
    for to in [&other.part(0), &other.part(1), &home.part(5)] {
        whole(to);
    }
    let of = Recording::open(&other.part(0)).unwrap();
    assert_eq!((of.messages, of.files.len()), (2, 1));
    assert!(of.about.contains_key("version") && !of.about.contains_key("row"), "{:?}", of.about);
    let why = Recording::open(&other.dir()).unwrap_err().to_string();
    assert!(why.contains("has 2 MCAP files"), "{why}");
    // As an earlier version wrote it.
    let mut old = std::fs::read(home.part(1)).unwrap();
    let library = concat!("outlive ", env!("CARGO_PKG_VERSION"));
    let end = 8 + 9 + 8 + library.len();
    assert_eq!(&old[end - library.len()..end], library.as_bytes());
    old[end - 8..end].copy_from_slice(b" recover");
    std::fs::write(home.part(6), old).unwrap();
    assert_eq!(read(&home.part(0)), (vec![0, 1], String::new()));
    assert_eq!(read(&home.part(6)), (vec![1], String::new()));
    let keep = RecordOptions { keep_files: Some(1), ..RecordOptions::default() };
    record_each(&home.node(), &home.file("run.mcap"), 10, 1, keep);
    assert!(!home.part(1).exists() && home.part(5).exists() && home.part(6).exists());
}

/// The rest was not read.
#[test]
fn a_part_that_goes_while_the_row_is_read_costs_only_itself() {
    let home = Home::new("going");
    home.run(0, 4, false);
    for gone in [[0, 1], [1, 2], [2, 3]] {
        let recording = Recording::open(&home.file("run.mcap")).unwrap();
        let kept: Vec<_> = gone.map(|n| std::fs::read(home.part(n)).unwrap()).into();
        gone.iter().for_each(|n| std::fs::remove_file(home.part(*n)).unwrap());
        let mut messages = recording.messages().unwrap();
        let numbers: Vec<_> = messages.by_ref().map(|m| m.unwrap().data[0]).collect();
        let left: Vec<_> = (0..4).filter(|n| !gone.contains(&u64::from(*n))).collect();
        assert_eq!(numbers, left);
        let damage = messages.damage().to_string();
        assert!(damage.starts_with("2 damaged") && damage.contains("is missing"), "{damage}");
        gone.iter().zip(kept).for_each(|(n, bytes)| std::fs::write(home.part(*n), bytes).unwrap());
    }
    let alone = Recording::open_part(&home.part(0), Limits::default(), false).unwrap();
    std::fs::remove_file(home.part(0)).unwrap();
    assert!(alone.messages().unwrap_err().to_string().contains("No such file"));
}

/// Publishes a message and has it in the file.
fn record(recorder: &mut Recorder, publisher: &outlive::Publisher<[u8]>, message: &[u8]) {
    let before = recorder.progress().messages;
    publisher.publish(message).unwrap();
    while recorder.progress().messages <= before {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
}

/// Those of a publisher that came after the row was opened counted as damaged.
#[test]
fn what_is_added_to_a_row_while_it_is_read_is_no_damage() {
    let home = Home::new("growing");
    let node = home.node();
    let topic = |name: &str| node.topic::<[u8]>(name).unwrap().publisher().unwrap();
    let early = topic("/early");
    let options = RecordOptions {
        compression: Compression::None,
        split_bytes: Some(2000),
        flush_every: Duration::ZERO,
        ..RecordOptions::default()
    };
    let path = home.file("run.mcap");
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    record(&mut recorder, &early, &[0; 4000]);
    record(&mut recorder, &early, &[1]);
    let recording = Recording::open(&path).unwrap();
    assert_eq!((recording.files.len(), recording.messages), (2, 2));
    let late = topic("/late");
    record(&mut recorder, &late, &[9]);
    record(&mut recorder, &early, &[2]);
    let mut messages = recording.messages().unwrap();
    let numbers: Vec<_> = messages.by_ref().map(|m| m.unwrap().data[0]).collect();
    let damage = messages.damage();
    assert!(!damage.is_some(), "{damage}");
    assert_eq!(numbers, [0, 1, 2]);
    recorder.finish().unwrap();
    assert_eq!(read(&path), (vec![0, 1, 9, 2], String::new()));
}

/// It was emptied, and what could be read of it was gone.
#[test]
fn a_part_that_was_left_out_is_not_written_over() {
    let home = Home::new("over");
    home.run(0, 3, false);
    let bytes = damaged(&std::fs::read(home.part(1)).unwrap(), "about");
    std::fs::write(home.part(1), &bytes).unwrap();
    let from = Recording::open(&home.file("run.mcap")).unwrap();
    for n in 0..3 {
        let why = recover(&from, &home.part(n), Compression::Lz4, true).unwrap_err();
        assert!(why.to_string().contains("would be written over itself"), "{why}");
    }
    assert_eq!(std::fs::read(home.part(1)).unwrap(), bytes);
}

/// All of the part was left out.
#[test]
fn a_wrong_length_in_the_header_costs_no_message() {
    let home = Home::new("profile");
    home.run(0, 3, false);
    for n in 0..3 {
        let whole = std::fs::read(home.part(n)).unwrap();
        std::fs::write(home.part(n), damaged(&whole, "profile")).unwrap();
        for open in [&home.file("run.mcap"), &home.part(1)] {
            let recording = Recording::open(open).unwrap();
            let mut messages = recording.messages().unwrap();
            let numbers: Vec<_> = messages.by_ref().map(|m| m.unwrap().data[0]).collect();
            assert_eq!(numbers, [0, 1, 2], "{}", recording.damage);
            assert_eq!((recording.damage.places, messages.damage().places), (1, 1));
        }
        std::fs::write(home.part(n), whole).unwrap();
    }
}

/// Nobody said a word.
#[test]
fn a_damaged_file_at_the_beginning_of_a_row_is_reported() {
    let home = Home::new("first");
    home.run(0, 3, false);
    for n in 0..2 {
        std::fs::write(home.part(n), b"").unwrap();
        for open in [&home.file("run.mcap"), &home.part(2), &home.dir()] {
            let (numbers, damage) = read(open);
            assert_eq!(numbers, [[1, 2].as_slice(), &[2]][n as usize]);
            let says = format!("{} damaged", n + 1);
            assert!(
                damage.starts_with(&says) && damage.contains("run_000.mcap cannot"),
                "{damage}"
            );
        }
    }
    // The next run is not to blame.
    home.run(10, 2, false);
    assert_eq!(read(&home.file("run.mcap")), (vec![10, 11], String::new()));
    // Those in between were let go.
    let other = Home::new("first-kept");
    other.run(0, 4, false);
    std::fs::write(other.part(0), b"").unwrap();
    std::fs::remove_file(other.part(1)).unwrap();
    assert_eq!(read(&other.part(2)), (vec![2, 3], String::new()));
}

/// It was said to belong to the run that had replaced those before it.
#[test]
fn a_damaged_file_of_an_earlier_run_is_no_damage_of_a_later_one() {
    let home = Home::new("earlier");
    home.run(0, 5, false);
    let file = std::fs::File::create(home.part(3)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    home.run(50, 3, true);
    assert_eq!(read(&home.file("run.mcap")), (vec![50, 51, 52], String::new()));
    // It is one of the last ones of the run itself.
    file.set_modified(SystemTime::now()).unwrap();
    let (numbers, damage) = read(&home.part(0));
    assert_eq!(numbers, [50, 51, 52]);
    assert!(damage.contains("run_003.mcap cannot be read"), "{damage}");
}
