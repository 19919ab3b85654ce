//! Payloads that ROS has no message for, as JSON: described types, MessagePack, third-party
//! encodings, and bytes.
//!
//! | here | JSON |
//! |---|---|
//! | numbers | numbers; null for NaN and infinity |
//! | the same beyond 2^53 on either side, for viewers | text: JavaScript would round them |
//! | `u128`, `i128` | text |
//! | bytes that nobody described, long arrays of `u8` | base64, as Foxglove has bytes in JSON |
//! | what is no struct at the top | `{"value": ...}` |
//! | third-party encodings beyond 256 KiB | none: a bit may become a value of 30 bytes |
//! | bytes of unknown type | `{"bytes": their number, "data": the first 64 KiB}` |

use data_encoding::BASE64;
use outlive::MsgPack;
use outlive::describe::{FieldType, Kind, Scalar, Value as Part};
use outlive::{Encoding, PayloadType, TypeDescription};
use outlive_record::decode::{Foreign, Tree};
use serde_json::{Map, Number, Value, json};

/// Arrays of `u8` with more elements are bytes.
const NUMBERS_MAX: usize = 32;
/// Integers up to here are the same as `f64`, which is what JavaScript makes of numbers.
const EXACT_MAX: u64 = 1 << 53;
/// Shown of what nobody knows.
const UNKNOWN_BYTES: usize = 64 << 10;
/// Larger payloads in third-party encodings have no JSON.
const FOREIGN_BYTES: usize = 256 << 10;

/// How payloads of one topic become JSON.
#[derive(Clone, Debug)]
pub(crate) enum Json {
    Described(Box<TypeDescription>),
    MessagePack,
    Foreign(Box<Foreign>),
    Unknown,
}

impl Json {
    pub(crate) fn of(of: &PayloadType) -> Self {
        match of.description() {
            _ if of.encoding() == Encoding::MessagePack => Self::MessagePack,
            _ if of.encoding().is_foreign() => {
                Foreign::of(of).map_or(Self::Unknown, |of| Self::Foreign(Box::new(of)))
            }
            Some(described) if !described.is_opaque() => Self::Described(Box::new(described)),
            _ => Self::Unknown,
        }
    }

    /// A payload as an object.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn value(&self, payload: &[u8]) -> Result<Value, String> {
        let value = match self {
            Self::Described(described) => {
                part(&described.decode(payload).ok_or("its bytes do not match its type")?)
            }
            Self::MessagePack => {
                let decoded = MsgPack::<Tree>::new(payload).decode();
                tree(&decoded.map_err(|e| e.to_string())?)
            }
            Self::Foreign(_) if payload.len() > FOREIGN_BYTES => {
                let most = FOREIGN_BYTES >> 10;
                return Err(format!(
                    "{} bytes are too many for JSON, {most} KiB at most",
                    payload.len()
                ));
            }
            Self::Foreign(of) => tree(&of.tree(payload)?),
            Self::Unknown => {
                let shown = &payload[..payload.len().min(UNKNOWN_BYTES)];
                json!({"bytes": payload.len(), "data": BASE64.encode(shown)})
            }
        };
        Ok(if value.is_object() { value } else { json!({"value": value}) })
    }

    /// Whether only messages say what is in them.
    pub(crate) fn needs_example(&self) -> bool {
        matches!(self, Self::MessagePack | Self::Foreign(_))
    }

    /// The schema of all payloads; that of `example` where nothing is known before.
    pub(crate) fn schema(&self, title: &str, example: Option<&Value>) -> Value {
        let mut schema = match self {
            Self::Described(described) => {
                let root = described.root();
                let schema = field(root, root.is_any_length(), root.dims());
                match schema["type"] == "object" {
                    true => schema,
                    false => json!({"type": "object", "properties": {"value": schema}}),
                }
            }
            Self::MessagePack | Self::Foreign(_) => {
                example.map_or_else(|| json!({"type": "object"}), like)
            }
            Self::Unknown => {
                let properties = json!({"bytes": {"type": "integer"}, "data": bytes()});
                json!({"type": "object", "properties": properties})
            }
        };
        schema["title"] = title.into();
        schema
    }
}

fn bytes() -> Value {
    json!({"type": "string", "contentEncoding": "base64"})
}

