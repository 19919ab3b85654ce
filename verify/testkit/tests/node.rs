//! What peers are told of a node whose thread ends, that is stopped, becomes another program, or
//! leaves: through the public API, with real processes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlive::topic::Event;
use outlive::{
    Domain, ErrorKind, Node, NodeBuilder, NodeId, Publisher, Subscriber, WaitSet, Watch,
};
use testkit::actor::{await_cue, listen, say};
use testkit::process::{self, Exit, wait_until};
use testkit::spawn::Role;
use testkit::{Actor, TempDomain, Watchdog, fork_child, role};

/// Longer than any test: who waits that long has lost a wake, and the watchdog says so.
const LONG: Duration = Duration::from_secs(3600);
/// Looks at a node in each of its states.
const LOOKS: usize = 30_000;
/// A payload that is borrowed, not copied.
type Large = [u64; 1000];

fn settings(dir: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name(name)
}

fn dir_of(role: &Role) -> &Path {
    Path::new(&role.args[0])
}

fn text(dir: &TempDomain) -> &str {
    dir.path().to_str().unwrap()
}

/// A watchdog, and sleeps so long that a lost wake shows.
fn watchdog(test: &str) -> Watchdog {
    outlive::internals::set_slice_ns_max(LONG.as_nanos() as u64);
    Watchdog::start(test, Duration::from_secs(120))
}

#[track_caller]
fn alive_at_every_look(watch: &Watch) {
    for n in 0..LOOKS {
        assert!(watch.is_alive(), "dead at look {n}");
        if n % 1000 == 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    assert!(!watch.wait(Duration::from_millis(5)), "told of a death");
}

/// The names in a directory of the domain.
fn names(dir: &TempDomain, sub: &str) -> Vec<String> {
    testkit::temp::listing(&dir.path().join("root/default").join(sub))
}

/// With everybody gone, `clean` leaves nothing at all.
#[track_caller]
fn nothing_left(dir: &TempDomain) {
    let domain = Domain::of(&settings(dir.path(), "clean")).unwrap();
    let audit = domain.audit().unwrap();
    assert_eq!(audit.faults, Vec::<String>::new());
    domain.clean().unwrap();
    assert_eq!(dir.listing(), Vec::<String>::new());
}

/// Waits until thread `tid` of this process is gone.
fn until_thread_is_gone(tid: i32) {
    let path = format!("/proc/self/task/{tid}");
    assert!(wait_until(LONG, || !Path::new(&path).exists()));
}

/// Kills the actor while a thread of ours sleeps on its token; the sleeper must wake.
fn killed_and_told_at_once(actor: &mut Actor, watch: Watch) {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            tell.send(process::thread_id()).unwrap();
            watch.wait(LONG)
        });
        let thread = told.recv().unwrap();
        assert!(wait_until(LONG, || process::sleeps(thread)));
        assert_eq!(actor.kill(), Exit::Signal(libc::SIGKILL));
        assert!(sleeper.join().unwrap());
    });
    assert!(!watch.is_alive());
}

fn open_in_a_thread(dir: &Path) -> Node {
    let settings = settings(dir, "actor");
    std::thread::spawn(move || settings.open().unwrap()).join().unwrap()
}

#[test]
fn a_node_outlives_the_thread_that_opened_it() {
    const TEST: &str = "a_node_outlives_the_thread_that_opened_it";
    if let Some(role) = role() {
        let (give, take) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let builder = settings(dir_of(&role), "actor");
        let opener = std::thread::spawn(move || {
            give.send(builder.open().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let node = take.recv().unwrap();
        say(&format!("node {}", node.id()));
        await_cue("end the thread");
        drop(end);
        opener.join().unwrap();
        say("end the thread");
        // No call of the node any more: nothing has to be put in order.
        listen();
        drop(node);
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("opener").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    let mut actor = Actor::start(TEST, "actor", &[text(&dir)]);
    let watch = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut looks = 0u64;
            while !over.load(Ordering::Relaxed) {
                assert!(watch.seems_alive() && watch.is_alive(), "dead at look {looks}");
                looks += 1;
            }
            looks
        });
        actor.cue("end the thread");
        std::thread::sleep(Duration::from_millis(20));
        over.store(true, Ordering::Relaxed);
        assert!(looks.join().unwrap() > LOOKS as u64);
    });
    alive_at_every_look(&watch);
    killed_and_told_at_once(&mut actor, watch);
    drop(node);
    nothing_left(&dir);
}

