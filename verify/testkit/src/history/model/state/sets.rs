//! Sets without locks.

use std::collections::{BTreeMap, BTreeSet};

/// A set by its name: its files, of which the last one is found by who opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Set {
    pub(crate) newest: u64,
    pub(crate) files: BTreeMap<u64, File>,
}

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) capacity: u64,
    pub(crate) ids: BTreeSet<u64>,
}

impl Set {
    /// One that lies in a segment.
    pub(crate) fn begin(&mut self, file: u64, capacity: u64) {
        self.files.entry(file).or_insert_with(|| File { capacity, ids: BTreeSet::new() });
    }
}
