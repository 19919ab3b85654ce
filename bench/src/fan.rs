//! One publisher, eight subscribers, 10 MB messages handed over without a copy.
//!
//! There are more busy processes than cores, so both sides yield while they wait.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use measure::cores::Cores;
use measure::stats::Samples;
use outlive::{Node, Result};

use super::pair::{Peer, SharedMap};
use super::scratch::TempRoot;
use super::topic::same;

const SUBSCRIBERS: usize = 8;
const DEPTH: u64 = 4;
/// Whole cache lines, whole words.
const BYTES: usize = 10_000_000 / 64 * 64;
const RUN: Duration = Duration::from_millis(300);
const STOP: u64 = u64::MAX;

/// Spins a little, then lets others run.
fn relax(tries: &mut u32) {
    *tries += 1;
    if *tries % 64 == 0 { std::thread::yield_now() } else { spin_loop() }
}

/// The limit: buffers, a counter, and a cursor for each subscriber. Messages per second.
pub(super) fn raw(cores: Cores) -> Result<Samples> {
    let buffers = SharedMap::new(BYTES * DEPTH as usize)?;
    let words = SharedMap::new(8192)?;
    let [head, attached] = words.words(0);
    let cursor = |i: usize| &words.words::<1>(1024 + 128 * i)[0];
    let first_word = |n: u64| &buffers.words::<1>((n % DEPTH) as usize * BYTES)[0];
    let last_word = |n: u64| &buffers.words::<1>((n % DEPTH) as usize * BYTES + BYTES - 8)[0];
    let mut peers = Vec::new();
    for i in 0..SUBSCRIBERS {
        let cpu = if i % 2 == 0 { cores.ours } else { cores.peers };
        peers.push(Peer::spawn(cpu, || {
            attached.fetch_add(1, Release);
            let (mut seen, mut tries) = (0, 0);
            loop {
                let sent = head.load(Acquire);
                if sent == STOP {
                    break;
                }
                if sent == seen {
                    relax(&mut tries);
                }
                while seen < sent {
                    black_box((first_word(seen).load(Relaxed), last_word(seen).load(Relaxed)));
                    seen += 1;
                    cursor(i).store(seen, Release);
                }
            }
        })?);
    }
    let mut tries = 0;
    while attached.load(Acquire) < SUBSCRIBERS as u64 {
        relax(&mut tries);
    }
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < RUN {
        for i in 0..SUBSCRIBERS {
            while sent - cursor(i).load(Acquire) >= DEPTH {
                relax(&mut tries);
            }
        }
        first_word(sent).store(sent, Relaxed);
        sent += 1;
        head.store(sent, Release);
    }
    for i in 0..SUBSCRIBERS {
        while cursor(i).load(Acquire) < sent {
            relax(&mut tries);
        }
    }
    let rate = sent as f64 / start.elapsed().as_secs_f64();
    head.store(STOP, Release);
    Ok(Samples::new(vec![rate]))
}

/// The same over a topic with reliable subscribers. Messages per second.
pub(super) fn topic(cores: Cores) -> Result<Samples> {
    let root = TempRoot::new();
    let words = SharedMap::new(8192)?;
    let [attached, stop, received, torn] = words.words(0);
    let open = |name: &str| Node::builder().root(&root.0).name(name).open();
    let mut peers = Vec::new();
    for i in 0..SUBSCRIBERS {
        let cpu = if i % 2 == 0 { cores.ours } else { cores.peers };
        peers.push(Peer::spawn(cpu, || {
            let run = || -> Result<()> {
                let topic = open("peer")?.topic::<[u64]>("/fan")?.depth(DEPTH);
                let mut subscriber = topic.reliable(true).subscriber()?;
                attached.fetch_add(1, Release);
                let (mut next, mut tries) = (0, 0);
                loop {
                    if let Some(sample) = subscriber.receive()? {
                        black_box(sample[BYTES / 8 - 1]);
                        torn.fetch_add(u64::from(sample[0] != next), Relaxed);
                        next += 1;
                    } else if stop.load(Acquire) == 1 {
                        break;
                    } else {
                        relax(&mut tries);
                    }
                }
                received.fetch_add(next, Release);
                Ok(())
            };
            if let Err(error) = run() {
                eprintln!("outlive-bench: {error}");
            }
        })?);
    }
    let mut tries = 0;
    while attached.load(Acquire) < SUBSCRIBERS as u64 {
        relax(&mut tries);
    }
    let topic = open("bench")?.topic::<[u64]>("/fan")?.depth(DEPTH);
    let publisher = topic.reliable_timeout(Duration::from_secs(10)).publisher()?;
    let start = Instant::now();
    let mut sent = 0u64;
    while start.elapsed() < RUN {
        let mut loan = publisher.loan_slice(BYTES / 8)?;
        loan[0] = sent;
        loan.publish()?;
        sent += 1;
    }
    stop.store(1, Release);
    while received.load(Acquire) < sent * SUBSCRIBERS as u64 {
        if start.elapsed() > RUN * 20 {
            break;
        }
        relax(&mut tries);
    }
    let rate = sent as f64 / start.elapsed().as_secs_f64();
    same(received.load(Relaxed) == sent * SUBSCRIBERS as u64 && torn.load(Relaxed) == 0)?;
    Ok(Samples::new(vec![rate]))
}
