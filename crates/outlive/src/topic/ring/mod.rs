//! A publisher's ring: its bytes, its entries, and the listing of those that are there.

pub(crate) mod body;
pub(crate) mod entries;
pub(crate) mod layout;
pub(super) mod listing;
