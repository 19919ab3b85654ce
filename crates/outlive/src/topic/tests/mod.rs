//! What a topic promises, within one process and over forks of it.
//! Begin here; `messages` and `members` go into what is shown below, `threads` is also for the
//! sanitizers.

mod failures;
mod members;
mod messages;
mod threads;
mod types;

use std::time::Duration;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::*;
use crate::node::Node;
use crate::os::fixture::TempDir;
use crate::types::Message;
use crate::{Domain, ErrorKind, NodeBuilder};

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

fn node(dir: &TempDir) -> Node {
    settings(dir).open().unwrap()
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Pose {
    x: f64,
    y: f64,
    yaw: f64,
}

impl Message for Pose {
    const TYPE_NAME: &'static str = "test/Pose";
}

type Image = [u8; 100_000];

#[test]
fn small_values_travel_inline_and_large_ones_are_borrowed() {
    let dir = TempDir::new("topic-basic");
    let node = node(&dir);
    let poses = node.topic::<Pose>("/pose").unwrap().publisher().unwrap();
    let mut sub = node.topic::<Pose>("/pose").unwrap().subscriber().unwrap();
    let pose = Pose { x: 1.0, y: 2.0, yaw: 3.0 };
    assert_eq!(poses.publish(&pose).unwrap(), 0);
    let got = sub.receive().unwrap().unwrap();
    assert_eq!((*got, got.seq(), got.is_borrowed()), (pose, 0, false));
    assert!(sub.receive().unwrap().is_none());

    let images = node.topic::<Image>("/image").unwrap().publisher().unwrap();
    let mut sub = node.topic::<Image>("/image").unwrap().subscriber().unwrap();
    for i in 0..50u8 {
        let mut loan = images.loan().unwrap();
        loan.fill(i);
        loan.publish().unwrap();
        let got = sub.receive().unwrap().unwrap();
        assert!(got.is_borrowed() && got.iter().all(|b| *b == i) && got.timestamp_ns() > 0);
    }
}

#[test]
fn a_slow_subscriber_is_told_exactly_how_many_it_lost() {
    let dir = TempDir::new("topic-loss");
    let node = node(&dir);
    let publisher = node.topic::<u64>("/n").unwrap().depth(4).publisher().unwrap();
    let mut sub = node.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let mut seen = 0;
    let mut lost = 0;
    for round in 0..100u64 {
        for i in 0..round % 11 {
            publisher.publish(&(seen + lost + i)).unwrap();
        }
        let mut first = true;
        while let Some(s) = sub.receive().unwrap() {
            lost += s.lost_before();
            assert_eq!(*s, s.seq());
            assert_eq!(*s, seen + lost);
            assert!(first || s.lost_before() == 0);
            first = false;
            seen += 1;
        }
        assert_eq!(seen + lost, publisher.published());
    }
    assert!(lost > 0);
    assert_eq!(sub.lost(), lost);
}

#[test]
fn a_held_sample_never_changes_and_the_limit_is_told_to_its_holder_only() {
    let dir = TempDir::new("topic-borrow");
    let node = node(&dir);
    let publisher = node.topic::<Image>("/i").unwrap().depth(2).publisher().unwrap();
    let mut sub = node.topic::<Image>("/i").unwrap().borrows(2).subscriber().unwrap();
    let mut other = node.topic::<Image>("/i").unwrap().subscriber().unwrap();
    let send = |i: u8| {
        let mut loan = publisher.loan().unwrap();
        loan.fill(i);
        loan.publish().unwrap();
    };
    send(1);
    let one = sub.receive().unwrap().unwrap();
    send(2);
    let two = sub.receive().unwrap().unwrap();
    send(3);
    assert_eq!(sub.receive().unwrap_err().kind(), ErrorKind::TooManyBorrows);
    for i in 4..40 {
        send(i);
        while let Some(s) = other.receive().unwrap() {
            assert!(s.iter().all(|b| *b == s[0]));
        }
    }
    assert!(one.iter().all(|b| *b == 1) && two.iter().all(|b| *b == 2));
    drop(one);
    assert_eq!(sub.receive().unwrap().unwrap()[0], 38, "oldest of the two still in the ring");
}

#[test]
fn samples_may_outlive_their_subscriber_and_node() {
    let dir = TempDir::new("topic-outlive");
    let publishing = node(&dir);
    let publisher = publishing.topic::<Image>("/i").unwrap().depth(2).publisher().unwrap();
    let sample = {
        let node = node(&dir);
        let mut sub = node.topic::<Image>("/i").unwrap().subscriber().unwrap();
        publisher.publish(&[7; 100_000]).unwrap();
        sub.receive().unwrap().unwrap()
    };
    for i in 0..20 {
        publisher.publish(&[i; 100_000]).unwrap();
    }
    assert!(sample.is_borrowed() && sample.iter().all(|b| *b == 7));
}

/// Publishes and receives values of `N` bytes, each other than the one before.
fn value_of<const N: usize>(node: &Node) {
    let topic = || node.topic::<[u8; N]>(&format!("/v{N}")).unwrap().depth(2);
    let publisher = topic().publisher().unwrap();
    let mut sub = topic().subscriber().unwrap();
    for round in 0..5u8 {
        let value: [u8; N] = std::array::from_fn(|i| (i as u8).wrapping_mul(31) ^ round);
        publisher.publish(&value).unwrap();
        let sample = sub.receive().unwrap().expect("just published");
        assert_eq!(*sample, value, "{N} bytes");
        assert_eq!(sample.is_borrowed(), N > 1024, "{N} bytes");
        let mut loan = publisher.loan().unwrap();
        loan.copy_from_slice(&value);
        loan.publish().unwrap();
        let sample = sub.receive().unwrap().expect("just published");
        assert!(*sample == value && sample.is_borrowed(), "a loan of {N} bytes");
    }
}

#[test]
fn values_of_every_length_arrive_whole_and_the_large_ones_in_place() {
    let dir = TempDir::new("topic-values");
    let node = node(&dir);
    value_of::<1>(&node);
    value_of::<40>(&node);
    value_of::<41>(&node);
    value_of::<64>(&node);
    value_of::<65>(&node);
    value_of::<104>(&node);
    value_of::<105>(&node);
    value_of::<256>(&node);
    value_of::<257>(&node);
    value_of::<1023>(&node);
    value_of::<1024>(&node);
    value_of::<1025>(&node);
}

#[test]
fn small_samples_are_held_in_any_number_and_each_stays_what_it_was() {
    let dir = TempDir::new("topic-small-held");
    let node = node(&dir);
    let publisher = node.topic::<[u64; 8]>("/s").unwrap().depth(4).publisher().unwrap();
    let mut sub = node.topic::<[u64; 8]>("/s").unwrap().borrows(2).subscriber().unwrap();
    let mut next = |held: &mut Vec<Sample<[u64; 8]>>| {
        publisher.publish(&[publisher.published(); 8]).unwrap();
        held.push(sub.receive().unwrap().unwrap());
    };
    let mut held = Vec::new();
    for i in 0..600 {
        next(&mut held);
        // Some go early, so that their memory is used again between that of others.
        if i % 3 == 0 {
            held.swap_remove(i % held.len());
        }
    }
    let mut seen: Vec<u64> = held.iter().map(Sample::seq).collect();
    assert!(held.iter().all(|s| **s == [s.seq(); 8] && !s.is_borrowed()));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 400);
    drop((sub, publisher, node));
    assert!(held.iter().all(|s| **s == [s.seq(); 8]), "after its subscriber");
    let last = held.split_off(200);
    std::thread::spawn(move || drop(held)).join().unwrap();
    assert!(last.iter().all(|s| **s == [s.seq(); 8]), "after others of its subscriber");
}

