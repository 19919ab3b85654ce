//! The publishing port of a topic.

use std::mem::transmute;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use outlive::topic;
use outlive::{ErrorKind, Loan as CoreLoan, Publisher as CorePublisher};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, fail};
use crate::gpu::Place;
use crate::loan::{Lent, LentBy, Loan};
use crate::node::Node;
use crate::port::{self, Close};

/// A publisher of the core, which loans refer to.
struct Sender(CorePublisher<[u8]>);

// SAFETY: it and its loans are used behind the mutex beside it only.
unsafe impl Send for Sender {}

/// The publisher and whoever has it.
pub(crate) struct Shared(Mutex<State>);

struct State {
    /// In a box: loans refer to it. None once it is closed and no loan is out.
    sender: Option<Box<Sender>>,
    loans: usize,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Runs `call` with the publisher alone. Never with the interpreter's lock while it may wait.
    fn with<T>(&self, call: impl FnOnce(&CorePublisher<[u8]>) -> T) -> Option<T> {
        let state = self.lock();
        state.sender.as_ref().filter(|_| !state.closed).map(|sender| call(&sender.0))
    }

    /// A loan and where its memory is, as a number.
    fn lend(&self, size: usize) -> Option<outlive::Result<(Lent, usize)>> {
        let mut state = self.lock();
        let sender = state.sender.as_ref().filter(|_| !state.closed)?;
        let lent = sender.0.loan_slice(size).map(|mut loan| {
            let data = loan.as_mut_ptr().expose_provenance();
            // SAFETY: it refers to the publisher in its box, which stays while loans are counted.
            (unsafe { transmute::<CoreLoan<'_, [u8]>, Lent>(loan) }, data)
        });
        state.loans += usize::from(lent.is_ok());
        Some(lent)
    }

    /// Gives a loan back, or does `what` with it while the publisher is open.
    pub(crate) fn end_loan<T>(&self, loan: Lent, what: impl FnOnce(Lent) -> T) -> Option<T> {
        let mut state = self.lock();
        let done = if state.closed {
            drop(loan); // before the publisher, which it refers to
            None
        } else {
            Some(what(loan))
        };
        state.loans -= 1;
        state.leave();
        done
    }
}

impl State {
    fn leave(&mut self) {
        if self.closed && self.loans == 0 {
            self.sender = None;
        }
    }
}

impl Close for Shared {
    fn close(&self, py: Python<'_>) -> bool {
        py.detach(|| {
            let mut state = match self.0.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(e)) => e.into_inner(),
                Err(TryLockError::WouldBlock) => return false,
            };
            state.closed = true;
            state.leave();
            true
        })
    }
}

pub(crate) fn builder(
    py: Python<'_>,
    node: &Py<Node>,
    name: &str,
    codec: &Codec,
) -> PyResult<topic::Builder<[u8]>> {
    let node = node.bind(py).get();
    Ok(node.open()?.topic::<[u8]>(name).or_raise()?.of_type(&codec.of))
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
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Publisher {
    shared: Arc<Shared>,
    codec: Py<Codec>,
    id: (u64, u64),
    topic: String,
}

#[cold]
fn closed() -> PyErr {
    fail(ErrorKind::InvalidArgument, "using", "this publisher", "it is closed")
}

impl Publisher {
    /// Runs `call` with the publisher, without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&CorePublisher<[u8]>) -> T + Send,
    ) -> PyResult<T> {
        py.detach(|| self.shared.with(call)).ok_or_else(closed)
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
        let made = py.detach(|| builder.publisher().map(|made| Box::new(Sender(made))));
        let sender = made.or_raise()?;
        let (id, topic) = (sender.0.id(), sender.0.topic());
        let id = (id.node.get(), id.port);
        let state = State { sender: Some(sender), loans: 0, closed: false };
        let shared = Arc::new(Shared(Mutex::new(state)));
        let weak: Arc<dyn Close> = Arc::clone(&shared) as Arc<dyn Close>;
        node.get().adopt(Arc::downgrade(&weak));
        Ok(Self { shared, codec: Py::new(py, codec)?, id, topic })
    }

    /// Copies `value` into shared memory and publishes it; returns its number.
    ///
    /// Never waits, unless subscribers asked to be waited for. ``OutOfMemory``: they hold samples
    /// up to the memory bound.
    fn publish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<u64> {
        let encoded = self.codec.get().encode(value)?;
        let bytes = encoded.bytes()?;
        self.with(py, |publisher| publisher.publish(bytes))?.or_raise()
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
        let send = |publisher: &CorePublisher<[u8]>| {
            let loan = publisher.loan_slice(size)?;
            // SAFETY: the array is our caller's, who keeps it until we return.
            unsafe { place.publish(loan) }
        };
        self.with(py, send)?.or_raise()
    }

    /// A slot in shared memory: ``with publisher.loan() as array: ...`` publishes what was written
    /// to the array, unless an exception leaves the block. `count` is the number of elements of a
    /// type of any length.
    #[pyo3(signature = (count=None))]
    fn loan(&self, py: Python<'_>, count: Option<usize>) -> PyResult<Loan> {
        let size = self.codec.get().room(py, count)?;
        // Raised without the lock, which the interpreter may need to end another loan.
        let (loan, data) = self.shared.lend(size).ok_or_else(closed)?.or_raise()?;
        let lent = LentBy { loan: Some(loan), data, size, shared: Arc::clone(&self.shared) };
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
        self.with(py, CorePublisher::published)
    }

    /// Bytes of shared memory it takes.
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, CorePublisher::memory_bytes)
    }

    /// Counts the live subscribers.
    fn subscribers(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, CorePublisher::subscribers)?.or_raise()
    }

    /// Leaves the topic, once its loans are gone, too. They cannot be published any more.
    fn close(&self, py: Python<'_>) {
        while !self.shared.close(py) {
            // Another thread publishes, which a reliable subscriber may delay.
            py.detach(|| drop(self.shared.lock()));
        }
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
