//! What a wait for many promises, within one process. Deaths are the kill harness's.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::wake::{bells, handshake};
use super::*;
use crate::node::Node;
use crate::node::peer::End;
use crate::os::death::robust;
use crate::os::fixture;
use crate::os::fixture::{
    TempDir, fork_child, is_asleep, on_sigusr1, thread_cpu, thread_sleeps, until,
};
use crate::os::sleep::poll::{PollFd, READABLE, poll};
use crate::os::time::deadline::Deadline;
use crate::topic::Event;
use crate::{Publisher, Subscriber};

const LONG: Duration = Duration::from_secs(20);

fn node(dir: &TempDir) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn pair(node: &Node, name: &str) -> (Publisher<u64>, Subscriber<u64>) {
    let publisher = node.topic::<u64>(name).unwrap().publisher().unwrap();
    let mut subscriber = node.topic::<u64>(name).unwrap().subscriber().unwrap();
    while subscriber.next_event().is_some() {}
    (publisher, subscriber)
}

fn ready_now(members: &mut [&mut dyn Waitable]) -> Vec<usize> {
    let mut ready: Vec<_> = WaitSet::new().wait(members, Duration::ZERO).unwrap().collect();
    ready.sort_unstable();
    ready
}

#[test]
fn each_kind_of_member_is_ready_for_its_own_reason_and_until_it_was_served() {
    let dir = TempDir::new("set-kinds");
    let (n, other) = (node(&dir), node(&dir));
    let (p, mut sub) = pair(&n, "/a");
    let mut watch = n.watch(other.id()).unwrap();
    let mut timer = Timer::after(Duration::from_secs(3600));
    let (reader, mut writer) = UnixStream::pair().unwrap();
    let mut fd = Descriptor::readable(&reader);
    let mut now = |timer: &mut Timer, sub: &mut Subscriber<u64>| {
        ready_now(&mut [sub, &mut watch, timer, &mut fd])
    };
    assert_eq!(now(&mut timer, &mut sub), []);
    p.publish(&1).unwrap();
    p.publish(&2).unwrap();
    assert_eq!(now(&mut timer, &mut sub), [0]);
    sub.receive().unwrap().unwrap();
    assert_eq!(now(&mut timer, &mut sub), [0], "one more message");
    sub.receive().unwrap().unwrap();
    timer = Timer::at(crate::now_ns());
    assert_eq!(now(&mut timer, &mut sub), [2]);
    assert_eq!((timer.fired(), now(&mut timer, &mut sub)), (1, vec![]));
    writer.write_all(b"xy").unwrap();
    assert_eq!(now(&mut timer, &mut sub), [3]);
    (&reader).read_exact(&mut [0; 2]).unwrap();
    assert_eq!(now(&mut timer, &mut sub), []);
    drop(other);
    assert_eq!(now(&mut timer, &mut sub), [1]);
    assert_eq!(now(&mut timer, &mut sub), [1], "dead for good");
}

#[test]
fn an_event_is_told_once_and_a_message_until_it_was_received() {
    let dir = TempDir::new("set-events");
    let n = node(&dir);
    let mut sub = n.topic::<u64>("/a").unwrap().subscriber().unwrap();
    assert_eq!(ready_now(&mut [&mut sub]), []);
    // Another subscriber changes the membership, but brings nothing for us.
    let _other = n.topic::<u64>("/a").unwrap().subscriber().unwrap();
    assert_eq!(ready_now(&mut [&mut sub]), []);
    let p = n.topic::<u64>("/a").unwrap().publisher().unwrap();
    assert_eq!(ready_now(&mut [&mut sub]), [0]);
    assert_eq!(ready_now(&mut [&mut sub]), [], "who does not care need not ask");
    p.publish(&1).unwrap();
    drop(p);
    assert_eq!((ready_now(&mut [&mut sub]), ready_now(&mut [&mut sub])), (vec![0], vec![0]));
    assert_eq!(*sub.receive().unwrap().unwrap(), 1);
    assert_eq!((ready_now(&mut [&mut sub]), ready_now(&mut [&mut sub])), (vec![0], vec![]));
    let events: Vec<_> = std::iter::from_fn(|| sub.next_event()).collect();
    assert!(matches!(events[..], [Event::PublisherJoined(_), Event::PublisherLeft(_)]));
}

