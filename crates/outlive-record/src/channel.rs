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
//! | `outlive.attribute.KEY` | what the topic's maker said about it |

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use outlive::{Encoding, PayloadType};

use crate::foreign;
use crate::ros2::{self, FromRos, ToRos};

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
    pub(crate) ros: Ros,
}

/// What has to be done between a payload and a message of the file.
#[derive(Clone, Debug, Default)]
pub(crate) enum Ros {
    /// They are the same.
    #[default]
    No,
    To(Arc<ToRos>),
    From(Arc<FromRos>),
}

/// How a channel says what its messages are.
pub(crate) struct Form<'a> {
    /// Name, encoding and bytes; of nothing if there is none.
    pub(crate) schema: Option<(&'a str, &'static str, &'a [u8])>,
    pub(crate) message_encoding: &'static str,
}

impl Source {
    /// The form of messages that [`Source::message`] gave the number `which`.
    pub(crate) fn form(&self, which: usize) -> Form<'_> {
        if let Ros::To(ros) = &self.ros {
            let schema = ros.schema(which);
            let schema = (schema.name.as_str(), ros2::SCHEMA_ENCODING, schema.text.as_bytes());
            return Form { schema: Some(schema), message_encoding: ros2::MESSAGE_ENCODING };
        }
        let of = &self.payload_type;
        if let Some(form) = foreign::form(of) {
            return form;
        }
        let schema = (of.name(), SCHEMA_ENCODING, of.schema());
        let schema = (!of.schema().is_empty()).then_some(schema);
        let message_encoding = match of.encoding() {
            Encoding::MessagePack => "msgpack",
            Encoding::Bytes => "bytes",
            _ => "outlive",
        };
        Form { schema, message_encoding }
    }

    /// A payload as it is to stand in the file, and which form it has then.
    pub(crate) fn message<'a>(&self, payload: &'a [u8]) -> Result<(usize, Cow<'a, [u8]>), String> {
        match &self.ros {
            Ros::To(ros) => ros.message(payload).map(|(which, data)| (which, data.into())),
            _ => Ok((0, payload.into())),
        }
    }

    /// The bytes of a message of the file as a payload of [`Source::payload_type`]: themselves,
    /// unless the file was written for ROS.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub fn payload<'a>(&self, data: &'a [u8]) -> Result<Cow<'a, [u8]>, String> {
        let payload = match &self.ros {
            Ros::From(ros) => ros.payload(data)?.into(),
            _ => Cow::Borrowed(data),
        };
        if !self.payload_type.fits(payload.len()) {
            let (len, name) = (payload.len(), self.payload_type.name());
            return Err(format!("{len} bytes are no {name}"));
        }
        Ok(payload)
    }

    /// The message of ROS that it is in the file, like `sensor_msgs/msg/Image`.
    pub fn ros_name(&self) -> Option<&str> {
        if let Ros::From(ros) = &self.ros { Some(ros.name()) } else { None }
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
        if of.encoding() == Encoding::Cdr {
            all.insert("offered_qos_profiles".into(), String::new());
        }
        if matches!(self.ros, Ros::To(_)) {
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
        let wrong = |key: &str| format!("topic {topic}: outlive.{key} of its channel is wrong");
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
        let (ros, payload_type) = match schema {
            Some(schema) if is_ours && channel.message_encoding == ros2::MESSAGE_ENCODING => {
                let text = match schema.encoding == ros2::SCHEMA_ENCODING {
                    true => String::from_utf8_lossy(&schema.data),
                    false => Cow::Borrowed(""),
                };
                let native = get("encoding").is_some().then(|| payload_type.clone());
                match FromRos::of(&schema.name, &text, native) {
                    Ok((from, of)) => (Ros::From(Arc::new(from)), of),
                    // To be played as raw bytes.
                    Err(_) => (Ros::No, PayloadType::bytes()),
                }
            }
            _ => (Ros::No, payload_type),
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
            ros,
        })
    }
}
