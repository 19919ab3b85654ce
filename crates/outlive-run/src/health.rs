//! Whether a process is ready and still works, read from shared memory from outside.
//!
//! A look that fails, as without a free descriptor, says nothing: an error, and never silence.
//! One that will fail again, as of a damaged topic, is no news of it either: silence.

use outlive::{Domain, Error, ErrorKind, NodeId, Result};

use crate::config::{Heartbeat, Ready};
use crate::proc::{Identity, is_of_session};

/// The live nodes of the processes of `leader`'s session, with their names.
fn nodes(domain: &Domain, leader: Identity, since_ns: u64) -> Result<Vec<(NodeId, String)>> {
    let mut ours = Vec::new();
    for node in domain.nodes()?.into_iter().filter(|node| node.alive) {
        let of = is_of_session(node.pid, leader).map_err(|e| {
            let what = format!("/proc/{}/stat", node.pid);
            Error::new(ErrorKind::Io, "read", what, "see the cause").with_source(e)
        })?;
        // In another PID namespace: then who joined before it was started is not of it.
        if of.unwrap_or(node.started_ns >= since_ns) {
            ours.push((node.id, node.name));
        }
    }
    Ok(ours)
}

/// Messages that `ours` have published on a topic; `None` without a publisher of theirs.
fn published(domain: &Domain, topic: &str, ours: &[(NodeId, String)]) -> Result<Option<u64>> {
    let topic = match domain.find_topic(topic) {
        // Nobody can publish there.
        Err(e) if e.kind() == ErrorKind::InvalidName => None,
        found => found?,
    };
    let Some(topic) = topic else { return Ok(None) };
    let of_ours = |node: NodeId| ours.iter().any(|(id, _)| *id == node);
    let live = topic.publishers.iter().filter(|p| !p.closed && of_ours(p.id.node));
    Ok(live.map(|p| p.messages).reduce(|a, b| a + b))
}

/// What `ready` still lacks; `None` when it is ready.
///
/// # Errors
/// Those of looking that may pass: nobody knows whether it is ready. Others are what it lacks.
pub(crate) fn missing(
    domain: &Domain,
    ready: &Ready,
    leader: Identity,
    since_ns: u64,
) -> Result<Option<String>> {
    match lacks(domain, ready, leader, since_ns) {
        Err(e) if !may_pass(&e) => Ok(Some(format!("sight of it: {e}"))),
        outcome => outcome,
    }
}

/// Whether the next look may succeed.
fn may_pass(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io | ErrorKind::OutOfMemory)
}

fn lacks(
    domain: &Domain,
    ready: &Ready,
    leader: Identity,
    since_ns: u64,
) -> Result<Option<String>> {
    if ready.is_at_once() {
        return Ok(None);
    }
    let ours = nodes(domain, leader, since_ns)?;
    if let Some(name) = ready.nodes.iter().find(|name| !ours.iter().any(|(_, n)| n == *name)) {
        return Ok(Some(format!("node {name}")));
    }
    for name in &ready.topics {
        if published(domain, name, &ours)?.is_none() {
            return Ok(Some(format!("topic {name}")));
        }
    }
    if ready.services.is_empty() {
        return Ok(None);
    }
    let services = domain.services()?;
    let served = |name: &String| {
        services.iter().any(|s| {
            s.name.trim_start_matches('/') == name.trim_start_matches('/')
                && s.server.is_some_and(|node| ours.iter().any(|(id, _)| *id == node))
        })
    };
    Ok(ready.services.iter().find(|name| !served(name)).map(|name| format!("service {name}")))
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
    ///
    /// # Errors
    /// Those of looking that may pass; until it can be seen again, the process counts as alive.
    pub(crate) fn look(
        &mut self,
        rule: &Heartbeat,
        domain: &Domain,
        whose: (Identity, u64),
        now_ns: u64,
    ) -> Result<Option<String>> {
        let timeout_ns = rule.timeout.as_nanos() as u64;
        if now_ns < self.next_ns {
            return Ok(None);
        }
        self.next_ns = now_ns + (timeout_ns / 8).clamp(10_000_000, 500_000_000);
        if let Err(e) = self.see(rule, domain, whose, now_ns) {
            self.node_ns = now_ns;
            self.topics.iter_mut().for_each(|(_, at_ns)| *at_ns = now_ns);
            return Err(e);
        }
        let ms = rule.timeout.as_millis();
        let late = |at_ns: u64| now_ns.saturating_sub(at_ns) > timeout_ns;
        if late(self.node_ns) {
            return Ok(Some(format!("no live node for {ms} ms")));
        }
        let mut topics = rule.topics.iter().zip(&self.topics);
        let silent = topics.find(|(_, (_, at_ns))| late(*at_ns));
        Ok(silent.map(|(name, _)| format!("nothing on {name} for {ms} ms")))
    }

    /// Notes what is there now.
    fn see(
        &mut self,
        rule: &Heartbeat,
        domain: &Domain,
        (leader, since_ns): (Identity, u64),
        now_ns: u64,
    ) -> Result<()> {
        let ours = nodes(domain, leader, since_ns)?;
        if !ours.is_empty() || !rule.node {
            self.node_ns = now_ns;
        }
        for (name, (count, at_ns)) in rule.topics.iter().zip(&mut self.topics) {
            let messages = match published(domain, name, &ours) {
                Err(e) if !may_pass(&e) => None,
                seen => seen?,
            };
            if messages.is_some() && messages != *count {
                (*count, *at_ns) = (messages, now_ns);
            }
        }
        Ok(())
    }
}
