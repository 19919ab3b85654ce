//! A publisher's ring: its bytes (`layout`), its entries (`entries`, with their payload in `body`),
//! and the listing of those that are there (`listing`). Begin with `entries`: how one is written,
//! read and found overwritten.

pub(crate) mod body;
pub(crate) mod entries;
pub(crate) mod layout;
pub(super) mod listing;

use crate::node::peer::Place;
use listing::Listing;

// Not in `listing`, which loom compiles without nodes.
impl<'a> Listing<'a> {
    /// Whom a place of a subscriber's table names.
    pub(super) fn of(place: Place<'a>) -> Self {
        Self::new(place.node, place.port, place.changes)
    }
}
