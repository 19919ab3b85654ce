//! FlatBuffers by their binary schema.
//!
//! | file | what |
//! |---|---|
//! | `schema` | tables, structs, enums of a `.bfbs` |
//! | this | a payload with its fields; a schema as text |

mod schema;

use std::fmt::Write as _;
use std::sync::Arc;

use super::columns::columns;
use super::flat::{Budget, Flat, Table, Vector};
use super::tree::{Path, Tree};
use schema::{Base, Field, Object, Schema, Type};

/// Deepest nesting, as verifiers of FlatBuffers have it.
const DEPTH_MAX: usize = 64;

/// How payloads of one table become fields.
#[derive(Clone, Debug)]
pub(super) struct FlatBuffer {
    schema: Arc<Schema>,
    /// Index of the table.
    root: usize,
}

impl FlatBuffer {
    /// For the table `name`.
    pub(super) fn of(name: &str, schema: &[u8]) -> Result<Self, String> {
        let schema = Schema::of(schema).map_err(|why| format!("its schema is damaged: {why}"))?;
        let root = schema.objects.iter().position(|of| of.name == name && !of.is_struct);
        let root = root.ok_or_else(|| format!("its schema has no table {name}"))?;
        Ok(Self { schema: schema.into(), root })
    }

    /// A payload with its fields. What is not set and has no default is left out.
    pub(super) fn tree(&self, payload: &[u8]) -> Result<Tree, String> {
        let mut walk = Walk { schema: &self.schema, budget: Budget::of(payload) };
        walk.table(&self.schema.objects[self.root], Flat(payload).root()?, DEPTH_MAX)
    }

    /// Columns of a table of payloads.
    pub(super) fn columns(&self) -> Vec<Path> {
        let object = |of: &Type| match of.base {
            Base::Object => of.index.filter(|index| *index < self.schema.objects.len()),
            _ => None,
        };
        let sorts = |of: &Type| match self.schema.choices(of) {
            Some(of_union) if of.base == Base::Union => {
                let some = of_union.choices.iter().filter_map(|choice| choice.of.as_ref());
                some.filter(|of| of.base != Base::None).map(object).collect()
            }
            _ => vec![object(of)],
        };
        columns(self.root, |index| {
            let fields = self.schema.objects[*index].fields.iter();
            fields.map(|field| (field.name.clone(), sorts(&field.of))).collect()
        })
    }

    /// The table and all that it uses, as a `.fbs` file has them.
    pub(super) fn text(&self) -> String {
        let (mut objects, mut enums, mut seen) = (vec![self.root], Vec::new(), 0);
        let mut text = String::new();
        while let Some(object) = objects.get(seen).map(|index| &self.schema.objects[*index]) {
            seen += 1;
            let sort = if object.is_struct { "struct" } else { "table" };
            let _ = writeln!(text, "{sort} {} {{", object.name);
            for field in &object.fields {
                let _ = writeln!(text, "  {}: {};", field.name, self.type_text(&field.of));
                self.uses(&field.of, &mut objects, &mut enums);
            }
            text += "}\n";
        }
        for index in enums {
            let of = &self.schema.enums[index];
            let _ = writeln!(text, "enum {} {{", of.name);
            for choice in &of.choices {
                let _ = writeln!(text, "  {} = {},", choice.name, choice.number);
            }
            text += "}\n";
        }
        text.trim_end().into()
    }

    fn uses(&self, of: &Type, objects: &mut Vec<usize>, enums: &mut Vec<usize>) {
        let Some(index) = of.index else { return };
        let base = if of.element == Base::None { of.base } else { of.element };
        match base {
            Base::Object if index >= self.schema.objects.len() || objects.contains(&index) => {}
            Base::Object => objects.push(index),
            _ if index < self.schema.enums.len() && !enums.contains(&index) => {
                enums.push(index);
                for choice in &self.schema.enums[index].choices {
                    if let Some(of) = &choice.of {
                        self.uses(of, objects, enums);
                    }
                }
            }
            _ => {}
        }
    }

    fn type_text(&self, of: &Type) -> String {
        match of.base {
            Base::Vector => format!("[{}]", self.type_text(&of.inner())),
            Base::Array => format!("[{}:{}]", self.type_text(&of.inner()), of.len),
            Base::Object => self.schema.object(of).map_or_else(|why| why, |of| of.name.clone()),
            Base::Text => "string".into(),
            base => match (self.schema.choices(of), base) {
                (Some(of), Base::UnionType) => format!("{} (which)", of.name),
                (Some(of), _) => of.name.clone(),
                (None, Base::F32) => "float32".into(),
                (None, Base::F64) => "float64".into(),
                (None, base) => {
                    let name = format!("{base:?}").to_lowercase();
                    name.replacen('i', "int", 1).replacen('u', "uint", 1)
                }
            },
        }
    }
}

