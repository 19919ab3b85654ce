//! Messages of `builtin_interfaces`, made by `outlive types import`.

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

impl Time {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "builtin_interfaces/msg/Time";
}

impl outlive::Codec for Time {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         int32 sec\n\
         uint32 nanosec\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Time {}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Duration {
    pub sec: i32,
    pub nanosec: u32,
}

impl Duration {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "builtin_interfaces/msg/Duration";
}

impl outlive::Codec for Duration {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         int32 sec\n\
         uint32 nanosec\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Duration {}
