//! What only one thread may use at a time, what any may, how both are closed, and waiting that lets
//! signals through.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use outlive::{Deadline, ErrorKind};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::error::{OrRaise, fail};
use crate::process::{self, Close};

/// Longest wait between two looks for signals.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// What may be kept beyond its closing.
pub(crate) trait Inner: Send {
    /// Whether a forked child may use its copy.
    const IS_COPIED: bool = false;

    /// It was closed; `true` if something lent from it keeps it for now.
    fn closed(&mut self) -> bool {
        false
    }
}

impl Inner for outlive::Subscriber<[u8]> {}
impl Inner for outlive::Producer<[u8]> {}
impl Inner for outlive::Client<[u8], [u8]> {}
impl Inner for outlive::Server<[u8], [u8]> {}
impl Inner for outlive::Watch {}
impl Inner for outlive::WaitSet {}
impl Inner for outlive::Timer {
    const IS_COPIED: bool = true;
}

/// A port of the core, or nothing once it is closed.
#[derive(Debug)]
pub(crate) struct Port<T: Inner>(Arc<Slot<T>>);

#[derive(Debug)]
struct Slot<T: Inner> {
    inner: Mutex<Option<T>>,
    /// Its class and name, for errors.
    what: Box<str>,
    /// Set for good by `close`; the thread that has the port then takes it away.
    closing: AtomicBool,
    /// What kept it may be gone: the thread that has the port checks once more.
    again: AtomicBool,
    /// How many threads are dropping it.
    drops: AtomicUsize,
    /// The process whose it is, and the `generation` of that.
    owner: u32,
    born: u32,
    /// Tasks of asyncio that await it, an `outlive._aio.Tasks`.
    tasks: Mutex<Option<Py<PyAny>>>,
}

/// A port that this thread has.
pub(crate) struct Held<'a, T: Inner> {
    guard: ManuallyDrop<MutexGuard<'a, Option<T>>>,
    slot: &'a Slot<T>,
}

#[cold]
pub(crate) fn closed(what: &str) -> PyErr {
    let why = || fail(ErrorKind::InvalidArgument, "using", what, "it is closed");
    process::ends_thread().unwrap_or_else(why)
}

#[cold]
pub(crate) fn forked(what: &str) -> PyErr {
    let remedy = "it is the parent's: open a node in this process";
    fail(ErrorKind::ForkedChild, "using", what, remedy)
}

impl<T: Inner> Slot<T> {
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<T>>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(e)) => Some(e.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn is_forked(&self) -> bool {
        std::process::id() != self.owner
    }

    /// Why nobody gets it now.
    #[cold]
    fn busy(&self) -> PyErr {
        if self.is_forked() {
            // A thread that is not here had it as its process was forked.
            return forked(&self.what);
        }
        let remedy = "another thread is in a call on it: give each its own";
        fail(ErrorKind::WouldBlock, "using", &self.what, remedy)
    }

    fn wake_tasks(&self, py: Python<'_>) {
        let tasks = {
            let tasks = self.tasks.lock().unwrap_or_else(|e| e.into_inner());
            tasks.as_ref().map(|tasks| tasks.clone_ref(py))
        };
        if let Some(Err(e)) = tasks.map(|tasks| tasks.call_method0(py, "wake")) {
            e.write_unraisable(py, None);
        }
    }

    fn leave_if_closing(&self) {
        // Pairs with `close`.
        fence(Ordering::SeqCst);
        if self.is_closing() {
            self.again.store(true, Ordering::Release);
            // Pairs with `take_away`: we get the lock there, or who has it sees the store.
            fence(Ordering::SeqCst);
            self.take_away();
        }
    }

    /// It is closing: takes it away, if nobody has it; `false` while a thread has, or drops it.
    fn take_away(&self) -> bool {
        loop {
            let Some(mut guard) = self.try_lock() else { return false };
            self.again.swap(false, Ordering::AcqRel);
            if !guard.as_mut().is_some_and(T::closed) {
                let inner = guard.take();
                self.drops.fetch_add(1, Ordering::Relaxed);
                drop(guard);
                drop(inner);
                return self.drops.fetch_sub(1, Ordering::AcqRel) == 1;
            }
            drop(guard);
            // Pairs with `leave_if_closing`.
            fence(Ordering::SeqCst);
            if !self.again.load(Ordering::Relaxed) {
                return true;
            }
        }
    }
}

impl<T: Inner> Close for Slot<T> {
    fn close(&self, py: Python<'_>) -> bool {
        self.closing.store(true, Ordering::Relaxed);
        // Either we get the lock below, or whoever has it sees the store after letting go.
        fence(Ordering::SeqCst);
        self.wake_tasks(py);
        py.detach(|| self.take_away())
    }
}

