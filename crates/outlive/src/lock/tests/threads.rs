//! Locks between threads, for ThreadSanitizer: the protected data is plain memory, and nothing
//! but the locks orders its users. Deaths are not in it: the dead thread's token is seen through
//! another mapping, which the sanitizer takes for other memory.

#![allow(unsafe_code)]

use crate::lock::*;
use crate::os::fixture::TempDir;

const THREADS: u64 = 3;
const TURNS: u64 = 300;

fn node(dir: &TempDir) -> Node {
    let node = Node::builder().root(dir.join("root")).name("test").open().unwrap();
    // The table of nodes that waiters look up is behind a mutex of the standard library, which the
    // sanitizer does not see: no thread is to change it.
    let threads = node.threads().unwrap();
    threads.judge(threads.id().unwrap()).unwrap();
    node
}

/// Runs `body` in some threads at once, and hands it the number of its thread.
fn together(body: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || body(n))).collect();
        // The end of the scope alone is invisible to the sanitizer.
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_mutex_orders_its_holders() {
    let dir = TempDir::new("lock-threads");
    let node = node(&dir);
    let lock = node.mutex::<[u64; 4]>("/a").unwrap();
    together(|_| {
        for _ in 0..TURNS {
            lock.lock().unwrap().iter_mut().for_each(|n| *n += 1);
        }
    });
    assert_eq!(*lock.lock().unwrap(), [THREADS * TURNS; 4]);
}

#[test]
fn a_writer_comes_after_and_before_readers() {
    let dir = TempDir::new("lock-threads");
    let node = node(&dir);
    let lock = node.rwlock::<[u64; 4]>("/a").unwrap();
    together(|n| {
        for i in 0..TURNS {
            if (i + n) % 3 == 0 {
                lock.write().unwrap().iter_mut().for_each(|n| *n += 1);
            } else {
                let guard = lock.read().unwrap();
                assert!(guard.iter().all(|n| *n == guard[0]));
            }
        }
    });
    assert_eq!(lock.read().unwrap()[0], TURNS);
}

#[test]
fn a_permit_orders_its_holders() {
    let dir = TempDir::new("lock-threads");
    let node = node(&dir);
    let semaphore = node.semaphore("/s", 2).unwrap();
    let segment = node.segment::<[u64; 2]>("/data").unwrap();
    together(|_| {
        for _ in 0..TURNS {
            let permit = semaphore.acquire().unwrap();
            // SAFETY: each permit stands for one word, which only its holder uses.
            unsafe { *segment.as_ptr().cast::<u64>().add(permit.index()) += 1 };
        }
    });
    // SAFETY: all users have ended.
    assert_eq!(unsafe { *segment.as_ptr() }.iter().sum::<u64>(), THREADS * TURNS);
}

#[test]
fn an_id_in_a_set_comes_after_what_it_stands_for() {
    let dir = TempDir::new("lock-threads");
    let node = node(&dir);
    let set = node.lockless_set("/set", 100).unwrap();
    let segment = node.segment::<[u64; THREADS as usize]>("/data").unwrap();
    let at = |n: u64| segment.as_ptr().cast::<u64>().wrapping_add(n as usize);
    together(|n| {
        // SAFETY: nobody else uses the word before its id is in the set.
        unsafe { *at(n) = 7 };
        assert!(set.insert(n + 1).unwrap());
        for other in 0..THREADS {
            if set.contains(other + 1) {
                // SAFETY: its writer has inserted the id after the last write.
                assert_eq!(unsafe { *at(other) }, 7);
            }
        }
    });
}

#[test]
fn a_condvar_hands_on() {
    let dir = TempDir::new("lock-threads");
    let node = node(&dir);
    let (lock, condvar) = (node.mutex::<u64>("/a").unwrap(), node.condvar("/c").unwrap());
    together(|n| {
        let mut guard = lock.lock().unwrap();
        while *guard != n {
            guard = condvar.wait(guard).unwrap();
        }
        *guard += 1;
        drop(guard);
        condvar.notify_all();
    });
    assert_eq!(*lock.lock().unwrap(), THREADS);
}
