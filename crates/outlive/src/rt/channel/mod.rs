//! From one stage to the next without waiting: the latest value, or each value once.
//!
//! `file` finds a channel's file and pairs its ends (`pair`); `latest` over `four_slot` and `spsc`
//! over `ring` are the two channels; `waiting` says how long opening may take.

pub(crate) mod file;
pub(crate) mod four_slot;
pub(super) mod latest;
pub(super) mod pair;
pub(crate) mod ring;
pub(super) mod spsc;
pub(super) mod waiting;
