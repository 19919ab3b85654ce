//! Messages too large for an entry: the pool they come from, the hazards of those who read them,
//! and the segments that a process has mapped.
//! Begin with `hazard`.

pub(crate) mod hazard;
pub(super) mod pool;
pub mod segments;
