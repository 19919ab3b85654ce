//! Subscribers that join while a publisher waits for another.

use std::os::unix::fs::FileExt;
use std::sync::mpsc;
use std::time::Duration;

use crate::domain::name::TopicName;
use crate::node::Node;
use crate::os::fixture::{TempDir, until};
use crate::topic::membership::entry::ring_path;
use crate::topic::membership::{Ports, Topic, link_subscriber};
use crate::topic::ring::layout::ring;
use crate::topic::subscriber::sources::history;
use crate::topic::subscriber::sources::source::{Source, too_many_borrows};
use crate::topic::*;

const LONG: Duration = Duration::from_secs(60);

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

/// A publisher's ring, as a file.
struct Ring(std::fs::File);

impl Ring {
    fn of(dir: &TempDir, id: PublisherId) -> Self {
        let path = ring_path(&dir.join("root/default/topics/n"), id);
        Self(std::fs::File::open(path).unwrap())
    }

    fn word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, offset as u64).unwrap();
        u64::from_le_bytes(bytes)
    }

    fn acknowledged(&self) -> usize {
        let port = |i| self.word(ring::ACKS + i * ring::ACK_BYTES + ring::ACK_PORT);
        (0..ring::ACKS_MAX).filter(|i| port(*i) != 0).count()
    }
}

#[test]
fn who_joins_while_another_is_waited_for_loses_nothing() {
    let dir = TempDir::new("join-reliable");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/n").unwrap().depth(4).reliable_timeout(LONG);
    let mut first = topic().reliable(true).subscriber().unwrap();
    let publisher = topic().publisher().unwrap();
    let ring = Ring::of(&dir, publisher.id());
    for i in 0..4 {
        publisher.publish(&i).unwrap();
    }
    std::thread::scope(|scope| {
        let sends = scope.spawn(move || publisher.publish(&4).map(|seq| (seq, publisher)));
        until(|| ring.word(ring::WANTS_ROOM) != 0);
        let mut second = topic().reliable(true).history(4).subscriber().unwrap();
        assert_eq!(first.drain().count(), 4);
        until(|| ring.word(ring::HEAD) == 5 || ring.acknowledged() == 2);
        for i in 0..5 {
            let sample = second.receive_timeout(LONG).unwrap().expect("nobody leaves");
            assert_eq!((*sample, sample.lost_before()), (i, 0));
        }
        let (seq, publisher) = sends.join().unwrap().unwrap();
        assert_eq!((seq, publisher.waited().messages), (4, 1), "one message had to wait");
    });
}

#[test]
fn a_volatile_publisher_takes_back_nothing_that_one_who_joined_meanwhile_may_read() {
    let dir = TempDir::new("join-volatile");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/n").unwrap().depth(2).reliable_timeout(LONG);
    let mut first = topic().reliable(true).subscriber().unwrap();
    let publisher = topic().volatile(true).publisher().unwrap();
    let ring = Ring::of(&dir, publisher.id());
    let send = |publisher: &Publisher<u64>, i| {
        let mut loan = publisher.loan().unwrap();
        *loan = i;
        loan.publish().unwrap()
    };
    send(&publisher, 0);
    send(&publisher, 1);
    std::thread::scope(|scope| {
        let (go, goes) = mpsc::channel::<()>();
        let (lent, is_lent) = mpsc::channel();
        let sends = scope.spawn(move || {
            send(&publisher, 2);
            goes.recv().unwrap();
            let loan = publisher.loan().unwrap();
            lent.send(()).unwrap();
            goes.recv().unwrap();
            loan.publish().unwrap();
            publisher
        });
        until(|| ring.word(ring::WANTS_ROOM) != 0);
        let mut second = topic().subscriber().unwrap();
        assert_eq!(*first.receive().unwrap().unwrap(), 0);
        until(|| ring.word(ring::HEAD) == 3);
        assert_eq!(first.drain().count(), 2);
        go.send(()).unwrap();
        is_lent.recv().unwrap();
        assert_eq!(*second.receive().unwrap().expect("it was published"), 2);
        go.send(()).unwrap();
        drop(sends.join().unwrap());
        assert_eq!(second.lost(), 0);
    });
}

/// It has said where it begins, and its bell rang between the publisher's last look at that and
/// the commit.
#[test]
fn a_volatile_publisher_takes_back_nothing_after_the_bell_rang() {
    let dir = TempDir::new("join-bell");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/n").unwrap();
    let mut first = topic().subscriber().unwrap();
    let publisher = topic().volatile(true).publisher().unwrap();
    let send = || publisher.loan().unwrap().publish().unwrap();
    send();
    assert!(first.receive().unwrap().is_some());
    let (joined, joining) = Topic::join(&n, TopicName::new("/n").unwrap(), None).unwrap();
    let port = n.allocate_port(8, false).unwrap();
    let mut source = Source::open(&joined, publisher.id(), too_many_borrows("/t", 1)).unwrap();
    history::begin(std::slice::from_mut(&mut source), 0);
    let own = n.own_port(port).unwrap();
    source.show(0, own.view());
    send();
    link_subscriber(&joined, port).unwrap();
    joined.ring_bell(Ports::Subscribers);
    assert!(first.receive().unwrap().is_some());
    let loan = publisher.loan().unwrap();
    assert!(source.next_time().is_some(), "what it has to read was taken back");
    drop((loan, joining));
}
