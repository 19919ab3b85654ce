//! What a queue promises, within one process.
//! Begin here; `threads` is also for the sanitizers.

use std::time::Duration;

use super::*;
use crate::node::Node;
use crate::os::fixture::{TempDir, in_a_child};
use crate::os::time::deadline::Deadline;
use crate::types::{Headed, Message};
use crate::{Domain, ErrorKind, NodeBuilder};

mod acknowledge;
mod descriptor;
mod failures;
mod growth;
mod members;
mod threads;

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

fn node(dir: &TempDir) -> Node {
    settings(dir).open().unwrap()
}

fn drain<T: Message + Copy>(consumer: &mut Consumer<T>) -> Vec<T> {
    let mut got = Vec::new();
    while let Some(m) = consumer.receive().unwrap() {
        got.push(*m);
    }
    got
}

/// The next message; events do not count.
fn wait<T: crate::Payload + ?Sized>(consumer: &mut Consumer<T>) -> Received<'_, T> {
    loop {
        let deadline = Deadline::in_ns(20_000_000_000);
        if consumer.wait_for_message(deadline).unwrap() {
            return consumer.receive().unwrap().unwrap();
        }
        assert!(consumer.next_event().is_some(), "neither message nor event");
    }
}

/// Files of queue `q`.
fn files(dir: &TempDir) -> Vec<String> {
    let path = dir.join("root/default/queues/q");
    let mut names: Vec<_> = std::fs::read_dir(path)
        .map(|d| d.map(|e| e.unwrap().file_name().into_string().unwrap()).collect())
        .unwrap_or_default();
    names.sort();
    names
}

fn lanes(dir: &TempDir) -> usize {
    files(dir).iter().filter(|n| n.starts_with("lane")).count()
}

#[test]
fn messages_of_every_kind_arrive_in_order() {
    let dir = TempDir::new("queue-kinds");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("/small").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("/small").unwrap().producer().unwrap();
    for i in 0..5000 {
        producer.send(&i).unwrap();
    }
    assert_eq!(drain(&mut consumer), (0..5000).collect::<Vec<_>>());

    let mut consumer = n.queue::<[u64; 100]>("/large").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u64; 100]>("/large").unwrap().producer().unwrap();
    for i in 0..500 {
        producer.send(&[i; 100]).unwrap();
    }
    assert_eq!(drain(&mut consumer), (0..500).map(|i| [i; 100]).collect::<Vec<_>>());

    let bytes = n.queue::<[u8]>("/bytes").unwrap();
    let mut consumer = bytes.clone().consumer().unwrap();
    let mut producer = bytes.producer().unwrap();
    for i in 0..500usize {
        producer.send(&vec![i as u8; i * 7]).unwrap();
    }
    for i in 0..500usize {
        let m = consumer.receive().unwrap().unwrap();
        assert_eq!((&*m, m.producer()), (&vec![i as u8; i * 7][..], producer.id()));
    }

    let mut consumer = n.queue::<[u128]>("/aligned").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u128]>("/aligned").unwrap().producer().unwrap();
    for i in 0..500u128 {
        producer.send(&vec![i; i as usize % 9]).unwrap();
    }
    for i in 0..500u128 {
        assert_eq!(&*consumer.receive().unwrap().unwrap(), &vec![i; i as usize % 9][..]);
    }

    let mut consumer = n.queue::<u8>("/tiny").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u8>("/tiny").unwrap().producer().unwrap();
    for i in 0..50_000u32 {
        producer.send(&(i as u8)).unwrap();
    }
    assert_eq!(drain(&mut consumer), (0..50_000u32).map(|i| i as u8).collect::<Vec<_>>());
}

#[test]
fn without_a_live_consumer_a_send_says_owner_died_and_sends_nothing() {
    let dir = TempDir::new("queue-nobody");
    let n = node(&dir);
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    let kind = |r: crate::Result<()>| r.unwrap_err().kind();
    assert_eq!(kind(producer.send(&1)), ErrorKind::OwnerDied);
    assert_eq!(producer.try_send(&1).unwrap_err().kind(), ErrorKind::OwnerDied);
    assert_eq!(kind(producer.send_batch(&[1, 2])), ErrorKind::OwnerDied);
    assert_eq!(producer.reserve().unwrap_err().kind(), ErrorKind::OwnerDied);
    assert!(!producer.has_consumer());
    assert!(!producer.wait_for_consumer(Duration::from_millis(5)).unwrap());
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    assert!(producer.wait_for_consumer(Duration::from_secs(20)).unwrap());
    producer.send(&2).unwrap();
    assert_eq!(drain(&mut consumer), [2]);
    drop(consumer);
    assert_eq!(kind(producer.send(&3)), ErrorKind::OwnerDied);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut consumer), []);
    producer.send(&4).unwrap();
    assert_eq!(drain(&mut consumer), [4]);
}

