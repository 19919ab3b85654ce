//! One thread for all that waits for something here: topics and queues that go out, services of
//! elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use outlive::{Interrupt, WaitSet, Waitable};

use crate::worker::{Rests, Running};

/// Before all are looked at again in any case.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who waits for something here.
#[derive(Default)]
pub(crate) struct Silent {
    come: Mutex<Come>,
    /// Somebody has come.
    news: Interrupt,
}

#[derive(Default)]
struct Come {
    resting: Vec<Running>,
    /// The thread is there.
    watched: bool,
}

impl Silent {
    /// Lets it rest until there is a message, or it is to end.
    pub(crate) fn take(self: &Arc<Self>, running: Running) {
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
