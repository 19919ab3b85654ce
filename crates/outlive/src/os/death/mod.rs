//! How the kernel tells that a thread or process is gone: it marks words of a thread's robust list
//! (`robust`), among them a node's token, which a thread of its own holds (`holder`), and it closes
//! files (`deaths`). Only a file lock proves a death: see `fs::filelock`.
//! Begin with `robust`.

pub(crate) mod deaths;
pub(crate) mod holder;
pub(crate) mod robust;
