//! Condition variables, semaphores, sets of numbers.

use std::mem::transmute;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use outlive::lock::{
    LocklessSet as CoreSet, Permit as CorePermit, RobustCondvar, RobustSemaphore as CoreSemaphore,
};
use outlive::{Deadline, ErrorKind};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{OrRaise, count, fail, some_seconds};
use crate::lock::{RobustMutex, take};
use crate::node::Node;
use crate::port::{Common, deadline, forked};
use crate::process;

/// Waiting for a change of data under a ``RobustMutex``, between processes as between threads.
///
/// Spurious wake-ups are normal: check the data again, or let ``wait_for`` do it. Killed waiters
/// and notifiers leave nobody waiting. It cannot tell whether anyone is left to notify it: wait
/// with a timeout, or watch the node.
///
/// >>> node = outlive.Node("planner")
/// >>> goal = outlive.RobustMutex(node, "/arm/goal", np.int64)
/// >>> changed = outlive.RobustCondition(node, "/arm/goal-changed")
/// >>> with goal as data:
/// ...     changed.wait_for(goal, lambda: int(data) > 0, timeout=0.01)
/// ...     data[...] = 7
/// ...     changed.notify_all()
/// ...     changed.wait_for(goal, lambda: int(data) > 0)
/// False
/// True
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct RobustCondition {
    inner: Common<RobustCondvar>,
}

impl RobustCondition {
    fn wait_by(&self, py: Python<'_>, mutex: &Py<RobustMutex>, until: Deadline) -> PyResult<bool> {
        let (mutex, of) = (mutex.bind(py), mutex.get());
        let (condvar, lock) = (&*self.inner.get()?, &*of.raw()?);
        let (mut ended, mut closing) = (None, false);
        let go_on = || {
            Python::attach(|py| {
                ended = py.check_signals().err();
                closing = self.inner.is_closed() || of.common().is_closed();
                ended.is_none() && !closing
            })
        };
        let waited = of.let_go_to_wait(|| py.detach(|| condvar.wait_raw_while(lock, until, go_on)));
        let notified = of.common().named(waited).or_raise()?;
        let taken = RobustMutex::take_again(mutex, lock, &mut ended);
        // What a signal's handler raised comes first: it asked for the end.
        ended.map_or(taken, Err)?;
        match closing {
            true if self.inner.is_closed() => Err(self.inner.closed()),
            true => Err(of.common().closed()),
            false => Ok(notified),
        }
    }
}

#[pymethods]
impl RobustCondition {
    /// Opens the condition variable `name` of the node's domain, or creates it.
    #[new]
    fn new(py: Python<'_>, node: Py<Node>, name: &str) -> PyResult<Self> {
        let node = node.bind(py).get();
        let inner =
            Common::new(node.open()?.condvar(name).or_raise()?, format!("RobustCondition {name}"));
        node.adopt(py, inner.weak())?;
        Ok(Self { inner })
    }

    /// Unmaps its memory.
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

    /// Releases the mutex, which this thread holds, waits for a notification, at most `timeout`
    /// seconds, and takes the mutex again, however long that takes; False: no notification came.
    ///
    /// ``NotOwned``: this thread does not hold it. If its owner died meanwhile, ``owner_died`` of
    /// the mutex is true, or the data is repaired; after ``Unrecoverable`` it is not held any more.
    /// If this is closed meanwhile it raises ``InvalidArgument``, with the mutex; if the mutex is
    /// closed, without it. What a signal's handler raised comes before these.
    #[pyo3(signature = (mutex, timeout=None))]
    fn wait(
        &self,
        py: Python<'_>,
        mutex: Py<RobustMutex>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.wait_by(py, &mutex, deadline(timeout))
    }

    /// Waits as ``wait`` until `predicate()` is true, at most `timeout` seconds; returns its last
    /// result.
    #[pyo3(signature = (mutex, predicate, timeout=None))]
    fn wait_for(
        &self,
        py: Python<'_>,
        mutex: Py<RobustMutex>,
        predicate: Py<PyAny>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let until = deadline(timeout);
        loop {
            let said = predicate.call0(py)?;
            if said.is_truthy(py)? || until.has_passed() {
                return Ok(said);
            }
            self.wait_by(py, &mutex, until)?;
        }
    }

