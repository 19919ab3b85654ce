//! What a type looks like in memory, field by field: plain facts that every language can state.
//!
//! A [`TypeDescription`] is made by `#[outlive::message]`, stored in the topic's `meta` in
//! the form of [`TypeDescription::to_text`], and used to compare types when a member joins and to
//! show payloads of any type ([`TypeDescription::decode`]).
//!
//! | file | what |
//! |---|---|
//! | `form`, `escape` | the stored form, written and read back; names in it |
//! | `compare` | field-by-field difference of two types |
//! | `value` | payload bytes seen through a description |
//! | `scalar`, `names` | the kinds of numbers; the values of enums and their names |
//! | `fault` | which field's bytes are none of its values |

mod compare;
mod escape;
mod fault;
mod form;
mod names;
mod scalar;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use compare::differences;
pub use names::Names;
pub use scalar::Scalar;
pub use value::{Array, Struct, Value};

use crate::{Error, ErrorKind};
use escape::NAME_BYTES_MAX;

/// Longest stored form, bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 65536;
/// Deepest nesting of structs.
const DEPTH_MAX: usize = 16;
/// Most dimensions of one array.
const DIMS_MAX: usize = 8;
/// Largest type, bytes.
const SIZE_MAX: usize = 1 << 40;

/// What one element of a field is.
///
/// # Examples
/// ```
/// use outlive::TypeDescription;
/// use outlive::describe::{Kind, Scalar};
///
/// fn what(kind: &Kind) -> String {
///     match kind {
///         Kind::Scalar(scalar) => scalar.as_str().into(),
///         Kind::Enum(names) => format!("one of {} values", names.iter().count()),
///         Kind::Struct { fields, .. } => format!("{} fields", fields.len()),
///         other => format!("{} bytes", other.size()),
///     }
/// }
///
/// let mode = TypeDescription::enumeration(Scalar::U8, [("Idle", 0), ("Driving", 1)]);
/// assert_eq!(what(mode.root().kind()), "one of 2 values");
/// assert_eq!(what(TypeDescription::opaque::<[u64; 2]>().root().kind()), "16 bytes");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A number, a truth value or a byte of text.
    Scalar(Scalar),
    /// One of several named numbers.
    Enum(Names),
    /// Named fields.
    Struct {
        /// Its size with padding, bytes.
        size: usize,
        /// In order of their offsets; they do not overlap.
        fields: Vec<Field>,
    },
    /// Bytes that nobody described.
    Opaque {
        /// Its size, bytes.
        size: usize,
    },
}

/// What a field is: an element, or an array of them.
///
/// # Examples
/// ```
/// use outlive::TypeDescription;
/// use outlive::describe::Scalar;
///
/// let grid = TypeDescription::scalar(Scalar::F32).array(4).array(2); // as `[[f32; 4]; 2]`
/// let grid = grid.root();
/// assert_eq!(grid.to_string(), "f32[2][4]");
/// assert_eq!((grid.dims(), grid.size()), (&[2, 4][..], 32));
/// let points = TypeDescription::scalar(Scalar::F32).array(3).slice(); // as `[[f32; 3]]`
/// assert!(points.root().is_any_length());
/// assert_eq!(points.root().size(), 12); // of one element
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldType {
    kind: Kind,
    dims: Vec<usize>,
    any_length: bool,
}

impl FieldType {
    /// What one element is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Lengths of the array, outermost first; empty for a single element. The dimension of
    /// [`FieldType::is_any_length`] is not among them.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Whether the outermost dimension is as long as the payload has room for: a slice.
    pub fn is_any_length(&self) -> bool {
        self.any_length
    }

    /// Size in bytes; of a slice, that of one element.
    pub fn size(&self) -> usize {
        self.dims.iter().fold(self.kind.size(), |size, dim| size.saturating_mul(*dim))
    }

    /// Bytes that every payload of it has at least.
    fn least(&self) -> usize {
        if self.any_length { 0 } else { self.size() }
    }
}

impl Kind {
    /// Size of one element, bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Scalar(s) => s.size(),
            Self::Enum(names) => names.width().size(),
            Self::Struct { size, .. } | Self::Opaque { size } => *size,
        }
    }
}

/// A named field of a struct.
///
/// # Examples
/// ```
/// use outlive::Message;
///
/// #[outlive::message("example/Scan")]
/// struct Scan {
///     stamp_ns: u64,
///     ranges_m: [f32; 4],
/// }
///
/// let scan = Scan::describe();
/// let fields = scan.fields().iter();
/// let lines: Vec<_> = fields.map(|f| format!("{} {} {}", f.offset(), f.name(), f.ty())).collect();
/// assert_eq!(lines, ["0 stamp_ns u64", "8 ranges_m f32[4]"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    name: String,
    offset: usize,
    ty: FieldType,
}

impl Field {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it begins in its struct, bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What it is.
    pub fn ty(&self) -> &FieldType {
        &self.ty
    }
}

