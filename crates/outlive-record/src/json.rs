//! MessagePack as JSON that becomes the same MessagePack again, so that tools of others show it.
//!
//! | in MessagePack | in JSON |
//! |---|---|
//! | an integer; a float of 64 bits | `1`; `1.0`, `1e300` |
//! | a float of 32 bits | with a large E: `0.5E0` |
//! | bytes, up to 1024 | `{"outlive_hex": "00ff"}` |
//! | what is no map at the top | `{"outlive_value": ...}` |
//!
//! Nothing else has JSON: NaN, infinities, keys that are no text or occur twice, more than 16 KiB,
//! and bytes that [`msgpack::encode`] would write in another way.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::sync::OnceLock;

use outlive::{MsgPack, msgpack};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

use crate::ros2::Value;

/// Encodings of schemas and messages.
pub(crate) const SCHEMA_ENCODING: &str = "jsonschema";
pub(crate) const MESSAGE_ENCODING: &str = "json";

/// Larger messages are no structs that somebody reads field by field, but data.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;
const HEX_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 64;
const HEX: &str = "outlive_hex";
const VALUE: &str = "outlive_value";

/// How MessagePack of one topic becomes JSON.
#[derive(Clone, Debug, Default)]
pub(crate) struct Json {
    /// By the first message: nobody describes MessagePack.
    schema: OnceLock<String>,
}

impl Json {
    pub(crate) fn schema(&self) -> &[u8] {
        self.schema.get().map_or(b"{\"type\":\"object\"}", |schema| schema.as_bytes())
    }

    /// A payload as JSON, into `out`; `None` if it has none.
    pub(crate) fn encode(&self, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return None;
        }
        let value: Value<'_> = MsgPack::<()>::new(payload).decode_as().ok()?;
        if msgpack::encode(&value).ok()? != payload {
            return None;
        }
        let mut text = String::new();
        if let Value::Fields(_) = value {
            write(&value, DEPTH_MAX, &mut text)?;
        } else {
            let _ = write!(text, "{{\"{VALUE}\":");
            write(&value, DEPTH_MAX, &mut text)?;
            text.push('}');
        }
        self.schema.get_or_init(|| match value {
            Value::Fields(_) => like(&value).to_string(),
            _ => json!({"type": "object", "properties": {VALUE: like(&value)}}).to_string(),
        });
        out.clear();
        out.extend_from_slice(text.as_bytes());
        Some(())
    }
}

/// JSON as the payload that it was made of.
///
/// # Errors
/// What is wrong with its bytes, which may come from anywhere.
pub(crate) fn decode(data: &[u8]) -> Result<Vec<u8>, String> {
    let raw: &RawValue = serde_json::from_slice(data).map_err(|e| e.to_string())?;
    let value = match read(raw.get(), DEPTH_MAX)? {
        Value::Fields(mut fields) => match fields.as_slice() {
            [(name, _)] if name == VALUE => fields.pop().map_or(Value::Nothing, |(_, value)| value),
            _ => Value::Fields(fields),
        },
        value => value,
    };
    msgpack::encode(&value).map_err(|e| e.to_string())
}

fn write(value: &Value<'_>, depth: usize, out: &mut String) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let _ = match value {
        Value::Nothing => write!(out, "null"),
        Value::Bool(v) => write!(out, "{v}"),
        Value::Unsigned(v) => write!(out, "{v}"),
        Value::Signed(v) => write!(out, "{v}"),
        Value::F32(v) if v.is_finite() => {
            let text = format!("{v:?}").replace('e', "E");
            write!(out, "{text}{}", if text.contains('E') { "" } else { "E0" })
        }
        Value::F64(v) if v.is_finite() => write!(out, "{v:?}"),
        Value::Text(text) => return write_text(text, out),
        Value::Bytes(bytes) if bytes.len() <= HEX_BYTES_MAX => {
            let hex = bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
            write!(out, "{{\"{HEX}\":\"{hex}\"}}")
        }
        Value::List(list) => {
            out.push('[');
            for (i, item) in list.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write(item, depth, out)?;
            }
            write!(out, "]")
        }
        Value::Fields(fields) => {
            let mut names = HashSet::new();
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                if [HEX, VALUE].contains(&name.as_ref()) || !names.insert(name.as_ref()) {
                    return None;
                }
                out.push_str(if i > 0 { "," } else { "" });
                write_text(name, out)?;
                out.push(':');
                write(value, depth, out)?;
            }
            write!(out, "}}")
        }
        Value::F32(_) | Value::F64(_) | Value::Bytes(_) | Value::Numbers(..) => return None,
    };
    Some(())
}

