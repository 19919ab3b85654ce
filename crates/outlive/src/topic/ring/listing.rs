//! Who names whom: the publisher's table of acknowledged subscribers, the subscriber's table of
//! attached publishers.
//!
//! # Theory of operation
//! A subscriber borrows only from a publisher whose table names it: that publisher looks at its
//! hazards in every scan. A hazard names its publisher by the place in the subscriber's table. A
//! place is written by its owner only and is reused, so `changes` guards it: odd while node and
//! port are being changed, and never the same again afterwards. (Port numbers of two nodes may be
//! equal, so that without it a reader could pair the port of one with the node of another.)
//!
//! | label   | store                       | load                 | carries                      |
//! |---------|-----------------------------|----------------------|------------------------------|
//! | LISTED  | `name`, SeqCst `changes`    | `names`, Acquire     | node, port; all before it    |
//! | LISTING | `change`, fence Release     | `names`, fence       | "what you read was changing" |
//!
//! A scan that misses a place began before the place was complete, so that the first hazard of
//! that place comes after the scan's barrier and fails its check (see `hazard`).

use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU64, fault, fence, unless_fault};

/// A place in one of the two tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing<'a> {
    node: &'a AtomicU64,
    port: &'a AtomicU64,
    changes: &'a AtomicU64,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(node: &'a AtomicU64, port: &'a AtomicU64, changes: &'a AtomicU64) -> Self {
        Self { node, port, changes }
    }

    /// Owner: whether the place names nobody.
    pub(crate) fn is_free(self) -> bool {
        self.port.load(Relaxed) == 0
    }

    /// Owner: names a port of the other side.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the last store of `changes`. Dying in here, the place names
    /// nobody for as long as the file exists.
    pub(crate) fn name(self, node: u64, port: u64) {
        self.change(node, port);
    }

    /// Owner: names nobody any more.
    ///
    /// # Crash safety
    /// **Strict.** As `name`.
    pub(crate) fn clear(self) {
        self.change(0, 0);
    }

    fn change(self, node: u64, port: u64) {
        let before = self.changes.fetch_add(1, Relaxed);
        // ORDERING(LISTING): pairs with `names`; who sees a new word sees `changes` odd.
        if !fault("listing.change.no_fence") {
            fence(Release);
        }
        self.node.store(node, Relaxed);
        self.port.store(port, Relaxed);
        // ORDERING(LISTED): pairs with `names`. SeqCst, to come before the hazards of this place.
        let order = unless_fault("listing.name.relaxed", SeqCst);
        self.changes.store(before.wrapping_add(2), order);
    }

    /// The other side: whether the place names (`node`, `port`).
    pub(crate) fn names(self, node: u64, port: u64) -> bool {
        // ORDERING(LISTED): pairs with `change`.
        let before = self.changes.load(unless_fault("listing.names.relaxed", Acquire));
        if before % 2 == 1 || self.port.load(Relaxed) != port || self.node.load(Relaxed) != node {
            return false;
        }
        // ORDERING(LISTING): pairs with `change`.
        if !fault("listing.names.no_fence") {
            fence(Acquire);
        }
        fault("listing.names.unchecked") || self.changes.load(Relaxed) == before
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_whom_it_was_given_until_it_is_cleared() {
        let [node, port, changes] = [const { AtomicU64::new(0) }; 3];
        let place = Listing::new(&node, &port, &changes);
        assert!(place.is_free() && !place.names(1, 2));
        place.name(1, 2);
        assert!(place.names(1, 2) && !place.is_free());
        assert!(!place.names(2, 1) && !place.names(1, 3) && !place.names(3, 2));
        place.clear();
        assert!(place.is_free() && !place.names(1, 2));
    }

    #[test]
    fn a_place_whose_owner_died_in_the_middle_names_nobody() {
        let [node, port, changes] = [const { AtomicU64::new(0) }; 3];
        let place = Listing::new(&node, &port, &changes);
        place.name(1, 2);
        changes.store(3, Relaxed);
        assert!(!place.names(1, 2));
    }
}
