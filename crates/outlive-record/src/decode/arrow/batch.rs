//! The values of a record batch: buffers, which its head places in the body.

use std::collections::HashMap;

use super::super::flat::{Budget, Flat, Table, Vector};
use super::super::tree::Tree;
use super::schema::{Column, Kind};

/// A batch on the way from its first buffer to its last.
pub(super) struct Batch<'a, 'b> {
    body: Flat<'a>,
    nodes: Option<Vector<'a>>,
    buffers: Option<Vector<'a>>,
    views: Option<Vector<'a>>,
    node: usize,
    buffer: usize,
    view: usize,
    pub(super) dictionaries: &'b HashMap<i64, Vec<Tree>>,
    budget: &'b mut Budget,
}

impl<'a, 'b> Batch<'a, 'b> {
    pub(super) fn new(
        head: &Table<'a>,
        body: &'a [u8],
        dictionaries: &'b HashMap<i64, Vec<Tree>>,
        budget: &'b mut Budget,
    ) -> Result<Self, String> {
        if head.table_of(3)?.is_some() {
            return Err("it is compressed: send it without compression".into());
        }
        let vector = |id: usize| head.vector_at(4 + 2 * id);
        let (nodes, buffers, views) = (vector(1)?, vector(2)?, vector(4)?);
        let body = Flat(body);
        let (node, buffer, view) = (0, 0, 0);
        Ok(Self { body, nodes, buffers, views, node, buffer, view, dictionaries, budget })
    }

    /// A place in a vector of structs or numbers, each of `size` bytes.
    fn next(
        vector: Option<Vector<'a>>,
        index: &mut usize,
        size: usize,
    ) -> Result<(Flat<'a>, usize), String> {
        let vector = vector.filter(|vector| *index < vector.len);
        let vector = vector.ok_or("it has fewer parts than columns")?;
        let at = vector.place(*index, size);
        *index += 1;
        Ok((vector.buffer(), at))
    }

