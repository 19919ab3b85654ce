//! A domain is a directory: where it is (`path`), which names are allowed in it (`name`), and the
//! 64 bytes that every file begins with (`header`). What topics and queues do alike when members
//! join and when what is left of them goes: `joining`, `bell`, `removing`.
//!
//! May use `os`. Begin with `path`.

pub(crate) mod bell;
pub(crate) mod header;
pub(crate) mod joining;
pub(crate) mod name;
pub(crate) mod path;
pub(crate) mod removing;
