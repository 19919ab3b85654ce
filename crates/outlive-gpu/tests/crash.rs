//! What the death of either side does, while a device copies; against a driver of host memory whose
//! copies take their time and go on after the program's death.

mod common;

use std::time::Duration;

use common::{configure, library, pattern};
use outlive::Node;
use outlive::topic::{Event, segments};
use outlive_gpu::{Cuda, LoanExt, SampleExt, Stream};
use testkit::actor::{Actor, await_cue, say};
use testkit::process::wait_until;
use testkit::role;
use testkit::temp::TempDomain;

const BYTES: usize = 200_000;
const LONG: Duration = Duration::from_secs(20);

fn node(dir: &str) -> Node {
    Node::builder().root(dir).open().unwrap()
}

/// Whether the driver's process is there that goes on with the copy whatever happens to us.
fn driver_copies() -> bool {
    // SAFETY: an all-zero siginfo is valid, and only written to; no child is reaped.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &mut info, options) == 0
    }
}

/// The part of another process; returns in the first one.
fn play() -> Option<()> {
    let role = role()?;
    let dir = &role.args[0];
    configure(&role.args[1]);
    let cuda = Cuda::open_library(library(), 0).unwrap();
    let node = node(dir);
    match role.name.as_str() {
        "writer" => {
            let publisher = node.topic::<[u8]>("/t").unwrap().publisher().unwrap();
            say("open");
            await_cue("go");
            for seed in 1..=2 {
                let from = cuda.upload(&pattern(seed, BYTES)).unwrap();
                let loan = publisher.loan_slice(BYTES).unwrap();
                // SAFETY: the buffer lives until the copy is done, or we are dead.
                let fill =
                    unsafe { loan.fill_from_device(&cuda, from.ptr(), Stream::DEFAULT) }.unwrap();
                if seed == 2 {
                    let when = &role.args[2];
                    if when == "copied" {
                        fill.wait(LONG).unwrap();
                    } else {
                        assert!(wait_until(LONG, driver_copies));
                    }
                    say("begun");
                    await_cue("never");
                }
                fill.publish().unwrap();
                configure(&role.args[3]);
            }
        }
        "reader" => {
            let mut subscriber = node.topic::<[u8]>("/t").unwrap().subscriber().unwrap();
            let to = cuda.alloc(BYTES).unwrap();
            say("open");
            let mut takes = Vec::new();
            while takes.len() < 2 {
                let sample = subscriber.receive_timeout(LONG).unwrap();
                let Some(sample) = sample else { continue };
                assert!(sample.is_borrowed());
                // SAFETY: the buffer lives until the copy is done, or we are dead.
                takes.push(
                    unsafe { sample.copy_to_device(&cuda, to.ptr(), Stream::DEFAULT) }.unwrap(),
                );
            }
            say("reading");
            await_cue("never");
        }
        "sprayer" => {
            let publisher = node.topic::<[u8]>("/t").unwrap().publisher().unwrap();
            say("open");
            for seed in 0u64.. {
                let from = cuda.upload(&vec![seed as u8; BYTES]).unwrap();
                let loan = publisher.loan_slice(BYTES).unwrap();
                // SAFETY: as above.
                unsafe { loan.fill_from_device(&cuda, from.ptr(), Stream::DEFAULT) }
                    .unwrap()
                    .publish()
                    .unwrap();
            }
        }
        other => panic!("no role {other}"),
    }
    Some(())
}

/// A writer is killed with a copy under way, or done and not committed: nobody sees the message,
/// and what the device writes after the death lands in the dead writer's file, nowhere else.
fn a_writer_dies(test: &str, when: &str) {
    let dir = TempDomain::new("gpu-writer").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let node = node(&path);
    let mut subscriber = node.topic::<[u8]>("/t").unwrap().subscriber().unwrap();
    let slow = "delay_us=400000 engine=process";
    let second = if when == "copied" { "engine=thread" } else { slow };
    let mut writer = Actor::start(test, "writer", &[&path, "engine=process", when, second]);
    writer.expect("open");
    assert!(wait_until(LONG, || subscriber.receive().unwrap().is_none()
        && !subscriber.publishers().is_empty()));
    writer.tell("go");
    let first = subscriber.receive_timeout(LONG).unwrap();
    let first = match first {
        Some(first) => first,
        None => subscriber.receive_timeout(LONG).unwrap().unwrap(),
    };
    writer.expect("begun");
    writer.kill();
    // The news of the death, and not the message.
    let mut died = false;
    assert!(wait_until(LONG, || {
        assert!(subscriber.receive().unwrap().is_none());
        while let Some(event) = subscriber.next_event() {
            died |= matches!(event, Event::PublisherDied { lost: 0, .. });
        }
        died
    }));
    // The living go on at once, in memory of their own.
    let publisher = node.topic::<[u8]>("/t").unwrap().publisher().unwrap();
    let mut held = Vec::new();
    for seed in 10..14 {
        publisher.publish(&pattern(seed, BYTES)).unwrap();
        held.push((seed, subscriber.receive_timeout(LONG).unwrap().unwrap()));
    }
    assert!(first.is_borrowed());
    {
        let segment = segments::segment_at(first.as_ptr().addr()).unwrap();
        let mine = segments::segment_at(held[0].1.as_ptr().addr()).unwrap();
        assert_ne!(segment, mine);
        let late = pattern(2, BYTES);
        let tail = &late[BYTES - 1000..];
        // SAFETY: mapped for as long as `first` is held; read once more after each look, since a
        // process of the driver's may write.
        let bytes = || unsafe {
            let start = std::ptr::with_exposed_provenance::<u8>(segment.start());
            std::slice::from_raw_parts(start, segment.bytes()).to_vec()
        };
        let landed = wait_until(LONG, || bytes().windows(1000).any(|w| w == tail));
        assert!(landed, "the copy that outlived its writer ends in the writer's own file");
    }
    assert!(*first == *pattern(1, BYTES));
    for (seed, sample) in &held {
        assert!(**sample == *pattern(*seed, BYTES), "{seed}");
    }
}