/// The kernel wakes one of those who sleep on a token. A thread of the process that dies is not
/// one of them: it would take the wake along.
#[test]
fn threads_of_a_process_that_is_killed_take_no_wake_along() {
    const TEST: &str = "threads_of_a_process_that_is_killed_take_no_wake_along";
    if let Some(role) = role() {
        let settings = settings(dir_of(&role), "actor");
        let observer = NodeId::from_raw(role.args[1].parse().unwrap());
        let node = settings.clone().open().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        for n in 0..8 {
            let other = if n % 2 == 0 { node.clone() } else { settings.clone().open().unwrap() };
            let (mut theirs, mut ours) =
                (other.watch(observer).unwrap(), other.watch(node.id()).unwrap());
            let tell = tell.clone();
            std::thread::spawn(move || {
                tell.send(process::thread_id()).unwrap();
                // The kernel passes on the wake of the first token only.
                WaitSet::new().wait(&mut [&mut theirs, &mut ours], LONG).unwrap();
                panic!("nobody has left");
            });
        }
        for _ in 0..8 {
            let thread = told.recv().unwrap();
            assert!(wait_until(LONG, || process::sleeps(thread)));
        }
        say(&format!("node {}", node.id()));
        listen();
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("takealong").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    for _ in 0..20 {
        let mut actor = Actor::start(TEST, "actor", &[text(&dir), &node.id().to_string()]);
        let watch = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
        killed_and_told_at_once(&mut actor, watch);
    }
    drop(node);
    nothing_left(&dir);
}

/// Threads that sleep on the life of a node: every `each`th in a `Watch`, the others in a set.
fn sleepers<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    dir: &Path,
    id: NodeId,
    each: usize,
) -> Vec<std::thread::ScopedJoinHandle<'s, ()>> {
    let (tell, told) = std::sync::mpsc::channel();
    let sleepers: Vec<_> = (0..8usize)
        .map(|n| {
            let (settings, tell) = (settings(dir, "sleeper"), tell.clone());
            scope.spawn(move || {
                let node = settings.open().unwrap();
                let mut watch = node.watch(id).unwrap();
                tell.send(process::thread_id()).unwrap();
                if n % each == each - 1 {
                    assert!(watch.wait(LONG));
                } else {
                    let mut set = WaitSet::new();
                    assert_eq!(set.wait(&mut [&mut watch], LONG).unwrap().count(), 1);
                }
            })
        })
        .collect();
    for _ in 0..sleepers.len() {
        let thread = told.recv().unwrap();
        assert!(wait_until(LONG, || process::sleeps(thread)));
    }
    sleepers
}

#[test]
fn all_sleepers_are_told_of_an_exit_and_of_a_node_that_leaves() {
    const TEST: &str = "all_sleepers_are_told_of_an_exit_and_of_a_node_that_leaves";
    if let Some(role) = role() {
        let node = settings(dir_of(&role), "actor").open().unwrap();
        say(&format!("node {}", node.id()));
        await_cue("go");
        match role.name.as_str() {
            "exit" => {
                std::mem::forget(node);
                std::process::exit(0);
            }
            "leave" => drop(node),
            kind => panic!("{kind}"),
        }
        say("go");
        listen();
        return;
    }
    let _dog = watchdog(TEST);
    for kind in ["exit", "leave"] {
        for each in [1, 2, 100] {
            let dir = TempDomain::new("told").unwrap();
            let mut actor = Actor::start(TEST, kind, &[text(&dir)]);
            let id = NodeId::from_raw(actor.expect_number("node"));
            std::thread::scope(|scope| {
                let sleepers = sleepers(scope, dir.path(), id, each);
                actor.tell("go");
                sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
            });
            actor.wait();
            nothing_left(&dir);
        }
    }
}

