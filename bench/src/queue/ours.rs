//! outlive's queue while the clock runs.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::{Consumer, Node, Producer, Result};

use super::sizes::{BATCH, LANE_BYTES};
use crate::pair::{Peer, SharedMap};
use crate::raw::round_trips;
use crate::scratch::TempRoot;
use crate::ticks;
use crate::topic::same;

type Words<const W: usize> = [u64; W];

fn open(root: &TempRoot, name: &str) -> Result<Node> {
    Node::builder().root(&root.0).name(name).open()
}

fn producer<const W: usize>(root: &TempRoot, lane_bytes: u64) -> Result<Producer<Words<W>>> {
    let queue = open(root, "producer")?.queue::<Words<W>>("/q")?;
    queue.first_bytes(lane_bytes).bound_bytes(lane_bytes).producer()
}

fn consumer<const W: usize>(root: &TempRoot) -> Result<Consumer<Words<W>>> {
    open(root, "consumer")?.queue::<Words<W>>("/q")?.consumer()
}

/// Runs in a child, which ends with a word on standard error if that fails.
pub(super) fn child(body: impl FnOnce() -> Result<()>) {
    if let Err(error) = body() {
        eprintln!("outlive-bench: {error}");
    }
}

/// Messages per second from all producers together, each sent alone.
pub(super) fn alone<const W: usize>(cores: Cores, producers: u64, count: u64) -> Result<Samples> {
    alone_in::<W>(cores, LANE_BYTES, producers, count)
}

/// The same with lanes of that size.
pub(super) fn alone_in<const W: usize>(
    cores: Cores,
    lane_bytes: u64,
    producers: u64,
    count: u64,
) -> Result<Samples> {
    stream::<W>(
        cores,
        lane_bytes,
        producers,
        count,
        |producer, n| {
            for i in 0..n {
                producer.send(&[i + 1; W])?;
            }
            Ok(())
        },
        |consumer, n| {
            let (mut sum, mut got) = (0u64, 0);
            while got < n {
                if let Some(message) = consumer.receive()? {
                    sum = sum.wrapping_add(message[W - 1]);
                    got += 1;
                }
            }
            Ok(sum)
        },
    )
}

/// Messages per second from all producers together, in batches.
pub(super) fn batches<const W: usize>(cores: Cores, producers: u64, count: u64) -> Result<Samples> {
    stream::<W>(
        cores,
        LANE_BYTES,
        producers,
        count / BATCH as u64 * BATCH as u64,
        |producer, n| {
            // One ahead: what is copied right after it was stored waits for the store buffer.
            let mut batches = [[[0; W]; BATCH]; 2];
            fill_from(1, &mut batches[0]);
            for (turn, i) in (1..=n).step_by(BATCH).enumerate() {
                fill_from(i + BATCH as u64, &mut batches[(turn + 1) % 2]);
                producer.send_batch(&batches[turn % 2])?;
            }
            Ok(())
        },
        |consumer, n| {
            let (mut sum, mut got) = (0u64, 0);
            while got < n {
                if let Some(all) = consumer.receive_slice()? {
                    sum = all.iter().fold(sum, |sum, m| sum.wrapping_add(m[W - 1]));
                    got += all.len() as u64;
                }
            }
            Ok(sum)
        },
    )
}

fn fill_from<const W: usize>(first: u64, batch: &mut [Words<W>; BATCH]) {
    for (k, to) in batch.iter_mut().enumerate() {
        *to = [first + k as u64; W];
    }
}

/// Each of `producers` sends numbers from 1 on; together about `count`.
fn stream<const W: usize>(
    cores: Cores,
    lane_bytes: u64,
    producers: u64,
    count: u64,
    send: impl Fn(&mut Producer<Words<W>>, u64) -> Result<()>,
    receive: impl Fn(&mut Consumer<Words<W>>, u64) -> Result<u64>,
) -> Result<Samples> {
    let each = count / producers / BATCH as u64 * BATCH as u64;
    // First once around the lanes, untimed: who joined is found, pages are brought in.
    let warm_up = lane_bytes / 8;
    let sum_of = |each: u64| (each * (each + 1) / 2).wrapping_mul(producers);
    let (root, map) = (TempRoot::new(), SharedMap::new(8192)?);
    let [ready, sum_seen] = map.words(0);
    let [there, go] = map.words(4096);
    let consuming = Peer::spawn(cores.peers, || {
        child(|| {
            let mut consumer = consumer::<W>(&root)?;
            ready.store(1, Release);
            same(receive(&mut consumer, warm_up * producers)? == sum_of(warm_up))?;
            ready.store(2, Release);
            sum_seen.store(receive(&mut consumer, each * producers)?, Relaxed);
            ready.store(3, Release);
            loop {
                std::thread::park();
            }
        });
    })?;
    consuming.spin_until(|| ready.load(Acquire) == 1)?;
    let mut others = Vec::new();
    for _ in 1..producers {
        others.push(Peer::spawn(cores.ours, || {
            child(|| {
                let mut producer = producer::<W>(&root, lane_bytes)?;
                send(&mut producer, warm_up)?;
                there.fetch_add(1, Release);
                while go.load(Acquire) == 0 {
                    std::thread::yield_now();
                }
                send(&mut producer, each)?;
                loop {
                    std::thread::park();
                }
            });
        })?);
    }
    let _pinned = Pinned::to(cores.ours)?;
    let mut producer = producer::<W>(&root, lane_bytes)?;
    send(&mut producer, warm_up)?;
    while there.load(Acquire) + 1 < producers {
        std::thread::yield_now();
    }
    consuming.spin_until(|| ready.load(Acquire) == 2)?;
    let start = Instant::now();
    go.store(1, Release);
    send(&mut producer, each)?;
    while producers > 1 && ready.load(Acquire) != 3 && !consuming.has_ended() {
        std::thread::sleep(Duration::from_micros(20));
    }
    consuming.spin_until(|| ready.load(Acquire) == 3)?;
    let seconds = start.elapsed().as_secs_f64();
    same(sum_seen.load(Relaxed) == sum_of(each))?;
    Ok(Samples::new(vec![(each * producers) as f64 / seconds]))
}

