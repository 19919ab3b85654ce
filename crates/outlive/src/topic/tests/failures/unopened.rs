//! Publishers that cannot open one of their subscribers.

use std::os::fd::AsRawFd;

use crate::node::Node;
use crate::os::fixture::{self, TempDir, fork_child, until};
use crate::os::process::sched;
use crate::os::sleep::poll::{PollFd, READABLE, poll};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::topic::*;
use crate::{Domain, ErrorKind, Result};

type Image = [u8; 5000];
/// Memory for one chunk of an image and the head of its segment.
const ONE_CHUNK: u64 = 3 * 4096;
/// Memory for each further one.
const CHUNK: u64 = 2 * 4096;

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn builder(node: &Node) -> Builder<Image> {
    node.topic::<Image>("/i").unwrap().depth(8)
}

fn drain(sub: &mut Subscriber<Image>) -> Vec<u8> {
    sub.drain().map(|sample| sample.unwrap()[0]).collect()
}

/// Refuses the calling thread what it needs to open that node.
fn refuse(call: &'static str, node: &Node, errno: i32) {
    fixture::refuse(call, &format!("/nodes/{}", node.id()), errno, u32::MAX);
}

/// As if `ms` had passed, for this thread.
fn later(ms: i64) {
    clock::set_test_offset(ms * 1_000_000);
}

#[test]
fn a_volatile_publisher_of_one_chunk_goes_on_after_each_who_joins_or_leaves() {
    let dir = TempDir::new("unopened-one");
    let (ours, theirs) = (node(&dir), node(&dir));
    let publisher = builder(&ours).volatile(true).memory_bytes_max(ONE_CHUNK).publisher().unwrap();
    let mut subs = vec![builder(&theirs).subscriber().unwrap()];
    for i in 0..6 {
        publisher.publish(&[i; 5000]).unwrap_or_else(|e| panic!("message {i}: {e}"));
        subs.iter_mut().for_each(|sub| assert_eq!(drain(sub), [i]));
        match i {
            1 | 3 => subs.push(builder(&theirs).subscriber().unwrap()),
            2 => drop(subs.remove(0)),
            _ => {}
        }
        // Who joined has to look before it can have read anything.
        subs.iter_mut().for_each(|sub| assert!(drain(sub).is_empty()));
    }
}

#[test]
fn who_may_not_be_read_misses_what_was_withdrawn_and_nothing_that_comes() {
    let dir = TempDir::new("unopened-withdrawn");
    let (ours, theirs) = (node(&dir), node(&dir));
    let publisher = builder(&ours).volatile(true).memory_bytes_max(ONE_CHUNK).publisher().unwrap();
    let mut sub = builder(&theirs).subscriber().unwrap();
    refuse("open", &theirs, libc::EACCES);
    for i in 0..3 {
        publisher.publish(&[i; 5000]).unwrap();
    }
    let mut got = vec![drain(&mut sub)];
    for i in 3..8 {
        publisher.publish(&[i; 5000]).unwrap();
        got.push(drain(&mut sub));
    }
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!(got, (2..8).map(|i| vec![i]).collect::<Vec<_>>());
    assert_eq!(sub.lost(), 2);
}

