//! The driver's names for what callers bring: streams and addresses.
#![allow(unsafe_code)]

use crate::driver::Handle;

/// A CUDA stream, as a handle: what is asked for on one stream is done in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub(crate) Handle);

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// The device's default stream.
    pub const DEFAULT: Self = Self(std::ptr::null_mut());

    /// A stream of someone else: torch's `stream.cuda_stream`, cupy's `stream.ptr`, a `CUstream`
    /// or `cudaStream_t`. 0 is the default stream.
    ///
    /// # Safety
    /// A stream of the device it is used with, which exists for as long as this is used.
    pub unsafe fn from_raw(handle: usize) -> Self {
        Self(std::ptr::without_provenance_mut(handle))
    }

    /// The legacy default stream, by either of its names, or the thread's own.
    pub(crate) fn is_default(self) -> bool {
        self.as_raw() <= 2
    }

    /// The driver's handle.
    pub fn as_raw(self) -> usize {
        self.0.addr()
    }
}

/// An address in a device's memory (`CUdeviceptr`, a torch tensor's `data_ptr()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` further on.
    pub fn offset(self, bytes: usize) -> Self {
        Self(self.0 + bytes as u64)
    }
}
