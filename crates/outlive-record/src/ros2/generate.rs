//! A definition of ROS 2 for a described type, so that tools of others show its fields.

use std::collections::HashSet;

use outlive::describe::{Field, FieldType, Kind, Names, Scalar};
use outlive::{Encoding, PayloadType};

use super::definition::{SEPARATOR, embedded_text};
use super::layout::{Layout, Many, SIZE_MAX, Step};
use super::{NUMBERS, to_ros};

/// The field that has what no other field has.
const REST: &str = "outlive_rest";
const REST_DOC: &str = "# Padding, and bytes behind the end of texts; empty if all are 0";

impl Layout {
    /// For payloads of the type `of`; `None` if nobody described it, and for images and point
    /// clouds, which are large and which tools know in forms of their own.
    pub(crate) fn generated(of: &PayloadType) -> Option<Self> {
        let description = of.description().filter(|d| !d.is_opaque())?;
        if of.size() > SIZE_MAX || to_ros::is_large(of) || !has_its_size(of, description.root()) {
            return None;
        }
        let (package, class) = name(of, description.root());
        let mut maker = Maker { package, ..Maker::default() };
        let root = description.root();
        let is_struct = !root.fields().is_empty() && root.dims().is_empty();
        let mut body = if is_struct && !root.is_any_length() {
            maker.structure(&class, root.fields(), root.kind().size(), 0)
        } else {
            let element = class.strip_suffix("Array").unwrap_or(&class).to_owned();
            let mut body = Body::default();
            maker.field(&element, "data", root, 0, &mut body);
            body
        };
        let keeps = has_gaps(&body.steps);
        if keeps {
            let name = body.free(REST);
            body.text += &format!("{REST_DOC}\nuint8[] {name}\n");
        }
        let mut text = body.text;
        for (name, part) in &maker.parts {
            text += &format!("{SEPARATOR}\nMSG: {}/{name}\n{part}", maker.package);
        }
        let name = format!("{}/msg/{class}", maker.package);
        let (steps, of) = (body.steps, of.clone());
        Some(Self { name, text, steps, keeps, is_generated: true, of })
    }
}

/// Whether a description says what the type's size says: both are claims.
fn has_its_size(of: &PayloadType, root: &FieldType) -> bool {
    match of.encoding() {
        Encoding::Fixed => !root.is_any_length() && root.size() == of.size(),
        Encoding::Slice => root.is_any_length() && root.size() == of.size(),
        Encoding::Headed => {
            let tail = root.fields().last().filter(|f| f.ty().is_any_length());
            let is_struct = root.dims().is_empty() && !root.is_any_length();
            is_struct && root.size() == of.size() && tail.is_some_and(|f| f.offset() == of.size())
        }
        _ => false,
    }
}

fn has_gaps(steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Gap { .. } | Step::Text { .. } => true,
        Step::List { of, .. } => has_gaps(of),
        Step::Numbers { .. } => false,
    })
}

/// Package and name: `robot/Gripper` is `robot`, `Gripper`.
fn name(of: &PayloadType, root: &FieldType) -> (String, String) {
    let number = |(name, ..): &&(&str, _, _)| *name == of.name();
    let is_one = root.dims().is_empty() && matches!(root.kind(), Kind::Scalar(_));
    if let Some((.., name)) = NUMBERS.iter().find(number).filter(|_| is_one)
        && of.encoding() == Encoding::Fixed
    {
        return ("std_msgs".into(), (*name).into());
    }
    let parts: Vec<&str> = of.name().split(['/', ':']).filter(|part| !part.is_empty()).collect();
    let (last, before) = parts.split_last().unwrap_or((&"", &[]));
    let mut class = match of.encoding() {
        Encoding::Headed => format!("Headed{}", camel(last)),
        _ => camel(last),
    };
    if root.is_any_length() || !root.dims().is_empty() {
        class += "Array";
    }
    // What such a file's definition says is not what ROS has under that name.
    let of_ros = matches!(before, [_, "msg" | "srv" | "action"]);
    let before = if of_ros { &before[..1] } else { before };
    let mut package = match before.is_empty() {
        true => "outlive".into(),
        false => snake(&before.join("_")),
    };
    if of_ros || embedded_text(&format!("{package}/msg/{class}")).is_some() {
        package += "_outlive";
    }
    (package, class)
}

/// What is written of a struct.
#[derive(Default)]
struct Body {
    text: String,
    steps: Vec<Step>,
    taken: HashSet<String>,
}

impl Body {
    /// Appends a step, to the last one if that has numbers of the same width just before it.
    fn push(&mut self, step: Step) {
        match (self.steps.last_mut(), &step) {
            (
                Some(Step::Numbers { at: begin, len: so_far, width }),
                Step::Numbers { at, len, width: same },
            ) if width == same && *begin + *so_far == *at => *so_far += len,
            _ => self.steps.push(step),
        }
    }

    /// The name, or one like it that is not taken.
    fn free(&mut self, name: &str) -> String {
        let numbered = (2..).map(|n| format!("{name}{n}"));
        let free = std::iter::once(name.to_owned()).chain(numbered);
        let free = free.into_iter().find(|name| !self.taken.contains(name)).unwrap_or_default();
        self.taken.insert(free.clone());
        free
    }
}

#[derive(Default)]
struct Maker {
    package: String,
    /// Names and definitions of the structs in it.
    parts: Vec<(String, String)>,
}

