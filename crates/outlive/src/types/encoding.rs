//! How a payload lies in memory, and whose form that is.

/// How payload bytes are encoded; stored in the topic's `meta`.
///
/// # Examples
/// ```
/// use outlive::{Encoding, MsgPack, PayloadType, msg::Image};
///
/// assert_eq!(PayloadType::of::<f64>().encoding(), Encoding::Fixed);
/// assert_eq!(PayloadType::of::<[f64]>().encoding(), Encoding::Slice);
/// assert_eq!(PayloadType::of::<[u8]>().encoding(), Encoding::Bytes);
/// assert_eq!(PayloadType::of::<Image>().encoding(), Encoding::Headed);
/// assert_eq!(PayloadType::of::<MsgPack<String>>().encoding(), Encoding::MessagePack);
/// ```
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
    /// One message of ROS 2 as CDR; the schema is its definition.
    Cdr = 6,
    /// One message of Protocol Buffers; the schema is a `FileDescriptorSet`.
    Protobuf = 7,
    /// One FlatBuffer; the schema is the binary one, `.bfbs`.
    FlatBuffer = 8,
    /// One JSON value; the schema is JSON Schema.
    Json = 9,
    /// One stream of Arrow's IPC format; the schema is its first message.
    Arrow = 10,
}

impl Encoding {
    const ALL: [Self; 10] = {
        use Encoding::*;
        [Fixed, Slice, Bytes, MessagePack, Headed, Cdr, Protobuf, FlatBuffer, Json, Arrow]
    };

    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|e| *e as u32 == raw)
    }

    /// The encoding of that name, as [`Encoding::as_str`] gives it; `None` if there is none.
    ///
    /// # Examples
    /// ```
    /// use outlive::Encoding;
    ///
    /// assert_eq!(Encoding::from_name("json"), Some(Encoding::Json));
    /// assert_eq!(Encoding::from_name("yaml"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.as_str() == name)
    }

    /// `fixed`, `slice`, `bytes`, `msgpack`, `headed`, `cdr`, `protobuf`, `flatbuffer`, `json` or
    /// `arrow`.
    ///
    /// # Examples
    /// ```
    /// use outlive::Encoding;
    ///
    /// assert_eq!(Encoding::MessagePack.as_str(), "msgpack");
    /// assert_eq!(Encoding::from_name("msgpack"), Some(Encoding::MessagePack));
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Slice => "slice",
            Self::Bytes => "bytes",
            Self::MessagePack => "msgpack",
            Self::Headed => "headed",
            Self::Cdr => "cdr",
            Self::Protobuf => "protobuf",
            Self::FlatBuffer => "flatbuffer",
            Self::Json => "json",
            Self::Arrow => "arrow",
        }
    }

    /// For people.
    pub(crate) fn display_name(self) -> &'static str {
        if self == Self::MessagePack { "MessagePack" } else { self.as_str() }
    }

    /// Whether others define the encoding: payload and schema are theirs, and travel as they are.
    ///
    /// # Examples
    /// ```
    /// use outlive::Encoding;
    ///
    /// assert!(Encoding::Protobuf.is_foreign() && Encoding::Json.is_foreign());
    /// assert!(!Encoding::MessagePack.is_foreign()); // encoded by this crate, and has no schema
    /// ```
    pub const fn is_foreign(self) -> bool {
        use Encoding::*;
        matches!(self, Cdr | Protobuf | FlatBuffer | Json | Arrow)
    }

    /// Alignment of payloads of a foreign encoding, so that they can be read in place, bytes.
    pub(crate) const fn foreign_align(self) -> usize {
        match self {
            Self::Arrow => 64,
            Self::FlatBuffer | Self::Cdr => 8,
            _ => 1,
        }
    }
}
