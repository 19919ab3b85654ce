//! `outlive topic list`: topics, their members and counters, without joining.

use std::collections::HashSet;

use clap::Args;
use outlive::topic::{self, PublisherInfo};
use outlive::{Encoding, NodeId};
use serde::Serialize;

use crate::absent::note_if_nobody;
use crate::exit::Outcome;
use crate::options::DomainOptions;
use crate::output::{bytes, print, print_json, table};

/// List all topics: type, depth, members and counters.
///
/// Publishers are counted as alive, closed (left cleanly) and dead. What the latter two sent stays
/// readable while the topic has live members.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print JSON, with every publisher.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Topic {
    name: String,
    r#type: String,
    encoding: &'static str,
    element_bytes: usize,
    /// If not, `element_bytes` is that of a byte.
    #[serde(skip)]
    is_sized: bool,
    depth: u64,
    publishers: Vec<Publisher>,
    messages: u64,
    payload_bytes: u64,
    memory_bytes: u64,
    subscribers: Vec<Subscriber>,
}

#[derive(Serialize)]
pub(super) struct Publisher {
    pub(super) node: u64,
    pub(super) port: u64,
    pub(super) state: &'static str,
    pub(super) messages: u64,
    pub(super) payload_bytes: u64,
    pub(super) memory_bytes: u64,
}

#[derive(Serialize)]
struct Subscriber {
    node: u64,
    alive: bool,
}

impl Topic {
    fn of(info: topic::Info, alive: &HashSet<NodeId>) -> Self {
        let sum = |of: fn(&PublisherInfo) -> u64| info.publishers.iter().map(of).sum();
        Self {
            messages: sum(|p| p.messages),
            payload_bytes: sum(|p| p.payload_bytes),
            memory_bytes: sum(|p| p.memory_bytes),
            publishers: info.publishers.iter().map(Publisher::of).collect(),
            subscribers: info
                .subscribers
                .iter()
                .map(|node| Subscriber { node: node.get(), alive: alive.contains(node) })
                .collect(),
            name: info.name,
            r#type: type_text(&info.type_name, info.encoding),
            encoding: info.encoding.as_str(),
            element_bytes: info.element_bytes,
            is_sized: is_sized(info.encoding),
            depth: info.depth,
        }
    }

    fn cells(&self) -> Vec<String> {
        let count = |state| self.publishers.iter().filter(|p| p.state == state).count();
        vec![
            self.name.clone(),
            self.r#type.clone(),
            if self.is_sized { bytes(self.element_bytes as u64) } else { "-".into() },
            self.encoding.into(),
            self.depth.to_string(),
            format!("{}/{}/{}", count("alive"), count("closed"), count("dead")),
            self.messages.to_string(),
            bytes(self.payload_bytes),
            bytes(self.memory_bytes),
            self.subscribers.iter().filter(|s| s.alive).count().to_string(),
        ]
    }
}

impl Publisher {
    pub(super) fn of(info: &PublisherInfo) -> Self {
        Self {
            node: info.id.node.get(),
            port: info.id.port,
            state: state(info),
            messages: info.messages,
            payload_bytes: info.payload_bytes,
            memory_bytes: info.memory_bytes,
        }
    }
}

/// `alive`, `closed` (left in order) or `dead`.
pub(super) fn state(info: &PublisherInfo) -> &'static str {
    match (info.closed, info.alive) {
        (true, _) => "closed",
        (false, true) => "alive",
        (false, false) => "dead",
    }
}

/// Whether values or elements have a size of their own.
pub(super) fn is_sized(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::Fixed | Encoding::Slice | Encoding::Headed)
}

/// The type as one writes it in Rust; an array bears the name of its elements.
pub(crate) fn type_text(name: &str, encoding: Encoding) -> String {
    match encoding {
        Encoding::Slice | Encoding::Bytes => format!("[{name}]"),
        _ => name.into(),
    }
}

const HEAD: [&str; 10] = [
    "TOPIC",
    "TYPE",
    "SIZE",
    "ENCODING",
    "DEPTH",
    "PUBS a/c/d",
    "MESSAGES",
    "BYTES",
    "MEMORY",
    "SUBS",
];

pub(crate) fn run(args: &ListArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    note_if_nobody(&domain);
    let nodes = domain.nodes()?;
    let alive = nodes.iter().filter(|n| n.alive).map(|n| n.id).collect();
    let topics = domain.topics()?.into_iter().map(|t| Topic::of(t, &alive));
    if args.json {
        return print_json(&topics.collect::<Vec<_>>());
    }
    let mut rows = vec![HEAD.map(String::from).to_vec()];
    rows.extend(topics.map(|t| t.cells()));
    print(&table(&rows, &[2, 4, 5, 6, 7, 8, 9]))
}
