//! Payload types that are known only when the program runs: what other languages open ports with.
//! Begin with `PayloadType`, here; `shared` is how it lies in the `meta` of a topic or a queue.

pub(crate) mod shared;

use super::describe::{Kind, Scalar, TypeDescription};
use super::encoding::Encoding;
use super::schema::{self, SCHEMA_BYTES_MAX};
use crate::{Error, ErrorKind, Result};

/// Largest payload, bytes.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 40;

/// A payload type as a value instead of a Rust type: the name, size, alignment, encoding and
/// description on which all members of a topic, queue or service must agree.
///
/// Ports opened with one ([`topic::Builder::of_type`](crate::topic::Builder::of_type) and its like)
/// carry bytes. [`PayloadType::accepts`] tells whether bytes are a payload of the type: ask before
/// publishing and after receiving. Queues check lengths by themselves.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{PayloadType, TypeDescription};
///
/// let text = "outlive-type 1 align 8\nstruct:16\n 0 f64 x\n 8 f64 y\n";
/// let point = TypeDescription::parse(text.as_bytes())?;
/// let point = PayloadType::fixed("example/Point", &point)?;
/// let publisher = node.topic::<[u8]>("/point")?.of_type(&point).publisher()?;
/// let mut subscriber = node.topic::<[u8]>("/point")?.of_type(&point).subscriber()?;
///
/// publisher.publish(&[0; 16])?;
/// let sample = subscriber.receive()?.expect("sent just now");
/// assert!(point.accepts(&sample));
///
/// let other = node.topic::<f64>("/point")?.subscriber().unwrap_err();
/// assert_eq!(other.kind(), outlive::ErrorKind::TypeMismatch);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PayloadType {
    pub(crate) encoding: Encoding,
    pub(crate) name: String,
    pub(crate) size: usize,
    pub(crate) align: usize,
    pub(crate) schema: Vec<u8>,
    /// Size of the elements behind a header.
    tail: usize,
}

impl PayloadType {
    /// A type with its description.
    pub(crate) fn described(
        encoding: Encoding,
        name: &str,
        (size, align): (usize, usize),
        description: &TypeDescription,
    ) -> Self {
        let tail = description.fields().last().filter(|f| f.ty().is_any_length());
        Self {
            encoding,
            name: name.into(),
            size,
            align,
            tail: tail.map_or(1, |field| field.ty().size()),
            schema: description.to_schema(),
        }
    }

    /// A type as shared bytes tell it, checked by who read them.
    pub(crate) fn from_parts(
        encoding: Encoding,
        name: &str,
        (size, align): (usize, usize),
        schema: Vec<u8>,
    ) -> Self {
        let description = TypeDescription::parse(&schema).ok();
        let fields = description.as_ref().map_or(&[][..], TypeDescription::fields);
        let tail = fields.last().filter(|f| f.ty().is_any_length()).map(|f| f.ty().size());
        let tail = tail.unwrap_or(1).max(1);
        Self { encoding, name: name.into(), size, align, schema, tail }
    }