/// Publishes numbers until the test is over, in a thread that neither opened the node nor ends.
fn publish_numbers(node: &Node) {
    let publisher = node.topic::<u64>("/numbers").unwrap().depth(4096).publisher().unwrap();
    let slow = Duration::from_micros(500);
    for n in 0.. {
        publisher.publish(&n).unwrap();
        std::thread::sleep(slow);
    }
}

/// Numbers that arrive without a gap, and no news of a death.
fn numbers_arrive(subscriber: &mut Subscriber<u64>, next: &mut u64, count: u64) {
    let until = *next + count;
    while *next < until {
        if let Some(sample) = subscriber.receive_timeout(LONG).unwrap() {
            assert_eq!((*sample, sample.lost_before()), (*next, 0));
            *next += 1;
        }
        while let Some(event) = subscriber.next_event() {
            assert!(matches!(event, Event::PublisherJoined(_)), "{event:?}");
        }
    }
}

fn told_of_the_death(subscriber: &mut Subscriber<u64>, next: &mut u64) {
    loop {
        while let Some(sample) = subscriber.receive_timeout(LONG).unwrap() {
            assert_eq!((*sample, sample.lost_before()), (*next, 0));
            *next += 1;
        }
        match subscriber.next_event() {
            Some(Event::PublisherDied { .. }) => return,
            other => assert_eq!(other, None),
        }
    }
}

/// The calling thread ends without anybody's destructors.
fn raw_exit() -> ! {
    // SAFETY: ends this thread in the kernel. Its stack stays mapped for ever, which is harmless.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended")
}

/// A node goes on after the raw exit of the thread that holds its token.
fn observe_raw_exit(test: &str, role: &str) {
    let _dog = watchdog(test);
    let dir = TempDomain::new("raw-exit").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    let mut subscriber = node.topic::<u64>("/numbers").unwrap().depth(4096).subscriber().unwrap();
    let mut actor = Actor::start(test, role, &[text(&dir)]);
    let watch = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
    let mut next = 0;
    numbers_arrive(&mut subscriber, &mut next, 50);
    actor.cue("raw exit");
    alive_at_every_look(&watch);
    numbers_arrive(&mut subscriber, &mut next, 200);
    // Opening and joining still work there.
    actor.cue("join");
    let id = NodeId::from_raw(actor.expect_number("node"));
    assert!(node.watch(id).unwrap().is_alive());
    actor.signal(libc::SIGKILL);
    assert!(watch.wait(LONG), "told of the death");
    told_of_the_death(&mut subscriber, &mut next);
    actor.wait();
    drop((subscriber, node));
    nothing_left(&dir);
}

/// What goes on in the node after the raw exit: a publisher, and a thread that joins anew.
fn go_on(node: Node, dir: &Path, exited: impl FnOnce()) {
    std::thread::spawn({
        let node = node.clone();
        move || publish_numbers(&node)
    });
    await_cue("raw exit");
    exited();
    say("raw exit");
    await_cue("join");
    let topic = node.topic::<Large>("/more").unwrap();
    let publisher = topic.publisher().unwrap();
    publisher.publish(&[7; 1000]).unwrap();
    let second = settings(dir, "second").open().unwrap();
    let mut late = second.topic::<Large>("/more").unwrap().history(1).subscriber().unwrap();
    assert_eq!(late.receive().unwrap().unwrap()[999], 7);
    say("join");
    say(&format!("node {}", second.id()));
    listen();
}

#[test]
fn a_raw_exit_of_the_registering_thread_is_not_the_death_of_the_node() {
    const TEST: &str = "a_raw_exit_of_the_registering_thread_is_not_the_death_of_the_node";
    if let Some(role) = role() {
        let dir = dir_of(&role).to_path_buf();
        let builder = settings(&dir, "actor");
        let (give, take) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            give.send((builder.open().unwrap(), process::thread_id())).unwrap();
            let _ = ended.recv();
            raw_exit();
        });
        let (node, tid) = take.recv().unwrap();
        say(&format!("node {}", node.id()));
        return go_on(node, &dir, || {
            drop(end);
            until_thread_is_gone(tid);
        });
    }
    observe_raw_exit(TEST, "actor");
}

