//! The limits of the machine, with no library in between, and outlive in their place.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use outlive::{Node, Payload, Publisher, Result, Subscriber};

use super::pair::{Cores, Samples, Words, echoed, reached, same, streamed, times};

/// Words of a page, so that neither side prefetches the other's.
const PAGE: usize = 512;
/// Deep enough that nothing is overwritten while one message is under way.
const DEPTH: u64 = 16;
const LONG: Duration = Duration::from_secs(10);

/// What one end of an echo writes, and what it reads.
fn ends(map: &Words, ours: bool) -> (&[AtomicU64], &[AtomicU64]) {
    let (us, peer) = map.split_at(map.len() / 2);
    if ours { (us, peer) } else { (peer, us) }
}

/// In place, behind a sequence word: words `written` by one side, words `read` by the other.
pub(super) fn raw_words<const W: usize, const R: usize>(
    cores: Cores,
    count: u64,
    written: [usize; W],
    read: [usize; R],
) -> Result<Samples> {
    let map = Words::new(2 * (read[R - 1] + 1).next_multiple_of(PAGE))?;
    echoed((cores, false), count, |ours| {
        let ((to, from), mut next) = (ends(&map, ours), 1);
        let send = move |i| {
            written.iter().for_each(|word| to[*word].store(i, Relaxed));
            to[0].store(i, Release);
            Ok(())
        };
        let receive = move || {
            if from[0].load(Acquire) != next {
                return Ok(None);
            }
            next += 1;
            Ok(black_box(read.map(|word| from[word].load(Relaxed))).first().copied())
        };
        Ok((send, receive))
    })
}

/// A stream of slots of `W` words, the last of which is the slot's flag: 0 is free.
pub(super) fn raw_ring<const W: usize>(cores: Cores, slots: usize, count: u64) -> Result<Samples> {
    let map = Words::new(slots * W)?;
    let slot = |i: u64| &map[i as usize % slots * W..][..W];
    let receiver = || {
        let mut taken = 0;
        Ok(move || {
            let words = slot(taken);
            if words[W - 1].load(Acquire) == 0 {
                return Ok(None);
            }
            taken += 1;
            let message = words[0].load(Relaxed);
            words[W - 1].store(0, Release);
            Ok(Some(message))
        })
    };
    let sender = || {
        Ok(move |i| {
            let words = slot(i - 1);
            reached(|| words[W - 1].load(Acquire) == 0)?;
            words[..W - 1].iter().for_each(|word| word.store(i, Relaxed));
            words[W - 1].store(i, Release);
            Ok(())
        })
    };
    streamed(cores, count, receiver, sender)
}

/// A futex wake to a sleeper on the other core.
pub(super) fn raw_wake(cores: Cores, count: u64) -> Result<Samples> {
    // SAFETY: the word is in a map that is alive, and aligned to more; it is only used like this.
    let futex = |word: &AtomicU64| unsafe { &*word.as_ptr().cast::<AtomicU32>() };
    let call = |word: &AtomicU32, what: i32, value: u32| {
        let limit = libc::timespec { tv_sec: 1, tv_nsec: 0 };
        // SAFETY: the word and the time outlive the call; shared futexes need no more.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), what, value, &raw const limit) };
    };
    let map = Words::new(2 * PAGE)?;
    echoed((cores, true), count, |ours| {
        let ((to, from), mut seen) = (ends(&map, ours), 0);
        let (to, from) = (futex(&to[0]), futex(&from[0]));
        let send = move |i| {
            to.store(i as u32, Release);
            call(to, libc::FUTEX_WAKE, 1);
            Ok(())
        };
        let receive = move || {
            if from.load(Acquire) == seen {
                call(from, libc::FUTEX_WAIT, seen);
            }
            let now = from.load(Acquire);
            let news = (now != seen).then_some(u64::from(now));
            seen = now;
            Ok(news)
        };
        Ok((send, receive))
    })
}

