//! Waiting for several things at once.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;

use outlive::{
    Client as CoreClient, Deadline, Descriptor, ErrorKind, Server as CoreServer,
    Subscriber as CoreSubscriber, Timer as CoreTimer, WaitSet as CoreSet, Waitable,
    Watch as CoreWatch,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{fail, raise, some_seconds};
use crate::node::Watch;
use crate::port::{Held, Port, SLICE, deadline, seconds, span};
use crate::queue::{Consumer, Lane};
use crate::service::{Client, Server};
use crate::subscriber::Subscriber;

/// Ready every `period` seconds, or once after `delay` seconds. A forked child has one of its own.
///
/// >>> with outlive.Timer(period=0.01) as timer, outlive.WaitSet() as waits:
/// ...     ready = waits.wait([timer], timeout=10.0)
/// ...     ready == [timer], timer.fired() > 0
/// (True, True)
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Timer {
    inner: Port<CoreTimer>,
}

#[pymethods]
impl Timer {
    #[new]
    #[pyo3(signature = (period=None, *, delay=None))]
    fn new(
        #[pyo3(from_py_with = some_seconds)] period: Option<f64>,
        #[pyo3(from_py_with = some_seconds)] delay: Option<f64>,
    ) -> PyResult<Self> {
        let timer = match (period, delay) {
            (Some(period), None) if period <= 0.0 => {
                let why = "use more than 0 seconds; for once, a delay";
                let what = format!("the period {period}");
                return Err(fail(ErrorKind::InvalidArgument, "taking", &what, why));
            }
            (Some(period), None) => CoreTimer::every(seconds(period)),
            (None, Some(delay)) => CoreTimer::after(span(delay, "delay")?),
            _ => return Err(PyTypeError::new_err("give either a period or a delay, in seconds")),
        };
        Ok(Self { inner: Port::new(timer, "Timer".into()) })
    }

    /// How often it became due since the last call; it stays ready until this is called.
    fn fired(&self) -> PyResult<u64> {
        Ok(self.inner.hold()?.fired())
    }

    /// Ends it: it is due no more.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// Waits until one of several things is ready.
///
/// >>> goals, jobs = outlive.Subscriber(node, "/goal"), outlive.Consumer(node, "/jobs")
/// >>> producer = outlive.Producer(node, "/jobs")  # in another process
/// >>> producer.send("weld")
/// >>> with outlive.WaitSet() as waits:
/// ...     for port in waits.wait([goals, jobs], timeout=10.0):
/// ...         print(type(port).__name__, port.receive(timeout=0))
/// Consumer weld
#[pyclass(frozen, module = "outlive")]
pub(crate) struct WaitSet {
    inner: Port<CoreSet>,
}

/// A member that this thread has for the wait.
enum Member<'a> {
    Subscriber(Held<'a, CoreSubscriber<[u8]>>),
    Consumer(Held<'a, Lane>),
    Server(Held<'a, CoreServer<[u8], [u8]>>),
    Client(Held<'a, CoreClient<[u8], [u8]>>),
    Watch(Held<'a, CoreWatch>),
    Timer(Held<'a, CoreTimer>),
    Descriptor(Descriptor<'a>),
}

impl Member<'_> {
    /// Its error, once another thread has closed it.
    fn must_be_open(&self) -> PyResult<()> {
        match self {
            Self::Subscriber(held) => held.must_be_open(),
            Self::Consumer(held) => held.must_be_open(),
            Self::Server(held) => held.must_be_open(),
            Self::Client(held) => held.must_be_open(),
            Self::Watch(held) => held.must_be_open(),
            Self::Timer(held) => held.must_be_open(),
            Self::Descriptor(_) => Ok(()),
        }
    }

    fn waitable(&mut self) -> &mut dyn Waitable {
        match self {
            Self::Subscriber(held) => &mut **held,
            Self::Consumer(held) => held.consumer(),
            Self::Server(held) => &mut **held,
            Self::Client(held) => &mut **held,
            Self::Watch(held) => &mut **held,
            Self::Timer(held) => &mut **held,
            Self::Descriptor(descriptor) => descriptor,
        }
    }
}

/// Lets the list go into a call without the interpreter's lock.
struct Away<T>(T);

// SAFETY: the calling thread waits itself; nothing is sent anywhere, and no object of Python is
// touched without the interpreter's lock.
unsafe impl<T> Send for Away<T> {}

impl<T> Away<T> {
    fn get(&mut self) -> &mut T {
        &mut self.0
    }
}

#[pymethods]
impl WaitSet {
    #[new]
    fn new() -> Self {
        Self { inner: Port::new(CoreSet::new(), "WaitSet".into()) }
    }

    /// Closes its descriptors. A thread that waits in it gets ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// Waits until one of `members` is ready and returns the list of those that are; empty when
    /// `timeout` seconds passed first. 0 only looks.
    ///
    /// Members are subscribers, consumers, servers, clients, watches, timers, and what has a
    /// ``fileno``: that is ready when it can be read.
    #[pyo3(signature = (members, timeout=None))]
    fn wait<'py>(
        &self,
        py: Python<'py>,
        members: &Bound<'py, PyList>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut own = self.inner.hold()?;
        let objects: Vec<Bound<'py, PyAny>> = members.iter().collect();
        must_differ(&objects)?;
        let fds = objects.iter().map(descriptor).collect::<PyResult<Vec<_>>>()?;
        let mut held = Vec::with_capacity(objects.len());
        for (object, fd) in objects.iter().zip(&fds) {
            held.push(member(object, fd.as_ref())?);
        }
        let until = deadline(timeout);
        loop {
            let set: &mut CoreSet = &mut own;
            let mut list: Vec<&mut dyn Waitable> = held.iter_mut().map(Member::waitable).collect();
            let slice = until.min(Deadline::after(SLICE));
            let mut away = Away((set, &mut list));
            let ready: Vec<usize> = py
                .detach(move || {
                    let (set, list) = away.get();
                    set.wait_until(list, slice).map(Iterator::collect)
                })
                .map_err(|e| raise(&e))?;
            if !ready.is_empty() || until.has_passed() {
                return PyList::new(py, ready.into_iter().map(|i| objects[i].clone()));
            }
            py.check_signals()?;
            own.must_be_open()?;
            held.iter().try_for_each(Member::must_be_open)?;
        }
    }
}

/// One that is listed twice would be taken twice.
fn must_differ(objects: &[Bound<'_, PyAny>]) -> PyResult<()> {
    let mut seen = HashSet::with_capacity(objects.len());
    let Some(twice) = objects.iter().find(|object| !seen.insert(object.as_ptr())) else {
        return Ok(());
    };
    if descriptor(twice)?.is_some() {
        return Ok(()); // which the kernel is asked for twice
    }
    let what = what(twice);
    Err(fail(ErrorKind::InvalidArgument, "waiting for", &what, "it is listed twice: once will do"))
}

/// Class and name of a member.
fn what(object: &Bound<'_, PyAny>) -> String {
    if let Ok(it) = object.cast::<Subscriber>() {
        return it.get().inner.what().to_owned();
    }
    if let Ok(it) = object.cast::<Consumer>() {
        return it.get().what().to_owned();
    }
    if let Ok(it) = object.cast::<Server>() {
        return it.get().inner.what().to_owned();
    }
    if let Ok(it) = object.cast::<Client>() {
        return it.get().inner.what().to_owned();
    }
    match object.cast::<Watch>() {
        Ok(it) => it.get().inner.what().to_owned(),
        Err(_) => "Timer".to_owned(),
    }
}

/// The descriptor of what is none of ours.
fn descriptor<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<BorrowedFd<'a>>> {
    let ours = object.is_instance_of::<Subscriber>()
        || object.is_instance_of::<Consumer>()
        || object.is_instance_of::<Server>()
        || object.is_instance_of::<Client>()
        || object.is_instance_of::<Watch>()
        || object.is_instance_of::<Timer>();
    if ours {
        return Ok(None);
    }
    let fd: i32 = match object.extract() {
        Ok(fd) => fd,
        Err(_) => object.call_method0("fileno")?.extract()?,
    };
    if fd < 0 {
        return Err(PyTypeError::new_err("a file descriptor cannot be negative"));
    }
    // SAFETY: the caller's object keeps it open during the wait.
    Ok(Some(unsafe { BorrowedFd::borrow_raw(fd) }))
}

fn member<'a>(
    object: &'a Bound<'_, PyAny>,
    fd: Option<&'a BorrowedFd<'a>>,
) -> PyResult<Member<'a>> {
    if let Some(fd) = fd {
        return Ok(Member::Descriptor(Descriptor::readable(fd)));
    }
    if let Ok(it) = object.cast::<Subscriber>() {
        return it.get().inner.hold().map(Member::Subscriber);
    }
    if let Ok(it) = object.cast::<Consumer>() {
        return it.get().hold().map(Member::Consumer);
    }
    if let Ok(it) = object.cast::<Server>() {
        return it.get().inner.hold().map(Member::Server);
    }
    if let Ok(it) = object.cast::<Client>() {
        return it.get().inner.hold().map(Member::Client);
    }
    if let Ok(it) = object.cast::<Watch>() {
        return it.get().inner.hold().map(Member::Watch);
    }
    let timer = object.cast::<Timer>().map_err(PyErr::from)?;
    timer.get().inner.hold().map(Member::Timer)
}
