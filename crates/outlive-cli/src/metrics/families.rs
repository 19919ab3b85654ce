//! A domain as numbers.
//!
//! Names and types follow the conventions of Prometheus: `_total` only ever grows while the thing
//! is there, base units, one unit in a name. What is counted from outside, such as losses and
//! deaths, is counted from the first look on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use outlive::Domain;
use outlive::queue;

use crate::look::{Life, Look, Publisher, Reader, Topic};

/// Looks at a domain again and again.
pub(crate) struct Metrics {
    domain: Domain,
    before: Option<Look>,
    /// Nodes seen dead; their numbers are never given again.
    dead: BTreeSet<u64>,
}

/// What a number means over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only ever grows while the thing is there.
    Counter,
    /// The same, counted from the first look on.
    Seen,
    Gauge,
}

/// Numbers of one name.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    pub(crate) samples: Vec<Sample>,
}

/// A number, and whose it is.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: u64,
}

impl Family {
    fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self { name, kind, help, samples: Vec::new() }
    }

    fn sample(&mut self, labels: &[(&'static str, &str)], value: impl TryInto<u64>) {
        let labels = labels.iter().map(|(key, text)| (*key, (*text).to_owned())).collect();
        self.samples.push(Sample { labels, value: value.try_into().unwrap_or(u64::MAX) });
    }

    /// As Prometheus reads it.
    fn write(&self, out: &mut String) {
        let Self { name, help, samples, .. } = self;
        let kind = if self.kind == Kind::Gauge { "gauge" } else { "counter" };
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for Sample { labels, value } in samples {
            out.push_str(name);
            for (i, (key, text)) in labels.iter().enumerate() {
                let between = if i == 0 { '{' } else { ',' };
                let _ = write!(out, "{between}{key}=\"{}\"", escaped(text));
            }
            let end = if labels.is_empty() { "" } else { "}" };
            let _ = writeln!(out, "{end} {value}");
        }
    }
}

/// A label's value as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Metrics {
    pub(crate) fn new(domain: Domain) -> Self {
        Self { domain, before: None, dead: BTreeSet::new() }
    }

    /// Looks, and says what there is.
    pub(crate) fn families(&mut self) -> outlive::Result<Vec<Family>> {
        let look = Look::whole(&self.domain, self.before.as_ref())?;
        let dead = look.nodes.iter().filter(|n| n.life == Life::Dead);
        self.dead.extend(dead.map(|n| n.id));
        let mut out = self.nodes(&look);
        topics(&look, &mut out);
        queues(&look, &mut out);
        locks(&look, &mut out);
        self.before = Some(look);
        Ok(out)
    }

    /// The same as Prometheus reads it.
    pub(crate) fn text(&mut self) -> outlive::Result<String> {
        let mut out = String::new();
        self.families()?.iter().for_each(|family| family.write(&mut out));
        Ok(out)
    }

    fn nodes(&self, look: &Look) -> Vec<Family> {
        let mut by_life: BTreeMap<&str, u64> =
            ["alive", "stopped", "dead"].map(|life| (life, 0)).into();
        for node in &look.nodes {
            *by_life.entry(node.life.name()).or_default() += 1;
        }
        let mut nodes = Family::new("outlive_nodes", Kind::Gauge, "Nodes of the domain by state.");
        for (life, count) in by_life {
            nodes.sample(&[("state", life)], count);
        }
        let help = "Nodes seen dead since the first look.";
        let mut deaths = Family::new("outlive_node_deaths_total", Kind::Seen, help);
        deaths.sample(&[], self.dead.len());
        vec![nodes, deaths]
    }
}

type Column<T> = (&'static str, Kind, &'static str, fn(&T) -> u64);