/// Whether an array of `u8` is shown as bytes.
fn is_bytes(ty: &FieldType, any_length: bool, dims: &[usize]) -> bool {
    let many = any_length || dims.iter().product::<usize>() > NUMBERS_MAX;
    matches!(ty.kind(), Kind::Scalar(Scalar::U8)) && many
}

/// The schema of a field of which the dimensions `dims` are left. One type for each, although large
/// integers come as text (`unrounded`): of a list of types Foxglove says that it is unsupported.
fn field(ty: &FieldType, any_length: bool, dims: &[usize]) -> Value {
    let array = |items: Value| json!({"type": "array", "items": items});
    match (dims, ty.kind()) {
        _ if is_bytes(ty, any_length, dims) => bytes(),
        _ if any_length => array(field(ty, false, dims)),
        ([_], Kind::Scalar(Scalar::Char)) => json!({"type": "string"}),
        ([_, inner @ ..], _) => array(field(ty, false, inner)),
        ([], Kind::Scalar(scalar)) => {
            let name = match scalar {
                Scalar::Bool => "boolean",
                Scalar::Char | Scalar::Char32 | Scalar::U128 | Scalar::I128 => "string",
                Scalar::F32 | Scalar::F64 => "number",
                _ => "integer",
            };
            json!({"type": name})
        }
        ([], Kind::Enum(_)) => json!({"type": "string"}),
        ([], Kind::Struct { fields, .. }) => {
            let property = |f: &outlive::describe::Field| {
                let ty = f.ty();
                (f.name().to_owned(), field(ty, ty.is_any_length(), ty.dims()))
            };
            let properties: Map<_, _> = fields.iter().map(property).collect();
            json!({"type": "object", "properties": properties})
        }
        ([], _) => bytes(),
    }
}

/// The schema of values like this one.
fn like(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        // The next one may have a fraction.
        Value::Number(_) => json!({"type": "number"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => {
            let some = items.iter().find(|item| !item.is_null());
            json!({"type": "array", "items": some.map_or_else(|| json!({}), like)})
        }
        Value::Object(fields) => {
            let properties: Map<_, _> = fields.iter().map(|(k, v)| (k.clone(), like(v))).collect();
            json!({"type": "object", "properties": properties})
        }
    }
}

fn part(of: &Part<'_>) -> Value {
    match of {
        Part::Bool(v) => (*v).into(),
        Part::Unsigned(v) => u64::try_from(*v).map_or_else(|_| v.to_string().into(), Value::from),
        Part::Signed(v) => i64::try_from(*v).map_or_else(|_| v.to_string().into(), Value::from),
        Part::F32(v) => single(*v),
        Part::F64(v) => (*v).into(),
        Part::Text(v) => v.as_ref().into(),
        Part::Enum { name: Some(name), .. } => (*name).into(),
        Part::Enum { number, .. } => number.to_string().into(),
        Part::Bytes(v) => BASE64.encode(v).into(),
        Part::Array(array) => match array.scalar() {
            Some(Scalar::U8) if array.bytes().len() > NUMBERS_MAX => {
                BASE64.encode(array.bytes()).into()
            }
            _ => array.iter().map(|v| part(&v)).collect(),
        },
        Part::Struct(fields) => {
            Value::Object(fields.iter().map(|(k, v)| (k.to_owned(), part(&v))).collect())
        }
        _ => Value::Null,
    }
}

/// The same with integers that JavaScript would round as text.
pub(crate) fn unrounded(value: Value) -> Value {
    match value {
        Value::Number(n) => {
            let magnitude = n.as_i64().map(i64::unsigned_abs).or(n.as_u64());
            match magnitude.is_some_and(|magnitude| magnitude > EXACT_MAX) {
                true => n.to_string().into(),
                false => n.into(),
            }
        }
        Value::Array(items) => items.into_iter().map(unrounded).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, unrounded(v))).collect(),
        other => other,
    }
}

/// The shortest text that reads back as it: 0.1, not 0.10000000149.
fn single(v: f32) -> Value {
    v.to_string().parse::<f64>().ok().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
}

