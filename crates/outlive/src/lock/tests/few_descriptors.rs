//! Where this process can open few files.

use std::fs::File;
use std::os::fd::AsRawFd;

use super::*;
use crate::os::fixture::{in_a_child, limit_descriptors};

/// Opens the object of a kind by its name; what it is goes away at once.
type Open = fn(&Node, &str) -> Result<()>;

/// Each kind of object, by which others would find a file of another type or with other data.
const ALL: [Open; 7] = [
    |node, name| node.mutex_with(name, &1u64).map(drop),
    |node, name| match node.pi_mutex_with(name, &1u64) {
        Err(e) if e.kind() == ErrorKind::Unsupported => Ok(()),
        opened => opened.map(drop),
    },
    |node, name| node.rwlock_with(name, &1u64).map(drop),
    |node, name| node.condvar(name).map(drop),
    |node, name| node.semaphore(name, 3).map(drop),
    |node, name| node.lockless_set(name, 3).map(drop),
    |node, name| node.segment_with(name, &1u64).map(drop),
];

#[test]
fn an_object_that_lacks_a_descriptor_leaves_no_file_behind() {
    let test = "an_object_that_lacks_a_descriptor_leaves_no_file_behind";
    // The limit is of the process.
    if !in_a_child(module_path!(), test) {
        return;
    }
    let dir = TempDir::new("lock-few-descriptors");
    let node = node(&dir);
    // Makes what all of them need, and keeps it.
    let first = node.mutex::<u64>("/first").unwrap();
    let lowest_free = File::open("/dev/null").unwrap().as_raw_fd() as u64;
    let files = || std::fs::read_dir(node.domain().locks()).unwrap().count();
    for (kind, open) in ALL.into_iter().enumerate() {
        let (before, mut refused) = (files(), 0);
        loop {
            let was = limit_descriptors(lowest_free + refused);
            let opened = open(&node, &format!("/{kind}"));
            limit_descriptors(was);
            let Err(e) = opened else { break };
            assert_eq!((e.kind(), files()), (ErrorKind::Io, before), "{kind}, {refused}: {e}");
            refused += 1;
        }
        assert!(refused > 1, "{kind} takes no descriptor");
    }
    drop(first);
}
