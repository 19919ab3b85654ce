//! The receiving port of a topic.

use std::os::fd::AsRawFd;

use outlive::Deadline;
use outlive::Subscriber as CoreSubscriber;
use outlive::topic::Event;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, count, some_count, some_seconds};
use crate::node::Node;
use crate::port::{Port, deadline};
use crate::publisher::builder;
use crate::sample::Sample;

/// Receives the messages of all publishers of a topic, in order per publisher.
///
/// Types as of ``Publisher``. Iterate over it, with ``for`` or ``async for``, or call ``receive``.
///
/// >>> node = outlive.Node("planner")
/// >>> speeds = outlive.Subscriber(node, "/speed", np.float64)
/// >>> publisher = outlive.Publisher(node, "/speed", np.float64)  # in another process
/// >>> publisher.publish_batch([0.5, 0.75, 0.0])
/// >>> for sample in speeds:
/// ...     print(sample.seq, float(sample.value))
/// ...     if sample.value == 0.0:
/// ...         break
/// 0 0.5
/// 1 0.75
/// 2 0.0
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Subscriber {
    pub(crate) inner: Port<CoreSubscriber<[u8]>>,
    codec: Py<Codec>,
}

impl Subscriber {
    fn sample(&self, py: Python<'_>, found: outlive::Sample<[u8]>) -> PyResult<Sample> {
        self.codec.get().check(&found)?;
        Ok(Sample::new(found, self.codec.clone_ref(py)))
    }
}

#[pymethods]
impl Subscriber {
    #[new]
    #[pyo3(signature = (node, topic, r#type=None, shape=None, *, type_name=None, depth=None,
                        history=0, borrows=None, reliable=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        topic: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        #[pyo3(from_py_with = some_count)] depth: Option<u64>,
        #[pyo3(from_py_with = count)] history: u64,
        #[pyo3(from_py_with = some_count)] borrows: Option<usize>,
        reliable: bool,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let core = node.get().open()?;
        let builder = builder(&core, topic, &codec)?;
        let mut builder = builder.history(history).reliable(reliable);
        if let Some(depth) = depth {
            builder = builder.depth(depth);
        }
        if let Some(borrows) = borrows {
            builder = builder.borrows(borrows);
        }
        let subscriber = py.detach(|| builder.subscriber()).or_raise()?;
        let inner = Port::new(subscriber, format!("Subscriber {topic}"));
        node.get().adopt(py, inner.weak())?;
        Ok(Self { inner, codec: Py::new(py, codec)? })
    }

    /// The next message, or None when `timeout` seconds passed without one; 0 never waits, None
    /// waits for ever. A publisher's end does not end the wait; it ends that of a ``WaitSet``.
    ///
    /// ``TooManyBorrows``: release samples first; nothing is lost.
    #[pyo3(signature = (timeout=None))]
    fn receive(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Option<Sample>> {
        let mut port = self.inner.hold()?;
        if let Some(found) = port.receive().or_raise()? {
            return self.sample(py, found).map(Some);
        }
        let until = deadline(timeout);
        if until == Deadline::AT_ONCE {
            return Ok(None);
        }
        let found = port.wait(py, until, |port, slice| match port.receive()? {
            None => port.sleep_until(slice).map(|()| None),
            found => Ok(found),
        })?;
        found.map(|found| self.sample(py, found)).transpose()
    }

    /// The newest message, or None; older ones are skipped. Never waits.
    ///
    /// >>> poses = outlive.Subscriber(node, "/pose", np.float64, (2,))
    /// >>> outlive.Publisher(node, "/pose", np.float64, (2,)).publish_batch([[1, 2], [1, 3]])
    /// >>> poses.latest().array.tolist()
    /// [1.0, 3.0]
    /// >>> poses.latest() is None
    /// True
    fn latest(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        let found = self.inner.hold()?.latest().or_raise()?;
        found.map(|found| self.sample(py, found)).transpose()
    }

    /// The earliest published of the available messages, over all publishers, or None. Never waits.
    ///
    /// >>> log = outlive.Subscriber(node, "/log")
    /// >>> left, right = outlive.Publisher(node, "/log"), outlive.Publisher(node, "/log")
    /// >>> left.publish("first"), right.publish("second"), left.publish("third")
    /// (0, 0, 1)
    /// >>> [log.receive_in_order().value for _ in range(3)]
    /// ['first', 'second', 'third']
    fn receive_in_order(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        let found = self.inner.hold()?.receive_in_order().or_raise()?;
        found.map(|found| self.sample(py, found)).transpose()
    }

    /// What happened to publishers since the last call, oldest first: tuples of "joined", "left",
    /// "died" or "corrupt", and the publisher's node and port.
    ///
    /// >>> images = outlive.Subscriber(node, "/image")
    /// >>> with outlive.Publisher(node, "/image") as publisher:
    /// ...     publisher.publish("a picture")
    /// 0
    /// >>> images.receive(timeout=1.0).value
    /// 'a picture'
    /// >>> images.receive(timeout=0)
    /// >>> [what for what, who in images.events()]
    /// ['joined', 'left']
    fn events(&self) -> PyResult<Vec<(&'static str, (u64, u64))>> {
        let mut port = self.inner.hold()?;
        let told = |event| {
            let (what, id) = match event {
                Event::PublisherJoined(id) => ("joined", id),
                Event::PublisherLeft(id) => ("left", id),
                Event::PublisherDied { publisher, .. } => ("died", publisher),
                Event::PublisherCorrupt { publisher, .. } => ("corrupt", publisher),
                _ => return None,
            };
            Some((what, (id.node.get(), id.port)))
        };
        Ok(std::iter::from_fn(|| port.next_event()).filter_map(told).collect())
    }

    /// A descriptor for event loops: readable unless the last receiving call found nothing.
    fn fileno(&self) -> PyResult<i32> {
        let mut port = self.inner.hold()?;
        Ok(port.fd().or_raise()?.as_raw_fd())
    }

    /// Messages lost so far, over all publishers.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        Ok(self.inner.hold()?.lost())
    }

    /// Samples held right now.
    #[getter]
    fn borrowed(&self) -> PyResult<usize> {
        Ok(self.inner.hold()?.borrowed())
    }

    /// The topic's name.
    #[getter]
    fn topic(&self) -> PyResult<String> {
        Ok(self.inner.hold()?.topic().to_owned())
    }

    /// Name of the topic's type.
    #[getter]
    fn type_name(&self) -> PyResult<String> {
        Ok(self.inner.hold()?.type_name().to_owned())
    }

    /// The next message, for asyncio. A task that is cancelled while it waits has received nothing:
    /// the message is still there.
    ///
    /// >>> import asyncio
    /// >>> goals = outlive.Subscriber(node, "/goal")
    /// >>> outlive.Publisher(node, "/goal").publish("dock")
    /// 0
    /// >>> async def follow():
    /// ...     sample = await goals.receive_async()
    /// ...     return sample.value
    /// >>> asyncio.run(follow())
    /// 'dock'
    fn receive_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("next_value", (slf,))
    }

    /// Leaves the topic. Samples that are held stay readable. A task that awaits it, or a thread
    /// that waits in it, gets ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    /// For ``outlive._aio``.
    fn _tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.tasks(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)?;
        self.inner.traverse(&visit)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Sample>> {
        self.receive(py, None)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::receive_async(slf)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}
