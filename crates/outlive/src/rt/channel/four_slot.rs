//! The newest value, from one writer to one reader, without waiting on either side.
//!
//! # Theory of operation
//! Simpson's four slots: two pairs of two. The reader says in its own file which pair it reads;
//! the writer writes into the other pair, there into the slot that it did not write last, and then
//! says which slot of the pair, and which pair, is the newest. Neither loops, neither looks twice.
//!
//! | word      | stored by | says                                  |
//! |-----------|-----------|---------------------------------------|
//! | `PAIR`    | writer    | the pair written last                 |
//! | `SLOT`+p  | writer    | the slot of pair p written last       |
//! | `READING` | reader    | the pair it reads, in the reader's file |
//!
//! The writer writes into a slot that the reader may read only if it missed the reader's choice
//! of this pair *and* the reader missed the writer's latest choice of slot in it. A full fence
//! between store and look on both sides rules that out (label FOUR_SLOT).
//!
//! # Crash safety
//! **Strict.** A writer killed in the middle has touched only a slot that nobody reads; a killed
//! reader leaves a choice that costs the writer nothing.

use crate::sync::Ordering::{Acquire, Release, SeqCst};
use crate::sync::{AtomicU64, fault, fence, swap_fenced, unless_fault};

/// In the reader's words: the pair it reads.
pub(crate) const READING: usize = 0;
const PAIR: usize = 0;
const SLOT: usize = 1;
const SLOTS: usize = 8;

/// Words of one slot that holds `body` words: whole cache lines.
pub(crate) const fn stride(body: usize) -> usize {
    body.div_ceil(8) * 8
}

/// Words of the writer's side.
pub(crate) const fn words(body: usize) -> usize {
    SLOTS + 4 * stride(body)
}

/// What the writer remembers: its own words, which others can only read.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    slots: [u64; 2],
}

impl Writer {
    /// Lets `fill` write a value and makes it the newest.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `PAIR`, or of `SLOT` if the reader is at that pair.
    #[inline]
    pub(crate) fn write(
        &mut self,
        own: &[AtomicU64],
        reading: &AtomicU64,
        body: usize,
        fill: impl FnOnce(&[AtomicU64]),
    ) {
        // ORDERING(FOUR_SLOT): pairs with `read`: our last choice of slot comes before this look.
        if !fault("four_slot.write.no_fence") {
            fence(SeqCst);
        }
        // ORDERING(FOUR_SLOT_READ): what the reader read of our pair, it has read.
        let pair = (reading.load(unless_fault("four_slot.reading.relaxed", Acquire)) & 1) ^ 1;
        let slot = self.slots[pair as usize] ^ 1;
        fill(place(own, body, pair, slot));
        // ORDERING(FOUR_SLOT_DATA): pairs with `read`; carries the value.
        let order = unless_fault("four_slot.slot.relaxed", Release);
        own[SLOT + pair as usize].store(slot, order);
        self.slots[pair as usize] = slot;
        own[PAIR].store(pair, Release);
    }
}

/// The slot with the newest value; it stays unchanged until the next `read`.
#[inline]
pub(crate) fn read<'a>(
    reading: &AtomicU64,
    writers: &'a [AtomicU64],
    body: usize,
) -> &'a [AtomicU64] {
    let pair = writers[PAIR].load(Acquire) & 1;
    // ORDERING(FOUR_SLOT, FOUR_SLOT_READ): our choice of pair comes before the look at the slot.
    if fault("four_slot.read.no_fence") {
        reading.store(pair, Release);
    } else {
        swap_fenced(reading, pair);
    }
    // ORDERING(FOUR_SLOT_DATA): pairs with `write`.
    let slot = writers[SLOT + pair as usize].load(unless_fault("four_slot.look.relaxed", SeqCst));
    place(writers, body, pair, slot & 1)
}

#[inline]
fn place(words: &[AtomicU64], body: usize, pair: u64, slot: u64) -> &[AtomicU64] {
    let stride = stride(body);
    let at = SLOTS + (2 * pair + slot) as usize * stride;
    &words[at..at + body]
}
