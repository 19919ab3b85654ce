//! A sample that a device reads.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use outlive::topic::segments;
use outlive::{Payload, Sample};

use crate::aside::DROP_WAIT;
use crate::copier::{Job, Place};
use crate::cuda::Cuda;
use crate::event::COPY_WAIT;
use crate::fill::Rows;
use crate::handle::{DevicePtr, Stream};
use crate::pinned::PinnedBuffer;
use crate::registrar::Flight;
use crate::{ErrorKind, Result};

/// Samples that a device reads.
pub trait SampleExt<T: Payload + ?Sized>: Sized {
    /// Begins to copy the payload to `to` on the device, in the order of `stream`. The sample is
    /// let go when the device is done.
    ///
    /// The publisher's death changes nothing: the sample stays readable.
    ///
    /// # Safety
    /// `to` is device memory of that length, valid and left alone until the copy is done. `stream`
    /// is one of this device and lives until then.
    ///
    /// # Errors
    /// `Driver`. The sample is let go, unless the device may still read it.
    ///
    /// # Crash safety
    /// **Deferred** (one chunk), as every borrow: dying here, the chunk comes back to its
    /// publisher once our death is confirmed. What the device still reads then goes nowhere.
    ///
    /// # Real-time
    /// Some us; the first copy out of a data segment registers it, some 100 us per MiB.
    unsafe fn copy_to_device(self, cuda: &Cuda, to: DevicePtr, stream: Stream) -> Result<Take<T>>;

    /// As `copy_to_device` for rows of an image.
    ///
    /// # Safety
    /// As `copy_to_device`, for the rows.
    ///
    /// # Errors
    /// As `copy_to_device`; `InvalidArgument` when the rows are not inside the payload.
    unsafe fn copy_rows_to_device(
        self,
        cuda: &Cuda,
        to: DevicePtr,
        rows: Rows,
        stream: Stream,
    ) -> Result<Take<T>>;
}

impl<T: Payload + ?Sized> SampleExt<T> for Sample<T> {
    unsafe fn copy_to_device(self, cuda: &Cuda, to: DevicePtr, stream: Stream) -> Result<Take<T>> {
        let bytes = self.as_bytes().len();
        let rows = Rows { offset: 0, width: bytes, count: 1, host_pitch: 0, device_pitch: 0 };
        // SAFETY: passed on from the caller.
        unsafe { self.copy_rows_to_device(cuda, to, rows, stream) }
    }

    unsafe fn copy_rows_to_device(
        self,
        cuda: &Cuda,
        to: DevicePtr,
        rows: Rows,
        stream: Stream,
    ) -> Result<Take<T>> {
        // In one place for good: small payloads lie inside the sample.
        let sample = ManuallyDrop::new(Box::new(self));
        let payload = sample.as_bytes();
        let copy = own_copy(cuda, payload);
        let host = copy.as_deref().map_or(payload.as_ptr().cast_mut(), PinnedBuffer::as_ptr);
        let begun = rows.places(host, payload.len(), to).and_then(|(from, to)| {
            let job = Job { to, from, width: rows.width, rows: rows.count };
            // SAFETY: the rows lie in the payload, which nobody writes and which is kept until the
            // copy is done; the rest is the caller's word.
            unsafe { cuda.start_chunk(&job, stream) }
        });
        match begun {
            Ok(flight) => Ok(Take { sample, copy, flight, cuda: cuda.clone() }),
            Err(e) => {
                if e.kind() == ErrorKind::Timeout {
                    cuda.inner.registrar.quarantine();
                } else {
                    drop(ManuallyDrop::into_inner(sample));
                    drop(copy.map(ManuallyDrop::into_inner));
                }
                Err(e)
            }
        }
    }
}

/// A payload that is a copy already, since its publisher had not noticed the subscriber when it
/// sent it, lies in memory that is not pinned: the driver might wait for the stream, without a
/// deadline.
fn own_copy(cuda: &Cuda, payload: &[u8]) -> Option<ManuallyDrop<PinnedBuffer>> {
    if segments::segment_at(payload.as_ptr().addr()).is_some() {
        return None;
    }
    cuda.pinned_copy(payload).map(ManuallyDrop::new)
}