#[test]
fn who_serves_only_the_first_of_the_ready_starves_nobody() {
    let dir = TempDir::new("set-fair");
    let n = node(&dir);
    let mut pairs: Vec<_> = (0..5).map(|i| pair(&n, &format!("/{i}"))).collect();
    let mut set = WaitSet::new();
    let mut served = [0; 5];
    for _ in 0..100 {
        // Member 0 is busy all the time; the others get a message each now and then.
        for (i, (p, _)) in pairs.iter().enumerate() {
            if i == 0 || served[i] == served[0] / 2 {
                p.publish(&0).unwrap();
            }
        }
        let mut list: Vec<_> = pairs.iter_mut().map(|(_, s)| s as &mut dyn Waitable).collect();
        let first = set.wait(&mut list, LONG).unwrap().next().unwrap();
        pairs[first].1.receive().unwrap().unwrap();
        served[first] += 1;
    }
    assert!(served.iter().all(|n| *n >= 10), "{served:?}");
}

#[test]
fn being_asked_to_end_wakes_every_kind_of_wait() {
    use crate::os::process::stop;
    let dir = TempDir::new("set-shutdown");
    let n = node(&dir);
    let (_p, mut sub) = pair(&n, "/a");
    let (reader, _writer) = UnixStream::pair().unwrap();
    let mut input = Descriptor::readable(&reader);
    for way in 0..4 {
        let mut shutdown = Shutdown::on_signals().unwrap();
        assert!(!shutdown.is_asked() && shutdown.signal().is_none());
        assert!(!shutdown.wait(Duration::from_millis(1)));
        std::thread::scope(|s| {
            let asks = s.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                stop::ask(stop::BY_ITSELF);
            });
            let until = Deadline::after(LONG);
            match way {
                0 => {
                    let woken = futex::wait(stop::event().word(), 0, until);
                    assert_ne!(woken, Woken::Timeout, "nobody woke it");
                }
                1 => {
                    let fd = std::os::fd::AsFd::as_fd(&shutdown).as_raw_fd();
                    assert_eq!(poll(&mut [PollFd::new(fd, READABLE)], until), 1);
                }
                2 => {
                    let list: &mut [&mut dyn Waitable] = &mut [&mut sub, &mut shutdown];
                    assert!(WaitSet::new().wait(list, LONG).unwrap().eq([1]));
                }
                _ => {
                    let list: &mut [&mut dyn Waitable] = &mut [&mut sub, &mut input, &mut shutdown];
                    assert!(WaitSet::new().wait(list, LONG).unwrap().eq([2]));
                }
            }
            asks.join().unwrap();
        });
        assert!(shutdown.is_asked() && shutdown.wait(LONG) && shutdown.signal().is_none());
    }
}

/// Its parent was asked, it was not; what it inherited does nothing.
#[test]
fn a_forked_child_waits_asleep_for_a_shutdown_that_its_parent_was_asked_for() {
    const TIME: Duration = Duration::from_millis(300);
    let child = fork_child(|| {
        let Ok(mut inherited) = Shutdown::on_signals() else { return 1 };
        inherited.ask();
        let child = fork_child(move || {
            inherited.ask();
            let cpu = thread_cpu();
            if inherited.wait(TIME) {
                return 2;
            }
            match WaitSet::new().wait(&mut [&mut inherited], TIME) {
                Ok(ready) if ready.is_empty() => {}
                _ => return 3,
            }
            let fd = std::os::fd::AsFd::as_fd(&inherited).as_raw_fd();
            if poll(&mut [PollFd::new(fd, READABLE)], Deadline::after(TIME)) != 0 {
                return 4;
            }
            if thread_cpu() - cpu > TIME / 6 {
                return 5;
            }
            let Ok(own) = Shutdown::on_signals() else { return 6 };
            if own.is_asked() {
                return 7;
            }
            own.ask();
            if own.wait(LONG) { 0 } else { 8 }
        });
        child.wait()
    });
    assert_eq!(child.wait(), 0);
}

