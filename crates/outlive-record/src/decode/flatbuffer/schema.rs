//! A binary schema (`.bfbs`): a FlatBuffer itself, of the types in `reflection.fbs`.

use super::super::flat::{Flat, Table};

/// Most tables, structs and enums, and most of their fields: a topic holds 64 KiB of schema.
const PARTS_MAX: usize = 1 << 16;
/// Longest name of a field or a value, bytes: each value that is shown has one.
const NAME_BYTES_MAX: usize = 128;

/// The numbers of `BaseType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    None,
    UnionType,
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Text,
    Vector,
    Object,
    Union,
    Array,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Type {
    pub(super) base: Base,
    /// Of a vector or an array.
    pub(super) element: Base,
    /// Of an object or an enum, if it is one or has some.
    pub(super) index: Option<usize>,
    /// Elements of an array.
    pub(super) len: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) of: Type,
    id: u16,
    /// In the vtable, in a struct from its beginning; bytes.
    pub(super) offset: usize,
    pub(super) integer: i64,
    pub(super) real: f64,
    /// Without a default.
    pub(super) optional: bool,
    deprecated: bool,
}

/// A table or a struct.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) name: String,
    /// In the order of their ids.
    pub(super) fields: Vec<Field>,
    pub(super) is_struct: bool,
    /// Of a struct.
    pub(super) bytes: usize,
}

/// A value of an enum, or what a union may be.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) number: i64,
    pub(super) of: Option<Type>,
}

#[derive(Clone, Debug)]
pub(super) struct Enum {
    pub(super) name: String,
    pub(super) choices: Vec<Choice>,
}

#[derive(Clone, Debug)]
pub(super) struct Schema {
    pub(super) objects: Vec<Object>,
    pub(super) enums: Vec<Enum>,
}

impl Base {
    fn of(number: u8) -> Result<Self, String> {
        use Base::*;
        let all = [
            None, UnionType, Bool, I8, U8, I16, U16, I32, U32, I64, U64, F32, F64, Text, Vector,
            Object, Union, Array,
        ];
        let base = all.get(usize::from(number)).copied();
        base.ok_or_else(|| format!("its schema has a type of number {number}, unknown here"))
    }

    /// Bytes of a number, a truth value, an enum or a union's type; none of anything else.
    pub(super) fn size(self) -> Option<usize> {
        Some(match self {
            Self::UnionType | Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
            _ => return None,
        })
    }
}

impl Type {
    fn of(table: Option<Table<'_>>) -> Result<Self, String> {
        let table = table.ok_or("its schema has a field without a type")?;
        let index = table.number(2, Flat::i32, -1)?;
        Ok(Self {
            base: Base::of(table.number(0, Flat::u8, 0)?)?,
            element: Base::of(table.number(1, Flat::u8, 0)?)?,
            index: usize::try_from(index).ok(),
            len: table.number(3, Flat::u16, 0)?.into(),
        })
    }

    /// That of an element.
    pub(super) fn inner(&self) -> Self {
        Self { base: self.element, element: Base::None, ..self.clone() }
    }
}

impl Schema {
    pub(super) fn of(bytes: &[u8]) -> Result<Self, String> {
        let root = Flat(bytes).root()?;
        let (mut objects, mut enums, mut parts) = (Vec::new(), Vec::new(), 0);
        let mut count = |more: usize| {
            parts += more;
            if parts > PARTS_MAX { Err("its schema has too many parts".to_owned()) } else { Ok(()) }
        };
        for table in root.tables_of(0)? {
            let fields = table.tables_of(1)?;
            count(1 + fields.len())?;
            let mut fields: Vec<Field> = fields.iter().map(field).collect::<Result<_, _>>()?;
            fields.retain(|field| !field.deprecated);
            fields.sort_by_key(|field| field.id);
            objects.push(Object {
                name: table.text_of(0)?.into(),
                fields,
                is_struct: table.number(2, Flat::u8, 0)? != 0,
                bytes: usize::try_from(table.number(4, Flat::i32, 0)?).unwrap_or(0),
            });
        }
        for table in root.tables_of(1)? {
            let choices = table.tables_of(1)?;
            count(1 + choices.len())?;
            let choices = choices.iter().map(choice).collect::<Result<_, _>>()?;
            enums.push(Enum { name: table.text_of(0)?.into(), choices });
        }
        Ok(Self { objects, enums })
    }

    pub(super) fn object(&self, of: &Type) -> Result<&Object, String> {
        let object = of.index.and_then(|index| self.objects.get(index));
        object.ok_or_else(|| "its schema uses a type that it does not have".into())
    }

    /// What the numbers of an enum or union mean.
    pub(super) fn choices(&self, of: &Type) -> Option<&Enum> {
        of.index.and_then(|index| self.enums.get(index))
    }
}

fn name(table: &Table<'_>) -> Result<String, String> {
    match table.text_of(0)? {
        name if name.len() <= NAME_BYTES_MAX => Ok(name.into()),
        name => Err(format!("a name has {} bytes, {NAME_BYTES_MAX} are possible", name.len())),
    }
}

fn field(table: &Table<'_>) -> Result<Field, String> {
    Ok(Field {
        name: name(table)?,
        of: Type::of(table.table_of(1)?)?,
        id: table.number(2, Flat::u16, 0)?,
        offset: table.number(3, Flat::u16, 0)?.into(),
        integer: table.number(4, Flat::i64, 0)?,
        real: table.number(5, Flat::f64, 0.0)?,
        deprecated: table.number(6, Flat::u8, 0)? != 0,
        optional: table.number(11, Flat::u8, 0)? != 0,
    })
}

fn choice(table: &Table<'_>) -> Result<Choice, String> {
    let of = table.table_of(3)?;
    Ok(Choice {
        name: name(table)?,
        number: table.number(1, Flat::i64, 0)?,
        of: of.map(|of| Type::of(Some(of))).transpose()?,
    })
}
