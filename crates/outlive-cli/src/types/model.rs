//! Messages with all that they consist of, and the fixed layout of each.

use std::collections::HashMap;

use outlive::TypeDescription;
use outlive::describe::{DESCRIPTION_BYTES_MAX, Scalar};
use outlive_record::ros2::{
    Definitions, Interface, InterfaceFile, Item, Literal, Many, Sort, embedded_text,
};

use crate::exit::{Code, Failure};

/// Deepest nesting of messages; descriptions have no deeper one.
const DEPTH_MAX: usize = 16;
/// Largest message, bytes: what a publisher's memory holds by default.
const SIZE_MAX: usize = 1 << 30;
/// Most faults that are printed.
const FAULTS_MAX: usize = 20;
/// The one field of a message without fields, as ROS 2 names it.
const NO_FIELDS: &str = "structure_needs_at_least_one_member";

/// What messages are in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Carried {
    #[default]
    Fixed,
    MsgPack,
    /// As ROS 2 has them.
    Cdr,
}

/// How messages with text and lists of any length are carried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Form {
    pub(super) carried: Carried,
    /// Bytes of text without a bound.
    pub(super) text_max: Option<usize>,
    /// Elements of a list without a bound.
    pub(super) list_max: Option<usize>,
}

/// A message, or a part of a service or an action.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) package: String,
    /// Its name in all languages, like `geometry_msgs/msg/Point`.
    pub(super) full: String,
    /// Its name in source code, like `Point`.
    pub(super) ident: String,
    pub(super) doc: Vec<String>,
    pub(super) constants: Vec<Item>,
    pub(super) fields: Vec<Field>,
    /// Fields, counts and reserved bytes in memory; empty without a fixed layout.
    pub(super) members: Vec<Member>,
    pub(super) description: TypeDescription,
    /// Its definition and those of its parts, as in a bag; only of CDR.
    pub(super) definition: String,
    /// Its file, if it is not one that the program knows.
    pub(super) file: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) doc: Vec<String>,
    pub(super) kind: Kind,
    pub(super) many: Many,
    pub(super) default: Option<Literal>,
    pub(super) line: usize,
}

/// What one value of a field is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Scalar(Scalar),
    /// Text of up to this many bytes.
    Text(Option<usize>),
    /// Index in [`Library::messages`].
    Message(usize),
}

/// A part of a fixed layout.
#[derive(Clone, Debug)]
pub(super) enum Member {
    /// By index.
    Field(usize),
    /// How many elements the field of this index has.
    Count { of: usize, name: String },
    /// So many zero bytes.
    Reserved { bytes: usize, name: String },
}

/// Messages, parts before what consists of them.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub(super) messages: Vec<Message>,
}

impl Message {
    /// Where a fault is, for people.
    pub(super) fn at(&self, line: usize) -> String {
        match &self.file {
            Some(file) => format!("{file}:{line}"),
            None => self.full.clone(),
        }
    }
}

impl Library {
    /// Whether a message has defaults, or something in it has.
    pub(super) fn has_defaults(&self, message: &Message) -> bool {
        message.fields.iter().any(|field| match field.kind {
            _ if field.default.is_some() => true,
            Kind::Message(index) => self.has_defaults(&self.messages[index]),
            _ => false,
        })
    }

    /// Packages in an order in which none needs a later one, each with those that it needs.
    pub(super) fn packages(&self) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut needs: Vec<(String, Vec<String>)> = Vec::new();
        for message in &self.messages {
            if !needs.iter().any(|(name, _)| *name == message.package) {
                needs.push((message.package.clone(), Vec::new()));
            }
            let needed = message.fields.iter().filter_map(|field| match field.kind {
                Kind::Message(index) => Some(&self.messages[index].package),
                _ => None,
            });
            let Some((name, known)) = needs.iter_mut().find(|(name, _)| *name == message.package)
            else {
                continue;
            };
            for package in needed {
                if package != name && !known.contains(package) {
                    known.push(package.clone());
                }
            }
        }
        let mut ordered: Vec<(String, Vec<String>)> = Vec::new();
        while !needs.is_empty() {
            let done = |name: &String| ordered.iter().any(|(known, _)| known == name);
            let next = needs.iter().position(|(_, needed)| needed.iter().all(done));
            let Some(next) = next else {
                let mut names: Vec<_> = needs.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                let why = format!("the packages {} need each other", names.join(", "));
                return Err(Failure::new(Code::Usage, why));
            };
            let (name, mut needed) = needs.remove(next);
            needed.sort();
            ordered.push((name, needed));
        }
        Ok(ordered)
    }
}

