//! What a file says of a topic and of one of its publishers.
//!
//! A channel of the file is one publisher of one topic, so that `sequence` counts what it counts in
//! shared memory. What MCAP has no field for is in the channel's metadata:
//!
//! | key | value |
//! |---|---|
//! | `outlive.encoding` | `fixed`, `slice`, `bytes`, `msgpack`, `headed`, or one of others |
//! | `outlive.type` | name of the type |
//! | `outlive.size`, `outlive.align` | of the value, an element or the header, bytes |
//! | `outlive.depth` | messages of a ring |
//! | `outlive.publisher` | node and port |
//! | `outlive.schema` | the description, where the schema is that of ROS |
//! | `outlive.layout` | how the payload became CDR: `generated 1` or `bound 1` |
//! | `outlive.attribute.KEY` | what the topic's maker said about it |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outlive::{Encoding, PayloadType};

use crate::foreign;
use crate::json::{self, Json};
use crate::ros2::{self, FromRos, Layout, Schema, ToRos};

/// Encoding of the schemas: the stored form of a type description (docs/internals/SHM_LAYOUT.md).
pub(crate) const SCHEMA_ENCODING: &str = "outlive-type";
const ATTRIBUTE: &str = "outlive.attribute.";

/// One publisher of one topic.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the topic.
    pub topic: String,
    /// Its type.
    pub payload_type: PayloadType,
    /// Messages of each ring; `None` if the file was written by others.
    pub depth: Option<u64>,
    /// The topic's attributes, set by its creator.
    pub attributes: BTreeMap<String, String>,
    /// Node and port of the publisher; empty if the file was written by others.
    pub publisher: String,
    pub(crate) coding: Coding,
}

/// What has to be done between a payload and a message of the file.
#[derive(Clone, Debug, Default)]
pub(crate) enum Coding {
    /// They are the same.
    #[default]
    No,
    To(Arc<ToRos>),
    From(Arc<FromRos>),
    /// Field by field, in both directions.
    Layout(Arc<Layout>),
    /// MessagePack, in both directions.
    Json(Arc<Json>),
}

/// How a [`Layout`] was made, and the version of that.
const GENERATED: &str = "generated 1";
const BOUND: &str = "bound 1";

/// How a channel says what its messages are.
pub(crate) struct Form<'a> {
    /// Name, encoding and bytes; of nothing if there is none.
    pub(crate) schema: Option<(&'a str, &'static str, &'a [u8])>,
    pub(crate) message_encoding: &'static str,
}

