//! `outlive topic pub --json`: values typed by hand or made by a script, on a topic of any type.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;

use outlive::MsgPack;
use outlive::topic::{self, Waited};
use outlive::{Deadline, Encoding, Message, Node, Publisher, TypeDescription};
use serde_json::Value;

use super::publish::{Pace, PubArgs, back_pressure, wait_for_subscribers};
use super::{encode, missing};
use crate::exit::{Code, Failure, Outcome, note};
use crate::options::{DomainOptions, sleep_until};
use crate::os;
use crate::tree::Tree;

/// A publisher, and how to make payloads for it.
enum Sink {
    Bytes(Publisher<[u8]>, TypeDescription),
    MessagePack(Publisher<MsgPack<Tree>>),
}

impl Sink {
    /// Publishes one value; a value that is no payload is the user's mistake.
    fn publish(&self, text: &str) -> Result<(), Failure> {
        let usage = |why: String| Failure::new(Code::Usage, why);
        let not_json = |e: serde_json::Error| usage(format!("'{text}' is no JSON: {e}"));
        match self {
            Self::Bytes(publisher, described) => {
                let value: Value = serde_json::from_str(text).map_err(not_json)?;
                publisher.publish(&encode::payload(described, &value).map_err(usage)?)?;
            }
            Self::MessagePack(publisher) => {
                publisher.publish_value(&serde_json::from_str(text).map_err(not_json)?)?;
            }
        }
        Ok(())
    }

    fn subscribers(&self) -> outlive::Result<usize> {
        match self {
            Self::Bytes(publisher, _) => publisher.subscribers(),
            Self::MessagePack(publisher) => publisher.subscribers(),
        }
    }

    fn published(&self) -> u64 {
        match self {
            Self::Bytes(publisher, _) => publisher.published(),
            Self::MessagePack(publisher) => publisher.published(),
        }
    }

    fn waited(&self) -> Waited {
        match self {
            Self::Bytes(publisher, _) => publisher.waited(),
            Self::MessagePack(publisher) => publisher.waited(),
        }
    }
}

pub(super) fn run(args: &PubArgs, json: &str, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals();
    let domain = options.domain()?;
    let node = options.node("topic-pub")?;
    if let Some(r#type) = &args.r#type {
        // Kept until the publisher is there: a topic goes with its last member.
        let member = make(&node, args, r#type)?;
        let topic = domain.find_topic(&args.name)?.ok_or_else(|| missing(&args.name))?;
        let sink = open(&node, args, &topic)?;
        drop(member);
        return feed(sink, args, json);
    }
    let Some(topic) = domain.find_topic(&args.name)? else {
        let message = format!("no topic {} yet: give --type to make it", args.name);
        return Err(Failure::new(Code::NotFound, message));
    };
    feed(open(&node, args, &topic)?, args, json)
}

/// Joins the topic, whatever its type.
fn open(node: &Node, args: &PubArgs, topic: &topic::Info) -> Result<Sink, Failure> {
    let Some(described) = description(topic) else {
        if topic.encoding == Encoding::MessagePack {
            let builder = node.msgpack::<Tree>(&args.name)?.type_name(&topic.type_name);
            let builder = builder.memory_bytes_max(args.memory_bytes);
            let publisher = builder.reliable_timeout(args.reliable_timeout).publisher()?;
            return Ok(Sink::MessagePack(publisher));
        }
        let message = format!(
            "nothing is known of the type {}: it has no description, so JSON cannot become one",
            topic.type_name
        );
        return Err(Failure::new(Code::Mismatch, message));
    };
    let builder = node.topic::<[u8]>(&args.name)?.memory_bytes_max(args.memory_bytes);
    let publisher = builder.reliable_timeout(args.reliable_timeout).publisher_of_any_type()?;
    Ok(Sink::Bytes(publisher, described))
}

fn description(topic: &topic::Info) -> Option<TypeDescription> {
    if topic.encoding == Encoding::MessagePack {
        return None;
    }
    let described = topic.description().filter(|d| !d.is_opaque());
    described.or_else(|| encode::primitive(&topic.type_name, topic.encoding, topic.element_bytes))
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
                    "--type {}: use msgpack, a primitive like f64, or f64[] for any number of them",
                    r#type
                ))),
            }
        };
    }
    primitives!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64)
}

/// Publishes the value, or every line of standard input.
fn feed(sink: Sink, args: &PubArgs, json: &str) -> Outcome {
    wait_for_subscribers(|| sink.subscribers(), args)?;
    let mut pace = args.rate.map(Pace::new);
    let mut wait = || pace.iter_mut().for_each(Pace::wait);
    let more = |sink: &Sink, default: Option<u64>| {
        let count = args.count.or(default);
        count.is_none_or(|count| sink.published() < count) && !os::stop_asked()
    };
    if json == "-" {
        let fd = std::io::stdin().as_fd().try_clone_to_owned();
        let file = File::from(fd.map_err(|e| Failure::io("open standard input", &e))?);
        for line in BufReader::new(file).lines() {
            // A signal ends the reading.
            let Ok(line) = line else { break };
            if !more(&sink, None) {
                break;
            }
            if !line.trim().is_empty() {
                wait();
                sink.publish(&line)?;
            }
        }
    } else {
        // Once, unless a rate says again and again.
        let default = if args.rate.is_some() { None } else { Some(1) };
        while more(&sink, default) {
            wait();
            if !os::stop_asked() {
                sink.publish(json)?;
            }
        }
    }
    let waited = back_pressure(sink.waited());
    note(format_args!("published {} messages{waited}", sink.published()));
    sleep_until(Deadline::after(args.linger));
    Ok(Code::Done)
}