    /// A type stored earlier, by a recorder for instance, from what [`PayloadType`]'s other methods
    /// return for it and the stored description ([`PayloadType::schema`]).
    ///
    /// # Errors
    /// `InvalidArgument` as [`PayloadType::fixed`], or for a description of more than 64 KiB.
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// let speed = PayloadType::of::<f64>();
    /// // Write these to a file, and later:
    /// let form = (speed.size(), speed.align());
    /// let again = PayloadType::stored(speed.encoding(), speed.name(), form, speed.schema())?;
    /// assert_eq!(again, speed);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn stored(
        encoding: Encoding,
        name: &str,
        (size, align): (usize, usize),
        schema: &[u8],
    ) -> Result<Self> {
        if name.is_empty() || name.len() > 256 {
            return Err(invalid(name, "a type name has 1 to 256 bytes"));
        }
        if size == 0 || size > PAYLOAD_BYTES_MAX || !align.is_power_of_two() || align > 4096 {
            return Err(invalid(name, format!("{size} bytes aligned to {align} cannot be shared")));
        }
        if encoding.is_foreign() {
            return Self::encoded(encoding, name, schema);
        }
        if schema.len() > SCHEMA_BYTES_MAX {
            let why = format!("a schema has at most {SCHEMA_BYTES_MAX} bytes");
            return Err(invalid(name, why));
        }
        Ok(Self::from_parts(encoding, name, (size, align), schema.into()))
    }

    /// The same under another name.
    pub(crate) fn renamed(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Raw bytes, `[u8]`.
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// let bytes = PayloadType::bytes();
    /// assert!(bytes == PayloadType::of::<[u8]>() && bytes.fits(0) && bytes.fits(1_000_000));
    /// ```
    pub fn bytes() -> Self {
        Self::of::<[u8]>()
    }

    /// One value of a described type; an array counts as one value.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that does not have 1 to 256 bytes, a type of 0 bytes or of any
    /// length, an alignment above 4096, a number that is aligned otherwise than numbers are, or the
    /// name of a number (`f64`) with another description.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, TypeDescription, describe::Scalar};
    ///
    /// let number = || TypeDescription::scalar(Scalar::F64);
    /// let point = TypeDescription::struct_of(16, 8); // bytes
    /// let point = point.field("x", 0, number()).field("y", 8, number());
    /// let point = PayloadType::fixed("example/Point", &point)?;
    /// assert!(point.fits(16) && !point.fits(32));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn fixed(name: &str, element: &TypeDescription) -> Result<Self> {
        check_number(name, element)?;
        Self::new(Encoding::Fixed, name, element, element.to_schema())
    }

    /// Any number of values of a described type. For the number `u8` that is raw bytes.
    ///
    /// # Errors
    /// As [`PayloadType::fixed`].
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, TypeDescription, describe::Scalar};
    ///
    /// let number = || TypeDescription::scalar(Scalar::F64);
    /// let point = TypeDescription::struct_of(16, 8); // bytes
    /// let point = point.field("x", 0, number()).field("y", 8, number());
    /// let points = PayloadType::slice("example/Point", &point)?;
    /// assert!(points.fits(0) && points.fits(32) && !points.fits(24));
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn slice(name: &str, element: &TypeDescription) -> Result<Self> {
        if name == "u8" && element.size() == 1 {
            return Ok(Self::bytes());
        }
        check_number(name, element)?;
        Self::new(Encoding::Slice, name, element, element.clone().slice().to_schema())
    }

    /// A header followed by any number of elements, as [`Headed`](crate::Headed).
    ///
    /// # Errors
    /// As [`PayloadType::fixed`]; `InvalidArgument` when elements are aligned to more than the
    /// header.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, PayloadType, TypeDescription, describe::Scalar};
    ///
    /// let header = TypeDescription::scalar(Scalar::F64);
    /// let element = TypeDescription::scalar(Scalar::U16);
    /// let ranges = PayloadType::headed("f64", &header, &element)?;
    /// assert!(ranges.fits(8) && ranges.fits(8 + 2 * 3) && !ranges.fits(9));
    /// assert_eq!(ranges, PayloadType::of::<Headed<f64, u16>>());
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn headed(name: &str, header: &TypeDescription, element: &TypeDescription) -> Result<Self> {
        Self::check(name, element)?;
        check_number(name, header)?;
        check_alignment(name, element)?;
        if element.align() > header.align() {
            return Err(invalid(name, "its elements are aligned to more than its header"));
        }
        let schema = TypeDescription::headed(header.clone(), element.clone()).to_schema();
        let headed = Self::new(Encoding::Headed, name, header, schema)?;
        Ok(Self { tail: element.size(), ..headed })
    }

    /// One MessagePack value.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that does not have 1 to 256 bytes.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::PayloadType;
    ///
    /// let goal = PayloadType::msgpack("robot/Goal")?;
    /// let publisher = node.topic::<[u8]>("/goal")?.of_type(&goal).publisher()?;
    /// let mut subscriber = node.msgpack::<String>("/goal")?.type_name("robot/Goal").subscriber()?;
    /// publisher.publish(b"\xa4dock")?; // from another encoder
    /// assert_eq!(*subscriber.receive_value()?.expect("sent just now"), "dock");
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn msgpack(name: &str) -> Result<Self> {
        let byte = TypeDescription::opaque::<u8>();
        Self::new(Encoding::MessagePack, name, &byte, Vec::new())
    }

    /// One value in a third-party encoding, with their schema ([`Encoding`] says which).
    ///
    /// An empty schema says nothing and agrees with any. Stored and compared is what matters: of a
    /// `FileDescriptorSet` the files that the message needs, of JSON Schema all but white space.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that does not have 1 to 256 bytes, an encoding that is ours, a
    /// schema that cannot be read or lacks the message, and one that takes more than 64 KiB.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use outlive::{Encoding, PayloadType};
    ///
    /// let schema = br#"{"type": "object", "properties": {"x": {"type": "number"}}}"#;
    /// let goal = PayloadType::encoded(Encoding::Json, "robot/Goal", schema)?;
    /// let publisher = node.topic::<[u8]>("/goal")?.of_type(&goal).publisher()?;
    /// let mut subscriber = node.topic::<[u8]>("/goal")?.of_type(&goal).subscriber()?;
    /// publisher.publish(br#"{"x": 1.5}"#)?;
    /// assert_eq!(*subscriber.receive()?.expect("sent just now"), *br#"{"x": 1.5}"#);
    ///
    /// let other = br#"{"type": "object", "properties": {"x": {"type": "string"}}}"#;
    /// let other = PayloadType::encoded(Encoding::Json, "robot/Goal", other)?;
    /// let refused = node.topic::<[u8]>("/goal")?.of_type(&other).subscriber().unwrap_err();
    /// assert_eq!(refused.kind(), outlive::ErrorKind::TypeMismatch);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn encoded(encoding: Encoding, name: &str, schema: &[u8]) -> Result<Self> {
        if name.is_empty() || name.len() > 256 {
            return Err(invalid(name, "a type name has 1 to 256 bytes"));
        }
        if !encoding.is_foreign() {
            let why = format!("{} is not a third-party encoding", encoding.as_str());
            return Err(invalid(name, why));
        }
        let stored = schema::stored((encoding, name, schema));
        let stored = stored.map_err(|why| invalid(name, why))?;
        Ok(Self::from_foreign(encoding, name.into(), stored))
    }

    /// As [`PayloadType::encoded`], and checked when a port is opened.
    pub(crate) fn from_foreign(encoding: Encoding, name: String, schema: Vec<u8>) -> Self {
        let schema = schema::stored((encoding, &name, &schema)).unwrap_or(schema);
        Self { encoding, name, size: 1, align: encoding.foreign_align(), schema, tail: 1 }
    }

    /// Why its schema cannot be shared, if so.
    pub(crate) fn check_schema(&self) -> Result<()> {
        let stored = schema::stored((self.encoding, &self.name, &self.schema));
        stored.map(drop).map_err(|why| invalid(&self.name, why))
    }

    fn new(
        encoding: Encoding,
        name: &str,
        element: &TypeDescription,
        schema: Vec<u8>,
    ) -> Result<Self> {
        Self::check(name, element)?;
        let (size, align) = (element.size(), element.align());
        Ok(Self { encoding, name: name.into(), size, align, schema, tail: 1 })
    }

    fn check(name: &str, element: &TypeDescription) -> Result<()> {
        let (size, align) = (element.size(), element.align());
        if name.is_empty() || name.len() > 256 {
            return Err(invalid(name, "a type name has 1 to 256 bytes"));
        }
        if size == 0 || size > PAYLOAD_BYTES_MAX || align > 4096 || size % align != 0 {
            let why = format!(
                "{size} bytes aligned to {align} cannot be shared: use 1 byte to 1 TiB, a multiple \
                 of the alignment, which is at most 4096"
            );
            return Err(invalid(name, why));
        }
        if element.root().is_any_length() || element.fields().iter().any(|f| f.ty().is_any_length())
        {
            return Err(invalid(name, "an element has a fixed size: give the type of one"));
        }
        Ok(())
    }

    /// How payloads are encoded.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Encoding, PayloadType};
    ///
    /// assert_eq!(PayloadType::of::<f64>().encoding(), Encoding::Fixed);
    /// assert_eq!(PayloadType::msgpack("robot/Goal")?.encoding(), Encoding::MessagePack);
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Name of the type, the same in all languages.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, msg::Pose};
    ///
    /// assert_eq!(PayloadType::of::<Pose>().name(), "outlive/Pose");
    /// assert_eq!(PayloadType::of::<[Pose]>().name(), "outlive/Pose"); // that of an element
    /// ```
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size of the value, of an element or of the header, bytes.
    ///
    /// # Examples
    /// ```
    /// use outlive::{Headed, PayloadType};
    ///
    /// assert_eq!(PayloadType::of::<[f64; 6]>().size(), 48);
    /// assert_eq!(PayloadType::of::<[f64]>().size(), 8); // of an element
    /// assert_eq!(PayloadType::of::<Headed<u32, u8>>().size(), 4); // of the header
    /// ```
    pub fn size(&self) -> usize {
        self.size
    }

    /// Its alignment, bytes.
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// assert_eq!(PayloadType::of::<[f64; 6]>().align(), 8);
    /// assert_eq!(PayloadType::bytes().align(), 1);
    /// ```
    pub fn align(&self) -> usize {
        self.align
    }

    /// What payloads look like, if that is known.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, msg::Pose};
    ///
    /// let pose = PayloadType::of::<Pose>().description().expect("described by its type");
    /// assert_eq!(pose.fields()[1].name(), "position");
    /// assert!(PayloadType::bytes().description().is_none()); // nobody knows what they mean
    /// ```
    pub fn description(&self) -> Option<TypeDescription> {
        TypeDescription::parse(&self.schema).ok()
    }

    /// The description, or the schema of a third-party encoding, as stored: empty if there is none,
    /// or what the topic's creator gave instead
    /// ([`topic::Builder::schema`](crate::topic::Builder::schema)).
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// let speed = PayloadType::of::<f64>();
    /// assert_eq!(speed.schema(), b"outlive-type 1 align 8\nf64\n");
    /// assert!(PayloadType::bytes().schema().is_empty());
    /// ```
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// What differs between this type, which a topic has, and `ours`, one line each, as a program
    /// with `ours` would be refused; empty if they agree.
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// let (has, ours) = (PayloadType::of::<f64>(), PayloadType::of::<f32>());
    /// let lines = has.differences(&ours);
    /// assert_eq!(lines[0], "type is f64, this program has f32");
    /// assert!(has.differences(&has).is_empty());
    /// ```
    pub fn differences(&self, ours: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut differs = |field: &str, has: String, want: String| {
            if has != want {
                lines.push(format!("{field} is {has}, this program has {want}"));
            }
        };
        differs("type", self.name.clone(), ours.name.clone());
        differs("size", self.size.to_string(), ours.size.to_string());
        differs("alignment", self.align.to_string(), ours.align.to_string());
        differs("encoding", self.encoding.as_str().into(), ours.encoding.as_str().into());
        lines.extend(schema::differences(
            (self.encoding, &self.name, &self.schema),
            (ours.encoding, &ours.name, &ours.schema),
        ));
        lines
    }

    /// Whether a payload may have `bytes` bytes.
    ///
    /// # Examples
    /// ```
    /// use outlive::PayloadType;
    ///
    /// let scan = PayloadType::of::<[f32]>();
    /// assert!(scan.fits(0) && scan.fits(12));
    /// assert!(!scan.fits(10)); // two and a half elements
    /// ```
    #[inline]
    pub fn fits(&self, bytes: usize) -> bool {
        match self.encoding {
            Encoding::Fixed => bytes == self.size,
            Encoding::Slice => bytes % self.size == 0,
            Encoding::Headed => bytes.checked_sub(self.size).is_some_and(|t| t % self.tail == 0),
            // Bytes of any number.
            _ => true,
        }
    }

    /// Whether `payload` is a payload of this type, by length and address.
    ///
    /// # Examples
    /// ```
    /// use outlive::{PayloadType, zerocopy::IntoBytes};
    ///
    /// let numbers = [1.5f64, 2.5];
    /// let (bytes, f64s) = (numbers.as_bytes(), PayloadType::of::<[f64]>());
    /// assert!(f64s.accepts(bytes) && f64s.accepts(&bytes[8..]));
    /// assert!(!f64s.accepts(&bytes[4..12])); // long enough, but not aligned
    /// ```
    #[inline]
    pub fn accepts(&self, payload: &[u8]) -> bool {
        // A power of two: a mask, where a division would cost as much as the rest of a receive.
        self.fits(payload.len()) && payload.as_ptr().addr() & (self.align - 1) == 0
    }
}

