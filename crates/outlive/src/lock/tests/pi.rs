//! The mutex with priority inheritance.
#![allow(unsafe_code)]

use super::*;
use crate::os::fixture::killed_thread;

#[test]
fn a_pi_mutex_is_refused_where_it_cannot_be() {
    if has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let e = node(&dir).pi_mutex::<u64>("/a").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.remedy().contains("use a RobustMutex"), "{e}");
}

#[test]
fn a_pi_mutex_keeps_deadlines_and_knows_its_own_thread() {
    if !has_pi() {
        return;
    }
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
    if !has_pi() {
        return;
    }
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
    if !has_pi() {
        return;
    }
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
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let locks = [0, 1].map(|_| RawMutex::open_pi(&node, "/a").unwrap());
    assert_eq!(locks[0].lock().unwrap(), Acquired::Clean);
    for refused in [locks[1].unlock(), locks[1].unlock_in_disorder(), locks[1].mark_consistent()] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotOwned);
    }
    locks[0].mark_consistent().unwrap(); // as it is already
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
    if !has_pi() {
        return;
    }
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
    if !has_pi() {
        return;
    }
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
}

/// As of a container that was killed and started again: its file stayed.
#[test]
fn a_pi_mutex_of_another_namespace_is_taken_over_once_nobody_has_it_open() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.pi_mutex::<u64>("/a").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(node.domain().locks().join("a"));
    let file = file.unwrap();
    let moved = |held_by: u32| {
        use std::os::unix::fs::FileExt;
        file.write_all_at(&77u64.to_ne_bytes(), 4096 + 32).unwrap();
        file.write_all_at(&held_by.to_ne_bytes(), file.metadata().unwrap().len() - 32).unwrap();
    };
    moved(0);
    assert_eq!(node.pi_mutex::<u64>("/a").unwrap_err().kind(), ErrorKind::Unsupported);
    drop(lock);
    let again = node.pi_mutex::<u64>("/a").unwrap();
    assert_eq!(*again.lock().unwrap(), 0);
    drop(again);
    // Whoever held it there is not a thread of this namespace.
    moved(std::process::id());
    let again = node.pi_mutex::<u64>("/a").unwrap();
    drop(again.lock().unwrap());
    let other = node.pi_mutex::<u64>("/a").unwrap();
    in_thread(|| drop(other.lock().unwrap()));
}

/// As two processes of a container that is started again: each has the file open for a moment.
#[test]
fn two_that_come_into_another_namespace_together_take_a_pi_mutex_over() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let nodes = [node(&dir), node(&dir)];
    drop(nodes[0].pi_mutex::<u64>("/a").unwrap());
    let file = std::fs::OpenOptions::new().write(true).open(nodes[0].domain().locks().join("a"));
    let file = file.unwrap();
    for _ in 0..300 {
        std::os::unix::fs::FileExt::write_all_at(&file, &77u64.to_ne_bytes(), 4096 + 32).unwrap();
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| {
                    start.wait();
                    drop(node.pi_mutex::<u64>("/a").unwrap().lock().unwrap());
                });
            }
        });
    }
}

/// The kernel marks no word of a process whose memory it has thrown away, as for want of memory.
#[test]
fn a_pi_mutex_whose_holder_went_without_a_mark_is_inherited() {
    if !has_pi() {
        return;
    }
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.pi_mutex::<u64>("/a").unwrap();
    drop(lock.lock().unwrap());
    // It has ended; and nobody has asked how, at first.
    let gone = crate::os::fixture::fork_child(|| 0);
    let tid = gone.pid() as u32;
    let mut gone = Some(gone);
    let file = std::fs::OpenOptions::new().write(true).open(node.domain().locks().join("a"));
    let file = file.unwrap();
    let len = file.metadata().unwrap().len();
    for waiters in [0, 1 << 31] {
        let word: u32 = tid | waiters;
        std::os::unix::fs::FileExt::write_all_at(&file, &word.to_ne_bytes(), len - 32).unwrap();
        // The state says that it was let go in good order; only the kernel's word lags behind.
        crate::os::fixture::until(|| crate::os::process::sched::has_ended(tid).unwrap());
        drop(lock.lock().unwrap());
        drop(lock.try_lock().unwrap());
        gone.take().map(|child| child.wait());
    }
    assert!(!crate::os::process::sched::has_ended(std::process::id()).unwrap());
}

/// From the moment at which the kernel would have marked its words until it is gone, a process with
/// much memory goes on for a while.
#[test]
fn a_pi_mutex_whose_holder_went_without_a_mark_is_inherited_while_its_memory_is_torn_down() {
    if !has_pi() {
        return;
    }
    const BYTES: usize = 128 << 20;
    let dir = TempDir::new("lock");
    let node = node(&dir);
    let lock = node.pi_mutex::<u64>("/a").unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(node.domain().locks().join("a"));
    let file = file.unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    for _ in 0..4 {
        // SAFETY: memory and a list of the child's own; it waits to be killed.
        let child = crate::os::fixture::fork_child(|| unsafe {
            let (prot, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
            let map = libc::mmap(std::ptr::null_mut(), BYTES, prot, how | libc::MAP_ANON, -1, 0);
            libc::madvise(map, BYTES, libc::MADV_NOHUGEPAGE);
            (0..BYTES).step_by(4096).for_each(|at| map.cast::<u8>().add(at).write_volatile(1));
            libc::syscall(libc::SYS_set_robust_list, 0, 24);
            let tid = (libc::getpid() as u32).to_ne_bytes();
            let len = file.metadata().unwrap().len();
            std::os::unix::fs::FileExt::write_all_at(&file, &tid, len - 32).unwrap();
            let _ = std::io::Write::write(&mut &writer, &[1]);
            libc::pause()
        });
        std::io::Read::read_exact(&mut &reader, &mut [0]).unwrap();
        assert_eq!(lock.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(child.pid(), libc::SIGKILL) };
        crate::os::fixture::until(|| match lock.try_lock() {
            Err(LockError::WouldBlock) => false,
            taken => {
                drop(taken.unwrap());
                true
            }
        });
    }
}
