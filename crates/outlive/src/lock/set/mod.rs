//! The lockless set: `slots` is the algorithm, `lockless_set` the type over a file.
//! Begin with `slots`: each place is one word.

pub(super) mod lockless_set;
pub(super) mod slots;
