//! Messages of ROS 2 without ROS: what topics become for its tools, and what its messages become
//! here.
//!
//! | topic | message |
//! |---|---|
//! | [`Image`](outlive::msg::Image) | `sensor_msgs/msg/Image`; `CompressedImage` of JPEG and PNG |
//! | [`PointCloud`](outlive::msg::PointCloud) | `sensor_msgs/msg/PointCloud2` |
//! | [`Imu`](outlive::msg::Imu), [`JointState`](outlive::msg::JointState) | the same |
//! | [`Pose`](outlive::msg::Pose) | `geometry_msgs/msg/PoseStamped` |
//! | [`Twist`](outlive::msg::Twist) | `geometry_msgs/msg/TwistStamped` |
//! | a number, `bool` | `std_msgs/msg/Float64` and its like |
//! | numbers, bytes | `std_msgs/msg/Float64MultiArray` and its like |
//! | MessagePack named like a message of ROS | that message; fields are keys |
//! | a fixed layout that `outlive types import` made of a message; CDR | that message |
//!
//! The other way round every message that the table does not have becomes MessagePack, unless the
//! topic has one of the last two forms. So do requests and responses of services.
//!
//! | file | what |
//! |---|---|
//! | `files`, `interface` | interface files on the disk, and as they are written |
//! | `definitions.msgs`, `.srvs`, `definition` | definitions of messages, ours and those in files |
//! | `value`, `cdr` | a message as a tree, and its bytes; `base`: what has no parts |
//! | `to_ros`, `from_ros` | the table above in both directions |
//! | `layout`; `generate`, `bind` | CDR of described types; their definitions, made or given |
//! | `service` | requests and responses |
//! | `codec` | any message, for tools: CDR and MessagePack |
//! | `description` | what the hash of a type is taken of |
//! | `epoch` | the time of day from the machine's own clock |
//!
//! # Examples
//! ```
//! use outlive::PayloadType;
//! use outlive_record::ros2::{FromRos, ToRos};
//!
//! let of = PayloadType::of::<f64>();
//! let to = ToRos::of(&of, 0).expect("ROS has std_msgs/msg/Float64");
//! let (which, cdr) = to.message(&1.5f64.to_le_bytes())?;
//! assert_eq!(to.name(which), Some("std_msgs/msg/Float64"));
//! assert_eq!(to.definition(which), Some("float64 data\n"));
//!
//! let (from, becomes) = FromRos::of("std_msgs/msg/Float64", "", None)?;
//! assert_eq!(becomes, of);
//! assert_eq!(from.payload(&cdr)?, 1.5f64.to_le_bytes());
//! assert!(from.payload(&cdr[..7]).is_err());
//! # Ok::<(), String>(())
//! ```

mod base;
mod bind;
mod cdr;
mod codec;
mod definition;
mod description;
mod epoch;
mod files;
mod from_ros;
mod generate;
mod interface;
mod layout;
mod service;
mod to_ros;
mod value;

#[cfg(test)]
mod tests;

pub use codec::RosMessage;
pub use definition::{Definitions, embedded, embedded_services, embedded_text};
pub use description::type_description;
pub use epoch::{epoch_moved, epoch_ns};
pub use files::{InterfaceFile, Sort};
pub use from_ros::FromRos;
pub use interface::{Fault, INTERFACE_BYTES_MAX, Interface, Item, Literal, Many, TypeName};
pub use service::{Service, ServicePart};
pub use to_ros::ToRos;

use base::Base;
pub(crate) use definition::Schema;
pub(crate) use layout::Layout;
pub(crate) use value::Value;

/// Encodings of schemas and messages in files of ROS 2.
pub(crate) const SCHEMA_ENCODING: &str = "ros2msg";
pub(crate) const MESSAGE_ENCODING: &str = "cdr";

/// Time stamps from here on count from 1970, before from the start of the machine; ns.
const EPOCH_NS: u64 = 1 << 60;

/// Our names of pixel formats that ROS knows, and its own.
const FORMATS: [(u32, &str); 10] = {
    use outlive::msg::PixelFormat as P;
    [
        (P::MONO8.0, "mono8"),
        (P::MONO16.0, "mono16"),
        (P::RGB8.0, "rgb8"),
        (P::BGR8.0, "bgr8"),
        (P::RGBA8.0, "rgba8"),
        (P::BGRA8.0, "bgra8"),
        (P::YUYV.0, "yuv422_yuy2"),
        (P::BAYER_RGGB8.0, "bayer_rggb8"),
        (P::DEPTH_MM16.0, "16UC1"),
        (P::DEPTH_M32.0, "32FC1"),
    ]
};

/// Numbers as `std_msgs` has them.
const NUMBERS: [(&str, Base, &str); 11] = [
    ("bool", Base::Bool, "Bool"),
    ("u8", Base::U8, "UInt8"),
    ("i8", Base::I8, "Int8"),
    ("u16", Base::U16, "UInt16"),
    ("i16", Base::I16, "Int16"),
    ("u32", Base::U32, "UInt32"),
    ("i32", Base::I32, "Int32"),
    ("u64", Base::U64, "UInt64"),
    ("i64", Base::I64, "Int64"),
    ("f32", Base::F32, "Float32"),
    ("f64", Base::F64, "Float64"),
];
