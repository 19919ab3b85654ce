//! The kinds of numbers that types consist of.

/// A number, a truth value or a byte of text. Little-endian, as everything in shared memory.
///
/// # Examples
/// ```
/// use outlive::describe::{Kind, Scalar};
/// use outlive::{Message, TypeDescription};
///
/// assert_eq!((Scalar::F32.as_str(), Scalar::F32.size()), ("f32", 4));
/// let speed = <f32 as Message>::describe();
/// assert_eq!(speed, TypeDescription::scalar(Scalar::F32));
/// assert_eq!(*speed.root().kind(), Kind::Scalar(Scalar::F32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Scalar {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    /// One byte, 0 is false.
    Bool,
    /// One byte of UTF-8 text; an array of them is text that ends at the first 0.
    Char,
    /// Four bytes: a Unicode scalar value, Rust's `char`.
    Char32,
}

impl Scalar {
    const ALL: [Self; 15] = {
        use Scalar::*;
        [U8, U16, U32, U64, U128, I8, I16, I32, I64, I128, F32, F64, Bool, Char, Char32]
    };

    /// `u8`, `f64`, `bool`, `char`, `char32` ...
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::Char => "char",
            Self::Char32 => "char32",
        }
    }

    /// Its size, bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 | Self::I8 | Self::Bool | Self::Char => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Char32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
            Self::U128 | Self::I128 => 16,
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == name)
    }
}
