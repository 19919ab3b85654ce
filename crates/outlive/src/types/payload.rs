//! What may travel on a topic: types that are valid for every bit pattern.
#![allow(unsafe_code)]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::describe::{Scalar, TypeDescription};

/// A fixed-size type that may live in shared memory: valid for every bit pattern, no padding, no
/// pointers. Derive it together with the `zerocopy` traits, which check exactly that, and give the
/// name that all members must agree on.
///
/// Without the derive (feature `derive`) implement it by hand; a type without a description agrees
/// with every type of its name, size and alignment.
///
/// # Examples
/// ```
/// use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// /// Position in metres.
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, outlive::Message, Clone, Copy)]
/// #[zerocopy(crate = "outlive::zerocopy")]
/// #[message(name = "example/Position")]
/// #[repr(C)]
/// struct Position {
///     x: f64,
///     y: f64,
/// }
///
/// /// Without a description.
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "outlive::zerocopy")]
/// #[repr(C)]
/// struct Plain(u64);
///
/// impl outlive::Message for Plain {
///     const TYPE_NAME: &'static str = "example/Plain";
/// }
/// ```
pub trait Message:
    Sized + FromBytes + IntoBytes + Immutable + KnownLayout + Send + Sync + 'static
{
    /// Name of the type, the same in every program and language; 1 to 256 bytes.
    const TYPE_NAME: &'static str;

    /// Its fields, for tools and for the comparison when a member joins.
    fn describe() -> TypeDescription {
        TypeDescription::opaque::<Self>()
    }
}

macro_rules! messages {
    ($($t:ty => $scalar:ident),*) => {
        $(impl Message for $t {
            const TYPE_NAME: &'static str = Scalar::$scalar.as_str();

            fn describe() -> TypeDescription {
                TypeDescription::scalar(Scalar::$scalar)
            }
        })*
    };
}
messages!(u8 => U8, u16 => U16, u32 => U32, u64 => U64, u128 => U128, i8 => I8, i16 => I16,
          i32 => I32, i64 => I64, i128 => I128, f32 => F32, f64 => F64);

impl<T: Message, const N: usize> Message for [T; N] {
    // The size tells arrays of different lengths apart.
    const TYPE_NAME: &'static str = T::TYPE_NAME;

    fn describe() -> TypeDescription {
        T::describe().array(N)
    }
}

/// How payload bytes are to be read; stored in the topic's `meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum Encoding {
    /// One value of a fixed-size type.
    Fixed = 1,
    /// Any number of values of a fixed-size type.
    Slice = 2,
    /// Raw bytes.
    Bytes = 3,
    /// One MessagePack value.
    MessagePack = 4,
    /// A value of a fixed-size type, the header, then any number of elements of another.
    Headed = 5,
}

impl Encoding {
    const ALL: [Self; 5] = [Self::Fixed, Self::Slice, Self::Bytes, Self::MessagePack, Self::Headed];

    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|e| *e as u32 == raw)
    }

    /// The encoding of that name, as [`Encoding::as_str`] gives it; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.as_str() == name)
    }

    /// `fixed`, `slice`, `bytes`, `msgpack` or `headed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Slice => "slice",
            Self::Bytes => "bytes",
            Self::MessagePack => "msgpack",
            Self::Headed => "headed",
        }
    }
}

pub(crate) mod sealed {
    // Public in a private module: nobody else can implement `Payload`.
    #[allow(unreachable_pub)]
    pub trait Sealed {}
    impl<T: super::Message> Sealed for T {}
    impl<T: super::Message> Sealed for [T] {}
}

/// A [`Message`], a slice of them, a [`Headed`](crate::Headed) slice, or
/// `MsgPack`; `[u8]` is raw bytes.
///
/// # Safety
/// Implemented in this crate only: `cast` and `cast_mut` must accept exactly what `fits` accepts.
pub unsafe trait Payload: sealed::Sealed + Send + Sync + 'static {
    /// The type itself, that of the elements, or that of the header.
    type Element: Message;
    /// How the bytes are to be read.
    const ENCODING: Encoding;

    /// Name of the type unless the opener gives one.
    #[doc(hidden)]
    fn payload_type_name() -> &'static str {
        Self::Element::TYPE_NAME
    }

    /// What the payload looks like; opaque if nothing is known.
    #[doc(hidden)]
    fn describe_payload() -> TypeDescription {
        Self::Element::describe()
    }

    /// Length of a payload of `len` elements, if there is such a payload.
    #[doc(hidden)]
    fn bytes_of(len: usize) -> Option<usize> {
        len.checked_mul(size_of::<Self::Element>()).filter(|bytes| Self::fits(*bytes))
    }

    /// The payload's bytes.
    #[doc(hidden)]
    fn bytes(&self) -> &[u8];

    /// Whether `bytes` bytes hold a value.
    #[doc(hidden)]
    fn fits(bytes: usize) -> bool;

    /// # Safety
    /// `fits(bytes)`; `ptr` is aligned for `Element`, valid for reads of `bytes` bytes during
    /// `'a`, and nobody writes there during `'a`.
    #[doc(hidden)]
    unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self;

    /// # Safety
    /// As `cast`; valid for writes as well, and nobody else reads or writes there during `'a`.
    #[doc(hidden)]
    unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self;
}

// SAFETY: `fits` is the exact size; any bytes are a valid `T` (FromBytes).
unsafe impl<T: Message> Payload for T {
    type Element = T;
    const ENCODING: Encoding = Encoding::Fixed;

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    #[inline]
    fn fits(bytes: usize) -> bool {
        bytes == size_of::<T>()
    }

    #[inline]
    unsafe fn cast<'a>(ptr: *const u8, _bytes: usize) -> &'a Self {
        // SAFETY: size, alignment and lifetime by the caller; any bit pattern is a `T`.
        unsafe { &*ptr.cast::<T>() }
    }

    #[inline]
    unsafe fn cast_mut<'a>(ptr: *mut u8, _bytes: usize) -> &'a mut Self {
        // SAFETY: as in `cast`, and exclusive by the caller; `T` has no padding (IntoBytes).
        unsafe { &mut *ptr.cast::<T>() }
    }
}

// SAFETY: `fits` is a whole number of elements; any bytes are valid elements (FromBytes).
unsafe impl<T: Message> Payload for [T] {
    type Element = T;
    const ENCODING: Encoding = if matches!(T::TYPE_NAME.as_bytes(), b"u8") && size_of::<T>() == 1 {
        Encoding::Bytes
    } else {
        Encoding::Slice
    };

    fn describe_payload() -> TypeDescription {
        match Self::ENCODING {
            // Raw bytes: their meaning is the user's.
            Encoding::Bytes => TypeDescription::opaque::<T>(),
            _ => T::describe().slice(),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    #[inline]
    fn fits(bytes: usize) -> bool {
        size_of::<T>() != 0 && bytes % size_of::<T>() == 0
    }

    #[inline]
    unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self {
        // SAFETY: whole elements, alignment and lifetime by the caller.
        unsafe { std::slice::from_raw_parts(ptr.cast(), bytes / size_of::<T>()) }
    }

    #[inline]
    unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self {
        // SAFETY: as in `cast`, and exclusive by the caller.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast(), bytes / size_of::<T>()) }
    }
}
