//! Type descriptions and the values that they describe.

use outlive::describe::Value;
use outlive::{Encoding, PayloadType, TypeDescription};

use crate::input::Input;

/// Most elements of one value that are looked at.
const ELEMENTS_MAX: usize = 100;

/// A description, another one to compare with, a path, a payload. All three as schemas of others.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (ours, other) = (input.part(), input.part());
    let path = String::from_utf8_lossy(input.part()).into_owned();
    schemas(&path, ours, other);
    let Ok(ours) = TypeDescription::parse(ours) else { return };
    let text = ours.to_text();
    assert_eq!(TypeDescription::parse(text.as_bytes()).ok(), Some(ours.clone()), "{text}");
    if let Ok(other) = TypeDescription::parse(other) {
        let same = ours.differences(&other).is_empty();
        assert_eq!(same, other.differences(&ours).is_empty(), "{text}");
    }
    if let Some(value) = ours.decode(input.0) {
        walk(&value, 8);
        if let Some(part) = value.at(&path) {
            walk(&part, 4);
        }
    }
}

/// What is stored of a schema is stored again as it is, and agrees with itself and no schema.
fn schemas(name: &str, ours: &[u8], other: &[u8]) {
    for encoding in [Encoding::Protobuf, Encoding::Json, Encoding::Cdr, Encoding::FlatBuffer] {
        let of = |schema: &[u8]| PayloadType::encoded(encoding, name, schema);
        let Ok(stored) = of(ours) else { continue };
        assert_eq!(of(stored.schema()).ok().as_ref(), Some(&stored), "{encoding:?}");
        assert!(stored.differences(&stored).is_empty(), "{encoding:?}");
        if let Ok(other) = of(other) {
            let same = stored.differences(&other).is_empty();
            assert_eq!(same, other.differences(&stored).is_empty(), "{encoding:?}");
        }
    }
}

/// Looks at all of `value`, `depth` levels deep.
pub fn walk(value: &Value<'_>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Array(array) => {
            let _ = (array.len(), array.bytes(), array.scalar(), array.get(array.len()));
            array.iter().take(ELEMENTS_MAX).for_each(|value| walk(&value, depth));
        }
        Value::Struct(fields) => fields.iter().for_each(|(_, value)| walk(&value, depth)),
        other => drop(format!("{other:?}")),
    }
}
