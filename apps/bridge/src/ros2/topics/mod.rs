//! Topics to and from ROS 2. Begin with `outgoing`, which makes messages in CDR of what is
//! published here; `incoming` is the other way.
//!
//! | file | what |
//! |---|---|
//! | `outgoing`, `incoming` | a topic on its way to ROS, and from there |
//! | `kept` | what is kept for subscriptions that come later there |

pub(in crate::ros2) mod incoming;
mod kept;
pub(in crate::ros2) mod outgoing;