/// What one send costs with a consumer that keeps up, ns; `check` is asked before each.
pub(super) fn send_cost(
    cores: Cores,
    count: u64,
    mut check: impl FnMut(&mut Producer<Words<1>>) -> bool,
) -> Result<Samples> {
    with_reader(cores, false, |producer, _| {
        let batch = count / 11;
        let mut costs = Vec::new();
        for _ in 0..11 {
            let start = ticks::now();
            for i in 0..batch {
                same(check(producer))?;
                producer.send(black_box(&[i]))?;
            }
            let took = ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick();
            costs.push(took / batch as f64);
        }
        Ok(Samples::new(costs.split_off(1)))
    })
}

/// What a send costs that has to wake, ns.
pub(super) fn send_to_a_sleeper(cores: Cores, count: u64) -> Result<Samples> {
    with_reader(cores, true, |producer, received| {
        let mut costs = Vec::new();
        for i in 1..=count {
            // Past its short first sleep.
            std::thread::sleep(Duration::from_micros(500));
            let start = ticks::now();
            producer.send(&[i])?;
            costs.push(ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick());
            while received() < i {
                std::hint::spin_loop();
            }
        }
        Ok(Samples::new(costs))
    })
}

/// A consumer that receives everything, awake or asleep in between.
fn with_reader(
    cores: Cores,
    sleeps: bool,
    body: impl FnOnce(&mut Producer<Words<1>>, &dyn Fn() -> u64) -> Result<Samples>,
) -> Result<Samples> {
    ticks::ns_per_tick(); // measured before the fork
    let (root, map) = (TempRoot::new(), SharedMap::new(4096)?);
    let [ready, received] = map.words(0);
    let peer = Peer::spawn(cores.peers, || {
        child(|| {
            let mut consumer = consumer::<1>(&root)?;
            ready.store(1, Release);
            let mut all = 0u64;
            loop {
                let got = match sleeps {
                    true => consumer.receive_timeout(Duration::from_secs(10))?,
                    false => consumer.receive()?,
                };
                all += u64::from(got.is_some());
                if sleeps {
                    received.store(all, Release);
                }
            }
        });
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    body(&mut producer::<1>(&root, LANE_BYTES)?, &|| received.load(Acquire))
}

/// A sleeping consumer woken by a message, which wakes us by one, one way.
pub(super) fn wake(cores: Cores, count: u64) -> Result<Samples> {
    type Ends = (Producer<u64>, Consumer<u64>);
    let ends = |root: &TempRoot, name: &str, to: &str, from: &str| -> Result<Ends> {
        let node = open(root, name)?;
        let from = node.queue::<u64>(from)?.consumer()?;
        Ok((node.queue::<u64>(to)?.producer()?, from))
    };
    fn next(from: &mut Consumer<u64>) -> Result<u64> {
        loop {
            if let Some(message) = from.receive_timeout(Duration::from_secs(1))? {
                return Ok(*message);
            }
        }
    }
    let (root, map) = (TempRoot::new(), SharedMap::new(4096)?);
    let [ready] = map.words(0);
    let peer = Peer::spawn(cores.peers, || {
        child(|| {
            let (mut to, mut from) = ends(&root, "peer", "/pong", "/ping")?;
            ready.store(1, Release);
            to.wait_for_consumer(Duration::from_secs(10))?;
            loop {
                to.send(&next(&mut from)?)?;
            }
        });
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    let (mut to, mut from) = ends(&root, "bench", "/ping", "/pong")?;
    round_trips(count, |i| {
        let start = ticks::now();
        to.send(&i)?;
        same(next(&mut from)? == i)?;
        Ok(ticks::now().wrapping_sub(start))
    })
}

/// What filling a lane showed.
pub(super) struct Fill {
    /// Messages of 64 bytes per second.
    pub(super) rate: Samples,
    /// Each send, ns.
    pub(super) sends: Samples,
}

/// Sends into a lane that begins with `first_bytes` until 64 MiB are unread.
pub(super) fn fill(cores: Cores, first_bytes: u64) -> Result<Fill> {
    const COUNT: u64 = (60 << 20) / 72;
    let root = TempRoot::new();
    let consumer = consumer::<8>(&root)?;
    let _pinned = Pinned::to(cores.ours)?;
    let queue = open(&root, "producer")?.queue::<Words<8>>("/q")?;
    let mut producer = queue.first_bytes(first_bytes).bound_bytes(192 << 20).producer()?;
    let (mut sends, start) = (Vec::with_capacity(COUNT as usize), Instant::now());
    let mut before = ticks::now();
    for i in 0..COUNT {
        producer.send(&[i; 8])?;
        let now = ticks::now();
        sends.push(now.wrapping_sub(before) as f64 * ticks::ns_per_tick());
        before = now;
    }
    let rate = COUNT as f64 / start.elapsed().as_secs_f64();
    same(producer.memory_bytes() >= 60 << 20)?;
    drop(consumer);
    Ok(Fill { rate: Samples::new(vec![rate]), sends: Samples::new(sends) })
}