#[test]
fn there_is_one_consumer_at_a_time_and_the_next_one_goes_on() {
    let dir = TempDir::new("queue-one");
    let (a, b) = (node(&dir), node(&dir));
    let mut producer = a.queue::<u64>("q").unwrap().producer().unwrap();
    let mut first = a.queue::<u64>("q").unwrap().consumer().unwrap();
    for other in [&a, &b] {
        let e = other.queue::<u64>("q").unwrap().consumer().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::ConsumerExists, "{e}");
    }
    producer.send_batch(&[0, 1, 2, 3, 4]).unwrap();
    for i in 5..30 {
        producer.send(&i).unwrap();
    }
    for i in 0..27 {
        let m = first.receive().unwrap().unwrap();
        assert_eq!(*m, i);
    }
    // In hand when it goes: received again.
    std::mem::forget(first.receive().unwrap().unwrap());
    drop(first);
    let mut second = b.queue::<u64>("q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut second), [27, 28, 29]);
}

#[test]
fn a_take_over_at_every_message_loses_and_repeats_nothing() {
    let dir = TempDir::new("queue-each");
    let n = node(&dir);
    let mut small = n.queue::<u32>("q").unwrap().producer().unwrap();
    let mut consumer = n.queue::<u32>("q").unwrap().consumer().unwrap();
    let (mut next, mut got) = (0u32, 0u32);
    for round in 0..60u32 {
        for _ in 0..round % 7 {
            small.send(&next).unwrap();
            next += 1;
        }
        if round % 3 == 0 {
            let batch: Vec<_> = (next..next + round).collect();
            small.send_batch(&batch).unwrap();
            next += round;
        }
        for _ in 0..round {
            if let Some(m) = consumer.receive().unwrap() {
                assert_eq!(*m, got);
                got += 1;
            }
        }
        drop(consumer);
        consumer = n.queue::<u32>("q").unwrap().consumer().unwrap();
    }
    assert_eq!(drain(&mut consumer), (got..next).collect::<Vec<_>>());
}

#[test]
fn a_message_larger_than_the_bound_is_refused_and_one_that_needs_all_of_it_goes_through() {
    let dir = TempDir::new("queue-large");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u8]>("q").unwrap().bound_bytes(256 << 10).producer().unwrap();
    assert_eq!(producer.send(&vec![0; 256 << 10]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    for i in 0..50u8 {
        producer.send(&[i; 100]).unwrap();
        // There is no room beside a message that is not received yet.
        let e = producer.try_send(&vec![i; (128 << 10) + 1000]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::WouldBlock);
        assert_eq!(consumer.receive().unwrap().unwrap().len(), 100);
        producer.send(&vec![i; (128 << 10) + 1000]).unwrap();
        let m = consumer.receive().unwrap().unwrap();
        assert!(m.len() == (128 << 10) + 1000 && m.iter().all(|b| *b == i));
        drop(m);
        assert!(consumer.receive().unwrap().is_none());
    }
    for bound in [0, 100, 4095] {
        let e = n.queue::<[u8]>("q").unwrap().bound_bytes(bound).producer().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{bound}");
    }
    let e = n.queue::<[u64; 10_000]>("p").unwrap().bound_bytes(80_000).producer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_blocked_send_goes_on_when_the_consumer_reads() {
    let dir = TempDir::new("queue-blocked");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().bound_bytes(16 << 10).producer().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for i in 0..200_000 {
                producer.send(&i).unwrap();
            }
        });
        for i in 0..200_000 {
            assert_eq!(*wait(&mut consumer), i);
            if i % 50_000 == 0 {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
}

#[test]
fn a_blocked_send_is_told_when_the_consumer_leaves() {
    let dir = TempDir::new("queue-leaves");
    let n = node(&dir);
    let consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().bound_bytes(16 << 10).producer().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(consumer);
        });
        let e = loop {
            if let Err(e) = producer.send(&1) {
                break e;
            }
        };
        assert_eq!(e.kind(), ErrorKind::OwnerDied);
    });
}

