//! Which thread holds a lock: a token for each thread that takes one, and those of others.

pub(crate) mod peers;
pub(crate) mod tokens;
