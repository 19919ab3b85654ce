//! The MessagePack of a serde type as a payload, and the decoding of its bytes.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::{fmt, io};

use serde::de::{Deserialize, DeserializeOwned};
use serde::ser::Serialize;

use super::{DecodeValue, EncodeValue};
use crate::types::encoding::Encoding;
use crate::types::payload::{Payload, sealed};
use crate::{Error, ErrorKind, Result};

/// Deepest nesting that is decoded: garbage must not exhaust the stack.
const DEPTH_MAX: usize = 128;

/// The MessagePack of a `T`, as it lies in shared memory; [`MsgPack::decode`] reads it.
///
/// # Examples
/// ```
/// let bytes = outlive::msgpack::encode(&("dock", 1.5))?;
/// let goal = outlive::MsgPack::<(String, f64)>::new(&bytes);
/// assert_eq!(goal.decode()?, ("dock".to_owned(), 1.5));
/// # Ok::<(), outlive::Error>(())
/// ```
#[repr(transparent)]
pub struct MsgPack<T> {
    _type: PhantomData<fn() -> T>,
    bytes: [u8],
}

impl<T> MsgPack<T> {
    /// Any bytes, to be decoded as a `T`.
    ///
    /// # Examples
    /// ```
    /// use outlive::{ErrorKind, MsgPack};
    ///
    /// let number = MsgPack::<u8>::new(&[7]); // small numbers are one byte
    /// assert_eq!(number.decode().ok(), Some(7));
    /// let garbage = MsgPack::<u8>::new(&[0xc1]); // any bytes, until they are decoded
    /// assert_eq!(garbage.decode().unwrap_err().kind(), ErrorKind::Corrupt);
    /// ```
    pub fn new(bytes: &[u8]) -> &Self {
        // SAFETY: transparent over `[u8]`; any bytes may be tried.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }

    /// The encoded bytes.
    ///
    /// # Examples
    /// ```
    /// let bytes = outlive::msgpack::encode(&"dock")?;
    /// let goal = outlive::MsgPack::<String>::new(&bytes);
    /// assert_eq!(goal.as_bytes(), b"\xa4dock"); // a text of four bytes
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// `Corrupt`: the bytes are not MessagePack of a `T`.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// let publisher = node.msgpack::<Vec<u8>>("/levels")?.publisher()?;
    /// let mut subscriber = node.msgpack::<Vec<u8>>("/levels")?.subscriber()?;
    /// publisher.publish_value(&vec![1, 2, 3])?;
    /// let levels = subscriber.receive()?.expect("sent just now");
    /// assert_eq!(levels.decode()?, [1, 2, 3]);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn decode<'a>(&'a self) -> Result<T>
    where
        T: Deserialize<'a>,
    {
        self.decode_as()
    }

    /// Decodes as another type, such as one that borrows `&str` and `&[u8]` from these bytes or
    /// has fewer fields.
    ///
    /// # Errors
    /// `Corrupt`: the bytes are not MessagePack of a `U`.
    ///
    /// # Examples
    /// ```
    /// use outlive::MsgPack;
    ///
    /// let bytes = outlive::msgpack::encode(&("dock", 1.5))?;
    /// let goal = MsgPack::<(String, f64)>::new(&bytes);
    /// let (name, speed): (&str, f64) = goal.decode_as()?; // the text is not copied
    /// assert_eq!((name, speed), ("dock", 1.5));
    /// assert!(goal.decode_as::<u64>().is_err());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn decode_as<'a, U: Deserialize<'a>>(&'a self) -> Result<U> {
        let decoded = decode(&self.bytes);
        decoded.map_err(|why| undecoded::<U>("a MessagePack value", self.bytes.len(), &why))
    }
}

impl<T> fmt::Debug for MsgPack<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MsgPack({} bytes)", self.bytes.len())
    }
}

impl<T> sealed::Sealed for MsgPack<T> {}

// SAFETY: any number of bytes fits and any bytes are one.
unsafe impl<T: 'static> Payload for MsgPack<T> {
    type Element = u8;
    const ENCODING: Encoding = Encoding::MessagePack;

    fn payload_type_name() -> &'static str {
        std::any::type_name::<T>()
    }

    any_bytes!();
}

impl<T: Serialize + 'static> EncodeValue for MsgPack<T> {
    type Value = T;

    fn encode_value(value: &T, to: &mut [u8]) -> std::result::Result<usize, String> {
        let mut room = Room { to, length: 0 };
        let mut serializer = rmp_serde::Serializer::new(&mut room).with_struct_map();
        value.serialize(&mut serializer).map_err(|e| e.to_string())?;
        Ok(room.length)
    }

    fn of_bytes(bytes: &[u8]) -> &Self {
        Self::new(bytes)
    }

    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

/// A slot to encode into. What does not fit is counted, so that the next one fits.
struct Room<'a> {
    to: &'a mut [u8],
    length: usize,
}

impl io::Write for Room<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let end = self.length + bytes.len();
        if let Some(to) = self.to.get_mut(self.length..end) {
            to.copy_from_slice(bytes);
        }
        self.length = end;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: DeserializeOwned + 'static> DecodeValue for MsgPack<T> {
    type Value = T;

    fn decode_value(&self) -> std::result::Result<T, String> {
        decode(&self.bytes)
    }

    fn undecoded(object: &str, length: usize, why: &str) -> Error {
        undecoded::<T>(object, length, why)
    }
}

/// The MessagePack of `value`, structs as maps with the names of their fields.
///
/// # Errors
/// `InvalidArgument` when serde cannot encode it.
///
/// # Examples
/// ```
/// let bytes = outlive::msgpack::encode(&["arm", "base"])?;
/// let names = outlive::MsgPack::<Vec<String>>::new(&bytes);
/// assert_eq!(names.decode()?, ["arm", "base"]);
/// # Ok::<(), outlive::Error>(())
/// ```
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    rmp_serde::to_vec_named(value).map_err(|e| {
        let remedy = format!("it cannot be encoded as MessagePack: {e}: change its type");
        Error::new(ErrorKind::InvalidArgument, "encoding", std::any::type_name::<T>(), remedy)
    })
}

/// The one value that `bytes` consist of, or why there is none.
pub(crate) fn decode<'a, U: Deserialize<'a>>(bytes: &'a [u8]) -> std::result::Result<U, String> {
    let mut deserializer = rmp_serde::Deserializer::from_read_ref(bytes);
    deserializer.set_max_depth(DEPTH_MAX);
    let value = U::deserialize(&mut deserializer).map_err(|e| e.to_string())?;
    match <()>::deserialize(&mut deserializer) {
        // Not even a marker is left.
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err("bytes follow the value".into()),
    }
}

#[cold]
pub(crate) fn undecoded<U>(object: &str, length: usize, why: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "decoding",
        object,
        format!(
            "its {length} bytes are not a valid {}: {why}: use the same type in publisher and \
             subscriber, and give changed types another type_name()",
            std::any::type_name::<U>()
        ),
    )
}
