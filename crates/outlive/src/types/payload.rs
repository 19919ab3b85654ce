//! What may lie in shared memory: types of fixed layout, and how their bytes become values.
//!
//! # Theory of operation
//! Bytes that another process wrote are a claim. Of most types any bytes are a value, so there is
//! nothing to look at; of `bool`, `char` and enums some are not. [`Message::VALIDITY`] says which
//! kind a type is, [`Payload::CHECKED`] derives the same for slices and headed payloads. Of a
//! checked type each place that receives calls [`Payload::is_valid`] once, before it makes a
//! reference, and each place that lends room to write calls [`Payload::clear`]. `CHECKED` is a
//! constant, so for all other types neither leaves a trace in the machine code.
#![allow(unsafe_code)]

use std::marker::PhantomData;

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, TryFromBytes};

use super::describe::{Scalar, TypeDescription};
use super::encoding::Encoding;
use super::payload_type::PayloadType;

use crate::sync::fault;

/// A fixed-size type that may live in shared memory: no padding, no pointers, zeros are a value.
/// [`macro@crate::message`] above a struct or enum makes it one.
///
/// Without the macro (feature `derive`) implement it by hand, with the traits of `zerocopy`, which
/// check all that. A type without a description agrees with every type of its name, size and
/// alignment.
///
/// # Examples
/// ```
/// /// Position in metres.
/// #[outlive::message("example/Position")]
/// #[derive(Clone, Copy)]
/// struct Position {
///     x: f64,
///     y: f64,
/// }
///
/// /// By hand, without a description.
/// use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
///
/// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// #[zerocopy(crate = "outlive::zerocopy")]
/// #[repr(C)]
/// struct Plain(u64);
///
/// impl outlive::Message for Plain {
///     const TYPE_NAME: &'static str = "example/Plain";
///     const VALIDITY: outlive::Validity<Self> = outlive::Validity::any();
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message: it has no fixed layout that all programs agree on",
    label = "not a message",
    note = "of your own struct or enum: write `#[outlive::message]` above it",
    note = "text: `outlive::msg::Text<N>`; an optional value: `outlive::msg::Optional<T>`",
    note = "a list: an array `[T; N]`, or `[T]` as the type of the topic; anything of serde: \
            `outlive::MsgPack<T>` as the type of the topic"
)]
pub trait Message:
    Sized + FromZeros + TryFromBytes + IntoBytes + Immutable + KnownLayout + Send + Sync + 'static
{
    /// Name of the type, the same in every program and language; 1 to 256 bytes.
    const TYPE_NAME: &'static str;

    /// Whether bytes are checked before they are read as this type. Locks and real-time channels
    /// take only types of which any bytes are a value.
    const VALIDITY: Validity<Self> = Validity::checked();

    /// Its fields, for tools and for the comparison when a member joins.
    ///
    /// # Examples
    /// ```
    /// use outlive::Message;
    ///
    /// #[outlive::message("example/Position")]
    /// struct Position {
    ///     x: f64,
    ///     y: f64,
    /// }
    ///
    /// let position = Position::describe(); // as the macro wrote it
    /// let names: Vec<_> = position.fields().iter().map(|field| field.name()).collect();
    /// assert_eq!(names, ["x", "y"]);
    /// ```
    fn describe() -> TypeDescription {
        TypeDescription::opaque::<Self>()
    }
}

/// Which bytes are a `T`: any, or those that pass a check when they are received.
///
/// # Examples
/// ```
/// use outlive::Message;
///
/// #[outlive::message("example/Lamp")]
/// struct Lamp {
///     brightness: f32,
///     on: bool,
///     reserved: [u8; 3],
/// }
///
/// assert!(f32::VALIDITY.is_any()); // any four bytes are a number
/// assert!(!bool::VALIDITY.is_any()); // a byte of 2 is not a bool
/// assert!(!Lamp::VALIDITY.is_any()); // as it has a bool in it
/// ```
pub struct Validity<T> {
    any: bool,
    _type: PhantomData<fn() -> T>,
}

impl<T: Message> Validity<T> {
    /// Some bytes are not a `T`, as for a `bool`: received bytes are checked.
    ///
    /// # Examples
    /// ```
    /// use outlive::zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout};
    /// use outlive::{Message, Validity};
    ///
    /// #[derive(FromZeros, IntoBytes, Immutable, KnownLayout)]
    /// #[zerocopy(crate = "outlive::zerocopy")]
    /// #[repr(C)]
    /// struct Lamp {
    ///     on: bool,
    /// }
    ///
    /// impl Message for Lamp {
    ///     const TYPE_NAME: &'static str = "example/Lamp";
    ///     const VALIDITY: Validity<Self> = Validity::checked(); // the default, too
    /// }
    /// assert!(!Lamp::VALIDITY.is_any());
    /// ```
    pub const fn checked() -> Self {
        Self::of(false)
    }