struct Walk<'a> {
    schema: &'a Schema,
    budget: Budget,
}

impl Walk<'_> {
    fn table(&mut self, of: &Object, table: Table<'_>, depth: usize) -> Result<Tree, String> {
        let depth = depth.checked_sub(1).ok_or("it is nested too deep")?;
        self.budget.take(0)?;
        let mut fields = Vec::new();
        for field in &of.fields {
            let value = self.field(of, field, &table, depth);
            let value = value.map_err(|why| within(&field.name, why))?;
            fields.extend(value.map(|value| (field.name.clone(), value)));
        }
        Ok(Tree::Fields(fields))
    }

    fn field(
        &mut self,
        of: &Object,
        field: &Field,
        table: &Table<'_>,
        depth: usize,
    ) -> Result<Option<Tree>, String> {
        let slot = field.offset;
        Ok(match field.of.base {
            Base::Text => match table.text_at(slot)? {
                Some(text) => {
                    self.budget.take(text.len())?;
                    Some(Tree::Text(text.into()))
                }
                None => None,
            },
            Base::Object => {
                let object = self.schema.object(&field.of)?;
                match object.is_struct {
                    true => {
                        let place = table.place(slot, object.bytes)?;
                        let buffer = table.buffer();
                        place.map(|at| self.structure(object, buffer, at, depth)).transpose()?
                    }
                    false => {
                        let inner = table.table_at(slot)?;
                        inner.map(|inner| self.table(object, inner, depth)).transpose()?
                    }
                }
            }
            Base::Vector => {
                let Some(vector) = table.vector_at(slot)? else { return Ok(None) };
                let types = match field.of.element {
                    Base::Union => table.vector_at(type_slot(of, field)?)?,
                    _ => None,
                };
                Some(self.vector(&field.of.inner(), vector, types, depth)?)
            }
            Base::Union => {
                let place = table.place(type_slot(of, field)?, 1)?;
                let which = place.map_or(Ok(0), |at| table.buffer().u8(at))?;
                let chosen = self.chosen(&field.of, which)?;
                match (chosen.base, slot) {
                    (Base::None, _) => None,
                    (Base::Text, _) => {
                        let text = table.text_at(slot)?.unwrap_or_default();
                        self.budget.take(text.len())?;
                        Some(Tree::Text(text.into()))
                    }
                    _ => {
                        let object = self.schema.object(&chosen)?;
                        if object.is_struct {
                            return Err("a union of structs is not shown here".into());
                        }
                        let inner = table.table_at(slot)?;
                        inner.map(|inner| self.table(object, inner, depth)).transpose()?
                    }
                }
            }
            base => {
                let size = base.size().ok_or("its schema has a field of no type")?;
                match table.place(slot, size)? {
                    Some(at) => Some(self.number(&field.of, table.buffer(), at)?),
                    None if field.optional => None,
                    None => Some(self.default(field)?),
                }
            }
        })
    }

    /// What a union is that says `which`.
    fn chosen(&self, of: &Type, which: u8) -> Result<Type, String> {
        let nothing = || Type { base: Base::None, element: Base::None, index: None, len: 0 };
        if which == 0 {
            return Ok(nothing());
        }
        let choices = self.schema.choices(of).map_or(&[][..], |of| &of.choices);
        let choice = choices.iter().find(|choice| choice.number == i64::from(which));
        let choice =
            choice.ok_or_else(|| format!("it is a union's number {which}, unknown here"))?;
        Ok(choice.of.clone().unwrap_or_else(nothing))
    }

    fn vector(
        &mut self,
        of: &Type,
        vector: Vector<'_>,
        types: Option<Vector<'_>>,
        depth: usize,
    ) -> Result<Tree, String> {
        let depth = depth.checked_sub(1).ok_or("it is nested too deep")?;
        if of.base == Base::U8 && of.index.is_none() {
            let bytes = vector.bytes()?;
            self.budget.take(bytes.len())?;
            return Ok(Tree::bytes(bytes));
        }
        let object = if of.base == Base::Object { Some(self.schema.object(of)?) } else { None };
        let size = match object {
            Some(object) if object.is_struct => object.bytes,
            _ => of.base.size().unwrap_or(4),
        };
        vector.check(size)?;
        let mut list = Vec::new();
        for index in 0..vector.len {
            let at = vector.place(index, size);
            let value = match (of.base, object) {
                (_, Some(of)) if of.is_struct => self.structure(of, vector.buffer(), at, depth),
                (_, Some(of)) => self.table(of, vector.table(index)?, depth),
                (Base::Text, _) => {
                    let text = vector.text(index)?;
                    self.budget.take(text.len())?;
                    Ok(Tree::Text(text.into()))
                }
                (Base::Union, _) => {
                    let which = types.and_then(|types| types.bytes().ok()?.get(index).copied());
                    let chosen = self.chosen(of, which.unwrap_or(0))?;
                    match chosen.base {
                        Base::None => {
                            self.budget.take(0)?;
                            Ok(Tree::Nothing)
                        }
                        Base::Object if !self.schema.object(&chosen)?.is_struct => {
                            self.table(self.schema.object(&chosen)?, vector.table(index)?, depth)
                        }
                        _ => Err("a union of this type is not shown here".into()),
                    }
                }
                _ => self.number(of, vector.buffer(), at),
            };
            list.push(value.map_err(|why| within(&format!("[{index}]"), why))?);
        }
        Ok(Tree::list(list))
    }

    /// A struct is a part of what has it, without offsets.
    fn structure(
        &mut self,
        of: &Object,
        buffer: Flat<'_>,
        at: usize,
        depth: usize,
    ) -> Result<Tree, String> {
        let depth = depth.checked_sub(1).ok_or("it is nested too deep")?;
        self.budget.take(0)?;
        // What its schema says of a part may be anything.
        let bytes = buffer.bytes(at, of.bytes)?;
        let mut fields = Vec::new();
        for field in &of.fields {
            let value = self.part(&field.of, Flat(bytes), field.offset, depth);
            fields.push((field.name.clone(), value.map_err(|why| within(&field.name, why))?));
        }
        Ok(Tree::Fields(fields))
    }

    fn part(
        &mut self,
        of: &Type,
        buffer: Flat<'_>,
        at: usize,
        depth: usize,
    ) -> Result<Tree, String> {
        match of.base {
            Base::Object => self.structure(self.schema.object(of)?, buffer, at, depth),
            Base::Array => {
                let inner = of.inner();
                let size = match inner.base {
                    Base::Object => self.schema.object(&inner)?.bytes,
                    base => base.size().ok_or("an array has elements of no size")?,
                };
                let places = (0..of.len).map(|i| at + i * size);
                let parts = places.map(|at| self.part(&inner, buffer, at, depth));
                Ok(Tree::list(parts.collect::<Result<_, _>>()?))
            }
            _ => self.number(of, buffer, at),
        }
    }

    fn number(&mut self, of: &Type, buffer: Flat<'_>, at: usize) -> Result<Tree, String> {
        self.budget.take(0)?;
        let integer = match of.base {
            Base::Bool => return Ok(Tree::Bool(buffer.u8(at)? != 0)),
            Base::F32 => return buffer.f32(at).map(Tree::F32),
            Base::F64 => return buffer.f64(at).map(Tree::F64),
            Base::U64 if of.index.is_none() => {
                return buffer.u64(at).map(|v| Tree::Unsigned(v.into()));
            }
            Base::UnionType | Base::U8 => buffer.u8(at)?.into(),
            Base::I8 => buffer.i8(at)?.into(),
            Base::I16 => buffer.i16(at)?.into(),
            Base::U16 => buffer.u16(at)?.into(),
            Base::I32 => buffer.i32(at)?.into(),
            Base::U32 => buffer.u32(at)?.into(),
            Base::I64 | Base::U64 => buffer.i64(at)?,
            _ => return Err("its schema has a number of no type".into()),
        };
        Ok(self.named(of, integer))
    }

    fn default(&mut self, field: &Field) -> Result<Tree, String> {
        self.budget.take(0)?;
        Ok(match field.of.base {
            Base::Bool => Tree::Bool(field.integer != 0),
            Base::F32 => Tree::F32(field.real as f32),
            Base::F64 => Tree::F64(field.real),
            Base::U64 if field.of.index.is_none() => Tree::Unsigned((field.integer as u64).into()),
            _ => self.named(&field.of, field.integer),
        })
    }

    /// A number of an enum by its name.
    fn named(&self, of: &Type, number: i64) -> Tree {
        let choices = self.schema.choices(of).map_or(&[][..], |of| &of.choices);
        match choices.iter().find(|choice| choice.number == number) {
            Some(choice) => Tree::Name(choice.name.clone()),
            None => Tree::Signed(number.into()),
        }
    }
}

/// Where the type of a union stands: it has the id before the union's.
fn type_slot(of: &Object, field: &Field) -> Result<usize, String> {
    let slot = field.offset.checked_sub(2).filter(|slot| *slot >= 4);
    slot.ok_or_else(|| format!("the union {} of {} has no type", field.name, of.name))
}

/// Where it is, as a path.
fn within(name: &str, why: String) -> String {
    match why.split_once(": ") {
        Some((path, why)) if !path.contains(' ') => {
            let dot = if path.starts_with('[') { "" } else { "." };
            format!("{name}{dot}{path}: {why}")
        }
        _ => format!("{name}: {why}"),
    }
}