/// What a payload looks like in memory.
///
/// # Examples
/// ```
/// use outlive::TypeDescription;
///
/// #[outlive::message("example/Speed")]
/// struct Speed {
///     stamp_ns: u64,
///     wheels: [f32; 4],
/// }
///
/// let speed = <Speed as outlive::Message>::describe();
/// assert_eq!(
///     speed.to_text(),
///     "outlive-type 1 align 8\nstruct:24\n 0 u64 stamp_ns\n 8 f32[4] wheels\n"
/// );
/// let back = TypeDescription::parse(speed.to_text().as_bytes())?;
/// assert_eq!(back, speed);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDescription {
    root: FieldType,
    align: usize,
}

impl TypeDescription {
    fn of(kind: Kind, align: usize) -> Self {
        Self { root: FieldType { kind, dims: Vec::new(), any_length: false }, align }
    }

    /// A single number, truth value or byte of text.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription, describe::Scalar};
    ///
    /// assert_eq!(TypeDescription::scalar(Scalar::F64), f64::describe());
    /// ```
    pub fn scalar(scalar: Scalar) -> Self {
        Self::of(Kind::Scalar(scalar), scalar.size())
    }

    /// One of `values`, numbers with their names, stored in an integer of type `width`.
    ///
    /// # Panics
    /// When there are no values or more than 1024, when `width` is not an integer of at most 64
    /// bits, when a number does not fit in it or occurs twice, or when a name is empty, longer than
    /// 128 bytes or occurs twice: the caller's own mistakes.
    ///
    /// # Examples
    /// ```
    /// use outlive::{TypeDescription, describe::Scalar};
    ///
    /// let mode = TypeDescription::enumeration(Scalar::U8, [("Idle", 0), ("Driving", 1)]);
    /// assert_eq!(mode.decode(&[1]).expect("one byte").to_string(), "Driving");
    /// ```
    pub fn enumeration<'a>(
        width: Scalar,
        values: impl IntoIterator<Item = (&'a str, i128)>,
    ) -> Self {
        let values = values.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        match Names::new(width, values) {
            Ok(names) => Self::of(Kind::Enum(names), width.size()),
            Err(why) => panic!("an enum of a described type: {why}"),
        }
    }

    /// Only the size and alignment of `T`: agrees with every type that has the same.
    ///
    /// # Examples
    /// ```
    /// use outlive::TypeDescription;
    ///
    /// struct Secret([u64; 4]);
    ///
    /// let secret = TypeDescription::opaque::<Secret>();
    /// assert_eq!((secret.size(), secret.align()), (32, 8));
    /// ```
    pub fn opaque<T>() -> Self {
        Self::of(Kind::Opaque { size: size_of::<T>() }, align_of::<T>())
    }

    /// A struct of the size and alignment of `T`; [`TypeDescription::field`] names its fields.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription};
    /// use std::mem::offset_of;
    ///
    /// #[repr(C)]
    /// struct Point {
    ///     x: f64,
    ///     y: f64,
    /// }
    ///
    /// let point = TypeDescription::of_struct::<Point>()
    ///     .field("x", offset_of!(Point, x), f64::describe())
    ///     .field("y", offset_of!(Point, y), f64::describe());
    /// assert_eq!((point.size(), point.fields().len()), (16, 2));
    /// ```
    pub fn of_struct<T>() -> Self {
        Self::struct_of(size_of::<T>(), align_of::<T>())
    }

    /// A struct of `size` bytes, aligned to `align`; [`TypeDescription::field`] names its fields.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription};
    ///
    /// // As another program's documentation describes it:
    /// let speed = TypeDescription::struct_of(16, 8)
    ///     .field("stamp_ns", 0, u64::describe())
    ///     .field("metres_per_second", 8, f32::describe()); // and 4 bytes of padding
    /// assert_eq!(speed.size(), 16);
    /// ```
    pub fn struct_of(size: usize, align: usize) -> Self {
        Self::of(Kind::Struct { size, fields: Vec::new() }, align)
    }

    /// Adds a field `offset` bytes into the struct. Fields of 0 bytes are left out.
    ///
    /// # Panics
    /// If this is not a struct, or the field lies outside it, overlaps or precedes the one before,
    /// or has a name that is taken, empty or longer than 128 bytes: the caller's own mistake.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription, msg::Vector3};
    ///
    /// let motion = TypeDescription::struct_of(32, 8)
    ///     .field("stamp_ns", 0, u64::describe())
    ///     .field("speed", 8, Vector3::describe()); // a struct in a struct
    /// assert_eq!((motion.fields()[1].name(), motion.fields()[1].offset()), ("speed", 8));
    /// ```
    #[must_use]
    pub fn field(mut self, name: &str, offset: usize, of: Self) -> Self {
        if of.root.size() == 0 {
            return self;
        }
        let field = Field { name: name.into(), offset, ty: of.root };
        if let Err(why) = self.root.push(field) {
            panic!("field {name} of a described type: {why}");
        }
        self
    }

    /// An array of `len` of these.
    ///
    /// # Examples
    /// ```
    /// use outlive::Message;
    ///
    /// let matrix = f32::describe().array(4).array(2); // two rows of four
    /// assert_eq!(matrix, <[[f32; 4]; 2]>::describe());
    /// assert_eq!(matrix.root().to_string(), "f32[2][4]");
    /// ```
    #[must_use]
    pub fn array(mut self, len: usize) -> Self {
        self.root.dims.insert(0, len);
        self
    }