/// Reads what was asked for and everything that is part of it.
pub(super) fn load(sources: &[InterfaceFile], form: Form) -> Result<Library, Failure> {
    let mut loader = Loader { form, ..Loader::default() };
    for source in sources {
        loader.read(source)?;
    }
    let wanted: Vec<String> =
        loader.known.iter().filter(|k| k.wanted).map(|k| k.full.clone()).collect();
    for full in wanted {
        loader.resolve(&full, &mut Vec::new());
    }
    let mut library = loader.finish()?;
    if form.carried == Carried::Cdr {
        define(&mut library, sources)?;
    }
    Ok(library)
}

/// Gives each message the schema that a topic of it has.
fn define(library: &mut Library, sources: &[InterfaceFile]) -> Result<(), Failure> {
    let mut all = Definitions::default();
    for source in sources {
        all.insert(&source.full_name(), &String::from_utf8_lossy(&source.read()?));
    }
    for message in &mut library.messages {
        let wrong = |why: String| Failure::new(Code::Usage, format!("{}: {why}", message.at(1)));
        let of = all.payload_type(&message.full).map_err(wrong)?;
        let of = of.ok_or_else(|| wrong("nobody defines it".into()))?;
        message.definition = String::from_utf8_lossy(of.schema()).into_owned();
        if message.definition.is_empty() {
            // An empty schema says nothing.
            message.definition = format!("uint8 {NO_FIELDS}\n");
        }
    }
    Ok(())
}

/// The message `full`, like `geometry_msgs/msg/Point`, as the program knows it.
pub(super) fn load_known(full: &str, form: Form) -> Result<Library, Failure> {
    let mut loader = Loader { form, ..Loader::default() };
    loader.resolve(full, &mut Vec::new());
    loader.finish()
}

struct Known {
    full: String,
    package: String,
    ident: String,
    interface: Interface,
    file: Option<String>,
    wanted: bool,
}

#[derive(Default)]
struct Loader {
    form: Form,
    known: Vec<Known>,
    library: Library,
    /// By full name; `None` if there is a fault in it.
    done: HashMap<String, Option<usize>>,
    faults: Vec<String>,
    /// One of them is that a length has no bound.
    unbounded: bool,
    /// What is wrong in neighbours that nobody asked for, by full name.
    broken: HashMap<String, Vec<String>>,
}

impl Loader {
    fn fault(&mut self, at: &str, why: &str) {
        self.faults.push(format!("{at}: {why}"));
    }

    /// Takes in what a file declares. A neighbour that nobody asked for may not be needed: what is
    /// wrong in it is told where it is used.
    fn read(&mut self, source: &InterfaceFile) -> Result<(), Failure> {
        let faults = match self.declared(source, &source.read()?) {
            Ok(known) => {
                self.known.extend(known);
                return Ok(());
            }
            Err(faults) => faults,
        };
        let file = source.path.display();
        let faults = faults.iter().map(|fault| format!("{file}:{fault}"));
        if source.wanted {
            self.faults.extend(faults);
        } else {
            self.broken.insert(source.full_name(), faults.collect());
        }
        Ok(())
    }

