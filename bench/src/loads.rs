//! Loads of whole programs: 10 MB of MessagePack decoded by eight, seven bytes as fast as it goes,
//! and a camera that somebody looks at from outside.
//!
//! Nine processes are more than there are cores here, so those sleep while they wait.

use std::hint::{black_box, spin_loop};
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::{Samples, Target, interleave};
use outlive::{Domain, MsgPack, Node, Result, Subscriber};
use serde::{Deserialize, Serialize};

use super::pair::{Peer, SharedMap};
use super::raw::{futex_wait, futex_wake};
use super::report::{Row, Unit};
use super::scratch::TempRoot;
use super::topic::same;
use super::{RING_SLOTS, raw, ticks};

const SUBSCRIBERS: usize = 8;
const DEPTH: usize = 4;
/// Of one message, as it travels.
const BYTES: usize = 10_000_000;
/// What MessagePack adds to the data: a map of two, its keys, a number and a length.
const ENVELOPE_BYTES: usize = 24;
/// Numbers from here on take nine bytes.
const FIRST: u64 = 1 << 32;
/// Messages before the clock runs: pages and sleepers warm up.
const WARM: u64 = 6;
const RUN: Duration = Duration::from_millis(400);
/// Longest sleep; who sleeps that long has lost its peer.
const NAP: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
struct Block {
    seq: u64,
    #[serde(with = "serde_bytes")]
    data: Vec<u8>,
}

/// One publisher, eight sleepers on both cores. Messages per second.
struct Fan<'a> {
    cores: Cores,
    words: &'a SharedMap,
}

impl Fan<'_> {
    /// `receive(i)` sets subscriber `i` up and returns what takes one message, number given, and
    /// says whether it was right, or `None` when none came in time. `send` sends a message.
    fn run<R: FnMut(u64) -> Option<bool>>(
        &self,
        receive: impl Fn() -> Result<R>,
        mut send: impl FnMut(u64) -> Result<()>,
    ) -> Result<Samples> {
        let [attached, received, wrong] = self.words.words(0);
        let mut peers = Vec::new();
        for i in 0..SUBSCRIBERS {
            let cpu = if i % 2 == 0 { self.cores.ours } else { self.cores.peers };
            peers.push(Peer::spawn(cpu, || {
                let run = || -> Result<std::convert::Infallible> {
                    let mut receive = receive()?;
                    attached.fetch_add(1, Release);
                    let mut next = 0;
                    // Until it is killed.
                    loop {
                        if let Some(right) = receive(next) {
                            wrong.fetch_add(u64::from(!right), Relaxed);
                            received.fetch_add(1, Release);
                            next += 1;
                        }
                    }
                };
                let Err(error) = run();
                eprintln!("outlive-bench: {error}");
            })?);
        }
        let until = |met: &dyn Fn() -> bool| {
            while !met() && !peers.iter().any(Peer::has_ended) {
                std::thread::sleep(Duration::from_micros(200));
            }
        };
        until(&|| attached.load(Acquire) == SUBSCRIBERS as u64);
        let (mut sent, mut start) = (0, Instant::now());
        while sent <= WARM || start.elapsed() < RUN {
            send(sent)?;
            sent += 1;
            if sent == WARM {
                start = Instant::now();
            }
        }
        let all = sent * SUBSCRIBERS as u64;
        let late = Instant::now();
        while received.load(Acquire) < all && late.elapsed() < NAP * 2 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let rate = (sent - WARM) as f64 / start.elapsed().as_secs_f64();
        same(received.load(Acquire) == all && wrong.load(Relaxed) == 0)?;
        Ok(Samples::new(vec![rate]))
    }
}

