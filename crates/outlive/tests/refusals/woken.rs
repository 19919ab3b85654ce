//! Calls that are refused, or find nothing, after they waited or asked the kernel.

use std::time::Duration;

use outlive::{Deadline, ErrorKind, WaitSet, Waitable};

use crate::scene::{Row, behind, elsewhere, full_lane, lane, ports, scene, service, slices};

const SHORT: Duration = Duration::from_micros(1);

/// Refused, with system calls: who waits reads the clock and sleeps; whoever found the lock taken
/// meanwhile may sleep, and is woken; a client asks the kernel whether its full server lives.
pub(crate) const REFUSED_AND_WOKEN: &[Row] = &[
    ("try_write, held for reading", || {
        scene(|node| {
            let lock = || node.rwlock::<u64>("/rw").unwrap();
            elsewhere(lock(), |lock| std::mem::forget(lock.read().unwrap()));
            let lock = lock();
            move || {
                assert_eq!(lock.try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("send_timeout, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                let late = producer.send_timeout(&[7; 8], SHORT);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("publish, reliable subscriber behind for longer than allowed", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap().depth(4);
            let subscriber = topic().reliable(true).subscriber().unwrap();
            let publisher = topic().reliable_timeout(SHORT).publisher().unwrap();
            (0..4).for_each(|n| assert_eq!(publisher.publish(&n).unwrap(), n));
            move || {
                let _ = &subscriber;
                assert_eq!(publisher.publish(&7).unwrap_err().kind(), ErrorKind::Timeout);
                let late = publisher.publish_batch(&[7; 2]);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("send of a client, full lane", || {
        scene(|node| {
            let service = || node.service::<u64, u64>("/s").unwrap();
            let server = service().server().unwrap();
            let mut client = service().bound_bytes(16 << 10).client().unwrap();
            while client.send(&7).is_ok() {}
            move || {
                let _ = &server;
                assert_eq!(client.send(&7).unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
    ("receive_for of a client, late", || {
        scene(|node| {
            let service = || node.service::<u64, u64>("/s").unwrap();
            let (server, mut client) = (service().server().unwrap(), service().client().unwrap());
            let ticket = client.send(&7).unwrap();
            let until = outlive::Deadline::after(Duration::ZERO);
            move || {
                let _ = &server;
                let late = client.receive_for(ticket, until);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("try_lock and lock_timeout of a PiMutex, held", || {
        scene(|node| {
            let mutex = || node.pi_mutex::<u64>("/pi").unwrap();
            elsewhere(mutex(), |mutex| std::mem::forget(mutex.lock().unwrap()));
            let mutex = mutex();
            move || {
                assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
                assert_eq!(mutex.lock_timeout(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("lock_timeout of a mutex, held", || {
        scene(|node| {
            let mutex = || node.mutex::<u64>("/m").unwrap();
            elsewhere(mutex(), |mutex| std::mem::forget(mutex.lock().unwrap()));
            let mutex = mutex();
            move || {
                assert_eq!(mutex.lock_timeout(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("read_timeout and write_timeout, held for writing", || {
        scene(|node| {
            let lock = || node.rwlock::<u64>("/rw").unwrap();
            elsewhere(lock(), |lock| std::mem::forget(lock.write().unwrap()));
            let lock = lock();
            move || {
                assert_eq!(lock.read_timeout(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
                assert_eq!(lock.write_timeout(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("write_timeout, held for reading", || {
        scene(|node| {
            let lock = || node.rwlock::<u64>("/rw").unwrap();
            elsewhere(lock(), |lock| std::mem::forget(lock.read().unwrap()));
            let lock = lock();
            move || {
                assert_eq!(lock.write_timeout(SHORT).unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("acquire_timeout, no permit", || {
        scene(|node| {
            let semaphore = || node.semaphore("/s", 1).unwrap();
            elsewhere(semaphore(), |semaphore| std::mem::forget(semaphore.acquire().unwrap()));
            let semaphore = semaphore();
            move || {
                let late = semaphore.acquire_timeout(SHORT);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("wait_timeout of a condition variable, late", || {
        scene(|node| {
            let mutex = node.mutex::<u64>("/m").unwrap();
            let condition = node.condvar("/c").unwrap();
            move || {
                let (guard, told) = condition.wait_timeout(mutex.lock().unwrap(), SHORT).unwrap();
                assert!(!told && *guard == 0);
            }
        })
    }),
    ("send_batch_until and reserve_slice_until, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = full_lane(node);
            move || {
                let _ = &consumer;
                let late = producer.send_batch_until(&[[7; 8]; 4], Deadline::after(SHORT));
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("reserve_slice_until, full lane", || {
        scene(|node| {
            let (mut producer, consumer) = slices(node);
            while producer.send_until(&[7; 64], Deadline::AT_ONCE).is_ok() {}
            move || {
                let _ = &consumer;
                let late = producer.reserve_slice_until(64, Deadline::after(SHORT));
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("publish, loan_slice and wait_for_room of slices, reliable subscriber behind", || {
        scene(|node| {
            let (publisher, subscriber) = behind(node, SHORT);
            move || {
                let _ = &subscriber;
                let late = publisher.publish(&[7; 512]);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
                let late = publisher.loan_slice(512).unwrap().publish();
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
                let late = publisher.wait_for_room(Deadline::after(SHORT));
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    (
        "receive_timeout of a subscriber, a consumer, a client and a server, and a wait set, none",
        || {
            scene(|node| {
                let (publisher, mut subscriber) = ports::<u64>(node);
                let (producer, mut consumer) = lane(node, 16 << 10);
                let (mut server, mut client) = service(node);
                let mut waits = WaitSet::new();
                move || {
                    let _ = (&publisher, &producer);
                    assert!(subscriber.receive_timeout(SHORT).unwrap().is_none());
                    assert!(consumer.receive_timeout(SHORT).unwrap().is_none());
                    assert!(client.receive_timeout(SHORT).unwrap().is_none());
                    assert!(server.receive_timeout(SHORT).unwrap().is_none());
                    // What is not asked about ends a wait.
                    while subscriber.next_event().is_some() || consumer.next_event().is_some() {}
                    let members: &mut [&mut dyn Waitable] = &mut [&mut subscriber, &mut consumer];
                    assert!(waits.wait(members, SHORT).unwrap().is_empty());
                }
            })
        },
    ),
    ("call_timeout of a client, late", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            move || {
                let late = client.call_timeout(&7, Duration::ZERO);
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
                assert!(server.receive().unwrap().is_none());
            }
        })
    }),
    ("respond_part, full lane of replies", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            client.send(&7).unwrap();
            let request = server.receive().unwrap().unwrap();
            while server.respond_part(&request, &8).is_ok() {}
            move || {
                let _ = &client;
                let full = server.respond_part(&request, &8);
                assert_eq!(full.unwrap_err().kind(), ErrorKind::WouldBlock);
            }
        })
    }),
];
