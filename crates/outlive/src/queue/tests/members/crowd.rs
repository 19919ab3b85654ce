//! As many producers as a queue may have, and what becomes of the next one.

use super::*;
use crate::queue::lane::layout::consumer::SLOTS_MAX;

fn producer(n: &Node) -> crate::Result<Producer<[u8]>> {
    n.queue::<[u8]>("q").unwrap().first_bytes(4096).producer()
}

#[test]
fn a_producer_that_nobody_would_read_is_refused() {
    let dir = TempDir::new("queue-crowd");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let mut producers: Vec<_> = (0..SLOTS_MAX).map(|_| producer(&n).unwrap()).collect();
    for p in &mut producers {
        p.send(&[1; 5000]).unwrap(); // it goes on in a longer segment
    }
    for _ in 0..SLOTS_MAX {
        assert_eq!(wait(&mut consumer).len(), 5000);
    }
    let refused = producer(&n).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooManyMembers);
    assert!(refused.remedy().contains("512 are of live producers"), "{refused}");
    assert_eq!(lanes(&dir), SLOTS_MAX, "nothing is left of it");
    // One leaves: there is room, and its successor is read.
    drop(producers.pop());
    let mut next = producer(&n).unwrap();
    next.send(b"next").unwrap();
    assert_eq!(&*wait(&mut consumer), b"next");
}

#[test]
fn producers_that_are_gone_fill_no_queue_but_what_they_left_unread_is_kept() {
    let dir = TempDir::new("queue-crowd-gone");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    // It does not receive. Every second one sends.
    let mut sent = Vec::new();
    let refused = loop {
        assert!(sent.len() <= 2 * SLOTS_MAX);
        let i = sent.iter().filter(|s| **s).count() as u64;
        let mut p = match producer(&n) {
            Ok(p) => p,
            Err(e) => break e,
        };
        let sends = sent.len() % 2 == 1;
        if sends {
            p.send(&i.to_ne_bytes()).unwrap();
        }
        sent.push(sends);
    };
    assert_eq!(refused.kind(), ErrorKind::TooManyMembers);
    let remedy = "512 of gone ones hold messages";
    assert!(refused.remedy().contains(remedy), "{refused}");
    let mut got: Vec<_> = (0..SLOTS_MAX)
        .map(|_| u64::from_ne_bytes(wait(&mut consumer).as_bytes().try_into().unwrap()))
        .collect();
    got.sort();
    assert_eq!(got, (0..SLOTS_MAX as u64).collect::<Vec<_>>());
    assert!(consumer.receive().unwrap().is_none());
    producer(&n).unwrap().send(b"next").unwrap();
    assert_eq!(&*wait(&mut consumer), b"next");
}

#[test]
fn lanes_that_went_while_nobody_looked_end_with_an_event() {
    let dir = TempDir::new("queue-crowd-looked");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let leaves = node(&dir);
    let first: Vec<_> = (0..SLOTS_MAX).map(|_| producer(&leaves).unwrap()).collect();
    assert!(consumer.receive().unwrap().is_none());
    while consumer.next_event().is_some() {}
    let ids: Vec<_> = first.iter().map(|p| p.id()).collect();
    // In order, and its process then ends.
    drop((first, leaves));
    // All their places are free for these, though the consumer has not looked.
    let mut second: Vec<_> = (0..SLOTS_MAX).map(|_| producer(&n).unwrap()).collect();
    for p in &mut second {
        p.send(b"of the second").unwrap();
    }
    for _ in 0..SLOTS_MAX {
        assert_eq!(&*wait_for(&mut consumer), b"of the second");
    }
    let mut left = Vec::new();
    while let Some(event) = consumer.next_event() {
        match event {
            Event::ProducerLeft(id) => left.push(id),
            Event::ProducerJoined(_) => {}
            other => panic!("{other:?}"),
        }
    }
    left.sort();
    assert_eq!(left, ids);
}

/// The next message, without a look at the events.
fn wait_for(consumer: &mut Consumer<[u8]>) -> Received<'_, [u8]> {
    let end = Deadline::in_ns(20_000_000_000);
    while !consumer.wait_for_message(end).unwrap() {
        assert!(!end.has_passed());
    }
    consumer.receive().unwrap().unwrap()
}
