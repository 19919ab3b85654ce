//! Reliable, latest-only and merged reading.

use std::time::Duration;

use crate::ErrorKind;
use crate::domain::name::TopicName;
use crate::node::Node;
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::topic::membership::{Ports, Topic, link_subscriber};
use crate::topic::*;

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn topic(node: &Node) -> Builder<u64> {
    node.topic::<u64>("/n").unwrap().depth(4)
}

#[test]
fn a_reliable_subscriber_loses_nothing_however_slow_it_is() {
    for waitv in [true, false] {
        crate::os::sleep::futex::set_waitv_for_tests(waitv);
        let dir = TempDir::new("modes-reliable");
        let n = node(&dir);
        let mut reliable = topic(&n).reliable(true).subscriber().unwrap();
        let mut careless = topic(&n).subscriber().unwrap();
        let publisher = topic(&n).reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..2000 {
                    publisher.publish(&i).unwrap();
                }
            });
            for i in 0..2000 {
                let sample = loop {
                    if let Some(s) = reliable.receive_timeout(Duration::from_secs(60)).unwrap() {
                        break s;
                    }
                };
                assert_eq!((*sample, sample.lost_before()), (i, 0));
                if i % 400 == 0 {
                    std::thread::sleep(Duration::from_millis(3));
                }
            }
        });
        assert_eq!(reliable.lost(), 0);
        let seen = careless.drain().count() as u64;
        assert_eq!(seen + careless.lost(), 2000, "the careless one counts what it lost");
        crate::os::sleep::futex::set_waitv_for_tests(true);
    }
}

#[test]
fn a_full_reliable_subscriber_is_waited_for_until_the_deadline_and_nothing_is_sent() {
    let dir = TempDir::new("modes-deadline");
    let n = node(&dir);
    let mut sub = topic(&n).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).reliable_timeout(Duration::from_millis(20)).publisher().unwrap();
    let impatient = topic(&n).reliable_timeout(Duration::ZERO).publisher().unwrap();
    for i in 0..4 {
        publisher.publish(&i).unwrap();
        impatient.publish(&(100 + i)).unwrap();
    }
    let e = publisher.publish(&4).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Timeout, "{e}");
    assert!(e.to_string().contains(&format!("node {}", n.id())), "{e}");
    assert_eq!(impatient.publish(&104).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!((publisher.published(), impatient.published()), (4, 4));
    assert_eq!(sub.drain().count(), 8);
    publisher.publish(&4).unwrap();
    impatient.publish(&104).unwrap();
    drop(sub);
    for i in 0..20 {
        publisher.publish(&i).unwrap();
    }
}

#[test]
fn a_publisher_without_a_timeout_of_its_own_waits() {
    let dir = TempDir::new("modes-default");
    let n = node(&dir);
    let _sub = topic(&n).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).publisher().unwrap();
    for i in 0..4 {
        publisher.publish(&i).unwrap();
    }
    assert_eq!(publisher.publish(&4).unwrap_err().kind(), ErrorKind::Timeout);
}

#[test]
fn a_dead_reliable_subscriber_refuses_no_message_of_who_does_not_wait() {
    let dir = TempDir::new("modes-dead");
    let n = node(&dir);
    let publisher = topic(&n).reliable_timeout(Duration::ZERO).publisher().unwrap();
    let root = dir.join("root");
    let child = fork_child(move || {
        let n = Node::builder().root(root).name("reader").open().unwrap();
        let _reads_nothing = topic(&n).reliable(true).subscriber().unwrap();
        loop {
            sched::sleep_until(Deadline::NEVER);
        }
    });
    until(|| publisher.subscribers().unwrap() == 1);
    for i in 0..4 {
        publisher.publish(&i).unwrap();
    }
    assert_eq!(publisher.publish(&4).unwrap_err().kind(), ErrorKind::WouldBlock);
    child.kill();
    for i in 4..20 {
        publisher.publish(&i).unwrap();
    }
}

