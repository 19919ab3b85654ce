//! Source code in C.

use outlive::describe::Scalar;
use outlive_record::ros2::{Item, Literal, Many};

use super::cpp::{docs as doxygen, number as literal, number_type, quoted};
use super::model::{Field, Kind, Library, Member, Message};
use super::names::upper;

/// The header of one package.
pub(super) fn package(library: &Library, package: &str, needs: &[String]) -> String {
    let guard = guard(package);
    let mut out = format!("// Messages of {package}, made by `outlive types import`.\n");
    out +=
        &format!("#ifndef {guard}\n#define {guard}\n\n#include <assert.h>\n#include <stdint.h>\n");
    out += "#include <string.h>\n\n#include <outlive.h>\n";
    let includes: String = needs.iter().map(|name| format!("#include \"{name}.h\"\n")).collect();
    if !includes.is_empty() {
        out += &format!("\n{includes}");
    }
    for message in library.messages.iter().filter(|m| m.package == package) {
        out += &C { library, message }.text();
    }
    out + "\n#endif\n"
}

/// The macro that keeps the header of a package from being read twice.
pub(super) fn guard(package: &str) -> String {
    format!("{}_MESSAGES_H", package.to_uppercase())
}

/// The macro of a constant.
pub(super) fn macro_of(message: &Message, constant: &Item) -> String {
    let (package, ident) = (message.package.to_uppercase(), upper(&message.ident));
    format!("{package}_{ident}_{}", constant.name)
}

struct C<'a> {
    library: &'a Library,
    message: &'a Message,
}

impl C<'_> {
    fn text(&self) -> String {
        let Message { doc, members, constants, description, full, .. } = self.message;
        let ident = name_of(self.message);
        let mut out = format!("\n{}", docs("", doc));
        let constants: String = constants.iter().map(|c| self.constant(c)).collect();
        out += &format!("typedef struct {ident} {{\n");
        for member in members {
            out += &self.member(member);
        }
        out += &format!("}} {ident};\n{constants}");
        out +=
            &format!("static_assert(sizeof({ident}) == {}, \"its layout\");\n", description.size());
        out += &format!(
            "// Its type, for ports; free it with outlive_type_free.\n\
             static inline outlive_status {ident}_type(outlive_type **type) {{\n    \
             return outlive_type_fixed({full:?},"
        );
        for line in description.to_text().lines() {
            out += &format!("\n                              \"{line}\\n\"");
        }
        out += ",\n                              type);\n}\n";
        out += &format!(
            "// One with its defaults; all else is zero.\n\
             static inline {ident} {ident}_default(void) {{\n    {ident} made;\n    \
             memset(&made, 0, sizeof made);\n"
        );
        out += &self.fills();
        out + "    return made;\n}\n"
    }

    fn constant(&self, of: &Item) -> String {
        let name = macro_of(self.message, of);
        let value = match (of.of.scalar(), &of.value) {
            (Some(Scalar::Bool), Some(Literal::Bool(v))) => u8::from(*v).to_string(),
            (Some(scalar), Some(value)) => literal(scalar, value),
            (None, Some(Literal::Text(text))) => quoted(text),
            _ => return String::new(),
        };
        let value = if value.starts_with('-') { format!("({value})") } else { value };
        format!("{}#define {name} {value}\n", docs("", &of.doc))
    }

    fn member(&self, member: &Member) -> String {
        match member {
            Member::Field(index) => {
                let field = &self.message.fields[*index];
                let mut dims = match field.many {
                    Many::Fixed(len) | Many::AtMost(len) => format!("[{len}]"),
                    _ => String::new(),
                };
                if let Kind::Text(Some(most)) = field.kind {
                    dims += &format!("[{most}]");
                }
                let mut doc = field.doc.clone();
                if field.kind == Kind::Scalar(Scalar::Bool) {
                    doc.push("0 is false, 1 is true.".into());
                }
                let (docs, of) = (docs("    ", &doc), self.element(field));
                format!("{docs}    {of} {}{dims};\n", field.name)
            }
            Member::Count { of, name } => {
                let field = &self.message.fields[*of].name;
                format!("    // How many of {field} there are.\n    uint32_t {name};\n")
            }
            Member::Reserved { bytes, name } => {
                format!("    // Zero.\n    uint8_t {name}[{bytes}];\n")
            }
        }
    }

    fn element(&self, field: &Field) -> String {
        match field.kind {
            Kind::Scalar(Scalar::Bool) => "uint8_t".into(),
            Kind::Scalar(scalar) => number_type(scalar).trim_start_matches("std::").into(),
            Kind::Text(_) => "char".into(),
            Kind::Message(index) => name_of(&self.library.messages[index]),
        }
    }

    fn fills(&self) -> String {
        let mut out = String::new();
        for field in &self.message.fields {
            let name = &field.name;
            match (&field.default, field.kind, field.many) {
                (Some(Literal::List(values)), kind, many) => {
                    for (i, value) in values.iter().enumerate() {
                        out += &fill(&format!("{name}[{i}]"), kind, value);
                    }
                    if let Many::AtMost(_) = many {
                        out += &format!("    made.{name}_count = {};\n", values.len());
                    }
                }
                (Some(value), kind, _) => out += &fill(name, kind, value),
                (None, Kind::Message(index), many)
                    if self.library.has_defaults(&self.library.messages[index]) =>
                {
                    let made = format!("{}_default()", name_of(&self.library.messages[index]));
                    out += &match many {
                        Many::Fixed(len) | Many::AtMost(len) => format!(
                            "    for (uint32_t i = 0; i < {len}; i++) {{\n        \
                             made.{name}[i] = {made};\n    }}\n"
                        ),
                        _ => format!("    made.{name} = {made};\n"),
                    };
                }
                _ => {}
            }
        }
        out
    }
}

fn fill(place: &str, kind: Kind, value: &Literal) -> String {
    match (kind, value) {
        (_, Literal::Text(text)) if text.is_empty() => String::new(),
        (_, Literal::Text(text)) => {
            format!("    memcpy(made.{place}, {}, {});\n", quoted(text), text.len())
        }
        (Kind::Scalar(_), Literal::Bool(v)) => format!("    made.{place} = {};\n", u8::from(*v)),
        (Kind::Scalar(scalar), value) => {
            format!("    made.{place} = {};\n", literal(scalar, value))
        }
        _ => String::new(),
    }
}

fn name_of(message: &Message) -> String {
    format!("{}_{}", message.package, message.ident)
}

fn docs(indent: &str, lines: &[String]) -> String {
    doxygen(indent, lines).replace("///", "//")
}
