//! Why bytes are no value of a described type.

use super::value::integer;
use super::{Field, FieldType, Kind, Scalar, TypeDescription};

/// Most values of an enum that a message lists.
const NAMES_SHOWN: usize = 8;

impl TypeDescription {
    /// The first field of the payload `bytes` that holds what is none of its values, in words;
    /// `None` if there is none, as far as it is described.
    pub(crate) fn fault(&self, bytes: &[u8]) -> Option<String> {
        fault(&self.root, "", bytes)
    }
}

fn fault(ty: &FieldType, path: &str, bytes: &[u8]) -> Option<String> {
    let Some(len) = bytes.len().checked_div(ty.size()).filter(|_| ty.any_length) else {
        return fault_in_dims(ty, &ty.dims, path, bytes);
    };
    (0..len).find_map(|i| {
        let bytes = &bytes[i * ty.size()..];
        fault_in_dims(ty, &ty.dims, &format!("{path}[{i}]"), bytes)
    })
}

fn fault_in_dims(ty: &FieldType, dims: &[usize], path: &str, bytes: &[u8]) -> Option<String> {
    match (dims, &ty.kind) {
        // Any bytes are one of these; there may be many.
        (_, Kind::Opaque { .. }) => None,
        (_, Kind::Scalar(scalar)) if !matches!(scalar, Scalar::Bool | Scalar::Char32) => None,
        ([len, inner @ ..], kind) => {
            let stride = inner.iter().fold(kind.size(), |size, dim| size.saturating_mul(*dim));
            (0..*len).find_map(|i| {
                let bytes = bytes.get(i * stride..)?;
                fault_in_dims(ty, inner, &format!("{path}[{i}]"), bytes)
            })
        }
        ([], Kind::Struct { fields, .. }) => fields.iter().find_map(|f| fault_in(f, path, bytes)),
        ([], kind) => Some(format!("field `{path}` holds {}", wrong(kind, bytes)?))
            .map(|said| if path.is_empty() { said.replacen("field ``", "it", 1) } else { said }),
    }
}

fn fault_in(field: &Field, path: &str, bytes: &[u8]) -> Option<String> {
    let dot = if path.is_empty() { "" } else { "." };
    fault(&field.ty, &format!("{path}{dot}{}", field.name), bytes.get(field.offset..)?)
}

/// What an element of `kind` holds, if that is none of its values.
fn wrong(kind: &Kind, bytes: &[u8]) -> Option<String> {
    match kind {
        Kind::Scalar(Scalar::Bool) => {
            let byte = integer(Scalar::U8, bytes);
            (byte > 1).then(|| format!("{byte}, which is neither 0 (false) nor 1 (true)"))
        }
        Kind::Scalar(_) => {
            let number = integer(Scalar::U32, bytes) as u32;
            let is_char = char::from_u32(number).is_some();
            (!is_char).then(|| format!("{number:#x}, which is not a Unicode character"))
        }
        Kind::Enum(names) => {
            let number = integer(names.width(), bytes);
            if names.name_of(number).is_some() {
                return None;
            }
            let all = names.iter().map(|(name, number)| format!("{name} {number}"));
            let shown: Vec<_> = all.take(NAMES_SHOWN).collect();
            let more = if names.iter().count() > NAMES_SHOWN { " .." } else { "" };
            Some(format!("{number}, which is not one of {}{more}", shown.join(", ")))
        }
        Kind::Struct { .. } | Kind::Opaque { .. } => None,
    }
}
