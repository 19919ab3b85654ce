//! The machine's own limits: what two processes can do with no library in between. Each outlive
//! figure is a ratio to one of these, taken in the same minute.
//!
//! | limit | what is handed over | printed |
//! |---|---|---|
//! | [`inline`] | `W` words behind a sequence word, copied in and copied out | ns one way |
//! | [`pointer()`] | in place: first word written, first and last word read | ns one way |
//! | [`copied`] | a payload copied in, and read in full in place | ns one way |
//! | [`wake`] | a futex wake to a thread that sleeps on the other core | ns one way |
//! | [`ring`] | a stream of slots, each with its own flag word, at full speed | messages/s |
//!
//! A way is half a round trip: the peer answers with what it received, from memory of its own, and
//! the answer is compared. So a figure is of data that did arrive.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Instant;
use std::{ptr, slice};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::{Error, ErrorKind, Result};

use super::pair::{Peer, SharedMap};
use super::ticks;

/// Our words start here; the peer's a page further on, so that neither prefetches the other.
const OURS: usize = 0;
const PEERS: usize = 4096;
const PAGES: usize = 8192;

/// Hands `W` words over and back, `count` times. 7 words and the sequence fill one cache line.
pub(crate) fn inline<const W: usize>(cores: Cores, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let room = (8 + 8 * W).next_multiple_of(PEERS);
    let map = SharedMap::new(2 * room)?;
    let ([our_seq], our_words) = (map.words(OURS), map.words::<W>(OURS + 8));
    let ([peers_seq], peers_words) = (map.words(room), map.words::<W>(room + 8));
    let peer = Peer::spawn(cores.peers, || {
        let mut copy = [0; W];
        for i in 1..=count {
            while !is(our_seq.load(Acquire) == i) {}
            copy_out(our_words, &mut copy);
            copy_in(&copy, peers_words);
            peers_seq.store(i, Release);
        }
        wait_for_the_end();
    })?;
    let (mut sent, mut answer) = ([1; W], [0; W]);
    round_trips(count, |i| {
        sent.fill(i);
        let start = ticks::now();
        copy_in(black_box(&sent), our_words);
        our_seq.store(i, Release);
        peer.spin_until(|| is(peers_seq.load(Acquire) == i))?;
        copy_out(peers_words, &mut answer);
        let took = ticks::now().wrapping_sub(start);
        same(&answer, &sent)?;
        Ok(took)
    })
}

/// Hands a payload of `size_bytes` over in place and gets one back, `count` times.
pub(crate) fn pointer(cores: Cores, size_bytes: usize, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let map = SharedMap::new(PAGES)?;
    let ([our_seq], [peers_seq]) = (map.words(OURS), map.words(PEERS));
    let (ours, peers) = (SharedMap::new(size_bytes)?, SharedMap::new(size_bytes)?);
    let [our_first] = ours.words(0);
    let [our_last] = ours.words(size_bytes - 8);
    let [peers_first] = peers.words(0);
    let [peers_last] = peers.words(size_bytes - 8);
    let peer = Peer::spawn(cores.peers, || {
        for i in 1..=count {
            while !is(our_seq.load(Acquire) == i) {}
            black_box(our_last.load(Relaxed));
            peers_first.store(our_first.load(Relaxed), Relaxed);
            peers_seq.store(i, Release);
        }
        wait_for_the_end();
    })?;
    round_trips(count, |i| {
        let start = ticks::now();
        our_first.store(i, Relaxed);
        our_seq.store(i, Release);
        peer.spin_until(|| is(peers_seq.load(Acquire) == i))?;
        black_box(peers_last.load(Relaxed));
        let answer = peers_first.load(Relaxed);
        let took = ticks::now().wrapping_sub(start);
        same(&[answer], &[i])?;
        Ok(took)
    })
}

