//! Robust locks.

use std::sync::atomic::{AtomicBool, Ordering};

use outlive::lock::{Acquired, LockError, LockResult, RawMutex, RawRwLock};
use outlive::{ErrorKind, PayloadType};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, raise};
use crate::node::Node;
use crate::port::{deadline, wait};

/// What a lock protects, if it was given a type, and what of it is not in shared memory.
struct Data {
    codec: Option<Codec>,
    repair: Option<Py<PyAny>>,
    owner_died: AtomicBool,
}

impl Data {
    /// Opens a lock with `bare`, or with `typed` and the first value where there is a type.
    fn open<L>(
        py: Python<'_>,
        (of, shape, type_name): Type<'_>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
        bare: impl FnOnce() -> outlive::Result<L>,
        typed: impl FnOnce(&PayloadType, Option<&[u8]>) -> outlive::Result<L>,
    ) -> PyResult<(L, Self)> {
        let codec = of.map(|of| Codec::resolve(py, Some(of), shape, type_name)).transpose()?;
        let lock = match &codec {
            Some(codec) => {
                let first = initial.map(|value| codec.encode(&value)).transpose()?;
                let first = first.as_ref().map(|value| value.bytes()).transpose()?;
                typed(&codec.of, first).or_raise()?
            }
            None => bare().or_raise()?,
        };
        Ok((lock, Self { codec, repair, owner_died: AtomicBool::new(false) }))
    }

