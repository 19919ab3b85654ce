//! How much a run sends at once, and how much room it has.

use crate::RING_SLOTS;

/// Messages of a batch.
pub(super) const BATCH: usize = 64;
/// Lanes have the size of the bare ring, and do not grow.
pub(super) const LANE_BYTES: u64 = 128 << 10;
/// Lanes that leave the sender's cache before it comes round again.
pub(super) const LARGE_LANE_BYTES: u64 = 4 << 20;
/// Slots of the bare ring of 8-byte messages: 128 KiB too.
pub(super) const SLOTS: usize = 16 * RING_SLOTS;
