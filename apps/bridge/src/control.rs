//! What is here and what is there: looks at the domain, listens to the tokens of other bridges, and
//! keeps a route for each topic that is to be carried.
//!
//! # Invariants
//! - This thread holds the tokens of all nodes that stand for remote ones: it lives as long as the
//!   bridge.
//! - A topic goes out while a live publisher that is no bridge is on it; so nothing goes back where
//!   it came from, and a topic is not kept alive by its bridge.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlive::topic::PublisherInfo;
use outlive::{ErrorKind, Node, NodeInfo, queue, service, topic};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;

use crate::carried::incoming::{self, Expected};
use crate::carried::{outgoing, queues, services};
use crate::link::listen::Token;
use crate::link::wire::Of;
use crate::local::listed::Listed;
use crate::local::speakers::{NODE_NAME, Speaker, is_bridge_name};
use crate::report::stats::Snapshot;
use crate::report::{Failed, say};
use crate::ros2::Graph;
use crate::shared::Shared;
use crate::work::News;
use crate::work::routes::{Kind, ROUTES_MAX, Routes};

/// Between two looks at the domain: how late a death or a new topic is seen at most.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Topics of other bridges whose numbers are known at most, unless more come in.
const EXPECTED_MAX: usize = 16 * ROUTES_MAX;
/// Remote nodes that have a local one at most.
const PROXIES_MAX: usize = 1024;
/// Before those that could not have one are tried again: at first, and at most.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(30)];

/// When remote nodes that could not be shown are tried again, and how long after the last try.
#[derive(Debug)]
struct Again {
    at: Instant,
    wait: Duration,
}

impl Again {
    fn after(wait: Duration) -> Self {
        Self { at: Instant::now() + wait, wait }
    }
}

/// The state of the bridge's own thread.
pub(crate) struct Control {
    shared: Arc<Shared>,
    /// Local nodes that others are told of.
    nodes: HashMap<u64, LivelinessToken>,
    routes: Routes,
    topics: Listed<topic::Info>,
    services: Listed<service::Info>,
    queues: Listed<queue::Info>,
    /// All nodes at the last look, those of bridges too.
    alive: HashSet<u64>,
    /// Other bridges have said something since the last look.
    told: bool,
    /// By bridge and topic.
    expected: HashMap<(String, String), Expected>,
    /// What each other bridge has said is there.
    bridges: BTreeMap<String, HashSet<Of>>,
    /// None where all remote nodes are shown that can be.
    show_again: Option<Again>,
    ros2: Option<Graph>,
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, Failed> {
        let ros2 = shared.config.ros2.clone().map(|config| Graph::join(&shared, config));
        Ok(Self {
            shared,
            nodes: HashMap::new(),
            routes: Routes::new(),
            topics: Listed::topics(),
            services: Listed::services(),
            queues: Listed::queues(),
            alive: HashSet::new(),
            told: false,
            expected: HashMap::new(),
            bridges: BTreeMap::new(),
            show_again: None,
            ros2: ros2.transpose()?,
        })
    }

