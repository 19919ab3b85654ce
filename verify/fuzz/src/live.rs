//! The files of live members, changed under their peers, as a member that runs wild would.
//!
//! The wild one does nothing any more: what its own calls make of its own broken files is nobody's
//! promise. It is forgotten, not dropped.

use crate::input::Input;
use crate::scribble::{How, scribble};
use crate::world::{self, Dir, Ports};

/// A peer that was attached before the changes, and one that comes after them.
pub fn run(data: &[u8]) {
    let dir = Dir::new();
    let root = dir.root();
    let (Some(wild), Some(mut peer)) =
        (world::done(Ports::open(&root, "wild")), world::done(Ports::open(&root, "peer")))
    else {
        return;
    };
    peer.carry_on();
    let mut input = Input(data);
    let wild_node = wild.node_id();
    let all = world::files(&root);
    let own: Vec<_> = all.into_iter().filter(|path| is_of(path, wild_node)).collect();
    for _ in 0..2 {
        let mut part = Input(input.bytes(48));
        scribble(&own, &mut part, How::Bytes);
        peer.carry_on();
        world::look(&root);
    }
    world::read_any(&root);
    if let Some(mut late) = world::done(Ports::open(&root, "late")) {
        late.carry_on();
    }
    peer.carry_on();
    drop(peer);
    wild.forget();
}

/// Whether the node with that number may write the file.
fn is_of(path: &std::path::Path, node: u64) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let number = node.to_string();
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    let shared = matches!(name.as_str(), "bell" | "consumer");
    let lock = path.parent().is_some_and(|dir| dir.ends_with("locks"));
    first == number || parts.next() == Some(&number) || shared || lock
}
