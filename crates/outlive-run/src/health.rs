//! Whether a process is ready and still works, read from shared memory from outside.

use outlive::{Domain, NodeId};

use crate::config::{Heartbeat, Ready};
use crate::proc::{Identity, is_of_session};

/// The live nodes of the processes of `leader`'s session, with their names.
fn nodes(domain: &Domain, leader: Identity, since_ns: u64) -> Vec<(NodeId, String)> {
    let nodes = domain.nodes().unwrap_or_default();
    let ours = nodes.into_iter().filter(|node| {
        // In another PID namespace: then who joined before it was started is not of it.
        let of = is_of_session(node.pid, leader).unwrap_or(node.started_ns >= since_ns);
        node.alive && of
    });
    ours.map(|node| (node.id, node.name)).collect()
}

/// Messages that `ours` have published on a topic; `None` without a publisher of theirs.
fn published(domain: &Domain, topic: &str, ours: &[(NodeId, String)]) -> Option<u64> {
    let topic = domain.find_topic(topic).ok()??;
    let of_ours = |node: NodeId| ours.iter().any(|(id, _)| *id == node);
    let live = topic.publishers.iter().filter(|p| !p.closed && of_ours(p.id.node));
    live.map(|p| p.messages).reduce(|a, b| a + b)
}

/// What `ready` still lacks; `None` when it is ready.
pub(crate) fn missing(
    domain: &Domain,
    ready: &Ready,
    leader: Identity,
    since_ns: u64,
) -> Option<String> {
    if ready.is_at_once() {
        return None;
    }
    let ours = nodes(domain, leader, since_ns);
    if let Some(name) = ready.nodes.iter().find(|name| !ours.iter().any(|(_, n)| n == *name)) {
        return Some(format!("node {name}"));
    }
    if let Some(topic) = ready.topics.iter().find(|t| published(domain, t, &ours).is_none()) {
        return Some(format!("topic {topic}"));
    }
    if ready.services.is_empty() {
        return None;
    }
    let services = domain.services().unwrap_or_default();
    let served = |name: &String| {
        services.iter().any(|s| {
            s.name.trim_start_matches('/') == name.trim_start_matches('/')
                && s.server.is_some_and(|node| ours.iter().any(|(id, _)| *id == node))
        })
    };
    ready.services.iter().find(|name| !served(name)).map(|name| format!("service {name}"))
}

/// What was last seen of a heartbeat.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    node_ns: u64,
    /// Messages, and when they last grew.
    topics: Vec<(Option<u64>, u64)>,
    next_ns: u64,
}

impl Pulse {
    /// Counts from now on.
    pub(crate) fn new(rule: &Heartbeat, now_ns: u64) -> Self {
        Self { node_ns: now_ns, topics: vec![(None, now_ns); rule.topics.len()], next_ns: 0 }
    }

    /// Looks, if it is time to; what has been missing for too long.
    pub(crate) fn look(
        &mut self,
        rule: &Heartbeat,
        domain: &Domain,
        (leader, since_ns): (Identity, u64),
        now_ns: u64,
    ) -> Option<String> {
        let timeout_ns = rule.timeout.as_nanos() as u64;
        if now_ns < self.next_ns {
            return None;
        }
        self.next_ns = now_ns + (timeout_ns / 8).clamp(10_000_000, 500_000_000);
        let ours = nodes(domain, leader, since_ns);
        if !ours.is_empty() || !rule.node {
            self.node_ns = now_ns;
        }
        for (name, (count, at_ns)) in rule.topics.iter().zip(&mut self.topics) {
            let messages = published(domain, name, &ours);
            if messages.is_some() && messages != *count {
                (*count, *at_ns) = (messages, now_ns);
            }
        }
        let ms = rule.timeout.as_millis();
        let late = |at_ns: u64| now_ns.saturating_sub(at_ns) > timeout_ns;
        if late(self.node_ns) {
            return Some(format!("no live node for {ms} ms"));
        }
        let mut topics = rule.topics.iter().zip(&self.topics);
        let silent = topics.find(|(_, (_, at_ns))| late(*at_ns));
        silent.map(|(name, _)| format!("nothing on {name} for {ms} ms"))
    }
}
