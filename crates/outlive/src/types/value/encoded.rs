//! A value in an encoding that others define, as a payload.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;

use super::{DecodeValue, EncodeValue, decode};
use crate::types::encoding::Encoding;
use crate::types::payload::{Payload, sealed};
use crate::types::payload_type::PayloadType;
use crate::{Error, ErrorKind, Result};

/// How values of one type become bytes of an encoding that others define: Protocol Buffers, JSON,
/// CDR and so on. With it their libraries plug in; [`Encoded`] is the payload.
///
/// # Examples
/// ```
/// use std::error::Error;
/// use std::time::Duration;
/// use outlive::{Codec, Encoded, Encoding};
///
/// /// A speed in m/s as JSON. With serde_json: one codec for all types of serde.
/// struct Speed;
///
/// impl Codec for Speed {
///     type Value = f64;
///     const ENCODING: Encoding = Encoding::Json;
///
///     fn type_name() -> String {
///         "robot/Speed".into()
///     }
///
///     fn schema() -> Vec<u8> {
///         br#"{"type": "object", "properties": {"speed": {"type": "number"}}}"#.into()
///     }
///
///     fn encode(value: &f64, to: &mut [u8]) -> Result<usize, Box<dyn Error + Send + Sync>> {
///         let json = format!("{{\"speed\":{value}}}");
///         if let Some(to) = to.get_mut(..json.len()) {
///             to.copy_from_slice(json.as_bytes());
///         }
///         Ok(json.len())
///     }
///
///     fn decode(bytes: &[u8]) -> Result<f64, Box<dyn Error + Send + Sync>> {
///         let json = std::str::from_utf8(bytes)?;
///         let number = json.strip_prefix("{\"speed\":").and_then(|rest| rest.strip_suffix('}'));
///         Ok(number.ok_or("it has no speed")?.parse()?)
///     }
/// }
///
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let publisher = node.topic::<Encoded<Speed>>("/speed")?.publisher()?;
/// let mut subscriber = node.topic::<Encoded<Speed>>("/speed")?.subscriber()?;
/// publisher.publish_value(&1.5)?;
/// let speed = subscriber.receive_value_timeout(Duration::from_secs(1))?.expect("sent just now");
/// assert_eq!(*speed, 1.5);
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait Codec: 'static {
    /// What is encoded.
    type Value;
    /// The encoding, one of those that others define ([`Encoding::is_foreign`]).
    const ENCODING: Encoding;

    /// Name of the type as its own world has it, 1 to 256 bytes: `robot.Plan` of Protocol Buffers,
    /// `geometry_msgs/msg/Twist` of ROS.
    ///
    /// Example: [`Codec`].
    fn type_name() -> String;

    /// The schema, in the form that [`Encoding`] names; empty to say nothing about it. At most
    /// 64 KiB of it are stored: see [`PayloadType::encoded`].
    ///
    /// Example: [`Codec`].
    fn schema() -> Vec<u8>;

    /// Encodes into `to` and returns the length. If that is more than `to` has room for, its
    /// contents do not matter: the next call gets that much room.
    ///
    /// # Errors
    /// Why the value cannot be encoded.
    ///
    /// Example: [`Codec`].
    fn encode(
        value: &Self::Value,
        to: &mut [u8],
    ) -> std::result::Result<usize, Box<dyn std::error::Error + Send + Sync>>;

    /// The value that `bytes` are. They come from another process, and may be anything.
    ///
    /// # Errors
    /// Why they are no such value.
    ///
    /// Example: [`Codec`].
    fn decode(
        bytes: &[u8],
    ) -> std::result::Result<Self::Value, Box<dyn std::error::Error + Send + Sync>>;
}

