//! Topics under threads, for the sanitizers: nodes, publishers, subscribers and samples in threads
//! of one process, over real files.
//!
//! The threads share data through the library, our own atomics and an explicit `join` only:
//! ThreadSanitizer does not see into the standard library's locks and channels, nor what the end
//! of a scope waits for. It does not see either that a publisher's and a subscriber's mapping show
//! the same memory: the race on a chunk that is copied unacknowledged and checked afterwards
//! (`RawSample::copied`), which is on purpose, stays unseen, and so would a forbidden one. That is
//! why every payload here is checked for being whole.

use std::thread;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use crate::node::Node;
use crate::os::fixture::{TempDir, until};
use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::topic::*;
use crate::types::Message;
use crate::{Domain, NodeBuilder};

const PUBLISHERS: u32 = 3;
const SUBSCRIBERS: u32 = 3;
/// Per publisher.
const MESSAGES: u64 = 2000;

/// Inside the entry, and as a chunk.
type Small = [u64; 8];
type Large = [u64; 1024];

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("threads")
}

fn node(dir: &TempDir) -> Node {
    settings(dir).open().unwrap()
}

/// Checks that the words of a payload are all the same, and those of message `seq` of anybody.
fn check(payload: &[u64], seq: u64) {
    assert!(payload.iter().all(|word| *word == payload[0]), "message {seq} is torn");
    assert_eq!(payload[0] & 0xffff_ffff, seq);
}

fn finish(dir: &TempDir) {
    let report = Domain::of(&settings(dir)).unwrap().clean().unwrap();
    assert!(report.domain_removed, "{report:?}");
}

fn join_all<'a, T: 'a>(threads: impl IntoIterator<Item = ScopedJoinHandle<'a, T>>) {
    threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
}

fn in_a_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// Publishes everything once all subscribers are there.
fn publish_all<T: Message>(node: &Node, ready: &AtomicU32, payload: impl Fn(u64) -> T) {
    let publisher = node.topic::<T>("/t").unwrap().depth(4).publisher().unwrap();
    until(|| ready.load(Acquire) == SUBSCRIBERS);
    for seq in 0..MESSAGES {
        assert_eq!(publisher.publish(&payload(seq)).unwrap(), seq);
        if seq % 64 == 0 {
            thread::yield_now();
        }
    }
}

/// Receives until all publishers have left; every message is received or counted as lost.
fn receive_all<T: Message>(
    node: &Node,
    ready: &AtomicU32,
    check: impl Fn(&mut Vec<Sample<T>>, Sample<T>),
) {
    let mut subscriber = node.topic::<T>("/t").unwrap().depth(4).subscriber().unwrap();
    ready.fetch_add(1, Release);
    let (mut left, mut received) = (0, 0);
    let mut next = std::collections::BTreeMap::new();
    let mut held = Vec::new();
    while left < PUBLISHERS {
        let sample = subscriber.receive_timeout(Duration::from_secs(60)).unwrap();
        while let Some(event) = subscriber.next_event() {
            match event {
                Event::PublisherJoined(_) => {}
                Event::PublisherLeft(_) => left += 1,
                event => panic!("{event:?}"),
            }
        }
        let Some(sample) = sample else { continue };
        let expected = next.entry(sample.publisher()).or_insert(0);
        assert_eq!(sample.seq(), *expected + sample.lost_before());
        *expected = sample.seq() + 1;
        received += 1;
        check(&mut held, sample);
    }
    assert_eq!(received + subscriber.lost(), u64::from(PUBLISHERS) * MESSAGES);
}

fn each_a_node<const WORDS: usize>(dir: &TempDir) {
    let ready = AtomicU32::new(0);
    thread::scope(|scope| {
        let ready = &ready;
        let publishers = (0..u64::from(PUBLISHERS)).map(|i| {
            scope.spawn(move || publish_all(&node(dir), ready, |seq| [i << 32 | seq; WORDS]))
        });
        let subscribers = (0..SUBSCRIBERS).map(|_| {
            scope.spawn(|| {
                receive_all::<[u64; WORDS]>(&node(dir), ready, |_, s| check(&s[..], s.seq()));
            })
        });
        join_all(publishers.chain(subscribers).collect::<Vec<_>>());
    });
    finish(dir);
}

#[test]
fn several_publishers_and_subscribers_each_a_node() {
    each_a_node::<8>(&TempDir::new("threads-inline"));
}

#[test]
fn several_publishers_and_subscribers_of_values_that_go_by_memcpy() {
    each_a_node::<100>(&TempDir::new("threads-values"));
}

#[test]
fn one_node_for_all_threads_with_borrows_held() {
    let dir = TempDir::new("threads-borrowed");
    let ready = AtomicU32::new(0);
    let node = node(&dir);
    thread::scope(|scope| {
        let (node, ready) = (&node, &ready);
        let publishers = (0..u64::from(PUBLISHERS))
            .map(|i| scope.spawn(move || publish_all(node, ready, |seq| [i << 32 | seq; 1024])));
        let subscribers = (0..SUBSCRIBERS).map(|_| {
            scope.spawn(|| {
                receive_all::<Large>(node, ready, |held, sample| {
                    held.push(sample);
                    if held.len() > 5 {
                        // Checked when it has been held for a while.
                        let sample = held.swap_remove(held[0][0] as usize % 5);
                        check(&sample[..], sample.seq());
                    }
                });
            })
        });
        join_all(publishers.chain(subscribers).collect::<Vec<_>>());
    });
    drop(node);
    finish(&dir);
}

