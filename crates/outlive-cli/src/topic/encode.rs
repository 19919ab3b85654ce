//! JSON as the payload of a topic: fields of described types, numbers, or MessagePack.

use std::collections::BTreeMap;
use std::hint::black_box;

use outlive::describe::{Field, FieldType, Kind, Names, Scalar};
use outlive::{Encoding, TypeDescription};
use serde_json::Value;

/// Largest list that is made, bytes: what a publisher's memory holds by default.
const LIST_BYTES_MAX: usize = 1 << 30;

/// Why a value is no payload, with the path of the part that is wrong.
type Wrong = String;

/// The payload that `value` is on a topic of a described type.
pub(crate) fn payload(of: &TypeDescription, value: &Value) -> Result<Vec<u8>, Wrong> {
    let root = of.root();
    let size = if root.is_any_length() { 0 } else { root.size() };
    // The size is a claim of whoever made the topic. Asked for first: no memory for the zeros below
    // would end the process. They take none until they are written to.
    let mut room = Vec::<u8>::new();
    if room.try_reserve_exact(size).is_err() {
        return wrong("", format_args!("has {size} bytes, for which there is no memory"));
    }
    drop(black_box(room));
    let mut out = vec![0; size];
    // A slice is all of the payload, or its last field; then bytes are appended.
    if root.is_any_length() {
        append(root, value, "", &mut out)?;
    } else {
        fill(root, root.dims(), value, "", &mut out)?;
    }
    let tail = root.fields().last().filter(|f| f.ty().is_any_length());
    if let (Some(tail), Some(value)) = (tail, tail.and_then(|f| value.get(f.name()))) {
        out.resize(tail.offset(), 0);
        append(tail.ty(), value, tail.name(), &mut out)?;
    }
    Ok(out)
}

/// The description of a topic whose type has none: a primitive.
pub(crate) fn primitive(name: &str, encoding: Encoding, bytes: usize) -> Option<TypeDescription> {
    use Scalar::{F32, F64, I8, I16, I32, I64, I128, U8, U16, U32, U64, U128};
    let all = [U8, U16, U32, U64, U128, I8, I16, I32, I64, I128, F32, F64];
    let scalar = all.into_iter().find(|s| s.as_str() == name)?;
    let one = TypeDescription::scalar(scalar);
    match encoding {
        Encoding::Slice | Encoding::Bytes => Some(one.slice()),
        Encoding::Fixed if bytes == scalar.size() => Some(one),
        Encoding::Fixed => Some(one.array(bytes / scalar.size())),
        _ => None,
    }
}

fn wrong<T>(path: &str, why: impl std::fmt::Display) -> Result<T, Wrong> {
    let path = if path.is_empty() { "the value" } else { path };
    Err(format!("{path} {why}"))
}

/// Appends the elements of a slice.
fn append(ty: &FieldType, value: &Value, path: &str, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let Value::Array(items) = value else { return wrong(path, "must be an array, like [1, 2]") };
    for (i, item) in items.iter().enumerate() {
        let (at, path) = (out.len(), format!("{path}[{i}]"));
        // The size of an element is a claim, too, and all of it is written here.
        if at.saturating_add(ty.size()) > LIST_BYTES_MAX {
            return wrong(&path, "makes the payload larger than 1 GiB");
        }
        out.resize(at + ty.size(), 0);
        fill(ty, ty.dims(), item, &path, &mut out[at..])?;
    }
    Ok(())
}

/// Writes `value` to the beginning of `out`, which has room for all but slices.
fn fill(
    ty: &FieldType,
    dims: &[usize],
    value: &Value,
    path: &str,
    out: &mut [u8],
) -> Result<(), Wrong> {
    match (dims, ty.kind()) {
        (&[len], Kind::Scalar(Scalar::Char)) => text(value, len, path, out),
        (&[len, ref inner @ ..], _) => {
            let Value::Array(items) = value else {
                return wrong(path, format_args!("must be an array of {len}"));
            };
            if items.len() != len {
                return wrong(path, format_args!("has {} elements, not {len}", items.len()));
            }
            let stride = inner.iter().product::<usize>() * ty.kind().size();
            for (i, item) in items.iter().enumerate() {
                fill(ty, inner, item, &format!("{path}[{i}]"), &mut out[i * stride..])?;
            }
            Ok(())
        }
        ([], Kind::Scalar(Scalar::Char)) => text(value, 1, path, out),
        ([], Kind::Scalar(scalar)) => number(*scalar, value, path, out),
        ([], Kind::Enum(names)) => choice(names, value, path, out),
        ([], Kind::Struct { fields, .. }) => {
            let Value::Object(given) = value else {
                let names: Vec<_> = fields.iter().map(|f| f.name()).collect();
                return wrong(path, format_args!("must be an object with {}", names.join(", ")));
            };
            structure(fields, given.iter().collect(), path, out)
        }
        _ => wrong(path, "has no description: its bytes cannot be filled in"),
    }
}

