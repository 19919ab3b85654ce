use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::Duration;

use super::*;
use crate::os::death::robust::{OWNER_DIED, WAITERS};
use crate::os::fixture::{TempDir, thread_cpu};

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

#[test]
fn a_domain_whose_node_numbers_are_used_up_says_so() {
    let dir = TempDir::new("node-numbers");
    let keeper = node(&dir);
    let id = dir.join("root").join("default").join("id");
    let open_at = |next: u64| {
        let at = crate::domain::header::id::NEXT_NODE as u64;
        let file = std::fs::OpenOptions::new().write(true).open(&id).unwrap();
        file.write_all_at(&next.to_le_bytes(), at).unwrap();
        Node::builder().root(dir.join("root")).open().map(|node| node.id().get())
    };
    assert_eq!(open_at(0x7fff_fffe).unwrap(), 0x7fff_fffe);
    for (next, kind) in [
        (0x7fff_ffff, ErrorKind::TooManyMembers),
        (0x8000_0000, ErrorKind::Corrupt),
        (0, ErrorKind::Corrupt),
    ] {
        let refused = open_at(next).unwrap_err();
        assert!(refused.kind() == kind && refused.to_string().contains("outlive clean"));
    }
    drop(keeper);
}

/// As a daemon does, or who closes one twice: all descriptors, then files under their numbers.
fn close_all_and_open_others(dir: &TempDir) -> Vec<std::fs::File> {
    crate::os::fixture::close_all_descriptors();
    let others = (0..100).map(|n| std::fs::File::create(dir.join(&format!("other-{n}"))).unwrap());
    others.collect()
}

/// What the child of the next test sees; 0 if all is well.
fn lives_without_descriptors(dir: &TempDir, parent: NodeId) -> i32 {
    let node = node(dir);
    let (mine, theirs) = (node.mutex::<u64>("/m").unwrap(), node.mutex::<u64>("/p").unwrap());
    let held = mine.lock().unwrap();
    let consumer = node.queue::<u64>("/q").unwrap().consumer().unwrap();
    let watch = node.watch(parent).unwrap();
    let others = close_all_and_open_others(dir);
    std::fs::write(dir.join("closed"), node.id().to_string()).unwrap();
    crate::os::fixture::until(|| dir.join("go").exists());
    if watch.wait(Duration::from_millis(5)) || watch.peer().proof_of_death().is_some() {
        return 1;
    }
    match theirs.try_lock() {
        Err(e) if e.kind() == ErrorKind::WouldBlock => {}
        _ => return 2,
    }
    // More than there is room for in the file, so that it grows.
    let topic = |_| node.topic::<u64>("/t").unwrap().subscriber();
    if (0..2 * layout::PORTS_FIRST).map(topic).any(|opened| opened.is_err()) {
        return 3;
    }
    drop(held);
    drop((mine, theirs, consumer, watch, node));
    for other in &others {
        match other.metadata() {
            Ok(file) if file.len() == 0 => {}
            _ => return 4,
        }
    }
    0
}

#[test]
fn a_member_lives_on_when_its_program_closes_all_descriptors() {
    let dir = TempDir::new("node-closed");
    let parent = node(&dir);
    let theirs = parent.mutex::<u64>("/p").unwrap();
    let held = theirs.lock().unwrap();
    let child = crate::os::fixture::fork_child(|| lives_without_descriptors(&dir, parent.id()));
    crate::os::fixture::until(|| {
        std::fs::read_to_string(dir.join("closed")).is_ok_and(|said| !said.is_empty())
    });
    // Who joins sweeps.
    let late = node(&dir);
    let mine = late.mutex::<u64>("/m").unwrap();
    assert_eq!(mine.try_lock().unwrap_err().kind(), ErrorKind::WouldBlock);
    let second = late.queue::<u64>("/q").unwrap().consumer().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::ConsumerExists);
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    let alive = domain.nodes().unwrap().iter().filter(|node| node.alive).count();
    assert_eq!(alive, 3);
    std::fs::write(dir.join("go"), []).unwrap();
    assert_eq!(child.wait(), 0);
    drop(held);
    drop(mine.try_lock().unwrap());
    drop(late.queue::<u64>("/q").unwrap().consumer().unwrap());
}

