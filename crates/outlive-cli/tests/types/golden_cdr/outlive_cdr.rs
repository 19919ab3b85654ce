//! ROS 2 CDR of the messages beside this file, made by `outlive types import`.
//!
//! The crate `cdr-encoding` reads and writes values. Here is what it does not do: the header of
//! four bytes, bounds, arrays that are too long for serde, text without a zero behind it.

use std::error::Error;
use std::io::{self, Write};

use byteorder::{BigEndian, LittleEndian};
use serde::{Serialize, de::DeserializeOwned};

pub(super) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What is wrong with a field, behind its name.
pub(super) type Checked = std::result::Result<(), String>;

/// Lengths within what the definition allows; of what is sent, text without a zero in it.
pub(super) trait Check {
    fn check(&self, _sent: bool) -> Checked {
        Ok(())
    }
}

/// What fits into `to`, and how much there is in all.
struct Room<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(to) = self.to.get_mut(self.len..self.len + bytes.len()) {
            to.copy_from_slice(bytes);
        }
        self.len += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn encode<T: Serialize + Check>(value: &T, to: &mut [u8]) -> Result<usize> {
    value.check(true)?;
    let mut room = Room { to, len: 0 };
    room.write_all(&[0, 1, 0, 0])?;
    cdr_encoding::to_writer::<T, LittleEndian, _>(&mut room, value)?;
    Ok(room.len)
}

pub(super) fn decode<T: DeserializeOwned + Check>(bytes: &[u8]) -> Result<T> {
    let Some((&[_, form, ..], body)) = bytes.split_first_chunk::<4>() else {
        return Err("it has no header".into());
    };
    let (value, read) = match form {
        0 => cdr_encoding::from_bytes::<T, BigEndian>(body)?,
        1 => cdr_encoding::from_bytes::<T, LittleEndian>(body)?,
        form => return Err(format!("it is of form {form}, which is not plain CDR").into()),
    };
    // Some writers fill up to a multiple of 4.
    if body.len() - read > 3 {
        return Err(format!("{} bytes are left", body.len() - read).into());
    }
    value.check(false)?;
    Ok(value)
}

/// An array of `N` values as a list: for `#[serde(with = "...")]`.
pub(super) struct Array<const N: usize>;

impl<const N: usize> Array<N> {
    pub(super) fn serialize<T: Serialize, S: serde::Serializer>(
        values: &[T],
        to: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        use serde::ser::SerializeTuple;
        let mut tuple = to.serialize_tuple(N)?;
        values.iter().try_for_each(|value| tuple.serialize_element(value))?;
        tuple.end()
    }

    pub(super) fn deserialize<'de, T: serde::Deserialize<'de>, D: serde::Deserializer<'de>>(
        from: D,
    ) -> std::result::Result<Vec<T>, D::Error> {
        struct All<T>(std::marker::PhantomData<T>);

        impl<'de, T: serde::Deserialize<'de>> serde::de::Visitor<'de> for All<T> {
            type Value = Vec<T>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut from: A,
            ) -> std::result::Result<Vec<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = from.next_element()? {
                    all.push(one);
                }
                Ok(all)
            }
        }
        from.deserialize_tuple(N, All(std::marker::PhantomData))
    }

    /// The texts of an array; `#[serde(deserialize_with = "...")]`.
    pub(super) fn texts<'de, A: TryFrom<Vec<String>>, D: serde::Deserializer<'de>>(
        from: D,
    ) -> std::result::Result<A, D::Error> {
        let all = Self::deserialize::<Word, D>(from)?.into_iter().map(|word| word.0).collect();
        A::try_from(all).map_err(|_| serde::de::Error::custom("an array of another length"))
    }
}

/// Text as it is read: `cdr-encoding` would take its last byte for the zero that ends it, whatever
/// that is.
struct Word(String);

impl<'de> serde::Deserialize<'de> for Word {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Bytes;

        impl serde::de::Visitor<'_> for Bytes {
            type Value = Word;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("text")
            }

            fn visit_byte_buf<E: serde::de::Error>(
                self,
                mut bytes: Vec<u8>,
            ) -> std::result::Result<Word, E> {
                if bytes.last() == Some(&0) {
                    bytes.pop();
                }
                String::from_utf8(bytes).map(Word).map_err(E::custom)
            }

            fn visit_bytes<E: serde::de::Error>(
                self,
                bytes: &[u8],
            ) -> std::result::Result<Word, E> {
                self.visit_byte_buf(bytes.into())
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Word, E> {
                Ok(Word(text.into()))
            }
        }
        from.deserialize_byte_buf(Bytes)
    }
}

/// For `#[serde(deserialize_with = "...")]`.
pub(super) fn word<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<String, D::Error> {
    Ok(<Word as serde::Deserialize>::deserialize(from)?.0)
}

/// The texts of a list.
pub(super) fn words<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<String>, D::Error> {
    let all = <Vec<Word> as serde::Deserialize>::deserialize(from)?;
    Ok(all.into_iter().map(|word| word.0).collect())
}

pub(super) fn part(name: &str, of: &impl Check, sent: bool) -> Checked {
    of.check(sent).map_err(|why| format!("{name}.{why}"))
}

pub(super) fn parts(name: &str, of: &[impl Check], sent: bool) -> Checked {
    of.iter().enumerate().try_for_each(|(i, one)| part(&format!("{name}[{i}]"), one, sent))
}

pub(super) fn text(name: &str, text: &str, most: usize, sent: bool) -> Checked {
    if sent && text.contains('\0') {
        return Err(format!("{name}: text with a zero in it"));
    }
    if text.len() > most {
        return Err(format!("{name}: a text of {} bytes instead of at most {most}", text.len()));
    }
    Ok(())
}

pub(super) fn texts(name: &str, of: &[String], most: usize, sent: bool) -> Checked {
    of.iter().enumerate().try_for_each(|(i, one)| text(&format!("{name}[{i}]"), one, most, sent))
}

pub(super) fn at_most(name: &str, len: usize, most: usize) -> Checked {
    match len > most {
        true => Err(format!("{name}: {len} elements instead of at most {most}")),
        false => Ok(()),
    }
}

pub(super) fn exactly(name: &str, len: usize, expected: usize) -> Checked {
    match len != expected {
        true => Err(format!("{name}: {len} elements instead of {expected}")),
        false => Ok(()),
    }
}