    /// Any bytes are a `T`: there is nothing to check.
    ///
    /// # Examples
    /// ```
    /// use outlive::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
    /// use outlive::{Message, Validity};
    ///
    /// #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
    /// #[zerocopy(crate = "outlive::zerocopy")]
    /// #[repr(C)]
    /// struct Count(u64);
    ///
    /// impl Message for Count {
    ///     const TYPE_NAME: &'static str = "example/Count";
    ///     const VALIDITY: Validity<Self> = Validity::any(); // compiles only with `FromBytes`
    /// }
    /// assert!(Count::VALIDITY.is_any());
    /// ```
    pub const fn any() -> Self
    where
        T: FromBytes,
    {
        Self::of(true)
    }

    /// Any bytes are a `T` if `any`.
    ///
    /// # Safety
    /// `any` only if `T` has no bytes but those of its fields, and any bytes are a value of each.
    #[doc(hidden)]
    pub const unsafe fn of_fields(any: bool) -> Self {
        Self::of(any)
    }
}

impl<T> Validity<T> {
    const fn of(any: bool) -> Self {
        Self { any, _type: PhantomData }
    }

    /// Whether any bytes are a `T`.
    ///
    /// # Examples
    /// ```
    /// use outlive::Message;
    ///
    /// assert!(<[u16; 8]>::VALIDITY.is_any());
    /// assert!(!<[char; 8]>::VALIDITY.is_any());
    /// ```
    pub const fn is_any(&self) -> bool {
        self.any
    }
}

impl<T> std::fmt::Debug for Validity<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.any { "any bytes" } else { "checked" })
    }
}

/// Refuses, when it compiles, what another process could leave half written: of a type in a lock
/// or a real-time channel any bytes are a value.
pub(crate) const fn require_any_bytes<T: Message>() {
    const {
        assert!(
            T::VALIDITY.is_any(),
            "data of locks and real-time channels have no bool, char or enum in them, as nobody \
             checks their bytes: use outlive::msg::Bool, or an integer"
        );
    }
}

/// The bytes of `value`, to write.
pub(crate) fn bytes_mut<T: Message>(value: &mut T) -> &mut [u8] {
    require_any_bytes::<T>();
    // SAFETY: a `T` has no padding (IntoBytes), and whatever is written is a `T` (just required).
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>()) }
}

/// What is wrong with `bytes`, which are no `T`: the first field whose bytes are none of its
/// values.
#[cold]
pub(crate) fn fault_of<T: Payload + ?Sized>(bytes: &[u8]) -> String {
    let fault = T::describe_payload().fault(bytes);
    let fault =
        fault.unwrap_or_else(|| format!("its bytes are not a valid {}", T::payload_type_name()));
    format!("{fault}: correct the program that sent it")
}

macro_rules! messages {
    ($validity:ident: $($t:ty => $scalar:ident),*) => {
        $(impl Message for $t {
            const TYPE_NAME: &'static str = Scalar::$scalar.as_str();
            const VALIDITY: Validity<Self> = Validity::$validity();

            fn describe() -> TypeDescription {
                TypeDescription::scalar(Scalar::$scalar)
            }
        })*
    };
}
messages!(any: u8 => U8, u16 => U16, u32 => U32, u64 => U64, u128 => U128, i8 => I8, i16 => I16,
          i32 => I32, i64 => I64, i128 => I128, f32 => F32, f64 => F64);
messages!(checked: bool => Bool, char => Char32);

impl<T: Message, const N: usize> Message for [T; N] {
    // The size tells arrays of different lengths apart.
    const TYPE_NAME: &'static str = T::TYPE_NAME;
    // SAFETY: an array is its elements.
    const VALIDITY: Validity<Self> = unsafe { Validity::of_fields(T::VALIDITY.any) };

    fn describe() -> TypeDescription {
        T::describe().array(N)
    }
}

pub(crate) mod sealed {
    // Public in a private module: nobody else can implement `Payload`.
    #[allow(unreachable_pub)]
    pub trait Sealed {}
    impl<T: super::Message> Sealed for T {}
    impl<T: super::Message> Sealed for [T] {}
}

