//! What is done with a lock while the clock runs.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::Result;
use outlive_baselines::{Lock, Use};

use super::forms::{Alone, Form, Shared};
use crate::pair::{Peer, SharedMap};
use crate::scratch::TempRoot;
use crate::ticks;

const RUN: Duration = Duration::from_millis(100);
/// Samples of one run without rivals.
const BATCHES: u64 = 10;

/// What rivals do.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) processes: usize,
    pub(super) inside_ns: u64,
    pub(super) outside_ns: u64,
}

/// What came of it.
pub(super) struct Contended {
    /// Turns per second of all.
    pub(super) rate: Samples,
    /// The busiest process's part, times the number of processes: 1 is fair.
    pub(super) share: f64,
    /// Turns whose update was lost: two were inside at once.
    pub(super) lost: u64,
}

fn timed<U: Use>(lock: &U, form: impl Form, count: u64) -> f64 {
    let start = ticks::now();
    for _ in 0..count {
        form.turn(lock, || {
            black_box(());
        });
    }
    ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick() / count as f64
}

/// One process, one thread: ns for a lock and an unlock. `readers` other threads have read before.
pub(super) fn pairs<L: Lock>(
    cores: Cores,
    lock: L,
    form: impl Form,
    readers: usize,
    count: u64,
) -> Result<Samples> {
    let root = TempRoot::made()?;
    let _keeper = lock.make(&root.0)?;
    let open = lock.open(&root.0)?;
    let known = Barrier::new(readers + 1);
    std::thread::scope(|scope| {
        for _ in 0..readers {
            scope.spawn(|| {
                Shared.turn(&open, || {});
                known.wait(); // all have read
                known.wait(); // and live until the end
            });
        }
        known.wait();
        let pinned = Pinned::to(cores.ours);
        let batch = || timed(&open, form, count / BATCHES);
        let samples = (0..BATCHES + 1).map(|_| batch()).skip(1).collect();
        known.wait();
        pinned.map(|_| Samples::new(samples))
    })
}

/// What no lock of two locked instructions can be quicker than: a compare-and-swap to a name and
/// one back to free, ns for both.
pub(super) fn bare_pairs(cores: Cores, count: u64) -> Result<Samples> {
    let map = SharedMap::new(4096)?;
    let [word] = map.words(0);
    let _pinned = Pinned::to(cores.ours)?;
    let batch = || {
        let start = ticks::now();
        for _ in 0..count / BATCHES {
            let taken = word.compare_exchange(0, black_box(7), SeqCst, Relaxed).is_ok();
            let freed = word.compare_exchange(7, 0, Release, Relaxed).is_ok();
            black_box(taken & freed);
        }
        ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick() / (count / BATCHES) as f64
    };
    Ok(Samples::new((0..BATCHES + 1).map(|_| batch()).skip(1).collect()))
}

/// Two processes that read at the same time: ns for a lock and an unlock of one. Counts only while
/// the other really ran.
pub(super) fn pairs_together<L: Lock>(cores: Cores, lock: L, count: u64) -> Result<Samples> {
    ticks::ns_per_tick(); // measured before the fork
    let (root, map) = (TempRoot::made()?, SharedMap::new(8192)?);
    let _keeper = lock.make(&root.0)?;
    let [others] = map.words(4096);
    let peer = Peer::spawn(cores.peers, || {
        if let Ok(open) = lock.open(&root.0) {
            loop {
                timed(&open, Shared, 100);
                others.fetch_add(100, Relaxed);
            }
        }
    })?;
    let _pinned = Pinned::to(cores.ours)?;
    let open = lock.open(&root.0)?;
    peer.spin_until(|| others.load(Acquire) > 0)?;
    let (start, count) = (Instant::now(), count / BATCHES);
    let (mut samples, mut best) = (Vec::new(), (0, 0.0));
    while samples.len() < BATCHES as usize && start.elapsed() < Duration::from_secs(1) {
        let before = others.load(Relaxed);
        let took = timed(&open, Shared, count);
        let done = others.load(Relaxed) - before;
        if done >= count / 2 {
            samples.push(took);
        } else if done >= best.0 {
            best = (done, took);
        }
    }
    if samples.is_empty() {
        samples.push(best.1);
    }
    Ok(Samples::new(samples))
}

fn busy(ns: u64) {
    if ns > 0 {
        let end = ticks::now() + (ns as f64 / ticks::ns_per_tick()) as u64;
        while ticks::now() < end {}
    }
}

