//! What is here and what is there: looks at the domain, listens to the tokens of other bridges, and
//! keeps a route for each topic that is to be carried.
//!
//! # Invariants
//! - This thread holds the tokens of all nodes that stand for remote ones: it lives as long as the
//!   bridge.
//! - A topic goes out while a live publisher that is no bridge is on it; so nothing goes back where
//!   it came from, and a topic is not kept alive by its bridge.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use outlive::{Node, NodeInfo, TopicInfo};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;

use crate::incoming::{Expected, Incoming};
use crate::outgoing::{Failed, Outgoing};
use crate::queues::{Sink, Source};
use crate::ros2::Graph;
use crate::services::{Offer, Stand};
use crate::shared::{NODE_NAME, Shared, is_bridge_name, say};
use crate::wire::Of;

/// Between two looks at the domain: how late a death or a new topic is seen at most.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Topics and services carried in each direction at most.
const ROUTES_MAX: usize = 512;
/// Remote nodes that have a local one at most.
const PROXIES_MAX: usize = 1024;

/// A token that came or went.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) key: String,
    pub(crate) there: bool,
}

/// The state of the bridge's own thread.
pub(crate) struct Control {
    shared: Arc<Shared>,
    /// Local nodes that others are told of.
    nodes: HashMap<u64, LivelinessToken>,
    out: HashMap<String, Outgoing>,
    /// By bridge and topic.
    into: HashMap<(String, String), Incoming>,
    /// Stopped, not ended yet.
    ending: Vec<Incoming>,
    expected: HashMap<(String, String), Expected>,
    offers: HashMap<String, Offer>,
    stands: HashMap<(String, String), Stand>,
    sinks: HashMap<String, Sink>,
    sources: HashMap<(String, String), Source>,
    /// Sources begun so far.
    sources_begun: u64,
    /// What each other bridge has said is there.
    bridges: BTreeMap<String, HashSet<String>>,
    ros2: Option<Graph>,
}

impl Control {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, Failed> {
        let ros2 = shared.config.ros2.clone().map(|config| Graph::join(&shared, config));
        Ok(Self {
            shared,
            nodes: HashMap::new(),
            out: HashMap::new(),
            into: HashMap::new(),
            ending: Vec::new(),
            expected: HashMap::new(),
            offers: HashMap::new(),
            stands: HashMap::new(),
            sinks: HashMap::new(),
            sources: HashMap::new(),
            sources_begun: 0,
            bridges: BTreeMap::new(),
            ros2: ros2.transpose()?,
        })
    }

    /// Other bridges that have something there.
    pub(crate) fn bridges(&self) -> usize {
        self.bridges.len()
    }