fn topics(look: &Look, out: &mut Vec<Family>) {
    let publishers: [Column<Publisher>; 3] = [
        ("outlive_publisher_messages_total", Kind::Counter, "Messages published.", |p| p.messages),
        ("outlive_publisher_bytes_total", Kind::Counter, "Payload bytes published.", |p| {
            p.payload_bytes
        }),
        ("outlive_publisher_memory_bytes", Kind::Gauge, "Shared memory of a publisher.", |p| {
            p.memory_bytes
        }),
    ];
    for (name, kind, help, of) in publishers {
        let mut lines = Family::new(name, kind, help);
        for topic in &look.topics {
            for p in &topic.publishers {
                let id = format!("{}.{}", p.node, p.port);
                let labels = [("topic", &*topic.name), ("publisher", &id), ("node", &p.name)];
                lines.sample(&labels, of(p));
            }
        }
        out.push(lines);
    }
    let mut count = |name, help, of: &dyn Fn(&Topic, Life) -> usize| {
        let mut lines = Family::new(name, Kind::Gauge, help);
        for topic in &look.topics {
            for life in [Life::Alive, Life::Stopped, Life::Dead] {
                let labels = [("topic", &*topic.name), ("state", life.name())];
                lines.sample(&labels, of(topic, life));
            }
        }
        out.push(lines);
    };
    count("outlive_topic_publishers", "Publishers of a topic by state.", &|t, life| {
        t.publishers.iter().filter(|p| p.life == life && !p.closed).count()
    });
    count("outlive_topic_subscribers", "Subscribers of a topic by state.", &|t, life| {
        t.readers.iter().filter(|r| r.life == life).count()
    });
    let readers: [Column<Reader>; 3] = [
        (
            "outlive_subscriber_lag_messages",
            Kind::Gauge,
            "Messages not read yet; too large by a quarter of the depth at most.",
            |r| r.lag,
        ),
        (
            "outlive_subscriber_lost_messages_total",
            Kind::Seen,
            "Messages overwritten unread since the first look; at least.",
            |r| r.lost,
        ),
        ("outlive_subscriber_held_samples", Kind::Gauge, "Samples held.", |r| r.held.len() as u64),
    ];
    for (name, kind, help, of) in readers {
        let mut lines = Family::new(name, kind, help);
        for topic in &look.topics {
            for r in &topic.readers {
                let id = format!("{}.{}", r.node, r.port);
                let labels = [("topic", &*topic.name), ("subscriber", &id), ("node", &r.name)];
                lines.sample(&labels, of(r));
            }
        }
        out.push(lines);
    }
}

fn queues(look: &Look, out: &mut Vec<Family>) {
    let columns: [Column<queue::Info>; 4] = [
        ("outlive_queue_unread_messages", Kind::Gauge, "Messages sent and not received.", |q| {
            q.lanes.iter().map(|l| l.unread).sum()
        }),
        ("outlive_queue_producers", Kind::Gauge, "Producers of a queue that live.", |q| {
            q.lanes.iter().filter(|l| l.alive && !l.closed).count() as u64
        }),
        ("outlive_queue_consumers", Kind::Gauge, "Consumers of a queue: one or none.", |q| {
            u64::from(q.consumer.is_some())
        }),
        ("outlive_queue_memory_bytes", Kind::Gauge, "Shared memory of a queue's lanes.", |q| {
            q.lanes.iter().map(|l| l.memory_bytes).sum()
        }),
    ];
    for (name, kind, help, of) in columns {
        let mut lines = Family::new(name, kind, help);
        for queue in &look.queues {
            lines.sample(&[("queue", &queue.name)], of(queue));
        }
        out.push(lines);
    }
}

fn locks(look: &Look, out: &mut Vec<Family>) {
    let help = "Locks and their like by state: 1 for the one that it has.";
    let mut states = Family::new("outlive_lock_state", Kind::Gauge, help);
    let help = "Whether anybody waits for it.";
    let mut waiting = Family::new("outlive_lock_waiting", Kind::Gauge, help);
    for lock in &look.locks {
        for state in ["free", "held", "abandoned", "unrecoverable"] {
            let labels = [("lock", &*lock.name), ("kind", &lock.kind), ("state", state)];
            states.sample(&labels, u8::from(lock.state == state));
        }
        let labels = [("lock", &*lock.name), ("kind", &*lock.kind)];
        waiting.sample(&labels, u8::from(lock.waiters));
    }
    out.extend([states, waiting]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut family = Family::new("m", Kind::Gauge, "Help.");
        family.sample(&[("a", "x\"\\\n"), ("b", "")], 7u64);
        let mut out = String::new();
        family.write(&mut out);
        let text = "# HELP m Help.\n# TYPE m gauge\nm{a=\"x\\\"\\\\\\n\",b=\"\"} 7\n";
        assert_eq!(out, text);
    }
}
