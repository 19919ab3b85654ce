//! Messages of `builtin_interfaces`, made by `outlive types import`.

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

impl Time {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "builtin_interfaces/msg/Time";
}

#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Duration {
    pub sec: i32,
    pub nanosec: u32,
}

impl Duration {
    /// The name that all languages have for it.
    pub const TYPE_NAME: &'static str = "builtin_interfaces/msg/Duration";
}
