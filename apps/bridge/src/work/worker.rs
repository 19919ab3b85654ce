//! Work that can be asked to end, and called back as long as it has not.

use std::sync::Arc;

use super::job::{Job, Workers};
use super::stop::{Ending, Stop};
use crate::report::Failed;

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

/// Work that can be asked to end. It does so by itself: nobody waits for it.
pub(crate) struct Worker {
    stop: Arc<Stop>,
    hears: Option<Box<dyn Fn(News) + Send>>,
}

impl Worker {
    /// Begins `run`, which ends soon after it was asked to, or gives work that may pause; why it
    /// has failed is said as `what`.
    pub(crate) fn start(
        workers: &Arc<Workers>,
        thread: &'static str,
        what: String,
        run: impl FnOnce(&Stop) -> Result<Option<Box<dyn Job>>, Failed> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(Stop::default());
        workers.begin(thread, what, Ending(stop.clone()), run);
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
        if self.stop.ask() {
            self.tell(News::Stop);
        }
    }

    /// Takes that back, unless it comes too late.
    pub(crate) fn call_back(&self) {
        self.stop.call_back();
    }

    /// Whether it was asked to end, and has not yet.
    pub(crate) fn is_ending(&self) -> bool {
        self.stop.is_asked() && !self.has_ended()
    }

    /// Whether nothing is left of it.
    pub(crate) fn has_ended(&self) -> bool {
        self.stop.is_gone()
    }

    /// Whether it ended without having been asked to.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_ended() && !self.stop.has_agreed()
    }
}
