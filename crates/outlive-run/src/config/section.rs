//! A table of the file: each key is asked for once, and what nobody asked for is unknown.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, Source, nearest};
use super::values;

/// What a file is called in messages.
const TOP: &str = "this file";

type Value<'i> = Spanned<DeValue<'i>>;

/// What all sections of a file share.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) source: Source<'a>,
    problems: RefCell<Vec<Problem>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self { source, problems: RefCell::default() }
    }

    pub(crate) fn problem(&self, span: Range<usize>, what: impl Into<String>, remedy: &str) {
        self.problems.borrow_mut().push(self.source.problem(span, what, remedy));
    }

    /// All problems so far, in order of lines.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.sort_by_key(|p| (p.line, p.column));
        problems
    }
}

/// One table.
#[derive(Debug)]
pub(crate) struct Section<'a, 'i> {
    reader: &'a Reader<'a>,
    /// For messages: `[process.camera]`.
    pub(crate) name: String,
    /// Where to say that something is missing.
    pub(crate) span: Range<usize>,
    table: &'a DeTable<'i>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(crate) fn new(
        reader: &'a Reader<'a>,
        name: impl Into<String>,
        span: Range<usize>,
        table: &'a DeTable<'i>,
    ) -> Self {
        Self { reader, name: name.into(), span, table, asked: RefCell::default() }
    }

    /// The whole file.
    pub(crate) fn top(reader: &'a Reader<'a>, table: &'a DeTable<'i>) -> Self {
        Self::new(reader, TOP, 0..0, table)
    }

    pub(crate) fn get(&self, key: &'static str) -> Option<&'a Value<'i>> {
        self.asked.borrow_mut().push(key);
        self.table.iter().find(|(k, _)| k.get_ref() == key).map(|(_, value)| value)
    }

    /// Where `key` stands, or the section.
    pub(crate) fn place(&self, key: &str) -> Range<usize> {
        let found = self.table.iter().find(|(k, _)| k.get_ref() == key);
        found.map_or(self.span.clone(), |(_, value)| value.span())
    }

    pub(crate) fn wrong(&self, span: Range<usize>, what: impl Into<String>, remedy: &str) {
        self.reader.problem(span, what, remedy);
    }

