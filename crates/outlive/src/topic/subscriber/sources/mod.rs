//! The rings that a subscriber reads, in the order in which it takes from them.
//!
//! | file | what |
//! |---|---|
//! | `source` | one publisher's ring: begin here |
//! | `segments` | its chunks |
//! | `history` | where the rings begin that a new subscriber finds |
//!
//! # Invariants
//! - A source slot is reused only once no hazard word names it.

pub(in crate::topic) mod history;
mod segments;
pub(in crate::topic) mod source;

use super::raw::{RawSample, Vacant};
use crate::Result;
use crate::node::OwnPort;
use crate::node::peer::PortView;
use crate::sync::fault;
use crate::topic::membership::PublisherId;
use source::Source;

/// Attached rings, and how far the subscriber is among them.
#[derive(Debug)]
pub(super) struct Sources {
    all: Vec<Source>,
    /// Detached, but a sample of theirs is still held.
    lingering: Vec<Source>,
    turn: usize,
    /// So many sources, the first ones, are of publishers that are over, the oldest first.
    past: usize,
    reliable: bool,
    lost: u64,
    skipped: u64,
}

impl Sources {
    /// None yet. `reliable`: their publishers wait for us.
    pub(super) fn new(reliable: bool) -> Self {
        let (all, lingering) = (Vec::new(), Vec::new());
        Self { all, lingering, turn: 0, past: 0, reliable, lost: 0, skipped: 0 }
    }

    #[inline]
    pub(super) fn all(&self) -> &[Source] {
        &self.all
    }

    pub(super) fn all_mut(&mut self) -> &mut [Source] {
        &mut self.all
    }

    /// Messages that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Messages that `skip_to_newest` left out.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Has what the dead and the departed left come first.
    #[inline]
    pub(super) fn turn_to_the_past(&mut self) {
        if self.past > 0 {
            self.turn_back();
        }
    }

    #[cold]
    fn turn_back(&mut self) {
        match self.turn > self.past {
            // The last message was of one that lives: the others have been read.
            true => self.past = 0,
            false => self.turn = 0,
        }
    }

    /// The source to ask first.
    #[inline]
    pub(super) fn turn(&self) -> usize {
        self.turn
    }

    /// The next message of source `at`; after it, it is the turn of the one behind.
    ///
    /// # Errors
    /// As `Source::take`.
    #[inline]
    pub(super) fn take(
        &mut self,
        at: usize,
        own: &OwnPort,
        vacant: Vacant<'_>,
    ) -> Result<Option<RawSample>> {
        let Some(raw) = self.all[at].take(own, vacant)? else { return Ok(None) };
        self.turn = at + 1;
        let lost_before = raw.meta().lost_before;
        if lost_before != 0 {
            self.lost = self.lost.saturating_add(lost_before);
        }
        Ok(Some(raw))
    }

    /// The next call begins behind source `at`: that one must not hide the others.
    pub(super) fn pass(&mut self, at: usize) {
        self.turn = at + 1;
    }

    /// The source whose next message was published first is next.
    pub(super) fn turn_to_oldest(&mut self) {
        if let Some((_, first)) = self.times().min() {
            self.turn = first;
        }
    }

    /// The newest message of all is next; all others are skipped.
    pub(super) fn skip_to_newest(&mut self, own: &OwnPort) {
        for source in &mut self.all {
            self.skipped = self.skipped.saturating_add(source.skip_to_newest());
        }
        if let Some((_, last)) = self.times().max() {
            for (i, source) in self.all.iter_mut().enumerate() {
                let skipped = if i == last { 0 } else { source.skip_one(own) };
                self.skipped = self.skipped.saturating_add(skipped);
            }
            self.turn = last;
        }
    }

    /// When the next message of each source that has one was published.
    fn times(&mut self) -> impl Iterator<Item = (u64, usize)> {
        self.all.iter_mut().enumerate().filter_map(|(i, s)| Some((s.next_time()?, i)))
    }

    /// Attaches `source` at place `slot` of our port; `sort` follows.
    pub(super) fn add(&mut self, mut source: Source, slot: usize, view: PortView<'_>) {
        if self.reliable {
            source.set_reliable();
        }
        source.show(slot, view);
        self.all.push(source);
    }

    /// By age, those that are over in front of those that live.
    pub(super) fn sort(&mut self) {
        if fault("sources.unsorted") {
            return;
        }
        self.all.sort_by_key(|source| (!source.is_over(), source.age()));
        self.past = self.all.iter().take_while(|source| source.is_over()).count();
        self.turn = 0;
    }

    /// Stops reading source `i`, and says how many of its messages were lost since the last one
    /// received; its maps stay while one of its samples is held.
    pub(super) fn detach(&mut self, i: usize, view: PortView<'_>) -> (PublisherId, u64) {
        let mut source = self.all.remove(i);
        self.past -= usize::from(i < self.past);
        let lost = source.count_lost();
        self.lost = self.lost.saturating_add(lost);
        let id = source.id();
        self.lingering.push(source);
        self.let_go(view);
        (id, lost)
    }

    /// Frees the slots of detached sources that no sample refers to.
    pub(super) fn let_go(&mut self, view: PortView<'_>) {
        self.lingering.retain(|source| {
            let held = source.is_held(view);
            if !held {
                source.hide(view);
            }
            held
        });
    }

    /// All, also those that only samples still need; nothing is read any more.
    pub(super) fn take_maps(&mut self) -> Vec<Source> {
        let mut maps = std::mem::take(&mut self.all);
        maps.append(&mut self.lingering);
        maps
    }
}
