//! Receiving beside a publisher that overwrites as fast as one reads.

use std::os::unix::fs::FileExt;
use std::thread;

use crate::node::Node;
use crate::os::fixture::TempDir;
use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Release};
use crate::topic::membership::entry::ring_path;
use crate::topic::ring::layout::ring;
use crate::{Domain, NodeBuilder};

fn settings(dir: &TempDir) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name("test")
}

#[test]
fn a_receive_gives_up_after_a_few_overruns() {
    let dir = TempDir::new("chase-bound");
    let node = settings(&dir).open().unwrap();
    let depth = 1024;
    let topic = || node.topic::<u64>("/n").unwrap().depth(depth);
    let publisher = topic().publisher().unwrap();
    let mut sub = topic().subscriber().unwrap();
    // As if the publisher were a lap further at each look: every entry is overwritten once more
    // than the one before it.
    let path = ring_path(&dir.join("root/default/topics/n"), publisher.id());
    let file = std::fs::File::options().write(true).open(path).unwrap();
    for i in 0..depth {
        let n = i + depth * (2 * i + 1);
        file.write_all_at(&(2 * n + 2).to_le_bytes(), ring::ENTRIES as u64 + i * 64).unwrap();
    }
    assert!(sub.receive().unwrap().is_none());
    let seen = Domain::of(&settings(&dir)).unwrap().subscribers("/n").unwrap().unwrap();
    let next = seen[0].sources[0].next;
    // To the next entry, from there by half a ring and once more: there it is ahead. Entry by entry
    // it would look at all of them and end at 2047 rings.
    assert_eq!(next, 1029 * depth + 3);
}

#[test]
fn beside_a_publisher_at_full_speed_every_message_is_received_or_counted() {
    let dir = TempDir::new("chase-exact");
    for depth in [1, 2, 4, 16] {
        let done = AtomicU32::new(0);
        let topic = |node: &Node| node.topic::<u64>("/n").unwrap().depth(depth);
        let (from, to) = (settings(&dir).open().unwrap(), settings(&dir).open().unwrap());
        let mut sub = topic(&to).subscriber().unwrap();
        let publisher = topic(&from).publisher().unwrap();
        thread::scope(|scope| {
            let done = &done;
            scope.spawn(move || {
                for i in 0..300_000 {
                    publisher.publish(&i).unwrap();
                }
                done.store(1, Release);
                publisher
            });
            let (mut next, mut last) = (0, false);
            loop {
                while let Some(sample) = sub.receive().unwrap() {
                    assert_eq!((*sample, sample.seq()), (next + sample.lost_before(), *sample));
                    next = sample.seq() + 1;
                }
                if last {
                    break;
                }
                last = done.load(Acquire) == 1;
            }
            assert_eq!(next, 300_000);
        });
    }
}