/// Of the handler of SIGUSR1.
static SIGNALLED: Interrupt = Interrupt::new();

extern "C" fn on_signal(_: i32) {
    SIGNALLED.raise();
}

#[test]
fn a_signal_handler_and_a_thread_end_every_kind_of_wait() {
    let dir = TempDir::new("set-interrupt");
    let n = node(&dir);
    let (_p, mut sub) = pair(&n, "/a");
    let (reader, _writer) = UnixStream::pair().unwrap();
    let mut input = Descriptor::readable(&reader);
    let signal = on_sigusr1(on_signal);
    let mut set = WaitSet::new();
    for (with_fd, by_signal) in [(false, true), (false, false), (true, true), (true, false)] {
        let own = Interrupt::new();
        let interrupt = if by_signal { &SIGNALLED } else { &own };
        // The second time its descriptor is there already, and was readable.
        for _ in 0..2 {
            interrupt.clear();
            let idle: [Interrupt; 5] = Default::default();
            let mut others = idle.each_ref();
            std::thread::scope(|s| {
                s.spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    if by_signal { signal() } else { interrupt.raise() }
                });
                let mut this = interrupt;
                let mut list: Vec<&mut dyn Waitable> = vec![&mut sub, &mut this];
                if with_fd {
                    list.push(&mut input);
                }
                // More than one sleep has room for, behind it.
                list.extend(others.iter_mut().map(|other| other as &mut dyn Waitable));
                assert!(set.wait(&mut list, LONG).unwrap().eq([1]));
                assert!(set.wait(&mut list, Duration::ZERO).unwrap().eq([1]), "it stays");
            });
        }
        assert!(interrupt.is_raised());
        interrupt.clear();
        assert!(!interrupt.is_raised());
        let mut this = interrupt;
        let list: &mut [&mut dyn Waitable] = &mut [&mut this, &mut input];
        assert!(set.wait(list, Duration::from_millis(1)).unwrap().is_empty(), "cleared");
    }
}

#[test]
fn the_set_beyond_what_a_flag_has_room_for_hears_its_own_doorbell() {
    let dir = TempDir::new("set-many");
    let n = node(&dir);
    let mut subs: Vec<_> = (0..80).map(|i| pair(&n, &format!("/{i}"))).collect();
    WaitSet::set_next_for_tests(1 << 30);
    let mut set = WaitSet::new();
    let mut list: Vec<_> = subs.iter_mut().map(|(_, s)| s as &mut dyn Waitable).collect();
    let bells = bells::Doorbells::open_own(n.domain(), n.id()).unwrap();
    let rung = set.rings_for_tests(&mut list, |flag| {
        assert_eq!(flag & handshake::KIND_MASK, handshake::WAITING_DOORBELL);
        bells.ring(flag >> handshake::DOORBELL_SHIFT);
    });
    assert!(rung, "it listens to another one");
}

/// It ended at once, each time, and whoever waits in a loop spun.
#[test]
fn a_wait_whose_doorbell_cannot_be_made_looks_every_so_often() {
    let dir = TempDir::new("set-no-bell");
    let n = node(&dir);
    let (mut publishers, mut subs): (Vec<_>, Vec<_>) =
        (0..80).map(|i| pair(&n, &format!("/{i}"))).unzip();
    let mut list: Vec<_> = subs.iter_mut().map(|s| s as &mut dyn Waitable).collect();
    let mut set = WaitSet::new();
    fixture::refuse("open", ".bells", libc::ENOSPC, u32::MAX);
    let none = set.wait(&mut list, Duration::from_millis(10)).map(|ready| ready.len());
    let (tid, teller) = (robust::gettid() as i32, publishers.swap_remove(70));
    let news = std::thread::scope(|scope| {
        scope.spawn(move || {
            until(|| is_asleep(tid));
            teller.publish(&7).unwrap();
        });
        set.wait(&mut list, LONG).map(Iterator::collect::<Vec<_>>)
    });
    assert!(fixture::refuse_none() < u32::MAX, "no doorbell was wanted");
    assert_eq!((none.unwrap(), news.unwrap()), (0, vec![70]));
}