#[test]
fn a_sleeping_consumer_wakes_with_and_without_waitv() {
    for waitv in [true, false] {
        crate::os::sleep::futex::set_waitv_for_tests(waitv);
        let dir = TempDir::new("queue-wake");
        let n = node(&dir);
        let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut p = n.queue::<u64>("q").unwrap().producer().unwrap();
                let mut q = n.queue::<u64>("q").unwrap().producer().unwrap();
                for i in 0..50 {
                    std::thread::sleep(Duration::from_millis(1));
                    if i % 2 == 0 {
                        p.send(&i).unwrap()
                    } else {
                        q.send(&i).unwrap()
                    };
                }
            });
            let mut next = [0, 1];
            while next != [50, 51] {
                if let Some(m) = consumer.receive_timeout(Duration::from_secs(20)).unwrap() {
                    let turn = (*m % 2) as usize;
                    assert_eq!(*m, next[turn]);
                    next[turn] += 2;
                }
            }
        });
        crate::os::sleep::futex::set_waitv_for_tests(true);
    }
}

#[test]
fn each_turn_of_two_that_wait_for_each_other_ends_by_a_wake() {
    // Without wakes a turn lasts as long as a sleep does: seconds.
    const TURNS: u64 = 60;
    let dir = TempDir::new("queue-turns");
    let n = node(&dir);
    let answer = |from: &str, to: &str, first: bool| {
        let mut consumer = n.queue::<u64>(from).unwrap().consumer().unwrap();
        let mut producer = n.queue::<u64>(to).unwrap().producer().unwrap();
        producer.wait_for_consumer(Duration::from_secs(20)).unwrap();
        let mut turn = 0;
        if first {
            producer.send(&turn).unwrap();
        }
        while turn < TURNS {
            if let Some(m) = consumer.receive_timeout(Duration::from_secs(20)).unwrap() {
                turn = *m + 1;
                // By now the other one sleeps.
                std::thread::sleep(Duration::from_millis(2));
                // The last answer may come after the other one has gone.
                let sent = producer.send(&turn);
                assert!(sent.is_ok() || turn >= TURNS, "{sent:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| answer("a", "b", true));
        scope.spawn(|| answer("b", "a", false));
    });
}

#[test]
fn a_wait_set_waits_for_queues_with_and_without_waitv_and_with_a_descriptor() {
    use std::os::unix::net::UnixStream;
    for (waitv, foreign) in [(true, false), (false, false), (true, true)] {
        crate::os::sleep::futex::set_waitv_for_tests(waitv);
        let dir = TempDir::new("queue-set");
        let n = node(&dir);
        let mut small = n.queue::<u64>("a").unwrap().consumer().unwrap();
        let mut bytes = n.queue::<[u8]>("b").unwrap().consumer().unwrap();
        let pair = UnixStream::pair().unwrap();
        let mut set = crate::WaitSet::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                let mut p = n.queue::<u64>("a").unwrap().producer().unwrap();
                let mut q = n.queue::<[u8]>("b").unwrap().producer().unwrap();
                for i in 0..40 {
                    std::thread::sleep(Duration::from_millis(1));
                    if i % 2 == 0 {
                        p.send(&i).unwrap()
                    } else {
                        q.send(&[i as u8]).unwrap()
                    };
                }
            });
            let mut got = [0, 0];
            while got != [20, 20] {
                let mut readable = crate::Descriptor::readable(&pair.0);
                let mut list: Vec<&mut dyn crate::Waitable> = vec![&mut small, &mut bytes];
                if foreign {
                    list.push(&mut readable);
                }
                let ready: Vec<_> = set.wait(&mut list, Duration::from_secs(20)).unwrap().collect();
                assert!(!ready.is_empty());
                for i in ready {
                    match i {
                        0 => got[0] += drain(&mut small).len(),
                        _ => {
                            while bytes.receive().unwrap().is_some() {
                                got[1] += 1;
                            }
                        }
                    }
                }
            }
        });
        crate::os::sleep::futex::set_waitv_for_tests(true);
    }
}

