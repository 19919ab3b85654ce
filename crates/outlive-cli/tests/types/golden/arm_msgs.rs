//! Messages of `arm_msgs`, made by `outlive types import`.

#[outlive::message("arm_msgs/action/Follow_Goal")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowGoal {
    pub path: super::geo_msgs::Polygon,
}

impl Default for FollowGoal {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/action/Follow_Result")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowResult {
    pub distance: f32,
}

impl Default for FollowResult {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/action/Follow_Feedback")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowFeedback {
    pub corner: u32,
}

impl Default for FollowFeedback {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/msg/Stamp")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamp {
    pub stamp: super::builtin_interfaces::Time,
    pub frame_id: outlive::msg::Text<16>,
}

impl Default for Stamp {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// One joint.
///
/// What is not measured is zero.
#[outlive::message("arm_msgs/msg/Joint")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint {
    pub header: self::Stamp,
    /// ROTATING or SLIDING
    pub r#type: u8,
    /// Zero.
    pub reserved: [u8; 3],
    /// rad, or m
    pub position: f32,
    pub brakes: [bool; 3],
    pub name: outlive::msg::Text<12>,
    /// Zero.
    pub reserved2: [u8; 1],
}

impl Joint {
    /// Kinds of joints.
    pub const ROTATING: u8 = 0;
    pub const SLIDING: u8 = 1;
}

impl Default for Joint {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.name = outlive::msg::Text::<12>::cut("elbow");
        made
    }
}

#[outlive::message("arm_msgs/msg/Arm")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arm {
    pub header: self::Stamp,
    pub joints: [self::Joint; 2],
    pub tool: super::geo_msgs::Pose,
    pub reach: super::geo_msgs::Polygon,
}

impl Default for Arm {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.joints = [self::Joint::default(); 2];
        made.tool = super::geo_msgs::Pose::default();
        made
    }
}

#[outlive::message("arm_msgs/msg/Battery")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Battery {
    pub header: self::Stamp,
    pub voltage: f32,
    pub cell_count: u16,
    /// Zero.
    pub reserved: [u8; 2],
    pub cells: [f32; 12],
    /// How many of `cells` there are.
    pub cells_count: u32,
    pub state: u8,
    /// Zero.
    pub reserved2: [u8; 3],
}

impl Battery {
    pub const UNKNOWN: u8 = 0;
    pub const CHARGING: u8 = 1;

    /// Those of `cells` that there are.
    pub fn cells(&self) -> &[f32] {
        let count = self.cells_count as usize;
        &self.cells[..count.min(self.cells.len())]
    }
}

impl Default for Battery {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.voltage = -1.0;
        made
    }
}

/// Of a pack; Rust has a Cell, too.
#[outlive::message("arm_msgs/msg/Cell")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// V
    pub voltage: f32,
}

impl Default for Cell {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/msg/Defaults")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    pub gains: [i16; 3],
    /// Zero.
    pub reserved: [u8; 2],
    pub speeds: [f32; 4],
    /// How many of `speeds` there are.
    pub speeds_count: u32,
    pub names: [outlive::msg::Text<8>; 2],
    /// Zero.
    pub reserved2: [u8; 4],
    pub rotations: [super::geo_msgs::Quaternion; 2],
}

impl Defaults {
    /// Those of `speeds` that there are.
    pub fn speeds(&self) -> &[f32] {
        let count = self.speeds_count as usize;
        &self.speeds[..count.min(self.speeds.len())]
    }
}

impl Default for Defaults {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.gains[..3].copy_from_slice(&[1, -2, 3]);
        made.speeds[..2].copy_from_slice(&[0.5, 1.5]);
        made.speeds_count = 2;
        made.names[0] = outlive::msg::Text::<8>::cut("left");
        made.names[1] = outlive::msg::Text::<8>::cut("right");
        made.rotations = [super::geo_msgs::Quaternion::default(); 2];
        made
    }
}

#[outlive::message("arm_msgs/msg/Grid")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    pub width: u16,
    pub height: u16,
    pub resolution: f32,
    pub origin: super::geo_msgs::Pose,
    pub data: [i8; 100],
    /// How many of `data` there are.
    pub data_count: u32,
}

impl Grid {
    /// Those of `data` that there are.
    pub fn data(&self) -> &[i8] {
        let count = self.data_count as usize;
        &self.data[..count.min(self.data.len())]
    }
}

impl Default for Grid {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.resolution = 0.05;
        made.origin = super::geo_msgs::Pose::default();
        made
    }
}

#[outlive::message("arm_msgs/msg/Imu")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imu {
    pub header: self::Stamp,
    pub orientation: super::geo_msgs::Quaternion,
    /// rad/s
    pub angular_velocity: super::geo_msgs::Point,
    /// m/s^2
    pub linear_acceleration: super::geo_msgs::Point,
    pub covariance: [f32; 9],
    /// Zero.
    pub reserved: [u8; 4],
}

