//! The ring of one publisher: how an entry is written, read and found overwritten.
//!
//! # Theory of operation
//! Message n (from 0) lives in entry n mod K. Word 0 of an entry is its `seq`:
//!
//! | `seq`  | means                       | stored by               |
//! |--------|-----------------------------|-------------------------|
//! | 0      | never written               | nobody (a new file)     |
//! | 2n + 1 | message n is being written  | `Entry::begin`          |
//! | 2n + 2 | message n is committed      | `Entry::commit`         |
//!
//! `begin` is the moment message n - K ceases to be readable; `commit` is the commit point.
//! Only the publisher writes; everybody else maps the ring read-only.
//!
//! | label       | store                  | load                 | carries                     |
//! |-------------|------------------------|----------------------|-----------------------------|
//! | ENTRY_READY | `commit`, Release      | `peek`, Acquire      | the entry and its chunk     |
//! | ENTRY_BUSY  | `begin`, fence Release | `unchanged`, Acquire | "what you copied was stale" |

use super::body;
use crate::crash_point;
use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, fault, fence, unless_fault};

/// Words before the body of an entry.
pub(crate) const ENTRY_HEAD_WORDS: usize = 3;
const SEQ: usize = 0;
const TIMESTAMP: usize = 1;
const DESCRIPTOR: usize = 2;

/// One entry of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    head: &'a [AtomicU64; ENTRY_HEAD_WORDS],
    body: &'a [AtomicU64],
}

/// What a subscriber finds at the entry of its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peek {
    /// Not committed yet; `busy` while the publisher is inside it.
    Empty { busy: bool },
    /// The message at the cursor is committed.
    Ready,
    /// Overwritten; the oldest message that may still be there.
    Overrun { oldest: u64 },
    /// No publisher stores this.
    Corrupt,
}

impl<'a> Entry<'a> {
    /// `words`: head words, then the body.
    #[inline]
    pub(crate) fn new(words: &'a [AtomicU64]) -> Self {
        let (head, body) = words.split_first_chunk().expect("an entry has a head");
        Self { head, body }
    }