#[test]
fn a_volatile_publisher_out_of_chunks_tries_again_to_open_its_subscriber() {
    let dir = TempDir::new("unopened-volatile");
    let (ours, theirs) = (node(&dir), node(&dir));
    let two = ONE_CHUNK + CHUNK;
    let publisher = builder(&ours).volatile(true).memory_bytes_max(two).publisher().unwrap();
    let mut sub = builder(&theirs).subscriber().unwrap();
    refuse("map", &theirs, libc::ENOMEM);
    let send = || publisher.try_publish(&[1; 5000]);
    let sent = (0..8).take_while(|_| send().is_ok()).count();
    assert_eq!(sent, 2, "each message keeps its chunk");
    assert_eq!(send().unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!(drain(&mut sub).len(), 2);
    later(300);
    for i in 2..20 {
        let sent = send().map_err(|e| e.kind());
        assert!(sent.is_ok(), "message {i}: {sent:?}");
        assert_eq!(drain(&mut sub), [1]);
    }
    later(0);
}

#[test]
fn the_chunk_of_a_message_that_was_read_late_is_taken_back_as_well() {
    let dir = TempDir::new("unopened-late");
    let n = node(&dir);
    let two = ONE_CHUNK + CHUNK;
    let publisher = builder(&n).volatile(true).memory_bytes_max(two).publisher().unwrap();
    let mut sub = builder(&n).subscriber().unwrap();
    publisher.publish(&[0; 5000]).unwrap();
    publisher.publish(&[1; 5000]).unwrap();
    // It keeps the last sample until the next comes.
    let mut kept = sub.drain().last().unwrap().unwrap();
    for i in 2..20 {
        publisher.publish(&[i; 5000]).unwrap_or_else(|e| panic!("message {i}: {e}"));
        kept = sub.receive().unwrap().unwrap();
        assert_eq!(kept[0], i);
    }
    drop(kept);
}

/// Added to a node's number it is that of its dead copy, whose ports lie where its own do.
const DEAD: u64 = 32 * 32;

/// A dead subscriber for each of that node's on the topic.
fn leave_dead(dir: &TempDir, node: &Node) {
    let (nodes, topic) = (dir.join("root/default/nodes"), dir.join("root/default/topics/i"));
    let dead = node.id().get() + DEAD;
    std::fs::copy(nodes.join(node.id().to_string()), nodes.join(dead.to_string())).unwrap();
    let listed = format!("sub.{}.", node.id());
    for entry in std::fs::read_dir(&topic).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(port) = name.strip_prefix(&listed) {
            std::fs::copy(topic.join(&name), topic.join(format!("sub.{dead}.{port}"))).unwrap();
        }
    }
}

#[test]
fn a_dead_reliable_subscriber_that_cannot_be_mapped_stops_no_publisher() {
    let dir = TempDir::new("unopened-dead");
    let (ours, theirs) = (node(&dir), node(&dir));
    let sub = builder(&theirs).reliable(true).subscriber().unwrap();
    let publisher = builder(&ours).publisher().unwrap();
    publisher.publish(&[0; 5000]).unwrap();
    leave_dead(&dir, &theirs);
    // Nobody that would remove what the dead left.
    publisher.writer.borrow().topic().ring_bell(membership::Ports::Subscribers);
    fixture::refuse("map", &format!("/nodes/{}", theirs.id().get() + DEAD), libc::ENOMEM, u32::MAX);
    for i in 1..4 {
        let sent = publisher.publish(&[i; 5000]).map_err(|e| e.kind());
        assert!(sent.is_ok(), "message {i}: {sent:?}");
    }
    let refused = u32::MAX - fixture::refuse_none();
    assert_eq!((refused, publisher.subscribers().unwrap()), (1, 1), "tried once: it is dead");
    drop(sub);
}

#[test]
fn who_waits_for_a_descriptor_is_called_by_a_publisher_that_cannot_map_it() {
    let dir = TempDir::new("unopened-fd");
    let (ours, theirs) = (node(&dir), node(&dir));
    let publisher = builder(&ours).publisher().unwrap();
    let mut sub = builder(&theirs).subscriber().unwrap();
    refuse("map", &theirs, libc::ENOMEM);
    let fd = sub.fd().unwrap().as_raw_fd();
    let is_readable = || poll(&mut [PollFd::new(fd, READABLE)], Deadline::AT_ONCE) == 1;
    for i in 0..3 {
        // Nothing is there, unless it has just ticked.
        fixture::until(|| sub.receive().unwrap().is_none() && !is_readable());
        publisher.publish(&[i; 5000]).unwrap();
        assert!(is_readable(), "message {i}: not called");
        assert_eq!(drain(&mut sub), [i]);
    }
    assert!(fixture::refuse_none() < u32::MAX);
}

/// Whether that publisher knows its subscriber, without looking.
fn knows(publisher: &Publisher<Image>) -> bool {
    publisher.writer.borrow().subscribers() == 1
}

#[test]
fn who_asks_how_many_there_are_puts_no_try_off() {
    let dir = TempDir::new("unopened-asks");
    let (ours, theirs) = (node(&dir), node(&dir));
    let publisher = builder(&ours).publisher().unwrap();
    let _sub = builder(&theirs).subscriber().unwrap();
    refuse("map", &theirs, libc::ENOMEM);
    for _ in 0..9 {
        assert_eq!(publisher.subscribers().unwrap(), 0);
    }
    assert_eq!(u32::MAX - fixture::refuse_none(), 9);
    // The first may come before its turn.
    publisher.publish(&[0; 5000]).unwrap();
    publisher.publish(&[1; 5000]).unwrap();
    assert!(knows(&publisher));
}

