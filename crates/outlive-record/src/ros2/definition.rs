//! Definitions of messages as ROS 2 writes them (`ros2msg`): those in the program, and those that a
//! file brings along.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use outlive::{Encoding, PayloadType};

use super::base::Base;
use super::interface;

/// Deepest nesting, and most types of one message: definitions may come from anywhere.
const DEPTH_MAX: usize = 64;
const TYPES_MAX: usize = 4096;

/// Stands between the definitions of a schema.
pub(crate) const SEPARATOR: &str =
    "================================================================================";

const MESSAGES: &str = include_str!("definitions.msgs");
const SERVICES: &str = include_str!("definitions.srvs");

/// What the description of every service has, and nobody sends.
const EVENT_INFO: (&str, &str) = (
    "service_msgs/msg/ServiceEventInfo",
    "uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\nint64 sequence_number\n",
);

/// The one field of what has none in ROS 2.
pub(crate) const NO_FIELDS: &str = "structure_needs_at_least_one_member";

/// By full names like `std_msgs/msg/Header`, `std_srvs/srv/Trigger_Request`.
static EMBEDDED: LazyLock<HashMap<String, Cow<'static, str>>> = LazyLock::new(|| {
    let messages = sections(MESSAGES).chain([EVENT_INFO]);
    let mut all: HashMap<_, _> =
        messages.map(|(name, text)| (name.to_owned(), Cow::Borrowed(text))).collect();
    for (name, text) in sections(SERVICES) {
        all.extend(service(name, text).map(|(name, text)| (name, text.into())));
    }
    all
});

/// A service's parts and the whole, whose description it is hashed by.
fn service(name: &str, text: &str) -> [(String, String); 4] {
    let [request, response] = parts(text);
    let event = format!(
        "{} info\n{name}_Request[<=1] request\n{name}_Response[<=1] response\n",
        EVENT_INFO.0
    );
    let whole = format!(
        "{name}_Request request_message\n{name}_Response response_message\n\
         {name}_Event event_message\n"
    );
    [
        (format!("{name}_Request"), request),
        (format!("{name}_Response"), response),
        (format!("{name}_Event"), event),
        (name.to_owned(), whole),
    ]
}

/// The parts of an action, as messages.
fn action(name: &str, text: &str) -> [(String, String); 3] {
    let [goal, result, feedback] = parts(text);
    [("Goal", goal), ("Result", result), ("Feedback", feedback)]
        .map(|(part, text)| (format!("{name}_{part}"), text))
}

/// What lines of `---` separate; the last has the rest.
fn parts<const N: usize>(text: &str) -> [String; N] {
    let (mut parts, mut at) = ([const { String::new() }; N], 0);
    for line in text.lines() {
        match line.trim() == "---" {
            true => at = (at + 1).min(N - 1),
            false => parts[at] += &format!("{line}\n"),
        }
    }
    parts
}

/// Without the mark of the byte order that some editors put first.
fn unmarked(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Names and definitions.
fn sections(all: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    all.split("=== ").skip(1).filter_map(|one| one.split_once('\n'))
}

/// The definitions of a schema, between lines of nothing but `=`: comments may have as many.
fn definitions(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut at) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        let said = line.trim();
        if !said.is_empty() && said.bytes().all(|b| b == b'=') {
            parts.push(&text[from..at]);
            from = at + line.len();
        }
        at += line.len();
    }
    parts.push(&text[from..]);
    parts
}

/// What a field or an element is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Base(Base),
    Text,
    /// Index in [`Schema::types`].
    Message(usize),
}

/// How many of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Many {
    One,
    Fixed(usize),
    Any,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) many: Many,
    pub(crate) declared: Declared,
}

/// What a type description says of a field. CDR needs only its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// As `type_description_interfaces/msg/FieldType` numbers it.
    pub(crate) type_id: u8,
    /// Of an array: its length or bound; 0 without one.
    pub(crate) capacity: usize,
    /// Bound of its text, bytes; 0 without one.
    pub(crate) string_capacity: usize,
}

/// A message's definition with all that it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    /// Full name, like `sensor_msgs/msg/Image`.
    pub(crate) name: String,
    /// Fields of each type; the last is the message itself.
    pub(crate) types: Vec<Vec<Field>>,
    /// Their full names.
    pub(crate) names: Vec<String>,
    /// As it is written in a file.
    pub(crate) text: String,
}

impl Declared {
    /// Most elements of the array.
    pub(crate) fn elements_max(self) -> usize {
        if self.capacity == 0 { usize::MAX } else { self.capacity }
    }

    /// Most bytes of the text, or of each.
    pub(crate) fn text_max(self) -> usize {
        if self.string_capacity == 0 { usize::MAX } else { self.string_capacity }
    }
}

