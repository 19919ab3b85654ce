//! The memory that a subscriber receives into.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use super::parked::{self, Remains};
use super::raw::{Record, Vacant};
use crate::sync::fault;

/// A record begins a cache line.
const ALIGN: usize = 64;

/// Records of one subscriber, in blocks; each new block doubles their number.
#[derive(Debug)]
pub(super) struct Records {
    all: Vec<NonNull<Record>>,
    blocks: Vec<(NonNull<u8>, Layout)>,
    /// The one to try first: the last one received into, for its memory is in the cache.
    at: NonNull<Record>,
    /// Others that no sample has: what the last look at all found, less what was used since.
    free: Vec<NonNull<Record>>,
    words: usize,
}

// SAFETY: the records are this subscriber's alone but for those that samples have, and those are
// handed over by `held`; nothing is bound to a thread.
unsafe impl Send for Records {}

impl Records {
    /// Records for payloads of up to `words` words inside of entries: enough for `held` samples at
    /// a time. `None` without memory.
    pub(super) fn new(words: usize, held: usize) -> Option<Self> {
        let (at, free) = (NonNull::dangling(), Vec::new());
        let mut records = Self { all: Vec::new(), blocks: Vec::new(), at, free, words };
        records.grow(2 * held)?;
        records.at = records.free.pop()?;
        Some(records)
    }

    fn stride(&self) -> usize {
        (size_of::<Record>() + self.words * 8).next_multiple_of(ALIGN)
    }

    /// One that no sample has. `None` without memory.
    #[inline]
    pub(super) fn vacant(&mut self) -> Option<Vacant<'_>> {
        if is_held(self.at) && !fault("sample.record_taken") {
            self.at = self.find()?;
        }
        // SAFETY: one that `grow` initialised, which lives as long as we do, with as many words
        // behind it. No sample has it, and only we, borrowed
        // exclusively, could give it to one.
        Some(unsafe { Vacant::new(self.at, self.words) })
    }

    /// Another one that no sample has. A look at all of them gives at least half of them, or as
    /// many new ones: so it costs a few looks for each message, however many are held.
    #[cold]
    fn find(&mut self) -> Option<NonNull<Record>> {
        if self.free.is_empty() {
            self.free.extend(self.all.iter().filter(|record| !is_held(**record)));
            if self.free.len() < self.all.len() / 2 {
                // Without memory those that there are will do.
                let _ = self.grow(self.all.len());
            }
        }
        self.free.pop()
    }

    /// Makes `more` records; `None` without memory.
    fn grow(&mut self, more: usize) -> Option<()> {
        let stride = self.stride();
        let layout = Layout::from_size_align(stride.checked_mul(more)?, ALIGN).ok()?;
        self.all.try_reserve(more).ok()?;
        self.free.try_reserve(self.all.len() + more).ok()?;
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
            self.free.push(record);
        }
        Some(())
    }

    /// Nothing is received any more: what samples have stays for as long as they do.
    pub(super) fn park(&mut self) {
        if self.held_from(0).is_some() && !fault("sample.records_freed") {
            let (all, blocks) = (std::mem::take(&mut self.all), std::mem::take(&mut self.blocks));
            let records = Self { all, blocks, free: Vec::new(), ..*self };
            parked::park(Parked { records, first: 0 });
        }
    }

    /// The first from number `first` on that a sample has.
    fn held_from(&self, first: usize) -> Option<usize> {
        (first..self.all.len()).find(|i| is_held(self.all[*i]))
    }
}

/// Where the payloads of samples lie, or what says so, after their subscriber is gone.
#[derive(Debug)]
struct Parked {
    records: Records,
    /// No sample has those before that number.
    first: usize,
}

impl Remains for Parked {
    fn is_held(&mut self) -> bool {
        match self.records.held_from(self.first) {
            Some(held) => {
                self.first = held;
                true
            }
            None => false,
        }
    }

    fn is_ours(&self) -> bool {
        true
    }

    fn close(self: Box<Self>) {}
}

/// Whether a sample has `record`, one of a subscriber's.
#[inline]
fn is_held(record: NonNull<Record>) -> bool {
    #[cfg(test)]
    tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
    // SAFETY: `grow` initialised all of them, and they live as long as their `Records`.
    unsafe { record.as_ref() }.is_held()
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

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Records that this thread looked at.
        pub(super) static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    fn looks(run: impl FnOnce()) -> u64 {
        let before = LOOKS.get();
        run();
        LOOKS.get() - before
    }

    #[test]
    fn many_samples_held_cost_as_many_looks_each_as_few() {
        const SAMPLES: u64 = 20_000;
        let mut records = Records::new(5, 2).unwrap();
        let mut held = Vec::new();
        let received = looks(|| {
            held.extend((0..SAMPLES).map(|_| records.vacant().unwrap().hold()));
        });
        assert!(received < 8 * SAMPLES, "{received} looks to receive");
        records.park();
        drop(records);
        let dropped = looks(|| drop(held));
        assert!(dropped < 8 * SAMPLES, "{dropped} looks to drop");
    }
}
