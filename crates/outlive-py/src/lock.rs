//! Robust locks.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::ThreadId;

use outlive::lock::{Acquired, LockError, LockResult, RawMutex, RawRwLock};
use outlive::{Deadline, ErrorKind, PayloadType};
use pyo3::exceptions::PyGeneratorExit;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, fail, some_seconds};
use crate::loan::end_writing;
use crate::node::Node;
use crate::port::{Common, Opened, SLICE, deadline, wait};
use crate::process::note_fork;

/// What a lock protects, if it was given a type, and what of it is not in shared memory.
struct Data {
    codec: Option<Py<Codec>>,
    repair: Mutex<Option<Py<PyAny>>>,
    owner_died: AtomicBool,
    views: Arc<Views>,
}

/// Arrays through which the data can be written, for as long as the lock is held for that.
#[derive(Default)]
struct Views {
    /// The thread that holds the lock through this object.
    holder: Mutex<Option<ThreadId>>,
    /// Each with the thread that waits for a condition and then has the lock, and it, again. Only
    /// locked with the interpreter's lock, so that no forked child finds it locked.
    arrays: Mutex<Vec<(Option<ThreadId>, Py<PyAny>)>>,
}

fn me() -> ThreadId {
    std::thread::current().id()
}

/// Those of all locks.
static VIEWS: Mutex<Vec<Weak<Views>>> = Mutex::new(Vec::new());

