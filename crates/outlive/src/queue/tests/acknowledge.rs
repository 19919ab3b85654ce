//! When a message counts as received: what succeeds, not what fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

/// Panics in `body`, and catches it.
fn fails(body: impl FnOnce()) {
    assert!(catch_unwind(AssertUnwindSafe(body)).is_err());
}

#[test]
fn a_panic_is_no_acknowledgement_of_what_it_had_in_hand() {
    let dir = TempDir::new("queue-panic");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("/q").unwrap().producer().unwrap();
    producer.send_batch(&(0..10).collect::<Vec<_>>()).unwrap();
    fails(|| {
        let message = consumer.receive().unwrap().unwrap();
        assert_eq!(*message, 7, "it is 0");
    });
    assert_eq!(*consumer.receive().unwrap().unwrap(), 0, "the panic took it");
    fails(|| {
        let several = consumer.receive_slice().unwrap().unwrap();
        assert_eq!(several.len(), 1000, "there are 9");
    });
    assert_eq!(*consumer.receive_slice().unwrap().unwrap(), *(1..10).collect::<Vec<u64>>());
    // Nobody catches it where the consumer is: the next one gets it.
    producer.send(&10).unwrap();
    fails(move || {
        let mut consumer = consumer;
        let _message = consumer.receive().unwrap().unwrap();
        panic!("with a message in hand");
    });
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut consumer), [10]);
}

#[test]
fn what_a_destructor_receives_while_its_thread_unwinds_is_received() {
    struct Drains<'c>(&'c mut Consumer<u64>, Vec<u64>);
    impl Drop for Drains<'_> {
        fn drop(&mut self) {
            // It would never end if a drop were no acknowledgement here.
            while let Some(message) = self.0.receive().unwrap() {
                self.1.push(*message);
                assert!(self.1.len() <= 3);
            }
            assert_eq!(self.1, [1, 2, 3]);
        }
    }
    let dir = TempDir::new("queue-unwind");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("/q").unwrap().producer().unwrap();
    producer.send_batch(&[1, 2, 3]).unwrap();
    fails(|| {
        let _drains = Drains(&mut consumer, Vec::new());
        panic!("with messages to come");
    });
    assert_eq!(drain(&mut consumer), []);
}

#[test]
fn what_is_put_back_comes_again_and_nothing_of_its_producer_before_it() {
    let dir = TempDir::new("queue-nack");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut a = n.queue::<u64>("/q").unwrap().producer().unwrap();
    a.send_batch(&[1, 2, 3]).unwrap();
    a.send(&4).unwrap();
    for _ in 0..300 {
        consumer.receive().unwrap().unwrap().nack();
    }
    consumer.receive_slice().unwrap().unwrap().nack();
    consumer.receive().unwrap().unwrap().ack();
    // Others have their turn, at the latest when the caller looks for them.
    let mut b = n.queue::<u64>("/q").unwrap().producer().unwrap();
    b.send_batch(&[11, 12]).unwrap();
    let mut got = Vec::new();
    for _ in 0..8 {
        crate::WaitSet::new().wait(&mut [&mut consumer], Duration::from_secs(20)).unwrap();
        let message = consumer.receive().unwrap().unwrap();
        match *message {
            2 => message.nack(),
            other => got.push(other),
        }
    }
    assert_eq!(got, [11, 12]);
    consumer.receive().unwrap().unwrap().nack();
    drop(consumer);
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    assert_eq!(drain(&mut consumer), [2, 3, 4], "a successor begins with it");
}

