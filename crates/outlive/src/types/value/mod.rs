//! Payloads that are values in encoded form, and what turns one into the other.
//!
//! [`EncodeValue`] and [`DecodeValue`] are what ports need to send and receive values;
//! `encoded` has them for the codecs of other libraries, `msgpack` for all types of serde.
#![allow(unsafe_code)]

use std::fmt;

use super::encoding::Encoding;
use super::payload::Payload;
use super::payload_type::PAYLOAD_BYTES_MAX;
use crate::{Error, ErrorKind, Result};

/// What a `Payload` is that is transparent over `bytes: [u8]` and has `new`: any bytes are one.
macro_rules! any_bytes {
    () => {
        fn describe_payload() -> crate::types::TypeDescription {
            crate::types::TypeDescription::opaque::<u8>()
        }

        fn bytes(&self) -> &[u8] {
            &self.bytes
        }

        #[inline]
        fn fits(_bytes: usize) -> bool {
            true
        }

        #[inline]
        fn is_valid(_bytes: &[u8]) -> bool {
            true
        }

        #[inline]
        unsafe fn cast<'a>(ptr: *const u8, bytes: usize) -> &'a Self {
            // SAFETY: length and lifetime by the caller.
            Self::new(unsafe { std::slice::from_raw_parts(ptr, bytes) })
        }

        #[inline]
        unsafe fn cast_mut<'a>(ptr: *mut u8, bytes: usize) -> &'a mut Self {
            // SAFETY: as in `cast`, and exclusive by the caller; transparent over `[u8]`.
            unsafe { &mut *(std::ptr::slice_from_raw_parts_mut(ptr, bytes) as *mut Self) }
        }
    };
}

pub(crate) mod encoded;
#[cfg(feature = "msgpack")]
pub(crate) mod msgpack;

/// A payload that ports encode values into: `MsgPack<T>` where serde can serialise `T`,
/// [`Encoded<C>`](encoded::Encoded) with any [`Codec`](encoded::Codec).
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{EncodeValue, MsgPack, Publisher, Result};
///
/// /// For values in any encoding.
/// fn publish_all<P: EncodeValue + ?Sized>(to: &Publisher<P>, values: &[P::Value]) -> Result<()> {
///     values.iter().try_for_each(|value| to.publish_value(value).map(drop))
/// }
///
/// let publisher = node.topic::<MsgPack<String>>("/names")?.publisher()?;
/// publish_all(&publisher, &["arm".into(), "base".into()])?;
/// assert_eq!(publisher.published(), 2);
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait EncodeValue: Payload {
    /// What is encoded.
    type Value;

    /// Encodes into `to`, and returns the length, also if that is more than there is room for.
    #[doc(hidden)]
    fn encode_value(value: &Self::Value, to: &mut [u8]) -> std::result::Result<usize, String>;

    /// Encoded bytes as a payload.
    #[doc(hidden)]
    fn of_bytes(bytes: &[u8]) -> &Self;

    /// Room to encode into.
    #[doc(hidden)]
    fn room(&mut self) -> &mut [u8];
}

/// A payload that ports decode values from: `MsgPack<T>` where serde can deserialise `T`,
/// [`Encoded<C>`](encoded::Encoded) with any [`Codec`](encoded::Codec).
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{DecodeValue, MsgPack, Result, Subscriber};
///
/// /// For values in any encoding.
/// fn receive_all<P: DecodeValue + ?Sized>(from: &mut Subscriber<P>) -> Result<Vec<P::Value>> {
///     let values = std::iter::from_fn(|| from.receive_value().transpose());
///     values.map(|value| value.map(|value| value.into_inner())).collect()
/// }
///
/// let publisher = node.topic::<MsgPack<String>>("/names")?.publisher()?;
/// let mut subscriber = node.topic::<MsgPack<String>>("/names")?.subscriber()?;
/// publisher.publish_value(&"arm".into())?;
/// publisher.publish_value(&"base".into())?;
/// assert_eq!(receive_all(&mut subscriber)?, ["arm", "base"]);
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait DecodeValue: Payload {
    /// What is decoded.
    type Value;

    /// The value, or why the bytes are not one.
    #[doc(hidden)]
    fn decode_value(&self) -> std::result::Result<Self::Value, String>;

    /// What to say when bytes of `object` are not a value.
    #[doc(hidden)]
    fn undecoded(object: &str, length: usize, why: &str) -> Error;
}

/// Attempts at a value whose encoded length changes from one to the next.
pub(crate) const ATTEMPTS_MAX: usize = 3;
/// Room for the first attempt at a value of unknown length, bytes.
const ROOM_BYTES: usize = 512;

/// The value of `payload`, which was found in `object`.
pub(crate) fn decode<P: DecodeValue + ?Sized>(
    payload: &P,
    object: impl FnOnce() -> String,
) -> Result<P::Value> {
    let undecoded = |why: String| P::undecoded(&object(), payload.bytes().len(), &why);
    payload.decode_value().map_err(undecoded)
}

/// The bytes of `value`, for those who copy them anyhow.
pub(crate) fn encode<P: EncodeValue + ?Sized>(
    value: &P::Value,
    doing: &'static str,
    object: &str,
) -> Result<Vec<u8>> {
    let mut bytes = vec![0; ROOM_BYTES];
    for _ in 0..ATTEMPTS_MAX {
        let encoded = P::encode_value(value, &mut bytes);
        let length = encoded.map_err(|why| unencodable::<P>(doing, object, &why))?;
        if length <= bytes.len() {
            bytes.truncate(length);
            return Ok(bytes);
        }
        if length > PAYLOAD_BYTES_MAX {
            return Err(too_long::<P>(doing, object, length));
        }
        bytes = vec![0; length];
    }
    Err(never_the_same::<P>(doing, object))
}

#[cold]
pub(crate) fn too_long<P: Payload + ?Sized>(
    doing: &'static str,
    object: &str,
    length: usize,
) -> Error {
    unencodable::<P>(doing, object, &format_args!("{length} bytes are more than a payload has"))
}

#[cold]
pub(crate) fn never_the_same<P: Payload + ?Sized>(doing: &'static str, object: &str) -> Error {
    unencodable::<P>(doing, object, &"its length changes from one attempt to the next")
}

#[cold]
pub(crate) fn unencodable<P: Payload + ?Sized>(
    doing: &'static str,
    object: &str,
    why: &dyn fmt::Display,
) -> Error {
    let encoding = Encoding::display_name(P::ENCODING);
    let remedy = format!("the value cannot be encoded as {encoding}: {why}: change its type");
    Error::new(ErrorKind::InvalidArgument, doing, object, remedy)
}