/// Writes the fields of a struct. Without a value are fields that say nothing: reserved bytes, and
/// how many elements of a list there are.
fn structure(
    fields: &[Field],
    mut given: BTreeMap<&String, &Value>,
    path: &str,
    out: &mut [u8],
) -> Result<(), Wrong> {
    let dot = if path.is_empty() { "" } else { "." };
    // How many elements were given of the list before.
    let mut counted = None;
    for (i, field) in fields.iter().enumerate() {
        let (ty, path) = (field.ty(), format!("{path}{dot}{}", field.name()));
        let out = &mut out[field.offset()..];
        match (given.remove(&field.name().to_owned()), counted) {
            (None, Some((count, name))) if name == field.name() => {
                number(Scalar::U32, &Value::from(count), &path, out)?;
            }
            (None, _) if is_reserved(field) => {}
            (None, _) => return wrong(&path, "is missing"),
            // The last field of the payload: `payload` appends it.
            (Some(_), _) if ty.is_any_length() => {}
            (Some(value), _) => match (count_name(fields, i), value) {
                (Some(name), Value::Array(items)) => {
                    let (count, most) = (items.len(), ty.dims()[0]);
                    if count > most {
                        return wrong(
                            &path,
                            format_args!("has {count} elements, more than {most}"),
                        );
                    }
                    fill(ty, &[&[count], &ty.dims()[1..]].concat(), value, &path, out)?;
                    counted = Some((count, name));
                }
                _ => fill(ty, ty.dims(), value, &path, out)?,
            },
        }
    }
    match given.keys().next() {
        Some(name) => wrong(&format!("{path}{dot}{name}"), "is not a field of the type"),
        None => Ok(()),
    }
}

/// Bytes that keep room, as `outlive types import` names them: `reserved`, `reserved2`.
fn is_reserved(field: &Field) -> bool {
    let number = field.name().strip_prefix("reserved");
    let is_number = number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    is_number && matches!(field.ty().kind(), Kind::Scalar(_)) && !field.ty().is_any_length()
}

/// The field that says how many elements a bounded list has, if field `i` is one: `x_count` behind
/// `x`, but for reserved bytes.
fn count_name(fields: &[Field], i: usize) -> Option<&str> {
    let list = &fields[i];
    let next = fields[i + 1..].iter().find(|field| !is_reserved(field))?;
    let is_count = next.name().strip_suffix("_count") == Some(list.name())
        && matches!(next.ty().kind(), Kind::Scalar(Scalar::U32))
        && next.ty().dims().is_empty();
    (is_count && !list.ty().dims().is_empty()).then(|| next.name())
}

fn text(value: &Value, len: usize, path: &str, out: &mut [u8]) -> Result<(), Wrong> {
    let Value::String(text) = value else { return wrong(path, "must be text, like \"base\"") };
    if text.len() > len {
        return wrong(path, format_args!("has {} bytes, more than {len}", text.len()));
    }
    out[..text.len()].copy_from_slice(text.as_bytes());
    Ok(())
}

/// A value of an enum, by its name or its number.
fn choice(names: &Names, value: &Value, path: &str, out: &mut [u8]) -> Result<(), Wrong> {
    let found = match value {
        Value::String(name) => names.number_of(name),
        value => value.as_i64().map(i128::from).or(value.as_u64().map(i128::from)),
    };
    let Some(number) = found.filter(|number| names.name_of(*number).is_some()) else {
        let all: Vec<_> = names.iter().map(|(name, _)| name).collect();
        return wrong(path, format_args!("is not one of {}: {value}", all.join(", ")));
    };
    let width = names.width().size();
    out[..width].copy_from_slice(&number.to_le_bytes()[..width]);
    Ok(())
}