#[test]
fn waiting_ends_at_its_deadline() {
    let dir = TempDir::new("queue-deadline");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let start = crate::now_ns();
    assert!(consumer.receive_timeout(Duration::from_millis(30)).unwrap().is_none());
    assert!(crate::now_ns() - start >= 30_000_000);
}

#[test]
fn a_departed_producer_is_drained_and_its_lane_removed() {
    let dir = TempDir::new("queue-departed");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    let id = producer.id();
    for i in 0..3000 {
        producer.send(&i).unwrap();
    }
    drop(producer);
    assert!(lanes(&dir) > 0, "unread messages stay");
    assert_eq!(drain(&mut consumer), (0..3000).collect::<Vec<_>>());
    let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
    assert_eq!(events, [Event::ProducerJoined(id), Event::ProducerLeft(id)]);
    assert_eq!(lanes(&dir), 0);
}

#[test]
fn unread_messages_outlive_all_members_and_the_last_one_takes_an_empty_queue_with_it() {
    let dir = TempDir::new("queue-last");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    for i in 0..10 {
        producer.send(&i).unwrap();
    }
    assert_eq!(*consumer.receive().unwrap().unwrap(), 0);
    drop(consumer);
    drop(producer);
    assert_eq!(lanes(&dir), 1);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut consumer), (1..10).collect::<Vec<_>>());
    drop(consumer);
    assert_eq!(files(&dir), [""; 0]);
    assert!(!dir.join("root/default/queues/q").exists());
}

#[test]
fn a_slot_is_sent_when_committed_and_not_when_dropped() {
    let dir = TempDir::new("queue-slot");
    let n = node(&dir);
    let mut consumer = n.queue::<[u32]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u32]>("q").unwrap().producer().unwrap();
    for i in 0..100 {
        producer.reserve_slice(1000).unwrap().fill(99);
        let mut slot = producer.reserve_slice(i).unwrap();
        slot.fill(i as u32);
        slot.commit();
    }
    for i in 0..100 {
        assert_eq!(&*consumer.receive().unwrap().unwrap(), vec![i as u32; i]);
    }
    assert!(consumer.receive().unwrap().is_none());

    let mut consumer = n.queue::<u64>("p").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("p").unwrap().producer().unwrap();
    producer.send(&1).unwrap();
    let mut slot = producer.reserve().unwrap();
    *slot = 2;
    slot.commit();
    *producer.reserve().unwrap() = 77;
    producer.send(&3).unwrap();
    assert_eq!(drain(&mut consumer), [1, 2, 3]);
    let huge = producer.reserve_slice(usize::MAX).unwrap_err();
    assert_eq!(huge.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn batches_are_received_one_by_one_in_slices_or_into_a_vector() {
    let dir = TempDir::new("queue-batch");
    let n = node(&dir);
    let mut consumer = n.queue::<[u16; 3]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u16; 3]>("q").unwrap().producer().unwrap();
    let all: Vec<[u16; 3]> = (0..1000).map(|i| [i, i + 1, i + 2]).collect();
    producer.send_batch(&[]).unwrap();
    producer.send_batch(&all).unwrap();
    producer.send(&[7; 3]).unwrap();
    assert_eq!(*consumer.receive().unwrap().unwrap(), all[0]);
    let mut got = Vec::new();
    assert_eq!(consumer.receive_batch(&mut got, 10).unwrap(), 10);
    assert_eq!(got, all[1..11]);
    assert_eq!(*consumer.receive_slice().unwrap().unwrap(), all[11..]);
    let mut last = [0; 3];
    assert!(consumer.copy_to(&mut last).unwrap());
    assert_eq!(last, [7; 3]);
    assert!(!consumer.copy_to(&mut last).unwrap());
}

