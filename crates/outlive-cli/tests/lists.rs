//! `topic list`, `node list` and `clean`.

mod common;

use std::io::{BufRead, BufReader};

use common::*;
use serde_json::json;

#[test]
fn lists_of_nothing_are_empty_and_make_nothing() {
    let home = Home::new("empty");
    for what in ["topic", "node", "queue", "service", "lock"] {
        let ran = home.run(&format!("{what} list --json")).expect(DONE);
        let path = home.root().join("default").display().to_string();
        let nobody = format!("outlive: nobody is in domain default ({path}); ");
        assert!(ran.err.starts_with(&nobody) && ran.err.lines().count() == 1, "{}", ran.err);
        assert_eq!(ran.json(), json!([]));
    }
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
    assert_eq!(cells[..5], ["/cam/front", "[u8]", "-", "bytes", "8"]);
    assert_eq!((cells[5], *cells.last().unwrap()), ("1/0/0", "1"));

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
    // It said 1 B, which is of no value of theirs.
    let plan = r#"topic pub /plan --type msgpack {"a":1} --linger inf"#;
    let _plan = home.start(plan, b"");
    while home.topics().as_array().unwrap().len() < 2 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    for (name, told) in [("/cam/front", "[u8], bytes"), ("/plan", "json, msgpack")] {
        let text = home.run(&format!("topic info {name}")).expect(DONE).text().to_owned();
        assert_eq!(text.lines().nth(1), Some(format!("type      {told}").as_str()), "{text}");
    }
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
    for part in ["queue files, 1 queue, 1 lock: ", " kB; nobody is left"] {
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

#[test]
fn an_empty_domain_is_named_with_those_that_are_not() {
    let home = Home::new("nobody");
    let open = |domain: &str| {
        outlive::Node::builder().root(home.root()).domain(domain).name("a").open().unwrap()
    };
    let _nodes = [open("arm"), open("base")];
    drop(open("left"));
    assert!(home.root().join("left/nodes").is_dir());
    let root = home.root().display().to_string();
    let told =
        format!("nobody is in domain default ({root}/default); other domains there: arm, base\n");
    for (args, code) in [
        ("topic list", DONE),
        ("topic info /a", NOT_FOUND),
        ("topic hz /a", NOT_FOUND),
        ("topic bw /a", NOT_FOUND),
        ("topic find Pose", NOT_FOUND),
        ("node info a", NOT_FOUND),
        ("metrics", DONE),
    ] {
        let ran = home.run(args).expect(code);
        assert!(ran.err.ends_with(&told) && ran.err.lines().count() == 1, "{args}: {}", ran.err);
    }
    // These join it, and leave it empty.
    let file = home.root().join("a.mcap").display().to_string();
    for (args, code) in [
        ("topic echo /a --timeout 0.05", NOT_FOUND),
        (&format!("record --all --for 0.05 -o {file}"), DONE),
    ] {
        let ran = home.run(args).expect(code);
        assert_eq!(ran.err.matches(&format!("outlive: {told}")).count(), 1, "{args}: {}", ran.err);
    }
    let mut dashboard = home.outlive("dashboard --bind 127.0.0.1:0").spawn().unwrap();
    let mut lines = BufReader::new(dashboard.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.nth(1);
    dashboard.kill().unwrap();
    dashboard.wait().unwrap();
    assert_eq!(line, Some(format!("outlive: {}", told.trim_end())));
    assert_eq!(home.run("--domain arm topic list").expect(DONE).err, "");
    let ran = home.run("--domain arm topic info /a").expect(NOT_FOUND);
    assert_eq!(ran.err, "outlive: no topic /a: 'outlive topic list' shows those that exist\n");
}

#[test]
fn a_domain_with_nobody_in_it_is_not_offered() {
    let home = Home::new("left");
    let open = |domain: &str| {
        outlive::Node::builder().root(home.root()).domain(domain).name("a").open().unwrap()
    };
    drop(open("left"));
    let root = home.root().display().to_string();
    let ran = home.run("topic list").expect(DONE);
    let told = format!("nobody is in domain default ({root}/default); nor in another of {root}\n");
    assert_eq!(ran.err, format!("outlive: {told}"));
}

#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_one_that_is() {
    let home = Home::new("meant");
    let node = outlive::Node::builder().root(home.root()).name("planner").open().unwrap();
    let _speed = node.topic::<f64>("/speed").unwrap().publisher().unwrap();
    let _jobs = node.queue::<u64>("/jobs").unwrap().consumer().unwrap();
    let _plan = node.service::<u64, u64>("/arm/plan").unwrap().server().unwrap();
    for (args, meant) in [
        ("topic info /sped", "no topic /sped; did you mean /speed?"),
        ("topic hz /spede", "no topic /spede; did you mean /speed?"),
        ("topic delay sped", "no topic sped; did you mean /speed?"),
        ("topic echo /sped --timeout 0", "no topic /sped; did you mean /speed?"),
        ("topic echo /sped --timeout 0.05", "waiting for topic /sped; did you mean /speed?"),
        ("topic find f46", "no topic of type f46; did you mean f64?"),
        ("topic pub /sped 1", "no topic /sped yet (did you mean /speed?)"),
        ("queue send /job 1", "no queue /job; did you mean /jobs?"),
        ("queue echo /job", "no queue /job; did you mean /jobs?"),
        ("service call /plan 1", "no service /plan; did you mean /arm/plan?"),
        ("node info planer", "no node planer; did you mean planner?"),
    ] {
        let ran = home.run(args).expect(NOT_FOUND);
        assert!(ran.err.contains(meant), "{args}: {}", ran.err);
    }
    let ran = home.run("topic lsit").expect(USAGE);
    assert!(ran.err.contains("similar subcommand exists: 'list'"), "{}", ran.err);
    for (args, meant) in [
        ("hz /speed", "similar subcommand exists: 'topic hz'"),
        ("echo /speed", "similar subcommands exist: 'topic echo', 'queue echo'"),
        ("queue hz /jobs", "similar subcommand exists: 'topic hz'"),
    ] {
        let ran = home.run(args).expect(USAGE);
        assert!(ran.err.contains(meant), "{args}: {}", ran.err);
    }
}

#[test]
fn node_info_says_what_a_node_does_and_find_which_topics_have_a_type() {
    let home = Home::new("node-info");
    let open = || outlive::Node::builder().root(home.root()).name("arm").open().unwrap();
    let node = open();
    let _pose = node.topic::<outlive::msg::Pose>("/pose").unwrap().publisher().unwrap();
    let _goal = node.topic::<outlive::msg::Pose>("/goal").unwrap().subscriber().unwrap();
    let _jobs = node.queue::<u64>("/jobs").unwrap().consumer().unwrap();
    let _send = node.queue::<u64>("/jobs").unwrap().producer().unwrap();
    let _plan = node.service::<u64, u64>("/plan").unwrap().server().unwrap();
    let mutex = node.mutex_with::<u64>("/cal", &3).unwrap();
    let _guard = mutex.lock().unwrap();
    let told = home.run("node info arm --json").json();
    for (key, names) in [
        ("publishes", json!(["/pose"])),
        ("reads", json!(["/goal"])),
        ("sends", json!(["/jobs"])),
        ("receives", json!(["/jobs"])),
        ("serves", json!(["/plan"])),
        ("locks", json!(["/cal"])),
        ("pid", json!(std::process::id())),
    ] {
        assert_eq!(told[key], names, "{key}: {told}");
    }
    let text = home.run("node info 1").expect(DONE).text().to_owned();
    for part in ["publishes   /pose\n", "serves      /plan\n", "locks held  /cal\n", " ago\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for wanted in ["outlive/Pose", "pose"] {
        let found = home.run(&format!("topic find {wanted}")).expect(DONE);
        assert_eq!(found.text(), "/goal\n/pose\n");
    }
    let found = home.run("topic find pose --json").json();
    assert_eq!(found[0], json!({ "name": "/goal", "type": "outlive/Pose" }));
    let _second = open();
    let ran = home.run("node info arm").expect(USAGE);
    assert!(ran.err.contains("nodes 1, 2 are named arm: give a number"), "{}", ran.err);
}

#[test]
fn the_environment_names_the_domain_of_commands_and_programs_unless_they_do() {
    let home = Home::new("domain-env");
    let run = |args: &str, domain: &str| {
        let ran = home.outlive(args).env("OUTLIVE_DOMAIN", domain).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    for (args, domain, named) in [
        ("topic list", "arm", "arm"),
        ("--domain base topic list", "arm", "base"),
        ("topic list", "", "default"),
    ] {
        let (code, said) = run(args, domain);
        assert_eq!(code, Some(DONE));
        assert!(said.contains(&format!("nobody is in domain {named} (")), "{said}");
    }
    let (code, said) = run("topic list", "two words");
    assert_eq!(code, Some(USAGE));
    assert!(said.contains("domain name 'two words'"), "{said}");
}
