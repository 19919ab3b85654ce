//! The stored form of a type description, version 1: UTF-8 text, one line per field.
//!
//! ```text
//! outlive-type 1 align 8          version, alignment of the whole
//! struct:40[4]                    what the payload is
//!  0 f64[3] position              a field: offset, type, name; one space per level of nesting
//!  24 struct:16 detail            offsets count from the struct that the field is in
//!   0 u8 flag
//! ```
//! docs/internals/SHM_LAYOUT.md has the grammar and the bounds.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Lines;

use super::escape::{escape, unescape};
use super::{
    DEPTH_MAX, DESCRIPTION_BYTES_MAX, DIMS_MAX, Field, FieldType, Kind, Names, SIZE_MAX, Scalar,
    TypeDescription, corrupt,
};
use crate::{Error, ErrorKind, Result};

const VERSION: &str = "1";

impl TypeDescription {
    /// The form that is stored in shared memory and that other languages write.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, msg::Vector3};
    ///
    /// let text = Vector3::describe().to_text();
    /// assert_eq!(text, "outlive-type 1 align 8\nstruct:24\n 0 f64 x\n 8 f64 y\n 16 f64 z\n");
    /// ```
    pub fn to_text(&self) -> String {
        let mut out = format!("outlive-type {VERSION} align {}\n{}\n", self.align, self.root);
        write_fields(&mut out, &self.root, 1);
        out
    }

    /// What goes into `meta`: nothing if nothing is known, or more than may be stored.
    pub(crate) fn to_schema(&self) -> Vec<u8> {
        let text = self.to_text();
        let stored = !self.is_opaque() && Self::parse(text.as_bytes()).is_ok();
        if stored { text.into() } else { Vec::new() }
    }

    /// As [`TypeDescription::parse`], of what the caller of a binding wrote: what is wrong there is
    /// an `InvalidArgument`.
    #[doc(hidden)]
    pub fn parse_argument(text: &str) -> Result<Self> {
        Self::parse(text.as_bytes()).map_err(|e| match e.kind() {
            ErrorKind::Corrupt => {
                let why = e.remedy().into_owned();
                Error::new(ErrorKind::InvalidArgument, "reading", "type description", why)
            }
            _ => e,
        })
    }

