//! Out of descriptors or of address space amid others: who cannot be looked at now is neither gone
//! nor in the way of the rest. (Call by call: `scarcity.rs`.)

mod limits;

use std::time::Duration;

use limits::{AddressSpace, Descriptors, LONG, Scarce, alone, node};
use outlive::rt::LatestWriter;
use outlive::{Client, Domain, ErrorKind, Node, Server};
use testkit::TempDomain;

/// What became of a producer that nobody can look at.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unseen {
    Lives,
    Left,
    /// Its node as well.
    Gone,
}

/// A member that cannot look into a lane leaves the queue, or somebody cleans: what could not be
/// seen is still there.
fn leave_blind<L: Scarce>(amount: u64, unseen: Unseen) {
    let what = format!("{amount} {} left, a producer that {unseen:?}", L::NAME);
    let temp = TempDomain::new("blind").unwrap().expect_empty();
    let root = temp.path().join("root");
    let (ours, theirs) = (node(&root), node(&root));
    let domain = Domain::of_node(&ours);
    let queue = |node: &Node| node.queue::<u64>("/q").unwrap();
    let consumer = queue(&ours).consumer().unwrap();
    let other = queue(&ours).producer().unwrap();
    let mut producer = queue(&theirs).first_bytes(8 << 20).producer().unwrap();
    for i in 0..20 {
        producer.send(&i).unwrap();
    }
    drop(consumer);
    let mut producer = Some(producer).filter(|_| unseen == Unseen::Lives);
    let theirs = Some(theirs).filter(|_| unseen != Unseen::Gone);
    let scarce = L::leave(amount);
    drop(other);
    // It removes what is unread too, but only once nobody is there.
    let cleaned = if unseen == Unseen::Lives { domain.clean().err() } else { None };
    drop(scarce);
    assert!(cleaned.is_none_or(|e| L::is_told(&e)), "{what}");
    let mut consumer = queue(&ours).consumer().unwrap();
    if let Some(producer) = &mut producer {
        producer.send(&20).unwrap_or_else(|e| panic!("{what}: the queue is split: {e}"));
    }
    let mut got = Vec::new();
    while let Some(message) = consumer.receive().unwrap() {
        got.push(*message);
    }
    let sent = 20 + u64::from(producer.is_some());
    assert_eq!(got, (0..sent).collect::<Vec<_>>(), "{what}");
    drop((consumer, producer, ours, theirs));
    domain.clean().unwrap();
}

#[test]
fn a_member_that_cannot_open_a_lane_takes_nothing_away() {
    alone("a_member_that_cannot_open_a_lane_takes_nothing_away", || {
        AddressSpace::prepare();
        for unseen in [Unseen::Lives, Unseen::Left, Unseen::Gone] {
            for amount in 0..5 {
                leave_blind::<Descriptors>(amount, unseen);
                leave_blind::<AddressSpace>(amount << 18, unseen);
            }
        }
    });
}

