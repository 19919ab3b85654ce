//! Messages of `std_msgs`, made by `outlive types import`.

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Header {
    pub stamp: super::builtin_interfaces::Time,
    #[serde(deserialize_with = "super::outlive_cdr::word")]
    pub frame_id: String,
}

impl Header {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "std_msgs/msg/Header";
}

impl outlive::Codec for Header {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         builtin_interfaces/Time stamp\n\
         string frame_id\n\
         ================================================================================\n\
         MSG: builtin_interfaces/Time\n\
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

impl super::outlive_cdr::Check for Header {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::part("stamp", &self.stamp, sent)?;
        cdr::text("frame_id", &self.frame_id, usize::MAX, sent)?;
        std::result::Result::Ok(())
    }
}