#[test]
fn a_subscriber_counts_from_when_it_misses_nothing_any_more() {
    let dir = TempDir::new("modes-counts");
    let n = node(&dir);
    // Opened before any publisher is there: it has yet to look at this one, and misses nothing.
    let first = topic(&n).subscriber().unwrap();
    let publisher = topic(&n).publisher().unwrap();
    assert_eq!(publisher.subscribers().unwrap(), 1);
    drop(first);
    // Announced, but not yet at the ring: what is published now is from before it joined.
    let (joined, _joining) = Topic::join(&n, TopicName::new("/n").unwrap(), None).unwrap();
    let port = joined.node.allocate_port(1, true).unwrap();
    link_subscriber(&joined, port).unwrap();
    joined.ring_bell(Ports::Subscribers);
    assert_eq!(publisher.subscribers().unwrap(), 0);
    let _opened = topic(&n).subscriber().unwrap();
    assert_eq!(publisher.subscribers().unwrap(), 1);
}

#[test]
fn a_reliable_subscriber_that_never_looked_still_counts() {
    let dir = TempDir::new("modes-unattached");
    let n = node(&dir);
    let mut sub = topic(&n).reliable(true).subscriber().unwrap();
    let publisher = topic(&n).reliable_timeout(Duration::ZERO).publisher().unwrap();
    let sent = (0..).take_while(|i| publisher.publish(i).is_ok()).count();
    assert_eq!(sent, 4);
    let got: Vec<u64> = sub.drain().map(|s| *s.unwrap()).collect();
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn latest_skips_to_the_newest_of_all_publishers() {
    let dir = TempDir::new("modes-latest");
    let n = node(&dir);
    let mut sub = topic(&n).subscriber().unwrap();
    let (p, q) = (topic(&n).publisher().unwrap(), topic(&n).publisher().unwrap());
    for i in 0..10 {
        p.publish(&i).unwrap();
        q.publish(&(100 + i)).unwrap();
    }
    assert_eq!(*sub.latest().unwrap().unwrap(), 109);
    assert!(sub.latest().unwrap().is_none());
    assert_eq!((sub.skipped(), sub.lost()), (19, 0));
    p.publish(&10).unwrap();
    assert_eq!(*sub.latest().unwrap().unwrap(), 10);
}

#[test]
fn receiving_in_order_merges_publishers_by_time() {
    let dir = TempDir::new("modes-order");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/n").unwrap().depth(64).subscriber().unwrap();
    let publishers: Vec<_> =
        (0..3).map(|_| n.topic::<u64>("/n").unwrap().publisher().unwrap()).collect();
    for i in 0..60u64 {
        publishers[(i * i % 3) as usize].publish(&i).unwrap();
    }
    let mut last = 0;
    for _ in 0..60 {
        let sample = sub.receive_in_order().unwrap().unwrap();
        assert!(sample.timestamp_ns() >= last, "out of order");
        last = sample.timestamp_ns();
    }
    assert!(sub.receive_in_order().unwrap().is_none());
}

#[test]
fn a_dead_ring_stays_until_its_reader_has_drained_it_and_others_go_on() {
    let dir = TempDir::new("modes-reclaim");
    let n = node(&dir);
    let image = |n: &Node| n.topic::<[u8; 5000]>("/i").unwrap().depth(4);
    let mut sub = image(&n).subscriber().unwrap();
    let first = image(&n).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none(), "it has looked, and mapped no segment");
    for i in 0..3 {
        first.publish(&[i; 5000]).unwrap();
    }
    drop(first);
    // Successors clear away what nobody needs.
    for i in 10..13 {
        let next = image(&n).publisher().unwrap();
        next.publish(&[i; 5000]).unwrap();
    }
    let mut got: Vec<u8> = sub.drain().map(|s| s.unwrap()[0]).collect();
    got.sort_unstable();
    assert_eq!(got, [0, 1, 2, 10, 11, 12]);
    assert_eq!(sub.lost(), 0);
}

