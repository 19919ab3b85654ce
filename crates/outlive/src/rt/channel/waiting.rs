//! Ways to wait for a release or for the stage before.
#![deny(unsafe_code)]

use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::rt::stages::signal;
use crate::sync::AtomicU64;

/// Longest wait before a `stop` is looked at again.
pub(in crate::rt) const STOP_SLICE_NS: u64 = 50_000_000;

/// How a stage waits. The best choice depends on the cores it has: see [`Wait::for_stages`].
///
/// # Examples
/// ```
/// use outlive::rt::{Cycle, Outcome, Pipeline, Schedule, StageOptions, Stop, Wait};
/// use std::time::Duration;
///
/// // Sleeps, wakes up 50 us early and polls until the release.
/// let options = StageOptions { wait: Wait::Park { lead_ns: 50_000 }, ..StageOptions::default() };
/// let schedule = Schedule::every(Duration::from_millis(1))?;
/// let mut pipeline = Pipeline::new(schedule).stage("drive", options, |cycle: &Cycle| {
///     assert!(outlive::now_ns() >= cycle.release_ns); // never early
///     Outcome::Stop
/// });
/// pipeline.run_inline(&Stop::new());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Polls all the time. The shortest reaction, a whole core. No system call.
    Spin,
    /// Polls and lets others run in between. One system call per poll, a whole core.
    Yield,
    /// Polls for `spin_ns`, then sleeps in the kernel: a timer for releases, a futex for stages.
    SpinThenSleep {
        /// How long it looks first, ns.
        spin_ns: u64,
    },
    /// Sleeps until `lead_ns` before the moment, then polls. For a stage that waits for another,
    /// the moment is its `offset_ns` after the release.
    Park {
        /// How long before the moment it wakes up, ns.
        lead_ns: u64,
    },
}

impl Wait {
    /// Spins a little before sleeping if this process may use a core for each of `busy` stages, and
    /// not otherwise: a spinning stage would take the core from the one it waits for.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::{StageOptions, Wait};
    ///
    /// // More stages than any machine has cores for: none of them spins.
    /// assert_eq!(Wait::for_stages(1 << 20), Wait::SpinThenSleep { spin_ns: 0 });
    /// let _options = StageOptions { wait: Wait::for_stages(2), ..StageOptions::default() };
    /// ```
    pub fn for_stages(busy: usize) -> Self {
        let spin_ns = if sched::allowed_cpus() > busy { 20_000 } else { 0 };
        Self::SpinThenSleep { spin_ns }
    }

    /// Waits for a moment, ns of CLOCK_MONOTONIC.
    ///
    /// # Real-time
    /// One `clock_nanosleep` to an absolute time, except where the variants say otherwise.
    ///
    /// # Examples
    /// ```
    /// use outlive::rt::Wait;
    ///
    /// let moment_ns = outlive::now_ns() + 1_000_000;
    /// Wait::Park { lead_ns: 50_000 }.until(moment_ns); // sleeps, and polls for the last 50 us
    /// assert!(outlive::now_ns() >= moment_ns);
    /// ```
    #[inline]
    pub fn until(self, moment_ns: u64) {
        match self {
            Self::Spin => spin_until(moment_ns),
            Self::Yield => {
                while clock::now_ns() < moment_ns {
                    sched::yield_now();
                }
            }
            Self::SpinThenSleep { .. } => {
                sleep_until(moment_ns);
            }
            Self::Park { lead_ns } => {
                sleep_until(moment_ns.saturating_sub(lead_ns));
                spin_until(moment_ns);
            }
        }
    }

    /// Waits for a moment as [`until`](Self::until) does, or until it `ends`, which is seen within
    /// a slice or the lead.
    #[inline]
    pub(in crate::rt) fn until_or(self, moment_ns: u64, ends: impl Fn() -> bool) {
        // Nothing is polled before the lead.
        let (between, lead_ns) = match self {
            Self::Park { lead_ns } => (Self::SpinThenSleep { spin_ns: 0 }, lead_ns),
            other => (other, 0),
        };
        // The last wait is one, to the moment itself, and a whole slice or less.
        let last_ns = moment_ns.saturating_sub(lead_ns).saturating_sub(STOP_SLICE_NS);
        while !ends() {
            let now_ns = clock::now_ns();
            if now_ns >= last_ns {
                return self.until(moment_ns);
            }
            between.until(last_ns.min(now_ns + STOP_SLICE_NS));
        }
    }

