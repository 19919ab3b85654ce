//! A clock that jumps, by the seam: no deadline hides a message, nobody is taken for dead, locks
//! stay with their owners.

use std::time::Duration;

use crate::ErrorKind;
use crate::node::Node;
use crate::os::fixture::TempDir;
use crate::os::time::clock::set_test_offset;
use crate::os::time::deadline::Deadline;
use crate::topic::*;

/// Jumps, ns: an hour ahead, a minute back, and home.
const JUMPS: [i64; 4] = [3_600_000_000_000, -60_000_000_000, 0, 1_000];

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

#[test]
fn nothing_is_lost_and_each_publishers_order_holds_while_the_clock_jumps() {
    let dir = TempDir::new("topic-clock");
    let node = node(&dir);
    let topic = || node.topic::<u64>("/t").unwrap().depth(64);
    let (a, b) = (topic().publisher().unwrap(), topic().publisher().unwrap());
    let mut plain = topic().reliable(true).subscriber().unwrap();
    let mut merged = topic().reliable(true).subscriber().unwrap();
    let mut next = [[0; 2]; 2];
    for i in 0..200u64 {
        set_test_offset(JUMPS[(i / 5 % 4) as usize]);
        assert_eq!((a.publish(&(2 * i)).unwrap(), b.publish(&(2 * i + 1)).unwrap()), (i, i));
        for (subscriber, next) in [&mut plain, &mut merged].into_iter().zip(&mut next) {
            for k in 0..2 {
                let got = if i % 2 == 0 || k == 0 {
                    subscriber.receive_in_order().unwrap()
                } else {
                    subscriber.receive_timeout(Duration::ZERO).unwrap()
                };
                let m = *got.expect("two were sent");
                assert_eq!(m / 2, next[m as usize % 2]);
                next[m as usize % 2] += 1;
            }
        }
    }
    set_test_offset(0);
    assert_eq!((plain.lost(), merged.lost()), (0, 0));
}

#[test]
fn stamps_of_one_publisher_never_go_back() {
    let dir = TempDir::new("topic-stamps");
    let node = node(&dir);
    let topic = || node.topic::<[u8]>("/t").unwrap().depth(16);
    let publisher = topic().publisher().unwrap();
    let mut subscriber = topic().subscriber().unwrap();
    let mut last = 0;
    // As a line of `os::tsc` that is slower than the one before; inline and in a chunk.
    for (shift, bytes) in [(0, 8), (5_000, 8), (0, 8), (9_000_000_000, 4096), (0, 4096), (0, 8)] {
        set_test_offset(shift);
        publisher.publish(&vec![1; bytes]).unwrap();
        let stamp = subscriber.receive().unwrap().unwrap().timestamp_ns();
        assert!(stamp >= last && stamp > 0, "{stamp} after {last}");
        last = stamp;
    }
    set_test_offset(0);
}

#[test]
fn a_deadline_that_a_jump_has_passed_hides_no_message() {
    let dir = TempDir::new("topic-deadline");
    let node = node(&dir);
    let publisher = node.topic::<u64>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<u64>("/t").unwrap().subscriber().unwrap();
    let deadline = Deadline::in_ns(60_000_000_000);
    publisher.publish(&5).unwrap();
    set_test_offset(JUMPS[0]);
    assert_eq!(subscriber.receive_until(deadline).unwrap().map(|m| *m), Some(5));
    while subscriber.next_event().is_some() {}
    assert!(subscriber.receive_until(deadline).unwrap().is_none());
    set_test_offset(0);
}

#[test]
fn a_publisher_that_waits_ends_by_its_own_timeout_whatever_the_clock_says() {
    let dir = TempDir::new("topic-waits");
    let node = node(&dir);
    let topic = || node.topic::<u64>("/t").unwrap().depth(2);
    let publisher = topic().reliable_timeout(Duration::from_millis(5)).publisher().unwrap();
    let mut subscriber = topic().reliable(true).subscriber().unwrap();
    for jump in JUMPS {
        set_test_offset(jump);
        let mut sent = 0;
        let error = loop {
            match publisher.publish(&sent) {
                Ok(_) => sent += 1,
                Err(e) => break e,
            }
        };
        assert_eq!((error.kind(), sent), (ErrorKind::Timeout, 2));
        for n in 0..sent {
            assert_eq!(subscriber.receive().unwrap().map(|m| *m), Some(n));
        }
    }
    set_test_offset(0);
    assert_eq!(subscriber.lost(), 0);
}

#[test]
fn a_jump_makes_nobody_dead_and_frees_no_lock() {
    let dir = TempDir::new("topic-alive");
    let (node, other) = (node(&dir), node(&dir));
    let publisher = node.topic::<u64>("/t").unwrap().publisher().unwrap();
    let mut subscriber = other.topic::<u64>("/t").unwrap().subscriber().unwrap();
    let mutex = node.mutex::<u64>("/m").unwrap();
    let watch = other.watch(node.id()).unwrap();
    let guard = mutex.lock().unwrap();
    for jump in JUMPS {
        set_test_offset(jump);
        assert!(watch.is_alive() && watch.seems_alive());
        assert!(!watch.wait(Duration::from_millis(2)), "nobody dies of a clock");
        assert_eq!(publisher.subscribers().unwrap(), 1);
        assert!(subscriber.receive().unwrap().is_none());
        while let Some(event) = subscriber.next_event() {
            assert!(matches!(event, Event::PublisherJoined(_)), "{event:?}");
        }
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                set_test_offset(jump);
                let mutex = other.mutex::<u64>("/m").unwrap();
                let error = mutex.lock_timeout(Duration::from_millis(2)).map(drop).unwrap_err();
                (error.kind(), mutex.try_lock().map(drop).unwrap_err().kind())
            });
            assert_eq!(taker.join().unwrap(), (ErrorKind::Timeout, ErrorKind::WouldBlock));
        });
    }
    set_test_offset(0);
    drop(guard);
    drop(mutex.lock().unwrap());
    drop(node);
    drop((publisher, mutex));
    assert!(!watch.is_alive());
}
