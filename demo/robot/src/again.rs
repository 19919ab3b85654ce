//! Finding successors: a part whose other end died looks for the one that came in its place.

use std::time::Duration;

use outlive::{Result, now_ns};

/// Between two looks.
const LOOK_NS: u64 = 10_000_000;

/// Looks now and then, after the work of a cycle: a look is a few system calls.
#[derive(Debug, Default)]
pub struct Again {
    next_ns: u64,
}

impl Again {
    /// Calls `reconnect`, without waiting, if the other end seems gone and it is time for a look.
    pub fn look(&mut self, seems_alive: bool, reconnect: impl FnOnce(Duration) -> Result<()>) {
        if seems_alive {
            return;
        }
        let now = now_ns();
        if now >= self.next_ns {
            self.next_ns = now + LOOK_NS;
            // Nobody yet: the next look will tell.
            let _ = reconnect(Duration::ZERO);
        }
    }
}
