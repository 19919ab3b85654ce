//! Work that can be asked to end, and called back as long as it has not.
//!
//! It has a thread of its own while there is something to do. What is silent for a while is parked:
//! what waits for somebody here, with all others in `silent`; what waits for somebody elsewhere,
//! until Zenoh's thread wakes it.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outlive::Waitable;

use crate::failed::Failed;
use crate::shared::Shared;

/// Without work for so long, nothing needs a thread.
pub(crate) const QUIET: Duration = Duration::from_secs(1);

const RUNS: u8 = 0;
const ASKED: u8 = 1;
const ENDS: u8 = 2;

/// What a route has been asked. Only the words count; nothing else is passed through it.
///
/// | from | to | by |
/// |---|---|---|
/// | runs | asked to end | the table of routes |
/// | asked | runs | the table, which wants it after all |
/// | asked | ends | the thread, which lets go of what it has from then on |
#[derive(Debug, Default)]
pub(crate) struct Stop {
    asked: AtomicU8,
    /// Nothing is left of it.
    gone: AtomicBool,
}

impl Stop {
    /// Whether it is to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) != RUNS
    }

    /// Asked by the thread when it is ready to end: whether it is still to, for good.
    pub(crate) fn ends(&self) -> bool {
        self.turn(ASKED, ENDS)
    }

    /// For threads that are always ready: whether to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_asked() || !self.ends()
    }

    /// One that was asked before it began.
    #[cfg(test)]
    pub(crate) fn asked() -> Self {
        Self { asked: AtomicU8::new(ASKED), ..Self::default() }
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.asked.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
            || self.asked.load(Relaxed) == to
    }
}

/// What a route is told while it runs.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A remote node is gone: who speaks for it here is to be looked at.
    NodeGone,
    /// Its bridge is gone: nothing more comes.
    BridgeGone,
    /// The token of its topic has come once more: the topic may be another one.
    Again,
    /// Publishers of a session of ROS 2 keep messages.
    Keeps(String),
    /// It is asked to end.
    Stop,
}

/// How a turn of work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// There is nothing to do.
    Quiet,
    Ended,
}

/// Work that may pause.
pub(crate) trait Job: Send {
    /// Works until there was nothing to do for [`QUIET`], or until it has ended.
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed>;

    /// Where it lies while there is nothing to do.
    fn rests(&mut self) -> Rests<'_>;

    /// Whether it is to go on, once what it waited for is ready.
    fn wakes(&mut self) -> bool {
        true
    }
}

/// Where work lies while there is nothing to do.
pub(crate) enum Rests<'a> {
    /// Among all that wait for something here.
    ForLocal(&'a mut dyn Waitable),
    /// Until somebody wakes it, who gives it something to do first.
    UntilWoken(Arc<Slot>),
    /// There is something to do.
    Not,
}

/// Where work lies until it is woken.
#[derive(Default)]
pub(crate) struct Slot(Mutex<Option<Running>>);

impl Slot {
    /// Wakes what lies there.
    pub(crate) fn wake(&self) {
        let resting = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(resting) = resting {
            resting.go();
        }
    }
}

/// Work with all that belongs to it.
pub(crate) struct Running {
    shared: Arc<Shared>,
    thread: &'static str,
    what: String,
    pub(crate) job: Box<dyn Job>,
    pub(crate) stop: Ending,
}

/// Says at its end that nothing is left.
pub(crate) struct Ending(Arc<Stop>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.gone.store(true, Relaxed);
    }
}

impl std::ops::Deref for Ending {
    type Target = Stop;

    fn deref(&self) -> &Stop {
        &self.0
    }
}

impl Running {
    /// Goes on, in a thread. One that cannot be had is the end, and a failure.
    pub(crate) fn go(self) {
        let shared = self.shared.clone();
        spawn(&shared, self.thread, move || self.work());
    }

    fn work(mut self) {
        loop {
            match self.job.run(&self.stop) {
                Ok(Turn::Quiet) => {}
                Ok(Turn::Ended) => return,
                Err(e) => return self.shared.say_failed(format_args!("{}: {e}", self.what)),
            }
            match self.job.rests() {
                Rests::Not => {}
                Rests::ForLocal(_) => {
                    let silent = self.shared.silent.clone();
                    return silent.take(self);
                }
                Rests::UntilWoken(slot) => {
                    let mut slot = slot.0.lock().unwrap_or_else(PoisonError::into_inner);
                    // Asked once more under the lock: whoever gives it something to do now waits
                    // for the lock, and wakes it then.
                    if !self.stop.is_asked() && matches!(self.job.rests(), Rests::UntilWoken(_)) {
                        *slot = Some(self);
                        return;
                    }
                }
            }
        }
    }
}

fn spawn(shared: &Shared, name: &str, run: impl FnOnce() + Send + 'static) {
    if let Err(e) = thread::Builder::new().name(name.into()).spawn(run) {
        shared.say_failed(format_args!("no thread for what is carried: {e}"));
    }
}

/// Work that can be asked to end. It does so by itself: nobody waits for it.
pub(crate) struct Worker {
    stop: Arc<Stop>,
    hears: Option<Box<dyn Fn(News) + Send>>,
}

impl Worker {
    /// Begins `run`, which ends soon after it was asked to, or gives work that may pause; why it
    /// has failed is said as `what`.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        thread: &'static str,
        what: String,
        run: impl FnOnce(&Stop) -> Result<Option<Box<dyn Job>>, Failed> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(Stop::default());
        let (ending, shared) = (Ending(stop.clone()), shared.clone());
        spawn(&shared.clone(), thread, move || match run(&ending) {
            Ok(None) => {}
            Ok(Some(job)) => Running { shared, thread, what, job, stop: ending }.work(),
            Err(e) => shared.say_failed(format_args!("{what}: {e}")),
        });
        Self { stop, hears: None }
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
        if !self.stop.is_asked() && self.stop.turn(RUNS, ASKED) {
            self.tell(News::Stop);
        }
    }

    /// Takes that back, unless it comes too late.
    pub(crate) fn call_back(&self) {
        self.stop.turn(ASKED, RUNS);
    }

    /// Whether it was asked to end, and has not yet.
    pub(crate) fn is_ending(&self) -> bool {
        self.stop.is_asked() && !self.has_ended()
    }

    /// Whether nothing is left of it.
    pub(crate) fn has_ended(&self) -> bool {
        self.stop.gone.load(Relaxed)
    }

    /// Whether it ended without having been asked to.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_ended() && self.stop.asked.load(Relaxed) != ENDS
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