/// Copies the payload to `to` on the device and waits until it is there, at most 10 s: for callers
/// that cannot give the sample away.
///
/// # Safety
/// As [`SampleExt::copy_to_device`]. After `Timeout` the sample must be kept for as long as the
/// process lives.
///
/// # Errors
/// `Driver`, `Timeout`.
pub unsafe fn copy_sample<T: Payload + ?Sized>(
    sample: &Sample<T>,
    cuda: &Cuda,
    to: DevicePtr,
    stream: Stream,
) -> Result<()> {
    let payload = sample.as_bytes();
    // Not dropped where the device may still read it.
    let copy = own_copy(cuda, payload);
    let host = copy.as_deref().map_or(payload.as_ptr().cast_mut(), PinnedBuffer::as_ptr);
    let host = Place::host(host);
    let job = Job::flat(Place::device(to), host, payload.len());
    // SAFETY: nobody writes the payload, which stays until the copy is done; the rest is the
    // caller's word.
    let begun = unsafe { cuda.start_chunk(&job, stream) };
    if begun.as_ref().is_err_and(|e| e.kind() == ErrorKind::Timeout) {
        return begun.map(drop);
    }
    if let Ok(Some(flight)) = &begun {
        flight.event.wait(COPY_WAIT)?;
        cuda.inner.registrar.land(flight);
    }
    drop(copy.map(ManuallyDrop::into_inner));
    begun.map(drop)
}

/// A sample that the device is reading; released when the device is done, not before.
///
/// Dropped, it waits for the device, at most a second. If the device is still not done, the sample
/// stays borrowed for as long as the process lives.
#[must_use = "dropping it waits for the device"]
pub struct Take<T: Payload + ?Sized> {
    sample: ManuallyDrop<Box<Sample<T>>>,
    copy: Option<ManuallyDrop<PinnedBuffer>>,
    flight: Option<Arc<Flight>>,
    cuda: Cuda,
}

impl<T: Payload + ?Sized> std::fmt::Debug for Take<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meta = self.sample.meta();
        f.debug_struct("Take").field("meta", meta).field("flight", &self.flight).finish()
    }
}

impl<T: Payload + ?Sized> Take<T> {
    pub(crate) fn new(sample: Sample<T>, flight: Arc<Flight>, cuda: Cuda) -> Self {
        let sample = ManuallyDrop::new(Box::new(sample));
        Self { sample, copy: None, flight: Some(flight), cuda }
    }

    /// The sample.
    pub fn sample(&self) -> &Sample<T> {
        &self.sample
    }

    /// Whether the device is done.
    ///
    /// # Errors
    /// `Driver`: the copy failed.
    pub fn is_done(&self) -> Result<bool> {
        self.flight.as_ref().map_or(Ok(true), |flight| flight.event.is_done())
    }

    /// Waits until the device is done, at most `timeout`.
    ///
    /// # Errors
    /// `Timeout`: it is still under way. `Driver`: the copy failed.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        self.flight.as_ref().map_or(Ok(()), |flight| flight.event.wait(timeout))
    }

    /// Waits until the device is done, at most 10 s, and releases the sample.
    ///
    /// # Errors
    /// As [`Take::wait`]; the sample stays borrowed if the device may still read it.
    pub fn finish(self) -> Result<()> {
        self.wait(COPY_WAIT)
    }
}

impl<T: Payload + ?Sized> Drop for Take<T> {
    fn drop(&mut self) {
        if self.wait(DROP_WAIT).is_ok() {
            if let Some(flight) = &self.flight {
                self.cuda.inner.registrar.land(flight);
            }
            // SAFETY: dropped here once; nothing uses it after.
            unsafe { ManuallyDrop::drop(&mut self.sample) };
            drop(self.copy.take().map(ManuallyDrop::into_inner));
        } else {
            self.cuda.inner.registrar.quarantine();
        }
    }
}
