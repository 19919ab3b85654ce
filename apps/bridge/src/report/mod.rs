//! What whoever runs the bridge is told. Begin with [`say`].
//!
//! | file | what |
//! |---|---|
//! | `log` | lines on standard error, for which nobody waits |
//! | `failed` | why something was not carried; what fails again is said now and then |
//! | `stats` | counters, and how they are shown |

mod failed;
pub(crate) mod log;
pub(crate) mod stats;

pub(crate) use failed::{Failed, Failures};
pub(crate) use log::say;
