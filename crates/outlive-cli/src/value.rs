//! What a person types as the payload of a queue's or service's type.

use std::io::Read;
use std::ops::Range;

use outlive::describe::{FieldType, Kind, Scalar};
use outlive::msgpack;
use outlive::{Encoding, PayloadType, TypeDescription};
use outlive_record::decode::{Foreign, Tree};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::exit::{Code, Failure};
use crate::topic::encode;

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
        return Ok(msgpack::encode(&tree(&text)?)?);
    }
    let described = described.ok_or_else(|| undescribed(of.name()))?;
    let value = described_value(&text, &described)?;
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
fn takes_text(of: &TypeDescription) -> bool {
    match of.root().kind() {
        Kind::Scalar(Scalar::Char) => true,
        // nan, inf; a name
        Kind::Scalar(Scalar::F32 | Scalar::F64) | Kind::Enum(_) => of.root().dims().is_empty(),
        _ => false,
    }
}

/// What a person typed for a described type. JSON has 64 bits for an integer: longer ones go on as
/// text where the type has longer ones.
pub(crate) fn described_value(text: &str, of: &TypeDescription) -> Result<Value, Failure> {
    let mut quoted = text.to_owned();
    if has_wide(of.root()) {
        for place in wide_integers(text).into_iter().rev() {
            quoted.insert(place.end, '"');
            quoted.insert(place.start, '"');
        }
    }
    json(&quoted, takes_text(of))
}

/// What a person typed for MessagePack, which has no integer of more than 64 bits.
pub(crate) fn tree(text: &str) -> Result<Tree, Failure> {
    let tree = json(text, true)?;
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    if let Some(place) = wide_integers(text).first().filter(|_| is_json) {
        let number = &text[place.clone()];
        let message = format!(
            "{number} does not fit 64 bits: write it as text, \"{number}\", or as a float, \
             {number}.0"
        );
        return Err(Failure::new(Code::Usage, message));
    }
    Ok(tree)
}

fn has_wide(of: &FieldType) -> bool {
    let is_wide = matches!(of.kind(), Kind::Scalar(Scalar::U128 | Scalar::I128));
    is_wide || of.fields().iter().any(|field| has_wide(field.ty()))
}

/// Where integers of more than 64 bits are in a text of JSON.
fn wide_integers(text: &str) -> Vec<Range<usize>> {
    let (bytes, mut at, mut found) = (text.as_bytes(), 0, Vec::new());
    while at < bytes.len() {
        let begin = at;
        at += 1;
        match bytes[begin] {
            b'"' => {
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let ends = |b: &u8| !b.is_ascii_digit() && !b"+-.eE".contains(b);
                at = bytes[at..].iter().position(ends).map_or(bytes.len(), |n| at + n);
                let number = &text[begin..at];
                let digits = number.strip_prefix('-').unwrap_or(number);
                let is_whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                if is_whole && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    found.push(begin..at);
                }
            }
            _ => {}
        }
    }
    found
}

/// What a person typed, as JSON; where text is a value it needs no quotes.
fn json<T: DeserializeOwned>(text: &str, takes_text: bool) -> Result<T, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// They were refused as what they are not, or became floats without a word.
    #[test]
    fn integers_of_more_than_64_bits_are_kept_or_refused() {
        let of = TypeDescription::struct_of(32, 16)
            .field("a", 0, TypeDescription::scalar(Scalar::I128))
            .field("b", 16, TypeDescription::scalar(Scalar::F64));
        let min = i128::MIN.to_string();
        let text = format!("{{\"a\": {min}, \"b\": -1e30}}");
        let payload = encode::payload(&of, &described_value(&text, &of).unwrap()).unwrap();
        assert_eq!(payload[..16], i128::MIN.to_le_bytes());
        let of = TypeDescription::scalar(Scalar::U128);
        let value = described_value(&u128::MAX.to_string(), &of).unwrap();
        assert_eq!(encode::payload(&of, &value).unwrap(), u128::MAX.to_le_bytes());
        // A float may be as long as that.
        let of = TypeDescription::scalar(Scalar::F64);
        let value = described_value(&"1".repeat(30), &of).unwrap();
        assert!(encode::payload(&of, &value).is_ok());

        let wrong = format!("[1, {{\"a\\\"\": {}}}]", "9".repeat(30));
        let why = tree(&wrong).unwrap_err().to_string();
        assert!(why.starts_with(&"9".repeat(30)) && why.contains("write it as text"), "{why}");
        for right in ["18446744073709551615", "-9223372036854775808", "1e300", "a text"] {
            assert!(tree(right).is_ok(), "{right}");
        }
        for text in [format!("\"{min}\""), format!("no JSON {min}"), format!("{min}.5")] {
            assert!(tree(&text).is_ok(), "{text}");
        }
    }
}
