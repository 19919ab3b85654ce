//! Bytes of `id` and of a node's file, as named offsets.

use crate::domain::header::{CACHE_LINE, HEADER_BYTES};
use crate::os::PAGE;

/// `<node>.threads`: a token for each thread of the node that takes locks. The owner writes.
pub(crate) mod threads {
    use super::{CACHE_LINE, HEADER_BYTES, PAGE};
    /// Places the file has room for right now; stored after it grew.
    pub(crate) const PLACES: usize = HEADER_BYTES;
    pub(crate) const FIRST: usize = 2 * CACHE_LINE;
    pub(crate) const PLACE_BYTES: usize = 2 * CACHE_LINE;
    /// In a place: 64 opaque bytes that hold the libc mutex.
    pub(crate) const TOKEN: usize = 0;
    /// In a place: the thread's id, with `ENDED` once it has ended; 0 while the place is nobody's.
    /// Stored last.
    pub(crate) const ID: usize = CACHE_LINE;
    /// Beside an id: its thread has ended in order. No id has it.
    pub(crate) const ENDED: u64 = 1 << 63;
    /// In a place: where within it the futex word of the token lies.
    pub(crate) const WORD: usize = CACHE_LINE + 8;
    /// In a place: when its thread ended in order, ns of CLOCK_MONOTONIC.
    pub(crate) const ENDED_AT: usize = CACHE_LINE + 16;
    /// Places of a new file: one page.
    pub(crate) const PLACES_FIRST: usize = (PAGE - FIRST) / PLACE_BYTES;
    /// Most threads of one node that take locks at the same time.
    pub(crate) const PLACES_MAX: usize = 16384;

    pub(crate) const fn file_bytes(places: usize) -> usize {
        crate::domain::header::round_up(FIRST + places * PLACE_BYTES, PAGE)
    }
}

/// Robust list, entry and futex word of the liveness token.
pub(crate) const TOKEN: usize = 64;
/// The token's futex word.
pub(crate) const TOKEN_WORD: usize = TOKEN + crate::os::death::holder::WORD_AT;
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
    crate::domain::header::round_up(ports_offset + ports * PORT_BYTES, PAGE)
}

const _: () = assert!(NAME + crate::domain::name::NAME_BYTES_MAX <= PAGE);
const _: () = assert!(TOKEN + crate::os::death::holder::HOLDER_BYTES <= PID);

const _: () = assert!(threads::FIRST % threads::PLACE_BYTES == 0 && threads::ENDED_AT + 8 <= 128);