    /// Whether there is a message of that name. Of one that is broken, its faults are noted.
    fn is_known(&mut self, full: &str) -> bool {
        if self.known.iter().any(|k| k.full == full) {
            return true;
        }
        if let Some(faults) = self.broken.remove(full) {
            self.faults.extend(faults);
            self.done.insert(full.into(), None);
        }
        self.done.contains_key(full) || embedded_text(full).is_some()
    }

    fn declared(&self, source: &InterfaceFile, bytes: &[u8]) -> Result<Vec<Known>, Vec<String>> {
        let InterfaceFile { package, name, sort, wanted, path, .. } = source;
        let plain = |name: &str| {
            name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && name.len() <= 64
        };
        if !plain(package) || !package.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let why = format!(" '{package}' is not a valid package name: give --package NAME");
            return Err(vec![why]);
        }
        if !plain(name) || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            let why =
                format!(" '{name}' is not a valid type name: rename the file, like MyType.msg");
            return Err(vec![why]);
        }
        let parts = Interface::parse(bytes)
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let (expected, found) = (sort.parts(), parts.len());
        if found != expected.len() {
            let expected = expected.len();
            let why = format!(" expected {expected} parts separated by '---', found {found}");
            return Err(vec![why]);
        }
        let mut declared = Vec::new();
        for (part, interface) in expected.iter().zip(parts) {
            let joint = if *sort == Sort::Message { "" } else { "_" };
            let full = format!("{package}/{}/{name}{joint}{part}", sort.folder());
            let ident = format!("{name}{part}").replace('_', "");
            let taken = |k: &&Known| (&k.package, &k.ident) == (package, &ident);
            if let Some(taken) = self.known.iter().find(taken) {
                let other = taken.file.clone().unwrap_or_default();
                return Err(vec![format!(" the name {package}/{ident} is taken by {other}")]);
            }
            let (package, file) = (package.clone(), Some(path.display().to_string()));
            declared.push(Known { full, package, ident, interface, file, wanted: *wanted });
        }
        Ok(declared)
    }

    /// Its index; `None` after a fault, which was noted.
    fn resolve(&mut self, full: &str, above: &mut Vec<String>) -> Option<usize> {
        if let Some(done) = self.done.get(full) {
            return *done;
        }
        if !self.known.iter().any(|k| k.full == full) {
            let interface = Interface::parse(embedded_text(full)?.as_bytes()).ok()?.pop()?;
            let (package, name) = (full.split('/').next()?, full.rsplit('/').next()?);
            let (full, package) = (full.to_owned(), package.to_owned());
            let ident = name.replace('_', "");
            self.known.push(Known { full, package, ident, interface, file: None, wanted: false });
        }
        let known = self.known.iter().find(|k| k.full == full)?;
        let mut message = Message {
            package: known.package.clone(),
            full: known.full.clone(),
            ident: known.ident.clone(),
            doc: known.interface.doc.clone(),
            constants: known.interface.constants.clone(),
            fields: Vec::new(),
            members: Vec::new(),
            description: TypeDescription::struct_of(0, 1),
            definition: String::new(),
            file: known.file.clone(),
        };
        let items = known.interface.fields.clone();
        let is_fixed = self.form.carried == Carried::Fixed;
        let before = self.faults.len();
        let mut whole = true;
        above.push(full.into());
        for item in items {
            let at = message.at(item.line);
            match self.field(&message, item, above) {
                Ok(Some(field)) => message.fields.push(field),
                Ok(None) => whole = false,
                Err(why) => self.fault(&at, &why),
            }
        }
        above.pop();
        if message.fields.is_empty() && self.form.carried != Carried::MsgPack {
            message.fields.push(no_field());
        }
        whole &= self.faults.len() == before;
        if whole && is_fixed {
            match self.lay_out(&message) {
                Ok((members, description)) => {
                    (message.members, message.description) = (members, description);
                }
                Err((line, why)) => {
                    self.fault(&message.at(line), &why);
                    whole = false;
                }
            }
        }
        let done = whole.then_some(self.library.messages.len());
        if whole {
            self.library.messages.push(message);
        }
        self.done.insert(full.into(), done);
        done
    }

    /// `None` if there is a fault in the message that it is, which was noted.
    fn field(
        &mut self,
        of: &Message,
        item: Item,
        above: &mut Vec<String>,
    ) -> Result<Option<Field>, String> {
        let Item { of: ty, name, value: default, doc, line } = item;
        let kind = match (ty.scalar(), ty.name.as_str()) {
            (Some(scalar), _) => Kind::Scalar(scalar),
            (None, "string") => Kind::Text(ty.text_max.or(self.form.text_max)),
            (None, "wstring") => {
                return Err(format!("{name} is text of 16-bit characters: make it a string"));
            }
            (None, "time" | "duration") => {
                let why = format!("{} is a type of ROS 1: use builtin_interfaces/", ty.name);
                return Err(why + if ty.name == "time" { "Time" } else { "Duration" });
            }
            (None, written) => {
                let full = self.full_name(&of.package, written);
                if above.contains(&full) {
                    let from = above.iter().position(|name| *name == full).unwrap_or(0);
                    let path = above[from..].join(" -> ");
                    return Err(format!("{full} contains itself: {path} -> {full}"));
                }
                if above.len() >= DEPTH_MAX {
                    return Err(format!("messages are nested deeper than {DEPTH_MAX}"));
                }
                if !self.is_known(&full) {
                    return Err(format!(
                        "{written} is not known: give the directory that has {full}.msg as well"
                    ));
                }
                match self.resolve(&full, above) {
                    Some(index) => Kind::Message(index),
                    None => return Ok(None),
                }
            }
        };
        let many = match (ty.many, self.form.list_max) {
            (Many::Any, Some(most)) => Many::AtMost(most),
            (many, _) => many,
        };
        let is_fixed = self.form.carried == Carried::Fixed;
        if is_fixed && (many == Many::Any || kind == Kind::Text(None)) {
            self.unbounded = true;
            let place = self.place_of_use(of, &name, above);
            return match place {
                // A message of ROS cannot be changed: say where it is used.
                Some((at, path)) => {
                    self.fault(&at, &format!("{path} ({ty}) has no bound"));
                    Ok(None)
                }
                None => Err(format!("{name} ({ty}) has no bound")),
            };
        }
        if is_fixed {
            fits(&name, default.as_ref(), kind, many)?;
        }
        Ok(Some(Field { name, doc, kind, many, default, line }))
    }

    /// The full name of what is written in `package`, which may have a Header of its own.
    fn full_name(&self, package: &str, written: &str) -> String {
        let own = format!("{package}/msg/{written}");
        let has = |own: &String| {
            self.known.iter().any(|k| k.full == *own)
                || self.broken.contains_key(own)
                || self.done.contains_key(own)
        };
        match written == "Header" && has(&own) {
            true => own,
            false => full_name(package, written),
        }
    }

    /// Of a field in a message that the program knows: the file that leads to it, and the path.
    fn place_of_use(&self, of: &Message, name: &str, above: &[String]) -> Option<(String, String)> {
        if of.file.is_some() {
            return None;
        }
        let known = |full: &String| self.known.iter().find(|k| k.full == *full);
        let at = above.iter().rposition(|full| known(full).is_some_and(|k| k.file.is_some()))?;
        let (user, part) = (known(&above[at])?, above.get(at + 1)?);
        let uses = |item: &&Item| self.full_name(&user.package, &item.of.name) == *part;
        let item = user.interface.fields.iter().find(uses)?;
        let at = format!("{}:{}", user.file.as_deref()?, item.line);
        Some((at, format!("{}: {name} of {}", item.name, of.full)))
    }

    /// Members and description; else a line and what is wrong there.
    fn lay_out(&self, of: &Message) -> Result<(Vec<Member>, TypeDescription), (usize, String)> {
        let mut plan = Plan::new(of);
        for (index, field) in of.fields.iter().enumerate() {
            let wrong = |why: String| (field.line, why);
            let mut described = match field.kind {
                Kind::Scalar(scalar) => TypeDescription::scalar(scalar),
                Kind::Text(most) => {
                    TypeDescription::scalar(Scalar::Char).array(most.unwrap_or_default())
                }
                Kind::Message(index) => self.library.messages[index].description.clone(),
            };
            if let Many::Fixed(len) | Many::AtMost(len) = field.many {
                let size = described.size().checked_mul(len).filter(|size| *size <= SIZE_MAX);
                size.ok_or_else(|| wrong(too_large(&field.name)))?;
                described = described.array(len);
            }
            plan.pad(described.align());
            plan.push(&field.name, described, Member::Field(index)).map_err(wrong)?;
            if let Many::AtMost(most) = field.many {
                let name = format!("{}_count", field.name);
                for (needed, what) in
                    [(&name, "how many"), (&format!("{}_span", field.name), "those of")]
                {
                    let is_taken = of.fields.iter().any(|f| f.name == *needed);
                    if is_taken || of.constants.iter().any(|c| c.name == *needed) {
                        let why = format!("{needed} is needed for {what} {} there are", field.name);
                        return Err(wrong(format!("{why}: rename the other field of that name")));
                    }
                }
                if u32::try_from(most).is_err() {
                    return Err(wrong(too_large(&field.name)));
                }
                plan.pad(4);
                let count = TypeDescription::scalar(Scalar::U32);
                plan.push(&name.clone(), count, Member::Count { of: index, name })
                    .map_err(wrong)?;
            }
        }
        plan.finish().map_err(|why| (of.fields.last().map_or(1, |f| f.line), why))
    }

    fn finish(mut self) -> Result<Library, Failure> {
        if self.faults.is_empty() {
            return Ok(self.library);
        }
        let more = self.faults.len().saturating_sub(FAULTS_MAX);
        self.faults.truncate(FAULTS_MAX);
        if more > 0 {
            self.faults.push(format!("and {more} more"));
        }
        if self.unbounded {
            self.faults.push(
                "a fixed layout needs bounds: write them into the file (string<=32, \
                 float32[<=64]), or use --text-max, --list-max, --msgpack or --cdr"
                    .into(),
            );
        }
        Err(Failure::new(Code::Usage, self.faults.join("\n")))
    }
}

