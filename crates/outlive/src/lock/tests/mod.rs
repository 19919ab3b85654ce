#![allow(unsafe_code)]

#[cfg(test)]
pub(super) mod threads;

use std::time::Duration;

use super::mutex::hold::Hold;
use super::*;
use crate::ErrorKind;
use crate::os::fixture::TempDir;
use crate::os::time::deadline::Deadline;

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn in_thread<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(body).join().unwrap())
}

/// The same lock without guards: a thread that ends holding it counts as dead at once.
fn by_calls(node: &Node, name: &str) -> RawMutex {
    RawMutex::open_with(node, name, &crate::PayloadType::of::<u64>(), None).unwrap()
}

fn rw_by_calls<T: Message>(node: &Node, name: &str) -> RawRwLock {
    RawRwLock::open_with(node, name, &crate::PayloadType::of::<T>(), None).unwrap()
}

/// Stores the data of a lock that the caller holds by calls.
fn store(data: *mut u8, value: u64) {
    // SAFETY: a `u64` in the lock's memory, held by the caller.
    unsafe { data.cast::<u64>().write(value) };
}

/// Whether a lock with priority inheritance can be had. musl keeps its robust list for itself, and
/// the word lies at the end of a page of 4096 bytes: elsewhere opening one is `Unsupported`.
fn has_pi() -> bool {
    cfg!(not(target_env = "musl")) && crate::os::fixture::page_bytes() == 4096
}

/// A mutex by calls, and one with priority inheritance where there is one.
fn of_each_kind(node: &Node) -> Vec<RawMutex> {
    let mut all = vec![RawMutex::open(node, "/raw").unwrap()];
    all.extend(has_pi().then(|| RawMutex::open_pi(node, "/pi").unwrap()));
    all
}

fn exclude<H: Hold>(locks: [RobustMutex<u64, H>; 2], turns: u64) {
    std::thread::scope(|scope| {
        for lock in locks.iter().chain(&locks) {
            scope.spawn(|| {
                for _ in 0..turns {
                    let mut guard = lock.lock().unwrap();
                    *guard += 1;
                }
            });
        }
    });
    assert_eq!(*locks[0].lock().unwrap(), 4 * turns);
}

#[test]
fn a_mutex_excludes_threads_of_two_nodes() {
    let dir = TempDir::new("lock");
    let nodes = [node(&dir), node(&dir)];
    exclude(nodes.each_ref().map(|node| node.mutex("/a").unwrap()), 20_000);
    if has_pi() {
        exclude(nodes.each_ref().map(|node| node.pi_mutex("/b").unwrap()), 5_000);
    }
}

#[test]
fn the_same_thread_again_is_a_deadlock_and_others_wait_until_a_deadline() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex_with::<[u32; 3]>("/a", &[1, 2, 3]).unwrap();
    let guard = lock.lock().unwrap();
    assert_eq!(*guard, [1, 2, 3]);
    for again in [lock.lock(), lock.try_lock(), lock.lock_until(Deadline::in_ns(0))] {
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Deadlock);
    }
    in_thread(|| {
        assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        let at_once = lock.lock_until(Deadline::AT_ONCE).unwrap_err();
        assert_eq!(at_once.kind(), ErrorKind::WouldBlock);
        for ns in [0, 1, 3_000_000, 150_000_000] {
            let deadline = Deadline::in_ns(ns);
            let late = lock.lock_until(deadline).unwrap_err();
            assert!(late.kind() == ErrorKind::Timeout && deadline.has_passed());
        }
        let late = lock.lock_timeout(Duration::ZERO).unwrap_err();
        assert_eq!(crate::Error::from(late).kind(), ErrorKind::Timeout);
    });
    drop(guard);
    drop(lock.try_lock().unwrap());
    in_thread(|| drop(lock.lock_timeout(Duration::from_secs(10)).unwrap()));
}

#[test]
fn a_thread_that_ends_inside_hands_its_data_over() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let raw = by_calls(&node, "/a");
    in_thread(|| {
        assert_eq!(raw.lock().unwrap(), Acquired::Clean);
        store(raw.data(), 7);
    });
    let Err(LockError::OwnerDied(mut left)) = lock.lock() else { panic!("clean") };
    assert_eq!(*left, 7);
    *left = 8;
    let guard = left.mark_consistent();
    assert_eq!(*guard, 8);
    drop(guard);
    assert_eq!(*lock.lock().unwrap(), 8);
}

