//! `outlive topic pub VALUE`: values typed by hand or made by a script, on a topic of any type.

use outlive::MsgPack;
use outlive::topic::{self, Waited};
use outlive::{Deadline, Domain, Encoding, Message, Node, PayloadType, Publisher, TypeDescription};
use outlive_record::decode::{Foreign, Tree};
use serde_json::Value;

use super::args::PubArgs;
use super::pace::{Pace, back_pressure, wait_for_subscribers};
use crate::absent::similar;
use crate::exit::{Code, Failure, Outcome, note};
use crate::input::Lines;
use crate::options::{DomainOptions, sleep_until};
use crate::os;
use crate::output::count;
use crate::topic::encode;
use crate::topic::named::{missing, names};
use crate::value;

/// A publisher, and how to make payloads for it.
enum Sink {
    Bytes(Publisher<[u8]>),
    Described(Publisher<[u8]>, TypeDescription),
    MessagePack(Publisher<MsgPack<Tree>>),
    Foreign(Publisher<[u8]>, Foreign),
}

impl Sink {
    /// Publishes one value; a value that is not a payload is the user's mistake.
    fn publish(&self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Bytes(publisher) => publisher.publish(text.as_bytes())?,
            Self::Described(publisher, described) => {
                let value = value::described_value(text, described)?;
                let payload = encode::payload(described, &value);
                publisher.publish(&payload.map_err(|why| Failure::new(Code::Usage, why))?)?
            }
            Self::MessagePack(publisher) => publisher.publish_value(&value::tree(text)?)?,
            Self::Foreign(publisher, of) => {
                let payload = of.payload(text);
                publisher.publish(&payload.map_err(|why| Failure::new(Code::Usage, why))?)?
            }
        };
        Ok(())
    }

    /// Publishes the line of that number; on a topic of bytes it may be any.
    fn publish_line(&self, line: &[u8], number: u64) -> Result<(), Failure> {
        if let Self::Bytes(publisher) = self {
            publisher.publish(line)?;
            return Ok(());
        }
        let wrong = |_| {
            let why = format!("line {number} of standard input is not UTF-8");
            Failure::new(Code::Usage, why)
        };
        self.publish(std::str::from_utf8(line).map_err(wrong)?)
    }

    fn subscribers(&self) -> outlive::Result<usize> {
        match self {
            Self::Bytes(publisher)
            | Self::Described(publisher, _)
            | Self::Foreign(publisher, _) => publisher.subscribers(),
            Self::MessagePack(publisher) => publisher.subscribers(),
        }
    }

    fn published(&self) -> u64 {
        match self {
            Self::Bytes(publisher)
            | Self::Described(publisher, _)
            | Self::Foreign(publisher, _) => publisher.published(),
            Self::MessagePack(publisher) => publisher.published(),
        }
    }

    fn waited(&self) -> Waited {
        match self {
            Self::Bytes(publisher)
            | Self::Described(publisher, _)
            | Self::Foreign(publisher, _) => publisher.waited(),
            Self::MessagePack(publisher) => publisher.waited(),
        }
    }
}

