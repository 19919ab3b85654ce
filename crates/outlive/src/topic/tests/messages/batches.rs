//! Many messages by one call.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::node::Node;
use crate::os::fixture;
use crate::os::fixture::{TempDir, fork_child};
use crate::topic::*;
use crate::types::payload_type::PayloadType;
use crate::{ErrorKind, Payload};

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn topic(node: &Node) -> Builder<u64> {
    node.topic::<u64>("/n").unwrap().depth(8)
}

#[test]
fn a_batch_is_its_messages_in_order_with_one_time_stamp() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let publisher = topic(&n).publisher().unwrap();
    let mut subscriber = topic(&n).subscriber().unwrap();
    publisher.publish_batch(&[]).unwrap();
    publisher.publish(&10).unwrap();
    publisher.publish_batch(&[11, 12, 13]).unwrap();
    assert_eq!(publisher.published(), 4);
    let got: Vec<_> = subscriber.drain().map(|s| s.map(|s| (*s, *s.meta())).unwrap()).collect();
    let values: Vec<_> = got.iter().map(|(value, meta)| (*value, meta.seq)).collect();
    assert_eq!(values, [(10, 0), (11, 1), (12, 2), (13, 3)]);
    let stamps: Vec<_> = got.iter().map(|(_, meta)| meta.timestamp_ns).collect();
    assert!(stamps[0] <= stamps[1] && stamps[1..].iter().all(|at| *at == stamps[1]), "{stamps:?}");
}

#[test]
fn a_batch_is_received_up_to_the_number_asked_for_behind_what_is_there() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let publisher = topic(&n).publisher().unwrap();
    let mut subscriber = topic(&n).subscriber().unwrap();
    let mut got = vec![100];
    assert_eq!(subscriber.receive_batch(&mut got, 10).unwrap(), 0);
    publisher.publish_batch(&[0, 1, 2, 3, 4]).unwrap();
    assert_eq!(subscriber.receive_batch(&mut got, 0).unwrap(), 0);
    assert_eq!(subscriber.receive_batch(&mut got, 2).unwrap(), 2);
    assert_eq!(**subscriber.receive().unwrap().as_ref().unwrap(), 2);
    assert_eq!(subscriber.receive_batch(&mut got, usize::MAX).unwrap(), 2);
    assert_eq!(got, [100, 0, 1, 3, 4]);
}

#[test]
fn what_a_batch_overwrote_is_counted() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let publisher = topic(&n).publisher().unwrap();
    let mut subscriber = topic(&n).subscriber().unwrap();
    publisher.publish_batch(&[0, 1, 2]).unwrap();
    let mut got = Vec::new();
    subscriber.receive_batch(&mut got, 1).unwrap();
    publisher.publish_batch(&(3..20).collect::<Vec<_>>()).unwrap();
    subscriber.receive_batch(&mut got, 100).unwrap();
    assert_eq!(got.len() as u64 + subscriber.lost(), 20);
    assert_eq!((got[0], got.last()), (0, Some(&19)));
    assert!(got.is_sorted() && got.len() >= 8, "{got:?}");
}

#[test]
fn messages_too_large_for_an_entry_come_in_batches_too() {
    type Large = [u64; 200];
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let publisher = n.topic::<Large>("/large").unwrap().publisher().unwrap();
    let mut subscriber = n.topic::<Large>("/large").unwrap().borrows(1).subscriber().unwrap();
    publisher.publish_batch(&[[1; 200], [2; 200], [3; 200]]).unwrap();
    let mut got = Vec::new();
    assert_eq!(subscriber.receive_batch(&mut got, 10).unwrap(), 3);
    assert_eq!(got.iter().map(|large| large[199]).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(subscriber.borrowed(), 0);
}

#[test]
fn sizes_that_are_no_whole_words_arrive_whole() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let publisher = n.topic::<[u8; 13]>("/odd").unwrap().publisher().unwrap();
    let mut subscriber = n.topic::<[u8; 13]>("/odd").unwrap().subscriber().unwrap();
    let sent: Vec<[u8; 13]> = (0..5).map(|i| std::array::from_fn(|j| i * 13 + j as u8)).collect();
    publisher.publish_batch(&sent).unwrap();
    let mut got = Vec::new();
    subscriber.receive_batch(&mut got, 10).unwrap();
    assert_eq!(got, sent);
    // Longer than what goes by words.
    let publisher = n.topic::<[u8; 301]>("/long").unwrap().publisher().unwrap();
    let mut subscriber = n.topic::<[u8; 301]>("/long").unwrap().subscriber().unwrap();
    let sent = [[7; 301], std::array::from_fn(|i| i as u8)];
    publisher.publish_batch(&sent).unwrap();
    let mut got = Vec::new();
    subscriber.receive_batch(&mut got, 10).unwrap();
    assert_eq!(got, sent);
}

