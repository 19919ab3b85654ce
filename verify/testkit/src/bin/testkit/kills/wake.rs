//! Eight processes sleep with a bound of 60 s; their publisher is killed between commit and wake,
//! again and again: all wake, have the message, and know of the death. They sleep in `receive`, in
//! a wait set over three topics of which only one has a publisher, the same with a foreign
//! descriptor in the list, and on the descriptor of the subscriber alone. 1,000 rounds with
//! `futex_waitv` and 200 of each other kind; quick: 100 and 30.
//!
//! A sleeper whose wake is lost sleeps to its bound, and the round fails. Between two looks at
//! everything it would sleep for an hour, so nothing but a wake ends its sleep early; without
//! `futex_waitv` its poll of the token does.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use outlive::topic::Event;
use outlive::{Descriptor, Node, Subscriber, WaitSet, internals, now_ns};
use testkit::crash::{Aim, aim, hook};
use testkit::process::{Child, shared_zeroes, sleeps, wait_until};
use testkit::{TempDomain, fork_child};
use zerocopy::FromZeros;

use crate::args::Quick;

const SLEEPERS: usize = 8;
const BOUND: Duration = Duration::from_secs(60);
const TOPIC: &str = "/wake";

/// What the processes tell each other; anonymous shared memory.
#[derive(FromZeros)]
#[repr(C)]
struct Board {
    /// Publisher deaths each sleeper has seen, and when it saw the last.
    deaths: [AtomicU64; SLEEPERS],
    when: [AtomicU64; SLEEPERS],
    /// Messages each sleeper has received.
    messages: [AtomicU64; SLEEPERS],
    /// Publishers each sleeper has attached.
    joined: [AtomicU64; SLEEPERS],
    /// Sleeps that ended at the bound.
    overslept: AtomicU64,
    /// The victim may publish; when it did.
    go: AtomicU64,
    published: AtomicU64,
}

/// How the sleepers sleep.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// In `receive_timeout`.
    Receive,
    /// In a wait set over three topics.
    Set,
    /// The same, with a foreign descriptor.
    Foreign,
    /// On the subscriber's own descriptor.
    Loop,
}

fn sleeper(root: &Path, board: &Board, me: usize, way: Way) -> outlive::Result<()> {
    let node = Node::builder().root(root).name("sleeper").open()?;
    let mut subscriber = node.topic::<u64>(TOPIC)?.subscriber()?;
    let mut quiet = [
        node.topic::<u64>("/quiet/a")?.subscriber()?,
        node.topic::<u64>("/quiet/b")?.subscriber()?,
    ];
    let (foreign, _other_end) = UnixStream::pair().expect("two sockets");
    let own = match way {
        Way::Loop => Some(subscriber.fd()?.try_clone_to_owned().expect("a descriptor")),
        _ => None,
    };
    let mut set = WaitSet::new();
    loop {
        // Before sleeping: only events that come during a wait end it.
        note(&mut subscriber, board, me);
        let start = now_ns();
        let message = match way {
            Way::Receive => subscriber.receive_timeout(BOUND)?,
            _ => subscriber.receive()?,
        };
        if message.is_some() {
            board.messages[me].fetch_add(1, Relaxed);
            continue;
        }
        drop(message);
        let [a, b] = &mut quiet;
        match (way, &own) {
            (Way::Set, _) => {
                set.wait(&mut [a, &mut subscriber, b], BOUND)?;
            }
            (Way::Foreign, _) => {
                let mut foreign = Descriptor::readable(&foreign);
                set.wait(&mut [a, &mut subscriber, b, &mut foreign], BOUND)?;
            }
            (_, Some(own)) => {
                set.wait(&mut [&mut Descriptor::readable(own)], BOUND)?;
            }
            _ => {}
        }
        if now_ns() - start >= BOUND.as_nanos() as u64 {
            board.overslept.fetch_add(1, Relaxed);
        }
    }
}

