//! Whole lives and whole systems, judged in the end or step by step.
//!
//! | file | what |
//! |---|---|
//! | `chaos` | all kinds of members under kills and stops: `testkit::chaos` |
//! | `histories` | steps from a seed against a model: `testkit::history` |
//! | `wild_writes` | a member that writes where it must not: `testkit::wild` |
//! | `scale` | what many topics, subscribers and nodes cost |
//! | `fail_stop` | the reference robot under faults: `testkit::failstop` |

pub(crate) mod chaos;
pub(crate) mod fail_stop;
pub(crate) mod histories;
pub(crate) mod scale;
#[cfg(feature = "crash-points")]
pub(crate) mod wild_writes;
