//! System calls that fail: an answer that cannot be had is not "gone", "empty" or "read".

use std::time::Duration;

use crate::Result;
use crate::node::Node;
use crate::os::fixture::{self, TempDir};
use crate::os::sleep::poll::Epoll;
use crate::topic::membership::reclaim::reclaim;
use crate::topic::*;

const ERRNOS: [i32; 5] = [libc::EACCES, libc::EPERM, libc::ENOMEM, libc::EMFILE, libc::EIO];

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn builder(node: &Node) -> Builder<u64> {
    node.topic::<u64>("/n").unwrap()
}

fn drain(sub: &mut Subscriber<u64>) -> Result<Vec<u64>> {
    sub.drain().map(|sample| sample.map(|s| *s)).collect()
}

fn file_of(id: PublisherId) -> String {
    format!("/pub.{}.{}", id.node, id.port)
}

/// Rings of the topic that are there.
fn rings(dir: &TempDir) -> usize {
    let topics = std::fs::read_dir(dir.join("root/default/topics")).unwrap();
    let names = topics.flat_map(|t| std::fs::read_dir(t.unwrap().path()).unwrap());
    names.filter(|n| n.as_ref().unwrap().file_name().to_str().unwrap().starts_with("pub.")).count()
}

#[test]
fn a_ring_stays_while_its_reader_cannot_be_asked() {
    let dir = TempDir::new("refused-asked");
    let (ours, theirs) = (node(&dir), node(&dir));
    let mut sub = builder(&theirs).subscriber().unwrap();
    // What it keeps for those who come later it would be kept for as well.
    let publisher = builder(&ours).volatile(true).publisher().unwrap();
    publisher.publish(&1).unwrap();
    let topic_dir = dir.join("root/default/topics/n");
    drop(publisher);
    fixture::refuse("stat", &format!("/nodes/{}", theirs.id()), libc::EIO, u32::MAX);
    let _ = reclaim(ours.domain(), &topic_dir);
    assert!(fixture::refuse_none() < u32::MAX, "it was not asked");
    assert_eq!(rings(&dir), 1, "an unread ring is gone");
    assert_eq!(drain(&mut sub).unwrap(), [1]);
}

#[test]
fn rings_stay_while_the_depth_of_another_is_not_known() {
    let dir = TempDir::new("refused-depth");
    let n = node(&dir);
    let shallow = || builder(&n).depth(2).publisher().unwrap();
    let (old, new) = (shallow(), shallow());
    let deep = builder(&n).depth(64).publisher().unwrap();
    for publisher in [&old, &new] {
        publisher.publish(&1).unwrap();
        publisher.publish(&2).unwrap();
    }
    drop((old, new));
    assert_eq!(rings(&dir), 3);
    let sub = builder(&n).subscriber().unwrap();
    let topic_dir = dir.join("root/default/topics/n");
    drop(sub);
    for call in ["map", "open"] {
        fixture::refuse(call, &file_of(deep.id()), libc::ENOMEM, u32::MAX);
        let e = reclaim(n.domain(), &topic_dir).map(drop);
        assert!(fixture::refuse_none() < u32::MAX, "it was not looked at");
        assert_eq!(rings(&dir), 3, "a ring is gone although the deepest was not seen: {e:?}");
    }
    let mut late = builder(&n).history(4).subscriber().unwrap();
    assert_eq!(drain(&mut late).unwrap(), [1, 2, 1, 2]);
}

#[test]
fn a_chunk_is_not_written_while_its_holder_cannot_be_asked() {
    let dir = TempDir::new("refused-holds");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap().depth(1);
    let publisher = topic(&ours).publisher().unwrap();
    let mut sub = topic(&theirs).subscriber().unwrap();
    let send = |i: u8| publisher.publish(&vec![i; 5000]).unwrap();
    send(1);
    // It is found, so that this one is borrowed.
    drop(sub.receive().unwrap());
    send(2);
    let held = sub.receive().unwrap().unwrap();
    assert!(held.is_borrowed());
    fixture::refuse("port", &format!("/nodes/{}", theirs.id()), libc::EIO, u32::MAX);
    for i in 3..30 {
        send(i);
        if i == 16 {
            // A look at who is there.
            drop(topic(&ours).subscriber().unwrap());
        }
    }
    let asked = u32::MAX - fixture::refuse_none();
    assert!(asked > 0, "it was not asked");
    assert!(held.iter().all(|b| *b == 2), "written over while it is held");
    drop(held);
    let known = publisher.subscribers().unwrap();
    assert_eq!(known, 1, "who cannot be asked has not left");
}

