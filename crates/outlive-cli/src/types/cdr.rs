//! What source code of messages has of CDR.

use outlive::describe::Scalar;
use outlive_record::ros2::Many;

use super::model::{Field, Kind, Message};
use super::names::{quoted, rust as rust_name};

/// The module that all packages share; its code.
pub(super) const SHARED: &str = "outlive_cdr";
pub(super) const RUST_SHARED: &str = include_str!("cdr/outlive_cdr.rs");
pub(super) const PYTHON_SHARED: &str = include_str!("cdr/outlive_cdr.py");
/// Longest array of which serde knows.
pub(super) const SERDE_MAX: usize = 32;

/// The lines of a definition as they are between the quotes of all languages.
fn lines(definition: &str) -> impl Iterator<Item = String> {
    definition.lines().map(|line| {
        let line = quoted(line);
        format!("{}\\n", &line[1..line.len() - 1])
    })
}

/// How a message becomes bytes in Rust.
pub(super) fn rust(message: &Message) -> String {
    let Message { ident, definition, fields, .. } = message;
    let definition: String = lines(definition).map(|l| format!("\\\n         {l}")).collect();
    let shared = format!("super::{SHARED}");
    let checks: String = fields.iter().map(rust_check).collect();
    let mut out = format!(
        "
impl outlive::Codec for {ident} {{
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {{
        Self::TYPE_NAME.into()
    }}

    fn schema() -> std::vec::Vec<u8> {{
        \"{definition}\"
            .into()
    }}

    fn encode(value: &Self, to: &mut [u8]) -> {shared}::Result<usize> {{
        {shared}::encode(value, to)
    }}

    fn decode(bytes: &[u8]) -> {shared}::Result<Self> {{
        {shared}::decode(bytes)
    }}
}}
"
    );
    out += &match checks.is_empty() {
        true => format!("\nimpl {shared}::Check for {ident} {{}}\n"),
        false => {
            let sent = if checks.contains("sent)") { "sent" } else { "_sent" };
            format!(
                "
impl {shared}::Check for {ident} {{
    #[rustfmt::skip]
    fn check(&self, {sent}: bool) -> {shared}::Checked {{
        use {shared} as cdr;
{checks}        std::result::Result::Ok(())
    }}
}}
"
            )
        }
    };
    out
}

/// The attribute of a field whose value serde would treat in another way than CDR does.
pub(super) fn rust_serde(field: &Field) -> String {
    let shared = format!("super::{SHARED}");
    let attribute = match (field.kind, field.many) {
        (Kind::Text(_), Many::One) => format!("deserialize_with = \"{shared}::word\""),
        (Kind::Text(_), Many::Fixed(len)) if len > SERDE_MAX => format!(
            "serialize_with = \"{shared}::Array::<{len}>::serialize\", \
             deserialize_with = \"{shared}::Array::<{len}>::texts\""
        ),
        (Kind::Text(_), Many::Fixed(len)) => {
            format!("deserialize_with = \"{shared}::Array::<{len}>::texts\"")
        }
        (Kind::Text(_), _) => format!("deserialize_with = \"{shared}::words\""),
        (_, Many::Fixed(len)) if len > SERDE_MAX => format!("with = \"{shared}::Array::<{len}>\""),
        // Of an array, serde_bytes would write the length.
        (Kind::Scalar(Scalar::U8), Many::AtMost(_) | Many::Any) => "with = \"serde_bytes\"".into(),
        _ => return String::new(),
    };
    format!("    #[serde({attribute})]\n")
}

/// Statements that refuse what the definition of a field does not allow.
fn rust_check(field: &Field) -> String {
    let (name, at) = (&field.name, format!("self.{}", rust_name(&field.name)));
    let mut out = match field.many {
        Many::AtMost(most) => format!("        cdr::at_most({name:?}, {at}.len(), {most})?;\n"),
        Many::Fixed(len) if len > SERDE_MAX => {
            format!("        cdr::exactly({name:?}, {at}.len(), {len})?;\n")
        }
        _ => String::new(),
    };
    let s = if field.many == Many::One { "" } else { "s" };
    match field.kind {
        Kind::Scalar(_) => {}
        Kind::Text(most) => {
            let most = most.map_or("usize::MAX".into(), |most| most.to_string());
            out += &format!("        cdr::text{s}({name:?}, &{at}, {most}, sent)?;\n");
        }
        Kind::Message(_) => out += &format!("        cdr::part{s}({name:?}, &{at}, sent)?;\n"),
    }
    out
}

/// What a class of Python says about how it becomes bytes; `part` is the name of a message there.
pub(super) fn python(message: &Message, part: impl Fn(usize) -> String) -> String {
    let definition: String =
        lines(&message.definition).map(|line| format!("        \"{line}\"\n")).collect();
    let mut out = format!("    __outlive_schema__: ClassVar[str] = (\n{definition}    )\n");
    out += "    __outlive_cdr__: ClassVar[dict] = {\n";
    for field in &message.fields {
        let of = |name: &str, values: &str| format!("{SHARED}.{name}({values})");
        let element = match field.kind {
            Kind::Scalar(scalar) => of("Number", &format!("\"{}\"", letter(scalar))),
            Kind::Text(most) => of("Text", &most.map(|most| most.to_string()).unwrap_or_default()),
            Kind::Message(index) => part(index),
        };
        let kind = match field.many {
            Many::One => element,
            Many::Fixed(len) => of("Array", &format!("{element}, {len}")),
            Many::AtMost(most) => of("List", &format!("{element}, {most}")),
            Many::Any => of("List", &element),
        };
        out += &format!("        \"{}\": {kind},\n", field.name);
    }
    out + "    }\n"
}

/// A number as `struct` of Python names it.
fn letter(scalar: Scalar) -> char {
    match scalar {
        Scalar::I8 => 'b',
        Scalar::I16 => 'h',
        Scalar::U16 => 'H',
        Scalar::I32 => 'i',
        Scalar::U32 => 'I',
        Scalar::I64 => 'q',
        Scalar::U64 => 'Q',
        Scalar::F32 => 'f',
        Scalar::F64 => 'd',
        Scalar::Bool => '?',
        _ => 'B',
    }
}

/// What C++ needs to know of a message besides its struct.
pub(super) fn cpp(message: &Message) -> String {
    let Message { package, full, ident, definition, fields, .. } = message;
    // Without trigraphs.
    let definition = lines(definition).map(|line| line.replace("??", "?\\?"));
    let definition = definition.map(|line| format!("        \"{line}\"")).collect::<Vec<_>>();
    let mut out = format!("template <> struct outlive::cdr_message<{package}::{ident}> {{\n");
    out += &format!("    static constexpr const char *cdr_name = \"{full}\";\n");
    out += "    static constexpr const char *schema =\n";
    out += &format!("{};\n", definition.join("\n"));
    out +=
        "    template <class Self, class Visit> static void fields(Self &self, Visit &visit) {\n";
    for field in fields {
        let list = if let Many::AtMost(most) = field.many { Some(most) } else { None };
        let text = if let Kind::Text(most) = field.kind { most } else { None };
        let bounds = match (list, text) {
            (None, None) => String::new(),
            (Some(list), None) => format!(", {list}"),
            (None, Some(text)) => format!(", outlive::cdr_any, {text}"),
            (Some(list), Some(text)) => format!(", {list}, {text}"),
        };
        let name = &field.name;
        out += &format!("        visit(\"{name}\", self.{name}{bounds});\n");
    }
    out + "    }\n};\n"
}
