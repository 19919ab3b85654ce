//! The ring of records of one segment: how a producer adds one and how the consumer finds it.
//!
//! # Theory of operation
//! A record is a header word, then the payload. Offsets count bytes since the start of the segment
//! and never go back; the ring holds those modulo its capacity, a power of two. No record crosses
//! the ring's end. Only the producer stores; the consumer maps the ring read-only.
//!
//! | header              | means                                                 | stored by     |
//! |---------------------|-------------------------------------------------------|---------------|
//! | 0                   | nothing yet                                           | `clear`       |
//! | `RECORD`, bytes     | payload of that many bytes                            | `commit`      |
//! | `RUN`, n            | a line with n messages so far; more may be added      | `commit`      |
//! | `RUN_CLOSED`, n     | a line with n messages, and no more                   | `close_run`   |
//! | `PAD`, bytes        | nothing up to the ring's end                          | `pad`         |
//! | `JUMP`              | the lane goes on in the next segment                  | `jump`        |
//!
//! The header of the record after it is cleared before a record is committed, so that the consumer,
//! who gets there through the committed one, never takes old bytes for a header. Hence there is
//! always room for one more header: a `JUMP` needs no space, and a full ring can always be left.
//!
//! Room behind the tail may hold zeros where lines were taken back ahead, see `tail`.
//!
//! A *run* is the compact form of small messages: one cache line, a header and up to 7 words of
//! messages. Each message is committed by storing the header again with a larger n.
//!
//! | label      | store                              | load            | carries                |
//! |------------|------------------------------------|-----------------|------------------------|
//! | LANE_READY | `commit` and its like, Release     | `peek`, Acquire | payload, cleared header |
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{fault, unless_fault};

pub(in crate::queue) const KIND_BITS: u32 = 8;
pub(in crate::queue) const KIND_MASK: u64 = (1 << KIND_BITS) - 1;
pub(in crate::queue) const RECORD: u64 = 1;
pub(in crate::queue) const RUN: u64 = 2;
pub(in crate::queue) const RUN_CLOSED: u64 = 3;
pub(in crate::queue) const PAD: u64 = 4;
pub(in crate::queue) const JUMP: u64 = 5;

/// A message more in the header of a run.
pub(in crate::queue) const ONE: u64 = 1 << KIND_BITS;

/// Bytes of a run: one cache line.
pub(crate) const RUN_BYTES: u64 = 64;
pub(in crate::queue) const HEADER_BYTES: u64 = 8;

/// Header of a record with a payload of `bytes`.
#[inline]
pub(crate) const fn record_word(bytes: u64) -> u64 {
    bytes << KIND_BITS | RECORD
}

/// How the records of a queue are laid out; the same for all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes from the start of a record to its payload.
    pub(crate) head: u64,
    /// Records start at multiples of it.
    pub(crate) unit: u64,
    /// Bytes of a message where a record may hold several; 0 where a record is one message.
    pub(crate) item: u64,
    /// Messages of a run; 0 where there are none.
    pub(crate) per_run: u32,
    /// A time stamp follows the header.
    pub(crate) stamped: bool,
}

impl Shape {
    /// `fixed`: messages of `size` bytes each. `stamped`: a time stamp follows the header.
    pub(crate) const fn new(fixed: bool, size: usize, align: usize, stamped: bool) -> Self {
        let align = if align > 8 { align as u64 } else { 8 };
        let head = if stamped { 2 * HEADER_BYTES } else { HEADER_BYTES };
        let item = if size > 0 { size as u64 } else { 1 };
        let per_run = (RUN_BYTES - HEADER_BYTES) / item;
        let runs = fixed && !stamped && align == 8 && per_run >= 3;
        Self {
            head: round_up(head, align),
            unit: if runs { RUN_BYTES } else { align },
            item: if fixed { item } else { 0 },
            per_run: if runs { per_run as u32 } else { 0 },
            stamped,
        }
    }

    /// Bytes of a record with a payload of `bytes`.
    #[inline]
    pub(crate) const fn record(&self, bytes: u64) -> u64 {
        round_up(self.head + bytes, self.unit)
    }
}

const fn round_up(value: u64, to: u64) -> u64 {
    (value + to - 1) & !(to - 1)
}

/// The words of a segment's ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring<'a> {
    first: NonNull<AtomicU64>,
    /// Words, less one.
    mask: usize,
    _words: PhantomData<&'a [AtomicU64]>,
}

impl<'a> Ring<'a> {
    /// The words from `first` on, `mask` and one more, a power of two.
    ///
    /// # Safety
    /// They are valid for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn new(first: NonNull<AtomicU64>, mask: usize) -> Self {
        debug_assert!((mask + 1).is_power_of_two());
        Self { first, mask, _words: PhantomData }
    }

    /// A ring of words that are not in a segment: a power of two.
    #[cfg(test)]
    pub(crate) fn of(words: &'a [AtomicU64]) -> Self {
        assert!(words.len().is_power_of_two());
        // SAFETY: all of the slice.
        unsafe { Self::new(NonNull::from(words).cast(), words.len() - 1) }
    }

    #[inline]
    pub(crate) fn capacity(self) -> u64 {
        (self.mask as u64 + 1) * 8
    }

    #[inline(always)]
    pub(in crate::queue) fn word(self, offset: u64) -> NonNull<AtomicU64> {
        // SAFETY: masked, so it is one of the words that `new` was promised.
        unsafe { self.first.add((offset / 8) as usize & self.mask) }
    }

    /// The header at `offset`.
    #[inline(always)]
    pub(crate) fn header(self, offset: u64) -> &'a AtomicU64 {
        // SAFETY: one of the words that `new` was promised.
        unsafe { self.word(offset).as_ref() }
    }

    #[inline]
    pub(in crate::queue) fn clear(self, offset: u64) {
        // Carried by the commit before it.
        if !fault("lane.clear.missing") {
            self.header(offset).store(0, Relaxed);
        }
    }

    #[inline]
    pub(in crate::queue) fn store(self, offset: u64, word: u64) {
        // ORDERING(LANE_READY): pairs with `peek`; carries the payload and the cleared header.
        self.header(offset).store(word, unless_fault("lane.commit.relaxed", Release));
    }

    #[inline]
    pub(crate) fn peek(self, offset: u64) -> u64 {
        // ORDERING(LANE_READY): pairs with `store`.
        self.header(offset).load(unless_fault("lane.peek.relaxed", Acquire))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
