//! `doctor`, `lock`, `queue` and `completions`.

mod common;

use common::*;
use serde_json::{Value, json};

fn node(home: &Home) -> outlive::Node {
    outlive::Node::builder().root(home.root()).name("test").open().unwrap()
}

fn check<'a>(checks: &'a Value, id: &str) -> &'a Value {
    let found = checks.as_array().unwrap().iter().find(|c| c["id"] == id);
    found.unwrap_or_else(|| panic!("no check {id}"))
}

fn doctor(home: &Home) -> Value {
    let ran = home.run("doctor --json");
    serde_json::from_slice(&ran.out).unwrap()
}

#[test]
fn bench_has_each_row_beside_its_limit() {
    let home = Home::new("bench");
    let ran = home.run("bench --rounds 1 --json");
    if ran.err.contains("two cores are needed") {
        println!("skipped: {}", ran.err);
        return;
    }
    let report = ran.json();
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    for what in ["topic 64 B", "topic 1 MiB", "stream", "queue", "lock", "wake"] {
        assert!(names.iter().any(|name| name.contains(what)), "no {what} in {names:?}");
    }
    for row in rows {
        let positive = |key: &str| row[key].as_f64().is_some_and(|value| value > 0.0);
        assert!(positive("p50") && positive("limit_p50"), "{row:#}");
    }
}

#[test]
fn doctor_looks_at_everything_and_finds_leftovers() {
    let home = Home::new("doctor");
    let checks = doctor(&home);
    for id in [
        "kernel",
        "cores",
        "robust-list",
        "ofd-locks",
        "o-tmpfile",
        "futex-waitv",
        "cgroup",
        "open-files",
        "rtprio",
        "memlock",
        "remove-ipc",
        "directory",
        "ram-disk",
        "dead-nodes",
        "dead-topics",
        "audit",
    ] {
        let check = check(&checks, id);
        let well = check["status"] == "ok";
        assert_eq!(well, check["remedy"] == "", "{check}");
        assert!(!check["found"].as_str().unwrap().is_empty(), "{check}");
    }
    assert!(!home.root().exists(), "it makes nothing");
    assert_eq!(check(&checks, "ofd-locks")["status"], "ok");

    let publisher = home.start("topic pub /a --from-stdin --frame-bytes 4 --linger inf", b"abcd");
    home.await_messages(1);
    assert_eq!(check(&doctor(&home), "dead-nodes")["status"], "ok");
    publisher.signal(libc::SIGKILL);
    publisher.end();
    let checks = doctor(&home);
    for id in ["dead-nodes", "dead-topics"] {
        assert_eq!(check(&checks, id)["status"], "warn", "{checks}");
        assert!(check(&checks, id)["remedy"].as_str().unwrap().contains("outlive clean"));
    }
    let text = home.run("doctor");
    assert!(text.text().contains("1 of 1 nodes are dead"), "{}", text.text());
    assert!(!text.text().contains('\x1b'));
}

#[test]
fn what_is_bad_is_1() {
    let home = Home::new("doctor-bad");
    let _node = node(&home);
    let topic = home.root().join("default/nodes/999");
    std::fs::write(topic, noise(8192)).unwrap();
    let ran = home.run("doctor").expect(FAILED);
    assert!(ran.text().contains("bad   audit"), "{}", ran.text());
    home.run("doctor --frobnicate").expect(USAGE);
}

#[test]
fn queues_are_listed_with_their_lanes_and_can_be_sent_to() {
    let home = Home::new("queue");
    let node = node(&home);
    let mut bytes = node.queue::<[u8]>("/commands").unwrap().consumer().unwrap();
    let mut numbers = node.queue::<[f64]>("/setpoints").unwrap().consumer().unwrap();
    let mut one = node.queue::<i32>("/level").unwrap().stamped().consumer().unwrap();
    home.run("queue send commands go").expect(DONE);
    home.feed("queue send /commands", b"a b").expect(DONE);
    home.run("queue send /setpoints [1,2.5]").expect(DONE);
    home.run("queue send /level -3").expect(DONE);
    let rows = home.run("queue list --json").json();
    let unread: Vec<_> =
        rows.as_array().unwrap().iter().map(|r| (r["name"].clone(), r["unread"].clone())).collect();
    let wanted = [("/commands", 2), ("/level", 1), ("/setpoints", 1)];
    assert_eq!(unread, wanted.map(|(name, n)| (json!(name), json!(n))));
    assert_eq!(rows[0]["lanes"][0]["state"], "closed");
    // Of two producers: in any order.
    let mut got: Vec<_> = (0..2).map(|_| bytes.receive().unwrap().unwrap().to_vec()).collect();
    got.sort();
    assert_eq!(got, [b"a b".to_vec(), b"go".to_vec()]);
    assert_eq!(&*numbers.receive().unwrap().unwrap(), [1.0, 2.5]);
    assert_eq!(*one.receive().unwrap().unwrap(), -3);
    let text = home.run("queue list").expect(DONE);
    assert!(text.text().starts_with("QUEUE"), "{}", text.text());

    home.run("queue send /level 1.5").expect(USAGE);
    home.run("queue send /a//b 1").expect(USAGE);
    home.run("queue send").expect(USAGE);
    home.run("queue send /nobody 1").expect(NOT_FOUND);
    drop(one);
    let _producer = node.queue::<i32>("/level").unwrap().stamped().producer().unwrap();
    let ran = home.run("queue send /level 1").expect(NOT_FOUND);
    assert!(ran.err.contains("no "), "{}", ran.err);
}

