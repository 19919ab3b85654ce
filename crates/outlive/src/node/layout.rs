//! Bytes of `id` and of a node's file, as named offsets.

use crate::layout::{CACHE_LINE, HEADER_BYTES, PAGE};

/// `id`: random identity of the domain and the next node ordinal, changed under the domain lock.
pub(crate) mod id {
    use super::HEADER_BYTES;
    pub(crate) const RANDOM_LOW: usize = HEADER_BYTES;
    pub(crate) const RANDOM_HIGH: usize = HEADER_BYTES + 8;
    pub(crate) const NEXT_NODE: usize = HEADER_BYTES + 16;
    /// Next thread ordinal, counted from 0; handed out by compare-and-swap, without the lock.
    pub(crate) const NEXT_THREAD: usize = HEADER_BYTES + 24;
    pub(crate) const BYTES: usize = 128;
}

/// `<node>.threads`: a token for each thread of the node that takes locks. The owner writes.
pub(crate) mod threads {
    use super::{CACHE_LINE, HEADER_BYTES, PAGE};
    /// Places the file has room for right now; stored after it grew.
    pub(crate) const PLACES: usize = HEADER_BYTES;
    pub(crate) const FIRST: usize = 2 * CACHE_LINE;
    pub(crate) const PLACE_BYTES: usize = 2 * CACHE_LINE;
    /// In a place: 64 opaque bytes that hold the libc mutex.
    pub(crate) const TOKEN: usize = 0;
    /// In a place: the thread's id, 0 while the place is nobody's. Stored last.
    pub(crate) const ID: usize = CACHE_LINE;
    /// In a place: where within it the futex word of the token lies.
    pub(crate) const WORD: usize = CACHE_LINE + 8;
    /// Places of a new file: one page.
    pub(crate) const PLACES_FIRST: usize = (PAGE - FIRST) / PLACE_BYTES;
    /// Most threads of one node that take locks at the same time.
    pub(crate) const PLACES_MAX: usize = 16384;

    pub(crate) const fn file_bytes(places: usize) -> usize {
        crate::layout::round_up(FIRST + places * PLACE_BYTES, PAGE)
    }
}

/// Robust list, entry and futex word of the liveness token.
pub(crate) const TOKEN: usize = 64;
/// The token's futex word.
pub(crate) const TOKEN_WORD: usize = TOKEN + crate::os::holder::WORD_AT;
/// Process id at registration, for people only; never used to decide anything.
pub(crate) const PID: usize = 136;
/// Where the first port block begins.
pub(crate) const PORTS: usize = 140;
/// CLOCK_MONOTONIC at registration, ns.
pub(crate) const STARTED: usize = 144;
/// Length and bytes of the node's name.
pub(crate) const NAME_LEN: usize = 192;
pub(crate) const NAME: usize = 200;

/// Most subscriber ports of one node.
pub(crate) const PORTS_MAX: usize = 4096;
/// Distance of two port blocks: one line more than a page, so that the waiting flags that a
/// publisher polls do not all lie at the same offset of their page.
pub(crate) const PORT_BYTES: usize = PAGE + CACHE_LINE;
/// Port blocks that a new node file has room for.
pub(crate) const PORTS_FIRST: usize = 4;

/// First port block of node `ordinal`; staggered for the same reason as `PORT_BYTES`.
pub(crate) const fn ports_offset(ordinal: u64) -> usize {
    PAGE + CACHE_LINE * (ordinal % 32) as usize
}

/// Length of a node file with room for `ports` blocks, whole pages.
pub(crate) const fn file_bytes(ports_offset: usize, ports: usize) -> usize {
    crate::layout::round_up(ports_offset + ports * PORT_BYTES, PAGE)
}

const _: () = assert!(NAME + crate::name::NAME_BYTES_MAX <= PAGE);
const _: () = assert!(TOKEN + crate::os::holder::HOLDER_BYTES <= PID);
const _: () = assert!(id::NEXT_THREAD + 8 <= id::BYTES);
const _: () = assert!(threads::FIRST % threads::PLACE_BYTES == 0 && threads::WORD + 4 <= 128);