/// The limit: bytes copied into shared memory once, and out of it by each.
fn raw_copies(cores: Cores) -> Result<Samples> {
    let words = SharedMap::new(8192)?;
    let buffers = SharedMap::new(DEPTH * BYTES)?;
    let head = words.futex(4096);
    let left = |n: u64| words.futex(4160 + 64 * (n as usize % DEPTH));
    let at = |n: u64| buffers.at(n as usize % DEPTH * BYTES, BYTES);
    let fan = Fan { cores, words: &words };
    let mut source = vec![3u8; BYTES];
    let receive = || {
        let mut own = vec![1u8; BYTES];
        Ok(move |n: u64| {
            let seen = head.load(Acquire);
            if u64::from(seen) <= n {
                futex_wait(head, seen);
                return None;
            }
            // SAFETY: in bounds by `at`; head says that it is complete, and it rests until all
            // eight are through.
            unsafe { ptr::copy_nonoverlapping(at(n), own.as_mut_ptr(), BYTES) };
            if left(n).fetch_sub(1, Release) == 1 {
                futex_wake(left(n), 1);
            }
            Some(black_box(&own)[..8] == n.to_le_bytes())
        })
    };
    let send = |n: u64| {
        loop {
            let busy = left(n).load(Acquire);
            if busy == 0 {
                break;
            }
            futex_wait(left(n), busy);
        }
        source[..8].copy_from_slice(&n.to_le_bytes());
        // SAFETY: in bounds by `at`; nobody reads it, as just seen.
        unsafe { ptr::copy_nonoverlapping(source.as_ptr(), at(n), BYTES) };
        left(n).store(SUBSCRIBERS as u32, Relaxed);
        head.store(n as u32 + 1, Release);
        futex_wake(head, i32::MAX);
        Ok(())
    };
    fan.run(receive, send)
}

/// The same as MessagePack over a topic with reliable subscribers, each decoding into values of
/// its own.
fn decoded_by_eight(cores: Cores) -> Result<Samples> {
    let words = SharedMap::new(8192)?;
    let root = TempRoot::new();
    let open = |name: &str| {
        let node = Node::builder().root(&root.0).name(name).open()?;
        Ok::<_, outlive::Error>(node.msgpack::<Block>("/blocks")?.depth(DEPTH as u64))
    };
    let receive = || {
        let mut subscriber: Subscriber<MsgPack<Block>> =
            open("peer")?.reliable(true).subscriber()?;
        Ok(move |n: u64| {
            let block = subscriber.receive_value_timeout(Duration::from_millis(500)).ok()??;
            let ends = [block.data[0], block.data[block.data.len() - 1]];
            Some(block.seq == FIRST + n && ends == [n as u8; 2])
        })
    };
    // Opened by the first message: the subscribers are there then.
    let mut publisher = None;
    let mut block = Block { seq: FIRST, data: vec![3; BYTES - ENVELOPE_BYTES] };
    let send = |n: u64| {
        if publisher.is_none() {
            same(outlive::msgpack::encode(&block)?.len() == BYTES)?;
            publisher = Some(open("bench")?.reliable_timeout(NAP).publisher()?);
        }
        block.seq = FIRST + n;
        let last = block.data.len() - 1;
        (block.data[0], block.data[last]) = (n as u8, n as u8);
        publisher.as_ref().map_or(Ok(()), |p| p.publish_value(&block).map(drop))
    };
    Fan { cores, words: &words }.run(receive, send)
}