    /// As many of these as a payload holds.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, PayloadType};
    ///
    /// let scan = f32::describe().slice();
    /// assert_eq!(Some(scan), PayloadType::of::<[f32]>().description());
    /// ```
    #[must_use]
    pub fn slice(mut self) -> Self {
        self.root.any_length = true;
        self
    }

    /// A header with any number of elements behind it; opaque if either is.
    pub(crate) fn headed(head: Self, tail: Self) -> Self {
        let size = head.size();
        if head.is_opaque() || tail.is_opaque() {
            return Self::of(Kind::Opaque { size }, head.align);
        }
        let root = head.root();
        let is_struct = matches!(root.kind(), Kind::Struct { .. }) && root.dims().is_empty();
        let head = match is_struct && root.fields().iter().all(|f| f.name() != "tail") {
            true => head,
            false => Self::struct_of(size, head.align()).field("header", 0, head),
        };
        head.field("tail", size, tail.slice())
    }

    /// What the payload is.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, describe::Kind, msg::Pose};
    ///
    /// assert!(matches!(Pose::describe().root().kind(), Kind::Struct { size: 96, .. }));
    /// assert_eq!(f64::describe().array(6).root().dims(), [6]);
    /// ```
    pub fn root(&self) -> &FieldType {
        &self.root
    }

    /// The fields, if it is a struct or an array of them.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, msg::Twist};
    ///
    /// let twist = Twist::describe();
    /// let names: Vec<_> = twist.fields().iter().map(|field| field.name()).collect();
    /// assert_eq!(names, ["header", "linear", "angular"]);
    /// assert!(f64::describe().fields().is_empty()); // a number has none
    /// ```
    pub fn fields(&self) -> &[Field] {
        self.root.fields()
    }

    /// Size in bytes; of a slice, that of one element.
    ///
    /// # Examples
    /// ```
    /// use outlive::Message;
    ///
    /// assert_eq!(f32::describe().array(6).size(), 24);
    /// assert_eq!(f32::describe().slice().size(), 4); // of one element
    /// ```
    pub fn size(&self) -> usize {
        self.root.size()
    }

    /// Alignment in bytes, a power of two.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, msg::Pose};
    ///
    /// assert_eq!((Pose::describe().align(), f32::describe().array(6).align()), (8, 4));
    /// ```
    pub fn align(&self) -> usize {
        self.align
    }

    /// Whether nothing is known but size and alignment.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Message, TypeDescription};
    ///
    /// assert!(TypeDescription::opaque::<[u64; 4]>().is_opaque());
    /// assert!(!u64::describe().array(4).is_opaque());
    /// ```
    pub fn is_opaque(&self) -> bool {
        matches!(self.root.kind, Kind::Opaque { .. })
    }
}

impl FieldType {
    /// The fields, if it is a struct or an array of them.
    pub fn fields(&self) -> &[Field] {
        match &self.kind {
            Kind::Struct { fields, .. } => fields,
            _ => &[],
        }
    }

    /// Appends a field; everything that `Field` and `Kind` promise is checked here.
    fn push(&mut self, field: Field) -> std::result::Result<(), &'static str> {
        let Kind::Struct { size, fields } = &mut self.kind else {
            return Err("only structs have fields");
        };
        if field.name.is_empty() || field.name.len() > NAME_BYTES_MAX {
            return Err("a name has 1 to 128 bytes");
        }
        if fields.iter().any(|f| f.name == field.name) {
            return Err("the name is taken");
        }
        if field.ty.fields().iter().any(|f| f.ty.any_length) {
            return Err("a slice is the last field of the outermost struct");
        }
        let free = fields.last().map_or(0, |f| f.offset + f.ty.size());
        if fields.last().is_some_and(|f| f.ty.any_length) {
            return Err("nothing comes after a field of any length");
        }
        if field.offset < free {
            return Err("it begins before the end of the field before it");
        }
        let end = field.offset.checked_add(field.ty.least());
        if end.is_none_or(|end| end > *size) {
            return Err("it ends after the struct");
        }
        fields.push(field);
        Ok(())
    }
}

impl std::fmt::Display for FieldType {
    /// As in the stored form: `f64`, `u8[3][4]`, `struct:24[]`, `enum:u8{Idle=0,Driving=1}`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Scalar(s) => f.write_str(s.as_str())?,
            Kind::Enum(names) => write!(f, "{names}")?,
            Kind::Struct { size, .. } => write!(f, "struct:{size}")?,
            Kind::Opaque { size } => write!(f, "opaque:{size}")?,
        }
        if self.any_length {
            f.write_str("[]")?;
        }
        self.dims.iter().try_for_each(|dim| write!(f, "[{dim}]"))
    }
}

impl std::fmt::Display for TypeDescription {
    /// The stored form.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_text())
    }
}

#[cold]
fn corrupt(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "reading", "type description", why)
}
