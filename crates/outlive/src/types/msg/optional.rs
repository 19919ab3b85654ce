//! A value that may be absent, of fixed size.
#![allow(unsafe_code)]

use std::fmt;

use zerocopy::{FromZeros, Immutable, IntoBytes, KnownLayout};

use super::Bool;
use crate::types::describe::TypeDescription;
use crate::types::{Message, Validity};

/// A value that may be absent. Other programs do not know the layout of `Option`, so this is a
/// `bool` named `present`, 7 zero bytes, and the value, which is zero if absent.
///
/// Aligned as the value, to at most 8 bytes, as in C and C++.
///
/// # Examples
/// ```
/// use outlive::msg::Optional;
///
/// #[outlive::message("example/Grip")]
/// struct Grip {
///     opening_m: f64,
///     force_n: Optional<f64>,
/// }
///
/// let grip = Grip { opening_m: 0.04, force_n: Some(1.5).into() };
/// assert_eq!(grip.force_n.get(), Some(1.5));
/// assert_eq!(Optional::<f64>::none().get(), None);
/// ```
#[derive(FromZeros, Immutable, KnownLayout, Clone, Copy)]
// Packed: a value with a larger alignment would have padding before it.
#[repr(C, packed(8))]
pub struct Optional<T: Message + Copy> {
    present: Bool,
    reserved: [u8; 7],
    value: T,
}

// SAFETY: all fields are `IntoBytes`, and there is no padding: the alignment is that of `T`, but at
// most 8, so it divides 8, where the value begins, and the size of `T`. zerocopy does not derive
// this for a struct with a type parameter and an alignment.
unsafe impl<T: Message + Copy> IntoBytes for Optional<T> {
    fn only_derive_is_allowed_to_implement_this_trait() {}
}

/// Where the value is, bytes.
const VALUE: usize = 8;

impl<T: Message + Copy> Optional<T> {
    /// No value.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Optional;
    ///
    /// let force_n: Optional<f64> = Optional::none();
    /// assert_eq!(force_n, None.into());
    /// ```
    pub fn none() -> Self {
        Self::new_zeroed()
    }

    /// The value, if there is one.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Optional;
    ///
    /// let force_n = Optional::from(Some(1.5));
    /// assert_eq!(force_n.get(), Some(1.5));
    /// assert_eq!(Optional::<f64>::none().get().unwrap_or(0.0), 0.0);
    /// ```
    pub fn get(self) -> Option<T> {
        self.present.get().then_some(self.value)
    }
}

impl<T: Message + Copy> Message for Optional<T> {
    const TYPE_NAME: &'static str = "outlive/Optional";
    // SAFETY: any bytes are a `Bool` and are reserved bytes; the rest is the value.
    const VALIDITY: Validity<Self> = unsafe { Validity::of_fields(T::VALIDITY.is_any()) };

    fn describe() -> TypeDescription {
        TypeDescription::of_struct::<Self>().field("present", 0, Bool::describe()).field(
            "value",
            VALUE,
            T::describe(),
        )
    }
}

impl<T: Message + Copy> From<Option<T>> for Optional<T> {
    fn from(value: Option<T>) -> Self {
        let some = |value| Self { present: true.into(), value, ..Self::none() };
        value.map_or_else(Self::none, some)
    }
}

impl<T: Message + Copy> From<Optional<T>> for Option<T> {
    fn from(value: Optional<T>) -> Self {
        value.get()
    }
}

impl<T: Message + Copy> Default for Optional<T> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T: Message + Copy + PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Message + Copy + fmt::Debug> fmt::Debug for Optional<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_was_made_from_and_has_the_layout_that_is_described() {
        let seven = Optional::from(Some(7u32));
        assert_eq!(
            (seven.get(), seven.as_bytes()),
            (Some(7), &[1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0][..])
        );
        assert_eq!(
            (Optional::<u32>::none().get(), Optional::<u32>::none().as_bytes()),
            (None, &[0; 12][..])
        );
        assert_eq!(std::mem::offset_of!(Optional<f64>, value), VALUE);
        let text = "outlive-type 1 align 8\nstruct:16\n 0 bool present\n 8 f64 value\n";
        assert_eq!(Optional::<f64>::describe().to_text(), text);
        let padded = Optional::from(Some(u128::MAX));
        assert_eq!((padded.as_bytes().len(), align_of_val(&padded)), (24, 8));
        assert_eq!((align_of::<Optional<f32>>(), align_of::<Optional<u8>>()), (4, 1));
        assert!(Optional::<f64>::VALIDITY.is_any() && !Optional::<bool>::VALIDITY.is_any());
    }
}
