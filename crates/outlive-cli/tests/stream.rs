//! Bytes through `topic pub` and `topic echo`, and what is told on the way.

mod common;

use std::io::{BufRead, BufReader};
use std::time::Duration;

use common::*;

const INT: i32 = libc::SIGINT;
const KILL: i32 = libc::SIGKILL;

#[test]
fn what_goes_into_pub_comes_out_of_echo() {
    let home = Home::new("round-trip");
    let data = noise(300 * 100_000);
    let echo = home.start("topic echo /blob --raw --until-left --timeout 60", b"");
    let publish = "topic pub blob --from-stdin --frame-bytes 100000 --depth 512 \
                   --wait-for-subscribers 1 --timeout 60";
    let sent = home.feed(publish, &data).expect(DONE);
    assert!(sent.err.contains("published 300 messages of 100.0 kB"), "{}", sent.err);
    let got = echo.end().expect(DONE);
    assert!(got.out == data, "{} of {} bytes came, or others", got.out.len(), data.len());
    assert!(got.err.contains("publisher") && got.err.contains("left"), "{}", got.err);
    assert_eq!(home.topics(), serde_json::json!([]));
}

#[test]
fn echo_reads_what_a_killed_publisher_had_sent() {
    let home = Home::new("history");
    let data = noise(20 * 5000);
    let publish = "topic pub /h --from-stdin --frame-bytes 5000 --depth 32 --linger inf";
    let publisher = home.start(publish, &data);
    home.await_messages(20);
    publisher.signal(KILL);
    publisher.end();
    let got = home.run("topic echo /h --raw --history 1000 --until-left").expect(DONE);
    assert!(got.out == data);
    assert!(got.err.contains("died"), "{}", got.err);
    // The last member took the topic along.
    home.run("topic echo /h --history 3 --timeout 0").expect(NOT_FOUND);
}

#[test]
fn a_late_joiner_sees_the_last_messages_it_asked_for() {
    let home = Home::new("late");
    let publish = "topic pub /n --from-stdin --frame-bytes 1 --depth 8 --linger inf";
    let _publisher = home.start(publish, b"abcdefghij");
    home.await_messages(10);
    let read = |args: &str| home.run(&format!("topic echo /n --raw --timeout 0 {args}"));
    assert_eq!(read("--history 3").expect(DONE).text(), "hij");
    assert_eq!(read("--history 100").expect(DONE).text(), "cdefghij");
    assert_eq!(read("--history 100 --count 2").expect(DONE).text(), "cd");
    assert_eq!(read("").expect(NOT_FOUND).text(), "", "nothing is new");
    assert_eq!(read("--history 2 --count 3").expect(NOT_FOUND).text(), "ij");
}

#[test]
fn losses_are_counted_and_have_a_code_of_their_own() {
    let home = Home::new("loss");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/fast").unwrap().depth(4).publisher().unwrap();
    let echo = home.start("topic echo /fast --json --count 4 --timeout 60", b"");
    home.await_subscriber();
    echo.stop();
    for i in 0..10 {
        publisher.publish(&[i]).unwrap();
    }
    echo.signal(libc::SIGCONT);
    let got = echo.end().expect(LOSS);
    assert!(got.err.contains("lost 6 messages of publisher"), "{}", got.err);
    assert!(got.err.contains("4 messages printed, 6 lost"), "{}", got.err);
    let line = got.text().lines().next().unwrap();
    let first: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&first["seq"], &first["lost_before"]), (&6.into(), &6.into()));
    assert_eq!(first["hex"], "06");
}