    /// Waits until `done` has reached `value`; false when `deadline` passed first.
    #[inline]
    pub(in crate::rt) fn reached(
        self,
        done: &AtomicU64,
        value: u64,
        request: &AtomicU64,
        expected_ns: u64,
        deadline: Deadline,
    ) -> bool {
        match self {
            Self::Spin => look_until(done, value, deadline, std::hint::spin_loop),
            Self::Yield => look_until(done, value, deadline, sched::yield_now),
            Self::Park { lead_ns } => {
                if signal::look(done) < value {
                    sleep_until(expected_ns.saturating_sub(lead_ns).min(deadline.as_ns()));
                }
                look_until(done, value, deadline, std::hint::spin_loop)
            }
            Self::SpinThenSleep { spin_ns } => {
                let spun = spin_ns > 0 && {
                    let until = deadline.min(Deadline::in_ns(spin_ns));
                    look_until(done, value, until, std::hint::spin_loop)
                };
                spun || sleep(done, value, request, deadline)
            }
        }
    }
}

fn spin_until(moment_ns: u64) {
    while clock::now_ns() < moment_ns {
        std::hint::spin_loop();
    }
}

fn sleep_until(moment_ns: u64) {
    if clock::now_ns() < moment_ns {
        sched::sleep_until(Deadline::at_ns(moment_ns));
    }
}

#[inline]
fn look_until(done: &AtomicU64, value: u64, deadline: Deadline, between: impl Fn()) -> bool {
    loop {
        if signal::look(done) >= value {
            return true;
        }
        if deadline.has_passed() {
            return signal::look(done) >= value;
        }
        between();
    }
}

fn sleep(done: &AtomicU64, value: u64, request: &AtomicU64, deadline: Deadline) -> bool {
    if signal::look(done) >= value {
        return true;
    }
    let reached = loop {
        let Some(seen) = signal::about_to_sleep(done, value, request) else { break true };
        if deadline.has_passed() {
            break false;
        }
        futex::wait(futex::low_half(done), seen as u32, deadline);
        if signal::look(done) >= value {
            break true;
        }
    };
    signal::awake(request);
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::thread_cpu;
    use std::sync::Arc;
    use std::time::Duration;

    const ALL: [Wait; 5] = [
        Wait::Spin,
        Wait::Yield,
        Wait::SpinThenSleep { spin_ns: 0 },
        Wait::SpinThenSleep { spin_ns: 20_000 },
        Wait::Park { lead_ns: 50_000 },
    ];

    #[test]
    fn every_way_of_waiting_sees_the_moment_the_cycle_and_the_deadline() {
        for wait in ALL {
            let moment = clock::now_ns() + 2_000_000;
            wait.until(moment);
            assert!(clock::now_ns() >= moment);

            let words: Arc<Vec<AtomicU64>> = Arc::new((0..2).map(AtomicU64::new).collect());
            words[1].store(0, crate::sync::Ordering::Relaxed);
            let deadline = Deadline::in_ns(2_000_000);
            let expected = deadline.as_ns();
            assert!(!wait.reached(&words[0], 1, &words[1], expected, deadline), "{wait:?}");
            assert!(deadline.has_passed());

            let teller = std::thread::spawn({
                let words = Arc::clone(&words);
                move || {
                    std::thread::sleep(Duration::from_millis(2));
                    if signal::tell(&words[0], 1, Some(&words[1])) {
                        futex::wake(futex::low_half(&words[0]), i32::MAX);
                    }
                }
            });
            let now = clock::now_ns();
            let far = Deadline::in_ns(20_000_000_000);
            assert!(wait.reached(&words[0], 1, &words[1], now + 1_000_000, far), "{wait:?}");
            teller.join().unwrap();
        }
    }

    #[test]
    fn a_stage_that_looks_before_the_others_is_due_polls_nothing() {
        let (done, request) = (AtomicU64::new(0), AtomicU64::new(0));
        let (wait, cpu) = (Wait::Park { lead_ns: 60_000_000 }, thread_cpu());
        let (soon, late) = (Deadline::in_ns(50_000_000), clock::now_ns() + 20_000_000_000);
        assert!(!wait.reached(&done, 1, &request, late, soon));
        assert!(thread_cpu() - cpu < Duration::from_millis(10), "it is expected in 20 s");
    }
}
