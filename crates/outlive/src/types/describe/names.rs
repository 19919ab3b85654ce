//! The values of an enum: numbers and their names.

use std::fmt;

use super::escape::{NAME_BYTES_MAX, escape, unescape};
use super::scalar::Scalar;

/// Most values of one enum.
const NAMES_MAX: usize = 1024;

/// The values that an enum may have, by number, each with its name; never empty.
///
/// # Examples
/// ```
/// use outlive::Message;
/// use outlive::describe::{Kind, Scalar};
///
/// #[outlive::message]
/// #[repr(u8)]
/// enum Mode {
///     Idle,
///     Driving,
/// }
///
/// let mode = Mode::describe();
/// let Kind::Enum(names) = mode.root().kind() else { panic!("it is one") };
/// assert_eq!(names.width(), Scalar::U8);
/// assert_eq!((names.name_of(1), names.name_of(2)), (Some("Driving"), None));
/// assert_eq!(names.number_of("DRIVING"), Some(1)); // in any case
/// assert_eq!(names.iter().next(), Some(("Idle", 0)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    width: Scalar,
    /// By number, no number and no name twice.
    values: Vec<(String, i128)>,
}

impl Names {
    /// In any order.
    pub(super) fn new(
        width: Scalar,
        mut values: Vec<(String, i128)>,
    ) -> Result<Self, &'static str> {
        let Some((least, most)) = range(width) else {
            return Err("its width is an integer of at most 64 bits");
        };
        if values.is_empty() || values.len() > NAMES_MAX {
            return Err("it has 1 to 1024 values");
        }
        if values.iter().any(|(_, number)| *number < least || *number > most) {
            return Err("a value is outside its width");
        }
        if values.iter().any(|(name, _)| name.is_empty() || name.len() > NAME_BYTES_MAX) {
            return Err("a name has 1 to 128 bytes");
        }
        values.sort_by_key(|(_, number)| *number);
        let mut names: Vec<&str> = values.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        if values.is_sorted_by(|(_, a), (_, b)| a < b) && names.is_sorted_by(|a, b| a < b) {
            return Ok(Self { width, values });
        }
        Err("a number or a name is taken")
    }

    /// The integer that holds it.
    pub fn width(&self) -> Scalar {
        self.width
    }

    /// Names and numbers, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i128)> {
        self.values.iter().map(|(name, number)| (&**name, *number))
    }

    /// The name of `number`, if it has one.
    pub fn name_of(&self, number: i128) -> Option<&str> {
        let at = self.values.binary_search_by_key(&number, |(_, number)| *number).ok()?;
        Some(&self.values[at].0)
    }

    /// The number of the value `name`, if there is one. If none is written so, the first one that
    /// differs in case and `_` only.
    pub fn number_of(&self, name: &str) -> Option<i128> {
        let exact = self.iter().find(|(known, _)| *known == name);
        let found = exact.or_else(|| self.iter().find(|(known, _)| is_same(known, name)));
        found.map(|(_, number)| number)
    }

    /// Whether both have the same numbers by the same names: case and `_` are not looked at, so
    /// that each language may write names as it does.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let same = |((a, x), (b, y)): ((&str, i128), (&str, i128))| x == y && is_same(a, b);
        self.width == other.width
            && self.values.len() == other.values.len()
            && self.iter().zip(other.iter()).all(same)
    }

    /// The part of the stored form between `enum:` and the dimensions.
    pub(super) fn parse(text: &str) -> Option<Result<Self, &'static str>> {
        let (width, values) = text.strip_suffix('}')?.split_once('{')?;
        let value = |text: &str| {
            let (name, number) = text.split_once('=')?;
            let plain = number.strip_prefix('-').unwrap_or(number);
            let plain = plain.bytes().all(|b| b.is_ascii_digit()) && !plain.is_empty();
            Some((unescape(name)?, number.parse().ok().filter(|_| plain)?))
        };
        let values = values.split(',').take(NAMES_MAX + 1).map(value).collect::<Option<_>>()?;
        Some(Self::new(Scalar::from_name(width)?, values))
    }
}

/// The least and the greatest number of an integer that an enum may be.
fn range(width: Scalar) -> Option<(i128, i128)> {
    let bits = 8 * width.size() as u32;
    match width {
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Some((0, (1 << bits) - 1)),
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
            Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
        }
        _ => None,
    }
}

fn is_same(a: &str, b: &str) -> bool {
    let letters = |name: &str| -> Vec<char> {
        name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
    };
    letters(a) == letters(b)
}

impl fmt::Display for Names {
    /// As in the stored form: `enum:u8{Idle=0,Driving=1}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "enum:{}{{", self.width.as_str())?;
        for (i, (name, number)) in self.iter().enumerate() {
            f.write_str(if i > 0 { "," } else { "" })?;
            escape(f, name, |c| matches!(c, '[' | ']' | '{' | '}' | ',' | '=' | ':'))?;
            write!(f, "={number}")?;
        }
        f.write_str("}")
    }
}
