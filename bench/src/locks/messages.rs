//! Locks in the path of messages: a ring in shared memory that a lock guards, beside our topic.
//!
//! The writer waits for the slowest reader, as it does for reliable subscribers of a topic. Readers
//! take messages out under the lock, in its shared form where it has one.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::MsgPack;
use outlive::{Error, ErrorKind, Node, Result};
use outlive_baselines::{Lock, Use};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::pair::{Peer, SharedMap};
use crate::scratch::TempRoot;
use crate::ticks;

const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of the small messages.
const SMALL: usize = 7;
const SMALL_DEPTH: u64 = 1024;
/// Bytes inside the large ones.
const LARGE: usize = 10_000_000;
const LARGE_DEPTH: u64 = 4;
const LARGE_READERS: usize = 8;
/// Bytes before them: MessagePack's mark of a byte array and its length.
const HEAD: usize = 5;

/// What is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// 7 bytes to one reader.
    Small,
    /// 10,000,000 bytes as MessagePack to eight, decoded by each.
    Large,
}

impl Load {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Small => "7 B, 1 -> 1",
            Self::Large => "10 MB MessagePack, 1 -> 8",
        }
    }

    fn run(self) -> Duration {
        Duration::from_millis(if self == Self::Small { 100 } else { 400 })
    }

    fn readers(self) -> usize {
        if self == Self::Small { 1 } else { LARGE_READERS }
    }

    fn depth(self) -> u64 {
        if self == Self::Small { SMALL_DEPTH } else { LARGE_DEPTH }
    }

    fn slot_bytes(self) -> usize {
        if self == Self::Small { 8 } else { (HEAD + LARGE).next_multiple_of(64) }
    }
}

/// Many bytes that travel as MessagePack.
struct Blob(Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Vec<u8>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> std::result::Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes).map(Blob)
    }
}

fn wrong(n: u64) -> Error {
    let why = "the benchmark is wrong, report it";
    Error::new(ErrorKind::Corrupt, "receive", format!("message {n}"), why)
}

/// Spins a little, then lets others run.
fn relax(tries: &mut u32) {
    *tries += 1;
    if *tries % 64 == 0 { std::thread::yield_now() } else { spin_loop() }
}

/// Messages per second, from the first sent to the last received by all. `reader` makes what
/// takes message `n`, `writer` what sends it; both say whether they did.
fn rate<R, W>(
    cores: Cores,
    load: Load,
    reader: impl Fn(usize) -> Result<R>,
    writer: impl FnOnce() -> Result<W>,
) -> Result<Samples>
where
    R: FnMut(u64) -> Result<bool>,
    W: FnMut(u64) -> Result<bool>,
{
    ticks::ns_per_tick(); // measured before the forks
    let words = SharedMap::new(4096)?;
    let [attached, last, done] = words.words(0);
    last.store(u64::MAX, Relaxed);
    let mut peers = Vec::new();
    for i in 0..load.readers() {
        let cpu = if i % 2 == 0 { cores.peers } else { cores.ours };
        peers.push(Peer::spawn(cpu, || {
            let run = || -> Result<()> {
                let (mut take, mut n, mut tries) = (reader(i)?, 0, 0);
                attached.fetch_add(1, Release);
                while n < last.load(Acquire) {
                    if take(n)? { n += 1 } else { relax(&mut tries) }
                }
                done.fetch_add(1, Release);
                Ok(())
            };
            if let Err(error) = run() {
                eprintln!("outlive-bench: {error}");
            }
        })?);
    }
    let all = |word: &AtomicU64| -> Result<()> {
        let (start, mut tries) = (Instant::now(), 0);
        while word.load(Acquire) < load.readers() as u64 {
            if start.elapsed() > PATIENCE || peers.iter().any(|p| p.has_ended()) {
                // The last of them may have ended in order meanwhile.
                if word.load(Acquire) < load.readers() as u64 && start.elapsed() > PATIENCE {
                    return Err(peers[0].lost());
                }
            }
            relax(&mut tries);
        }
        Ok(())
    };
    all(attached)?;
    let _pinned = Pinned::to(cores.ours)?;
    let mut send = writer()?;
    let limit = (load.run().as_nanos() as f64 / ticks::ns_per_tick()) as u64;
    let (start, mut sent, mut tries) = (ticks::now(), 0, 0);
    while ticks::now().wrapping_sub(start) < limit {
        if send(sent)? { sent += 1 } else { relax(&mut tries) }
    }
    last.store(sent, Release);
    all(done)?;
    let took_s = ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick() / 1e9;
    Ok(Samples::new(vec![sent as f64 / took_s]))
}

