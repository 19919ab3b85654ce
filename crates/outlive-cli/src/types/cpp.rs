//! Source code in C++.

use outlive::describe::Scalar;
use outlive_record::ros2::{Item, Literal, Many};

use super::cdr;
use super::model::{Carried, Field, Kind, Library, Member, Message};
use super::names::{float, quoted as plainly_quoted};

/// Headers of the standard library, and what each is for.
const HEADERS: [(&str, &str); 7] = [
    ("algorithm", "std::min"),
    ("array", "std::array"),
    ("cstddef", "std::size_t"),
    ("cstdint", "int"),
    ("span", "std::span"),
    ("string", "std::string"),
    ("vector", "std::vector"),
];

/// A message without fields: MSGPACK_DEFINE_MAP needs one.
const EMPTY_MAP: &str = "    \
    template <class Packer> void msgpack_pack(Packer &packer) const { packer.pack_map(0); }
    void msgpack_unpack(const ::msgpack::object &) {}
";

/// The header of one package.
pub(super) fn package(
    library: &Library,
    package: &str,
    needs: &[String],
    carried: Carried,
) -> String {
    let messages = library.messages.iter().filter(|m| m.package == package);
    let body: String = messages.map(|message| Cpp { library, message }.text(carried)).collect();
    let mut out = format!("// Messages of {package}, made by `outlive types import`.\n");
    out += "#pragma once\n\n";
    for (header, _) in HEADERS.iter().filter(|(_, name)| body.contains(name)) {
        out += &format!("#include <{header}>\n");
    }
    out += "\n#include <outlive.hpp>\n";
    out += match carried {
        Carried::Fixed => "",
        Carried::MsgPack => "#include <outlive/msgpack.hpp>\n",
        Carried::Cdr => "#include <outlive/cdr.hpp>\n",
    };
    let includes: String = needs.iter().map(|name| format!("#include \"{name}.hpp\"\n")).collect();
    if !includes.is_empty() {
        out += &format!("\n{includes}");
    }
    out + &body
}

struct Cpp<'a> {
    library: &'a Library,
    message: &'a Message,
}

impl Cpp<'_> {
    fn text(&self, carried: Carried) -> String {
        let Message { package, full, ident, doc, members, fields, .. } = self.message;
        let mut out = format!("\nnamespace {package} {{\n{}struct {ident} {{\n", docs("", doc));
        out += &self.message.constants.iter().map(constant).collect::<String>();
        let names: Vec<String> = match carried {
            Carried::MsgPack | Carried::Cdr => {
                for field in fields {
                    out += &self.open_field(field);
                }
                fields.iter().map(|f| f.name.clone()).collect()
            }
            Carried::Fixed => members.iter().map(|member| self.member(member, &mut out)).collect(),
        };
        let list = wrapped(&names);
        match carried {
            Carried::MsgPack if names.is_empty() => out += EMPTY_MAP,
            Carried::MsgPack => out += &format!("    MSGPACK_DEFINE_MAP({list})\n"),
            Carried::Cdr => {}
            Carried::Fixed => {
                out += &fields.iter().map(|field| self.accessor(field)).collect::<String>();
            }
        }
        out += &format!("}};\n}} // namespace {package}\n");
        out + &match carried {
            Carried::MsgPack => format!("OUTLIVE_MSGPACK({package}::{ident}, \"{full}\")\n"),
            Carried::Cdr => cdr::cpp(self.message),
            Carried::Fixed => {
                format!("OUTLIVE_MESSAGE({package}::{ident}, \"{full}\", {list})\n")
            }
        }
    }

    /// Writes it; its name.
    fn member(&self, member: &Member, out: &mut String) -> String {
        let (line, name) = match member {
            Member::Field(index) => {
                let field = &self.message.fields[*index];
                *out += &docs("    ", &field.doc);
                (self.fixed_field(field), field.name.clone())
            }
            Member::Count { of, name } => {
                let of = &self.message.fields[*of];
                let count = match &of.default {
                    Some(Literal::List(values)) => values.len().to_string(),
                    _ => String::new(),
                };
                *out += &format!("    /// How many of {} there are.\n", of.name);
                (format!("std::uint32_t {name}{{{count}}}"), name.clone())
            }
            Member::Reserved { bytes, name } => {
                *out += "    /// Zero.\n";
                (format!("std::array<std::uint8_t, {bytes}> {name}{{}}"), name.clone())
            }
        };
        *out += &format!("    {line};\n");
        name
    }

    fn fixed_field(&self, field: &Field) -> String {
        let name = &field.name;
        if let Kind::Text(most) = field.kind {
            let most = most.unwrap_or_default();
            let dims = match field.many {
                Many::Fixed(len) | Many::AtMost(len) => format!("[{len}]"),
                _ => String::new(),
            };
            let init = match &field.default {
                Some(Literal::Text(text)) => characters(text),
                Some(Literal::List(values)) => {
                    let texts = values.iter().map(|v| match v {
                        Literal::Text(text) => format!("{{{}}}", characters(text)),
                        _ => String::new(),
                    });
                    texts.collect::<Vec<_>>().join(", ")
                }
                _ => String::new(),
            };
            return format!("char {name}{dims}[{most}]{{{init}}}");
        }
        let element = self.element(field, "outlive::boolean");
        let of = match field.many {
            Many::Fixed(len) | Many::AtMost(len) => format!("std::array<{element}, {len}>"),
            _ => element,
        };
        format!("{of} {name}{{{}}}", init(field))
    }

    fn open_field(&self, field: &Field) -> String {
        let mut doc = field.doc.clone();
        if let Many::AtMost(most) = field.many {
            doc.push(format!("At most {most} values."));
        }
        if let Kind::Text(Some(most)) = field.kind {
            doc.push(format!("At most {most} bytes."));
        }
        let element = self.element(field, "bool");
        let of = match field.many {
            Many::One => element,
            Many::Fixed(len) => format!("std::array<{element}, {len}>"),
            Many::AtMost(_) | Many::Any => format!("std::vector<{element}>"),
        };
        format!("{}    {of} {}{{{}}};\n", docs("    ", &doc), field.name, init(field))
    }

    fn element(&self, field: &Field, truth: &str) -> String {
        match field.kind {
            Kind::Scalar(Scalar::Bool) => truth.into(),
            Kind::Scalar(scalar) => number_type(scalar).into(),
            Kind::Text(_) => "std::string".into(),
            Kind::Message(index) => {
                let Message { package, ident, .. } = &self.library.messages[index];
                format!("::{package}::{ident}")
            }
        }
    }

    fn accessor(&self, field: &Field) -> String {
        let Many::AtMost(_) = field.many else { return String::new() };
        let name = &field.name;
        let element = match field.kind {
            Kind::Text(most) => format!("char[{}]", most.unwrap_or_default()),
            _ => self.element(field, "outlive::boolean"),
        };
        format!(
            "    /// Those of {name} that there are.\n    \
             [[nodiscard]] std::span<const {element}> {name}_span() const {{\n        \
             return {{std::data({name}),\n                \
             std::min<std::size_t>({name}_count, std::size({name}))}};\n    }}\n"
        )
    }
}

