//! Recording from a domain, with what may go wrong meanwhile.

use std::time::{Duration, SystemTime};

use super::*;
use crate::{Limits, Recording};

/// A time server sets the time of day an hour ahead, then back, in mid-recording.
#[test]
fn a_step_of_the_time_of_day_is_told_and_what_follows_has_the_new_time() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let dir = testkit::TempDomain::new("record-clock").unwrap();
    let node = Node::builder().root(dir.path().join("root")).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().depth(16).publisher().unwrap();
    let path = dir.path().join("clock.mcap");
    let options = RecordOptions { flush_every: Duration::ZERO, ..RecordOptions::default() };
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let one = |recorder: &mut Recorder, n: u64| {
        publisher.publish(&0).unwrap();
        while recorder.progress().messages < n {
            recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
        }
    };
    one(&mut recorder, 1);
    assert!(!recorder.take_notes().join("").contains("time of day"), "it stands");
    // As it was found an hour ago by a clock that was behind, and one that was ahead.
    for (n, epoch, says) in [
        (2, recorder.epoch_ns - HOUR_NS, "forward by 3600.0"),
        (3, recorder.epoch_ns + HOUR_NS, "back by 3600.0"),
    ] {
        recorder.epoch_ns = epoch;
        recorder.step(Deadline::after(Duration::ZERO)).unwrap();
        let notes = recorder.take_notes().join("\n");
        assert!(notes.contains(&format!("the time of day went {says}")), "{notes}");
        one(&mut recorder, n);
    }
    recorder.finish().unwrap();
    let messages = Recording::open(&path).unwrap().messages().unwrap();
    let times: Vec<u64> = messages.map(|m| m.unwrap().publish_time).collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    for time in &times {
        assert!(now.as_nanos().abs_diff(u128::from(*time)) < u128::from(HOUR_NS / 2), "{times:?}");
    }
    assert_eq!(times.len(), 3);
}

/// What was joined before kept the old time to its end, and one file had both.
#[test]
fn stamps_inside_messages_of_ros_follow_the_time_of_day() {
    use outlive::msg::{Header, Imu};
    use outlive::zerocopy::{FromBytes, FromZeros};
    const HOUR_NS: u64 = 3_600_000_000_000;
    let dir = testkit::TempDomain::new("record-stamps").unwrap();
    let node = Node::builder().root(dir.path().join("root")).open().unwrap();
    let publisher = node.topic::<Imu>("/imu").unwrap().publisher().unwrap();
    let path = dir.path().join("stamps.mcap");
    let (profile, flush_every) = (Profile::Ros2, Duration::ZERO);
    let options = RecordOptions { profile, flush_every, ..RecordOptions::default() };
    let none = Selection::new(&["/none"], false).unwrap();
    let mut recorder = Recorder::start(&node, none, &path, options).unwrap();
    // It joins while the clock is behind, which is set right after that.
    recorder.selection = Selection::all();
    recorder.epoch_ns -= HOUR_NS;
    recorder.look_at_ns = 0;
    recorder.step(Deadline::AT_ONCE).unwrap();
    let notes = recorder.take_notes().join("\n");
    assert!(notes.contains("recording /imu\nthe time of day went forward by 3600.0"), "{notes}");
    publisher.publish(&Imu { header: Header::now("base"), ..Imu::new_zeroed() }).unwrap();
    while recorder.progress().messages < 1 {
        recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
    }
    recorder.finish().unwrap();
    let recording = Recording::open(&path).unwrap();
    let message = recording.messages().unwrap().next().unwrap().unwrap();
    let payload = recording.sources[0].source.payload(&message.data).unwrap();
    let stamp_ns = Imu::read_from_bytes(&payload).unwrap().header.stamp_ns;
    let apart = stamp_ns.abs_diff(message.publish_time);
    assert!(apart < HOUR_NS / 2, "{apart} ns apart");
}

/// A topic that could not be joined was left out for good.
#[test]
fn a_topic_whose_join_failed_is_tried_again() {
    let dir = testkit::TempDomain::new("record-retry").unwrap();
    let root = dir.path().join("root");
    let node = Node::builder().root(&root).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let path = dir.path().join("retry.mcap");
    let mut recorder = Recorder::start(
        &node,
        Selection::new(&["/m"], false).unwrap(),
        &path,
        RecordOptions::default(),
    )
    .unwrap();
    recorder.selection = Selection::all();
    // As after a failure; it is due again at once.
    let until = outlive::now_ns();
    recorder.refused.insert("/n".into(), ("out of descriptors".into(), until));
    publisher.publish(&1).unwrap();
    while recorder.progress().messages < 1 {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
    }
    assert!(recorder.refused.is_empty());
    let done = recorder.finish().unwrap();
    assert_eq!((done.topics, done.missed), (1, 0));
}