impl Views {
    fn new() -> Arc<Self> {
        let views = Arc::new(Self::default());
        let mut all = VIEWS.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&views));
        views
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Option<ThreadId>, Py<PyAny>)>> {
        self.arrays.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn set_holder(&self, holder: Option<ThreadId>) {
        *self.holder.lock().unwrap_or_else(|e| e.into_inner()) = holder;
    }

    fn holder(&self) -> Option<ThreadId> {
        *self.holder.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Before the calling thread lets go: seals, if it is the one that holds the lock.
    fn seal_own(&self, py: Python<'_>) {
        if self.holder() == Some(me()) {
            self.seal(py);
        }
    }

    /// No more writing through arrays that were handed out, save those of threads that wait.
    fn seal(&self, py: Python<'_>) {
        self.set_holder(None);
        self.seal_those(py, |waits| waits.is_none());
    }

    fn seal_those(&self, py: Python<'_>, which: impl Fn(Option<ThreadId>) -> bool) {
        let sealed: Vec<_> = self.lock().extract_if(.., |(waits, _)| which(*waits)).collect();
        sealed.iter().for_each(|(_, array)| end_writing(array.bind(py)));
    }

    /// The calling thread is about to wait for a condition: others that have the lock meanwhile
    /// leave its arrays alone.
    fn begin_wait(&self) {
        if self.holder() == Some(me()) {
            self.lock().iter_mut().for_each(|(waits, _)| *waits = waits.or(Some(me())));
        }
    }

    /// It has the lock again, or never let it go.
    fn end_wait(&self) {
        let mine = |(waits, _): &&mut (Option<ThreadId>, _)| *waits == Some(me());
        self.lock().iter_mut().filter(mine).for_each(|(waits, _)| *waits = None);
    }

    /// It does not get the lock again.
    fn give_up_wait(&self, py: Python<'_>) {
        if self.holder() == Some(me()) {
            self.set_holder(None);
        }
        self.seal_those(py, |waits| waits == Some(me()));
    }
}

/// In a forked child, which holds no lock: seals the arrays that its parent writes through.
#[pyfunction]
pub(crate) fn _after_fork(py: Python<'_>) {
    note_fork();
    let all: Vec<_> = {
        let all = VIEWS.lock().unwrap_or_else(|e| e.into_inner());
        all.iter().filter_map(Weak::upgrade).collect()
    };
    for views in all {
        views.set_holder(None);
        views.seal_those(py, |_| true);
    }
}

/// What keeps the data mapped: the base of arrays over it.
#[pyclass(frozen, module = "outlive._outlive")]
struct Memory {
    _lock: Arc<dyn Any + Send + Sync>,
}

impl Data {
    /// Opens a lock of `node` with `bare`, or with `typed` and the first value where there is a
    /// type.
    fn open<L: Send + Sync + 'static>(
        node: &Bound<'_, Node>,
        what: String,
        (of, shape, type_name): Type<'_>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
        bare: impl FnOnce(&outlive::Node) -> outlive::Result<L>,
        typed: impl FnOnce(&outlive::Node, &PayloadType, Option<&[u8]>) -> outlive::Result<L>,
    ) -> PyResult<(Common<L>, Self)> {
        let (py, core) = (node.py(), &node.get().open()?);
        let codec = of.map(|of| Codec::resolve(py, Some(of), shape, type_name)).transpose()?;
        let codec = codec.map(|codec| Py::new(py, codec)).transpose()?;
        let lock = match codec.as_ref().map(|codec| codec.get()) {
            Some(codec) => {
                let first = initial.map(|value| codec.encode(&value)).transpose()?;
                let first = first.as_ref().map(|value| value.bytes()).transpose()?;
                typed(core, &codec.of, first).or_raise()?
            }
            None => bare(core).or_raise()?,
        };
        let lock = Common::new(lock, what);
        node.get().adopt(py, lock.weak())?;
        let repair = Mutex::new(repair);
        let owner_died = AtomicBool::new(false);
        Ok((lock, Self { codec, repair, owner_died, views: Views::new() }))
    }

    /// The data at `at` as an array that keeps `lock`; None without a type. `writable` ends with
    /// `Views::seal`.
    fn view<'py>(
        &self,
        py: Python<'py>,
        lock: Arc<dyn Any + Send + Sync>,
        at: *mut u8,
        writable: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(codec) = self.codec.as_ref().map(|codec| codec.get()) else { return Ok(None) };
        let base = Bound::new(py, Memory { _lock: lock })?.into_any();
        // SAFETY: the lock keeps as many bytes mapped; that only its holder uses them is the
        // caller's part, as with every lock of Python.
        let view = unsafe { codec.view(py, at, codec.of.size(), writable, base)? };
        if writable {
            self.views.lock().push((None, view.clone().unbind()));
        }
        Ok(Some(view))
    }

    /// `NotOwned` unless this thread holds the lock, so that it may write the data.
    fn must_be_held(&self, what: &str) -> PyResult<()> {
        if self.views.holder() == Some(me()) {
            return Ok(());
        }
        let remedy = "take it first: `with` gives the data of a lock that is held";
        Err(fail(ErrorKind::NotOwned, "using the data of", what, remedy))
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)?;
        if let Ok(repair) = self.repair.try_lock() {
            visit.call(&*repair)?;
        }
        let Ok(arrays) = self.views.arrays.try_lock() else { return Ok(()) };
        arrays.iter().try_for_each(|(_, array)| visit.call(array))
    }

    fn clear(&self) {
        let repair = self.repair.try_lock().ok().and_then(|mut repair| repair.take());
        drop(repair);
    }

    /// Notes how the lock was taken; repairs what a dead owner left, if `repair` was given.
    fn taken<'py>(
        &self,
        py: Python<'py>,
        how: Acquired,
        data: impl FnOnce() -> PyResult<Option<Bound<'py, PyAny>>>,
        mark_consistent: impl FnOnce() -> outlive::Result<()>,
    ) -> PyResult<()> {
        self.owner_died.store(how == Acquired::OwnerDied, Ordering::Relaxed);
        self.views.set_holder(Some(me()));
        let repair = {
            let repair = self.repair.lock().unwrap_or_else(|e| e.into_inner());
            repair.as_ref().map(|repair| repair.clone_ref(py))
        };
        if let (Acquired::OwnerDied, Some(repair)) = (how, repair) {
            let data = data()?;
            repair.call1(py, (data,))?;
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

/// Takes `of`: looks at once, else waits without the interpreter's lock. `None`: time is up. If the
/// handler of a signal raises, what was taken meanwhile is given back.
pub(crate) fn take<L: Send + Sync + 'static, T: Send, G>(
    py: Python<'_>,
    of: &Common<L>,
    timeout: Option<f64>,
    now: impl FnOnce() -> LockResult<T, G>,
    mut until: impl FnMut(Deadline) -> LockResult<T, G> + Send,
    give_back: impl FnOnce(T),
) -> PyResult<Option<T>> {
    if let Some(taken) = of.named(tried(now())).or_raise()? {
        return Ok(Some(taken));
    }
    match deadline(timeout) {
        Deadline::AT_ONCE => Ok(None),
        end => {
            let taken = wait(py, end, of, |slice| tried(until(slice)))?;
            match (py.check_signals(), taken) {
                (Err(e), Some(taken)) => {
                    give_back(taken);
                    Err(e)
                }
                (checked, taken) => checked.map(|()| taken),
            }
        }
    }
}

/// Lets a mutex go as it was taken.
fn give_back(lock: &RawMutex, how: Acquired) {
    let _ = match how {
        Acquired::OwnerDied => lock.unlock_in_disorder(),
        _ => lock.unlock(),
    };
}

/// The same of a reader/writer lock, taken for writing.
fn give_back_writing(lock: &RawRwLock, how: Acquired) {
    let _ = match how {
        Acquired::OwnerDied => lock.unlock_in_disorder(),
        _ => lock.unlock_write(),
    };
}

/// Whether a ``with`` ended without an exception: else the data may be half written.
fn in_order(exception: &Bound<'_, PyTuple>) -> bool {
    exception.get_item(0).map_or(true, |kind| kind.is_none())
}

/// A mutex whose owner may be killed at any instruction; the next one gets the lock and the data.
///
/// With a `type`, as of ``Publisher`` and of fixed size, it protects data in shared memory:
/// ``with mutex as data: data[0] += 1``. It is the same lock as that of Rust and C++ with that
/// type.
///
/// If the last owner died inside, the data may be half written: ``owner_died`` is true until
/// ``mark_consistent`` is called. If it is released without that, nobody gets the lock any more
/// (``Unrecoverable``) until ``Node.remove_lock``. `repair`, called with the data, does both; if it
/// raises, the lock is for the next one to repair. A ``with`` that an exception leaves counts as an
/// owner that died inside.
///
/// With `inherits_priority`, for threads with real-time priorities, the holder runs with the
/// priority of the waiter; it is another lock, with no condition variable.
///
/// >>> node = outlive.Node("planner")
/// >>> account = outlive.RobustMutex(node, "/account", np.int64, (2,), initial=[60, 40])
/// >>> with account as money:
/// ...     if account.owner_died:  # in the midst of a transfer
/// ...         money[1] = 100 - money[0]
/// ...         account.mark_consistent()
/// ...     money += [-10, 10]
/// ...     money.tolist()
/// [50, 50]
#[pyclass(frozen, module = "outlive")]
pub(crate) struct RobustMutex {
    inner: Common<RawMutex>,
    data: Data,
}

impl RobustMutex {
    /// The lock without its data.
    pub(crate) fn raw(&self) -> PyResult<Arc<Opened<RawMutex>>> {
        self.inner.get()
    }

    /// For what is open, closed, and called how.
    pub(crate) fn common(&self) -> &Common<RawMutex> {
        &self.inner
    }

    /// After `lock` was taken: repairs what a dead owner left, if `repair` was given. On failure,
    /// and when it was closed meanwhile, it is let go.
    pub(crate) fn taken(slf: &Bound<'_, Self>, lock: &RawMutex, how: Acquired) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let done = this
            .inner
            .note_holder(true)
            .and_then(|()| this.data.taken(py, how, || Self::data(slf), || lock.mark_consistent()));
        if done.is_err() {
            this.data.views.seal(py);
            give_back(lock, how);
            this.inner.forget_holder(py);
        }
        done
    }

    /// Runs `wait`, which lets go of the lock to wait for a condition; on failure it did not.
    pub(crate) fn let_go_to_wait<T>(
        &self,
        wait: impl FnOnce() -> outlive::Result<T>,
    ) -> outlive::Result<T> {
        self.data.views.begin_wait();
        wait().inspect_err(|_| self.data.views.end_wait())
    }

    /// After that: takes `lock` again, however long it takes, unless it is closed meanwhile. What
    /// handlers of signals raise is for `ended`.
    pub(crate) fn take_again(
        slf: &Bound<'_, Self>,
        lock: &RawMutex,
        ended: &mut Option<PyErr>,
    ) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let failed = loop {
            if this.inner.is_closed() {
                break this.inner.closed();
            }
            let taken = py.detach(|| tried(lock.lock_until(Deadline::after(SLICE))));
            match this.inner.named(taken).or_raise() {
                Ok(Some(how)) => {
                    this.data.views.end_wait();
                    return Self::taken(slf, lock, how);
                }
                Ok(None) => {}
                Err(e) => break e,
            }
            if let Err(e) = py.check_signals() {
                ended.get_or_insert(e);
            }
        };
        this.data.views.give_up_wait(py);
        this.inner.forget_holder(py);
        Err(failed)
    }

    /// Lets go of `lock` by `unlock`.
    fn let_go(
        &self,
        py: Python<'_>,
        lock: &RawMutex,
        unlock: impl FnOnce(&RawMutex) -> outlive::Result<()>,
    ) -> outlive::Result<()> {
        self.data.views.seal_own(py);
        let done = unlock(lock);
        if done.as_ref().map_or_else(|e| e.kind() == ErrorKind::NotOwned, |()| true) {
            self.inner.forget_holder(py);
        }
        done
    }
}

