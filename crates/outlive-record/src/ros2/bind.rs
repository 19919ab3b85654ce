//! A type of a fixed layout as the message of ROS 2 that it was made from: `outlive types import`
//! keeps the names of its fields.
//!
//! | in the definition | in the layout |
//! |---|---|
//! | `string<=32 a` | `char[32]` |
//! | `T[<=8] a` | an array of 8, and `a_count`, a `u32` |
//! | - | `reserved`, `reserved2` ...: bytes that the message does not have |

use outlive::describe::{Field as Place, FieldType, Kind as Of, Scalar};
use outlive::{Encoding, PayloadType};

use super::base::Base;
use super::definition::{Field, Kind, Many as Declared, Schema};
use super::layout::{Layout, Many, SIZE_MAX, Step};

impl Layout {
    /// For payloads of the type `of`, which is laid out for the message `schema`.
    ///
    /// # Errors
    /// Which field is not that of the message.
    pub(crate) fn bound(schema: &Schema, of: &PayloadType) -> Result<Self, String> {
        let description = of.description().ok_or("nobody described its fields")?;
        let root = description.root();
        let is_one = root.dims().is_empty() && !root.is_any_length() && root.size() == of.size();
        if of.encoding() != Encoding::Fixed || !is_one || of.size() > SIZE_MAX {
            return Err("it is not a struct of a fixed size".into());
        }
        let (name, text) = (schema.name.clone(), schema.text.clone());
        let steps = structure(schema, schema.root(), description.fields(), 0)?;
        let of = of.clone();
        Ok(Self { name, text, steps, keeps: false, is_generated: false, of })
    }
}

fn structure(
    schema: &Schema,
    fields: &[Field],
    places: &[Place],
    base: usize,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for field in fields {
        let place = find(places, &field.name)?;
        let (at, of) = (base + place.offset(), place.ty());
        let wrong = |why: String| match why.split_once(": ") {
            Some((path, why)) => format!("{}.{path}: {why}", field.name),
            None => format!("{}: {why}", field.name),
        };
        let mut dims = of.dims();
        let element = match &field.kind {
            Kind::Text => match (of.kind(), dims.split_last()) {
                (Of::Scalar(Scalar::Char), Some((len, outer))) => {
                    let most = field.declared.text_max();
                    if *len > most {
                        let room = format!("it has room for texts of {len} bytes");
                        return Err(wrong(format!("{room}, the message of {most}")));
                    }
                    dims = outer;
                    (vec![Step::Text { at: 0, len: *len }], *len)
                }
                _ => return Err(wrong(format!("it is {of}, not text"))),
            },
            Kind::Base(base) if is(of.kind(), *base) => {
                let width = base.size();
                (vec![Step::Numbers { at: 0, len: width, width }], width)
            }
            Kind::Base(base) => return Err(wrong(format!("it is {of}, not {base:?}"))),
            Kind::Message(index) => {
                let Of::Struct { size, fields } = of.kind() else {
                    return Err(wrong(format!("it is {of}, not a message")));
                };
                (structure(schema, &schema.types[*index], fields, 0).map_err(wrong)?, *size)
            }
        };
        let many = many(field, places, base, dims).map_err(wrong)?;
        let (of, stride) = element;
        steps.push(Step::List { at, many, stride, of });
    }
    no_others(fields, places)?;
    Ok(steps)
}

fn find<'a>(places: &'a [Place], name: &str) -> Result<&'a Place, String> {
    let place = places.iter().find(|place| place.name() == name);
    place.ok_or_else(|| format!("it has no field {name}"))
}

fn many(field: &Field, places: &[Place], base: usize, dims: &[usize]) -> Result<Many, String> {
    match (field.many, dims) {
        (Declared::One, []) => Ok(Many::Fixed(1)),
        (Declared::Fixed(len), [have]) if len == *have => Ok(Many::Fixed(len)),
        (Declared::Any, [len]) if *len > field.declared.elements_max() => {
            let most = field.declared.elements_max();
            Err(format!("it has room for {len} elements, the message for {most}"))
        }
        (Declared::Any, [most]) => {
            let count = find(places, &format!("{}_count", field.name))?;
            match count.ty() {
                ty if is_one(ty, Scalar::U32) => {
                    Ok(Many::Counted { count_at: base + count.offset(), most: *most })
                }
                ty => Err(format!("{} is {ty}, not u32", count.name())),
            }
        }
        _ => Err("it has another number of elements".into()),
    }
}

fn is_one(ty: &FieldType, scalar: Scalar) -> bool {
    *ty.kind() == Of::Scalar(scalar) && ty.dims().is_empty() && !ty.is_any_length()
}

/// An enum is the integer of its width.
fn is(of: &Of, base: Base) -> bool {
    match of {
        Of::Scalar(scalar) => *scalar == base.scalar(),
        Of::Enum(names) => names.width() == base.scalar(),
        _ => false,
    }
}

/// Nothing that a message lacks is left out unnoticed.
fn no_others(fields: &[Field], places: &[Place]) -> Result<(), String> {
    let is_known = |name: &str| {
        let count = name.strip_suffix("_count");
        let named = |f: &Field, name: &str| f.name == name;
        fields.iter().any(|f| {
            named(f, name) || f.many == Declared::Any && count.is_some_and(|name| named(f, name))
        })
    };
    let is_padding = |place: &Place| {
        let number = place.name().strip_prefix("reserved");
        number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
            && *place.ty().kind() == Of::Scalar(Scalar::U8)
    };
    match places.iter().find(|place| !is_known(place.name()) && !is_padding(place)) {
        Some(other) => Err(format!("the message has no field {}", other.name())),
        None => Ok(()),
    }
}
