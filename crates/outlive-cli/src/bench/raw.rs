//! The machine's own limits: what two processes can do with no library in between.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Instant;

use outlive::Result;

use super::pair::{Peer, Words};
use super::{Cores, Samples, rate, same, times, ways};

/// The peer's words start here, pages away from ours.
const PEERS: usize = 1024;

/// Eight words behind a sequence word, copied in and out.
pub(super) fn words([_, cpu]: Cores, count: u64) -> Result<Samples> {
    let map = Words::new(2 * PEERS)?;
    let (ours, peers) = map.split_at(PEERS);
    let peer = Peer::fork(cpu, || {
        for i in 1.. {
            while ours[0].load(Acquire) != i {}
            for w in 1..9 {
                peers[w].store(ours[w].load(Relaxed), Relaxed);
            }
            peers[0].store(i, Release);
        }
        Ok(())
    })?;
    ways(count, |i| {
        ours[1..9].iter().for_each(|word| word.store(i, Relaxed));
        ours[0].store(i, Release);
        peer.until(|| peers[0].load(Acquire) == i)?;
        same(peers[1..9].iter().all(|word| word.load(Relaxed) == i))
    })
}

/// `bytes` in place: the first word written, the first and the last word read.
pub(super) fn pointer([_, cpu]: Cores, bytes: usize, count: u64) -> Result<Samples> {
    let (map, last) = (Words::new(2 * PEERS)?, bytes / 8 - 1);
    let (ours, peers) = (Words::new(last + 1)?, Words::new(last + 1)?);
    let (our_seq, peers_seq) = (&map[0], &map[PEERS]);
    let peer = Peer::fork(cpu, || {
        for i in 1.. {
            while our_seq.load(Acquire) != i {}
            black_box(ours[last].load(Relaxed));
            peers[0].store(ours[0].load(Relaxed), Relaxed);
            peers_seq.store(i, Release);
        }
        Ok(())
    })?;
    ways(count, |i| {
        ours[0].store(i, Relaxed);
        our_seq.store(i, Release);
        peer.until(|| peers_seq.load(Acquire) == i)?;
        black_box(peers[last].load(Relaxed));
        same(peers[0].load(Relaxed) == i)
    })
}

/// A stream of slots of `W` words, the last of which is the slot's flag: 0 is free.
pub(super) fn ring<const W: usize>([_, cpu]: Cores, slots: usize, count: u64) -> Result<Samples> {
    let (map, results) = (Words::new(slots * W)?, Words::new(PEERS)?);
    let (state, sum_seen) = (&results[0], &results[1]);
    let slot = |i: u64| &map[i as usize % slots * W..][..W];
    let peer = Peer::fork(cpu, || {
        state.store(1, Release);
        let mut sum = 0u64;
        for i in 0..count {
            let words = slot(i);
            while words[W - 1].load(Acquire) == 0 {
                spin_loop();
            }
            sum = sum.wrapping_add(words[0].load(Relaxed));
            words[W - 1].store(0, Release);
        }
        sum_seen.store(sum, Relaxed);
        state.store(2, Release);
        Ok(())
    })?;
    peer.until(|| state.load(Acquire) == 1)?;
    let start = Instant::now();
    for i in 0..count {
        let words = slot(i);
        peer.until(|| words[W - 1].load(Acquire) == 0)?;
        words[..W - 1].iter().for_each(|word| word.store(i + 1, Relaxed));
        words[W - 1].store(i + 1, Release);
    }
    peer_done(&peer, || state.load(Acquire) == 2)?;
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(rate(count, start))
}

/// It may have ended when it has said so.
pub(super) fn peer_done(peer: &Peer, done: impl Fn() -> bool) -> Result<()> {
    peer.until(&done).or_else(|error| if done() { Ok(()) } else { Err(error) })
}

/// A futex wake to a sleeper on the other core.
pub(super) fn wake([_, cpu]: Cores, count: u64) -> Result<Samples> {
    let map = Words::new(2 * PEERS)?;
    let (ours, peers) = (map.futex(0), map.futex(PEERS));
    let peer = Peer::fork(cpu, || {
        for i in 1..=count as u32 {
            while ours.load(Acquire) != i {
                futex_wait(ours, i - 1);
            }
            peers.store(i, Release);
            futex_wake(peers);
        }
        Ok(())
    })?;
    let begun = Instant::now();
    ways(count, |i| {
        ours.store(i as u32, Release);
        futex_wake(ours);
        while peers.load(Acquire) != i as u32 {
            // A sleep ends by itself after a second; the peer is dead or stuck by then.
            if !futex_wait(peers, i as u32 - 1) {
                peer.check(&begun)?;
            }
        }
        Ok(())
    })
}

/// A compare-and-swap to a name and one back: what no lock can do without.
pub(super) fn swaps(count: u64) -> Result<Samples> {
    let map = Words::new(1)?;
    times(count, || {
        let taken = map[0].compare_exchange(0, black_box(7), SeqCst, Relaxed);
        same(taken.is_ok() & map[0].compare_exchange(7, 0, Release, Relaxed).is_ok())
    })
}

/// Sleeps while `word` is `value`; false after a second.
fn futex_wait(word: &AtomicU32, value: u32) -> bool {
    let limit = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    let (at, limit) = (word.as_ptr(), &raw const limit);
    // SAFETY: the word and the time outlive the call; shared futexes need no more.
    let done = unsafe { libc::syscall(libc::SYS_futex, at, libc::FUTEX_WAIT, value, limit) };
    done == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call; waking has no other effect.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
