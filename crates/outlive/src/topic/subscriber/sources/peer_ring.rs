//! A publisher's ring, mapped by one who reads it. Everything in it is a claim: checked, then used.
#![allow(unsafe_code)]

use crate::domain::header::{CACHE_LINE, FileHeader, FileKind};
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU64, fault};
use crate::topic::membership::Topic;
use crate::topic::membership::entry::{PublisherId, ring_path};
use crate::topic::membership::ring_header::birth;
use crate::topic::ring::entries::{ENTRY_HEAD_WORDS, Entry, Peek};
use crate::topic::ring::layout;
use crate::topic::ring::layout::ring;
use crate::topic::ring::listing::Listing;
use crate::{Error, ErrorKind, Result};

/// The mapped ring, and what its header said when it was opened.
#[derive(Debug)]
pub(super) struct PeerRing {
    map: Mapping,
    entry_words: usize,
    /// Shorter payloads may travel in an entry.
    inline_below: usize,
    depth: u64,
    volatile: bool,
}

/// Asks for the cache line of `word`, where the processor's own way to ask is known.
#[inline(always)]
fn prefetch(word: &AtomicU64) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: a hint; it reads nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(word.as_ptr().cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    let _ = word;
}

impl PeerRing {
    /// Maps and checks the ring of `id`.
    pub(super) fn open(topic: &Topic, id: PublisherId) -> Result<Self> {
        let path = ring_path(&topic.dir, id);
        let domain = topic.node.domain();
        let expect = Expect {
            writable: false,
            min_len: ring::ENTRIES as u64,
            owner: domain.access.owner_required(),
        };
        let (fd, file_bytes) = file::open_checked(&path, expect)?;
        let entry_bytes = topic.meta.entry_bytes;
        let bytes_max = layout::ring_bytes(layout::DEPTH_MAX as usize, entry_bytes);
        let bytes = (file_bytes as usize).min(bytes_max);
        let bad = |why: &str| {
            Error::new(
                ErrorKind::Corrupt,
                "attaching",
                path.display().to_string(),
                format!("{why}: restart its publisher, or run 'outlive clean' without members"),
            )
        };
        let map = Mapping::map_peer(&fd, bytes, &path)?;
        let header = FileHeader::read(&map, FileKind::Ring, file_bytes)?;
        let depth = map.atomic_u64(ring::DEPTH)?.load(Relaxed);
        let same = header.node == id.node.0
            && header.port == id.port
            && layout::is_depth(depth)
            && map.atomic_u64(ring::ENTRY_BYTES)?.load(Relaxed) == entry_bytes as u64;
        if !same {
            return Err(bad("its header does not match its name and topic"));
        }
        if bytes < layout::ring_bytes(depth as usize, entry_bytes) {
            return Err(bad("truncated"));
        }
        let opened = Self {
            entry_words: entry_bytes / 8,
            inline_below: layout::inline_below(entry_bytes, topic.meta.of.align),
            depth,
            volatile: map.atomic_u64(ring::VOLATILE)?.load(Relaxed) == 1,
            map,
        };
        opened.head().ok_or_else(|| bad("its message counter is out of range"))?;
        Ok(opened)
    }

    pub(super) fn map(&self) -> &Mapping {
        &self.map
    }

    /// Messages that it holds.
    #[inline]
    pub(super) fn depth(&self) -> u64 {
        self.depth
    }

    /// Whether its publisher withdraws what nobody waits for.
    #[inline]
    pub(super) fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Where it comes by age among the rings of the topic.
    pub(super) fn birth(&self) -> u64 {
        birth(self.map.atomic_u64(ring::BORN).map_or(0, |word| word.load(Relaxed)))
    }

    /// Whether its publisher left in order.
    pub(super) fn is_closed(&self) -> bool {
        let state = self.map.atomic_u32(ring::STATE);
        state.is_ok_and(|s| s.load(Acquire) == ring::STATE_CLOSED)
    }

