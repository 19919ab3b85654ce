//! `outlive metrics`: a domain as numbers for Prometheus.
//!
//! Names and types follow its conventions: `_total` only ever grows while the thing is there, base
//! units, one unit in a name. What is counted from outside, such as losses and deaths, is counted
//! from the first look on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use clap::Args;
use outlive::{Domain, QueueInfo};

use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::look::{Life, Look};
use crate::os;
use crate::output::print;
use crate::settings::Settings;

const EXAMPLES: &str = "\
Examples:
  outlive metrics                                 once, to standard output
  outlive metrics >/var/lib/node_exporter/outlive.prom
  outlive metrics --listen 127.0.0.1:9464         for a Prometheus that asks

Looks from outside, without subscribing: nobody notices.";

/// Longest request that is read, bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// Longest wait for a client that neither sends nor reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// Print the domain as metrics in the text format of Prometheus, or serve them over HTTP.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct MetricsArgs {
    /// Answer GET /metrics here until a signal; port 0 takes a free one and says which.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
}

pub(crate) fn run(args: &MetricsArgs, settings: &Settings) -> Outcome {
    let mut metrics = Metrics::new(settings.domain()?);
    match args.listen {
        None => print(&metrics.text()?),
        Some(address) => serve(address, &mut metrics),
    }
}

/// Looks at a domain again and again.
struct Metrics {
    domain: Domain,
    before: Option<Look>,
    /// Nodes seen dead; their numbers are never given again.
    dead: BTreeSet<u64>,
}

/// One family: name, type, help, and a line for each set of labels.
struct Family<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Family<'_> {
    fn sample(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.out.push_str(self.name);
        for (i, (key, text)) in labels.iter().enumerate() {
            let between = if i == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{between}{key}=\"{}\"", escaped(text));
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
    }
}

fn family<'a>(out: &'a mut String, name: &'static str, kind: &str, help: &str) -> Family<'a> {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    Family { out, name }
}

/// A label's value as the format wants it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Metrics {
    fn new(domain: Domain) -> Self {
        Self { domain, before: None, dead: BTreeSet::new() }
    }

    /// Looks, and says what there is.
    fn text(&mut self) -> outlive::Result<String> {
        let look = Look::at(&self.domain, self.before.as_ref())?;
        let queues = self.domain.queues()?;
        let dead = look.nodes.iter().filter(|n| n.life == Life::Dead);
        self.dead.extend(dead.map(|n| n.id));
        let mut out = String::new();
        self.nodes(&look, &mut out);
        topics(&look, &mut out);
        queues_and_locks(&look, &queues, &mut out);
        self.before = Some(look);
        Ok(out)
    }

    fn nodes(&self, look: &Look, out: &mut String) {
        let mut by_life: BTreeMap<&str, u64> =
            ["alive", "stopped", "dead"].map(|life| (life, 0)).into();
        for node in &look.nodes {
            *by_life.entry(node.life.name()).or_default() += 1;
        }
        let mut nodes = family(out, "outlive_nodes", "gauge", "Nodes of the domain by state.");
        for (life, count) in by_life {
            nodes.sample(&[("state", life)], count);
        }
        let help = "Nodes seen dead since the first look.";
        family(out, "outlive_node_deaths_total", "counter", help).sample(&[], self.dead.len());
    }
}