/// A [`Message`], a slice of them, a [`Headed`](crate::Headed) slice, `MsgPack`, or
/// [`Encoded`](crate::Encoded); `[u8]` is raw bytes.
///
/// # Safety
/// Implemented in this crate only: `cast` and `cast_mut` must accept exactly what `fits` and, where
/// `CHECKED`, `is_valid` accept, and what `clear` leaves is valid.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{Node, Payload, Result};
///
/// /// Publishes one value of any type that can travel.
/// fn publish_once<T: Payload + ?Sized>(node: &Node, topic: &str, value: &T) -> Result<u64> {
///     node.topic::<T>(topic)?.publisher()?.publish(value)
/// }
///
/// let mut scans = node.topic::<[f32]>("/scan")?.subscriber()?;
/// publish_once(&node, "/speed", &1.5)?;
/// publish_once(&node, "/scan", &[0.5f32, 0.75][..])?;
/// assert_eq!(scans.receive()?.expect("sent just now").len(), 2);
/// # Ok::<(), outlive::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot travel: it has no fixed layout that all programs agree on",
    label = "neither a message, nor a slice of them, `Headed`, `MsgPack` or `Encoded`",
    note = "of your own struct or enum: write `#[outlive::message]` above it",
    note = "a list: `[T]`; text: `[u8]` or `outlive::msg::Text<N>`; an optional value: \
            `outlive::msg::Optional<T>`",
    note = "anything of serde, with strings, lists and maps: `outlive::MsgPack<T>`",
    note = "a message of Protocol Buffers, ROS or others: `outlive::Encoded<C>`"
)]
pub unsafe trait Payload: sealed::Sealed + Send + Sync + 'static {
    /// The type itself, that of the elements, or that of the header.
    type Element: Message;
    /// How the bytes are encoded.
    const ENCODING: Encoding;
    /// Whether some bytes of a length that fits are no payload.
    #[doc(hidden)]
    const CHECKED: bool = !Self::Element::VALIDITY.any;

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

    /// The type as all members must agree on it.
    #[doc(hidden)]
    fn payload_type() -> PayloadType {
        let form = (size_of::<Self::Element>(), align_of::<Self::Element>());
        let (name, description) = (Self::payload_type_name(), Self::describe_payload());
        PayloadType::described(Self::ENCODING, name, form, &description)
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

    /// Whether `bytes`, aligned and of a length that fits, are a payload. Always, unless `CHECKED`.
    #[doc(hidden)]
    fn is_valid(bytes: &[u8]) -> bool;

    /// Makes memory that is lent to be written a payload: zeros where not any bytes are one.
    ///
    /// # Safety
    /// As `cast_mut`, but for what the bytes are.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn clear(ptr: *mut u8, bytes: usize) {
        if Self::CHECKED && !fault("slot.old_bytes") {
            // SAFETY: by the caller; zeros are a value (FromZeros).
            unsafe { ptr.write_bytes(0, bytes) };
        }
    }

    /// # Safety
    /// `fits(bytes)`; `ptr` is aligned for `Element`, valid for reads of `bytes` bytes during
    /// `'a`, and nobody writes there during `'a`; the bytes are valid where that is `CHECKED`.
    #[doc(hidden)]
    unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self;

    /// # Safety
    /// As `cast`; valid for writes as well, and nobody else reads or writes there during `'a`.
    #[doc(hidden)]
    unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self;
}

impl PayloadType {
    /// The type of a Rust type.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Encoding, PayloadType};
    ///
    /// let scan = PayloadType::of::<[f32]>();
    /// assert_eq!((scan.name(), scan.encoding()), ("f32", Encoding::Slice));
    /// assert!(scan.differences(&PayloadType::of::<[f32]>()).is_empty());
    /// ```
    pub fn of<T: Payload + ?Sized>() -> Self {
        T::payload_type()
    }
}

/// Whether `bytes`, aligned and as long as an element, are one.
pub(super) fn is_element<E: Message>(bytes: &[u8]) -> bool {
    E::try_ref_from_bytes(bytes).is_ok()
}

/// Whether `bytes`, aligned and as long as whole elements, are elements.
pub(super) fn are_elements<E: Message>(bytes: &[u8]) -> bool {
    E::VALIDITY.any || bytes.chunks_exact(size_of::<E>().max(1)).all(is_element::<E>)
}

// SAFETY: `fits` is the exact size; of that, what is valid is a `T` (TryFromBytes).
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
    fn is_valid(bytes: &[u8]) -> bool {
        T::VALIDITY.any || is_element::<T>(bytes)
    }

    #[inline]
    unsafe fn cast<'a>(ptr: *const u8, _bytes: usize) -> &'a Self {
        // SAFETY: size, alignment, validity and lifetime by the caller.
        unsafe { &*ptr.cast::<T>() }
    }

    #[inline]
    unsafe fn cast_mut<'a>(ptr: *mut u8, _bytes: usize) -> &'a mut Self {
        // SAFETY: as in `cast`, and exclusive by the caller; `T` has no padding (IntoBytes).
        unsafe { &mut *ptr.cast::<T>() }
    }
}

// SAFETY: `fits` is a whole number of elements; of these, what is valid are elements.
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
    fn is_valid(bytes: &[u8]) -> bool {
        are_elements::<T>(bytes)
    }

    #[inline]
    unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self {
        // SAFETY: whole elements, alignment, validity and lifetime by the caller.
        unsafe { std::slice::from_raw_parts(ptr.cast(), bytes / size_of::<T>()) }
    }

    #[inline]
    unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self {
        // SAFETY: as in `cast`, and exclusive by the caller.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast(), bytes / size_of::<T>()) }
    }
}