    /// Handles tokens until `until`, and looks at the domain once.
    pub(crate) fn step(&mut self, tokens: &Receiver<Token>, until: Instant) -> Result<(), Failed> {
        self.look()?;
        let until = until.min(Instant::now() + LOOK_EVERY);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match tokens.recv_timeout(left) {
                Ok(token) => self.token(&token),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn look(&mut self) -> Result<(), Failed> {
        let nodes = self.shared.domain.nodes()?;
        let live: HashMap<u64, &NodeInfo> = nodes
            .iter()
            .filter(|n| n.alive && !is_bridge_name(&n.name))
            .map(|n| (n.id.get(), n))
            .collect();
        self.look_at_topics(&live)?;
        self.look_at_services(&live)?;
        self.look_at_queues(&live)?;
        // Last, so that a node's last message is on its way before its death is told.
        if self.shared.config.nodes {
            self.look_at_nodes(&live)?;
        }
        self.ending.retain(|route| !route.worker().has_ended());
        Ok(())
    }

    fn look_at_nodes(&mut self, live: &HashMap<u64, &NodeInfo>) -> Result<(), Failed> {
        self.nodes.retain(|id, _| live.contains_key(id));
        for (id, node) in live {
            if !self.nodes.contains_key(id) {
                let host = self.shared.config.host.as_deref().unwrap_or("host");
                let name = format!("{id}/{host}/{}", node.name);
                let key = self.shared.keys.of(&self.shared.own, "live/node", &name);
                let token = self.shared.session.liveliness().declare_token(key).wait()?;
                self.nodes.insert(*id, token);
            }
        }
        Ok(())
    }

    fn look_at_topics(&mut self, live: &HashMap<u64, &NodeInfo>) -> Result<(), Failed> {
        let shared = self.shared.clone();
        let mut there = HashSet::new();
        let topics = shared.domain.topics()?;
        let spoken = |topic: &TopicInfo| {
            let mut publishers = topic.publishers.iter().filter(|p| p.alive && !p.closed);
            publishers.any(|p| live.contains_key(&p.id.node.get()))
        };
        let topics: Vec<_> = topics.into_iter().map(|topic| (spoken(&topic), topic)).collect();
        if let Some(ros2) = &mut self.ros2 {
            ros2.look(topics.iter().filter_map(|(spoken, topic)| spoken.then_some(topic)))?;
        }
        for (spoken, topic) in topics {
            let Some(rule) = shared.config.topic(&topic.name) else { continue };
            if !rule.direction.goes_out() || !spoken {
                continue;
            }
            there.insert(topic.name.clone());
            if !self.out.contains_key(&topic.name) && self.out.len() < ROUTES_MAX {
                let route = Outgoing::start(&shared, &topic.name, rule);
                self.out.insert(topic.name, route);
            }
        }
        self.out.retain(|name, route| there.contains(name) && !route.has_ended());
        Ok(())
    }

    fn look_at_services(&mut self, live: &HashMap<u64, &NodeInfo>) -> Result<(), Failed> {
        let shared = self.shared.clone();
        let mut there = HashSet::new();
        let mut services = shared.domain.services()?;
        services.retain(|s| s.server.is_some_and(|node| live.contains_key(&node.get())));
        if let Some(ros2) = &mut self.ros2 {
            ros2.look_at_services(services.iter());
        }
        for service in services {
            let Some(rule) = shared.config.service(&service.name) else { continue };
            if !rule.direction.goes_out() {
                continue;
            }
            there.insert(service.name.clone());
            if !self.offers.contains_key(&service.name) && self.offers.len() < ROUTES_MAX {
                self.offers.insert(service.name.clone(), Offer::start(&shared, &service, rule));
            }
        }
        self.offers.retain(|name, offer| there.contains(name) && !offer.has_ended());
        Ok(())
    }

    /// Messages come in to where the consumer is.
    fn look_at_queues(&mut self, live: &HashMap<u64, &NodeInfo>) -> Result<(), Failed> {
        let shared = self.shared.clone();
        let mut there = HashSet::new();
        for queue in shared.domain.queues()? {
            let Some(rule) = shared.config.queue(&queue.name) else { continue };
            let consumed = queue.consumer.is_some_and(|node| live.contains_key(&node.get()));
            if !rule.direction.comes_in() || !consumed {
                continue;
            }
            there.insert(queue.name.clone());
            if !self.sinks.contains_key(&queue.name) && self.sinks.len() < ROUTES_MAX {
                self.sinks.insert(queue.name.clone(), Sink::start(&shared, &queue));
            }
        }
        self.sinks.retain(|name, sink| there.contains(name) && !sink.has_ended());
        Ok(())
    }

    fn token(&mut self, token: &Token) {
        let Some((bridge, of)) = self.shared.keys.token(&token.key) else { return };
        if bridge == self.shared.own {
            return;
        }
        self.remember(&bridge, token);
        match of {
            Of::Bridge => {}
            Of::Node { id, host, name } if token.there => {
                self.node_joined(bridge, id, &host, &name)
            }
            Of::Node { id, .. } => self.node_gone(&bridge, id),
            Of::Topic(name) if token.there => self.topic_came(bridge, name),
            Of::Topic(name) => {
                if let Some(route) = self.into.remove(&(bridge, name)) {
                    route.worker().stop();
                    self.ending.push(route);
                }
            }
            Of::Service(name) if token.there => self.service_came(bridge, name),
            Of::Service(name) => drop(self.stands.remove(&(bridge, name))),
            Of::Queue(name) if token.there => self.queue_came(bridge, name),
            Of::Queue(name) => drop(self.sources.remove(&(bridge, name))),
        }
    }

    fn remember(&mut self, bridge: &str, token: &Token) {
        if token.there {
            let known = self.bridges.contains_key(bridge);
            let tokens = self.bridges.entry(bridge.to_owned()).or_default();
            tokens.insert(token.key.clone());
            if !known {
                say(format_args!("bridge {bridge} is there"));
            }
        } else if let Some(tokens) = self.bridges.get_mut(bridge) {
            tokens.remove(&token.key);
            if tokens.is_empty() {
                self.bridges.remove(bridge);
                say(format_args!("bridge {bridge} is gone"));
            }
        }
    }

    fn node_joined(&mut self, bridge: String, id: u64, host: &str, name: &str) {
        let mut proxies = self.shared.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (bridge, id);
        if proxies.contains_key(&key) || proxies.len() >= PROXIES_MAX {
            return;
        }
        let full = format!("{NODE_NAME}.{host}.{name}");
        let full: String = full.chars().take(180).collect();
        let mut builder = Node::builder().name(full);
        if let Some(domain) = &self.shared.config.domain {
            builder = builder.domain(domain);
        }
        match builder.open() {
            Ok(node) => drop(proxies.insert(key, node)),
            Err(e) => say(format_args!("node {name} of {host} is not shown: {e}")),
        }
    }

    /// Watchers are told when the last port of the node here has let go of it.
    fn node_gone(&mut self, bridge: &str, id: u64) {
        let key = (bridge.to_owned(), id);
        let gone = self.shared.proxies.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        for ((of, _), route) in &self.into {
            if of == bridge {
                route.node_gone(id);
            }
        }
        drop(gone);
    }

    fn topic_came(&mut self, bridge: String, name: String) {
        let Some(rule) = self.shared.config.topic(&name) else { return };
        let key = (bridge, name);
        if !rule.direction.comes_in() || self.into.len() >= ROUTES_MAX {
            return;
        }
        if self.into.get(&key).is_some_and(|route| !route.worker().has_ended()) {
            return;
        }
        if self.expected.len() > 16 * ROUTES_MAX {
            self.expected.retain(|key, _| self.into.contains_key(key));
        }
        let expected = self.expected.entry(key.clone()).or_default().clone();
        let route = Incoming::start(&self.shared, &key.0, &key.1, expected);
        self.into.insert(key, route);
    }

    fn service_came(&mut self, bridge: String, name: String) {
        let Some(rule) = self.shared.config.service(&name) else { return };
        let key = (bridge, name);
        let full = self.stands.len() >= ROUTES_MAX;
        if rule.direction.comes_in() && !full && !self.stands.contains_key(&key) {
            let stand = Stand::start(&self.shared, &key.0, &key.1, rule);
            self.stands.insert(key, stand);
        }
    }
    fn queue_came(&mut self, bridge: String, name: String) {
        let Some(rule) = self.shared.config.queue(&name) else { return };
        let key = (bridge, name);
        let full = self.sources.len() >= ROUTES_MAX;
        if rule.direction.goes_out() && !full && !self.sources.contains_key(&key) {
            self.sources_begun += 1;
            let source = Source::start(&self.shared, &key.0, &key.1, self.sources_begun);
            self.sources.insert(key, source);
        }
    }
}