#[test]
fn the_list_may_change_from_wait_to_wait_and_be_empty() {
    let mut set = WaitSet::new();
    assert!(set.wait(&mut [], Duration::from_millis(2)).unwrap().is_empty());
    let mut timer = Timer::after(Duration::from_millis(2));
    let ready = set.wait(&mut [&mut timer], LONG).unwrap();
    assert!(ready.contains(0) && !ready.contains(1) && ready.len() == 1);
    let start = crate::now_ns();
    let (reader, _writer) = UnixStream::pair().unwrap();
    let mut fd = Descriptor::readable(&reader);
    assert!(set.wait(&mut [&mut fd], Duration::from_millis(30)).unwrap().is_empty());
    assert!(crate::now_ns() - start >= 30_000_000);
}

fn quiet(sub: &mut Subscriber<u64>) -> bool {
    let fd = sub.fd().unwrap().as_raw_fd();
    poll(&mut [PollFd::new(fd, READABLE)], Deadline::AT_ONCE) == 0
}

/// With nothing to receive. Twice: in between, a tick or the death of anybody whom this process
/// watches may have made it readable.
fn goes_quiet(sub: &mut Subscriber<u64>) -> bool {
    (0..2).any(|_| sub.receive().unwrap().is_none() && quiet(sub))
}

#[test]
fn a_tick_makes_a_descriptor_readable_once() {
    let dir = TempDir::new("set-vain");
    let n = node(&dir);
    let (_p, mut sub) = pair(&n, "/a");
    assert!(sub.fd().is_ok() && goes_quiet(&mut sub));
    let fd = sub.fd().unwrap().as_raw_fd();
    let soon = || Deadline::in_ns(10_000_000_000);
    assert_eq!(poll(&mut [PollFd::new(fd, READABLE)], soon()), 1, "nobody called, it ticked");
    assert!(goes_quiet(&mut sub));
}

#[test]
fn a_descriptor_is_readable_unless_the_last_receive_found_nothing() {
    let dir = TempDir::new("set-fd");
    let n = node(&dir);
    let (p, mut sub) = pair(&n, "/a");
    assert!(!quiet(&mut sub), "nobody has looked yet");
    for round in 0..3 {
        assert!(goes_quiet(&mut sub));
        p.publish(&round).unwrap();
        p.publish(&round).unwrap();
        assert!(!quiet(&mut sub));
        sub.receive().unwrap().unwrap();
        assert!(!quiet(&mut sub), "there is one more");
        sub.receive().unwrap().unwrap();
        assert!(!quiet(&mut sub), "nothing said that it was the last");
        assert!((0..2).any(|_| sub.latest().unwrap().is_none() && quiet(&mut sub)));
    }
    // Other ways of waiting in between do not lose a call.
    assert!(sub.receive_timeout(Duration::from_millis(1)).unwrap().is_none());
    let _ = WaitSet::new().wait(&mut [&mut sub], Duration::from_millis(1)).unwrap();
    p.publish(&7).unwrap();
    assert!(!quiet(&mut sub));
    assert_eq!(*sub.receive().unwrap().unwrap(), 7);
    assert!(sub.receive().unwrap().is_none());
    // Who comes and goes makes it readable too, until somebody has had the chance to look.
    let q = n.topic::<u64>("/a").unwrap().publisher().unwrap();
    assert!(!quiet(&mut sub));
    assert!(sub.receive().unwrap().is_none() && !quiet(&mut sub), "an event is new");
    assert!(goes_quiet(&mut sub));
    drop(q);
    assert!(!quiet(&mut sub));
    assert!(sub.receive().unwrap().is_none());
    assert!(matches!(sub.next_event(), Some(Event::PublisherJoined(_))));
    assert!(matches!(sub.next_event(), Some(Event::PublisherLeft(_))));
    assert!(goes_quiet(&mut sub));
    drop((p, sub));
    let left = std::fs::read_dir(dir.join("root/default/nodes")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["1"], "the socket went with its subscriber");
}