#[test]
fn a_held_message_is_the_next_one_until_it_is_let_go_also_for_a_successor() {
    let dir = TempDir::new("queue-hold");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("/q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u8]>("/q").unwrap().producer().unwrap();
    for message in [b"a", b"b", b"c"] {
        producer.send(message).unwrap();
    }
    let held = consumer.hold().unwrap().unwrap();
    assert_eq!((held.message, held.producer), (&b"a"[..], producer.id()));
    assert_eq!(consumer.hold().unwrap().unwrap().message, b"a", "not let go yet");
    consumer.let_go();
    assert_eq!(consumer.hold().unwrap().unwrap().message, b"b");
    drop(consumer);
    let mut consumer = n.queue::<[u8]>("/q").unwrap().consumer().unwrap();
    let again = consumer.receive().unwrap().unwrap();
    assert_eq!(again.as_bytes(), b"b", "its predecessor never let it go");
    drop(again);
    assert_eq!(consumer.hold().unwrap().unwrap().message, b"c");
    consumer.let_go();
    assert!(consumer.hold().unwrap().is_none());
}

#[test]
fn an_ordered_consumer_merges_producers_by_time() {
    let dir = TempDir::new("queue-order");
    let n = node(&dir);
    let open = || n.queue::<u64>("q").unwrap().stamped().producer().unwrap();
    let mut p: Vec<_> = (0..4).map(|_| open()).collect();
    let builder = n.queue::<u64>("q").unwrap().ordered(Duration::from_millis(5));
    let mut consumer = builder.consumer().unwrap();
    // As after 2^32 messages.
    consumer.reader.set_rows(u32::MAX - 100);
    let mut x = 12345u64;
    for i in 0..2000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        p[(x >> 33) as usize % 4].send(&i).unwrap();
    }
    let mut got = Vec::new();
    for _ in 0..2000 {
        let m = wait(&mut consumer);
        got.push((m.timestamp_ns().unwrap(), *m));
    }
    assert!(got.is_sorted_by_key(|(stamp, _)| *stamp), "{got:?}");
    // Equal stamps of two producers have no order.
    got.sort_unstable();
    assert!(got.iter().map(|(_, i)| *i).eq(0..2000), "{got:?}");
    assert_eq!(consumer.late(), 0);
}

#[test]
fn another_type_is_a_mismatch_that_names_the_difference() {
    let dir = TempDir::new("queue-mismatch");
    let n = node(&dir);
    let _p = n.queue::<u64>("q").unwrap().producer().unwrap();
    let e = n.queue::<f64>("q").unwrap().consumer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert!(e.to_string().contains("type is u64, this program has f64"), "{e}");
    assert!(e.to_string().ends_with("; it has live members: test (node 1)"), "{e}");
    let e = n.queue::<[u64]>("q").unwrap().consumer().unwrap_err();
    assert!(e.to_string().contains("encoding is fixed, this program has slice"), "{e}");
    let e = n.queue::<u64>("q").unwrap().stamped().consumer().unwrap_err();
    assert!(e.to_string().contains("time stamps"), "{e}");
    let e = n.queue::<u64>("/a//b").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidName);
    assert!(e.to_string().contains("queue name"), "{e}");
}

/// Members of both kinds, and what is kept for a consumer to come.
#[test]
fn what_keeps_the_type_of_a_queue_is_named() {
    let dir = TempDir::new("queue-keeps-type");
    let open = |name: &str| settings(&dir).name(name).open().unwrap();
    let (arm, plan) = (open("arm"), open("plan"));
    let other = || open("new").queue::<f64>("q").unwrap().consumer().unwrap_err();
    let producer = arm.queue::<u64>("q").unwrap().producer().unwrap();
    let consumer = plan.queue::<u64>("q").unwrap().consumer().unwrap();
    let e = other();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    assert!(e.to_string().ends_with("live members: arm (node 1), plan (node 2)"), "{e}");
    drop(producer);
    assert!(other().to_string().ends_with("live members: plan (node 2)"));
    let mut producer = arm.queue::<u64>("q").unwrap().producer().unwrap();
    producer.send(&1).unwrap();
    drop(consumer);
    assert!(other().to_string().ends_with("live members: arm (node 1)"));
    drop(producer);
    let e = other();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    for part in ["this program has f64", "nobody has it open", "messages", "outlive clean"] {
        assert!(e.to_string().contains(part), "{part}: {e}");
    }
    assert_eq!(drain(&mut plan.queue::<u64>("q").unwrap().consumer().unwrap()), [1]);
    assert!(open("new").queue::<f64>("q").unwrap().consumer().is_ok(), "nothing keeps it");
}