    #[inline]
    fn seq(self) -> &'a AtomicU64 {
        &self.head[SEQ]
    }

    #[inline]
    fn timestamp_word(self) -> &'a AtomicU64 {
        &self.head[TIMESTAMP]
    }

    #[inline]
    fn descriptor_word(self) -> &'a AtomicU64 {
        &self.head[DESCRIPTOR]
    }

    /// The word of the body that names the chunk of a message that has one.
    #[inline]
    fn location_word(self) -> &'a AtomicU64 {
        &self.body[0]
    }

    /// The word to sleep on: it changes with every commit.
    #[inline]
    pub(crate) fn word(self) -> &'a AtomicU64 {
        self.seq()
    }

    #[inline]
    pub(crate) fn body(self) -> &'a [AtomicU64] {
        self.body
    }

    /// Writes message `n` with its payload in the body, where it fits.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `commit`.
    #[inline(always)]
    pub(crate) fn publish_inline(self, n: u64, timestamp: u64, bytes: &[u8]) {
        self.begin(n);
        crash_point!("publish.inline.begun");
        if fault("publish.commit_first") {
            self.commit(n);
        }
        self.describe(timestamp, Descriptor::Inline { bytes: bytes.len() }.encode());
        body::copy_in(self.body(), bytes);
        crash_point!("publish.inline.before_commit");
        self.commit(n);
    }

    /// Writes message `n` whose payload of `bytes` bytes is the chunk at `location`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `commit`.
    #[inline]
    pub(crate) fn publish_chunk(self, n: u64, timestamp: u64, location: u64, bytes: usize) {
        self.begin(n);
        if fault("publish.commit_first") {
            self.commit(n);
        }
        self.describe(timestamp, Descriptor::Chunk { bytes }.encode());
        self.location_word().store(location, Relaxed);
        crash_point!("publish.chunk.before_commit");
        self.commit(n);
    }

    /// Takes the entry for message `n`; message n - K is gone from here on.
    ///
    /// # Crash safety
    /// **Strict.** Dying after it: the entry reads as unfinished and is skipped.
    #[inline]
    fn begin(self, n: u64) {
        if fault("publish.no_begin") {
            return;
        }
        self.seq().store(2 * n + 1, Relaxed);
        // ORDERING(ENTRY_BUSY): pairs with `unchanged`; who sees our body sees this seq.
        if !fault("ring.begin.no_fence") {
            fence(Release);
        }
    }

    /// Takes back what the entry says, long before message `n` is written into it.
    ///
    /// # Crash safety
    /// **Strict.** As `begin`.
    pub(crate) fn withdraw(self, n: u64) {
        self.begin(n);
        // Tells it from a message that is being written.
        if !fault("withdraw.looks_busy") {
            self.descriptor_word().store(0, Relaxed);
        }
    }

    /// Of a volatile publisher: whether its last message was withdrawn and no other begun, once it
    /// is dead. Between beginning a message and describing it nothing is lost that was there.
    pub(crate) fn is_withdrawn(self) -> bool {
        self.descriptor() == 0
    }

    #[inline]
    fn describe(self, timestamp: u64, descriptor: u64) {
        self.timestamp_word().store(timestamp, Relaxed);
        self.descriptor_word().store(descriptor, Relaxed);
    }

    /// Commit point of message `n`.
    ///
    /// # Crash safety
    /// **Strict.** Before the store nothing happened, after it the message is sent.
    #[inline]
    fn commit(self, n: u64) {
        // ORDERING(ENTRY_READY): pairs with `peek`; carries the entry and its chunk.
        self.seq().store(2 * n + 2, unless_fault("ring.commit.relaxed", Release));
    }

    /// What is at the entry of message `cursor` in a ring of `depth`.
    #[inline]
    pub(crate) fn peek(self, cursor: u64, depth: u64) -> Peek {
        // ORDERING(ENTRY_READY): pairs with `commit`.
        let seq = self.seq().load(unless_fault("ring.peek.relaxed", Acquire));
        if seq == ready(cursor) {
            return Peek::Ready;
        }
        if seq < ready(cursor) {
            return Peek::Empty { busy: seq == ready(cursor) - 1 };
        }
        let newest = (seq - 1) / 2;
        if newest & (depth - 1) != cursor & (depth - 1) || newest >= 1 << 62 {
            return Peek::Corrupt;
        }
        // Newer by a multiple of the depth, so at least one further than the cursor.
        Peek::Overrun { oldest: newest - depth + 1 }
    }

    /// Whether message `cursor` is still what was read from here: ends a copy.
    #[inline]
    pub(crate) fn unchanged(self, cursor: u64) -> bool {
        // ORDERING(ENTRY_BUSY): pairs with `begin`.
        if !fault("ring.unchanged.no_fence") {
            fence(Acquire);
        }
        self.seq().load(Relaxed) == ready(cursor)
    }

    /// As `unchanged`, ordered after the hazard store before it. See `hazard`.
    #[inline]
    pub(crate) fn unchanged_after_hazard(self, cursor: u64) -> bool {
        // ORDERING(ENTRY_BUSY): pairs with `begin`; the descriptor was read before this.
        if !fault("ring.recheck.no_fence") {
            fence(Acquire);
        }
        // ORDERING(HAZARD): SeqCst against the publisher's fence in `hazard::barrier`.
        self.seq().load(SeqCst) == ready(cursor)
    }

    #[inline]
    pub(crate) fn timestamp(self) -> u64 {
        self.timestamp_word().load(Relaxed)
    }

    #[inline]
    pub(crate) fn descriptor(self) -> u64 {
        self.descriptor_word().load(Relaxed)
    }

    /// Where the chunk is, of a message that has one.
    #[inline]
    pub(crate) fn location(self) -> u64 {
        self.location_word().load(Relaxed)
    }

    /// What `word` holds while there is nothing to read at `cursor`, to sleep until it changes.
    #[inline]
    pub(crate) fn seen_empty(self, cursor: u64, depth: u64) -> Option<u64> {
        // Before the look: a commit in between makes the sleep end at once.
        let seen = self.seq().load(Relaxed);
        matches!(self.peek(cursor, depth), Peek::Empty { .. }).then_some(seen)
    }
}

/// Overruns in one call before it gives up.
const OVERRUNS_MAX: u32 = 8;