    fn next_buffer(&mut self) -> Result<Flat<'a>, String> {
        let (flat, at) = Self::next(self.buffers, &mut self.buffer, 16)?;
        let place =
            |at| usize::try_from(flat.i64(at)?).map_err(|_| "a buffer is nowhere".to_owned());
        self.body.bytes(place(at)?, place(at.saturating_add(8))?).map(Flat)
    }

    /// All values of a column.
    pub(super) fn column(&mut self, of: &Column) -> Result<Vec<Tree>, String> {
        let values = match &of.dictionary {
            Some((id, index)) => self.indexed(*id, index),
            None => self.values(of),
        };
        values.map_err(|why| match why.starts_with("column ") {
            true => why,
            false => format!("column {}: {why}", of.name),
        })
    }

    fn rows(&mut self) -> Result<usize, String> {
        let (flat, at) = Self::next(self.nodes, &mut self.node, 16)?;
        usize::try_from(flat.i64(at)?).map_err(|_| "it has less than no rows".into())
    }

    fn values(&mut self, of: &Column) -> Result<Vec<Tree>, String> {
        let rows = self.rows()?;
        if of.of == Kind::Nothing {
            return (0..rows).map(|_| self.budget.take(0).map(|()| Tree::Nothing)).collect();
        }
        let valid = self.next_buffer()?;
        let mut values = match &of.of {
            Kind::Text { is_text, offset } => {
                let (offsets, data) = (self.next_buffer()?, self.next_buffer()?);
                let mut values = Vec::new();
                for row in 0..rows {
                    let (from, to) = range(offsets, row, *offset)?;
                    values.push(self.text(data.bytes(from, to - from)?, *is_text)?);
                }
                values
            }
            Kind::View { is_text } => self.views(rows, *is_text)?,
            Kind::List { offset } => {
                let offsets = self.next_buffer()?;
                let inner = self.column(&of.children[0])?;
                let mut values = Vec::new();
                for row in 0..rows {
                    let (from, to) = range(offsets, row, *offset)?;
                    values.push(self.part(&inner, from, to)?);
                }
                values
            }
            Kind::FixedList { len } => {
                let inner = self.column(&of.children[0])?;
                let part = |row: usize| (row.saturating_mul(*len), (row + 1).saturating_mul(*len));
                let mut values = Vec::new();
                for (from, to) in (0..rows).map(part) {
                    values.push(self.part(&inner, from, to)?);
                }
                values
            }
            Kind::Struct => self.structs(of, rows)?,
            kind => {
                let data = self.next_buffer()?;
                let mut values = Vec::new();
                for row in 0..rows {
                    values.push(self.plain(kind, data, row)?);
                }
                values
            }
        };
        // Without a bitmap all are there.
        if !valid.0.is_empty() {
            for (row, value) in values.iter_mut().enumerate() {
                if valid.u8(row / 8)? & (1 << (row % 8)) == 0 {
                    *value = Tree::Nothing;
                }
            }
        }
        Ok(values)
    }

    fn plain(&mut self, kind: &Kind, data: Flat<'_>, row: usize) -> Result<Tree, String> {
        self.budget.take(0)?;
        let place = |bytes: usize| row.saturating_mul(bytes);
        Ok(match *kind {
            Kind::Bool => Tree::Bool(data.u8(row / 8)? & (1 << (row % 8)) != 0),
            Kind::Int { bytes, signed } => {
                let mut wide = [0; 8];
                wide[..bytes].copy_from_slice(data.bytes(place(bytes), bytes)?);
                let number = u64::from_le_bytes(wide);
                let unused = 64 - 8 * bytes as u32;
                match signed {
                    true => Tree::Signed((((number << unused) as i64) >> unused).into()),
                    false => Tree::Unsigned(number.into()),
                }
            }
            Kind::Float { bytes: 2 } => Tree::F32(half(data.u16(place(2))?)),
            Kind::Float { bytes: 4 } => Tree::F32(data.f32(place(4))?),
            Kind::Float { .. } => Tree::F64(data.f64(place(8))?),
            Kind::Decimal { scale } => {
                let bytes = data.bytes(place(16), 16)?.try_into().unwrap_or_default();
                Tree::Text(decimal(i128::from_le_bytes(bytes), scale))
            }
            Kind::FixedBytes { bytes } => {
                self.budget.take(bytes)?;
                Tree::bytes(data.bytes(place(bytes), bytes)?)
            }
            _ => return Err("it has no values of its own".into()),
        })
    }

    fn text(&mut self, bytes: &[u8], is_text: bool) -> Result<Tree, String> {
        self.budget.take(bytes.len())?;
        if !is_text {
            return Ok(Tree::bytes(bytes));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| "its text is not UTF-8")?;
        Ok(Tree::Text(text.into()))
    }

    /// A view is a length, then the bytes, or their first four, the buffer and the offset there.
    fn views(&mut self, rows: usize, is_text: bool) -> Result<Vec<Tree>, String> {
        let views = self.next_buffer()?;
        let (flat, at) = Self::next(self.views, &mut self.view, 8)?;
        let more = usize::try_from(flat.i64(at)?).map_err(|_| "it has less than no buffers")?;
        let mut buffers = Vec::new();
        for _ in 0..more {
            buffers.push(self.next_buffer()?);
        }
        let mut values = Vec::new();
        for row in 0..rows {
            let at = row.saturating_mul(16);
            let len = views.u32(at)? as usize;
            let bytes = match len {
                0..=12 => views.bytes(at.saturating_add(4), len)?,
                _ => {
                    let (index, from) = (views.u32(at + 8)? as usize, views.u32(at + 12)? as usize);
                    let buffer = buffers.get(index).ok_or("a view is of no buffer")?;
                    buffer.bytes(from, len)?
                }
            };
            values.push(self.text(bytes, is_text)?);
        }
        Ok(values)
    }

    fn structs(&mut self, of: &Column, rows: usize) -> Result<Vec<Tree>, String> {
        let mut values: Vec<Vec<(String, Tree)>> = Vec::new();
        for _ in 0..rows {
            self.budget.take(0)?;
            values.push(Vec::new());
        }
        for child in &of.children {
            let column = self.column(child)?;
            if column.len() < rows {
                return Err(format!("{} has {} of {rows} rows", child.name, column.len()));
            }
            for (row, value) in values.iter_mut().zip(column) {
                self.budget.take_name(child.name.len())?;
                row.push((child.name.clone(), value));
            }
        }
        Ok(values.into_iter().map(Tree::Fields).collect())
    }

    /// A row of a list. Each begins where the one before ends, so that its values were counted.
    fn part(&mut self, inner: &[Tree], from: usize, to: usize) -> Result<Tree, String> {
        let part = inner.get(from..to).ok_or("a list has more than there is")?;
        self.budget.take(0)?;
        Ok(Tree::list(part.to_vec()))
    }

    fn indexed(&mut self, id: i64, index: &Kind) -> Result<Vec<Tree>, String> {
        let rows = self.rows()?;
        let (valid, data) = (self.next_buffer()?, self.next_buffer()?);
        let dictionary = self.dictionaries.get(&id).ok_or("its dictionary did not come")?;
        let mut values = Vec::new();
        for row in 0..rows {
            if !valid.0.is_empty() && valid.u8(row / 8)? & (1 << (row % 8)) == 0 {
                self.budget.take(0)?;
                values.push(Tree::Nothing);
                continue;
            }
            let index = match self.plain(index, data, row)? {
                Tree::Signed(index) => usize::try_from(index).ok(),
                Tree::Unsigned(index) => usize::try_from(index).ok(),
                _ => None,
            };
            let value = index.and_then(|index| dictionary.get(index));
            let value = value.ok_or("an index is not in its dictionary")?;
            self.again(value)?;
            values.push(value.clone());
        }
        Ok(values)
    }

    /// Takes room for one more of a value.
    fn again(&mut self, value: &Tree) -> Result<(), String> {
        value.sizes().into_iter().try_for_each(|bytes| self.budget.take(bytes))
    }
}

