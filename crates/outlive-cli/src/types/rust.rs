//! Source code in Rust.

use outlive::describe::Scalar;
use outlive_record::ros2::{Item, Literal, Many};

use super::cdr::{self, SERDE_MAX};
use super::model::{Carried, Field, Kind, Library, Member, Message};
use super::names::{float, quoted, rust};

/// The module of one package.
pub(super) fn package(library: &Library, package: &str, carried: Carried) -> String {
    let mut out = format!("//! Messages of `{package}`, made by `outlive types import`.\n");
    for message in library.messages.iter().filter(|m| m.package == package) {
        let one = Rust { library, message };
        out += &match carried {
            Carried::Fixed => one.fixed(),
            Carried::MsgPack => one.open(false),
            Carried::Cdr => one.open(true) + &cdr::rust(message),
        };
    }
    out
}

/// The module that has those of all packages.
pub(super) fn root<'a>(packages: impl Iterator<Item = &'a str>, carried: Carried) -> String {
    let mut out = String::from("//! Messages made by `outlive types import`.\n");
    if carried == Carried::Cdr {
        out += &format!("\n#[allow(dead_code)]\nmod {};\n", cdr::SHARED);
    }
    for package in packages {
        out += "\n#[allow(dead_code, missing_docs, unreachable_pub)]\n";
        out += "#[allow(non_snake_case, non_upper_case_globals)]\n";
        out += "#[allow(clippy::approx_constant, clippy::excessive_precision)]\n";
        out += &format!("pub mod {};\n", rust(package));
    }
    out
}

struct Rust<'a> {
    library: &'a Library,
    message: &'a Message,
}