fn topics(look: &Look, out: &mut String) {
    type Of = fn(&crate::look::Publisher) -> u64;
    let publishers: [(&'static str, &str, &str, Of); 3] = [
        ("outlive_publisher_messages_total", "counter", "Messages published.", |p| p.messages),
        ("outlive_publisher_bytes_total", "counter", "Payload bytes published.", |p| {
            p.payload_bytes
        }),
        ("outlive_publisher_memory_bytes", "gauge", "Shared memory of a publisher.", |p| {
            p.memory_bytes
        }),
    ];
    for (name, kind, help, of) in publishers {
        let mut lines = family(out, name, kind, help);
        for topic in &look.topics {
            for p in &topic.publishers {
                let id = format!("{}.{}", p.node, p.port);
                let labels = [("topic", &*topic.name), ("publisher", &id), ("node", &p.name)];
                lines.sample(&labels, of(p));
            }
        }
    }
    let mut count = |name, help: &str, of: &dyn Fn(&crate::look::Topic, Life) -> usize| {
        let mut lines = family(out, name, "gauge", help);
        for topic in &look.topics {
            for life in [Life::Alive, Life::Stopped, Life::Dead] {
                let labels = [("topic", &*topic.name), ("state", life.name())];
                lines.sample(&labels, of(topic, life));
            }
        }
    };
    count("outlive_topic_publishers", "Publishers of a topic by state.", &|t, life| {
        t.publishers.iter().filter(|p| p.life == life).count()
    });
    count("outlive_topic_subscribers", "Subscribers of a topic by state.", &|t, life| {
        t.readers.iter().filter(|r| r.life == life).count()
    });
    type Read = fn(&crate::look::Reader) -> u64;
    let readers: [(&'static str, &str, &str, Read); 3] = [
        (
            "outlive_subscriber_lag_messages",
            "gauge",
            "Messages not read yet; too large by a quarter of the depth at most.",
            |r| r.lag,
        ),
        (
            "outlive_subscriber_lost_messages_total",
            "counter",
            "Messages overwritten unread since the first look; at least.",
            |r| r.lost,
        ),
        ("outlive_subscriber_held_samples", "gauge", "Samples held.", |r| r.held.len() as u64),
    ];
    for (name, kind, help, of) in readers {
        let mut lines = family(out, name, kind, help);
        for topic in &look.topics {
            for r in &topic.readers {
                let id = format!("{}.{}", r.node, r.port);
                let labels = [("topic", &*topic.name), ("subscriber", &id), ("node", &r.name)];
                lines.sample(&labels, of(r));
            }
        }
    }
}

fn queues_and_locks(look: &Look, queues: &[QueueInfo], out: &mut String) {
    type Of = fn(&QueueInfo) -> u64;
    let of_queues: [(&'static str, &str, &str, Of); 4] = [
        ("outlive_queue_unread_messages", "gauge", "Messages sent and not received.", |q| {
            q.lanes.iter().map(|l| l.unread).sum()
        }),
        ("outlive_queue_producers", "gauge", "Producers of a queue that live.", |q| {
            q.lanes.iter().filter(|l| l.alive && !l.closed).count() as u64
        }),
        ("outlive_queue_consumers", "gauge", "Consumers of a queue: one or none.", |q| {
            u64::from(q.consumer.is_some())
        }),
        ("outlive_queue_memory_bytes", "gauge", "Shared memory of a queue's lanes.", |q| {
            q.lanes.iter().map(|l| l.memory_bytes).sum()
        }),
    ];
    for (name, kind, help, of) in of_queues {
        let mut lines = family(out, name, kind, help);
        for queue in queues {
            lines.sample(&[("queue", &queue.name)], of(queue));
        }
    }
    let help = "Locks and their like by state: 1 for the one that it has.";
    let mut lines = family(out, "outlive_lock_state", "gauge", help);
    for lock in &look.locks {
        for state in ["free", "held", "abandoned", "unrecoverable"] {
            let labels = [("lock", &*lock.name), ("kind", &lock.kind), ("state", state)];
            lines.sample(&labels, u8::from(lock.state == state));
        }
    }
    let mut lines = family(out, "outlive_lock_waiting", "gauge", "Whether anybody waits for it.");
    for lock in &look.locks {
        let labels = [("lock", &*lock.name), ("kind", &*lock.kind)];
        lines.sample(&labels, u8::from(lock.waiters));
    }
}

/// Answers one client after the other: who asks is a Prometheus, every few seconds.
fn serve(address: SocketAddr, metrics: &mut Metrics) -> Outcome {
    os::catch_stop_signals();
    let failed = |e| Failure::io(&format!("listen at {address}"), &e);
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    note(format_args!("metrics at http://{bound}/metrics"));
    while !os::stop_asked() {
        if !os::wait_readable(&listener).map_err(failed)? {
            continue;
        }
        // A client that is gone or too slow gets nothing, the next one does.
        if let Ok((client, _)) = listener.accept() {
            let _ = answer(client, metrics);
        }
    }
    Ok(Code::Done)
}

fn answer(mut client: TcpStream, metrics: &mut Metrics) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    let until = Instant::now() + PATIENCE;
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < REQUEST_BYTES_MAX {
        if Instant::now() >= until {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        match client.read(&mut piece)? {
            0 => break,
            n => request.extend_from_slice(&piece[..n]),
        }
    }
    let line = request.split(|b| *b == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (status, body) = match (method, target.split('?').next().unwrap_or("")) {
        ("GET" | "HEAD", "/metrics") => match metrics.text() {
            Ok(text) => ("200 OK", text),
            Err(e) => ("500 Internal Server Error", format!("{e}\n")),
        },
        ("GET" | "HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".into()),
        _ => ("405 Method Not Allowed", "only GET\n".into()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes())?;
    if method != "HEAD" {
        client.write_all(body.as_bytes())?;
    }
    client.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut out = String::new();
        family(&mut out, "m", "gauge", "Help.").sample(&[("a", "x\"\\\n"), ("b", "")], 1.5);
        let text = "# HELP m Help.\n# TYPE m gauge\nm{a=\"x\\\"\\\\\\n\",b=\"\"} 1.5\n";
        assert_eq!(out, text);
    }
}