#[test]
fn an_unread_ring_of_a_dead_publisher_stays() {
    let dir = TempDir::new("modes-unread");
    let n = node(&dir);
    let image = |n: &Node| n.topic::<[u8; 5000]>("/i").unwrap().depth(1);
    let mut sub = image(&n).subscriber().unwrap();
    let first = image(&n).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none(), "it has looked, and mapped no segment");
    first.publish(&[1; 5000]).unwrap();
    drop(first);
    // Its message is enough of a history: the first ring stays for the reader's sake alone.
    let next = image(&n).publisher().unwrap();
    next.publish(&[2; 5000]).unwrap();
    drop(image(&n).publisher().unwrap());
    let mut got: Vec<u8> = sub.drain().map(|s| s.unwrap()[0]).collect();
    got.sort_unstable();
    assert_eq!(got, [1, 2]);
    while sub.next_event().is_some() {}
    // Nobody needs it any more: it goes with its data.
    drop(image(&n).publisher().unwrap());
    let topics = std::fs::read_dir(dir.join("root/default/topics")).unwrap();
    let files = topics.flat_map(|topic| std::fs::read_dir(topic.unwrap().path()).unwrap());
    let is_data = |f: &std::fs::DirEntry| f.file_name().to_string_lossy().starts_with("data.");
    assert_eq!(files.filter(|f| f.as_ref().is_ok_and(is_data)).count(), 1);
}

#[test]
fn more_publishers_than_places_are_told_and_the_others_read() {
    more_publishers_than_places("receive", Subscriber::receive, &[0, 1]);
    more_publishers_than_places("latest", Subscriber::latest, &[1]);
    more_publishers_than_places("in-order", Subscriber::receive_in_order, &[0, 1]);
}

/// `receive` gives `read` of 0 and 1, before it says that the publisher of 2 has no place.
fn more_publishers_than_places(
    name: &str,
    receive: fn(&mut Subscriber<u64>) -> crate::Result<Option<Sample<u64>>>,
    read: &[u64],
) {
    use crate::node::peer::port::SOURCES_MAX;

    let dir = TempDir::new(&format!("modes-full-{name}"));
    let n = node(&dir);
    let mut sub = topic(&n).subscriber().unwrap();
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    let port = domain.subscribers("/n").unwrap().unwrap()[0].port;
    while n.extend_port(port).unwrap() {}
    let own = n.own_port(port).unwrap();
    assert_eq!(own.view().sources(), SOURCES_MAX);
    // All places but the last two are taken.
    let taken =
        |slot| crate::topic::ring::listing::Listing::of(own.view().source(slot)).name(u64::MAX, 1);
    (0..SOURCES_MAX - 2).for_each(taken);
    let mut publishers: Vec<_> = (0..3).map(|_| topic(&n).publisher().unwrap()).collect();
    for (i, publisher) in (0..).zip(&publishers) {
        publisher.publish(&i).unwrap();
    }
    let mut got: Vec<u64> = Vec::new();
    let told = loop {
        match receive(&mut sub) {
            Ok(Some(sample)) => got.push(*sample),
            Ok(None) => panic!("nobody said that a publisher is left out"),
            Err(e) => break e,
        }
    };
    assert_eq!(told.kind(), ErrorKind::TooManyMembers);
    assert_eq!(got, read, "{name}: those that have a place are read");
    // Once one that was read has gone the last finds a place.
    drop(publishers.remove(0));
    let last = receive(&mut sub).unwrap().map(|sample| *sample);
    assert_eq!((last, sub.publishers().len()), (Some(2), 2), "{name}");
}

#[test]
fn one_busy_publisher_does_not_hide_a_newcomer() {
    let dir = TempDir::new("modes-busy");
    let n = node(&dir);
    let mut sub = topic(&n).subscriber().unwrap();
    let busy = topic(&n).publisher().unwrap();
    assert!(sub.receive().unwrap().is_none());
    let newcomer = topic(&n).publisher().unwrap();
    newcomer.publish(&7).unwrap();
    let found = (0..200).any(|i| {
        busy.publish(&i).unwrap();
        sub.receive().unwrap().is_some_and(|s| s.publisher() == newcomer.id())
    });
    assert!(found);
}

#[test]
fn an_empty_slice_of_wide_elements_arrives() {
    let dir = TempDir::new("modes-empty");
    let n = node(&dir);
    let mut sub = n.topic::<[u128]>("/w").unwrap().subscriber().unwrap();
    let publisher = n.topic::<[u128]>("/w").unwrap().publisher().unwrap();
    publisher.publish(&[]).unwrap();
    publisher.publish(&[5]).unwrap();
    assert_eq!(sub.receive().unwrap().unwrap().len(), 0);
    assert_eq!(&*sub.receive().unwrap().unwrap(), &[5]);
}