fn write_text(text: &str, out: &mut String) -> Option<()> {
    out.push_str(&serde_json::to_string(text).ok()?);
    Some(())
}

fn read(text: &str, depth: usize) -> Result<Value<'static>, String> {
    let depth = depth.checked_sub(1).ok_or("it is nested too deep")?;
    let wrong = |e: serde_json::Error| e.to_string();
    let number = || format!("the number {text} is out of range");
    Ok(match text.as_bytes().first() {
        Some(b'n') => Value::Nothing,
        Some(b't' | b'f') => Value::Bool(text == "true"),
        Some(b'"') => Value::Text(serde_json::from_str::<String>(text).map_err(wrong)?.into()),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
            Value::List(items.iter().map(|item| read(item.get(), depth)).collect::<Result<_, _>>()?)
        }
        Some(b'{') => {
            let Entries(entries) = serde_json::from_str(text).map_err(wrong)?;
            match entries.as_slice() {
                [(name, hex)] if name == HEX => {
                    let hex: String = serde_json::from_str(hex.get()).map_err(wrong)?;
                    Value::Bytes(bytes(&hex).ok_or("its bytes are not hexadecimal")?.into())
                }
                _ => {
                    let entry = |(name, value): (String, &RawValue)| {
                        Ok((name.into(), read(value.get(), depth)?))
                    };
                    Value::Fields(entries.into_iter().map(entry).collect::<Result<_, String>>()?)
                }
            }
        }
        _ if text.contains('E') => Value::F32(text.parse().map_err(|_| number())?),
        _ if text.contains(['.', 'e']) => Value::F64(text.parse().map_err(|_| number())?),
        Some(b'-') => Value::Signed(text.parse().map_err(|_| number())?),
        _ => Value::Unsigned(text.parse().map_err(|_| number())?),
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

/// A map with its keys in their order.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = from.next_entry()? {
                    all.push(entry);
                }
                Ok(all)
            }
        }
        from.deserialize_map(All).map(Entries)
    }
}

