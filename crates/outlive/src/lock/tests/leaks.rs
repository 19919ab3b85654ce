//! Guards that are never dropped, places that overlap, threads with two names.

use super::*;
use crate::Error;

fn unrecoverable<T, G>(taken: LockResult<T, G>) {
    let Err(LockError::Failed(e)) = taken else { panic!("taken, or another error") };
    assert_eq!(e.kind(), ErrorKind::Unrecoverable);
    assert!(e.remedy().contains("end that process"), "{e}");
}

/// The reference outlives its thread in safe Rust; nobody may write meanwhile.
#[test]
fn what_a_leaked_guard_protects_is_nobodys_until_its_process_is_gone() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let lock = one.mutex::<u64>("/a").unwrap();
    let other = two.mutex::<u64>("/a").unwrap();
    std::thread::scope(|scope| {
        let leaked: &u64 =
            scope.spawn(|| &**Box::leak(Box::new(lock.lock().unwrap()))).join().unwrap();
        unrecoverable(lock.lock());
        unrecoverable(other.lock());
        unrecoverable(other.try_lock());
        unrecoverable(other.lock_timeout(Duration::from_secs(10)));
        unrecoverable(by_calls(&two, "/a").lock());
        assert_eq!(*leaked, 0);
    });
    drop(lock);
    drop(one);
    let Err(LockError::OwnerDied(left)) = other.lock() else { panic!("clean") };
    drop(left.mark_consistent());
}

#[test]
fn a_leaked_guard_of_a_pi_mutex_is_inherited_after_its_process_only() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let (lock, other) = (one.pi_mutex::<u64>("/a").unwrap(), two.pi_mutex::<u64>("/a").unwrap());
    in_thread(|| std::mem::forget(lock.lock().unwrap()));
    unrecoverable(other.lock());
    unrecoverable(other.lock());
    drop((lock, one));
    assert!(matches!(other.lock(), Err(LockError::OwnerDied(_))));
}

#[test]
fn a_leaked_guard_of_a_reader_keeps_writers_out_and_lets_readers_in() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let lock = one.rwlock::<u64>("/a").unwrap();
    let other = two.rwlock::<u64>("/a").unwrap();
    in_thread(|| std::mem::forget(lock.read().unwrap()));
    unrecoverable(other.write());
    unrecoverable(lock.try_write());
    drop((lock.read().unwrap(), other.read().unwrap()));
    drop(lock);
    drop(one);
    drop(other.write().unwrap());

    let one = node(&dir);
    let lock = one.rwlock::<u64>("/a").unwrap();
    in_thread(|| std::mem::forget(lock.write().unwrap()));
    unrecoverable(other.read());
    unrecoverable(other.write());
}

/// A thread that waits finds out when the other ends, not at its deadline.
#[test]
fn who_waits_is_told_that_the_guard_was_leaked() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.mutex::<u64>("/a").unwrap();
    let locked = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::mem::forget(lock.lock().unwrap());
            locked.wait();
            std::thread::sleep(Duration::from_millis(5));
        });
        locked.wait();
        unrecoverable(lock.lock());
    });
}

/// Whose lock is dropped while `take` runs, and its node with it.
fn leaves_soon<L: Send, R>(lock: L, node: Node, take: impl FnOnce() -> R) -> R {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(20));
            drop((lock, node));
        });
        take()
    })
}

/// A process that exits with a guard in hand ends the thread first, then itself.
#[test]
fn who_waits_inherits_a_leaked_guard_when_its_process_ends_soon() {
    let dir = TempDir::new("lock");
    let two = node(&dir);

    let one = node(&dir);
    let (lock, other) = (one.mutex::<u64>("/a").unwrap(), two.mutex::<u64>("/a").unwrap());
    in_thread(|| std::mem::forget(lock.lock().unwrap()));
    let taken = leaves_soon(lock, one, || other.lock());
    assert!(matches!(taken, Err(LockError::OwnerDied(_))), "{taken:?}");
    drop(taken);

    let one = node(&dir);
    let (lock, other) = (one.rwlock::<u64>("/r").unwrap(), two.rwlock::<u64>("/r").unwrap());
    in_thread(|| std::mem::forget(lock.read().unwrap()));
    drop(leaves_soon(lock, one, || other.write()).expect("a reader breaks nothing"));

    let one = node(&dir);
    let lock = one.rwlock::<u64>("/r").unwrap();
    in_thread(|| std::mem::forget(lock.write().unwrap()));
    let read = leaves_soon(lock, one, || other.read());
    assert!(matches!(read, Err(LockError::OwnerDied(_))), "{read:?}");
}

/// Nobody is told that a process leaked what it may be about to leave by its end.
#[test]
fn a_lock_of_a_process_that_may_be_ending_counts_as_held() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let (lock, other) = (one.mutex::<u64>("/a").unwrap(), two.mutex::<u64>("/a").unwrap());
    let ended = std::time::Instant::now();
    in_thread(|| std::mem::forget(lock.lock().unwrap()));
    let tried = other.try_lock().map(drop).map_err(|e| e.kind());
    let timed = other.lock_timeout(Duration::from_millis(5)).map(drop).map_err(|e| e.kind());
    // A machine that stood still: the second is over.
    if ended.elapsed() < Duration::from_millis(900) {
        assert_eq!((tried, timed), (Err(ErrorKind::WouldBlock), Err(ErrorKind::Timeout)));
    }
    unrecoverable(other.lock());
    unrecoverable(other.try_lock());
}