#[test]
fn a_node_dropped_by_another_thread_is_known_dead_at_once() {
    let dir = TempDir::new("modes-drop");
    let n = node(&dir);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let dir = &dir;
        scope.spawn(move || {
            ready.send(node(dir)).unwrap();
            // Keep the opening thread alive.
            let _ = is_done.recv();
        });
        let other = is_ready.recv().unwrap();
        let watch = n.watch(other.id()).unwrap();
        assert!(watch.is_alive());
        drop(other);
        assert!(!watch.is_alive());
        assert!(watch.wait(Duration::from_secs(60)));
        drop(done);
    });
}

#[test]
fn a_volatile_publisher_reuses_one_chunk_and_never_one_that_is_held() {
    let dir = TempDir::new("modes-volatile");
    let n = node(&dir);
    let image = || n.topic::<[u8; 5000]>("/i").unwrap().depth(4);
    let (mut a, mut b) = (image().subscriber().unwrap(), image().subscriber().unwrap());
    let publisher = image().volatile(true).publisher().unwrap();
    let address = |i: u8| {
        let mut loan = publisher.loan().unwrap();
        loan.fill(i);
        let at = loan.as_ptr().addr();
        loan.publish().unwrap();
        at
    };
    // The first borrow makes the subscribers known; from then on there is one chunk.
    let mut seen = std::collections::HashSet::new();
    for i in 0..20 {
        let at = address(i);
        if i > 1 {
            seen.insert(at);
        }
        for sub in [&mut a, &mut b] {
            assert!(sub.receive().unwrap().unwrap().iter().all(|x| *x == i));
            assert!(sub.receive().unwrap().is_none());
        }
    }
    assert_eq!(seen.len(), 1, "the same memory each time");
    address(20);
    let held = a.receive().unwrap().unwrap();
    assert_eq!(b.drain().count(), 1);
    assert!(a.receive().unwrap().is_none());
    for i in 21..40 {
        address(i);
        drop((a.receive().unwrap(), b.receive().unwrap()));
    }
    assert!(held.iter().all(|x| *x == 20), "held, so never rewritten");
    assert_eq!((a.lost(), b.lost()), (0, 0));
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
}

#[test]
fn a_volatile_publisher_withdraws_nothing_that_a_living_subscriber_has_not_read() {
    let dir = TempDir::new("modes-volatile-hint");
    let (n, other) = (node(&dir), node(&dir));
    let image = |n: &Node| n.topic::<[u8; 5000]>("/i").unwrap().depth(8);
    let mut sub = image(&other).reliable(true).subscriber().unwrap();
    let publisher = image(&n).volatile(true).publisher().unwrap();
    publisher.publish(&[0; 5000]).unwrap();
    assert_eq!(sub.receive().unwrap().unwrap()[0], 0);
    // Its word says dead, its file lock says alive.
    other.scribble_token(0);
    for i in 1..6 {
        publisher.publish(&[i; 5000]).unwrap();
    }
    let got: Vec<u8> = sub.drain().map(|sample| sample.unwrap()[0]).collect();
    assert_eq!((got, sub.lost()), (vec![1, 2, 3, 4, 5], 0));
}

#[test]
fn a_volatile_publisher_lets_two_chunks_take_turns_while_its_reader_keeps_the_last_sample() {
    let dir = TempDir::new("modes-volatile-two");
    let n = node(&dir);
    let image = || n.topic::<[u8; 5000]>("/i").unwrap();
    let mut subscriber = image().subscriber().unwrap();
    let publisher = image().volatile(true).publisher().unwrap();
    let mut kept = None;
    let mut seen = std::collections::HashSet::new();
    for i in 0..40 {
        let mut loan = publisher.loan().unwrap();
        loan.fill(i);
        if i > 1 {
            seen.insert(loan.as_ptr().addr());
        }
        loan.publish().unwrap();
        // Not asked again before the next message comes.
        kept = subscriber.receive().unwrap().or(kept);
        assert!(kept.as_ref().unwrap().iter().all(|x| *x == i));
    }
    assert_eq!(seen.len(), 2, "one is read, the other written");
    assert_eq!(subscriber.lost(), 0);
}

