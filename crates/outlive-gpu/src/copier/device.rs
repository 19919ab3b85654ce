//! Copies by the device's copy engines.
#![allow(unsafe_code)]

use super::job::{Job, Place};
use super::way::{Copier, Started};
use crate::Result;
use crate::driver::{Api, Copy2D, DEVICE, HOST};
use crate::handle::Stream;

/// Copies to, from and on a device, by its driver.
#[derive(Clone, Copy)]
pub struct DeviceCopier {
    api: Api,
}

impl DeviceCopier {
    pub(crate) fn new(api: Api) -> Self {
        Self { api }
    }
}

impl std::fmt::Debug for DeviceCopier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceCopier")
    }
}

// SAFETY: answers `OnStream` for what the driver does in the stream's order.
unsafe impl Copier for DeviceCopier {
    fn name(&self) -> &'static str {
        "device"
    }

    fn can(&self, job: &Job) -> bool {
        !job.is_on_host()
    }

    unsafe fn start(&self, job: &Job, stream: Stream) -> Result<Started> {
        let width = job.width;
        let flat =
            job.rows == 1 || (job.to.pitch(width) == width && job.from.pitch(width) == width);
        if job.bytes() == 0 {
            return Ok(Started::Done);
        }
        let pitched = pitched(job);
        // SAFETY: the caller's ranges, valid until the stream has done this.
        let code = unsafe {
            match (job.to, job.from, flat) {
                (Place::Host { ptr, .. }, Place::Device { ptr: from, .. }, true) => {
                    (self.api.to_host)(ptr.cast(), from.0, job.bytes(), stream.0)
                }
                (Place::Device { ptr, .. }, Place::Host { ptr: from, .. }, true) => {
                    (self.api.to_device)(ptr.0, from.cast(), job.bytes(), stream.0)
                }
                (Place::Device { ptr, .. }, Place::Device { ptr: from, .. }, true) => {
                    (self.api.on_device)(ptr.0, from.0, job.bytes(), stream.0)
                }
                _ => (self.api.copy_2d)(&raw const pitched, stream.0),
            }
        };
        self.api.check(code, "copying")?;
        Ok(Started::OnStream)
    }
}

fn pitched(job: &Job) -> Copy2D {
    let nothing = std::ptr::null_mut();
    let split = |place: Place| match place {
        Place::Host { ptr, .. } => (HOST, ptr, 0),
        Place::Device { ptr, .. } => (DEVICE, std::ptr::null_mut(), ptr.0),
    };
    let (from_kind, from_host, from_device) = split(job.from);
    let (to_kind, to_host, to_device) = split(job.to);
    Copy2D {
        from_x_bytes: 0,
        from_y: 0,
        from_kind,
        from_host: from_host.cast_const().cast(),
        from_device,
        from_array: nothing,
        from_pitch: job.from.pitch(job.width),
        to_x_bytes: 0,
        to_y: 0,
        to_kind,
        to_host: to_host.cast(),
        to_device,
        to_array: nothing,
        to_pitch: job.to.pitch(job.width),
        width_bytes: job.width,
        height: job.rows,
    }
}
