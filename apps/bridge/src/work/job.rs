//! Work that may pause. It has a thread of its own while there is something to do. What is silent
//! for a while is parked: what waits for somebody here, with all others in one thread; what waits
//! for somebody elsewhere, until Zenoh's thread wakes it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outlive::{Interrupt, WaitSet, Waitable};

use super::stop::{Ending, Stop};
use crate::report::{Failed, Failures};

/// Without work for so long, nothing needs a thread.
pub(crate) const QUIET: Duration = Duration::from_secs(1);
/// Before all that wait for something here are looked at again in any case.
const LOOK_EVERY: Duration = Duration::from_millis(100);

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
struct Running {
    workers: Arc<Workers>,
    thread: &'static str,
    what: String,
    job: Box<dyn Job>,
    stop: Ending,
}

impl Running {
    /// Goes on, in a thread. One that cannot be had is the end, and a failure.
    fn go(self) {
        let workers = self.workers.clone();
        workers.spawn(self.thread, move || self.work());
    }

    fn work(mut self) {
        loop {
            match self.job.run(&self.stop) {
                Ok(Turn::Quiet) => {}
                Ok(Turn::Ended) => return,
                Err(e) => return self.workers.say_failed(&self.what, &e),
            }
            match self.job.rests() {
                Rests::Not => {}
                Rests::ForLocal(_) => {
                    let workers = self.workers.clone();
                    return workers.take(self);
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

/// What all work has in common: one thread for all that waits for something here (topics and queues
/// that go out, services of elsewhere), and who says what has failed.
pub(crate) struct Workers {
    failures: Arc<Failures>,
    come: Mutex<Come>,
    /// Somebody has come.
    news: Interrupt,
}

/// Work that has come to wait.
#[derive(Default)]
struct Come {
    resting: Vec<Running>,
    /// The thread is there.
    watched: bool,
}

impl Workers {
    pub(crate) fn new(failures: Arc<Failures>) -> Self {
        Self { failures, come: Mutex::default(), news: Interrupt::default() }
    }

    /// Begins `run`, which ends by itself or gives work that may pause; why it has failed is said
    /// as `what`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        thread: &'static str,
        what: String,
        stop: Ending,
        run: impl FnOnce(&Stop) -> Result<Option<Box<dyn Job>>, Failed> + Send + 'static,
    ) {
        let workers = self.clone();
        self.spawn(thread, move || match run(&stop) {
            Ok(None) => {}
            Ok(Some(job)) => Running { workers, thread, what, job, stop }.work(),
            Err(e) => workers.say_failed(&what, &e),
        });
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) {
        if let Err(e) = thread::Builder::new().name(name.into()).spawn(run) {
            self.failures.say(format_args!("no thread for what is carried: {e}"));
        }
    }

    fn say_failed(&self, what: &str, e: &Failed) {
        self.failures.say(format_args!("{what}: {e}"));
    }

    /// Lets it rest until there is a message, or it is to end.
    fn take(self: &Arc<Self>, running: Running) {
        let mut come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
        if !come.watched {
            let by = self.clone();
            let begun = thread::Builder::new().name("silent".into()).spawn(move || by.watch());
            come.watched = begun.is_ok();
        }
        if come.watched {
            come.resting.push(running);
            self.news.raise();
        } else {
            drop(come);
            running.go();
        }
    }

    /// Somebody may have been asked to end.
    pub(crate) fn look(&self) {
        self.news.raise();
    }

    fn watch(&self) {
        let (mut set, mut resting) = (WaitSet::new(), Vec::new());
        loop {
            self.news.clear();
            let mut come = self.come.lock().unwrap_or_else(PoisonError::into_inner);
            resting.append(&mut come.resting);
            drop(come);
            let ready = self.wait(&mut set, &mut resting);
            let mut ready = ready.into_iter();
            let wakes = |running: &mut Running| {
                let ready = ready.next().unwrap_or(true);
                running.stop.is_asked() || (ready && running.job.wakes())
            };
            resting.extract_if(.., wakes).for_each(Running::go);
        }
    }

    /// Which of them are ready; all, where the kernel has no room for waiting.
    fn wait(&self, set: &mut WaitSet, resting: &mut [Running]) -> Vec<bool> {
        let mut news = &self.news;
        let mut members: Vec<&mut dyn Waitable> = vec![&mut news];
        for running in &mut *resting {
            if let Rests::ForLocal(member) = running.job.rests() {
                members.push(member);
            }
        }
        let mut of = vec![false; members.len()];
        match set.wait(&mut members, LOOK_EVERY) {
            Ok(ready) => ready.for_each(|i| of[i] = true),
            Err(_) => {
                thread::sleep(LOOK_EVERY);
                of.fill(true);
            }
        }
        of.split_off(1)
    }
}
