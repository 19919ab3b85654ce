//! Topics against the limit of the same run: what the library adds to a bare hand-over.
//!
//! A peer process echoes each message on a second topic; a way is half a round trip, as in `raw`.

use std::hint::{black_box, spin_loop};
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::{Error, ErrorKind, Node, Payload, Publisher, Result, Sample, Subscriber};

use super::pair::{Peer, SharedMap};
use super::raw::{read_all, round_trips};
use super::scratch::TempRoot;
use super::ticks;

/// Deep enough that nothing is overwritten while one message is under way.
const DEPTH: u64 = 16;

/// How the publishers of an echo send.
#[derive(Clone, Copy, Debug)]
pub(super) struct EchoOptions {
    pub(super) volatile: bool,
    pub(super) timestamps: bool,
}

/// As a publisher sends that is not told otherwise.
pub(super) const USUAL: EchoOptions = EchoOptions { volatile: false, timestamps: true };

/// One end of the echo: sends on one topic, receives on the other.
struct End<T: Payload + ?Sized> {
    to: Publisher<T>,
    from: Subscriber<T>,
}

impl<T: Payload + ?Sized> End<T> {
    fn open(root: &Path, name: &str, to: &str, from: &str, options: EchoOptions) -> Result<Self> {
        let node = Node::builder().root(root).name(name).open()?;
        let to = node.topic::<T>(to)?.depth(DEPTH);
        let to = to.volatile(options.volatile).timestamps(options.timestamps).publisher()?;
        let from = node.topic::<T>(from)?.depth(DEPTH).subscriber()?;
        Ok(Self { to, from })
    }

    #[inline]
    fn spin(&mut self) -> Result<Sample<T>> {
        loop {
            if let Some(sample) = self.from.receive()? {
                return Ok(sample);
            }
        }
    }
}