#[test]
fn a_raw_exit_of_the_main_thread_is_not_the_death_of_the_node() {
    const TEST: &str = "a_raw_exit_of_the_main_thread_is_not_the_death_of_the_node";
    if let Some(role) = role() {
        let dir = dir_of(&role).to_path_buf();
        // A forked child's only thread is its main thread.
        let mut child = fork_child(|| {
            let node = settings(&dir, "actor").open().unwrap();
            say(&format!("node {}", node.id()));
            let (go, gone) = std::sync::mpsc::channel();
            let dir = dir.clone();
            std::thread::spawn(move || {
                let stat = format!("/proc/{}/stat", std::process::id());
                let is_zombie = || std::fs::read_to_string(&stat).unwrap().contains(") Z ");
                go_on(node, &dir, || {
                    go.send(()).unwrap();
                    assert!(wait_until(LONG, is_zombie));
                });
                // SAFETY: ends the process, whose main thread has ended already.
                unsafe { libc::_exit(0) };
            });
            gone.recv().unwrap();
            raw_exit();
        })
        .unwrap();
        child.wait();
        return;
    }
    observe_raw_exit(TEST, "actor");
}

#[test]
fn a_node_dropped_by_another_thread_than_its_opener_has_left() {
    let _dog = watchdog("a_node_dropped_by_another_thread_than_its_opener_has_left");
    let dir = TempDomain::new("left").unwrap();
    let observer = settings(dir.path(), "observer").open().unwrap();
    let node = settings(dir.path(), "leaver").open().unwrap();
    let watch = observer.watch(node.id()).unwrap();
    assert!(watch.is_alive());
    std::thread::scope(|scope| {
        let told = scope.spawn(|| watch.wait(LONG));
        std::thread::sleep(Duration::from_millis(10));
        scope.spawn(move || drop(node)).join().unwrap();
        assert!(told.join().unwrap(), "told although the opener lives on");
    });
    assert!(!watch.is_alive());
    assert_eq!(names(&dir, "nodes"), [observer.id().to_string()]);
    // The thread that opened it can open and leave others.
    for _ in 0..3 {
        drop(settings(dir.path(), "again").open().unwrap());
    }
    drop(observer);
    nothing_left(&dir);
}

/// Becomes another program, first in vain.
fn become_another(dir: &Path) -> ! {
    use std::os::unix::process::CommandExt;
    let node = settings(dir, "actor").open().unwrap();
    let publisher = node.topic::<Large>("/t").unwrap().publisher().unwrap();
    publisher.publish(&[1; 1000]).unwrap();
    say(&format!("node {}", node.id()));
    await_cue("failed exec");
    let e = std::process::Command::new("/no/such/program").exec();
    assert_eq!(e.kind(), std::io::ErrorKind::NotFound);
    publisher.publish(&[2; 1000]).unwrap();
    say("failed exec");
    await_cue("exec");
    // It reads until it is dismissed: the process lives on as another program.
    panic!("{}", std::process::Command::new("cat").exec());
}

#[test]
fn exec_is_death_unless_it_fails() {
    const TEST: &str = "exec_is_death_unless_it_fails";
    if let Some(role) = role() {
        match role.name.as_str() {
            // A forked child's only thread is its main thread; it makes one more for the token.
            "main" => fork_child(|| become_another(dir_of(&role))).unwrap().wait(),
            _ => become_another(dir_of(&role)),
        };
        return;
    }
    let _dog = watchdog(TEST);
    observe_exec(TEST, &["main", "thread"]);
}

fn observe_exec(test: &str, kinds: &[&str]) {
    for kind in kinds {
        let dir = TempDomain::new("exec").unwrap();
        let node = settings(dir.path(), "observer").open().unwrap();
        let mut actor = Actor::start(test, kind, &[text(&dir)]);
        let id = NodeId::from_raw(actor.expect_number("node"));
        let watch = node.watch(id).unwrap();
        actor.cue("failed exec");
        alive_at_every_look(&watch);
        actor.tell("exec");
        assert!(watch.wait(LONG) && !watch.is_alive(), "{kind}: told of it");
        assert!(Path::new(&format!("/proc/{}", actor.pid())).exists(), "the process lives on");
        let domain = Domain::of(&settings(dir.path(), "")).unwrap();
        domain.clean().unwrap();
        assert_eq!(names(&dir, "nodes"), [node.id().to_string()]);
        assert_eq!(names(&dir, "topics"), Vec::<String>::new());
        assert!(actor.wait().success(), "it went on as cat");
        drop(node);
        nothing_left(&dir);
    }
}