impl Schema {
    /// The message `name`, as this program knows it.
    pub(crate) fn embedded(name: &str) -> Option<Self> {
        let text = EMBEDDED.get(full(name)?.as_str())?;
        Self::parse(name, text).ok()
    }

    /// The message `name`; what `text` uses and does not define is one that the program knows.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut parts = definitions(text).into_iter();
        let root = parts.next().unwrap_or_default();
        let mut given = HashMap::new();
        for part in parts {
            let (head, body) = part.trim_start().split_once('\n').unwrap_or((part.trim(), ""));
            let of = head.trim().strip_prefix("MSG:").and_then(|n| full(n.trim()));
            let of = of.ok_or_else(|| format!("'{head}' does not name a definition"))?;
            given.entry(of).or_insert(body);
        }
        Self::resolve(name, root, given)
    }

    /// The message `name`, which is `root`, with all that it consists of from `given`.
    fn resolve<'a>(
        name: &str,
        root: &'a str,
        mut given: HashMap<String, &'a str>,
    ) -> Result<Self, String> {
        let name = full(name)
            .ok_or_else(|| format!("'{name}' is not a message name, like pkg/msg/Name"))?;
        given.insert(name.clone(), root);
        let mut all = Resolver { given, done: HashMap::new(), types: Vec::new(), parts: vec![] };
        all.resolve(&name, DEPTH_MAX)?;
        let names = all.parts.iter().map(|(name, _)| name.clone()).collect();
        // The message itself was finished last and comes first.
        let (root, others) = all.parts.split_last().ok_or("it is empty")?;
        let mut text = root.1.clone();
        for (name, body) in others {
            let short = name.replace("/msg/", "/");
            text += &format!("{SEPARATOR}\nMSG: {short}\n{body}");
        }
        Ok(Self { name, types: all.types, names, text })
    }

    /// The fields of the message.
    pub(crate) fn root(&self) -> &[Field] {
        self.types.last().map_or(&[], Vec::as_slice)
    }
}

/// Definitions of messages, services and actions that the program does not know, from `.msg`,
/// `.srv` and `.action` files.
///
/// # Examples
/// ```
/// use outlive::PayloadType;
/// use outlive_record::ros2::{Definitions, ToRos};
///
/// let mut own = Definitions::default();
/// own.insert("my_msgs/msg/Speed", "geometry_msgs/Vector3 speed\n");
/// let of = PayloadType::msgpack("my_msgs/msg/Speed")?;
/// let to = ToRos::among(&of, 0, &own)?.expect("it is defined");
/// assert_eq!(to.name(0), Some("my_msgs/msg/Speed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    texts: BTreeMap<String, String>,
    /// Messages and services that were added, without the parts of these.
    names: BTreeSet<String>,
}

impl Definitions {
    /// Adds the message `name`, like `my_msgs/msg/Speed`, the service, like `my_msgs/srv/Plan`, or
    /// the parts of the action, like `my_msgs/action/Turn`, as its file has it.
    pub fn insert(&mut self, name: &str, text: &str) {
        let text = unmarked(text);
        match name.split('/').nth(1) {
            Some("action") => return self.texts.extend(action(name, text)),
            Some("srv") => self.texts.extend(service(name, text)),
            _ => self.texts.extend([(name.into(), text.into())]),
        }
        self.names.insert(name.into());
    }

    /// Messages and services that were added, in the order of the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The message `name`, from here or as the program knows it; `None` if nobody defines it.
    ///
    /// # Errors
    /// What is wrong in its definition.
    pub(crate) fn schema(&self, name: &str) -> Result<Option<Schema>, String> {
        let Some(root) = full(name).and_then(|name| self.texts.get(&name)) else {
            return Ok(Schema::embedded(name));
        };
        let given = self.texts.iter().map(|(name, text)| (name.clone(), text.as_str())).collect();
        Schema::resolve(name, root, given).map(Some)
    }

    /// That of a topic whose payloads are CDR: its own, else the one of its name.
    pub(crate) fn schema_of(&self, of: &PayloadType) -> Result<Option<Schema>, String> {
        match String::from_utf8_lossy(of.schema()).trim() {
            "" => self.schema(of.name()),
            text => Schema::parse(of.name(), text).map(Some),
        }
    }

    /// The type of topics that carry messages `name` unconverted; `None` if it has no definition.
    ///
    /// # Errors
    /// What is wrong in its definition, or that it is too long for a topic.
    pub fn payload_type(&self, name: &str) -> Result<Option<PayloadType>, String> {
        let Some(schema) = self.schema(name)? else { return Ok(None) };
        let of = PayloadType::encoded(Encoding::Cdr, &schema.name, schema.text.as_bytes());
        of.map(Some).map_err(|e| e.to_string())
    }
}

