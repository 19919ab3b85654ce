//! Queues: producers and the one consumer.

use std::os::fd::AsRawFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use outlive::Deadline;
use outlive::queue;
use outlive::{
    Consumer as CoreConsumer, ErrorKind, Producer as CoreProducer, Received as CoreReceived,
};
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array;
use crate::codec::Codec;
use crate::error::{OrRaise, fail, some_count, some_seconds};
use crate::node::{InCall, Node};
use crate::port::{Held, Inner, Port, closed, deadline, forked, span};
use crate::process;

fn builder(node: &InCall, name: &str, codec: &Codec) -> PyResult<queue::Builder<[u8]>> {
    Ok(node.queue::<[u8]>(name).or_raise()?.of_type(&codec.of))
}

/// Sends messages to the one consumer of a queue. Types as of ``Publisher``.
///
/// >>> node = outlive.Node("planner")
/// >>> consumer = outlive.Consumer(node, "/jobs", bytes)  # in another process
/// >>> producer = outlive.Producer(node, "/jobs", bytes)
/// >>> producer.has_consumer
/// True
/// >>> producer.send(b"weld", timeout=1.0)
/// >>> consumer.receive(timeout=1.0)
/// b'weld'
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Producer {
    inner: Port<CoreProducer<[u8]>>,
    codec: Py<Codec>,
}

