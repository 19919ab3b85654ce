//! A forked child is not the node: its inherited handles refuse, do no harm, keep nobody alive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlive::Deadline;
use outlive::topic::Event;
use outlive::{
    Domain, ErrorKind, Loan, Node, NodeBuilder, NodeId, Publisher, Result, Sample, Subscriber,
};
use testkit::actor::{await_cue, listen, say};
use testkit::spawn::Role;
use testkit::{Actor, TempDomain, Watchdog, fork_child, role};

const LONG: Duration = Duration::from_secs(3600);
const DEPTH: u64 = 4;
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

fn watchdog(test: &str) -> Watchdog {
    outlive::internals::set_slice_ns_max(LONG.as_nanos() as u64);
    Watchdog::start(test, Duration::from_secs(120))
}

#[track_caller]
fn nothing_left(dir: &TempDomain) {
    let domain = Domain::of(&settings(dir.path(), "clean")).unwrap();
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    domain.clean().unwrap();
    assert_eq!(dir.listing(), Vec::<String>::new());
}

fn publisher(node: &Node, topic: &str) -> Publisher<Large> {
    let topic = node.topic::<Large>(topic).unwrap().depth(DEPTH);
    // Room for the ring, some borrows and loans, not for a leak.
    topic.memory_bytes_max(24 * 8192).publisher().unwrap()
}

fn subscriber(node: &Node, topic: &str) -> Subscriber<Large> {
    node.topic::<Large>(topic).unwrap().depth(DEPTH).borrows(4).subscriber().unwrap()
}

#[track_caller]
fn refused<T>(result: Result<T>) {
    match result {
        Ok(_) => panic!("a handle of the parent worked"),
        Err(e) => assert_eq!(e.kind(), ErrorKind::ForkedChild, "{e}"),
    }
}

/// Every entry point of inherited handles.
fn all_refuse(
    node: &Node,
    out: &Publisher<Large>,
    small: &Publisher<u64>,
    sub: &mut Subscriber<Large>,
) {
    refused(node.topic::<u64>("/new").unwrap().publisher());
    refused(node.topic::<u64>("/new").unwrap().subscriber());
    refused(node.topic::<[u8]>("/in").unwrap().subscriber_of_any_type());
    refused(node.watch(node.id()));
    refused(out.publish(&[9; 1000]));
    refused(out.loan());
    refused(out.subscribers());
    refused(small.publish(&9));
    refused(sub.receive());
    refused(sub.receive_timeout(LONG));
    refused(sub.receive_until(Deadline::NEVER));
    refused(sub.copy_to(&mut [0; 1000]));
    refused(sub.latest());
    refused(sub.receive_in_order());
    refused(sub.drain().next().unwrap());
    assert_eq!(sub.drain().take(1000).count(), 1, "it says so once, not for ever");
}

/// What is held across the fork, each to be taken out in the child: the parent's memory is another.
struct Held<'p> {
    loan: Option<Loan<'p, Large>>,
    samples: Option<[Sample<Large>; 2]>,
    subscriber: Option<Subscriber<Large>>,
    small: Option<Publisher<u64>>,
    node: Option<Node>,
}

fn child_with(held: &mut Held<'_>, out: &Publisher<Large>, dir: &Path) {
    let node = held.node.take().unwrap();
    let mut subscriber = held.subscriber.take().unwrap();
    let small = held.small.take().unwrap();
    all_refuse(&node, out, &small, &mut subscriber);
    // A node of its own works.
    let own = settings(dir, "child").open().unwrap();
    let mut own_sub = self::subscriber(&own, "/child");
    let own_out = publisher(&own, "/child");
    own_out.publish(&[1; 1000]).unwrap();
    assert_eq!(own_sub.receive().unwrap().unwrap()[0], 1);
    assert!(own.watch(node.id()).unwrap().is_alive());
    // What was borrowed before may be read; dropping it means nothing.
    let samples = held.samples.take().unwrap();
    assert!(samples.iter().all(|sample| sample.iter().all(|word| *word == 0)));
    refused(held.loan.take().unwrap().publish());
    drop((samples, subscriber, small, node));
    drop((own_out, own_sub, own));
}

