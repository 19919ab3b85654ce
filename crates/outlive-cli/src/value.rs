//! What a person types as the payload of a queue's or service's type.

use std::io::Read;

use outlive::describe::{Kind, Scalar};
use outlive::msgpack;
use outlive::{Encoding, PayloadType, TypeDescription};
use serde::de::DeserializeOwned;

use crate::exit::{Code, Failure};
use crate::topic::encode;
use crate::topic::foreign::Foreign;
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
    if of.encoding().is_foreign() {
        return foreign(of)?.payload(&text).map_err(|why| misfit(&text, of, &why));
    }
    let described = description(of);
    if of.encoding() == Encoding::MessagePack {
        return Ok(msgpack::encode(&json::<Tree>(&text, true)?)?);
    }
    let described = described.ok_or_else(|| undescribed(of.name()))?;
    let value = json(&text, takes_text(&described))?;
    encode::payload(&described, &value).map_err(|why| misfit(&text, of, &why))
}

fn misfit(text: &str, of: &PayloadType, why: &str) -> Failure {
    let message = format!("'{}' is not of type {}: {why}", text.trim(), type_text(of));
    Failure::new(Code::Usage, message)
}

/// How JSON becomes a payload in a third-party encoding.
pub(crate) fn foreign(of: &PayloadType) -> Result<Foreign, Failure> {
    Foreign::of(of).map_err(|why| {
        let message = format!("JSON cannot become {}: {why}", type_text(of));
        Failure::new(Code::Mismatch, message)
    })
}

/// What payloads of the type look like; `None` for MessagePack, and where nobody described them.
pub(crate) fn description(of: &PayloadType) -> Option<TypeDescription> {
    if of.encoding() == Encoding::MessagePack {
        return None;
    }
    let described = of.description().filter(|d| !d.is_opaque());
    described.or_else(|| encode::primitive(of.name(), of.encoding(), of.size()))
}

pub(crate) fn undescribed(type_name: &str) -> Failure {
    let message = format!(
        "type {type_name} has no description, so JSON cannot become one: \
         #[outlive::message] above the type describes it"
    );
    Failure::new(Code::Mismatch, message)
}

/// Whether bare text can be a value of the type.
pub(crate) fn takes_text(of: &TypeDescription) -> bool {
    match of.root().kind() {
        Kind::Scalar(Scalar::Char) => true,
        // nan, inf; a name
        Kind::Scalar(Scalar::F32 | Scalar::F64) | Kind::Enum(_) => of.root().dims().is_empty(),
        _ => false,
    }
}

/// What a person typed, as JSON; where text is a value it needs no quotes.
pub(crate) fn json<T: DeserializeOwned>(text: &str, takes_text: bool) -> Result<T, Failure> {
    let text = text.trim();
    let bare = takes_text && !text.starts_with(['{', '[', '"']);
    serde_json::from_str(text)
        .or_else(|e| if bare { serde_json::from_value(text.into()) } else { Err(e) })
        .map_err(|e| Failure::new(Code::Usage, format!("'{text}' is not JSON: {e}")))
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
