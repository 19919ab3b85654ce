//! Taking a look, and what moved since the one before.

use std::collections::HashMap;
use std::fs;

use outlive::lock::LockState;
use outlive::msg::Image;
use outlive::{Domain, NodeInfo, PayloadType};

use super::{Life, Lock, Look, Node, Publisher, Reader, Source, Topic};
use crate::topic::type_text;

impl Look {
    /// Looks at `domain`; rates and losses are since `before`.
    pub(crate) fn at(domain: &Domain, before: Option<&Self>) -> outlive::Result<Self> {
        let at_ns = outlive::now_ns();
        let mut nodes = Self::nodes(domain)?;
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
                image: is_image(&info.payload_type()),
                encoding: info.encoding.as_str(),
                name: info.name,
                type_name: type_text(&info.type_name, info.encoding),
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
        Ok(Self { at_ns, nodes, topics, locks, ..Self::default() })
    }

    /// Only the processes, and how they are.
    pub(crate) fn nodes(domain: &Domain) -> outlive::Result<Vec<Node>> {
        let life = |alive, pid| if alive { life_of(pid) } else { Life::Dead };
        let node = |n: NodeInfo| Node {
            id: n.id.get(),
            name: n.name,
            pid: n.pid,
            life: life(n.alive, n.pid),
            started_ns: n.started_ns,
            ..Node::default()
        };
        Ok(domain.nodes()?.into_iter().map(node).collect())
    }

    /// The same with queues and services, whose unread messages are counted one by one.
    pub(crate) fn whole(domain: &Domain, before: Option<&Self>) -> outlive::Result<Self> {
        let (queues, services) = (domain.queues()?, domain.services()?);
        Ok(Self { queues, services, ..Self::at(domain, before)? })
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

/// Whether payloads of this type are [`Image`].
pub(crate) fn is_image(of: &PayloadType) -> bool {
    let image = PayloadType::of::<Image>();
    (of.encoding(), of.name(), of.size()) == (image.encoding(), image.name(), image.size())
}

/// Whether a live process runs; by its state in /proc, if it is one of this PID namespace.
fn life_of(pid: u32) -> Life {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
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