#[pymethods]
impl RobustMutex {
    #[new]
    #[pyo3(signature = (node, name, r#type=None, shape=None, *, type_name=None, initial=None,
                        repair=None, inherits_priority=false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        node: &Bound<'_, Node>,
        name: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
        inherits_priority: bool,
    ) -> PyResult<Self> {
        let of = (r#type, shape, type_name);
        let (inner, data) = Data::open(
            node,
            format!("RobustMutex {name}"),
            of,
            initial,
            repair,
            |node| match inherits_priority {
                true => RawMutex::open_pi(node, name),
                false => RawMutex::open(node, name),
            },
            |node, of, first| match inherits_priority {
                true => RawMutex::open_pi_with(node, name, of, first),
                false => RawMutex::open_with(node, name, of, first),
            },
        )?;
        Ok(Self { inner, data })
    }

    /// Takes the lock; False when `timeout` seconds passed first. 0 never waits.
    ///
    /// ``Deadlock``: this thread holds it. ``Unrecoverable``: see above.
    ///
    /// >>> arm = outlive.RobustMutex(node, "/arm")
    /// >>> if arm.acquire(timeout=1.0):
    /// ...     try:
    /// ...         print("the arm is mine")
    /// ...     finally:
    /// ...         arm.release()
    /// the arm is mine
    #[pyo3(signature = (timeout=None))]
    fn acquire(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        let (of, lock) = (&slf.get().inner, &*slf.get().raw()?);
        let (now, until) = (|| lock.try_lock(), |end| lock.lock_until(end));
        let got = take(slf.py(), of, timeout, now, until, |how| give_back(lock, how))?;
        let Some(got) = got else { return Ok(false) };
        Self::taken(slf, lock, got).map(|()| true)
    }

    /// Releases the lock. ``NotOwned`` when this thread does not hold it.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let lock = self.inner.get_held()?;
        self.inner.named(self.let_go(py, &lock, RawMutex::unlock)).or_raise()
    }

    /// Unmaps the lock's memory, once the threads that hold it have released it or ended. Those
    /// that wait for it get ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.data.traverse(&visit)
    }

    fn __clear__(&self) {
        self.data.clear();
    }

    /// For the thread that holds it: whether its last owner died inside and the data is not
    /// repaired.
    #[getter]
    fn owner_died(&self) -> bool {
        self.data.owner_died.load(Ordering::Relaxed)
    }

    /// For the thread that holds it: declares the data consistent again.
    /// Data that is consistent already stays so.
    ///
    /// >>> account = outlive.RobustMutex(node, "/account", np.int64, (2,), initial=[60, 40])
    /// >>> try:
    /// ...     with account as money:
    /// ...         money[0] -= 10
    /// ...         raise ValueError  # as kill -9
    /// ... except ValueError:
    /// ...     with account as money:
    /// ...         money[1] = 100 - money[0]
    /// ...         account.mark_consistent()
    /// ...         money.tolist()
    /// [50, 50]
    fn mark_consistent(&self) -> PyResult<()> {
        self.inner.named(self.inner.get_held()?.mark_consistent()).or_raise()?;
        self.data.owner_died.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// The protected data as an array in shared memory, for the thread that holds the lock; None
    /// without a type. When the lock is released, and in a forked child, it becomes read-only.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (data, lock) = (&slf.get().data, slf.get().raw()?);
        if data.codec.is_none() {
            return Ok(None);
        }
        data.must_be_held(&slf.get().inner.what())?;
        data.view(slf.py(), lock.keep(), lock.data(), true)
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::acquire(slf, None)?;
        match Self::data(slf) {
            Ok(data) => Ok(data.unwrap_or_else(|| slf.clone().into_any())),
            Err(e) => {
                let _ = slf.get().release(slf.py());
                Err(e)
            }
        }
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if in_order(exception) {
            return self.release(py);
        }
        // It may be lost, as after a wait for a condition: the exception tells why, and stays. Not
        // so that of a generator which another thread closes.
        let Some(lock) = self.inner.held() else { return Ok(()) };
        let closes = exception.get_item(0)?.is(py.get_type::<PyGeneratorExit>());
        match self.let_go(py, &lock, RawMutex::unlock_in_disorder) {
            Err(e) if e.kind() == ErrorKind::NotOwned && !closes => Ok(()),
            done => self.inner.named(done).or_raise(),
        }
    }
}

