//! A forked child is neither consumer nor producer, client nor server: the files of queues stay as
//! they were.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use outlive::{Consumer, Deadline, Error, ErrorKind, Node, NodeBuilder, Producer, Result};
use testkit::{Actor, TempDomain, Watchdog, fork_child, role};

const SENT: u64 = 10;

fn settings(dir: &Path) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

/// All files of queues, with what is in them.
type Files = BTreeMap<String, Vec<u8>>;

fn contents(dir: &Path) -> Files {
    let mut all = Files::new();
    for queue in std::fs::read_dir(dir.join("root/default/queues")).unwrap() {
        for file in std::fs::read_dir(queue.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                all.insert(path.display().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// Files that came, went or are not the same, with the first byte that differs.
fn changed(before: &Files, after: &Files) -> Vec<String> {
    let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differ = |name: &&String| before.get(*name) != after.get(*name);
    let place = |name: &String| {
        let (old, new) = (before.get(name)?, after.get(name)?);
        old.iter().zip(new).position(|(old, new)| old != new)
    };
    names.into_iter().filter(differ).map(|name| format!("{name}: {:?}", place(name))).collect()
}

#[track_caller]
fn refused<T>(result: Result<T>) {
    match result {
        Ok(_) => panic!("a handle of the parent worked"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::ForkedChild, "{e}"),
    }
}

fn child_refuses<const W: usize>(
    consumer: &mut Consumer<[u64; W]>,
    producer: &mut Producer<[u64; W]>,
) {
    assert!(!producer.has_consumer());
    refused(producer.send(&[99; W]));
    refused(producer.try_send(&[99; W]).map_err(Error::from));
    refused(producer.send_batch(&[[99; W]; 3]));
    refused(producer.reserve().map(|_| ()));
    refused(consumer.receive().map(|_| ()));
    refused(consumer.receive_timeout(Duration::from_secs(3600)).map(|_| ()));
    refused(consumer.receive_slice().map(|_| ()));
    refused(consumer.copy_to(&mut [0; W]));
    refused(consumer.receive_batch(&mut Vec::new(), 5));
}

/// Forks with a message in hand and a half-full run, and goes on.
fn fork_amid<const W: usize>(dir: &Path, queue: &str) {
    let node = settings(dir).open().unwrap();
    let mut consumer = node.queue::<[u64; W]>(queue).unwrap().consumer().unwrap();
    let mut producer = node.queue::<[u64; W]>(queue).unwrap().producer().unwrap();
    (0..SENT).for_each(|i| producer.send(&[i; W]).unwrap());
    assert_eq!(consumer.receive().unwrap().unwrap()[0], 0);
    let mut in_hand = Some(consumer.receive().unwrap().unwrap());
    let before = contents(dir);
    let mut child = fork_child(|| {
        // It may be read; letting it go means nothing.
        assert_eq!(in_hand.take().unwrap()[W - 1], 1);
        0
    })
    .unwrap();
    assert!(child.wait().success());
    assert_eq!(changed(&before, &contents(dir)), [""; 0], "a message went");
    drop(in_hand);

    // Half filled in the parent: its child's commit would let it be read torn.
    let mut slot = Some(producer.reserve().unwrap());
    slot.as_mut().unwrap()[0] = SENT;
    let before = contents(dir);
    let mut child = fork_child(|| {
        slot.take().unwrap().commit();
        0
    })
    .unwrap();
    assert!(child.wait().success());
    assert_eq!(changed(&before, &contents(dir)), [""; 0], "a child committed for its parent");
    slot.as_mut().unwrap().fill(SENT);
    slot.unwrap().commit();

    let before = contents(dir);
    let mut both = Some((consumer, producer));
    let mut child = fork_child(|| {
        let (mut consumer, mut producer) = both.take().unwrap();
        child_refuses(&mut consumer, &mut producer);
        drop((consumer, producer));
        0
    })
    .unwrap();
    assert!(child.wait().success());
    assert_eq!(changed(&before, &contents(dir)), [""; 0], "after calls in a child");

    let (mut consumer, mut producer) = both.unwrap();
    producer.send(&[SENT + 1; W]).unwrap();
    for i in 2..=SENT + 1 {
        assert_eq!(*consumer.receive().unwrap().unwrap(), [i; W]);
    }
    assert!(consumer.receive().unwrap().is_none());
}

/// Forks with a request that was taken in and a reply that was set aside.
fn fork_amid_a_service(dir: &Path) {
    let node = settings(dir).open().unwrap();
    let service = || node.service::<u64, u64>("/double").unwrap();
    let mut server = service().server().unwrap();
    let mut client = service().client().unwrap();
    let (first, second) = (client.send(&1).unwrap(), client.send(&2).unwrap());
    for _ in 0..2 {
        let request = server.receive().unwrap().unwrap();
        let answer = *request * 2;
        server.respond(request, &answer).unwrap();
    }
    client.receive_for(second, Deadline::AT_ONCE).unwrap();
    let (asked, last) = (client.send(&3).unwrap(), client.send(&4).unwrap());
    let in_hand = server.receive().unwrap().unwrap();
    assert!(!server.is_cancelled(&in_hand).unwrap(), "the last one is taken in beside it");
    let mut both = Some((client, server));
    let mut child = fork_child(|| {
        let (mut client, mut server) = both.take().unwrap();
        refused(server.receive().map(|_| ()));
        refused(client.receive_for(first, Deadline::AT_ONCE).map(|_| ()));
        refused(client.receive().map(|_| ()));
        0
    })
    .unwrap();
    assert!(child.wait().success());
    let (mut client, mut server) = both.unwrap();
    server.respond(in_hand, &6).unwrap();
    let request = server.receive().unwrap().unwrap();
    server.respond(request, &8).unwrap();
    let tickets = std::iter::from_fn(|| Some(client.receive().unwrap()?.ticket()));
    assert_eq!(tickets.collect::<Vec<_>>(), [first, asked, last]);
}

#[test]
fn a_child_gets_nothing_that_its_parents_service_took_in() {
    const TEST: &str = "a_child_gets_nothing_that_its_parents_service_took_in";
    if let Some(role) = role() {
        fork_amid_a_service(Path::new(&role.args[0]));
        return;
    }
    let _dog = Watchdog::start(TEST, Duration::from_secs(120));
    let dir = TempDomain::new("fork-service").unwrap();
    let mut actor = Actor::start(TEST, "parent", &[dir.path().to_str().unwrap()]);
    assert!(actor.wait().success());
}

#[test]
fn a_child_neither_sends_nor_receives_and_its_parent_goes_on() {
    const TEST: &str = "a_child_neither_sends_nor_receives_and_its_parent_goes_on";
    if let Some(role) = role() {
        let dir = Path::new(&role.args[0]);
        // Messages in runs, in records.
        fork_amid::<1>(dir, "/small");
        fork_amid::<20>(dir, "/large");
        return;
    }
    let _dog = Watchdog::start(TEST, Duration::from_secs(120));
    let dir = TempDomain::new("fork-queues").unwrap();
    let mut actor = Actor::start(TEST, "parent", &[dir.path().to_str().unwrap()]);
    assert!(actor.wait().success());
}
