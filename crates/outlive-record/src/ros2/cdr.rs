//! CDR as ROS 2 writes it: a header of 4 bytes, then each value at a multiple of its size, counted
//! from behind the header.

use std::borrow::Cow;

use super::base::Base;
use super::definition::{Field, Kind, Many, Schema};
use super::layout::SIZE_MAX;
use super::value::Value;

/// What this program writes: plain CDR, little-endian.
const LITTLE: [u8; 4] = [0, 1, 0, 0];

/// The message `value` as CDR. What it lacks is zero, empty or false; a float that is nothing is
/// NaN.
///
/// # Errors
/// What does not fit the definition, by its name.
pub(crate) fn encode(schema: &Schema, value: &Value<'_>) -> Result<Vec<u8>, String> {
    let mut to = Writer { schema, out: LITTLE.to_vec() };
    to.message(schema.root(), value)?;
    Ok(to.out)
}

/// The message that `data` are.
///
/// # Errors
/// What is wrong with them; also when bytes are left.
pub(crate) fn decode<'a>(schema: &'a Schema, data: &'a [u8]) -> Result<Value<'a>, String> {
    let Some((&[_, form, ..], rest)) = data.split_first_chunk::<4>() else {
        return Err("it has no header".into());
    };
    if form > 1 {
        return Err(format!("it is of form {form}, which is not plain CDR"));
    }
    let mut from = Reader { schema, data: rest, at: 0, little: form == 1 };
    let value = from.message(schema.root())?;
    // Some writers fill up to a multiple of 4.
    match rest.len() - from.at {
        0..4 => Ok(value),
        left => Err(format!("{left} bytes are left")),
    }
}

