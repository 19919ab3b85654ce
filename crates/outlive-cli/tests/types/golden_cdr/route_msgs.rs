//! Messages of `route_msgs`, made by `outlive types import`.

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Leg {
    pub side: u8,
    pub metres: f64,
    #[serde(deserialize_with = "super::outlive_cdr::words")]
    pub signs: Vec<String>,
}

impl Leg {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "route_msgs/msg/Leg";
    pub const LEFT: u8 = 1;
}

impl outlive::Codec for Leg {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         uint8 LEFT=1\n\
         uint8 side\n\
         float64 metres\n\
         string[] signs\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Leg {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::texts("signs", &self.signs, usize::MAX, sent)?;
        std::result::Result::Ok(())
    }
}

/// All that CDR can have.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Route {
    pub header: super::std_msgs::Header,
    pub first: u8,
    pub plan: super::plan_msgs::Plan,
    pub nothing: super::plan_msgs::Nothing,
    /// At most 3 values.
    pub legs: Vec<self::Leg>,
    /// Of the yard.
    /// At most 8 bytes.
    #[serde(deserialize_with = "super::outlive_cdr::word")]
    pub label: String,
    #[serde(deserialize_with = "super::outlive_cdr::Array::<2>::texts")]
    pub ends: [String; 2],
    #[serde(deserialize_with = "super::outlive_cdr::words")]
    pub words: Vec<String>,
    pub flags: Vec<bool>,
    /// At most 4 values.
    pub shorts: Vec<i16>,
    pub numbers: Vec<f64>,
    /// 40 values.
    #[serde(with = "super::outlive_cdr::Array::<40>")]
    pub key: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
    pub r#match: [f32; 3],
    pub r#type: bool,
    pub nothings: Vec<super::plan_msgs::Nothing>,
    pub last: u64,
}

impl Route {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "route_msgs/msg/Route";
    pub const GREETING: &'static str = "say \"hi\" # loud";
    pub const PACE: f32 = 1.5;
}

impl Default for Route {
    fn default() -> Self {
        Self {
            header: Default::default(),
            first: 7,
            plan: Default::default(),
            nothing: Default::default(),
            legs: Default::default(),
            label: "yard".into(),
            ends: ["a".into(), "b".into()],
            words: Default::default(),
            flags: Default::default(),
            shorts: vec![-1, 2],
            numbers: Default::default(),
            key: vec![Default::default(); 40],
            data: Default::default(),
            r#match: Default::default(),
            r#type: true,
            nothings: Default::default(),
            last: 18446744073709551615,
        }
    }
}

impl outlive::Codec for Route {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         string GREETING=\"say \\\"hi\\\" # loud\"\n\
         float32 PACE=1.5\n\
         std_msgs/Header header\n\
         uint8 first 7\n\
         plan_msgs/Plan plan\n\
         plan_msgs/Nothing nothing\n\
         Leg[<=3] legs\n\
         string<=8 label \"yard\"\n\
         string[2] ends [\"a\", \"b\"]\n\
         string[] words\n\
         bool[] flags\n\
         int16[<=4] shorts [-1, 2]\n\
         float64[] numbers\n\
         uint8[40] key\n\
         uint8[] data\n\
         float32[3] match\n\
         bool type true\n\
         plan_msgs/Nothing[] nothings\n\
         uint64 last 18446744073709551615\n\
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
         uint32 nanosec\n\
         ================================================================================\n\
         MSG: plan_msgs/Plan\n\
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
         MSG: plan_msgs/Nothing\n\
         ================================================================================\n\
         MSG: route_msgs/Leg\n\
         uint8 LEFT=1\n\
         uint8 side\n\
         float64 metres\n\
         string[] signs\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for Route {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::part("header", &self.header, sent)?;
        cdr::part("plan", &self.plan, sent)?;
        cdr::part("nothing", &self.nothing, sent)?;
        cdr::at_most("legs", self.legs.len(), 3)?;
        cdr::parts("legs", &self.legs, sent)?;
        cdr::text("label", &self.label, 8, sent)?;
        cdr::texts("ends", &self.ends, usize::MAX, sent)?;
        cdr::texts("words", &self.words, usize::MAX, sent)?;
        cdr::at_most("shorts", self.shorts.len(), 4)?;
        cdr::exactly("key", self.key.len(), 40)?;
        cdr::parts("nothings", &self.nothings, sent)?;
        std::result::Result::Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FindRequest {
    pub to: super::plan_msgs::Goal,
}

impl FindRequest {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "route_msgs/srv/Find_Request";
}

impl outlive::Codec for FindRequest {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         plan_msgs/Goal to\n\
         ================================================================================\n\
         MSG: plan_msgs/Goal\n\
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

impl super::outlive_cdr::Check for FindRequest {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::part("to", &self.to, sent)?;
        std::result::Result::Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FindResponse {
    pub route: self::Route,
}

impl FindResponse {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "route_msgs/srv/Find_Response";
}

impl outlive::Codec for FindResponse {
    type Value = Self;
    const ENCODING: outlive::Encoding = outlive::Encoding::Cdr;

    fn type_name() -> std::string::String {
        Self::TYPE_NAME.into()
    }

    fn schema() -> std::vec::Vec<u8> {
        "\
         route_msgs/Route route\n\
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
         uint32 nanosec\n\
         ================================================================================\n\
         MSG: plan_msgs/Plan\n\
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
         MSG: plan_msgs/Nothing\n\
         ================================================================================\n\
         MSG: route_msgs/Leg\n\
         uint8 LEFT=1\n\
         uint8 side\n\
         float64 metres\n\
         string[] signs\n\
         ================================================================================\n\
         MSG: route_msgs/Route\n\
         string GREETING=\"say \\\"hi\\\" # loud\"\n\
         float32 PACE=1.5\n\
         std_msgs/Header header\n\
         uint8 first 7\n\
         plan_msgs/Plan plan\n\
         plan_msgs/Nothing nothing\n\
         Leg[<=3] legs\n\
         string<=8 label \"yard\"\n\
         string[2] ends [\"a\", \"b\"]\n\
         string[] words\n\
         bool[] flags\n\
         int16[<=4] shorts [-1, 2]\n\
         float64[] numbers\n\
         uint8[40] key\n\
         uint8[] data\n\
         float32[3] match\n\
         bool type true\n\
         plan_msgs/Nothing[] nothings\n\
         uint64 last 18446744073709551615\n"
            .into()
    }

    fn encode(value: &Self, to: &mut [u8]) -> super::outlive_cdr::Result<usize> {
        super::outlive_cdr::encode(value, to)
    }

    fn decode(bytes: &[u8]) -> super::outlive_cdr::Result<Self> {
        super::outlive_cdr::decode(bytes)
    }
}

impl super::outlive_cdr::Check for FindResponse {
    #[rustfmt::skip]
    fn check(&self, sent: bool) -> super::outlive_cdr::Checked {
        use super::outlive_cdr as cdr;
        cdr::part("route", &self.route, sent)?;
        std::result::Result::Ok(())
    }
}
