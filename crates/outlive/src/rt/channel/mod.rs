//! From one stage to the next without waiting: the latest value, or each value once.
//!
//! `file` finds a channel's file and pairs its ends (`pair`); `latest` over `four_slot` and `spsc`
//! over `ring` are the two channels; `waiting` has the ways to wait for a release or for a stage.
//! Begin with `four_slot`.

pub(crate) mod file;
pub(crate) mod four_slot;
pub(super) mod latest;
pub(super) mod pair;
pub(crate) mod ring;
pub(super) mod spsc;
pub(super) mod waiting;
