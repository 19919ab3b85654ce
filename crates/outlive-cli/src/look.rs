//! A domain at one moment, and what moved between two: read from outside, read-only, so that
//! nobody whom it looks at waits or is woken.

use std::collections::HashMap;
use std::fs;

use outlive::Domain;
use outlive::lock::LockState;

/// Everything that is seen at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// ns of CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) locks: Vec<Lock>,
}

/// How a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Life {
    Dead,
    /// By SIGSTOP or a debugger.
    Stopped,
    #[default]
    Alive,
}

impl Life {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Stopped => "stopped",
            Self::Alive => "alive",
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) life: Life,
    pub(crate) started_ns: u64,
    /// Topics that it publishes, and reads.
    pub(crate) publishes: Vec<String>,
    pub(crate) reads: Vec<String>,
    /// Samples that it holds.
    pub(crate) holds: usize,
    /// Locks that it holds.
    pub(crate) locks: Vec<String>,
    /// Shared memory of its publishers, bytes.
    pub(crate) memory_bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) depth: u64,
    pub(crate) publishers: Vec<Publisher>,
    pub(crate) readers: Vec<Reader>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Publisher {
    pub(crate) node: u64,
    pub(crate) port: u64,
    pub(crate) name: String,
    pub(crate) life: Life,
    pub(crate) closed: bool,
    pub(crate) messages: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) newest_ns: Option<u64>,
    pub(crate) memory_bytes: u64,
    /// Since the look before.
    pub(crate) hz: f64,
    pub(crate) bytes_per_s: f64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    pub(crate) node: u64,
    pub(crate) port: u64,
    pub(crate) name: String,
    pub(crate) life: Life,
    pub(crate) reliable: bool,
    pub(crate) waiting: bool,
    pub(crate) borrows: u64,
    /// Messages that it has not read.
    pub(crate) lag: u64,
    pub(crate) sources: Vec<Source>,
    /// The samples that it holds, as text.
    pub(crate) held: Vec<String>,
    /// Messages overwritten before it read them, since the first look; at least.
    pub(crate) lost: u64,
}

/// How far a reader is with a publisher.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// Node and port.
    publisher: (u64, u64),
    /// What it reads next.
    next: u64,
    /// Up to here every message is read, or counted as lost.
    counted: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: &'static str,
    pub(crate) holder: Option<(u64, String, Life)>,
    pub(crate) waiters: bool,
    pub(crate) users: usize,
}

impl Topic {
    fn sum<T: std::iter::Sum<T>>(&self, of: impl Fn(&Publisher) -> T) -> T {
        self.publishers.iter().map(of).sum()
    }

    pub(crate) fn hz(&self) -> f64 {
        self.sum(|p| p.hz)
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.sum(|p| p.bytes_per_s)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.sum(|p| p.messages)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.sum(|p| p.memory_bytes)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.readers.iter().map(|r| r.lost).sum()
    }

    pub(crate) fn lag(&self) -> u64 {
        self.readers.iter().map(|r| r.lag).max().unwrap_or(0)
    }

    /// The reader that is furthest behind, if that is far.
    pub(crate) fn slow(&self) -> Option<&Reader> {
        let far = |r: &&Reader| r.life != Life::Dead && r.lag * 2 > self.depth;
        self.readers.iter().filter(far).max_by_key(|r| r.lag)
    }
}

impl Look {
    /// Looks at `domain`; rates and losses are since `before`.
    pub(crate) fn at(domain: &Domain, before: Option<&Self>) -> outlive::Result<Self> {
        let at_ns = outlive::now_ns();
        let mut nodes: Vec<Node> = domain
            .nodes()?
            .into_iter()
            .map(|n| Node {
                id: n.id.get(),
                name: n.name,
                pid: n.pid,
                life: if n.alive { life_of(n.pid) } else { Life::Dead },
                started_ns: n.started_ns,
                ..Node::default()
            })
            .collect();
        let names: HashMap<u64, (String, Life)> =
            nodes.iter().map(|n| (n.id, (n.name.clone(), n.life))).collect();
        let of = |id: u64| names.get(&id).cloned().unwrap_or(("?".into(), Life::Dead));
        let mut topics = Vec::new();
        for info in domain.topics()? {
            let mut publishers: Vec<Publisher> = info
                .publishers
                .iter()
                .map(|p| {
                    let (name, life) = of(p.id.node.get());
                    Publisher {
                        node: p.id.node.get(),
                        port: p.id.port,
                        name,
                        life: if p.alive { life } else { Life::Dead },
                        closed: p.closed,
                        messages: p.messages,
                        payload_bytes: p.payload_bytes,
                        newest_ns: p.newest_ns,
                        memory_bytes: p.memory_bytes,
                        ..Publisher::default()
                    }
                })
                .collect();
            let old = before.and_then(|b| b.topics.iter().find(|t| t.name == info.name));
            for publisher in &mut publishers {
                let was = old.and_then(|old| {
                    old.publishers
                        .iter()
                        .find(|p| (p.node, p.port) == (publisher.node, publisher.port))
                });
                if let (Some(was), Some(before)) = (was, before) {
                    publisher.rate(was, at_ns.saturating_sub(before.at_ns));
                }
            }
            let mut readers = Vec::new();
            // Gone between two looks: it has no readers any more.
            for s in domain.subscribers(&info.name)?.unwrap_or_default() {
                let (name, life) = of(s.node.get());
                let sources: Vec<_> = s
                    .sources
                    .iter()
                    .map(|source| {
                        let publisher = (source.publisher.node.get(), source.publisher.port);
                        Source { publisher, next: source.next, counted: 0 }
                    })
                    .collect();
                let held = s.held.iter().map(|held| {
                    let seq = held.seq.map_or("overwritten".into(), |seq| format!("#{seq}"));
                    format!("{seq} of {}", of(held.publisher.node.get()).0)
                });
                let mut reader = Reader {
                    node: s.node.get(),
                    port: s.port,
                    name,
                    life: if s.alive { life } else { Life::Dead },
                    reliable: s.reliable,
                    waiting: s.waiting,
                    borrows: s.borrows,
                    held: held.collect(),
                    sources,
                    ..Reader::default()
                };
                let was = old.and_then(|old| {
                    old.readers.iter().find(|r| (r.node, r.port) == (reader.node, reader.port))
                });
                reader.count(&publishers, info.depth, was);
                readers.push(reader);
            }
            topics.push(Topic {
                name: info.name,
                type_name: info.type_name,
                depth: info.depth,
                publishers,
                readers,
            });
        }
        let locks: Vec<Lock> = domain
            .locks()?
            .into_iter()
            .map(|lock| {
                let (state, holder) = match lock.state {
                    LockState::Held { node, alive, .. } => {
                        let (name, life) = of(node.get());
                        let life = if alive { life } else { Life::Dead };
                        ("held", Some((node.get(), name, life)))
                    }
                    LockState::Abandoned => ("abandoned", None),
                    LockState::Unrecoverable => ("unrecoverable", None),
                    _ => ("free", None),
                };
                Lock {
                    name: lock.name,
                    kind: format!("{:?}", lock.kind).to_lowercase(),
                    state,
                    holder,
                    waiters: lock.waiters,
                    users: lock.users,
                }
            })
            .collect();
        for node in &mut nodes {
            for topic in &topics {
                let own = topic.publishers.iter().filter(|p| p.node == node.id);
                let memory: u64 = own.map(|p| p.memory_bytes).sum();
                if topic.publishers.iter().any(|p| p.node == node.id) {
                    node.publishes.push(topic.name.clone());
                    node.memory_bytes += memory;
                }
                for reader in topic.readers.iter().filter(|r| r.node == node.id) {
                    node.reads.push(topic.name.clone());
                    node.holds += reader.held.len();
                }
            }
            let holds = |l: &&Lock| l.holder.as_ref().is_some_and(|(id, ..)| *id == node.id);
            node.locks = locks.iter().filter(holds).map(|l| l.name.clone()).collect();
        }
        Ok(Self { at_ns, nodes, topics, locks })
    }
}

