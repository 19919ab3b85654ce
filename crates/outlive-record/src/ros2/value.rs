//! What a message of ROS consists of, between CDR, MessagePack and the types of outlive.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};

use super::base::Base;

/// A value with all that is below it; large arrays are borrowed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Nothing,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Little-endian scalars without gaps.
    Numbers(Base, Cow<'a, [u8]>),
    List(Vec<Value<'a>>),
    Fields(Vec<(Cow<'a, str>, Value<'a>)>),
}

/// Fields by their names.
pub(crate) fn fields<'a, const N: usize>(of: [(&'static str, Value<'a>); N]) -> Value<'a> {
    Value::Fields(of.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

impl<'a> Value<'a> {
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn bytes(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes.into())
    }

    pub(crate) fn f64s(of: &[f64]) -> Self {
        Self::List(of.iter().map(|v| Self::F64(*v)).collect())
    }

    /// The field `name`.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Fields(fields) = self else { return None };
        fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// As a number, however it is written.
    pub(crate) fn number(&self) -> Option<f64> {
        Some(match self {
            Self::Bool(v) => f64::from(u8::from(*v)),
            Self::Unsigned(v) => *v as f64,
            Self::Signed(v) => *v as f64,
            Self::F32(v) => f64::from(*v),
            Self::F64(v) => *v,
            _ => return None,
        })
    }

    /// As a whole number.
    pub(crate) fn whole(&self) -> Option<i128> {
        Some(match self {
            Self::Bool(v) => i128::from(*v),
            Self::Unsigned(v) => i128::from(*v),
            Self::Signed(v) => i128::from(*v),
            _ => return None,
        })
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    /// The elements of an array; of anything else none.
    pub(crate) fn items(&self) -> Vec<Cow<'_, Value<'a>>> {
        match self {
            Self::List(list) => list.iter().map(Cow::Borrowed).collect(),
            Self::Numbers(base, bytes) => {
                bytes.chunks_exact(base.size()).map(|b| Cow::Owned(base.read(b))).collect()
            }
            Self::Bytes(bytes) => {
                bytes.iter().map(|b| Cow::Owned(Self::Unsigned((*b).into()))).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Base {
    /// A little-endian scalar; 0 if `bytes` are not as many as it has.
    pub(crate) fn read(self, bytes: &[u8]) -> Value<'static> {
        macro_rules! number {
            ($t:ty) => {
                <$t>::from_le_bytes(bytes.try_into().unwrap_or_default())
            };
        }
        match self {
            Self::Bool => Value::Bool(number!(u8) != 0),
            Self::U8 => Value::Unsigned(number!(u8).into()),
            Self::I8 => Value::Signed(number!(i8).into()),
            Self::U16 => Value::Unsigned(number!(u16).into()),
            Self::I16 => Value::Signed(number!(i16).into()),
            Self::U32 => Value::Unsigned(number!(u32).into()),
            Self::I32 => Value::Signed(number!(i32).into()),
            Self::U64 => Value::Unsigned(number!(u64)),
            Self::I64 => Value::Signed(number!(i64)),
            Self::F32 => Value::F32(number!(f32)),
            Self::F64 => Value::F64(number!(f64)),
        }
    }

    /// The number as this scalar, little-endian, zeros behind it; `None` if it does not fit.
    pub(crate) fn write(self, value: &Value<'_>) -> Option<[u8; 8]> {
        let mut out = [0; 8];
        macro_rules! whole {
            ($t:ty) => {
                out[..size_of::<$t>()]
                    .copy_from_slice(&<$t>::try_from(value.whole()?).ok()?.to_le_bytes())
            };
        }
        match self {
            Self::Bool => out[0] = u8::try_from(value.whole()?).ok().filter(|v| *v < 2)?,
            Self::U8 => whole!(u8),
            Self::I8 => whole!(i8),
            Self::U16 => whole!(u16),
            Self::I16 => whole!(i16),
            Self::U32 => whole!(u32),
            Self::I32 => whole!(i32),
            Self::U64 => whole!(u64),
            Self::I64 => whole!(i64),
            Self::F32 => out[..4].copy_from_slice(&(value.number()? as f32).to_le_bytes()),
            Self::F64 => out = value.number()?.to_le_bytes(),
        }
        Some(out)
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => to.serialize_unit(),
            Self::Bool(v) => to.serialize_bool(*v),
            Self::Unsigned(v) => to.serialize_u64(*v),
            Self::Signed(v) => to.serialize_i64(*v),
            Self::F32(v) => to.serialize_f32(*v),
            Self::F64(v) => to.serialize_f64(*v),
            Self::Text(v) => to.serialize_str(v),
            Self::Bytes(v) => to.serialize_bytes(v),
            Self::Numbers(base, bytes) if bytes.len() % base.size() != 0 => {
                Err(S::Error::custom("part of a number"))
            }
            Self::Numbers(base, bytes) => {
                to.collect_seq(bytes.chunks_exact(base.size()).map(|b| base.read(b)))
            }
            Self::List(v) => to.collect_seq(v),
            Self::Fields(v) => {
                let mut map = to.serialize_map(Some(v.len()))?;
                for (name, value) in v {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that a message of ROS may have")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Self::Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
        Ok(Value::Unsigned(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
        Ok(Value::Signed(v))
    }

    fn visit_f32<E>(self, v: f32) -> Result<Self::Value, E> {
        Ok(Value::F32(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Self::Value, E> {
        Ok(Value::F64(v))
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(v.into()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(v.to_owned().into()))
    }

    fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Value::Bytes(v.into()))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Self::Value, E> {
        Ok(Value::Bytes(v.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = from.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = from.next_entry::<Cow<'de, str>, Value<'de>>()? {
            fields.push((name, value));
        }
        Ok(Value::Fields(fields))
    }
}