#[test]
fn a_publisher_that_never_sent_anything_calls_as_it_leaves() {
    let dir = TempDir::new("set-leaves");
    let n = node(&dir);
    let (p, mut sub) = pair(&n, "/a");
    assert!(sub.fd().is_ok() && goes_quiet(&mut sub));
    drop(p);
    assert!(!quiet(&mut sub));
    assert!(sub.receive().unwrap().is_none());
    assert!(matches!(sub.next_event(), Some(Event::PublisherLeft(_))));
}

#[test]
fn a_forked_child_that_waits_takes_no_call_of_its_parent() {
    let dir = TempDir::new("set-fork");
    let n = node(&dir);
    let (_p, mut sub) = pair(&n, "/a");
    let (reader, _writer) = UnixStream::pair().unwrap();
    let mut set = WaitSet::new();
    let mut fd = Descriptor::readable(&reader);
    let soon = Duration::from_millis(1);
    assert!(set.wait(&mut [&mut sub, &mut fd], soon).unwrap().is_empty());
    set.call_for_tests();
    assert!(set.is_called_for_tests());
    let child = fork_child(|| match set.wait(&mut [&mut fd], soon) {
        Ok(ready) => i32::from(!ready.is_empty()),
        Err(_) => 2,
    });
    assert_eq!(child.wait(), 0);
    assert!(set.is_called_for_tests(), "the child took it");
    assert!(set.wait(&mut [&mut sub, &mut fd], soon).unwrap().is_empty());
}

#[test]
fn a_writer_calls_once_however_often_it_writes() {
    let dir = TempDir::new("set-calls");
    let n = node(&dir);
    let (p, mut sub) = pair(&n, "/a");
    assert!(sub.fd().is_ok() && sub.receive().unwrap().is_none());
    for i in 0..5000 {
        p.publish(&i).unwrap();
    }
    // One datagram and no more: one drain makes it quiet.
    while sub.receive().unwrap().is_some() {}
    assert!(quiet(&mut sub));
    p.publish(&1).unwrap();
    assert!(!quiet(&mut sub));
}

#[test]
fn what_dead_nodes_left_of_their_sockets_is_swept() {
    let dir = TempDir::new("set-sweep");
    let n = node(&dir);
    let nodes = dir.join("root/default/nodes");
    for name in ["77.wake.3", "77.bells"] {
        std::fs::write(nodes.join(name), [0; 4096]).unwrap();
    }
    let own = nodes.join(format!("{}.wake.9", n.id()));
    std::fs::write(&own, []).unwrap();
    let other = node(&dir);
    assert!(!nodes.join("77.wake.3").exists() && !nodes.join("77.bells").exists());
    assert!(own.exists(), "its node is alive");
    drop((n, other));
    let domain = crate::Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
    assert!(domain.clean().unwrap().domain_removed);
}

/// A subscriber that counts how often a wait looks at it.
struct Counted<'a>(&'a mut Subscriber<u64>, std::cell::Cell<u32>);

impl member::Member for Counted<'_> {
    fn is_ready(&mut self, look: &mut member::Look) -> bool {
        self.0.is_ready(look)
    }

    fn plan<'a>(&'a self, plan: &mut member::Plan<'a>) -> bool {
        self.1.set(self.1.get() + 1);
        self.0.plan(plan)
    }

    fn seat(&self) -> Option<member::Seat<'_>> {
        self.0.seat()
    }

    fn awake(&mut self) {
        self.0.awake();
    }
}

/// Runs the test of that name in a process of its own where it is not in one already: the tests
/// beside it want `futex_waitv`. Whether it is to go on.
fn is_without_waitv(name: &str) -> bool {
    if std::env::var_os("OUTLIVE_NO_WAITV").is_some() {
        return true;
    }
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let name = format!("wait::tests::{name}");
    let out = alone.args([&name, "--exact"]).env("OUTLIVE_NO_WAITV", "1").output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
    false
}