    /// What is carried, and what is not.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let not_carried = self.routes.left_out() + self.shared.room.waiting();
        self.shared.stats.snapshot(self.bridges.len(), not_carried)
    }

    /// Ends all routes, and only then the tokens.
    pub(crate) fn end(self) {
        self.routes.end();
    }

    /// Handles tokens until `until`, and looks at the domain once. Where that fails, what is
    /// carried goes on.
    pub(crate) fn step(&mut self, tokens: &Receiver<Token>, until: Instant) {
        if let Err(e) = self.look() {
            self.shared
                .say_failed(format_args!("looking at the domain failed, and is tried again: {e}"));
        }
        let until = until.min(Instant::now() + LOOK_EVERY);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokens.recv_timeout(left) {
                Ok(token) => self.token(token),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
            tokens.try_iter().for_each(|token| self.token(token));
            self.look_elsewhere();
        }
    }

    fn look(&mut self) -> Result<(), Failed> {
        let nodes = self.shared.domain.nodes()?;
        self.shared.speakers.found(&nodes);
        let live: HashMap<u64, &NodeInfo> = nodes
            .iter()
            .filter(|n| n.alive && !is_bridge_name(&n.name))
            .map(|n| (n.id.get(), n))
            .collect();
        let alive = nodes.iter().filter(|n| n.alive).map(|n| n.id.get()).collect();
        let same = std::mem::replace(&mut self.alive, alive) == self.alive;
        let topics = self.look_at_topics(&live, same);
        let knows_topics = topics.is_ok();
        let services = self.look_at_services(&live, same);
        let mut looks = vec![topics, services, self.look_at_queues(&live, same)];
        self.look_elsewhere();
        self.show_nodes_again();
        if self.shared.config.nodes {
            looks.push(self.look_at_nodes(&live, knows_topics));
        }
        // One that has failed keeps none from looking.
        looks.into_iter().collect()
    }

    fn look_at_nodes(
        &mut self,
        live: &HashMap<u64, &NodeInfo>,
        knows_topics: bool,
    ) -> Result<(), Failed> {
        // A node's last messages are on their way before its death is told: after that nobody waits
        // long for them. Without a look at the topics its routes do not know yet that they end.
        if knows_topics {
            let last_words = self.routes.of(Kind::TopicOut).last_words();
            self.nodes.retain(|id, _| live.contains_key(id) || last_words.contains(id));
        }
        for (id, node) in live {
            if !self.nodes.contains_key(id) {
                let host = self.shared.config.host.as_deref().unwrap_or("host");
                let name = format!("{id}/{host}/{}", node.name);
                let key = self.shared.link.own_key("live/node", &name);
                let token = self.shared.link.session.liveliness().declare_token(key).wait()?;
                self.nodes.insert(*id, token);
            }
        }
        Ok(())
    }

    /// `same`: nobody has joined or died since the last look.
    fn look_at_topics(&mut self, live: &HashMap<u64, &NodeInfo>, same: bool) -> Result<(), Failed> {
        let shared = &self.shared;
        let told = shared.topics_changed.swap(false, Relaxed);
        let (topics, again) = self.topics.look(&shared.domain, told)?;
        let quiet = !again && same && !self.routes.is_restless(&[Kind::TopicOut]);
        if quiet && self.ros2.is_none() {
            return Ok(());
        }
        let speaks = |p: &PublisherInfo| {
            Some(p.id.node.get()).filter(|node| p.alive && !p.closed && live.contains_key(node))
        };
        let spoken = || topics.iter().filter(|t| t.publishers.iter().any(|p| speaks(p).is_some()));
        if let Some(ros2) = &mut self.ros2 {
            ros2.look(&mut self.routes, spoken());
        }
        let side = self.routes.of(Kind::TopicOut);
        for topic::Info { name, publishers, .. } in spoken() {
            if let Some(rule) = shared.config.topic(name).filter(|r| r.direction.goes_out()) {
                side.want("", name, || outgoing::start(shared, name, rule));
                side.carries("", name, publishers.iter().filter_map(speaks));
            }
        }
        side.settle();
        Ok(())
    }

    fn look_at_services(
        &mut self,
        live: &HashMap<u64, &NodeInfo>,
        same: bool,
    ) -> Result<(), Failed> {
        let shared = &self.shared;
        let (services, again) = self.services.look(&shared.domain, false)?;
        let quiet = !again && same && !self.routes.is_restless(&[Kind::ServiceOut]);
        if quiet && self.ros2.is_none() {
            return Ok(());
        }
        let is_served = |s: &&service::Info| s.server.is_some_and(|n| live.contains_key(&n.get()));
        let served = || services.iter().filter(is_served);
        if let Some(ros2) = &mut self.ros2 {
            ros2.look_at_services(&mut self.routes, served());
        }
        let side = self.routes.of(Kind::ServiceOut);
        for service in served() {
            let name = &service.name;
            if let Some(rule) = shared.config.service(name).filter(|r| r.direction.goes_out()) {
                side.want("", name, || services::offer::start(shared, service, rule));
            }
        }
        side.settle();
        Ok(())
    }

    /// Messages come in to where the consumer is.
    fn look_at_queues(&mut self, live: &HashMap<u64, &NodeInfo>, same: bool) -> Result<(), Failed> {
        let shared = &self.shared;
        let (known, mut lanes, mut unsure) = (shared.room.known(), HashMap::new(), false);
        // A consumer that drains what a bridge has left behind touches nothing.
        let told = !same || !known.is_empty();
        let (queues, again) = self.queues.look(&shared.domain, told)?;
        if !again && !self.routes.is_restless(&[Kind::QueueIn]) {
            return Ok(());
        }
        let side = self.routes.of(Kind::QueueIn);
        for queue in queues {
            let comes_in = shared.config.queue(&queue.name).is_some_and(|r| r.direction.comes_in());
            // What is gone without a trace may have been the bridge before this one.
            let mut came_in = |node| match shared.speakers.of(node) {
                Ok(Speaker::Bridge) => true,
                Ok(Speaker::Gone) => comes_in,
                Ok(Speaker::Local) => false,
                Err(_) => {
                    unsure = true;
                    false
                }
            };
            for lane in queue.lanes.iter().filter(|lane| came_in(lane.producer.node)) {
                let gone = lane.closed || !lane.alive;
                let bytes = gone.then_some(lane.memory_bytes);
                lanes.insert((queue.name.clone(), lane.producer), bytes);
            }
            let consumed = queue.consumer.is_some_and(|node| live.contains_key(&node.get()));
            if comes_in && consumed {
                side.want("", &queue.name, || queues::sink::start(shared, queue));
            }
        }
        side.settle();
        if again {
            shared.room.found(&known, lanes);
        }
        if unsure {
            self.queues.read_again();
        }
        Ok(())
    }

    /// Keeps a route for each thing that other bridges have said is there.
    fn look_elsewhere(&mut self) {
        const KINDS: [Kind; 3] = [Kind::TopicIn, Kind::ServiceIn, Kind::QueueOut];
        if !std::mem::take(&mut self.told) && !self.routes.is_restless(&KINDS) {
            return;
        }
        let Self { shared, routes, expected, .. } = self;
        for (bridge, there) in &self.bridges {
            for of in there {
                match of {
                    Of::Bridge | Of::Node { .. } => {}
                    Of::Topic(name) => {
                        let rule = shared.config.topic(name);
                        if rule.is_some_and(|r| r.direction.comes_in()) {
                            routes.of(Kind::TopicIn).want(bridge, name, || {
                                let from = expected.entry((bridge.clone(), name.clone()));
                                incoming::start(shared, bridge, name, from.or_default().clone())
                            });
                        }
                    }
                    Of::Service(name) => {
                        let rule = shared.config.service(name);
                        if let Some(rule) = rule.filter(|r| r.direction.comes_in()) {
                            routes.of(Kind::ServiceIn).want(bridge, name, || {
                                services::stand::start(shared, bridge, name, rule)
                            });
                        }
                    }
                    Of::Queue(name) => {
                        let rule = shared.config.queue(name);
                        if rule.is_some_and(|r| r.direction.goes_out()) {
                            routes
                                .of(Kind::QueueOut)
                                .want(bridge, name, || queues::source::start(shared, bridge, name));
                        }
                    }
                }
            }
        }
        for kind in KINDS {
            routes.of(kind).settle();
        }
        if expected.len() > EXPECTED_MAX {
            expected.retain(|(bridge, name), _| routes.of(Kind::TopicIn).has(bridge, name));
        }
    }

    fn token(&mut self, token: Token) {
        let Some((bridge, of)) = self.shared.link.keys.token(&token.key) else { return };
        if bridge == self.shared.link.own {
            return;
        }
        self.told = true;
        self.remember(&bridge, &of, token.there);
        match of {
            Of::Node { id, host, name } if token.there => {
                self.node_joined(&bridge, id, &host, &name)
            }
            Of::Node { id, .. } => self.node_gone(&bridge, id),
            Of::Topic(name) if token.there => {
                self.routes.of(Kind::TopicIn).tell(&bridge, &name, News::Again);
            }
            // The next look sees the rest.
            _ => {}
        }
        if !self.bridges.contains_key(&bridge) {
            self.routes.of(Kind::TopicIn).tell_all(&bridge, &News::BridgeGone);
        }
    }

    fn remember(&mut self, bridge: &str, of: &Of, there: bool) {
        if there {
            let known = self.bridges.contains_key(bridge);
            self.bridges.entry(bridge.to_owned()).or_default().insert(of.clone());
            if !known {
                say(format_args!("bridge {bridge} is there"));
            }
        } else if let Some(all) = self.bridges.get_mut(bridge) {
            all.remove(of);
            if all.is_empty() {
                self.bridges.remove(bridge);
                say(format_args!("bridge {bridge} is gone"));
            }
        }
    }

    /// Shows the remote nodes that could not be shown before. Each try may take 10 s, as long as a
    /// stopped process holds the domain's lock: what keeps one from being shown keeps all.
    fn show_nodes_again(&mut self) {
        let now = Instant::now();
        let Some(again) = self.show_again.take_if(|again| now >= again.at) else { return };
        let all = self.bridges.iter().all(|(bridge, there)| {
            there.iter().all(|of| match of {
                Of::Node { id, host, name } => self.show(bridge, *id, host, name),
                _ => true,
            })
        });
        if !all {
            let wait = if self.has_room() { RETRY[1].min(2 * again.wait) } else { RETRY[0] };
            self.show_again = Some(Again::after(wait));
        }
    }

    fn node_joined(&mut self, bridge: &str, id: u64, host: &str, name: &str) {
        // While others wait it waits with them.
        if self.show_again.is_none() && !self.show(bridge, id, host, name) {
            self.show_again = Some(Again::after(RETRY[0]));
        }
    }

    fn proxies(&self) -> MutexGuard<'_, HashMap<(String, u64), Node>> {
        self.shared.proxies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.proxies().len() < PROXIES_MAX
    }

    /// Opens the stand-in of a remote node, unless there is one; false if it may succeed later.
    fn show(&self, bridge: &str, id: u64, host: &str, name: &str) -> bool {
        let key = (bridge.to_owned(), id);
        if self.proxies().contains_key(&key) {
            return true;
        }
        if !self.has_room() {
            self.shared.say_failed(format_args!(
                "there are more than {PROXIES_MAX} nodes elsewhere: not all are shown here until \
                 some of them end"
            ));
            return false;
        }
        let full = format!("{NODE_NAME}.{host}.{name}");
        let full: String = full.chars().take(180).collect();
        let mut builder = Node::builder().name(full);
        if let Some(domain) = &self.shared.config.domain {
            builder = builder.domain(domain);
        }
        // The table is not locked meanwhile: whatever comes in looks there.
        match builder.open() {
            Ok(node) => {
                self.shared.speakers.stands_in(node.id());
                self.proxies().insert(key, node);
                true
            }
            Err(e) => {
                self.shared.say_failed(format_args!("node {name} of {host} is not shown: {e}"));
                // It never will be.
                e.kind() == ErrorKind::InvalidName
            }
        }
    }

    /// Watchers are told when the last port of the node here has let go of it.
    fn node_gone(&mut self, bridge: &str, id: u64) {
        let key = (bridge.to_owned(), id);
        let gone = self.proxies().remove(&key);
        self.routes.of(Kind::TopicIn).tell_all(bridge, &News::NodeGone);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    /// How often all topics, services and queues were read.
    fn reads(control: &Control) -> [u32; 3] {
        [control.topics.reads, control.services.reads, control.queues.reads]
    }

    /// Looks until nothing is read any more; then how often that was.
    fn settled(control: &mut Control) -> [u32; 3] {
        for _ in 0..1000 {
            let before = reads(control);
            control.look().expect("a domain");
            if reads(control) == before {
                return before;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("they are read each time: {:?} times by now", reads(control));
    }

    #[test]
    fn what_is_silent_is_not_read_again_and_what_has_changed_is() {
        const EACH: usize = 50;
        let alone = Alone::new("silent");
        let mut control = Control::new(alone.bridge()).expect("a bridge");
        control.topics = Listed::topics().without_time();
        control.services = Listed::services().without_time();
        control.queues = Listed::queues().without_time();
        let node = alone.node("robot");
        let service = |n| {
            node.service::<u64, u64>(&format!("/s/{n}")).and_then(|of| of.server()).expect("it")
        };
        let queue =
            |n| node.queue::<u64>(&format!("/q/{n}")).and_then(|of| of.consumer()).expect("it");
        let mut servers: Vec<_> = (0..EACH).map(service).collect();
        let mut consumers: Vec<_> = (0..EACH).map(queue).collect();
        let mut before = settled(&mut control);
        for _ in 0..100 {
            control.look().expect("a domain");
        }
        assert_eq!(reads(&control), before, "nobody has come or left");
        let mut rise = |control: &mut Control| {
            control.look().expect("a domain");
            let now = reads(control);
            let before = std::mem::replace(&mut before, settled(control));
            [0, 1, 2].map(|i| now[i] > before[i])
        };
        servers.pop();
        assert_eq!(rise(&mut control), [false, true, false], "a server left");
        consumers.push(queue(EACH));
        assert_eq!(rise(&mut control), [false, false, true], "a consumer came");
        // It may leave lanes behind.
        let other = alone.node("outlive-bridge.h1.a");
        assert_eq!(rise(&mut control), [false, false, true], "a bridge came");
        drop(other);
        assert_eq!(rise(&mut control), [false, false, true], "it left");
        assert_eq!(rise(&mut control), [false; 3], "nobody");
    }
}
