//! What those who leave, or could not join, leave behind: nothing.

use std::sync::Barrier;
use std::time::SystemTime;

use super::*;
use crate::os::fixture::{fork_child, thread_cpu, until};

/// Rounds of two that leave at the same time.
const ROUNDS: u32 = 1500;

/// Opens an end by each of `open`, and drops both together, again and again; returns after how
/// many rounds a queue was left.
fn leave_together<A, B: Send>(
    dir: &TempDir,
    open: (impl Fn() -> A, impl Fn() -> B + Send + Sync),
) -> u32 {
    let path = dir.join("root/default/queues/q");
    let (begin, ready, done) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        let (begin, ready, done, other) = (&begin, &ready, &done, &open.1);
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                begin.wait();
                let end = other();
                ready.wait();
                drop(end);
                done.wait();
            }
        });
        let mut left = 0;
        for _ in 0..ROUNDS {
            begin.wait();
            let end = open.0();
            ready.wait();
            drop(end);
            done.wait();
            left += u32::from(path.exists());
        }
        left
    })
}

#[test]
fn a_producer_and_a_consumer_that_leave_together_leave_nothing() {
    let dir = TempDir::new("queue-leave-together");
    let nodes = [node(&dir), node(&dir)];
    let queue = |i: usize| nodes[i].queue::<u64>("q").unwrap();
    let open = (|| queue(0).consumer().unwrap(), || queue(1).producer().unwrap());
    assert_eq!(leave_together(&dir, open), 0, "rounds of {ROUNDS} after which it was left");
}

#[test]
fn two_producers_that_leave_together_leave_nothing() {
    let dir = TempDir::new("queue-leave-producers");
    let nodes = [node(&dir), node(&dir)];
    let queue = |i: usize| nodes[i].queue::<u64>("q").unwrap();
    let open = (|| queue(0).producer().unwrap(), || queue(1).producer().unwrap());
    assert_eq!(leave_together(&dir, open), 0, "rounds of {ROUNDS} after which it was left");
}

#[test]
fn who_could_not_join_leaves_no_queue() {
    let dir = TempDir::new("queue-not-joined");
    let n = node(&dir);
    let queue = || n.queue::<u64>("q").unwrap();
    let e = queue().bound_bytes(100).producer().unwrap_err();
    assert_eq!((e.kind(), files(&dir)), (ErrorKind::InvalidArgument, Vec::new()));
    // It had made the directory only.
    let long = "x".repeat(2000);
    let of_type = crate::PayloadType::bytes().renamed(&long);
    let e = n.queue::<[u8]>("q").unwrap().of_type(&of_type).consumer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(!dir.join("root/default/queues/q").exists());
    // What waits for a consumer stays.
    let consumer = queue().consumer().unwrap();
    let mut producer = queue().producer().unwrap();
    producer.send(&1).unwrap();
    drop((consumer, producer));
    queue().bound_bytes(100).producer().unwrap_err();
    n.queue::<[u8]>("q").unwrap().of_type(&of_type).consumer().unwrap_err();
    assert_eq!(drain(&mut queue().consumer().unwrap()), [1]);
}

/// Its maker got as far as `meta`, and no further.
#[test]
fn who_died_before_it_joined_leaves_no_type() {
    let dir = TempDir::new("queue-nobodys-type");
    let n = node(&dir);
    let path = dir.join("root/default/queues/q");
    let producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    std::fs::copy(path.join("meta"), dir.join("meta")).unwrap();
    drop(producer);
    std::fs::create_dir(&path).unwrap();
    std::fs::rename(dir.join("meta"), path.join("meta")).unwrap();
    let mut consumer = n.queue::<u32>("q").unwrap().consumer().unwrap();
    n.queue::<u32>("q").unwrap().producer().unwrap().send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
}