/// A layout being made.
struct Plan {
    placed: Vec<(usize, String, TypeDescription)>,
    members: Vec<Member>,
    taken: Vec<String>,
    end: usize,
    align: usize,
    /// Least bytes of its description.
    text: usize,
}

impl Plan {
    fn new(of: &Message) -> Self {
        let names = of.fields.iter().map(|f| f.name.clone());
        let taken = names.chain(of.constants.iter().map(|c| c.name.clone())).collect();
        let (placed, members) = (Vec::new(), Vec::new());
        Self { placed, members, taken, end: 0, align: 1, text: 0 }
    }

    /// Zero bytes up to where `align` divides the offset.
    fn pad(&mut self, align: usize) {
        self.align = self.align.max(align);
        let bytes = self.end.next_multiple_of(align) - self.end;
        if bytes == 0 {
            return;
        }
        let number = |n: usize| if n == 1 { "reserved".into() } else { format!("reserved{n}") };
        let free = |name: &String| !self.taken.contains(name);
        let Some(name) = (1..=self.taken.len() + 1).map(number).find(free) else { return };
        self.taken.push(name.clone());
        let described = TypeDescription::scalar(Scalar::U8).array(bytes);
        self.placed.push((self.end, name.clone(), described));
        self.end += bytes;
        self.members.push(Member::Reserved { bytes, name });
    }