#[test]
fn a_long_wait_without_waitv_is_not_a_poll() {
    if !is_without_waitv("a_long_wait_without_waitv_is_not_a_poll") {
        return;
    }
    let dir = TempDir::new("set-long");
    let n = node(&dir);
    let (p, mut sub) = pair(&n, "/a");
    let mut set = WaitSet::new();
    let mut counted = Counted(&mut sub, std::cell::Cell::new(0));
    assert!(set.wait(&mut [&mut counted], Duration::from_secs(2)).unwrap().is_empty());
    let looks = counted.1.get();
    assert!(looks < 250, "{looks} looks in 2 s");
    p.publish(&7).unwrap();
    assert_eq!(set.wait(&mut [&mut sub], LONG).unwrap().collect::<Vec<_>>(), [0]);
}

/// There is no descriptor on which these could sleep, so they look for deaths; but seldom.
#[test]
fn a_long_wait_without_waitv_for_a_lock_or_for_room_is_not_a_poll() {
    const WAIT: Duration = Duration::from_secs(1);
    /// Every 2 ms would be 500.
    const SLEEPS_MAX: i64 = 150;
    if !is_without_waitv("a_long_wait_without_waitv_for_a_lock_or_for_room_is_not_a_poll") {
        return;
    }
    let dir = TempDir::new("seldom");
    let n = node(&dir);
    let mutex = n.mutex::<u64>("/mutex").unwrap();
    let rwlock = n.rwlock::<u64>("/rwlock").unwrap();
    let semaphore = n.semaphore("/semaphore", 1).unwrap();
    let queue = || n.queue::<u64>("/queue").unwrap().bound_bytes(16 << 10);
    let topic = || n.topic::<u64>("/topic").unwrap().depth(2).reliable(true);
    let _consumer = queue().consumer().unwrap();
    let _subscriber = topic().subscriber().unwrap();
    let _held = (mutex.lock().unwrap(), rwlock.write().unwrap(), semaphore.acquire().unwrap());
    let waits: [(&str, &(dyn Fn() + Sync)); 6] = [
        ("mutex", &|| assert!(mutex.lock_timeout(WAIT).is_err())),
        ("read", &|| assert!(rwlock.read_timeout(WAIT).is_err())),
        ("write", &|| assert!(rwlock.write_timeout(WAIT).is_err())),
        ("semaphore", &|| assert!(semaphore.acquire_timeout(WAIT).is_err())),
        ("send", &|| {
            let mut producer = queue().producer().unwrap();
            while producer.send_timeout(&1, WAIT).is_ok() {}
        }),
        ("publish", &|| {
            let publisher = topic().reliable_timeout(WAIT).publisher().unwrap();
            while publisher.publish(&1).is_ok() {}
        }),
    ];
    for (what, wait) in waits {
        let sleeps = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                wait();
                thread_sleeps()
            });
            waiter.join().unwrap()
        });
        assert!(sleeps < SLEEPS_MAX, "{what}: {sleeps} sleeps in {WAIT:?}");
    }
}

/// Run under ThreadSanitizer: nothing is shared but through our own atomics and `join`.
mod threads {
    use super::*;

