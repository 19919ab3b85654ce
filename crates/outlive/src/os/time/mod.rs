//! The clock of all deadlines and stamps.

pub(crate) mod clock;
#[cfg(target_arch = "x86_64")]
pub(super) mod tsc;