/// Copies `size_bytes` in, has them read in full, and gets as many back, `count` times.
pub(crate) fn copied(cores: Cores, size_bytes: usize, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let map = SharedMap::new(PAGES)?;
    let ([our_seq], [peers_seq]) = (map.words(OURS), map.words(PEERS));
    let (ours, peers) = (SharedMap::new(size_bytes)?, SharedMap::new(size_bytes)?);
    let source = vec![3u8; size_bytes];
    let expected = read_all(&source);
    let [peers_sum] = map.words(PEERS + 64);
    let peer = Peer::spawn(cores.peers, || {
        for i in 1..=count {
            while !is(our_seq.load(Acquire) == i) {}
            // SAFETY: our_seq = i says these bytes are complete; they rest until peers_seq = i.
            peers_sum.store(unsafe { read_map(&ours, size_bytes) }, Relaxed);
            // SAFETY: the other side reads these bytes only after peers_seq = i.
            unsafe { fill_map(&peers, &source) };
            peers_seq.store(i, Release);
        }
        wait_for_the_end();
    })?;
    round_trips(count, |i| {
        let start = ticks::now();
        // SAFETY: the peer reads these bytes only after our_seq = i, and was done with the last
        // ones when it answered.
        unsafe { fill_map(&ours, &source) };
        our_seq.store(i, Release);
        peer.spin_until(|| is(peers_seq.load(Acquire) == i))?;
        // SAFETY: peers_seq = i says these bytes are complete; they rest until our_seq = i + 1.
        let sum = unsafe { read_map(&peers, size_bytes) };
        let took = ticks::now().wrapping_sub(start);
        same(&[sum, peers_sum.load(Relaxed)], &[expected; 2])?;
        Ok(took)
    })
}

/// Wakes a sleeper on the other core and is woken by it, `count` times.
pub(crate) fn wake(cores: Cores, count: u64) -> Result<Samples> {
    let _pinned = Pinned::to(cores.ours)?;
    let map = SharedMap::new(PAGES)?;
    let (our_word, peers_word) = (map.futex(OURS), map.futex(PEERS));
    let peer = Peer::spawn(cores.peers, || {
        for i in 1..=count as u32 {
            while our_word.load(Acquire) != i {
                futex_wait(our_word, i - 1);
            }
            peers_word.store(i, Release);
            futex_wake(peers_word, 1);
        }
        wait_for_the_end();
    })?;
    round_trips(count, |i| {
        let i = i as u32;
        let start = ticks::now();
        our_word.store(i, Release);
        futex_wake(our_word, 1);
        while peers_word.load(Acquire) != i {
            // A sleep ends by itself after a second; the peer is dead or stuck by then.
            if futex_wait(peers_word, i - 1) == Some(libc::ETIMEDOUT) && peer.has_ended() {
                return Err(peer.lost());
            }
        }
        Ok(ticks::now().wrapping_sub(start))
    })
}

/// Streams `count` messages of `W` words through `slots` slots (a power of two). The last word of
/// a slot is its flag: 0 is free. One sample: messages per second.
pub(crate) fn ring<const W: usize>(cores: Cores, slots: usize, count: u64) -> Result<Samples> {
    assert!(slots.is_power_of_two(), "the index is masked");
    let _pinned = Pinned::to(cores.ours)?;
    let map = SharedMap::new(slots * W * 8)?;
    let ring = map.slots::<W>(0, slots);
    let results = SharedMap::new(PAGES)?;
    let [ready, sum_seen] = results.words(0);
    let slot = |i: u64| &ring[i as usize & (slots - 1)];
    let peer = Peer::spawn(cores.peers, || {
        let mut sum = 0u64;
        ready.store(1, Release);
        for i in 0..count {
            let words = slot(i);
            while words[W - 1].load(Acquire) == 0 {
                spin_loop();
            }
            sum = sum.wrapping_add(words[0].load(Relaxed));
            words[W - 1].store(0, Release);
        }
        sum_seen.store(sum, Relaxed);
        ready.store(2, Release);
        wait_for_the_end();
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let start = Instant::now();
    for i in 0..count {
        let words = slot(i);
        peer.spin_until(|| is(words[W - 1].load(Acquire) == 0))?;
        for word in &words[..W - 1] {
            word.store(i + 1, Relaxed);
        }
        words[W - 1].store(i + 1, Release);
    }
    peer.spin_until(|| is(ready.load(Acquire) == 2))?;
    let seconds = start.elapsed().as_secs_f64();
    same(&[sum_seen.load(Relaxed)], &[count * (count + 1) / 2])?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}

/// Times `count` round trips in ticks, numbered from 1, and halves them into ways in nanoseconds.
pub(super) fn round_trips(count: u64, mut trip: impl FnMut(u64) -> Result<u64>) -> Result<Samples> {
    let way_ns = ticks::ns_per_tick() / 2.0;
    let mut ways = Vec::with_capacity(count as usize);
    for i in 1..=count {
        ways.push(trip(i)? as f64 * way_ns);
    }
    Ok(Samples::after_warm_up(ways))
}

/// The answer is what was sent.
fn same(got: &[u64], sent: &[u64]) -> Result<()> {
    if got == sent {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corrupt,
        "compare the answer in",
        "the raw measurement",
        "the machine or the harness is broken: the peer answered with other data",
    ))
}

/// `met`, with a pause for the other thread of the core where it is not.
#[inline(always)]
fn is(met: bool) -> bool {
    if !met {
        spin_loop();
    }
    met
}

#[inline(always)]
fn copy_in<const W: usize>(from: &[u64; W], to: &[AtomicU64; W]) {
    for (from, to) in from.iter().zip(to) {
        to.store(*from, Relaxed);
    }
}

#[inline(always)]
fn copy_out<const W: usize>(from: &[AtomicU64; W], to: &mut [u64; W]) {
    for (from, to) in from.iter().zip(to) {
        *to = from.load(Relaxed);
    }
}

/// A sum over every byte, as fast as memory gives them: 16 sums that do not wait for each other.
pub(crate) fn read_all(bytes: &[u8]) -> u64 {
    let mut sums = [0u64; 16];
    let mut lines = bytes.chunks_exact(128);
    for line in &mut lines {
        for (sum, word) in sums.iter_mut().zip(line.chunks_exact(8)) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(word.try_into().unwrap_or_default()));
        }
    }
    let tail = lines.remainder().iter().map(|b| u64::from(*b)).sum::<u64>();
    black_box(sums.iter().fold(tail, |a, b| a.wrapping_add(*b)))
}