#[test]
fn a_taker_that_dies_leaves_it_to_the_next_and_one_that_gives_up_ends_it() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let raw = by_calls(&node, "/a");
    let die = || in_thread(|| drop(raw.lock().map(drop)));
    for _ in 0..3 {
        die();
    }
    let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
    in_thread(|| assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock));
    drop(left);
    for lost in [lock.lock(), lock.try_lock()] {
        assert_eq!(lost.unwrap_err().kind(), ErrorKind::Unrecoverable);
    }
    die();
    let again = node.mutex::<u64>("/a").unwrap();
    assert_eq!(again.lock().unwrap_err().kind(), ErrorKind::Unrecoverable);
}

#[test]
fn a_waiter_learns_of_the_death_in_its_sleep() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let raw = by_calls(&node, "/a");
    for _ in 0..20 {
        let locked = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(raw.lock().unwrap(), Acquired::Clean);
                locked.wait();
                std::thread::sleep(Duration::from_millis(3));
            });
            locked.wait();
            let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
            drop(left.mark_consistent());
        });
    }
}

#[test]
fn a_panic_inside_is_told_to_the_next() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let panicked = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let _guard = lock.lock().unwrap();
                std::panic::resume_unwind(Box::new(()));
            })
            .join()
    });
    assert!(panicked.is_err());
    let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
    drop(left.mark_consistent());
    drop(lock.lock().unwrap());
}

#[test]
fn what_is_let_go_in_disorder_is_told_to_the_next_until_one_repairs_it() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    for mutex in of_each_kind(&node) {
        assert_eq!(mutex.unlock_in_disorder().unwrap_err().kind(), ErrorKind::NotOwned);
        assert_eq!(mutex.lock().unwrap(), Acquired::Clean);
        mutex.unlock_in_disorder().unwrap();
        for _ in 0..2 {
            // Who is told and cannot repair it leaves it to the next.
            assert_eq!(mutex.try_lock().unwrap(), Acquired::OwnerDied);
            mutex.unlock_in_disorder().unwrap();
        }
        assert_eq!(
            in_thread(|| mutex.lock().inspect(|_| mutex.unlock().unwrap())).unwrap(),
            Acquired::OwnerDied
        );
        assert_eq!(mutex.try_lock().unwrap_err().kind(), ErrorKind::Unrecoverable);
    }

    let lock = RawRwLock::open(&node, "/rw").unwrap();
    assert_eq!(lock.unlock_in_disorder().unwrap_err().kind(), ErrorKind::NotOwned);
    assert_eq!(lock.write().unwrap(), Acquired::Clean);
    lock.unlock_in_disorder().unwrap();
    assert_eq!(lock.try_read().unwrap_err().kind(), ErrorKind::OwnerDied);
    assert_eq!(lock.write().unwrap(), Acquired::OwnerDied);
    for _ in 0..2 {
        lock.mark_consistent().unwrap();
    }
    lock.unlock_write().unwrap();
    lock.read().unwrap();
    assert_eq!(lock.mark_consistent().unwrap_err().kind(), ErrorKind::NotOwned);
    assert_eq!(lock.unlock_in_disorder().unwrap_err().kind(), ErrorKind::NotOwned);
    lock.unlock_read().unwrap();
}

#[test]
fn unlocking_by_a_stranger_is_refused() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    for lock in of_each_kind(&node) {
        assert_eq!(lock.unlock().unwrap_err().kind(), ErrorKind::NotOwned);
        assert_eq!(lock.lock().unwrap(), Acquired::Clean);
        assert_eq!(lock.lock().unwrap_err().kind(), ErrorKind::Deadlock);
        in_thread(|| {
            assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
            assert_eq!(lock.lock_until(Deadline::at_ns(1)).unwrap_err().kind(), ErrorKind::Timeout);
            assert_eq!(lock.unlock().unwrap_err().kind(), ErrorKind::NotOwned);
            assert_eq!(lock.mark_consistent().unwrap_err().kind(), ErrorKind::NotOwned);
        });
        lock.mark_consistent().unwrap(); // as it is already
        lock.unlock().unwrap();
        assert_eq!(lock.mark_consistent().unwrap_err().kind(), ErrorKind::NotOwned);
        in_thread(|| assert_eq!(lock.lock().unwrap(), Acquired::Clean));
        assert_eq!(lock.lock().unwrap(), Acquired::OwnerDied);
        lock.mark_consistent().unwrap();
        lock.unlock().unwrap();
        assert_eq!(lock.lock().unwrap(), Acquired::Clean);
        lock.unlock().unwrap();
    }
}