impl<T: Inner> Port<T> {
    pub(crate) fn new(inner: T, what: String) -> Self {
        let (inner, what) = (Mutex::new(Some(inner)), what.into());
        let (closing, again, drops) = Default::default();
        let (owner, born, tasks) = (std::process::id(), process::generation(), Mutex::default());
        Self(Arc::new(Slot { inner, what, closing, again, drops, owner, born, tasks }))
    }

    /// The same port.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// For the node that closes it.
    pub(crate) fn weak(&self) -> Weak<dyn Close>
    where
        T: 'static,
    {
        let slot: Arc<dyn Close> = Arc::clone(&self.0) as Arc<dyn Close>;
        Arc::downgrade(&slot)
    }

    /// Never waits: another thread may hold it while it waits for a message.
    #[inline]
    pub(crate) fn hold(&self) -> PyResult<Held<'_, T>> {
        let slot = &*self.0;
        if slot.is_closing() {
            return Err(closed(&slot.what));
        }
        if slot.born != process::generation() && !T::IS_COPIED {
            return Err(forked(&slot.what));
        }
        let Some(guard) = slot.try_lock() else { return Err(slot.busy()) };
        let held = Held { guard: ManuallyDrop::new(guard), slot };
        if held.guard.is_none() {
            return Err(closed(&slot.what));
        }
        Ok(held)
    }

    /// Takes it away, or has the thread that is in a call on it do so; that call raises.
    pub(crate) fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.0.is_closing()
    }

    /// Its class and name.
    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }

    /// Whether this is a forked child of the process whose it is.
    pub(crate) fn is_forked(&self) -> bool {
        self.0.is_forked()
    }

    /// Runs `tidy` with it, closed or not, unless a thread has it: that thread takes it away if it
    /// is closing.
    pub(crate) fn look_after(&self, tidy: impl FnOnce(&mut T)) {
        if let Some(mut guard) = self.0.try_lock()
            && let Some(inner) = &mut *guard
        {
            tidy(inner);
        }
        self.leave_if_closing();
    }

    /// After something that kept it is gone, or after it was held.
    pub(crate) fn leave_if_closing(&self) {
        self.0.leave_if_closing();
    }

    /// Waits until it is free. Only where its holder neither waits nor needs the interpreter.
    pub(crate) fn hold_soon(&self) -> MutexGuard<'_, Option<T>> {
        self.0.inner.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Has the tasks that await it look again.
    pub(crate) fn wake_tasks(&self, py: Python<'_>) {
        self.0.wake_tasks(py);
    }

    /// The tasks that await it, made by `outlive._aio` when the first one does.
    pub(crate) fn tasks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let lock = || self.0.tasks.lock().unwrap_or_else(|e| e.into_inner());
        let known = lock().as_ref().map(|tasks| tasks.clone_ref(py));
        if let Some(tasks) = known {
            return Ok(tasks);
        }
        // Made without the lock, and dropped without it if another thread was quicker: nothing of
        // Python runs under it.
        let made = py.import("outlive._aio")?.call_method0("Tasks")?.unbind();
        let kept = lock().get_or_insert_with(|| made.clone_ref(py)).clone_ref(py);
        drop(made);
        Ok(kept)
    }

    /// For the garbage collector, on behalf of the one object that owns the port.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.tasks.try_lock().map_or(Ok(()), |tasks| visit.call(&*tasks))
    }
}

impl<T: Inner> Held<'_, T> {
    /// Its error, once another thread has closed the port.
    pub(crate) fn must_be_open(&self) -> PyResult<()> {
        if self.slot.is_closing() { Err(closed(&self.slot.what)) } else { Ok(()) }
    }

    /// Calls `look` without the interpreter's lock until it finds something or the deadline passes,
    /// in slices between which signals are handled. `look` gets the end of its slice. It must not
    /// sleep before it takes what it finds: what the handler of a signal raises meanwhile would
    /// take that with it.
    pub(crate) fn wait<R: Send>(
        &mut self,
        py: Python<'_>,
        deadline: Deadline,
        mut look: impl FnMut(&mut T, Deadline) -> outlive::Result<Option<R>> + Send,
    ) -> PyResult<Option<R>> {
        let slot = self.slot;
        let inner = &mut **self;
        loop {
            let slice = deadline.min(Deadline::after(SLICE));
            let found = py.detach(|| look(inner, slice)).or_raise()?;
            if found.is_some() || deadline.has_passed() {
                return Ok(found);
            }
            py.check_signals()?;
            if slot.is_closing() {
                return Err(closed(&slot.what));
            }
        }
    }

    /// As `wait`, for a call that says `Timeout` at the end of its slice. Its own words at the end.
    pub(crate) fn wait_in_slices<R: Send>(
        &mut self,
        py: Python<'_>,
        deadline: Deadline,
        mut call: impl FnMut(&mut T, Deadline) -> outlive::Result<R> + Send,
    ) -> PyResult<R> {
        let slot = self.slot;
        let inner = &mut **self;
        loop {
            let slice = deadline.min(Deadline::after(SLICE));
            match py.detach(|| call(inner, slice)) {
                Err(e) if e.kind() == ErrorKind::Timeout && slice < deadline => {
                    py.check_signals()?;
                }
                done => return done.or_raise(),
            }
            if slot.is_closing() {
                return Err(closed(&slot.what));
            }
        }
    }

    /// As `wait`, for what takes a time span and says whether it came.
    pub(crate) fn wait_until_true(
        &mut self,
        py: Python<'_>,
        timeout: Option<f64>,
        mut came: impl FnMut(&mut T, Duration) -> outlive::Result<bool> + Send,
    ) -> PyResult<bool> {
        let found = self.wait(py, deadline(timeout), |inner, slice| {
            let left = slice.remaining().max(Duration::from_nanos(1));
            Ok(came(inner, left)?.then_some(()))
        })?;
        Ok(found.is_some())
    }
}