    /// How a sleep is brought to end: by many words, a doorbell, a descriptor.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Way {
        Words,
        NoWaitv,
        TooMany,
        Fd,
    }

    /// A waiter over `topics`; each is sent `rounds` messages by a thread of another node, which
    /// pauses so that the waiter sleeps, joins late and leaves early.
    fn all_arrive(way: Way) {
        futex::set_waitv_for_tests(way != Way::NoWaitv);
        let topics = if way == Way::TooMany { 80 } else { 3 };
        let rounds = if way == Way::TooMany { 4 } else { 40 };
        let dir = TempDir::new("set-threads");
        let (here, there) = (node(&dir), node(&dir));
        let name = |i: usize| format!("/{i}");
        let subscribe = |i| here.topic::<u64>(&name(i)).unwrap().subscriber().unwrap();
        let mut subs: Vec<_> = (0..topics).map(subscribe).collect();
        let _keep: Vec<_> = (0..topics).map(|i| pair(&here, &name(i)).0).collect();
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            let publish = |i| there.topic::<u64>(&name(i)).unwrap().publisher().unwrap();
            let publishers: Vec<_> = (0..topics).map(publish).collect();
            for round in 0..rounds {
                for p in &publishers {
                    std::thread::sleep(Duration::from_micros(700));
                    p.publish(&round).unwrap();
                }
            }
            if way == Way::Fd {
                writer.write_all(b"x").unwrap();
            }
        });
        let mut set = WaitSet::new();
        let mut next = vec![0; topics];
        let mut left = 0;
        let mut byte = way != Way::Fd;
        while next.iter().any(|n| *n < rounds) || left < topics || !byte {
            let mut list: Vec<_> = subs.iter_mut().map(|s| s as &mut dyn Waitable).collect();
            let mut input = Descriptor::readable(&reader);
            if way == Way::Fd && !byte {
                list.push(&mut input);
            }
            let ready: Vec<_> = set.wait(&mut list, LONG).unwrap().collect();
            assert!(!ready.is_empty(), "{way:?}: {left} left, {next:?}");
            for i in ready {
                if i == topics {
                    byte = true;
                    continue;
                }
                while let Some(sample) = subs[i].receive().unwrap() {
                    // On a busy machine the ring may go round before we look.
                    next[i] += sample.lost_before();
                    assert_eq!(*sample, next[i]);
                    next[i] += 1;
                }
                let gone = |e: &Event| matches!(e, Event::PublisherLeft(_));
                left += std::iter::from_fn(|| subs[i].next_event()).filter(gone).count();
            }
        }
        sender.join().unwrap();
        futex::set_waitv_for_tests(true);
    }

    #[test]
    fn messages_of_several_topics_wake_one_waiter() {
        all_arrive(Way::Words);
    }

    #[test]
    fn messages_wake_a_waiter_without_waitv() {
        all_arrive(Way::NoWaitv);
    }

    #[test]
    fn messages_wake_a_waiter_on_more_words_than_one_sleep_takes() {
        all_arrive(Way::TooMany);
    }

    #[test]
    fn messages_and_a_foreign_descriptor_wake_one_waiter() {
        all_arrive(Way::Fd);
    }

    #[test]
    fn a_descriptor_wakes_a_loop_that_waits_for_it() {
        let dir = TempDir::new("set-loop");
        let (here, there) = (node(&dir), node(&dir));
        let mut sub = here.topic::<u64>("/a").unwrap().subscriber().unwrap();
        let fd = sub.fd().unwrap().as_raw_fd();
        let sender = std::thread::spawn(move || {
            let p = there.topic::<u64>("/a").unwrap().publisher().unwrap();
            for i in 0..200 {
                if i % 3 == 0 {
                    std::thread::sleep(Duration::from_micros(300));
                }
                p.publish(&i).unwrap();
            }
        });
        let mut next = 0;
        let mut left = false;
        while !left {
            assert_eq!(poll(&mut [PollFd::new(fd, READABLE)], Deadline::after(LONG)), 1);
            while let Some(sample) = sub.receive().unwrap() {
                next += sample.lost_before();
                assert_eq!(*sample, next);
                next += 1;
            }
            let gone = |e| matches!(e, Event::PublisherLeft(_));
            left = std::iter::from_fn(|| sub.next_event()).any(gone);
        }
        assert_eq!(next, 200);
        sender.join().unwrap();
    }
}

