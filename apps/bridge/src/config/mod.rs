//! The bridge's file: what is carried, where to and how, and what is wrong in it. Begin with
//! [`Config`], which is a checked file; then `file`, which reads and checks one.
//!
//! | file | what |
//! |---|---|
//! | `file` | the whole file, but for its section `[ros2]` |
//! | `ros2` | that section |
//! | `source` | where in the text something is wrong |
//! | `pattern` | which names a rule is for |

mod file;
pub(crate) mod pattern;
pub(crate) mod ros2;
mod source;

pub(crate) use file::{Config, Limits, Mode, ServiceRule, TopicRule, Urgency, domain_fault};
