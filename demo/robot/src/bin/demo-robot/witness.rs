//! Sleepers beside the core, one on each processor: how long the machine itself holds up a thread
//! of the core's priority.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use outlive::now_ns;
use outlive::rt::{Realtime, Stop, Wait};

/// Ends its sleepers when dropped.
pub(crate) struct Witness {
    stop: Stop,
    worst_ns: Arc<AtomicU64>,
}

impl Witness {
    /// `fifo` as the core has it; each wakes every `every_ns`.
    pub(crate) fn start(fifo: u8, cpus: &[usize], every_ns: u64) -> Self {
        let witness = Self { stop: Stop::new(), worst_ns: Arc::default() };
        for cpu in cpus {
            let (stop, worst_ns) = (witness.stop.clone(), Arc::clone(&witness.worst_ns));
            let realtime = Realtime {
                priority: (fifo > 0).then_some(fifo),
                cpu: Some(*cpu),
                ..Realtime::default()
            };
            thread::spawn(move || {
                realtime.apply();
                while !stop.is_stopped() {
                    let wake_ns = now_ns() + every_ns;
                    Wait::SpinThenSleep { spin_ns: 0 }.until(wake_ns);
                    worst_ns.fetch_max(now_ns().saturating_sub(wake_ns), Relaxed);
                }
            });
        }
        witness
    }

    /// How late a sleeper woke at worst since the last `forget`.
    pub(crate) fn worst(&self) -> Duration {
        Duration::from_nanos(self.worst_ns.load(Relaxed))
    }

    /// What was before does not count any more.
    pub(crate) fn forget(&self) {
        self.worst_ns.store(0, Relaxed);
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.stop();
    }
}
