//! Services: requests and responses.

use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard};

use outlive::service::{self, Reply as CoreReply, Request as CoreRequest, Ticket};
use outlive::{Client as CoreClient, Deadline, ErrorKind, Server as CoreServer};
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::codec::Codec;
use crate::error::{OrRaise, count, fail, some_count, some_seconds};
use crate::node::{InCall, Node};
use crate::port::{Held, Port, deadline};

/// What requests and responses are.
#[derive(Debug)]
struct Codecs {
    request: Py<Codec>,
    response: Py<Codec>,
}

impl Codecs {
    fn new(
        py: Python<'_>,
        request: Option<Bound<'_, PyAny>>,
        response: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let made = |of| Py::new(py, codec(py, of)?);
        Ok(Self { request: made(request)?, response: made(response)? })
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self { request: self.request.clone_ref(py), response: self.response.clone_ref(py) }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.request)?;
        visit.call(&self.response)
    }
}

/// `(type, shape, type_name)`, the first of them, or a type alone.
fn codec(py: Python<'_>, of: Option<Bound<'_, PyAny>>) -> PyResult<Codec> {
    match of {
        Some(of) if of.is_instance_of::<PyTuple>() => {
            let of = of.cast_into::<PyTuple>().map_err(PyErr::from)?;
            let part = |i| of.get_item(i).ok().filter(|part: &Bound<'_, PyAny>| !part.is_none());
            let name: Option<String> = part(2).map(|name| name.extract()).transpose()?;
            Codec::resolve(py, part(0), part(1), name.as_deref())
        }
        of => Codec::resolve(py, of, None, None),
    }
}

fn builder(
    node: &InCall,
    name: &str,
    codecs: &Codecs,
    bound_bytes: Option<u64>,
) -> PyResult<service::Builder<[u8], [u8]>> {
    let builder = node.service::<[u8], [u8]>(name).or_raise()?;
    let builder = builder.of_types(&codecs.request.get().of, &codecs.response.get().of);
    Ok(match bound_bytes {
        Some(bytes) => builder.bound_bytes(bytes),
        None => builder,
    })
}

/// The asking end of a service.
///
/// `request` and `response` are types as of ``Publisher``, or tuples of type, shape and type name.
///
/// >>> import threading
/// >>> node = outlive.Node("planner")
/// >>> def serve():
/// ...     for request in outlive.Server(node, "/square"):
/// ...         request.respond(request.value ** 2)
/// >>> threading.Thread(target=serve, daemon=True).start()  # or another process
/// >>> client = outlive.Client(node, "/square")
/// >>> client.wait_for_server(timeout=10.0)
/// True
/// >>> client.call(3, timeout=10.0)
/// 9
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Client {
    pub(crate) inner: Port<CoreClient<[u8], [u8]>>,
    tickets: Mutex<Vec<Ticket>>,
    codecs: Codecs,
}

impl Client {
    fn reply(&self, py: Python<'_>, reply: CoreReply<[u8]>) -> Reply {
        if reply.is_last() {
            let ticket = reply.ticket();
            self.tickets().retain(|known| *known != ticket);
        }
        Reply { inner: reply, codecs: self.codecs.clone_ref(py) }
    }

    fn tickets(&self) -> MutexGuard<'_, Vec<Ticket>> {
        self.tickets.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn known(&self, number: u64) -> Option<Ticket> {
        self.tickets().iter().copied().find(|ticket| ticket.get() == number)
    }

    fn ticket(&self, number: u64) -> PyResult<Ticket> {
        self.known(number).ok_or_else(|| {
            let why = "it is answered, cancelled, or not of this client";
            fail(ErrorKind::InvalidArgument, "looking for", "a request", why)
        })
    }
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (node, service, request=None, response=None, *, bound_bytes=None,
                        resume=false))]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        service: &str,
        request: Option<Bound<'_, PyAny>>,
        response: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = some_count)] bound_bytes: Option<u64>,
        resume: bool,
    ) -> PyResult<Self> {
        let codecs = Codecs::new(py, request, response)?;
        let core = node.get().open()?;
        let builder = builder(&core, service, &codecs, bound_bytes)?.resume(resume);
        let client = py.detach(|| builder.client()).or_raise()?;
        let inner = Port::new(client, format!("Client {service}"));
        node.get().adopt(py, inner.weak())?;
        Ok(Self { inner, tickets: Mutex::default(), codecs })
    }

    /// Sends a request and waits for the answer, at most `timeout` seconds (``Timeout``).
    ///
    /// ``ServerDied`` at once when the server dies; ``Refused`` with its words.
    #[pyo3(signature = (request, timeout=None))]
    fn call<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let number = self.send(py, request, timeout)?;
        let until = deadline(timeout);
        let ticket = self.ticket(number)?;
        loop {
            match self.receive_ticket(py, ticket, until).and_then(OrRaise::or_raise) {
                Ok(reply) if !reply.is_last() => {}
                Ok(reply) => return self.reply(py, reply).value(py),
                Err(e) => {
                    let _ = self.cancel(number);
                    return Err(e);
                }
            }
        }
    }

    /// Sends a request and returns its ticket; the answer comes with ``receive``. The server skips
    /// it if it gets to it only after `timeout` seconds. An answer that is there when the client
    /// looks is received, even if it came late.
    ///
    /// >>> server, client = outlive.Server(node, "/square"), outlive.Client(node, "/square")
    /// >>> tickets = [client.send(n) for n in (2, 3)]
    /// >>> for _ in tickets:
    /// ...     request = server.receive(timeout=1.0)
    /// ...     request.respond(request.value ** 2)
    /// >>> [client.receive(timeout=1.0, ticket=ticket).value for ticket in tickets]
    /// [4, 9]
    #[pyo3(signature = (request, timeout=None))]
    fn send(
        &self,
        py: Python<'_>,
        request: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<u64> {
        let mut port = self.inner.hold()?;
        let port: &mut CoreClient<[u8], [u8]> = &mut port;
        let encoded = self.codecs.request.get().encode(request)?;
        let bytes = encoded.bytes()?;
        let until = deadline(timeout);
        let ticket = py.detach(|| port.send_until(bytes, until)).or_raise()?;
        self.tickets().push(ticket);
        Ok(ticket.get())
    }

    /// The next reply, to the request of `ticket` or to any, or None when `timeout` seconds passed.
    #[pyo3(signature = (timeout=None, *, ticket=None))]
    fn receive(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
        #[pyo3(from_py_with = some_count)] ticket: Option<u64>,
    ) -> PyResult<Option<Reply>> {
        let until = deadline(timeout);
        if let Some(ticket) = ticket {
            let reply = self.receive_ticket(py, self.ticket(ticket)?, until)?;
            return self.reply_or_none(py, reply);
        }
        let found = self.inner.hold()?.wait(py, until, |port, slice| match port.receive()? {
            None => port.sleep_until(slice).map(|()| None),
            found => Ok(found),
        })?;
        Ok(found.map(|reply| self.reply(py, reply)))
    }

    /// As ``call``, for asyncio: ``await client.call_async(...)``. A task that is cancelled while
    /// it waits gives its request up, and the server is notified.
    ///
    /// >>> import asyncio
    /// >>> server, client = outlive.Server(node, "/square"), outlive.Client(node, "/square")
    /// >>> async def ask():
    /// ...     asking = asyncio.create_task(client.call_async(3))
    /// ...     request = await server.receive_async()  # in another process
    /// ...     request.respond(request.value ** 2)
    /// ...     return await asking
    /// >>> asyncio.run(ask())
    /// 9
    #[pyo3(signature = (request, timeout=None))]
    fn call_async<'py>(
        slf: &Bound<'py, Self>,
        request: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("call", (slf, request, timeout))
    }

    /// The next reply, to the request of `ticket` or to any, for asyncio. A task that is cancelled
    /// while it waits has received nothing: the reply is still there.
    #[pyo3(signature = (*, ticket=None))]
    fn receive_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = some_count)] ticket: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("next_reply", (slf, ticket))
    }

    /// For ``outlive._aio``: the next reply to a request if it is there.
    fn _take(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = count)] ticket: u64,
    ) -> PyResult<Option<Reply>> {
        let ticket = self.ticket(ticket)?;
        let reply = self.receive_ticket_once(py, ticket)?;
        self.reply_or_none(py, reply)
    }

    /// A descriptor for event loops: readable unless the last receiving call found nothing.
    fn fileno(&self) -> PyResult<i32> {
        let mut port = self.inner.hold()?;
        Ok(port.fd().or_raise()?.as_raw_fd())
    }

    /// For ``outlive._aio``.
    fn _tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.tasks(py)
    }

    /// Gives a request up: no reply to it comes any more, and the server is notified. Of one that
    /// is answered or given up already nothing is left to do.
    ///
    /// >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    /// >>> ticket = client.send("dock")
    /// >>> request = server.receive(timeout=1.0)
    /// >>> client.cancel(ticket)
    /// >>> request.is_cancelled
    /// True
    fn cancel(&self, #[pyo3(from_py_with = count)] ticket: u64) -> PyResult<()> {
        let mut port = self.inner.hold()?;
        let Some(known) = self.known(ticket) else { return Ok(()) };
        self.tickets().retain(|ticket| *ticket != known);
        port.cancel(known).or_raise()
    }

    /// Waits until a live server is there; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_server(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.inner.hold()?.wait_until_true(py, timeout, |port, time| port.wait_for_server(time))
    }

    /// As ``wait_for_server``, for asyncio.
    #[pyo3(signature = (timeout=None))]
    fn wait_for_server_async<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("wait_for_server", (slf, timeout))
    }

    /// Leaves the service. A task that awaits it, or a thread that waits in it, gets
    /// ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.codecs.traverse(&visit)?;
        self.inner.traverse(&visit)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::receive_async(slf, None)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