/// The kernel wakes one of those who sleep on a token; that one wakes the others.
#[test]
fn whoever_is_woken_by_a_token_wakes_the_other_sleepers() {
    use crate::sync::Ordering::Release;
    let word = AtomicU32::new(7);
    for left in [0, robust::OWNER_DIED | robust::WAITERS] {
        word.store(7, Release);
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel();
            let sleepers: Vec<_> = (0..4)
                .map(|_| {
                    let (word, tell) = (&word, tell.clone());
                    scope.spawn(move || {
                        tell.send(robust::gettid()).unwrap();
                        let mut set = SleepSet::empty();
                        set.end(End { word, seen: 7, has_begun: false, is_token: true });
                        while word.load(Relaxed) == 7 {
                            set.sleep(Deadline::NEVER);
                        }
                    })
                })
                .collect();
            // Whoever comes late sees it changed.
            told.iter().take(4).for_each(|tid| until(|| is_asleep(tid as i32)));
            word.store(left, Release);
            futex::wake(&word, 1);
            sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        });
    }
}

/// A control loop has no time for it; a long sleep looks, should a bell have been lost.
#[test]
fn short_waits_read_no_directory() {
    let dir = TempDir::new("waits-short");
    let n = node(&dir);
    let (_publisher, mut sub) = pair(&n, "/t");
    while sub.receive().unwrap().is_some() {}
    let mut set = WaitSet::new();
    let mut looks_in = |sleep: Duration| {
        fixture::refuse("opendir", "topics/t", libc::EMFILE, u32::MAX);
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(1500) {
            set.wait(&mut [&mut sub], sleep).unwrap();
        }
        u32::MAX - fixture::refuse_none()
    };
    assert_eq!(looks_in(Duration::from_millis(1)), 0);
    assert!(looks_in(Duration::from_millis(300)) > 0);
}

/// What another set asks of it once a second is news each time.
struct Restless<'a>(&'a mut Subscriber<u64>);

/// How often it was asked.
struct Asked<'a>(&'a mut Subscriber<u64>, u32);

impl member::Member for Restless<'_> {
    fn is_ready(&mut self, look: &mut member::Look) -> bool {
        self.0.is_ready(look)
    }

    fn plan<'a>(&'a self, plan: &mut member::Plan<'a>) -> bool {
        self.0.plan(plan)
    }

    fn overslept(&mut self, _: member::Overslept) -> bool {
        true
    }
}

impl member::Member for Asked<'_> {
    fn is_ready(&mut self, look: &mut member::Look) -> bool {
        self.0.is_ready(look)
    }

    fn plan<'a>(&'a self, plan: &mut member::Plan<'a>) -> bool {
        self.0.plan(plan)
    }

    fn overslept(&mut self, how: member::Overslept) -> bool {
        self.1 += 1;
        self.0.overslept(how)
    }
}

#[test]
fn what_the_first_member_finds_keeps_no_other_from_asking() {
    let dir = TempDir::new("set-ask");
    let n = node(&dir);
    let ((_p, mut one), (_q, mut two)) = (pair(&n, "/a"), pair(&n, "/b"));
    let (mut restless, mut asked) = (Restless(&mut one), Asked(&mut two, 0));
    let wait = Duration::from_millis(2500);
    assert!(WaitSet::new().wait(&mut [&mut restless, &mut asked], wait).unwrap().is_empty());
    assert!(asked.1 > 0);
}

#[test]
fn a_set_whose_descriptor_was_closed_does_not_spin() {
    // A test beside it may get the number.
    if !fixture::in_a_child(module_path!(), "a_set_whose_descriptor_was_closed_does_not_spin") {
        return;
    }
    let dir = TempDir::new("set-closed");
    let n = node(&dir);
    let (p, mut sub) = pair(&n, "/a");
    let (reader, _writer) = UnixStream::pair().unwrap();
    let (mut fd, mut set) = (Descriptor::readable(&reader), WaitSet::new());
    let time = Duration::from_millis(300);
    assert!(set.wait(&mut [&mut sub, &mut fd], Duration::from_millis(20)).unwrap().is_empty());
    fixture::close_number(set.bridge_for_tests());
    let cpu = thread_cpu();
    assert!(set.wait(&mut [&mut sub, &mut fd], time).unwrap().is_empty());
    assert!(thread_cpu() - cpu < time / 3);
    p.publish(&7).unwrap();
    assert_eq!(set.wait(&mut [&mut sub, &mut fd], LONG).unwrap().collect::<Vec<_>>(), [0]);
}