fn number(scalar: Scalar, value: &Value, path: &str, out: &mut [u8]) -> Result<(), Wrong> {
    macro_rules! whole {
        ($t:ty) => {{
            // Text where JSON's numbers may have been rounded: `echo` writes 128 bits so.
            let text = match value.as_str() {
                Some(text) if size_of::<$t>() >= 8 => text.to_owned(),
                _ => value.to_string(),
            };
            match text.parse::<$t>() {
                Ok(v) => out[..size_of::<$t>()].copy_from_slice(&v.to_le_bytes()),
                Err(_) => {
                    let (name, min, max) = (scalar.as_str(), <$t>::MIN, <$t>::MAX);
                    return wrong(
                        path,
                        format_args!("must be a {name} ({min} to {max}), not {value}"),
                    );
                }
            }
        }};
    }
    match scalar {
        Scalar::U8 => whole!(u8),
        Scalar::U16 => whole!(u16),
        Scalar::U32 => whole!(u32),
        Scalar::U64 => whole!(u64),
        Scalar::U128 => whole!(u128),
        Scalar::I8 => whole!(i8),
        Scalar::I16 => whole!(i16),
        Scalar::I32 => whole!(i32),
        Scalar::I64 => whole!(i64),
        Scalar::I128 => whole!(i128),
        Scalar::F32 | Scalar::F64 => {
            let v = match value {
                // JSON has no word for NaN and infinity; echo prints null.
                Value::Null => Some(f64::NAN),
                Value::String(text) if ["nan", "inf", "-inf"].contains(&&**text) => {
                    text.parse().ok()
                }
                value => value.as_f64(),
            };
            let Some(v) = v else {
                return wrong(path, format_args!("must be a number, not {value}"));
            };
            if scalar == Scalar::F32 {
                if v.is_finite() && (v as f32).is_infinite() {
                    return wrong(path, format_args!("must fit an f32, {value} does not"));
                }
                out[..4].copy_from_slice(&(v as f32).to_le_bytes());
            } else {
                out[..8].copy_from_slice(&v.to_le_bytes());
            }
        }
        Scalar::Bool => {
            let Some(v) = value.as_bool() else { return wrong(path, "must be true or false") };
            out[0] = v.into();
        }
        Scalar::Char32 => {
            let mut chars = value.as_str().unwrap_or_default().chars();
            let (Some(c), None) = (chars.next(), chars.next()) else {
                return wrong(path, format_args!("must be one character: {value}"));
            };
            out[..4].copy_from_slice(&u32::from(c).to_le_bytes());
        }
        _ => return wrong(path, "has a type that this version does not know"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pose() -> TypeDescription {
        TypeDescription::struct_of(32, 8)
            .field("position", 0, TypeDescription::scalar(Scalar::F64).array(2))
            .field("frame", 16, TypeDescription::scalar(Scalar::Char).array(8))
            .field("id", 24, TypeDescription::scalar(Scalar::U16))
            .field("valid", 26, TypeDescription::scalar(Scalar::Bool))
    }

    fn shown(of: &TypeDescription, json: &str) -> String {
        let value = serde_json::from_str(json).unwrap();
        match payload(of, &value) {
            Ok(bytes) => of.decode(&bytes).unwrap().to_string(),
            Err(why) => why,
        }
    }

    #[test]
    fn a_description_of_more_bytes_than_there_is_memory_is_refused() {
        let text = b"outlive-type 1 align 1\nstruct:1099511627776\n 0 u8 a\n";
        let huge = TypeDescription::parse(text).unwrap();
        let why = "the value has 1099511627776 bytes, for which there is no memory";
        assert_eq!(shown(&huge, "{\"a\": 1}"), why);
    }

    #[test]
    fn an_element_of_more_bytes_than_a_payload_may_have_is_refused() {
        let text = b"outlive-type 1 align 1\nstruct:1099511627776\n 0 u8 a\n";
        let huge = TypeDescription::parse(text).unwrap().slice();
        assert_eq!(shown(&huge, "[{\"a\": 1}]"), "[0] makes the payload larger than 1 GiB");
        assert_eq!(shown(&huge, "[]"), "[]");
    }

    /// It filled them with zeros first, and the kernel ended who had the most memory.
    #[test]
    fn a_wrong_value_of_a_large_type_takes_no_memory() {
        let text = b"outlive-type 1 align 1\nstruct:2147483648\n 0 u8 a\n";
        let large = TypeDescription::parse(text).unwrap();
        assert_eq!(shown(&large, "{}"), "a is missing");
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(most < 1 << 20, "{most} kB");
    }

    #[test]
    fn what_json_says_is_what_subscribers_decode() {
        let json = r#"{"position": [1.5, -2], "frame": "map", "id": 7, "valid": true}"#;
        let text = r#"{position: [1.5, -2.0], frame: "map", id: 7, valid: true}"#;
        assert_eq!(shown(&pose(), json), text);
        let slice = primitive("i16", Encoding::Slice, 2).unwrap();
        assert_eq!(shown(&slice, "[-3, 4]"), "[-3, 4]");
        let cloud = pose().field("tail", 32, TypeDescription::scalar(Scalar::F32).slice());
        assert!(
            shown(&cloud, &json.replace("true", "true, \"tail\": [0.5]")).ends_with("tail: [0.5]}")
        );
        let wide = primitive("u128", Encoding::Fixed, 16).unwrap();
        let most = u128::MAX.to_string();
        assert_eq!(shown(&wide, &format!("\"{most}\"")), most);
    }

    /// `"3"` was taken as a number of any width.
    #[test]
    fn an_integer_may_be_text_only_where_numbers_of_json_are_rounded() {
        let of = |name: &str, json: &str| {
            let all = [("u8", 1), ("i16", 2), ("u32", 4), ("u64", 8), ("i64", 8), ("i128", 16)];
            let bytes = all.iter().find(|(of, _)| *of == name).unwrap().1;
            shown(&primitive(name, Encoding::Fixed, bytes).unwrap(), json)
        };
        assert_eq!(of("u8", "\"3\""), "the value must be a u8 (0 to 255), not \"3\"");
        assert_eq!(of("i16", "\"-3\""), "the value must be a i16 (-32768 to 32767), not \"-3\"");
        assert_eq!(of("u32", "\"3\""), "the value must be a u32 (0 to 4294967295), not \"3\"");
        assert_eq!(of("u64", "\"9007199254740993\""), "9007199254740993");
        assert_eq!(of("i64", "\"-9007199254740993\""), "-9007199254740993");
        assert_eq!(of("i128", "\"-1\""), "-1");
        let wrong = of("u64", "\"-1\"");
        assert!(wrong.ends_with("to 18446744073709551615), not \"-1\""), "{wrong}");
    }

    #[test]
    fn floats_may_be_no_numbers_and_are_never_made_infinite() {
        let of = |name: &str, json: &str| {
            shown(
                &primitive(name, Encoding::Fixed, if name == "f32" { 4 } else { 8 }).unwrap(),
                json,
            )
        };
        assert_eq!((of("f64", "null"), of("f32", "\"-inf\"")), ("NaN".into(), "-inf".into()));
        assert_eq!(of("f64", "1e300"), "1e300");
        assert_eq!(of("f32", "1e300"), "the value must fit an f32, 1e+300 does not");
    }

    #[test]
    fn an_enum_is_written_by_name_or_number_and_a_character_as_text() {
        let mode = TypeDescription::enumeration(Scalar::I16, [("Idle", 0), ("Backwards", -2)]);
        let of = TypeDescription::struct_of(8, 4).field("modes", 0, mode.array(2)).field(
            "key",
            4,
            TypeDescription::scalar(Scalar::Char32),
        );
        let json =
            |modes: &str, key: &str| shown(&of, &format!(r#"{{"modes": {modes}, "key": {key}}}"#));
        let text = "{modes: [Idle, Backwards], key: \"ä\"}";
        assert_eq!(json(r#"["Idle", "BACKWARDS"]"#, "\"ä\""), text);
        assert_eq!(json("[0, -2]", "\"ä\""), text);
        assert_eq!(json("[0, 1]", "\"ä\""), "modes[1] is not one of Backwards, Idle: 1");
        assert_eq!(json("[\"off\", 0]", "1"), "modes[0] is not one of Backwards, Idle: \"off\"");
        assert_eq!(json("[0, 0]", "\"ab\""), "key must be one character: \"ab\"");
    }

    /// As `outlive types import` lays out `uint8 id`, `float64[<=3] points`, `Corner[<=2] corners`.
    fn bounded() -> TypeDescription {
        let of = TypeDescription::scalar;
        let corner = TypeDescription::struct_of(4, 2)
            .field("id", 0, of(Scalar::U8))
            .field("reserved", 1, of(Scalar::U8).array(1))
            .field("x", 2, of(Scalar::I16));
        TypeDescription::struct_of(56, 8)
            .field("id", 0, of(Scalar::U8))
            .field("reserved", 1, of(Scalar::U8).array(7))
            .field("points", 8, of(Scalar::F64).array(3))
            .field("points_count", 32, of(Scalar::U32))
            .field("corners", 36, corner.array(2))
            .field("corners_count", 44, of(Scalar::U32))
            .field("reserved2", 48, of(Scalar::U8).array(8))
    }

    /// Every byte between fields had to be given, and lists in full.
    #[test]
    fn reserved_bytes_and_counts_may_be_left_out_and_bounded_lists_be_shorter() {
        let shown = |json: &str| shown(&bounded(), json);
        let text = "{id: 7, reserved: [0, 0, 0, 0, 0, 0, 0], points: [1.5, -2.0, 0.0], \
                    points_count: 2, corners: [{id: 1, reserved: [0], x: -3}, \
                    {id: 0, reserved: [0], x: 0}], corners_count: 1, \
                    reserved2: [0, 0, 0, 0, 0, 0, 0, 0]}";
        let json = r#"{"id": 7, "points": [1.5, -2], "corners": [{"id": 1, "x": -3}]}"#;
        assert_eq!(shown(json), text);
        let given = json.replace("\"corners\"", "\"points_count\": 1, \"corners\"");
        assert_eq!(shown(&given), text.replace("points_count: 2", "points_count: 1"));
        let with = |points: &str| shown(&format!(r#"{{"id": 7, {points} "corners": []}}"#));
        assert!(with("\"points\": [],").contains("points: [0.0, 0.0, 0.0], points_count: 0"));
        assert_eq!(with("\"points\": [1, 2, 3, 4],"), "points has 4 elements, more than 3");
        assert_eq!(with(""), "points is missing");
        assert_eq!(with("\"points_count\": 0,"), "points is missing");
    }

    #[test]
    fn a_field_that_is_only_called_reserved_or_a_count_is_not_left_out() {
        let of = TypeDescription::scalar;
        let ours = TypeDescription::struct_of(24, 8)
            .field("reserved_seats", 0, of(Scalar::U8).array(4))
            .field("door", 8, of(Scalar::U8))
            .field("door_count", 12, of(Scalar::U32));
        let shown = |json: &str| shown(&ours, json);
        assert_eq!(shown(r#"{"door": 1, "door_count": 2}"#), "reserved_seats is missing");
        let door = r#"{"reserved_seats": [1, 2, 3, 4], "door": 1}"#;
        assert_eq!(shown(door), "door_count is missing");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let start = r#"{"position": [1, 2], "frame": "map", "valid": true"#;
        for (json, why) in [
            ("7".to_owned(), "the value must be an object with position, frame, id, valid"),
            (format!("{start}}}"), "id is missing"),
            (format!("{start}, \"id\": 65536}}"), "id must be a u16 (0 to 65535), not 65536"),
            (format!("{start}, \"id\": 1, \"x\": 1}}"), "x is not a field of the type"),
            (r#"{"position": [1]}"#.into(), "position has 1 elements, not 2"),
            (r#"{"position": [1, "a"]}"#.into(), "position[1] must be a number, not \"a\""),
            (
                r#"{"position": [1, 2], "frame": "too long a name"}"#.into(),
                "frame has 15 bytes, more than 8",
            ),
        ] {
            assert_eq!(shown(&pose(), &json), why);
        }
    }
}
