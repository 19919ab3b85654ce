//! Files and their maps: made whole or not at all, locked, truncated by others.

pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod filelock;
pub(crate) mod kept;
pub(crate) mod map;
pub(crate) mod sigbus;
pub(crate) mod stat;
