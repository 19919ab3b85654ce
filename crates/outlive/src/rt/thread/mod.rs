//! A real-time thread and its memory: `realtime` asks the kernel for priority, a core and memory
//! that stays; `memory` has the words of channels and boards. Begin with `realtime`.

pub(super) mod memory;
pub(super) mod realtime;