#[test]
fn a_message_has_one_place_whoever_receives_it_and_no_other_has_it() {
    for batch in [1, 3, 200] {
        let dir = TempDir::new("queue-place");
        let n = node(&dir);
        let queue = || n.queue::<[u8]>("/q").unwrap();
        let fixed = || n.queue::<u64>("/n").unwrap();
        let first = (queue().consumer().unwrap(), fixed().consumer().unwrap());
        let mut bytes = queue().first_bytes(4096).producer().unwrap();
        let mut numbers = [fixed().producer().unwrap(), fixed().producer().unwrap()];
        for i in 0..600_u64 {
            // Of any length, over the end of the ring and of segments.
            bytes.send(&vec![0; (i * 37 % 900) as usize]).unwrap();
        }
        for _ in 0..600 / batch {
            numbers.iter_mut().for_each(|to| to.send_batch(&vec![7; batch]).unwrap());
        }
        drop(first);
        let (mut last, mut places) = (std::collections::HashMap::new(), 0);
        let mut seen = std::collections::HashSet::new();
        let mut next = |producer: crate::queue::ProducerId, place: (u64, u64), again: bool| {
            let before = last.insert(producer, place);
            assert!(!again || before == Some(place), "{place:?} after {before:?}");
            assert_eq!(seen.insert((producer, place)), !again, "{place:?}");
            places += 1;
        };
        for _ in 0..600 {
            let mut consumer = queue().consumer().unwrap();
            let message = wait(&mut consumer);
            next(message.producer(), message.place(), false);
            message.nack();
            let message = wait(&mut consumer);
            next(message.producer(), message.place(), true);
        }
        for i in 0..600 {
            let mut consumer = fixed().consumer().unwrap();
            for _ in 0..1 + i % 5 {
                let Some(message) = consumer.receive().unwrap() else { break };
                next(message.producer(), message.place(), false);
            }
            let Some(message) = consumer.receive().unwrap() else { break };
            let (producer, place) = (message.producer(), message.place());
            next(producer, place, false);
            message.nack();
            drop(consumer);
            // The successor may begin with the other one.
            let mut consumer = fixed().consumer().unwrap();
            let mut others = Vec::new();
            loop {
                let message = consumer.receive().unwrap().unwrap();
                if message.producer() == producer {
                    next(producer, message.place(), true);
                    break;
                }
                others.push((message.producer(), message.place()));
            }
            others.into_iter().for_each(|(producer, place)| next(producer, place, false));
        }
        assert!(places > 2000, "{places} places");
    }
}

#[test]
fn an_ordered_consumer_puts_back_too() {
    let dir = TempDir::new("queue-nack-ordered");
    let n = node(&dir);
    let queue = || n.queue::<u64>("/q").unwrap();
    let mut consumer = queue().ordered(Duration::ZERO).consumer().unwrap();
    let (mut a, mut b) = (queue().producer().unwrap(), queue().producer().unwrap());
    for i in 0..4 {
        a.send(&(2 * i)).unwrap();
        b.send(&(2 * i + 1)).unwrap();
    }
    let mut got = Vec::new();
    for _ in 0..8 {
        wait(&mut consumer).nack();
        fails(|| {
            let _message = consumer.receive().unwrap().unwrap();
            panic!("with a message in hand");
        });
        got.push(*wait(&mut consumer));
    }
    assert_eq!(got, (0..8).collect::<Vec<_>>());
    assert!(consumer.receive().unwrap().is_none());
}

#[test]
fn an_end_that_nobody_has_looked_at_ends_a_wait_once() {
    let dir = TempDir::new("queue-event");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("/q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u64>("/q").unwrap().producer().unwrap();
    producer.send(&7).unwrap();
    assert_eq!(*consumer.receive().unwrap().unwrap(), 7);
    drop(producer);
    assert!(consumer.receive().unwrap().is_none(), "it notices who left");
    let until = Deadline::in_ns(20_000_000_000);
    assert!(consumer.receive_until(until).unwrap().is_none());
    assert!(!until.has_passed(), "there was an event to look at");
    // One that is not wanted keeps nobody awake.
    let soon = Deadline::in_ns(1_000_000);
    assert!(consumer.receive_until(soon).unwrap().is_none());
    assert!(soon.has_passed());
    assert_eq!(std::iter::from_fn(|| consumer.next_event()).count(), 2);
}
