//! Source code in Python.

use outlive::describe::Scalar;
use outlive_record::ros2::{Item, Literal, Many};

use super::cdr;
use super::model::{Carried, Field, Kind, Library, Member, Message};
use super::names::{float, quoted};

/// The module of one package.
pub(super) fn package(
    library: &Library,
    package: &str,
    needs: &[String],
    carried: Carried,
) -> String {
    let mut out =
        format!("\"\"\"Messages of {package}, made by ``outlive types import``.\"\"\"\n\n");
    out += match carried {
        Carried::Fixed => "import numpy as np\n\nfrom outlive import msg\n",
        Carried::MsgPack | Carried::Cdr => {
            "from __future__ import annotations\n\nfrom dataclasses import dataclass, field\n\
             from typing import ClassVar\n"
        }
    };
    let mut imports: String = needs.iter().map(|name| format!("from . import {name}\n")).collect();
    if carried == Carried::Cdr {
        imports += &format!("from . import {}\n", cdr::SHARED);
    }
    if !imports.is_empty() {
        out += &format!("\n{imports}");
    }
    for message in library.messages.iter().filter(|m| m.package == package) {
        let one = Python { library, message };
        out += &match carried {
            Carried::Fixed => one.fixed(),
            Carried::MsgPack => one.open(false),
            Carried::Cdr => one.open(true),
        };
    }
    out
}

/// The package that has the modules of all packages.
pub(super) fn root() -> String {
    "\"\"\"Messages made by ``outlive types import``.\"\"\"\n".into()
}

struct Python<'a> {
    library: &'a Library,
    message: &'a Message,
}

impl Python<'_> {
    fn fixed(&self) -> String {
        let Message { full, ident, doc, members, constants, .. } = self.message;
        let mut out = format!("\n\nclass {ident}(msg.Fixed):\n{}", docstring(doc));
        out += &format!("    type_name = \"{full}\"\n    dtype = np.dtype(\n        [\n");
        for member in members {
            out += &self.member(member);
        }
        out += "        ]\n    )\n";
        out += &constants.iter().map(|c| constant(c, "")).collect::<String>();
        let defaults: Vec<_> =
            self.message.fields.iter().flat_map(|f| self.fixed_defaults(f)).collect();
        if !defaults.is_empty() {
            out += "    defaults = {\n";
            for (name, value) in defaults {
                out += &format!("        \"{name}\": {value},\n");
            }
            out += "    }\n";
        }
        out
    }

    fn member(&self, member: &Member) -> String {
        let entry = |name: &str, of: &str, doc: &[String]| {
            format!("{}            (\"{name}\", {of}),\n", comments("            ", doc))
        };
        match member {
            Member::Field(index) => {
                let field = &self.message.fields[*index];
                let of = match field.kind {
                    Kind::Scalar(scalar) => format!("\"{}\"", code(scalar)),
                    Kind::Text(most) => format!("\"S{}\"", most.unwrap_or_default()),
                    Kind::Message(index) => format!("{}.dtype", self.path(index)),
                };
                let of = match field.many {
                    Many::Fixed(len) | Many::AtMost(len) => format!("{of}, ({len},)"),
                    _ => of,
                };
                entry(&field.name, &of, &field.doc)
            }
            Member::Count { of, name } => {
                let of = &self.message.fields[*of].name;
                entry(name, "\"<u4\"", &[format!("How many of {of} there are.")])
            }
            Member::Reserved { bytes, name } => {
                entry(name, &format!("\"u1\", ({bytes},)"), &["Zero.".into()])
            }
        }
    }

    fn path(&self, index: usize) -> String {
        let Message { package, ident, .. } = &self.library.messages[index];
        match *package == self.message.package {
            true => ident.clone(),
            false => format!("{package}.{ident}"),
        }
    }

    /// Names and values; arrays whole, filled up with zeros.
    fn fixed_defaults(&self, field: &Field) -> Vec<(String, String)> {
        let name = field.name.clone();
        match (&field.default, field.kind, field.many) {
            (Some(Literal::List(values)), kind, many) => {
                let mut list: Vec<_> = values.iter().map(|v| value(kind, v)).collect();
                let (count, zero) =
                    (list.len(), if matches!(kind, Kind::Text(_)) { "b\"\"" } else { "0" });
                let Many::AtMost(most) = many else { return vec![(name, listed(&list))] };
                let rest = most - count;
                let filled = match rest {
                    0 => listed(&list),
                    1..=8 => {
                        list.extend(vec![zero.to_owned(); rest]);
                        listed(&list)
                    }
                    _ => format!("{} + [{zero}] * {rest}", listed(&list)),
                };
                vec![(name, filled), (format!("{}_count", field.name), count.to_string())]
            }
            (Some(one), kind, _) => vec![(name, value(kind, one))],
            (None, Kind::Message(index), _)
                if self.library.has_defaults(&self.library.messages[index]) =>
            {
                vec![(name, format!("{}.new()", self.path(index)))]
            }
            _ => Vec::new(),
        }
    }

    /// With text and lists of any length: a dataclass, as MessagePack or CDR.
    fn open(&self, is_cdr: bool) -> String {
        let Message { full, ident, doc, constants, fields, .. } = self.message;
        let base = if is_cdr { format!("({}.Message)", cdr::SHARED) } else { String::new() };
        let mut out = format!("\n\n@dataclass\nclass {ident}{base}:\n{}", docstring(doc));
        out += &format!("    __outlive_type__: ClassVar[str] = \"{full}\"\n");
        if is_cdr {
            out += &cdr::python(self.message, |index| self.path(index));
        }
        for item in constants {
            let ty = item.of.scalar().map_or("str", of_python);
            out += &constant(item, &format!(": ClassVar[{ty}]"));
        }
        if !fields.is_empty() {
            out += "\n";
        }
        for field in fields {
            out += &self.open_field(field);
        }
        out
    }

    fn open_field(&self, field: &Field) -> String {
        let mut doc = field.doc.clone();
        match field.many {
            Many::AtMost(most) => doc.push(format!("At most {most} values.")),
            Many::Fixed(len) => doc.push(format!("{len} values.")),
            _ => {}
        }
        if let Kind::Text(Some(most)) = field.kind {
            doc.push(format!("At most {most} bytes."));
        }
        let element = match field.kind {
            Kind::Scalar(scalar) => of_python(scalar).into(),
            Kind::Text(_) => "str".into(),
            Kind::Message(index) => self.path(index),
        };
        let is_bytes = field.kind == Kind::Scalar(Scalar::U8);
        let (of, zero) = match field.many {
            Many::One => (element.clone(), zero(field.kind, &element)),
            Many::Fixed(len) if is_bytes => ("bytes".into(), format!("bytes({len})")),
            _ if is_bytes => ("bytes".into(), "b\"\"".into()),
            Many::Fixed(len) => {
                let one = match field.kind {
                    Kind::Message(_) => format!("[{element}() for _ in range({len})]"),
                    _ => format!("[{}] * {len}", zero(field.kind, &element)),
                };
                (format!("list[{element}]"), format!("field(default_factory=lambda: {one})"))
            }
            _ => (format!("list[{element}]"), "field(default_factory=list)".into()),
        };
        let open_value = |v: &Literal| match v {
            Literal::Text(text) => quoted(text),
            v => number(v),
        };
        let default = match &field.default {
            Some(Literal::List(values)) => {
                let list = listed(&values.iter().map(open_value).collect::<Vec<_>>());
                match is_bytes {
                    true => format!("bytes({list})"),
                    false => format!("field(default_factory=lambda: {list})"),
                }
            }
            Some(v) => open_value(v),
            None => zero,
        };
        format!("{}    {}: {of} = {default}\n", comments("    ", &doc), field.name)
    }
}

