//! Lanes that grow, shrink and are bounded.

use std::time::Instant;

use super::*;
use crate::os::fixture::{refuse, refuse_none, until};
use crate::os::time::clock::set_test_offset;

/// Number of the newest segment of a lane.
fn last_segment(dir: &TempDir) -> u64 {
    let number = |name: String| name.strip_prefix("lane.")?.rsplit('.').next()?.parse().ok();
    files(dir).into_iter().filter_map(number).max().unwrap()
}

#[test]
fn a_lane_grows_to_its_bound_then_would_block_and_shrinks_again() {
    let dir = TempDir::new("queue-grow");
    let n = node(&dir);
    let mut consumer = n.queue::<[u64; 16]>("q").unwrap().consumer().unwrap();
    let builder = n.queue::<[u64; 16]>("q").unwrap().bound_bytes(1 << 20);
    let mut producer = builder.producer().unwrap();
    assert_eq!(producer.memory_bytes(), 16 << 10);
    let mut sent = 0;
    let e = loop {
        match producer.try_send(&[sent; 16]) {
            Ok(()) => sent += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(e.kind(), ErrorKind::WouldBlock);
    assert!(producer.memory_bytes() <= 1 << 20 && producer.memory_bytes() > 900 << 10);
    assert!(sent * 136 > 900 << 10, "{sent}");
    let e = producer.send_timeout(&[0; 16], Duration::from_millis(20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout);
    let segments = lanes(&dir);
    assert!(segments >= 6, "{segments}");
    for i in 0..sent {
        assert_eq!(*consumer.receive().unwrap().unwrap(), [i; 16]);
    }
    assert!(consumer.receive().unwrap().is_none());
    assert_eq!(lanes(&dir), 1, "what was left behind is unlinked");
    // A smaller one each time that a second has passed at the end of a round.
    for i in 0..40_000 {
        set_test_offset(i as i64 * 1_000_000);
        producer.send(&[i; 16]).unwrap();
        assert_eq!(*consumer.receive().unwrap().unwrap(), [i; 16]);
    }
    set_test_offset(0);
    assert!(producer.memory_bytes() <= 64 << 10, "{}", producer.memory_bytes());
}

#[test]
fn a_stream_in_bursts_makes_no_segments_in_each_of_them() {
    let dir = TempDir::new("queue-bursts");
    let n = node(&dir);
    let mut consumer = n.queue::<[u64; 16]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u64; 16]>("q").unwrap().producer().unwrap();
    let start = Instant::now();
    // 16 KiB hold 120: a burst of 900 makes it 128 KiB, which 2000 one by one would make less.
    for _ in 0..100 {
        for (count, times) in [(900, 1), (1, 2000)] {
            for _ in 0..times {
                (0..count).for_each(|i| producer.try_send(&[i; 16]).unwrap());
                (0..count).for_each(|i| {
                    assert_eq!(*consumer.receive().unwrap().unwrap(), [i; 16]);
                });
            }
        }
    }
    // Each second may make it small once, and the next burst large again.
    let made = last_segment(&dir);
    assert!((3..=3 + 4 * start.elapsed().as_secs()).contains(&made), "{made} segments");
}

#[test]
fn a_bound_that_is_set_later_holds_and_keeps_what_was_sent() {
    let dir = TempDir::new("queue-bound-later");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u8]>("q").unwrap().producer().unwrap();
    let fill = |producer: &mut Producer<[u8]>, bound: u64| {
        producer.set_bound_bytes(bound);
        let sent = std::iter::from_fn(|| producer.try_send(&[bound as u8; 1000]).ok()).count();
        (sent, producer.memory_bytes())
    };
    let (first, memory) = fill(&mut producer, 16 << 10);
    assert!(first > 10 && memory == 16 << 10, "{first} in {memory}");
    let (more, memory) = fill(&mut producer, 64 << 10);
    assert!(more > 20 && memory <= 64 << 10, "{more} more in {memory}");
    // Less than it takes: nothing more, and nothing is lost.
    assert_eq!(fill(&mut producer, 0), (0, memory));
    let e = producer.try_send(&[0; 40_000]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let received = std::iter::from_fn(|| consumer.receive().unwrap().map(drop)).count();
    assert_eq!(received, first + more);
    producer.set_bound_bytes(64 << 10);
    producer.try_send(&[0; 40_000]).unwrap();
}

#[test]
fn a_first_segment_without_end_is_as_large_as_the_bound() {
    let dir = TempDir::new("queue-first-bytes");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    for first in [u64::MAX, (1 << 63) + 1, 1 << 20] {
        let queue = n.queue::<u64>("q").unwrap().bound_bytes(100_000);
        let mut producer = queue.first_bytes(first).producer().unwrap();
        assert_eq!(producer.memory_bytes(), 64 << 10, "{first}");
        producer.send(&first).unwrap();
        assert_eq!(drain(&mut consumer), [first]);
    }
}

/// A consumer takes a shorter lane for garbage: what it held was lost, and nobody said so.
#[test]
fn a_first_segment_of_next_to_nothing_is_a_page() {
    let dir = TempDir::new("queue-least-bytes");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    for first in [0, 1, 512, 1024, 2048, 2049, 4095] {
        let mut producer = n.queue::<u64>("q").unwrap().first_bytes(first).producer().unwrap();
        assert_eq!(producer.memory_bytes(), 4096, "{first}");
        producer.send(&first).unwrap();
        assert_eq!(drain(&mut consumer), [first]);
    }
}

/// The producer has raised its flag in the newest segment, which the consumer does not see yet.
#[test]
fn a_producer_goes_on_once_a_segment_is_left_behind_though_others_follow() {
    let name = "a_producer_goes_on_once_a_segment_is_left_behind_though_others_follow";
    if !in_a_child(module_path!(), name) {
        return;
    }
    // Nothing but a wake ends its sleep.
    crate::os::sleep::slice::set_slice_ns_max(3_600_000_000_000);
    let dir = TempDir::new("queue-left-behind");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u8]>("q").unwrap().bound_bytes(224 << 10).producer().unwrap();
    // One of them fills 16 KiB, three 32 KiB.
    (0..5).for_each(|_| producer.send(&[1; 10_000]).unwrap());
    assert_eq!((producer.memory_bytes(), lanes(&dir)), (112 << 10, 3));
    assert_eq!(consumer.receive().unwrap().unwrap().len(), 10_000);
    let woken = std::thread::scope(|scope| {
        let sends = scope.spawn(|| producer.send(&[2; 100_000]));
        // It sleeps by then, or has no need to.
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(consumer.receive().unwrap().unwrap().len(), 10_000);
        let until = Deadline::after(Duration::from_secs(20));
        while !sends.is_finished() && !until.has_passed() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let woken = sends.is_finished();
        // That it sees in any case.
        for _ in 0..3 {
            assert_eq!(consumer.receive().unwrap().unwrap().len(), 10_000);
        }
        sends.join().unwrap().unwrap();
        woken
    });
    assert!(woken, "it slept on");
    assert_eq!(consumer.receive().unwrap().unwrap().len(), 100_000);
}

/// The message behind it was there, and its producer may wait for the room.
#[test]
fn a_segment_that_cannot_be_removed_now_is_no_error_and_goes_later() {
    let dir = TempDir::new("queue-unlink-later");
    let n = node(&dir);
    let mut consumer = n.queue::<[u64; 16]>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<[u64; 16]>("q").unwrap().producer().unwrap();
    let mut sent = 0;
    while lanes(&dir) < 2 {
        producer.send(&[sent; 16]).unwrap();
        sent += 1;
    }
    refuse("unlink", "/lane.", libc::EIO, 1);
    let got = (0..sent).map(|_| consumer.receive().map(|one| one.map(|value| value[0])));
    let got: Vec<_> = got.map(|one| one.map_err(|e| e.kind())).collect();
    let refused = 1 - refuse_none();
    assert_eq!(got, (0..sent).map(|i| Ok(Some(i))).collect::<Vec<_>>());
    assert_eq!(refused, 1, "it was to be removed");
    until(|| consumer.receive().unwrap().is_none() && lanes(&dir) == 1);
}

/// Its queue could not be consumed by anybody.
#[test]
fn a_successor_reads_on_beside_an_old_segment_that_cannot_be_removed() {
    let dir = TempDir::new("queue-unlink-successor");
    let n = node(&dir);
    let consumer = || n.queue::<[u64; 16]>("q").unwrap().consumer();
    let mut first = consumer().unwrap();
    let mut producer = n.queue::<[u64; 16]>("q").unwrap().producer().unwrap();
    while lanes(&dir) < 2 {
        producer.send(&[0; 16]).unwrap();
    }
    refuse("unlink", "/lane.", libc::EIO, u32::MAX);
    while first.receive().unwrap().is_some() {}
    drop(first);
    producer.send(&[7; 16]).unwrap_err();
    let second = consumer().map_err(|e| e.kind());
    assert!(second.is_ok(), "{second:?}");
    let mut second = second.unwrap();
    producer.send(&[8; 16]).unwrap();
    assert_eq!(second.receive().unwrap().unwrap()[0], 8);
    assert!(refuse_none() < u32::MAX, "it was to be removed");
    until(|| second.receive().unwrap().is_none() && lanes(&dir) == 1);
}

/// The padding before it is all that an idle consumer has not read.
#[test]
fn a_message_of_a_good_part_of_the_bound_is_taken_each_time_by_an_idle_lane() {
    for bytes in [300_000, 600_000] {
        let dir = TempDir::new("queue-large");
        let n = node(&dir);
        let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
        let builder = n.queue::<[u8]>("q").unwrap().bound_bytes(1 << 20);
        let mut producer = builder.producer().unwrap();
        for i in 0..100u8 {
            if i % 2 == 0 {
                producer.try_send(&vec![i; bytes]).unwrap();
            } else {
                let mut slot = producer.try_reserve_slice(bytes).unwrap();
                slot.fill(i);
                slot.commit();
            }
            let got = consumer.receive().unwrap().unwrap();
            assert!(got.len() == bytes && got.iter().all(|byte| *byte == i), "{i}");
        }
        assert!(producer.memory_bytes() <= 2 << 20, "{}", producer.memory_bytes());
        assert!(lanes(&dir) <= 2, "{bytes}");
    }
}

/// A call that does not wait takes a fresh segment, where the end of the lane is still to be read.
#[test]
fn a_send_that_waits_in_vain_gets_what_one_that_does_not_wait_gets() {
    let dir = TempDir::new("queue-fresh");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let builder = n.queue::<[u8]>("q").unwrap().bound_bytes(1 << 20);
    let mut producer = builder.producer().unwrap();
    for i in 0..10u8 {
        // The consumer has received everything, and is in no call.
        producer.send_timeout(&vec![i; 400_000], Duration::from_millis(5)).unwrap();
        assert_eq!(consumer.receive().unwrap().unwrap()[399_999], i);
    }
    producer.send_timeout(&[1; 400_000], Duration::ZERO).unwrap();
}