impl Client {
    /// A reply to `ticket`, or why there is none at `until`.
    fn receive_ticket(
        &self,
        py: Python<'_>,
        ticket: Ticket,
        until: Deadline,
    ) -> PyResult<outlive::Result<CoreReply<[u8]>>> {
        let mut port = self.inner.hold()?;
        let before = port.set_aside();
        let reply = port.wait_in_slices(py, until, |port, end| {
            let reply = port.receive_for(ticket, end);
            if end < until { reply.map(Ok) } else { Ok(reply) }
        });
        self.pass_on(py, port, before);
        reply
    }

    /// `None` when time was up.
    fn reply_or_none(
        &self,
        py: Python<'_>,
        reply: outlive::Result<CoreReply<[u8]>>,
    ) -> PyResult<Option<Reply>> {
        match reply {
            Err(e) if e.kind() == ErrorKind::Timeout => Ok(None),
            reply => Ok(Some(self.reply(py, reply.or_raise()?))),
        }
    }

    fn receive_ticket_once(
        &self,
        py: Python<'_>,
        ticket: Ticket,
    ) -> PyResult<outlive::Result<CoreReply<[u8]>>> {
        let mut port = self.inner.hold()?;
        let before = port.set_aside();
        let reply = port.receive_for(ticket, Deadline::AT_ONCE);
        self.pass_on(py, port, before);
        Ok(reply)
    }

