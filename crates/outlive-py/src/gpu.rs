//! Device memory in and out of payloads. The driver is opened by the first call that needs it.

use outlive::{ErrorKind, Loan, Sample};
use outlive_gpu::{Cuda, DevicePtr, LoanExt, Stream};
use pyo3::prelude::*;

use crate::error::{OrRaise, fail, raise};

/// Where an array on a device lies; made by `outlive._gpu`.
#[derive(Debug, FromPyObject)]
pub(crate) struct Place {
    pub(crate) ptr: u64,
    pub(crate) nbytes: usize,
    pub(crate) stream: usize,
    /// `None`: the array does not say.
    pub(crate) device: Option<usize>,
}

impl Place {
    /// `InvalidArgument` unless it has as many bytes as the payload.
    pub(crate) fn must_have(&self, bytes: usize) -> PyResult<()> {
        if self.nbytes == bytes {
            return Ok(());
        }
        let text = format!("it has {} bytes, the payload {bytes}", self.nbytes);
        Err(fail(ErrorKind::InvalidArgument, "copying", "an array on a device", &text))
    }

    fn cuda(&self) -> outlive::Result<Cuda> {
        Ok(match self.device {
            Some(device) => Cuda::open(device)?,
            None => Cuda::open_of(DevicePtr(self.ptr))?,
        })
    }

    /// Fills `loan` from here and publishes it once the device is done.
    ///
    /// # Safety
    /// The array lives until this returns, on its device and stream.
    pub(crate) unsafe fn publish(&self, loan: Loan<'_, [u8]>) -> outlive::Result<u64> {
        let cuda = self.cuda()?;
        // SAFETY: passed on from the caller.
        let fill = unsafe {
            loan.fill_from_device(&cuda, DevicePtr(self.ptr), Stream::from_raw(self.stream))
        };
        Ok(fill.and_then(|fill| fill.publish())?)
    }

    /// Copies `sample` here and waits until the device is done.
    ///
    /// # Safety
    /// As `publish`; on `Timeout` the sample must stay.
    pub(crate) unsafe fn take(&self, sample: &Sample<[u8]>) -> outlive::Result<()> {
        let cuda = self.cuda()?;
        // SAFETY: passed on from the caller.
        unsafe {
            let stream = Stream::from_raw(self.stream);
            Ok(outlive_gpu::copy_sample(sample, &cuda, DevicePtr(self.ptr), stream)?)
        }
    }
}

/// Copies a sample to a device; the interpreter is let go meanwhile. `keep`: what is kept where the
/// device may still read and write it.
pub(crate) fn take(
    py: Python<'_>,
    place: &Place,
    sample: &Sample<[u8]>,
    keep: impl FnOnce() -> [Py<PyAny>; 2],
) -> PyResult<()> {
    place.must_have(sample.len())?;
    // SAFETY: the array is kept by the caller's frame in Python, the sample by ours.
    let taken = py.detach(|| unsafe { place.take(sample) });
    if taken.as_ref().is_err_and(|e| e.kind() == ErrorKind::Timeout) {
        std::mem::forget(keep());
    }
    taken.or_raise()
}

/// Names of the devices; raises what keeps them from being used.
#[pyfunction]
pub(crate) fn devices() -> PyResult<Vec<String>> {
    let devices = Cuda::devices().map_err(|e| raise(&e.into()))?;
    Ok(devices.into_iter().map(|info| info.device.name).collect())
}
