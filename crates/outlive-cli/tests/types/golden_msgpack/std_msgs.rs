//! Messages of `std_msgs`, made by `outlive types import`.

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Header {
    pub stamp: super::builtin_interfaces::Time,
    pub frame_id: String,
}

impl Header {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "std_msgs/msg/Header";
}