    /// What a call set aside, the descriptor does not tell the tasks that await it.
    fn pass_on(&self, py: Python<'_>, port: Held<'_, CoreClient<[u8], [u8]>>, before: usize) {
        let grew = port.set_aside() > before;
        drop(port);
        if grew {
            self.inner.wake_tasks(py);
        }
    }
}

/// An answer, or the news that there will be none.
///
/// >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
/// >>> ticket = client.send("dock")
/// >>> server.receive(timeout=1.0).respond("docked")
/// >>> reply = client.receive(timeout=1.0)
/// >>> reply.value, reply.ticket == ticket, reply.is_last
/// ('docked', True, True)
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Reply {
    inner: CoreReply<[u8]>,
    codecs: Codecs,
}

#[pymethods]
impl Reply {
    /// The answer. ``Refused`` with the server's words; ``ServerDied``: the server may or may not
    /// have done what was asked.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.codecs.response.get().copied(py, self.inner.body().or_raise()?)
    }

    /// The request that it answers.
    #[getter]
    fn ticket(&self) -> u64 {
        self.inner.ticket().get()
    }

    /// Whether it is the last for that request.
    #[getter]
    fn is_last(&self) -> bool {
        self.inner.is_last()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.codecs.traverse(&visit)
    }
}

/// The one server of a service. Types as of ``Client``.
///
/// ``for request in server: request.respond(...)``, or ``async for``.
///
/// >>> node = outlive.Node("planner")
/// >>> server = outlive.Server(node, "/distance", (np.float64, (2,)), np.float64)
/// >>> client = outlive.Client(node, "/distance", (np.float64, (2,)), np.float64)
/// >>> ticket = client.send([3.0, 4.0])
/// >>> for request in server:
/// ...     request.respond(np.hypot(*request.value))
/// ...     break  # a server would go on
/// >>> float(client.receive(timeout=1.0).value)
/// 5.0
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Server {
    pub(crate) inner: Port<CoreServer<[u8], [u8]>>,
    codecs: Codecs,
}

