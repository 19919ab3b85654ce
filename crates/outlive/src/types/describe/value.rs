//! Payload bytes seen through a type description, without copying them.

use std::borrow::Cow;
use std::fmt;

use super::{Field, FieldType, Kind, Scalar, TypeDescription};

/// A part of a payload. Borrows both the bytes and their description.
///
/// # Examples
/// ```
/// use outlive::Message;
/// use outlive::describe::Value;
///
/// /// A number to plot, if it is one.
/// fn number(value: &Value<'_>) -> Option<f64> {
///     match value {
///         Value::Unsigned(n) => Some(*n as f64),
///         Value::Signed(n) => Some(*n as f64),
///         Value::F32(x) => Some((*x).into()),
///         Value::F64(x) => Some(*x),
///         _ => None,
///     }
/// }
///
/// let ty = <[i16; 3]>::describe();
/// let value = ty.decode(&[7, 0, 8, 0, 9, 0]).expect("6 bytes");
/// assert_eq!(number(&value), None); // an array
/// assert_eq!(number(&value.at("[1]").expect("it has one")), Some(8.0));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A truth value; any byte but 0 is true.
    Bool(bool),
    /// `u8` to `u128`.
    Unsigned(u128),
    /// `i8` to `i128`.
    Signed(i128),
    /// `f32`, apart from `f64` because its shortest text differs.
    F32(f32),
    /// `f64`.
    F64(f64),
    /// One of the values of an enum, or a number that is not one of them.
    Enum {
        /// Its name, if it is one.
        name: Option<&'a str>,
        /// Its number.
        number: i128,
    },
    /// Text up to its first 0; invalid UTF-8 is replaced by U+FFFD.
    Text(Cow<'a, str>),
    /// Bytes that nobody described.
    Bytes(&'a [u8]),
    /// Any number of values of one type.
    Array(Array<'a>),
    /// Named values.
    Struct(Struct<'a>),
}

/// An array inside a payload.
///
/// # Examples
/// ```
/// use outlive::Message;
/// use outlive::describe::{Scalar, Value};
///
/// let ty = <[u16; 3]>::describe();
/// let Some(Value::Array(array)) = ty.decode(&[7, 0, 8, 0, 9, 0]) else { panic!("6 bytes") };
/// assert_eq!((array.len(), array.scalar()), (3, Some(Scalar::U16)));
/// assert_eq!(array.get(1).expect("it has one").to_string(), "8");
/// assert_eq!(array.iter().count(), 3);
/// assert_eq!(array.bytes()[..2], 7u16.to_le_bytes()); // to read them all at once
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    ty: &'a FieldType,
    /// Dimensions that are left, inner ones; `None` inside it: the outermost of a slice is gone.
    dims: &'a [usize],
    len: usize,
    bytes: &'a [u8],
}

/// A struct inside a payload.
///
/// # Examples
/// ```
/// use outlive::TypeDescription;
/// use outlive::describe::{Scalar, Value};
///
/// let point = TypeDescription::struct_of(2, 1)
///     .field("x", 0, TypeDescription::scalar(Scalar::I8))
///     .field("y", 1, TypeDescription::scalar(Scalar::I8));
/// let Some(Value::Struct(fields)) = point.decode(&[7, 255]) else { panic!("2 bytes") };
/// assert!(matches!(fields.get("y"), Some(Value::Signed(-1))));
/// let names: Vec<_> = fields.iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["x", "y"]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Struct<'a> {
    fields: &'a [Field],
    bytes: &'a [u8],
}

impl TypeDescription {
    /// The payload `bytes` as this type; `None` if their length does not fit.
    ///
    /// Reads nothing yet: numbers are read when you ask for them, so the first field of a large
    /// payload costs no more than that of a small one.
    ///
    /// # Examples
    /// ```
    /// use outlive::describe::{Scalar, TypeDescription};
    ///
    /// let twist = TypeDescription::struct_of(16, 8)
    ///     .field("forward", 0, TypeDescription::scalar(Scalar::F64))
    ///     .field("axes", 8, TypeDescription::scalar(Scalar::U16).array(4));
    /// let mut bytes = 1.5f64.to_le_bytes().to_vec();
    /// bytes.extend([7, 0, 8, 0, 9, 0, 10, 0]);
    /// let value = twist.decode(&bytes).expect("16 bytes");
    /// assert_eq!(value.to_string(), "{forward: 1.5, axes: [7, 8, 9, 10]}");
    /// assert_eq!(value.at("axes[2]").expect("it has one").to_string(), "9");
    /// ```
    pub fn decode<'a>(&'a self, bytes: &'a [u8]) -> Option<Value<'a>> {
        let tail = self.fields().last().filter(|f| f.ty.any_length);
        let fits = match (self.root.any_length, tail) {
            (true, _) => bytes.len() % self.size() == 0,
            (false, Some(tail)) => bytes
                .len()
                .checked_sub(tail.offset)
                .is_some_and(|rest| rest % tail.ty.size() == 0 && bytes.len() >= self.size()),
            (false, None) => bytes.len() == self.size(),
        };
        fits.then(|| view(&self.root, bytes))
    }
}

/// `bytes` as `ty`: at least its size, more only for what is of any length.
fn view<'a>(ty: &'a FieldType, bytes: &'a [u8]) -> Value<'a> {
    if ty.any_length {
        let len = bytes.len().checked_div(ty.size()).unwrap_or(0);
        return Value::Array(Array { ty, dims: &ty.dims, len, bytes });
    }
    view_dims(ty, &ty.dims, bytes)
}

fn view_dims<'a>(ty: &'a FieldType, dims: &'a [usize], bytes: &'a [u8]) -> Value<'a> {
    match (dims, &ty.kind) {
        (&[len], Kind::Scalar(Scalar::Char)) => text(&bytes[..len.min(bytes.len())]),
        (&[len, ref inner @ ..], _) => Value::Array(Array { ty, dims: inner, len, bytes }),
        ([], Kind::Struct { fields, .. }) => Value::Struct(Struct { fields, bytes }),
        ([], Kind::Opaque { size }) => Value::Bytes(&bytes[..(*size).min(bytes.len())]),
        ([], Kind::Scalar(scalar)) => number(*scalar, bytes),
        ([], Kind::Enum(names)) => {
            let number = integer(names.width(), bytes);
            Value::Enum { name: names.name_of(number), number }
        }
    }
}

