//! `FileDescriptorSet` of Protocol Buffers: just enough to find a message, to leave out what it
//! does not need, and to compare two.
//!
//! Compared are fields, not bytes: what `protoc` stores in a program of one language differs from
//! what it stores for another (comments, names for JSON, order of files).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Deepest nesting of declarations.
const DEPTH_MAX: usize = 32;
/// Most messages named in one error, and most differences.
const NAMES_MAX: usize = 8;
const LINES_MAX: usize = 32;

type Result<T> = std::result::Result<T, String>;

/// Numbers of fields in `descriptor.proto`.
mod number {
    pub(super) const SET_FILE: u64 = 1;

    pub(super) const FILE_NAME: u64 = 1;
    pub(super) const FILE_PACKAGE: u64 = 2;
    pub(super) const FILE_DEPENDENCY: u64 = 3;
    pub(super) const FILE_MESSAGE: u64 = 4;
    pub(super) const FILE_ENUM: u64 = 5;
    pub(super) const FILE_SOURCE: u64 = 9;

    pub(super) const MESSAGE_FIELD: u64 = 2;
    pub(super) const MESSAGE_NESTED: u64 = 3;
    pub(super) const MESSAGE_ENUM: u64 = 4;

    /// Of messages, fields, enums and their values.
    pub(super) const NAME: u64 = 1;

    pub(super) const FIELD_NUMBER: u64 = 3;
    pub(super) const FIELD_LABEL: u64 = 4;
    pub(super) const FIELD_TYPE: u64 = 5;
    pub(super) const FIELD_TYPE_NAME: u64 = 6;

    pub(super) const ENUM_VALUE: u64 = 2;
    pub(super) const VALUE_NUMBER: u64 = 2;
}

/// Names of types by their number.
const TYPES: [&str; 19] = [
    "", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string",
    "group", "message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64",
];

/// One field of a message on the wire.
struct Item<'a> {
    number: u64,
    value: Wire<'a>,
    /// All of it, with its tag.
    raw: &'a [u8],
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

impl<'a> Item<'a> {
    fn bytes(&self) -> Result<&'a [u8]> {
        match self.value {
            Wire::Bytes(bytes) => Ok(bytes),
            _ => Err(BROKEN.into()),
        }
    }

    fn text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BROKEN.into())
    }

    fn number(&self) -> Result<u64> {
        match self.value {
            Wire::Number(number) => Ok(number),
            _ => Err(BROKEN.into()),
        }
    }
}

const BROKEN: &str = "it is not a FileDescriptorSet: make one with \
    'protoc --include_imports --descriptor_set_out=FILE'";

/// The fields of a message on the wire, in order.
fn items(mut rest: &[u8]) -> impl Iterator<Item = Result<Item<'_>>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let whole = rest;
        let item = item(&mut rest).map(|(number, value)| Item {
            number,
            value,
            raw: &whole[..whole.len() - rest.len()],
        });
        if item.is_none() {
            rest = &[];
        }
        Some(item.ok_or_else(|| BROKEN.into()))
    })
}

fn item<'a>(rest: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => Wire::Number(varint(rest)?),
        1 => take(rest, 8).map(|_| Wire::Fixed)?,
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            Wire::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| Wire::Fixed)?,
        _ => return None,
    };
    (tag >> 3 != 0).then_some((tag >> 3, value))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A `.proto` file of the set.
struct File<'a> {
    name: &'a str,
    needs: Vec<&'a str>,
    bytes: &'a [u8],
}

/// Messages and enums by their full names, and in which file each is.
struct Set<'a> {
    files: Vec<File<'a>>,
    messages: BTreeMap<String, (usize, &'a [u8])>,
    enums: BTreeMap<String, &'a [u8]>,
}