pub(super) fn run(args: &PubArgs, text: &str, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let domain = options.domain()?;
    let found = domain.find_topic(&args.name)?;
    let Some(r#type) = &args.r#type else {
        let topic = found.ok_or_else(|| unknown(&domain, args, text))?;
        let node = options.node("topic-pub")?;
        return feed(open(&node, args, &topic)?, args, text);
    };
    let node = options.node("topic-pub")?;
    // Kept until the publisher is there: a topic goes with its last member.
    let member = make(&node, args, r#type)?;
    let topic = domain.find_topic(&args.name)?.ok_or_else(|| missing(&domain, &args.name))?;
    let sink = open(&node, args, &topic)?;
    drop(member);
    feed(sink, args, text)
}

/// Nobody has made the topic: says how to.
fn unknown(domain: &Domain, args: &PubArgs, text: &str) -> Failure {
    let (name, r#type) = (&args.name, likely_type(text));
    let like = similar(name, &names(domain));
    let like = match like.as_slice() {
        [] => String::new(),
        like => format!(" (did you mean {}?)", like.join(" or ")),
    };
    let quoted = format!("'{}'", text.replace('\'', "'\\''"));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-+._/".contains(c);
    let text = if text.chars().all(plain) && !text.is_empty() { text } else { &quoted };
    let message = format!(
        "no topic {name} yet{like}: to create it, give a type: outlive topic pub {name} {text} \
         --type {}",
        r#type
    );
    Failure::new(Code::NotFound, message)
}

/// The type that somebody who types `text` most likely means.
fn likely_type(text: &str) -> &'static str {
    let number = |value: &Value| value.is_number();
    match serde_json::from_str(text) {
        Ok(Value::Number(n)) if n.is_i64() => "i64",
        Ok(Value::Number(n)) if n.is_u64() => "u64",
        Ok(Value::Number(_)) => "f64",
        Ok(Value::Array(all)) if all.iter().all(number) => "f64[]",
        _ => "msgpack",
    }
}

/// Joins the topic, whatever its type.
fn open(node: &Node, args: &PubArgs, topic: &topic::Info) -> Result<Sink, Failure> {
    if topic.encoding == Encoding::MessagePack {
        let builder = node.msgpack::<Tree>(&args.name)?.type_name(&topic.type_name);
        let builder = builder.memory_bytes_max(args.memory_bytes);
        let publisher = builder.reliable_timeout(args.reliable_timeout).publisher()?;
        return Ok(Sink::MessagePack(publisher));
    }
    let of = topic.payload_type();
    let foreign = of.encoding().is_foreign().then(|| value::foreign(&of)).transpose()?;
    let builder = node.topic::<[u8]>(&args.name)?.memory_bytes_max(args.memory_bytes);
    let publisher = builder.reliable_timeout(args.reliable_timeout).publisher_of_any_type()?;
    if let Some(foreign) = foreign {
        return Ok(Sink::Foreign(publisher, foreign));
    }
    let described = value::description(&of);
    let described = described.ok_or_else(|| value::undescribed(&topic.type_name))?;
    // Bytes are what was typed, unless it is said to be JSON.
    Ok(match topic.encoding {
        Encoding::Bytes if args.json.is_none() => Sink::Bytes(publisher),
        _ => Sink::Described(publisher, described),
    })
}

/// Makes the topic by joining it, if it is not there yet.
fn make(node: &Node, args: &PubArgs, r#type: &str) -> Result<Box<dyn std::any::Any>, Failure> {
    fn one<T: Message>(node: &Node, args: &PubArgs, slice: bool) -> outlive::Result<Member> {
        let depth = args.depth.unwrap_or(16);
        Ok(if slice {
            Box::new(node.topic::<[T]>(&args.name)?.depth(depth).subscriber()?)
        } else {
            Box::new(node.topic::<T>(&args.name)?.depth(depth).subscriber()?)
        })
    }
    type Member = Box<dyn std::any::Any>;
    if let Some((encoding, name)) = r#type.split_once(':') {
        let of = foreign(encoding, name, args)?;
        let topic = node.topic::<[u8]>(&args.name)?.of_type(&of);
        return Ok(Box::new(topic.depth(args.depth.unwrap_or(16)).subscriber()?));
    }
    let (name, slice) = match r#type.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (r#type, false),
    };
    macro_rules! primitives {
        ($($t:ident),*) => {
            match name {
                $(stringify!($t) => Ok(one::<$t>(node, args, slice)?),)*
                "msgpack" if !slice => {
                    let topic = node.msgpack::<Tree>(&args.name)?.type_name("json");
                    Ok(Box::new(topic.depth(args.depth.unwrap_or(16)).subscriber()?))
                }
                _ => Err(Failure::new(Code::Usage, format!(
                    "--type {}: use msgpack, a number like f64, f64[] for any number of them, or \
                     u8[] for bytes, or protobuf:robot.Plan and the like for other encodings",
                    r#type
                ))),
            }
        };
    }
    primitives!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64)
}

/// `protobuf:robot.Plan`, with its schema from a file.
fn foreign(encoding: &str, name: &str, args: &PubArgs) -> Result<PayloadType, Failure> {
    let Some(encoding) = Encoding::from_name(encoding).filter(|e| e.is_foreign()) else {
        let why = format!(
            "--type {encoding}:{name}: use cdr, protobuf, flatbuffer, json or arrow before the \
             colon"
        );
        return Err(Failure::new(Code::Usage, why));
    };
    let schema = match &args.schema {
        Some(path) => std::fs::read(path).map_err(|e| Failure::io_at("reading", path, &e))?,
        None => Vec::new(),
    };
    Ok(PayloadType::encoded(encoding, name, &schema)?)
}

/// Publishes the value, or every line of standard input.
fn feed(sink: Sink, args: &PubArgs, text: &str) -> Outcome {
    wait_for_subscribers(|| sink.subscribers(), args)?;
    let mut pace = args.rate.map(Pace::new);
    let mut wait = || pace.iter_mut().for_each(Pace::wait);
    let more = |sink: &Sink, default: Option<u64>| {
        let count = args.count.or(default);
        count.is_none_or(|count| sink.published() < count) && !os::stop_asked()
    };
    if text == "-" {
        let (mut lines, mut number) = (Lines::standard()?, 0);
        while more(&sink, None)
            && let Some(line) = lines.next()?
        {
            number += 1;
            if !line.trim_ascii().is_empty() {
                wait();
                sink.publish_line(line, number)?;
            }
        }
    } else {
        // Once, unless a rate says again and again.
        let default = if args.rate.is_some() { None } else { Some(1) };
        while more(&sink, default) {
            wait();
            if !os::stop_asked() {
                sink.publish(text)?;
            }
        }
    }
    let waited = back_pressure(sink.waited());
    note(format_args!("published {}{waited}", count(sink.published(), "message")));
    sleep_until(Deadline::after(args.linger));
    Ok(Code::Done)
}
