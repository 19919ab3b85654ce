//! Payloads with their fields, for tools: third-party encodings by the schema of their topic, and a
//! value of any type as a tree.
//!
//! | file | what |
//! |---|---|
//! | this | which encoding; JSON, CDR |
//! | `tree` | a value with everything below it |
//! | `protobuf` | Protocol Buffers by a library |
//! | `flat` | the bytes of FlatBuffers, which Arrow has too |
//! | `columns` | those of a table, by the schema |
//! | `flatbuffer`, `arrow` | both, read without unsafe code: payload and schema may be anything |
//!
//! # Examples
//! ```
//! use outlive::{Encoding, PayloadType};
//! use outlive_record::decode::{Foreign, Path};
//!
//! let goal = PayloadType::encoded(Encoding::Cdr, "my/msg/Goal", b"float64 x\nstring frame\n")?;
//! let goal = Foreign::of(&goal)?;
//! let payload = goal.payload(r#"{"x": 1.5, "frame": "map"}"#)?;
//! let tree = goal.tree(&payload)?;
//! assert_eq!(tree.to_string(), r#"{x: 1.5, frame: "map"}"#);
//! assert_eq!(tree.at(&Path::typed("x")?).map(ToString::to_string), Some("1.5".into()));
//! assert!(goal.tree(&payload[..5]).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrow;
mod columns;
mod flat;
mod flatbuffer;
mod protobuf;
mod tree;

use outlive::{Encoding, MsgPack, PayloadType, msgpack};

use crate::ros2::RosMessage;
use arrow::Arrow;
use flatbuffer::FlatBuffer;
use protobuf::Protobuf;
pub use protobuf::{SetType, set_names, set_text, set_types};
pub use tree::{Key, List, Path, Tree};

/// How payloads of one type in a third-party encoding become a tree, and JSON becomes a payload.
#[derive(Clone, Debug)]
pub struct Foreign(Form);

#[derive(Clone, Debug)]
enum Form {
    Protobuf(Protobuf),
    Json,
    Cdr(Box<RosMessage>),
    FlatBuffer(FlatBuffer),
    Arrow(Arrow),
}

impl Foreign {
    /// For a type that is not ours.
    ///
    /// # Errors
    /// Why its payloads cannot be read: it has no schema, or one that is damaged.
    pub fn of(of: &PayloadType) -> Result<Self, String> {
        let form = match of.encoding() {
            Encoding::Json => Form::Json,
            // Its payloads bring it along.
            Encoding::Arrow => Form::Arrow(Arrow::of(of.schema())?),
            _ if of.schema().is_empty() && of.encoding() != Encoding::Cdr => {
                return Err("nobody has given its schema".into());
            }
            Encoding::Protobuf => Form::Protobuf(Protobuf::of(of.name(), of.schema())?),
            Encoding::Cdr => {
                let text = String::from_utf8_lossy(of.schema());
                Form::Cdr(Box::new(RosMessage::of(of.name(), &text)?))
            }
            Encoding::FlatBuffer => Form::FlatBuffer(FlatBuffer::of(of.name(), of.schema())?),
            other => return Err(format!("{} is not a third-party encoding", other.as_str())),
        };
        Ok(Self(form))
    }

    /// A payload with its fields.
    ///
    /// # Errors
    /// What is wrong with its bytes, which may come from anywhere.
    pub fn tree(&self, payload: &[u8]) -> Result<Tree, String> {
        match &self.0 {
            Form::Protobuf(of) => of.tree(payload),
            Form::Json => serde_json::from_slice(payload).map_err(|e| e.to_string()),
            Form::Cdr(of) => {
                let payload = of.msgpack(payload)?;
                MsgPack::<Tree>::new(&payload).decode().map_err(|e| e.to_string())
            }
            Form::FlatBuffer(of) => of.tree(payload),
            Form::Arrow(of) => of.tree(payload),
        }
    }

    /// Columns of a table, where the schema tells them. CDR has all fields in each message, and of
    /// Arrow each message has the schema.
    pub fn columns(&self) -> Option<Vec<Path>> {
        match &self.0 {
            Form::Protobuf(of) => Some(of.columns()),
            Form::FlatBuffer(of) => Some(of.columns()),
            Form::Json | Form::Cdr(_) | Form::Arrow(_) => None,
        }
    }

    /// What a person typed as JSON, as a payload.
    ///
    /// # Errors
    /// What does not fit the type. FlatBuffers and tables of Arrow are read only.
    pub fn payload(&self, json: &str) -> Result<Vec<u8>, String> {
        match &self.0 {
            Form::Protobuf(of) => of.payload(json),
            // As it was typed: readers get what was meant.
            Form::Json => match serde_json::from_str::<serde::de::IgnoredAny>(json) {
                Ok(_) => Ok(json.trim().as_bytes().to_vec()),
                Err(e) => Err(e.to_string()),
            },
            Form::Cdr(of) => {
                let tree: Tree = serde_json::from_str(json).map_err(|e| e.to_string())?;
                of.cdr(&msgpack::encode(&tree).map_err(|e| e.to_string())?)
            }
            Form::FlatBuffer(_) => Err("FlatBuffers are read, not made: flatc makes them".into()),
            Form::Arrow(_) => Err("tables of Arrow are read, not made: pyarrow makes them".into()),
        }
    }
}

/// The schema of such a type for people, in lines; `none` if it has none.
pub fn schema_text(of: &PayloadType) -> String {
    let binary = || format!("binary, {} bytes", of.schema().len());
    match Foreign::of(of).map(|of| of.0) {
        _ if of.schema().is_empty() => "none".into(),
        Ok(Form::Protobuf(message)) => message.text(),
        Ok(Form::Json) => match serde_json::from_slice::<Tree>(of.schema()) {
            Ok(tree) => serde_json::to_string_pretty(&tree).unwrap_or_default(),
            Err(_) => binary(),
        },
        Ok(Form::Cdr(message)) => message.text().trim_end().into(),
        Ok(Form::FlatBuffer(of)) => of.text(),
        Ok(Form::Arrow(of)) => of.text().unwrap_or_else(binary),
        Err(why) => format!("{}: {why}", binary()),
    }
}

#[cfg(test)]
mod tests;