impl<T: Inner> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: dropped here and nowhere else, and not used after.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
        self.slot.leave_if_closing();
    }
}

impl<T: Inner> std::ops::Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &**self.guard {
            Some(inner) => inner,
            None => unreachable!("checked by hold"),
        }
    }
}

impl<T: Inner> std::ops::DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut **self.guard {
            Some(inner) => inner,
            None => unreachable!("checked by hold"),
        }
    }
}

/// What any number of threads use at once, until it is closed; calls under way end first. What
/// threads hold of it, they can let go of afterwards, too.
#[derive(Debug)]
pub(crate) struct Common<T>(Arc<Mutex<Shared<T>>>);

/// What calls have of it, each while it lasts.
#[derive(Debug)]
pub(crate) struct Opened<T> {
    inner: Arc<T>,
    /// Gone after it: who waits for that knows that it is closed in full.
    until: Arc<()>,
}

impl<T> Opened<T> {
    /// For what keeps it beyond a call, as arrays do: the end of the interpreter waits for calls.
    pub(crate) fn keep(&self) -> Arc<T> {
        Arc::clone(&self.inner)
    }
}

impl<T> std::ops::Deref for Opened<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

#[derive(Debug)]
struct Shared<T> {
    /// None once it is closed and nobody holds anything of it.
    inner: Option<Arc<Opened<T>>>,
    /// What calls under way still have then.
    in_calls: Weak<()>,
    closed: bool,
    /// The threads that hold something of it, one entry for each hold.
    holders: Vec<ThreadId>,
    /// The `generation` of the process whose it is.
    born: u32,
    /// Its class and name, for errors.
    what: Arc<str>,
}

/// A thread that has held something. As it ends, its entries go: dead threads hold nothing.
struct Holder(ThreadId);

impl Drop for Holder {
    fn drop(&mut self) {
        process::thread_ended(self.0);
    }
}

thread_local! {
    static HOLDER: Holder = Holder(std::thread::current().id());
}

impl<T> Shared<T> {
    /// What must be dropped, once `self` is released.
    fn take_unused(&mut self) -> Option<Arc<Opened<T>>> {
        let used = !self.holders.is_empty() && !process::is_ending();
        let unused = if self.closed && !used { self.inner.take() } else { None };
        if let Some(unused) = &unused {
            self.in_calls = Arc::downgrade(&unused.until);
        }
        unused
    }
}