impl Rust<'_> {
    fn fixed(&self) -> String {
        let Message { full, ident, doc, members, .. } = self.message;
        let mut out = format!("\n{}#[outlive::message({full:?})]\n", docs("", doc));
        out += "#[derive(Clone, Copy, Debug, PartialEq)]\n";
        out += &format!("pub struct {ident} {{\n");
        for member in members {
            out += &self.member(member);
        }
        out += "}\n";
        let mut inside: Vec<String> = self.message.constants.iter().map(constant).collect();
        inside.extend(self.message.fields.iter().filter_map(|field| self.accessor(field)));
        out += &block(ident, &inside);
        out += &self.impl_default();
        let zeroed = "outlive::zerocopy::FromZeros::new_zeroed()";
        match self.library.has_defaults(self.message) {
            false => out += &format!("        {zeroed}\n"),
            true => {
                out += &format!("        let mut made: Self = {zeroed};\n");
                out += &self.fills();
                out += "        made\n";
            }
        }
        out + "    }\n}\n"
    }

    fn member(&self, member: &Member) -> String {
        match member {
            Member::Field(index) => {
                let field = &self.message.fields[*index];
                let (name, of) = (rust(&field.name), self.type_of(field));
                format!("{}    pub {name}: {of},\n", docs("    ", &field.doc))
            }
            Member::Count { of, name } => {
                let field = &self.message.fields[*of].name;
                format!("    /// How many of `{field}` there are.\n    pub {name}: u32,\n")
            }
            Member::Reserved { bytes, name } => {
                format!("    /// Zero.\n    pub {name}: [u8; {bytes}],\n")
            }
        }
    }

    fn element(&self, field: &Field) -> String {
        match field.kind {
            Kind::Scalar(scalar) => scalar.as_str().into(),
            Kind::Text(Some(most)) => format!("outlive::msg::Text<{most}>"),
            Kind::Text(None) => self.std("String", "std::string::String"),
            Kind::Message(index) => self.path(index),
        }
    }

    fn path(&self, index: usize) -> String {
        let Message { package, ident, .. } = &self.library.messages[index];
        match *package == self.message.package {
            // The name alone may be taken for that of a type of std, like `Duration`.
            true => format!("self::{ident}"),
            false => format!("super::{}::{ident}", rust(package)),
        }
    }

    /// A name of the prelude, unless a message of this package has it.
    fn std(&self, name: &str, path: &str) -> String {
        let package = &self.message.package;
        let taken = |m: &&Message| m.package == *package && m.ident == name;
        let taken = self.library.messages.iter().any(|m| taken(&m));
        if taken { path.into() } else { name.into() }
    }

    fn type_of(&self, field: &Field) -> String {
        let element = self.element(field);
        match field.many {
            Many::One => element,
            Many::Fixed(len) | Many::AtMost(len) => format!("[{element}; {len}]"),
            Many::Any => format!("{}<{element}>", self.std("Vec", "std::vec::Vec")),
        }
    }

    /// The elements that there are, of a list with a bound.
    fn accessor(&self, field: &Field) -> Option<String> {
        let Many::AtMost(_) = field.many else { return None };
        let (name, of) = (rust(&field.name), self.element(field));
        Some(format!(
            "    /// Those of `{}` that there are.\n    \
             pub fn {name}(&self) -> &[{of}] {{\n        \
             let count = self.{}_count as usize;\n        \
             &self.{name}[..count.min(self.{name}.len())]\n    }}\n",
            field.name, field.name
        ))
    }

    /// Statements that write defaults into `made`.
    fn fills(&self) -> String {
        let mut out = String::new();
        for field in &self.message.fields {
            let name = rust(&field.name);
            match (&field.default, field.kind, field.many) {
                (Some(Literal::List(values)), kind, many) => {
                    let list = values.iter().map(|v| value(kind, v)).collect::<Vec<_>>();
                    if let Kind::Text(_) = kind {
                        for (i, text) in list.iter().enumerate() {
                            out += &format!("        made.{name}[{i}] = {text};\n");
                        }
                    } else if !list.is_empty() {
                        let (len, list) = (list.len(), list.join(", "));
                        out +=
                            &format!("        made.{name}[..{len}].copy_from_slice(&[{list}]);\n");
                    }
                    if let Many::AtMost(_) = many {
                        out += &format!("        made.{}_count = {};\n", field.name, values.len());
                    }
                }
                (Some(one), kind, _) => {
                    out += &format!("        made.{name} = {};\n", value(kind, one));
                }
                (None, Kind::Message(index), many)
                    if self.library.has_defaults(&self.library.messages[index]) =>
                {
                    let made = format!("{}::default()", self.path(index));
                    let made = match many {
                        Many::One => made,
                        Many::Fixed(len) | Many::AtMost(len) => format!("[{made}; {len}]"),
                        Many::Any => continue,
                    };
                    out += &format!("        made.{name} = {made};\n");
                }
                _ => {}
            }
        }
        out
    }

    fn impl_default(&self) -> String {
        let of = self.std("Default", "std::default::Default");
        format!("\nimpl {of} for {} {{\n    fn default() -> Self {{\n", self.message.ident)
    }

    /// With text and lists of any length: for serde, as MessagePack or CDR.
    fn open(&self, is_cdr: bool) -> String {
        let Message { full, ident, doc, fields, .. } = self.message;
        let is_plain = fields.iter().all(|f| f.default.is_none() && self.long(f).is_none());
        let default = if is_plain { "Default, " } else { "" };
        let mut out = format!("\n{}", docs("", doc));
        let serde = "serde::Serialize, serde::Deserialize";
        out += &format!("#[derive(Clone, Debug, {default}PartialEq, {serde})]\n");
        out += if is_cdr { "" } else { "#[serde(default)]\n" };
        out += &format!("pub struct {ident} {{{}", if fields.is_empty() { "" } else { "\n" });
        for field in fields {
            let mut doc = field.doc.clone();
            match (field.many, self.long(field)) {
                (Many::AtMost(most), _) => doc.push(format!("At most {most} values.")),
                (_, Some(len)) => doc.push(format!("{len} values.")),
                _ => {}
            }
            if let Kind::Text(Some(most)) = field.kind {
                doc.push(format!("At most {most} bytes."));
            }
            out += &docs("    ", &doc);
            let is_bytes = field.many != Many::One && field.kind == Kind::Scalar(Scalar::U8);
            out += &match is_cdr {
                true => cdr::rust_serde(field),
                false if is_bytes => "    #[serde(with = \"serde_bytes\")]\n".into(),
                false => String::new(),
            };
            out += &format!("    pub {}: {},\n", rust(&field.name), self.open_type(field));
        }
        out += "}\n";
        let name = "    /// The name that all languages have for it.\n    \
                    pub const TYPE_NAME: &'static str = ";
        let mut inside = vec![format!("{name}{full:?};\n")];
        inside.extend(self.message.constants.iter().map(constant));
        out += &block(ident, &inside);
        if !is_plain {
            out += &self.impl_default();
            out += "        Self {\n";
            for field in fields {
                let made = self.open_default(field);
                out += &format!("            {}: {made},\n", rust(&field.name));
            }
            out += "        }\n    }\n}\n";
        }
        out
    }

    /// The length of an array that is too long for serde.
    fn long(&self, field: &Field) -> Option<usize> {
        match field.many {
            Many::Fixed(len) if len > SERDE_MAX => Some(len),
            _ => None,
        }
    }

    fn open_element(&self, field: &Field) -> String {
        match field.kind {
            Kind::Text(_) => self.std("String", "std::string::String"),
            _ => self.element(field),
        }
    }

    fn open_type(&self, field: &Field) -> String {
        let element = self.open_element(field);
        match field.many {
            Many::One => element,
            Many::Fixed(len) if len <= SERDE_MAX => format!("[{element}; {len}]"),
            _ => format!("{}<{element}>", self.std("Vec", "std::vec::Vec")),
        }
    }

    fn open_default(&self, field: &Field) -> String {
        let made = format!("{}::default()", self.std("Default", "std::default::Default"));
        let one = |v: &Literal| match v {
            Literal::Text(text) => format!("{}.into()", quoted(text)),
            v => value(field.kind, v),
        };
        match (&field.default, self.long(field)) {
            (Some(Literal::List(values)), long) => {
                let list = values.iter().map(one).collect::<Vec<_>>().join(", ");
                let is_array = matches!(field.many, Many::Fixed(_)) && long.is_none();
                format!("{}[{list}]", if is_array { "" } else { "vec!" })
            }
            (Some(v), _) => one(v),
            (None, Some(len)) => format!("vec![{made}; {len}]"),
            (None, None) => made,
        }
    }
}