#[test]
fn readers_read_together_and_a_writer_alone() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let locks = [one.rwlock::<[u64; 2]>("/a").unwrap(), two.rwlock::<[u64; 2]>("/a").unwrap()];
    const TURNS: u64 = 5_000;
    std::thread::scope(|scope| {
        for (n, lock) in locks.iter().chain(&locks).enumerate() {
            scope.spawn(move || {
                for i in 0..TURNS {
                    if i % 4 == n as u64 {
                        let mut guard = lock.write().unwrap();
                        guard[0] += 1;
                        guard[1] += 1;
                    } else {
                        let guard = lock.read().unwrap();
                        assert_eq!(guard[0], guard[1]);
                    }
                }
            });
        }
    });
    assert_eq!(locks[0].read().unwrap()[0], TURNS);
    let reads = locks[0].read().unwrap();
    in_thread(|| {
        drop(locks[1].read().unwrap());
        assert_eq!(locks[1].try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
        let late = locks[1].write_timeout(Duration::from_millis(20)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        drop(locks[1].read().unwrap());
    });
    drop(reads);
    let writes = locks[0].write().unwrap();
    in_thread(|| {
        assert_eq!(locks[1].try_read().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(locks[1].read_until(Deadline::at_ns(1)).unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(locks[1].try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
    drop(writes);
}

#[test]
fn a_rwlock_refuses_the_same_thread_in_every_form() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let (lock, same) = (node.rwlock::<u64>("/a").unwrap(), node.rwlock::<u64>("/a").unwrap());
    let deadlock = |e: crate::Error| assert_eq!(e.kind(), ErrorKind::Deadlock);
    for again in [&lock, &same] {
        let reads = lock.read().unwrap();
        deadlock(again.read().unwrap_err().into());
        deadlock(again.try_write().unwrap_err().into());
        deadlock(again.write().unwrap_err().into());
        drop(reads);
        let writes = lock.write().unwrap();
        deadlock(again.read().unwrap_err().into());
        deadlock(again.write().unwrap_err().into());
        drop(writes);
    }
    drop(lock.write().unwrap());
}

#[test]
fn dead_readers_keep_nobody_out_and_a_dead_writer_is_told() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.rwlock::<u64>("/a").unwrap();
    let raw = rw_by_calls::<u64>(&node, "/a");
    for _ in 0..100 {
        in_thread(|| raw.read().unwrap());
    }
    *lock.write().unwrap() = 1;
    for _ in 0..70 {
        in_thread(|| raw.read().unwrap());
    }
    drop(lock.read().unwrap());
    in_thread(|| {
        assert_eq!(raw.write().unwrap(), Acquired::Clean);
        store(raw.data(), 2);
    });
    for read in [lock.read(), lock.try_read()] {
        assert!(matches!(read, Err(LockError::OwnerDied(NeedsWriter))));
    }
    let Err(LockError::OwnerDied(left)) = lock.write() else { panic!("clean") };
    assert_eq!(*left, 2);
    drop(left.mark_consistent());
    assert_eq!(*lock.read().unwrap(), 2);
    in_thread(|| drop(raw.write().map(drop)));
    drop(lock.try_write().unwrap_err());
    assert_eq!(lock.read().unwrap_err().kind(), ErrorKind::Unrecoverable);
    assert_eq!(lock.write().unwrap_err().kind(), ErrorKind::Unrecoverable);
}

#[test]
fn a_taker_that_gives_up_on_readers_leaves_the_lock_broken() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.rwlock::<u64>("/a").unwrap();
    let inside = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reads = lock.read().unwrap();
            inside.wait();
            inside.wait();
            drop(reads);
        });
        inside.wait();
        // A writer that ends while it waits for the reader.
        let raw = RawRwLock::open(&node, "/a");
        assert_eq!(raw.unwrap_err().kind(), ErrorKind::TypeMismatch, "another type");
        let died = in_thread(|| lock.write_timeout(Duration::from_millis(5)).is_err());
        assert!(died);
        inside.wait();
    });
    drop(lock.write().unwrap());
}