    /// Reads the stored form. Trusts nothing: every bound is checked.
    ///
    /// # Errors
    /// `VersionMismatch` for the form of a later version; `Corrupt` for anything else that this
    /// version would not write.
    ///
    /// # Examples
    /// ```
    /// use outlive::{ErrorKind, TypeDescription};
    ///
    /// let text = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";
    /// let point = TypeDescription::parse(text.as_bytes())?;
    /// assert_eq!(point.fields()[1].name(), "y");
    /// let broken = TypeDescription::parse(b"outlive-type 1 align 8\nf65\n").unwrap_err();
    /// assert_eq!(broken.kind(), ErrorKind::Corrupt);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.len() > DESCRIPTION_BYTES_MAX {
            return Err(corrupt(format!("it has more than {DESCRIPTION_BYTES_MAX} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| corrupt("it is not UTF-8"))?;
        if !text.ends_with('\n') {
            return Err(corrupt("its last line has no end"));
        }
        let mut lines = text.lines().peekable();
        let align = parse_head(lines.next().unwrap_or_default())?;
        let Some(root) = lines.next() else { return Err(corrupt("it has no type")) };
        let mut root = parse_type(root)?;
        parse_fields(&mut root, &mut lines, 1)?;
        if let Some(line) = lines.next() {
            return Err(line_error(line, "it belongs to no struct"));
        }
        let array = root.any_length || !root.dims.is_empty();
        if array && root.fields().iter().any(|f| f.ty.any_length) {
            return Err(corrupt("structs that end in a slice make no array"));
        }
        Ok(Self { root, align })
    }
}

fn write_fields(out: &mut String, of: &FieldType, level: usize) {
    for field in of.fields() {
        let _ = write!(out, "{:level$}{} {} ", "", field.offset, field.ty);
        let _ = escape(out, &field.name, |_| false);
        out.push('\n');
        write_fields(out, &field.ty, level + 1);
    }
}

fn parse_head(line: &str) -> Result<usize> {
    let bad = || line_error(line, "expected 'outlive-type 1 align <bytes>'");
    let rest = line.strip_prefix("outlive-type ").ok_or_else(bad)?;
    let (version, rest) = rest.split_once(' ').ok_or_else(bad)?;
    if version != VERSION {
        return Err(Error::new(
            ErrorKind::VersionMismatch,
            "reading",
            "type description",
            format!("its form has version {version}, this program knows {VERSION}: update it"),
        ));
    }
    let align = rest.strip_prefix("align ").and_then(number).ok_or_else(bad)?;
    if !align.is_power_of_two() || align > 4096 {
        return Err(line_error(line, "an alignment is a power of two up to 4096"));
    }
    Ok(align)
}

/// Reads the fields of a struct: the lines that are indented by `level` spaces.
fn parse_fields(into: &mut FieldType, lines: &mut Peekable<Lines<'_>>, level: usize) -> Result<()> {
    while let Some(line) = lines.next_if(|l| l.bytes().take_while(|b| *b == b' ').count() == level)
    {
        if level > DEPTH_MAX {
            return Err(line_error(line, "structs are nested too deep"));
        }
        let mut words = line[level..].splitn(3, ' ');
        let (Some(offset), Some(ty), Some(name)) = (words.next(), words.next(), words.next())
        else {
            return Err(line_error(line, "expected '<offset> <type> <name>'"));
        };
        let offset =
            number(offset).ok_or_else(|| line_error(line, "the offset is out of range"))?;
        let name = unescape(name).ok_or_else(|| line_error(line, "the name is malformed"))?;
        let mut ty = parse_type(ty)?;
        parse_fields(&mut ty, lines, level + 1)?;
        into.push(Field { name, offset, ty }).map_err(|why| line_error(line, why))?;
    }
    Ok(())
}

fn parse_type(text: &str) -> Result<FieldType> {
    let bad = |why| line_error(text, why);
    let (element, mut dims_text) = match text.find('[') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let kind = match element.split_once(':') {
        None => Scalar::from_name(element).map(Kind::Scalar),
        Some(("struct", size)) => number(size).map(|size| Kind::Struct { size, fields: vec![] }),
        Some(("opaque", size)) => number(size).map(|size| Kind::Opaque { size }),
        Some(("enum", values)) => match Names::parse(values) {
            Some(names) => Some(Kind::Enum(names.map_err(bad)?)),
            None => return Err(bad("the values of the enum are malformed")),
        },
        Some(_) => None,
    };
    let kind = kind.ok_or_else(|| bad("the type is unknown or its size out of range"))?;
    let any_length = match dims_text.strip_prefix("[]") {
        Some(rest) => {
            dims_text = rest;
            true
        }
        None => false,
    };
    let mut dims = Vec::new();
    let mut size = kind.size();
    while !dims_text.is_empty() {
        let dim = dims_text.strip_prefix('[').and_then(|t| t.split_once(']'));
        let (dim, rest) = dim.ok_or_else(|| bad("a dimension is malformed"))?;
        let dim = number(dim).ok_or_else(|| bad("a dimension is out of range"))?;
        dims.push(dim);
        dims_text = rest;
        size = size.saturating_mul(dim);
    }
    if size == 0 || size > SIZE_MAX || dims.len() > DIMS_MAX {
        return Err(bad("its size or number of dimensions is out of range"));
    }
    Ok(FieldType { kind, dims, any_length })
}

/// A decimal number as we write it: digits only.
fn number(text: &str) -> Option<usize> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|n| *n <= SIZE_MAX)
}

#[cold]
fn line_error(line: &str, why: &str) -> Error {
    // Whoever wrote it may have written anything: no more than a glimpse, and no control bytes.
    let shown: String = line.chars().take(60).flat_map(char::escape_default).collect();
    corrupt(format!("{why}, in '{shown}'"))
}
