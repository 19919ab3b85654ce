//! Where a lane cannot grow for lack of space. The limit is of the process, so in one of its own.
//! It says as little room as a full RAM disk.
#![allow(unsafe_code)]

use super::*;
use crate::os::fixture::thread_cpu;

/// It had made the queue, but not its lane.
#[test]
fn a_producer_that_found_no_room_leaves_no_type() {
    if !in_a_child(module_path!(), "a_producer_that_found_no_room_leaves_no_type") {
        return;
    }
    let dir = TempDir::new("queue-no-room");
    let n = node(&dir);
    let was = limit(4096);
    let e = n.queue::<u64>("q").unwrap().producer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NoSpace, "{e}");
    limit(was);
    let mut consumer = n.queue::<u32>("q").unwrap().consumer().unwrap();
    n.queue::<u32>("q").unwrap().producer().unwrap().send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
    // Of messages that wait for a consumer the type stays.
    n.queue::<u64>("kept").unwrap().producer().unwrap();
    let kept = n.queue::<u64>("kept").unwrap().consumer().unwrap();
    n.queue::<u64>("kept").unwrap().producer().unwrap().send(&1).unwrap();
    drop(kept);
    let e = n.queue::<u32>("kept").unwrap().consumer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch, "{e}");
}

#[test]
fn a_lane_that_cannot_grow_on_a_full_disk_says_so() {
    if !in_a_child(module_path!(), "a_lane_that_cannot_grow_on_a_full_disk_says_so") {
        return;
    }
    let dir = TempDir::new("queue-full-disk");
    let n = node(&dir);
    let mut consumer = n.queue::<[u64; 16]>("q").unwrap().consumer().unwrap();
    let builder = n.queue::<[u64; 16]>("q").unwrap().bound_bytes(64 << 10);
    let mut producer = builder.producer().unwrap();
    let mut fill = || {
        loop {
            if let Err(e) = producer.try_send(&[7; 16]) {
                break crate::Error::from(e);
            }
        }
    };
    let mut was = limit(16 << 10);
    let e = fill();
    assert_eq!(e.kind(), ErrorKind::WouldBlock);
    assert_eq!(e.object(), "/q");
    for part in ["its lane is full", "cannot grow", "lack of space", "RLIMIT_FSIZE", "as producer"]
    {
        assert!(e.to_string().contains(part), "{part:?}: {e}");
    }
    assert!(!e.to_string().contains("raise bound_bytes"), "{e}");
    // Where it can grow again up to its bound, that is what is told.
    assert!(!drain(&mut consumer).is_empty());
    was = limit(was);
    assert_eq!(was, 16 << 10);
    let e = fill();
    assert_eq!(e.kind(), ErrorKind::WouldBlock);
    assert!(e.to_string().contains("raise bound_bytes"), "{e}");
    limit(was);
    drain(&mut consumer);
    fill();
    let e = producer.send_timeout(&[7; 16], Duration::from_millis(5)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout, "{e}");
}

/// It would look again and again, without sleeping.
#[test]
fn who_waits_for_padding_to_be_read_on_a_full_disk_sleeps() {
    if !in_a_child(module_path!(), "who_waits_for_padding_to_be_read_on_a_full_disk_sleeps") {
        return;
    }
    let dir = TempDir::new("queue-padding-full-disk");
    let n = node(&dir);
    let mut consumer = n.queue::<[u8]>("q").unwrap().consumer().unwrap();
    let builder = n.queue::<[u8]>("q").unwrap().bound_bytes(1 << 20);
    let mut producer = builder.producer().unwrap();
    producer.send(&[1; 600_000]).unwrap();
    assert_eq!(consumer.receive().unwrap().unwrap().len(), 600_000);
    let was = limit(16 << 10);
    let before = thread_cpu();
    let e = producer.send_timeout(&[2; 600_000], Duration::from_millis(500)).unwrap_err();
    let took = thread_cpu() - before;
    limit(was);
    assert_eq!(e.kind(), ErrorKind::Timeout);
    assert!(took < Duration::from_millis(250), "{took:?} on a core");
    // Once the padding is read, it needs no other segment.
    assert!(consumer.receive().unwrap().is_none());
    limit(16 << 10);
    let sent = producer.try_send(&[2; 600_000]);
    limit(was);
    sent.unwrap();
}

/// Lets this process make files of `bytes` only; returns what it was.
fn limit(bytes: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a struct that lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit), 0);
        let was = std::mem::replace(&mut limit.rlim_cur, bytes);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        was
    }
}