#[test]
fn a_subscriber_that_cannot_be_opened_is_waited_for_or_tried_again() {
    alone("a_subscriber_that_cannot_be_opened_is_waited_for_or_tried_again", || {
        AddressSpace::prepare();
        let temp = TempDomain::new("unopened").unwrap().expect_empty();
        let root = temp.path().join("root");
        let topic = |n: &Node| n.topic::<u64>("/t").unwrap().depth(4);
        let (ours, theirs) = (node(&root), node(&root));
        let publisher = topic(&ours).publisher().unwrap();
        let mut careless = topic(&theirs).subscriber().unwrap();
        let scarce = AddressSpace::leave(4 << 20);
        for i in 0..100 {
            publisher.publish(&i).unwrap();
        }
        drop(scarce);
        for i in 100..200 {
            publisher.publish(&i).unwrap();
        }
        let got = careless.drain().count() as u64;
        assert_eq!(got + careless.lost(), 200);
        assert_eq!(publisher.subscribers().unwrap(), 1);

        // Nothing was dropped: its memory would come back amid the next part.
        let topic = |n: &Node| n.topic::<u64>("/r").unwrap().depth(4);
        let others = node(&root);
        let waiting = topic(&ours).reliable_timeout(Duration::ZERO).publisher().unwrap();
        let mut reliable = topic(&others).reliable(true).subscriber().unwrap();
        let scarce = AddressSpace::leave(4 << 20);
        let e = waiting.publish(&0).expect_err("it cannot know how far that one has read");
        drop(scarce);
        assert!(AddressSpace::is_told(&e), "{e}");
        let sent = (0..).take_while(|i| waiting.publish(i).is_ok()).count();
        assert_eq!(sent, 4);
        assert_eq!(reliable.drain().map(|s| *s.unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
        drop((careless, publisher, reliable, waiting, ours, theirs, others));
        Domain::of(&Node::builder().root(&root)).unwrap().clean().unwrap();
    });
}

#[test]
fn a_member_that_cannot_be_looked_at_is_not_taken_for_one_that_ends() {
    alone("a_member_that_cannot_be_looked_at_is_not_taken_for_one_that_ends", || {
        AddressSpace::prepare();
        let temp = TempDomain::new("unseen-end").unwrap().expect_empty();
        let root = temp.path().join("root");
        let (ours, theirs) = (node(&root), node(&root));
        let first = LatestWriter::<u64>::open(&theirs, "/c").unwrap();
        let scarce = AddressSpace::leave(1 << 20);
        let e = LatestWriter::<u64>::open(&ours, "/c").expect_err("somebody has it");
        drop(scarce);
        // Whoever takes it for one that ends waits for that, and then says that it lives.
        assert!(AddressSpace::is_told(&e), "{e}");
        let e = LatestWriter::<u64>::open(&ours, "/c").expect_err("somebody has it");
        assert_eq!(e.kind(), ErrorKind::AlreadyExists);
        drop(first);
        drop(LatestWriter::<u64>::open(&ours, "/c").unwrap());
        drop((ours, theirs));
        Domain::of(&Node::builder().root(&root)).unwrap().clean().unwrap();
    });
}

#[test]
fn a_message_that_cannot_be_mapped_does_not_hide_the_next() {
    alone("a_message_that_cannot_be_mapped_does_not_hide_the_next", || {
        AddressSpace::prepare();
        let temp = TempDomain::new("unmapped").unwrap().expect_empty();
        let root = temp.path().join("root");
        let (ours, theirs) = (node(&root), node(&root));
        let topic = |n: &Node| n.topic::<[u8]>("/t").unwrap().depth(8);
        for reliable in [false, true] {
            let mut subscriber = topic(&theirs).reliable(reliable).subscriber().unwrap();
            let publisher = topic(&ours).publisher().unwrap();
            publisher.publish(&[1; 5000]).unwrap();
            publisher.publish(&vec![2; 1 << 20]).unwrap();
            publisher.publish(&[3; 5000]).unwrap();
            assert_eq!(subscriber.receive().unwrap().unwrap()[0], 1);
            let scarce = AddressSpace::leave(4 << 20);
            for _ in 0..2 {
                let e = subscriber.receive().expect_err("too large to be mapped");
                assert!(AddressSpace::is_told(&e), "{e}");
            }
            if !reliable {
                let next = subscriber.receive().unwrap().expect("the one behind it");
                assert_eq!((next[0], next.lost_before(), subscriber.lost()), (3, 1, 1));
                continue;
            }
            drop(scarce);
            let rest: Vec<u8> = subscriber.drain().map(|s| s.unwrap()[0]).collect();
            assert_eq!((rest, subscriber.lost()), (vec![2, 3], 0));
        }
        drop((ours, theirs));
        Domain::of(&Node::builder().root(&root)).unwrap().clean().unwrap();
    });
}

/// A server that cannot attach or answer one client now answers the others, and that one later.
fn serve_the_others<L: Scarce>(amount: u64, known: bool) {
    let what = format!("{amount} {} left, lane known: {known}", L::NAME);
    let temp = TempDomain::new("others").unwrap().expect_empty();
    let root = temp.path().join("root");
    let node = node(&root);
    let service = || node.service::<u64, u64>("/s").unwrap();
    let mut server = service().server().unwrap();
    let (mut old, mut new) = (service().client().unwrap(), None);
    let answer = |server: &mut Server<u64, u64>, client: &mut Client<u64, u64>| {
        let end = outlive::now_ns() + LONG.as_nanos() as u64;
        while outlive::now_ns() < end {
            // Until it has looked at all clients.
            while let Some(request) = server.receive().unwrap_or_else(|e| panic!("{what}: {e}")) {
                let answer = *request * 2;
                server.respond(request, &answer).unwrap();
            }
            if let Some(reply) = client.receive().unwrap() {
                return *reply.body().unwrap();
            }
        }
        panic!("{what}: no answer");
    };
    old.send(&1).unwrap();
    assert_eq!(answer(&mut server, &mut old), 2);
    if known {
        new = Some(service().client().unwrap());
        assert!(server.receive().unwrap().is_none());
    }
    let mut new = new.unwrap_or_else(|| service().client().unwrap());
    new.send(&2).unwrap();
    old.send(&3).unwrap();
    let scarce = L::leave(amount);
    let served = answer(&mut server, &mut old);
    drop(scarce);
    assert_eq!(served, 6, "{what}");
    assert_eq!(answer(&mut server, &mut new), 4, "{what}");
    drop((old, new, server, node));
    Domain::of(&Node::builder().root(&root)).unwrap().clean().unwrap();
}

#[test]
fn a_client_that_cannot_be_served_now_keeps_none_from_the_others() {
    alone("a_client_that_cannot_be_served_now_keeps_none_from_the_others", || {
        AddressSpace::prepare();
        for known in [true, false] {
            for amount in 0..5 {
                serve_the_others::<Descriptors>(amount, known);
                serve_the_others::<AddressSpace>(amount << 13, known);
            }
        }
    });
}

/// A lane could not be opened, and is, once there is room, before anybody was told.
fn open_after_all<L: Scarce>(amount: u64) {
    let what = format!("{amount} {} left", L::NAME);
    let temp = TempDomain::new("after-all").unwrap().expect_empty();
    let root = temp.path().join("root");
    let (ours, theirs) = (node(&root), node(&root));
    let queue = |node: &Node| node.queue::<u64>("/q").unwrap();
    let mut consumer = queue(&ours).consumer().unwrap();
    let mut known = [0, 1].map(|_| queue(&ours).producer().unwrap());
    assert!(consumer.receive().unwrap().is_none());
    for i in 0..4 {
        known[i % 2].send(&(i as u64)).unwrap();
    }
    let mut other = queue(&theirs).first_bytes(8 << 20).producer().unwrap();
    other.send(&4).unwrap();
    let scarce = L::leave(amount);
    // What is there comes first: the rest of a lane, then it looks, then the next lane.
    let mut got = Vec::new();
    for _ in 0..3 {
        got.push(*consumer.receive().unwrap_or_else(|e| panic!("{what}: {e}")).unwrap());
    }
    drop(scarce);
    // Until it looks again.
    std::thread::sleep(Duration::from_millis(20));
    while let Some(message) = consumer.receive().unwrap_or_else(|e| panic!("{what}: {e}")) {
        got.push(*message);
    }
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2, 3, 4], "{what}");
    let domain = Domain::of_node(&ours);
    drop((consumer, known, other, ours, theirs));
    domain.clean().unwrap();
}

#[test]
fn a_lack_that_is_over_is_not_told_to_a_consumer() {
    alone("a_lack_that_is_over_is_not_told_to_a_consumer", || {
        AddressSpace::prepare();
        for amount in 0..5 {
            open_after_all::<Descriptors>(amount);
            open_after_all::<AddressSpace>(amount << 13);
        }
    });
}
