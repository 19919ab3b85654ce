//! What a file says of a topic and of one of its publishers.
//!
//! A channel of the file is one publisher of one topic, so that `sequence` counts what it counts in
//! shared memory. What MCAP has no field for is in the channel's metadata:
//!
//! | key | value |
//! |---|---|
//! | `outlive.encoding` | `fixed`, `slice`, `bytes`, `msgpack` or `headed` |
//! | `outlive.type` | name of the type |
//! | `outlive.size`, `outlive.align` | of the value, an element or the header, bytes |
//! | `outlive.depth` | messages of a ring |
//! | `outlive.publisher` | node and port |
//! | `outlive.attribute.KEY` | what the topic's maker said about it |

use std::collections::BTreeMap;

use outlive::{Encoding, PayloadType};

/// Encoding of the schemas: the stored form of a type description (docs/SHM_LAYOUT.md).
pub(crate) const SCHEMA_ENCODING: &str = "outlive-type";
const ATTRIBUTE: &str = "outlive.attribute.";

/// One publisher of one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Name of the topic.
    pub topic: String,
    /// Its type.
    pub payload_type: PayloadType,
    /// Messages of each ring; `None` if the file was written by others.
    pub depth: Option<u64>,
    /// What the topic's maker said about it.
    pub attributes: BTreeMap<String, String>,
    /// Node and port of the publisher; empty if the file was written by others.
    pub publisher: String,
}

impl Source {
    pub(crate) fn message_encoding(&self) -> &'static str {
        match self.payload_type.encoding() {
            Encoding::MessagePack => "msgpack",
            Encoding::Bytes => "bytes",
            _ => "outlive",
        }
    }

    pub(crate) fn metadata(&self) -> BTreeMap<String, String> {
        let of = &self.payload_type;
        let attributes = self.attributes.iter();
        let mut all: BTreeMap<_, _> =
            attributes.map(|(k, v)| (format!("{ATTRIBUTE}{k}"), v.clone())).collect();
        let mut put = |key: &str, value: String| all.insert(format!("outlive.{key}"), value);
        put("encoding", of.encoding().as_str().into());
        put("type", of.name().into());
        put("size", of.size().to_string());
        put("align", of.align().to_string());
        if let Some(depth) = self.depth {
            put("depth", depth.to_string());
        }
        put("publisher", self.publisher.clone());
        all
    }

    /// Reads a channel. What others have written becomes raw bytes, or MessagePack.
    pub(crate) fn of(channel: &mcap::Channel<'_>) -> Result<Self, String> {
        let get = |key: &str| channel.metadata.get(&format!("outlive.{key}"));
        let schema = channel.schema.as_ref();
        let data = schema.filter(|s| s.encoding == SCHEMA_ENCODING).map_or(&[][..], |s| &s.data);
        let topic = channel.topic.clone();
        let wrong = |key: &str| format!("topic {topic}: outlive.{key} of its channel is wrong");
        let payload_type = match get("encoding") {
            Some(encoding) => {
                let encoding = Encoding::from_name(encoding).ok_or_else(|| wrong("encoding"))?;
                let number =
                    |key| get(key).and_then(|v| v.parse::<usize>().ok()).ok_or_else(|| wrong(key));
                let name = get("type").ok_or_else(|| wrong("type"))?;
                let form = (number("size")?, number("align")?);
                PayloadType::stored(encoding, name, form, data).map_err(|e| e.to_string())?
            }
            None if channel.message_encoding == "msgpack" => {
                let name = schema.map_or("msgpack", |s| s.name.as_str());
                PayloadType::msgpack(name).map_err(|e| e.to_string())?
            }
            None => PayloadType::bytes(),
        };
        let depth = match get("depth") {
            Some(depth) => Some(depth.parse().map_err(|_| wrong("depth"))?),
            None => None,
        };
        let stripped = |(k, v): (&String, &String)| {
            k.strip_prefix(ATTRIBUTE).map(|k| (k.to_owned(), v.clone()))
        };
        Ok(Self {
            payload_type,
            depth,
            attributes: channel.metadata.iter().filter_map(stripped).collect(),
            publisher: get("publisher").cloned().unwrap_or_default(),
            topic,
        })
    }
}