/// Streams `count` messages of seven bytes to a reliable subscriber. Messages per second.
fn seven_bytes(cores: Cores, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let root = TempRoot::new();
    let map = SharedMap::new(4096)?;
    let [ready, sum_seen] = map.words(0);
    let open = |name: &str| {
        let node = Node::builder().root(&root.0).name(name).open()?;
        Ok::<_, outlive::Error>(node.topic::<[u8; 7]>("/seven")?.depth(RING_SLOTS as u64))
    };
    let peer = Peer::spawn(cores.peers, || {
        let run = || -> Result<()> {
            let mut subscriber = open("peer")?.reliable(true).subscriber()?;
            ready.store(1, Release);
            let (mut seen, mut sum) = (0, 0u64);
            while seen < count {
                if let Some(sample) = subscriber.receive()? {
                    sum += u64::from(sample[6]);
                    seen += 1;
                } else {
                    spin_loop();
                }
            }
            sum_seen.store(sum, Relaxed);
            ready.store(2, Release);
            std::thread::sleep(NAP);
            Ok(())
        };
        if let Err(error) = run() {
            eprintln!("outlive-bench: {error}");
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let publisher = open("bench")?.reliable_timeout(NAP).publisher()?;
    let start = Instant::now();
    for i in 0..count {
        publisher.publish(black_box(&[i as u8; 7]))?;
    }
    peer.spin_until(|| ready.load(Acquire) == 2)?;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let sum: u64 = (0..count).map(|i| u64::from(i as u8)).sum();
    same(sum_seen.load(Relaxed) == sum)?;
    Ok(Samples::new(vec![rate]))
}

/// What a publish of 6 MB takes, while another process wakes every 10 ms and, with `looks`, counts
/// as `topic hz` does. ns.
fn looked_at(cores: Cores, looks: bool, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let root = TempRoot::new();
    let map = SharedMap::new(4096)?;
    let [seen] = map.words(0);
    let settings = Node::builder().root(&root.0).name("bench");
    let node = settings.clone().open()?;
    let publisher = node.topic::<[u8]>("/camera")?.depth(DEPTH as u64).publisher()?;
    let domain = Domain::of(&settings)?;
    let frame = vec![3u8; 6_000_000];
    publisher.publish(&frame)?;
    let peer = Peer::spawn(cores.peers, || {
        loop {
            let found = looks.then(|| domain.find_topic("/camera").ok().flatten()).flatten();
            seen.store(found.map_or(1, |t| 1 + t.publishers[0].messages), Release);
            std::thread::sleep(Duration::from_millis(10));
        }
    })?;
    peer.spin_until(|| seen.load(Acquire) > 0)?;
    let mut took = Vec::new();
    for _ in 0..count {
        let start = ticks::now();
        publisher.publish(black_box(&frame))?;
        took.push(ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick());
    }
    same(!looks || seen.load(Acquire) > 1)?;
    Ok(Samples::after_warm_up(took))
}

/// The rows, and what to say beside them.
pub(super) fn rows(cores: Cores, rounds: usize, samples: u64) -> Result<(Vec<Row>, Vec<String>)> {
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    let c = interleave(rounds, || raw_copies(cores), || decoded_by_eight(cores))?;
    let name = "topic 10 MB to 8, MessagePack";
    let target = Target::AtLeast(0.9);
    rows.push(Row::compared(name, Unit::PerSecond, "copied in, copied out", &c, target));
    if let Some((limit, ours)) = &c.pooled {
        notes.push(format!(
            "10,000,000 bytes of MessagePack to 8, decoded by each: {:.0} messages per second; \
             bytes copied in and out by as many {:.0}, on the machine of the design 165 to 224.",
            ours.median(),
            limit.median()
        ));
    }
    let count = samples * 100;
    let ring = || raw::ring::<1>(cores, RING_SLOTS, count);
    let c = interleave(rounds, ring, || seven_bytes(cores, count))?;
    let name = "topic 7 B stream, reliable";
    rows.push(Row::compared(name, Unit::PerSecond, "raw ring, 8 B", &c, Target::None));
    if let Some((_, ours)) = &c.pooled {
        let per_ms = ours.median() / 1e3;
        notes.push(format!("7 bytes, 1 to 1, none lost: {per_ms:.0} messages per millisecond."));
    }
    let looks = (samples / 20).clamp(20, 200);
    let c =
        interleave(rounds, || looked_at(cores, false, looks), || looked_at(cores, true, looks))?;
    let name = "publish 6 MB, hz counting at 100 Hz";
    rows.push(Row::compared(name, Unit::Ns, "nobody counting", &c, Target::AtMost(1.05)));
    Ok((rows, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short runs of what is measured; each compares what arrives.
    #[test]
    fn every_load_can_be_run() -> Result<()> {
        let Ok(cores) = Cores::first_two() else {
            return Ok(());
        };
        for samples in [
            raw_copies(cores)?,
            decoded_by_eight(cores)?,
            seven_bytes(cores, 10_000)?,
            looked_at(cores, true, 30)?,
        ] {
            assert!(samples.median() > 0.0);
        }
        Ok(())
    }
}