impl Maker {
    fn structure(&mut self, class: &str, fields: &[Field], size: usize, base: usize) -> Body {
        let (mut body, mut end) = (Body::default(), 0);
        for field in fields {
            if field.offset() > end {
                body.steps.push(Step::Gap { at: base + end, len: field.offset() - end });
            }
            let inner = format!("{class}{}", camel(field.name()));
            self.field(&inner, field.name(), field.ty(), base + field.offset(), &mut body);
            end = field.offset() + field.ty().size();
        }
        if size > end {
            body.steps.push(Step::Gap { at: base + end, len: size - end });
        }
        body
    }

    /// Appends a field to `body`; `class` is what it is called if it is a struct.
    fn field(&mut self, class: &str, name: &str, ty: &FieldType, at: usize, body: &mut Body) {
        let name = body.free(&snake(name));
        let mut dims = ty.dims().to_vec();
        let mut element = Body::default();
        let (of, stride) = match ty.kind() {
            Kind::Scalar(Scalar::Char) if !dims.is_empty() => {
                let len = dims.pop().unwrap_or_default();
                element.steps.push(Step::Text { at: 0, len });
                ("string".to_owned(), len)
            }
            Kind::Struct { size, fields } if !fields.is_empty() => {
                element = self.structure(class, fields, *size, 0);
                (self.part(class, std::mem::take(&mut element.text)), *size)
            }
            Kind::Enum(names) => {
                let (of, width) = number(names.width());
                constants(&name, of, names, body);
                element.steps.push(Step::Numbers { at: 0, len: width, width });
                (of.to_owned(), width)
            }
            Kind::Scalar(Scalar::U128 | Scalar::I128) | Kind::Struct { .. } => {
                dims.push(ty.kind().size());
                element.steps.push(Step::Numbers { at: 0, len: 1, width: 1 });
                ("uint8".into(), 1)
            }
            Kind::Opaque { size } => {
                dims.push(*size);
                element.steps.push(Step::Numbers { at: 0, len: 1, width: 1 });
                ("uint8".into(), 1)
            }
            Kind::Scalar(scalar) => {
                let (of, width) = number(*scalar);
                element.steps.push(Step::Numbers { at: 0, len: width, width });
                (of.to_owned(), width)
            }
            _ => return,
        };
        let count: usize = dims.iter().product();
        let brackets = match (ty.is_any_length(), dims.is_empty()) {
            (true, _) => "[]".into(),
            (false, true) => String::new(),
            (false, false) => format!("[{count}]"),
        };
        body.text += &format!("{of}{brackets} {name}\n");
        let many = if ty.is_any_length() { Many::Rest } else { Many::Fixed(count) };
        match (many, &element.steps[..]) {
            (Many::Fixed(_), [Step::Numbers { at: 0, len, width }]) if *len == stride => {
                body.push(Step::Numbers { at, len: count * stride, width: *width });
            }
            (Many::Fixed(1), _) => {
                element.steps.into_iter().for_each(|step| body.push(step.moved(at)))
            }
            _ => body.steps.push(Step::List { at, many, stride, of: element.steps }),
        }
    }

    /// What the struct is called: as one with the same fields, if there is one.
    fn part(&mut self, class: &str, text: String) -> String {
        let same = self.parts.iter().find(|(_, known)| *known == text);
        let class = match same {
            Some((class, _)) => class.clone(),
            None => {
                let is_taken = |name: &String| self.parts.iter().any(|(known, _)| known == name);
                let numbered = (2..).map(|n| format!("{class}{n}"));
                let mut free = std::iter::once(class.to_owned()).chain(numbered);
                let class = free.find(|name| !is_taken(name)).unwrap_or_default();
                self.parts.push((class.clone(), text));
                class
            }
        };
        format!("{}/{class}", self.package)
    }
}

impl Step {
    /// The same, `by` bytes further on.
    fn moved(self, by: usize) -> Self {
        match self {
            Self::Numbers { at, len, width } => Self::Numbers { at: at + by, len, width },
            Self::Text { at, len } => Self::Text { at: at + by, len },
            Self::Gap { at, len } => Self::Gap { at: at + by, len },
            Self::List { at, many, stride, of } => {
                let many = match many {
                    Many::Counted { count_at, most } => {
                        Many::Counted { count_at: count_at + by, most }
                    }
                    many => many,
                };
                Self::List { at: at + by, many, stride, of }
            }
        }
    }
}

/// Names of an enum before its field, where tools look for them.
fn constants(field: &str, of: &str, names: &Names, body: &mut Body) {
    for (name, number) in names.iter() {
        let name = snake(&format!("{field}_{name}")).to_ascii_uppercase();
        let name = body.free(&name);
        body.text += &format!("{of} {name}={number}\n");
    }
}

/// Its name in ROS and its size, bytes.
fn number(scalar: Scalar) -> (&'static str, usize) {
    let name = match scalar {
        Scalar::Bool => "bool",
        Scalar::I8 => "int8",
        Scalar::U16 => "uint16",
        Scalar::I16 => "int16",
        Scalar::U32 | Scalar::Char32 => "uint32",
        Scalar::I32 => "int32",
        Scalar::U64 => "uint64",
        Scalar::I64 => "int64",
        Scalar::F32 => "float32",
        Scalar::F64 => "float64",
        _ => "uint8",
    };
    (name, scalar.size())
}

/// As ROS names fields and packages: `frameId` is `frame_id`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        if c != '_' || before != '_' {
            out.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    let out = out.trim_end_matches('_');
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out.into() } else { format!("f{out}") }
}

/// As ROS names messages: `joint_state` is `JointState`.
fn camel(name: &str) -> String {
    let mut out = String::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        let (first, rest) = part.split_at(1);
        if first.starts_with(|c: char| c.is_ascii_digit()) {
            out.push('X');
        }
        out += &first.to_ascii_uppercase();
        out += rest;
    }
    if out.is_empty() { "Message".into() } else { out }
}