/// The JSON Schema of values like this one.
fn like(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Nothing | Value::Numbers(..) => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Unsigned(_) | Value::Signed(_) => json!({"type": "integer"}),
        Value::F32(_) | Value::F64(_) => json!({"type": "number"}),
        Value::Text(_) => json!({"type": "string"}),
        Value::Bytes(_) => {
            json!({"type": "object", "properties": {HEX: {"type": "string"}}})
        }
        Value::List(items) => {
            json!({"type": "array", "items": items.first().map_or(json!({}), like)})
        }
        Value::Fields(fields) => {
            let properties = fields.iter().map(|(name, value)| (name.to_string(), like(value)));
            let properties: serde_json::Map<_, _> = properties.collect();
            json!({"type": "object", "properties": properties})
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::Rng;

    use super::*;

    fn fields(of: Vec<(&'static str, Value<'static>)>) -> Value<'static> {
        Value::Fields(of.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn json(payload: &[u8]) -> Option<String> {
        let (json, mut out) = (Json::default(), Vec::new());
        json.encode(payload, &mut out)?;
        assert_eq!(decode(&out).unwrap(), payload, "{}", String::from_utf8_lossy(&out));
        Some(String::from_utf8(out).unwrap())
    }

    fn of(value: &Value<'_>) -> Option<String> {
        json(&msgpack::encode(value).unwrap())
    }

    #[test]
    fn a_value_reads_as_json_and_comes_back_with_the_width_of_its_numbers() {
        let list = vec![Value::Signed(-1), Value::Unsigned(u64::MAX), Value::F64(1.0)];
        let value = fields(vec![
            ("name", Value::Text("a \"b\"\n\u{1}ä".into())),
            ("list", Value::List(list)),
            ("half", Value::F32(0.5)),
            ("large", Value::F32(1e30)),
            ("huge", Value::F64(1e300)),
            ("raw", Value::Bytes(vec![0, 255].into())),
            ("none", Value::Nothing),
            ("on", Value::Bool(true)),
            ("inner", fields(vec![])),
        ]);
        let text =
            r#"{"name":"a \"b\"\n\u0001ä","list":[-1,18446744073709551615,1.0],"half":0.5E0,"#;
        let rest = r#""large":1E30,"huge":1e300,"raw":{"outlive_hex":"00ff"},"none":null,"#;
        let whole = format!(r#"{text}{rest}"on":true,"inner":{{}}}}"#);
        assert_eq!(of(&value), Some(whole));
        assert_eq!(of(&Value::Text("x".into())), Some(r#"{"outlive_value":"x"}"#.into()));
        assert_eq!(of(&Value::F32(-0.0)), Some(r#"{"outlive_value":-0.0E0}"#.into()));
        let json = Json::default();
        json.encode(&msgpack::encode(&fields(vec![("x", Value::F32(1.0))])).unwrap(), &mut vec![]);
        let schema = r#"{"properties":{"x":{"type":"number"}},"type":"object"}"#;
        assert_eq!(json.schema(), schema.as_bytes());
        // However large, an integer is a number of JSON, as the schema says.
        let (json, mut out) = (Json::default(), Vec::new());
        let large = fields(vec![("id", Value::Unsigned(u64::MAX))]);
        json.encode(&msgpack::encode(&large).unwrap(), &mut out);
        assert_eq!(out, br#"{"id":18446744073709551615}"#);
        let schema = r#"{"properties":{"id":{"type":"integer"}},"type":"object"}"#;
        assert_eq!(json.schema(), schema.as_bytes());
    }

    #[test]
    fn what_json_cannot_say_has_none() {
        assert_eq!(of(&Value::F64(f64::NAN)), None);
        assert_eq!(of(&fields(vec![("a", Value::Nothing), ("a", Value::Nothing)])), None);
        for name in [HEX, VALUE] {
            assert_eq!(of(&fields(vec![(name, Value::Text("00".into()))])), None, "{name}");
        }
        assert_eq!(of(&fields(vec![(VALUE, fields(vec![]))])), None);
        assert_eq!(of(&Value::Bytes(vec![0; 1025].into())), None);
        assert_eq!(of(&Value::Text("x".repeat(17_000).into())), None);
        // A 1 in two bytes; a key that is a number; an extension; half a value; two.
        for payload in [&[0xcc, 1][..], &[0x81, 1, 1], &[0xd4, 1, 1], &[0x91], &[1, 1], &[]] {
            assert_eq!(json(payload), None, "{payload:?}");
        }
        let deep = (0..70).fold(Value::Nothing, |inner, _| Value::List(vec![inner]));
        assert_eq!(of(&deep), None);
        let text = "[".repeat(70) + &"]".repeat(70);
        assert!(decode(text.as_bytes()).is_err() && decode(b"{").is_err());
        assert!(decode(br#"{"outlive_hex":"0"}"#).is_err() && decode(b"1e999E").is_err());
    }

    fn any(rng: &mut Rng, depth: usize) -> Value<'static> {
        let n = rng.next_u64();
        let some = |rng: &mut Rng| (0..rng.next_u64() % 4).map(|_| any(rng, depth - 1)).collect();
        match n % 10 {
            0 => Value::Nothing,
            1 => Value::Bool(n & 16 > 0),
            2 => Value::Unsigned(n >> (n % 64)),
            3 => Value::Signed(-((n >> 1 >> (n % 63)) as i64)),
            4 => Value::F32(f32::from_bits(n as u32)),
            5 => Value::F64(f64::from_bits(n)),
            6 => Value::Text(String::from_utf8_lossy(&n.to_le_bytes()).into_owned().into()),
            7 => Value::Bytes(n.to_le_bytes()[..(n % 9) as usize].to_vec().into()),
            _ if depth == 0 => Value::Nothing,
            8 => Value::List(some(rng)),
            _ => {
                let values: Vec<_> = some(rng);
                let names = (0..).map(|i| format!("k{i}").into());
                Value::Fields(names.zip(values).collect())
            }
        }
    }

    #[test]
    fn every_payload_comes_back_or_has_no_json() {
        let mut rng = Rng::new(3);
        let made = (0..20_000).filter(|_| of(&any(&mut rng, 4)).is_some()).count();
        assert!(made > 15_000, "{made}");
    }
}