#[test]
fn a_reliable_echo_loses_nothing_behind_a_short_ring() {
    let home = Home::new("reliable");
    let data = noise(400 * 50_000);
    let echo = home.start("topic echo /r --raw --reliable --until-left --timeout 60", b"");
    let publish = "topic pub /r --from-stdin --frame-bytes 50000 --depth 2 \
                   --wait-for-subscribers 1 --reliable-timeout 60";
    let sent = std::thread::scope(|scope| {
        let sent = scope.spawn(|| home.feed(publish, &data));
        // Stands still with most of the data to come.
        home.await_subscriber();
        echo.stop();
        std::thread::sleep(Duration::from_millis(50));
        echo.signal(libc::SIGCONT);
        let got = echo.end().expect(DONE);
        assert!(got.out == data, "{} of {} bytes came, or others", got.out.len(), data.len());
        sent.join().unwrap()
    });
    let sent = sent.expect(DONE);
    assert!(sent.err.contains("waited for reliable subscribers"), "{}", sent.err);
}

#[test]
fn a_stopped_reliable_echo_costs_the_publisher_its_deadline_and_then_goes_on() {
    let home = Home::new("stopped");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let deadline = Duration::from_millis(150);
    let topic = node.topic::<[u8]>("/s").unwrap().depth(4).reliable_timeout(deadline);
    let publisher = topic.publisher().unwrap();
    let mut careless = node.topic::<[u8]>("/s").unwrap().subscriber().unwrap();
    let echo = home.start("topic echo /s --raw --reliable --until-left --timeout 60", b"");
    home.await_subscribers(2);
    echo.stop();
    for i in 0..4 {
        publisher.publish(&[i]).unwrap();
    }
    // A stopped process is not dead: each message waits its time and is then not sent.
    for round in 1..=2 {
        let start = std::time::Instant::now();
        let error = publisher.publish(&[4]).unwrap_err();
        assert_eq!(error.kind(), outlive::ErrorKind::Timeout, "{error}");
        assert!(error.to_string().contains("reliable subscriber of node"), "{error}");
        assert!(start.elapsed() >= deadline, "it gave up early");
        let waited = publisher.waited();
        assert_eq!(waited.messages, round);
        assert!(waited.total >= deadline * round as u32);
    }
    assert_eq!(publisher.published(), 4);
    assert_eq!(careless.drain().count(), 4, "others are served");
    echo.signal(libc::SIGCONT);
    for i in 4..100 {
        while let Err(error) = publisher.publish(&[i]) {
            assert_eq!(error.kind(), outlive::ErrorKind::Timeout, "{error}");
        }
    }
    drop(publisher);
    let got = echo.end().expect(DONE);
    assert_eq!(got.out, (0..100).collect::<Vec<u8>>());
}

#[test]
fn numbers_are_shown_as_numbers_whoever_sends_them() {
    let home = Home::new("numbers");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[f64]>("/scan").unwrap().publisher().unwrap();
    publisher.publish(&[1.5, -2.0]).unwrap();
    publisher.publish(&[0.25; 9]).unwrap();
    let text = home.run("topic echo /scan --history 2 --timeout 0").expect(DONE);
    let lines: Vec<_> = text.text().lines().collect();
    assert!(lines[0].ends_with("  16 B  1.5 -2"), "{lines:?}");
    assert!(lines[0].starts_with(&format!("{} #0  ", publisher.id())), "{lines:?}");
    assert!(lines[1].ends_with(".. 1 more"), "{lines:?}");
    let json = home.run("topic echo /scan --history 1 --timeout 0 --json --full").expect(DONE);
    let message: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    assert_eq!(message["values"].as_array().unwrap().len(), 9);
    assert_eq!((&message["seq"], &message["whole"]), (&1.into(), &true.into()));
}