struct Writer<'a> {
    schema: &'a Schema,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn align(&mut self, to: usize) {
        let len = (self.out.len() - LITTLE.len()).next_multiple_of(to) + LITTLE.len();
        self.out.resize(len, 0);
    }

    fn len(&mut self, len: usize) -> Result<(), String> {
        let len = u32::try_from(len).map_err(|_| "it is longer than CDR can say")?;
        self.align(4);
        self.out.extend(len.to_le_bytes());
        Ok(())
    }

    /// Refuses to become too large by `more` elements, each of a byte at least: how many there are
    /// is a claim of the definition, where nobody gave them.
    fn refuse_large(&self, more: usize) -> Result<(), String> {
        match self.out.len().saturating_add(more) > SIZE_MAX {
            true => Err("it is larger than 1 GiB".into()),
            false => Ok(()),
        }
    }

    fn message(&mut self, fields: &[Field], value: &Value<'_>) -> Result<(), String> {
        // Messages in messages make many of few, too.
        self.refuse_large(fields.len())?;
        match value {
            Value::Fields(given) => {
                let known = |name: &str| fields.iter().any(|f| f.name == name);
                if let Some((name, _)) = given.iter().find(|(name, _)| !known(name)) {
                    return Err(format!("the definition has no field {name}"));
                }
            }
            Value::Nothing => {}
            other => return Err(format!("{} instead of a message", what(other))),
        }
        for field in fields {
            let absent =
                if field.many == Many::One { absent(&field.kind) } else { &Value::Nothing };
            let value = value.get(&field.name).unwrap_or(absent);
            self.field(field, value).map_err(|why| match why.split_once(": ") {
                Some((path, why)) if !path.contains(' ') => format!("{}.{path}: {why}", field.name),
                _ => format!("{}: {why}", field.name),
            })?;
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, value: &Value<'_>) -> Result<(), String> {
        let many = match field.many {
            Many::One => return self.one(field, value),
            Many::Fixed(len) => Some(len),
            Many::Any => None,
        };
        let width = if let Kind::Base(base) = field.kind { base.size() } else { 1 };
        let raw = match (value, &field.kind) {
            (Value::Bytes(bytes), Kind::Base(Base::U8)) => Some(bytes),
            (Value::Numbers(have, bytes), Kind::Base(want)) if have == want => Some(bytes),
            _ => None,
        };
        let len = match value {
            _ if raw.is_some() => raw.map_or(0, |bytes| bytes.len() / width),
            Value::List(list) => list.len(),
            Value::Numbers(base, bytes) => bytes.len() / base.size(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Nothing => many.unwrap_or(0),
            other => return Err(format!("{} instead of an array", what(other))),
        };
        match many {
            Some(many) if many != len => return Err(format!("{len} elements instead of {many}")),
            Some(_) => {}
            None if len > field.declared.elements_max() => {
                let most = field.declared.elements_max();
                return Err(format!("{len} elements instead of at most {most}"));
            }
            None => self.len(len)?,
        }
        match (raw, value) {
            (Some(raw), _) if len > 0 => {
                self.align(width);
                self.out.extend_from_slice(raw);
            }
            (_, Value::Nothing) => {
                self.refuse_large(len)?;
                (0..len).try_for_each(|_| self.one(field, absent(&field.kind)))?;
            }
            _ => value.items().iter().try_for_each(|item| self.one(field, item))?,
        }
        Ok(())
    }

    fn one(&mut self, field: &Field, value: &Value<'_>) -> Result<(), String> {
        match (&field.kind, value) {
            (Kind::Base(base), value) => self.number(*base, value),
            (Kind::Text, Value::Text(text)) => self.text(text, field.declared.text_max()),
            (Kind::Text, Value::Nothing) => self.text("", usize::MAX),
            (Kind::Text, other) => Err(format!("{} instead of text", what(other))),
            (Kind::Message(index), value) => self.message(&self.schema.types[*index], value),
        }
    }

    fn text(&mut self, text: &str, most: usize) -> Result<(), String> {
        if text.contains('\0') {
            return Err("text with a zero in it".into());
        }
        if text.len() > most {
            return Err(format!("a text of {} bytes instead of at most {most}", text.len()));
        }
        self.len(text.len() + 1)?;
        self.out.extend(text.as_bytes());
        self.out.push(0);
        Ok(())
    }

    fn number(&mut self, base: Base, value: &Value<'_>) -> Result<(), String> {
        let is_float = matches!(base, Base::F32 | Base::F64);
        let bytes = match value {
            // JSON has no words for these: what `topic pub` takes everywhere.
            Value::Nothing if is_float => base.write(&Value::F64(f64::NAN)),
            Value::Text(text) if is_float && ["nan", "inf", "-inf"].contains(&&**text) => {
                text.parse().ok().and_then(|v| base.write(&Value::F64(v)))
            }
            Value::Nothing => Some([0; 8]),
            value => base.write(value),
        };
        let no = || format!("{} instead of a {base:?}", what(value));
        let bytes = bytes.ok_or_else(no)?;
        self.align(base.size());
        self.out.extend(&bytes[..base.size()]);
        Ok(())
    }
}

struct Reader<'a> {
    schema: &'a Schema,
    data: &'a [u8],
    at: usize,
    little: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, align: usize, len: usize) -> Result<&'a [u8], String> {
        let from = self.at.next_multiple_of(align);
        let taken = from.checked_add(len).and_then(|to| self.data.get(from..to));
        let taken = taken.ok_or_else(|| format!("it ends before {len} bytes at {from}"))?;
        self.at = from + len;
        Ok(taken)
    }

    /// `count` scalars, little-endian.
    fn scalars(&mut self, base: Base, count: usize) -> Result<Cow<'a, [u8]>, String> {
        if count == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let width = base.size();
        let len = count.checked_mul(width).ok_or("a length without end")?;
        let taken = self.take(width, len)?;
        if self.little || width == 1 {
            return Ok(Cow::Borrowed(taken));
        }
        let mut swapped = taken.to_vec();
        swapped.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        Ok(Cow::Owned(swapped))
    }

    fn len(&mut self) -> Result<usize, String> {
        let bytes = self.scalars(Base::U32, 1)?;
        let len = u32::from_le_bytes(bytes.as_ref().try_into().unwrap_or_default()) as usize;
        // Every element has a byte at least.
        if len > self.data.len() - self.at {
            return Err(format!("it ends before {len} elements"));
        }
        Ok(len)
    }

    fn message(&mut self, fields: &'a [Field]) -> Result<Value<'a>, String> {
        let mut all = Vec::with_capacity(fields.len());
        for field in fields {
            let value = self.field(field).map_err(|why| format!("{}: {why}", field.name))?;
            all.push((field.name.as_str().into(), value));
        }
        Ok(Value::Fields(all))
    }

    fn field(&mut self, field: &'a Field) -> Result<Value<'a>, String> {
        let len = match field.many {
            Many::One => return self.one(&field.kind),
            Many::Fixed(len) => len,
            Many::Any => self.len()?,
        };
        match field.kind {
            Kind::Base(Base::U8) => Ok(Value::Bytes(self.scalars(Base::U8, len)?)),
            Kind::Base(base) => Ok(Value::Numbers(base, self.scalars(base, len)?)),
            _ if len > self.data.len() - self.at => Err(format!("it ends before {len} elements")),
            _ => {
                Ok(Value::List((0..len).map(|_| self.one(&field.kind)).collect::<Result<_, _>>()?))
            }
        }
    }

    fn one(&mut self, kind: &'a Kind) -> Result<Value<'a>, String> {
        match kind {
            Kind::Base(base) => Ok(base.read(&self.scalars(*base, 1)?)),
            Kind::Text => {
                let len = self.len()?;
                let bytes = self.take(1, len)?;
                let bytes = bytes.strip_suffix(&[0]).unwrap_or(bytes);
                Ok(Value::Text(String::from_utf8_lossy(bytes)))
            }
            Kind::Message(index) => self.message(&self.schema.types[*index]),
        }
    }
}

/// What stands for a value that nobody gave: zero, as a float that is nothing is NaN.
fn absent(kind: &Kind) -> &'static Value<'static> {
    if let Kind::Base(_) = kind { &Value::Unsigned(0) } else { &Value::Nothing }
}

fn what(value: &Value<'_>) -> String {
    match value {
        Value::Nothing => "nothing".into(),
        Value::Bool(v) => v.to_string(),
        Value::Unsigned(v) => v.to_string(),
        Value::Signed(v) => v.to_string(),
        Value::F32(v) => v.to_string(),
        Value::F64(v) => v.to_string(),
        Value::Text(_) => "text".into(),
        Value::Bytes(_) | Value::Numbers(..) | Value::List(_) => "an array".into(),
        Value::Fields(_) => "a map".into(),
    }
}
