//! What a person types as the payload of a queue's or service's type.

use std::io::Read;

use outlive::msgpack;
use outlive::{Encoding, PayloadType};

use crate::exit::{Code, Failure};
use crate::topic::encode;
use crate::tree::Tree;

/// For people: `[f64]`, `robot/Goal`.
pub(crate) fn type_text(of: &PayloadType) -> String {
    crate::topic::type_text(of.name(), of.encoding())
}

/// The payload that `input` says: JSON, or the bytes themselves where the type is bytes.
pub(crate) fn payload(of: &PayloadType, input: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if of.encoding() == Encoding::Bytes {
        return Ok(input);
    }
    let text = String::from_utf8_lossy(&input);
    let usage = |why: String| Failure::new(Code::Usage, why);
    let wrong = |why: String| usage(format!("'{}' is no {}: {why}", text.trim(), type_text(of)));
    if of.encoding() == Encoding::MessagePack {
        let value: Tree = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        return Ok(msgpack::encode(&value)?);
    }
    let described = of.description().filter(|d| !d.is_opaque());
    let described = described.or_else(|| encode::primitive(of.name(), of.encoding(), of.size()));
    let Some(described) = described else {
        let message = format!(
            "nothing is known of the type {}: it has no description, so JSON cannot become one",
            of.name()
        );
        return Err(Failure::new(Code::Mismatch, message));
    };
    let value = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    encode::payload(&described, &value).map_err(wrong)
}

/// The argument, or all of standard input without one.
pub(crate) fn input(argument: Option<&String>) -> Result<Vec<u8>, Failure> {
    if let Some(value) = argument {
        return Ok(value.clone().into_bytes());
    }
    let mut all = Vec::new();
    std::io::stdin().read_to_end(&mut all).map_err(|e| Failure::io("read standard input", &e))?;
    Ok(all)
}
