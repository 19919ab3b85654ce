//! Whose the nodes of the domain are, also those that have left: what a bridge has published came
//! from elsewhere, and is not sent again.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlive::{Domain, NodeId, NodeInfo};

/// Names of the bridges' own nodes begin so: what they publish is never sent.
pub(crate) const NODE_NAME: &str = "outlive-bridge";

/// Nodes known at most, unless more are there.
const KNOWN_MAX: usize = 65_536;

/// Whose a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A bridge's, this one's or another's: what it publishes came from elsewhere.
    Bridge,
    /// A program's of this domain. So is one that was never seen and came since this bridge began:
    /// it was there for an instant.
    Local,
    /// It has gone with its file, and was never seen: it came before this bridge, and may have
    /// stood for a remote one.
    Gone,
}

/// Who speaks in the domain.
pub(crate) struct Speakers {
    domain: Domain,
    /// This bridge's own node: who came before it may have left unseen.
    since: NodeId,
    known: Mutex<Known>,
}

impl Speakers {
    pub(crate) fn new(domain: Domain, since: NodeId) -> Self {
        Self { domain, since, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look at the domain has found these nodes.
    pub(crate) fn found(&self, nodes: &[NodeInfo]) {
        let speaker = |n: &NodeInfo| match is_bridge_name(&n.name) {
            true => Speaker::Bridge,
            false => Speaker::Local,
        };
        self.known().found(nodes.iter().map(|n| (n.id.get(), speaker(n))));
    }

    /// A node that this bridge has opened stands for a remote one.
    pub(crate) fn stands_in(&self, node: NodeId) {
        self.known().0.insert(node.get(), Speaker::Bridge);
    }

    /// Who speaks there, also after the node has left.
    ///
    /// # Errors
    /// Those of a look at the domain: whose that node is cannot be told now.
    pub(crate) fn of(&self, node: NodeId) -> outlive::Result<Speaker> {
        if let Some(speaker) = self.known().0.get(&node.get()) {
            return Ok(*speaker);
        }
        self.found(&self.domain.nodes()?);
        // Ordinals are handed out in turn.
        let since = node > self.since;
        let unseen = if since { Speaker::Local } else { Speaker::Gone };
        Ok(*self.known().0.entry(node.get()).or_insert(unseen))
    }

    /// Whether that is known to be a bridge, this one or another.
    pub(crate) fn is_bridge(&self, node: NodeId) -> bool {
        self.of(node).is_ok_and(|speaker| speaker == Speaker::Bridge)
    }
}

/// Who speaks, by ordinal, also of those that are gone: a message may be read long after its node
/// has left.
#[derive(Debug, Default)]
struct Known(BTreeMap<u64, Speaker>);

impl Known {
    /// These are there; those that have been gone for longest are forgotten.
    fn found(&mut self, nodes: impl Iterator<Item = (u64, Speaker)>) {
        let mut there = HashSet::new();
        for (id, speaker) in nodes {
            there.insert(id);
            self.0.insert(id, speaker);
        }
        // Ordinals are handed out in turn.
        if self.0.len() > KNOWN_MAX
            && let Some(middle) = self.0.keys().nth(KNOWN_MAX / 2).copied()
        {
            self.0.retain(|id, _| *id >= middle || there.contains(id));
        }
    }
}

/// Whether a node of this name is a bridge's.
pub(crate) fn is_bridge_name(name: &str) -> bool {
    name.strip_prefix(NODE_NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    #[test]
    fn of_many_nodes_those_that_are_there_and_the_newest_are_known() {
        let mut known = Known::default();
        let most = 4 * KNOWN_MAX as u64;
        let of = |id| if id % 2 == 0 { Speaker::Bridge } else { Speaker::Local };
        for id in 1..=most {
            known.found([(0, Speaker::Bridge), (id, of(id))].into_iter());
            assert!(known.0.len() <= KNOWN_MAX + 1);
        }
        let newest = |id| known.0.get(&id) == Some(&of(id));
        assert!((most - KNOWN_MAX as u64 / 4..=most).all(newest));
        assert_eq!((known.0.get(&0), known.0.get(&1)), (Some(&Speaker::Bridge), None));
    }

    #[test]
    fn whose_a_node_is_stays_known_and_is_not_guessed_while_nobody_can_be_asked() {
        let alone = Alone::new("speaker");
        let before = alone.node("outlive-bridge.h1.before");
        let before_id = before.id();
        drop(before);
        let shared = alone.bridge();
        let speaker = |id| shared.speakers.of(id).ok();
        let [stand_in, member] = ["outlive-bridge.h1.a", "member"].map(|name| alone.node(name));
        let ids = [stand_in.id(), member.id()];
        assert_eq!(ids.map(speaker), [Some(Speaker::Bridge), Some(Speaker::Local)]);
        let unseen = alone.node("outlive-bridge.h1.b");
        let late = alone.node("late");
        let (unseen_id, late_id) = (unseen.id(), late.id());
        alone.without(&shared.domain.dir().join("nodes"), || {
            assert_eq!(ids.map(speaker), [Some(Speaker::Bridge), Some(Speaker::Local)]);
            assert_eq!([unseen_id, late_id].map(speaker), [None, None]);
        });
        drop((stand_in, member, unseen));
        assert_eq!(ids.map(speaker), [Some(Speaker::Bridge), Some(Speaker::Local)]);
        // Who was never seen is a program that came for an instant, unless it is from before.
        assert_eq!([unseen_id, late_id].map(speaker), [Some(Speaker::Local); 2]);
        assert_eq!(speaker(before_id), Some(Speaker::Gone));
    }
}
