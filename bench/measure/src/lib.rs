//! What every measuring program needs. A crate of its own, as `outlive-bench` needs the reference
//! robot, and the robot's demo needs this.
//!
//! | file | what |
//! |---|---|
//! | `stats` | percentiles, interleaved rounds, confidence intervals, verdicts |
//! | `machine` | where it ran, and how much time the host took |
//! | `cores` | the two cores of a run; a thread tied to one |

pub mod cores;
pub mod machine;
pub mod stats;
