//! The mutex with priority inheritance.

use super::*;
use crate::os::fixture::killed_thread;

#[test]
fn a_pi_mutex_keeps_deadlines_and_knows_its_own_thread() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let (lock, other) = (one.pi_mutex_with("/a", &7u64).unwrap(), two.pi_mutex("/a").unwrap());
    let guard = lock.lock().unwrap();
    assert_eq!(*guard, 7);
    for again in [lock.lock(), other.lock(), other.try_lock(), lock.try_lock()] {
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Deadlock);
    }
    in_thread(|| {
        assert_eq!(other.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        let late = other.lock_timeout(Duration::from_millis(3)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::Timeout);
        let list = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap().locks();
        let lock = &list.unwrap()[0];
        assert_eq!((lock.kind, lock.type_name.as_str()), (LockKind::PiMutex, "u64"));
        assert!(matches!(lock.state, LockState::Held { alive: true, .. }));
    });
    drop(guard);
    in_thread(|| drop(other.lock_timeout(Duration::from_secs(10)).unwrap()));
    assert_eq!(one.mutex::<u64>("/a").unwrap_err().kind(), ErrorKind::TypeMismatch);
    // Several at a time, let go in any order: the thread's list of them stays whole.
    let more: Vec<_> = (0..4).map(|n| one.pi_mutex::<u64>(&format!("/m{n}")).unwrap()).collect();
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        let mut guards: Vec<_> = more.iter().map(|lock| Some(lock.lock().unwrap())).collect();
        let token = in_thread(|| two.threads().unwrap().id().is_ok());
        assert!(token);
        order.into_iter().for_each(|n| guards[n] = None);
    }
}

#[test]
fn a_pi_mutex_passes_on_what_a_dead_thread_held() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.pi_mutex::<u64>("/a").unwrap();
    // Nodes of their own, so that no thread gets a dead one's place.
    let others: Vec<_> = (0..4).map(|_| super::node(&dir)).collect();
    for node in &others[1..] {
        let lock = node.pi_mutex::<u64>("/a").unwrap();
        // Each but the first inherits, and dies.
        killed_thread(|| {
            let mut guard = match lock.lock() {
                Ok(guard) => guard,
                Err(LockError::OwnerDied(left)) => left.mark_consistent(),
                Err(e) => panic!("{e}"),
            };
            *guard += 1;
            std::mem::forget(guard);
        });
    }
    let Err(LockError::OwnerDied(mut left)) = lock.lock() else { panic!("clean") };
    assert_eq!(*left, 3);
    *left = 9;
    drop(left.mark_consistent());
    assert_eq!(*lock.lock().unwrap(), 9);
    // While somebody sleeps for it.
    let locked = std::sync::Barrier::new(2);
    let other = others[0].pi_mutex::<u64>("/a").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            locked.wait();
            let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
            drop(left.mark_consistent());
        });
        killed_thread(|| {
            std::mem::forget(other.lock().unwrap());
            locked.wait();
            std::thread::sleep(Duration::from_millis(5));
        });
    });
    let panicked = in_thread(|| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock().unwrap();
            panic!("inside");
        }))
        .is_err()
    });
    assert!(panicked);
    drop(lock.lock().unwrap_err()); // unrepaired
    for _ in 0..2 {
        assert_eq!(lock.lock().unwrap_err().kind(), ErrorKind::Unrecoverable);
    }
    assert!(node.remove_lock("/a").unwrap());
    drop(node.pi_mutex::<u64>("/a").unwrap().lock().unwrap());
}

/// By calls there is no reference to the data that a thread may leave behind, and nobody waits for
/// the end of its process; both ways are the same lock.
#[test]
fn a_thread_that_ended_inside_by_calls_is_inherited_from_at_once() {
    let dir = TempDir::new("lock");
    let (one, two) = (node(&dir), node(&dir));
    let of = crate::PayloadType::of::<u64>();
    let raw = RawMutex::open_pi_with(&one, "/a", &of, Some(&7u64.to_ne_bytes())).unwrap();
    let lock = two.pi_mutex::<u64>("/a").unwrap();
    in_thread(|| {
        assert_eq!(raw.lock().unwrap(), Acquired::Clean);
        store(raw.data(), 8);
    });
    let Err(LockError::OwnerDied(left)) = lock.lock() else { panic!("clean") };
    assert_eq!(*left, 8);
    drop(left.mark_consistent());
    assert_eq!(raw.lock().unwrap(), Acquired::Clean);
    in_thread(|| assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock));
    raw.unlock().unwrap();
    drop(lock.lock().unwrap());
    let wrong = RawMutex::open_pi(&one, "/a").unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::TypeMismatch);
}

/// The list of the thread's locks leads to the object that it took the lock by.
#[test]
fn a_pi_mutex_is_let_go_by_the_object_that_took_it() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let locks = [0, 1].map(|_| RawMutex::open_pi(&node, "/a").unwrap());
    assert_eq!(locks[0].lock().unwrap(), Acquired::Clean);
    for refused in [
        locks[1].unlock(),
        locks[1].unlock_in_disorder(),
        locks[1].mark_consistent(),
        locks[0].mark_consistent(),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotOwned);
    }
    locks[0].unlock().unwrap();
    // One thread ends inside by each object, and the other object lets go.
    for (one, other) in [(0, 1), (1, 0)] {
        in_thread(|| assert_eq!(locks[one].lock().unwrap(), Acquired::Clean));
        assert_eq!(locks[other].lock().unwrap(), Acquired::OwnerDied);
        assert_eq!(locks[one].unlock().unwrap_err().kind(), ErrorKind::NotOwned);
        locks[other].mark_consistent().unwrap();
        locks[other].unlock().unwrap();
    }
}

#[test]
fn a_pi_mutex_has_no_condition_variable_and_stays_held() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let (lock, condvar) = (RawMutex::open_pi(&node, "/a").unwrap(), node.condvar("/c").unwrap());
    assert_eq!(lock.lock().unwrap(), Acquired::Clean);
    let refused = condvar.wait_raw(&lock, Deadline::NEVER).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    lock.unlock().unwrap();
}

#[test]
fn garbage_in_the_word_of_a_pi_mutex_is_an_error() {
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.pi_mutex::<u64>("/a").unwrap();
    drop(lock.lock().unwrap());
    let path = node.domain().locks().join("a");
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len();
    let word = |word: u32| {
        use std::os::unix::fs::FileExt;
        file.write_all_at(&word.to_ne_bytes(), len - 32).unwrap();
    };
    for garbage in [0x3fff_fffe, 0xbfff_fffe] {
        word(garbage);
        let Err(LockError::Failed(e)) = lock.lock() else { panic!("taken") };
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{garbage:#x}: {e}");
    }
    word(0);
    drop(lock.lock().unwrap());
    // Another namespace.
    std::os::unix::fs::FileExt::write_all_at(&file, &77u64.to_ne_bytes(), 4096 + 32).unwrap();
    assert_eq!(node.pi_mutex::<u64>("/a").unwrap_err().kind(), ErrorKind::Unsupported);
}