#[test]
fn a_late_joiner_whose_look_at_a_ring_fails_once_reads_it_all_the_same() {
    let dir = TempDir::new("refused-late");
    let ours = node(&dir);
    let publisher = builder(&ours).publisher().unwrap();
    publisher.publish(&1).unwrap();
    publisher.publish(&2).unwrap();
    let peer = format!("/nodes/{}", ours.id());
    let ring = file_of(publisher.id());
    for (call, of) in [("open", &ring), ("map", &ring), ("open", &peer), ("map", &peer)] {
        for errno in ERRNOS {
            let what = format!("{call} {of}, error {errno}");
            let theirs = node(&dir);
            let topic = || builder(&theirs).history(2).subscriber();
            fixture::refuse(call, of, errno, 1);
            let opened = topic();
            assert_eq!(fixture::refuse_none(), 0, "{what}: not looked at");
            println!("{what}: {:?}", opened.as_ref().map(drop));
            let mut sub = opened.or_else(|_| topic()).unwrap();
            assert_eq!(drain(&mut sub).unwrap(), [1, 2], "{what}");
        }
    }
}

#[test]
fn a_ring_that_is_refused_for_a_while_is_read_later() {
    for (errno, sleeps) in ERRNOS.into_iter().flat_map(|e| [(e, false), (e, true)]) {
        let what = format!("error {errno}, sleeps: {sleeps}");
        let dir = TempDir::new("refused-later");
        let (ours, theirs) = (node(&dir), node(&dir));
        let mut sub = builder(&theirs).subscriber().unwrap();
        let publisher = builder(&ours).publisher().unwrap();
        publisher.publish(&1).unwrap();
        fixture::refuse("open", &file_of(publisher.id()), errno, 5);
        let mut got = Vec::new();
        fixture::until(|| {
            let received =
                if sleeps { sub.receive_timeout(Duration::from_millis(1)) } else { sub.receive() };
            got.extend(received.unwrap_or(None).map(|sample| *sample));
            !got.is_empty()
        });
        assert_eq!((fixture::refuse_none(), got), (0, vec![1]), "{what}");
        publisher.publish(&2).unwrap();
        assert_eq!(drain(&mut sub).unwrap(), [2], "{what}");
    }
}

#[test]
fn a_segment_that_cannot_be_mapped_once_is_mapped_the_next_time() {
    let dir = TempDir::new("refused-segment");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap().history(2);
    let publisher = topic(&ours).publisher().unwrap();
    publisher.publish(&[1; 5000]).unwrap();
    publisher.publish(&[2; 5000]).unwrap();
    for (call, errno) in ERRNOS.into_iter().flat_map(|e| [("open", e), ("map", e)]) {
        let mut sub = topic(&theirs).subscriber().unwrap();
        fixture::refuse(call, "/data.", errno, 1);
        let failed = sub.receive().map(drop);
        assert_eq!((fixture::refuse_none(), failed.is_err()), (0, true), "{call}, error {errno}");
        let got: Vec<u8> = sub.drain().map(|sample| sample.unwrap()[0]).collect();
        assert_eq!((got, sub.lost()), (vec![1, 2], 0), "{call}, error {errno}");
    }
}