impl<T: Send + Sync + 'static> Common<T> {
    pub(crate) fn new(inner: T, what: String) -> Self {
        let opened = Opened { inner: Arc::new(inner), until: Arc::default() };
        let inner = Some(Arc::new(opened));
        let (in_calls, closed, holders) = Default::default();
        let (born, what) = (process::generation(), what.into());
        Self(Arc::new(Mutex::new(Shared { inner, in_calls, closed, holders, born, what })))
    }

    /// Never held while the interpreter's lock is let go of, as making an exception may do: the
    /// next thread would wait here with that lock.
    fn shared(&self) -> MutexGuard<'_, Shared<T>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn get(&self) -> PyResult<Arc<Opened<T>>> {
        let open = {
            let shared = self.shared();
            shared.inner.clone().filter(|_| !shared.closed)
        };
        self.checked(open)
    }

    fn checked<O>(&self, open: Option<O>) -> PyResult<O> {
        let open = open.ok_or_else(|| self.closed())?;
        let born = self.shared().born;
        if born == process::generation() { Ok(open) } else { Err(forked(&self.what())) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared().closed
    }

    #[cold]
    pub(crate) fn closed(&self) -> PyErr {
        closed(&self.what())
    }

    /// Its class and name.
    pub(crate) fn what(&self) -> Arc<str> {
        Arc::clone(&self.shared().what)
    }

    /// What the core answers, which does not know the name of a lock, and says what to do in Rust.
    pub(crate) fn named<V>(&self, answer: outlive::Result<V>) -> outlive::Result<V> {
        answer.map_err(|e| {
            let text = e.to_string();
            let Some((doing, _)) = text.split_once(" a lock: ") else { return e };
            let what = self.what();
            let name = what.split_once(' ').map_or("", |(_, name)| name);
            let remedy = match e.kind() {
                ErrorKind::Deadlock => "release what this thread holds of it first".into(),
                ErrorKind::Unrecoverable if e.remedy().contains("::") => format!(
                    "call node.remove_lock('{name}') or run 'outlive lock remove {name}', then \
                     open it again"
                ),
                _ => e.remedy().into_owned(),
            };
            outlive::Error::new(e.kind(), doing, &*what, remedy)
        })
    }

    /// Notes that this thread holds it, which fails once it is closed. `alone`: the thread that
    /// held it before does not.
    pub(crate) fn note_holder(&self, alone: bool) -> PyResult<()> {
        let mut shared = self.shared();
        if shared.closed {
            drop(shared);
            return Err(self.closed());
        }
        if alone {
            shared.holders.clear();
        }
        shared.holders.push(HOLDER.with(|holder| holder.0));
        Ok(())
    }

    /// For letting go of what is held: there after closing, too, while somebody holds something.
    pub(crate) fn held(&self) -> Option<Arc<Opened<T>>> {
        self.shared().inner.clone()
    }

    pub(crate) fn get_held(&self) -> PyResult<Arc<Opened<T>>> {
        self.checked(self.held())
    }

    /// Notes that this thread has let go of it.
    pub(crate) fn forget_holder(&self, py: Python<'_>) {
        let unused = {
            let mut shared = self.shared();
            let me = std::thread::current().id();
            if let Some(at) = shared.holders.iter().rposition(|holder| *holder == me) {
                shared.holders.swap_remove(at);
            }
            shared.take_unused()
        };
        if unused.is_some() {
            py.detach(|| drop(unused));
        }
    }

    /// Lets go of it.
    pub(crate) fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    pub(crate) fn weak(&self) -> Weak<dyn Close> {
        let inner: Arc<dyn Close> = Arc::clone(&self.0) as Arc<dyn Close>;
        Arc::downgrade(&inner)
    }
}

impl<T: Send + Sync> Close for Mutex<Shared<T>> {
    fn close(&self, py: Python<'_>) -> bool {
        let (unused, in_calls) = {
            let mut shared = self.lock().unwrap_or_else(|e| e.into_inner());
            shared.closed = true;
            (shared.take_unused(), shared.in_calls.clone())
        };
        py.detach(|| drop(unused));
        in_calls.strong_count() == 0
    }

    fn forget_thread(&self, thread: ThreadId) {
        let mut shared = self.lock().unwrap_or_else(|e| e.into_inner());
        shared.holders.retain(|holder| *holder != thread);
        let unused = shared.take_unused();
        drop(shared);
        drop(unused);
    }
}

/// Seconds from Python as a time span, where a negative one has no meaning.
pub(crate) fn span(it: f64, what: &str) -> PyResult<Duration> {
    match it >= 0.0 {
        true => Ok(seconds(it)),
        false => {
            let why = "it is negative: use 0 or more seconds";
            Err(fail(ErrorKind::InvalidArgument, "taking", &format!("the {what} {it}"), why))
        }
    }
}

/// Seconds from Python as a time span; a negative one is none.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Seconds from Python as an instant; `None` is for ever, nothing or less is not at all.
pub(crate) fn deadline(timeout: Option<f64>) -> Deadline {
    match timeout {
        None => Deadline::NEVER,
        Some(s) if s <= 0.0 => Deadline::AT_ONCE,
        Some(s) => Deadline::after(seconds(s)),
    }
}

/// As `Held::wait`, for what is not held.
pub(crate) fn wait<L: Send + Sync + 'static, T: Send>(
    py: Python<'_>,
    deadline: Deadline,
    of: &Common<L>,
    mut look: impl FnMut(Deadline) -> outlive::Result<Option<T>> + Send,
) -> PyResult<Option<T>> {
    loop {
        let slice = deadline.min(Deadline::after(SLICE));
        let found = of.named(py.detach(|| look(slice))).or_raise()?;
        if found.is_some() || deadline.has_passed() {
            return Ok(found);
        }
        py.check_signals()?;
        if of.is_closed() {
            return Err(of.closed());
        }
    }
}
