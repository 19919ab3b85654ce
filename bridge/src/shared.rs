//! What all threads of the bridge know.

use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use outlive::{Domain, Node, NodeId};
use zenoh::Session;

use crate::config::Config;
use crate::stats::Stats;
use crate::wire::Keys;

/// Names of the bridges' own nodes begin so: what they publish is never sent.
pub(crate) const NODE_NAME: &str = "outlive-bridge";

/// Nodes known at most before the list is begun anew.
const KNOWN_MAX: usize = 65_536;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) node: Node,
    pub(crate) domain: Domain,
    pub(crate) session: Session,
    /// The session's id, ours in every key.
    pub(crate) own: String,
    pub(crate) keys: Keys,
    pub(crate) stats: Stats,
    /// Answers to those who ask for a note, by key.
    pub(crate) notes: Mutex<HashMap<String, String>>,
    /// Local nodes that stand for remote ones, by bridge and ordinal there.
    pub(crate) proxies: Mutex<HashMap<(String, u64), Node>>,
    known: Mutex<HashMap<u64, bool>>,
}

impl Shared {
    pub(crate) fn new(
        (config, node, domain): (Config, Node, Domain),
        session: Session,
        own: String,
    ) -> Self {
        let keys = Keys::new(&config.namespace);
        Self {
            config,
            node,
            domain,
            session,
            own,
            keys,
            stats: Stats::default(),
            notes: Mutex::default(),
            proxies: Mutex::default(),
            known: Mutex::default(),
        }
    }

    /// Whether a bridge speaks there, this one or another: what it publishes came from elsewhere.
    /// A node that is gone with its file counts as none.
    pub(crate) fn is_bridge(&self, node: NodeId) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(is) = known.get(&node.get()) {
            return *is;
        }
        if known.len() > KNOWN_MAX {
            known.clear();
        }
        for other in self.domain.nodes().unwrap_or_default() {
            known.insert(other.id.get(), is_bridge_name(&other.name));
        }
        *known.entry(node.get()).or_insert(false)
    }

    /// The node that publishes what `id` of `bridge` has published there.
    pub(crate) fn proxy(&self, bridge: &str, id: u64) -> Option<Node> {
        let proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        proxies.get(&(bridge.to_owned(), id)).cloned()
    }

    pub(crate) fn set_note(&self, key: String, note: Option<String>) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match note {
            Some(note) => drop(notes.insert(key, note)),
            None => drop(notes.remove(&key)),
        }
    }

    pub(crate) fn note(&self, key: &str) -> Option<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

/// Whether a node of this name is a bridge's.
pub(crate) fn is_bridge_name(name: &str) -> bool {
    name.strip_prefix(NODE_NAME).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A line for whoever runs the bridge.
pub(crate) fn say(line: impl fmt::Display) {
    // In one piece: others may write there, too.
    let line = format!("outlive-bridge: {line}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