/// JSON has neither bytes nor a key twice: the last one holds.
fn tree(of: &Tree) -> Value {
    match of {
        Tree::Bool(v) => (*v).into(),
        Tree::Unsigned(v) => u64::try_from(*v).map_or_else(|_| v.to_string().into(), Value::from),
        Tree::Signed(v) => i64::try_from(*v).map_or_else(|_| v.to_string().into(), Value::from),
        Tree::F32(v) => single(*v),
        Tree::F64(v) => (*v).into(),
        Tree::Text(v) | Tree::Name(v) => v.as_str().into(),
        Tree::Bytes(v) => BASE64.encode(v.shown()).into(),
        Tree::List(v) => v.shown().iter().map(tree).collect(),
        Tree::Fields(v) => Value::Object(v.iter().map(|(k, v)| (k.clone(), tree(v))).collect()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(of: Scalar) -> TypeDescription {
        TypeDescription::scalar(of)
    }

    #[test]
    fn a_described_payload_fits_its_schema() {
        let cell = TypeDescription::struct_of(4, 4).field("level", 0, scalar(Scalar::F32));
        let described = TypeDescription::struct_of(104, 8)
            .field("stamp", 0, scalar(Scalar::U64))
            .field("ok", 8, scalar(Scalar::Bool))
            .field("name", 9, scalar(Scalar::Char).array(7))
            .field("flags", 16, scalar(Scalar::U8).array(4))
            .field("blob", 20, scalar(Scalar::U8).array(40))
            .field("cells", 60, cell.array(2))
            .field("matrix", 72, scalar(Scalar::F64).array(2).array(2))
            .field("tail", 104, scalar(Scalar::I16).slice());
        let json = Json::Described(Box::new(described));
        let mut bytes = vec![0; 106];
        bytes[0] = 7;
        bytes[8] = 1;
        bytes[9..12].copy_from_slice(b"map");
        bytes[60..64].copy_from_slice(&0.1f32.to_le_bytes());
        bytes[72..80].copy_from_slice(&f64::NAN.to_le_bytes());
        bytes[104] = 3;
        let value = json.value(&bytes).unwrap();
        assert_eq!(value["stamp"], 7);
        assert_eq!((&value["ok"], &value["name"]), (&true.into(), &"map".into()));
        assert_eq!(value["flags"], json!([0, 0, 0, 0]));
        assert_eq!(value["blob"], BASE64.encode(&[0; 40]));
        assert_eq!(value["cells"], json!([{"level": 0.1}, {"level": 0.0}]));
        assert_eq!(value["matrix"], json!([[null, 0.0], [0.0, 0.0]]));
        assert_eq!(value["tail"], json!([3]));
        let schema = json.schema("example/All", None);
        let of = |name: &str| schema["properties"][name].clone();
        assert_eq!((&schema["type"], &schema["title"]), (&"object".into(), &"example/All".into()));
        assert_eq!(of("stamp"), json!({"type": "integer"}));
        assert_eq!(of("name"), json!({"type": "string"}));
        assert_eq!(of("flags"), json!({"type": "array", "items": {"type": "integer"}}));
        assert_eq!(of("blob"), bytes_schema());
        assert_eq!(of("matrix")["items"]["items"], json!({"type": "number"}));
        assert_eq!(of("cells")["items"]["properties"]["level"], json!({"type": "number"}));
        assert_eq!(of("tail"), json!({"type": "array", "items": {"type": "integer"}}));
        assert!(json.value(&bytes[..50]).unwrap_err().contains("do not match"));
    }

    fn bytes_schema() -> Value {
        super::bytes()
    }

    #[test]
    fn what_is_no_struct_and_what_nobody_knows_is_an_object_all_the_same() {
        let pairs = PayloadType::slice("example/Pairs", &scalar(Scalar::U128).array(2)).unwrap();
        let json = Json::of(&pairs);
        let schema = json.schema("p", None);
        assert_eq!(schema["properties"]["value"]["items"]["items"], json!({"type": "string"}));
        let value = json.value(&u128::MAX.to_le_bytes().repeat(2)).unwrap();
        assert_eq!(value, json!({"value": [[u128::MAX.to_string(), u128::MAX.to_string()]]}));
        let value = Json::Unknown.value(&[1; UNKNOWN_BYTES + 1]).unwrap();
        assert_eq!(value["bytes"], UNKNOWN_BYTES + 1);
        assert_eq!(value["data"].as_str().unwrap().len(), UNKNOWN_BYTES.div_ceil(3) * 4);
    }

    #[test]
    fn integers_that_viewers_would_round_are_text() {
        let pair = scalar(Scalar::U64).array(2);
        let json = Json::of(&PayloadType::slice("example/Ids", &pair).unwrap());
        let bytes: Vec<u8> =
            [1u64 << 53, (1 << 53) + 1].into_iter().flat_map(u64::to_le_bytes).collect();
        let value = unrounded(json.value(&bytes).unwrap());
        assert_eq!(value, json!({"value": [[1u64 << 53, "9007199254740993"]]}));
        // Of one type all the same: Foxglove shows no topic whose schema has a list of types.
        let schema = json.schema("example/Ids", None);
        let numbers = &schema["properties"]["value"]["items"]["items"];
        assert_eq!(*numbers, json!({"type": "integer"}));
        let packed = Json::of(&PayloadType::msgpack("example/Ids").unwrap());
        let least = [&b"\xd3"[..], &i64::MIN.to_be_bytes()].concat();
        let value = packed.value(&least).unwrap();
        assert_eq!(value, json!({"value": i64::MIN}));
        assert_eq!(unrounded(value), json!({"value": i64::MIN.to_string()}));
        assert_eq!(unrounded(json!([1e300, -1])), json!([1e300, -1]));
    }

    #[test]
    fn messagepack_becomes_json_and_its_schema_is_that_of_an_example() {
        let json = Json::of(&PayloadType::msgpack("example/Plan").unwrap());
        // {"a": [1, -2, 0.5], 3: nil, "b": bytes 01 02}
        let packed = b"\x83\xa1a\x93\x01\xfe\xca\x3f\x00\x00\x00\x03\xc0\xa1b\xc4\x02\x01\x02";
        let value = json.value(packed).unwrap();
        assert_eq!(value, json!({"a": [1, -2, 0.5], "3": null, "b": "AQI="}));
        let schema = json.schema("example/Plan", Some(&value));
        let numbers = json!({"type": "array", "items": {"type": "number"}});
        assert_eq!(schema["properties"]["a"], numbers);
        assert_eq!(json.value(b"\x07").unwrap(), json!({"value": 7}));
        let deep = [&[0x91; 100_000][..], b"\x07"].concat();
        assert!(json.value(&deep).is_err(), "nobody's stack is that deep");
        assert!(json.value(b"\x93\x01").is_err());
        assert_eq!(json.schema("x", None), json!({"type": "object", "title": "x"}));
    }

    /// They were the bytes in base64.
    #[test]
    fn third_party_encodings_become_json() {
        let made = |file: &str| {
            let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/outlive-record/tests");
            std::fs::read(format!("{dir}/foreign/{file}")).unwrap()
        };
        let of = |encoding, name: &str, schema: &[u8]| {
            Json::of(&PayloadType::encoded(encoding, name, schema).unwrap())
        };
        let table = of(Encoding::Arrow, "table", b"");
        let value = table.value(&made("table.arrow")).unwrap();
        assert!(value["x"].as_array().is_some_and(|x| x[0].is_f64()), "{value}");
        let schema = table.schema("table", Some(&value));
        assert_eq!(schema["properties"]["x"]["items"], json!({"type": "number"}));
        assert!(table.value(&made("table.arrow")[..100]).is_err());
        let plan = of(Encoding::FlatBuffer, "robot.Plan", &made("plan.bfbs"));
        assert!(plan.value(&made("plan.bin")).unwrap()["goal"].is_string());
        let goal = of(Encoding::Json, "robot/Goal", b"");
        assert_eq!(goal.value(br#"{"x": [1]}"#).unwrap(), json!({"x": [1]}));
        let large = [b"\"", &[b'x'; FOREIGN_BYTES][..], b"\""].concat();
        assert!(goal.value(&large).unwrap_err().contains("too many"));
        let cdr = of(Encoding::Cdr, "my/msg/Goal", b"float64 x\n");
        let bytes = [&[0, 1, 0, 0][..], &1.5f64.to_le_bytes()].concat();
        assert_eq!(cdr.value(&bytes).unwrap(), json!({"x": 1.5}));
        // Nobody can read it without its schema.
        assert!(of(Encoding::Protobuf, "robot.Plan", b"").value(b"\x0a\0").unwrap()["bytes"] == 2);
    }
}
