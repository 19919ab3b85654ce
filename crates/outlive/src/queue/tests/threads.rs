//! Producers and consumer in threads of one process, for the sanitizers: data is shared through
//! the queue and `join` only.

use std::time::Duration;

use super::node;
use crate::ErrorKind;
use crate::os::fixture::TempDir;

const MESSAGES: u64 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

#[test]
fn three_producers_send_alone_in_batches_and_in_place() {
    let dir = TempDir::new("queue-threads");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let producers: Vec<_> = (0..3u64)
        .map(|k| {
            let n = n.clone();
            std::thread::spawn(move || {
                let builder = n.queue::<u64>("q").unwrap().bound_bytes(64 << 10);
                let mut p = builder.producer().unwrap();
                let mut i = 0;
                while i < MESSAGES {
                    match i % 3 {
                        0 => p.send(&(k << 32 | i)).unwrap(),
                        1 => {
                            let batch: Vec<_> =
                                (i..(i + 30).min(MESSAGES)).map(|i| k << 32 | i).collect();
                            p.send_batch(&batch).unwrap();
                            i += batch.len() as u64 - 1;
                        }
                        _ => {
                            let mut slot = p.reserve().unwrap();
                            *slot = k << 32 | i;
                            slot.commit();
                        }
                    }
                    i += 1;
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    while next != [MESSAGES; 3] {
        if let Some(m) = consumer.receive_timeout(Duration::from_secs(20)).unwrap() {
            let (k, i) = ((*m >> 32) as usize, *m & 0xffff_ffff);
            assert_eq!(i, next[k]);
            next[k] += 1;
        }
    }
    producers.into_iter().for_each(|p| p.join().unwrap());
}

#[test]
fn a_consumer_is_replaced_again_and_again_while_producers_send() {
    let dir = TempDir::new("queue-replace");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let producers: Vec<_> = (0..2u64)
        .map(|k| {
            let n = n.clone();
            std::thread::spawn(move || {
                let mut p = n.queue::<u64>("q").unwrap().producer().unwrap();
                let mut i = 0;
                while i < MESSAGES {
                    match p.send(&(k << 32 | i)) {
                        Ok(()) => i += 1,
                        Err(e) => {
                            assert_eq!(e.kind(), ErrorKind::OwnerDied);
                            assert!(p.wait_for_consumer(Duration::from_secs(20)).unwrap());
                        }
                    }
                }
            })
        })
        .collect();
    let mut next = [0; 2];
    while next != [MESSAGES; 2] {
        for _ in 0..1000 {
            if let Some(m) = consumer.receive().unwrap() {
                let (k, i) = ((*m >> 32) as usize, *m & 0xffff_ffff);
                assert_eq!(i, next[k]);
                next[k] += 1;
            }
        }
        drop(consumer);
        consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    }
    producers.into_iter().for_each(|p| p.join().unwrap());
}