/// The second is that of the thread that ended, not that of the wait.
#[test]
fn two_processes_that_exit_one_after_the_other_are_both_inherited_from() {
    let dir = TempDir::new("lock");
    let nodes = [node(&dir), node(&dir)];
    let waits = node(&dir);
    let lock = waits.mutex::<u64>("/a").unwrap();
    std::thread::scope(|scope| {
        for node in nodes {
            let theirs = node.mutex::<u64>("/a").unwrap();
            let (held, hold) = std::sync::mpsc::channel();
            scope.spawn(move || {
                in_thread(|| {
                    let guard = match theirs.lock() {
                        Ok(guard) => guard,
                        Err(LockError::OwnerDied(left)) => left.mark_consistent(),
                        Err(e) => panic!("{e:?}"),
                    };
                    held.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(1300));
                    std::mem::forget(guard);
                });
                drop((theirs, node));
            });
            hold.recv().unwrap();
        }
        let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
        drop(left.mark_consistent());
    });
}

#[test]
fn who_waits_for_the_exit_of_a_process_keeps_nobody_else_waiting() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let lock = one.pi_mutex::<u64>("/a").unwrap();
    in_thread(|| std::mem::forget(lock.lock().unwrap()));
    let told = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| unrecoverable(two.pi_mutex::<u64>("/a").unwrap().lock()));
        }
    });
    // One after the other they would have taken a second each.
    println!("three waiters were told after {:?}", told.elapsed());
    unrecoverable(two.pi_mutex::<u64>("/a").unwrap().try_lock());
}

#[test]
fn who_waits_inherits_a_leaked_pi_guard_when_its_process_ends_soon() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let (lock, other) = (one.pi_mutex::<u64>("/a").unwrap(), two.pi_mutex::<u64>("/a").unwrap());
    in_thread(|| std::mem::forget(lock.lock().unwrap()));
    let taken = leaves_soon(lock, one, || other.lock());
    assert!(matches!(taken, Err(LockError::OwnerDied(_))), "{taken:?}");
}

/// Without a deadline it would wait for itself.
#[test]
fn the_same_thread_by_another_node_is_a_deadlock() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let limit = Duration::from_secs(20);
    let (lock, other) = (one.mutex::<u64>("/a").unwrap(), two.mutex::<u64>("/a").unwrap());
    let guard = lock.lock().unwrap();
    for again in [other.lock_timeout(limit), other.try_lock()] {
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Deadlock);
    }
    drop(guard);
    drop(other.lock().unwrap());
    let (lock, other) = (one.rwlock::<u64>("/r").unwrap(), two.rwlock::<u64>("/r").unwrap());
    let guard = lock.write().unwrap();
    assert_eq!(Error::from(other.read_timeout(limit).unwrap_err()).kind(), ErrorKind::Deadlock);
    assert_eq!(other.write_timeout(limit).unwrap_err().kind(), ErrorKind::Deadlock);
    drop(guard);
    let guard = lock.read().unwrap();
    assert_eq!(other.write_timeout(limit).unwrap_err().kind(), ErrorKind::Deadlock);
    // A writer between the two reads waits for the first, and the second for the writer.
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| drop(lock.write_timeout(limit).unwrap()));
        let second = loop {
            match other.read_timeout(limit) {
                Ok(guard) => drop(guard),
                Err(e) => break e.kind(),
            }
        };
        assert_eq!(second, ErrorKind::Deadlock);
        drop(guard);
        writer.join().unwrap();
    });
    drop((lock.write().unwrap(), limit));
    drop(other.write().unwrap());
    let (lock, other) = (one.semaphore("/s", 2).unwrap(), two.semaphore("/s", 2).unwrap());
    let permits = (lock.acquire().unwrap(), other.acquire().unwrap());
    for again in [lock.acquire_timeout(limit), other.acquire_timeout(limit), lock.try_acquire()] {
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Deadlock);
    }
    drop(permits);
    assert_eq!(other.available(), 2);
}

#[test]
fn objects_of_a_segment_do_not_overlap() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let segment = one.segment::<[u64; 64]>("/seg").unwrap();
    let other = two.segment::<[u64; 64]>("/seg").unwrap();
    let lock = segment.mutex::<u64>(64).unwrap();
    for offset in [0, 128] {
        let e = other.mutex::<u64>(offset).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        let named = format!("{offset} to {}", offset + 128);
        assert!(e.remedy().contains(&named) && e.remedy().contains("64 to 192"), "{e}");
        assert_eq!(segment.mutex::<[u64; 9]>(offset).unwrap_err().kind(), e.kind());
    }
    *lock.lock().unwrap() = 5;
    drop((other.condvar(0).unwrap(), other.mutex::<u64>(192).unwrap(), other.mutex::<u64>(64)));
    assert_eq!(segment.condvar(192).unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(*other.mutex::<u64>(64).unwrap().lock().unwrap(), 5);
    // What is there is data of a mutex, not a lock of another version or domain.
    let e = other.condvar(128).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.remedy().contains("64 to 192"), "{e}");
    assert_eq!(two.segment::<[u64; 65]>("/seg").unwrap_err().kind(), ErrorKind::TypeMismatch);
}
