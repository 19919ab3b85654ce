//! Queue throughput beside the machine's own limits, alternating in one run: messages of 8 bytes
//! from one process to another, each sent alone or in batches of 64. Give the number of rounds.
//!
//! `cargo run --release -p outlive --example queue_rates -- 9`

use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use outlive::{Consumer, Node, Producer, Result};

const MESSAGES: u64 = 6_000_000;
const BATCH: usize = 64;
const RING_SLOTS: u64 = 1 << 14;

/// Words shared with a forked child.
struct Shared(*mut u8, usize);

impl Shared {
    fn new(bytes: usize) -> Self {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let flags = flags | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        assert!(at != libc::MAP_FAILED);
        Self(at.cast(), bytes)
    }

    #[inline(always)]
    fn word(&self, i: u64) -> &AtomicU64 {
        assert!((i as usize) < self.1 / 8);
        // SAFETY: inside the mapping (just checked), aligned, and only used as atomics.
        unsafe { &*self.0.cast::<AtomicU64>().add(i as usize) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.0.cast(), self.1) };
    }
}

fn pin(cpu: usize) {
    // SAFETY: plain bits; the index is small.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Runs `child` on core 1 and `parent` on core 0; the child says when it is ready and what it
/// received. Returns messages per second.
fn race(
    n: u64,
    child: impl FnOnce(&AtomicU64) -> u64,
    parent: impl FnOnce(),
    start: impl FnOnce(),
) -> f64 {
    let results = Shared::new(4096);
    // SAFETY: this process has one thread.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        pin(1);
        let sum = child(results.word(0));
        results.word(8).store(sum, Relaxed);
        results.word(0).store(2, Release);
        // SAFETY: ends the child without the parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    pin(0);
    while results.word(0).load(Acquire) != 1 {
        spin_loop();
    }
    start();
    let begin = Instant::now();
    parent();
    while results.word(0).load(Acquire) != 2 {
        spin_loop();
    }
    let seconds = begin.elapsed().as_secs_f64();
    assert_eq!(results.word(8).load(Relaxed), n * (n - 1) / 2, "not what was sent");
    // SAFETY: reaps our own child.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    n as f64 / seconds
}

/// The limit for messages sent alone: a ring whose slots are their own flags.
fn slot_flags() -> f64 {
    let (n, ring) = (MESSAGES, Shared::new(RING_SLOTS as usize * 8));
    let slot = |i: u64| ring.word(i & (RING_SLOTS - 1));
    race(
        n,
        |ready| {
            ready.store(1, Release);
            let mut sum = 0u64;
            for i in 0..n {
                let mut value = slot(i).load(Acquire);
                while value == 0 {
                    spin_loop();
                    value = slot(i).load(Acquire);
                }
                sum = sum.wrapping_add(value - 1);
                slot(i).store(0, Release);
            }
            sum
        },
        || {
            for i in 0..n {
                while slot(i).load(Acquire) != 0 {
                    spin_loop();
                }
                slot(i).store(i + 1, Release);
            }
        },
        || {},
    )
}

/// The limit for batches: a ring with two indices, one store of each for a batch.
fn indexed() -> f64 {
    let (n, ring) = (8 * MESSAGES, Shared::new(RING_SLOTS as usize * 8));
    let control = Shared::new(4096);
    let (head, tail) = (control.word(0), control.word(64));
    // SAFETY: within the mapping; who may touch a slot is decided by head and tail.
    let slot = |i: u64| unsafe { ring.0.cast::<u64>().add((i & (RING_SLOTS - 1)) as usize) };
    race(
        n,
        |ready| {
            ready.store(1, Release);
            let (mut at, mut sum) = (0, 0u64);
            while at < n {
                let seen = head.load(Acquire);
                if seen == at {
                    spin_loop();
                    continue;
                }
                let end = seen.min(at + RING_SLOTS / 8);
                for i in at..end {
                    // SAFETY: before head.
                    sum = sum.wrapping_add(unsafe { slot(i).read() });
                }
                at = end;
                tail.store(at, Release);
            }
            sum
        },
        || {
            let (mut at, mut free) = (0, RING_SLOTS);
            while at < n {
                while at + BATCH as u64 > free {
                    free = tail.load(Acquire) + RING_SLOTS;
                }
                for i in at..at + BATCH as u64 {
                    // SAFETY: behind head, and tail is past its last use.
                    unsafe { slot(i).write(i) };
                }
                at += BATCH as u64;
                head.store(at, Release);
            }
        },
        || {},
    )
}

fn pipe() -> f64 {
    let n = MESSAGES / 20;
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(fds.as_mut_ptr()) }, 0);
    let rate = race(
        n,
        |ready| {
            ready.store(1, Release);
            let mut sum = 0u64;
            for _ in 0..n {
                let mut value = 0u64;
                // SAFETY: 8 bytes of a local.
                unsafe { libc::read(fds[0], (&raw mut value).cast(), 8) };
                sum = sum.wrapping_add(value);
            }
            sum
        },
        || {
            for i in 0..n {
                // SAFETY: 8 bytes of a local.
                unsafe { libc::write(fds[1], (&raw const i).cast(), 8) };
            }
        },
        || {},
    );
    // SAFETY: our own descriptors.
    unsafe {
        libc::close(fds[0]);
        libc::close(fds[1]);
    }
    rate
}

