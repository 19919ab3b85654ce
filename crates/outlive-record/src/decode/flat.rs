//! The bytes of a FlatBuffer, of which every offset is a claim: tables, vectors, text.
//!
//! Nothing is read unchecked, so nothing has to be verified before. The crate
//! `flatbuffers-reflection` (0.1) takes the schema for trusted: a lying one makes it panic.

/// Most values that a byte of a buffer may become: parts may be shared, and in tables absent fields
/// have defaults. Arrow has eight truth values in it, and a struct around each.
const VALUES_OF_BYTE_MAX: usize = 16;
/// Most bytes of text and names that it may become: by the index of a dictionary, or in rows. As a
/// value takes about as many itself, this is not what makes a payload large.
const BYTES_OF_BYTE_MAX: usize = 64;
const VALUES_MIN: usize = 1 << 16;
const BYTES_MIN: usize = 1 << 20;
const SHARED: &str = "its parts are shared so often that it is too large";

/// A buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flat<'a>(pub(super) &'a [u8]);

/// A table in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table<'a> {
    of: Flat<'a>,
    at: usize,
    vtable: usize,
    vtable_bytes: usize,
    bytes: usize,
}

/// Elements without gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vector<'a> {
    of: Flat<'a>,
    at: usize,
    pub(super) len: usize,
}

/// What a payload may still become.
#[derive(Debug)]
pub(super) struct Budget {
    values: usize,
    bytes: usize,
}

impl Budget {
    pub(super) fn of(payload: &[u8]) -> Self {
        let most = |of_byte| payload.len().saturating_mul(of_byte);
        Self {
            values: most(VALUES_OF_BYTE_MAX).saturating_add(VALUES_MIN),
            bytes: most(BYTES_OF_BYTE_MAX).saturating_add(BYTES_MIN),
        }
    }

    /// Takes room for a value that has so many bytes besides.
    pub(super) fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.values = self.values.checked_sub(1).ok_or(SHARED)?;
        self.take_name(bytes)
    }

    /// Takes room for so many bytes of the name of a value, which has its own.
    pub(super) fn take_name(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or(SHARED)?;
        Ok(())
    }
}

macro_rules! numbers {
    ($($name:ident: $t:ty),*) => {
        $(pub(super) fn $name(self, at: usize) -> Result<$t, String> {
            Ok(<$t>::from_le_bytes(self.array(at)?))
        })*
    };
}

impl<'a> Flat<'a> {
    numbers!(u8: u8, i8: i8, u16: u16, i16: i16, u32: u32, i32: i32, u64: u64, i64: i64,
        f32: f32, f64: f64);

    fn array<const N: usize>(self, at: usize) -> Result<[u8; N], String> {
        let bytes = self.bytes(at, N)?.try_into();
        bytes.map_err(|_| "it has another length".into())
    }

    pub(super) fn bytes(self, at: usize, len: usize) -> Result<&'a [u8], String> {
        let bytes = at.checked_add(len).and_then(|end| self.0.get(at..end));
        bytes.ok_or_else(|| format!("it has {} bytes and needs {len} at {at}", self.0.len()))
    }

    /// Where the offset at `at` leads.
    fn follow(self, at: usize) -> Result<usize, String> {
        match self.u32(at)? as usize {
            0 => Err(format!("an offset at {at} leads nowhere")),
            by => at.checked_add(by).ok_or_else(|| format!("an offset at {at} is too large")),
        }
    }

    pub(super) fn root(self) -> Result<Table<'a>, String> {
        self.table(self.follow(0)?)
    }

    fn table(self, at: usize) -> Result<Table<'a>, String> {
        let back = i64::from(self.i32(at)?);
        let vtable = usize::try_from(at as i64 - back);
        let vtable = vtable.map_err(|_| format!("the table at {at} has no fields"))?;
        let (vtable_bytes, bytes) = (self.u16(vtable)?.into(), self.u16(vtable + 2)?.into());
        self.bytes(vtable, vtable_bytes)?;
        self.bytes(at, bytes)?;
        Ok(Table { of: self, at, vtable, vtable_bytes, bytes })
    }

    fn text(self, at: usize) -> Result<&'a str, String> {
        let Vector { at, len, .. } = self.vector(at)?;
        let text = std::str::from_utf8(self.bytes(at, len)?);
        text.map_err(|_| format!("the text at {at} is not UTF-8"))
    }

    fn vector(self, at: usize) -> Result<Vector<'a>, String> {
        Ok(Vector { of: self, at: at + 4, len: self.u32(at)? as usize })
    }
}