/// Several processes on both cores take turns as fast as they can.
pub(super) fn contended<L: Lock, F: Form>(
    cores: Cores,
    lock: L,
    form: F,
    load: Load,
) -> Result<Contended> {
    ticks::ns_per_tick(); // measured before the forks
    let (root, map) = (TempRoot::made()?, SharedMap::new(16384)?);
    let _keeper = lock.make(&root.0)?;
    let [ready, go, stop, done] = map.words(4096);
    // Changed in two steps: who loses an update was not alone.
    let [inside] = map.words(4096 + 512);
    let turns = |n: usize| &map.words::<1>(8192 + 64 * n)[0];
    let mut peers = Vec::new();
    for n in 0..load.processes {
        let cpu = if n % 2 == 0 { cores.peers } else { cores.ours };
        peers.push(Peer::spawn(cpu, || {
            let Ok(open) = lock.open(&root.0) else { return };
            ready.fetch_add(1, SeqCst);
            while go.load(Acquire) == 0 {
                std::thread::yield_now();
            }
            let mut mine = 0;
            while stop.load(Relaxed) == 0 {
                form.turn(&open, || {
                    let seen = inside.load(Relaxed);
                    busy(load.inside_ns);
                    if F::ALONE {
                        inside.store(seen + 1, Relaxed);
                    }
                });
                mine += 1;
                busy(load.outside_ns);
            }
            turns(n).store(mine, SeqCst);
            done.fetch_add(1, SeqCst);
            // Nobody is to wait for a death.
            while stop.load(Relaxed) != 2 {
                std::thread::yield_now();
            }
        })?);
    }
    let all = |word: &std::sync::atomic::AtomicU64| word.load(Acquire) == load.processes as u64;
    let wait = |ready: &dyn Fn() -> bool| {
        let start = Instant::now();
        while !ready() {
            if start.elapsed() > Duration::from_secs(20) {
                return Err(peers[0].lost());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    };
    wait(&|| all(ready))?;
    let start = Instant::now();
    go.store(1, SeqCst);
    std::thread::sleep(RUN);
    stop.store(1, SeqCst);
    wait(&|| all(done))?;
    let seconds = start.elapsed().as_secs_f64();
    stop.store(2, SeqCst);
    let counts: Vec<f64> = (0..load.processes).map(|n| turns(n).load(SeqCst) as f64).collect();
    let (sum, most) = (counts.iter().sum::<f64>(), counts.iter().copied().fold(0.0, f64::max));
    let kept = if F::ALONE { inside.load(SeqCst) } else { sum as u64 };
    Ok(Contended {
        rate: Samples::new(vec![sum / seconds]),
        share: most * load.processes as f64 / sum.max(1.0),
        lost: (sum as u64).saturating_sub(kept),
    })
}

/// A holder is killed while another process sleeps for its lock: ns from the signal to the taking.
pub(super) fn take_over<L: Lock>(cores: Cores, lock: L, deaths: usize) -> Result<Samples> {
    let mut samples = Vec::new();
    for _ in 0..deaths {
        let (root, map) = (TempRoot::made()?, SharedMap::new(8192)?);
        let _keeper = lock.make(&root.0)?;
        let [held, waits, taken] = map.words(4096);
        let holder = Peer::spawn(cores.peers, || {
            if let Ok(open) = lock.open(&root.0) {
                Alone.turn(&open, || {
                    held.store(1, SeqCst);
                    loop {
                        std::thread::park();
                    }
                });
            }
        })?;
        let until = |word: &std::sync::atomic::AtomicU64| {
            let start = Instant::now();
            while word.load(Acquire) == 0 {
                if start.elapsed() > Duration::from_secs(20) {
                    return Err(holder.lost());
                }
                std::thread::sleep(Duration::from_micros(50));
            }
            Ok(word.load(Acquire))
        };
        until(held)?;
        let _waiter = Peer::spawn(cores.ours, || {
            if let Ok(open) = lock.open(&root.0) {
                waits.store(1, SeqCst);
                Alone.turn(&open, || {
                    taken.store(outlive::now_ns(), SeqCst);
                    loop {
                        std::thread::park();
                    }
                });
            }
        })?;
        until(waits)?;
        std::thread::sleep(Duration::from_millis(3)); // it sleeps by now
        let start = outlive::now_ns();
        holder.kill();
        samples.push(until(taken)?.saturating_sub(start) as f64);
    }
    Ok(Samples::new(samples))
}