/// From where to where a row goes.
fn range(offsets: Flat<'_>, row: usize, size: usize) -> Result<(usize, usize), String> {
    let one = |row: usize| -> Result<usize, String> {
        let at = row.saturating_mul(size);
        let offset = if size == 8 { offsets.i64(at)? } else { offsets.i32(at)?.into() };
        usize::try_from(offset).map_err(|_| "an offset is less than 0".into())
    };
    let (from, to) = (one(row)?, one(row + 1)?);
    if from <= to { Ok((from, to)) } else { Err("its offsets go back".into()) }
}

/// An IEEE 754 number of 16 bits.
fn half(bits: u16) -> f32 {
    let (sign, exponent) = (u32::from(bits >> 15) << 31, u32::from(bits >> 10) & 31);
    let fraction = u32::from(bits & 0x3ff);
    match exponent {
        0 => {
            let small = fraction as f32 / 16_777_216.0;
            if sign == 0 { small } else { -small }
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

fn decimal(number: i128, scale: i32) -> String {
    let digits = number.unsigned_abs().to_string();
    let sign = if number < 0 { "-" } else { "" };
    match usize::try_from(scale) {
        Ok(0) => format!("{sign}{digits}"),
        // No type of Arrow has more.
        Ok(scale) if scale <= 76 => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (whole, rest) = digits.split_at(digits.len() - scale);
            format!("{sign}{whole}.{rest}")
        }
        _ => format!("{sign}{digits}e{}", -i64::from(scale)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_decimals_are_what_they_say() {
        for (bits, value) in [
            (0x3c00, 1.0f32),
            (0xc000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
            (0x8000, -0.0),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half(bits).to_bits(), value.to_bits(), "{bits:x}");
        }
        assert!(half(0x7e00).is_nan());
        let all = [(-5, 2, "-0.05"), (12345, 2, "123.45"), (7, 0, "7"), (7, -3, "7e3")];
        for (number, scale, text) in all {
            assert_eq!(decimal(number, scale), text);
        }
        assert_eq!(decimal(1, i32::MAX), "1e-2147483647");
    }
}
