//! Nodes, and watching them.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use outlive::{Node as CoreNode, NodeBuilder, NodeId, Watch as CoreWatch};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{OrRaise, count, some_seconds};
use crate::port::{Port, closed};
use crate::process::{Close, Process, lock, must_not_end, note, note_opened};

/// Now, ns of CLOCK_MONOTONIC: the clock of all time stamps.
///
/// >>> poses = outlive.Subscriber(node, "/pose")
/// >>> outlive.Publisher(node, "/pose").publish([1.0, 2.0])
/// 0
/// >>> age_ns = outlive.now_ns() - poses.receive(timeout=1.0).timestamp_ns
/// >>> age_ns >= 0
/// True
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
/// ``ForkedChild``, save those that only read what a sample, message, request or reply in hand has,
/// or what is fixed, such as a name. Arrays over loans and samples are memory shared with the
/// parent: do not touch them in the child. Open a node in each process; ``spawn`` and
/// ``forkserver`` need that, too.
///
/// Its domain is the one given, or ``$OUTLIVE_DOMAIN``, or ``default``; domains do not see each
/// other.
///
/// ``with outlive.Node("camera") as node: ...`` closes it, and everything that was opened with it.
/// At the end of the interpreter all nodes are closed: others see that they left.
///
/// >>> with outlive.Node("camera") as camera:
/// ...     publisher = outlive.Publisher(camera, "/camera/front", bytes)
/// ...     [known.name for known in outlive.Domain.of(camera).nodes()]
/// ['planner', 'camera']
/// >>> [known.name for known in outlive.Domain.of(node).nodes()]
/// ['planner']
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
    #[cold]
    fn closed(&self) -> PyErr {
        closed(&format!("Node {}", self.name))
    }

    /// The node of the core.
    pub(crate) fn open(&self) -> PyResult<InCall> {
        must_not_end()?;
        let call = Arc::clone(&self.shared.calls);
        let open = lock(&self.shared.inner).clone();
        open.map(|node| InCall { node, _call: call }).ok_or_else(|| self.closed())
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
        Err(self.closed())
    }
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
        let _opening = process.opening()?;
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
    /// One that was watched before gives a watch that says it is gone.
    ///
    /// >>> known = {peer.name: peer.id for peer in outlive.Domain.of(node).nodes()}
    /// >>> node.watch(known["planner"]).is_alive
    /// True
    fn watch(&self, py: Python<'_>, #[pyo3(from_py_with = count)] id: u64) -> PyResult<Watch> {
        let watch = self.open()?.watch(NodeId::from_raw(id)).or_raise()?;
        let inner = Port::new(watch, format!("Watch of node {id}"));
        self.adopt(py, inner.weak())?;
        Ok(Watch { inner })
    }

    /// Removes the lock, condition variable, semaphore, set or segment `name`; False if there is
    /// none. Opening it creates it again.
    ///
    /// ``WouldBlock``: somebody has it open. A lock that is ``Unrecoverable`` is removed all the
    /// same: its users get that until they open it again.
    ///
    /// >>> outlive.RobustMutex(node, "/arm").close()
    /// >>> node.remove_lock("/arm"), node.remove_lock("/arm")
    /// (True, False)
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
///
/// >>> camera = outlive.Node("camera")  # in another process
/// >>> watch = node.watch(camera.id)
/// >>> watch.is_alive, watch.wait(timeout=0.01)
/// (True, False)
/// >>> camera.close()  # or kill -9
/// >>> watch.wait(timeout=10.0)
/// True
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
    fn wait(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_seconds)] timeout: Option<f64>,
    ) -> PyResult<bool> {
        self.inner.hold()?.wait_until_true(py, timeout, |watch, time| Ok(watch.wait(time)))
    }
}