/// Who made them anew would have others than the members that are there.
#[test]
fn what_all_members_share_is_not_made_anew_beside_them() {
    for name in ["meta", "bell", "consumer"] {
        let dir = TempDir::new("queue-shared-gone");
        let n = node(&dir);
        let queue = || n.queue::<u64>("q").unwrap();
        let mut producer = queue().producer().unwrap();
        let mut consumer = queue().consumer().unwrap();
        std::fs::remove_file(dir.join("root/default/queues/q").join(name)).unwrap();
        let e = queue().producer().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{name}: {e}");
        assert!(e.object().ends_with(name) && e.to_string().contains("joining queue"), "{e}");
        producer.send(&1).unwrap();
        assert_eq!(drain(&mut consumer), [1]);
    }
}

#[test]
fn a_corrupt_lane_is_refused_and_its_producer_told() {
    let dir = TempDir::new("queue-corrupt");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut good = n.queue::<u64>("q").unwrap().producer().unwrap();
    let mut bad = n.queue::<u64>("q").unwrap().bound_bytes(16 << 10).producer().unwrap();
    bad.send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
    // A wild write of the producer's process over its own lane.
    let path = lane::segment::segment_path(&dir.join("root/default/queues/q"), bad.id(), 0);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 4096], 4096).unwrap();
    good.send(&2).unwrap();
    assert_eq!(drain(&mut consumer), [2]);
    let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
    assert!(
        matches!(events.last(), Some(Event::ProducerCorrupt { producer, .. })
            if *producer == bad.id()),
        "{events:?}"
    );
    let e = loop {
        if let Err(e) = bad.send(&3) {
            break e;
        }
    };
    assert_eq!(e.kind(), ErrorKind::Corrupt);
    drop(consumer);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    good.send(&4).unwrap();
    assert_eq!(drain(&mut consumer), [4], "a successor knows");
    drop(bad);
    drop(consumer);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut consumer), []);
    assert_eq!(lanes(&dir), 1);
}

#[test]
fn a_message_of_a_length_that_no_value_has_is_refused() {
    let dir = TempDir::new("queue-length");
    let n = node(&dir);
    let mut consumer = n.queue::<[u32]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u32]>("q").unwrap().producer().unwrap();
    producer.send(&[1, 2]).unwrap();
    assert_eq!(*consumer.receive().unwrap().unwrap(), [1, 2]);
    let path = lane::segment::segment_path(&dir.join("root/default/queues/q"), producer.id(), 0);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let word = lane::record::record_word(6).to_ne_bytes();
    std::os::unix::fs::FileExt::write_all_at(&file, &word, 4096 + 16).unwrap();
    assert!(consumer.receive().unwrap().is_none());
    let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
    assert!(matches!(events.last(), Some(Event::ProducerCorrupt { .. })), "{events:?}");
}

#[test]
fn headed_messages_arrive_with_their_tails() {
    let dir = TempDir::new("queue-headed");
    let n = node(&dir);
    let mut consumer = n.queue::<Headed<u64, [u32; 2]>>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<Headed<u64, [u32; 2]>>("q").unwrap().producer().unwrap();
    for i in 0..100usize {
        let mut slot = producer.reserve_slice(i % 5).unwrap();
        *slot.header_mut() = i as u64;
        slot.tail_mut().fill([i as u32; 2]);
        slot.commit();
    }
    for i in 0..100usize {
        let m = consumer.receive().unwrap().unwrap();
        assert_eq!((*m.header(), m.tail()), (i as u64, &vec![[i as u32; 2]; i % 5][..]));
    }
}

#[test]
fn many_producers_share_a_queue() {
    let dir = TempDir::new("queue-many");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let open = |_| n.queue::<u64>("q").unwrap().producer().unwrap();
    let mut producers: Vec<_> = (0..200).map(open).collect();
    for i in 0..50u64 {
        for (k, p) in producers.iter_mut().enumerate() {
            p.send(&(k as u64 * 1000 + i)).unwrap();
        }
    }
    drop(producers);
    let mut next = vec![0; 200];
    for m in drain(&mut consumer) {
        let k = m as usize / 1000;
        assert_eq!(m % 1000, next[k]);
        next[k] += 1;
    }
    assert!(next.iter().all(|n| *n == 50));
    assert_eq!(lanes(&dir), 0);
}

