//! Protocol Buffers by the crate `prost-reflect`, and what a descriptor set has in it.

use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey,
    MessageDescriptor, ReflectMessage, Value,
};

use super::columns::{Sorts, columns};
use super::tree::{Path, Tree};

/// A message by its schema.
#[derive(Clone, Debug)]
pub(super) struct Protobuf(MessageDescriptor);

impl Protobuf {
    pub(super) fn of(name: &str, set: &[u8]) -> Result<Self, String> {
        let message = pool(set)?.get_message_by_name(name);
        message.map(Self).ok_or_else(|| format!("its schema has no message {name}"))
    }

    pub(super) fn tree(&self, payload: &[u8]) -> Result<Tree, String> {
        let message = DynamicMessage::decode(self.0.clone(), payload);
        Ok(tree_of(&message.map_err(|e| e.to_string())?))
    }

    pub(super) fn payload(&self, json: &str) -> Result<Vec<u8>, String> {
        let mut from = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(self.0.clone(), &mut from);
        let message = message.and_then(|m| from.end().map(|()| m));
        Ok(message.map_err(|e| e.to_string())?.encode_to_vec())
    }

    pub(super) fn columns(&self) -> Vec<Path> {
        columns(self.0.clone(), sorts)
    }

    pub(super) fn text(&self) -> String {
        proto_text(vec![self.0.clone()])
    }
}

/// The messages of a descriptor set. The library panics at a syntax that it does not know, and at a
/// look at the entry of a map that is none.
fn pool(set: &[u8]) -> Result<DescriptorPool, String> {
    let files = FileDescriptorSet::decode(set).map_err(|e| e.to_string())?.file;
    let mut syntaxes = files.iter().filter_map(|file| file.syntax.as_deref());
    if let Some(other) = syntaxes.find(|of| !["proto2", "proto3"].contains(of)) {
        return Err(format!("its syntax is {other:?}, not proto2 or proto3"));
    }
    let pool = DescriptorPool::decode(set).map_err(|e| e.to_string())?;
    let broken = pool.all_messages().find(|of| of.is_map_entry() && !is_entry(of));
    match broken {
        Some(of) => Err(format!("its message {} is not a valid map entry", of.full_name())),
        None => Ok(pool),
    }
}

/// Whether it has a key, of a kind that a key may be, and a value.
fn is_entry(of: &MessageDescriptor) -> bool {
    use Kind::{Bytes, Double, Enum, Float, Message};
    let one = |number| of.get_field(number).filter(|f| f.cardinality() != Cardinality::Repeated);
    let Some((key, _)) = one(1).zip(one(2)) else { return false };
    !matches!(key.kind(), Double | Float | Bytes | Message(_) | Enum(_))
}

/// Fields in the order of their numbers. What is not set and has no default is left out.
fn tree_of(message: &DynamicMessage) -> Tree {
    let descriptor = message.descriptor();
    let fields = descriptor.fields();
    let set = fields.filter(|f| !f.supports_presence() || message.has_field(f));
    let fields = set.map(|f| {
        let value = value_of(&message.get_field(&f), &f.kind());
        (f.name().to_owned(), value)
    });
    Tree::Fields(fields.collect())
}

/// The fields of a message; lists and maps have no columns below.
fn sorts(of: &MessageDescriptor) -> Vec<(String, Sorts<MessageDescriptor>)> {
    let sort = |field: &FieldDescriptor| match field.kind() {
        Kind::Message(of) if !field.is_list() && !field.is_map() => Some(of),
        _ => None,
    };
    of.fields().map(|field| (field.name().to_owned(), vec![sort(&field)])).collect()
}

fn value_of(value: &Value, kind: &Kind) -> Tree {
    match value {
        Value::Bool(v) => Tree::Bool(*v),
        Value::I32(v) => Tree::Signed((*v).into()),
        Value::I64(v) => Tree::Signed((*v).into()),
        Value::U32(v) => Tree::Unsigned((*v).into()),
        Value::U64(v) => Tree::Unsigned((*v).into()),
        Value::F32(v) => Tree::F32(*v),
        Value::F64(v) => Tree::F64(*v),
        Value::String(v) => Tree::Text(v.clone()),
        Value::Bytes(v) => Tree::bytes(v),
        Value::EnumNumber(number) => {
            let name = kind.as_enum().and_then(|of| of.get_value(*number));
            name.map_or(Tree::Signed((*number).into()), |v| Tree::Name(v.name().into()))
        }
        Value::Message(v) => tree_of(v),
        Value::List(v) => Tree::list(v.iter().map(|v| value_of(v, kind)).collect()),
        Value::Map(entries) => {
            let kind = kind.as_message().map(|entry| entry.map_entry_value_field().kind());
            let entries = entries.iter().map(|(key, value)| {
                let value = kind.as_ref().map_or(Tree::Nothing, |kind| value_of(value, kind));
                (key_of(key), value)
            });
            let mut entries: Vec<_> = entries.collect();
            // A map has no order.
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Tree::Fields(entries)
        }
    }
}

