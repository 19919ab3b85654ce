//! The clock of all deadlines and stamps, and deadlines by it.

pub(crate) mod clock;
pub(crate) mod deadline;
pub(crate) mod pause;
#[cfg(target_arch = "x86_64")]
pub(super) mod tsc;
