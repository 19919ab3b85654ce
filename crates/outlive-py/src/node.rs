//! Nodes, and watching them.

use std::ops::Deref;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Weak};
use std::thread::ThreadId;
use std::time::Duration;

use outlive::topic::segments::{self, Segment, SegmentWatcher, Unmap};
use outlive::{AtExit, ErrorKind, Node as CoreNode, NodeBuilder, NodeId, Watch as CoreWatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{OrRaise, fail};
use crate::port::{Close, Port, closed};

/// Now, ns of CLOCK_MONOTONIC: the clock of all time stamps.
#[pyfunction]
pub(crate) fn now_ns() -> u64 {
    outlive::now_ns()
}

/// Which domain is meant.
pub(crate) fn settings(
    domain: Option<String>,
    root: Option<PathBuf>,
    group: Option<u32>,
) -> NodeBuilder {
    let mut builder = CoreNode::builder();
    if let Some(domain) = domain {
        builder = builder.domain(domain);
    }
    if let Some(root) = root {
        builder = builder.root(root);
    }
    if let Some(group) = group {
        builder = builder.group(group);
    }
    builder
}

/// A process's membership in a domain. Any thread may use it.
///
/// After ``os.fork`` the child is not the node: every call on an inherited object raises
/// ``ForkedChild``. Open a node in each process; ``spawn`` and ``forkserver`` need that, too.
///
/// Its domain is the one given, or ``$OUTLIVE_DOMAIN``, or ``default``; domains do not see each
/// other.
///
/// ``with outlive.Node("camera") as node: ...`` closes it, and everything that was opened with it.
/// At the end of the interpreter all nodes are closed: others see that they left.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Node {
    shared: Arc<Shared>,
    id: u64,
    name: String,
}

/// What of a node is closed.
struct Shared {
    inner: Mutex<Option<CoreNode>>,
    /// What was opened with it.
    opened: Mutex<Vec<Weak<dyn Close>>>,
    /// One more for each call that has it.
    calls: Arc<()>,
}

/// The node of the core for a call. The end of the interpreter waits for it.
pub(crate) struct InCall {
    node: CoreNode,
    /// Goes after the node.
    _call: Arc<()>,
}

impl Deref for InCall {
    type Target = CoreNode;

    fn deref(&self) -> &CoreNode {
        &self.node
    }
}

/// What a process has opened. A forked child has its own: what it has inherited is not its own to
/// close, and a thread that is not there may have had a list locked.
struct Process {
    id: u32,
    /// All of it, nodes too: who keeps a port need not keep its `Node`.
    opened: Mutex<Vec<Weak<dyn Close>>>,
    /// Its nodes, closed ones too: a sample or a permit keeps them.
    nodes: Mutex<Vec<Joined>>,
    /// One more for each call that opens a node.
    opening: Arc<()>,
    /// The interpreter ends.
    ending: AtomicBool,
}

/// A node of the core that may not have left yet.
struct Joined {
    at_exit: AtExit,
    /// There until it has.
    file: PathBuf,
}

impl Joined {
    fn new(node: &CoreNode) -> Self {
        let domain = outlive::Domain::of_node(node);
        let file = domain.dir().join("nodes").join(node.id().get().to_string());
        Self { at_exit: node.at_exit(), file }
    }

    fn may_be_there(&self) -> bool {
        self.file.try_exists().unwrap_or(true)
    }
}

/// The last one, which is this process's or that of a process it was forked from. Never freed.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

