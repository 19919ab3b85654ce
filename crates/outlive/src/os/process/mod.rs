//! The process itself.
//!
//! `fork` is for forked children: what they must know, have of their own, or find 0. `stop` and
//! `faults` catch signals that end it, `kill` ends it; `sched` and `realtime` set cores, priorities
//! and memory that stays; `memory` and `loaded` say what an address belongs to, and keep the code
//! where it is. Begin with `fork`.

pub(crate) mod faults;
pub(crate) mod fork;
pub(in crate::os) mod kill;
pub(crate) mod loaded;
pub(crate) mod memory;
pub(crate) mod realtime;
pub(crate) mod sched;
pub(crate) mod stop;
