//! Ready-made messages: their types, and whether a payload is one. The structs are in
//! `include/outlive/msg.h`, which is made from the Rust definitions.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use outlive::msg::{Image, ImageHeader, PixelFormat, PointCloud, PointCloudHeader};
use outlive::msg::{Imu, JointState, Pose, Twist};
use outlive::{Error, ErrorKind, PayloadType};

use crate::status::{Fail, bytes, outlive_status, run, text};
use crate::types::{give, outlive_type};

/// The type of a ready-made message by its name: `outlive/Pose`, `outlive/Twist`, `outlive/Imu`,
/// `outlive/JointState`, `outlive/Image`, `outlive/PointCloud`. Their structs are in
/// `outlive/msg.h`.
///
/// `OUTLIVE_NOT_FOUND`: no ready-made message has that name.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_type_message(
    name: *const c_char,
    out: Option<&mut MaybeUninit<*mut outlive_type>>,
) -> outlive_status {
    run(|| {
        let of = match text(name, "a name")? {
            "outlive/Pose" => PayloadType::of::<Pose>(),
            "outlive/Twist" => PayloadType::of::<Twist>(),
            "outlive/Imu" => PayloadType::of::<Imu>(),
            "outlive/JointState" => PayloadType::of::<JointState>(),
            "outlive/Image" => PayloadType::of::<Image>(),
            "outlive/PointCloud" => PayloadType::of::<PointCloud>(),
            other => {
                let why = "ready-made messages are outlive/Pose, Twist, Imu, JointState, Image and \
                           PointCloud; describe a type of your own with outlive_type_fixed";
                return Err(Error::new(ErrorKind::NotFound, "finding the type", other, why).into());
            }
        };
        give(out, of)
    })
}

/// Checks that the payload of an `outlive/Image` holds every row that its header promises. Any
/// program may have written anything there: call this before you read pixels.
///
/// `OUTLIVE_CORRUPT`: rows overlap or are missing. `OUTLIVE_UNSUPPORTED`: the pixel format is
/// unknown. Even then the header is readable, unless the payload is shorter than it.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_image_check(payload: *const c_void, size: usize) -> outlive_status {
    run(|| {
        let whole = bytes(payload, size)?;
        let image = Image::parse(whole).ok_or_else(|| short::<ImageHeader>("an image", whole))?;
        Ok(image.check()?)
    })
}

/// Checks that the payload of an `outlive/PointCloud` has all points that its header promises.
///
/// `OUTLIVE_CORRUPT`: it has not.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_point_cloud_check(payload: *const c_void, size: usize) -> outlive_status {
    run(|| {
        let whole = bytes(payload, size)?;
        let cloud = PointCloud::parse(whole);
        Ok(cloud.ok_or_else(|| short::<PointCloudHeader>("a point cloud", whole))?.check()?)
    })
}

/// Bytes of a pixel; 0 for compressed and unknown formats. `format` is one of `OUTLIVE_PIXEL_RGB8`
/// and the like, from `outlive/msg.h`.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_pixel_bytes(format: u32) -> u32 {
    PixelFormat(format).bytes_per_pixel().unwrap_or(0)
}

#[cold]
fn short<H>(what: &str, payload: &[u8]) -> Fail {
    let (size, align, len) = (size_of::<H>(), align_of::<H>(), payload.len());
    let why = format!(
        "a payload is a header of {size} bytes and whole elements, aligned to {align} bytes; {len} \
         bytes at {:p} are none",
        payload.as_ptr(),
    );
    Error::new(ErrorKind::Corrupt, "reading", what, why).into()
}