impl Process {
    fn last() -> Option<&'static Self> {
        // SAFETY: null, or made by `own` and never freed.
        unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
    }

    /// This process's, if it has opened something.
    fn current() -> Option<&'static Self> {
        Self::last().filter(|last| last.is_own())
    }

    fn is_own(&self) -> bool {
        self.id == std::process::id()
    }

    /// This process's. The interpreter's lock lets no two threads make one.
    fn own(_py: Python<'_>) -> &'static Self {
        if let Some(own) = Self::current() {
            return own;
        }
        let id = std::process::id();
        let (opened, nodes, opening, ending) = Default::default();
        let own = Box::leak(Box::new(Self { id, opened, nodes, opening, ending }));
        PROCESS.store(own, Ordering::Release);
        own
    }

    /// Notes one that is to leave at the end, whatever refers to it then.
    fn note_node(&self, node: &CoreNode) {
        let mut nodes = lock(&self.nodes);
        if nodes.len() == nodes.capacity() {
            nodes.retain(Joined::may_be_there);
        }
        nodes.push(Joined::new(node));
    }

    /// Closes what it has opened, and waits for calls of other threads to end, two seconds at most:
    /// on a busy machine they need more than the 100 ms after which they look.
    fn close(&self, py: Python<'_>) {
        for _ in 0..200 {
            if self.has_closed(py) {
                return;
            }
            py.detach(|| std::thread::sleep(Duration::from_millis(10)));
        }
    }

    /// Closes all there is by now; `false` while a thread is in a call.
    fn has_closed(&self, py: Python<'_>) -> bool {
        // Before the look at what there is: those calls add to it.
        let none_opens = Arc::strong_count(&self.opening) == 1;
        let all: Vec<_> = lock(&self.opened).iter().filter_map(Weak::upgrade).collect();
        let open = all.iter().filter(|one| !one.close(py)).count();
        none_opens && open == 0
    }

    /// All its nodes leave. The interpreter frees neither what a daemon thread has nor the names
    /// of the main program that it runs in.
    fn leave(&self, py: Python<'_>) {
        let nodes = std::mem::take(&mut *lock(&self.nodes));
        py.detach(|| nodes.iter().for_each(|node| node.at_exit.leave()));
    }
}

/// Notes what `_close_all` is to close.
fn note_opened(py: Python<'_>, one: Weak<dyn Close>) {
    note(&mut lock(&Process::own(py).opened), one);
}

/// Not for longer than a statement that makes no exception: see `port::Common::shared`.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Adds one to a list that forgets those that are gone.
fn note(list: &mut Vec<Weak<dyn Close>>, one: Weak<dyn Close>) {
    if list.len() == list.capacity() {
        list.retain(|known| known.strong_count() > 0);
    }
    list.push(one);
}

impl Close for Shared {
    /// Closes what was opened with it, and leaves; `false` while a thread is in a call.
    fn close(&self, py: Python<'_>) -> bool {
        let call = Arc::clone(&self.calls);
        let inner = lock(&self.inner).take();
        let opened = std::mem::take(&mut *lock(&self.opened));
        let mut all = true;
        for weak in opened {
            if weak.upgrade().is_some_and(|one| !one.close(py)) {
                all = false;
                lock(&self.opened).push(weak);
            }
        }
        py.detach(|| drop(inner));
        drop(call);
        all && Arc::strong_count(&self.calls) == 1
    }
}

impl Node {
    /// The node of the core.
    pub(crate) fn open(&self) -> PyResult<InCall> {
        must_not_end()?;
        let call = Arc::clone(&self.shared.calls);
        let open = lock(&self.shared.inner).clone();
        open.map(|node| InCall { node, _call: call }).ok_or_else(closed)
    }

    /// From here on it closes `one` with itself; at once, if it was closed as `one` was opened.
    pub(crate) fn adopt(&self, py: Python<'_>, one: Weak<dyn Close>) -> PyResult<()> {
        note(&mut lock(&self.shared.opened), one.clone());
        note_opened(py, one.clone());
        if lock(&self.shared.inner).is_some() {
            return Ok(());
        }
        if let Some(one) = one.upgrade() {
            one.close(py);
        }
        Err(closed())
    }
}

/// Whether the interpreter ends: what is dropped now is dropped by nobody's wish.
pub(crate) fn is_ending() -> bool {
    Process::last().is_some_and(|last| last.ending.load(Ordering::Relaxed) && last.is_own())
}

