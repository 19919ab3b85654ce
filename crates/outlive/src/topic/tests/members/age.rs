//! Who came first, what the dead keep, and how deep each ring is.

use std::time::Duration;

use crate::node::Node;
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::topic::*;
use crate::{Domain, ErrorKind, NodeBuilder};

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

fn node(dir: &TempDir) -> Node {
    settings(dir).open().unwrap()
}

fn drain(sub: &mut Subscriber<u64>) -> Vec<u64> {
    sub.drain().map(|sample| *sample.unwrap()).collect()
}

#[test]
fn each_publisher_has_its_own_depth_whoever_starts_first() {
    let dir = TempDir::new("age-depth");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/n").unwrap();
    let mut sub = topic().subscriber().unwrap();
    assert_eq!(sub.depth(), 16);
    let deep = topic().depth(64).publisher().unwrap();
    let usual = topic().publisher().unwrap();
    let shallow = topic().depth(3).publisher().unwrap();
    for i in 0..100 {
        deep.publish(&i).unwrap();
        usual.publish(&(1000 + i)).unwrap();
        shallow.publish(&(2000 + i)).unwrap();
    }
    let got = drain(&mut sub);
    let of = |thousand| got.iter().filter(|n| **n / 1000 == thousand).count();
    assert_eq!((of(0), of(1), of(2)), (64, 16, 4));
    assert_eq!((sub.lost(), sub.depth()), (3 * 100 - 64 - 16 - 4, 64));
    let domain = Domain::of(&settings(&dir)).unwrap();
    let info = domain.find_topic("/n").unwrap().unwrap();
    let mut depths: Vec<u64> = info.publishers.iter().map(|p| p.depth).collect();
    depths.sort_unstable();
    assert_eq!((depths, info.depth), (vec![4, 16, 64], 64));
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
}

#[test]
fn a_type_of_the_dead_gives_way_and_the_living_are_named() {
    let dir = TempDir::new("age-type");
    let n = node(&dir);
    let deep = || n.topic::<u32>("/n").unwrap().depth(64);
    let child = {
        let settings = settings(&dir);
        fork_child(move || {
            let node = settings.name("old").open().unwrap();
            let publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
            publisher.publish(&1).unwrap();
            loop {
                sched::sleep_until(Deadline::NEVER);
            }
        })
    };
    let domain = Domain::of(&settings(&dir)).unwrap();
    let there = || domain.find_topic("/n").unwrap().is_some_and(|t| !t.publishers.is_empty());
    until(there);
    let refused = deep().publisher().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TypeMismatch);
    assert!(refused.to_string().contains("live members: old (node 2)"), "{refused}");
    child.kill();
    // Upgraded, and deeper.
    let publisher = deep().publisher().unwrap();
    publisher.publish(&7).unwrap();
    let mut sub = n.topic::<u32>("/n").unwrap().history(9).subscriber().unwrap();
    assert_eq!(sub.drain().map(|s| *s.unwrap()).collect::<Vec<_>>(), [7]);
    assert_eq!(sub.depth(), 64);
    // Its own members hold on to the type while one of them lives.
    assert_eq!(n.topic::<u64>("/n").unwrap().publisher().unwrap_err().kind(), refused.kind());
    drop(publisher);
    assert_eq!(n.topic::<u64>("/n").unwrap().subscriber().unwrap_err().kind(), refused.kind());
    drop(sub);
    n.topic::<u64>("/n").unwrap().publisher().unwrap();
}

#[test]
fn the_dead_are_read_in_order_and_history_is_the_topics() {
    for stamped in [true, false] {
        let dir = TempDir::new("age-history");
        let keeper = node(&dir);
        let _keeps = keeper.topic::<u64>("/n").unwrap().subscriber().unwrap();
        let topic = |n: &Node| n.topic::<u64>("/n").unwrap().timestamps(stamped).depth(2);
        // The nodes of older publishers are younger.
        let nodes: Vec<_> = (0..4).map(|_| node(&dir)).collect();
        for (i, n) in nodes.iter().rev().enumerate() {
            let publisher = topic(n).publisher().unwrap();
            publisher.publish(&(10 * i as u64)).unwrap();
            publisher.publish(&(10 * i as u64 + 1)).unwrap();
        }
        let history = |n: u64| {
            drain(&mut keeper.topic::<u64>("/n").unwrap().history(n).subscriber().unwrap())
        };
        assert_eq!(history(1), [31], "stamps: {stamped}");
        assert_eq!(history(3), [21, 30, 31]);
        assert_eq!(history(100), [0, 1, 10, 11, 20, 21, 30, 31]);
        let last = topic(&nodes[3]).publisher().unwrap();
        last.publish(&40).unwrap();
        assert_eq!(history(2), [31, 40]);
        drop(last);
        assert_eq!(history(2), [31, 40]);
    }
}

