//! What all processes of a cell agree on: the clock, and how stages run and wait.

use std::time::Duration;

use outlive::Result;
use outlive::rt::{Realtime, Schedule, StageOptions, Wait};

use crate::messages::Order;

/// What all processes of a cell agree on.
#[derive(Clone, Copy, Debug)]
pub struct CellOptions {
    /// The period, ns.
    pub period_ns: u64,
    /// The release of cycle 0, ns of CLOCK_MONOTONIC.
    pub start_ns: u64,
    /// Whether there are lifelines; without, nobody stops anything.
    pub lifeline: bool,
    /// SCHED_FIFO priority of the stages; the guard has one more. 0: none.
    pub priority: u8,
    /// What an [`Order`] does; `None`: there are none.
    pub on_order: Option<fn(Order)>,
}

impl CellOptions {
    /// The deadline of a cycle: three quarters of the period.
    pub fn deadline_ns(&self) -> u64 {
        self.period_ns / 4 * 3
    }

    /// The clock of all.
    ///
    /// # Errors
    /// For a period out of range.
    pub fn schedule(&self) -> Result<Schedule> {
        let deadline = Duration::from_nanos(self.deadline_ns());
        let every = Schedule::every(Duration::from_nanos(self.period_ns))?;
        Ok(every.starting_at(self.start_ns).deadline(deadline))
    }

    /// How long after its release stage `at` of [`STAGES`](crate::cell::STAGES) waits for its
    /// input, ns.
    pub fn input_limit_ns(&self, at: usize) -> u64 {
        match at {
            0 => self.period_ns,
            1 => self.period_ns / 2,
            _ => self.period_ns / 8 * 5,
        }
    }

    /// Oldest plan that may still move a motor, ns.
    pub fn age_ns_max(&self) -> u64 {
        self.period_ns + self.deadline_ns()
    }

    pub(crate) fn stage_options(&self, input_deadline_ns: u64, above: u8) -> StageOptions {
        StageOptions {
            wait: Wait::SpinThenSleep { spin_ns: 0 },
            realtime: Realtime {
                priority: (self.priority > 0).then_some(self.priority + above),
                lock_memory: self.priority > 0,
                stack_bytes: 64 << 10,
                ..Realtime::default()
            },
            input_deadline: Some(Duration::from_nanos(input_deadline_ns)),
            ..StageOptions::default()
        }
    }
}