fn key_of(key: &MapKey) -> String {
    match key {
        MapKey::Bool(v) => v.to_string(),
        MapKey::I32(v) => v.to_string(),
        MapKey::I64(v) => v.to_string(),
        MapKey::U32(v) => v.to_string(),
        MapKey::U64(v) => v.to_string(),
        MapKey::String(v) => v.clone(),
    }
}

/// All messages of a descriptor set.
fn messages(set: &[u8]) -> Result<Vec<MessageDescriptor>, String> {
    let all = pool(set)?.all_messages().filter(|m| !m.is_map_entry()).collect::<Vec<_>>();
    if all.is_empty() { Err("it has no messages".into()) } else { Ok(all) }
}

/// All messages of a descriptor set, as a `.proto` file has them.
///
/// # Errors
/// Why it is none.
pub fn set_text(set: &[u8]) -> Result<String, String> {
    Ok(proto_text(messages(set)?) + "\n")
}

/// Their names.
///
/// # Errors
/// As [`set_text`].
pub fn set_names(set: &[u8]) -> Result<Vec<String>, String> {
    Ok(messages(set)?.iter().map(|of| of.full_name().into()).collect())
}

/// A message or an enum of a descriptor set.
#[derive(Clone, Debug)]
pub struct SetType {
    /// With its package.
    pub name: String,
    is_enum: bool,
    /// Its fields or values: name, type of a field, number.
    pub parts: Vec<(String, Option<String>, i64)>,
}

/// All messages of a descriptor set and the enums that they use.
///
/// # Errors
/// As [`set_text`].
pub fn set_types(set: &[u8]) -> Result<Vec<SetType>, String> {
    Ok(with_used(messages(set)?))
}

/// The messages, and those and the enums that they use.
fn with_used(messages: Vec<MessageDescriptor>) -> Vec<SetType> {
    let (mut all, mut enums) = (messages, Vec::<EnumDescriptor>::new());
    let mut types = Vec::new();
    while let Some(message) = all.get(types.len()).cloned() {
        let mut parts = Vec::new();
        for field in message.fields() {
            parts.push((field.name().into(), Some(type_text(&field)), field.number().into()));
            let of = match field.kind() {
                Kind::Message(entry) if entry.is_map_entry() => {
                    entry.map_entry_value_field().kind()
                }
                kind => kind,
            };
            match of {
                Kind::Message(of) if !all.contains(&of) => all.push(of),
                Kind::Enum(of) if !enums.contains(&of) => enums.push(of),
                _ => {}
            }
        }
        types.push(SetType { name: message.full_name().into(), is_enum: false, parts });
    }
    types.extend(enums.iter().map(|of| SetType {
        name: of.full_name().into(),
        is_enum: true,
        parts: of.values().map(|v| (v.name().into(), None, v.number().into())).collect(),
    }));
    types
}

/// The messages, and those that they use, as a `.proto` file has them.
fn proto_text(messages: Vec<MessageDescriptor>) -> String {
    let mut text = String::new();
    for SetType { name, is_enum, parts } in with_used(messages) {
        text += &format!("{} {name} {{\n", if is_enum { "enum" } else { "message" });
        for (name, of, number) in parts {
            let of = of.map_or(String::new(), |of| of + " ");
            text += &format!("  {of}{name} = {number};\n");
        }
        text += "}\n";
    }
    text.trim_end().into()
}

fn type_text(field: &FieldDescriptor) -> String {
    let kind = field.kind();
    if let Some(entry) = kind.as_message().filter(|of| of.is_map_entry()) {
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        return format!("map<{:?}, {:?}>", key.kind(), value.kind());
    }
    let label = match field.cardinality() {
        Cardinality::Repeated => "repeated ",
        Cardinality::Required => "required ",
        Cardinality::Optional => "",
    };
    format!("{label}{kind:?}")
}