/// A reader/writer lock whose holders may be killed at any instruction; else as ``RobustMutex``.
///
/// ``with lock.read() as data`` for any number of readers, ``with lock.write() as data`` for one
/// writer. A dead reader keeps nobody out; after a dead writer readers get ``OwnerDied`` until a
/// writer has repaired the data.
///
/// >>> node = outlive.Node("planner")
/// >>> gains = outlive.RobustRwLock(node, "/gains", np.float64, (3,))
/// >>> with gains.write() as pid:
/// ...     pid[:] = 1.0, 0.5, 0.1
/// >>> with gains.read(timeout=1.0) as pid:
/// ...     pid.tolist(), pid.flags.writeable
/// ([1.0, 0.5, 0.1], False)
#[pyclass(frozen, module = "outlive")]
pub(crate) struct RobustRwLock {
    inner: Common<RawRwLock>,
    data: Data,
}

impl RobustRwLock {
    fn view<'py>(slf: &Bound<'py, Self>, writable: bool) -> PyResult<Option<Bound<'py, PyAny>>> {
        let lock = slf.get().inner.get()?;
        slf.get().data.view(slf.py(), lock.keep(), lock.data(), writable)
    }

    /// Lets it go by `unlock`, after closing, too.
    fn let_go(
        &self,
        py: Python<'_>,
        unlock: impl FnOnce(&RawRwLock) -> outlive::Result<()>,
    ) -> PyResult<()> {
        let lock = self.inner.get_held()?;
        self.inner.named(unlock(&lock)).or_raise()?;
        self.inner.forget_holder(py);
        Ok(())
    }

    fn let_go_of_writing(
        &self,
        py: Python<'_>,
        unlock: impl FnOnce(&RawRwLock) -> outlive::Result<()>,
    ) -> PyResult<()> {
        self.data.views.seal_own(py);
        self.let_go(py, unlock)
    }
}