/// A compare-and-swap to a name and one back: what no lock can do without.
pub(super) fn raw_swaps(count: u64) -> Result<Samples> {
    let map = Words::new(1)?;
    times(count, || {
        let taken = map[0].compare_exchange(0, black_box(7), SeqCst, Relaxed);
        same(taken.is_ok() & map[0].compare_exchange(7, 0, Release, Relaxed).is_ok())
    })
}

fn node(root: &Path) -> Result<Node> {
    Node::builder().root(root).name("bench").open()
}

/// One end of an echo over two topics.
fn topics<T: Payload + ?Sized>(root: &Path, ours: bool) -> Result<(Publisher<T>, Subscriber<T>)> {
    let (to, from) = if ours { ("/ping", "/pong") } else { ("/pong", "/ping") };
    let (node, depth) = (node(root)?, DEPTH);
    let to = node.topic::<T>(to)?.depth(depth).publisher()?;
    Ok((to, node.topic::<T>(from)?.depth(depth).subscriber()?))
}

/// Eight words, copied in and out.
pub(super) fn words(root: &Path, cores: Cores, count: u64) -> Result<Samples> {
    echoed((cores, false), count, |ours| {
        let (to, mut from) = topics::<[u64; 8]>(root, ours)?;
        let send = move |i| to.publish(black_box(&[i; 8])).map(drop);
        Ok((send, move || Ok(from.receive()?.map(|sample| black_box(*sample)[0]))))
    })
}

/// A loan, of which the first and the last word are touched.
pub(super) fn loan(root: &Path, cores: Cores, bytes: usize, count: u64) -> Result<Samples> {
    let last = bytes / 8 - 1;
    echoed((cores, false), count, |ours| {
        let (to, mut from) = topics::<[u64]>(root, ours)?;
        let send = move |i| {
            let mut loan = to.loan_slice(last + 1)?;
            loan[0] = i;
            loan.publish().map(drop)
        };
        let receive = move || Ok(from.receive()?.map(|s| black_box((s[0], s[last])).0));
        Ok((send, receive))
    })
}

/// A message that wakes a sleeping subscriber.
pub(super) fn wake(root: &Path, cores: Cores, count: u64) -> Result<Samples> {
    echoed((cores, true), count, |ours| {
        let (to, mut from) = topics::<u64>(root, ours)?;
        let second = Duration::from_secs(1);
        let receive = move || Ok(from.receive_timeout(second)?.map(|sample| *sample));
        Ok((move |i| to.publish(&i).map(drop), receive))
    })
}

/// 64 B to a reliable subscriber.
pub(super) fn topic(root: &Path, cores: Cores, depth: u64, count: u64) -> Result<Samples> {
    let open = || node(root)?.topic::<[u64; 8]>("/stream");
    let receiver = || {
        let mut from = open()?.depth(depth).reliable(true).subscriber()?;
        // Read where it lies: to move a sample costs more than to receive it.
        Ok(move || match from.receive()? {
            Some(message) => Ok(Some(message[7])),
            None => Ok(None),
        })
    };
    let sender = || {
        let to = open()?.depth(depth).reliable_timeout(LONG).publisher()?;
        Ok(move |i| to.publish(black_box(&[i; 8])).map(drop))
    };
    streamed(cores, count, receiver, sender)
}

/// 8 B, each alone, through a lane of `bytes`.
pub(super) fn queue(root: &Path, cores: Cores, bytes: u64, count: u64) -> Result<Samples> {
    let open = || node(root)?.queue::<[u64; 1]>("/queue");
    let receiver = || {
        let mut from = open()?.consumer()?;
        Ok(move || Ok(from.receive()?.map(|message| message[0])))
    };
    let sender = || {
        let mut to = open()?.first_bytes(bytes).bound_bytes(bytes).producer()?;
        Ok(move |i| to.send(&[i]).map(drop))
    };
    streamed(cores, count, receiver, sender)
}

/// The mutex, locked and unlocked without a rival.
pub(super) fn mutex(root: &Path, count: u64) -> Result<Samples> {
    let mutex = node(root)?.mutex::<u64>("/mutex")?;
    times(count, || same(mutex.lock().is_ok()))
}