impl<'a> Set<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut set = Self { files: Vec::new(), messages: BTreeMap::new(), enums: BTreeMap::new() };
        for item in items(bytes) {
            let item = item?;
            if item.number == number::SET_FILE {
                set.add_file(item.bytes()?)?;
            }
        }
        if set.files.is_empty() { Err(BROKEN.into()) } else { Ok(set) }
    }

    fn add_file(&mut self, bytes: &'a [u8]) -> Result<()> {
        let (mut name, mut package, mut needs) = ("", "", Vec::new());
        for item in items(bytes) {
            let item = item?;
            match item.number {
                number::FILE_NAME => name = item.text()?,
                number::FILE_PACKAGE => package = item.text()?,
                number::FILE_DEPENDENCY => needs.push(item.text()?),
                _ => {}
            }
        }
        let file = self.files.len();
        for item in items(bytes) {
            let item = item?;
            match item.number {
                number::FILE_MESSAGE => self.add_message(file, package, item.bytes()?, 0)?,
                number::FILE_ENUM => self.add_enum(package, item.bytes()?)?,
                _ => {}
            }
        }
        self.files.push(File { name, needs, bytes });
        Ok(())
    }

    fn add_message(
        &mut self,
        file: usize,
        inside: &str,
        bytes: &'a [u8],
        depth: usize,
    ) -> Result<()> {
        if depth == DEPTH_MAX {
            return Err(format!("messages are nested more than {DEPTH_MAX} deep"));
        }
        let full = joined(inside, name_of(bytes)?);
        for item in items(bytes) {
            let item = item?;
            match item.number {
                number::MESSAGE_NESTED => {
                    self.add_message(file, &full, item.bytes()?, depth + 1)?;
                }
                number::MESSAGE_ENUM => self.add_enum(&full, item.bytes()?)?,
                _ => {}
            }
        }
        self.messages.insert(full, (file, bytes));
        Ok(())
    }

    fn add_enum(&mut self, inside: &str, bytes: &'a [u8]) -> Result<()> {
        self.enums.insert(joined(inside, name_of(bytes)?), bytes);
        Ok(())
    }

    /// The file `from` and all that it imports, each behind what it needs.
    fn needed(&self, from: usize) -> Result<Vec<&File<'a>>> {
        let (mut wanted, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(of) = next.pop() {
            for name in &self.files[of].needs {
                let found = self.files.iter().position(|file| file.name == *name);
                let found = found.ok_or_else(|| {
                    let by = self.files[of].name;
                    format!("it lacks {name}, which {by} imports: give all (--include_imports)")
                })?;
                if wanted.insert(found) {
                    next.push(found);
                }
            }
        }
        let mut ordered: Vec<&File<'a>> = Vec::new();
        while ordered.len() < wanted.len() {
            let before = ordered.len();
            for file in wanted.iter().map(|file| &self.files[*file]) {
                let there = |name: &str| ordered.iter().any(|file| file.name == name);
                if !there(file.name) && file.needs.iter().all(|name| there(name)) {
                    ordered.push(file);
                }
            }
            if ordered.len() == before {
                return Err("its files import each other in a circle".into());
            }
        }
        Ok(ordered)
    }

    /// What can be compared: each field of the message and of those that it has, and each value of
    /// their enums, by type and number. All messages if the name is unknown.
    fn facts(&self, root: &str) -> Result<BTreeMap<(String, u64), String>> {
        let mut next: Vec<String> = match self.messages.contains_key(root) {
            true => vec![root.into()],
            false => self.messages.keys().cloned().collect(),
        };
        let mut seen: BTreeSet<String> = next.iter().cloned().collect();
        let mut facts = BTreeMap::new();
        while let Some(name) = next.pop() {
            if let Some((_, bytes)) = self.messages.get(&name) {
                for item in items(bytes) {
                    let item = item?;
                    if item.number != number::MESSAGE_FIELD {
                        continue;
                    }
                    let field = Field::parse(item.bytes()?)?;
                    if let Some(of) = field.of.strip_prefix('.')
                        && seen.insert(of.into())
                    {
                        next.push(of.into());
                    }
                    facts.insert((name.clone(), field.number), field.to_string());
                }
            } else if let Some(bytes) = self.enums.get(&name) {
                for (number, value) in values(bytes)? {
                    let text: &mut String = facts.entry((name.clone(), number)).or_default();
                    let comma = if text.is_empty() { "" } else { ", " };
                    let _ = write!(text, "{comma}{value} = {}", number as i64);
                }
            } else {
                return Err(format!("it lacks {name}, which a field names"));
            }
        }
        Ok(facts)
    }
}

struct Field<'a> {
    name: &'a str,
    number: u64,
    label: u64,
    sort: u64,
    /// Name of a message or enum.
    of: &'a str,
}