impl<'a> Table<'a> {
    /// Where the field is whose place stands `slot` bytes into the vtable, if it is there; it has
    /// `len` bytes.
    pub(super) fn place(&self, slot: usize, len: usize) -> Result<Option<usize>, String> {
        if slot < 4 || slot.saturating_add(2) > self.vtable_bytes {
            return Ok(None);
        }
        match usize::from(self.of.u16(self.vtable + slot)?) {
            0 => Ok(None),
            by if by.saturating_add(len) > self.bytes => {
                Err(format!("the table at {} is shorter than its fields", self.at))
            }
            by => Ok(Some(self.at + by)),
        }
    }

    pub(super) fn buffer(&self) -> Flat<'a> {
        self.of
    }

    /// A number, where it is there; the fields of schemas are known by their ids.
    pub(super) fn number<T>(
        &self,
        id: usize,
        read: impl Fn(Flat<'a>, usize) -> Result<T, String>,
        default: T,
    ) -> Result<T, String> {
        let place = self.place(4 + 2 * id, size_of::<T>())?;
        place.map_or(Ok(default), |at| read(self.of, at))
    }

    fn followed(&self, slot: usize) -> Result<Option<usize>, String> {
        self.place(slot, 4)?.map(|at| self.of.follow(at)).transpose()
    }

    pub(super) fn table_at(&self, slot: usize) -> Result<Option<Table<'a>>, String> {
        self.followed(slot)?.map(|at| self.of.table(at)).transpose()
    }

    pub(super) fn text_at(&self, slot: usize) -> Result<Option<&'a str>, String> {
        self.followed(slot)?.map(|at| self.of.text(at)).transpose()
    }

    pub(super) fn vector_at(&self, slot: usize) -> Result<Option<Vector<'a>>, String> {
        self.followed(slot)?.map(|at| self.of.vector(at)).transpose()
    }

    pub(super) fn table_of(&self, id: usize) -> Result<Option<Table<'a>>, String> {
        self.table_at(4 + 2 * id)
    }

    pub(super) fn text_of(&self, id: usize) -> Result<&'a str, String> {
        Ok(self.text_at(4 + 2 * id)?.unwrap_or_default())
    }

    /// The tables of a vector; none if it is not there.
    pub(super) fn tables_of(&self, id: usize) -> Result<Vec<Table<'a>>, String> {
        let Some(all) = self.vector_at(4 + 2 * id)? else { return Ok(Vec::new()) };
        all.check(4)?;
        (0..all.len).map(|i| all.table(i)).collect()
    }
}

impl<'a> Vector<'a> {
    /// That it has all its elements, each of `size` bytes.
    pub(super) fn check(&self, size: usize) -> Result<(), String> {
        let bytes = self.len.checked_mul(size).ok_or("a vector is too long")?;
        self.of.bytes(self.at, bytes).map(drop)
    }

    /// Where an element is.
    pub(super) fn place(&self, index: usize, size: usize) -> usize {
        self.at.saturating_add(index.saturating_mul(size))
    }

    pub(super) fn buffer(&self) -> Flat<'a> {
        self.of
    }

    pub(super) fn bytes(&self) -> Result<&'a [u8], String> {
        self.of.bytes(self.at, self.len)
    }

    pub(super) fn table(&self, index: usize) -> Result<Table<'a>, String> {
        self.of.table(self.of.follow(self.place(index, 4))?)
    }

    pub(super) fn text(&self, index: usize) -> Result<&'a str, String> {
        self.of.text(self.of.follow(self.place(index, 4))?)
    }
}
