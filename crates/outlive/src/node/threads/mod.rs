//! Which thread holds a lock: a token for each thread that takes one, and those of others.
//! Begin with `tokens`, those of this node; `peers` has those of other nodes.

pub(crate) mod peers;
pub(crate) mod tokens;