fn queue(
    n: u64,
    bound: u64,
    send: impl FnOnce(&mut Producer<u64>) -> Result<()>,
    receive: impl FnOnce(&mut Consumer<u64>) -> Result<u64>,
) -> f64 {
    let dir = outlive::doc_dir();
    let shm = std::path::Path::new("/dev/shm").join(dir.path().file_name().unwrap());
    let open = |name: &str| Node::builder().root(&shm).name(name).open();
    let mut producer = None;
    let rate = race(
        n,
        |ready| {
            let node = open("consumer").unwrap();
            let mut consumer = node.queue::<u64>("q").unwrap().consumer().unwrap();
            ready.store(1, Release);
            // The producer opens after this; warm-up is part of nobody's figure.
            receive(&mut consumer).unwrap()
        },
        || {
            let (_node, mut producer) = PRODUCER.take().unwrap();
            send(&mut producer).unwrap();
        },
        || {
            let node = open("producer").unwrap();
            let builder = node.queue::<u64>("q").unwrap().bound_bytes(bound).first_bytes(bound);
            producer = Some(builder.producer().unwrap());
            PRODUCER.set(Some((node, producer.take().unwrap())));
        },
    );
    let _ = std::fs::remove_dir_all(&shm);
    rate
}

thread_local! {
    static PRODUCER: std::cell::Cell<Option<(Node, Producer<u64>)>> =
        const { std::cell::Cell::new(None) };
}

fn alone(bound: u64) -> f64 {
    queue(
        MESSAGES,
        bound,
        |p| (0..MESSAGES).try_for_each(|i| p.send(&black_box(i))),
        |c| {
            let (mut sum, mut got) = (0u64, 0);
            while got < MESSAGES {
                if let Some(m) = c.receive()? {
                    sum = sum.wrapping_add(*m);
                    got += 1;
                }
            }
            Ok(sum)
        },
    )
}

fn alone_in_slices(bound: u64) -> f64 {
    queue(
        MESSAGES,
        bound,
        |p| (0..MESSAGES).try_for_each(|i| p.send(&black_box(i))),
        |c| {
            let (mut sum, mut got) = (0u64, 0);
            while got < MESSAGES {
                if let Some(m) = c.receive_slice()? {
                    sum = m.iter().fold(sum, |s, v| s.wrapping_add(*v));
                    got += m.len() as u64;
                }
            }
            Ok(sum)
        },
    )
}

fn batches(bound: u64) -> f64 {
    let n = 8 * MESSAGES;
    queue(
        n,
        bound,
        |p| {
            let mut batch = [0; BATCH];
            for i in (0..n).step_by(BATCH) {
                for (k, to) in batch.iter_mut().enumerate() {
                    *to = i + k as u64;
                }
                p.send_batch(&batch)?;
            }
            Ok(())
        },
        |c| {
            let (mut sum, mut got) = (0u64, 0);
            while got < n {
                if let Some(m) = c.receive_slice()? {
                    sum = m.iter().fold(sum, |s, v| s.wrapping_add(*v));
                    got += m.len() as u64;
                }
            }
            Ok(sum)
        },
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(5);
    type Case = (&'static str, fn() -> f64, fn() -> f64);
    let cases: [Case; 7] = [
        ("pipe, 8 B alone / slot flags", slot_flags, pipe),
        ("queue 128 KiB, 8 B alone / slot flags", slot_flags, || alone(128 << 10)),
        ("queue 1 MiB, 8 B alone / slot flags", slot_flags, || alone(1 << 20)),
        ("queue 16 MiB, 8 B alone / slot flags", slot_flags, || alone(16 << 20)),
        ("queue 128 KiB, alone, slices / slot flags", slot_flags, || alone_in_slices(128 << 10)),
        ("queue 128 KiB, batches of 64 / indexed", indexed, || batches(128 << 10)),
        ("queue 1 MiB, batches of 64 / indexed", indexed, || batches(1 << 20)),
    ];
    for (name, limit, subject) in cases {
        let (mut limits, mut rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = limit();
        for _ in 0..rounds {
            let rate = subject();
            let after = limit();
            ratios.push(2.0 * rate / (before + after));
            rates.push(rate / 1e6);
            limits.push(after / 1e6);
            before = after;
        }
        println!(
            "{name:42} {:6.2} x   {:7.1} of {:7.1} M/s",
            median(ratios),
            median(rates),
            median(limits)
        );
    }
}
