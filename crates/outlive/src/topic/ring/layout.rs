//! Bytes of a topic's files, as named offsets.

use crate::domain::header::{CACHE_LINE, HEADER_BYTES, round_up};
use crate::os::PAGE;

/// `meta`: what every member must agree on. Never changes.
pub(crate) mod meta {
    /// Of the rings of publishers that do not ask for another.
    pub(crate) const DEPTH: usize = 88;
    pub(crate) const ENTRY_BYTES: usize = 96;
    /// They follow the schema.
    pub(crate) const ATTRIBUTES_LEN: usize = 120;
    pub(crate) const NAME: usize = 128;
    pub(crate) const NAME_BYTES_MAX: usize = 256;
    pub(crate) const SCHEMA: usize = NAME + NAME_BYTES_MAX;
}

/// `bell`: counts changes of membership, so that publishers need not look when other publishers
/// come, nor subscribers when other subscribers do. Any member writes it; a wrong value costs a
/// bounded wait.
pub(crate) mod bell {
    /// Publishers that came or went; subscribers look at it and sleep on it.
    pub(crate) const PUBLISHERS: usize = 64;
    /// Subscribers that came or went; publishers look at it.
    pub(crate) const SUBSCRIBERS: usize = 72;
}

/// `pub.<node>.<port>`: counters, whom the publisher knows, and the ring.
pub(crate) mod ring {
    use super::{CACHE_LINE, HEADER_BYTES, PAGE};
    pub(crate) const STATE: usize = HEADER_BYTES;
    pub(crate) const DEPTH: usize = HEADER_BYTES + 8;
    pub(crate) const ENTRY_BYTES: usize = HEADER_BYTES + 16;
    /// Bell epoch that announced this ring; 0 until it was rung. No two rings of a topic have the
    /// same, and a younger one has a larger one.
    pub(crate) const BORN: usize = HEADER_BYTES + 24;
    /// 1 while the publisher waits for a reliable subscriber to move its cursor.
    pub(crate) const WANTS_ROOM: usize = HEADER_BYTES + 32;
    /// 1 when the newest entry may be withdrawn once all have read it: no history is kept.
    pub(crate) const VOLATILE: usize = HEADER_BYTES + 40;
    /// Messages published, a hint stored after each commit.
    pub(crate) const HEAD: usize = 2 * CACHE_LINE;
    /// Payload bytes published.
    pub(crate) const PAYLOAD_BYTES: usize = 2 * CACHE_LINE + 8;
    /// Table of acknowledged subscribers: node, port, unused, changes.
    pub(crate) const ACKS: usize = PAGE;
    pub(crate) const ACK_BYTES: usize = 32;
    pub(crate) const ACK_NODE: usize = 0;
    pub(crate) const ACK_PORT: usize = 8;
    pub(crate) const ACK_CHANGES: usize = 24;
    pub(crate) const ACKS_MAX: usize = 512;
    pub(crate) const ENTRIES: usize = ACKS + ACKS_MAX * ACK_BYTES;

    pub(crate) const STATE_OPEN: u32 = 1;
    pub(crate) const STATE_CLOSED: u32 = 2;
}

/// `data.<node>.<port>.<segment>`: chunks of one size.
pub(crate) mod data {
    use super::{HEADER_BYTES, PAGE};
    pub(crate) const CHUNK_BYTES: usize = HEADER_BYTES;
    pub(crate) const CHUNKS: usize = HEADER_BYTES + 8;
    pub(crate) const FIRST: usize = PAGE;
}

/// Deepest ring, in messages.
pub(crate) const DEPTH_MAX: u64 = 65536;
/// Most segments of one publisher.
pub(crate) const SEGMENTS_MAX: usize = 64;

/// An entry takes whole cache lines: of values of a fixed size as many as its head and the value
/// need, of values of varying length two.
pub(crate) const ENTRY_HEAD_BYTES: usize = super::entries::ENTRY_HEAD_WORDS * 8;
const ENTRY_BYTES_OF_SLICES: usize = 2 * CACHE_LINE;
/// Most bytes of a value of a fixed size that travel inside an entry. From here on a chunk, which
/// is read in place, costs no more than the copy (bench/results/2026-11.md).
pub(crate) const VALUE_INLINE_BYTES_MAX: usize = 1024;
/// Most payload bytes of varying length that travel inside an entry.
pub(crate) const SLICE_INLINE_BYTES_MAX: usize = ENTRY_BYTES_OF_SLICES - ENTRY_HEAD_BYTES;

/// Entry size for payloads of `size` bytes at `align`; a payload that does not fit is a chunk.
pub(crate) fn entry_bytes(size: usize, align: usize, slice: bool) -> usize {
    match slice {
        true => ENTRY_BYTES_OF_SLICES,
        false if size > VALUE_INLINE_BYTES_MAX || align > 8 => CACHE_LINE,
        false => round_up(ENTRY_HEAD_BYTES + size, CACHE_LINE),
    }
}

/// Whether entries may have that size.
pub(crate) fn is_entry_bytes(bytes: usize) -> bool {
    let largest = round_up(ENTRY_HEAD_BYTES + VALUE_INLINE_BYTES_MAX, CACHE_LINE);
    (CACHE_LINE..=largest).contains(&bytes) && bytes % CACHE_LINE == 0
}

/// Payloads shorter than this travel inside entries of `entry_bytes`: none where their alignment is
/// above that of an entry, not even an empty one.
#[inline]
pub(crate) fn inline_below(entry_bytes: usize, align: usize) -> usize {
    if align > 8 { 0 } else { entry_bytes - ENTRY_HEAD_BYTES + 1 }
}

/// Whether a ring may have that depth.
pub(crate) const fn is_depth(depth: u64) -> bool {
    depth.is_power_of_two() && depth <= DEPTH_MAX
}

pub(crate) const fn ring_bytes(depth: usize, entry_bytes: usize) -> usize {
    round_up(ring::ENTRIES + depth * entry_bytes, PAGE)
}

const _: () = assert!(ring::ENTRIES % PAGE == 0 && HEADER_BYTES == 64);
const _: () = assert!(meta::ATTRIBUTES_LEN + 8 <= meta::NAME);
