//! The table of all routes: what is carried now, each by a thread of its own.
//!
//! Whoever knows what is to be carried says so again and again: [`Side::want`] for each, then
//! [`Side::settle`]. What is not wanted any more is asked to end, and nobody waits for it: the
//! thread does what is left to do, and is gone from the table at a later look. Until then its name
//! has no other route. If it is wanted again meanwhile, it goes on.

use std::array;
use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use crate::shared::say;
use crate::worker::{News, Worker};

/// Routes of each kind at most.
pub(crate) const ROUTES_MAX: usize = 512;
/// Before one that has failed is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(500);
/// For all routes to end, once the bridge does.
const END_MAX: Duration = Duration::from_secs(4);

/// What is carried, and which way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    TopicOut,
    TopicIn,
    ServiceOut,
    ServiceIn,
    QueueOut,
    QueueIn,
    RosTopicOut,
    RosTopicIn,
    RosServiceOut,
    RosServiceIn,
}

const KINDS: usize = Kind::RosServiceIn as usize + 1;

/// Where it is, for what is elsewhere, and its name.
type Name = (String, String);

struct Route {
    worker: Worker,
    begun: Instant,
    /// Said since the last time that all was settled.
    wanted: bool,
    /// The nodes whose messages it carries.
    nodes: Vec<u64>,
}

/// All routes.
pub(crate) struct Routes([Side; KINDS]);

/// Those of a kind.
pub(crate) struct Side {
    routes: HashMap<Name, Route>,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self(array::from_fn(|_| Side { routes: HashMap::new() }))
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Side {
        &mut self.0[kind as usize]
    }

    /// Ends all, and waits for that, but not for ever.
    pub(crate) fn end(mut self) {
        for side in &mut self.0 {
            side.routes.values().for_each(|route| route.worker.stop());
        }
        let until = Instant::now() + END_MAX;
        loop {
            let left: usize = self.0.iter_mut().map(Side::sweep).sum();
            if left == 0 {
                return;
            }
            if Instant::now() >= until {
                return say(format_args!("{left} routes do not end: left as they are"));
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Side {
    /// Begins a route by `start`, unless it is there.
    pub(crate) fn want(&mut self, far: &str, name: &str, start: impl FnOnce() -> Worker) {
        if self.keep(far, name) {
            return;
        }
        let name = (far.to_owned(), name.to_owned());
        if self.routes.len() < ROUTES_MAX || self.routes.contains_key(&name) {
            let (worker, begun, nodes) = (start(), Instant::now(), Vec::new());
            self.routes.insert(name, Route { worker, begun, wanted: true, nodes });
        }
    }

    /// Wants a route that is there; false when it is to begin.
    pub(crate) fn keep(&mut self, far: &str, name: &str) -> bool {
        let name = (far.to_owned(), name.to_owned());
        let Some(route) = self.routes.get_mut(&name) else { return false };
        route.wanted = true;
        route.worker.call_back();
        let waits = route.worker.has_failed() && route.begun.elapsed() < RETRY_EVERY;
        waits || !route.worker.has_ended()
    }

    pub(crate) fn has(&self, far: &str, name: &str) -> bool {
        self.routes.contains_key(&(far.to_owned(), name.to_owned()))
    }

    /// Asks those to end that were not wanted since the last call.
    pub(crate) fn settle(&mut self) {
        self.routes.retain(|_, route| {
            let wanted = std::mem::take(&mut route.wanted);
            if !wanted {
                route.worker.stop();
            }
            wanted || !route.worker.has_ended()
        });
    }

    /// How many are left once those that have ended are gone.
    fn sweep(&mut self) -> usize {
        self.routes.retain(|_, route| !route.worker.has_ended());
        self.routes.len()
    }

    /// Whose messages a route carries now.
    pub(crate) fn carries(&mut self, far: &str, name: &str, nodes: impl Iterator<Item = u64>) {
        if let Some(route) = self.routes.get_mut(&(far.to_owned(), name.to_owned())) {
            route.nodes.clear();
            route.nodes.extend(nodes);
        }
    }

    /// The nodes whose messages are still carried by routes that end.
    pub(crate) fn last_words(&self) -> HashSet<u64> {
        let ending = self.routes.values().filter(|route| route.worker.is_ending());
        ending.flat_map(|route| route.nodes.iter().copied()).collect()
    }

    /// Tells a route.
    pub(crate) fn tell(&self, far: &str, name: &str, news: News) {
        if let Some(route) = self.routes.get(&(far.to_owned(), name.to_owned())) {
            route.worker.tell(news);
        }
    }

    /// Tells all routes of a bridge.
    pub(crate) fn tell_all(&self, far: &str, news: &News) {
        for (_, route) in self.routes.iter().filter(|((of, _), _)| of == far) {
            route.worker.tell(news.clone());
        }
    }
}