    /// The data at `at` as an array that keeps the lock `of`; None without a type.
    fn view<'py>(
        &self,
        of: Bound<'py, PyAny>,
        at: *mut u8,
        writable: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(codec) = &self.codec else { return Ok(None) };
        // SAFETY: the lock keeps as many bytes mapped; that only its holder uses them is the
        // caller's part, as with every lock of Python.
        let view = unsafe { codec.view(of.py(), at, codec.of.size(), writable, of)? };
        Ok(Some(view))
    }

    /// Notes how the lock was taken; repairs what a dead owner left, if it was told how.
    fn taken<'py>(
        &self,
        how: Acquired,
        data: impl FnOnce() -> PyResult<Option<Bound<'py, PyAny>>>,
        mark_consistent: impl FnOnce() -> outlive::Result<()>,
    ) -> PyResult<()> {
        self.owner_died.store(how == Acquired::OwnerDied, Ordering::Relaxed);
        if let (Acquired::OwnerDied, Some(repair)) = (how, &self.repair) {
            let data = data()?;
            Python::attach(|py| repair.call1(py, (data,)))?;
            mark_consistent().or_raise()?;
            self.owner_died.store(false, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// `type`, `shape` and `type_name` of a lock.
type Type<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, Option<&'py str>);

/// One try of a wait: `None` to go on.
fn tried<T, G>(taken: LockResult<T, G>) -> outlive::Result<Option<T>> {
    match taken {
        Ok(taken) => Ok(Some(taken)),
        Err(e) if matches!(e.kind(), ErrorKind::Timeout | ErrorKind::WouldBlock) => Ok(None),
        Err(LockError::Failed(e)) => Err(e),
        Err(e) => Err(e.into()),
    }
}

/// Takes a lock: looks at once, else waits without the interpreter's lock. `None`: time is up.
pub(crate) fn take<T: Send, G>(
    py: Python<'_>,
    timeout: Option<f64>,
    now: impl FnOnce() -> LockResult<T, G>,
    mut until: impl FnMut(u64) -> LockResult<T, G> + Send,
) -> PyResult<Option<T>> {
    if let Some(taken) = tried(now()).or_raise()? {
        return Ok(Some(taken));
    }
    match deadline(timeout) {
        0 => Ok(None),
        end => wait(py, end, |slice| tried(until(slice))),
    }
}

/// A mutex whose owner may be killed at any instruction; the next one gets the lock and the data.
///
/// With a `type`, as of ``Publisher`` and of fixed size, it protects data in shared memory:
/// ``with mutex as data: data[0] += 1``. It is the same lock as that of Rust and C++ with that
/// type.
///
/// If the last owner died inside, the data may be half written: ``owner_died`` says so until
/// ``mark_consistent`` is called. Let go without it, nobody gets the lock any more
/// (``Unrecoverable``). `repair`, called with the data, does both.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct RobustMutex {
    inner: RawMutex,
    data: Data,
}

impl RobustMutex {
    /// The lock without its data.
    pub(crate) fn raw(&self) -> &RawMutex {
        &self.inner
    }

    /// After it was taken: repairs what a dead owner left, if it was told how, or lets it go.
    pub(crate) fn taken(slf: &Bound<'_, Self>, how: Acquired) -> PyResult<()> {
        let lock = &slf.get().inner;
        let done = slf.get().data.taken(how, || Self::data(slf), || lock.mark_consistent());
        if done.is_err() {
            let _ = lock.unlock();
        }
        done
    }
}

#[pymethods]
impl RobustMutex {
    #[new]
    #[pyo3(signature = (node, name, r#type=None, shape=None, *, type_name=None, initial=None,
                        repair=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        name: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let node = &node.bind(py).get().inner;
        let bare = || RawMutex::open(node, name);
        let typed = |of: &_, first: Option<&[u8]>| RawMutex::open_with(node, name, of, first);
        let of = (r#type, shape, type_name);
        let (inner, data) = Data::open(py, of, initial, repair, bare, typed)?;
        Ok(Self { inner, data })
    }

    /// Takes the lock; False when `timeout` seconds passed first. 0 never waits.
    ///
    /// ``Deadlock``: this thread holds it. ``Unrecoverable``: see above.
    #[pyo3(signature = (timeout=None))]
    fn acquire(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<bool> {
        let (this, py) = (slf.get(), slf.py());
        let lock = &this.inner;
        let got = take(py, timeout, || lock.try_lock(), |end| lock.lock_until(end))?;
        let Some(got) = got else { return Ok(false) };
        Self::taken(slf, got).map(|()| true)
    }

    /// Lets the lock go. ``NotOwned`` when this thread does not hold it.
    fn release(&self) -> PyResult<()> {
        self.inner.unlock().or_raise()
    }

    /// For the thread that holds it: whether its last owner died inside and nothing is repaired.
    #[getter]
    fn owner_died(&self) -> bool {
        self.data.owner_died.load(Ordering::Relaxed)
    }

    /// For the thread that holds it: the data is in order again.
    fn mark_consistent(&self) -> PyResult<()> {
        self.inner.mark_consistent().or_raise()?;
        self.data.owner_died.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// The protected data as an array in shared memory, for whoever holds the lock; None without a
    /// type.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().data.view(slf.clone().into_any(), slf.get().inner.data(), true)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::acquire(slf, None)?;
        Ok(Self::data(slf)?.unwrap_or_else(|| slf.clone().into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }
}

/// A reader/writer lock whose holders may be killed at any instruction; else as ``RobustMutex``.
///
/// ``with lock.read() as data`` for any number of readers, ``with lock.write() as data`` for one
/// writer. A dead reader keeps nobody out; after a dead writer readers get ``OwnerDied`` until a
/// writer has repaired the data.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct RobustRwLock {
    inner: RawRwLock,
    data: Data,
}

impl RobustRwLock {
    fn view<'py>(slf: &Bound<'py, Self>, writable: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().data.view(slf.clone().into_any(), slf.get().inner.data(), writable)
    }
}

#[pymethods]
impl RobustRwLock {
    #[new]
    #[pyo3(signature = (node, name, r#type=None, shape=None, *, type_name=None, initial=None,
                        repair=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        name: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let node = &node.bind(py).get().inner;
        let bare = || RawRwLock::open(node, name);
        let typed = |of: &_, first: Option<&[u8]>| RawRwLock::open_with(node, name, of, first);
        let of = (r#type, shape, type_name);
        let (inner, data) = Data::open(py, of, initial, repair, bare, typed)?;
        Ok(Self { inner, data })
    }

    /// For ``with``: takes it for reading and gives the data, read-only. ``Timeout`` after
    /// `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn read(slf: Py<Self>, timeout: Option<f64>) -> Guard {
        Guard { lock: slf, writes: false, timeout }
    }

    /// For ``with``: takes it for writing and gives the data.
    #[pyo3(signature = (timeout=None))]
    fn write(slf: Py<Self>, timeout: Option<f64>) -> Guard {
        Guard { lock: slf, writes: true, timeout }
    }

    /// Takes it for reading; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn acquire_read(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let lock = &self.inner;
        let got: Option<()> = take(py, timeout, || lock.try_read(), |end| lock.read_until(end))?;
        Ok(got.is_some())
    }

    /// Ends reading.
    fn release_read(&self) -> PyResult<()> {
        self.inner.unlock_read().or_raise()
    }

    /// Takes it for writing; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn acquire_write(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<bool> {
        let (this, py) = (slf.get(), slf.py());
        let lock = &this.inner;
        let got = take(py, timeout, || lock.try_write(), |end| lock.write_until(end))?;
        let Some(got) = got else { return Ok(false) };
        let done = this.data.taken(got, || Self::view(slf, true), || lock.mark_consistent());
        if let Err(e) = done {
            let _ = lock.unlock_write();
            return Err(e);
        }
        Ok(true)
    }

    /// Ends writing.
    fn release_write(&self) -> PyResult<()> {
        self.inner.unlock_write().or_raise()
    }

    /// For the writer: whether a writer died inside and nothing is repaired.
    #[getter]
    fn owner_died(&self) -> bool {
        self.data.owner_died.load(Ordering::Relaxed)
    }

    /// For the writer: the data is in order again.
    fn mark_consistent(&self) -> PyResult<()> {
        self.inner.mark_consistent().or_raise()?;
        self.data.owner_died.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// A reader/writer lock about to be taken by ``with``.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Guard {
    lock: Py<RobustRwLock>,
    writes: bool,
    timeout: Option<f64>,
}

#[pymethods]
impl Guard {
    fn __enter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lock = self.lock.bind(py);
        let taken = match self.writes {
            true => RobustRwLock::acquire_write(lock, self.timeout)?,
            false => lock.get().acquire_read(py, self.timeout)?,
        };
        if !taken {
            let late: LockError<()> = LockError::Timeout;
            return Err(raise(&late.into()));
        }
        let data = RobustRwLock::view(lock, self.writes)?;
        Ok(data.unwrap_or_else(|| lock.clone().into_any()))
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        match self.writes {
            true => self.lock.get().release_write(),
            false => self.lock.get().release_read(),
        }
    }
}