pub(super) fn number_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U8 => "std::uint8_t",
        Scalar::U16 => "std::uint16_t",
        Scalar::U32 => "std::uint32_t",
        Scalar::U64 => "std::uint64_t",
        Scalar::I8 => "std::int8_t",
        Scalar::I16 => "std::int16_t",
        Scalar::I32 => "std::int32_t",
        Scalar::I64 => "std::int64_t",
        Scalar::F32 => "float",
        Scalar::F64 => "double",
        _ => "bool",
    }
}

/// What is in the braces behind a member; nothing: zero, or the defaults of a message.
fn init(field: &Field) -> String {
    let one = |v: &Literal| match field.kind {
        Kind::Scalar(scalar) => number(scalar, v),
        _ => text(v),
    };
    match &field.default {
        Some(Literal::List(values)) => values.iter().map(one).collect::<Vec<_>>().join(", "),
        Some(v) => one(v),
        None => String::new(),
    }
}

fn text(of: &Literal) -> String {
    match of {
        Literal::Text(text) => quoted(text),
        _ => String::new(),
    }
}

/// Text in quotes, without trigraphs.
pub(super) fn quoted(text: &str) -> String {
    plainly_quoted(text).replace("??", "?\\?")
}

/// Text without the zero behind it, of which an array may have no room.
fn characters(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'\'' | b'\\' => format!("'\\{}'", char::from(byte)),
        b' '..=b'~' => format!("'{}'", char::from(byte)),
        byte => format!("'\\x{byte:02x}'"),
    };
    text.bytes().map(one).collect::<Vec<_>>().join(", ")
}

fn constant(of: &Item) -> String {
    let line = match (of.of.scalar(), &of.value) {
        (Some(scalar), Some(value)) => {
            let (ty, value) = (number_type(scalar), number(scalar, value));
            format!("static constexpr {ty} {} = {value};", of.name)
        }
        (None, Some(Literal::Text(text))) => {
            format!("static constexpr const char *{} = {};", of.name, quoted(text))
        }
        _ => return String::new(),
    };
    format!("{}    {line}\n", docs("    ", &of.doc))
}

/// A literal that is of its type, so that no compiler warns of it.
pub(super) fn number(scalar: Scalar, of: &Literal) -> String {
    match (scalar, of) {
        (_, Literal::Bool(v)) => v.to_string(),
        (Scalar::F32, Literal::Float(v)) => format!("{}f", float(*v)),
        (_, Literal::Float(v)) => float(*v),
        (Scalar::U32, Literal::Int(v)) => format!("{v}u"),
        (Scalar::U64, Literal::Int(v)) => format!("{v}ull"),
        (Scalar::I64, Literal::Int(v)) if *v == i128::from(i64::MIN) => format!("{}ll - 1", v + 1),
        (Scalar::I32, Literal::Int(v)) if *v == i128::from(i32::MIN) => format!("{} - 1", v + 1),
        (Scalar::I64, Literal::Int(v)) => format!("{v}ll"),
        (_, Literal::Int(v)) => v.to_string(),
        _ => String::new(),
    }
}

/// Names with commas, broken before column 100.
fn wrapped(names: &[String]) -> String {
    let (mut out, mut width) = (String::new(), 60);
    for (i, name) in names.iter().enumerate() {
        if i > 0 {
            out.push(',');
            let fits = width + name.len() + 2 <= 98;
            out += if fits { " " } else { "\n        " };
            width = if fits { width } else { 8 };
        }
        out += name;
        width += name.len() + 2;
    }
    out
}

/// A backslash at the end would take the next line with it.
pub(super) fn docs(indent: &str, lines: &[String]) -> String {
    let line = |line: &String| {
        // `??/` is one as well.
        let line = line.replace("??/", "?? /");
        format!("{indent}/// {}", line.trim_end_matches(['\\', ' ']))
    };
    lines.iter().map(|l| line(l).trim_end().to_owned() + "\n").collect()
}