#[pymethods]
impl Producer {
    #[new]
    #[pyo3(signature = (node, queue, r#type=None, shape=None, *, type_name=None,
                        bound_bytes=None, first_bytes=None, stamped=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        queue: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        #[pyo3(from_py_with = some_count)] bound_bytes: Option<u64>,
        #[pyo3(from_py_with = some_count)] first_bytes: Option<u64>,
        stamped: bool,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let core = node.get().open()?;
        let mut builder = builder(&core, queue, &codec)?;
        if let Some(bytes) = bound_bytes {
            builder = builder.bound_bytes(bytes);
        }
        if let Some(bytes) = first_bytes {
            builder = builder.first_bytes(bytes);
        }
        if stamped {
            builder = builder.stamped();
        }
        let producer = py.detach(|| builder.producer()).or_raise()?;
        let inner = Port::new(producer, format!("Producer {queue}"));
        node.get().adopt(py, inner.weak())?;
        Ok(Self { inner, codec: Py::new(py, codec)? })
    }

    /// Sends a copy of `value`. If the lane is at its bound it waits for the consumer, at most
    /// `timeout` seconds (``WouldBlock`` for 0, else ``Timeout``).
    ///
    /// ``OwnerDied``: no live consumer, or it died while this call waited; nothing was sent.
    #[pyo3(signature = (value, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let mut port = self.inner.hold()?;
        let encoded = self.codec.get().encode(value)?;
        let bytes = encoded.bytes()?;
        let until = deadline(timeout);
        if until == Deadline::AT_ONCE {
            let port: &mut CoreProducer<[u8]> = &mut port;
            return py.detach(|| port.send_until(bytes, Deadline::AT_ONCE)).or_raise();
        }
        port.wait_in_slices(py, until, |port, slice| port.send_until(bytes, slice))
    }

    /// Sends all of `values`, or none: an array of fixed-size messages, or something that makes
    /// one. Several times as fast as one by one. Waits as ``send``.
    ///
    /// ``InvalidArgument``: messages of this type are not all of one size.
    ///
    /// >>> consumer = outlive.Consumer(node, "/ticks", np.int64)
    /// >>> producer = outlive.Producer(node, "/ticks", np.int64)
    /// >>> producer.send_batch(np.arange(3))
    /// >>> [int(consumer.receive(timeout=1.0)) for _ in range(3)]
    /// [0, 1, 2]
    #[pyo3(signature = (values, timeout=None))]
    fn send_batch(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<()> {
        let mut port = self.inner.hold()?;
        let encoded = self.codec.get().encode_batch(values)?;
        let bytes = encoded.bytes()?;
        let until = deadline(timeout);
        port.wait_in_slices(py, until, |port, slice| port.send_batch_bytes(bytes, slice))
    }

    /// Its identity as the consumer sees it: node and port.
    #[getter]
    fn id(&self) -> PyResult<(u64, u64)> {
        let id = self.inner.hold()?.id();
        Ok((id.node.get(), id.port))
    }

    /// Whether a live consumer reads the queue. It may die right after the answer.
    /// Also true while that cannot be found out, for instance for lack of memory.
    #[getter]
    fn has_consumer(&self) -> PyResult<bool> {
        Ok(self.inner.hold()?.has_consumer())
    }

    /// Waits until a live consumer reads the queue; False when `timeout` seconds passed first.
    ///
    /// >>> producer = outlive.Producer(node, "/jobs")
    /// >>> producer.wait_for_consumer(timeout=0.01)
    /// False
    /// >>> consumer = outlive.Consumer(node, "/jobs")  # in another process
    /// >>> producer.wait_for_consumer(timeout=10.0)
    /// True
    #[pyo3(signature = (timeout=None))]
    fn wait_for_consumer(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.inner.hold()?.wait_until_true(py, timeout, |port, time| port.wait_for_consumer(time))
    }

    /// Leaves the queue. Unread messages stay for the consumer.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
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

/// The consumer of the core, and the message that is lent from it.
#[derive(Debug)]
pub(crate) struct Lane {
    /// It goes before the consumer it is of.
    lent: Option<CoreReceived<'static, [u8]>>,
    consumer: Box<CoreConsumer<[u8]>>,
    /// Leaves the queue when the lent message is gone.
    closed: bool,
    /// The `generation` of the process whose it is.
    born: u32,
}

impl Inner for Lane {
    fn closed(&mut self) -> bool {
        self.closed = true;
        self.lent.is_some()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.born != process::generation() {
            // It stays in the parent's hand: no position is written here.
            std::mem::forget(self.lent.take());
        }
    }
}

impl Lane {
    /// For a wait set; nothing is lent.
    pub(crate) fn consumer(&mut self) -> &mut CoreConsumer<[u8]> {
        &mut self.consumer
    }
}

/// The one consumer of a queue. Types as of ``Publisher``; messages come as values: arrays that are
/// copies, bytes, objects; or, from ``borrow``, as they lie in shared memory.
///
/// After a dead consumer the next one continues where that one stopped.
///
/// >>> node = outlive.Node("planner")
/// >>> consumer = outlive.Consumer(node, "/jobs")
/// >>> for arm in ("left", "right"):  # each in its own process
/// ...     outlive.Producer(node, "/jobs").send({"arm": arm, "job": "weld"})
/// >>> sorted(consumer.receive(timeout=1.0)["arm"] for _ in range(2))
/// ['left', 'right']
/// >>> consumer.receive(timeout=0) is None
/// True
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Consumer {
    lane: Port<Lane>,
    codec: Py<Codec>,
}

impl Consumer {
    pub(crate) fn what(&self) -> &str {
        self.lane.what()
    }

    /// The lane for this thread, if no message is lent from it.
    pub(crate) fn hold(&self) -> PyResult<Held<'_, Lane>> {
        let held = self.lane.hold()?;
        let (is_closed, lent) = (held.closed, held.lent.is_some());
        if !(is_closed || lent) {
            return Ok(held);
        }
        // An exception takes the interpreter: not while we hold what a dropped message waits for.
        drop(held);
        Err(match is_closed {
            true => closed(self.lane.what()),
            false => {
                let remedy = "let go of the message in hand and of all arrays over it";
                fail(ErrorKind::TooManyBorrows, "receiving from", "a queue", remedy)
            }
        })
    }

    /// The lane, once there is a message; `None` when time is up.
    fn ready(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Held<'_, Lane>>> {
        let mut held = self.hold()?;
        if held.consumer().wait_for_message(Deadline::AT_ONCE).or_raise()? {
            return Ok(Some(held));
        }
        let until = deadline(timeout);
        let look =
            |lane: &mut Lane, slice| Ok(lane.consumer().wait_for_message(slice)?.then_some(()));
        if until == Deadline::AT_ONCE || held.wait(py, until, look)?.is_none() {
            return Ok(None);
        }
        // It is not taken yet: what a handler raises leaves it.
        py.check_signals()?;
        Ok(Some(held))
    }
}