struct Resolver<'a> {
    given: HashMap<String, &'a str>,
    done: HashMap<String, usize>,
    types: Vec<Vec<Field>>,
    /// Names and definitions, parts before what consists of them.
    parts: Vec<(String, String)>,
}

impl Resolver<'_> {
    fn resolve(&mut self, name: &str, depth: usize) -> Result<usize, String> {
        if let Some(index) = self.done.get(name) {
            return Ok(*index);
        }
        if depth == 0 || self.types.len() >= TYPES_MAX {
            return Err(format!("{name} contains itself, or very many types"));
        }
        let embedded = || EMBEDDED.get(name).map(Cow::as_ref);
        let known = self.given.get(name).copied().or_else(embedded);
        let text = known.ok_or_else(|| format!("{name} is not defined"))?;
        let package = name.split('/').next().unwrap_or_default();
        let (mut fields, mut body) = (Vec::new(), String::new());
        for line in unmarked(text).lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            body += &format!("{line}\n");
            if let Some(field) = self.field(package, line, depth)? {
                fields.push(field);
            }
        }
        if fields.is_empty() {
            // What ROS 2 makes of a message without fields.
            let name = NO_FIELDS.into();
            let declared = Declared { type_id: type_id("uint8"), ..Declared::default() };
            fields.push(Field { name, kind: Kind::Base(Base::U8), many: Many::One, declared });
        }
        self.types.push(fields);
        self.parts.push((name.into(), body));
        self.done.insert(name.into(), self.types.len() - 1);
        Ok(self.types.len() - 1)
    }

    /// `None` for a constant.
    fn field(&mut self, package: &str, line: &str, depth: usize) -> Result<Option<Field>, String> {
        let said = interface::statement(line)?;
        if said.is_constant {
            return Ok(None);
        }
        let of = said.of.name.as_str();
        let (many, form, capacity) = match said.of.many {
            interface::Many::One => (Many::One, 0, 0),
            interface::Many::Any => (Many::Any, UNBOUNDED, 0),
            interface::Many::AtMost(bound) => (Many::Any, BOUNDED, bound),
            interface::Many::Fixed(len) => (Many::Fixed(len), FIXED, len),
        };
        let bare = if said.of.text_max.is_some() { "string<=" } else { of };
        let string_capacity = said.of.text_max.unwrap_or(0);
        let declared = Declared { type_id: form + type_id(bare), capacity, string_capacity };
        let kind = match Base::of(of) {
            Some(base) => Kind::Base(base),
            None if of == "string" => Kind::Text,
            None if of == "wstring" => return Err("it has text of wide letters".into()),
            None => {
                let own = format!("{package}/msg/{of}");
                let name = match full(of) {
                    Some(name) => name,
                    // As ROS 1 has it, if the package has none.
                    None if of == "Header" && !self.given.contains_key(&own) => {
                        "std_msgs/msg/Header".into()
                    }
                    None => own,
                };
                Kind::Message(self.resolve(&name, depth - 1)?)
            }
        };
        Ok(Some(Field { name: said.name.into(), kind, many, declared }))
    }
}

/// What an array adds to the number of its elements' type.
const FIXED: u8 = 48;
const BOUNDED: u8 = 96;
const UNBOUNDED: u8 = 144;

/// The number of a type in `type_description_interfaces/msg/FieldType`; 1 is another message.
fn type_id(name: &str) -> u8 {
    match name {
        "int8" => 2,
        // What `rosidl_adapter` makes of `char`, too; 13 is that of IDL.
        "uint8" | "char" => 3,
        "int16" => 4,
        "uint16" => 5,
        "int32" => 6,
        "uint32" => 7,
        "int64" => 8,
        "uint64" => 9,
        "float32" => 10,
        "float64" => 11,
        "bool" => 15,
        "byte" => 16,
        "string" => 17,
        "string<=" => 21,
        _ => 1,
    }
}

/// `std_msgs/Header` and `std_msgs/msg/Header` as the latter; `None` for anything else.
fn full(name: &str) -> Option<String> {
    let parts: Vec<_> = name.split('/').collect();
    match parts.as_slice() {
        [package, "msg", name] | [package, name] if !package.is_empty() && !name.is_empty() => {
            Some(format!("{package}/msg/{name}"))
        }
        // A service, and its parts; those of an action.
        [package, "srv" | "action", part] if !package.is_empty() && !part.is_empty() => {
            Some(name.to_owned())
        }
        _ => None,
    }
}

/// The definition of a message that the program knows, like `sensor_msgs/msg/Image`.
pub fn embedded_text(name: &str) -> Option<&'static str> {
    EMBEDDED.get(name).map(Cow::as_ref)
}

