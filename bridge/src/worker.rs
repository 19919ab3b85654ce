//! A thread that can be asked to end, and called back as long as it has not.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

use crate::shared::Shared;

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

const RUNS: u8 = 0;
const ASKED: u8 = 1;
const ENDS: u8 = 2;

/// What a thread has been asked. Only the words count; nothing else is passed through it.
///
/// | from | to | by |
/// |---|---|---|
/// | runs | asked to end | the table of routes |
/// | asked | runs | the table, which wants it after all |
/// | asked | ends | the thread, which lets go of what it has from then on |
#[derive(Debug, Default)]
pub(crate) struct Stop(AtomicU8);

impl Stop {
    /// Whether it is to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.load(Relaxed) != RUNS
    }

    /// Asked by the thread when it is ready to end: whether it is still to, for good.
    pub(crate) fn ends(&self) -> bool {
        self.turn(ASKED, ENDS)
    }

    /// For threads that are always ready: whether to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_asked() || !self.ends()
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Relaxed, Relaxed).is_ok_and(|_| true)
            || self.0.load(Relaxed) == to
    }
}

/// What a route is told while it runs.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A remote node is gone: so is who speaks for it here.
    NodeGone(u64),
    /// The token of its topic has come once more: the topic may be another one.
    Again,
    /// Publishers of a session of ROS 2 keep messages.
    Keeps(String),
}

/// A thread that can be asked to end. It does so by itself: nobody waits for it.
pub(crate) struct Worker {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    hears: Option<Box<dyn Fn(News) + Send>>,
}

impl Worker {
    /// Begins `run`, which ends soon after it was asked to; why it has failed is said as `what`.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        thread: &str,
        what: impl fmt::Display + Send + 'static,
        run: impl FnOnce(&Stop) -> Result<(), Failed> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(Stop::default());
        let (seen, by) = (stop.clone(), shared.clone());
        let begun = thread::Builder::new().name(thread.into()).spawn(move || {
            if let Err(e) = run(&seen) {
                by.say_failed(format_args!("{what}: {e}"));
            }
        });
        let thread = begun.map_err(|e| shared.say_failed(format_args!("no thread: {e}"))).ok();
        Self { stop, thread, hears: None }
    }

    /// The same, which hears news.
    pub(crate) fn hearing(self, hears: impl Fn(News) + Send + 'static) -> Self {
        Self { hears: Some(Box::new(hears)), ..self }
    }

    pub(crate) fn tell(&self, news: News) {
        if let Some(hears) = &self.hears {
            hears(news);
        }
    }

    /// Asks it to end.
    pub(crate) fn stop(&self) {
        self.stop.turn(RUNS, ASKED);
    }

    /// Takes that back, unless it comes too late.
    pub(crate) fn call_back(&self) {
        self.stop.turn(ASKED, RUNS);
    }

    /// Whether it was asked to end, and has not yet.
    pub(crate) fn is_ending(&self) -> bool {
        self.stop.is_asked() && !self.has_ended()
    }

    /// Whether its thread is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Whether it ended without having been asked to.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_ended() && self.stop.0.load(Relaxed) != ENDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_back_in_time_goes_on() {
        let stop = Stop::default();
        assert!(stop.goes_on() && !stop.ends());
        assert!(stop.turn(RUNS, ASKED) && stop.is_asked());
        assert!(stop.turn(ASKED, RUNS) && stop.goes_on());
        stop.turn(RUNS, ASKED);
        assert!(stop.ends(), "for good");
        stop.turn(ASKED, RUNS);
        assert!(stop.ends() && !stop.goes_on());
    }
}
