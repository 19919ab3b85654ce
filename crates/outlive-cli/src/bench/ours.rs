//! outlive in the place of the limits: each against the one of the same name in `raw`.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use outlive::{Error, ErrorKind, Node, Payload, Publisher, Result, Sample, Subscriber};

use super::pair::{Peer, Words};
use super::raw::peer_done;
use super::{Cores, Samples, rate, same, times, ways};

/// Deep enough that nothing is overwritten while one message is under way.
const DEPTH: u64 = 16;
/// Looks before the other side is given up; a minute or so.
const LOOKS_MAX: u64 = 1 << 32;

fn open(root: &Path, name: &str) -> Result<Node> {
    Node::builder().root(root).name(name).open()
}

/// One end of an echo: sends on one topic, receives on the other.
pub(super) struct End<T: Payload + ?Sized> {
    to: Publisher<T>,
    from: Subscriber<T>,
}

impl<T: Payload + ?Sized> End<T> {
    fn open(root: &Path, name: &str, to: &str, from: &str) -> Result<Self> {
        let node = open(root, name)?;
        let to = node.topic::<T>(to)?.depth(DEPTH).publisher()?;
        Ok(Self { to, from: node.topic::<T>(from)?.depth(DEPTH).subscriber()? })
    }

    /// The next message, looked for without a pause.
    #[inline]
    fn spin(&mut self) -> Result<Sample<T>> {
        for _ in 0..LOOKS_MAX {
            if let Some(sample) = self.from.receive()? {
                return Ok(sample);
            }
        }
        Err(silent())
    }
}

fn silent() -> Error {
    Error::new(ErrorKind::Timeout, "measure with", "the peer process", "it does not answer")
}

/// Ways over a topic: the peer does `echo`, this process `trip`, once they know each other.
fn echoed<T: Payload + ?Sized>(
    (root, [_, cpu]): (&Path, Cores),
    count: u64,
    mut echo: impl FnMut(&mut End<T>) -> Result<()>,
    mut trip: impl FnMut(&mut End<T>, u64) -> Result<()>,
) -> Result<Samples> {
    let ready = Words::new(1)?;
    let peer = Peer::fork(cpu, || {
        let mut end = End::open(root, "peer", "/pong", "/ping")?;
        ready[0].store(1, Release);
        loop {
            echo(&mut end)?;
        }
    })?;
    peer.until(|| ready[0].load(Acquire) == 1)?;
    let mut end = End::open(root, "bench", "/ping", "/pong")?;
    ways(count, |i| trip(&mut end, i))
}

/// Eight words, copied in and out.
pub(super) fn words(root: &Path, cores: Cores, count: u64) -> Result<Samples> {
    echoed::<[u64; 8]>(
        (root, cores),
        count,
        |end| {
            let sample = end.spin()?;
            end.to.publish(&sample).map(drop)
        },
        |end, i| {
            end.to.publish(black_box(&[i; 8]))?;
            same(*end.spin()? == [i; 8])
        },
    )
}

/// A loan of `bytes`, of which the first and the last word are touched.
pub(super) fn loan(root: &Path, cores: Cores, bytes: usize, count: u64) -> Result<Samples> {
    let words = bytes / 8;
    let send = move |end: &mut End<[u64]>, first| {
        let mut loan = end.to.loan_slice(words)?;
        loan[0] = first;
        loan.publish().map(drop)
    };
    let receive = move |end: &mut End<[u64]>| {
        let sample = end.spin()?;
        black_box(sample[words - 1]);
        Ok::<u64, Error>(sample[0])
    };
    let echo = |end: &mut End<[u64]>| {
        let first = receive(end)?;
        send(end, first)
    };
    echoed((root, cores), count, echo, |end, i| {
        send(end, i)?;
        same(receive(end)? == i)
    })
}

/// A message that wakes a sleeping subscriber, which wakes us by one.
pub(super) fn wake(root: &Path, cores: Cores, count: u64) -> Result<Samples> {
    let next = |end: &mut End<u64>| -> Result<u64> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            // An event may end the wait early.
            if let Some(sample) = end.from.receive_timeout(Duration::from_secs(1))? {
                return Ok(*sample);
            }
        }
        Err(silent())
    };
    let echo = |end: &mut End<u64>| {
        let i = next(end)?;
        end.to.publish(&i).map(drop)
    };
    echoed((root, cores), count, echo, |end, i| {
        end.to.publish(&i)?;
        same(next(end)? == i)
    })
}

/// A stream: the peer takes the last word of each message, this process sends.
fn streamed<R: FnMut() -> Result<Option<u64>>, S: FnMut(u64) -> Result<()>>(
    (root, [_, cpu]): (&Path, Cores),
    count: u64,
    receiver: impl FnOnce(&Node) -> Result<R>,
    sender: impl FnOnce(&Node) -> Result<S>,
) -> Result<Samples> {
    let map = Words::new(2)?;
    let (state, sum_seen) = (&map[0], &map[1]);
    let peer = Peer::fork(cpu, || {
        let mut next = receiver(&open(root, "peer")?)?;
        state.store(1, Release);
        let (mut seen, mut sum) = (0, 0u64);
        while seen < count {
            if let Some(last) = next()? {
                (seen, sum) = (seen + 1, sum.wrapping_add(last));
            }
        }
        sum_seen.store(sum, Relaxed);
        state.store(2, Release);
        Ok(())
    })?;
    peer.until(|| state.load(Acquire) == 1)?;
    let mut send = sender(&open(root, "bench")?)?;
    let start = Instant::now();
    (1..=count).try_for_each(&mut send)?;
    peer_done(&peer, || state.load(Acquire) == 2)?;
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(rate(count, start))
}

/// 64 B to a reliable subscriber, `depth` messages deep.
pub(super) fn topic(root: &Path, cores: Cores, depth: u64, count: u64) -> Result<Samples> {
    streamed(
        (root, cores),
        count,
        |node| {
            let topic = node.topic::<[u64; 8]>("/stream")?.depth(depth);
            let mut from = topic.reliable(true).subscriber()?;
            Ok(move || Ok(from.receive()?.map(|message| message[7])))
        },
        |node| {
            let topic = node.topic::<[u64; 8]>("/stream")?.depth(depth);
            let to = topic.reliable_timeout(Duration::from_secs(10)).publisher()?;
            Ok(move |i| to.publish(black_box(&[i; 8])).map(drop))
        },
    )
}

/// 8 B, each alone, through a lane of `bytes`.
pub(super) fn queue(root: &Path, cores: Cores, bytes: u64, count: u64) -> Result<Samples> {
    streamed(
        (root, cores),
        count,
        |node| {
            let mut from = node.queue::<[u64; 1]>("/queue")?.consumer()?;
            Ok(move || Ok(from.receive()?.map(|message| message[0])))
        },
        |node| {
            let queue = node.queue::<[u64; 1]>("/queue")?;
            let mut to = queue.first_bytes(bytes).bound_bytes(bytes).producer()?;
            Ok(move |i| to.send(&[i]).map(drop))
        },
    )
}

/// The mutex, locked and unlocked without a rival.
pub(super) fn mutex(root: &Path, count: u64) -> Result<Samples> {
    let mutex = open(root, "bench")?.mutex::<u64>("/mutex")?;
    times(count, || same(mutex.lock().is_ok()))
}
