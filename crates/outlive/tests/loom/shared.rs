//! The shared memory of the models: a ring, and chunks that are plain memory.

use crate::loom::cell::UnsafeCell;

use crate::sync::AtomicU64;
use crate::topic::ring::entries::{ENTRY_HEAD_WORDS, Entry};

const ENTRY_WORDS: usize = ENTRY_HEAD_WORDS + 1;

/// Entries with a body of one word.
pub(crate) struct Ring {
    words: Vec<AtomicU64>,
    pub(crate) depth: u64,
}

impl Ring {
    pub(crate) fn new(depth: u64) -> Self {
        Self { words: words(depth as usize * ENTRY_WORDS), depth }
    }

    pub(crate) fn entry(&self, n: u64) -> Entry<'_> {
        let at = (n & (self.depth - 1)) as usize * ENTRY_WORDS;
        Entry::new(&self.words[at..at + ENTRY_WORDS])
    }
}

/// Zeroed words.
pub(crate) fn words(n: usize) -> Vec<AtomicU64> {
    (0..n).map(|_| AtomicU64::new(0)).collect()
}

/// A chunk: loom fails when a read and a write of it are not ordered.
pub(crate) struct Chunk(UnsafeCell<u64>);

impl Chunk {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(crate) fn read(&self) -> u64 {
        // SAFETY: loom checks that no write is concurrent.
        self.0.with(|p| unsafe { *p })
    }

    pub(crate) fn write(&self, value: u64) {
        // SAFETY: loom checks that nothing else is concurrent.
        self.0.with_mut(|p| unsafe { *p = value });
    }
}