#[test]
fn a_loan_dropped_unpublished_is_free_again() {
    let dir = TempDir::new("topic-loan");
    let node = node(&dir);
    let topic = node.topic::<Image>("/i").unwrap().depth(1).memory_bytes_max(500_000);
    let publisher = topic.publisher().unwrap();
    for _ in 0..100 {
        drop(publisher.loan().unwrap());
    }
    let loans: Vec<_> = (0..).map_while(|_| publisher.loan().ok()).collect();
    assert!(loans.len() >= 3, "{}", loans.len());
    assert_eq!(publisher.loan().unwrap_err().kind(), ErrorKind::OutOfMemory);
    drop(loans);
    publisher.loan().unwrap().publish().unwrap();
}

#[test]
fn slices_and_bytes_of_any_length_arrive_whole() {
    let dir = TempDir::new("topic-slices");
    let node = node(&dir);
    let publisher = node.topic::<[u8]>("/b").unwrap().depth(8).publisher().unwrap();
    let mut sub = node.topic::<[u8]>("/b").unwrap().subscriber().unwrap();
    for len in [0, 1, 7, 8, 9, 103, 104, 105, 4096, 70_000, 300_000, 5] {
        let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        publisher.publish(&data).unwrap();
        assert_eq!(&*sub.receive().unwrap().unwrap(), &data[..]);
    }
    let points = node.topic::<[Pose]>("/p").unwrap().publisher().unwrap();
    let mut sub = node.topic::<[Pose]>("/p").unwrap().subscriber().unwrap();
    let mut loan = points.loan_slice(1000).unwrap();
    loan[999].x = 5.0;
    loan.publish().unwrap();
    let got = sub.receive().unwrap().unwrap();
    assert_eq!((got.len(), got[999].x), (1000, 5.0));
}

