//! A consumer behind a descriptor.

use std::os::fd::AsRawFd;

use super::*;
use crate::os::sleep::poll::{PollFd, READABLE, poll};

fn quiet<T: crate::Payload + ?Sized>(consumer: &mut Consumer<T>) -> bool {
    let fd = consumer.fd().unwrap().as_raw_fd();
    poll(&mut [PollFd::new(fd, READABLE)], Deadline::AT_ONCE) == 0
}

/// With nothing to receive. Twice: in between, a tick or the death of anybody whom this process
/// watches may have made it readable.
fn goes_quiet(consumer: &mut Consumer<u64>) -> bool {
    (0..2).any(|_| consumer.receive().unwrap().is_none() && quiet(consumer))
}

#[test]
fn a_descriptor_is_readable_unless_the_last_receive_found_nothing() {
    let dir = TempDir::new("queue-fd");
    let (n, other) = (node(&dir), node(&dir));
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = other.queue::<u64>("/q").unwrap().producer().unwrap();
    assert!(!quiet(&mut consumer), "nobody has looked yet");
    while consumer.next_event().is_some() {}
    for round in 0..3 {
        assert!(goes_quiet(&mut consumer));
        while consumer.next_event().is_some() {}
        producer.send(&round).unwrap();
        producer.send(&(round + 10)).unwrap();
        assert!(!quiet(&mut consumer));
        assert_eq!(*consumer.receive().unwrap().unwrap(), round);
        assert!(!quiet(&mut consumer), "there is one more");
        assert_eq!(*consumer.receive().unwrap().unwrap(), round + 10);
        assert!(!quiet(&mut consumer), "nothing said that it was the last");
    }
    // Other ways of waiting in between do not lose a call.
    assert!(goes_quiet(&mut consumer));
    assert!(consumer.receive_timeout(Duration::from_millis(1)).unwrap().is_none());
    let members: &mut [&mut dyn crate::Waitable] = &mut [&mut consumer];
    let _ = crate::WaitSet::new().wait(members, Duration::from_millis(1)).unwrap();
    producer.send(&7).unwrap();
    assert!(!quiet(&mut consumer));
    assert_eq!(drain(&mut consumer), [7]);
    assert!(goes_quiet(&mut consumer));
    // Who leaves makes it readable too, until somebody has had the chance to look.
    drop(producer);
    assert!(!quiet(&mut consumer));
    assert!(consumer.receive().unwrap().is_none() && !quiet(&mut consumer), "an event is new");
    assert!(goes_quiet(&mut consumer));
    assert!(matches!(consumer.next_event(), Some(Event::ProducerLeft(_))));
    assert!(goes_quiet(&mut consumer));
}

#[test]
fn a_message_that_is_held_back_makes_the_descriptor_readable_in_its_turn() {
    let dir = TempDir::new("queue-fd-ordered");
    let n = node(&dir);
    let queue = || n.queue::<u64>("/q").unwrap();
    let mut consumer = queue().ordered(Duration::from_millis(20)).consumer().unwrap();
    let mut producer = queue().stamped().producer().unwrap();
    assert!(consumer.fd().is_ok());
    while consumer.next_event().is_some() || consumer.receive().unwrap().is_some() {}
    producer.send(&7).unwrap();
    let deadline = Deadline::in_ns(20_000_000_000);
    let fd = consumer.fd().unwrap().as_raw_fd();
    while consumer.receive().unwrap().is_none_or(|n| *n != 7) {
        assert_eq!(poll(&mut [PollFd::new(fd, READABLE)], deadline), 1, "it never came");
    }
}

/// One byte of a run is written over by its producer's process.
fn refuses_a_run_that_shrank(left: bool) {
    let dir = TempDir::new("queue-fd-shrunk");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    (0..3).for_each(|i| producer.send(&i).unwrap());
    assert!(consumer.fd().is_ok());
    assert_eq!(drain(&mut consumer), [0, 1, 2]);
    while consumer.next_event().is_some() {}
    let id = producer.id();
    let path = lane::segment::segment_path(&dir.join("root/default/queues/q"), id, 0);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let kept = (!left).then_some(producer);
    // The count of its messages lies in the second byte of its header.
    std::os::unix::fs::FileExt::write_all_at(&file, &[1], 4096 + 1).unwrap();
    assert!(consumer.receive().unwrap().is_none());
    let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
    let corrupt =
        |e: &Event| matches!(e, Event::ProducerCorrupt { producer, .. } if *producer == id);
    assert!(events.len() == 1 && corrupt(&events[0]), "{events:?}");
    drop(kept);
}

#[test]
fn a_run_that_says_less_than_was_received_is_refused_and_nobody_goes_round_for_ever() {
    for left in [false, true] {
        let (done, is_done) = std::sync::mpsc::channel();
        let look = std::thread::spawn(move || {
            refuses_a_run_that_shrank(left);
            done.send(()).unwrap();
        });
        match is_done.recv_timeout(Duration::from_secs(60)) {
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("it still looks: {left}"),
            _ => look.join().unwrap(),
        }
    }
}
