//! A payload type as the `meta` of a topic or a queue has it: the first member writes it, each
//! later one compares it with its own.

use super::PayloadType;
use crate::os::PAGE;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Relaxed;
use crate::types::encoding::Encoding;
use crate::types::schema::{self, SCHEMA_BYTES_MAX};
use crate::{Error, ErrorKind, Result};

const ENCODING: usize = 64;
const SIZE: usize = 72;
const ALIGN: usize = 80;
const NAME_LEN: usize = 104;
const SCHEMA_LEN: usize = 112;
const NAME: usize = 128;

/// What a kind of `meta` allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) name_bytes: usize,
    pub(crate) size_bytes: usize,
}

/// Why a `meta` cannot be used.
pub(crate) enum Unreadable {
    Error(Error),
    /// That field is out of range.
    Field(&'static str),
}

pub(crate) type Parsed<T> = std::result::Result<T, Unreadable>;

impl From<Error> for Unreadable {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl Unreadable {
    /// Of the file `map`.
    pub(crate) fn error(self, map: &Mapping) -> Error {
        match self {
            Self::Error(e) => e,
            Self::Field(field) => Error::new(
                ErrorKind::Corrupt,
                "reading",
                map.path().display().to_string(),
                format!("its {field} is out of range: stop the members and run 'outlive clean'"),
            ),
        }
    }
}

impl Bounds {
    /// Where the schema begins, behind the place for the name.
    pub(crate) const fn schema(self) -> usize {
        NAME + self.name_bytes
    }

    /// Checks the size and the alignment that somebody else wrote.
    pub(crate) fn check(self, size: usize, align: usize) -> Parsed<()> {
        if size == 0 || size > self.size_bytes {
            return Err(Unreadable::Field("element size"));
        }
        if !align.is_power_of_two() || align > PAGE {
            return Err(Unreadable::Field("alignment"));
        }
        Ok(())
    }
}

impl PayloadType {
    /// Whether members can share it; if not, why. A schema is looked into where the name is that
    /// of its type.
    pub(crate) fn check_shareable(
        &self,
        bounds: Bounds,
        is_named: bool,
    ) -> std::result::Result<(), String> {
        if self.size == 0 || self.align > PAGE {
            return Err("types of 0 bytes or aligned to more than 4096 cannot be shared".into());
        }
        let (length, most) = (self.name.len(), bounds.name_bytes);
        if length == 0 || length > most {
            return Err(format!(
                "a type name has 1 to {most} bytes and '{}' has {length}: give another",
                self.name
            ));
        }
        if is_named {
            return schema::stored((self.encoding, &self.name, &self.schema)).map(drop);
        }
        match self.schema.len() > SCHEMA_BYTES_MAX {
            true => Err(format!("a schema has at most {SCHEMA_BYTES_MAX} bytes")),
            false => Ok(()),
        }
    }

    /// Reads it from a `meta` of `len` bytes.
    pub(crate) fn read(map: &Mapping, len: u64, bounds: Bounds) -> Parsed<Self> {
        let at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed) as usize);
        let encoding = Encoding::from_raw(map.atomic_u32(ENCODING)?.load(Relaxed))
            .ok_or(Unreadable::Field("encoding"))?;
        let (size, align) = (at(SIZE)?, at(ALIGN)?);
        bounds.check(size, align)?;
        let (name_len, schema_len) = (at(NAME_LEN)?, at(SCHEMA_LEN)?);
        if name_len == 0 || name_len > bounds.name_bytes {
            return Err(Unreadable::Field("type name"));
        }
        if schema_len > SCHEMA_BYTES_MAX || bounds.schema() + schema_len > len as usize {
            return Err(Unreadable::Field("schema"));
        }
        let name = String::from_utf8(map.copy_out(NAME, name_len)?)
            .map_err(|_| Unreadable::Field("type name"))?;
        let schema = map.copy_out(bounds.schema(), schema_len)?;
        Ok(Self::from_parts(encoding, &name, (size, align), schema))
    }

    /// Writes it into a `meta` that nobody sees yet.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the file.
    pub(crate) fn write(&self, map: &Mapping, bounds: Bounds) -> Result<()> {
        map.atomic_u32(ENCODING)?.store(self.encoding as u32, Relaxed);
        for (offset, value) in [
            (SIZE, self.size),
            (ALIGN, self.align),
            (NAME_LEN, self.name.len()),
            (SCHEMA_LEN, self.schema.len()),
        ] {
            map.atomic_u64(offset)?.store(value as u64, Relaxed);
        }
        map.copy_in(NAME, self.name.as_bytes())?;
        map.copy_in(bounds.schema(), &self.schema)
    }
}
