//! Semaphores, and their permits.

use std::collections::BTreeMap;

use crate::history::step::Handle;

/// A semaphore by its name: its files, of which the last one is found by who opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Semaphore {
    pub(crate) newest: u64,
    pub(crate) files: BTreeMap<u64, Vec<Place>>,
}

impl Semaphore {
    /// One that lies in a segment.
    pub(crate) fn begin(&mut self, file: u64, permits: u64) {
        self.files.entry(file).or_insert_with(|| vec![Place::Free; permits as usize]);
    }
}

/// One permit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Free,
    /// A thread's, whose permit is forgotten or not.
    Held { permit: Handle, by: (usize, usize), forgotten: bool },
    /// A dead thread's: whoever takes it is told.
    Broken,
    /// Free, or of one that died before it could answer.
    Unsure,
}