#[test]
fn a_late_joiner_of_a_volatile_publisher_has_lost_nothing() {
    let dir = TempDir::new("modes-volatile-late");
    let n = node(&dir);
    let image = || n.topic::<[u8; 5000]>("/i").unwrap().depth(4);
    let mut early = image().subscriber().unwrap();
    let publisher = image().volatile(true).publisher().unwrap();
    for i in 0..10 {
        publisher.publish(&[i; 5000]).unwrap();
        drop((early.receive().unwrap(), early.receive().unwrap()));
    }
    let mut late = image().history(4).subscriber().unwrap();
    publisher.publish(&[10; 5000]).unwrap();
    let sample = late.receive().unwrap().unwrap();
    assert_eq!((sample[0], sample.lost_before(), late.lost()), (10, 0, 0));
}

#[test]
fn a_publisher_without_time_stamps_says_0_and_counts_as_the_oldest() {
    let dir = TempDir::new("modes-stamps");
    let n = node(&dir);
    let topic = || n.topic::<u64>("/t").unwrap();
    let (with, without) = (topic().publisher(), topic().timestamps(false).publisher());
    let (with, without) = (with.unwrap(), without.unwrap());
    let mut subscriber = topic().subscriber().unwrap();
    with.publish(&1).unwrap();
    without.publish(&2).unwrap();
    let first = subscriber.receive_in_order().unwrap().unwrap();
    assert_eq!((*first, first.timestamp_ns()), (2, 0));
    let second = subscriber.receive_in_order().unwrap().unwrap();
    assert!(*second == 1 && second.timestamp_ns() > 0);
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    let infos = domain.find_topic("/t").unwrap().unwrap().publishers;
    let newest = |id| infos.iter().find(|p| p.id == id).unwrap().newest_ns;
    assert_eq!(newest(without.id()), None, "else rates are measured from the year 0");
    assert_eq!(newest(with.id()), Some(second.timestamp_ns()));
}

#[test]
fn who_may_not_wait_lets_nobody_else_run_and_a_deadline_ends_that_too() {
    let dir = TempDir::new("modes-yields");
    let n = node(&dir);
    let yields = || crate::os::process::sched::YIELDS.get();
    for (name, allowed, most) in [("/a", Duration::ZERO, 0), ("/b", Duration::from_nanos(1), 1)] {
        let topic = || n.topic::<u64>(name).unwrap().depth(4);
        let _never_reads = topic().reliable(true).subscriber().unwrap();
        let publisher = topic().reliable_timeout(allowed).publisher().unwrap();
        let before = yields();
        let refused = (0..5).find_map(|i| publisher.publish(&i).err()).expect("the ring is full");
        assert!(matches!(refused.kind(), ErrorKind::WouldBlock | ErrorKind::Timeout));
        assert!(yields() - before <= most, "{name}: {} times", yields() - before);
    }
}

#[test]
fn a_drain_ends_at_an_error_and_the_next_one_goes_on() {
    let dir = TempDir::new("modes-drain");
    let n = node(&dir);
    let image = || n.topic::<[u8; 5000]>("/i").unwrap().depth(16).borrows(8);
    let mut sub = image().subscriber().unwrap();
    let publisher = image().publisher().unwrap();
    for i in 0..16 {
        publisher.publish(&[i; 5000]).unwrap();
    }
    // None of it is borrowed before its publisher has noticed who reads.
    assert_eq!(publisher.subscribers().unwrap(), 1);
    for from in [0, 8] {
        let drained: Vec<_> = sub.drain().take(100).collect();
        let told = drained.iter().filter_map(|sample| sample.as_ref().err());
        let told: Vec<_> = told.map(|e| e.kind()).collect();
        let got: Vec<u8> = drained.iter().flatten().map(|sample| sample[0]).collect();
        assert_eq!(got, (from..from + 8).collect::<Vec<_>>());
        let expected = if from == 0 { vec![ErrorKind::TooManyBorrows] } else { vec![] };
        assert_eq!(told, expected);
    }
}

#[test]
fn for_each_gives_what_is_there_however_short_its_timeout() {
    let dir = TempDir::new("modes-each");
    let n = node(&dir);
    let mut sub = topic(&n).subscriber().unwrap();
    let publisher = topic(&n).publisher().unwrap();
    for i in 1..4 {
        publisher.publish(&i).unwrap();
    }
    let mut sum = 0;
    let each = |sample: Sample<u64>| {
        sum += *sample;
        std::ops::ControlFlow::Continue(())
    };
    sub.for_each(Duration::ZERO, each).unwrap();
    assert_eq!(sum, 6);
}
