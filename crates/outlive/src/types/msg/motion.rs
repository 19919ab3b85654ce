//! Where a body is, how it moves, and what its inertial sensor says.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Header, message};

/// Three coordinates; the field that holds it gives unit and frame.
///
/// # Examples
/// ```
/// use outlive::msg::Vector3;
///
/// let goal = Vector3 { x: 3.0, y: -4.0, z: 0.0 }; // 3 forward, 4 to the right
/// assert_eq!(goal.x.hypot(goal.y), 5.0);
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Vector3 {
    /// Forward; right in optical frames.
    pub x: f64,
    /// Left; down in optical frames.
    pub y: f64,
    /// Up; forward in optical frames.
    pub z: f64,
}
message!(Vector3, "outlive/Vector3", x, y, z);

/// A rotation as unit quaternion `w + xi + yj + zk`: x² + y² + z² + w² = 1. The default, all
/// zero, means "unknown".
///
/// # Examples
/// ```
/// use outlive::msg::Quaternion;
///
/// let left = Quaternion::from_yaw(std::f64::consts::FRAC_PI_2); // a quarter turn
/// let Quaternion { x, y, z, w } = left;
/// assert!((x * x + y * y + z * z + w * w - 1.0).abs() < 1e-12);
/// assert_ne!(Quaternion::default(), Quaternion::IDENTITY); // unknown is not "no rotation"
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Quaternion {
    /// Coefficient of i, -1 to 1.
    pub x: f64,
    /// Coefficient of j, -1 to 1.
    pub y: f64,
    /// Coefficient of k, -1 to 1.
    pub z: f64,
    /// Real part, -1 to 1.
    pub w: f64,
}
message!(Quaternion, "outlive/Quaternion", x, y, z, w);

impl Quaternion {
    /// No rotation.
    pub const IDENTITY: Self = Self { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };

    /// Rotation by `yaw_rad` about z, counter-clockwise seen from above.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Quaternion;
    ///
    /// let left = Quaternion::from_yaw(std::f64::consts::FRAC_PI_2); // a quarter turn
    /// assert!((left.z - left.w).abs() < 1e-12 && left.x == 0.0 && left.y == 0.0);
    /// assert_eq!(Quaternion::from_yaw(0.0), Quaternion::IDENTITY);
    /// ```
    pub fn from_yaw(yaw_rad: f64) -> Self {
        let (sin, cos) = (yaw_rad / 2.0).sin_cos();
        Self { x: 0.0, y: 0.0, z: sin, w: cos }
    }

    /// Angle about z, rad, -π to π.
    ///
    /// # Examples
    /// ```
    /// use outlive::msg::Quaternion;
    ///
    /// assert!((Quaternion::from_yaw(0.5).yaw() - 0.5).abs() < 1e-12);
    /// assert!((Quaternion::from_yaw(6.0).yaw() - (6.0 - std::f64::consts::TAU)).abs() < 1e-12);
    /// assert_eq!(Quaternion::default().yaw(), 0.0); // unknown looks like no rotation
    /// ```
    pub fn yaw(&self) -> f64 {
        let Self { x, y, z, w } = *self;
        (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z))
    }
}

/// Position and orientation of a body in the frame `header.frame_id`; 96 bytes.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::msg::{Header, Pose, Quaternion, Vector3};
///
/// let publisher = node.topic::<Pose>("/base/pose")?.publisher()?;
/// let mut subscriber = node.topic::<Pose>("/base/pose")?.subscriber()?;
/// publisher.publish(&Pose {
///     header: Header::now("map"),
///     position: Vector3 { x: 1.0, y: 2.0, z: 0.0 },
///     orientation: Quaternion::from_yaw(0.5),
/// })?;
/// let pose = subscriber.receive()?.expect("sent just now");
/// assert_eq!((pose.header.frame_id.as_str(), pose.position.y), ("map", 2.0));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Pose {
    /// When, and in which frame.
    pub header: Header,
    /// Position of the body's origin, m.
    pub position: Vector3,
    /// Rotation from the body's axes to those of the frame.
    pub orientation: Quaternion,
}
message!(Pose, "outlive/Pose", header, position, orientation);

/// Velocity of a body, in its own axes: `header.frame_id` is the body's frame; 88 bytes.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::msg::{Header, Twist, Vector3};
///
/// let publisher = node.topic::<Twist>("/base/speed")?.publisher()?;
/// let mut subscriber = node.topic::<Twist>("/base/speed")?.subscriber()?;
/// publisher.publish(&Twist {
///     header: Header::now("base_link"),
///     linear: Vector3 { x: 0.5, ..Vector3::default() },  // forward
///     angular: Vector3 { z: 0.1, ..Vector3::default() }, // and slowly to the left
/// })?;
/// assert_eq!(subscriber.receive()?.expect("sent just now").linear.x, 0.5);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Twist {
    /// When, and of which body.
    pub header: Header,
    /// Velocity, m/s.
    pub linear: Vector3,
    /// Rate of rotation about each axis, rad/s.
    pub angular: Vector3,
}
message!(Twist, "outlive/Twist", header, linear, angular);

/// Reading of an inertial measurement unit, in the sensor's frame `header.frame_id`; 336 bytes.
///
/// Covariances are 3 x 3, row by row, about x, y, z. All zero: unknown. First element -1: the
/// sensor has no such reading.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::msg::{Header, Imu, Vector3};
///
/// let publisher = node.topic::<Imu>("/imu")?.publisher()?;
/// let mut subscriber = node.topic::<Imu>("/imu")?.subscriber()?;
/// let mut imu = Imu { header: Header::now("imu"), ..Imu::default() };
/// imu.linear_acceleration = Vector3 { x: 0.0, y: 0.0, z: 9.81 }; // at rest and level
/// imu.orientation_covariance[0] = -1.0; // this sensor has no orientation
/// publisher.publish(&imu)?;
/// assert_eq!(subscriber.receive()?.expect("sent just now").linear_acceleration.z, 9.81);
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Imu {
    /// When, and in which frame.
    pub header: Header,
    /// Rotation from the sensor's axes to a frame whose z points up.
    pub orientation: Quaternion,
    /// Rate of rotation about each axis, rad/s.
    pub angular_velocity: Vector3,
    /// Acceleration with gravity, m/s²: at rest and level z is about +9.81.
    pub linear_acceleration: Vector3,
    /// Of `orientation`, rad².
    pub orientation_covariance: [f64; 9],
    /// Of `angular_velocity`, (rad/s)².
    pub angular_velocity_covariance: [f64; 9],
    /// Of `linear_acceleration`, (m/s²)².
    pub linear_acceleration_covariance: [f64; 9],
}
message!(
    Imu,
    "outlive/Imu",
    header,
    orientation,
    angular_velocity,
    linear_acceleration,
    orientation_covariance,
    angular_velocity_covariance,
    linear_acceleration_covariance
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaw_there_and_back() {
        for yaw in [-3.0, -0.5, 0.0, 0.5, 3.0] {
            assert!((Quaternion::from_yaw(yaw).yaw() - yaw).abs() < 1e-12);
        }
        assert_eq!(Quaternion::IDENTITY, Quaternion::from_yaw(0.0));
    }
}
