//! What the kernel gives a real-time thread: priority and cores, locked and touched memory.

pub(super) mod memory;
pub(super) mod realtime;