#[test]
fn a_node_leaves_with_its_last_port_without_a_trace() {
    let _dog = watchdog("a_node_leaves_with_its_last_port_without_a_trace");
    let dir = TempDomain::new("last").unwrap();
    let observer = settings(dir.path(), "observer").open().unwrap();
    let node = open_in_a_thread(dir.path());
    let watch = observer.watch(node.id()).unwrap();
    alive_at_every_look(&watch);
    let publisher = node.topic::<u64>("/t").unwrap().publisher().unwrap();
    publisher.publish(&1).unwrap();
    drop(node);
    alive_at_every_look(&watch);
    drop(publisher);
    assert!(watch.wait(LONG) && !watch.is_alive());
    assert_eq!(names(&dir, "nodes"), [observer.id().to_string()]);
    assert_eq!(names(&dir, "topics"), Vec::<String>::new());
    drop(observer);
    nothing_left(&dir);
}

#[test]
fn a_stopped_process_is_alive_and_loses_only_what_the_ring_overwrote() {
    const TEST: &str = "a_stopped_process_is_alive_and_loses_only_what_the_ring_overwrote";
    const DEPTH: u64 = 8;
    let topic = |node: &Node, name: &str| node.topic::<Large>(name).unwrap().depth(DEPTH);
    if let Some(role) = role() {
        let node = settings(dir_of(&role), "actor").open().unwrap();
        let publisher = topic(&node, "/out").publisher().unwrap();
        let mut subscriber = topic(&node, "/in").subscriber().unwrap();
        say(&format!("node {}", node.id()));
        await_cue("borrow");
        let held = subscriber.receive().unwrap().unwrap();
        assert!(held.is_borrowed());
        publisher.publish(&[1; 1000]).unwrap();
        say("borrow");
        await_cue("go on");
        assert!(held.iter().all(|word| *word == 1), "overwritten while stopped");
        let (mut got, mut lost) = (0, 0);
        while let Some(sample) = subscriber.receive().unwrap() {
            (got, lost) = (got + 1, lost + sample.lost_before());
            assert!(sample.iter().all(|word| *word == sample.seq() + 1));
        }
        assert_eq!((got, lost), (DEPTH, 100 - DEPTH));
        drop(held);
        publisher.publish(&[2; 1000]).unwrap();
        say("go on");
        listen();
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("stopped").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    let publisher = topic(&node, "/in").publisher().unwrap();
    let mut subscriber = topic(&node, "/out").subscriber().unwrap();
    let mut actor = Actor::start(TEST, "actor", &[text(&dir)]);
    let watch = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
    assert_eq!(publisher.subscribers().unwrap(), 1);
    publisher.publish(&[1; 1000]).unwrap();
    actor.cue("borrow");
    actor.signal(libc::SIGSTOP);
    let stat = format!("/proc/{}/stat", actor.pid());
    assert!(wait_until(LONG, || std::fs::read_to_string(&stat).unwrap().contains(") T ")));
    alive_at_every_look(&watch);
    for n in 0..100 {
        publisher.publish(&[n + 2; 1000]).unwrap();
    }
    let report = Domain::of(&settings(dir.path(), "")).unwrap().clean().unwrap();
    assert_eq!((report.live_nodes, report.node_files, report.topic_files), (2, 0, 0));
    assert_eq!(subscriber.receive().unwrap().unwrap()[0], 1, "sent before it was stopped");
    assert!(subscriber.receive_timeout(Duration::from_millis(20)).unwrap().is_none());
    let died = |e| matches!(e, Event::PublisherDied { .. } | Event::PublisherLeft(_));
    assert!(!std::iter::from_fn(|| subscriber.next_event()).any(died));
    actor.signal(libc::SIGCONT);
    actor.cue("go on");
    assert_eq!(subscriber.receive().unwrap().unwrap()[0], 2);
    actor.signal(libc::SIGSTOP);
    killed_and_told_at_once(&mut actor, watch);
    drop((publisher, subscriber, node));
    nothing_left(&dir);
}

#[test]
fn several_nodes_of_one_process_die_together_and_leave_alone() {
    const TEST: &str = "several_nodes_of_one_process_die_together_and_leave_alone";
    if let Some(role) = role() {
        let open = || settings(dir_of(&role), "actor").open().unwrap();
        let (leaver, stayers) = (open(), [open(), open(), open()]);
        let (a, b, c) = (stayers[0].id(), stayers[1].id(), stayers[2].id());
        say(&format!("{} {a} {b} {c}", leaver.id()));
        await_cue("one leaves");
        let copy = leaver.clone();
        drop(leaver);
        say("one leaves");
        await_cue("its last copy goes");
        drop(copy);
        say("its last copy goes");
        listen();
        drop(stayers);
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("several").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    let mut actor = Actor::start(TEST, "actor", &[text(&dir)]);
    let ids = actor.hear().unwrap();
    let id = |n: &str| NodeId::from_raw(n.parse().unwrap());
    let mut watches: Vec<_> = ids.split(' ').map(|n| node.watch(id(n)).unwrap()).collect();
    actor.cue("one leaves");
    watches.iter().for_each(alive_at_every_look);
    actor.cue("its last copy goes");
    assert!(watches.remove(0).wait(LONG));
    watches.iter().for_each(alive_at_every_look);
    actor.kill();
    assert!(watches.iter().all(|w| w.wait(LONG)));
    drop(node);
    nothing_left(&dir);
}

/// What a process holds: dropped in any order.
enum Part {
    Node(#[allow(dead_code)] Node),
    Publisher(#[allow(dead_code)] Box<Publisher<Large>>),
    Subscriber(#[allow(dead_code)] Box<Subscriber<Large>>),
    Sample(#[allow(dead_code)] outlive::Sample<Large>),
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let insert = |rest: Vec<usize>| {
        (0..n).map(move |at| {
            let mut all = rest.clone();
            all.insert(at, n - 1);
            all
        })
    };
    permutations(n - 1).into_iter().flat_map(insert).collect()
}

#[test]
fn parts_dropped_in_any_order_leave_nothing() {
    let _dog = watchdog("parts_dropped_in_any_order_leave_nothing");
    for order in permutations(4) {
        for nodes in [1, 2] {
            let dir = TempDomain::new("order").unwrap();
            let node = settings(dir.path(), "one").open().unwrap();
            let other =
                if nodes == 1 { node.clone() } else { settings(dir.path(), "two").open().unwrap() };
            let publisher = node.topic::<Large>("/t").unwrap().publisher().unwrap();
            let mut subscriber = other.topic::<Large>("/t").unwrap().subscriber().unwrap();
            publisher.publish(&[3; 1000]).unwrap();
            assert_eq!(publisher.subscribers().unwrap(), 1);
            let sample = subscriber.receive().unwrap().unwrap();
            assert!(sample.is_borrowed());
            drop(other);
            let mut parts = [
                Some(Part::Node(node)),
                Some(Part::Publisher(Box::new(publisher))),
                Some(Part::Subscriber(Box::new(subscriber))),
                Some(Part::Sample(sample)),
            ];
            for &i in &order {
                parts[i] = None;
                if let Some(Part::Sample(sample)) = &parts[3] {
                    assert!(sample.iter().all(|word| *word == 3));
                }
            }
            let left = (names(&dir, "nodes"), names(&dir, "topics"));
            assert_eq!(left, Default::default(), "order {order:?}, {nodes} nodes");
            nothing_left(&dir);
        }
    }
}

#[test]
fn a_node_that_is_not_there_cannot_be_watched() {
    let _dog = watchdog("a_node_that_is_not_there_cannot_be_watched");
    let dir = TempDomain::new("nobody").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    for ordinal in [0, 77, u64::from(u32::MAX), u64::MAX] {
        let e = node.watch(NodeId::from_raw(ordinal)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NotFound);
        assert!(e.object().ends_with(&format!("nodes/{ordinal}")), "{e}");
    }
    drop(node);
    nothing_left(&dir);
}
