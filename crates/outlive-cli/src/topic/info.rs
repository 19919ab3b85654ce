//! `outlive topic info`: everything that can be seen of one topic from outside.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use clap::Args;
use outlive::NodeId;
use outlive::describe::FieldType;
use outlive::topic::{self, PublisherId, SourceInfo, SubscriberInfo};
use outlive_record::decode::schema_text;
use serde::Serialize;

use super::list::{Publisher, is_sized, type_text};
use super::named::missing;
use crate::complete;
use crate::exit::{CODES_HELP, Outcome, one_line, plain};
use crate::options::DomainOptions;
use crate::output::{Paint, bytes, print, print_json, table};

const EXAMPLES: &str = "\
Examples:
  outlive topic info /camera/front
  outlive topic info /imu --json | jq '.subscribers[] | select(.lag > 100)'

A subscriber's lag is the number of messages it has yet to read. It reports its place when it has
nothing to read and every few messages, so the lag may be too high by a quarter of the depth.";

/// Show one topic: type and fields, publishers, subscribers, who holds which sample.
///
/// Looks from outside: joins nothing, delays nobody. How long a sample has been held is not
/// recorded.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct InfoArgs {
    /// Topic, like /camera/front.
    #[arg(add = complete::topics())]
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info {
    name: String,
    r#type: String,
    encoding: &'static str,
    element_bytes: usize,
    #[serde(skip)]
    is_sized: bool,
    depth: u64,
    attributes: BTreeMap<String, String>,
    described: bool,
    fields: Vec<FieldRow>,
    /// Of a third-party encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    memory_bytes: u64,
    publishers: Vec<PublisherRow>,
    subscribers: Vec<SubscriberRow>,
}

/// A field of a described type.
#[derive(Serialize)]
pub(crate) struct FieldRow {
    #[serde(skip)]
    level: usize,
    #[serde(skip)]
    name: String,
    pub(crate) path: String,
    pub(crate) r#type: String,
    pub(crate) offset: usize,
}

#[derive(Serialize)]
struct PublisherRow {
    name: Option<String>,
    #[serde(flatten)]
    counts: Publisher,
}

#[derive(Serialize)]
struct SubscriberRow {
    node: u64,
    port: u64,
    name: Option<String>,
    alive: bool,
    reliable: bool,
    waiting: bool,
    borrows: u64,
    lag: u64,
    reads: Vec<ReadRow>,
    holds: Vec<HeldRow>,
}

#[derive(Serialize)]
struct ReadRow {
    node: u64,
    port: u64,
    next: u64,
    lag: u64,
}

#[derive(Serialize)]
struct HeldRow {
    node: u64,
    port: u64,
    seq: Option<u64>,
    segment: u16,
    chunk: u32,
}

pub(crate) fn run(args: &InfoArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    // Subscribers first: of what they have read the counters then know.
    let subscribers = domain.subscribers(&args.name)?.unwrap_or_default();
    let topic = domain.find_topic(&args.name)?.ok_or_else(|| missing(&domain, &args.name))?;
    let names = domain.nodes()?.into_iter().map(|n| (n.id, n.name)).collect();
    let info = Info::of(topic, subscribers, &names);
    if args.json { print_json(&info) } else { print(&info.text(Paint::standard())) }
}

impl Info {
    fn of(
        topic: topic::Info,
        subscribers: Vec<SubscriberInfo>,
        names: &HashMap<NodeId, String>,
    ) -> Self {
        let description = topic.description();
        let schema = topic.encoding.is_foreign().then(|| schema_text(&topic.payload_type()));
        let mut fields = Vec::new();
        if let Some(description) = &description {
            list_fields(description.root(), 0, "", 0, &mut fields);
        }
        let sent: HashMap<_, _> = topic.publishers.iter().map(|p| (p.id, p.messages)).collect();
        Self {
            r#type: type_text(&topic.type_name, topic.encoding),
            encoding: topic.encoding.as_str(),
            element_bytes: topic.element_bytes,
            is_sized: is_sized(topic.encoding),
            depth: topic.depth,
            attributes: topic.attributes,
            described: description.is_some(),
            schema,
            fields,
            memory_bytes: topic.publishers.iter().map(|p| p.memory_bytes).sum(),
            publishers: topic
                .publishers
                .iter()
                .map(|p| PublisherRow {
                    name: names.get(&p.id.node).cloned(),
                    counts: Publisher::of(p),
                })
                .collect(),
            subscribers: subscribers
                .into_iter()
                .map(|s| SubscriberRow::of(s, &sent, names))
                .collect(),
            name: topic.name,
        }
    }

