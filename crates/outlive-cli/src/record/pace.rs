//! When the next message of `outlive play` comes: time, keys, and the clock that nodes follow.

use std::time::Duration;

use outlive::{Node, Publisher};
use outlive_record::Due;

use crate::exit::{Failure, note};
use crate::os::{self, Keys};

/// Shorter waits are slept, as those for keys count ms; ns.
const KEY_NS: u64 = 2_000_000;

/// Waits for messages to be due.
pub(super) struct Pace {
    keys: Option<Keys>,
    clock: Option<Clock>,
    /// Since when it stands still.
    paused_ns: Option<u64>,
}

/// The time of the recording, published.
struct Clock {
    publisher: Publisher<u64>,
    every_ns: u64,
    next_ns: u64,
    rate: f64,
}

impl Pace {
    pub(super) fn new(paused: bool) -> Self {
        let keys = Keys::of_terminal();
        if keys.is_some() {
            note("space pauses and goes on, n or the right arrow plays one message");
        }
        Self { keys, clock: None, paused_ns: paused.then(outlive::now_ns) }
    }

    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Publishes the time of the recording on `topic`, so many times a second.
    pub(super) fn set_clock(
        &mut self,
        node: &Node,
        topic: &str,
        hertz: f64,
        rate: f64,
    ) -> Result<(), Failure> {
        let publisher = node.topic::<u64>(topic)?.publisher()?;
        let every_ns = (1e9 / hertz) as u64;
        self.clock = Some(Clock { publisher, every_ns, next_ns: 0, rate });
        Ok(())
    }

    /// The first message comes now.
    pub(super) fn begin(&mut self) {
        self.paused_ns = self.paused_ns.map(|_| outlive::now_ns());
    }

    /// Waits until a message is due; the instant at which it counts as due, or `None` to end.
    pub(super) fn wait(&mut self, due: Due) -> Result<Option<u64>, Failure> {
        let mut at_ns = due.at_ns;
        loop {
            if os::stop_asked() {
                return Ok(None);
            }
            let now = outlive::now_ns();
            let mut left = os::SLICE_NS;
            if self.paused_ns.is_none() {
                left = left.min(at_ns.saturating_sub(now));
                if let Some(clock) = &mut self.clock {
                    left = left.min(clock.tick(due, at_ns, now)?);
                }
            }
            match (self.key(left), self.paused_ns) {
                (Some(b' '), None) => {
                    note("paused");
                    self.paused_ns = Some(outlive::now_ns());
                }
                (Some(b' '), Some(since)) => {
                    note("goes on");
                    at_ns += outlive::now_ns().saturating_sub(since);
                    self.paused_ns = None;
                }
                (Some(b'n' | b'C'), Some(_)) => {
                    at_ns = outlive::now_ns();
                    self.paused_ns = Some(at_ns);
                    break;
                }
                (_, None) if outlive::now_ns() >= at_ns => break,
                _ => {}
            }
        }
        if let Some(clock) = &self.clock {
            clock.publisher.publish(&due.time_ns)?;
        }
        Ok(Some(at_ns))
    }

    /// A key that comes within `left_ns`.
    fn key(&mut self, left_ns: u64) -> Option<u8> {
        let long = left_ns > KEY_NS;
        if let Some(keys) = &mut self.keys {
            let key = keys.next(if long { left_ns - KEY_NS / 2 } else { 0 });
            if key.is_some() || long {
                return key;
            }
        }
        if left_ns > 0 {
            std::thread::sleep(Duration::from_nanos(left_ns));
        }
        None
    }
}

impl Clock {
    /// Publishes the time if it is time to; how long until the next time, ns.
    fn tick(&mut self, due: Due, at_ns: u64, now_ns: u64) -> Result<u64, Failure> {
        if now_ns >= self.next_ns {
            let before = (at_ns.saturating_sub(now_ns) as f64 * self.rate) as u64;
            self.publisher.publish(&due.time_ns.saturating_sub(before))?;
            self.next_ns = now_ns + self.every_ns;
        }
        Ok(self.next_ns - now_ns)
    }
}
