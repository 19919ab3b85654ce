//! The clock of all deadlines and stamps (`clock`, by `monotonic`, or from the TSC by `tsc`),
//! deadlines by it, and the `pause` before something that failed is tried again.
//! Begin with `clock`.

pub(crate) mod clock;
pub(crate) mod deadline;
pub(super) mod monotonic;
pub(crate) mod pause;
#[cfg(target_arch = "x86_64")]
pub(super) mod tsc;