    fn push(&mut self, name: &str, of: TypeDescription, member: Member) -> Result<(), String> {
        let size = of.size();
        self.text += name.len() + 8 + if of.fields().is_empty() { 0 } else { of.to_text().len() };
        if name.len() > 100 {
            return Err(format!("the name {name} has more than 100 bytes"));
        }
        if size > SIZE_MAX - self.end.min(SIZE_MAX) {
            return Err(too_large(name));
        }
        if self.text > DESCRIPTION_BYTES_MAX {
            return Err(format!("{name}: the message has too many fields to be described"));
        }
        if !self.taken.iter().any(|taken| taken == name) {
            self.taken.push(name.into());
        }
        self.placed.push((self.end, name.into(), of));
        self.members.push(member);
        self.end += size;
        Ok(())
    }

    fn finish(mut self) -> Result<(Vec<Member>, TypeDescription), String> {
        self.pad(self.align);
        let mut described = TypeDescription::struct_of(self.end, self.align);
        for (offset, name, of) in self.placed {
            described = described.field(&name, offset, of);
        }
        TypeDescription::parse(described.to_text().as_bytes()).map_err(|e| e.to_string())?;
        Ok((self.members, described))
    }
}

/// Refuses a default that has no room. A bound in the file was compared as the file was read, so
/// the one that it exceeds is the command's.
fn fits(name: &str, default: Option<&Literal>, kind: Kind, many: Many) -> Result<(), String> {
    match (default, kind, many) {
        (Some(Literal::List(values)), _, Many::AtMost(most)) if values.len() > most => {
            let len = values.len();
            Err(format!("the default of {name} has {len} values, --list-max is {most}"))
        }
        (Some(Literal::List(values)), _, _) => values
            .iter()
            .enumerate()
            .try_for_each(|(i, one)| fits(&format!("{name}[{i}]"), Some(one), kind, Many::One)),
        (Some(Literal::Text(text)), Kind::Text(Some(most)), _) if text.len() > most => {
            let len = text.len();
            Err(format!("the default of {name} has {len} bytes, --text-max is {most}"))
        }
        _ => Ok(()),
    }
}

