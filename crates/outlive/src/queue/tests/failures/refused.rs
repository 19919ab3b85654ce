//! What a refusal says, and whom calls that wait find dead.

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::Error;
use crate::node::layout;
use crate::os::fixture;
use crate::os::sleep::poll::{Epoll, PollFd, READABLE, poll};
use crate::queue::TrySendError;

#[test]
fn a_refusal_says_in_words_what_the_error_says_that_it_turns_into() {
    let dir = TempDir::new("queue-refusal");
    let n = node(&dir);
    let mut producer = n.queue::<u64>("q").unwrap().bound_bytes(16 << 10).producer().unwrap();
    let nobody = producer.try_send(&1).unwrap_err();
    assert!(matches!(nobody, TrySendError::NoConsumer(_)), "{nobody:?}");
    let consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let full = loop {
        if let Err(e) = producer.try_send(&1) {
            break e;
        }
    };
    let TrySendError::Full(at) = &full else { panic!("{full:?}") };
    assert_eq!(at.object(), "/q");
    let reserved = producer.try_reserve().unwrap_err();
    assert!(matches!(reserved, TrySendError::Full(_)), "{reserved:?}");
    let waited = producer.send_timeout(&1, Duration::from_millis(1)).unwrap_err();
    let at_once = producer.send_until(&1, Deadline::AT_ONCE).unwrap_err();
    drop(consumer);
    let too_large = producer.try_reserve_slice(2).unwrap_err();
    assert!(matches!(too_large, TrySendError::Failed(_)), "{too_large:?}");
    let in_use = "16384 of 16384 bytes are in use: nothing was sent; let the consumer catch up, or \
                  raise bound_bytes";
    let says = [
        (
            nobody,
            ErrorKind::OwnerDied,
            "sending to queue /q: owner died; no live consumer: nothing was sent; start one, or \
             wait with wait_for_consumer"
                .to_owned(),
        ),
        (full, ErrorKind::WouldBlock, format!("sending to queue /q: would block; {in_use}")),
        (reserved, ErrorKind::WouldBlock, format!("sending to queue /q: would block; {in_use}")),
        (
            too_large,
            ErrorKind::InvalidArgument,
            "reserving in queue /q: invalid argument; 2 elements are not a message of this queue's \
             type"
                .to_owned(),
        ),
    ];
    for (refusal, kind, words) in says {
        assert_eq!((refusal.kind(), refusal.to_string()), (kind, words.clone()));
        let error = Error::from(refusal);
        assert_eq!((error.kind(), error.object(), error.to_string()), (kind, "/q", words));
    }
    assert_eq!(waited.to_string(), format!("sending to queue /q: timed out; {in_use}"));
    assert_eq!(at_once.to_string(), format!("sending to queue /q: would block; {in_use}"));
}

