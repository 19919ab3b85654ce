//! A payload as people and JSON see it, wherever it comes from: described types, MessagePack,
//! third-party encodings.

use std::borrow::Cow;
use std::fmt;

use outlive::describe::Value;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// A step to a part of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A field of a struct, by its name.
    Field(String),
    /// An element of an array, from 0 on.
    Element(usize),
}

/// Where a part of a value is; without keys it is all of it. As text it can be read only by people:
/// the name of a field may have dots and brackets in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Path(
    /// From the outside to the inside.
    pub Vec<Key>,
);

impl Path {
    /// What a person typed, like `joints[2].position`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn typed(text: &str) -> Result<Self, String> {
        let (mut keys, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            if let Some(indexed) = rest.strip_prefix('[') {
                let (index, after) = indexed.split_once(']').ok_or("a ] is missing")?;
                let number = index.parse().map_err(|_| format!("'{index}' is not a number"))?;
                keys.push(Key::Element(number));
                rest = after;
            } else {
                let named = rest.strip_prefix('.').unwrap_or(rest);
                let (name, after) = named.split_at(named.find(['.', '[']).unwrap_or(named.len()));
                keys.push(Key::Field(name.into()));
                rest = after;
            }
        }
        Ok(Self(keys))
    }

    /// That part of it.
    pub fn below(&self, key: Key) -> Self {
        Self(self.0.iter().cloned().chain([key]).collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.0.iter().enumerate() {
            match key {
                Key::Field(name) if i == 0 => f.write_str(name)?,
                Key::Field(name) => write!(f, ".{name}")?,
                Key::Element(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// A value with everything below it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Tree {
    /// Of what is optional, or null.
    Nothing,
    /// A truth value.
    Bool(bool),
    /// An integer without sign, of any width.
    Unsigned(u128),
    /// One with a sign.
    Signed(i128),
    /// A number of 32 bits.
    F32(f32),
    /// One of 64 bits.
    F64(f64),
    /// Text.
    Text(String),
    /// A value of an enum.
    Name(String),
    /// Bytes, not numbers.
    Bytes(List<u8>),
    /// The elements of an array.
    List(List<Tree>),
    /// The fields of a struct, in their order; a map has its keys as text.
    Fields(Vec<(String, Tree)>),
}

/// The first elements of an array, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T> {
    shown: Vec<T>,
    all: usize,
}

impl<T> List<T> {
    /// The elements that it still has.
    pub fn shown(&self) -> &[T] {
        &self.shown
    }

    /// How many there are in the payload.
    pub fn all(&self) -> usize {
        self.all
    }

    fn of(from: impl Iterator<Item = T>, all: usize, most: usize) -> Self {
        Self { shown: from.take(most).collect(), all }
    }
}

impl Tree {
    /// All of some bytes.
    pub fn bytes(of: &[u8]) -> Self {
        Self::Bytes(List { shown: of.into(), all: of.len() })
    }

    /// All of a list.
    pub fn list(of: Vec<Self>) -> Self {
        Self::List(List { all: of.len(), shown: of })
    }

    /// Of each value in it, the bytes that it has besides.
    pub(super) fn sizes(&self) -> Vec<usize> {
        match self {
            Self::Text(text) | Self::Name(text) => vec![text.len()],
            Self::Bytes(bytes) => vec![bytes.shown.len()],
            Self::List(list) => {
                let inner = list.shown.iter().flat_map(Self::sizes);
                std::iter::once(0).chain(inner).collect()
            }
            Self::Fields(fields) => {
                let inner = fields
                    .iter()
                    .flat_map(|(name, value)| std::iter::once(name.len()).chain(value.sizes()));
                std::iter::once(0).chain(inner).collect()
            }
            _ => vec![0],
        }
    }

    /// A part of a described payload; of each array the first `most` elements.
    pub fn of(value: &Value<'_>, most: usize) -> Self {
        match value {
            Value::Bool(v) => Self::Bool(*v),
            Value::Unsigned(v) => Self::Unsigned(*v),
            Value::Signed(v) => Self::Signed(*v),
            Value::F32(v) => Self::F32(*v),
            Value::F64(v) => Self::F64(*v),
            Value::Text(v) => Self::Text(v.clone().into_owned()),
            Value::Enum { name: Some(name), .. } => Self::Name((*name).into()),
            Value::Enum { number, .. } => Self::Signed(*number),
            Value::Bytes(v) => Self::Bytes(List::of(v.iter().copied(), v.len(), most)),
            Value::Array(v) => {
                Self::List(List::of(v.iter().map(|v| Self::of(&v, most)), v.len(), most))
            }
            Value::Struct(v) => {
                Self::Fields(v.iter().map(|(k, v)| (k.into(), Self::of(&v, most))).collect())
            }
            _ => Self::Nothing,
        }
    }

    /// With no more than the first `most` elements of each array.
    pub fn cut(self, most: usize) -> Self {
        let cut = |list: Vec<Self>| list.into_iter().map(|v| v.cut(most));
        match self {
            Self::List(l) => Self::List(List::of(cut(l.shown), l.all, most)),
            Self::Bytes(l) => Self::Bytes(List::of(l.shown.into_iter(), l.all, most)),
            Self::Fields(f) => Self::Fields(f.into_iter().map(|(k, v)| (k, v.cut(most))).collect()),
            other => other,
        }
    }

    /// Whether nothing was cut off.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::List(l) => l.shown.len() == l.all && l.shown.iter().all(Self::is_whole),
            Self::Bytes(l) => l.shown.len() == l.all,
            Self::Fields(f) => f.iter().all(|(_, v)| v.is_whole()),
            _ => true,
        }
    }

    /// The part at `path`.
    pub fn at(&self, path: &Path) -> Option<&Self> {
        path.0.iter().try_fold(self, |at, key| match (key, at) {
            (Key::Field(name), Self::Fields(fields)) => {
                fields.iter().find(|(of, _)| of == name).map(|(_, value)| value)
            }
            (Key::Element(index), Self::List(list)) => list.shown.get(*index),
            _ => None,
        })
    }

    /// Where all parts are that have no fields; an array counts as one.
    pub fn leaves(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.add_leaves(Path::default(), &mut out);
        out
    }

    fn add_leaves(&self, at: Path, out: &mut Vec<Path>) {
        let Self::Fields(fields) = self else { return out.push(at) };
        for (name, value) in fields {
            value.add_leaves(at.below(Key::Field(name.clone())), out);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from(b"0123456789abcdef"[usize::from(n)]);
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        out.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    out
}

impl fmt::Display for Tree {
    /// One line, like `{x: 1.5, name: "base", points: [1, 2, .. 5 more]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nil"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::Unsigned(v) => write!(f, "{v}"),
            Self::Signed(v) => write!(f, "{v}"),
            // Very large and very small ones in scientific notation, as Debug does.
            Self::F32(v) => write!(f, "{v:?}"),
            Self::F64(v) => write!(f, "{v:?}"),
            Self::Text(v) => write!(f, "{v:?}"),
            Self::Name(v) => f.write_str(&on_a_line(v)),
            Self::Bytes(v) => {
                write!(f, "{}", hex(&v.shown))?;
                more(f, v, " ")
            }
            Self::List(v) => {
                f.write_str("[")?;
                for (i, item) in v.shown.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                more(f, v, if v.shown.is_empty() { "" } else { ", " })?;
                f.write_str("]")
            }
            Self::Fields(v) => {
                f.write_str("{")?;
                for (i, (name, value)) in v.iter().enumerate() {
                    let name = on_a_line(name);
                    write!(f, "{}{name}: {value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// A name, which may be anybody's: nothing in it moves the cursor or ends the line.
fn on_a_line(name: &str) -> Cow<'_, str> {
    match name.contains(char::is_control) {
        true => name.escape_debug().to_string().into(),
        false => name.into(),
    }
}

fn more<T>(f: &mut fmt::Formatter<'_>, list: &List<T>, before: &str) -> fmt::Result {
    match list.all - list.shown.len() {
        0 => Ok(()),
        left => write!(f, "{before}.. {left} more"),
    }
}

impl Serialize for Tree {
    /// What JSON can hold; bytes in hexadecimal, wider numbers as text.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nothing => to.serialize_unit(),
            Self::Bool(v) => to.serialize_bool(*v),
            Self::Unsigned(v) => match u64::try_from(*v) {
                Ok(v) => to.serialize_u64(v),
                Err(_) => to.collect_str(v),
            },
            Self::Signed(v) => match i64::try_from(*v) {
                Ok(v) => to.serialize_i64(v),
                Err(_) => to.collect_str(v),
            },
            Self::F32(v) => to.serialize_f32(*v),
            Self::F64(v) => to.serialize_f64(*v),
            Self::Text(v) | Self::Name(v) => to.serialize_str(v),
            Self::Bytes(v) => to.serialize_str(&hex(&v.shown)),
            Self::List(v) => to.collect_seq(&v.shown),
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

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyTree)
    }
}

struct AnyTree;

impl<'de> Visitor<'de> for AnyTree {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        Tree::deserialize(from)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Tree, D::Error> {
        Tree::deserialize(from)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(v))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Tree, E> {
        Ok(Tree::Unsigned(v.into()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Tree, E> {
        Ok(Tree::Signed(v.into()))
    }

    fn visit_f32<E>(self, v: f32) -> Result<Tree, E> {
        Ok(Tree::F32(v))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Tree, E> {
        Ok(Tree::F64(v))
    }

    fn visit_str<E>(self, v: &str) -> Result<Tree, E> {
        Ok(Tree::Text(v.into()))
    }

    fn visit_bytes<E>(self, v: &[u8]) -> Result<Tree, E> {
        Ok(Tree::bytes(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let mut shown = Vec::new();
        while let Some(item) = from.next_element()? {
            shown.push(item);
        }
        Ok(Tree::list(shown))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Tree, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, value)) = from.next_entry::<Tree, Tree>()? {
            // MessagePack has keys of any kind.
            let name = if let Tree::Text(name) = key { name } else { key.to_string() };
            fields.push((name, value));
        }
        Ok(Tree::Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(json: &str) -> Tree {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_tree_keeps_the_order_of_its_fields_and_says_what_it_leaves_out() {
        let tree = tree(r#"{"z": {"b": [1, -2, 3.5], "a": "x\"y"}, "n": null, "t": true}"#);
        let text = r#"{z: {b: [1, -2, 3.5], a: "x\"y"}, n: nil, t: true}"#;
        assert_eq!(tree.to_string(), text);
        let json = r#"{"z":{"b":[1,-2,3.5],"a":"x\"y"},"n":null,"t":true}"#;
        assert_eq!(serde_json::to_string(&tree).unwrap(), json);
        let leaves: Vec<_> = tree.leaves().iter().map(Path::to_string).collect();
        assert_eq!(leaves, ["z.b", "z.a", "n", "t"]);
        assert!(tree.is_whole());
        let cut = tree.cut(1);
        let at = |path| cut.at(&Path::typed(path).unwrap()).unwrap();
        assert_eq!(at("z.b").to_string(), "[1, .. 2 more]");
        assert!(!cut.is_whole() && at("z.a").is_whole());
    }

    #[test]
    fn names_have_no_control_characters() {
        let fields = vec![("a\x1b[2J\n".into(), Tree::Name("\u{9b}31m".into()))];
        assert_eq!(Tree::Fields(fields).to_string(), r"{a\u{1b}[2J\n: \u{9b}31m}");
        assert_eq!(tree(r#"{"größe \"x\"": 1}"#).to_string(), r#"{größe "x": 1}"#);
    }

    #[test]
    fn paths_name_fields_and_elements() {
        let tree = tree(r#"[{"a": {"b": [[1, 2], [3]]}}]"#);
        let at = |path| Path::typed(path).map(|path| tree.at(&path).map(Tree::to_string));
        assert_eq!(at("[0].a.b[0][1]"), Ok(Some("2".into())));
        for wrong in ["[1]", "[0].b", "[0]a.b[0][2]", "a"] {
            assert_eq!(at(wrong), Ok(None), "{wrong}");
        }
        assert_eq!(at("[x]"), Err("'x' is not a number".into()));
        assert_eq!(at("[0].a.b[0"), Err("a ] is missing".into()));
        assert_eq!(Path::typed("[0].a.b[0][1]").unwrap().to_string(), "[0].a.b[0][1]");
    }
}