#[test]
fn a_late_joiner_gets_the_history_it_asked_for() {
    let dir = TempDir::new("topic-history");
    let node = node(&dir);
    let publisher = node.topic::<u64>("/n").unwrap().depth(8).publisher().unwrap();
    for i in 0..20 {
        publisher.publish(&i).unwrap();
    }
    let read = |history| {
        let mut sub = node.topic::<u64>("/n").unwrap().history(history).subscriber().unwrap();
        std::iter::from_fn(|| sub.receive().unwrap().map(|s| *s)).collect::<Vec<_>>()
    };
    assert_eq!(read(0), []);
    assert_eq!(read(3), [17, 18, 19]);
    assert_eq!(read(100), [12, 13, 14, 15, 16, 17, 18, 19]);
    // A publisher that left is still readable while the topic has members.
    let _keeper = node.topic::<u64>("/n").unwrap().subscriber().unwrap();
    drop(publisher);
    assert_eq!(read(2), [18, 19]);
}

#[test]
fn several_publishers_are_merged_in_turn_and_their_comings_and_goings_reported() {
    let dir = TempDir::new("topic-several");
    let (a, b) = (node(&dir), node(&dir));
    let mut sub = a.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let p = a.topic::<u64>("/n").unwrap().publisher().unwrap();
    let q = b.topic::<u64>("/n").unwrap().publisher().unwrap();
    for i in 0..10 {
        p.publish(&i).unwrap();
        q.publish(&(100 + i)).unwrap();
    }
    let mut got = [Vec::new(), Vec::new()];
    while let Some(s) = sub.receive().unwrap() {
        got[usize::from(s.publisher() == q.id())].push(*s);
    }
    assert_eq!(got[0], (0..10).collect::<Vec<_>>());
    assert_eq!(got[1], (100..110).collect::<Vec<_>>());
    let left = q.id();
    q.publish(&1).unwrap();
    drop(q);
    assert_eq!(*sub.receive().unwrap().unwrap(), 1, "what it sent before leaving counts");
    assert!(sub.receive().unwrap().is_none());
    let events: Vec<_> = std::iter::from_fn(|| sub.next_event()).collect();
    assert_eq!(events.last(), Some(&Event::PublisherLeft(left)));
    assert_eq!(events.len(), 3);
}