/// Forks with all of it in hand and goes on.
fn fork_and_look<'p>(held: &mut Held<'p>, out: &'p Publisher<Large>, dir: &Path) {
    let mut loan = out.loan().unwrap();
    loan.fill(5);
    held.loan = Some(loan);
    say("borrow");
    // From here on there is a message for the subscriber, and nothing to attend to.
    await_cue("fork");
    let mut child = fork_child(|| {
        child_with(held, out, dir);
        0
    })
    .unwrap();
    assert!(child.wait().success());
    // A child that none of the C library's handlers has told.
    assert_eq!(raw_clone(|| child_with(held, out, dir)), 0);
    say("fork");
    await_cue("look");
    let samples = held.samples.take().unwrap();
    assert!(samples.iter().all(|s| s.iter().all(|word| *word == 0)), "overwritten");
    let subscriber = held.subscriber.as_mut().unwrap();
    let next = subscriber.receive().unwrap().unwrap();
    assert_eq!(next[0], next.seq(), "the cursor is where it was");
    assert_eq!(subscriber.borrowed(), 2);
    let loan = held.loan.take().unwrap();
    assert!(loan.iter().all(|word| *word == 5));
    loan.publish().unwrap();
    held.small.as_ref().unwrap().publish(&1).unwrap();
    drop((next, samples));
    say("look");
}

fn parent(role: &Role) {
    let dir = dir_of(role);
    let node = settings(dir, "actor").open().unwrap();
    let out = publisher(&node, "/out");
    let mut subscriber = subscriber(&node, "/in");
    let mut late = self::subscriber(&node, "/in");
    let small = node.topic::<u64>("/small").unwrap().publisher().unwrap();
    say(&format!("node {}", node.id()));
    await_cue("borrow");
    let samples = [subscriber.receive().unwrap().unwrap(), late.receive().unwrap().unwrap()];
    assert!(samples.iter().all(Sample::is_borrowed));
    // One whose subscriber is gone.
    drop(late);
    let mut held = Held {
        loan: None,
        samples: Some(samples),
        subscriber: Some(subscriber),
        small: Some(small),
        node: Some(node),
    };
    fork_and_look(&mut held, &out, dir);
    // A child that lives on and answers for its parent.
    await_cue("fork for good");
    let pid = fork_for_good(|| {
        drop((held.small.take(), held.subscriber.take()));
        await_cue("answer");
        refused(out.publish(&[1; 1000]));
        refused(held.node.as_ref().unwrap().watch(NodeId::from_raw(1)));
        drop(held.node.take());
        let own = settings(dir, "orphan").open().unwrap();
        say(&format!("node {}", own.id()));
        listen();
    });
    say(&format!("child {pid}"));
    loop {
        std::thread::sleep(LONG);
    }
}

/// Runs `body` in a child made by the system call alone; its exit code, 101 after a panic.
fn raw_clone(body: impl FnOnce()) -> i32 {
    // SAFETY: a fork without handlers. No other thread of this process takes a lock of the C
    // library meanwhile, so the child may run `body`; it leaves with _exit, and is waited for.
    unsafe {
        let flags = libc::SIGCHLD as usize;
        let pid = libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) as i32;
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let code = catch_unwind(AssertUnwindSafe(body)).map_or(101, |()| 0);
            libc::_exit(code);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
    }
}

/// A child that survives its parent.
fn fork_for_good(body: impl FnOnce()) -> i32 {
    // SAFETY: the child runs `body` and leaves with _exit; no other thread of the parent holds a
    // lock that the body needs.
    match unsafe { libc::fork() } {
        0 => {
            let code = catch_unwind(AssertUnwindSafe(body)).map_or(101, |()| 0);
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(code) }
        }
        pid => pid,
    }
}

