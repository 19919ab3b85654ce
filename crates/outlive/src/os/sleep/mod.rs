//! Sleeping until a word or a descriptor changes, and waking.

pub(crate) mod event;
pub(crate) mod futex;
pub(crate) mod pi;
pub(crate) mod poll;
pub(crate) mod socket;