impl Source {
    /// The form of messages that [`Source::message`] gave the number `which`.
    pub(crate) fn form(&self, which: usize) -> Form<'_> {
        if let Coding::To(ros) = &self.coding {
            let schema = ros.schema(which);
            let schema = (schema.name.as_str(), ros2::SCHEMA_ENCODING, schema.text.as_bytes());
            return Form { schema: Some(schema), message_encoding: ros2::MESSAGE_ENCODING };
        }
        if let (Coding::Layout(layout), 0) = (&self.coding, which) {
            let schema = Some(layout.schema());
            return Form { schema, message_encoding: ros2::MESSAGE_ENCODING };
        }
        let of = &self.payload_type;
        if let (Coding::Json(json), 0) = (&self.coding, which) {
            let schema = Some((of.name(), json::SCHEMA_ENCODING, json.schema()));
            return Form { schema, message_encoding: json::MESSAGE_ENCODING };
        }
        let ours = || match of.encoding() {
            Encoding::MessagePack => ("msgpack", SCHEMA_ENCODING),
            Encoding::Bytes => ("bytes", SCHEMA_ENCODING),
            _ => ("outlive", SCHEMA_ENCODING),
        };
        let (message_encoding, schema_encoding) =
            foreign::names(of.encoding()).unwrap_or_else(ours);
        // JSON and what the reader knows anyway may do without one.
        let schema = (!of.schema().is_empty()).then_some((of.name(), schema_encoding, of.schema()));
        Form { schema, message_encoding }
    }

    /// A payload as it goes into the file, and which form it has then; `room` is for its
    /// bytes.
    pub(crate) fn message<'a>(
        &self,
        payload: &'a [u8],
        room: &'a mut Vec<u8>,
    ) -> Result<(usize, Cow<'a, [u8]>), String> {
        match &self.coding {
            Coding::To(ros) => ros.message(payload).map(|(which, data)| (which, data.into())),
            Coding::Json(json) => Ok(match json.encode(payload, room) {
                Some(()) => (0, Cow::Borrowed(room)),
                None => (1, payload.into()),
            }),
            Coding::Layout(layout) => match layout.encode(payload, room) {
                Ok(()) => Ok((0, Cow::Borrowed(room))),
                // Bytes that nobody can show are bytes.
                Err(_) if layout.is_generated => Ok((1, payload.into())),
                Err(why) => Err(why),
            },
            _ => Ok((0, payload.into())),
        }
    }

    /// The bytes of a message of the file as a payload of [`Source::payload_type`]: themselves,
    /// unless the file was written for ROS.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn payload<'a>(&self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let payload = match &self.coding {
            Coding::From(ros) => ros.payload(data)?.into(),
            Coding::Layout(layout) => layout.decode(data)?.into(),
            Coding::Json(_) => json::decode(data)?.into(),
            _ => Cow::Borrowed(data),
        };
        if !self.payload_type.fits(payload.len()) {
            let (len, name) = (payload.len(), self.payload_type.name());
            return Err(format!("{len} bytes do not match its type {name}"));
        }
        Ok(payload)
    }

    /// The message of ROS that it is in the file, like `sensor_msgs/msg/Image`.
    pub fn ros_name(&self) -> Option<&str> {
        match &self.coding {
            Coding::From(ros) => Some(ros.name()),
            Coding::Layout(layout) if !layout.is_generated => Some(&layout.name),
            _ => None,
        }
    }

    /// Whether messages of both are read in the same way, if their types are the same.
    pub(crate) fn is_coded_as(&self, other: &Self) -> bool {
        std::mem::discriminant(&self.coding) == std::mem::discriminant(&other.coding)
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
        if let Coding::Layout(layout) = &self.coding {
            put("layout", if layout.is_generated { GENERATED } else { BOUND }.into());
        }
        if of.encoding() == Encoding::Cdr {
            all.insert("offered_qos_profiles".into(), String::new());
        }
        if matches!(self.coding, Coding::To(_) | Coding::Layout(_)) {
            // The tools of ROS look for it.
            all.insert("offered_qos_profiles".into(), String::new());
            if let Ok(schema) = std::str::from_utf8(of.schema())
                && !schema.is_empty()
            {
                all.insert("outlive.schema".into(), schema.into());
            }
        }
        all
    }

    /// Reads a channel. What others have written becomes raw bytes, or MessagePack.
    pub(crate) fn of(channel: &mcap::Channel<'_>) -> Result<Self, String> {
        let get = |key: &str| channel.metadata.get(&format!("outlive.{key}"));
        let schema = channel.schema.as_ref();
        let described = schema.filter(|s| s.encoding == SCHEMA_ENCODING).map(|s| &s.data[..]);
        let described = described.or_else(|| get("schema").map(|s| s.as_bytes()));
        let data = described.unwrap_or_default();
        let topic = channel.topic.clone();
        let named = topic.escape_debug();
        let wrong = |key: &str| format!("topic {named}: outlive.{key} of its channel is wrong");
        let foreign = foreign::payload_type(channel);
        let is_ours = foreign.is_none();
        let payload_type = match get("encoding") {
            _ if !is_ours => foreign.unwrap_or_else(PayloadType::bytes),
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
        let layout = get("layout").map(String::as_str);
        let layout = layout.filter(|_| channel.message_encoding == ros2::MESSAGE_ENCODING);
        let (coding, payload_type) = match schema {
            _ if layout.is_some() => {
                let layout = match (layout, schema) {
                    // What it was made of is here, should its schema be in a damaged chunk.
                    (Some(GENERATED), _) => Layout::generated(&payload_type),
                    (Some(BOUND), Some(schema)) => {
                        Schema::parse(&schema.name, &String::from_utf8_lossy(&schema.data))
                            .and_then(|schema| Layout::bound(&schema, &payload_type))
                            .ok()
                    }
                    _ => None,
                };
                (Coding::Layout(Arc::new(layout.ok_or_else(|| wrong("layout"))?)), payload_type)
            }
            Some(schema) if is_ours && channel.message_encoding == ros2::MESSAGE_ENCODING => {
                let text = match schema.encoding == ros2::SCHEMA_ENCODING {
                    true => String::from_utf8_lossy(&schema.data),
                    false => Cow::Borrowed(""),
                };
                let native = get("encoding").is_some().then(|| payload_type.clone());
                match FromRos::of(&schema.name, &text, native) {
                    Ok((from, of)) => (Coding::From(Arc::new(from)), of),
                    // To be played as raw bytes.
                    Err(_) => (Coding::No, PayloadType::bytes()),
                }
            }
            _ if channel.message_encoding == json::MESSAGE_ENCODING
                && payload_type.encoding() == Encoding::MessagePack =>
            {
                (Coding::Json(Arc::default()), payload_type)
            }
            _ => (Coding::No, payload_type),
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
            coding,
        })
    }
}