#[pymethods]
impl Server {
    #[new]
    #[pyo3(signature = (node, service, request=None, response=None, *, bound_bytes=None))]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        service: &str,
        request: Option<Bound<'_, PyAny>>,
        response: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = some_count)] bound_bytes: Option<u64>,
    ) -> PyResult<Self> {
        let codecs = Codecs::new(py, request, response)?;
        let core = node.get().open()?;
        let builder = builder(&core, service, &codecs, bound_bytes)?;
        let server = py.detach(|| builder.server()).or_raise()?;
        let inner = Port::new(server, format!("Server {service}"));
        node.get().adopt(py, inner.weak())?;
        Ok(Self { inner, codecs })
    }

    /// The next request, or None when `timeout` seconds passed without one.
    ///
    /// A client's requests wait while the lane of its replies cannot be opened: a full RAM disk, no
    /// descriptors, no rights. That raises nothing here; it is tried again after 2 to 250 ms.
    #[pyo3(signature = (timeout=None))]
    fn receive(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Option<Request>> {
        let this = slf.get();
        let until = deadline(timeout);
        let mut port = this.inner.hold()?;
        let found = port.wait(slf.py(), until, |port, slice| match port.receive()? {
            None => port.sleep_until(slice).map(|()| None),
            found => Ok(found),
        })?;
        let server = slf.clone().unbind();
        Ok(found.map(|request| Request { inner: Mutex::new(Some(request)), server }))
    }

    /// Requests that were skipped because nobody waited for them any more.
    #[getter]
    fn passed_over(&self) -> PyResult<u64> {
        Ok(self.inner.hold()?.passed_over())
    }

    /// The next request, for asyncio. A task that is cancelled while it waits has received
    /// nothing: the request is still there.
    fn receive_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("outlive._aio")?.call_method1("next_value", (slf,))
    }

    /// A descriptor for event loops: readable unless the last receiving call found nothing.
    fn fileno(&self) -> PyResult<i32> {
        let mut port = self.inner.hold()?;
        Ok(port.fd().or_raise()?.as_raw_fd())
    }

    /// For ``outlive._aio``.
    fn _tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.inner.tasks(py)
    }

    /// Stops serving; clients know at once. A task that awaits it, or a thread that waits in it,
    /// gets ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.codecs.traverse(&visit)?;
        self.inner.traverse(&visit)
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::receive_async(slf)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<Option<Request>> {
        Self::receive(slf, None)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// A request. Answer it once; if it is dropped without an answer, its client waits until its
/// deadline.
///
/// >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
/// >>> ticket = client.send({"speed": 0.5})
/// >>> request = server.receive(timeout=1.0)
/// >>> request.value, request.is_cancelled
/// ({'speed': 0.5}, False)
/// >>> request.respond("done")
#[pyclass(frozen, generic, module = "outlive")]
pub(crate) struct Request {
    inner: Mutex<Option<CoreRequest<[u8]>>>,
    server: Py<Server>,
}

impl Request {
    /// Not while an exception is made or a value decoded, which lets other threads run.
    fn lock(&self) -> MutexGuard<'_, Option<CoreRequest<[u8]>>> {
        self.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn take(&self) -> PyResult<CoreRequest<[u8]>> {
        let taken = self.lock().take();
        taken.ok_or_else(answered)
    }

    /// Runs `call`, which only calls the core, if it is not answered yet.
    fn with<T>(&self, call: impl FnOnce(&CoreRequest<[u8]>) -> T) -> PyResult<T> {
        let done = self.lock().as_ref().map(call);
        done.ok_or_else(answered)
    }

    /// Tells the client why its request cannot be read, unless another attempt may.
    #[cold]
    fn refuse_unreadable(&self, py: Python<'_>, why: &PyErr) {
        if why.is_instance_of::<PyMemoryError>(py) || !why.is_instance_of::<PyException>(py) {
            return;
        }
        let why = format!("it cannot be read: {}", why.value(py));
        if let Ok(mut port) = self.server.get().inner.hold()
            && let Some(request) = self.lock().take()
        {
            // The caller is told that it is unreadable, whatever becomes of the client.
            let _ = port.refuse(request, &why);
        }
    }
}

fn answered() -> PyErr {
    fail(ErrorKind::InvalidArgument, "using", "a request", "it is answered already")
}

#[pymethods]
impl Request {
    /// The type of requests.
    ///
    /// ``Corrupt``: it is none of that type. Its client gets ``Refused``: continue with the next
    /// request.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = self.with(|request| PyBytes::new(py, request))?;
        let value = self.server.get().codecs.request.get().made_of(bytes);
        value.inspect_err(|e| self.refuse_unreadable(py, e))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.server)
    }

    /// Answers it. ``ClientDied``: nobody waits for the answer; continue with the next request.
    fn respond(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let server = self.server.get();
        let encoded = server.codecs.response.get().encode(value)?;
        let bytes = encoded.bytes()?;
        server.inner.hold()?.respond(self.take()?, bytes).or_raise()
    }

    /// Sends one part of the answer; more follow, and ``respond`` sends the last.
    ///
    /// >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    /// >>> ticket = client.send("dock")
    /// >>> request = server.receive(timeout=1.0)
    /// >>> request.respond_part("half way")
    /// >>> request.respond("docked")
    /// >>> replies = [client.receive(timeout=1.0) for _ in range(2)]
    /// >>> [(reply.value, reply.is_last) for reply in replies]
    /// [('half way', False), ('docked', True)]
    fn respond_part(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let server = self.server.get();
        let encoded = server.codecs.response.get().encode(value)?;
        let (bytes, mut port) = (encoded.bytes()?, server.inner.hold()?);
        self.with(|request| port.respond_part(request, bytes))?.or_raise()
    }

    /// Refuses it and says why.
    fn refuse(&self, why: &str) -> PyResult<()> {
        self.server.get().inner.hold()?.refuse(self.take()?, why).or_raise()
    }

    /// Whether the client has given it up or is dead.
    #[getter]
    fn is_cancelled(&self) -> PyResult<bool> {
        let mut port = self.server.get().inner.hold()?;
        self.with(|request| port.is_cancelled(request))?.or_raise()
    }
}
