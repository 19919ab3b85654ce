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
        assert_eq!(sweep_dead(&domain).unwrap(), 0);
    }
    word.store(held, Relaxed);
    assert!(watch.seems_alive());
    drop(node);
    assert!(!watch.is_alive());
}
