//! When messages go out: once there are subscribers, and then at a rate.

use std::time::Duration;

use outlive::Deadline;
use outlive::topic::Waited;

use super::args::PubArgs;
use crate::clock::duration;
use crate::exit::{Code, Failure};
use crate::options::sleep_until;
use crate::os;

/// Releases messages at a fixed rate: on a schedule, so that errors do not add up.
#[derive(Debug)]
pub(super) struct Pace {
    period_ns: u64,
    next_ns: u64,
}

impl Pace {
    pub(super) fn new(hz: f64) -> Self {
        Self { period_ns: (1e9 / hz) as u64, next_ns: outlive::now_ns() }
    }

    /// Sleeps until the next release, or until a signal.
    pub(super) fn wait(&mut self) {
        sleep_until(Deadline::at_ns(self.next_ns));
        // Who is late starts a new schedule; frames are not released in a burst.
        self.next_ns = outlive::now_ns().saturating_sub(self.period_ns).max(self.next_ns);
        self.next_ns += self.period_ns;
    }
}

/// What is said of the time spent waiting for reliable subscribers, if there was any.
pub(super) fn back_pressure(waited: Waited) -> String {
    let Waited { messages, total, .. } = waited;
    if messages == 0 {
        return String::new();
    }
    format!("; {messages} waited for reliable subscribers, {} in all", duration(total))
}

pub(super) fn wait_for_subscribers(
    mut count: impl FnMut() -> outlive::Result<usize>,
    args: &PubArgs,
) -> Result<(), Failure> {
    let deadline = Deadline::after(args.timeout);
    loop {
        let there = count()?;
        if there >= args.wait_for_subscribers || os::stop_asked() {
            return Ok(());
        }
        if deadline.has_passed() {
            let wanted = args.wait_for_subscribers;
            let message = format!("timed out with {there} of {wanted} subscribers");
            return Err(Failure::new(Code::NotFound, message));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