#[pymethods]
impl Consumer {
    #[new]
    #[pyo3(signature = (node, queue, r#type=None, shape=None, *, type_name=None, stamped=false,
                        ordered=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        queue: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        stamped: bool,
        #[pyo3(from_py_with = some_seconds)] ordered: Option<f64>,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let core = node.get().open()?;
        let mut builder = builder(&core, queue, &codec)?;
        if stamped {
            builder = builder.stamped();
        }
        if let Some(holdback) = ordered {
            builder = builder.ordered(span(holdback, "ordered")?);
        }
        let consumer = Box::new(py.detach(|| builder.consumer()).or_raise()?);
        let lane = Lane { lent: None, consumer, closed: false, born: process::generation() };
        let lane = Port::new(lane, format!("Consumer {queue}"));
        node.get().adopt(py, lane.weak())?;
        Ok(Self { lane, codec: Py::new(py, codec)? })
    }

    /// The next message, or None when `timeout` seconds passed without one; 0 never waits, None
    /// waits for ever. A producer's end does not end the wait; it ends that of a ``WaitSet``.
    #[pyo3(signature = (timeout=None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut held) = self.ready(py, timeout)? else { return Ok(None) };
        let Some(message) = held.consumer().receive().or_raise()? else { return Ok(None) };
        let value = self.codec.get().copied(py, &message);
        match &value {
            // Out of memory, or interrupted: it comes again. What is no value of its type now never
            // will be.
            Err(e) if e.is_instance_of::<PyMemoryError>(py) => message.nack(),
            Err(e) if !e.is_instance_of::<PyException>(py) => message.nack(),
            _ => message.ack(),
        }
        value.map(Some)
    }

    /// The next message where it lies in shared memory, without a copy; else as ``receive``.
    ///
    /// One at a time: until it and all arrays over it are gone, other calls raise
    /// ``TooManyBorrows``, and its producer cannot use the room again.
    #[pyo3(signature = (timeout=None))]
    fn borrow(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Option<Received>> {
        let Some(mut held) = self.ready(py, timeout)? else { return Ok(None) };
        let lane = &mut *held;
        // SAFETY: the message borrows from a box that goes after it, and that `hold` gives to
        // nobody while a message is lent.
        let consumer: &'static mut CoreConsumer<[u8]> =
            unsafe { &mut *std::ptr::from_mut(lane.consumer.as_mut()) };
        let Some(lent) = consumer.receive().or_raise()? else { return Ok(None) };
        self.codec.get().check(&lent)?;
        let (data, size) = (lent.as_ptr().expose_provenance(), lent.len());
        let (id, timestamp_ns) = (lent.producer(), lent.timestamp_ns());
        lane.lent = Some(lent);
        drop(held);
        let lane = self.lane.share();
        let kept = Kept { data, size, lane, done: false.into(), failed: false.into() };
        let kept = Py::new(py, kept)?;
        Ok(Some(Received {
            kept: Mutex::new(Some(kept)),
            codec: self.codec.clone_ref(py),
            producer: (id.node.get(), id.port),
            timestamp_ns,
        }))
    }

    /// What happened to producers since the last call: as of ``Subscriber.events``.
    fn events(&self) -> PyResult<Vec<(&'static str, (u64, u64))>> {
        let mut held = self.hold()?;
        let told = |event| {
            let (what, id) = match event {
                queue::Event::ProducerJoined(id) => ("joined", id),
                queue::Event::ProducerLeft(id) => ("left", id),
                queue::Event::ProducerDied(id) => ("died", id),
                queue::Event::ProducerCorrupt { producer, .. } => ("corrupt", producer),
                _ => return None,
            };
            Some((what, (id.node.get(), id.port)))
        };
        Ok(std::iter::from_fn(|| held.consumer().next_event()).filter_map(told).collect())
    }

    /// The next message, for asyncio. A task that is cancelled while it waits has received nothing:
    /// the message is still there.
    ///
    /// >>> import asyncio
    /// >>> consumer = outlive.Consumer(node, "/jobs")
    /// >>> outlive.Producer(node, "/jobs").send("weld")
    /// >>> async def work():
    /// ...     async for job in consumer:
    /// ...         return job
    /// >>> asyncio.run(work())
    /// 'weld'
    fn receive_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("next_value", (slf,))
    }

    /// Leaves the queue; another process may consume it then. While a message is borrowed it leaves
    /// only once that is gone.
    fn close(&self, py: Python<'_>) {
        self.lane.close(py);
    }

    /// A descriptor for event loops: readable unless the last receiving call found nothing.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.hold()?.consumer().fd().or_raise()?.as_raw_fd())
    }

    /// For ``outlive._aio``.
    fn _tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.lane.tasks(py)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)?;
        self.lane.traverse(&visit)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
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

/// A message that is lent: the base of the arrays over it. Dropped, it counts as received, or is
/// put back.
#[pyclass(frozen, module = "outlive._outlive")]
struct Kept {
    data: usize,
    size: usize,
    lane: Port<Lane>,
    /// It was acknowledged by a call.
    done: AtomicBool,
    /// It comes again.
    failed: AtomicBool,
}