/// An integer of at most 64 bits.
pub(super) fn integer(width: Scalar, bytes: &[u8]) -> i128 {
    match number(width, bytes) {
        Value::Unsigned(v) => v as i128,
        Value::Signed(v) => v,
        _ => 0,
    }
}

fn text(bytes: &[u8]) -> Value<'_> {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    Value::Text(String::from_utf8_lossy(&bytes[..end]))
}

fn number<'a>(scalar: Scalar, bytes: &'a [u8]) -> Value<'a> {
    fn le<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match scalar {
        Scalar::U8 => Value::Unsigned(u8::from_le_bytes(le(bytes)).into()),
        Scalar::U16 => Value::Unsigned(u16::from_le_bytes(le(bytes)).into()),
        Scalar::U32 => Value::Unsigned(u32::from_le_bytes(le(bytes)).into()),
        Scalar::U64 => Value::Unsigned(u64::from_le_bytes(le(bytes)).into()),
        Scalar::U128 => Value::Unsigned(u128::from_le_bytes(le(bytes))),
        Scalar::I8 => Value::Signed(i8::from_le_bytes(le(bytes)).into()),
        Scalar::I16 => Value::Signed(i16::from_le_bytes(le(bytes)).into()),
        Scalar::I32 => Value::Signed(i32::from_le_bytes(le(bytes)).into()),
        Scalar::I64 => Value::Signed(i64::from_le_bytes(le(bytes)).into()),
        Scalar::I128 => Value::Signed(i128::from_le_bytes(le(bytes))),
        Scalar::F32 => Value::F32(f32::from_le_bytes(le(bytes))),
        Scalar::F64 => Value::F64(f64::from_le_bytes(le(bytes))),
        Scalar::Bool => Value::Bool(le::<1>(bytes) != [0]),
        Scalar::Char => text(&bytes[..bytes.len().min(1)]),
        Scalar::Char32 => {
            let c = char::from_u32(u32::from_le_bytes(le(bytes)));
            Value::Text(c.unwrap_or(char::REPLACEMENT_CHARACTER).to_string().into())
        }
    }
}