#[test]
fn more_threads_than_lines_take_turns() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.rwlock::<u64>("/a").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..80 {
            scope.spawn(|| {
                for _ in 0..20 {
                    let guard = lock.read().unwrap();
                    std::thread::yield_now();
                    drop(guard);
                }
                *lock.write().unwrap() += 1;
            });
        }
    });
    assert_eq!(*lock.read().unwrap(), 80);
}

#[test]
fn a_condvar_wakes_waiters_and_keeps_deadlines() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let (lock, condvar) = (node.mutex::<u64>("/a").unwrap(), node.condvar("/c").unwrap());
    let (guard, notified) =
        condvar.wait_timeout(lock.lock().unwrap(), Duration::from_millis(2)).unwrap();
    assert!(!notified);
    drop(guard);
    std::thread::scope(|scope| {
        for n in 0..3 {
            let (lock, condvar) = (&lock, &condvar);
            scope.spawn(move || {
                let mut guard = lock.lock().unwrap();
                while *guard != n {
                    guard = condvar.wait(guard).unwrap();
                }
                *guard += 1;
                drop(guard);
                condvar.notify_all();
            });
        }
    });
    assert_eq!(*lock.lock().unwrap(), 3);
    // The mutex changes hands by death while somebody waits.
    let raw = by_calls(&node, "/a");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            assert_eq!(raw.lock().unwrap(), Acquired::Clean);
            store(raw.data(), 9);
            condvar.notify_one();
        });
        let mut guard = lock.lock().unwrap();
        let left = loop {
            match condvar.wait(guard) {
                Ok(again) => guard = again,
                Err(LockError::OwnerDied(left)) => break left,
                Err(e) => panic!("{e}"),
            }
        };
        assert_eq!(*left, 9);
        drop(left.mark_consistent());
    });
}

#[test]
fn a_wait_that_is_told_to_stop_does_not_take_the_mutex_again() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let (lock, condvar) = (RawMutex::open(&node, "/a").unwrap(), node.condvar("/c").unwrap());
    let unheld = condvar.wait_raw_while(&lock, Deadline::NEVER, || true).unwrap_err();
    assert_eq!(unheld.kind(), ErrorKind::NotOwned);
    assert_eq!(lock.lock().unwrap(), Acquired::Clean);
    let mut asked = 0;
    let stopped = condvar.wait_raw_while(&lock, Deadline::NEVER, || {
        asked += 1;
        asked < 2
    });
    assert_eq!((stopped.unwrap(), asked), (false, 2));
    in_thread(|| {
        assert_eq!(lock.try_lock().unwrap(), Acquired::Clean);
        lock.unlock().unwrap();
    });
    assert_eq!(lock.lock().unwrap(), Acquired::Clean);
    // What came while it was asked counts.
    let notified = condvar.wait_raw_while(&lock, Deadline::NEVER, || {
        condvar.notify_all();
        true
    });
    assert!(notified.unwrap() && lock.unlock().is_err());
}

#[test]
fn permits_are_bounded_and_come_back_from_the_dead() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let semaphore = node.semaphore("/s", 3).unwrap();
    let permits: Vec<_> = (0..3).map(|_| semaphore.acquire().unwrap()).collect();
    let deadlock = semaphore.acquire().unwrap_err();
    assert_eq!(deadlock.kind(), ErrorKind::Deadlock);
    assert!(deadlock.to_string().contains("permit"), "{deadlock}");
    in_thread(|| {
        assert_eq!(semaphore.try_acquire().unwrap_err().kind(), ErrorKind::WouldBlock);
        let late = semaphore.acquire_timeout(Duration::from_millis(3)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
    });
    drop(permits);
    in_thread(|| std::mem::forget((semaphore.acquire(), semaphore.acquire())));
    let permits: Vec<_> = (0..3).map(|_| semaphore.acquire().unwrap()).collect();
    assert_eq!(permits.iter().filter(|p| p.owner_died()).count(), 2);
    drop(permits);
    assert_eq!(semaphore.available(), 3);
    let inside = node.mutex::<u64>("/inside").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..500 {
                    let permit = semaphore.acquire().unwrap();
                    *inside.lock().unwrap() += 1;
                    assert!(*inside.lock().unwrap() <= 3);
                    *inside.lock().unwrap() -= 1;
                    drop(permit);
                }
            });
        }
    });
}

