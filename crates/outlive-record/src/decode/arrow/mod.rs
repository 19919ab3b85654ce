//! Tables of Arrow's IPC format. Columns are lists: `{x: [1.0, 2.0], name: ["a", nil]}`.
//!
//! | file | what |
//! |---|---|
//! | `schema` | messages, columns |
//! | `batch` | values of a record batch |
//! | this | a payload with its columns; a schema as text |
//!
//! The crates `arrow-ipc` and `arrow-json` (60.1) bring 70 others along, and panicked on one in
//! eight streams of which a byte had been changed.

mod batch;
mod schema;

use std::collections::HashMap;
use std::fmt::Write as _;

use super::flat::{Budget, Table};
use super::tree::Tree;
use batch::Batch;
use schema::{Column, Head, Kind, columns, messages};

/// How payloads with one schema become fields.
#[derive(Clone, Debug)]
pub(super) struct Arrow(
    /// Of the topic, if it has some.
    Option<Vec<Column>>,
);

impl Arrow {
    pub(super) fn of(schema: &[u8]) -> Result<Self, String> {
        if schema.is_empty() {
            return Ok(Self(None));
        }
        let damaged = |why| format!("its schema is damaged: {why}");
        let first = messages(schema).map_err(damaged)?.into_iter().next();
        match first.map(|message| message.head) {
            Some(Head::Schema(table)) => Ok(Self(Some(columns(&table)?))),
            _ => Err(damaged("it does not start with a schema message".into())),
        }
    }

    /// The columns of all batches of a payload.
    pub(super) fn tree(&self, payload: &[u8]) -> Result<Tree, String> {
        let mut budget = Budget::of(payload);
        let mut stream = messages(payload)?.into_iter();
        let Some(Head::Schema(table)) = stream.next().map(|message| message.head) else {
            return Err("it does not begin with a schema".into());
        };
        let of = columns(&table)?;
        if self.0.as_ref().is_some_and(|topic| *topic != of) {
            return Err("its columns are not those of its topic's schema".into());
        }
        let mut all: Vec<Vec<Tree>> = of.iter().map(|_| Vec::new()).collect();
        let mut dictionaries = HashMap::new();
        for message in stream {
            match message.head {
                Head::Schema(_) => return Err("it has more than one schema".into()),
                Head::Dictionary(head) => {
                    dictionary(&of, &head, message.body, &mut dictionaries, &mut budget)?;
                }
                Head::Batch(head) => {
                    let mut batch = Batch::new(&head, message.body, &dictionaries, &mut budget)?;
                    for (column, all) in of.iter().zip(&mut all) {
                        all.extend(batch.column(column)?);
                    }
                }
            }
        }
        let columns = of.into_iter().zip(all).map(|(of, all)| (of.name, Tree::list(all)));
        Ok(Tree::Fields(columns.collect()))
    }

    /// A line for each column.
    pub(super) fn text(&self) -> Option<String> {
        let mut text = String::new();
        lines(self.0.as_ref()?, 0, &mut text);
        Some(text.trim_end().into())
    }
}

fn dictionary(
    of: &[Column],
    head: &Table<'_>,
    body: &[u8],
    all: &mut HashMap<i64, Vec<Tree>>,
    budget: &mut Budget,
) -> Result<(), String> {
    use super::flat::Flat;
    let id = head.number(0, Flat::i64, 0)?;
    let is_more = head.number(2, Flat::u8, 0)? != 0;
    let column = find(of, id).ok_or("a dictionary is of no column")?;
    let plain = Column { dictionary: None, ..column.clone() };
    let data = head.table_of(1)?.ok_or("a dictionary says nothing")?;
    let values = Batch::new(&data, body, all, budget)?.column(&plain)?;
    let known = all.entry(id).or_default();
    if !is_more {
        known.clear();
    }
    known.extend(values);
    Ok(())
}

fn find(of: &[Column], id: i64) -> Option<&Column> {
    let is_it = |column: &&Column| column.dictionary.as_ref().is_some_and(|(of, _)| *of == id);
    of.iter().find(is_it).or_else(|| of.iter().find_map(|column| find(&column.children, id)))
}

fn lines(of: &[Column], depth: usize, text: &mut String) {
    for column in of {
        let kind = match &column.of {
            Kind::Nothing => "null".into(),
            Kind::Bool => "bool".into(),
            Kind::Int { bytes, signed } => {
                format!("{}int{}", if *signed { "" } else { "u" }, 8 * bytes)
            }
            Kind::Float { bytes } => format!("float{}", 8 * bytes),
            Kind::Decimal { scale } => format!("decimal, scale {scale}"),
            Kind::Text { is_text: true, .. } | Kind::View { is_text: true } => "text".into(),
            Kind::Text { .. } | Kind::View { .. } => "bytes".into(),
            Kind::FixedBytes { bytes } => format!("{bytes} bytes"),
            Kind::List { .. } => "list".into(),
            Kind::FixedList { len } => format!("list of {len}"),
            Kind::Struct => "struct".into(),
        };
        let by = if column.dictionary.is_some() { ", by dictionary" } else { "" };
        let _ = writeln!(text, "{:depth$}{}: {kind}{by}", "", column.name);
        lines(&column.children, depth + 2, text);
    }
}
