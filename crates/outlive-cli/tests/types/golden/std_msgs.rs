//! Messages of `std_msgs`, made by `outlive types import`.

#[outlive::message("std_msgs/msg/ColorRGBA")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColorRGBA {
    pub r: f32,
    pub g: f32,
    pub b: f32,
    pub a: f32,
}

impl Default for ColorRGBA {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}
