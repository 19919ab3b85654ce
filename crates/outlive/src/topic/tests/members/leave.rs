//! Members that leave: together, with a sample in hand, in a forked child.

use std::sync::Barrier;
use std::time::Duration;

use crate::node::Node;
use crate::os::fixture::{TempDir, fork_child};
use crate::os::time::deadline::Deadline;
use crate::topic::Event;
use crate::wait::member::Member;

type Image = [u8; 100_000];

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

#[test]
fn members_that_leave_together_leave_nothing() {
    let dir = TempDir::new("leave-together");
    let nodes = [node(&dir), node(&dir)];
    let topics = dir.join("root/default/topics");
    let (begin, ready, done) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let (begin, ready, done, other) = (&begin, &ready, &done, &nodes[1]);
        const ROUNDS: u32 = 3000;
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                begin.wait();
                let member = other.topic::<Image>("/t").unwrap().subscriber().unwrap();
                ready.wait();
                drop(member);
                done.wait();
            }
        });
        let mut left = 0;
        for _ in 0..ROUNDS {
            begin.wait();
            let member = nodes[0].topic::<Image>("/t").unwrap().depth(1).publisher().unwrap();
            drop(member.loan().unwrap().publish());
            ready.wait();
            drop(member);
            done.wait();
            left += std::fs::read_dir(&topics).unwrap().count();
        }
        assert_eq!(left, 0, "rounds of {ROUNDS} after which something was left");
    });
}

#[test]
fn a_leave_that_a_look_at_the_directory_has_passed_over_is_told() {
    let dir = TempDir::new("leave-passed-over");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/t").unwrap().subscriber().unwrap();
    let publisher = n.topic::<u64>("/t").unwrap().publisher().unwrap();
    publisher.publish(&1).unwrap();
    assert_eq!(*sub.receive().unwrap().unwrap(), 1);
    drop(publisher);
    // The look at the end of a long wait, before anybody has looked which publishers are over.
    sub.overslept(crate::wait::member::Overslept::Look);
    assert!(sub.receive().unwrap().is_none());
    let told =
        std::iter::from_fn(|| sub.next_event()).any(|e| matches!(e, Event::PublisherLeft(_)));
    assert!(told, "nobody says that it has left");
}

#[test]
fn a_dropped_reliable_subscriber_is_not_waited_for() {
    for attached in [true, false] {
        let dir = TempDir::new("leave-held");
        let n = node(&dir);
        let topic = || n.topic::<Image>("/t").unwrap().depth(2);
        let publisher = topic().reliable_timeout(Duration::ZERO).publisher().unwrap();
        let mut sub = topic().reliable(true).subscriber().unwrap();
        let send = |i| {
            publisher.loan().map(|mut loan| {
                loan.fill(i);
                loan.publish()
            })
        };
        send(1).unwrap().unwrap();
        let sample = sub.receive().unwrap().unwrap();
        let late = (!attached).then(|| topic().reliable_timeout(Duration::ZERO).publisher());
        drop(sub);
        for i in 2..20 {
            send(i).unwrap().unwrap();
            if let Some(Ok(late)) = &late {
                late.loan().unwrap().publish().unwrap();
            }
        }
        assert!(sample.is_borrowed() && sample.iter().all(|b| *b == 1));
    }
}

#[test]
fn a_forked_child_still_reads_an_inherited_sample() {
    let dir = TempDir::new("leave-fork");
    let n = node(&dir);
    let topic = || n.topic::<Image>("/t").unwrap();
    let publisher = topic().publisher().unwrap();
    let mut sub = topic().subscriber().unwrap();
    publisher.publish(&[7; 100_000]).unwrap();
    let sample = sub.receive().unwrap().unwrap();
    let mut both = Some((sub, &sample));
    let child = fork_child(|| {
        let Some((sub, sample)) = both.take() else { return 2 };
        drop(sub);
        i32::from(!sample.iter().all(|b| *b == 7))
    });
    assert_eq!(child.wait(), 0);
    drop(both);
    assert!(sample.iter().all(|b| *b == 7));
}

#[test]
fn an_end_that_nobody_has_looked_at_ends_a_wait_once() {
    let dir = TempDir::new("leave-event");
    let n = node(&dir);
    let mut subscriber = n.topic::<u64>("/t").unwrap().subscriber().unwrap();
    let publisher = n.topic::<u64>("/t").unwrap().publisher().unwrap();
    publisher.publish(&7).unwrap();
    assert_eq!(*subscriber.receive().unwrap().unwrap(), 7);
    drop(publisher);
    assert!(subscriber.receive().unwrap().is_none(), "it notices who left");
    let until = Deadline::in_ns(20_000_000_000);
    assert!(subscriber.receive_until(until).unwrap().is_none());
    assert!(!until.has_passed(), "there was an event to look at");
    // One that is not wanted keeps nobody awake.
    let soon = Deadline::in_ns(1_000_000);
    assert!(subscriber.receive_until(soon).unwrap().is_none());
    assert!(soon.has_passed());
    assert_eq!(std::iter::from_fn(|| subscriber.next_event()).count(), 2);
}
