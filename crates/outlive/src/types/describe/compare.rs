//! Two types field by field: what differs, seen from both sides.

use super::{Field, FieldType, Kind, TypeDescription};

/// Most lines of one answer; the rest is counted.
const LINES_MAX: usize = 32;

/// What differs between the schema that a topic has and ours, one line each; empty when they
/// agree or one side has none. Schemas that are no type descriptions are compared as bytes.
pub(crate) fn differences(topic: &[u8], ours: &[u8]) -> Vec<String> {
    if topic.is_empty() || ours.is_empty() || topic == ours {
        return Vec::new();
    }
    match (TypeDescription::parse(topic), TypeDescription::parse(ours)) {
        // Their alignments are beside the schemas and are compared there.
        (Ok(topic), Ok(ours)) => topic.root.differences(&ours.root),
        _ => vec!["the schema differs".into()],
    }
}

impl TypeDescription {
    /// The differences between this type, which a topic has, and `ours`, one line each; empty when
    /// they agree. What either side leaves undescribed agrees with anything of its size.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription};
    ///
    /// let (has, ours) = (f64::describe().array(6), f64::describe().array(7));
    /// assert_eq!(has.differences(&ours), ["the payload is f64[6], this program has f64[7]"]);
    /// assert!(has.differences(&TypeDescription::opaque::<[f64; 6]>()).is_empty());
    /// ```
    pub fn differences(&self, ours: &Self) -> Vec<String> {
        let mut lines = self.root.differences(&ours.root);
        if self.align != ours.align {
            lines.push(format!("alignment is {}, this program has {}", self.align, ours.align));
        }
        lines
    }
}

impl FieldType {
    fn differences(&self, ours: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        compare_types("the payload", "", (self, None), (ours, None), &mut lines);
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("{more} more fields differ"));
        }
        lines
    }
}

impl Kind {
    /// Whether two elements that are no structs are the same. An integer agrees with an enum of
    /// its width: a program that knows no names has the number.
    fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Enum(a), Self::Enum(b)) => a.agrees(b),
            (Self::Enum(names), Self::Scalar(scalar))
            | (Self::Scalar(scalar), Self::Enum(names)) => names.width() == *scalar,
            (a, b) => a == b,
        }
    }
}

type At<'a> = (&'a FieldType, Option<usize>);

/// `what` names the two for people, `path` goes before the names of their fields.
fn compare_types(what: &str, path: &str, topic: At<'_>, ours: At<'_>, lines: &mut Vec<String>) {
    let before = lines.len();
    let both_structs =
        matches!((&topic.0.kind, &ours.0.kind), (Kind::Struct { .. }, Kind::Struct { .. }));
    let same_shape = topic.0.dims == ours.0.dims && topic.0.any_length == ours.0.any_length;
    let opaque = [topic.0, ours.0].iter().any(|t| matches!(t.kind, Kind::Opaque { .. }));
    let same_type = match opaque {
        true => topic.0.size() == ours.0.size() && topic.0.any_length == ours.0.any_length,
        false => same_shape && (both_structs || topic.0.kind.agrees(&ours.0.kind)),
    };
    let text = |ty: At<'_>| match ty.1 {
        Some(at) => format!("{} at {at}", ty.0),
        None => ty.0.to_string(),
    };
    if !same_type {
        lines.push(format!("{what} is {}, this program has {}", text(topic), text(ours)));
    } else if topic.1 != ours.1 {
        let at = |ty: At<'_>| ty.1.unwrap_or_default();
        lines.push(format!("{what} is at {}, this program has it at {}", at(topic), at(ours)));
    }
    if both_structs {
        compare_fields(path, topic.0.fields(), ours.0.fields(), lines);
        if lines.len() == before && topic.0.kind.size() != ours.0.kind.size() {
            lines.push(format!("{what} is {}, this program has {}", topic.0, ours.0));
        }
    }
}

fn compare_fields(path: &str, topic: &[Field], ours: &[Field], lines: &mut Vec<String>) {
    let find = |fields: &[Field], name: &str| fields.iter().position(|f| f.name == name);
    for field in topic {
        let full = format!("{path}{}", field.name);
        let Some(i) = find(ours, &field.name) else {
            lines.push(format!(
                "field {full} ({} at {}) is missing in this program",
                field.ty, field.offset
            ));
            continue;
        };
        let inner = match field.ty.dims.is_empty() && !field.ty.any_length {
            true => format!("{full}."),
            false => format!("{full}[]."),
        };
        compare_types(
            &format!("field {full}"),
            &inner,
            (&field.ty, Some(field.offset)),
            (&ours[i].ty, Some(ours[i].offset)),
            lines,
        );
    }
    for field in ours.iter().filter(|f| find(topic, &f.name).is_none()) {
        let (name, ty, at) = (&field.name, &field.ty, field.offset);
        lines.push(format!("field {path}{name} ({ty} at {at}) is in this program only"));
    }
}