/// They were left out, and whoever asked took them for dead.
#[test]
fn a_domain_whose_nodes_cannot_be_looked_at_says_so() {
    use crate::os::fixture::{refuse, refuse_none};
    let dir = TempDir::new("node-blind");
    let node = node(&dir);
    let domain = crate::Domain::of_node(&node);
    let file = format!("nodes/{}", node.id());
    for (errno, kind) in [
        (libc::EMFILE, ErrorKind::Io),
        (libc::ENFILE, ErrorKind::Io),
        (libc::ENOMEM, ErrorKind::OutOfMemory),
    ] {
        refuse("open", &file, errno, 1);
        let outcome = domain.nodes();
        assert_eq!(refuse_none(), 0, "it was opened");
        assert_eq!(outcome.unwrap_err().kind(), kind);
    }
    // One that somebody removes meanwhile, or that is a stranger's, is left out.
    for errno in [libc::ENOENT, libc::EACCES] {
        refuse("open", &file, errno, 1);
        assert!(domain.nodes().unwrap().is_empty());
        refuse_none();
    }
    assert_eq!(domain.nodes().unwrap().len(), 1);
}

#[test]
fn a_node_that_something_still_refers_to_leaves_at_exit() {
    let dir = TempDir::new("node-at-exit");
    let (one, other) = (node(&dir), node(&dir));
    let watch = other.watch(one.id()).unwrap();
    let semaphore = one.semaphore("s", 1).unwrap();
    let at_exit = one.at_exit();
    drop(one);
    assert!(watch.is_alive());
    at_exit.leave();
    assert!(!watch.is_alive());
    at_exit.leave();
    drop(semaphore);
    assert_eq!(files(&dir), 1, "of the other");
}

/// One file of each kind that a node takes away when it leaves.
fn with_files(node: &Node) -> (impl Sized + use<>, crate::lock::RobustMutex<u64>) {
    let nodes = node.domain().nodes();
    std::fs::write(nodes.join(format!("{}.bells", node.id())), []).unwrap();
    let topic = || node.topic::<u64>("/t").unwrap();
    let writer = crate::rt::LatestWriter::<u64>::open(node, "x").unwrap();
    let members = (topic().publisher().unwrap(), topic().subscriber().unwrap(), writer);
    (members, node.mutex("/m").unwrap())
}

fn all_files(dir: &std::path::Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all_files(&path, found);
        } else {
            found.push(path);
        }
    }
    found.sort();
}

/// By `rm -rf`, or by logind when the user's last session ends.
#[test]
fn who_leaves_a_domain_made_anew_removes_nothing_of_the_node_that_has_its_number() {
    let dir = TempDir::new("node-again");
    let root = dir.join("root/default");
    let old = node(&dir);
    let its = with_files(&old);
    std::fs::remove_dir_all(&root).unwrap();
    let new = node(&dir);
    assert_eq!(new.id(), old.id());
    let (members, lock) = with_files(&new);
    let held = lock.lock().unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    all_files(&root, &mut before);
    drop((its, old));
    all_files(&root, &mut after);
    assert_eq!(after, before);
    // Whoever does not find its files takes it for dead, and its lock.
    let other = node(&dir);
    let theirs = other.mutex::<u64>("/m").unwrap();
    let tried = std::thread::scope(|scope| {
        scope.spawn(|| theirs.try_lock().map(drop).map_err(|e| e.kind())).join().unwrap()
    });
    assert_eq!(tried, Err(ErrorKind::WouldBlock));
    drop((held, members));
}

/// Made again, the names of a domain are those of other members: one of the old takes nothing of
/// theirs for its own, and is told where it needs a file.
#[test]
fn a_queue_of_a_removed_domain_neither_reads_nor_removes_that_of_the_next() {
    const SENT: u64 = 20_000;
    let dir = TempDir::new("node-again-queue");
    let root = dir.join("root/default");
    let ends = |n: &Node| {
        let queue = || n.queue::<u64>("/q").unwrap();
        (queue().producer().unwrap(), queue().consumer().unwrap())
    };
    let (old, mut before) = (node(&dir), Vec::new());
    let (mut producer, mut consumer) = ends(&old);
    (0..SENT).for_each(|_| producer.send(&1).unwrap());
    all_files(&root, &mut before);
    assert!(before.iter().any(|file| file.ends_with("lane.1.1.2")), "{before:?}");
    std::fs::remove_dir_all(&root).unwrap();
    let new = node(&dir);
    let (mut successor, mut reader) = ends(&new);
    (0..SENT).for_each(|_| successor.send(&7).unwrap());
    before.clear();
    all_files(&root, &mut before);
    let refused = (0..10 * SENT).find_map(|_| producer.send(&1).err()).unwrap();
    assert!(refused.remedy().contains("open the node again"), "{refused}");
    while let Ok(Some(message)) = consumer.receive() {
        assert_eq!(*message, 1);
    }
    drop((producer, consumer, old));
    let mut after = Vec::new();
    all_files(&root, &mut after);
    assert_eq!(after, before);
    for _ in 0..SENT {
        assert_eq!(*reader.receive().unwrap().unwrap(), 7);
    }
}