fn too_large(name: &str) -> String {
    format!("{name} makes the message larger than 1 GiB: send parts of it")
}

/// What ROS 2 makes of a message without fields.
fn no_field() -> Field {
    let (name, kind) = (NO_FIELDS.into(), Kind::Scalar(Scalar::U8));
    Field { name, doc: Vec::new(), kind, many: Many::One, default: None, line: 1 }
}

/// The full name of a message as it is written in `package`, if that has no Header.
pub(super) fn full_name(package: &str, written: &str) -> String {
    match written.split('/').collect::<Vec<_>>().as_slice() {
        ["Header"] => "std_msgs/msg/Header".into(),
        [name] => format!("{package}/msg/{name}"),
        [package, name] => format!("{package}/msg/{name}"),
        _ => written.into(),
    }
}

#[cfg(test)]
mod tests {
    use outlive_record::ros2::embedded;

    use super::*;

    #[test]
    fn every_message_of_ros_is_laid_out_with_bounds_and_refused_or_fixed_without() {
        let bounds = Form { carried: Carried::Fixed, text_max: Some(8), list_max: Some(3) };
        let (mut fixed, mut refused) = (0, 0);
        for name in embedded() {
            let library = load_known(name, bounds).unwrap_or_else(|e| panic!("{name}: {e}"));
            let made = library.messages.last().expect("itself");
            assert_eq!(made.full, name);
            let mut end = 0;
            for field in made.description.fields() {
                assert_eq!(field.offset(), end, "{name} has padding before {}", field.name());
                end += field.ty().size();
            }
            assert_eq!(end, made.description.size(), "{name}");
            match load_known(name, Form::default()) {
                Ok(_) => fixed += 1,
                Err(e) => {
                    assert!(e.to_string().contains("has no bound"), "{name}: {e}");
                    refused += 1;
                }
            }
            for carried in [Carried::MsgPack, Carried::Cdr] {
                let made = load_known(name, Form { carried, ..Form::default() });
                assert!(made.is_ok(), "{name} {carried:?}");
            }
        }
        assert!(fixed > 30 && refused > 30, "{fixed} {refused}");
    }
}
