//! What is carried between bridges: each file has one kind of work, and begins with how that is
//! started. Begin with `outgoing`; `incoming` is its other end.
//!
//! | file | what |
//! |---|---|
//! | `outgoing`, `incoming` | a topic on its way out and in |
//! | `pump` | what of a topic goes out, also to ROS 2 |
//! | `services` | calls, both sides; also for those of ROS 2 |
//! | `queues` | messages of queues, both sides |

pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod pump;
pub(crate) mod queues;
pub(crate) mod services;