/// An encoded value of a [`Codec`], as it lies in shared memory; [`Encoded::decode`] reads it.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// # use outlive::{Codec, Encoded, Encoding};
/// # type Fault = Box<dyn std::error::Error + Send + Sync>;
/// # struct Speed;
/// # impl Codec for Speed {
/// #     type Value = f64;
/// #     const ENCODING: Encoding = Encoding::Json;
/// #     fn type_name() -> String {
/// #         "robot/Speed".into()
/// #     }
/// #     fn schema() -> Vec<u8> {
/// #         br#"{"type": "number"}"#.into()
/// #     }
/// #     fn encode(value: &f64, to: &mut [u8]) -> Result<usize, Fault> {
/// #         let text = value.to_string();
/// #         to.get_mut(..text.len()).map(|to| to.copy_from_slice(text.as_bytes()));
/// #         Ok(text.len())
/// #     }
/// #     fn decode(bytes: &[u8]) -> Result<f64, Fault> {
/// #         Ok(std::str::from_utf8(bytes)?.parse()?)
/// #     }
/// # }
/// // `Speed` is a `Codec` of f64 as JSON.
/// let publisher = node.topic::<Encoded<Speed>>("/speed")?.publisher()?;
/// let mut subscriber = node.topic::<Encoded<Speed>>("/speed")?.subscriber()?;
/// publisher.publish(Encoded::new(b"1.5"))?; // JSON from elsewhere, as it is
/// let sample = subscriber.receive()?.expect("sent just now");
/// assert_eq!(sample.decode()?, 1.5);
/// # Ok::<(), outlive::Error>(())
/// ```
#[repr(transparent)]
pub struct Encoded<C> {
    _codec: PhantomData<fn() -> C>,
    bytes: [u8],
}

impl<C> Encoded<C> {
    /// Any bytes, to be decoded.
    ///
    /// # Examples
    /// ```
    /// # use outlive::{Codec, Encoded, Encoding};
    /// # type Fault = Box<dyn std::error::Error + Send + Sync>;
    /// # struct Speed;
    /// # impl Codec for Speed {
    /// #     type Value = f64;
    /// #     const ENCODING: Encoding = Encoding::Json;
    /// #     fn type_name() -> String {
    /// #         "robot/Speed".into()
    /// #     }
    /// #     fn schema() -> Vec<u8> {
    /// #         br#"{"type": "number"}"#.into()
    /// #     }
    /// #     fn encode(value: &f64, to: &mut [u8]) -> Result<usize, Fault> {
    /// #         let text = value.to_string();
    /// #         to.get_mut(..text.len()).map(|to| to.copy_from_slice(text.as_bytes()));
    /// #         Ok(text.len())
    /// #     }
    /// #     fn decode(bytes: &[u8]) -> Result<f64, Fault> {
    /// #         Ok(std::str::from_utf8(bytes)?.parse()?)
    /// #     }
    /// # }
    /// let speed = Encoded::<Speed>::new(b"fast"); // any bytes, until they are decoded
    /// assert_eq!(speed.as_bytes(), b"fast");
    /// assert_eq!(speed.decode().unwrap_err().kind(), outlive::ErrorKind::Corrupt);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn new(bytes: &[u8]) -> &Self {
        // SAFETY: transparent over `[u8]`; any bytes may be tried.
        unsafe { &*(std::ptr::from_ref(bytes) as *const Self) }
    }

    /// The encoded bytes.
    ///
    /// Example: [`Encoded::new`].
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The encoded bytes, to build a value in a loan.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use outlive::{Codec, Encoded, Encoding};
    /// # type Fault = Box<dyn std::error::Error + Send + Sync>;
    /// # struct Speed;
    /// # impl Codec for Speed {
    /// #     type Value = f64;
    /// #     const ENCODING: Encoding = Encoding::Json;
    /// #     fn type_name() -> String {
    /// #         "robot/Speed".into()
    /// #     }
    /// #     fn schema() -> Vec<u8> {
    /// #         br#"{"type": "number"}"#.into()
    /// #     }
    /// #     fn encode(value: &f64, to: &mut [u8]) -> Result<usize, Fault> {
    /// #         let text = value.to_string();
    /// #         to.get_mut(..text.len()).map(|to| to.copy_from_slice(text.as_bytes()));
    /// #         Ok(text.len())
    /// #     }
    /// #     fn decode(bytes: &[u8]) -> Result<f64, Fault> {
    /// #         Ok(std::str::from_utf8(bytes)?.parse()?)
    /// #     }
    /// # }
    /// let publisher = node.topic::<Encoded<Speed>>("/speed")?.publisher()?;
    /// let mut subscriber = node.topic::<Encoded<Speed>>("/speed")?.subscriber()?;
    /// let mut speed = publisher.loan_slice(3)?; // 3 bytes, from another encoder
    /// speed.as_bytes_mut().copy_from_slice(b"1.5");
    /// speed.publish()?;
    /// assert_eq!(*subscriber.receive_value()?.expect("sent just now"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl<C: Codec> Encoded<C> {
    /// Decodes the value.
    ///
    /// # Errors
    /// `Corrupt`: the bytes are not such a value.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use outlive::{Codec, Encoded, Encoding};
    /// # type Fault = Box<dyn std::error::Error + Send + Sync>;
    /// # struct Speed;
    /// # impl Codec for Speed {
    /// #     type Value = f64;
    /// #     const ENCODING: Encoding = Encoding::Json;
    /// #     fn type_name() -> String {
    /// #         "robot/Speed".into()
    /// #     }
    /// #     fn schema() -> Vec<u8> {
    /// #         br#"{"type": "number"}"#.into()
    /// #     }
    /// #     fn encode(value: &f64, to: &mut [u8]) -> Result<usize, Fault> {
    /// #         let text = value.to_string();
    /// #         to.get_mut(..text.len()).map(|to| to.copy_from_slice(text.as_bytes()));
    /// #         Ok(text.len())
    /// #     }
    /// #     fn decode(bytes: &[u8]) -> Result<f64, Fault> {
    /// #         Ok(std::str::from_utf8(bytes)?.parse()?)
    /// #     }
    /// # }
    /// let publisher = node.topic::<Encoded<Speed>>("/speed")?.publisher()?;
    /// let mut subscriber = node.topic::<Encoded<Speed>>("/speed")?.subscriber()?;
    /// publisher.publish_value(&1.5)?;
    /// let sample = subscriber.receive()?.expect("sent just now");
    /// assert_eq!((sample.decode()?, sample.as_bytes()), (1.5, &b"1.5"[..]));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn decode(&self) -> Result<C::Value> {
        decode(self, || format!("a value of {}", C::ENCODING.as_str()))
    }
}

