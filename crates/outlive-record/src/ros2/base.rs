//! Types without parts: numbers and truth values.

use outlive::describe::Scalar;

/// A type that has no parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F32,
    F64,
}

impl Base {
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            Self::Bool => Scalar::Bool,
            Self::U8 => Scalar::U8,
            Self::I8 => Scalar::I8,
            Self::U16 => Scalar::U16,
            Self::I16 => Scalar::I16,
            Self::U32 => Scalar::U32,
            Self::I32 => Scalar::I32,
            Self::U64 => Scalar::U64,
            Self::I64 => Scalar::I64,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "byte" | "char" | "uint8" => Self::U8,
            "int8" => Self::I8,
            "uint16" => Self::U16,
            "int16" => Self::I16,
            "uint32" => Self::U32,
            "int32" => Self::I32,
            "uint64" => Self::U64,
            "int64" => Self::I64,
            "float32" => Self::F32,
            "float64" => Self::F64,
            _ => return None,
        })
    }

    /// Least and greatest number of an integer; of others, of the integers of their size.
    pub(crate) fn range(self) -> (i128, i128) {
        let bits = 8 * self.size() as u32;
        match self {
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => {
                (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            }
            _ => (0, (1 << bits) - 1),
        }
    }
}