/// Runs `echo` in a peer process and `trip` here, `count` times, once both ends know each other.
fn echoed<T: Payload + ?Sized>(
    cores: Cores,
    options: EchoOptions,
    count: u64,
    mut echo: impl FnMut(&mut End<T>) -> Result<()>,
    mut trip: impl FnMut(&mut End<T>, u64) -> Result<()>,
) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let root = TempRoot::new();
    let map = SharedMap::new(4096)?;
    let [ready] = map.words(0);
    let peer = Peer::spawn(cores.peers, || {
        let mut run = || -> Result<()> {
            let mut end = End::open(&root.0, "peer", "/pong", "/ping", options)?;
            ready.store(1, Release);
            loop {
                echo(&mut end)?;
            }
        };
        if let Err(error) = run() {
            eprintln!("outlive-bench: {error}");
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let mut end = End::open(&root.0, "bench", "/ping", "/pong", options)?;
    round_trips(count, |i| {
        let start = ticks::now();
        trip(&mut end, i)?;
        Ok(ticks::now().wrapping_sub(start))
    })
}

/// A value of `W` words, copied in and copied out, one way.
pub(super) fn inline<const W: usize>(
    cores: Cores,
    options: EchoOptions,
    count: u64,
) -> Result<Samples> {
    echoed::<[u64; W]>(
        cores,
        options,
        count,
        |end| {
            let sample = end.spin()?;
            end.to.publish(&sample).map(drop)
        },
        |end, i| {
            end.to.publish(black_box(&[i; W]))?;
            let sample = end.spin()?;
            same(sample[0] == i && sample[W - 1] == i)
        },
    )
}

/// A loan of `bytes` bytes of which the first and the last word are touched, one way.
pub(super) fn loan(cores: Cores, bytes: usize, count: u64) -> Result<Samples> {
    let words = bytes / 8;
    echoed::<[u64]>(
        cores,
        USUAL,
        count,
        |end| {
            let sample = end.spin()?;
            black_box(sample[words - 1]);
            let first = sample[0];
            drop(sample);
            let mut loan = end.to.loan_slice(words)?;
            loan[0] = first;
            loan.publish().map(drop)
        },
        |end, i| {
            let mut loan = end.to.loan_slice(words)?;
            loan[0] = i;
            loan.publish()?;
            let sample = end.spin()?;
            black_box(sample[words - 1]);
            same(sample[0] == i && sample.len() == words)
        },
    )
}

/// A payload of `bytes` bytes copied into a loan and read in full where it lies, one way.
pub(super) fn copied(cores: Cores, bytes: usize, count: u64) -> Result<Samples> {
    let source = vec![3u8; bytes];
    let expected = read_all(&source);
    let send = |end: &mut End<[u8]>| end.to.publish(&source).map(drop);
    echoed::<[u8]>(
        cores,
        // Large ones are written into memory that is still in the cache; no history then.
        EchoOptions { volatile: bytes >= 1 << 16, ..USUAL },
        count,
        |end| {
            black_box(read_all(&end.spin()?));
            send(end)
        },
        |end, _| {
            send(end)?;
            let sum = read_all(&end.spin()?);
            same(sum == expected)
        },
    )
}

/// A sleeping subscriber woken by a message, which wakes us by one, one way.
pub(super) fn wake(cores: Cores, count: u64) -> Result<Samples> {
    fn next(end: &mut End<u64>) -> Result<Sample<u64>> {
        loop {
            if let Some(sample) = end.from.receive_timeout(Duration::from_secs(1))? {
                return Ok(sample);
            }
        }
    }
    echoed::<u64>(
        cores,
        USUAL,
        count,
        |end| {
            let sample = next(end)?;
            end.to.publish(&sample).map(drop)
        },
        |end, i| {
            end.to.publish(&i)?;
            same(*next(end)? == i)
        },
    )
}

/// Streams `count` values of `W` words to a reliable subscriber. One sample: messages per second.
pub(super) fn stream<const W: usize>(cores: Cores, depth: u64, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let root = TempRoot::new();
    let map = SharedMap::new(4096)?;
    let [ready, sum_seen] = map.words(0);
    let open = |name: &str| Node::builder().root(&root.0).name(name).open();
    let peer = Peer::spawn(cores.peers, || {
        let run = || -> Result<()> {
            let topic = open("peer")?.topic::<[u64; W]>("/stream")?.depth(depth).reliable(true);
            let mut subscriber = topic.subscriber()?;
            ready.store(1, Release);
            let (mut seen, mut sum) = (0, 0u64);
            while seen < count {
                if let Some(sample) = subscriber.receive()? {
                    sum = sum.wrapping_add(sample[W - 1]);
                    seen += 1;
                } else {
                    spin_loop();
                }
            }
            sum_seen.store(sum, Relaxed);
            ready.store(2, Release);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        };
        if let Err(error) = run() {
            eprintln!("outlive-bench: {error}");
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let topic = open("bench")?.topic::<[u64; W]>("/stream")?.depth(depth);
    let publisher = topic.reliable_timeout(Duration::from_secs(10)).publisher()?;
    let start = Instant::now();
    for i in 0..count {
        publisher.publish(black_box(&[i + 1; W]))?;
    }
    peer.spin_until(|| ready.load(Acquire) == 2)?;
    let seconds = start.elapsed().as_secs_f64();
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}

/// What one publish costs with `watching` live subscribers that are awake, ns.
pub(super) fn publish_cost(cores: Cores, watching: usize, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let root = TempRoot::new();
    let map = SharedMap::new(4096)?;
    let [ready] = map.words(0);
    let open = |name: &str| Node::builder().root(&root.0).name(name).open();
    let peer = Peer::spawn(cores.peers, || {
        let run = || -> Result<()> {
            let nodes: Vec<Node> =
                (0..watching.div_ceil(8)).map(|_| open("peer")).collect::<Result<_>>()?;
            let mut all = Vec::new();
            for i in 0..watching {
                all.push(nodes[i / 8].topic::<[u64; 7]>("/cost")?.subscriber()?);
            }
            ready.store(1, Release);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        };
        if let Err(error) = run() {
            eprintln!("outlive-bench: {error}");
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let publisher = open("bench")?.topic::<[u64; 7]>("/cost")?.publisher()?;
    same(publisher.subscribers()? == watching)?;
    let mut costs = Vec::new();
    for _ in 0..20 {
        let start = ticks::now();
        for i in 0..count / 20 {
            publisher.publish(black_box(&[i; 7]))?;
        }
        let took = ticks::now().wrapping_sub(start) as f64;
        costs.push(took * ticks::ns_per_tick() / (count / 20) as f64);
    }
    Ok(Samples::new(costs))
}

pub(super) fn same(good: bool) -> Result<()> {
    if good {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corrupt,
        "compare the answer in",
        "the topic measurement",
        "this is a bug in outlive: report it with the machine's description",
    ))
}
