//! Calls that do what they are asked to.

use std::ops::ControlFlow;
use std::time::Duration;

use outlive::lock::{Acquired, RawMutex, RawRwLock};
use outlive::msg::{Image, ImageHeader, PixelFormat};
use outlive::{Deadline, ErrorKind, PayloadType, WaitSet, rt};

use crate::scene::{Row, answered, lane, ports, scene, service, slices};

const SOON: Duration = Duration::from_secs(60);

pub(crate) const ACCEPTED: &[Row] = &[
    ("send and receive", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            move || {
                producer.send(&[7; 8]).unwrap();
                assert_eq!(consumer.receive().unwrap().unwrap()[7], 7);
            }
        })
    }),
    ("try_send and receive", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            move || {
                producer.try_send(&[7; 8]).unwrap();
                assert_eq!(consumer.receive().unwrap().unwrap()[7], 7);
            }
        })
    }),
    ("try_send_batch and receive_slice", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            move || {
                producer.try_send_batch(&[[7; 8]; 4]).unwrap();
                assert_eq!(consumer.receive_slice().unwrap().unwrap().len(), 4);
            }
        })
    }),
    ("reserve, try_reserve, commit", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            move || {
                producer.reserve().unwrap().commit();
                producer.try_reserve().unwrap().commit();
                assert!(consumer.receive().unwrap().is_some());
                assert!(consumer.receive().unwrap().is_some());
            }
        })
    }),
    ("publish inline and receive", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                publisher.publish(&7).unwrap();
                assert_eq!(*subscriber.receive().unwrap().unwrap(), 7);
            }
        })
    }),
    ("publish a chunk, loan and publish, receive", || {
        scene(|node| {
            let topic = || node.topic::<[u8; 4096]>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                publisher.publish(&[7; 4096]).unwrap();
                publisher.try_loan().unwrap().try_publish().unwrap();
                assert_eq!(subscriber.receive().unwrap().unwrap()[0], 7);
                assert!(subscriber.receive().unwrap().is_some());
            }
        })
    }),
    ("publish to a reliable subscriber and receive", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap().depth(4);
            let mut subscriber = topic().reliable(true).subscriber().unwrap();
            let publisher = topic().reliable_timeout(Duration::ZERO).publisher().unwrap();
            move || {
                publisher.publish(&7).unwrap();
                assert_eq!(*subscriber.receive().unwrap().unwrap(), 7);
            }
        })
    }),
    ("publish_batch and receive_batch, latest, copy_to, receive_in_order", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            let mut batch = Vec::with_capacity(8);
            move || {
                publisher.publish_batch(&[1, 2, 3]).unwrap();
                batch.clear();
                assert_eq!(subscriber.receive_batch(&mut batch, 8).unwrap(), 3);
                publisher.publish_batch(&[4, 5]).unwrap();
                assert_eq!(*subscriber.latest().unwrap().unwrap(), 5);
                publisher.publish(&6).unwrap();
                let mut copy = 0;
                assert!(subscriber.copy_to(&mut copy).unwrap().is_some() && copy == 6);
                publisher.publish(&7).unwrap();
                assert_eq!(*subscriber.receive_in_order().unwrap().unwrap(), 7);
            }
        })
    }),
    ("a request and its reply", || {
        scene(|node| {
            let service = || node.service::<u64, u64>("/s").unwrap();
            let (mut server, mut client) =
                (service().server().unwrap(), service().client().unwrap());
            move || {
                client.send(&7).unwrap();
                let request = server.receive().unwrap().unwrap();
                server.respond(request, &8).unwrap();
                assert!(client.receive().unwrap().is_some());
            }
        })
    }),
    ("set, condition variable, mutex with priority inheritance, wait set", || {
        scene(|node| {
            let set = node.lockless_set("/set", 16).unwrap();
            let mutex = node.pi_mutex::<u64>("/pi").unwrap();
            let condition = node.condvar("/c").unwrap();
            let (mut subscriber, publisher) = {
                let topic = || node.topic::<u64>("/t").unwrap();
                (topic().subscriber().unwrap(), topic().publisher().unwrap())
            };
            let mut waits = WaitSet::new();
            move || {
                set.insert(7).unwrap();
                assert!(set.remove(7));
                *mutex.lock().unwrap() += 1;
                condition.notify_all();
                publisher.publish(&7).unwrap();
                waits.wait(&mut [&mut subscriber], Duration::ZERO).unwrap();
                assert!(subscriber.receive().unwrap().is_some());
            }
        })
    }),
    ("try_lock, try_read, try_write, try_acquire", || {
        scene(|node| {
            let mutex = node.mutex::<u64>("/m").unwrap();
            let lock = node.rwlock::<u64>("/rw").unwrap();
            let semaphore = node.semaphore("/s", 1).unwrap();
            move || {
                *mutex.try_lock().unwrap() += 1;
                *lock.try_write().unwrap() += 1;
                assert!(*lock.try_read().unwrap() > 0);
                drop(semaphore.try_acquire().unwrap());
            }
        })
    }),
    ("send_timeout, send_until, send_batch, send_batch_until and receive_batch", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            let mut batch = Vec::with_capacity(8);
            move || {
                producer.send_timeout(&[7; 8], SOON).unwrap();
                producer.send_until(&[7; 8], Deadline::after(SOON)).unwrap();
                producer.send_batch(&[[7; 8]; 2]).unwrap();
                producer.send_batch_until(&[[7; 8]; 2], Deadline::after(SOON)).unwrap();
                batch.clear();
                assert_eq!(consumer.receive_batch(&mut batch, 8).unwrap(), 6);
            }
        })
    }),
    ("slices: send, reserve_slice, try_reserve_slice, reserve_slice_until and receive", || {
        scene(|node| {
            let (mut producer, mut consumer) = slices(node);
            move || {
                producer.send(&[7; 64]).unwrap();
                producer.reserve_slice(64).unwrap().commit();
                producer.try_reserve_slice(64).unwrap().commit();
                let slot = producer.reserve_slice_until(64, Deadline::after(SOON)).unwrap();
                slot.commit();
                for _ in 0..4 {
                    assert_eq!(consumer.receive().unwrap().unwrap().len(), 64);
                }
            }
        })
    }),
    ("send_batch_bytes and copy_to", || {
        scene(|node| {
            let queue = || node.queue::<[u8]>("/q").unwrap().of_type(&PayloadType::of::<u64>());
            let mut consumer = node.queue::<u64>("/q").unwrap().consumer().unwrap();
            let mut producer = queue().producer().unwrap();
            let mut copy = 0;
            move || {
                producer.send_batch_bytes(&[7; 16], Deadline::AT_ONCE).unwrap();
                assert!(
                    consumer.copy_to(&mut copy).unwrap() && consumer.copy_to(&mut copy).unwrap()
                );
            }
        })
    }),
    ("nack, ack, and waits that find a message", || {
        scene(|node| {
            let (mut producer, mut consumer) = lane(node, 16 << 10);
            move || {
                producer.send(&[7; 8]).unwrap();
                consumer.receive().unwrap().unwrap().nack();
                assert!(consumer.wait_for_message(Deadline::after(SOON)).unwrap());
                consumer.receive_slice().unwrap().unwrap().nack();
                consumer.receive_timeout(SOON).unwrap().unwrap().ack();
                producer.send_batch(&[[7; 8]; 2]).unwrap();
                let slice = consumer.receive_slice_until(Deadline::after(SOON)).unwrap().unwrap();
                assert_eq!(slice.len(), 2);
            }
        })
    }),
    ("an ordered queue of two producers", || {
        scene(|node| {
            let queue = || node.queue::<u64>("/q").unwrap().ordered(Duration::ZERO);
            let mut consumer = queue().consumer().unwrap();
            let mut producers = [(); 2].map(|()| queue().producer().unwrap());
            move || {
                producers.iter_mut().for_each(|producer| producer.send(&7).unwrap());
                for _ in 0..2 {
                    assert!(consumer.receive_timeout(SOON).unwrap().is_some());
                }
            }
        })
    }),
    ("slices: publish, loan_slice, try_loan_slice, try_publish, copy_bytes, drain", || {
        scene(|node| {
            let (publisher, mut subscriber) = ports::<[u64]>(node);
            let mut bytes = Vec::with_capacity(4096);
            move || {
                publisher.publish(&[7; 512]).unwrap();
                publisher.try_publish(&[7; 512]).unwrap();
                publisher.loan_slice(512).unwrap().publish().unwrap();
                publisher.try_loan_slice(512).unwrap().try_publish().unwrap();
                assert!(
                    subscriber.copy_bytes(&mut bytes).unwrap().is_some() && bytes.len() == 4096
                );
                assert_eq!(subscriber.drain().count(), 3);
            }
        })
    }),
    ("try_publish, publish_batch_bytes, and waits that find a message", || {
        scene(|node| {
            let (publisher, mut subscriber) = ports::<u64>(node);
            let any = node.topic::<[u8]>("/t").unwrap().publisher_of_any_type().unwrap();
            move || {
                publisher.try_publish(&7).unwrap();
                any.publish_batch_bytes(&[7; 16]).unwrap();
                publisher.wait_for_room(Deadline::AT_ONCE).unwrap();
                assert!(subscriber.receive_timeout(SOON).unwrap().is_some());
                let soon = Deadline::after(SOON);
                assert!(subscriber.receive_until(soon).unwrap().is_some());
                let stop = |_| ControlFlow::Break(());
                subscriber.for_each(SOON, stop).unwrap();
            }
        })
    }),
    ("a header and elements: publish_headed, loan_headed, loan_image", || {
        scene(|node| {
            let (publisher, mut subscriber) = ports::<Image>(node);
            let header = ImageHeader { format: PixelFormat::RGB8, ..ImageHeader::default() };
            move || {
                publisher.publish_headed(header, &[7; 300]).unwrap();
                publisher.loan_headed(header, 300).unwrap().publish().unwrap();
                let image = publisher.loan_image(header.header, 10, 10, PixelFormat::RGB8);
                image.unwrap().publish().unwrap();
                assert_eq!(subscriber.drain().count(), 3);
            }
        })
    }),
    #[cfg(feature = "msgpack")]
    ("publish_value and receive_value", || {
        scene(|node| {
            let topic = || node.msgpack::<(u64, [f64; 3])>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                publisher.publish_value(&(7, [0.5; 3])).unwrap();
                assert_eq!(subscriber.receive_value().unwrap().unwrap().0, 7);
            }
        })
    }),
    #[cfg(feature = "msgpack")]
    ("publish_value and receive_value, too large for an entry", || {
        scene(|node| {
            let topic = || node.msgpack::<[[f64; 16]; 32]>("/t").unwrap();
            let (mut subscriber, publisher) =
                (topic().subscriber().unwrap(), topic().publisher().unwrap());
            move || {
                publisher.publish_value(&[[0.5; 16]; 32]).unwrap();
                assert_eq!(subscriber.receive_value().unwrap().unwrap()[31][15], 0.5);
            }
        })
    }),
    ("parts of an answer, cancel, is_cancelled, receive_for", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            move || {
                let ticket = client.send_until(&7, Deadline::after(SOON)).unwrap();
                let request = server.receive_timeout(SOON).unwrap().unwrap();
                server.respond_part(&request, &8).unwrap();
                server.respond(request, &9).unwrap();
                let part = client.receive_for(ticket, Deadline::AT_ONCE).unwrap();
                assert_eq!(*part.body().unwrap(), 8);
                assert!(client.receive_timeout(SOON).unwrap().unwrap().is_last());

                let ticket = client.send(&7).unwrap();
                let request = server.receive().unwrap().unwrap();
                client.cancel(ticket).unwrap();
                assert!(server.is_cancelled(&request).unwrap());
                server.respond(request, &9).unwrap();
                assert!(client.receive().unwrap().is_none());
            }
        })
    }),
    ("call_timeout and call_until", || {
        scene(|node| {
            let mut client = answered(node);
            move || {
                assert_eq!(*client.call_timeout(&7, SOON).unwrap(), 7);
                assert_eq!(*client.call_until(&7, Deadline::after(SOON)).unwrap(), 7);
            }
        })
    }),
    ("refuse", || {
        scene(|node| {
            let (mut server, mut client) = service(node);
            let mut asks = move || client.call_timeout(&7, SOON).unwrap_err();
            std::thread::spawn(move || while asks().kind() == ErrorKind::Refused {});
            move || {
                let request = server.receive_timeout(SOON).unwrap().unwrap();
                server.refuse(request, "busy").unwrap();
            }
        })
    }),
    ("lock, read, write, acquire, with a timeout, and condition variables", || {
        scene(|node| {
            let mutex = node.mutex::<u64>("/m").unwrap();
            let pi = node.pi_mutex::<u64>("/pi").unwrap();
            let lock = node.rwlock::<u64>("/rw").unwrap();
            let semaphore = node.semaphore("/s", 1).unwrap();
            let condition = node.condvar("/c").unwrap();
            move || {
                *mutex.lock().unwrap() += 1;
                *mutex.lock_timeout(SOON).unwrap() += 1;
                *pi.try_lock().unwrap() += 1;
                *pi.lock_timeout(SOON).unwrap() += 1;
                *lock.write().unwrap() += 1;
                *lock.write_timeout(SOON).unwrap() += 1;
                assert!(*lock.read().unwrap() > 1 && *lock.read_timeout(SOON).unwrap() > 1);
                drop(semaphore.acquire().unwrap());
                drop(semaphore.acquire_timeout(SOON).unwrap());
                condition.notify_one();
            }
        })
    }),
    ("lock and unlock of RawMutex and RawRwLock", || {
        scene(|node| {
            let mutex = RawMutex::open(node, "/m").unwrap();
            let lock = RawRwLock::open(node, "/rw").unwrap();
            move || {
                assert!(mutex.lock().is_ok() && mutex.unlock().is_ok());
                assert!(mutex.try_lock().is_ok() && mutex.unlock_in_disorder().is_ok());
                assert_eq!(mutex.lock().unwrap(), Acquired::OwnerDied);
                assert!(mutex.mark_consistent().is_ok() && mutex.unlock().is_ok());
                assert!(lock.read().is_ok() && lock.unlock_read().is_ok());
                assert!(lock.try_read().is_ok() && lock.unlock_read().is_ok());
                assert!(lock.write().is_ok() && lock.unlock_write().is_ok());
                assert!(lock.try_write().is_ok() && lock.unlock_write().is_ok());
            }
        })
    }),
    ("real-time channels", || {
        scene(|_| {
            let (mut newest, mut seen) = rt::latest::<u64>();
            let (mut writer, mut reader) = rt::spsc::<u64>(4);
            move || {
                newest.write(&7).unwrap();
                assert_eq!(seen.read().unwrap().unwrap().value, 7);
                writer.push(&7).unwrap();
                assert_eq!(reader.pop().unwrap().unwrap().value, 7);
            }
        })
    }),
];
