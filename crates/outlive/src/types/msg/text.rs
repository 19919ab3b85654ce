//! Short text and truth values of fixed size.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::types::describe::Scalar;
use crate::types::{Message, TypeDescription, Validity};

/// Text of at most `N` bytes of UTF-8, filled up with zeros.
///
/// # Examples
/// ```
/// use outlive::msg::Text;
///
/// let frame = Text::<8>::new("base").expect("fits");
/// assert_eq!(frame.as_str(), "base");
/// assert!(Text::<8>::new("base_link").is_none());
/// assert_eq!(Text::<8>::cut("base_link").as_str(), "base_lin");
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// `text`, or `None` if it is longer than `N` bytes or has a zero in it.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Text;
    ///
    /// assert!(Text::<4>::new("base").is_some());
    /// assert!(Text::<4>::new("bäse").is_none()); // 5 bytes
    /// ```
    pub fn new(text: &str) -> Option<Self> {
        (text.len() <= N && !text.contains('\0')).then(|| Self::cut(text))
    }

    /// The whole characters of `text` that fit, up to its first zero.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Text;
    ///
    /// assert_eq!(Text::<4>::cut("base_link").as_str(), "base");
    /// assert_eq!(Text::<4>::cut("arä").as_str(), "arä");
    /// assert_eq!(Text::<3>::cut("arä").as_str(), "ar"); // no half characters
    /// ```
    pub fn cut(text: &str) -> Self {
        let mut end = text.find('\0').unwrap_or(text.len()).min(N);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut bytes = [0; N];
        bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        Self(bytes)
    }

    /// The text; only its beginning if another program wrote invalid UTF-8.
    ///
    /// # Examples
    /// ```
    /// use outlive::{msg::Text, zerocopy::FromBytes};
    ///
    /// assert_eq!(Text::<8>::cut("base").as_str(), "base"); // without the zeros behind it
    /// let foreign = Text::<8>::read_from_bytes(b"base\xff\0\0\0").expect("8 bytes");
    /// assert_eq!(foreign.as_str(), "base"); // up to what is not UTF-8
    /// ```
    pub fn as_str(&self) -> &str {
        let text = self.0.split(|b| *b == 0).next().unwrap_or_default();
        match std::str::from_utf8(text) {
            Ok(text) => text,
            Err(e) => std::str::from_utf8(&text[..e.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl<const N: usize> Message for Text<N> {
    const TYPE_NAME: &'static str = "char";
    const VALIDITY: Validity<Self> = Validity::any();

    fn describe() -> TypeDescription {
        TypeDescription::scalar(Scalar::Char).array(N)
    }
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Display for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// A truth value in one byte for which every value is valid, so nobody need check it: for data of
/// locks and real-time channels, which cannot contain a `bool`. Other programs see the same type as
/// `bool`.
///
/// # Examples
/// ```
/// use outlive::msg::Bool;
///
/// #[outlive::message("example/Brake")]
/// struct Brake {
///     pressure_pa: f64,
///     closed: Bool,
///     reserved: [u8; 7],
/// }
///
/// let brake = Brake { pressure_pa: 2e5, closed: true.into(), reserved: [0; 7] };
/// assert!(brake.closed.get());
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned, Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Whether it is true: any value but 0.
    ///
    /// # Examples
    /// ```
    /// use outlive::{msg::Bool, zerocopy::FromBytes};
    ///
    /// assert!(Bool::from(true).get() && !Bool::default().get());
    /// let foreign = Bool::read_from_bytes(&[7]).expect("1 byte");
    /// assert!(foreign.get() && foreign == true.into()); // whatever another program wrote
    /// ```
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl Message for Bool {
    const TYPE_NAME: &'static str = "bool";
    const VALIDITY: Validity<Self> = Validity::any();

    fn describe() -> TypeDescription {
        TypeDescription::scalar(Scalar::Bool)
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_whole_characters_and_survives_any_bytes() {
        assert_eq!(Text::<4>::cut("aäö").as_str(), "aä");
        assert_eq!(Text::<2>::cut("a\0b").as_str(), "a");
        assert_eq!(Text::<2>::new("a\0"), None);
        assert_eq!(Text::<0>::cut("a").as_str(), "");
        assert_eq!(Text([b'a', 0xff, b'b']).as_str(), "a");
        assert_eq!(Text([0xc3, 0, 0]).as_str(), "");
        assert_eq!(format!("{:>3}|{:?}", Text::<1>::cut("x"), Text::<1>::cut("x")), "  x|\"x\"");
    }

    #[test]
    fn every_byte_but_zero_is_true() {
        assert!(Bool(7).get() && Bool(7) == Bool(1) && Bool::from(true).get());
        assert!(!Bool::default().get() && !bool::from(Bool::from(false)));
    }
}