#[test]
fn a_newcomer_that_cannot_be_looked_at_hides_no_message() {
    let ways = [Subscriber::receive, Subscriber::latest, Subscriber::receive_in_order];
    for (way, receive) in ways.into_iter().enumerate() {
        let dir = TempDir::new("refused-newcomer");
        let (ours, theirs) = (node(&dir), node(&dir));
        let mut sub = builder(&theirs).subscriber().unwrap();
        let old = builder(&ours).publisher().unwrap();
        assert!(sub.receive().unwrap().is_none());
        let newcomer = builder(&ours).publisher().unwrap();
        newcomer.publish(&7).unwrap();
        fixture::refuse("open", &file_of(newcomer.id()), libc::EMFILE, u32::MAX);
        for i in 0..3 {
            old.publish(&i).unwrap();
            let got = receive(&mut sub).map(|sample| sample.map(|s| *s));
            assert!(matches!(got, Ok(Some(n)) if n == i), "way {way}: {got:?} for {i}");
        }
        // What is wrong is told once there is nothing to give.
        let told = receive(&mut sub).map(drop).unwrap_err();
        assert_eq!(told.kind(), crate::ErrorKind::Io, "way {way}");
        assert!(fixture::refuse_none() < u32::MAX);
        fixture::until(|| {
            // A try meanwhile may have failed that nobody was told of.
            receive(&mut sub).unwrap_or(None).is_some_and(|sample| *sample == 7)
        });
    }
}

#[test]
fn what_the_dead_left_unmapped_does_not_hide_the_living() {
    let dir = TempDir::new("refused-dead");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap().depth(4);
    let mut sub = topic(&theirs).reliable(true).subscriber().unwrap();
    let dead = topic(&ours).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none(), "it has looked, and mapped no segment");
    let unmapped = format!("/data.{}.{}.", dead.id().node, dead.id().port);
    dead.publish(&[1; 5000]).unwrap();
    dead.publish(&[2; 5000]).unwrap();
    drop(dead);
    let alive = topic(&ours).reliable_timeout(Duration::ZERO).publisher().unwrap();
    fixture::refuse("open", &unmapped, libc::EMFILE, u32::MAX);
    for i in 10..30 {
        alive.publish(&[i; 5000]).unwrap();
        let tries = std::iter::repeat_with(|| sub.receive()).take(3);
        let got: Vec<u8> = tries.flatten().flatten().map(|sample| sample[0]).collect();
        assert_eq!(got, [i]);
    }
    assert!(fixture::refuse_none() < u32::MAX);
    alive.publish(&[30; 5000]).unwrap();
    // The turn may be that of the one that lives; then comes what the dead left.
    let mut rest: Vec<u8> = sub.drain().map(|sample| sample.unwrap()[0]).collect();
    rest.sort_unstable();
    assert_eq!((rest, sub.lost()), (vec![1, 2, 30], 0));
}

#[test]
fn all_that_live_have_their_turn_beside_what_the_dead_left_unmapped() {
    let dir = TempDir::new("refused-turns");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap().depth(64);
    let mut sub = topic(&theirs).reliable(true).subscriber().unwrap();
    let dead = topic(&ours).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none(), "it has looked, and mapped no segment");
    let unmapped = format!("/data.{}.{}.", dead.id().node, dead.id().port);
    dead.publish(&[1; 5000]).unwrap();
    drop(dead);
    let alive = [2, 3, 4].map(|i| (i, topic(&ours).publisher().unwrap()));
    fixture::refuse("open", &unmapped, libc::EMFILE, u32::MAX);
    for idle in [0, 2, 3, 4] {
        let busy = || alive.iter().filter(|(i, _)| *i != idle);
        for _ in 0..16 {
            for (i, publisher) in busy() {
                publisher.publish(&[*i; 5000]).unwrap();
            }
        }
        let tries = std::iter::repeat_with(|| sub.receive()).take(24);
        let got: Vec<u8> = tries.flatten().flatten().map(|sample| sample[0]).collect();
        for (i, _) in busy() {
            assert!(got.contains(i), "{i} had no turn, with {idle} idle: {got:?}");
        }
        // Batches, too; until nothing is left but what is refused.
        let (mut all, mut refused) = (Vec::new(), 0);
        while refused < 3 {
            match sub.receive() {
                Ok(Some(sample)) => (refused, _) = (0, all.push(sample[0])),
                _ => refused += 1,
            }
        }
        assert_eq!(got.len() + all.len(), 16 * busy().count());
    }
    assert!(fixture::refuse_none() < u32::MAX);
    assert_eq!(sub.drain().map(|sample| sample.unwrap()[0]).collect::<Vec<_>>(), [1]);
}