#[test]
fn tools_see_who_is_there_and_how_much_is_unread() {
    let dir = TempDir::new("queue-tools");
    let n = node(&dir);
    let domain = Domain::of(&settings(&dir)).unwrap();
    let mut consumer = n.queue::<u32>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u32>("q").unwrap().producer().unwrap();
    for i in 0..5000 {
        producer.send(&i).unwrap();
    }
    producer.send_batch(&[1; 300]).unwrap();
    for _ in 0..1000 {
        consumer.receive().unwrap().unwrap();
    }
    let info = &domain.queues().unwrap()[0];
    assert_eq!((info.name.as_str(), info.consumer), ("/q", Some(n.id())));
    let lane = &info.lanes[0];
    assert_eq!((lane.producer, lane.alive, lane.closed), (producer.id(), true, false));
    assert_eq!(lane.unread, 4300);
    assert!(lane.memory_bytes > 16 << 10);
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    // It stops amid the batch, with more of it left than a burst.
    for _ in 1000..5050 {
        consumer.receive().unwrap().unwrap();
    }
    drop(consumer);
    drop(producer);
    let info = &domain.queues().unwrap()[0];
    assert_eq!((info.consumer, info.lanes[0].closed), (None, true));
    assert_eq!((info.lanes[0].unread, info.lanes[0].received), (250, 5050));
    let report = domain.clean().unwrap();
    assert_eq!(report.queues, 1, "no live member: unread messages go too");
    assert!(domain.queues().unwrap().is_empty());
    drop(n);
    assert!(domain.clean().unwrap().domain_removed);
    assert!(!dir.join("root").exists());
}

#[test]
fn an_audit_names_broken_bytes() {
    let dir = TempDir::new("queue-audit");
    let n = node(&dir);
    let domain = Domain::of(&settings(&dir)).unwrap();
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    producer.send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
    producer.send(&2).unwrap();
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    let path = lane::segment::segment_path(&dir.join("root/default/queues/q"), producer.id(), 0);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x77; 64], 4096).unwrap();
    let faults = domain.audit().unwrap().faults;
    assert!(faults.len() == 1 && faults[0].contains("a record's header at 0"), "{faults:?}");
}

#[test]
fn a_large_batch_is_received_in_any_parts_also_by_a_successor() {
    let dir = TempDir::new("queue-parts");
    let n = node(&dir);
    let queue = || n.queue::<[u64; 4]>("/q").unwrap();
    let mut consumer = queue().consumer().unwrap();
    let mut producer = queue().producer().unwrap();
    let all: Vec<_> = (0..1000).map(|i| [i; 4]).collect();
    // Parts that end at, before and behind the end of a burst, and others' turn between.
    for part in [1, 7, 127, 128, 129, 256, 300, 1000] {
        producer.send_batch(&all).unwrap();
        let mut got = Vec::new();
        while got.len() < all.len() {
            let before = got.len();
            assert!(consumer.receive_batch(&mut got, part).unwrap() > 0);
            if before > 400
                && let Some(one) = consumer.receive().unwrap()
            {
                got.push(*one);
            }
            if before < 600 && got.len() < all.len() {
                drop(consumer);
                consumer = queue().consumer().unwrap();
                let next = consumer.hold().unwrap().unwrap().message[0];
                assert_eq!(next, got.len() as u64, "parts of {part}");
            }
            if before > 800 && got.len() < all.len() {
                got.extend_from_slice(&consumer.receive_slice().unwrap().unwrap());
            }
        }
        assert_eq!(got, all, "parts of {part}");
    }
    assert!(consumer.receive().unwrap().is_none());
}

#[test]
fn a_large_batch_that_is_received_one_by_one_lets_others_through() {
    let dir = TempDir::new("queue-large-batch");
    let node = node(&dir);
    let mut consumer = node.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut large = node.queue::<u64>("/q").unwrap().producer().unwrap();
    let mut small = node.queue::<u64>("/q").unwrap().producer().unwrap();
    large.send_batch(&[1; 1000]).unwrap();
    let first = (0..10).map(|_| *consumer.receive().unwrap().unwrap()).sum::<u64>();
    assert_eq!(first, 10, "the batch comes first");
    small.send(&2).unwrap();
    let before = (0..).take_while(|_| *consumer.receive().unwrap().unwrap() == 1).count();
    assert!(before <= 256, "{before} messages before the other producer's");
    let rest = (before..990).map(|_| *consumer.receive().unwrap().unwrap()).sum::<u64>();
    assert_eq!(rest as usize, 990 - before, "and none is lost or comes twice");
    assert!(consumer.receive().unwrap().is_none());
}
