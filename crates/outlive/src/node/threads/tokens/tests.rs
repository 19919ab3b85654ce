use super::*;
use crate::node::Node;
use crate::os::fixture::{TempDir, fork_child, until};

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn is_alive(threads: &Threads, id: u64) -> bool {
    matches!(threads.judge(id).unwrap(), Verdict::Alive(_))
}

#[test]
fn a_thread_keeps_its_id_and_others_have_other_ordinals() {
    let dir = TempDir::new("threads");
    let (one, two) = (node(&dir), node(&dir));
    let (a, b) = (one.threads().unwrap(), two.threads().unwrap());
    let (here_a, here_b) = (a.id().unwrap(), b.id().unwrap());
    assert_eq!((a.id().unwrap(), b.id().unwrap()), (here_a, here_b));
    let there = std::thread::scope(|s| s.spawn(|| a.id().unwrap()).join().unwrap());
    let lows = [here_a as u32, here_b as u32, there as u32];
    assert!(lows[0] != lows[1] && lows[0] != lows[2] && lows[1] != lows[2], "{lows:x?}");
    assert!(lows.iter().all(|low| (ORDINAL_FIRST..ORDINAL_END).contains(&u64::from(*low))));
    assert_eq!((node_of(here_a), node_of(there)), (one.id(), one.id()));
    assert_eq!(node_of(here_b), two.id());
}

/// As if all that have ended had done so long ago.
fn age(own: &Threads) {
    for place in 0..own.own.table.lock().unwrap().used.len() {
        let at = at::FIRST + place * at::PLACE_BYTES + at::ENDED_AT;
        own.own.map.atomic_u64(at).unwrap().store(0, Relaxed);
    }
}

#[test]
fn a_thread_that_ended_is_dead_and_its_place_is_used_again() {
    let dir = TempDir::new("threads");
    let (one, two) = (node(&dir), node(&dir));
    let (own, other) = (one.threads().unwrap(), two.threads().unwrap());
    let mut ids = vec![own.id().unwrap()];
    for _ in 0..3 * at::PLACES_FIRST {
        let (thread, other) = (Arc::clone(&own), Arc::clone(&other));
        let id = std::thread::spawn(move || {
            let id = thread.id().unwrap();
            assert!(is_alive(&other, id) && is_alive(&thread, id));
            id
        });
        // `join` returns when the thread's memory is free, which is after its hook.
        ids.push(id.join().unwrap());
        age(&own);
    }
    for id in &ids[1..] {
        until(|| !is_alive(&other, *id));
    }
    assert!(is_alive(&other, ids[0]));
    assert_eq!(own.own.table.lock().unwrap().used.len(), 2);
    ids.dedup();
    assert_eq!(ids.len(), 1 + 3 * at::PLACES_FIRST);
}

#[test]
fn more_threads_than_a_page_holds() {
    let dir = TempDir::new("threads");
    let (one, two) = (node(&dir), node(&dir));
    let (own, other) = (one.threads().unwrap(), two.threads().unwrap());
    let barrier = std::sync::Barrier::new(100);
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                let id = own.id().unwrap();
                barrier.wait();
                assert!(is_alive(&other, id));
                barrier.wait();
            });
        }
    });
}

#[test]
fn a_closed_node_and_garbage_are_dead() {
    let dir = TempDir::new("threads");
    let (one, two) = (node(&dir), node(&dir));
    let other = two.threads().unwrap();
    let id = one.threads().unwrap().id().unwrap();
    assert!(is_alive(&other, id));
    assert!(!is_alive(&other, id + 1));
    assert!(!is_alive(&other, thread_id(NodeId(77), ORDINAL_FIRST)));
    drop(one);
    assert!(!is_alive(&other, id));
    assert!(!is_alive(&node(&dir).threads().unwrap(), id));
}