#[pymethods]
impl RobustRwLock {
    #[new]
    #[pyo3(signature = (node, name, r#type=None, shape=None, *, type_name=None, initial=None,
                        repair=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        node: &Bound<'_, Node>,
        name: &str,
        r#type: Option<Bound<'_, PyAny>>,
        shape: Option<Bound<'_, PyAny>>,
        type_name: Option<&str>,
        initial: Option<Bound<'_, PyAny>>,
        repair: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let of = (r#type, shape, type_name);
        let what = format!("RobustRwLock {name}");
        let bare = |node: &_| RawRwLock::open(node, name);
        let typed =
            |node: &_, of: &_, first: Option<&_>| RawRwLock::open_with(node, name, of, first);
        let (inner, data) = Data::open(node, what, of, initial, repair, bare, typed)?;
        Ok(Self { inner, data })
    }

    /// For ``with``: takes it for reading and returns the data, read-only. ``Timeout`` after
    /// `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn read(slf: Py<Self>, #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>) -> Guard {
        Guard { lock: slf, writes: false, timeout }
    }

    /// For ``with``: takes it for writing and returns the data.
    #[pyo3(signature = (timeout=None))]
    fn write(slf: Py<Self>, #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>) -> Guard {
        Guard { lock: slf, writes: true, timeout }
    }

    /// Takes it for reading; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn acquire_read(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        let (of, lock) = (&self.inner, &*self.inner.get()?);
        let (now, until) = (|| lock.try_read(), |end| lock.read_until(end));
        let got = take(py, of, timeout, now, until, |()| drop(lock.unlock_read()))?;
        let Some(()) = got else { return Ok(false) };
        let noted = of.note_holder(false);
        if noted.is_err() {
            let _ = lock.unlock_read();
        }
        noted.map(|()| true)
    }

    /// Ends reading.
    fn release_read(&self, py: Python<'_>) -> PyResult<()> {
        self.let_go(py, RawRwLock::unlock_read)
    }

    /// Takes it for writing; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn acquire_write(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        let (this, py) = (slf.get(), slf.py());
        let (of, lock) = (&this.inner, &*this.inner.get()?);
        let (now, until) = (|| lock.try_write(), |end| lock.write_until(end));
        let got = take(py, of, timeout, now, until, |how| give_back_writing(lock, how))?;
        let Some(got) = got else { return Ok(false) };
        let done = of.note_holder(true).and_then(|()| {
            this.data.taken(py, got, || Self::view(slf, true), || lock.mark_consistent())
        });
        if done.is_err() {
            this.data.views.seal(py);
            give_back_writing(lock, got);
            of.forget_holder(py);
        }
        done.map(|()| true)
    }

    /// Ends writing.
    fn release_write(&self, py: Python<'_>) -> PyResult<()> {
        self.let_go_of_writing(py, RawRwLock::unlock_write)
    }

    /// Unmaps the lock's memory, once the threads that hold it have released it or ended. Those
    /// that wait for it get ``InvalidArgument``.
    fn close(&self, py: Python<'_>) {
        self.inner.close(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.data.traverse(&visit)
    }

    fn __clear__(&self) {
        self.data.clear();
    }

    /// For the writer: whether a writer died inside and the data is not repaired.
    #[getter]
    fn owner_died(&self) -> bool {
        self.data.owner_died.load(Ordering::Relaxed)
    }

    /// For the writer: declares the data consistent again.
    /// Data that is consistent already stays so.
    fn mark_consistent(&self) -> PyResult<()> {
        self.inner.named(self.inner.get_held()?.mark_consistent()).or_raise()?;
        self.data.owner_died.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// A reader/writer lock about to be taken by ``with``.
///
/// >>> lock = outlive.RobustRwLock(node, "/map", np.uint8, (3,))
/// >>> guard = lock.read(timeout=1.0)  # takes nothing yet
/// >>> with guard as cells:
/// ...     cells.tolist()
/// [0, 0, 0]
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
            return lock.get().inner.named(Err(late.into())).or_raise();
        }
        match RobustRwLock::view(lock, self.writes) {
            Ok(data) => Ok(data.unwrap_or_else(|| lock.clone().into_any())),
            Err(e) => {
                let _ = match self.writes {
                    true => lock.get().release_write(py),
                    false => lock.get().release_read(py),
                };
                Err(e)
            }
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.lock)
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let lock = self.lock.get();
        if !self.writes {
            return lock.release_read(py);
        }
        if in_order(exception) {
            return lock.release_write(py);
        }
        lock.let_go_of_writing(py, RawRwLock::unlock_in_disorder)
    }
}
