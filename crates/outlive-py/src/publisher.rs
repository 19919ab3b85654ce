//! The publishing port of a topic.

use std::mem::transmute;
use std::sync::{Arc, Mutex};

use outlive::{ErrorKind, Loan as CoreLoan, Publisher as CorePublisher, TopicBuilder};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, fail};
use crate::gpu::Place;
use crate::loan::{Lent, LentBy, Loan};
use crate::node::Node;
use crate::port;

/// A publisher of the core, which loans refer to.
pub(crate) struct Sender(CorePublisher<[u8]>);

// SAFETY: every access to the publisher and to its loans goes through the mutex beside it.
unsafe impl Sync for Sender {}

/// The publisher and whoever has it.
pub(crate) struct Shared {
    gate: Mutex<()>,
    sender: Sender,
}

impl Shared {
    /// Runs `call` with the publisher alone. Never with the interpreter's lock while it may wait.
    pub(crate) fn with<T>(&self, call: impl FnOnce(&CorePublisher<[u8]>) -> T) -> T {
        let _alone = self.gate.lock().unwrap_or_else(|e| e.into_inner());
        call(&self.sender.0)
    }
}

pub(crate) fn builder(
    py: Python<'_>,
    node: &Py<Node>,
    name: &str,
    codec: &Codec,
) -> PyResult<TopicBuilder<[u8]>> {
    let node = node.bind(py).get();
    Ok(node.inner.topic::<[u8]>(name).or_raise()?.of_type(&codec.of))
}

/// Sends messages on a topic.
///
/// `type` is a NumPy dtype, with `shape` for an array of them and None as its first number for any
/// length; ``bytes``; a dataclass or ``object`` for MessagePack; ``Headed`` for a header and
/// elements. `type_name` is the name that all
/// languages agree on; structured dtypes need one.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    codec: Arc<Codec>,
    closed: std::sync::atomic::AtomicBool,
}

impl Publisher {
    fn open(&self) -> PyResult<&Arc<Shared>> {
        if self.closed.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(fail(
                ErrorKind::InvalidArgument,
                "using",
                "this publisher",
                "it is closed",
            ));
        }
        Ok(&self.shared)
    }
}

#[pymethods]
impl Publisher {
    #[new]
    #[pyo3(signature = (node, topic, r#type=None, shape=None, *, type_name=None, depth=None,
                        memory_bytes_max=None, reliable_timeout=None, volatile=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        topic: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        depth: Option<u64>,
        memory_bytes_max: Option<u64>,
        reliable_timeout: Option<f64>,
        volatile: bool,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let mut builder = builder(py, &node, topic, &codec)?.volatile(volatile);
        if let Some(depth) = depth {
            builder = builder.depth(depth);
        }
        if let Some(bytes) = memory_bytes_max {
            builder = builder.memory_bytes_max(bytes);
        }
        if let Some(seconds) = reliable_timeout {
            builder = builder.reliable_timeout(port::seconds(seconds));
        }
        let sender = Sender(py.detach(|| builder.publisher()).or_raise()?);
        let shared = Arc::new(Shared { gate: Mutex::new(()), sender });
        Ok(Self { shared, codec: Arc::new(codec), closed: false.into() })
    }

    /// Copies `value` into shared memory and publishes it; returns its number.
    ///
    /// Never waits, unless subscribers asked to be waited for. ``OutOfMemory``: they hold so many
    /// samples that the bound is reached.
    fn publish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let shared = self.open()?;
        let encoded = self.codec.encode(value)?;
        let bytes = encoded.bytes()?;
        py.detach(|| shared.with(|publisher| publisher.publish(bytes))).or_raise()
    }

    /// Copies an array on a device (torch, cupy, anything with ``__cuda_array_interface__``) into
    /// shared memory and publishes it when the device is done; returns its number.
    ///
    /// In the order of `stream` (torch's, cupy's, or a handle), else of the stream that the array
    /// names, else of torch's current one. ``NotFound``: there is no driver or no device.
    #[pyo3(signature = (array, *, stream=None, device=None))]
    fn publish_cuda(
        &self,
        py: Python<'_>,
        array: &Bound<'_, PyAny>,
        stream: Option<Bound<'_, PyAny>>,
        device: Option<usize>,
    ) -> PyResult<u64> {
        let shared = self.open()?;
        let places = py.import("outlive._gpu")?;
        let found = places.call_method1("place", (array, stream, device))?;
        let (place, dtype, dims): (Place, String, Vec<usize>) = found.extract()?;
        let size = self.codec.room_of(py, &dtype, &dims)?;
        place.must_have(size)?;
        let send = |publisher: &CorePublisher<[u8]>| {
            let loan = publisher.loan_slice(size)?;
            // SAFETY: the array is our caller's, who keeps it until we return.
            unsafe { place.publish(loan) }
        };
        py.detach(|| shared.with(send)).or_raise()
    }

    /// A slot in shared memory: ``with publisher.loan() as array: ...`` publishes what was written
    /// to the array, unless an exception leaves the block. `count` is the number of elements of a
    /// type of any length.
    #[pyo3(signature = (count=None))]
    fn loan(&self, py: Python<'_>, count: Option<usize>) -> PyResult<Loan> {
        let shared = self.open()?;
        let size = self.codec.room(py, count)?;
        let lend = |publisher: &CorePublisher<[u8]>| {
            publisher.loan_slice(size).map(|mut loan| {
                let data = loan.as_mut_ptr().expose_provenance();
                // SAFETY: the loan refers to the publisher inside `shared`, which the new object
                // keeps for longer.
                (unsafe { transmute::<CoreLoan<'_, [u8]>, Lent>(loan) }, data)
            })
        };
        let (loan, data) = shared.with(lend).or_raise()?;
        let lent = LentBy { loan: Some(loan), data, size, shared: Arc::clone(shared) };
        Ok(Loan::new(Arc::clone(&self.codec), lent))
    }

    /// Who this is, as subscribers see it: node and port.
    #[getter]
    fn id(&self) -> (u64, u64) {
        let id = self.shared.with(CorePublisher::id);
        (id.node.get(), id.port)
    }

    /// The topic's name.
    #[getter]
    fn topic(&self) -> String {
        self.shared.with(CorePublisher::topic)
    }

    /// Messages published so far.
    #[getter]
    fn published(&self) -> u64 {
        self.shared.with(CorePublisher::published)
    }

    /// Bytes of shared memory it takes.
    #[getter]
    fn memory_bytes(&self) -> u64 {
        self.shared.with(CorePublisher::memory_bytes)
    }

    /// Looks for subscribers and counts the live ones.
    fn subscribers(&self, py: Python<'_>) -> PyResult<usize> {
        let shared = self.open()?;
        py.detach(|| shared.with(CorePublisher::subscribers)).or_raise()
    }

    /// Refuses further calls. It leaves the topic when its loans are gone too.
    fn close(&self) {
        self.closed.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }
}