    fn text(&self, paint: Paint) -> String {
        let mut out = String::new();
        let size = match self.is_sized {
            true => format!(", {}", bytes(self.element_bytes as u64)),
            false => String::new(),
        };
        let _ = writeln!(out, "{}", paint.bold(&self.name));
        let _ = writeln!(out, "type      {}, {}{size}", one_line(&self.r#type), self.encoding);
        let _ = writeln!(out, "depth     {} messages", self.depth);
        let _ = writeln!(out, "memory    {}", bytes(self.memory_bytes));
        for (key, value) in &self.attributes {
            let _ = writeln!(out, "attribute {key} = {}", one_line(value));
        }
        if self.encoding == "msgpack" {
            out += "fields    named in each message\n";
        } else if let Some(schema) = &self.schema {
            let _ = writeln!(out, "\n{}", paint.bold("Schema"));
            for line in schema.lines() {
                let _ = writeln!(out, "  {}", plain(line));
            }
        } else if !self.described {
            out += "fields    not described\n";
        } else if !self.fields.is_empty() {
            let _ = writeln!(out, "\n{}", paint.bold("Fields"));
            out += &table(&self.fields.iter().map(FieldRow::cells).collect::<Vec<_>>(), &[2]);
        }
        let _ = writeln!(out, "\n{}", paint.bold("Publishers"));
        let head = ["ID", "NODE", "STATE", "MESSAGES", "BYTES", "MEMORY"];
        let mut rows = vec![head.map(String::from).to_vec()];
        rows.extend(self.publishers.iter().map(PublisherRow::cells));
        out += &table(&rows, &[3, 4, 5]);
        let _ = writeln!(out, "\n{}", paint.bold("Subscribers"));
        let head = ["ID", "NODE", "STATE", "RELIABLE", "LAG", "HOLDS", "OF"];
        let mut rows = vec![head.map(String::from).to_vec()];
        rows.extend(self.subscribers.iter().map(SubscriberRow::cells));
        out += &table(&rows, &[4, 5, 6]);
        for subscriber in &self.subscribers {
            for held in &subscriber.holds {
                let (node, port) = (subscriber.node, subscriber.port);
                let what = held
                    .seq
                    .map_or("an overwritten message".into(), |seq| format!("message {seq}"));
                let from = format!("{}.{}", held.node, held.port);
                let _ = writeln!(out, "{node}.{port} holds {what} of {from}");
            }
        }
        out
    }
}

/// Appends the fields of `of`, those of structs inside it after them.
pub(crate) fn list_fields(
    of: &FieldType,
    level: usize,
    path: &str,
    from: usize,
    out: &mut Vec<FieldRow>,
) {
    for field in of.fields() {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", field.name());
        let (offset, r#type) = (from + field.offset(), field.ty().to_string());
        let name = field.name().to_owned();
        out.push(FieldRow { level, name, path: path.clone(), r#type, offset });
        list_fields(field.ty(), level + 1, &path, offset, out);
    }
}

impl FieldRow {
    fn cells(&self) -> Vec<String> {
        let indent = "  ".repeat(self.level + 1);
        vec![format!("{indent}{}", self.name), self.r#type.clone(), format!("at {}", self.offset)]
    }
}

impl PublisherRow {
    fn cells(&self) -> Vec<String> {
        let Publisher { node, port, state, messages, payload_bytes, memory_bytes } = &self.counts;
        vec![
            format!("{node}.{port}"),
            self.name.clone().unwrap_or("-".into()),
            (*state).into(),
            messages.to_string(),
            bytes(*payload_bytes),
            bytes(*memory_bytes),
        ]
    }
}

impl SubscriberRow {
    fn of(
        info: SubscriberInfo,
        sent: &HashMap<PublisherId, u64>,
        names: &HashMap<NodeId, String>,
    ) -> Self {
        let read = |SourceInfo { publisher, next, .. }: &SourceInfo| {
            let lag = sent.get(publisher).map_or(0, |sent| sent.saturating_sub(*next));
            ReadRow { node: publisher.node.get(), port: publisher.port, next: *next, lag }
        };
        let reads: Vec<_> = info.sources.iter().map(read).collect();
        Self {
            node: info.node.get(),
            port: info.port,
            name: names.get(&info.node).cloned(),
            alive: info.alive,
            reliable: info.reliable,
            waiting: info.waiting,
            borrows: info.borrows,
            lag: reads.iter().map(|r| r.lag).sum(),
            reads,
            holds: info
                .held
                .iter()
                .map(|h| HeldRow {
                    node: h.publisher.node.get(),
                    port: h.publisher.port,
                    seq: h.seq,
                    segment: h.segment,
                    chunk: h.chunk,
                })
                .collect(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let state = match (self.alive, self.waiting) {
            (false, _) => "dead",
            (true, true) => "waiting",
            (true, false) => "awake",
        };
        vec![
            format!("{}.{}", self.node, self.port),
            self.name.clone().unwrap_or("-".into()),
            state.into(),
            if self.reliable { "yes" } else { "no" }.into(),
            self.lag.to_string(),
            self.holds.len().to_string(),
            self.borrows.to_string(),
        ]
    }
}
