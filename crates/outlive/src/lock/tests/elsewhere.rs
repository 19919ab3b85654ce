//! A process that no longer finds the files of others, though they live.

use super::*;
use crate::os::fixture::fork_child;

fn opened(root: impl Into<std::path::PathBuf>) -> Node {
    Node::builder().root(root).name("test").open().unwrap()
}

/// Whether `free` is refused as held while a thread of another node holds the mutex and reads.
fn is_kept_out(dir: &TempDir, mine: Node, before: impl Fn(), refused_as: ErrorKind) -> bool {
    let theirs = opened(dir.join("root"));
    let (lock, rw) = (mine.mutex::<u64>("/m").unwrap(), mine.rwlock::<u64>("/r").unwrap());
    let (at_theirs, turn) = (theirs.mutex::<u64>("/m").unwrap(), std::sync::Barrier::new(2));
    let read_there = theirs.rwlock::<u64>("/r").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let held = (at_theirs.lock().unwrap(), read_there.read().unwrap());
            turn.wait();
            turn.wait();
            drop(held);
        });
        turn.wait();
        before();
        let kinds = [
            lock.try_lock().map(drop).map_err(|e| e.kind()),
            rw.try_write().map(drop).map_err(|e| e.kind()),
        ];
        turn.wait();
        kinds == [Err(refused_as), Err(refused_as)]
    })
}

/// The path of a root was as the program gave it: after a `chdir` everybody else was dead.
#[test]
fn a_relative_root_stays_where_it_was() {
    let dir = TempDir::new("lock-chdir");
    // In a child: the directory is the process's.
    let child = fork_child(|| {
        std::env::set_current_dir(dir.join("")).unwrap();
        let mine = opened("root");
        let elsewhere = || std::env::set_current_dir("/").unwrap();
        i32::from(!is_kept_out(&dir, mine, elsewhere, ErrorKind::WouldBlock))
    });
    assert_eq!(child.wait(), 0);
}

/// As after a `chroot` or a mount over the root: who is not found there may live.
#[test]
fn who_finds_nobody_at_the_path_of_the_domain_takes_nothing() {
    let dir = TempDir::new("lock-moved");
    let (root, away) = (dir.join("root"), dir.join("away"));
    let moves = || std::fs::rename(&root, &away).unwrap();
    assert!(is_kept_out(&dir, opened(&root), moves, ErrorKind::Corrupt));
    std::fs::rename(&away, &root).unwrap();
}
