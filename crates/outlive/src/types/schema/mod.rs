//! Schemas of encodings that others define: what is checked when a port opens, what is stored, and
//! which two are the same.
//!
//! | encoding | schema | stored | the same if |
//! |---|---|---|---|
//! | `cdr` | definition of ROS (`ros2msg`) | as given | the lines are, without comments |
//! | `protobuf` | `FileDescriptorSet` | needed files, no comments | the fields are |
//! | `flatbuffer` | binary schema (`.bfbs`) | as given | the bytes are |
//! | `json` | JSON Schema | without white space | the text is |
//! | `arrow` | schema message of the IPC format | as given | the bytes are |
//!
//! Everywhere an empty schema says nothing and agrees with any.

mod protobuf;
mod text;

use super::describe;
use super::encoding::Encoding;

/// Longest schema and longest description of a type, bytes.
pub(crate) const SCHEMA_BYTES_MAX: usize = 65536;

/// What one side has: encoding, name of the type, schema.
pub(crate) type Of<'a> = (Encoding, &'a str, &'a [u8]);

/// The schema as topics store it, or why it is not one of a type of that name.
pub(crate) fn stored((encoding, name, schema): Of<'_>) -> Result<Vec<u8>, String> {
    let stored = match encoding {
        _ if schema.is_empty() => Ok(Vec::new()),
        Encoding::Cdr => text::utf8(schema).map(|text| text.as_bytes().to_vec()),
        Encoding::Protobuf => protobuf::needed(name, schema),
        Encoding::Json => text::compact(schema),
        Encoding::FlatBuffer if schema.get(4..8) != Some(b"BFBS") => {
            Err("it is not a binary schema: make one with 'flatc --binary --schema'".into())
        }
        _ => Ok(schema.to_vec()),
    }
    .map_err(|why| format!("its {} schema cannot be used: {why}", encoding.as_str()))?;
    if stored.len() > SCHEMA_BYTES_MAX {
        return Err(format!(
            "its schema has {} bytes, a topic holds {SCHEMA_BYTES_MAX}: leave out comments and \
             types that the message does not need",
            stored.len()
        ));
    }
    Ok(stored)
}

/// What differs between the schema that a topic has and ours, one line each; empty when they
/// agree or one side has none. Of different encodings and names nothing is compared: that they
/// differ is reported already.
pub(crate) fn differences(topic: Of<'_>, ours: Of<'_>) -> Vec<String> {
    let (encoding, name, has) = topic;
    let want = ours.2;
    if !encoding.is_foreign() {
        return describe::differences(has, want);
    }
    if (encoding, name) != (ours.0, ours.1) || has.is_empty() || want.is_empty() || has == want {
        return Vec::new();
    }
    match encoding {
        Encoding::Protobuf => protobuf::differences(name, has, want),
        Encoding::Json => text::first_difference(has, want),
        Encoding::Cdr => text::differing_lines(has, want),
        _ => vec![format!(
            "its schema has {} bytes, this program has another of {}",
            has.len(),
            want.len()
        )],
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
