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
    let gap = &last["gap"];
    let ns = |key: &str| gap[key].as_u64().unwrap();
    assert!(ns("seen") > 10 && ns("seen") <= counted, "{last}");
    assert!(ns("min_ns") <= ns("mean_ns") && ns("mean_ns") <= ns("max_ns"), "{last}");
    assert!(ns("std_ns") <= ns("max_ns"), "{last}");
    // All gaps that were seen lie between the first and the last stamp.
    assert!((ns("mean_ns") * ns("seen")) as f64 <= at(to).1 - at(0).0, "{last}");
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
        assert!(ran.err.contains("no topic /nobody: nobody is in domain default"), "{}", ran.err);
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

#[test]
fn several_topics_have_a_line_each_and_each_its_name() {
    let home = Home::new("several");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let first = node.topic::<u64>("/first").unwrap().publisher().unwrap();
    let second = node.topic::<f64>("/second").unwrap().publisher().unwrap();
    let echo = home.start("topic echo /first /second /third --json --count 3", b"");
    while first.subscribers().unwrap() + second.subscribers().unwrap() < 2 {
        std::thread::sleep(Duration::from_millis(2));
    }
    first.publish(&1).unwrap();
    second.publish(&2.5).unwrap();
    // One that comes later is joined, too.
    let third = node.topic::<u8>("/third").unwrap().publisher().unwrap();
    while third.subscribers().unwrap() < 1 {
        std::thread::sleep(Duration::from_millis(2));
    }
    third.publish(&3).unwrap();
    let ran = echo.end().expect(DONE);
    let mut got: Vec<(String, serde_json::Value)> = ran
        .text()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|line| (line["topic"].as_str().unwrap().to_owned(), line["values"][0].clone()))
        .collect();
    got.sort_by(|a, b| a.0.cmp(&b.0));
    let wanted = [("/first", json!(1)), ("/second", json!(2.5)), ("/third", json!(3))];
    assert_eq!(got, wanted.map(|(name, value)| (name.to_owned(), value)));
    let text = home.run("topic echo /first /second --history 1 --timeout 0").expect(DONE);
    let starts: Vec<_> = text.text().lines().map(|line| &line[..9]).collect();
    assert_eq!(starts, ["/first   ", "/second  "]);
    for command in ["hz", "bw"] {
        let ran = home.run(&format!("topic {command} /first /second --for 0.05 --window 0.05"));
        let names: Vec<_> = ran.text().lines().filter_map(|l| l.split(' ').next()).collect();
        assert_eq!(names, ["/first", "/second"], "{}", ran.err);
        home.run(&format!("topic {command} /first /nothing --for 0")).expect(NOT_FOUND);
    }
    for form in ["--raw", "--csv"] {
        let ran = home.run(&format!("topic echo /first /second {form}")).expect(USAGE);
        assert!(ran.err.contains(&format!("{form} prints one topic at a time")), "{}", ran.err);
        // The same one twice is one.
        home.run(&format!("topic echo /first /first {form} --history 1 --count 1")).expect(DONE);
    }
}

#[test]
fn a_queue_is_looked_into_and_nothing_is_taken() {
    let home = Home::new("peek");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let mut consumer = node.queue::<u64>("/numbers").unwrap().consumer().unwrap();
    let mut producer = node.queue::<u64>("/numbers").unwrap().producer().unwrap();
    let mut other = node.queue::<u64>("/numbers").unwrap().producer().unwrap();
    let values = |args: &str| -> Vec<serde_json::Value> {
        let ran = home.run(&format!("queue echo /numbers --json {args}")).expect(DONE);
        let line = |l: &str| serde_json::from_str::<serde_json::Value>(l).unwrap();
        ran.text().lines().map(line).map(|l| l["values"][0].clone()).collect()
    };
    assert_eq!(values(""), [json!(null); 0]);
    for i in 0..20 {
        producer.send(&i).unwrap();
    }
    other.send(&100).unwrap();
    let all: Vec<_> = (0..20).chain([100]).map(|n| json!(n)).collect();
    assert_eq!(values(""), all);
    assert_eq!(values("--count 2"), all[..2]);
    // Which lane goes first is the consumer's affair.
    let mut taken: Vec<_> = (0..4).map(|_| *consumer.receive().unwrap().unwrap()).collect();
    taken.sort();
    assert_eq!(taken, [0, 1, 2, 100], "they are all still there");
    assert_eq!(values(""), all[3..20]);
    let line = home.run("queue echo /numbers --count 1").expect(DONE);
    assert!(line.text().ends_with("  8 B  3\n"), "{}", line.text());
    while consumer.receive().unwrap().is_some() {}
    assert_eq!(values(""), [json!(null); 0]);

    let mut bytes = node.queue::<[u8]>("/bytes").unwrap().stamped().consumer().unwrap();
    let mut sender = node.queue::<[u8]>("/bytes").unwrap().producer().unwrap();
    let follow = home.start("queue echo /bytes --follow --full --count 3", b"");
    // Of all sizes, over more than one segment.
    for size in [1, 70_000, 300_000] {
        sender.send(&vec![7; size]).unwrap();
    }
    let ran = follow.end().expect(DONE);
    let sizes: Vec<_> = ran.text().lines().map(|l| l.matches("07").count()).collect();
    assert!(sizes[0] >= 1 && sizes[1] >= 70_000 && sizes[2] >= 300_000, "{sizes:?}");
    assert_eq!(bytes.receive().unwrap().unwrap().len(), 1);
    let ran = home.run("queue echo a//b").expect(USAGE);
    assert!(ran.err.contains("name"), "{}", ran.err);
}

/// The terminal got them as they were, and of `a.b` only the b was shown.
#[test]
fn names_of_types_and_fields_are_shown_whole_and_without_control_characters() {
    use outlive::describe::Scalar;
    use outlive::{PayloadType, TypeDescription};
    let home = Home::new("info-names");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let number = || TypeDescription::scalar(Scalar::F64);
    let of = TypeDescription::struct_of(24, 8).field("a.b", 0, number());
    let of = of.field("c\x1b[31m", 8, number()).field("d", 16, number());
    let of = PayloadType::fixed("t/\n\x1b[2JName\r", &of).unwrap();
    let topic = node.topic::<[u8]>("/named").unwrap().of_type(&of);
    let _publisher = topic.publisher().unwrap();
    for command in ["topic list", "topic info /named"] {
        let shown = home.run(command).expect(DONE).text().to_owned();
        let raw = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(raw, None, "{command}: {shown}");
        assert!(shown.contains("t/\\n\\u{1b}[2JName\\r"), "{command}: {shown}");
    }
    let shown = home.run("topic info /named").expect(DONE).text().to_owned();
    assert!(shown.contains("  a.b "), "{shown}");
}
