use super::*;
use crate::os::death::robust::{OWNER_DIED, WAITERS};
use crate::os::fixture::TempDir;
use std::time::Duration;

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

#[test]
fn a_word_that_says_dead_is_a_hint_and_no_proof() {
    let dir = TempDir::new("node-hint");
    let (watcher, node) = (node(&dir), node(&dir));
    let watch = watcher.watch(node.id()).unwrap();
    let word = node.inner.token.map().atomic_u32(layout::TOKEN_WORD).unwrap();
    let held = word.load(Relaxed);
    for dead in [OWNER_DIED | WAITERS, 0] {
        word.store(dead, Relaxed);
        assert!(!watch.seems_alive() && watch.is_alive());
        assert!(!watch.wait(Duration::from_millis(5)));
        let domain = Node::builder().root(dir.join("root")).domain_path().unwrap();
        assert_eq!(sweep_dead(&domain, Sweep::All).unwrap(), 0);
    }
    word.store(held, Relaxed);
    assert!(watch.seems_alive());
    drop(node);
    assert!(!watch.is_alive());
}

/// Files that nobody holds, as dead nodes leave them; how many are left.
fn leave_dead(dir: &TempDir, ordinals: std::ops::Range<u64>) {
    let nodes = dir.join("root").join("default").join("nodes");
    ordinals.for_each(|n| std::fs::write(nodes.join(n.to_string()), []).unwrap());
}

fn files(dir: &TempDir) -> usize {
    std::fs::read_dir(dir.join("root").join("default").join("nodes")).unwrap().count()
}

#[test]
fn an_open_beside_many_looks_at_some_files_and_the_next_ones_at_the_rest() {
    let dir = TempDir::new("node-many");
    let first = node(&dir);
    leave_dead(&dir, 1000..2000);
    let mut before = files(&dir);
    for _ in 0..Sweep::turns(before) {
        drop(node(&dir));
        let left = files(&dir);
        assert!(before - left <= SWEEP_ALL, "one open looked at {}", before - left);
        before = left;
    }
    assert_eq!(before, 1, "the first node lives");
    assert!(first.must_be_listed().is_ok());
}

#[test]
fn a_few_files_of_the_dead_go_with_the_next_open() {
    let dir = TempDir::new("node-few");
    let first = node(&dir);
    leave_dead(&dir, 1000..1000 + SWEEP_ALL as u64 - 1);
    let next = node(&dir);
    assert_eq!(files(&dir), 2);
    drop((first, next));
}

#[test]
fn without_its_counter_a_domain_of_the_dead_begins_again() {
    let dir = TempDir::new("node-counter");
    drop(node(&dir));
    leave_dead(&dir, 1000..1200);
    std::fs::remove_file(dir.join("root").join("default").join("id")).unwrap();
    assert_eq!(node(&dir).id().get(), 1);
    assert_eq!(files(&dir), 0);
}
