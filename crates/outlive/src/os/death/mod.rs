//! How the kernel tells that a thread or process is gone: robust lists, and the thread that holds a
//! node's token.

pub(crate) mod deaths;
pub(crate) mod holder;
pub(crate) mod robust;
