//! Sleeping until a word or a descriptor changes, and waking. `futex` sleeps on words, `pi` on one
//! that lends priority; `poll` waits for descriptors, `socket` is one that others make readable,
//! and `event` is both: a word and a descriptor.
//! `slice` says how long at a stretch. Begin with `futex`.

pub(crate) mod event;
pub(crate) mod futex;
pub(crate) mod pi;
pub(crate) mod poll;
pub(crate) mod slice;
pub(crate) mod socket;