/// Of publishers that were there before, what went between the start and the join counted as
/// nothing.
#[test]
fn what_was_overwritten_before_a_late_join_is_lost() {
    let dir = testkit::TempDomain::new("record-late").unwrap();
    let node = Node::builder().root(dir.path().join("root")).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().depth(4).publisher().unwrap();
    let publish = |many: u32| {
        for n in 0..many {
            publisher.publish(&n).unwrap();
        }
    };
    publish(10);
    let path = dir.path().join("late.mcap");
    let options = RecordOptions::default();
    // As after a join that failed at the start and is tried again.
    let none = Selection::new(&["/m"], false).unwrap();
    let mut recorder = Recorder::start(&node, none, &path, options).unwrap();
    publish(10);
    recorder.selection = Selection::all();
    recorder.look_at_ns = 0;
    while recorder.progress().messages < 4 {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
    }
    let done = recorder.finish().unwrap();
    assert_eq!((done.messages, done.lost), (4, 6), "numbers 10 to 15 are gone");
    assert_eq!(Recording::open(&path).unwrap().lost(), 6);
}

/// All files of a recording named the offset of its start.
#[test]
fn a_file_names_the_offset_that_its_times_were_made_with() {
    let dir = testkit::TempDomain::new("record-offset").unwrap();
    let node = Node::builder().root(dir.path().join("root")).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let offset = |file: &str| {
        let of = Recording::open_part(&dir.path().join(file), Limits::default(), false);
        of.unwrap().about["monotonic_to_epoch_ns"].parse::<u64>().unwrap()
    };
    let one = |recorder: &mut Recorder| {
        publisher.publish(&0).unwrap();
        let next = recorder.progress().messages + 1;
        while recorder.progress().messages < next {
            recorder.step(Deadline::after(Duration::from_millis(100))).unwrap();
        }
    };
    // A server of the time of day sets it an hour ahead once it is recorded.
    const HOUR_NS: u64 = 3_600_000_000_000;
    let flush_every = Duration::from_secs(3600);
    for (name, last) in [("run", None), ("box", Some(flush_every))] {
        let split_after = Some(Duration::ZERO).filter(|_| last.is_none());
        let options = RecordOptions { flush_every, split_after, last, ..RecordOptions::default() };
        let path = dir.path().join(format!("{name}.mcap"));
        let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
        let first = recorder.epoch_ns;
        one(&mut recorder);
        if last.is_some() {
            assert!(recorder.save("before").unwrap());
            while recorder.take_saved().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        recorder.set_clock(first + HOUR_NS);
        one(&mut recorder);
        if last.is_some() {
            assert!(recorder.save("after").unwrap());
        }
        recorder.finish().unwrap();
        let offsets = [0, 1].map(|n| offset(&format!("{name}_{n:03}.mcap")));
        assert_eq!(offsets, [first, first + HOUR_NS], "{name}");
    }
    // The row is still one.
    assert_eq!(Recording::open(&dir.path().join("run.mcap")).unwrap().files.len(), 2);
}

/// The end was as good as that of a recording that has it.
#[test]
fn a_topic_that_could_never_be_joined_is_missed() {
    let dir = testkit::TempDomain::new("record-never").unwrap();
    let node = Node::builder().root(dir.path().join("root")).open().unwrap();
    let path = dir.path().join("never.mcap");
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    let _publisher = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    // As after each try.
    recorder.refused.insert("/n".into(), ("out of descriptors".into(), u64::MAX));
    recorder.seen.push(("/n".into(), 0));
    recorder.step(Deadline::AT_ONCE).unwrap();
    assert_eq!(recorder.finish().unwrap().missed, 1);
}

/// There was a line about it, and the end was a good one.
#[test]
fn a_publisher_that_is_corrupt_is_counted() {
    let dir = testkit::TempDomain::new("record-corrupt").unwrap();
    let root = dir.path().join("root");
    let node = Node::builder().root(&root).open().unwrap();
    let publisher = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let path = dir.path().join("corrupt.mcap");
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    publisher.publish(&1).unwrap();
    while recorder.progress().messages < 1 {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
    }
    let second = node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let ring = root.join(format!("default/topics/n/pub.{}", second.id()));
    std::fs::remove_file(&ring).unwrap();
    std::fs::write(&ring, [7; 4096]).unwrap();
    while recorder.progress().corrupt < 1 {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
    }
    let done = recorder.finish().unwrap();
    assert_eq!((done.messages, done.corrupt), (1, 1));
}