#[test]
fn samples_are_read_and_dropped_in_other_threads() {
    let dir = TempDir::new("threads-samples");
    let (publishing, subscribing) = (node(&dir), node(&dir));
    let topic = publishing.topic::<Large>("/t").unwrap().depth(2).memory_bytes_max(1 << 20);
    let publisher = topic.publisher().unwrap();
    let mut subscriber = subscribing.topic::<Large>("/t").unwrap().borrows(4).subscriber().unwrap();
    let done = AtomicU32::new(0);
    thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let publisher = publisher;
            let mut last = false;
            for seq in 0.. {
                let mut loan = publisher.loan().unwrap();
                loan.fill(seq);
                assert_eq!(loan.publish().unwrap(), seq);
                if std::mem::replace(&mut last, done.load(Relaxed) == 1) {
                    return;
                }
            }
        });
        let mut readers = std::collections::VecDeque::new();
        for _ in 0..300 {
            if readers.len() == 3 {
                join_all(readers.pop_front());
            }
            let sample = subscriber.receive_timeout(Duration::from_secs(60)).unwrap().unwrap();
            readers.push_back(scope.spawn(move || check(&sample[..], sample.seq())));
        }
        done.store(1, Relaxed);
        join_all(readers);
        join_all([publishing]);
    });
    // The last samples may outlive their subscriber, in a thread that ends after it.
    let sample = subscriber.receive().unwrap().unwrap();
    let reader = thread::spawn(move || check(&sample[..], sample.seq()));
    drop((subscriber, subscribing));
    reader.join().unwrap();
    drop(publishing);
}

#[test]
fn small_samples_are_dropped_in_other_threads_while_their_memory_is_used_again() {
    let dir = TempDir::new("threads-small");
    let node = node(&dir);
    let publisher = node.topic::<Small>("/t").unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<Small>("/t").unwrap().borrows(2).subscriber().unwrap();
    let mut next = || {
        publisher.publish(&[publisher.published(); 8]).unwrap();
        subscriber.receive().unwrap().unwrap()
    };
    thread::scope(|scope| {
        let mut readers = std::collections::VecDeque::new();
        for _ in 0..300 {
            if readers.len() == 3 {
                join_all(readers.pop_front());
            }
            let sample = next();
            readers.push_back(scope.spawn(move || check(&sample[..], sample.seq())));
            // Beside that thread.
            let sample = next();
            check(&sample[..], sample.seq());
        }
        join_all(readers);
    });
    let sample = next();
    let reader = thread::spawn(move || check(&sample[..], sample.seq()));
    drop(subscriber);
    reader.join().unwrap();
}

#[test]
fn a_publisher_passes_from_thread_to_thread_and_its_token_with_it() {
    let dir = TempDir::new("threads-token");
    let subscribing = node(&dir);
    let mut subscriber = subscribing.topic::<Small>("/t").unwrap().subscriber().unwrap();
    thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let open = || {
                let node = node(&dir);
                let publisher = node.topic::<Small>("/t").unwrap().publisher().unwrap();
                (node, publisher)
            };
            // Each thread ends as the holder of the token; the next one adopts it.
            let mut open = in_a_thread(open);
            for _ in 0..40 {
                open = in_a_thread(move || {
                    for _ in 0..50 {
                        let seq = open.1.published();
                        open.1.publish(&[seq; 8]).unwrap();
                    }
                    open
                });
            }
        });
        let mut next = 0;
        while next < 2000 {
            let Some(sample) = subscriber.receive_timeout(Duration::from_secs(60)).unwrap() else {
                match subscriber.next_event() {
                    None | Some(Event::PublisherJoined(_)) => continue,
                    Some(event) => panic!("{event:?} at message {next}"),
                }
            };
            check(&sample[..], sample.seq());
            assert_eq!(sample.seq(), next + sample.lost_before());
            next = sample.seq() + 1;
        }
        join_all([publishing]);
    });
}

#[test]
fn nodes_open_and_close_while_others_work_and_look() {
    let dir = TempDir::new("threads-nodes");
    let keeper = node(&dir);
    let beside = keeper.topic::<Small>("/t").unwrap().publisher().unwrap();
    let working = AtomicU32::new(4);
    thread::scope(|scope| {
        let (dir, working) = (&dir, &working);
        let workers = (0..4u64).map(|i| {
            scope.spawn(move || {
                for round in 0..12 {
                    let node = node(dir);
                    let topic = || node.topic::<Small>("/t").unwrap();
                    let publisher = topic().publisher().unwrap();
                    let mut subscriber = topic().subscriber().unwrap();
                    let own = publisher.id();
                    for seq in 0..20 {
                        publisher.publish(&[(i * 100 + round) << 32 | seq; 8]).unwrap();
                    }
                    let mut next = 0;
                    while next < 20 {
                        let sample = subscriber.receive_timeout(Duration::from_secs(60)).unwrap();
                        let Some(sample) = sample else { continue };
                        check(&sample[..], sample.seq());
                        if sample.publisher() == own {
                            assert_eq!(sample.seq(), next + sample.lost_before());
                            next = sample.seq() + 1;
                        }
                    }
                }
                working.fetch_sub(1, Release);
            })
        });
        let mut threads: Vec<_> = workers.collect();
        threads.push(scope.spawn(|| {
            let domain = Domain::of(&settings(dir)).unwrap();
            while working.load(Acquire) > 0 {
                let faults = domain.audit().unwrap().faults;
                assert_eq!(faults, Vec::<String>::new());
                domain.topics().unwrap();
                domain.nodes().unwrap();
            }
        }));
        for seq in 0.. {
            if working.load(Acquire) == 0 {
                break;
            }
            beside.publish(&[seq; 8]).unwrap();
            thread::yield_now();
        }
        join_all(threads);
    });
    drop((beside, keeper));
    finish(&dir);
}
