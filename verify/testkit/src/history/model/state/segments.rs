//! Segments, and what lies in them.

use std::collections::BTreeMap;

use crate::history::member::WORDS;
use crate::history::step::Verb;

/// A segment by its name: its files, of which the last one is found by who opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    pub(crate) newest: u64,
    pub(crate) files: BTreeMap<u64, File>,
}

#[derive(Clone, Debug)]
pub(crate) struct File {
    pub(crate) large: u64,
    pub(crate) words: [u64; WORDS],
    /// By their first lines.
    pub(crate) placed: BTreeMap<u64, Placed>,
}

/// An object in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) what: Verb,
    pub(crate) count: u64,
    /// The number that it has among those of its kind, instead of a name's.
    pub(crate) number: u64,
}