/// `impl` with these items; nothing without any.
fn block(ident: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let (constants, functions): (Vec<_>, Vec<_>) =
        items.iter().cloned().partition(|item| item.contains("pub const "));
    let mut groups = Vec::new();
    if !constants.is_empty() {
        groups.push(constants.concat());
    }
    groups.extend(functions);
    format!("\nimpl {ident} {{\n{}}}\n", groups.join("\n"))
}

fn constant(of: &Item) -> String {
    let ty = of.of.scalar().map_or("&'static str", Scalar::as_str);
    let value = match &of.value {
        Some(Literal::Text(text)) => quoted(text),
        Some(other) => number(other),
        None => return String::new(),
    };
    format!("{}    pub const {}: {ty} = {value};\n", docs("    ", &of.doc), rust(&of.name))
}

fn value(kind: Kind, of: &Literal) -> String {
    match (kind, of) {
        (Kind::Text(Some(most)), Literal::Text(text)) => {
            format!("outlive::msg::Text::<{most}>::cut({})", quoted(text))
        }
        (_, Literal::Text(text)) => quoted(text),
        (_, other) => number(other),
    }
}

fn number(of: &Literal) -> String {
    match of {
        Literal::Bool(v) => v.to_string(),
        Literal::Int(v) => v.to_string(),
        Literal::Float(v) => float(*v),
        Literal::Text(_) | Literal::List(_) => String::new(),
    }
}

fn docs(indent: &str, lines: &[String]) -> String {
    lines.iter().map(|line| format!("{indent}/// {line}").trim_end().to_owned() + "\n").collect()
}
