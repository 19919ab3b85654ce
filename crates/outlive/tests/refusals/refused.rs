//! Calls that are refused, or find nothing, without a system call.

use std::time::Duration;

use outlive::lock::{RawMutex, RawRwLock};
use outlive::{Deadline, ErrorKind, rt};

use crate::scene::{Row, behind, elsewhere, full_lane, lane, ports, scene, service, slices};
use crate::starving;

pub(crate) const REFUSED: &[Row] = &[
    ("try_send, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                assert_eq!(producer.try_send(&[7; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_send, no consumer", || {
        scene(|node| {
            let mut producer = node.queue::<[u64; 8]>("/q").unwrap().producer().unwrap();
            move || {
                assert_eq!(producer.try_send(&[7; 8]).unwrap_err().kind(), ErrorKind::OwnerDied);
            }
        })
    }),
    ("try_send_batch, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                let sent = producer.try_send_batch(&[[7; 8]; 4]);
                assert_eq!(sent.unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_reserve, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                assert_eq!(producer.try_reserve().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_reserve, no consumer", || {
        scene(|node| {
            let mut producer = node.queue::<[u64; 8]>("/q").unwrap().producer().unwrap();
            move || {
                assert_eq!(producer.try_reserve().unwrap_err().kind(), ErrorKind::OwnerDied);
            }
        })
    }),
    ("try_publish inline, reliable subscriber behind", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap().depth(4);
            let subscriber = topic().reliable(true).subscriber().unwrap();
            let publisher = topic().publisher().unwrap();
            (0..4).for_each(|n| assert_eq!(publisher.publish(&n).unwrap(), n));
            move || {
                let _ = &subscriber;
                assert_eq!(publisher.try_publish(&7).unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_publish, try_loan and try_publish, reliable subscriber behind", || {
        scene(|node| {
            let topic = || node.topic::<[u8; 4096]>("/t").unwrap().depth(4);
            let subscriber = topic().reliable(true).subscriber().unwrap();
            let publisher = topic().publisher().unwrap();
            (0..4).for_each(|_| assert!(publisher.publish(&[1; 4096]).is_ok()));
            move || {
                let _ = &subscriber;
                let sent = publisher.try_publish(&[1; 4096]);
                assert_eq!(sent.unwrap_err().kind(), ErrorKind::WouldBlock);
                let sent = publisher.try_loan().unwrap().try_publish();
                assert_eq!(sent.unwrap_err().why.kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_loan, no free chunk", || {
        scene(|node| {
            let topic = node.topic::<[u8; 4096]>("/t").unwrap().memory_bytes_max(64 << 10);
            // The loans outlive this function.
            let publisher: &'static _ = Box::leak(Box::new(topic.publisher().unwrap()));
            let loans: Vec<_> = std::iter::from_fn(|| publisher.try_loan().ok()).collect();
            assert!(loans.len() > 4);
            move || {
                let _ = &loans;
                assert_eq!(publisher.try_loan().unwrap_err().kind(), ErrorKind::OutOfMemory);
            }
        })
    }),
    ("receive on a topic, none", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                let _ = &publisher;
                assert!(subscriber.receive().unwrap().is_none());
            }
        })
    }),
    ("receive on a queue, none", || {
        scene(|node| {
            let queue = || node.queue::<u64>("/q").unwrap();
            let (mut consumer, producer) =
                (queue().consumer().unwrap(), queue().producer().unwrap());
            move || {
                let _ = &producer;
                assert!(consumer.receive().unwrap().is_none());
            }
        })
    }),
    ("receive of a client and of a server, none", || {
        scene(|node| {
            let service = || node.service::<u64, u64>("/s").unwrap();
            let (mut server, mut client) =
                (service().server().unwrap(), service().client().unwrap());
            move || {
                assert!(client.receive().unwrap().is_none());
                assert!(server.receive().unwrap().is_none());
            }
        })
    }),
    ("receive, all samples held", || {
        scene(|node| {
            let topic = || node.topic::<[u64]>("/t").unwrap().depth(4);
            let publisher = topic().publisher().unwrap();
            let mut subscriber = topic().borrows(1).subscriber().unwrap();
            publisher.publish(&[7; 512]).unwrap();
            let held = subscriber.receive().unwrap().unwrap();
            publisher.publish(&[7; 512]).unwrap();
            move || {
                let _ = (&publisher, &held);
                let refused = subscriber.receive().unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::TooManyBorrows);
            }
        })
    }),
    ("receive and latest, no memory for one more sample", || {
        scene(|node| {
            let (publisher, mut subscriber) = ports::<u64>(node);
            let mut next = || {
                publisher.publish(&7).unwrap();
                subscriber.receive()
            };
            let mut held: Vec<_> = (0..200).map(|_| next().unwrap()).collect();
            held.reserve(1000);
            while let Ok(sample) = starving(&mut next) {
                held.push(sample);
            }
            move || {
                let _ = (&publisher, &held);
                let refused = starving(|| subscriber.receive());
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfMemory);
                let refused = starving(|| subscriber.latest());
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfMemory);
            }
        })
    }),
    ("send of a client, no server", || {
        scene(|node| {
            let mut client = node.service::<u64, u64>("/s").unwrap().client().unwrap();
            move || {
                assert_eq!(client.send(&7).unwrap_err().kind(), ErrorKind::ServerDied);
            }
        })
    }),
    ("try_lock of a mutex, held", || {
        scene(|node| {
            let mutex = || node.mutex::<u64>("/m").unwrap();
            elsewhere(mutex(), |mutex| std::mem::forget(mutex.lock().unwrap()));
            let mutex = mutex();
            move || {
                assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_read and try_write, held for writing", || {
        scene(|node| {
            let lock = || node.rwlock::<u64>("/rw").unwrap();
            elsewhere(lock(), |lock| std::mem::forget(lock.write().unwrap()));
            let lock = lock();
            move || {
                assert_eq!(lock.try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
                assert_eq!(lock.try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_acquire, no permit", || {
        scene(|node| {
            let semaphore = || node.semaphore("/s", 1).unwrap();
            elsewhere(semaphore(), |semaphore| std::mem::forget(semaphore.acquire().unwrap()));
            let semaphore = semaphore();
            move || {
                assert_eq!(semaphore.try_acquire().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_reserve_slice, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = slices(node);
            while producer.send_until(&[7; 64], Deadline::AT_ONCE).is_ok() {}
            move || {
                let _ = &consumer;
                let full = producer.try_reserve_slice(64);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
                let full = producer.reserve_slice_until(64, Deadline::AT_ONCE);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_reserve_slice and has_consumer, no consumer", || {
        scene(|node| {
            let mut producer = node.queue::<[u64]>("/q").unwrap().producer().unwrap();
            move || {
                let nobody = producer.try_reserve_slice(64);
                assert_eq!(nobody.unwrap_err().kind(), ErrorKind::OwnerDied);
                assert!(!producer.has_consumer());
            }
        })
    }),
    ("send_until and send_batch_until at once, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                let full = producer.send_until(&[7; 8], Deadline::AT_ONCE);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
                let full = producer.send_batch_until(&[[7; 8]; 4], Deadline::AT_ONCE);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("send, send_batch and reserve, no consumer", || {
        scene(|node| {
            let mut producer = node.queue::<[u64; 8]>("/q").unwrap().producer().unwrap();
            move || {
                assert_eq!(producer.send(&[7; 8]).unwrap_err().kind(), ErrorKind::OwnerDied);
                let nobody = producer.send_batch(&[[7; 8]; 4]);
                assert_eq!(nobody.unwrap_err().kind(), ErrorKind::OwnerDied);
                assert_eq!(producer.reserve().unwrap_err().kind(), ErrorKind::OwnerDied);
            }
        })
    }),
    ("try_publish and try_loan_slice of a slice, reliable subscriber behind", || {
        scene(|node| {
            let (publisher, subscriber) = behind(node, Duration::ZERO);
            move || {
                let _ = &subscriber;
                let sent = publisher.try_publish(&[7; 512]);
                assert_eq!(sent.unwrap_err().kind(), ErrorKind::WouldBlock);
                let sent = publisher.try_loan_slice(512).unwrap().try_publish();
                assert_eq!(sent.unwrap_err().why.kind(), ErrorKind::WouldBlock);
                let full = publisher.wait_for_room(Deadline::AT_ONCE);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("try_loan_slice, no free chunk", || {
        scene(|node| {
            let topic = node.topic::<[u8]>("/t").unwrap().memory_bytes_max(64 << 10);
            // The loans outlive this function.
            let publisher: &'static _ = Box::leak(Box::new(topic.publisher().unwrap()));
            let loans: Vec<_> =
                std::iter::from_fn(|| publisher.try_loan_slice(4096).ok()).collect();
            assert!(loans.len() > 4);
            move || {
                let _ = &loans;
                let full = publisher.try_loan_slice(4096);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::OutOfMemory);
            }
        })
    }),
    ("each way to receive on a topic, none", || {
        scene(|node| {
            let (publisher, mut subscriber) = ports::<u64>(node);
            let (mut number, mut bytes, mut batch) = (0, Vec::new(), Vec::with_capacity(8));
            move || {
                let _ = &publisher;
                assert!(subscriber.latest().unwrap().is_none());
                assert!(subscriber.receive_in_order().unwrap().is_none());
                assert!(subscriber.drain().next().is_none());
                assert!(subscriber.copy_to(&mut number).unwrap().is_none());
                assert!(subscriber.copy_bytes(&mut bytes).unwrap().is_none());
                assert_eq!(subscriber.receive_batch(&mut batch, 8).unwrap(), 0);
                assert!(subscriber.receive_until(Deadline::AT_ONCE).unwrap().is_none());
            }
        })
    }),
    ("each way to receive on a queue, none", || {
        scene(|node| {
            let (producer, mut consumer) = lane(node, 16 << 10);
            let (mut copy, mut batch) = ([0; 8], Vec::new());
            move || {
                let _ = &producer;
                assert!(consumer.receive_slice().unwrap().is_none());
                assert!(consumer.receive_until(Deadline::AT_ONCE).unwrap().is_none());
                assert!(consumer.receive_slice_until(Deadline::AT_ONCE).unwrap().is_none());
                assert!(!consumer.wait_for_message(Deadline::AT_ONCE).unwrap());
                assert!(!consumer.copy_to(&mut copy).unwrap());
                assert_eq!(consumer.receive_batch(&mut batch, 8).unwrap(), 0);
            }
        })
    }),
    ("receive_until at once of a client and of a server, none", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            move || {
                assert!(client.receive_until(Deadline::AT_ONCE).unwrap().is_none());
                assert!(server.receive_until(Deadline::AT_ONCE).unwrap().is_none());
            }
        })
    }),
    #[cfg(feature = "msgpack")]
    ("receive_value, none", || {
        scene(|node| {
            let topic = || node.msgpack::<(u64, f64)>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                let _ = &publisher;
                assert!(subscriber.receive_value().unwrap().is_none());
            }
        })
    }),
    ("respond_part, the client is gone", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            client.send(&7).unwrap();
            let request = server.receive().unwrap().unwrap();
            drop(client);
            move || {
                let gone = server.respond_part(&request, &8);
                assert_eq!(gone.unwrap_err().kind(), ErrorKind::ClientDied);
                assert!(server.is_cancelled(&request).unwrap());
            }
        })
    }),
    ("try_lock of a RawMutex, try_read and try_write of a RawRwLock, held", || {
        scene(|node| {
            let mutex = || RawMutex::open(node, "/m").unwrap();
            elsewhere(mutex(), |mutex| assert!(mutex.lock().is_ok()));
            let lock = || RawRwLock::open(node, "/rw").unwrap();
            elsewhere(lock(), |lock| assert!(lock.write().is_ok()));
            let (mutex, lock) = (mutex(), lock());
            move || {
                assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
                assert_eq!(lock.try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
                assert_eq!(lock.try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("locks that the caller holds", || {
        scene(|node| {
            // Their guards outlive this function.
            let mutex: &'static _ = Box::leak(Box::new(node.mutex::<u64>("/m").unwrap()));
            let lock: &'static _ = Box::leak(Box::new(node.rwlock::<u64>("/rw").unwrap()));
            let held = (mutex.lock().unwrap(), lock.write().unwrap());
            move || {
                let _ = &held;
                assert_eq!(mutex.lock().unwrap_err().kind(), ErrorKind::Deadlock);
                assert_eq!(lock.read().unwrap_err().kind(), ErrorKind::Deadlock);
                assert_eq!(lock.write().unwrap_err().kind(), ErrorKind::Deadlock);
            }
        })
    }),
    ("insert into a full set, and of a member", || {
        scene(|node| {
            let set = node.lockless_set("/set", 2).unwrap();
            assert!(set.insert(7).unwrap() && set.insert(8).unwrap());
            move || {
                assert_eq!(set.insert(9).unwrap_err().kind(), ErrorKind::NoSpace);
                assert!(!set.insert(8).unwrap() && !set.remove(9) && !set.contains(9));
            }
        })
    }),
    ("read and pop of real-time channels, none; push, full", || {
        scene(|_| {
            let (newest, mut reader) = rt::latest::<u64>();
            let (mut full, unread) = rt::spsc::<u64>(1);
            full.push(&7).unwrap();
            let (unused, mut empty) = rt::spsc::<u64>(1);
            move || {
                let _ = (&newest, &unread, &unused);
                assert!(reader.read().unwrap().is_none() && empty.pop().unwrap().is_none());
                assert_eq!(full.push(&7), Err(rt::NotPushed::Full));
            }
        })
    }),
];
