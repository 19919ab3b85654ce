//! Files and their maps: made whole or not at all, locked, truncated by others.
//!
//! `file` makes and believes files, in directories of `dir`; `map` maps them, and `sigbus` guards
//! the maps. `filelock` has the locks by which a death is proven; `kept` the descriptors that must
//! not be closed by others; `stat` what the kernel says of a file.
//! Begin with `file`.

pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod filelock;
pub(crate) mod kept;
pub(crate) mod map;
pub(crate) mod sigbus;
pub(crate) mod stat;