#[test]
fn a_sleeper_gets_a_permit_by_its_holders_death() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let semaphore = node.semaphore("/s", 1).unwrap();
    let held = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::mem::forget(semaphore.acquire().unwrap());
            held.wait();
            std::thread::sleep(Duration::from_millis(5));
        });
        held.wait();
        assert!(semaphore.acquire().unwrap().owner_died());
    });
}

#[test]
fn a_set_holds_what_fits_and_says_when_it_is_full() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    for capacity in [1, 5, 64, 65, 1000] {
        let set = node.lockless_set(&format!("/s{capacity}"), capacity).unwrap();
        let ids: Vec<u64> = (0..capacity as u64).map(|i| i * i + 1).collect();
        for round in 0..3 {
            for id in &ids {
                assert!(!set.contains(*id) && set.insert(*id).unwrap());
                assert!(set.contains(*id) && !set.insert(*id).unwrap());
            }
            // Printed later: none names another's id.
            let full = [u64::MAX - 1, u64::MAX].map(|id| set.insert(id).unwrap_err());
            assert!(full.iter().all(|e| e.kind() == ErrorKind::NoSpace));
            assert_eq!(
                full.map(|e| e.to_string()),
                ["inserting into a set: no space; it is full: make it larger"; 2]
            );
            assert_eq!(set.ids(), ids, "{round}");
            assert!(ids.iter().all(|id| set.remove(*id) && !set.remove(*id)));
            assert!(set.ids().is_empty());
        }
        assert_eq!(set.insert(0).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(!set.contains(0) && !set.remove(0));
    }
}

#[test]
fn bad_input_gets_a_typed_error() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let kind = |e: crate::Error| {
        assert!(!e.remedy().is_empty(), "{e}");
        e.kind()
    };
    node.mutex::<u64>("/m").unwrap();
    assert_eq!(kind(node.mutex::<i64>("/m").unwrap_err()), ErrorKind::TypeMismatch);
    assert_eq!(kind(node.mutex::<[u64; 2]>("/m").unwrap_err()), ErrorKind::TypeMismatch);
    let e = node.rwlock::<u64>("/m").unwrap_err();
    assert!(e.to_string().contains("kind is mutex, this program has rwlock"), "{e}");
    assert_eq!(kind(e), ErrorKind::TypeMismatch);
    assert_eq!(kind(node.condvar("/m").unwrap_err()), ErrorKind::TypeMismatch);
    assert_eq!(kind(node.segment::<u64>("/m").unwrap_err()), ErrorKind::TypeMismatch);
    for permits in [0, 1025] {
        assert_eq!(kind(node.semaphore("/s", permits).unwrap_err()), ErrorKind::InvalidArgument);
    }
    node.semaphore("/s", 2).unwrap();
    assert_eq!(kind(node.semaphore("/s", 3).unwrap_err()), ErrorKind::TypeMismatch);
    for capacity in [0, usize::MAX] {
        assert_eq!(
            kind(node.lockless_set("/l", capacity).unwrap_err()),
            ErrorKind::InvalidArgument
        );
    }
    assert_eq!(kind(node.mutex::<u64>("/a//b").unwrap_err()), ErrorKind::InvalidName);
}

#[test]
fn locks_live_inside_a_segment() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    type Bytes = [u64; 1024];
    let mut first = [0; 1024];
    first[1023] = 5;
    let segment = one.segment_with::<Bytes>("/seg", &first).unwrap();
    let other = two.segment::<Bytes>("/seg").unwrap();
    // SAFETY: inside the segment, written by nobody.
    assert_eq!(unsafe { (*other.as_ptr())[1023] }, 5);
    let a = segment.mutex::<u64>(64).unwrap();
    let b = other.mutex::<u64>(64).unwrap();
    *a.lock().unwrap() = 3;
    assert_eq!(*b.lock().unwrap(), 3);
    let rw = segment.rwlock::<u64>(256).unwrap();
    drop((rw.read().unwrap(), segment.condvar(192).unwrap()));
    let end = size_of::<Bytes>() - RobustSemaphore::bytes(1);
    let semaphore = segment.semaphore(end, 1).unwrap();
    let set = segment.lockless_set(5120, 10).unwrap();
    drop(segment);
    assert!(set.insert(1).unwrap());
    drop(semaphore.acquire().unwrap());
    let kind = |e: crate::Error| e.kind();
    assert_eq!(kind(other.rwlock::<u64>(64).unwrap_err()), ErrorKind::TypeMismatch);
    assert_eq!(kind(other.mutex::<f64>(64).unwrap_err()), ErrorKind::TypeMismatch);
    for offset in [8, 72, 1, end + 64, usize::MAX, usize::MAX - 63] {
        assert_eq!(kind(other.mutex::<u64>(offset).unwrap_err()), ErrorKind::InvalidArgument);
    }
    let mut garbage = [u64::MAX; 1024];
    garbage[9] = two.threads().unwrap().domain_id();
    let garbage = two.segment_with::<Bytes>("/garbage", &garbage).unwrap();
    assert_eq!(kind(garbage.mutex::<u64>(128).unwrap_err()), ErrorKind::OtherDomain);
    assert_eq!(kind(garbage.mutex::<u64>(64).unwrap_err()), ErrorKind::VersionMismatch);
}

