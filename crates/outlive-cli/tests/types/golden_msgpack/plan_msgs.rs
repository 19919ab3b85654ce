//! Messages of `plan_msgs`, made by `outlive types import`.

/// Where to.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Goal {
    pub name: String,
    pub at: [f64; 3],
    /// 36 values.
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

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Nothing {}

impl Nothing {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "plan_msgs/msg/Nothing";
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Plan {
    pub header: super::std_msgs::Header,
    pub goals: Vec<self::Goal>,
    /// At most 4 values.
    /// At most 20 bytes.
    pub tags: Vec<String>,
    pub urgent: bool,
    pub number: i64,
    #[serde(with = "serde_bytes")]
    pub digest: Vec<u8>,
    #[serde(with = "serde_bytes")]
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
