//! Bytes of a queue's files, as named offsets.

use crate::domain::header::{CACHE_LINE, HEADER_BYTES};
use crate::os::PAGE;

/// `meta`: what every member must agree on. Never changes. As a topic's, but for `FLAGS`.
pub(crate) mod meta {
    pub(crate) const FLAGS: usize = 68;
    /// Bytes of what describes a service's answers, behind the schema at a multiple of 8; or 0.
    pub(crate) const ANSWER_LEN: usize = 88;
    pub(crate) const ANSWER_ENCODING: usize = 0;
    pub(crate) const ANSWER_SIZE: usize = 8;
    pub(crate) const ANSWER_ALIGN: usize = 16;
    pub(crate) const ANSWER_SCHEMA: usize = 24;
    pub(crate) const NAME: usize = 128;
    /// A service's names two types.
    pub(crate) const NAME_BYTES_MAX: usize = 1024;
    pub(crate) const SCHEMA: usize = NAME + NAME_BYTES_MAX;
    /// Every record carries a time stamp.
    pub(crate) const FLAG_STAMPED: u32 = 1;
    /// Messages begin with the head of a request or a reply: the queue belongs to a service.
    pub(crate) const FLAG_FRAMED: u32 = 2;
}

/// `bell`: counts changes of membership. Any member writes it; a wrong value costs a bounded wait.
pub(crate) mod bell {
    pub(crate) const EPOCH: usize = 64;
}

/// `consumer`: who consumes, and how far each lane is consumed. Written by the holder of its lock.
pub(crate) mod consumer {
    use super::{CACHE_LINE, HEADER_BYTES, PAGE};
    /// Node of the consumer << 32 | number of changes; node 0 means nobody.
    pub(crate) const OWNER: usize = HEADER_BYTES;
    /// Changes of the table of lanes.
    pub(crate) const TABLE: usize = HEADER_BYTES + 8;
    /// The consumer's waiting flag, the socket to call and the generation of the call.
    pub(crate) const WAITING: usize = HEADER_BYTES + 16;
    pub(crate) const SOCKET: usize = HEADER_BYTES + 24;
    pub(crate) const GENERATION: usize = HEADER_BYTES + 32;
    /// Table of lanes: node, port, position, progress, messages received.
    pub(crate) const SLOTS: usize = PAGE;
    pub(crate) const SLOT_BYTES: usize = CACHE_LINE;
    pub(crate) const SLOTS_MAX: usize = 512;
    pub(crate) const BYTES: usize = SLOTS + SLOTS_MAX * SLOT_BYTES;

    pub(crate) const SLOT_NODE: usize = 0;
    pub(crate) const SLOT_PORT: usize = 8;
    pub(crate) const SLOT_POSITION: usize = 16;
    pub(crate) const SLOT_PROGRESS: usize = 24;
    pub(crate) const SLOT_RECEIVED: usize = 32;
}

/// `lane.<node>.<port>.<segment>`: one segment of a producer's lane.
pub(crate) mod lane {
    use super::{CACHE_LINE, HEADER_BYTES, PAGE};
    pub(crate) const STATE: usize = HEADER_BYTES;
    pub(crate) const SEGMENT: usize = HEADER_BYTES + 8;
    /// Bytes of the ring of records, a power of two.
    pub(crate) const CAPACITY: usize = HEADER_BYTES + 16;
    /// The producer's waiting flag.
    pub(crate) const WAITING: usize = 2 * CACHE_LINE;
    /// The ring of records.
    pub(crate) const DATA: usize = PAGE;

    pub(crate) const STATE_OPEN: u32 = 1;
    pub(crate) const STATE_CLOSED: u32 = 2;
}

/// Capacity of a lane's first segment unless its messages need more, bytes.
pub(crate) const FIRST_BYTES: u64 = 16 << 10;
/// Largest capacity of a segment, bytes.
pub(crate) const CAPACITY_BYTES_MAX: u64 = 1 << 40;
/// Smallest capacity of a segment, bytes.
pub(crate) const CAPACITY_BYTES_MIN: u64 = PAGE as u64;

const _: () = assert!(CAPACITY_BYTES_MAX <= super::position::OFFSET_MODULUS / 2);
const _: () = assert!(HEADER_BYTES == 64 && consumer::GENERATION + 8 <= 2 * CACHE_LINE);