impl<'a> Field<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self> {
        let mut field = Self { name: "", number: 0, label: 0, sort: 0, of: "" };
        for item in items(bytes) {
            let item = item?;
            match item.number {
                number::NAME => field.name = item.text()?,
                number::FIELD_NUMBER => field.number = item.number()?,
                number::FIELD_LABEL => field.label = item.number()?,
                number::FIELD_TYPE => field.sort = item.number()?,
                number::FIELD_TYPE_NAME => field.of = item.text()?,
                _ => {}
            }
        }
        Ok(field)
    }
}

/// As in a `.proto` file.
impl std::fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let label = match self.label {
            2 => "required ",
            3 => "repeated ",
            _ => "",
        };
        let scalar = TYPES.get(self.sort as usize).copied().unwrap_or("?");
        let of = if self.of.is_empty() { scalar } else { self.of.trim_start_matches('.') };
        write!(f, "{label}{of} {} = {}", self.name, self.number)
    }
}

fn values(bytes: &[u8]) -> Result<Vec<(u64, &str)>> {
    let mut values = Vec::new();
    for item in items(bytes) {
        let item = item?;
        if item.number != number::ENUM_VALUE {
            continue;
        }
        let (mut name, mut number) = ("", 0);
        for item in items(item.bytes()?) {
            let item = item?;
            match item.number {
                number::NAME => name = item.text()?,
                number::VALUE_NUMBER => number = item.number()?,
                _ => {}
            }
        }
        values.push((number, name));
    }
    Ok(values)
}

fn name_of(bytes: &[u8]) -> Result<&str> {
    for item in items(bytes) {
        let item = item?;
        if item.number == number::NAME {
            return item.text();
        }
    }
    Err(BROKEN.into())
}

fn joined(inside: &str, name: &str) -> String {
    if inside.is_empty() { name.into() } else { format!("{inside}.{name}") }
}

/// The set with the files that message `name` needs, without comments, imports first.
pub(super) fn needed(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let set = Set::parse(bytes)?;
    let Some((file, _)) = set.messages.get(name) else {
        let names: Vec<_> = set.messages.keys().take(NAMES_MAX).map(String::as_str).collect();
        let more = if set.messages.len() > NAMES_MAX { ", ..." } else { "" };
        return Err(format!("it has no message {name}, but {}{more}", names.join(", ")));
    };
    let mut out = Vec::new();
    for file in set.needed(*file)? {
        let mut body = Vec::with_capacity(file.bytes.len());
        for item in items(file.bytes) {
            let item = item?;
            if item.number != number::FILE_SOURCE {
                body.extend_from_slice(item.raw);
            }
        }
        out.push((number::SET_FILE << 3) as u8 | 2);
        put_varint(&mut out, body.len());
        out.append(&mut body);
    }
    // All that its fields name is there: a file that nobody imports is not.
    Set::parse(&out)?.facts(name)?;
    Ok(out)
}

/// What differs between two sets, seen from message `name`.
pub(super) fn differences(name: &str, topic: &[u8], ours: &[u8]) -> Vec<String> {
    let facts = |bytes| Set::parse(bytes).and_then(|set| set.facts(name));
    let (topic, ours) = match (facts(topic), facts(ours)) {
        (Ok(topic), Ok(ours)) => (topic, ours),
        (Err(why), _) => return vec![format!("its schema cannot be read: {why}")],
        (_, Err(why)) => return vec![format!("this program's schema cannot be read: {why}")],
    };
    let mut lines = Vec::new();
    for (key @ (of, _), has) in &topic {
        match ours.get(key) {
            Some(want) if want == has => {}
            Some(want) => lines.push(format!("{of} has '{has}', this program has '{want}'")),
            None => lines.push(format!("'{has}' of {of} is missing in this program")),
        }
    }
    for ((of, _), want) in ours.iter().filter(|(key, _)| !topic.contains_key(key)) {
        lines.push(format!("'{want}' of {of} is in this program only"));
    }
    if lines.len() > LINES_MAX {
        let more = lines.len() - LINES_MAX;
        lines.truncate(LINES_MAX);
        lines.push(format!("{more} more differ"));
    }
    lines
}