/// A subscriber in pursuit of messages that a publisher overwrites before it has read them.
///
/// The first time it goes on with the oldest message that may be left. That is the next one to be
/// overwritten: beside a publisher at full speed it is lost as well, and so on, step by step. So
/// from the second time on it goes to the middle of the ring, half a ring ahead of the publisher.
#[derive(Debug, Default)]
pub(crate) struct Chase {
    overruns: u32,
}

impl Chase {
    /// Which message to try next, `oldest` being the oldest that may be left in a ring of `depth`.
    /// `None`: no more in this call.
    pub(crate) fn next(&mut self, oldest: u64, depth: u64) -> Option<u64> {
        self.overruns += 1;
        if fault("receive.chases_oldest") || self.overruns == 1 {
            return Some(oldest);
        }
        (self.overruns <= OVERRUNS_MAX).then_some(oldest + depth / 2)
    }
}

#[inline]
const fn ready(n: u64) -> u64 {
    n.wrapping_mul(2).wrapping_add(2)
}

/// What the descriptor word of an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// The payload is in the body, this many bytes.
    Inline { bytes: usize },
    /// The payload is a chunk; its location is the first word of the body.
    Chunk { bytes: usize },
}

const KIND_SHIFT: u32 = 56;
const BYTES_MASK: u64 = (1 << 48) - 1;

impl Descriptor {
    #[inline]
    pub(crate) fn encode(self) -> u64 {
        match self {
            Self::Inline { bytes } => 1 << KIND_SHIFT | bytes as u64,
            Self::Chunk { bytes } => 2 << KIND_SHIFT | bytes as u64,
        }
    }

    /// `None` for anything that no publisher stores.
    #[inline]
    pub(crate) fn decode(word: u64) -> Option<Self> {
        let bytes = (word & BYTES_MASK) as usize;
        match word & !BYTES_MASK {
            k if k == 1 << KIND_SHIFT => Some(Self::Inline { bytes }),
            k if k == 2 << KIND_SHIFT => Some(Self::Chunk { bytes }),
            _ => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn words(n: usize) -> Vec<AtomicU64> {
        (0..n).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn a_message_is_empty_then_busy_then_ready_then_overrun() {
        let w = words(4);
        let e = Entry::new(&w);
        assert_eq!(e.peek(0, 4), Peek::Empty { busy: false });
        e.begin(0);
        assert_eq!(e.peek(0, 4), Peek::Empty { busy: true });
        e.commit(0);
        assert_eq!(e.peek(0, 4), Peek::Ready);
        assert!(e.unchanged(0));
        e.begin(4);
        assert_eq!(e.peek(0, 4), Peek::Overrun { oldest: 1 });
        assert!(!e.unchanged(0));
        e.commit(4);
        assert_eq!(e.peek(0, 4), Peek::Overrun { oldest: 1 });
        assert_eq!(e.peek(4, 4), Peek::Ready);
        assert_eq!(e.peek(8, 4), Peek::Empty { busy: false });
    }

    #[test]
    fn a_chase_tries_the_oldest_once_and_then_the_middle_a_few_times() {
        let (depth, mut chase) = (16, Chase::default());
        assert_eq!(chase.next(100, depth), Some(100));
        let tries: Vec<u64> = (0..).map_while(|i| chase.next(100 + i, depth)).collect();
        assert_eq!(tries, (108..108 + u64::from(OVERRUNS_MAX) - 1).collect::<Vec<_>>());
        // Of one message there is no middle.
        let mut chase = Chase::default();
        assert_eq!((chase.next(5, 1), chase.next(6, 1)), (Some(5), Some(6)));
    }

    #[test]
    fn a_seq_of_another_entry_or_out_of_range_is_corrupt() {
        let w = words(4);
        let e = Entry::new(&w);
        for seq in [2 * 5 + 2, u64::MAX, u64::MAX - 1, 1 << 63] {
            w[0].store(seq, Relaxed);
            assert_eq!(e.peek(0, 4), Peek::Corrupt, "{seq:#x}");
        }
    }

    #[test]
    fn descriptors_round_trip_and_garbage_is_none() {
        for d in [Descriptor::Inline { bytes: 40 }, Descriptor::Chunk { bytes: 6_220_800 }] {
            assert_eq!(Descriptor::decode(d.encode()), Some(d));
        }
        for word in [0, u64::MAX, 3 << 56, 1 << 55 | 1 << 56] {
            assert_eq!(Descriptor::decode(word), None);
        }
    }
}
