//! Queues: producers and the one consumer.

use std::sync::Arc;
use std::time::Duration;

use outlive::{
    Consumer as CoreConsumer, Producer as CoreProducer, QueueBuilder, QueueEvent, Received,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::OrRaise;
use crate::node::Node;
use crate::port::{Port, deadline, wait};

fn builder(
    py: Python<'_>,
    node: &Py<Node>,
    name: &str,
    codec: &Codec,
) -> PyResult<QueueBuilder<[u8]>> {
    let node = node.bind(py).get();
    Ok(node.inner.queue::<[u8]>(name).or_raise()?.of_type(&codec.of))
}

/// Sends messages to the one consumer of a queue. Types as of ``Publisher``.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Producer {
    inner: Port<CoreProducer<[u8]>>,
    codec: Arc<Codec>,
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
        bound_bytes: Option<u64>,
        first_bytes: Option<u64>,
        stamped: bool,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let mut builder = builder(py, &node, queue, &codec)?;
        if let Some(bytes) = bound_bytes {
            builder = builder.bound_bytes(bytes);
        }
        if let Some(bytes) = first_bytes {
            builder = builder.first_bytes(bytes);
        }
        if stamped {
            builder = builder.stamped();
        }
        let inner = Port::new(py.detach(|| builder.producer()).or_raise()?);
        Ok(Self { inner, codec: Arc::new(codec) })
    }

    /// Sends a copy of `value`. Where the lane is at its bound it waits for the consumer, at most
    /// `timeout` seconds (``WouldBlock`` for 0, else ``Timeout``).
    ///
    /// ``OwnerDied``: no live consumer, or it died while this call waited; nothing was sent.
    #[pyo3(signature = (value, timeout=None))]
    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<()> {
        let mut port = self.inner.hold()?;
        let port: &mut CoreProducer<[u8]> = &mut port;
        let encoded = self.codec.encode(value)?;
        let bytes = encoded.bytes()?;
        let until = deadline(timeout);
        if until == 0 {
            return py.detach(|| port.try_send(bytes)).or_raise();
        }
        let late = |e: &outlive::Error| {
            e.kind() == outlive::ErrorKind::Timeout && outlive::now_ns() < until
        };
        let sent = wait(py, until, |slice| match port.send_until(bytes, slice) {
            Ok(()) => Ok(Some(Ok(()))),
            Err(e) if late(&e) => Ok(None),
            Err(e) => Ok(Some(Err(e))),
        })?;
        match sent {
            Some(sent) => sent.or_raise(),
            None => py.detach(|| port.send_until(bytes, until)).or_raise(),
        }
    }

    /// Whether a live consumer reads the queue. It may die right after the answer.
    #[getter]
    fn has_consumer(&self) -> PyResult<bool> {
        Ok(self.inner.hold()?.has_consumer())
    }

    /// Waits until a live consumer reads the queue; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_consumer(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let mut port = self.inner.hold()?;
        let port: &mut CoreProducer<[u8]> = &mut port;
        let found = wait(py, deadline(timeout), |slice| {
            let time = Duration::from_nanos(slice.saturating_sub(outlive::now_ns()));
            Ok(port.wait_for_consumer(time)?.then_some(()))
        })?;
        Ok(found.is_some())
    }

    /// Leaves the queue. What is unread stays for the consumer.
    fn close(&self) -> PyResult<()> {
        self.inner.close()
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}

/// The one consumer of a queue. Types as of ``Publisher``; messages come as values: arrays that are
/// copies, bytes, objects.
///
/// After a dead consumer the next one goes on where that one stopped.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Consumer {
    pub(crate) inner: Port<CoreConsumer<[u8]>>,
    codec: Arc<Codec>,
}

impl Consumer {
    /// A message as a value. It counts as received once there is one.
    fn value<'py>(
        &self,
        py: Python<'py>,
        message: &Received<'_, [u8]>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.codec.copied(py, message)
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
        ordered: Option<f64>,
    ) -> PyResult<Self> {
        let codec = Codec::resolve(py, r#type, shape, type_name)?;
        let mut builder = builder(py, &node, queue, &codec)?;
        if stamped {
            builder = builder.stamped();
        }
        if let Some(seconds) = ordered {
            let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
            builder = builder.ordered(time);
        }
        let inner = Port::new(py.detach(|| builder.consumer()).or_raise()?);
        Ok(Self { inner, codec: Arc::new(codec) })
    }

    /// The next message, or None when `timeout` seconds passed without one; 0 never waits, None
    /// waits for ever.
    #[pyo3(signature = (timeout=None))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut port = self.inner.hold()?;
        let port: &mut CoreConsumer<[u8]> = &mut port;
        if let Some(message) = port.receive().or_raise()? {
            return self.value(py, &message).map(Some);
        }
        let until = deadline(timeout);
        if until == 0
            || wait(py, until, |slice| Ok(port.wait_for_message(slice)?.then_some(())))?.is_none()
        {
            return Ok(None);
        }
        match port.receive().or_raise()? {
            Some(message) => self.value(py, &message).map(Some),
            None => Ok(None),
        }
    }

    /// What happened to producers since the last call: as of ``Subscriber.events``.
    fn events(&self) -> PyResult<Vec<(&'static str, (u64, u64))>> {
        let mut port = self.inner.hold()?;
        let mut events = Vec::new();
        while let Some(event) = port.next_event() {
            let (what, id) = match event {
                QueueEvent::ProducerJoined(id) => ("joined", id),
                QueueEvent::ProducerLeft(id) => ("left", id),
                QueueEvent::ProducerDied(id) => ("died", id),
                QueueEvent::ProducerCorrupt { producer, .. } => ("corrupt", producer),
                _ => continue,
            };
            events.push((what, (id.node.get(), id.port)));
        }
        Ok(events)
    }

    /// Leaves the queue; another process may consume it then.
    fn close(&self) -> PyResult<()> {
        self.inner.close()
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
        slf.py().import("outlive._aio")?.call_method1("next_message", (slf,))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close()
    }
}