/// Over our topic, with reliable subscribers.
pub(super) fn topic(cores: Cores, load: Load) -> Result<Samples> {
    let root = TempRoot::new();
    let open = || Node::builder().root(&root.0).name("bench").open();
    let patience = PATIENCE;
    match load {
        Load::Small => rate(
            cores,
            load,
            |_| {
                let topic = open()?.topic::<[u8; SMALL]>("/messages")?.depth(SMALL_DEPTH);
                let mut from = topic.reliable(true).subscriber()?;
                Ok(move |n: u64| match from.receive()? {
                    Some(sample) if black_box(sample[0]) == n as u8 => Ok(true),
                    Some(_) => Err(wrong(n)),
                    None => Ok(false),
                })
            },
            || {
                let topic = open()?.topic::<[u8; SMALL]>("/messages")?.depth(SMALL_DEPTH);
                let to = topic.reliable_timeout(patience).publisher()?;
                Ok(move |n: u64| to.publish(black_box(&[n as u8; SMALL])).map(|_| true))
            },
        ),
        Load::Large => rate(
            cores,
            load,
            |_| {
                let topic = open()?.msgpack::<Blob>("/messages")?.type_name("bench/Blob");
                let mut from = topic.depth(LARGE_DEPTH).reliable(true).subscriber()?;
                Ok(move |n: u64| match from.receive()? {
                    Some(sample) => whole(n, sample.decode()?),
                    None => Ok(false),
                })
            },
            || {
                let topic = open()?.msgpack::<Blob>("/messages")?.type_name("bench/Blob");
                let to = topic.depth(LARGE_DEPTH).reliable_timeout(patience).publisher()?;
                let mut blob = Blob(vec![0; LARGE]);
                Ok(move |n: u64| {
                    mark(&mut blob.0, n);
                    to.publish_value(&blob).map(|_| true)
                })
            },
        ),
    }
}

/// The number goes into the first byte and the last.
fn mark(bytes: &mut [u8], n: u64) {
    bytes[0] = n as u8;
    bytes[LARGE - 1] = n as u8;
}

fn whole(n: u64, blob: Blob) -> Result<bool> {
    let right = blob.0.len() == LARGE && [blob.0[0], blob.0[LARGE - 1]] == [n as u8; 2];
    if right { Ok(true) } else { Err(wrong(n)) }
}

/// Over a ring that `lock` guards.
pub(super) fn ring<L: Lock>(cores: Cores, lock: L, load: Load) -> Result<Samples> {
    let root = TempRoot::made()?;
    let _keeper = lock.make(&root.0)?;
    let (words, slots) =
        (SharedMap::new(4096)?, SharedMap::new(load.slot_bytes() * load.depth() as usize)?);
    let [head] = words.words(0);
    let cursor = |i: usize| &words.words::<1>(1024 + 128 * i)[0];
    let slot =
        |n: u64| slots.at((n % load.depth()) as usize * load.slot_bytes(), load.slot_bytes());
    let reader = |i: usize| {
        let open = lock.open(&root.0)?;
        Ok(move |n: u64| {
            let mut got = Ok(false);
            open.shared(|_| {
                if head.load(Relaxed) > n {
                    got = take(load, slot(n), n);
                    cursor(i).store(n + 1, Relaxed);
                }
            });
            got
        })
    };
    let writer = || {
        let open = lock.open(&root.0)?;
        let mut bytes = vec![0; if load == Load::Small { 0 } else { LARGE }];
        Ok(move |n: u64| {
            if load == Load::Large {
                mark(&mut bytes, n);
            }
            let mut sent = false;
            open.alone(|_| {
                let read = |i: usize| n - cursor(i).load(Relaxed) < load.depth();
                if (0..load.readers()).all(read) {
                    put(load, slot(n), &bytes, n);
                    head.store(n + 1, Relaxed);
                    sent = true;
                }
            });
            Ok(sent)
        })
    };
    rate(cores, load, reader, writer)
}

/// Writes message `n`; the caller is alone inside.
fn put(load: Load, slot: *mut u8, bytes: &[u8], n: u64) {
    // SAFETY: a slot has room for any message of the load; the lock keeps others out.
    unsafe {
        if load == Load::Small {
            slot.cast::<[u8; SMALL]>().write(black_box([n as u8; SMALL]));
        } else {
            let length = (LARGE as u32).to_be_bytes();
            slot.cast::<[u8; HEAD]>().write([0xc6, length[0], length[1], length[2], length[3]]);
            slot.add(HEAD).copy_from_nonoverlapping(bytes.as_ptr(), LARGE);
        }
    }
}

/// Takes message `n` out; the caller is inside.
fn take(load: Load, slot: *const u8, n: u64) -> Result<bool> {
    if load == Load::Small {
        // SAFETY: as in `put`; nobody writes while we are inside.
        let message = black_box(unsafe { slot.cast::<[u8; SMALL]>().read() });
        return if message[0] == n as u8 { Ok(true) } else { Err(wrong(n)) };
    }
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(slot, HEAD + LARGE) };
    whole(n, MsgPack::<Blob>::new(bytes).decode()?)
}
