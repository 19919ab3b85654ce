//! `outlive types show` and `diff` as JSON.

use outlive::describe::{Field, Kind};
use outlive_record::decode::SetType;
use serde::Serialize;

use super::model::Message;
use crate::topic::{FieldRow, list_fields};

/// A message with its fields, or an enum of a descriptor set with its values.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    of: Head,
    fields: Vec<Part>,
}

#[derive(Clone, PartialEq, Serialize)]
struct Head {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<usize>,
}

/// A field, or a value of an enum.
#[derive(Clone, PartialEq, Serialize)]
struct Part {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<i64>,
}

/// What differs in one message, from both sides; `null` where one has no such thing.
#[derive(Serialize)]
pub(super) struct Difference {
    message: String,
    first: Option<Side>,
    second: Option<Side>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Side {
    Message(Head),
    Field(Part),
}

impl Shown {
    pub(super) fn of(message: &Message) -> Self {
        let mut rows = Vec::new();
        list_fields(message.description.root(), 0, "", 0, &mut rows);
        let part = |FieldRow { path, r#type, offset, .. }| Part {
            path,
            r#type: Some(r#type),
            offset: Some(offset),
            number: None,
        };
        Self { of: Head::of(message), fields: rows.into_iter().map(part).collect() }
    }
}

impl From<SetType> for Shown {
    fn from(of: SetType) -> Self {
        let part =
            |(path, r#type, number)| Part { path, r#type, offset: None, number: Some(number) };
        let head = Head { name: of.name, bytes: None, align: None };
        Self { of: head, fields: of.parts.into_iter().map(part).collect() }
    }
}

impl Head {
    fn of(message: &Message) -> Self {
        let of = &message.description;
        Self { name: message.full.clone(), bytes: Some(of.size()), align: Some(of.align()) }
    }
}

/// What differs between two messages with a fixed layout; `names`: theirs do, too.
pub(super) fn between(a: &Message, b: &Message, names: bool) -> Vec<Difference> {
    let (first, second) = (Head::of(a), Head::of(b));
    let mut out = Vec::new();
    let differs = |a: &Head, b: &Head| (a.bytes, a.align) != (b.bytes, b.align);
    if names || differs(&first, &second) {
        out.push(Difference {
            message: a.full.clone(),
            first: Some(Side::Message(first)),
            second: Some(Side::Message(second)),
        });
    }
    let (a_fields, b_fields) = (a.description.fields(), b.description.fields());
    compare(&a.full, "", [(a_fields, 0), (b_fields, 0)], &mut out);
    out
}

/// A message that the other side does not have.
pub(super) fn one_sided(message: &Message, is_first: bool) -> Difference {
    alone(Head::of(message), is_first)
}

fn alone(head: Head, is_first: bool) -> Difference {
    let message = head.name.clone();
    let side = Some(Side::Message(head));
    let (first, second) = if is_first { (side, None) } else { (None, side) };
    Difference { message, first, second }
}

/// Fields of both sides, each with the offset of their struct in the message.
type Fields<'a> = (&'a [Field], usize);

/// As the differences in text: by name, and what is in a struct only if both sides have one.
fn compare(message: &str, path: &str, sides: [Fields<'_>; 2], out: &mut Vec<Difference>) {
    let [(a, a_from), (b, b_from)] = sides;
    let side = |field: &Field, from: usize| {
        let path = format!("{path}{}", field.name());
        let (of, offset) = (field.ty().to_string(), Some(from + field.offset()));
        Some(Side::Field(Part { path, r#type: Some(of), offset, number: None }))
    };
    let difference = |first, second| Difference { message: message.to_owned(), first, second };
    for field in a {
        let Some(other) = b.iter().find(|other| other.name() == field.name()) else {
            out.push(difference(side(field, a_from), None));
            continue;
        };
        let (of, with) = (field.ty(), other.ty());
        let both = || difference(side(field, a_from), side(other, b_from));
        let is_struct = |kind: &Kind| matches!(kind, Kind::Struct { .. });
        let structs = is_struct(of.kind()) && is_struct(with.kind());
        let shapes = (of.dims(), of.is_any_length()) == (with.dims(), with.is_any_length());
        let types = shapes && (structs || of.to_string() == with.to_string());
        let before = out.len();
        if !types || field.offset() != other.offset() {
            out.push(both());
        }
        if structs {
            let path = format!("{path}{}.", field.name());
            let froms = [a_from + field.offset(), b_from + other.offset()];
            compare(message, &path, [(of.fields(), froms[0]), (with.fields(), froms[1])], out);
            if out.len() == before && of.to_string() != with.to_string() {
                out.push(both());
            }
        }
    }
    let only = b.iter().filter(|field| a.iter().all(|other| other.name() != field.name()));
    out.extend(only.map(|field| difference(None, side(field, b_from))));
}

/// What differs between the types of two descriptor sets; fields belong together by number.
pub(super) fn between_sets(a: Vec<SetType>, b: Vec<SetType>) -> Vec<Difference> {
    let shown = |of: Vec<SetType>| of.into_iter().map(Shown::from).collect::<Vec<_>>();
    let (a, b) = (shown(a), shown(b));
    let is_of = |of: &Shown, all: &[Shown]| all.iter().any(|other| other.of.name == of.of.name);
    let mut out = Vec::new();
    for of in &a {
        match b.iter().find(|other| other.of.name == of.of.name) {
            Some(other) => compare_parts(&of.of.name, &of.fields, &other.fields, &mut out),
            None => out.push(alone(of.of.clone(), true)),
        }
    }
    out.extend(b.iter().filter(|of| !is_of(of, &a)).map(|of| alone(of.of.clone(), false)));
    out
}

fn compare_parts(message: &str, a: &[Part], b: &[Part], out: &mut Vec<Difference>) {
    let without = |of: &[Part], others: &[Part]| {
        of.iter().filter(|part| !others.contains(part)).cloned().collect::<Vec<_>>()
    };
    let mut rest = without(b, a);
    let difference = |first: Option<Part>, second: Option<Part>| {
        let side = |part: Option<Part>| part.map(Side::Field);
        Difference { message: message.to_owned(), first: side(first), second: side(second) }
    };
    for part in without(a, b) {
        let at = rest.iter().position(|other| other.number == part.number);
        out.push(difference(Some(part), at.map(|at| rest.remove(at))));
    }
    out.extend(rest.into_iter().map(|part| difference(None, Some(part))));
}