#[test]
fn a_value_that_is_none_is_told_between_those_that_are() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let of = PayloadType::of::<bool>();
    let publisher = n.topic::<[u8]>("/yes").unwrap().of_type(&of).publisher().unwrap();
    let mut subscriber = n.topic::<bool>("/yes").unwrap().subscriber().unwrap();
    publisher.publish_batch_bytes(&[1, 0, 2, 1]).unwrap();
    let mut got = Vec::new();
    let e = subscriber.receive_batch(&mut got, 10).unwrap_err();
    assert_eq!((e.kind(), &got[..]), (ErrorKind::Corrupt, &[true, false][..]), "{e}");
    assert_eq!(subscriber.receive_batch(&mut got, 10).unwrap(), 1);
    assert_eq!(got, [true, false, true]);
}

#[test]
fn bytes_that_are_no_whole_messages_are_refused() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let of = PayloadType::of::<u32>();
    let publisher = n.topic::<[u8]>("/n").unwrap().of_type(&of).publisher().unwrap();
    let e = publisher.publish_batch_bytes(&[0; 7]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    publisher.publish_batch_bytes(&[]).unwrap();
    let any = n.topic::<[u8]>("/bytes").unwrap().publisher().unwrap();
    assert_eq!(any.publish_batch_bytes(&[0; 8]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!((publisher.published(), any.published()), (0, 0));
}

#[test]
fn a_batch_that_a_reliable_subscriber_has_no_room_for_is_sent_as_far_as_it_goes() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let mut subscriber = topic(&n).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).reliable_timeout(Duration::ZERO).publisher().unwrap();
    let batch: Vec<u64> = (0..12).collect();
    assert_eq!(publisher.publish_batch(&batch).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(publisher.published(), 8);
    let mut got = Vec::new();
    subscriber.receive_batch(&mut got, 100).unwrap();
    publisher.publish_batch(&batch[8..]).unwrap();
    subscriber.receive_batch(&mut got, 100).unwrap();
    assert_eq!((got, subscriber.lost()), (batch, 0));

    let patient = topic(&n).reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || patient.publish_batch(&(0..1000).collect::<Vec<_>>()).unwrap());
        let mut got = Vec::new();
        while got.len() < 1000 {
            subscriber.receive_batch(&mut got, 7).unwrap();
        }
        assert!(got.is_sorted());
    });
}

#[test]
fn what_the_dead_left_comes_first_and_their_death_is_told_beside_one_who_goes_on() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let mut subscriber = topic(&n).subscriber().unwrap();
    let root = dir.join("root");
    let child = fork_child(move || {
        let n = Node::builder().root(root).open().unwrap();
        let publisher = topic(&n).publisher().unwrap();
        publisher.publish_batch(&[1, 2, 3]).unwrap();
        std::mem::forget((publisher, n));
        0
    });
    assert_eq!(child.wait(), 0);
    let publisher = topic(&n).publisher().unwrap();
    let (mut got, mut died) = (Vec::new(), false);
    // A batch that is always full must not hide who came and went.
    for i in 0..1000 {
        publisher.publish_batch(&[10, 11]).unwrap();
        subscriber.receive_batch(&mut got, 2).unwrap();
        died |= std::iter::from_fn(|| subscriber.next_event())
            .any(|event| matches!(event, Event::PublisherDied { .. }));
        if died {
            break;
        }
        assert!(i < 999, "nobody told of the death");
    }
    assert_eq!(got.iter().filter(|value| **value < 10).collect::<Vec<_>>(), [&1, &2, &3]);
}

#[test]
fn a_message_that_is_no_copy_is_not_passed_over_for_those_that_are() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let mut subscriber = topic(&n).reliable(true).subscriber().unwrap();
    let (lends, busy) = (topic(&n).publisher().unwrap(), topic(&n).publisher().unwrap());
    let lend = |value| {
        let mut loan = lends.loan().unwrap();
        *loan = value;
        loan.publish().unwrap();
    };
    busy.publish_batch(&[10; 8]).unwrap();
    lend(1);
    let mut got = Vec::new();
    for _ in 0..8 {
        subscriber.receive_batch(&mut got, 2).unwrap();
        while busy.try_publish(&10).is_ok() {}
    }
    assert!(got.contains(&1), "{got:?}");
    // Nor what was lost before one, nor that a publisher has gone.
    drop(subscriber);
    let mut subscriber = topic(&n).subscriber().unwrap();
    let leaves = topic(&n).publisher().unwrap();
    leaves.publish_batch(&(20..40).collect::<Vec<_>>()).unwrap();
    let id = leaves.id();
    drop((leaves, lends));
    let mut got = Vec::new();
    let mut left = false;
    for _ in 0..100 {
        busy.try_publish(&10).unwrap_or_default();
        busy.try_publish(&10).unwrap_or_default();
        subscriber.receive_batch(&mut got, 2).unwrap();
        left |= std::iter::from_fn(|| subscriber.next_event())
            .any(|event| event == Event::PublisherLeft(id));
    }
    let of_it: Vec<_> = got.iter().copied().filter(|value| *value >= 20).collect();
    assert_eq!((of_it, left), ((32..40).collect(), true), "{got:?}");
}