/// # Safety
/// Nobody writes to the first `size_bytes` of `map` meanwhile.
unsafe fn read_map(map: &SharedMap, size_bytes: usize) -> u64 {
    // SAFETY: in bounds by `at`; no writer by this function's own condition.
    read_all(unsafe { slice::from_raw_parts(map.at(0, size_bytes), size_bytes) })
}

/// # Safety
/// Nobody else touches the first `source.len()` bytes of `map` meanwhile.
unsafe fn fill_map(map: &SharedMap, source: &[u8]) {
    // SAFETY: in bounds by `at`; private memory and a shared map do not overlap; nobody else there
    // by this function's own condition.
    unsafe { ptr::copy_nonoverlapping(source.as_ptr(), map.at(0, source.len()), source.len()) };
}

/// Sleeps while `word` is `value`, at most a second. The error number, if any.
pub(super) fn futex_wait(word: &AtomicU32, value: u32) -> Option<i32> {
    let limit = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: the word and the time outlive the call; shared futexes need no more.
    let done = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const limit)
    };
    // SAFETY: the C library's error number of this thread.
    (done != 0).then(|| unsafe { *libc::__errno_location() })
}

/// Wakes at most `count` sleepers.
pub(super) fn futex_wake(word: &AtomicU32, count: i32) {
    // SAFETY: the word outlives the call; waking has no other effect.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
}

/// Keeps the peer's core quiet until our side kills it: an exit would disturb the last samples.
fn wait_for_the_end() {
    loop {
        // SAFETY: sleeps until a signal.
        unsafe { libc::pause() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short runs of everything; each compares its own answers.
    #[test]
    fn every_limit_can_be_measured() -> Result<()> {
        let Ok(cores) = Cores::first_two() else {
            return Ok(());
        };
        for samples in [
            inline::<7>(cores, 300)?,
            inline::<512>(cores, 100)?,
            pointer(cores, 1 << 20, 300)?,
            copied(cores, 100_003, 20)?,
            wake(cores, 20)?,
            ring::<1>(cores, 64, 10_000)?,
            ring::<8>(cores, 64, 10_000)?,
        ] {
            assert!(samples.median() > 0.0);
        }
        Ok(())
    }

    #[test]
    fn a_wrong_answer_is_an_error() {
        assert_eq!(same(&[1], &[2]).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn reading_all_leaves_no_byte_out() {
        let mut bytes = vec![0; 128 + 19];
        for i in 0..bytes.len() {
            bytes[i] = 1;
            assert_ne!(read_all(&bytes), 0, "byte {i}");
            bytes[i] = 0;
        }
    }
}
