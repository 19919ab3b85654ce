//! Messages of `plan_msgs`, made by `outlive types import`.

/// Where to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Goal {
    #[serde(deserialize_with = "super::outlive_cdr::word")]
    pub name: String,
    pub at: [f64; 3],
    /// 36 values.
    #[serde(with = "super::outlive_cdr::Array::<36>")]
    pub covariance: Vec<f64>,
}

impl Goal {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "plan_msgs/msg/Goal";
}

impl Default for Goal {
    fn default() -> Self {
        Self {
            name: Default::default(),
            at: [0.5, 0.0, 0.0],
            covariance: vec![Default::default(); 36],
        }
    }
}

impl outlive::Codec for Goal {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         string name\n\
         float64[3] at [0.5, 0.0, 0.0]\n\
         float64[36] covariance\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Goal {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::text("name", &self.name, usize::MAX, sent)?;
        cdr::exactly("covariance", self.covariance.len(), 36)?;
        std::result::Result::Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Nothing {
    pub structure_needs_at_least_one_member: u8,
}

impl Nothing {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "plan_msgs/msg/Nothing";
}

impl outlive::Codec for Nothing {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         uint8 structure_needs_at_least_one_member\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Nothing {}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    pub header: super::std_msgs::Header,
    pub goals: Vec<self::Goal>,
    /// At most 4 values.
    /// At most 20 bytes.
    #[serde(deserialize_with = "super::outlive_cdr::words")]
    pub tags: Vec<String>,
    pub urgent: bool,
    pub number: i64,
    #[serde(with = "serde_bytes")]
    pub digest: Vec<u8>,
    pub key: [u8; 4],
    pub times: [super::builtin_interfaces::Duration; 2],
}

impl Plan {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "plan_msgs/msg/Plan";
    pub const FAST: u8 = 2;
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            header: Default::default(),
            goals: Default::default(),
            tags: Default::default(),
            urgent: Default::default(),
            number: -1,
            digest: Default::default(),
            key: Default::default(),
            times: Default::default(),
        }
    }
}

impl outlive::Codec for Plan {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         uint8 FAST=2\n\
         std_msgs/Header header\n\
         Goal[] goals\n\
         string<=20[<=4] tags\n\
         bool urgent\n\
         int64 number -1\n\
         uint8[] digest\n\
         uint8[4] key\n\
         builtin_interfaces/Duration[2] times\n\
         ================================================================================\n\
         MSG: builtin_interfaces/Time\n\
         int32 sec\n\
         uint32 nanosec\n\
         ================================================================================\n\
         MSG: std_msgs/Header\n\
         builtin_interfaces/Time stamp\n\
         string frame_id\n\
         ================================================================================\n\
         MSG: plan_msgs/Goal\n\
         string name\n\
         float64[3] at [0.5, 0.0, 0.0]\n\
         float64[36] covariance\n\
         ================================================================================\n\
         MSG: builtin_interfaces/Duration\n\
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

impl super::outlive_cdr::Check for Plan {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::part("header", &self.header, sent)?;
        cdr::parts("goals", &self.goals, sent)?;
        cdr::at_most("tags", self.tags.len(), 4)?;
        cdr::texts("tags", &self.tags, 20, sent)?;
        cdr::parts("times", &self.times, sent)?;
        std::result::Result::Ok(())
    }
}
