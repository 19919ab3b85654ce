//! A thread that can be asked to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::outgoing::Failed;
use crate::shared::say;

/// Between two attempts: another one may be there.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// How soon a stop is noticed between them.
const PAUSE: Duration = Duration::from_millis(20);

/// A thread that can be asked to end. Dropping it does so, and waits.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Begins `run`, which ends soon after what it was given is true.
    pub(crate) fn start(name: &str, run: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || run(&seen)).ok();
        Self { stop, thread }
    }

    /// Does `what` by `run`, and tries again when that fails.
    pub(crate) fn retry(
        name: &str,
        what: String,
        mut run: impl FnMut(&AtomicBool) -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        Self::start(name, move |stop| {
            let mut told = String::new();
            while !stop.load(Relaxed) {
                let Err(e) = run(stop) else { return };
                if e.to_string() != told {
                    told = e.to_string();
                    say(format_args!("{what}: {told}"));
                }
                let until = Instant::now() + RETRY_EVERY;
                while Instant::now() < until && !stop.load(Relaxed) {
                    thread::sleep(PAUSE);
                }
            }
        })
    }

    /// Asks it to end; the thread does so by itself.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Whether it has: it was asked to, or has given up.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
