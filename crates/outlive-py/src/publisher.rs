//! The publishing port of a topic.

use std::sync::Arc;
use std::time::Duration;

use outlive::topic;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, some_count, some_seconds};
use crate::gpu::Place;
use crate::loan::Loan;
use crate::node::{InCall, Node};
use crate::port;
use crate::sender::{Sender, Shared};

/// How long a publish waits unless told otherwise.
const RELIABLE_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) fn builder(node: &InCall, name: &str, codec: &Codec) -> PyResult<topic::Builder<[u8]>> {
    Ok(node.topic::<[u8]>(name).or_raise()?.of_type(&codec.of))
}

/// Sends messages on a topic.
///
/// `type` is a NumPy dtype, with `shape` for an array of them and None as its first number for any
/// length; ``bytes``; a dataclass or ``object`` for MessagePack; ``Headed`` for a header and
/// elements; a class of ``outlive.msg``, such as ``msg.Image``; a class of Protocol Buffers or
/// pydantic, a schema of Arrow, or ``Encoded``. `type_name` is the name that all languages
/// agree on; structured dtypes need one. `reliable_timeout`: seconds that one publish
/// waits for the slowest live reliable subscriber; 1 s for None, not at all for 0 or less
/// (``WouldBlock``).
///
/// To type checkers it is a ``Publisher[Plan]`` or a ``Publisher[msg.Image]``, by its `type`.
///
/// >>> import dataclasses
/// >>> node = outlive.Node("planner")
/// >>> @dataclasses.dataclass
/// ... class Plan:
/// ...     goal: str
/// >>> follower = outlive.Subscriber(node, "/plan", Plan)  # in another process
/// >>> publisher = outlive.Publisher(node, "/plan", Plan)
/// >>> publisher.publish(Plan("dock"))
/// 0
/// >>> follower.receive(timeout=1.0).value
/// Plan(goal='dock')
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    codec: Py<Codec>,
    id: (u64, u64),
    topic: String,
}