/// Names of the messages that the program knows, like `sensor_msgs/msg/Image`.
pub fn embedded() -> Vec<&'static str> {
    names(MESSAGES)
}

/// Names of the services that the program knows, like `std_srvs/srv/Trigger`.
pub fn embedded_services() -> Vec<&'static str> {
    names(SERVICES)
}

fn names(of: &'static str) -> Vec<&'static str> {
    let mut names: Vec<_> = sections(of).map(|(name, _)| name).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_in_the_program_is_whole() {
        let names = embedded();
        assert_eq!(names.len(), 99);
        for name in names {
            let schema = Schema::embedded(name).unwrap_or_else(|| panic!("{name}"));
            assert!(!schema.root().is_empty(), "{name}");
            // What is written into a file needs nothing from outside.
            let again = Schema::parse(name, &schema.text).unwrap();
            assert_eq!(again, schema, "{name}");
        }
        let header = Schema::embedded("std_msgs/Header").unwrap();
        assert_eq!(
            header.text,
            format!(
                "builtin_interfaces/Time stamp\nstring frame_id\n{SEPARATOR}\n\
                 MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
            )
        );
    }

    #[test]
    fn definitions_of_others_are_read_with_all_that_they_may_have() {
        let text = format!(
            "# a comment\nHeader header # another\nint32 MAX = 5\nstring NAME='a=b'\n\
             string<=10 name \"x=y\"\nfloat64[3] a [1.0, 2.0, 3.0]\nPart[<=4] parts\n\
             uint8[] data\n{SEPARATOR}\nMSG: mine/Part\nbool on true\nint8 X=-1\n"
        );
        let schema = Schema::parse("mine/msg/Whole", &text).unwrap();
        let part = schema.types.iter().position(|t| t[0].name == "on").unwrap();
        let fields: Vec<_> =
            schema.root().iter().map(|f| (f.name.as_str(), f.kind.clone(), f.many)).collect();
        assert_eq!(
            fields[1..],
            [
                ("name", Kind::Text, Many::One),
                ("a", Kind::Base(Base::F64), Many::Fixed(3)),
                ("parts", Kind::Message(part), Many::Any),
                ("data", Kind::Base(Base::U8), Many::Any),
            ]
        );
        assert_eq!(schema.types[part].len(), 1);
    }

    #[test]
    fn a_header_is_that_of_its_package_if_there_is_one() {
        let text = format!("Header header\n{SEPARATOR}\nMSG: a/Header\nint32 id\n");
        assert_eq!(Schema::parse("a/msg/A", &text).unwrap().names, ["a/msg/Header", "a/msg/A"]);
        let other = Schema::parse("b/msg/A", &text).unwrap();
        assert!(other.names.contains(&"std_msgs/msg/Header".into()), "{:?}", other.names);
    }

    #[test]
    fn a_mark_of_the_byte_order_before_a_definition_is_none_of_it() {
        let plain = Schema::parse("a/msg/A", "int32 id\n").unwrap();
        assert_eq!(Schema::parse("a/msg/A", "\u{feff}int32 id\n").unwrap(), plain);
        let mut own = Definitions::default();
        own.insert("a/msg/A", "\u{feff}int32 id\n");
        assert_eq!(own.schema("a/msg/A").unwrap().unwrap(), plain);
        own.insert("a/srv/B", "\u{feff}---\nint32 id\n");
        let response = own.schema("a/srv/B_Response").unwrap().unwrap();
        assert_eq!(response.root(), plain.root());
    }

    #[test]
    fn only_a_whole_line_stands_between_definitions() {
        let text = format!(
            "# {SEPARATOR}=\nB b # {SEPARATOR}\n{SEPARATOR}=\r\nMSG: a/B\nint8 x\n#{SEPARATOR}\n"
        );
        let schema = Schema::parse("a/msg/A", &text).unwrap();
        assert_eq!(schema.names, ["a/msg/B", "a/msg/A"]);
        assert_eq!(Schema::parse("a/msg/A", &schema.text).unwrap(), schema);
    }

    #[test]
    fn what_is_no_definition_says_why() {
        let why = |text: &str| Schema::parse("a/msg/A", text).unwrap_err();
        assert!(why("A inner").contains("contains itself"));
        assert!(why("B b").contains("a/msg/B is not defined"));
        assert!(why("x").contains("'x' is not a field") && why("int32 =3").contains("not a field"));
        assert!(why("int32[x] a").contains("is not a field") && why("wstring a").contains("wide"));
        assert!(Schema::parse("A", "").unwrap_err().contains("not a message name"));
        assert!(Schema::embedded("std_msgs/msg/Nothing").is_none());
    }
}
