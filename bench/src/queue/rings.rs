//! Bare rings with two indices, from process to process, without a library.
//!
//! The checklist for such rings: each index on a cache line of its own, a mask instead of a
//! division, the other side's index cached until it no longer suffices, and no fence but the
//! release of the commit. Each can be left out, to see what it is worth here.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::time::Instant;

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::Result;

use super::sizes::BATCH;
use crate::pair::{Peer, SharedMap};
use crate::topic::same;

/// What a ring does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Without {
    /// The whole checklist is kept.
    Nothing,
    Alignment,
    Mask,
    CachedIndices,
    /// Does with a full fence in each send.
    FreeCommit,
    Everything,
}

impl Without {
    pub(super) const ALL: [Self; 5] =
        [Self::Alignment, Self::Mask, Self::CachedIndices, Self::FreeCommit, Self::Everything];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "ring with both indices",
            Self::Alignment => "  indices on one cache line",
            Self::Mask => "  modulo instead of mask",
            Self::CachedIndices => "  indices not cached",
            Self::FreeCommit => "  a fence in each send",
            Self::Everything => "  all four",
        }
    }
}

/// Messages of 8 bytes per second.
pub(super) fn indexed(cores: Cores, without: Without, count: u64) -> Result<Samples> {
    // Each variant is a function of its own: what is left out is not decided at run time.
    let run = match without {
        Without::Nothing => indexed_ring::<true, true, true, false>,
        Without::Alignment => indexed_ring::<false, true, true, false>,
        Without::Mask => indexed_ring::<true, false, true, false>,
        Without::CachedIndices => indexed_ring::<true, true, false, false>,
        Without::FreeCommit => indexed_ring::<true, true, true, true>,
        Without::Everything => indexed_ring::<false, false, false, true>,
    };
    run(cores, count)
}

fn indexed_ring<const ALIGNED: bool, const MASK: bool, const CACHED: bool, const FENCE: bool>(
    cores: Cores,
    count: u64,
) -> Result<Samples> {
    const SLOTS: u64 = 1 << 14;
    // Not a power of two, and not known at compile time: a division it is.
    let slots = std::hint::black_box(if MASK { SLOTS } else { SLOTS - 3 });
    let control = SharedMap::new(4096)?;
    let tail_at = if ALIGNED { 1024 } else { 8 };
    let ([head], [tail]) = (control.words(0), control.words(tail_at));
    let (ring, results) = (SharedMap::new(SLOTS as usize * 8)?, SharedMap::new(4096)?);
    let words = ring.words::<{ 1 << 14 }>(0);
    let [ready, sum_seen] = results.words(0);
    let slot = |i: u64| {
        let at = if MASK { i & (SLOTS - 1) } else { i % slots };
        &words[at as usize & (SLOTS as usize - 1)]
    };
    let peer = Peer::spawn(cores.peers, || {
        ready.store(1, Release);
        let (mut sum, mut seen) = (0u64, 0);
        for i in 0..count {
            while !CACHED || seen == i {
                seen = head.load(Acquire);
                if seen != i {
                    break;
                }
                spin_loop();
            }
            sum = sum.wrapping_add(slot(i).load(Relaxed));
            tail.store(i + 1, Release);
        }
        sum_seen.store(sum, Relaxed);
        ready.store(2, Release);
        loop {
            std::thread::park();
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    let (start, mut free) = (Instant::now(), slots);
    for i in 0..count {
        if !CACHED || i >= free {
            peer.spin_until(|| {
                free = tail.load(Acquire) + slots;
                i < free
            })?;
        }
        slot(i).store(i, Relaxed);
        head.store(i + 1, Release);
        if FENCE {
            std::sync::atomic::fence(SeqCst);
        }
    }
    peer.spin_until(|| ready.load(Acquire) == 2)?;
    let seconds = start.elapsed().as_secs_f64();
    same(sum_seen.load(Relaxed) == count * (count - 1) / 2)?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}

/// The limit for batches: both indices move once a batch. Messages of `W` words per second.
pub(super) fn batches<const W: usize>(cores: Cores, slots: u64, count: u64) -> Result<Samples> {
    let count = count / BATCH as u64 * BATCH as u64;
    let (control, results) = (SharedMap::new(4096)?, SharedMap::new(4096)?);
    let ([head], [tail]) = (control.words(0), control.words(1024));
    let bytes = slots as usize * 8 * W;
    let ring = SharedMap::new(bytes)?;
    let base = ring.at(0, bytes).cast::<[u64; W]>();
    let [ready, sum_seen] = results.words(0);
    let mask = slots - 1;
    let peer = Peer::spawn(cores.peers, || {
        ready.store(1, Release);
        let (mut at, mut sum) = (0, 0u64);
        while at < count {
            let seen = head.load(Acquire);
            if seen == at {
                spin_loop();
                continue;
            }
            let end = seen.min(at + slots / 8);
            for i in at..end {
                // SAFETY: inside the ring; written before `head` moved past it, and not again
                // before `tail` does.
                sum = sum.wrapping_add(unsafe { (*base.add((i & mask) as usize))[W - 1] });
            }
            at = end;
            tail.store(at, Release);
        }
        sum_seen.store(sum, Relaxed);
        ready.store(2, Release);
        loop {
            std::thread::park();
        }
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    let (start, mut at, mut free) = (Instant::now(), 0, slots);
    while at < count {
        if at + BATCH as u64 > free {
            peer.spin_until(|| {
                free = tail.load(Acquire) + slots;
                at + BATCH as u64 <= free
            })?;
        }
        for i in at..at + BATCH as u64 {
            // SAFETY: inside the ring; nobody reads it before `head` moves past it, and `tail` is
            // past its last use.
            unsafe { base.add((i & mask) as usize).write([i + 1; W]) };
        }
        at += BATCH as u64;
        head.store(at, Release);
    }
    peer.spin_until(|| ready.load(Acquire) == 2)?;
    let seconds = start.elapsed().as_secs_f64();
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}
