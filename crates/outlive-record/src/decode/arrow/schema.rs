//! Messages of Arrow's IPC format, and the columns that a schema message names. Their heads are
//! FlatBuffers, of the types in `Message.fbs` and `Schema.fbs`.

use super::super::flat::{Flat, Table};

/// Deepest nesting of columns, and most of them.
const DEPTH_MAX: usize = 64;
const COLUMNS_MAX: usize = 1 << 14;

/// A message with what is behind its head.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) head: Head<'a>,
    pub(super) body: &'a [u8],
}

#[derive(Debug)]
pub(super) enum Head<'a> {
    Schema(Table<'a>),
    Dictionary(Table<'a>),
    Batch(Table<'a>),
}

/// A column, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) of: Kind,
    /// Number of the dictionary that it is an index into, and what that index is.
    pub(super) dictionary: Option<(i64, Box<Kind>)>,
    pub(super) children: Vec<Column>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Nothing,
    Bool,
    /// Of so many bytes.
    Int {
        bytes: usize,
        signed: bool,
    },
    Float {
        bytes: usize,
    },
    /// With so many digits behind the point.
    Decimal {
        scale: i32,
    },
    /// Text, or bytes; offsets have so many bytes.
    Text {
        is_text: bool,
        offset: usize,
    },
    /// The same, each of up to 12 bytes in its view.
    View {
        is_text: bool,
    },
    FixedBytes {
        bytes: usize,
    },
    /// A map is a list of its entries.
    List {
        offset: usize,
    },
    FixedList {
        len: usize,
    },
    Struct,
}

/// The messages of a stream, up to its end.
pub(super) fn messages(stream: &[u8]) -> Result<Vec<Message<'_>>, String> {
    let (mut all, mut at) = (Vec::new(), 0);
    let flat = Flat(stream);
    while at < stream.len() {
        // Old writers have no mark before the length.
        let mut len = flat.u32(at)?;
        at += 4;
        if len == u32::MAX {
            len = flat.u32(at)?;
            at += 4;
        }
        if len == 0 {
            break;
        }
        let head = Flat(flat.bytes(at, len as usize)?).root()?;
        at += len as usize;
        let bytes = head.number(3, Flat::i64, 0)?;
        let bytes = usize::try_from(bytes).map_err(|_| "a message has a negative length")?;
        let body = flat.bytes(at, bytes)?;
        at += bytes;
        let of = head.table_of(2)?.ok_or("a message has no header")?;
        let head = match head.number(1, Flat::u8, 0)? {
            1 => Head::Schema(of),
            2 => Head::Dictionary(of),
            3 => Head::Batch(of),
            other => return Err(format!("message type {other} is unknown")),
        };
        all.push(Message { head, body });
    }
    Ok(all)
}

/// The columns of a schema.
pub(super) fn columns(schema: &Table<'_>) -> Result<Vec<Column>, String> {
    if schema.number(0, Flat::i16, 0)? != 0 {
        return Err("its numbers are big-endian: send them as this machine has them".into());
    }
    let mut left = COLUMNS_MAX;
    schema.tables_of(1)?.iter().map(|table| column(table, DEPTH_MAX, &mut left)).collect()
}

fn column(table: &Table<'_>, depth: usize, left: &mut usize) -> Result<Column, String> {
    let name: String = table.text_of(0)?.into();
    *left = left.checked_sub(1).ok_or("it has too many columns")?;
    let depth = depth.checked_sub(1).ok_or("its columns are nested too deep")?;
    let of = kind(table.number(2, Flat::u8, 0)?, table.table_of(3)?);
    let of = of.map_err(|why| format!("its column {name} is {why}"))?;
    let dictionary = match table.table_of(4)? {
        None => None,
        Some(dictionary) => {
            let index = match dictionary.table_of(1)? {
                Some(int) => integer(&int)?,
                None => Kind::Int { bytes: 4, signed: true },
            };
            Some((dictionary.number(0, Flat::i64, 0)?, Box::new(index)))
        }
    };
    let children = table.tables_of(5)?;
    let children = children.iter().map(|child| column(child, depth, left));
    let children: Vec<_> = children.collect::<Result<_, _>>()?;
    let lists = matches!(of, Kind::List { .. } | Kind::FixedList { .. });
    if lists && children.len() != 1 {
        return Err(format!("its column {name} is a list of {} types", children.len()));
    }
    Ok(Column { name, of, dictionary, children })
}

fn integer(of: &Table<'_>) -> Result<Kind, String> {
    let (bits, signed) = (of.number(0, Flat::i32, 0)?, of.number(1, Flat::u8, 0)? != 0);
    match bits {
        8 | 16 | 32 | 64 => Ok(Kind::Int { bytes: bits as usize / 8, signed }),
        bits => Err(format!("an integer of {bits} bits")),
    }
}

fn kind(sort: u8, of: Option<Table<'_>>) -> Result<Kind, String> {
    let of = of.ok_or("of no type")?;
    let number = |id| of.number(id, Flat::i32, 0);
    let size = |id| usize::try_from(number(id)?).map_err(|_| "of no size".to_owned());
    // Units of time are numbers here: the schema says which.
    let whole = |bytes| Ok(Kind::Int { bytes, signed: true });
    match sort {
        1 => Ok(Kind::Nothing),
        2 => integer(&of),
        3 => match of.number(0, Flat::i16, 0)? {
            precision @ 0..=2 => Ok(Kind::Float { bytes: 2 << precision }),
            other => Err(format!("a number of precision {other}")),
        },
        4 => Ok(Kind::Text { is_text: false, offset: 4 }),
        5 => Ok(Kind::Text { is_text: true, offset: 4 }),
        6 => Ok(Kind::Bool),
        7 if of.number(2, Flat::i32, 128)? == 128 => Ok(Kind::Decimal { scale: number(1)? }),
        8 if of.number(0, Flat::i16, 1)? == 0 => whole(4),
        8 | 10 | 18 => whole(8),
        9 => whole(if of.number(1, Flat::i32, 32)? == 64 { 8 } else { 4 }),
        12 | 17 => Ok(Kind::List { offset: 4 }),
        13 => Ok(Kind::Struct),
        15 => Ok(Kind::FixedBytes { bytes: size(0)? }),
        16 => Ok(Kind::FixedList { len: size(0)? }),
        19 => Ok(Kind::Text { is_text: false, offset: 8 }),
        20 => Ok(Kind::Text { is_text: true, offset: 8 }),
        21 => Ok(Kind::List { offset: 8 }),
        23 => Ok(Kind::View { is_text: false }),
        24 => Ok(Kind::View { is_text: true }),
        other => {
            let names = [(7, "a decimal of another width"), (11, "an interval"), (14, "a union")];
            let name = names.iter().find(|(sort, _)| *sort == other).map(|(_, name)| *name);
            let name = name.map_or_else(|| format!("of sort {other}"), Into::into);
            Err(format!("{name}, which is not shown here: read it in a program"))
        }
    }
}