#[test]
fn who_left_in_order_left_also_if_its_process_ended_before_anybody_looked() {
    let dir = TempDir::new("topic-left");
    let (a, b) = (node(&dir), node(&dir));
    let mut sub = a.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let publisher = b.topic::<u64>("/n").unwrap().publisher().unwrap();
    publisher.publish(&1).unwrap();
    assert_eq!(*sub.receive().unwrap().unwrap(), 1);
    let id = publisher.id();
    drop((publisher, b));
    assert!(sub.receive().unwrap().is_none());
    let events: Vec<_> = std::iter::from_fn(|| sub.next_event()).collect();
    assert_eq!(events, [Event::PublisherJoined(id), Event::PublisherLeft(id)]);
}

#[test]
fn another_type_is_a_mismatch_that_names_the_difference() {
    let dir = TempDir::new("topic-mismatch");
    let node = node(&dir);
    let _p = node.topic::<u64>("/n").unwrap().depth(4).publisher().unwrap();
    let e = node.topic::<f64>("/n").unwrap().subscriber().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert!(e.to_string().contains("type is u64, this program has f64"), "{e}");
    let e = node.topic::<[u64; 2]>("/n").unwrap().subscriber().unwrap_err();
    assert!(e.to_string().contains("size is 8, this program has 16"), "{e}");
    for depth in [0, 1 << 40, 65_537] {
        let e = node.topic::<u64>("/m").unwrap().depth(depth).publisher().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{depth}");
    }
    assert_eq!(node.topic::<u64>("/a//b").unwrap_err().kind(), ErrorKind::InvalidName);
    let borrows = |n| node.topic::<u64>("/n").unwrap().borrows(n).subscriber();
    assert_eq!(borrows(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(borrows(65).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn the_last_member_takes_the_topic_with_it_and_clean_leaves_nothing() {
    let dir = TempDir::new("topic-last");
    let n = node(&dir);
    let domain = Domain::of(&settings(&dir)).unwrap();
    let p = n.topic::<Image>("/i").unwrap().publisher().unwrap();
    let s = n.topic::<Image>("/i").unwrap().subscriber().unwrap();
    p.publish(&[1; 100_000]).unwrap();
    let info = &domain.topics().unwrap()[0];
    assert_eq!((info.name.as_str(), info.publishers[0].messages), ("/i", 1));
    assert_eq!(info.publishers[0].payload_bytes, 100_000);
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    drop(p);
    assert_eq!(domain.topics().unwrap().len(), 1);
    drop(s);
    assert_eq!(domain.topics().unwrap().len(), 0);
    assert!(!domain.clean().unwrap().domain_removed, "a node lives");
    drop(n);
    assert!(domain.clean().unwrap().domain_removed);
    assert!(!dir.join("root").exists());
    assert!(!domain.clean().unwrap().domain_removed, "nothing left to remove");
}

/// Whether a subscriber that sleeps between the messages of two publishers, one a millisecond,
/// loses none of them: it would if nobody woke it, as each ring holds 32 ms of them.
fn wakes_for_each_message() -> bool {
    let dir = TempDir::new("topic-wake");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/n").unwrap().subscriber().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let p = n.topic::<u64>("/n").unwrap().publisher().unwrap();
            let q = n.topic::<u64>("/n").unwrap().publisher().unwrap();
            for i in 0..50 {
                std::thread::sleep(Duration::from_millis(1));
                if i % 2 == 0 {
                    p.publish(&i).unwrap()
                } else {
                    q.publish(&i).unwrap()
                };
            }
        });
        let mut next = [0, 1];
        while next != [50, 51] {
            if let Some(s) = sub.receive_timeout(Duration::from_secs(20)).unwrap() {
                let turn = (*s % 2) as usize;
                assert_eq!(*s, next[turn] + 2 * s.lost_before());
                next[turn] = *s + 2;
            }
        }
    });
    sub.lost() == 0
}

