//! A clock that jumps: deadlines hold, stamps are claims, nothing is lost.

use super::*;
use crate::os::time::clock::set_test_offset;

const HOUR_NS: i64 = 3_600_000_000_000;

/// Runs `body` with this thread's clock shifted.
fn at<R>(offset_ns: i64, body: impl FnOnce() -> R) -> R {
    set_test_offset(offset_ns);
    let done = body();
    set_test_offset(0);
    done
}

#[test]
fn a_stamp_from_the_future_is_not_waited_for_and_makes_nobody_late() {
    let dir = TempDir::new("queue-future");
    let n = node(&dir);
    let open = || n.queue::<u64>("q").unwrap().stamped().producer().unwrap();
    let (mut good, mut ahead, _silent) = (open(), open(), open());
    let builder = n.queue::<u64>("q").unwrap().ordered(Duration::from_millis(20));
    let mut consumer = builder.consumer().unwrap();
    at(HOUR_NS, || ahead.send(&1).unwrap());
    // The silent producer might bring an earlier one: that is waited for, but not for an hour.
    assert_eq!(*wait(&mut consumer), 1);
    for i in 2..50 {
        let producer = if i % 3 == 0 { &mut ahead } else { &mut good };
        producer.send(&i).unwrap();
    }
    let mut got = Vec::new();
    for _ in 2..50 {
        let m = wait(&mut consumer);
        got.push((m.timestamp_ns().unwrap(), *m));
    }
    assert!(got.is_sorted_by_key(|(stamp, _)| *stamp), "{got:?}");
    // Equal stamps of two producers have no order.
    got.sort_unstable();
    assert!(got.iter().map(|(_, i)| *i).eq(2..50), "{got:?}");
    assert_eq!(consumer.late(), 0);
}

#[test]
fn after_a_jump_back_every_message_comes_in_its_producers_order() {
    let dir = TempDir::new("queue-back");
    let n = node(&dir);
    let open = || n.queue::<u64>("q").unwrap().stamped().producer().unwrap();
    let (mut a, mut b) = (open(), open());
    let builder = n.queue::<u64>("q").unwrap().ordered(Duration::from_millis(5));
    let mut consumer = builder.consumer().unwrap();
    let mut got = [Vec::new(), Vec::new()];
    for i in 0..300 {
        let offset = [0, HOUR_NS, -HOUR_NS / 60, 1000][(i / 10 % 4) as usize];
        at(offset, || {
            a.send(&(2 * i)).unwrap();
            b.send(&(2 * i + 1)).unwrap();
        });
        if i % 7 == 0 {
            let m = *wait(&mut consumer);
            got[m as usize % 2].push(m);
        }
    }
    while got[0].len() + got[1].len() < 600 {
        let m = *wait(&mut consumer);
        got[m as usize % 2].push(m);
    }
    for (k, got) in got.iter().enumerate() {
        assert_eq!(*got, (0..300).map(|i| 2 * i + k as u64).collect::<Vec<_>>());
    }
}

#[test]
fn a_deadline_that_a_jump_has_passed_hides_no_message_and_ends_a_wait() {
    let dir = TempDir::new("queue-jump");
    let n = node(&dir);
    let queue = || n.queue::<u64>("q").unwrap().bound_bytes(4096).first_bytes(4096);
    let mut consumer = queue().consumer().unwrap();
    let mut producer = queue().producer().unwrap();
    let deadline = Deadline::in_ns(60_000_000_000);
    producer.send(&7).unwrap();
    at(HOUR_NS, || {
        while consumer.next_event().is_some() {}
        assert_eq!(consumer.receive_until(deadline).unwrap().map(|m| *m), Some(7));
        assert!(consumer.receive_until(deadline).unwrap().is_none());
        // Room is there: the deadline is for waiting only.
        producer.send_until(&8, deadline).unwrap();
        let error = loop {
            if let Err(e) = producer.send_until(&9, deadline) {
                break e;
            }
        };
        assert_eq!(error.kind(), ErrorKind::Timeout);
    });
    // Back again: what was sent is there, and so is room.
    assert_eq!(consumer.receive().unwrap().map(|m| *m), Some(8));
    while consumer.receive().unwrap().is_some() {}
    producer.send(&10).unwrap();
    assert_eq!(consumer.receive().unwrap().map(|m| *m), Some(10));
}

#[test]
fn a_wait_by_a_clock_behind_the_kernels_ends_when_it_should() {
    let dir = TempDir::new("queue-jump-back");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let _producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    // Behind the real clock, by which the kernel sleeps: it must still end.
    at(-HOUR_NS / 60, || {
        let began = crate::now_ns();
        let until = Deadline::at_ns(began + 20_000_000);
        while !until.has_passed() {
            assert!(consumer.receive_until(until).unwrap().is_none());
            while consumer.next_event().is_some() {}
        }
        assert!(until.has_passed());
    });
}
