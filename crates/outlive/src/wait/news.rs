//! What a port notices of others, kept until somebody looks.

use std::collections::VecDeque;

use crate::sync::fault;

/// Most events kept for a caller that never asks; the oldest go first.
const EVENTS_MAX: usize = 1024;

/// The events of a port, in the order in which it noticed them.
#[derive(Debug)]
pub(crate) struct News<E> {
    events: VecDeque<E>,
    seen: u64,
    /// `seen` when a wait last named this port.
    told: u64,
}

impl<E> Default for News<E> {
    fn default() -> Self {
        Self { events: VecDeque::new(), seen: 0, told: 0 }
    }
}

impl<E> News<E> {
    pub(crate) fn push(&mut self, event: E) {
        self.seen += 1;
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<E> {
        self.events.pop_front()
    }

    /// Events noticed so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether there are events of which no wait has told.
    pub(crate) fn is_untold(&self) -> bool {
        self.seen != self.told && !self.events.is_empty()
    }

    /// A wait tells of them now.
    pub(crate) fn tell(&mut self) {
        self.told = self.seen;
    }

    /// Whether a wait ends for them: some came since `seen` were, or there is an end that nobody
    /// has looked at, which no other wait ends for then.
    pub(crate) fn end_wait(&mut self, seen: u64, is_end: impl Fn(&E) -> bool) -> bool {
        if self.seen != seen {
            return true;
        }
        let untold = self.is_untold() && self.events.iter().any(is_end);
        if untold && !fault("events.only_new") {
            self.tell();
            return true;
        }
        false
    }
}
