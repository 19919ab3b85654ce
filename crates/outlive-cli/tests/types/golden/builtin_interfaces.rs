//! Messages of `builtin_interfaces`, made by `outlive types import`.

#[outlive::message("builtin_interfaces/msg/Time")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

impl Default for Time {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("builtin_interfaces/msg/Duration")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duration {
    pub sec: i32,
    pub nanosec: u32,
}

impl Default for Duration {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}
