//! The process itself: forks, faults and signals, threads' priorities and cores, memory.

pub(crate) mod faults;
pub(crate) mod fork;
pub(crate) mod loaded;
pub(crate) mod memory;
pub(crate) mod per_process;
pub(crate) mod realtime;
pub(crate) mod sched;
pub(crate) mod stop;
pub(crate) mod wiped;