#[test]
fn a_sleeping_subscriber_wakes_for_a_message_with_and_without_waitv() {
    for waitv in [true, false] {
        crate::os::sleep::futex::set_waitv_for_tests(waitv);
        // One that does not run for as long loses some as well: not every time.
        assert!((0..20).any(|_| wakes_for_each_message()), "waitv: {waitv}");
        crate::os::sleep::futex::set_waitv_for_tests(true);
    }
}

#[test]
fn waiting_ends_at_its_deadline() {
    let dir = TempDir::new("topic-deadline");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let start = crate::now_ns();
    assert!(sub.receive_timeout(Duration::from_millis(30)).unwrap().is_none());
    assert!(crate::now_ns() - start >= 30_000_000);
}

/// The publisher is told of a subscriber before that has said where it begins: stopped in between,
/// it must not begin with messages that are gone, nor lose those with which it begins.
#[test]
fn a_reliable_subscriber_loses_nothing_of_its_history_while_it_joins() {
    use super::membership::{Ports, Topic, link_subscriber};
    use super::subscriber::sources::history;
    use super::subscriber::sources::source::{Source, too_many_borrows};
    use crate::sync::Ordering::Relaxed;

    for while_it_joins in [1, 40] {
        let dir = TempDir::new("topic-join");
        let node = node(&dir);
        let builder = node.topic::<u64>("/t").unwrap().depth(16);
        let publisher = builder.reliable_timeout(Duration::ZERO).publisher().unwrap();
        let send = |n| (0..n).take_while(|_| publisher.publish(&7).is_ok()).count() as u64;
        assert_eq!(send(20), 20);
        let name = crate::domain::name::TopicName::new("/t").unwrap();
        let (topic, joining) = Topic::join(&node, name, None).unwrap();
        let port = node.allocate_port(8, true).unwrap();
        link_subscriber(&topic, port).unwrap();
        topic.ring_bell(Ports::Subscribers);
        let mut source = Source::open(&topic, publisher.id(), too_many_borrows("/t", 1)).unwrap();
        history::begin(std::slice::from_mut(&mut source), 8);
        let head = 20 + send(while_it_joins);
        let own = node.own_port(port).unwrap();
        source.show(0, own.view());
        history::begin(std::slice::from_mut(&mut source), 8);
        source.begin(own.view());
        let begins = own.view().source(0).cursor.load(Relaxed);
        assert_eq!(begins, head - 8);
        assert_eq!(head + send(100), begins + 16, "it overwrites no message from {begins} on");
        drop(joining);
    }
}

/// A publisher killed after the commit of its first message and before it was counted.
#[test]
fn a_first_message_that_was_committed_but_not_counted_is_received() {
    use std::os::unix::fs::FileExt;

    let dir = TempDir::new("topic-uncounted");
    let node = node(&dir);
    let topic = || node.topic::<Image>("/t").unwrap();
    let mut subscriber = topic().subscriber().unwrap();
    let publisher = topic().publisher().unwrap();
    let ring = membership::entry::ring_path(&dir.join("root/default/topics/t"), publisher.id());
    assert_eq!(publisher.publish(&[7; 100_000]).unwrap(), 0);
    drop(publisher);
    let ring = std::fs::OpenOptions::new().write(true).open(ring).unwrap();
    ring.write_all_at(&[0; 8], ring::layout::ring::HEAD as u64).unwrap();
    // Whoever joins removes what nobody needs.
    let _other = topic().publisher().unwrap();
    let image = subscriber.receive().unwrap().expect("it was committed");
    assert!(image.iter().all(|byte| *byte == 7));
    while let Some(event) = subscriber.next_event() {
        assert!(!matches!(event, Event::PublisherCorrupt { .. }), "{event:?}");
    }
}