#[test]
fn a_topic_of_a_removed_domain_neither_reads_nor_grows_into_that_of_the_next() {
    let dir = TempDir::new("node-again-topic");
    let root = dir.join("root/default");
    let ends = |n: &Node| {
        let topic = || n.topic::<[u64; 2048]>("/t").unwrap().depth(4);
        (topic().publisher().unwrap(), topic().subscriber().unwrap())
    };
    let old = node(&dir);
    let (publisher, mut subscriber) = ends(&old);
    publisher.publish(&[1; 2048]).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let new = node(&dir);
    let (successor, mut reader) = ends(&new);
    successor.publish(&[7; 2048]).unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    all_files(&root, &mut before);
    if let Ok(Some(sample)) = subscriber.receive() {
        assert_eq!(sample[0], 1);
    }
    let mut held = Vec::new();
    let refused = loop {
        match publisher.loan() {
            Ok(loan) if held.len() < 1000 => held.push(loan),
            Ok(_) => panic!("it never grows"),
            Err(e) => break e,
        }
    };
    assert!(refused.remedy().contains("open the node again"), "{refused}");
    drop(held);
    drop((publisher, subscriber, old));
    all_files(&root, &mut after);
    assert_eq!(after, before);
    assert_eq!(reader.receive().unwrap().unwrap()[0], 7);
}

#[test]
fn a_lock_of_a_removed_domain_is_not_freed_by_a_namesake_of_its_holder() {
    let dir = TempDir::new("node-again-lock");
    let (mine, theirs) = (node(&dir), node(&dir));
    let (ours, held) = (mine.mutex::<u64>("/m").unwrap(), theirs.mutex::<u64>("/m").unwrap());
    let guard = held.lock().unwrap();
    std::fs::remove_dir_all(dir.join("root/default")).unwrap();
    let new = (node(&dir), node(&dir));
    assert_eq!([new.0.id(), new.1.id()], [mine.id(), theirs.id()]);
    // So that its threads are listed.
    new.1.mutex::<u64>("/m").unwrap().try_lock().map(drop).unwrap();
    let tried = std::thread::scope(|scope| {
        scope.spawn(|| ours.try_lock().map(drop).map_err(|e| e.kind())).join().unwrap()
    });
    assert_eq!(tried, Err(ErrorKind::Corrupt));
    assert_eq!(mine.watch(theirs.id()).unwrap_err().kind(), ErrorKind::Corrupt);
    drop(guard);
}

#[test]
fn nobody_is_asked_to_remove_what_lies_in_place_of_the_root() {
    let dir = TempDir::new("node-root-file");
    let (file, link) = (dir.join("file"), dir.join("link"));
    std::fs::write(&file, "mine").unwrap();
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    for root in [file, link] {
        let refused = Node::builder().root(&root).open().unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::Corrupt, "{refused}");
        assert!(refused.object().contains(root.to_str().unwrap()), "{refused}");
        assert!(!refused.remedy().contains("remove"), "{refused}");
    }
}

/// What `mkdir` answers there is also what it answers while somebody removes the domain.
#[test]
fn a_root_where_no_directory_can_be_made_is_refused_at_once() {
    for root in ["/proc/outlive-test", "/proc/self/outlive-test", "/nowhere/outlive-test"] {
        let cpu = thread_cpu();
        let refused = Node::builder().root(root).open().unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::NotFound, "{refused}");
        assert!(refused.to_string().contains(root), "{refused}");
        assert!((thread_cpu() - cpu).as_secs() < 5, "it tried again and again");
    }
}

#[test]
fn a_leftover_that_cannot_be_removed_keeps_nobody_from_joining() {
    let dir = TempDir::new("node-strange");
    let first = node(&dir);
    let strange = dir.join("root/default/nodes/7000.bells");
    std::fs::create_dir(&strange).unwrap();
    let second = Node::builder().root(dir.join("root")).name("test").open();
    assert!(second.is_ok(), "{second:?}");
    assert!(first.must_be_listed().is_ok());
    let domain = Node::builder().root(dir.join("root")).domain_path().unwrap();
    assert!(sweep_dead(&domain, Sweep::All).is_err(), "a cleanup gets an error");
}

/// Root, who may give directories away, took it from its members; others opened it to a group.
#[test]
fn a_private_domain_is_not_opened_to_a_group() {
    let dir = TempDir::new("node-group");
    let builder = || Node::builder().root(dir.join("root"));
    let _node = builder().open().unwrap();
    let domain = dir.join("root/default");
    let mode = || domain.metadata().unwrap().permissions().mode() & 0o7777;
    let before = mode();
    let refused = builder().group(crate::os::process::sched::gid()).open().unwrap_err();
    assert_eq!((refused.kind(), mode()), (ErrorKind::NotOwned, before));
    assert!(refused.to_string().contains("it is private to user"), "{refused}");
}