/// What is opened once all is closed, nobody closes.
fn must_not_end() -> PyResult<()> {
    match is_ending() {
        true => {
            let remedy = "the interpreter ends: open it earlier";
            Err(fail(ErrorKind::InvalidArgument, "opening", "this object", remedy))
        }
        false => Ok(()),
    }
}

/// A thread that held something has ended.
pub(crate) fn thread_ended(thread: ThreadId) {
    if let Some(process) = Process::current() {
        let all: Vec<_> = lock(&process.opened).iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|one| one.forget_thread(thread));
    }
}

/// Keeps messages mapped as the interpreter ends: a thread that it stops in the midst of a
/// calculation may still read an array over what was a loan, and that need not keep its publisher.
struct StayMapped;

impl SegmentWatcher for StayMapped {
    fn unmapping(&self, _: &Segment) -> Unmap {
        Unmap::Never
    }
}

/// Closes all nodes of the process, which then leave. For the end of the interpreter.
#[pyfunction]
pub(crate) fn _close_all(py: Python<'_>) {
    let Some(process) = Process::current() else { return };
    static STAY_MAPPED: LazyLock<Arc<StayMapped>> = LazyLock::new(|| Arc::new(StayMapped));
    segments::watch(&STAY_MAPPED);
    process.ending.store(true, Ordering::Relaxed);
    process.close(py);
    process.leave(py);
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (name=None, *, domain=None, root=None, group=None))]
    fn new(
        py: Python<'_>,
        name: Option<String>,
        domain: Option<String>,
        root: Option<PathBuf>,
        group: Option<u32>,
    ) -> PyResult<Self> {
        let mut builder = settings(domain, root, group);
        if let Some(name) = name {
            builder = builder.name(name);
        }
        py.import("outlive._exit")?.call_method0("prepare")?;
        let process = Process::own(py);
        // In this order: the end waits for it, or it sees that it ends.
        let _opening = Arc::clone(&process.opening);
        must_not_end()?;
        let inner = py.detach(|| builder.open()).or_raise()?;
        process.note_node(&inner);
        let (id, name) = (inner.id().get(), inner.name().to_owned());
        let inner = Mutex::new(Some(inner));
        let (opened, calls) = Default::default();
        let shared = Arc::new(Shared { inner, opened, calls });
        let weak: Arc<dyn Close> = Arc::clone(&shared) as Arc<dyn Close>;
        note_opened(py, Arc::downgrade(&weak));
        Ok(Self { shared, id, name })
    }

    /// Its number in the domain, never reused.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// The name given at opening.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Watches the node with this number. ``NotFound``: it left, or died and was cleaned up.
    fn watch(&self, py: Python<'_>, id: u64) -> PyResult<Watch> {
        let watch = self.open()?.watch(NodeId::from_raw(id)).or_raise()?;
        let inner = Port::new(watch);
        self.adopt(py, inner.weak())?;
        Ok(Watch { inner })
    }

    /// Removes the lock, condition variable, semaphore, set or segment `name`; False if there is
    /// none. Opening it creates it again.
    ///
    /// ``WouldBlock``: somebody has it open. A lock that is ``Unrecoverable`` is removed all the
    /// same: its users get that until they open it again.
    fn remove_lock(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let node = self.open()?;
        py.detach(|| node.remove_lock(name)).or_raise()
    }

    /// Leaves the domain: closes everything that was opened with it. Calls in which other threads
    /// wait raise ``InvalidArgument``. Others see it leave once samples, messages and arrays still
    /// in hand are gone, too.
    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("Node(name={:?}, id={})", self.name, self.id)
    }
}

/// Reports a node's death as it happens.
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) inner: Port<CoreWatch>,
}

#[pymethods]
impl Watch {
    /// Whether the node is alive. A stopped process is alive.
    #[getter]
    fn is_alive(&self) -> PyResult<bool> {
        Ok(self.inner.hold()?.is_alive())
    }

    /// Ends the watching.
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

    /// Waits until the node dies or leaves; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        self.inner.hold()?.wait_until_true(py, timeout, |watch, time| Ok(watch.wait(time)))
    }
}