    /// Wakes one waiter, if there is any. With or without the mutex held.
    fn notify(&self) -> PyResult<()> {
        self.inner.get()?.notify_one();
        Ok(())
    }

    /// Wakes all waiters.
    fn notify_all(&self) -> PyResult<()> {
        self.inner.get()?.notify_all();
        Ok(())
    }
}

/// A counting semaphore: each permit lets one thread in, over all processes. A killed holder's
/// permit comes back.
///
/// >>> node = outlive.Node("planner")
/// >>> gpu = outlive.RobustSemaphore(node, "/gpu", 2)
/// >>> with gpu as permit:
/// ...     permit.owner_died, gpu.available
/// (False, 1)
/// >>> gpu.available
/// 2
#[pyclass(frozen, module = "outlive")]
pub(crate) struct RobustSemaphore {
    inner: Common<CoreSemaphore>,
    /// Those of ``with``.
    taken: Mutex<Vec<(ThreadId, Py<Permit>)>>,
}

impl RobustSemaphore {
    fn taken(&self) -> MutexGuard<'_, Vec<(ThreadId, Py<Permit>)>> {
        self.taken.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[pymethods]
impl RobustSemaphore {
    /// Opens the semaphore `name`, or creates it with `permits` permits, 1 to 1024.
    /// ``TypeMismatch``: it exists with another number.
    #[new]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        name: &str,
        #[pyo3(from_py_with = count)] permits: usize,
    ) -> PyResult<Self> {
        let node = node.bind(py).get();
        let semaphore = node.open()?.semaphore(name, permits).or_raise()?;
        let inner = Common::new(semaphore, format!("RobustSemaphore {name}"));
        node.adopt(py, inner.weak())?;
        Ok(Self { inner, taken: Mutex::default() })
    }

    /// Takes a permit; None when `timeout` seconds passed and living threads held all of them. 0
    /// never waits, None waits for ever.
    ///
    /// ``Deadlock``: this thread holds them all.
    ///
    /// >>> gpu = outlive.RobustSemaphore(node, "/gpu", 2)
    /// >>> permit = gpu.acquire(timeout=1.0)
    /// >>> if permit is not None:
    /// ...     print("on device", permit.index)
    /// ...     permit.release()
    /// on device 0
    #[pyo3(signature = (timeout=None))]
    fn acquire(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<Option<Permit>> {
        let of = self.inner.get()?;
        let semaphore = &*of;
        let lend = |permit: CorePermit<'_>| {
            // SAFETY: the permit refers to the semaphore, which the new object keeps for longer.
            Lent(unsafe { transmute::<CorePermit<'_>, CorePermit<'static>>(permit) })
        };
        let now = || semaphore.try_acquire().map(lend);
        let until = |end| semaphore.acquire_until(end).map(lend);
        let got = take(py, &self.inner, timeout, now, until, drop)?;
        Ok(got.map(|permit| Permit {
            index: permit.0.index(),
            owner_died: permit.0.owner_died(),
            lent: Mutex::new(Some(permit)),
            _of: of.keep(),
            born: process::generation(),
        }))
    }

    /// How many permits there are.
    #[getter(permits)]
    fn count(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.permits())
    }

    /// How many are free right now; others may take them at once. Those of dead holders count as
    /// held.
    #[getter]
    fn available(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.available())
    }

    /// Unmaps its memory. Permits in hand stay valid.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Ok(taken) = self.taken.try_lock() else { return Ok(()) };
        taken.iter().try_for_each(|(_, permit)| visit.call(permit))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<Py<Permit>> {
        let Some(permit) = self.acquire(py, None)? else {
            return Err(fail(ErrorKind::Timeout, "taking", "a permit", "wait longer"));
        };
        let permit = Py::new(py, permit)?;
        self.taken().push((std::thread::current().id(), permit.clone_ref(py)));
        Ok(permit)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut permits = self.taken();
        let me = std::thread::current().id();
        let mine = permits.iter().rposition(|(thread, _)| *thread == me);
        let permit = mine.map(|at| permits.remove(at).1);
        drop(permits);
        permit.map_or(Ok(()), |permit| permit.get().release())
    }
}

