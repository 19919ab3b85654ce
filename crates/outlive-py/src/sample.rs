//! Received messages.

use outlive::Sample as CoreSample;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::codec::Codec;
use crate::{array, dlpack, gpu};

/// A received message. Large ones lie in shared memory, without a copy; arrays over it keep it, so
/// that it may outlive its subscriber, and its publisher's death does not affect it.
///
/// It counts against the subscriber's `borrows` until it and all arrays over it are gone.
///
/// >>> images = outlive.Subscriber(node, "/image", np.uint8, (480, 640))
/// >>> outlive.Publisher(node, "/image", np.uint8, (480, 640)).publish(np.full((480, 640), 7))
/// 0
/// >>> sample = images.receive(timeout=1.0)
/// >>> sample.seq, sample.nbytes, sample.is_borrowed, int(sample.array.max())
/// (0, 307200, True, 7)
/// >>> images.borrowed
/// 1
/// >>> del sample
/// >>> images.borrowed
/// 0
#[pyclass(frozen, generic, module = "outlive")]
#[derive(Debug)]
pub(crate) struct Sample {
    inner: CoreSample<[u8]>,
    codec: Py<Codec>,
}

impl Sample {
    pub(crate) fn new(inner: CoreSample<[u8]>, codec: Py<Codec>) -> Self {
        Self { inner, codec }
    }
}

#[pymethods]
impl Sample {
    /// The payload as a read-only array, without a copy.
    #[getter]
    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let base = slf.clone().into_any();
        let (data, size) = (this.inner.as_ptr(), this.inner.len());
        // SAFETY: the payload stays where it is while the sample lives, which does not move inside
        // its object; the array is read-only.
        unsafe { this.codec.get().view(slf.py(), data, size, false, base) }
    }

    /// The payload: an array as of `array`, bytes, or the object that was sent.
    #[getter]
    fn value<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().codec.get().value(slf.py(), &slf.get().inner, || Self::array(slf))
    }

    /// Its number among the messages of its publisher, from 0.
    #[getter]
    fn seq(&self) -> u64 {
        self.inner.seq()
    }

    /// When it was published, ns of CLOCK_MONOTONIC.
    #[getter]
    fn timestamp_ns(&self) -> u64 {
        self.inner.timestamp_ns()
    }

    /// Who sent it: node and port.
    #[getter]
    fn publisher(&self) -> (u64, u64) {
        let id = self.inner.publisher();
        (id.node.get(), id.port)
    }

    /// Messages of its publisher lost right before it.
    #[getter]
    fn lost_before(&self) -> u64 {
        self.inner.lost_before()
    }

    /// Whether it lies in shared memory, without a copy.
    #[getter]
    fn is_borrowed(&self) -> bool {
        self.inner.is_borrowed()
    }

    /// Size of the payload, bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.len()
    }

    /// For `numpy.asarray(sample)`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        array::as_numpy_asks(Self::array(slf)?, dtype, copy)
    }

    /// For `torch.from_dlpack(sample)` and its like: the same memory, read-only. A library from
    /// before DLPack 1.0 is not told so, and writing through its array ends the process: copy it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        dlpack::check_place(stream.as_ref(), dl_device)?;
        let array = Self::array(slf)?;
        let array = if copy == Some(true) { array.call_method0("copy")? } else { array };
        dlpack::capsule(&array, max_version, copy != Some(true))
    }

    /// Copies the payload into an array on a device (torch, cupy, anything with
    /// ``__cuda_array_interface__``) and waits until it is there. `stream` as of ``publish_cuda``.
    #[pyo3(signature = (array, *, stream=None, device=None))]
    fn copy_to_cuda(
        slf: &Bound<'_, Self>,
        array: &Bound<'_, PyAny>,
        stream: Option<Bound<'_, PyAny>>,
        device: Option<usize>,
    ) -> PyResult<()> {
        let places = slf.py().import("outlive._gpu")?;
        let found = places.call_method1("place", (array, stream, device, true))?;
        let (place, dtype, dims): (gpu::Place, String, Vec<usize>) = found.extract()?;
        let this = slf.get();
        this.codec.get().room_of(slf.py(), &dtype, &dims)?;
        let keep = || [slf.clone().into_any().unbind(), array.clone().unbind()];
        gpu::take(slf.py(), &place, &this.inner, keep)
    }

    /// A new torch tensor on `device` with the payload, in the order of torch's current stream.
    #[pyo3(signature = (device=None, *, stream=None))]
    fn to_torch<'py>(
        slf: &Bound<'py, Self>,
        device: Option<Bound<'py, PyAny>>,
        stream: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let device = match device {
            Some(device) => device,
            None => PyString::new(slf.py(), "cuda").into_any(),
        };
        slf.py().import("outlive._gpu")?.call_method1("to_torch", (slf, device, stream))
    }

    /// A new cupy array on its current device with the payload, in the order of its current stream.
    #[pyo3(signature = (*, stream=None))]
    fn to_cupy<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._gpu")?.call_method1("to_cupy", (slf, stream))
    }

    /// The processor's memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn __repr__(&self) -> String {
        let (node, port) = self.publisher();
        format!("Sample(seq={}, publisher=({node}, {port}), nbytes={})", self.seq(), self.nbytes())
    }
}