/// It ended with the first publisher that came while it was out of descriptors.
#[test]
fn out_of_descriptors_for_a_moment_echo_goes_on_and_then_reads_all() {
    let home = Home::new("echo-descriptors");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = || node.topic::<u32>("/n").unwrap().publisher().unwrap();
    let first = publisher();
    let mut echo = home.outlive("topic echo /n --count 3").spawn().unwrap();
    let mut lines = BufReader::new(echo.stdout.take().unwrap()).lines();
    home.await_subscriber();
    first.publish(&1).unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with(" 1"));
    limit(echo.id(), libc::RLIMIT_NOFILE, 3);
    let second = publisher();
    let mut told = BufReader::new(echo.stderr.take().unwrap()).lines();
    assert!(told.any(|line| line.unwrap().contains("/n cannot all be read for now")));
    first.publish(&2).unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with(" 2"));
    limit(echo.id(), libc::RLIMIT_NOFILE, 100);
    second.publish(&3).unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with(" 3"));
    assert_eq!(echo.wait().unwrap().code(), Some(DONE));
}

#[test]
fn a_closed_pipe_ends_echo_quietly() {
    let home = Home::new("pipe");
    let publish = "topic pub /p --from-stdin --frame-bytes 100 --linger inf";
    let _publisher = home.start(publish, &noise(1000));
    home.await_messages(10);
    // One that has something to write, and one that waits.
    for args in ["topic echo /p --history 10", "topic echo /p --raw"] {
        let mut echo = home.start(args, b"");
        echo.close_output();
        let ended = echo.end().expect(DONE);
        assert!(!ended.err.contains("anic") && !ended.err.contains("rror"), "{}", ended.err);
    }
    let mut list = home.start("topic list", b"");
    list.close_output();
    list.end().expect(DONE);
}

#[test]
fn a_signal_is_a_clean_leave() {
    let home = Home::new("signal");
    for signal in [INT, libc::SIGTERM] {
        let publish = "topic pub /s --from-stdin --frame-bytes 4 --linger inf";
        let publisher = home.start(publish, b"abcdefgh");
        home.await_messages(2);
        let echo = home.start("topic echo /s --raw", b"");
        home.await_subscriber();
        publisher.signal(signal);
        publisher.end().expect(DONE);
        // As timeout(1) sends one request.
        echo.signal(signal);
        std::thread::sleep(Duration::from_micros(100));
        echo.signal(signal);
        let told = echo.end().expect(DONE);
        assert!(told.err.contains("left") && !told.err.contains("died"), "{}", told.err);
        let left = home.listing();
        assert_eq!(
            left,
            ["default", "default/id", "default/lock", "default/nodes", "default/topics"]
        );
    }
    // One that waits for its topic, and one that waits for its input.
    let echo = home.start("topic echo /none", b"");
    let publisher = home.start_open("topic pub /s --from-stdin --frame-bytes 4");
    let lines = home.start_open("topic pub /t - --type u64");
    home.await_nodes(3);
    for mut running in [echo, publisher, lines] {
        running.signal(INT);
        // Its input stays open.
        while !running.is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.end().expect(DONE);
    }
    home.run("clean").expect(DONE);
    assert!(!home.root().exists());
}

#[test]
fn a_reader_that_does_not_read_keeps_nobody_from_leaving() {
    let home = Home::new("unread");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/big").unwrap().publisher().unwrap();
    publisher.publish(&noise(3_000_000)).unwrap();
    let echo = home.start("topic echo /big --raw --history 1", b"");
    home.await_subscriber();
    // Whether it is in its write already does not matter.
    std::thread::sleep(std::time::Duration::from_millis(100));
    echo.signal(INT);
    assert_eq!(echo.end_unread(), Some(DONE));
}

#[test]
fn a_rate_is_kept_and_a_count_ends_it() {
    let home = Home::new("rate");
    let echo = home.start("topic echo /r --json --until-left --timeout 60", b"");
    let publish = "topic pub /r --from-stdin --frame-bytes 10 --rate 100 --count 11 \
                   --wait-for-subscribers 1";
    home.feed(publish, &noise(1000)).expect(DONE);
    let got = echo.end().expect(DONE);
    let times: Vec<u64> = got
        .text()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|message| message["timestamp_ns"].as_u64().unwrap())
        .collect();
    assert_eq!(times.len(), 11);
    assert!(times[10] - times[0] >= 95_000_000, "{times:?}");
}
