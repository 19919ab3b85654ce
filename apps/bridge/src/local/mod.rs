//! This machine's side: the domain that the bridge looks at, and what it puts there for others.
//! Nothing here knows of links. Begin with `listed`; for what comes in, with `room` and `port`.
//!
//! | file | what |
//! |---|---|
//! | `listed` | the topics, services and queues of the domain |
//! | `speakers` | whose its nodes are: what came from elsewhere is not sent again |
//! | `room` | how much memory all that comes in may take |
//! | `port` | a publisher of what comes in |

pub(crate) mod listed;
pub(crate) mod port;
pub(crate) mod room;
pub(crate) mod speakers;