#[test]
fn a_lock_of_another_domain_is_refused() {
    let dir = TempDir::new("lock");
    let here = node(&dir);
    let there = Node::builder().root(dir.join("root")).domain("other").name("x").open().unwrap();
    drop(here.mutex::<u64>("/a").unwrap().lock().unwrap());
    drop(there.mutex::<u64>("/b").unwrap());
    let (from, to) = (here.domain().locks().join("a"), there.domain().locks().join("a"));
    std::fs::copy(from, to).unwrap();
    assert_eq!(there.mutex::<u64>("/a").unwrap_err().kind(), ErrorKind::OtherDomain);
}

#[test]
fn memory_that_cannot_hold_a_lock_is_refused() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let invalid = |memory: *mut u8, len| {
        // SAFETY: refused, so never used.
        let e = unsafe { RobustMutex::<u64>::place(&node, memory, len) }.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    };
    let mut private = vec![0_u8; 1024];
    let aligned = private.as_mut_ptr().wrapping_add(private.as_ptr().align_offset(64));
    invalid(std::ptr::null_mut(), 1024);
    invalid(aligned, 512);
    invalid(aligned, RobustMutex::<u64>::BYTES - 1);
    let segment = node.segment::<[u64; 64]>("/seg").unwrap();
    let shared: *mut u8 = segment.as_ptr().cast();
    invalid(shared.wrapping_add(8), 256);
    // SAFETY: the segment stays mapped, and only the mutex writes there.
    let lock = unsafe { RobustMutex::<u64>::place(&node, shared, 512) }.unwrap();
    *lock.lock().unwrap() = 1;
    assert_eq!(*segment.mutex::<u64>(0).unwrap().lock().unwrap(), 1);
}

#[test]
fn locks_are_listed_audited_and_cleaned() {
    let dir = TempDir::new("lock");
    let settings = Node::builder().root(dir.join("root"));
    let domain = crate::Domain::of(&settings).unwrap();
    let node = node(&dir);
    let (held, lost) = (node.mutex::<u64>("/held").unwrap(), node.rwlock::<u8>("/lost").unwrap());
    let set = node.lockless_set("/big/set", 100).unwrap();
    (1..=100).for_each(|id| assert!(set.insert(id * 977).unwrap()));
    let guard = held.lock().unwrap();
    let raw = rw_by_calls::<u8>(&node, "/lost");
    in_thread(|| drop(raw.write().map(drop)));
    drop(lost.write().unwrap_err());
    let list = domain.locks().unwrap();
    let names: Vec<_> = list.iter().map(|l| (l.name.as_str(), l.kind, l.users)).collect();
    let expected = [
        ("/big/set", LockKind::Set, 100),
        ("/held", LockKind::Mutex, 0),
        ("/lost", LockKind::RwLock, 0),
    ];
    assert_eq!(names, expected);
    assert!(
        matches!(list[1].state, LockState::Held { alive: true, node: n, .. } if n == node.id())
    );
    assert_eq!(list[2].state, LockState::Unrecoverable);
    let audit = domain.audit().unwrap();
    assert_eq!((audit.files, audit.faults), (4, vec![]));
    assert_eq!(node.remove_lock("/held").unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(node.remove_lock("/lost").unwrap() && !node.remove_lock("/lost").unwrap());
    drop(node.rwlock::<u64>("/lost").unwrap().write().unwrap());
    assert_eq!(domain.clean().unwrap().locks, 1, "/lost, which nobody has open now");
    drop(guard);
    let word = held_word(&node, "held");
    word.store(3 << 32 | 7, crate::sync::Ordering::Relaxed);
    assert_eq!(domain.audit().unwrap().faults.len(), 1);
    drop((held, lost, raw, set, node));
    assert!(domain.clean().unwrap().domain_removed);
    assert!(!dir.join("root").exists());
}

/// The word of a lock file, for damage.
fn held_word(node: &Node, file: &str) -> &'static crate::sync::AtomicU64 {
    use crate::os::fs::map::Mapping;
    let path = node.domain().locks().join(file);
    let fd = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let map = Box::leak(Box::new(Mapping::map_own(&fd, 8192, &path).unwrap()));
    map.atomic_u64(object::layout::file::OBJECT + object::layout::head::WORD).unwrap()
}