impl Kept {
    /// What is still in hand when the interpreter ends is not done: an exception may have ended it.
    fn comes_again(&self) -> bool {
        let done = self.done.load(Ordering::Relaxed);
        self.failed.load(Ordering::Relaxed) || !done && process::is_ending()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.lane.is_forked() {
            return;
        }
        // Whoever has the lane now finds the message lent and lets go at once.
        let mut lane = self.lane.hold_soon();
        if let Some(open) = lane.as_mut() {
            match open.lent.take() {
                Some(message) if self.comes_again() => message.nack(),
                Some(message) => message.ack(),
                None => {}
            }
            if open.closed {
                drop(lane.take());
            }
        }
    }
}

/// A message in its queue, without a copy: ``with consumer.borrow() as message: ...``
///
/// It counts as received when it and all arrays over it are gone; ``ack`` marks it as done. If the
/// process dies or the interpreter ends before, the next consumer receives it again.
///
/// An exception inside the ``with`` does not acknowledge: the message is put back, as by ``nack``,
/// and the next receiving call gets it again. Without a ``with`` call ``nack`` yourself.
///
/// >>> consumer = outlive.Consumer(node, "/scans", np.float32, (None,))
/// >>> producer = outlive.Producer(node, "/scans", np.float32, (None,))
/// >>> producer.send([1.5, 2.5])
/// >>> with consumer.borrow() as message:
/// ...     message.array.tolist(), message.array.flags.writeable
/// ([1.5, 2.5], False)
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Received {
    kept: Mutex<Option<Py<Kept>>>,
    codec: Py<Codec>,
    producer: (u64, u64),
    timestamp_ns: Option<u64>,
}

impl Received {
    /// It is its process's to say what became of it.
    fn mark(&self, how: impl FnOnce(&Kept)) -> PyResult<()> {
        let mut kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
        if kept.as_ref().is_some_and(|kept| kept.get().lane.is_forked()) {
            drop(kept);
            return Err(forked("a received message"));
        }
        let taken = kept.take();
        drop(kept);
        if let Some(kept) = taken {
            how(kept.get());
        }
        Ok(())
    }

    fn kept(&self, py: Python<'_>) -> PyResult<Py<Kept>> {
        let kept = {
            let kept = self.kept.lock().unwrap_or_else(|e| e.into_inner());
            kept.as_ref().map(|kept| kept.clone_ref(py))
        };
        kept.ok_or_else(|| {
            fail(ErrorKind::InvalidArgument, "using", "a received message", "it is done")
        })
    }
}

#[pymethods]
impl Received {
    /// The payload as a read-only array, without a copy; of objects, their MessagePack bytes.
    #[getter]
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kept = self.kept(py)?;
        let (data, size) = (std::ptr::with_exposed_provenance(kept.get().data), kept.get().size);
        // SAFETY: the message stays where it is while `kept` lives, and the array is read-only.
        unsafe { self.codec.get().view(py, data, size, false, kept.into_bound(py).into_any()) }
    }

    /// The payload: an array as of `array`, bytes, or the object that was sent.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let kept = self.kept(py)?;
        let data = std::ptr::with_exposed_provenance::<u8>(kept.get().data);
        // SAFETY: as in `array`; `kept` stays for the call.
        let payload = unsafe { std::slice::from_raw_parts(data, kept.get().size) };
        self.codec.get().value(py, payload, || self.array(py))
    }

    /// Who sent it: node and port.
    #[getter]
    fn producer(&self) -> (u64, u64) {
        self.producer
    }

    /// When it was sent, ns of CLOCK_MONOTONIC; None in a queue without time stamps.
    #[getter]
    fn timestamp_ns(&self) -> Option<u64> {
        self.timestamp_ns
    }

    /// It is done: it counts as received once all arrays over it are gone too; they keep it in hand
    /// for as long as they live.
    fn ack(&self) -> PyResult<()> {
        self.mark(|kept| kept.done.store(true, Ordering::Relaxed))
    }

    /// Puts it back: once all arrays over it are gone it is the next message of its producer again.
    /// Acknowledge what can never be done, or it comes for ever.
    ///
    /// >>> consumer, producer = outlive.Consumer(node, "/jobs"), outlive.Producer(node, "/jobs")
    /// >>> producer.send("weld")
    /// >>> message = consumer.borrow(timeout=1.0)
    /// >>> message.nack()  # the welder is busy
    /// >>> consumer.receive(timeout=1.0)
    /// 'weld'
    fn nack(&self) -> PyResult<()> {
        self.mark(|kept| kept.failed.store(true, Ordering::Relaxed))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)
    }

    /// For `numpy.asarray(message)`.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        array::as_numpy_asks(self.array(py)?, dtype, copy)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        match !exception.is_empty() && !exception.get_item(0)?.is_none() {
            true => self.nack(),
            false => self.ack(),
        }
    }
}