/// Tools watch its time, and look at no queue while that stays.
#[test]
fn who_comes_or_leaves_shows_in_the_directory_of_all_queues() {
    let dir = TempDir::new("queue-touched");
    let n = node(&dir);
    let changed = |all: &str| {
        let all = std::fs::File::open(dir.join("root/default").join(all)).unwrap();
        let before = all.metadata().unwrap().modified().unwrap();
        all.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        before != SystemTime::UNIX_EPOCH
    };
    let queue = || n.queue::<u64>("q").unwrap();
    // Keeps the queue and its files.
    let mut first = queue().producer().unwrap();
    assert!(changed("queues") && !changed("queues"));
    let second = queue().producer().unwrap();
    assert!(changed("queues"), "a producer came");
    drop(second);
    assert!(changed("queues"), "it left");
    let mut consumer = queue().consumer().unwrap();
    assert!(changed("queues"), "a consumer came");
    first.send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
    assert!(!changed("queues"), "all stayed");
    drop(consumer);
    assert!(changed("queues"), "it left");
    let service = || n.service::<u64, u64>("s").unwrap();
    let _client = service().client().unwrap();
    assert!(changed("services") && !changed("services"));
    let server = service().server().unwrap();
    assert!(changed("services"), "a server came");
    drop(server);
    assert!(changed("services") && !changed("queues"), "it left");
}

#[test]
fn nobody_spins_until_what_a_dead_producer_sent_has_its_turn() {
    let dir = TempDir::new("queue-held-back");
    let n = node(&dir);
    let queue = |n: &Node| n.queue::<u64>("q").unwrap().ordered(Duration::from_secs(20));
    let mut consumer = queue(&n).consumer().unwrap();
    let root = dir.join("root");
    let child = fork_child(move || {
        let Ok(node) = Node::builder().root(root).open() else { return 2 };
        let queue = node.queue::<u64>("q").unwrap().ordered(Duration::from_secs(20));
        let Ok(mut producer) = queue.producer() else { return 3 };
        if producer.send(&7).is_err() {
            return 4;
        }
        std::mem::forget((producer, node));
        0
    });
    assert_eq!(child.wait(), 0);
    let _alive = queue(&n).producer().unwrap();
    for _ in 0..2 {
        let (time, cpu) = (Duration::from_millis(300), thread_cpu());
        assert!(consumer.receive_timeout(time).unwrap().is_none(), "the other may send an earlier");
        // A tenth: who spins beside other work has no more than a part of a processor.
        assert!(thread_cpu() - cpu < time / 10);
        // What other nodes leave goes with a look, the dead one's own file too.
        drop(node(&dir));
    }
}

#[test]
fn producers_that_died_hide_no_message_of_the_next_and_no_death() {
    let dir = TempDir::new("queue-died-many");
    let n = node(&dir);
    let queue = |n: &Node| n.queue::<u64>("q").unwrap();
    let some_of = |most| (1..=most).flat_map(|dead| [(dead, false), (dead, true)]);
    for (alive, (dead, sends)) in (0..8).flat_map(|i| some_of(5).map(move |j| (i, j))) {
        let mut consumer = queue(&n).consumer().unwrap();
        // Lanes are in the order of their nodes.
        let _before: Vec<_> = (0..alive).map(|_| queue(&n).producer().unwrap()).collect();
        let child = fork_child(|| {
            let node = node(&dir);
            let producers: Vec<_> = (0..dead).map(|_| queue(&node).producer().unwrap()).collect();
            std::fs::write(dir.join("ready"), []).unwrap();
            std::thread::sleep(Duration::MAX);
            drop(producers);
            1
        });
        until(|| dir.join("ready").exists());
        std::fs::remove_file(dir.join("ready")).unwrap();
        let mut next = queue(&node(&dir)).producer().unwrap();
        assert!(consumer.receive().unwrap().is_none());
        let came = std::iter::from_fn(|| consumer.next_event()).count();
        assert_eq!(came, alive + dead + 1);

        child.kill();
        if sends {
            next.send(&7).unwrap();
            let got = consumer.receive().unwrap().map(|m| *m);
            assert_eq!(got, Some(7), "{alive} live, {dead} are dead, the next one sent");
        }
        assert!(consumer.receive().unwrap().is_none());
        let told = std::iter::from_fn(|| consumer.next_event()).count();
        assert_eq!(told, dead, "{alive} live, {dead} are dead");
    }
}