#[test]
fn inherited_handles_refuse_harm_nothing_and_keep_nobody_alive() {
    const TEST: &str = "inherited_handles_refuse_harm_nothing_and_keep_nobody_alive";
    if let Some(role) = role() {
        return parent(&role);
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("fork").unwrap();
    let node = settings(dir.path(), "observer").open().unwrap();
    let publisher = publisher(&node, "/in");
    let mut small = node.topic::<u64>("/small").unwrap().subscriber().unwrap();
    let mut out = subscriber(&node, "/out");
    let mut actor = Actor::start(TEST, "parent", &[text(&dir)]);
    let watch = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
    assert_eq!(publisher.subscribers().unwrap(), 2);
    publisher.publish(&[0; 1000]).unwrap();
    actor.cue("borrow");
    for n in 1..3 {
        publisher.publish(&[n; 1000]).unwrap();
    }
    let files = dir.listing();
    actor.cue("fork");
    assert!(watch.is_alive());
    let left: Vec<_> = dir.listing().into_iter().filter(|f| !f.contains("topics/child")).collect();
    assert_eq!(left, files, "the child touched files of its parent");
    // Every chunk that is free is written again: the borrowed ones are not.
    for n in 3..100 {
        publisher.publish(&[n; 1000]).unwrap();
    }
    actor.cue("look");
    assert_eq!(*small.receive().unwrap().unwrap(), 1);
    assert_eq!(out.receive().unwrap().unwrap()[7], 5);
    // Both borrows are over, in the parent alone.
    for n in 0..100 {
        publisher.publish(&[n; 1000]).unwrap();
    }
    actor.tell("fork for good");
    let child = actor.expect_number("child");
    assert!(!watch.wait(Duration::from_millis(5)));
    actor.signal(libc::SIGKILL);
    assert!(watch.wait(LONG) && !watch.is_alive(), "told although a child lives on");
    assert!(Path::new(&format!("/proc/{child}")).exists());
    for subscriber in [&mut out, &mut self::subscriber(&node, "/out")] {
        assert!(subscriber.receive().unwrap().is_none());
    }
    let died = |e| matches!(e, Event::PublisherDied { unfinished: false, .. });
    assert!(small.receive().unwrap().is_none());
    assert!(std::iter::from_fn(|| small.next_event()).any(died));
    let cleaned = Domain::of(&settings(dir.path(), "")).unwrap().clean().unwrap();
    assert_eq!((cleaned.node_files, cleaned.live_nodes), (1, 1), "{cleaned:?}");
    actor.tell("answer");
    let orphan = node.watch(NodeId::from_raw(actor.expect_number("node"))).unwrap();
    assert!(orphan.is_alive());
    actor.dismiss();
    assert!(orphan.wait(LONG), "the orphan ends with the test");
    drop((publisher, small, out, node));
    nothing_left(&dir);
}

#[test]
fn children_of_a_busy_process_work_and_hold_none_of_its_locks() {
    const TEST: &str = "children_of_a_busy_process_work_and_hold_none_of_its_locks";
    if let Some(role) = role() {
        let dir = dir_of(&role).to_path_buf();
        let over = AtomicBool::new(false);
        let mut children = Vec::new();
        std::thread::scope(|scope| {
            // Domain lock, directory locks, the list of parked subscribers: always held by one.
            for busy in 0..2 {
                let (over, dir) = (&over, &dir);
                scope.spawn(move || {
                    let node = settings(dir, "busy").open().unwrap();
                    let publisher = publisher(&node, "/busy");
                    while !over.load(Ordering::Relaxed) {
                        let other = settings(dir, "other").open().unwrap();
                        let mut subscriber = subscriber(&other, "/busy");
                        publisher.publish(&[busy; 1000]).unwrap();
                        let sample = subscriber.receive().unwrap();
                        drop(subscriber);
                        drop(sample);
                    }
                });
            }
            let fork = |n| {
                let own = format!("/child/{n}");
                let body = || {
                    let node = settings(&dir, "child").open().unwrap();
                    let publisher = publisher(&node, &own);
                    let mut sub = subscriber(&node, &own);
                    publisher.publish(&[n; 1000]).unwrap();
                    assert_eq!(sub.receive().unwrap().unwrap()[0], n);
                    drop((publisher, sub, node));
                    say("worked");
                };
                fork_child(|| {
                    body();
                    // Lives on, with whatever it inherited.
                    loop {
                        std::thread::sleep(LONG);
                    }
                })
                .unwrap()
            };
            children.extend((0..60).map(fork));
            over.store(true, Ordering::Relaxed);
        });
        say("forked");
        await_cue("open");
        assert!(children.iter_mut().all(|child| child.is_running()));
        drop(settings(&dir, "alone").open().unwrap());
        let domain = Domain::of(&settings(&dir, "")).unwrap();
        assert_eq!(domain.clean().unwrap().live_nodes, 0);
        say("open");
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("busy-fork").unwrap();
    let mut actor = Actor::start(TEST, "busy", &[text(&dir)]);
    let (mut worked, mut forked) = (0, false);
    while worked < 60 || !forked {
        match actor.hear().as_deref() {
            Some("worked") => worked += 1,
            Some("forked") => forked = true,
            other => panic!("{other:?}"),
        }
    }
    actor.cue("open");
    assert!(actor.wait().success());
    nothing_left(&dir);
}

/// The example `pyfork`, built beside this test; built now if only this test was asked for.
fn python_library() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let profile = exe.parent().and_then(Path::parent).unwrap();
    let library = profile.join("examples/libpyfork.so");
    if !library.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--offline", "-p", "testkit", "--example", "pyfork", "--target-dir"]);
        cargo.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    library
}

#[test]
fn python_forks_and_its_children_are_refused_too() {
    const TEST: &str = "python_forks_and_its_children_are_refused_too";
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: {TEST}: no python3");
        return;
    }
    let _dog = watchdog(TEST);
    let dir = TempDomain::new("python").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pyfork.py");
    let mut python = testkit::spawn::spawn_program("python3");
    let output = python.arg(script).arg(python_library()).arg(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{complained}");
    assert_eq!(said.lines().last(), Some("all is well"), "{said}\n{complained}");
    nothing_left(&dir);
}
