//! Removing locks: by several at once, and beside what is no lock.

use std::sync::Barrier;

use super::*;
use crate::os::death::robust::gettid;
use crate::os::fixture::{is_asleep, until};
use crate::os::fs::file;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;

/// All of its users follow the advice at the same moment, and end up with one lock, not two.
#[test]
fn who_removes_a_lost_lock_together_with_others_opens_the_same_one() {
    let dir = TempDir::new("lock-removing");
    let (one, two) = (node(&dir), node(&dir));
    for round in 0..300 {
        let lost = RawMutex::open(&one, "/x").unwrap();
        in_thread(|| assert_eq!(lost.lock().unwrap(), Acquired::Clean));
        assert_eq!(lost.lock().unwrap(), Acquired::OwnerDied);
        lost.unlock().unwrap();
        assert!(lost.lock().is_err(), "lost");
        let start = Barrier::new(2);
        let cure = |node: &Node| {
            start.wait();
            match node.remove_lock("/x") {
                Ok(_) => {}
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
            RawMutex::open(node, "/x").unwrap()
        };
        std::thread::scope(|scope| {
            let there = scope.spawn(|| cure(&two));
            let here = cure(&one);
            let there = there.join().unwrap();
            assert_eq!(here.lock().unwrap(), Acquired::Clean);
            in_thread(|| {
                let refused = there.lock_until(Deadline::AT_ONCE).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::WouldBlock, "round {round}");
            });
            here.unlock().unwrap();
        });
        drop(lost);
        assert!(one.remove_lock("/x").unwrap());
    }
}

#[test]
fn what_cannot_be_removed_keeps_nobody_from_the_rest() {
    let dir = TempDir::new("lock-strange");
    let n = node(&dir);
    for name in ["/a", "/c", "/e"] {
        drop(n.mutex::<u64>(name).unwrap());
    }
    for name in ["b", "d"] {
        std::fs::create_dir(n.domain().locks().join(name)).unwrap();
    }
    let domain = crate::Domain::of_node(&n);
    assert!(domain.clean().is_err());
    let mut left = crate::os::fs::file::names_in(&n.domain().locks()).unwrap();
    left.sort();
    assert_eq!(left, ["b", "d"]);
}

/// It has the domain's lock in hand meanwhile, and no node could be opened.
#[test]
fn a_cleaner_does_not_wait_for_one_who_was_stopped_while_removing_locks() {
    let dir = TempDir::new("lock-stopped");
    let n = node(&dir);
    drop(n.mutex::<u64>("/a").unwrap());
    let locks = n.domain().locks();
    let stopped = file::lock_dir(&locks, Deadline::AT_ONCE).unwrap();
    let domain = crate::Domain::of_node(&n);
    let remover = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            remover.store(gettid(), Relaxed);
            n.remove_lock("/a")
        });
        until(|| is_asleep(remover.load(Relaxed) as i32));
        assert_eq!(domain.clean().unwrap_err().kind(), ErrorKind::Timeout);
        assert!(!waits.is_finished(), "the cleaner waited as long");
        drop(stopped);
        assert!(waits.join().unwrap().unwrap());
    });
}

/// A cleaner that could not map the files of nodes took the domain for deserted, and removed the
/// directories that the living were to make their next topic in.
#[test]
fn a_cleaner_that_cannot_read_a_node_leaves_the_domain_to_it() {
    let dir = TempDir::new("lock-unread");
    let n = node(&dir);
    let file = n.domain().nodes().join(n.id().to_string());
    let domain = crate::Domain::of_node(&n);
    crate::os::fixture::refuse("map", &file.to_string_lossy(), libc::ENOMEM, u32::MAX);
    let report = domain.clean();
    crate::os::fixture::refuse_none();
    let report = report.unwrap();
    assert!(report.live_nodes == 1 && !report.domain_removed, "{report:?}");
    n.topic::<u64>("/later").unwrap().publisher().unwrap();
}