#[test]
fn a_writer_killed_in_mid_copy_sends_nothing_and_its_late_bytes_hurt_nobody() {
    if play().is_none() {
        a_writer_dies(
            "a_writer_killed_in_mid_copy_sends_nothing_and_its_late_bytes_hurt_nobody",
            "mid",
        );
    }
}

#[test]
fn a_writer_killed_between_copy_and_commit_sends_nothing() {
    if play().is_none() {
        a_writer_dies("a_writer_killed_between_copy_and_commit_sends_nothing", "copied");
    }
}

#[test]
fn what_a_dead_readers_device_was_reading_comes_back() {
    if play().is_some() {
        return;
    }
    let dir = TempDomain::new("gpu-reader").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let node = node(&path);
    // Room for the ring's two entries, the reader's two and little more.
    let topic = node.topic::<[u8]>("/t").unwrap().depth(2);
    let publisher = topic.memory_bytes_max(6 * BYTES as u64 + 20_000).publisher().unwrap();
    let test = "what_a_dead_readers_device_was_reading_comes_back";
    let mut reader = Actor::start(test, "reader", &[&path, "delay_us=60000000"]);
    reader.expect("open");
    assert!(wait_until(LONG, || publisher.subscribers().unwrap() == 1));
    let publish = |seed| publisher.publish(&pattern(seed, BYTES));
    publish(1).unwrap();
    publish(2).unwrap();
    reader.expect("reading");
    // It reads still: as many loans as there are chunks beside the four that are taken.
    let loans = || {
        let mut loans = Vec::new();
        while let Ok(loan) = publisher.loan_slice(BYTES) {
            loans.push(loan);
        }
        loans.len()
    };
    for seed in 3..8 {
        publish(seed).unwrap();
    }
    let while_it_reads = loans();
    reader.kill();
    assert!(wait_until(LONG, || publisher.subscribers().unwrap() == 0));
    assert_eq!(loans(), while_it_reads + 2, "both chunks are back");
    publish(9).unwrap();
}

#[test]
fn whatever_a_killed_writer_had_sent_is_whole() {
    let test = "whatever_a_killed_writer_had_sent_is_whole";
    if play().is_some() {
        return;
    }
    let rounds = std::env::var("OUTLIVE_GPU_KILLS").ok().and_then(|v| v.parse().ok()).unwrap_or(8);
    let dir = TempDomain::new("gpu-kills").unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let node = node(&path);
    let mut subscriber = node.topic::<[u8]>("/t").unwrap().subscriber().unwrap();
    let mut seen = 0;
    for round in 0..rounds {
        let settings = ["delay_us=3000 engine=process", "delay_us=3000"][round % 2];
        let mut writer = Actor::start(test, "sprayer", &[&path, settings]);
        writer.expect("open");
        let before = seen;
        let stop = 1 + round * 7 % 11;
        assert!(wait_until(LONG, || {
            while let Some(sample) = subscriber.receive().unwrap() {
                seen += 1;
                assert!(sample.iter().all(|b| *b == sample[0]), "torn");
            }
            seen - before >= stop
        }));
        std::thread::sleep(Duration::from_micros(400 * round as u64));
        writer.kill();
        assert!(wait_until(LONG, || {
            while let Some(sample) = subscriber.receive().unwrap() {
                assert!(sample.iter().all(|b| *b == sample[0]), "torn");
            }
            let mut events = std::iter::from_fn(|| subscriber.next_event());
            events.any(|e| matches!(e, Event::PublisherDied { .. }))
        }));
    }
    drop(subscriber);
    drop(node);
    let left = Node::builder().root(dir.path()).open().unwrap();
    drop(left);
}