#[test]
fn a_subscriber_that_may_not_be_read_is_opened_later_and_stops_nobody() {
    for reliable in [false, true] {
        let dir = TempDir::new("unopened-denied");
        let (ours, theirs) = (node(&dir), node(&dir));
        // It has to take its only chunk back.
        let publisher = builder(&ours).volatile(true).memory_bytes_max(ONE_CHUNK);
        let publisher = publisher.publisher().unwrap();
        let _sub = builder(&theirs).reliable(reliable).subscriber().unwrap();
        refuse("open", &theirs, libc::EACCES);
        for i in 0..3 {
            let sent = publisher.publish(&[i; 5000]).map_err(|e| e.kind());
            assert!(sent.is_ok(), "message {i}, reliable: {reliable}: {sent:?}");
        }
        assert!(fixture::refuse_none() < u32::MAX);
        assert!(!knows(&publisher));
        later(300 * (1 + i64::from(reliable)));
        publisher.wait_for_room(Deadline::AT_ONCE).unwrap();
        assert!(knows(&publisher), "reliable: {reliable}");
    }
    later(0);
}

/// They may be dead, and then keep no type.
#[test]
fn who_cannot_look_at_the_members_of_another_type_does_not_say_that_they_live() {
    let dir = TempDir::new("unopened-type");
    let (ours, theirs) = (node(&dir), node(&dir));
    let _publisher = builder(&theirs).publisher().unwrap();
    let _producer = theirs.queue::<u64>("/q").unwrap().producer().unwrap();
    let opens = || ours.topic::<f64>("/i").unwrap().subscriber().unwrap_err();
    let consumes = || ours.queue::<f64>("/q").unwrap().consumer().unwrap_err();
    assert_eq!([opens().kind(), consumes().kind()], [ErrorKind::TypeMismatch; 2]);
    refuse("map", &theirs, libc::ENOMEM);
    let lacks = [opens(), consumes()];
    assert!(fixture::refuse_none() < u32::MAX);
    for e in lacks {
        assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{e}");
    }
}

/// Nor does one whose ring cannot be mapped live, if its program is dead.
#[test]
fn who_cannot_map_the_ring_of_one_that_is_dead_does_not_say_that_it_lives() {
    let dir = TempDir::new("unopened-ring");
    let ours = node(&dir);
    let root = dir.join("root");
    let child = fork_child(move || {
        let theirs = Node::builder().root(root).open().unwrap();
        let publisher = builder(&theirs).publisher().unwrap();
        publisher.publish(&[1; 5000]).unwrap();
        let queue = || theirs.queue::<u64>("/q").unwrap();
        let _consumer = queue().consumer().unwrap();
        let mut producer = queue().producer().unwrap();
        producer.send(&1).unwrap();
        loop {
            sched::sleep_until(Deadline::NEVER);
        }
    });
    let domain = Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    let there = || {
        let (topic, queues) = (domain.find_topic("/i").unwrap(), domain.queues().unwrap());
        topic.is_some_and(|t| t.publishers.len() == 1)
            && queues.iter().flat_map(|q| &q.lanes).any(|l| l.unread == 1)
    };
    until(there);
    child.kill();
    let opens = || ours.topic::<f64>("/i").unwrap().subscriber().map(drop);
    let consumes = || ours.queue::<f64>("/q").unwrap().consumer().map(drop);
    let lacking = |call, file, f: &dyn Fn() -> Result<()>| {
        fixture::refuse(call, file, libc::ENOMEM, u32::MAX);
        let e = f().unwrap_err();
        assert!(fixture::refuse_none() < u32::MAX);
        assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{call} {file}: {e}");
    };
    for call in ["map", "open"] {
        lacking(call, "/pub.", &opens);
        lacking(call, "/lane.", &consumes);
        assert!(there(), "{call}: removed unseen");
    }
    lacking("map", "/pub.", &|| domain.clean().map(drop));
    opens().unwrap();
}