impl<'a> Value<'a> {
    /// The part that `path` names: fields by name, elements by number, like
    /// `joints[2].position` or, of a slice, `[0].x`. Empty: the whole.
    ///
    /// # Examples
    /// ```
    /// use outlive::TypeDescription;
    /// use outlive::describe::Scalar;
    ///
    /// let joint = TypeDescription::struct_of(2, 1)
    ///     .field("angle", 0, TypeDescription::scalar(Scalar::U8))
    ///     .field("gains", 1, TypeDescription::scalar(Scalar::U8).array(1));
    /// let arm = TypeDescription::struct_of(4, 1).field("joints", 0, joint.array(2));
    /// let value = arm.decode(&[7, 8, 9, 10]).expect("4 bytes");
    /// assert_eq!(value.at("joints[1].gains[0]").expect("it has one").to_string(), "10");
    /// assert!(value.at("joints[2]").is_none() && value.at("speed").is_none());
    /// ```
    pub fn at(&self, path: &str) -> Option<Value<'a>> {
        let mut at = self.clone();
        let mut rest = path;
        while !rest.is_empty() {
            if let Some(indexed) = rest.strip_prefix('[') {
                let (index, after) = indexed.split_once(']')?;
                let Value::Array(array) = at else { return None };
                at = array.get(index.parse().ok()?)?;
                rest = after;
            } else {
                let named = rest.strip_prefix('.').unwrap_or(rest);
                let end = named.find(['.', '[']).unwrap_or(named.len());
                let Value::Struct(fields) = at else { return None };
                at = fields.get(&named[..end])?;
                rest = &named[end..];
            }
        }
        Some(at)
    }
}

impl<'a> Array<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes from one element to the next.
    fn stride(&self) -> usize {
        self.dims.iter().fold(self.ty.kind.size(), |size, dim| size.saturating_mul(*dim))
    }

    /// Element `index`, from 0.
    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        let from = (index < self.len).then(|| index.checked_mul(self.stride()))??;
        let bytes = self.bytes.get(from..from + self.stride())?;
        Some(view_dims(self.ty, self.dims, bytes))
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let array = *self;
        (0..array.len).map_while(move |i| array.get(i))
    }

    /// What the elements are, if they are numbers, truth values or text bytes.
    pub fn scalar(&self) -> Option<Scalar> {
        match (self.dims, &self.ty.kind) {
            ([], Kind::Scalar(scalar)) => Some(*scalar),
            _ => None,
        }
    }

    /// Its bytes, little-endian.
    pub fn bytes(&self) -> &'a [u8] {
        let end = self.len.saturating_mul(self.stride()).min(self.bytes.len());
        &self.bytes[..end]
    }
}

impl<'a> Struct<'a> {
    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let bytes = self.bytes;
        self.fields.iter().filter_map(move |f| Some((f.name(), field(f, bytes)?)))
    }

    /// The value of the field `name`.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        self.fields.iter().find(|f| f.name == name).and_then(|f| field(f, self.bytes))
    }
}

fn field<'a>(f: &'a Field, bytes: &'a [u8]) -> Option<Value<'a>> {
    let bytes = bytes.get(f.offset..)?;
    let bytes = if f.ty.any_length { bytes } else { bytes.get(..f.ty.size())? };
    Some(view(&f.ty, bytes))
}

impl fmt::Display for Value<'_> {
    /// One line, like `{x: 1.5, mode: Idle, name: "base", points: [1, 2]}`. With a precision, as in
    /// `{value:.8}`, arrays show so many elements and bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(v) => write!(f, "{v}"),
            Self::Unsigned(v) => write!(f, "{v}"),
            Self::Signed(v) => write!(f, "{v}"),
            // Very large and very small ones in scientific notation, as Debug does.
            Self::F32(v) => write!(f, "{v:?}"),
            Self::F64(v) => write!(f, "{v:?}"),
            Self::Enum { name: Some(name), .. } => f.write_str(name),
            Self::Enum { number, .. } => write!(f, "{number}"),
            Self::Text(v) => write!(f, "{v:?}"),
            Self::Bytes(v) => list(f, v.len(), v.iter(), |f, byte| write!(f, "{byte:02x}")),
            Self::Array(v) => {
                let precision = f.precision();
                list(f, v.len, v.iter(), |f, value| nested(f, &value, precision))
            }
            Self::Struct(v) => {
                let precision = f.precision();
                f.write_str("{")?;
                for (i, (name, value)) in v.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    write!(f, "{name}: ")?;
                    nested(f, &value, precision)?;
                }
                f.write_str("}")
            }
        }
    }
}

fn nested(f: &mut fmt::Formatter<'_>, value: &Value<'_>, most: Option<usize>) -> fmt::Result {
    match most {
        Some(most) => write!(f, "{value:.most$}"),
        None => write!(f, "{value}"),
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    len: usize,
    items: impl Iterator<Item = T>,
    one: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    let most = f.precision().unwrap_or(usize::MAX);
    f.write_str("[")?;
    for (i, item) in items.take(most).enumerate() {
        f.write_str(if i > 0 { ", " } else { "" })?;
        one(f, item)?;
    }
    if len > most {
        write!(f, ", .. {} more", len - most)?;
    }
    f.write_str("]")
}
