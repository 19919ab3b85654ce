//! The table of all routes: what is carried now, each by a thread of its own while it has work.
//!
//! Whoever knows what is to be carried says so again and again: [`Side::want`] for each, then
//! [`Side::settle`]. What is not wanted any more is asked to end, and nobody waits for it: the
//! thread does what is left to do, and is gone from the table at a later look. Until then its name
//! has no other route. If it is wanted again meanwhile, it goes on.

use std::collections::{HashMap, HashSet};
use std::thread;
use std::time::{Duration, Instant};

use super::worker::{News, Worker};
use crate::report::say;

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

/// In the order of [`Kind`].
const KINDS: [&str; 10] = [
    "topics going out",
    "topics coming in",
    "services of here",
    "services of elsewhere",
    "queues with a consumer elsewhere",
    "queues with a consumer here",
    "topics going to ROS 2",
    "topics coming from ROS 2",
    "services offered to ROS 2",
    "services of ROS 2",
];

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
pub(crate) struct Routes([Side; KINDS.len()]);

/// Those of a kind.
pub(crate) struct Side {
    what: &'static str,
    routes: HashMap<Name, Route>,
    /// Those that there is no room for: since the last time that all was settled, and then.
    asked: u64,
    left_out: u64,
}

impl Routes {
    pub(crate) fn new() -> Self {
        Self(KINDS.map(|what| Side { what, routes: HashMap::new(), asked: 0, left_out: 0 }))
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Side {
        &mut self.0[kind as usize]
    }

    /// Whether a route of these kinds may have to begin or go, though nothing else has changed.
    pub(crate) fn is_restless(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| {
            let Side { routes, left_out, .. } = &self.0[*kind as usize];
            let steady = |route: &Route| !route.worker.has_ended() && !route.worker.is_ending();
            *left_out > 0 || !routes.values().all(steady)
        })
    }

    /// How many are wanted and not carried, for want of room.
    pub(crate) fn left_out(&self) -> u64 {
        self.0.iter().map(|side| side.left_out).sum()
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
        } else {
            if self.asked == 0 && self.left_out == 0 {
                let (what, name) = (self.what, &name.1);
                say(format_args!(
                    "there are more than {ROUTES_MAX} {what}: {name} is not carried, nor are \
                     others until there is room; deny what is not needed"
                ));
            }
            self.asked += 1;
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
        self.left_out = std::mem::take(&mut self.asked);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::fixture::Alone;
    use crate::shared::Shared;

    /// Ends, once it is asked to, when `ends` says so.
    fn route(shared: &Arc<Shared>, ends: impl Fn() + Send + 'static) -> Worker {
        Worker::start(&shared.workers, "route", "a route".into(), move |stop| {
            while !stop.is_asked() {
                thread::sleep(Duration::from_millis(1));
            }
            ends();
            stop.ends();
            Ok(None)
        })
    }

    #[test]
    fn a_route_that_takes_its_time_to_end_keeps_nobody_waiting() {
        let alone = Alone::new("ending");
        let shared = alone.bridge();
        let mut routes = Routes::new();
        let may_end = Arc::new(AtomicBool::new(false));
        let side = routes.of(Kind::TopicOut);
        side.want("h1", "/slow", || {
            let may_end = may_end.clone();
            route(&shared, move || {
                while !may_end.load(Relaxed) {
                    thread::yield_now()
                }
            })
        });
        side.settle();
        side.settle(); // wanted no more
        assert!(side.has("h1", "/slow"), "a wait for its end would never return");
        may_end.store(true, Relaxed);
        while side.has("h1", "/slow") {
            side.settle();
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn all_routes_end_at_the_same_time() {
        const ROUTES: u64 = 100;
        let alone = Alone::new("together");
        let shared = alone.bridge();
        let mut routes = Routes::new();
        let took_us = Arc::new(AtomicU64::new(0));
        for i in 0..ROUTES {
            routes.of(Kind::TopicIn).want("h1", &format!("/{i}"), || {
                let took_us = took_us.clone();
                route(&shared, move || {
                    let begun = Instant::now();
                    thread::sleep(Duration::from_millis(30));
                    took_us.fetch_add(begun.elapsed().as_micros() as u64, Relaxed);
                })
            });
        }
        let begun = Instant::now();
        routes.end();
        // One after the other they would take the sum of what each has taken.
        let (all, sum) = (begun.elapsed(), Duration::from_micros(took_us.load(Relaxed)));
        assert!(sum >= Duration::from_millis(30) * ROUTES as u32, "{sum:?}: not all have ended");
        assert!(all * 2 < sum, "{all:?} for routes that took {sum:?}");
    }
}
