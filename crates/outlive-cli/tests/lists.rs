//! `topic list`, `node list` and `clean`.

mod common;

use common::*;
use serde_json::json;

#[test]
fn lists_of_nothing_are_empty_and_make_nothing() {
    let home = Home::new("empty");
    assert_eq!(home.run("topic list --json").json(), json!([]));
    assert_eq!(home.run("node list --json").json(), json!([]));
    assert_eq!(home.run("topic list").expect(DONE).text().lines().count(), 1, "the head");
    let cleaned = home.run("clean --json").json();
    assert_eq!((&cleaned["node_files"], &cleaned["topics"]), (&json!(0), &json!(0)));
    assert!(home.run("clean").expect(DONE).text().contains("no such domain"));
    assert!(!home.root().exists());
}

#[test]
fn a_topic_is_listed_with_its_type_counters_and_members() {
    let home = Home::new("list");
    let publish = "topic pub /cam/front --from-stdin --frame-bytes 1000 --depth 5 --linger inf";
    let publisher = home.start(publish, &noise(3000));
    home.await_messages(3);
    let _echo = home.start("topic echo cam/front", b"");
    home.await_subscriber();
    let topic = &home.topics()[0];
    assert_eq!(topic["name"], "/cam/front");
    assert_eq!((&topic["type"], &topic["encoding"]), (&json!("[u8]"), &json!("bytes")));
    assert_eq!((&topic["depth"], &topic["element_bytes"]), (&json!(8), &json!(1)));
    assert_eq!((&topic["messages"], &topic["payload_bytes"]), (&json!(3), &json!(3000)));
    assert!(topic["memory_bytes"].as_u64().unwrap() > 3000);
    assert_eq!(topic["publishers"][0]["state"], "alive");
    let line = home.run("topic list").expect(DONE);
    let cells: Vec<_> = line.text().lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(cells[..6], ["/cam/front", "[u8]", "1", "B", "bytes", "8"]);
    assert_eq!((cells[6], *cells.last().unwrap()), ("1/0/0", "1"));

    let nodes = home.run("node list --json").json();
    let names: Vec<_> = nodes.as_array().unwrap().iter().map(|n| n["name"].clone()).collect();
    assert_eq!(names, ["topic-pub", "topic-echo"]);
    assert!(nodes.as_array().unwrap().iter().all(|n| n["alive"] == true));
    // Domains do not see each other, wherever the option stands.
    for args in ["--domain other topic list --json", "topic list --domain other --json"] {
        assert_eq!(home.run(args).json(), json!([]));
    }
    publisher.signal(libc::SIGINT);
    publisher.end();
    assert_eq!(home.topics()[0]["publishers"][0]["state"], "closed");
}

#[test]
fn after_a_kill_the_dead_are_listed_and_clean_leaves_nothing() {
    let home = Home::new("clean");
    let publish = "topic pub /a --from-stdin --frame-bytes 100000 --linger inf";
    let publisher = home.start(publish, &noise(500_000));
    home.await_messages(5);
    let clean = home.run("clean --json").json();
    assert_eq!((&clean["live_nodes"], &clean["topic_files"]), (&json!(1), &json!(0)));
    publisher.signal(libc::SIGKILL);
    publisher.end();
    assert_eq!(home.topics()[0]["publishers"][0]["state"], "dead");
    assert_eq!(home.run("node list --json").json()[0]["alive"], false);
    let dead = home.run("node list").expect(DONE);
    assert!(dead.text().contains("topic-pub") && dead.text().contains("dead"), "{}", dead.text());

    let root = home.root();
    let clean = home.run(&format!("clean --json --root {}", root.display())).json();
    assert_eq!((&clean["node_files"], &clean["topics"]), (&json!(1), &json!(1)));
    assert_eq!((&clean["domain_removed"], &clean["live_nodes"]), (&json!(true), &json!(0)));
    assert!(!root.exists());
}

#[test]
fn clean_tells_of_queues_services_and_locks_too_and_how_much_it_was() {
    let home = Home::new("clean-all");
    let open = || outlive::Node::builder().root(home.root()).name("worker").open().unwrap();
    let leave_unread = || {
        let node = open();
        let _consumer = node.queue::<[u8]>("/q").unwrap().consumer().unwrap();
        let mut producer = node.queue::<[u8]>("/q").unwrap().producer().unwrap();
        producer.send(&[7; 500_000]).unwrap();
        drop(node.mutex::<u64>("/lock").unwrap());
    };
    leave_unread();
    let told = home.run("clean").expect(DONE).text().to_owned();
    for part in ["files of queues, 1 whole queues, 1 locks: ", " kB; nobody is left"] {
        assert!(told.contains(part), "{part:?}: {told}");
    }
    assert!(!told.contains("topics") && !told.contains("services"), "{told}");
    leave_unread();
    let told = home.run("clean --json").json();
    assert_eq!((&told["queues"], &told["locks"]), (&json!(1), &json!(1)), "{told}");
    assert!(told["queue_files"].as_u64() >= Some(3), "{told}");
    assert!(told["bytes"].as_u64() > Some(500_000), "{told}");
    assert!(home.run("clean").expect(DONE).text().starts_with("nothing to remove; "));
}

#[test]
fn what_a_dead_publisher_sent_stays_for_the_living() {
    let home = Home::new("keep");
    let publish = "topic pub /a --from-stdin --frame-bytes 2 --depth 8 --linger inf";
    let publisher = home.start(publish, b"abcdef");
    home.await_messages(3);
    let _echo = home.start("topic echo /a", b"");
    home.await_subscriber();
    publisher.signal(libc::SIGKILL);
    publisher.end();
    home.run("clean").expect(DONE);
    let got = home.run("topic echo /a --raw --history 8 --timeout 0").expect(DONE);
    assert_eq!(got.text(), "abcdef");
}