impl Publisher {
    /// By the publisher's own time stamps where it has some: a look that comes late changes
    /// nothing then.
    fn rate(&mut self, was: &Self, passed_ns: u64) {
        let messages = self.messages.saturating_sub(was.messages);
        let stamps = self.newest_ns.zip(was.newest_ns).map(|(now, was)| now.saturating_sub(was));
        let ns = stamps.filter(|ns| *ns > 0).unwrap_or(passed_ns);
        if messages > 0 && ns > 0 {
            let bytes = self.payload_bytes.saturating_sub(was.payload_bytes);
            self.hz = messages as f64 * 1e9 / ns as f64;
            self.bytes_per_s = bytes as f64 * 1e9 / ns as f64;
        }
    }
}

impl Reader {
    /// How far it is behind, and what was overwritten before it read it. What it says about its
    /// place may be old by a quarter of the depth, so that much is never counted.
    fn count(&mut self, publishers: &[Publisher], depth: u64, was: Option<&Self>) {
        self.lost = was.map_or(0, |was| was.lost);
        for source in &mut self.sources {
            let of = |p: &&Publisher| (p.node, p.port) == source.publisher;
            let Some(publisher) = publishers.iter().find(of) else { continue };
            self.lag += publisher.messages.saturating_sub(source.next);
            let before =
                was.and_then(|was| was.sources.iter().find(|s| s.publisher == source.publisher));
            source.counted = before.map_or(0, |before| before.counted).max(source.next);
            let gone = publisher.messages.saturating_sub(depth + depth / 4);
            if gone > source.counted && !self.reliable {
                self.lost += gone - source.counted;
                source.counted = gone;
            }
        }
    }
}

/// Whether a live process runs; by its state in /proc, if it is one of this PID namespace.
fn life_of(pid: u32) -> Life {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    match stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()) {
        Some("T" | "t") => Life::Stopped,
        _ => Life::Alive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overwritten_unread_is_counted_once() {
        let at = |messages: u64, next: u64, was: Option<&Reader>| {
            let publishers = [Publisher { node: 1, port: 1, messages, ..Publisher::default() }];
            let sources = vec![Source { publisher: (1, 1), next, counted: 0 }];
            let mut reader = Reader { sources, ..Reader::default() };
            reader.count(&publishers, 8, was);
            reader
        };
        let first = at(5, 0, None);
        assert_eq!((first.lag, first.lost), (5, 0));
        // Ten are readable at most, by the reader's own old word.
        let second = at(30, 0, Some(&first));
        assert_eq!((second.lag, second.lost), (30, 20));
        let third = at(30, 0, Some(&second));
        assert_eq!(third.lost, 20);
        let fourth = at(100, 95, Some(&third));
        assert_eq!((fourth.lag, fourth.lost), (5, 20));
    }

    #[test]
    fn rates_are_by_the_publishers_stamps() {
        let was =
            Publisher { messages: 10, newest_ns: Some(1_000_000_000), ..Publisher::default() };
        let mut now = Publisher { messages: 40, newest_ns: Some(2_000_000_000), ..was.clone() };
        now.rate(&was, 1_500_000_000);
        assert!((now.hz - 30.0).abs() < 1e-9);
        let mut silent = Publisher { hz: 0.0, ..was.clone() };
        silent.rate(&was, 1_500_000_000);
        assert_eq!(silent.hz, 0.0);
    }
}