    /// A value that `read` takes, or a problem.
    fn read<T>(
        &self,
        key: &'static str,
        remedy: &str,
        read: impl FnOnce(&'a DeValue<'i>) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key)?;
        let taken = read(value.get_ref());
        if taken.is_none() {
            let kind = value.get_ref().type_str();
            let what = format!("'{key}' in {} cannot be this {kind}", self.name);
            self.wrong(value.span(), what, remedy);
        }
        taken
    }

    pub(crate) fn text(&self, key: &'static str) -> Option<String> {
        self.read(key, "write a text in quotes", |v| v.as_str().map(str::to_owned))
    }

    /// An integer within `range`.
    pub(crate) fn integer(&self, key: &'static str, range: Range<i64>) -> Option<i64> {
        let remedy = format!("write a whole number from {} to {}", range.start, range.end - 1);
        self.read(key, &remedy, |v| number(v).filter(|n| range.contains(n)))
    }

    /// A number within `range`.
    pub(crate) fn float(&self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let remedy = format!("write a number from {} to {}", range.start(), range.end());
        self.read(key, &remedy, |v| {
            let value = match v {
                DeValue::Float(f) => f.as_str().replace('_', "").parse().ok()?,
                other => number(other)? as f64,
            };
            range.contains(&value).then_some(value)
        })
    }

    pub(crate) fn flag(&self, key: &'static str) -> Option<bool> {
        self.read(key, "write true or false", DeValue::as_bool)
    }

    /// A time: a text with its unit, or a number of seconds.
    pub(crate) fn duration(&self, key: &'static str) -> Option<Duration> {
        let remedy = "write a time like \"250ms\", \"2.5s\", \"3min\" or \"1h\": in these units, \
            from 0 to a year (\"8760h\")";
        self.read(key, remedy, |v| match v {
            DeValue::String(text) => values::duration(text).ok(),
            DeValue::Float(f) => f.as_str().parse().ok().and_then(values::seconds_of),
            other => number(other).and_then(|n| values::seconds_of(n as f64)),
        })
    }

    /// A size of at least `min` bytes: a text with its unit, or a number of bytes.
    pub(crate) fn bytes(&self, key: &'static str, min: u64) -> Option<u64> {
        let least = if min > 1 { format!(" of at least {min} bytes,") } else { String::new() };
        let remedy = format!("write a size{least} like 4096, \"10MB\" or \"512MiB\"");
        let read = |v: &DeValue<'i>| match v {
            DeValue::String(text) => values::bytes(text).ok(),
            other => number(other).and_then(|n| u64::try_from(n).ok()),
        };
        self.read(key, &remedy, |v| read(v).filter(|bytes| *bytes >= min))
    }

    /// Texts; one alone may stand without brackets.
    pub(crate) fn texts(&self, key: &'static str) -> Option<Vec<(String, Range<usize>)>> {
        let value = self.get(key)?;
        let one = |v: &Value<'i>| v.get_ref().as_str().map(|text| (text.to_owned(), v.span()));
        let all = match value.get_ref() {
            DeValue::Array(list) => list.iter().map(one).collect(),
            _ => one(value).map(|text| vec![text]),
        };
        if all.is_none() {
            let what = format!("'{key}' in {} is not a list of strings", self.name);
            self.wrong(value.span(), what, "write it like [\"one\", \"two\"]");
        }
        all
    }

    /// Whole numbers within `range`.
    pub(crate) fn integers(&self, key: &'static str, range: Range<i64>) -> Option<Vec<i64>> {
        let remedy =
            format!("write numbers from {} to {}, like [0, 1]", range.start, range.end - 1);
        let within = |v: &DeValue<'i>| number(v).filter(|n| range.contains(n));
        self.read(key, &remedy, |v| match v {
            DeValue::Array(list) => list.iter().map(|v| within(v.get_ref())).collect(),
            one => within(one).map(|n| vec![n]),
        })
    }

    /// One of the words of `choices`.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let value = self.get(key)?;
        let word = value.get_ref().as_str().unwrap_or_default();
        if let Some((_, chosen)) = choices.iter().find(|(name, _)| *name == word) {
            return Some(*chosen);
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let near = nearest(word, choices.iter().map(|(name, _)| *name));
        let remedy = match near {
            Some(near) => format!("did you mean \"{near}\"? It can be {}", names.join(", ")),
            None => format!("it can be {}", names.join(", ")),
        };
        self.wrong(value.span(), format!("'{key}' in {} is unknown", self.name), &remedy);
        None
    }

    /// A table of its own inside this one.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'a, 'i>> {
        let value = self.get(key)?;
        match value.get_ref() {
            DeValue::Table(table) => {
                let name = match self.name.as_str() {
                    TOP => format!("[{key}]"),
                    name => format!("[{}.{key}]", name.trim_matches(['[', ']'])),
                };
                Some(Section::new(self.reader, name, value.span(), table))
            }
            _ => {
                let what = format!("'{key}' is not a table");
                self.wrong(value.span(), what, "write it like { key = \"value\" }");
                None
            }
        }
    }

    /// All keys of a table whose keys are the user's own, in order of the file.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Value<'i>)> {
        let named = |(key, value): (&'a Spanned<_>, _)| (text_of(key), key.span(), value);
        let mut all: Vec<_> = self.table.iter().map(named).collect();
        all.sort_by_key(|(_, span, _)| span.start);
        all.into_iter()
    }

    /// A section for the value of an entry.
    pub(crate) fn section_of(
        &self,
        key: &str,
        span: Range<usize>,
        value: &'a Value<'i>,
    ) -> Option<Section<'a, 'i>> {
        let name = format!("[{}.{key}]", self.name.trim_matches(['[', ']']));
        match value.get_ref() {
            DeValue::Table(table) => Some(Section::new(self.reader, name, span, table)),
            _ => {
                self.wrong(
                    value.span(),
                    format!("{name} is not a table"),
                    "begin it with its name \
                    in brackets and write keys below",
                );
                None
            }
        }
    }

    /// Reports every key that nobody has asked for.
    pub(crate) fn finish(self) {
        let asked = self.asked.borrow();
        for (key, _) in self.table.iter().filter(|(k, _)| !asked.contains(&k.get_ref().as_ref())) {
            let word = key.get_ref().as_ref();
            let remedy = match nearest(word, asked.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("it can have {}", asked.join(", ")),
            };
            let what = format!("unknown key '{word}' in {}", self.name);
            self.wrong(key.span(), what, &remedy);
        }
    }
}

fn text_of<'a>(key: &'a Spanned<toml::de::DeString<'_>>) -> &'a str {
    key.get_ref()
}

fn number(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(&integer.as_str().replace('_', ""), integer.radix()).ok()
}