#[test]
fn a_forked_child_can_neither_take_nor_let_go() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let (lock, rw) = (node.mutex::<u64>("/a").unwrap(), node.rwlock::<u64>("/r").unwrap());
    let (guard, reads) = (lock.lock().unwrap(), rw.read().unwrap());
    let child = crate::os::fixture::fork_child(|| {
        // SAFETY: the child's copies, dropped once in this process.
        drop(unsafe { (std::ptr::read(&guard), std::ptr::read(&reads)) });
        let forked = lock.try_lock().is_err_and(|e| e.kind() == ErrorKind::ForkedChild)
            && rw.try_read().is_err_and(|e| e.kind() == ErrorKind::ForkedChild)
            && rw.try_write().is_err_and(|e| e.kind() == ErrorKind::ForkedChild);
        i32::from(!forked)
    });
    assert_eq!(child.wait(), 0);
    in_thread(|| {
        assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(rw.try_write().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
    drop((guard, reads));
    drop((lock.try_lock().unwrap(), rw.try_write().unwrap()));
}

#[test]
fn a_forked_child_neither_waits_nor_repairs_with_what_it_inherited() {
    let dir = TempDir::new("lock-child");
    let node = node(&dir);
    let (lock, condvar) = (node.mutex::<u64>("/a").unwrap(), node.condvar("/c").unwrap());
    let guard = lock.lock().unwrap();
    let child = crate::os::fixture::fork_child(|| {
        let until = Deadline::in_ns(10_000_000_000);
        // SAFETY: the child's copy, dropped once in this process.
        let waited = condvar.wait_until(unsafe { std::ptr::read(&guard) }, until);
        let refused = waited.is_err_and(|e| e.kind() == ErrorKind::ForkedChild);
        i32::from(!refused || until.has_passed())
    });
    assert_eq!(child.wait(), 0);
    drop(guard);

    let rw = node.rwlock::<u64>("/r").unwrap();
    let (raw, raw_rw) = (by_calls(&node, "/a"), rw_by_calls::<u64>(&node, "/r"));
    in_thread(|| {
        assert_eq!(raw.lock().unwrap(), Acquired::Clean);
        assert_eq!(raw_rw.write().unwrap(), Acquired::Clean);
    });
    let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
    let Err(LockError::OwnerDied(left_rw)) = rw.write() else { panic!("clean") };
    let child = crate::os::fixture::fork_child(|| {
        // SAFETY: the child's copies, used once in this process.
        let copies = unsafe { (std::ptr::read(&left), std::ptr::read(&left_rw)) };
        drop((copies.0.mark_consistent(), copies.1.mark_consistent()));
        0
    });
    assert_eq!(child.wait(), 0);
    drop((left, left_rw));
    assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::Unrecoverable);
    assert_eq!(rw.try_write().unwrap_err().kind(), ErrorKind::Unrecoverable);
}

#[test]
fn a_forked_child_keeps_no_lock_from_being_cleaned() {
    let dir = TempDir::new("lock-child");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let child = crate::os::fixture::fork_child(|| {
        loop {
            crate::os::process::sched::sleep_until(Deadline::in_ns(1_000_000_000));
        }
    });
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    domain.clean().unwrap();
    assert_eq!(domain.locks().unwrap().len(), 1, "in use here");
    drop(lock);
    // Other tests fork, too: their children lose it a moment later.
    crate::os::fixture::until(|| {
        domain.clean().unwrap();
        domain.locks().unwrap().is_empty()
    });
    child.kill();
}

mod elsewhere;
mod few_descriptors;
mod leaks;
// Other C libraries have another robust list.
#[cfg(target_env = "gnu")]
mod pi;
mod removing;
mod waiting;