/// Counts what happened to publishers.
fn note(subscriber: &mut Subscriber<u64>, board: &Board, me: usize) {
    while let Some(event) = subscriber.next_event() {
        match event {
            Event::PublisherJoined(_) => {
                board.joined[me].fetch_add(1, Release);
            }
            Event::PublisherDied { .. } => {
                board.when[me].store(now_ns(), Relaxed);
                board.deaths[me].fetch_add(1, Release);
            }
            _ => {}
        }
    }
}

/// Joins, waits for the word, publishes and dies between commit and wake.
fn victim(root: &Path, board: &Board, round: u64) -> outlive::Result<()> {
    let node = Node::builder().root(root).name("victim").open()?;
    let publisher = node.topic::<u64>(TOPIC)?.publisher()?;
    while board.go.load(Acquire) != round {
        std::thread::sleep(Duration::from_micros(50));
    }
    aim(Aim::At("publish.before_wake".into(), 1));
    outlive::crash::set_hook(hook);
    board.published.store(now_ns(), Relaxed);
    publisher.publish(&round)?;
    Ok(())
}

fn all(words: &[AtomicU64], value: u64) -> bool {
    words.iter().all(|w| w.load(Acquire) == value)
}

/// One kill. Returns how long after the commit the last sleeper knew of the death, ns.
fn round(root: &Path, board: &Board, sleepers: &[Child], n: u64) -> Result<u64, String> {
    let mut victim = fork_child(|| i32::from(victim(root, board, n).is_err()))
        .map_err(|e| format!("no victim: {e}"))?;
    let limit = BOUND * 2;
    if !wait_until(limit, || all(&board.joined, n)) {
        return Err("not all sleepers found the publisher".into());
    }
    if !wait_until(limit, || sleepers.iter().all(|s| sleeps(s.pid()))) {
        return Err("not all sleepers sleep".into());
    }
    // Past the short first sleep.
    std::thread::sleep(Duration::from_micros(300));
    board.go.store(n, Release);
    let exit = victim.wait();
    if exit.success() {
        return Err("the victim was not killed between commit and wake".into());
    }
    if !wait_until(limit, || all(&board.deaths, n)) {
        return Err("not all sleepers know of the death".into());
    }
    if board.overslept.load(Relaxed) > 0 {
        return Err("a sleeper slept to its bound".into());
    }
    if !all(&board.messages, n) {
        return Err("a committed message did not reach all".into());
    }
    let last = board.when.iter().map(|w| w.load(Relaxed)).max().unwrap_or(0);
    Ok(last.saturating_sub(board.published.load(Relaxed)))
}

/// `rounds` kills with one way of waiting; returns whether all was well.
fn series(name: &str, way: Way, waitv: bool, rounds: u64) -> bool {
    let temp = TempDomain::new("wake").expect("a directory on the RAM disk");
    let root = temp.path().join("root");
    let board: &Board = shared_zeroes();
    let start = |me| {
        let body = || {
            internals::set_waitv(waitv);
            internals::set_slice_ns_max(3_600_000_000_000);
            i32::from(sleeper(&root, board, me, way).is_err())
        };
        fork_child(body).expect("a sleeper")
    };
    let sleepers: Vec<Child> = (0..SLEEPERS).map(start).collect();
    let mut took = Vec::new();
    for n in 1..=rounds {
        match round(&root, board, &sleepers, n) {
            Ok(ns) => took.push(ns),
            Err(what) => {
                println!("wake: {name}: round {n} of {rounds}: {what}");
                return false;
            }
        }
    }
    took.sort_unstable();
    let at = |q: f64| took[((took.len() - 1) as f64 * q) as usize] as f64 / 1e6;
    println!(
        "wake: {name}: {rounds} kills between commit and wake, {SLEEPERS} sleepers each, \
         0 overslept; last of them awake after p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    true
}

pub(crate) fn run(args: Quick) -> ExitCode {
    let (with, without) = if args.quick { (100, 30) } else { (1000, 200) };
    let all = [
        series("futex_waitv", Way::Receive, true, with),
        series("without futex_waitv", Way::Receive, false, without),
        series("wait set", Way::Set, true, without),
        series("wait set without futex_waitv", Way::Set, false, without),
        series("wait set with a descriptor", Way::Foreign, true, without),
        series("descriptor", Way::Loop, true, without),
    ];
    if all == [true; 6] { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