#[test]
fn of_more_dead_rings_than_are_kept_the_oldest_goes() {
    let dir = TempDir::new("age-oldest");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/n").unwrap().subscriber().unwrap();
    // The node of the older ones is the younger one.
    let (late, early) = (node(&dir), node(&dir));
    for i in 0..100 {
        let n = if i < 50 { &early } else { &late };
        let publisher = n.topic::<u64>("/n").unwrap().depth(1).publisher().unwrap();
        publisher.publish(&i).unwrap();
    }
    let got = drain(&mut sub);
    assert!(got.len() >= 64, "{got:?}");
    let gone = 100 - got.len() as u64;
    assert_eq!(got, (gone..100).collect::<Vec<_>>());
}

#[test]
fn rings_that_a_subscriber_still_reads_stay_however_many() {
    let dir = TempDir::new("age-read");
    let n = node(&dir);
    let topic = || n.topic::<[u8]>("/n").unwrap().depth(1);
    let mut sub = topic().subscriber().unwrap();
    let publishers: Vec<_> = (0..40).map(|_| topic().publisher().unwrap()).collect();
    assert!(sub.receive().unwrap().is_none(), "it has attached them, and mapped no segment");
    for (i, publisher) in publishers.iter().enumerate() {
        publisher.publish(&vec![i as u8; 700 << 10]).unwrap();
    }
    drop(publishers);
    let got: Vec<u8> = sub.drain().map(|sample| sample.unwrap()[0]).collect();
    assert_eq!(got, (0..40).collect::<Vec<u8>>());
    while let Some(event) = sub.next_event() {
        assert!(!matches!(event, Event::PublisherCorrupt { .. }), "{event:?}");
    }
    drop(topic().publisher().unwrap());
    let files = std::fs::read_dir(dir.join("root/default/topics/n")).unwrap();
    let rings =
        files.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().starts_with("pub."));
    assert_eq!(rings.count(), 1, "for the history");
}

#[test]
fn a_log_of_hundreds_of_publishers_is_read_and_waited_for() {
    let dir = TempDir::new("age-log");
    let n = node(&dir);
    let log = || n.topic::<[u8]>("/log").unwrap().depth(2).reliable_timeout(Duration::ZERO);
    let mut sub = log().reliable(true).borrows(8).subscriber().unwrap();
    let publishers: Vec<_> = (0..260).map(|_| log().publisher().unwrap()).collect();
    let line = |i: usize| if i % 2 == 0 { vec![i as u8; 10] } else { vec![i as u8; 3000] };
    let mut held = Vec::new();
    for (i, publisher) in publishers.iter().enumerate() {
        assert!(sub.receive().unwrap().is_none());
        publisher.publish(&line(i)).unwrap();
        let sample = sub.receive_timeout(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!((&*sample, sample.publisher()), (&*line(i), publisher.id()));
        if i % 2 == 1 && i > 240 && held.len() < 6 {
            assert!(sample.is_borrowed());
            held.push((i, sample));
        }
    }
    assert_eq!(sub.publishers().len(), 260);
    for (i, publisher) in publishers.iter().enumerate() {
        publisher.publish(&line(i + 1)).unwrap();
        publisher.publish(&line(i)).unwrap();
        let full = publisher.publish(&line(i)).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::WouldBlock, "publisher {i} waits for its reader");
    }
    assert!(held.iter().all(|(i, sample)| **sample == *line(*i)));
    let seen = Domain::of(&settings(&dir)).unwrap().subscribers("/log").unwrap().unwrap();
    assert_eq!((seen[0].sources.len(), seen[0].held.len()), (260, 6));
    drop(held);
    assert_eq!(sub.drain().map(|s| s.unwrap().lost_before()).sum::<u64>(), 0);
    let others = n.topic::<u64>("/other").unwrap().subscriber().unwrap();
    drop((sub, publishers, others));
    assert_eq!(Domain::of(&settings(&dir)).unwrap().audit().unwrap().faults, Vec::<String>::new());
}

#[test]
fn a_volatile_publisher_that_dies_idle_was_not_writing() {
    for depth in [1, 4] {
        let dir = TempDir::new("age-idle");
        let n = node(&dir);
        let mut sub = n.topic::<[u8]>("/n").unwrap().subscriber().unwrap();
        let child = {
            let settings = settings(&dir);
            fork_child(move || {
                let node = settings.open().unwrap();
                let topic = node.topic::<[u8]>("/n").unwrap().depth(depth);
                let publisher = topic.volatile(true).publisher().unwrap();
                for _ in 0..10 {
                    publisher.publish(&[7; 5000]).unwrap();
                    sched::sleep_until(Deadline::in_ns(2_000_000));
                    // As at the next loan.
                    drop(publisher.loan_slice(5000));
                }
                loop {
                    sched::sleep_until(Deadline::NEVER);
                }
            })
        };
        let mut got = 0;
        until(|| {
            got += sub.drain().map(|s| 1 + s.unwrap().lost_before()).sum::<u64>();
            got == 10
        });
        sched::sleep_until(Deadline::in_ns(20_000_000));
        child.kill();
        let mut event = None;
        until(|| {
            assert!(sub.receive().unwrap().is_none());
            event = sub.next_event().filter(|e| !matches!(e, Event::PublisherJoined(_)));
            event.is_some()
        });
        let Some(Event::PublisherDied { unfinished, lost, .. }) = event else {
            panic!("{event:?}")
        };
        assert_eq!((unfinished, lost), (false, 0));
    }
}