impl Publisher {
    /// Runs `call` with the publisher, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Sender) -> T + Send,
    ) -> PyResult<T> {
        let mut held = self.shared.hold()?;
        let sender = &mut *held;
        Ok(py.detach(|| call(sender)))
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
        #[pyo3(from_py_with = some_count)] depth: Option<u64>,
        #[pyo3(from_py_with = some_count)] memory_bytes_max: Option<u64>,
        #[pyo3(from_py_with = some_seconds)] reliable_timeout: Option<f64>,
        volatile: bool,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let core = node.get().open()?;
        let mut builder = builder(&core, topic, &codec)?.volatile(volatile);
        if let Some(depth) = depth {
            builder = builder.depth(depth);
        }
        if let Some(bytes) = memory_bytes_max {
            builder = builder.memory_bytes_max(bytes);
        }
        // `Shared::send` waits.
        builder = builder.reliable_timeout(Duration::ZERO);
        let publisher = py.detach(|| builder.publisher()).or_raise()?;
        let (id, topic) = (publisher.id(), publisher.topic());
        let id = (id.node.get(), id.port);
        let timeout = reliable_timeout.map_or(RELIABLE_TIMEOUT, port::seconds);
        let shared = Arc::new(Shared::new(publisher, timeout, format!("Publisher {topic}")));
        node.get().adopt(py, shared.weak())?;
        Ok(Self { shared, codec: Py::new(py, codec)?, id, topic })
    }

    /// Copies `value` into shared memory and publishes it; returns its number.
    ///
    /// Never waits, unless subscribers asked to be waited for: see `reliable_timeout`.
    /// ``OutOfMemory``: they hold samples up to the memory bound.
    fn publish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let encoded = self.codec.get().encode(value)?;
        let bytes = encoded.bytes()?;
        self.shared.send(py, self.shared.hold()?, |sender| sender.publisher.publish(bytes))
    }

    /// Publishes each of `values`, in order: an array of fixed-size messages, or something that
    /// makes one. Many times as fast as one by one. Up to 1024 bytes all have the same time stamp,
    /// but one that had to wait and those behind it have another.
    ///
    /// Errors as of ``publish``; those before the one that failed are sent. ``InvalidArgument``:
    /// messages of this type are not all of one size.
    ///
    /// >>> distances = outlive.Subscriber(node, "/distance", np.float32)
    /// >>> publisher = outlive.Publisher(node, "/distance", np.float32)
    /// >>> publisher.publish_batch(np.linspace(0.5, 2.0, 4))
    /// >>> [float(distances.receive(timeout=1.0).value) for _ in range(4)]
    /// [0.5, 1.0, 1.5, 2.0]
    fn publish_batch(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let codec = self.codec.get();
        let encoded = codec.encode_batch(values)?;
        let mut left = encoded.bytes()?;
        drop(self.shared.hold()?); // so that an empty batch is refused once it is closed
        while !left.is_empty() {
            // As much as there is room for: each message that waits has the whole timeout.
            let sent = self.shared.send(py, self.shared.hold()?, |sender| {
                let before = sender.publisher.published();
                let done = sender.publisher.publish_batch_bytes(left);
                match (sender.publisher.published() - before, done) {
                    (0, Err(e)) => Err(e),
                    (sent, _) => Ok(sent as usize),
                }
            })?;
            left = &left[sent * codec.of.size()..];
            // While a reader keeps up, no round waits for long enough to look.
            py.check_signals()?;
        }
        Ok(())
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
        let places = py.import("outlive._gpu")?;
        let found = places.call_method1("place", (array, stream, device))?;
        let (place, dtype, dims): (Place, String, Vec<usize>) = found.extract()?;
        let size = self.codec.get().room_of(py, &dtype, &dims)?;
        place.must_have(size)?;
        let send = |sender: &mut Sender| {
            let loan = sender.publisher.loan_slice(size)?;
            // SAFETY: the array is our caller's, who keeps it until we return.
            unsafe { place.publish(loan) }
        };
        self.shared.send(py, self.shared.hold()?, send)
    }

    /// A slot in shared memory: ``with publisher.loan() as array: ...`` publishes what was written
    /// to the array, unless an exception leaves the block. `count` is the number of elements of a
    /// type of any length.
    ///
    /// >>> scans = outlive.Subscriber(node, "/scan", np.float32, (None,))
    /// >>> publisher = outlive.Publisher(node, "/scan", np.float32, (None,))
    /// >>> with publisher.loan(3) as ranges:
    /// ...     ranges[:] = 1.5, 2.0, 2.5
    /// >>> scans.receive(timeout=1.0).array.tolist()
    /// [1.5, 2.0, 2.5]
    #[pyo3(signature = (count=None))]
    fn loan(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_count)] count: Option<usize>,
    ) -> PyResult<Loan> {
        let size = self.codec.get().room(py, count)?;
        let lent = self.shared.lend(size)?;
        Ok(Loan::new(self.codec.clone_ref(py), lent))
    }

    /// Its identity as subscribers see it: node and port.
    #[getter]
    fn id(&self) -> (u64, u64) {
        self.id
    }

    /// The topic's name.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// Messages published so far.
    #[getter]
    fn published(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |sender| sender.publisher.published())
    }

    /// Bytes of shared memory it takes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |sender| sender.publisher.memory_bytes())
    }

    /// Counts the live subscribers.
    ///
    /// >>> publisher = outlive.Publisher(node, "/plan")
    /// >>> viewers = [outlive.Subscriber(node, "/plan") for _ in range(2)]
    /// >>> publisher.subscribers()
    /// 2
    fn subscribers(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |sender| sender.publisher.subscribers())?.or_raise()
    }

    /// Leaves the topic, once its loans and all arrays over them are gone, too. They cannot be
    /// published any more. A thread that waits in ``publish`` gets ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