    /// Whether its publisher waits for one to read on.
    #[inline]
    pub(super) fn wants_room(&self) -> bool {
        // ORDERING(WANTS_ROOM): pairs with `Room::sleep`.
        let word = self.map.atomic_u32(ring::WANTS_ROOM);
        word.is_ok_and(|w| w.load(Relaxed) != 0)
    }

    /// Messages published, as the publisher's counter says; `None` when the ring says otherwise.
    pub(super) fn head(&self) -> Option<u64> {
        // ORDERING(HEAD): pairs with `OwnRing::count`; the last entry counted is committed.
        let head = self.map.atomic_u64(ring::HEAD).ok()?.load(Acquire);
        let Some(last) = head.checked_sub(1) else { return Some(0) };
        let seen = self.entry(last).peek(last, self.depth);
        let there = matches!(seen, Peek::Ready | Peek::Overrun { .. });
        (head < 1 << 62 && there).then_some(head)
    }

    /// Behind the newest message there is. A publisher that died may not have counted it.
    pub(super) fn end(&self) -> Option<u64> {
        let head = self.head()?;
        let uncounted = self.entry(head).peek(head, self.depth) == Peek::Ready;
        Some(head + u64::from(uncounted))
    }

    /// When message `n` was published, if it is kept for those who come later and still there.
    pub(super) fn history_time(&self, n: u64) -> Option<u64> {
        // A volatile publisher keeps none: what it withdrew is not lost to those who came later.
        let entry = self.entry(n);
        if self.volatile || entry.peek(n, self.depth) != Peek::Ready {
            return None;
        }
        let time = entry.timestamp();
        entry.unchanged(n).then_some(time)
    }

    /// How message `n` stands.
    #[inline]
    pub(super) fn peek(&self, n: u64) -> Peek {
        self.entry(n).peek(n, self.depth)
    }

    #[inline]
    pub(super) fn entry(&self, n: u64) -> Entry<'_> {
        let index = (n & (self.depth - 1)) as usize * self.entry_words;
        // SAFETY: `open` mapped ENTRIES + depth entries; `depth` is a power of two (checked in
        // `open`); entries are 8-aligned; only atomics touch these bytes.
        Entry::new(unsafe {
            let base = self.map.base().add(ring::ENTRIES).cast::<AtomicU64>();
            std::slice::from_raw_parts(base.add(index), self.entry_words)
        })
    }

    /// Asks for the second line of an entry of two, which then comes together with the first one
    /// and not after it. Entries of more lines gain nothing (bench/results/2026-11.md).
    #[inline(always)]
    pub(super) fn fetch_second_line(&self, entry: Entry<'_>) {
        const LINE_WORDS: usize = CACHE_LINE / 8;
        if self.entry_words == 2 * LINE_WORDS {
            prefetch(&entry.body()[LINE_WORDS - ENTRY_HEAD_WORDS]);
        }
    }

    /// Whether an entry of this ring can hold a payload of `bytes` bytes.
    #[inline]
    pub(super) fn fits_inline(&self, bytes: usize) -> bool {
        bytes < self.inline_below || fault("inline.length_unchecked")
    }

    /// Whether its publisher lists port `port` of node `me`.
    pub(super) fn acknowledges(&self, me: u64, port: u64) -> bool {
        let words = ring::ACKS_MAX * ring::ACK_BYTES / 8;
        // SAFETY: the table ends where the entries begin, inside the mapping (`open`); the offset
        // is 8-aligned; only atomics touch these bytes.
        let words: &[AtomicU64] =
            unsafe { std::slice::from_raw_parts(self.map.base().add(ring::ACKS).cast(), words) };
        let mut places = words.chunks_exact(ring::ACK_BYTES / 8);
        places.any(|place| matches!(place, [a, b, _, d] if Listing::new(a, b, d).names(me, port)))
    }
}
