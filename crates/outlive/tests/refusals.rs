//! What hot calls cost, refused and accepted: a counting allocator, and for those that are refused
//! a seccomp filter that kills whoever makes a system call.
#![cfg(not(loom))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use outlive::{Consumer, DocDir, ErrorKind, Node, Producer, WaitSet, doc_dir};

struct Counting;

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    if COUNTED.try_with(Cell::get).unwrap_or(false) {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls before the count begins: rings are full and lists have grown then.
const SETTLED: u32 = 300;
const CALLS: u32 = 100;

/// A call that can be made again and again, and what it needs.
struct Scene {
    call: Box<dyn FnMut()>,
    _dir: DocDir,
}

fn scene<F: FnMut() + 'static>(make: impl FnOnce(&Node) -> F) -> Scene {
    let dir = doc_dir();
    let node = Node::builder().root(dir.path()).name("refusals").open().unwrap();
    Scene { call: Box::new(make(&node)), _dir: dir }
}

/// A scene by its name; where a call is refused, as which kind.
type Row = (&'static str, fn() -> Scene);

const REFUSED: &[Row] = &[
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
];

/// Refused, with system calls: who waits reads the clock and sleeps; whoever found the lock taken
/// meanwhile may sleep, and is woken; a client asks the kernel whether its full server lives.
const REFUSED_AND_WOKEN: &[Row] = &[
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
                let late = producer.send_timeout(&[7; 8], Duration::from_micros(1));
                assert_eq!(late.unwrap_err().kind(), ErrorKind::Timeout);
            }
        })
    }),
    ("publish, reliable subscriber behind for longer than allowed", || {
        scene(|node| {
            let topic = || node.topic::<u64>("/t").unwrap().depth(4);
            let subscriber = topic().reliable(true).subscriber().unwrap();
            let publisher = topic().reliable_timeout(Duration::from_micros(1)).publisher().unwrap();
            (0..4).for_each(|n| assert_eq!(publisher.publish(&n).unwrap(), n));
            move || {
                let _ = &subscriber;
                assert_eq!(publisher.publish(&7).unwrap_err().kind(), ErrorKind::Timeout);
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
];

const ACCEPTED: &[Row] = &[
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
];

fn lane(node: &Node, bytes: u64) -> (Producer<[u64; 8]>, Consumer<[u64; 8]>) {
    let queue = || node.queue::<[u64; 8]>("/q").unwrap().first_bytes(bytes).bound_bytes(bytes);
    let consumer = queue().consumer().unwrap();
    (queue().producer().unwrap(), consumer)
}

fn full_lane(node: &Node) -> (Producer<[u64; 8]>, Consumer<[u64; 8]>) {
    let (mut producer, consumer) = lane(node, 4 << 10);
    while producer.try_send(&[7; 8]).is_ok() {}
    (producer, consumer)
}

/// Runs `hold` in a thread that lives as long as the process.
fn elsewhere<L: Send + 'static>(lock: L, hold: fn(&L)) {
    let (say, held) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        hold(&lock);
        say.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    held.recv().unwrap();
}

/// Allocations of `CALLS` calls.
fn allocations(row: &Row) -> u64 {
    let mut scene = row.1();
    (0..SETTLED).for_each(|_| (scene.call)());
    ALLOCATIONS.set(0);
    COUNTED.set(true);
    (0..CALLS).for_each(|_| (scene.call)());
    COUNTED.set(false);
    ALLOCATIONS.get()
}

#[test]
fn a_hot_call_allocates_nothing_refused_or_accepted() {
    let mut wrong = Vec::new();
    for row in [REFUSED, REFUSED_AND_WOKEN, ACCEPTED].into_iter().flatten() {
        let n = allocations(row);
        println!("{n:>5} allocations in {CALLS} times: {}", row.0);
        if n > 0 {
            wrong.push(row.0);
        }
    }
    assert!(wrong.is_empty(), "these allocate: {wrong:?}");
    COUNTED.set(true);
    drop(std::hint::black_box(Box::new(7)));
    COUNTED.set(false);
    assert_eq!(ALLOCATIONS.get(), 1, "the count counts");
}

/// From now on any system call of this thread but `_exit` ends the process.
fn no_system_calls() {
    // Where the clock is not read without the kernel, reading it is a call.
    let allowed = [libc::SYS_exit_group, libc::SYS_clock_gettime];
    let op =
        |code: u32, jump: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump, jf: 0, k };
    let mut program = vec![op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, number) in allowed.iter().enumerate() {
        let to_the_end = (allowed.len() - at) as u8;
        program.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to_the_end, *number as u32));
    }
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_KILL_PROCESS));
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // Freeing might be a call of its own.
    std::mem::forget(program);
    // SAFETY: a filter of this thread's own, alive for the call.
    let rc = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
    };
    assert_eq!(rc, 0, "no seccomp here");
}

const ROW: &str = "OUTLIVE_TEST_REFUSED_ROW";
/// A child that shows that the filter catches a call.
const CAUGHT: usize = usize::MAX;

/// What a child of the test below does: nothing in a run of all tests.
#[test]
fn a_refused_call_under_the_filter() {
    let Ok(row) = std::env::var(ROW) else { return };
    let row: usize = row.parse().unwrap();
    let mut scene = REFUSED[if row == CAUGHT { 0 } else { row }].1();
    (0..SETTLED).for_each(|_| (scene.call)());
    no_system_calls();
    (0..CALLS).for_each(|_| (scene.call)());
    // SAFETY: no arguments; ends this process at once.
    unsafe {
        if row == CAUGHT {
            libc::getppid();
        }
        libc::_exit(0)
    }
}

#[test]
fn a_refused_call_makes_no_system_call() {
    let run = |row: usize| {
        let dir = doc_dir();
        std::fs::create_dir_all(dir.path()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_refused_call_under_the_filter", "--test-threads=1"]);
        // What it leaves goes with this directory.
        child.env(ROW, row.to_string()).env("TMPDIR", dir.path());
        let out = child.output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        (out.status, said + &String::from_utf8_lossy(&out.stderr))
    };
    let mut wrong = Vec::new();
    for (at, (name, _)) in REFUSED.iter().enumerate() {
        let (status, said) = run(at);
        println!("{status}: {name}");
        if !status.success() {
            assert_eq!(status.signal(), Some(libc::SIGSYS), "{name}: {said}");
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "these make a system call: {wrong:?}");
    assert_eq!(run(CAUGHT).0.signal(), Some(libc::SIGSYS), "one call is caught");
}