impl<C> fmt::Debug for Encoded<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Encoded({} bytes)", self.bytes.len())
    }
}

impl<C> sealed::Sealed for Encoded<C> {}

// SAFETY: any number of bytes fits and any bytes are one.
unsafe impl<C: Codec> Payload for Encoded<C> {
    type Element = u8;
    const ENCODING: Encoding = {
        assert!(C::ENCODING.is_foreign(), "the encoding of a codec is one that others define");
        C::ENCODING
    };

    fn payload_type() -> PayloadType {
        PayloadType::from_foreign(Self::ENCODING, C::type_name(), C::schema())
    }

    any_bytes!();
}

impl<C: Codec> EncodeValue for Encoded<C> {
    type Value = C::Value;

    fn encode_value(value: &C::Value, to: &mut [u8]) -> std::result::Result<usize, String> {
        C::encode(value, to).map_err(|e| e.to_string())
    }

    fn of_bytes(bytes: &[u8]) -> &Self {
        Self::new(bytes)
    }

    fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl<C: Codec> DecodeValue for Encoded<C> {
    type Value = C::Value;

    fn decode_value(&self) -> std::result::Result<C::Value, String> {
        C::decode(&self.bytes).map_err(|e| e.to_string())
    }

    #[cold]
    fn undecoded(object: &str, length: usize, why: &str) -> Error {
        let (name, encoding) = (C::type_name(), C::ENCODING.as_str());
        let remedy = format!(
            "its {length} bytes are not a valid {name} ({encoding}): {why}: correct the sender"
        );
        Error::new(ErrorKind::Corrupt, "decoding", object, remedy)
    }
}
