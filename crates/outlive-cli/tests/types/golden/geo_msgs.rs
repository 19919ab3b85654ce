//! Messages of `geo_msgs`, made by `outlive types import`.

/// A point in the frame of the message that has it.
#[outlive::message("geo_msgs/msg/Point")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// m, forward
    pub x: f64,
    /// m, left
    pub y: f64,
    /// m, up
    pub z: f64,
}

impl Default for Point {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// At most 8 corners.
#[outlive::message("geo_msgs/msg/Polygon")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polygon {
    pub corners: [self::Point; 8],
    /// How many of `corners` there are.
    pub corners_count: u32,
    /// Zero.
    pub reserved: [u8; 4],
}

impl Polygon {
    /// Those of `corners` that there are.
    pub fn corners(&self) -> &[self::Point] {
        let count = self.corners_count as usize;
        &self.corners[..count.min(self.corners.len())]
    }
}

impl Default for Polygon {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// A rotation; no rotation by default.
#[outlive::message("geo_msgs/msg/Quaternion")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quaternion {
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub w: f64,
}

impl Default for Quaternion {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.x = 0.0;
        made.y = 0.0;
        made.z = 0.0;
        made.w = 1.0;
        made
    }
}

#[outlive::message("geo_msgs/msg/Pose")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose {
    pub position: self::Point,
    pub orientation: self::Quaternion,
}

impl Default for Pose {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.orientation = self::Quaternion::default();
        made
    }
}

/// Row by row, about x, y, z.
#[outlive::message("geo_msgs/msg/Covariance")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Covariance {
    pub data: [f64; 9],
}

impl Default for Covariance {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("geo_msgs/msg/Flag")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flag {
    pub on: bool,
}

impl Default for Flag {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("geo_msgs/msg/Nothing")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nothing {
    pub structure_needs_at_least_one_member: u8,
}

impl Default for Nothing {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("geo_msgs/msg/PoseWithCovariance")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoseWithCovariance {
    pub pose: self::Pose,
    pub covariance: self::Covariance,
}

impl Default for PoseWithCovariance {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.pose = self::Pose::default();
        made
    }
}
