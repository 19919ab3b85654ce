//! Topics in third-party encodings: in a file as in anybody's, with their own schema, so that every
//! reader knows them; and files of others with such channels.
//!
//! | encoding | messages | schema |
//! |---|---|---|
//! | CDR of ROS 2 | `cdr` | `ros2msg` |
//! | Protocol Buffers | `protobuf` | `protobuf` |
//! | FlatBuffers | `flatbuffer` | `flatbuffer` |
//! | JSON | `json` | `jsonschema` |
//! | Arrow, which MCAP does not name | `arrow` | `arrow` |

use mcap::Channel;
use outlive::{Encoding, PayloadType};

use crate::ros2;

/// Encodings of MCAP: ours, that of messages, that of schemas.
const ENCODINGS: [(Encoding, &str, &str); 5] = [
    (Encoding::Cdr, ros2::MESSAGE_ENCODING, ros2::SCHEMA_ENCODING),
    (Encoding::Protobuf, "protobuf", "protobuf"),
    (Encoding::FlatBuffer, "flatbuffer", "flatbuffer"),
    (Encoding::Json, "json", "jsonschema"),
    (Encoding::Arrow, "arrow", "arrow"),
];

/// Encodings of messages and of schemas, as a channel names them; `None` if it is one of ours.
pub(crate) fn names(of: Encoding) -> Option<(&'static str, &'static str)> {
    let (_, messages, schemas) = ENCODINGS.into_iter().find(|(encoding, ..)| *encoding == of)?;
    Some((messages, schemas))
}

/// The type that a channel of such an encoding says; `None` if it is another, or says too much for
/// a topic. CDR that is not ours becomes messages of ours instead.
pub(crate) fn payload_type(channel: &Channel<'_>) -> Option<PayloadType> {
    let ours = channel.metadata.get("outlive.encoding");
    let is_wanted = |encoding: Encoding, messages: &str| match ours {
        Some(ours) => encoding.as_str() == ours,
        None => encoding != Encoding::Cdr && messages == channel.message_encoding,
    };
    let (encoding, _, schema_encoding) =
        ENCODINGS.into_iter().find(|(encoding, messages, _)| is_wanted(*encoding, messages))?;
    let schema = channel.schema.as_ref().filter(|s| s.encoding == schema_encoding);
    let name = channel.metadata.get("outlive.type").map(String::as_str);
    // Of files of others the topic stands for a name that nobody gave.
    let name = name.or(schema.map(|s| s.name.as_str())).unwrap_or(&channel.topic);
    PayloadType::encoded(encoding, name, schema.map_or(&[], |s| &s.data)).ok()
}
