//! Message types that most robots need, so that programs of different authors agree.
//!
//! Units are SI: metres, seconds, radians, newtons; time stamps are integers in ns. Axes follow
//! REP-103: bodies look along x, y is left, z is up; optical frames (name ends in `_optical`) look
//! along z, x is right, y is down. Rotations are right-handed. All types are little-endian and have
//! no padding; unused bytes are zero.
//!
//! | type | payload | where |
//! |---|---|---|
//! | [`Pose`], [`Twist`] | 96, 88 bytes: travel inside the ring entry | `topic::<Pose>` |
//! | [`Imu`] | 336 bytes | `topic::<Imu>` |
//! | [`JointState`] | header and a [`Joint`] each | `topic::<JointState>` |
//! | [`Image`] | header and pixels | `topic::<Image>` |
//! | [`PointCloud`] | header and points | `topic::<PointCloud>` |
//!
//! # Examples
//! ```
//! use outlive::msg::{Header, Pose, Quaternion, Vector3};
//!
//! # let dir = outlive::doc_dir();
//! # let node = outlive::Node::builder().root(dir.path()).open()?;
//! let publisher = node.topic::<Pose>("/base/pose")?.publisher()?;
//! publisher.publish(&Pose {
//!     header: Header::now("map"),
//!     position: Vector3 { x: 1.0, y: 2.0, z: 0.0 },
//!     orientation: Quaternion::IDENTITY,
//! })?;
//! # Ok::<(), outlive::Error>(())
//! ```

mod image;
mod joints;
mod motion;
mod optional;
mod point_cloud;
mod text;

pub use image::{Image, ImageHeader, PixelFormat};
pub use joints::{Joint, JointState, JointStateHeader};
pub use motion::{Imu, Pose, Quaternion, Twist, Vector3};
pub use optional::Optional;
pub use point_cloud::{PointCloud, PointCloudHeader, PointXyzi};
pub use text::{Bool, Text};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::os::time::clock::now_ns;
use crate::types::{Message, TypeDescription};

/// What `#[outlive::message]` writes; the core cannot use that macro, which is a feature.
macro_rules! message {
    ($type:ident, $name:literal, $($field:ident),*) => {
        impl $crate::Message for $type {
            const TYPE_NAME: &'static str = $name;
            const VALIDITY: $crate::Validity<Self> = $crate::Validity::any();

            fn describe() -> $crate::TypeDescription {
                $crate::TypeDescription::of_struct::<Self>()$(.field(
                    stringify!($field),
                    std::mem::offset_of!(Self, $field),
                    $crate::msg::described(|s: &Self| &s.$field),
                ))*
            }
        }
    };
}
use message;

/// The description of the field that `_of` shows.
fn described<S, F: Message>(_of: fn(&S) -> &F) -> TypeDescription {
    F::describe()
}

/// When something was measured and which frame its coordinates are in; 40 bytes.
///
/// # Examples
/// ```
/// use outlive::msg::{Header, Text};
///
/// let exposed_ns = outlive::now_ns(); // as the camera's driver says
/// let header = Header { stamp_ns: exposed_ns, frame_id: Text::cut("camera_front_optical") };
/// assert_eq!(header.frame_id.as_str(), "camera_front_optical");
/// assert_eq!(Header::default().stamp_ns, 0); // unknown
/// ```
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Header {
    /// When it was measured, ns of CLOCK_MONOTONIC; 0 unknown.
    pub stamp_ns: u64,
    /// Coordinate frame of the data, like `base_link` or `camera_front_optical`; UTF-8, filled up
    /// with zeros.
    pub frame_id: Text<32>,
}
message!(Header, "outlive/Header", stamp_ns, frame_id);

impl Header {
    /// Measured now, in the frame `frame_id` (cut off after 32 bytes).
    ///
    /// # Examples
    /// ```
    /// let before_ns = outlive::now_ns();
    /// let header = outlive::msg::Header::now("base_link");
    /// assert!(header.stamp_ns >= before_ns); // the same clock
    /// assert_eq!(header.frame_id.as_str(), "base_link");
    /// ```
    pub fn now(frame_id: &str) -> Self {
        Self { stamp_ns: now_ns(), frame_id: Text::cut(frame_id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::describe::{Field, FieldType, Kind};

    /// Sizes of the scalars of all fields.
    fn described_bytes(ty: &FieldType) -> usize {
        let len: usize = ty.dims().iter().product();
        let element = match ty.kind() {
            Kind::Struct { fields, .. } => fields.iter().map(Field::ty).map(described_bytes).sum(),
            kind => kind.size(),
        };
        len * element
    }

    fn is_complete<T: Message>() {
        let described = T::describe();
        assert_eq!(described.size(), size_of::<T>(), "{}", T::TYPE_NAME);
        // No type here has padding, so every byte belongs to a field.
        assert_eq!(described_bytes(described.root()), size_of::<T>(), "{}", T::TYPE_NAME);
        let text = described.to_text();
        assert_eq!(TypeDescription::parse(text.as_bytes()).unwrap(), described, "{text}");
    }

    #[test]
    fn every_byte_of_every_type_is_described() {
        is_complete::<Header>();
        is_complete::<Vector3>();
        is_complete::<Quaternion>();
        is_complete::<Pose>();
        is_complete::<Twist>();
        is_complete::<Imu>();
        is_complete::<Joint>();
        is_complete::<JointStateHeader>();
        is_complete::<ImageHeader>();
        is_complete::<PointCloudHeader>();
        is_complete::<PointXyzi>();
        is_complete::<Text<7>>();
        is_complete::<Bool>();
    }

    #[test]
    fn sizes_are_those_that_other_languages_were_told() {
        assert_eq!(size_of::<Header>(), 40);
        assert_eq!((size_of::<Pose>(), size_of::<Twist>(), size_of::<Imu>()), (96, 88, 336));
        assert_eq!((size_of::<JointStateHeader>(), size_of::<Joint>()), (40, 56));
        assert_eq!((size_of::<ImageHeader>(), size_of::<PixelFormat>()), (64, 4));
        assert_eq!((size_of::<PointCloudHeader>(), size_of::<PointXyzi>()), (64, 16));
    }

    #[test]
    fn a_pose_is_described_down_to_its_coordinates() {
        assert_eq!(
            Pose::describe().to_text(),
            "outlive-type 1 align 8\n\
             struct:96\n \
              0 struct:40 header\n  \
               0 u64 stamp_ns\n  \
               8 char[32] frame_id\n \
              40 struct:24 position\n  \
               0 f64 x\n  8 f64 y\n  16 f64 z\n \
              64 struct:32 orientation\n  \
               0 f64 x\n  8 f64 y\n  16 f64 z\n  24 f64 w\n"
        );
    }
}