#[test]
fn locks_are_listed_with_their_holder() {
    let home = Home::new("lock");
    let node = node(&home);
    assert_eq!(home.run("lock list --json").json(), json!([]));
    let mutex = node.mutex::<u64>("/state").unwrap();
    let row = || home.run("lock list --json").json()[0].clone();
    let free = row();
    assert_eq!((&free["kind"], &free["state"]), (&json!("mutex"), &json!("free")));
    assert_eq!((&free["name"], &free["type"]), (&json!("/state"), &json!("u64")));
    assert_eq!(free["holder"], json!(null));
    let guard = mutex.lock().unwrap();
    let held = row();
    assert_eq!(held["state"], "held");
    assert_eq!((&held["holder"]["node"], &held["holder"]["alive"]), (&json!(1), &json!(true)));
    drop(guard);
    let text = home.run("lock list").expect(DONE);
    assert!(text.text().starts_with("LOCK"), "{}", text.text());
    home.run("lock list --what").expect(USAGE);
}

/// Nobody gets `lock` any more: the heir of an owner that panicked lets it go unrepaired.
fn lose(lock: &outlive::lock::RobustMutex<u64>) {
    let dies_inside = || {
        let _guard = lock.lock().unwrap();
        panic!("inside");
    };
    std::thread::scope(|scope| assert!(scope.spawn(dies_inside).join().is_err()));
    drop(lock.lock().unwrap_err());
    let lost = outlive::Error::from(lock.lock().unwrap_err()).to_string();
    assert!(lost.contains("outlive lock remove"), "{lost}");
}

#[test]
fn a_lock_is_removed_unless_somebody_uses_it() {
    let home = Home::new("lock-remove");
    let ran = home.run("lock remove /state").expect(NOT_FOUND);
    assert!(ran.err.contains("no lock /state: nobody is in domain"), "{}", ran.err);
    assert!(!home.root().exists(), "it makes no domain");
    let node = node(&home);
    let mutex = node.mutex::<u64>("/state").unwrap();
    let ran = home.run("lock remove /state").expect(1);
    assert!(ran.err.contains("removing lock /state: would block; somebody has it"), "{}", ran.err);
    lose(&mutex);
    assert_eq!(home.run("lock list --json").json()[0]["state"], "unrecoverable");
    assert_eq!(home.run("lock remove /state").expect(DONE).text(), "");
    assert_eq!(home.run("lock list --json").json(), json!([]));
    assert_eq!(mutex.lock().unwrap_err().kind(), outlive::ErrorKind::Unrecoverable);
    assert_eq!(*node.mutex::<u64>("/state").unwrap().lock().unwrap(), 0);

    drop(node.semaphore("/gpu", 2).unwrap());
    let ran = home.run("lock remove /gpus").expect(NOT_FOUND);
    assert!(ran.err.contains("no lock /gpus; did you mean /gpu?"), "{}", ran.err);
    home.run("lock remove gpu").expect(DONE);
    home.run("lock remove gpu").expect(NOT_FOUND);
    home.run("lock remove /a//b").expect(USAGE);
    home.run("lock remove").expect(USAGE);
}

#[test]
fn every_shell_gets_completions_and_every_command_has_help() {
    let home = Home::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.run(&format!("completions {shell}")).expect(DONE);
        assert!(ran.text().contains("OUTLIVE_COMPLETE"), "{shell}: it asks the command");
    }
    home.run("completions dos").expect(USAGE);
    for command in [
        "topic info",
        "topic hz",
        "topic pub",
        "topic echo",
        "queue send",
        "queue list",
        "service list",
        "service call",
        "lock list",
        "lock remove",
    ] {
        let help = home.run(&format!("{command} --help")).expect(DONE);
        assert!(help.text().contains("Examples:"), "{command}");
    }
    assert!(home.run("doctor --help").expect(DONE).text().contains("Examples:"));
}