fn zero(kind: Kind, element: &str) -> String {
    match kind {
        Kind::Scalar(Scalar::Bool) => "False".into(),
        Kind::Scalar(Scalar::F32 | Scalar::F64) => "0.0".into(),
        Kind::Scalar(_) => "0".into(),
        Kind::Text(_) => "\"\"".into(),
        Kind::Message(_) => format!("field(default_factory=lambda: {element}())"),
    }
}

/// A dtype, as NumPy writes it.
fn code(scalar: Scalar) -> String {
    let name = scalar.as_str();
    match (scalar, scalar.size()) {
        (Scalar::Bool, _) => "?".into(),
        (_, 1) => format!("{}1", &name[..1]),
        (_, size) => format!("<{}{size}", &name[..1]),
    }
}

fn of_python(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::F32 | Scalar::F64 => "float",
        _ => "int",
    }
}

fn constant(of: &Item, hint: &str) -> String {
    let value = match &of.value {
        Some(Literal::Text(text)) => quoted(text),
        Some(other) => number(other),
        None => return String::new(),
    };
    format!("{}    {}{hint} = {value}\n", comments("    ", &of.doc), of.name)
}

/// As an array of NumPy takes it: text as bytes.
fn value(_kind: Kind, of: &Literal) -> String {
    match of {
        Literal::Text(text) => format!("{}.encode()", quoted(text)),
        other => number(other),
    }
}

fn number(of: &Literal) -> String {
    match of {
        Literal::Bool(v) => if *v { "True" } else { "False" }.into(),
        Literal::Int(v) => v.to_string(),
        Literal::Float(v) => float(*v),
        Literal::Text(_) | Literal::List(_) => String::new(),
    }
}

fn listed(values: &[String]) -> String {
    format!("[{}]", values.join(", "))
}

fn docstring(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let plain = |line: &String| line.replace('\\', "\\\\").replace('"', "'");
    let text = lines.iter().map(plain).collect::<Vec<_>>().join("\n    ");
    let end = if lines.len() > 1 { "\n    " } else { "" };
    let text: Vec<_> = text.lines().map(str::trim_end).collect();
    format!("    \"\"\"{}{end}\"\"\"\n\n", text.join("\n"))
}

fn comments(indent: &str, lines: &[String]) -> String {
    lines.iter().map(|line| format!("{indent}# {line}").trim_end().to_owned() + "\n").collect()
}
