//! For `outlive.msg`: whether what follows a header is what it promises.

use outlive::ErrorKind;
use outlive::msg::{ImageHeader, PointCloudHeader};
use outlive::zerocopy::FromBytes;
use pyo3::prelude::*;

use crate::error::{OrRaise, fail};

fn header<H: FromBytes>(bytes: &[u8], what: &str) -> PyResult<H> {
    let of = H::read_from_bytes(bytes);
    of.map_err(|_| fail(ErrorKind::InvalidArgument, "reading", what, "its header has another size"))
}

/// Raises ``Corrupt`` or ``Unsupported`` unless `pixel_bytes` bytes behind the header are its rows.
#[pyfunction]
pub(crate) fn _check_image(bytes: &[u8], pixel_bytes: usize) -> PyResult<()> {
    header::<ImageHeader>(bytes, "an image")?.check(pixel_bytes).or_raise()
}

/// Raises ``Corrupt`` unless `points` points are as many as the header promises.
#[pyfunction]
pub(crate) fn _check_point_cloud(bytes: &[u8], points: usize) -> PyResult<()> {
    header::<PointCloudHeader>(bytes, "a point cloud")?.check(points).or_raise()
}