/// A thread of the parent registers or ends just then, and holds the table.
#[test]
fn a_forked_child_asks_no_table_of_its_parents() {
    let dir = TempDir::new("threads-child");
    let parent = node(&dir);
    let own = parent.threads().unwrap();
    own.id().unwrap();
    let table = own.own.table.lock().unwrap();
    let child = fork_child(|| {
        let child = node(&dir);
        let lock = child.mutex::<u64>("/m").unwrap();
        i32::from(lock.lock().is_err())
    });
    assert_eq!(child.wait(), 0);
    drop(table);
}

/// The C library keeps a list through the robust mutexes that a thread holds, in files that an
/// operator may cut; taking one out writes into its neighbours.
#[test]
fn cut_files_of_tokens_harm_no_other_token_of_the_thread() {
    for extended in [false, true] {
        let dir = TempDir::new("threads-cut");
        let nodes: Vec<_> = (0..4).map(|_| node(&dir)).collect();
        for node in &nodes {
            node.threads().unwrap().id().unwrap();
        }
        let spoil = |id: crate::NodeId| {
            let own = dir.join("root/default/nodes").join(id.to_string());
            let mut files = vec![own.clone()];
            if own.is_dir() {
                files = std::fs::read_dir(&own).unwrap().map(|f| f.unwrap().path()).collect();
            }
            for file in files.iter().filter(|file| file.is_file()) {
                let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
                let bytes = file.metadata().unwrap().len();
                file.set_len(0).unwrap();
                if extended {
                    file.set_len(bytes).unwrap();
                }
            }
        };
        spoil(nodes[1].id());
        spoil(nodes[2].id());
        let mut nodes: Vec<_> = nodes.into_iter().map(Some).collect();
        // The spoilt ones go first, then who was before and after them in the list.
        for at in [2, 1, 0, 3] {
            nodes[at] = None;
        }
        let after = node(&dir);
        let threads = after.threads().unwrap();
        assert!(is_alive(&threads, threads.id().unwrap()));
    }
}

/// Others ask when a thread ended that left its guard: its process may be ending.
#[test]
fn the_place_of_a_thread_that_has_just_ended_waits() {
    let dir = TempDir::new("threads-place");
    let (one, other) = (node(&dir), node(&dir));
    let id = std::thread::scope(|scope| {
        scope.spawn(|| one.threads().unwrap().id().unwrap()).join().unwrap()
    });
    one.threads().unwrap().id().unwrap();
    let Verdict::Ended(peer) = other.threads().unwrap().judge(id).unwrap() else {
        panic!("it has ended")
    };
    assert!(peer.may_be_ending(id));
}

/// However many end at once: the table grows instead.
#[test]
fn the_place_of_a_thread_that_has_just_ended_waits_in_a_full_table() {
    let dir = TempDir::new("threads-full");
    let (one, other) = (node(&dir), node(&dir));
    let own = one.threads().unwrap();
    let began = std::time::Instant::now();
    let new = || std::thread::scope(|scope| scope.spawn(|| own.id().unwrap()).join().unwrap());
    let ids: Vec<_> = (0..2 * at::PLACES_FIRST + 1).map(|_| new()).collect();
    let threads = other.threads().unwrap();
    for id in ids {
        let Verdict::Ended(peer) = threads.judge(id).unwrap() else { panic!("it has ended") };
        // On a machine that stood still the second may be over.
        assert!(peer.may_be_ending(id) || began.elapsed().as_nanos() > u128::from(EXIT_NS));
    }
}

/// As on a full disk, or when the program has closed our descriptor.
#[test]
fn where_the_table_cannot_grow_a_place_is_used_again_at_once() {
    let dir = TempDir::new("threads-no-room");
    let one = node(&dir);
    let own = one.threads().unwrap();
    let new = || std::thread::scope(|scope| scope.spawn(|| own.id().map(drop)).join().unwrap());
    for _ in 0..at::PLACES_FIRST {
        new().unwrap();
    }
    crate::os::fixture::close_number(own.own.fd.number());
    std::fs::remove_file(own.own.map.path()).unwrap();
    assert!(new().is_ok());
}
