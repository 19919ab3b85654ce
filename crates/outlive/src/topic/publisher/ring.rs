//! A publisher's own ring file.
#![allow(unsafe_code)]

use crate::Result;
use crate::domain::header::{FileHeader, FileKind};
use crate::os::fs::file::Draft;
use crate::os::fs::map::Mapping;
use crate::os::sleep::futex;
use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64};
use crate::topic::membership::Topic;
use crate::topic::membership::entry::{PublisherId, ring_path};
use crate::topic::ring::entries::Entry;
use crate::topic::ring::layout;
use crate::topic::ring::layout::ring;
use crate::topic::ring::listing::Listing;

/// Entries, counters, and the table of acknowledged subscribers.
#[derive(Debug)]
pub(super) struct OwnRing {
    map: Mapping,
    id: PublisherId,
    entry_words: usize,
    mask: u64,
    /// Payloads shorter than this travel inside entries.
    inline_below: usize,
    next: u64,
    payload_bytes: u64,
}

impl OwnRing {
    /// Makes the ring of publisher `id`, of `depth` messages, a power of two.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete file.
    pub(super) fn create(
        topic: &Topic,
        id: PublisherId,
        depth: usize,
        volatile: bool,
    ) -> Result<Self> {
        let entry_bytes = topic.meta.entry_bytes;
        let bytes = layout::ring_bytes(depth, entry_bytes);
        let path = ring_path(&topic.dir, id);
        let draft = Draft::new(&topic.dir, bytes as u64, topic.node.domain().access.own_mode)?;
        let map = draft.map_reserve(bytes, &path)?;
        FileHeader {
            kind: FileKind::Ring,
            total_bytes: bytes as u64,
            node: id.node.0,
            port: id.port,
        }
        .write(&map)?;
        map.atomic_u64(ring::DEPTH)?.store(depth as u64, Relaxed);
        map.atomic_u64(ring::ENTRY_BYTES)?.store(entry_bytes as u64, Relaxed);
        map.atomic_u64(ring::VOLATILE)?.store(u64::from(volatile), Relaxed);
        map.atomic_u32(ring::STATE)?.store(ring::STATE_OPEN, Relaxed);
        map.bytes(ring::ENTRIES, depth * entry_bytes)?;
        draft.link(&path)?;
        let inline_below = layout::inline_below(entry_bytes, topic.meta.of.align);
        let (entry_words, mask) = (entry_bytes / 8, depth as u64 - 1);
        Ok(Self { map, id, entry_words, mask, inline_below, next: 0, payload_bytes: 0 })
    }

    pub(super) fn id(&self) -> PublisherId {
        self.id
    }

    /// Number of the next message, which is how many were published.
    #[inline(always)]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Payloads shorter than this travel inside entries.
    #[inline(always)]
    pub(super) fn inline_below(&self) -> usize {
        self.inline_below
    }

    /// Messages that it holds.
    #[inline]
    pub(super) fn depth(&self) -> u64 {
        self.mask + 1
    }

    /// Which of its entries message `n` takes.
    #[inline]
    pub(super) fn index(&self, n: u64) -> usize {
        (n & self.mask) as usize
    }

    pub(super) fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    #[inline]
    pub(super) fn entry(&self, n: u64) -> Entry<'_> {
        let index = self.index(n) * self.entry_words;
        // SAFETY: `create` checked that the ring of mask + 1 entries lies inside `map`, and entries
        // are 8-aligned; only atomics touch these bytes.
        Entry::new(unsafe {
            let base = self.map.base().add(ring::ENTRIES).cast::<AtomicU64>();
            std::slice::from_raw_parts(base.add(index), self.entry_words)
        })
    }

    /// A header word at a constant offset.
    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= ring::ENTRIES && offset % 8 == 0);
        // SAFETY: the file is at least ENTRIES long; constants below that are 8-aligned.
        unsafe { &*self.map.base().add(offset).cast::<AtomicU64>() }
    }

    /// One more message was published, of `bytes` bytes.
    ///
    /// # Crash safety
    /// **Strict.** Who reads it looks at the entry behind the last one counted, too.
    #[inline(always)]
    pub(super) fn count(&mut self, bytes: usize) {
        self.next += 1;
        self.payload_bytes += bytes as u64;
        // ORDERING(HEAD): pairs with `Source::head`; the entry is committed before.
        self.word(ring::HEAD).store(self.next, Release);
        self.word(ring::PAYLOAD_BYTES).store(self.payload_bytes, Relaxed);
    }

    /// Its age among the rings of the topic.
    pub(super) fn set_born(&self, born: u64) {
        self.word(ring::BORN).store(born, Release);
    }

    /// Whether its publisher waits for room: reliable subscribers wake it then.
    pub(super) fn wants_room(&self) -> &AtomicU32 {
        futex::low_half(self.word(ring::WANTS_ROOM))
    }

    /// A place of the table of acknowledged subscribers.
    fn ack(&self, i: usize) -> Listing<'_> {
        let at = ring::ACKS + i * ring::ACK_BYTES;
        let word = |offset| self.word(at + offset);
        Listing::new(word(ring::ACK_NODE), word(ring::ACK_PORT), word(ring::ACK_CHANGES))
    }

    /// Acknowledges the subscriber with that node and port; `None`: the table is full.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: that of `Listing::name`.
    pub(super) fn acknowledge(&self, node: u64, port: u64) -> Option<usize> {
        let free = (0..ring::ACKS_MAX).find(|&i| self.ack(i).is_free())?;
        self.ack(free).name(node, port);
        Some(free)
    }

    /// Takes back the acknowledgement in place `i`.
    pub(super) fn disown(&self, i: usize) {
        self.ack(i).clear();
    }

    pub(super) fn is_poisoned(&self) -> bool {
        self.map.is_poisoned()
    }

    /// No more messages come.
    pub(super) fn close(&self) {
        if let Ok(state) = self.map.atomic_u32(ring::STATE) {
            state.store(ring::STATE_CLOSED, Release);
        }
    }
}
