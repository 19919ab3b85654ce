//! The rings that a subscriber reads, in the order in which it takes from them.
//!
//! | file | what |
//! |---|---|
//! | `source` | one publisher: begin here |
//! | `peer_ring` | its ring |
//! | `segments` | its chunks |
//! | `history` | where the rings begin that a new subscriber finds |
//!
//! # Invariants
//! - A source slot is reused only once no hazard word names it.

pub(in crate::topic) mod history;
mod peer_ring;
mod segments;
pub(in crate::topic) mod source;

use super::raw::{RawSample, Vacant};
use crate::Result;
use crate::node::OwnPort;
use crate::node::peer::PortView;
use crate::sync::fault;
use crate::topic::membership::entry::PublisherId;
use crate::types::payload::Payload;
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
    /// One of them could not be read by the last call: the next one begins behind it.
    passed: bool,
    /// Whose turn it was among the living when those came first.
    turn_of_living: usize,
    reliable: bool,
    lost: u64,
    skipped: u64,
}

impl Sources {
    /// None yet. `reliable`: their publishers wait for us.
    pub(super) fn new(reliable: bool) -> Self {
        let (all, lingering) = (Vec::new(), Vec::new());
        let (turn, past, passed, turn_of_living) = (0, 0, false, 0);
        let (lost, skipped) = (0, 0);
        Self { all, lingering, turn, past, passed, turn_of_living, reliable, lost, skipped }
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
        if std::mem::take(&mut self.passed) && !fault("sources.past_hides_living") {
            return;
        }
        let all_read = || self.all.iter().take(self.past).all(|s| s.sleep_word().is_some());
        match self.turn > self.past && all_read() {
            // The last message was of one that lives.
            true => self.past = 0,
            false => {
                // Else the last message was of the past.
                if self.turn > self.past {
                    self.turn_of_living = self.turn;
                }
                self.turn = 0;
            }
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

    /// Appends to `to`, at most `most`, the next messages of each source in turn, at most a ring
    /// of each, up to one that is for `take`: then it is that source's turn.
    #[inline]
    pub(super) fn take_values<T: Payload>(&mut self, own: &OwnPort, to: &mut Vec<T>, most: usize) {
        let (n, end) = (self.all.len(), to.len().saturating_add(most));
        let before = to.len();
        if self.past > 0 && (!self.passed || fault("batch.uses_up_passed")) {
            self.turn_back();
        }
        for _ in 0..n {
            // Who is not asked keeps its turn.
            if to.len() == end {
                self.turn += usize::from(fault("batch.skips_unasked"));
                break;
            }
            self.turn = if self.turn >= n { 0 } else { self.turn };
            let source = &mut self.all[self.turn];
            let share = (end - to.len()).min(source.depth() as usize);
            if !source.take_values(own, to, share) && !fault("batch.passes_over") {
                break;
            }
            self.turn += 1;
        }
        // Until something was received, `take` has that turn.
        self.passed &= to.len() == before;
    }

    /// Messages that all rings together hold at once.
    pub(super) fn room(&self) -> usize {
        self.all.iter().map(|source| source.depth() as usize).sum()
    }

    /// The next call begins behind source `at`: that one must not hide the others. `past_too`: also
    /// where it is of the past, which comes first.
    pub(super) fn pass(&mut self, at: usize, past_too: bool) {
        let more = (at + 1..self.past).any(|i| self.all[i].sleep_word().is_none());
        let is_last = past_too && at < self.past && !more && !fault("sources.first_of_living");
        self.turn = match is_last {
            // Where the living were before that: else it would be the first one's turn each time.
            true if self.turn < self.past => self.turn_of_living.max(self.past),
            // From there on nobody had anything, up to here.
            true => self.past,
            false => at + 1,
        };
        if is_last && self.turn >= self.all.len() {
            self.turn = self.past;
        }
        self.passed = past_too;
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
        self.passed = false;
        if fault("sources.unsorted") {
            return;
        }
        self.all.sort_by_key(|source| (!source.is_over(), source.age()));
        self.past = self.all.iter().take_while(|source| source.is_over()).count();
        (self.turn, self.turn_of_living) = (0, 0);
    }

    /// Stops reading source `i`, and says how many of its messages were lost since the last one
    /// received; its maps stay while one of its samples is held.
    pub(super) fn detach(&mut self, i: usize, view: PortView<'_>) -> (PublisherId, u64) {
        let mut source = self.all.remove(i);
        self.past -= usize::from(i < self.past);
        self.turn_of_living -= usize::from(i < self.turn_of_living);
        let lost = source.count_lost();
        self.lost = self.lost.saturating_add(lost);
        let id = source.id();
        // One that lives may wait for us.
        if !fault("sources.given_up_untold") {
            source.leave(view);
        }
        self.lingering.push(source);
        self.let_go(view);
        (id, lost)
    }

    /// Frees the slots of detached sources that no sample refers to, once their publishers are
    /// gone: until then those see there that they are not read any more.
    pub(super) fn let_go(&mut self, view: PortView<'_>) {
        self.lingering.retain_mut(|source| {
            let needed = source.is_held(view) || source.departure().is_none();
            if !needed {
                source.hide(view);
            }
            needed
        });
    }

    /// All, also those that only samples still need; nothing is read any more.
    pub(super) fn take_maps(&mut self) -> Vec<Source> {
        let mut maps = std::mem::take(&mut self.all);
        maps.append(&mut self.lingering);
        maps
    }
}
