//! `topic info`, `hz`, `bw` and `delay`: what is seen of a topic, and at which code it ends.

mod common;

use std::time::Duration;

use common::*;
use serde_json::json;

/// Numbers that differ from run to run become `#`, and blanks one blank.
fn normal(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let words: Vec<_> = line
            .split_whitespace()
            .map(|word| if word.parse::<f64>().is_ok() { "#".to_owned() } else { word.to_owned() })
            .collect();
        out += words.join(" ").as_str();
        out.push('\n');
    }
    out
}

#[test]
fn info_shows_fields_members_and_who_holds_what() {
    let home = Home::new("info");
    let open = |name: &str| outlive::Node::builder().root(home.root()).name(name).open().unwrap();
    let (camera, viewer) = (open("camera"), open("viewer"));
    let publisher = camera.topic::<outlive::msg::Pose>("/pose").unwrap().depth(4).publisher();
    let publisher = publisher.unwrap();
    let mut subscriber = viewer.topic::<outlive::msg::Pose>("/pose").unwrap().borrows(3);
    subscriber = subscriber.reliable(true);
    let mut subscriber = subscriber.subscriber().unwrap();
    let pose = || <outlive::msg::Pose as outlive::zerocopy::FromZeros>::new_zeroed();
    publisher.publish(&pose()).unwrap();
    publisher.publish(&pose()).unwrap();
    let _first = subscriber.receive().unwrap().unwrap();

    let info = home.run("topic info pose --json").json();
    assert_eq!((&info["name"], &info["depth"]), (&json!("/pose"), &json!(4)));
    assert_eq!(info["described"], true);
    let seen = &info["subscribers"][0];
    assert_eq!((&seen["name"], &seen["alive"]), (&json!("viewer"), &json!(true)));
    assert_eq!((&seen["reliable"], &seen["borrows"]), (&json!(true), &json!(3)));
    assert_eq!(info["publishers"][0]["name"], "camera");
    assert_eq!(info["publishers"][0]["messages"], 2);
    let text = home.run("topic info /pose").expect(DONE);
    let text = normal(text.text());
    for part in ["/pose\ntype outlive/Pose, fixed,", "\nFields\n", "\nPublishers\nID NODE STATE"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("# camera alive # "), "{text}");
    assert!(!text.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn info_names_the_sample_that_is_held() {
    let home = Home::new("held");
    let node = outlive::Node::builder().root(home.root()).name("both").open().unwrap();
    let publisher = node.topic::<[u8]>("/blob").unwrap().depth(2).publisher().unwrap();
    let mut subscriber = node.topic::<[u8]>("/blob").unwrap().subscriber().unwrap();
    for _ in 0..2 {
        publisher.publish(&noise(5000)).unwrap();
    }
    let _first = subscriber.receive().unwrap().unwrap();
    let second = subscriber.receive().unwrap().unwrap();
    let holds = |home: &Home| home.run("topic info /blob --json").json()["subscribers"][0].clone();
    let seqs: Vec<_> =
        holds(&home)["holds"].as_array().unwrap().iter().map(|h| h["seq"].clone()).collect();
    assert_eq!(seqs, [json!(0), json!(1)]);
    let text = home.run("topic info /blob").expect(DONE);
    assert!(text.text().contains("holds message 1 of 1.1"), "{}", text.text());

    drop(second);
    publisher.publish(&noise(5000)).unwrap();
    publisher.publish(&noise(5000)).unwrap();
    let seen = holds(&home);
    assert_eq!(seen["holds"].as_array().unwrap().len(), 1);
    assert_eq!(seen["holds"][0]["seq"], json!(null), "overwritten in the ring, still held");
    assert_eq!(seen["waiting"], false);
}

#[test]
fn hz_agrees_with_the_publishers_own_count_and_subscribes_to_nothing() {
    let home = Home::new("hz");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let publisher = node.topic::<[u8]>("/camera").unwrap().publisher().unwrap();
    // 6 MB at 30 Hz, by this thread's clock: what it did is in its own counters.
    let loan = || publisher.loan_slice(6_000_000).unwrap().publish().unwrap();
    let before = outlive::now_ns() as f64;
    loan();
    let first = (before, outlive::now_ns() as f64);
    let hz = home.start("topic hz /camera --for 3 --window 0.5 --json", b"");
    let mut stamps = vec![];
    let begin = outlive::now_ns();
    for tick in 1..=150u64 {
        let due = begin + tick * 1_000_000_000 / 30;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(outlive::now_ns())));
        let before = outlive::now_ns();
        loan();
        stamps.push((before as f64, outlive::now_ns() as f64));
    }
    let ran = hz.end().expect(DONE);
    assert_eq!(publisher.subscribers().unwrap(), 0);
    let last: serde_json::Value = serde_json::from_str(ran.text().lines().last().unwrap()).unwrap();
    let total = last["publishers"][0]["messages_total"].as_u64().unwrap();
    let counted = last["messages"].as_u64().unwrap();
    assert!(counted > 10 && total <= publisher.published(), "{last}");
    assert_eq!(last["payload_bytes"].as_u64().unwrap(), counted * 6_000_000);
    // The publisher's own rate between the first and the last message that were counted; each was
    // stamped between two looks at the clock.
    let (from, to) = ((total - 1 - counted) as usize, (total - 1) as usize);
    assert!(from < to, "{last}");
    // Message 0 was sent before the loop.
    let at = |message: usize| if message == 0 { first } else { stamps[message - 1] };
    let rate = |from: f64, to: f64| counted as f64 * 1e9 / (to - from);
    let (slow, fast) = (rate(at(from).0, at(to).1), rate(at(from).1, at(to).0));
    let mean = last["mean"].as_f64().unwrap();
    assert!(
        mean > slow * 0.99 && mean < fast * 1.01,
        "{mean} Hz, the publisher's own {slow} to {fast} Hz"
    );
    let bw = home.run("topic bw /camera --for 0.05 --window 0.05").expect(DONE);
    assert!(bw.text().contains("0 B/s") && bw.text().contains("0 messages"), "{}", bw.text());
}

#[test]
fn delay_measures_what_arrives() {
    let home = Home::new("delay");
    let publish = "topic pub /n --type u64 --json 7 --rate 200";
    let publisher = home.start_open(publish);
    while home.topics().as_array().unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = home.run("topic delay /n --count 20 --json").expect(DONE);
    let messages = |line: &str| {
        let window: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(window["min_ns"].as_u64() <= window["max_ns"].as_u64(), "{line}");
        window["messages"].as_u64().unwrap()
    };
    assert_eq!(ran.text().lines().map(messages).sum::<u64>(), 20);
    publisher.signal(libc::SIGINT);
    publisher.end().expect(DONE);
}

#[test]
fn no_topic_is_4_and_nonsense_is_2() {
    let home = Home::new("inspect-codes");
    for command in ["info", "hz", "bw", "delay"] {
        let ran = home.run(&format!("topic {command} /nobody")).expect(NOT_FOUND);
        assert!(ran.err.contains("no topic /nobody: 'outlive topic list'"), "{}", ran.err);
        home.run(&format!("topic {command}")).expect(USAGE);
        home.run(&format!("topic {command} a//b")).expect(USAGE);
    }
    for args in ["hz /a --window 0", "bw /a --for x", "delay /a --count 0", "info /a --for 1"] {
        home.run(&format!("topic {args}")).expect(USAGE);
    }
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let _publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    let ran = home.run("topic delay /n --count 1 --for 0.1 --window 0.05").expect(NOT_FOUND);
    assert!(ran.text().contains("no messages"), "{}", ran.text());
}