#[test]
fn who_gave_its_publisher_up_is_not_waited_for() {
    for noticed in [true, false] {
        let dir = TempDir::new("refused-given-up");
        let (ours, theirs) = (node(&dir), node(&dir));
        let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap().depth(2);
        let mut sub = topic(&theirs).reliable(true).subscriber().unwrap();
        let publisher = topic(&ours).reliable_timeout(Duration::ZERO).publisher().unwrap();
        let send = |i: u8| publisher.publish(&vec![i; 5000]);
        if noticed {
            assert!(sub.receive().unwrap().is_none());
        }
        send(1).unwrap();
        let (topics, id) = (dir.join("root/default/topics/n"), publisher.id());
        std::fs::remove_file(topics.join(format!("data.{}.{}.0", id.node, id.port))).unwrap();
        assert!(sub.receive().unwrap().is_none());
        let given_up =
            |e| matches!(e, Event::PublisherCorrupt { publisher, .. } if publisher == id);
        assert!(std::iter::from_fn(|| sub.next_event()).any(given_up));
        for i in 2..20 {
            send(i).unwrap_or_else(|e| panic!("noticed: {noticed}, message {i}: {e}"));
        }
        // Its place in the subscriber's table goes with it.
        drop(publisher);
        drop(topic(&theirs).publisher().unwrap());
        assert!(sub.receive().unwrap().is_none());
        let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
        let reads = &domain.subscribers("/n").unwrap().unwrap()[0].sources;
        assert!(reads.iter().all(|source| source.publisher != id), "{reads:?}");
    }
}

#[test]
fn who_waits_for_edges_of_a_descriptor_gets_one_after_an_error() {
    let dir = TempDir::new("refused-edges");
    let (ours, theirs) = (node(&dir), node(&dir));
    let topic = |n: &Node| n.topic::<[u8]>("/n").unwrap();
    let publisher = topic(&ours).publisher().unwrap();
    let mut sub = topic(&theirs).subscriber().unwrap();
    let edges = Epoll::new().unwrap();
    edges.add(sub.fd().unwrap(), 1).unwrap();
    let has_edge = || {
        let mut any = false;
        edges.take(|_| any = true);
        any
    };
    assert!(sub.receive().unwrap().is_none());
    has_edge();
    publisher.publish(&[1; 5000]).unwrap();
    assert!(has_edge());
    fixture::refuse("open", "/data.", libc::EMFILE, 1);
    assert_eq!(sub.receive().unwrap_err().kind(), crate::ErrorKind::Io);
    assert!(has_edge(), "nothing brings it back");
    assert_eq!(sub.receive().unwrap().unwrap()[0], 1);
}

#[test]
fn who_cannot_open_a_newcomer_for_lack_of_descriptors_waits_for_the_others() {
    let dir = TempDir::new("refused-waits");
    let (ours, theirs) = (node(&dir), node(&dir));
    let mut sub = builder(&theirs).subscriber().unwrap();
    let old = builder(&ours).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none());
    let newcomer = builder(&ours).publisher().unwrap();
    newcomer.publish(&7).unwrap();
    fixture::refuse("open", &file_of(newcomer.id()), libc::EMFILE, u32::MAX);
    assert_eq!(sub.receive().map(drop).unwrap_err().kind(), crate::ErrorKind::Io);
    // Each try that fails is told once; the next is after a pause.
    let short = Duration::from_millis(1);
    assert!((0..100).any(|_| sub.receive_timeout(short).is_ok()), "it never sleeps");
    let sleeps = |sub: &mut Subscriber<u64>| {
        let ready = crate::WaitSet::new().wait(&mut [&mut *sub], short).unwrap().len();
        ready == 0 || sub.receive().is_ok()
    };
    assert!((0..100).any(|_| sleeps(&mut sub)), "it is always ready");
    old.publish(&1).unwrap();
    let got = sub.receive_timeout(Duration::from_secs(60)).unwrap().map(|sample| *sample);
    assert_eq!(got, Some(1));
    assert!(fixture::refuse_none() < u32::MAX);
    fixture::until(|| sub.receive().unwrap_or(None).is_some_and(|sample| *sample == 7));
}