/// Refuses the name of a number for what is none of these, or an array of them.
fn check_number(name: &str, of: &TypeDescription) -> Result<()> {
    check_alignment(name, of)?;
    let Some(number) = Scalar::from_name(name) else { return Ok(()) };
    let root = of.root();
    let is_it = match root.kind() {
        Kind::Scalar(scalar) => *scalar == number,
        Kind::Enum(names) => names.width() == number,
        Kind::Opaque { .. } => of.size() % number.size() == 0 && of.align() == number.size(),
        Kind::Struct { .. } => false,
    };
    if is_it {
        return Ok(());
    }
    let why = format!(
        "this is the name of a number of {} bytes, and {root} of {} bytes aligned to {} is \
         described: describe {name} or give the type a name of its own",
        number.size(),
        of.size(),
        of.align(),
    );
    Err(invalid(name, why))
}

/// Numbers are aligned to their size, in all languages.
fn check_alignment(name: &str, of: &TypeDescription) -> Result<()> {
    let size = match of.root().kind() {
        Kind::Scalar(scalar) => scalar.size(),
        Kind::Enum(names) => names.width().size(),
        _ => return Ok(()),
    };
    if of.align() == size {
        return Ok(());
    }
    let (root, align) = (of.root(), of.align());
    let why = format!(
        "{root} is not aligned to {align} bytes: describe it with align {size}, or as the field of \
         a struct with align {align}"
    );
    Err(invalid(name, why))
}

#[cold]
fn invalid(name: &str, why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidArgument, "describing type", name, why)
}

#[cfg(all(test, not(loom)))]
mod tests;