impl Default for Imu {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.orientation = super::geo_msgs::Quaternion::default();
        made
    }
}

/// Every number, with its limits as constants.
#[outlive::message("arm_msgs/msg/Numbers")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    pub b: bool,
    pub o: u8,
    pub c: u8,
    pub i8: i8,
    pub i16: i16,
    /// Zero.
    pub reserved: [u8; 2],
    pub i32: i32,
    /// Zero.
    pub reserved2: [u8; 4],
    pub i64: i64,
    pub u8: u8,
    /// Zero.
    pub reserved3: [u8; 1],
    pub u16: u16,
    pub u32: u32,
    pub u64: u64,
    pub f32: f32,
    /// Zero.
    pub reserved4: [u8; 4],
    pub f64: f64,
}

impl Numbers {
    pub const YES: bool = true;
    pub const LEAST_BYTE: u8 = 0;
    pub const LETTER: u8 = 65;
    pub const LEAST8: i8 = -128;
    pub const LEAST16: i16 = -32768;
    pub const LEAST32: i32 = -2147483648;
    pub const LEAST64: i64 = -9223372036854775808;
    pub const MOST8: u8 = 255;
    pub const MOST16: u16 = 65535;
    pub const MOST32: u32 = 4294967295;
    pub const MOST64: u64 = 18446744073709551615;
    pub const HALF: f32 = 0.5;
    pub const PI: f64 = 3.141592653589793;
    pub const GREETING: &'static str = "say \"hi\" # loud";
    /// not a trigraph ??/
    pub const ODD: &'static str = "??= \\ ä";
}

impl Default for Numbers {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.b = true;
        made.o = 1;
        made.c = 65;
        made.i8 = -8;
        made.i16 = -16;
        made.i32 = -32;
        made.i64 = -64;
        made.u8 = 8;
        made.u16 = 16;
        made.u32 = 32;
        made.u64 = 64;
        made.f32 = 0.25;
        made.f64 = -1.5;
        made
    }
}

/// Has types whose names Rust has for others.
#[outlive::message("arm_msgs/msg/Pack")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pack {
    pub cells: [self::Cell; 2],
    pub age: super::builtin_interfaces::Duration,
}

impl Default for Pack {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// A planar scan of at most 360 rays.
#[outlive::message("arm_msgs/msg/Scan")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scan {
    pub header: self::Stamp,
    /// rad
    pub angle_min: f32,
    /// m
    pub ranges: [f32; 360],
    /// How many of `ranges` there are.
    pub ranges_count: u32,
    pub intensities: [u8; 360],
    /// How many of `intensities` there are.
    pub intensities_count: u32,
}

impl Scan {
    /// Those of `ranges` that there are.
    pub fn ranges(&self) -> &[f32] {
        let count = self.ranges_count as usize;
        &self.ranges[..count.min(self.ranges.len())]
    }

    /// Those of `intensities` that there are.
    pub fn intensities(&self) -> &[u8] {
        let count = self.intensities_count as usize;
        &self.intensities[..count.min(self.intensities.len())]
    }
}

impl Default for Scan {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// The name of its list is also one of a count.
#[outlive::message("arm_msgs/msg/Tally")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tally {
    pub count: [u32; 8],
    /// How many of `count` there are.
    pub count_count: u32,
}

impl Tally {
    /// Those of `count` that there are.
    pub fn count(&self) -> &[u32] {
        let count = self.count_count as usize;
        &self.count[..count.min(self.count.len())]
    }
}

impl Default for Tally {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/msg/Text")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Text {
    pub lines: [outlive::msg::Text<32>; 3],
    /// How many of `lines` there are.
    pub lines_count: u32,
    pub digest: [u8; 16],
}

impl Text {
    /// Those of `lines` that there are.
    pub fn lines(&self) -> &[outlive::msg::Text<32>] {
        let count = self.lines_count as usize;
        &self.lines[..count.min(self.lines.len())]
    }
}

impl Default for Text {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

#[outlive::message("arm_msgs/msg/Wheels")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheels {
    pub speed: [f64; 4],
    pub ticks: i64,
    pub light: super::std_msgs::ColorRGBA,
}

impl Default for Wheels {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}

/// Moves the tool.
#[outlive::message("arm_msgs/srv/Reach_Request")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReachRequest {
    pub goal: super::geo_msgs::Pose,
    pub seconds: f64,
}

impl Default for ReachRequest {
    fn default() -> Self {
        let mut made: Self = outlive::zerocopy::FromZeros::new_zeroed();
        made.goal = super::geo_msgs::Pose::default();
        made.seconds = 2.0;
        made
    }
}

#[outlive::message("arm_msgs/srv/Reach_Response")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReachResponse {
    pub reached: bool,
    pub message: outlive::msg::Text<64>,
}

impl Default for ReachResponse {
    fn default() -> Self {
        outlive::zerocopy::FromZeros::new_zeroed()
    }
}
