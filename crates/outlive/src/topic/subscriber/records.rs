//! The memory that a subscriber receives into.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use super::parked::{self, Parked};
use super::raw::{Record, Vacant};
use crate::sync::fault;

/// Bytes that the first records of a subscriber may take.
const FIRST_BYTES_MAX: usize = 64 << 10;
/// A record begins a cache line.
const ALIGN: usize = 64;

/// Records of one subscriber, in blocks; each new block doubles their number.
#[derive(Debug)]
pub(super) struct Records {
    all: Vec<NonNull<Record>>,
    blocks: Vec<(NonNull<u8>, Layout)>,
    /// The one to try first: the last one received into, for its memory is in the cache.
    at: NonNull<Record>,
    words: usize,
}

// SAFETY: the records are this subscriber's alone but for those that samples have, and those are
// handed over by `held`; nothing is bound to a thread.
unsafe impl Send for Records {}

impl Records {
    /// Records for payloads of up to `words` words inside of entries, `count` of them where that
    /// takes little. `None` without memory.
    pub(super) fn new(words: usize, count: usize) -> Option<Self> {
        let at = NonNull::dangling();
        let mut records = Self { all: Vec::new(), blocks: Vec::new(), at, words };
        let count = count.min(FIRST_BYTES_MAX / records.stride()).max(1);
        records.at = records.grow(count)?;
        Some(records)
    }

    fn stride(&self) -> usize {
        (size_of::<Record>() + self.words * 8).next_multiple_of(ALIGN)
    }

    /// One that no sample has. `None` without memory.
    #[inline]
    pub(super) fn vacant(&mut self) -> Option<Vacant<'_>> {
        // SAFETY: `at` is one that `grow` initialised; they live as long as we do.
        if unsafe { self.at.as_ref() }.is_held() && !fault("sample.record_taken") {
            self.at = self.find()?;
        }
        // SAFETY: as above, with as many words behind it. No sample has it, and only we, borrowed
        // exclusively, could give it to one.
        Some(unsafe { Vacant::new(self.at, self.words) })
    }

    /// Another one that no sample has.
    #[cold]
    fn find(&mut self) -> Option<NonNull<Record>> {
        // SAFETY: as in `vacant`.
        let free = self.all.iter().find(|record| !unsafe { record.as_ref() }.is_held());
        free.copied().or_else(|| self.grow(self.all.len()))
    }

    /// Makes `more` records, and gives the first of them; `None` without memory.
    fn grow(&mut self, more: usize) -> Option<NonNull<Record>> {
        let stride = self.stride();
        let layout = Layout::from_size_align(stride.checked_mul(more)?, ALIGN).ok()?;
        self.all.try_reserve(more).ok()?;
        self.blocks.try_reserve(1).ok()?;
        // SAFETY: a record has a size.
        let block = NonNull::new(unsafe { alloc(layout) })?;
        self.blocks.push((block, layout));
        for i in 0..more {
            // SAFETY: inside the block, and aligned as records are.
            let record = unsafe { block.add(i * stride) }.cast::<Record>();
            // SAFETY: as above, and ours alone.
            unsafe { record.write(Record::vacant()) };
            self.all.push(record);
        }
        Some(block.cast())
    }

    /// Nothing is received any more: what samples have stays for as long as they do.
    pub(super) fn park(&mut self) {
        if self.are_held() && !fault("sample.records_freed") {
            let (all, blocks) = (std::mem::take(&mut self.all), std::mem::take(&mut self.blocks));
            parked::park(Parked::Records(Self { all, blocks, ..*self }));
        }
    }

    /// Whether a sample has one of them.
    pub(super) fn are_held(&self) -> bool {
        // SAFETY: as in `vacant`.
        self.all.iter().any(|record| unsafe { record.as_ref() }.is_held())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        for (block, layout) in &self.blocks {
            // SAFETY: allocated in `grow` with this layout; no sample has a record in it, and
            // records need no drop: a vacant one owns nothing.
            unsafe { dealloc(block.as_ptr(), *layout) };
        }
    }
}