/// A permit of the core that refers to a semaphore beside it.
struct Lent(CorePermit<'static>);

// SAFETY: giving it back is one CAS from the id of the thread that took it, which the permit has in
// itself; which thread does it makes no difference.
unsafe impl Send for Lent {}

/// A permit of a ``RobustSemaphore``, until released or dropped. It is the thread's that took it.
///
/// >>> gpus = outlive.RobustSemaphore(node, "/gpus", 4)
/// >>> with gpus.acquire(timeout=1.0) as first, gpus.acquire(timeout=1.0) as second:
/// ...     first.index, second.index, gpus.available
/// (0, 1, 2)
/// >>> gpus.available
/// 4
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Permit {
    index: usize,
    owner_died: bool,
    /// Goes before the semaphore that it refers to.
    lent: Mutex<Option<Lent>>,
    _of: Arc<CoreSemaphore>,
    /// The `generation` of the process whose it is.
    born: u32,
}

#[pymethods]
impl Permit {
    /// Which of the permits it is, from 0: for instance the number of a device.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    /// Whether the previous holder died with it: what it guards may be inconsistent.
    #[getter]
    fn owner_died(&self) -> bool {
        self.owner_died
    }

    /// Gives it back. The second time it does nothing.
    fn release(&self) -> PyResult<()> {
        if self.born != process::generation() {
            return Err(forked("a permit"));
        }
        drop(self.lent.lock().unwrap_or_else(|e| e.into_inner()).take());
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.release()
    }
}

/// A bounded set of numbers from 1 to 2**64 - 1 that any number of threads and processes change
/// without a lock.
///
/// They have no owner: those that a killed process inserted stay until somebody removes them.
///
/// >>> node = outlive.Node("planner")
/// >>> ready = outlive.LocklessSet(node, "/fleet/ready", 16)
/// >>> ready.insert(7), ready.insert(7), 7 in ready, len(ready)
/// (True, False, True, 1)
/// >>> ready.remove(7), list(ready)
/// (True, [])
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct LocklessSet {
    inner: Common<CoreSet>,
}

#[pymethods]
impl LocklessSet {
    /// Opens the set `name`, or creates it with room for `capacity` numbers, 1 to 16777216.
    /// ``TypeMismatch``: it exists with other room.
    #[new]
    fn new(
        py: Python<'_>,
        node: Py<Node>,
        name: &str,
        #[pyo3(from_py_with = count)] capacity: usize,
    ) -> PyResult<Self> {
        let node = node.bind(py).get();
        let set = node.open()?.lockless_set(name, capacity).or_raise()?;
        let inner = Common::new(set, format!("LocklessSet {name}"));
        node.adopt(py, inner.weak())?;
        Ok(Self { inner })
    }

    /// Unmaps its memory.
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

    /// Adds `id`; False if it was a member already. Two that insert the same at the same time may
    /// both get True. ``NoSpace``: the set is full; ``InvalidArgument`` for 0.
    fn insert(&self, #[pyo3(from_py_with = count)] id: u64) -> PyResult<bool> {
        let done = self.inner.get()?.insert(id);
        done.map_err(|e| {
            let doing = format!("inserting id {id} into");
            outlive::Error::new(e.kind(), doing, &*self.inner.what(), e.remedy())
        })
        .or_raise()
    }

    /// Removes `id`; False if it was not a member.
    fn remove(&self, #[pyo3(from_py_with = count)] id: u64) -> PyResult<bool> {
        Ok(self.inner.get()?.remove(id))
    }

    /// All members in ascending order; ids inserted or removed meanwhile may or may not be
    /// included.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let inner = self.inner.get()?;
        Ok(py.detach(|| inner.ids()))
    }

    /// How many there is room for.
    #[getter]
    fn capacity(&self) -> PyResult<usize> {
        Ok(self.inner.get()?.capacity())
    }

    fn __contains__(&self, #[pyo3(from_py_with = count)] id: u64) -> PyResult<bool> {
        Ok(self.inner.get()?.contains(id))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.ids(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyList::new(py, self.ids(py)?)?.call_method0("__iter__")
    }
}