/// Who does not wait for anybody is as quick as who reads.
#[test]
fn a_batch_without_a_bound_ends_beside_one_who_never_stops() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let mut subscriber = topic(&n).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let publisher = publisher;
            while !done.load(Relaxed) {
                publisher.publish_batch(&[1; 64]).unwrap();
            }
        });
        for _ in 0..1000 {
            let mut got = Vec::new();
            assert!(subscriber.receive_batch(&mut got, usize::MAX).unwrap() <= 8);
        }
        done.store(true, Relaxed);
        drop(subscriber);
    });
}

#[test]
fn who_comes_is_read_soon_however_large_and_full_the_batches_are() {
    let dir = TempDir::new("batches");
    let n = node(&dir);
    let wide = || n.topic::<u64>("/wide").unwrap().depth(1024);
    let mut subscriber = wide().subscriber().unwrap();
    let busy = wide().publisher().unwrap();
    busy.publish_batch(&[1; 1000]).unwrap();
    let mut got = Vec::new();
    subscriber.receive_batch(&mut got, 1000).unwrap();
    let comes = wide().publisher().unwrap();
    comes.publish(&2).unwrap();
    for _ in 0..3 {
        busy.publish_batch(&[1; 1000]).unwrap();
        subscriber.receive_batch(&mut got, 1000).unwrap();
    }
    assert!(got.contains(&2));
}

#[test]
fn what_the_dead_left_unmapped_does_not_hide_the_living_from_batches() {
    // The second is copied from its entry, where it is not lent.
    unmapped_hides_nobody([1; 700], |i| [i; 700]);
    unmapped_hides_nobody(1, |i| i);
}

fn unmapped_hides_nobody<T: Payload + Copy + PartialEq + std::fmt::Debug>(
    first: T,
    of: impl Fn(u64) -> T,
) {
    let dir = TempDir::new("batches");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<T>("/lent").unwrap().depth(4);
    let lend = |publisher: &Publisher<T>, value| {
        let mut loan = publisher.loan().unwrap();
        *loan = value;
        loan.publish().unwrap();
    };
    let mut subscriber = topic(&theirs).reliable(true).subscriber().unwrap();
    let dead = topic(&ours).publisher().unwrap();
    assert!(subscriber.receive().unwrap().is_none(), "it has looked, and mapped no segment");
    let unmapped = format!("/data.{}.{}.", dead.id().node, dead.id().port);
    lend(&dead, first);
    drop(dead);
    let alive = topic(&ours).reliable_timeout(Duration::ZERO).publisher().unwrap();
    fixture::refuse("open", &unmapped, libc::EMFILE, u32::MAX);
    for i in 10..30 {
        lend(&alive, of(i));
        let mut got = Vec::new();
        for _ in 0..3 {
            let _ = subscriber.receive_batch(&mut got, 10);
        }
        assert_eq!(got, [of(i)]);
    }
    assert!(fixture::refuse_none() < u32::MAX);
}

/// Messages that are lent come one by one through `receive`, which has turns of its own.
#[test]
fn small_batches_are_of_every_publisher_in_turn() {
    for most in 1..4 {
        let dir = TempDir::new("batches");
        let n = node(&dir);
        let publishers: Vec<_> = (0..3).map(|_| topic(&n).publisher().unwrap()).collect();
        let mut subscriber = topic(&n).subscriber().unwrap();
        let mut got = Vec::new();
        for round in 0..30 {
            for (i, publisher) in publishers.iter().enumerate() {
                let mut loan = publisher.loan().unwrap();
                *loan = i as u64;
                loan.publish().unwrap();
            }
            if round > 0 {
                subscriber.receive_batch(&mut got, most).unwrap();
            }
        }
        for i in 0..3 {
            let of = got.iter().filter(|from| **from == i).count();
            assert!(of >= got.len() / 4, "{of} of {} are of publisher {i}: {got:?}", got.len());
        }
    }
}
