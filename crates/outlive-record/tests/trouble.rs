//! A recorder whose topics cannot all be read for a while.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use outlive::{Deadline, Node, Publisher};
use outlive_record::{RecordOptions, Recorder, Recording, Selection};
use testkit::spawn::{spawn_program, spawn_test};
use testkit::{TempDomain, Watchdog, role};

/// Records until the file has so many messages.
fn until(recorder: &mut Recorder, messages: u64) {
    while recorder.progress().messages < messages {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
    }
}

fn send(publishers: &[&Publisher<u32>]) {
    publishers.iter().for_each(|publisher| assert!(publisher.publish(&1).is_ok()));
}

fn counts(path: &Path) -> Vec<(String, u64)> {
    let sources = Recording::open(path).unwrap().sources;
    let mut counts: Vec<_> = sources.into_iter().map(|s| (s.source.topic, s.messages)).collect();
    counts.sort();
    counts
}

/// It ended, and with it the recording of all others.
#[test]
fn out_of_descriptors_for_a_moment_it_goes_on_with_what_it_has_and_then_with_all() {
    const TEST: &str =
        "out_of_descriptors_for_a_moment_it_goes_on_with_what_it_has_and_then_with_all";
    if role().is_some() {
        without_descriptors();
        println!("went on");
        return;
    }
    let this = spawn_test(TEST, "few descriptors", &[]);
    let mut command = spawn_program("sh");
    command.args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""]);
    command.arg(this.get_program()).args(this.get_args());
    command.envs(this.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("went on"), "{}: {told}", ran.status);
}

fn without_descriptors() {
    let temp = TempDomain::new("trouble-descriptors").unwrap();
    let _watchdog = Watchdog::start("descriptors", Duration::from_secs(60));
    let open = || Node::builder().root(temp.path().join("root")).open().unwrap();
    let (node, other) = (open(), open());
    let publisher = |name: &str| other.topic::<u32>(name).unwrap().publisher().unwrap();
    let (imu, odometry) = (publisher("/imu"), publisher("/odometry"));
    let path = temp.path().join("run.mcap");
    let options = RecordOptions::default();
    let mut recorder = Recorder::start(&node, Selection::all(), &path, options).unwrap();
    send(&[&imu, &odometry]);
    until(&mut recorder, 2);

    let (second, new) = (publisher("/imu"), publisher("/new"));
    send(&[&second, &new]);
    let hoard: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let mut notes = String::new();
    while !(notes.contains("/imu cannot all be read") && notes.contains("are joined later")) {
        recorder.step(Deadline::after(Duration::from_millis(10))).unwrap();
        notes += &recorder.take_notes().join("\n");
    }
    assert!(notes.contains("Too many open files"), "{notes}");
    send(&[&imu, &odometry]);
    until(&mut recorder, 4);
    drop(hoard);
    until(&mut recorder, 6);
    assert_eq!(recorder.finish().unwrap().unread, 0, "all are read again");
    let all = [("/imu", 1), ("/imu", 2), ("/new", 1), ("/odometry", 2)];
    assert_eq!(counts(&path), all.map(|(topic, count)| (topic.to_owned(), count)));
}