#[test]
fn an_answer_of_a_hot_call_fits_into_two_words() {
    assert_eq!(size_of::<Result<(), TrySendError>>(), 16);
    let slot = size_of::<crate::Result<Slot<'static, u64>>>();
    assert_eq!(size_of::<Result<Slot<'static, u64>, TrySendError>>(), slot);
}

const IN_CHILD: &str = "OUTLIVE_TEST_UNMARKED";

/// A child that ends with its test.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Consumes until somebody kills this process.
fn consume_until_killed(root: &std::path::Path) {
    let n = Node::builder().root(root).name("victim").open().unwrap();
    let _consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    loop {
        std::thread::park();
    }
}

/// The kernel may be unable to mark the word of who dies, for instance where somebody cut the file.
#[test]
fn a_consumer_whose_death_was_not_marked_is_found_dead_by_calls_that_wait() {
    if let Some(root) = std::env::var_os(IN_CHILD) {
        return consume_until_killed(root.as_ref());
    }
    let dir = TempDir::new("queue-unmarked");
    let name = "queue::tests::failures::refused::\
                a_consumer_whose_death_was_not_marked_is_found_dead_by_calls_that_wait";
    let own = std::env::current_exe().unwrap();
    let mut victim = Command::new(own);
    victim.args(["--exact", name]).env(IN_CHILD, dir.join("root")).stdout(Stdio::null());
    let victim = Victim(victim.spawn().unwrap());
    // Nodes of their own: what one learns, another does not know.
    let mut producers = [0, 1, 2].map(|_| {
        let n = node(&dir);
        let mut producer = n.queue::<u64>("q").unwrap().bound_bytes(16 << 10).producer().unwrap();
        assert!(producer.wait_for_consumer(Duration::from_secs(60)).unwrap());
        let full = std::iter::repeat_with(|| producer.try_send(&1)).find_map(|sent| sent.err());
        assert!(matches!(full, Some(TrySendError::Full(_))), "{full:?}");
        producer
    });
    let id = producers[0].consumer_node().unwrap();
    let path = dir.join("root/default/nodes").join(id.to_string());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut word = [0; 4];
    file.read_exact_at(&mut word, layout::TOKEN_WORD as u64).unwrap();
    drop(victim);
    file.write_all_at(&word, layout::TOKEN_WORD as u64).unwrap();

    let [sends, waits, reserves] = &mut producers;
    for _ in 0..3 {
        let refused = sends.try_send(&1);
        assert!(matches!(refused, Err(TrySendError::Full(_))), "the word is enough: {refused:?}");
    }
    let e = sends.send_timeout(&1, Duration::from_secs(20)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::OwnerDied, "{e}");
    assert!(matches!(sends.try_send(&1), Err(TrySendError::NoConsumer(_))), "from there on");
    assert!(waits.has_consumer(), "by its word");
    assert!(!waits.wait_for_consumer(Duration::ZERO).unwrap(), "by its lock");
    assert_eq!(reserves.reserve().unwrap_err().kind(), ErrorKind::OwnerDied);
}

#[test]
fn a_batch_of_too_many_says_how_many_there_may_be() {
    let dir = TempDir::new("queue-too-many");
    let n = node(&dir);
    let _consumer = n.queue::<u8>("q").unwrap().consumer().unwrap();
    let mut producer = n.queue::<u8>("q").unwrap().producer().unwrap();
    let most = crate::queue::lane::position::COUNT_MAX as usize;
    let e = producer.send_batch(&vec![0; most + 1]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains(&format!("at most {most} messages, not {}", most + 1)), "{e}");
    assert!(!e.to_string().contains("bound"), "{e}");
    producer.send_batch(&vec![0; most]).unwrap();
}

/// As the error says: "reopen the producer". What is left of the old one is not for ever.
#[test]
fn a_refused_lane_goes_with_its_producer_where_that_ones_process_lives_on() {
    for cut in [false, true] {
        let dir = TempDir::new("queue-refused-goes");
        let (n, other) = (node(&dir), node(&dir));
        let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
        let mut bad = other.queue::<u64>("q").unwrap().producer().unwrap();
        bad.send(&1).unwrap();
        let file = open_lane(&dir, bad.id());
        match cut {
            true => file.set_len(0).unwrap(),
            false => file.write_all_at(&[0xff; 64], 4096).unwrap(),
        }
        assert!(consumer.receive().unwrap().is_none());
        let events: Vec<_> = std::iter::from_fn(|| consumer.next_event()).collect();
        assert!(matches!(events.last(), Some(Event::ProducerCorrupt { .. })), "{events:?}");
        drop(bad);
        let mut good = other.queue::<u64>("q").unwrap().producer().unwrap();
        good.send(&2).unwrap();
        assert_eq!(drain(&mut consumer), [2]);
        assert_eq!(lanes(&dir), 1, "that of the new producer; cut: {cut}");
    }
}

/// The file of a lane's first segment.
fn open_lane(dir: &TempDir, id: ProducerId) -> std::fs::File {
    let queue = dir.join("root/default/queues/q");
    let path = crate::queue::lane::segment::segment_path(&queue, id, 0);
    std::fs::OpenOptions::new().write(true).open(path).unwrap()
}

#[test]
fn a_refused_lane_that_cannot_be_looked_into_now_is_looked_at_again() {
    let dir = TempDir::new("queue-refused-again");
    let (n, other) = (node(&dir), node(&dir));
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut bad = other.queue::<u64>("q").unwrap().producer().unwrap();
    bad.send(&1).unwrap();
    assert_eq!(drain(&mut consumer), [1]);
    bad.send(&1).unwrap();
    let id = bad.id();
    open_lane(&dir, id).write_all_at(&[0xff; 128], 4096).unwrap();
    // It is closed before it is refused.
    drop(bad);
    assert!(consumer.receive().unwrap().is_none());
    let _good = other.queue::<u64>("q").unwrap().producer().unwrap();
    fixture::refuse("open", &format!("/lane.{}.{}.", id.node, id.port), libc::EMFILE, 1);
    let e = consumer.receive().unwrap_err();
    assert_eq!((e.kind(), fixture::refuse_none()), (ErrorKind::Io, 0), "{e}");
    fixture::until(|| consumer.receive().unwrap().is_none() && lanes(&dir) == 1);
}

#[test]
fn a_node_that_is_not_listed_any_more_joins_no_queue_and_is_told_at_once() {
    let dir = TempDir::new("queue-unlisted");
    let n = node(&dir);
    let file = dir.join("root/default/nodes").join(n.id().to_string());
    let refused = || {
        let e = n.queue::<u64>("q").unwrap().producer().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
        assert!(e.to_string().contains("open the node again"), "{e}");
        assert!(!dir.join("root/default/queues/q").exists());
    };
    std::fs::remove_file(&file).unwrap();
    refused();
    // Of another node that has its number, in a domain that was made anew.
    std::fs::write(&file, [0; 4096]).unwrap();
    refused();
    std::fs::remove_dir_all(dir.join("root/default")).unwrap();
    refused();
}

#[test]
fn who_waits_for_edges_of_a_consumer_gets_one_after_an_error() {
    let dir = TempDir::new("queue-edges");
    let (ours, theirs) = (node(&dir), node(&dir));
    let mut consumer = theirs.queue::<u64>("q").unwrap().consumer().unwrap();
    let edges = Epoll::new().unwrap();
    edges.add(consumer.fd().unwrap(), 1).unwrap();
    let has_edge = || {
        let mut any = false;
        edges.take(|_| any = true);
        any
    };
    assert!(consumer.receive().unwrap().is_none());
    has_edge();
    let mut producer = ours.queue::<u64>("q").unwrap().producer().unwrap();
    producer.send(&1).unwrap();
    assert!(has_edge());
    fixture::refuse("open", "/lane.", libc::EMFILE, 1);
    assert_eq!(consumer.receive().unwrap_err().kind(), ErrorKind::Io);
    assert!(has_edge(), "nothing brings it back");
    let mut got = None;
    fixture::until(|| {
        got = consumer.receive().unwrap().map(|message| *message);
        got.is_some()
    });
    assert_eq!(got, Some(1));
}

/// It may be dying, which takes a while; or alive, which it was not seen to be.
#[test]
fn who_cannot_look_at_the_consumer_that_is_there_is_told_what_it_lacks() {
    let dir = TempDir::new("queue-unseen");
    let (n, other) = (node(&dir), node(&dir));
    let _consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let refused = || other.queue::<u64>("q").unwrap().consumer().unwrap_err();
    fixture::refuse("map", &format!("/nodes/{}", n.id()), libc::ENOMEM, u32::MAX);
    let e = refused();
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!(e.kind(), ErrorKind::OutOfMemory, "{e}");
    assert_eq!(refused().kind(), ErrorKind::ConsumerExists);
}

#[test]
fn a_consumer_that_cannot_be_looked_at_counts_as_there() {
    let dir = TempDir::new("queue-unseen");
    let (n, other) = (node(&dir), node(&dir));
    let consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    let mut producer = other.queue::<u64>("q").unwrap().producer().unwrap();
    fixture::refuse("map", &format!("/nodes/{}", n.id()), libc::ENOMEM, u32::MAX);
    let (has, sent) = (producer.has_consumer(), producer.try_send(&1).map_err(|e| e.kind()));
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!((has, sent), (true, Err(ErrorKind::OutOfMemory)), "nothing proves that it is gone");
    assert!(producer.has_consumer());
    drop(consumer);
    assert!(!producer.has_consumer());
}

#[test]
fn an_ordered_consumer_waits_for_a_lane_that_it_has_put_off() {
    let dir = TempDir::new("queue-ordered-put-off");
    let n = node(&dir);
    let open = || n.queue::<[u8]>("q").unwrap().stamped().producer().unwrap();
    let (mut a, mut b) = (open(), open());
    let builder = n.queue::<[u8]>("q").unwrap().ordered(Duration::from_secs(3600));
    let mut consumer = builder.consumer().unwrap();
    b.send(&[1]).unwrap();
    // Too large for the first segment.
    b.send(&[2; 20_000]).unwrap();
    a.send(&[3]).unwrap();
    assert_eq!(consumer.receive().unwrap().unwrap()[0], 1);
    fixture::refuse("open", "/lane.", libc::EMFILE, u32::MAX);
    let early = [0, 1].map(|_| consumer.receive().map(|one| one.map(|value| value[0])));
    assert!(fixture::refuse_none() < u32::MAX);
    assert!(early.iter().all(|one| !matches!(one, Ok(Some(_)))), "{early:?}");
    assert_eq!(wait(&mut consumer)[0], 2);
    a.send(&[4]).unwrap();
    b.send(&[5]).unwrap();
    assert_eq!(wait(&mut consumer)[0], 3);
    assert_eq!(consumer.late(), 0);
}

/// Produces nothing until somebody kills this process.
fn produce_until_killed(root: &std::path::Path) {
    let n = Node::builder().root(root).name("victim").open().unwrap();
    let _producer = n.queue::<u64>("q").unwrap().producer().unwrap();
    loop {
        std::thread::park();
    }
}

/// Nobody sleeps in a call that would ask at the end of a long sleep.
#[test]
fn a_producer_whose_death_was_not_marked_is_found_dead_behind_a_descriptor() {
    if let Some(root) = std::env::var_os(IN_CHILD) {
        return produce_until_killed(root.as_ref());
    }
    let dir = TempDir::new("queue-unmarked-fd");
    let n = node(&dir);
    let mut consumer = n.queue::<u64>("q").unwrap().consumer().unwrap();
    consumer.fd().unwrap();
    let name = "queue::tests::failures::refused::\
                a_producer_whose_death_was_not_marked_is_found_dead_behind_a_descriptor";
    let mut victim = Command::new(std::env::current_exe().unwrap());
    victim.args(["--exact", name]).env(IN_CHILD, dir.join("root")).stdout(Stdio::null());
    let victim = Victim(victim.spawn().unwrap());
    let mut id = None;
    fixture::until(|| {
        assert!(consumer.receive().unwrap().is_none());
        id = consumer.producers().first().copied();
        id.is_some()
    });
    let path = dir.join("root/default/nodes").join(id.unwrap().node.to_string());
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut word = [0; 4];
    file.read_exact_at(&mut word, layout::TOKEN_WORD as u64).unwrap();
    drop(victim);
    file.write_all_at(&word, layout::TOKEN_WORD as u64).unwrap();
    while consumer.next_event().is_some() {}
    let until = Deadline::in_ns(20_000_000_000);
    let told = loop {
        assert!(!until.has_passed(), "nobody says that it died");
        let fd = consumer.fd().unwrap().as_raw_fd();
        poll(&mut [PollFd::new(fd, READABLE)], until);
        assert!(consumer.receive().unwrap().is_none());
        if let Some(event) = consumer.next_event() {
            break event;
        }
    };
    assert_eq!(told, Event::ProducerDied(id.unwrap()));
}

#[test]
fn a_batch_that_there_is_no_memory_for_stays_in_the_queue() {
    const TEST: &str = "a_batch_that_there_is_no_memory_for_stays_in_the_queue";
    type Large = [u64; 1 << 15];
    if !in_a_child(module_path!(), TEST) {
        return;
    }
    let dir = TempDir::new("queue-batch-memory");
    let n = node(&dir);
    let queue = || n.queue::<Large>("q").unwrap().first_bytes(16 << 20);
    let mut consumer = queue().consumer().unwrap();
    let mut producer = queue().producer().unwrap();
    for i in 0..8 {
        producer.send(&[i; 1 << 15]).unwrap();
    }
    assert!(consumer.wait_for_message(Deadline::AT_ONCE).unwrap());
    // More than the allocator has left of 64 MiB for this thread, whatever the limit.
    let mut got = vec![[0; 1 << 15]; 300];
    fixture::limit_memory(1 << 20);
    let refused = consumer.receive_batch(&mut got, 8);
    fixture::limit_memory(libc::RLIM_INFINITY);
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
    assert!(refused.to_string().contains("/q"), "{refused}");
    assert_eq!(consumer.receive_batch(&mut got, 8).unwrap(), 8);
    assert!((0..).zip(&got[300..]).all(|(i, message)| *message == [i; 1 << 15]));
}
