//! Services across machines: where the server is, the bridge is a client; elsewhere a server.
//!
//! | what ends | who is told |
//! |---|---|
//! | the server, its machine, the link | clients elsewhere: `ServerDied` |
//! | a client elsewhere | nobody: its answer is dropped |
//! | a bridge | its clients or its server, as of any process |
//!
//! Calls that come wait in a lane here for the server, answers in those of the clients: both within
//! what the file allows. What has no room is refused.
//!
//! Begin with `offer`, where the server is; `stand` is the other end. ROS 2 has the same ends, with
//! another `form`.

pub(crate) mod form;
mod limited;
pub(crate) mod offer;
pub(crate) mod stand;

use std::time::Duration;

/// Calls in hand at most, each way.
const CALLS_MAX: usize = 1024;
/// How soon the other side is looked at while a call is under way, and while none is.
const SOON: Duration = Duration::from_millis(1);
const IDLE: Duration = Duration::from_millis(20);
