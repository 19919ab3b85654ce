//! Nodes, and watching them.

use std::path::PathBuf;

use outlive::{Node as CoreNode, NodeBuilder, NodeId, Watch as CoreWatch};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::port::{Port, wait_until_true};

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
/// After ``os.fork`` the child is not the node: every call on what it inherited raises
/// ``ForkedChild``. Open a node in each process, which is also what ``spawn`` and ``forkserver``
/// need.
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) inner: CoreNode,
}

#[pymethods]
impl Node {
    #[new]
    #[pyo3(signature = (name=None, *, domain=None, root=None, group=None, strict=false))]
    fn new(
        py: Python<'_>,
        name: Option<String>,
        domain: Option<String>,
        root: Option<PathBuf>,
        group: Option<u32>,
        strict: bool,
    ) -> PyResult<Self> {
        let mut builder = settings(domain, root, group).strict(strict);
        if let Some(name) = name {
            builder = builder.name(name);
        }
        Ok(Self { inner: py.detach(|| builder.open()).or_raise()? })
    }

    /// Its number in the domain, never reused.
    #[getter]
    fn id(&self) -> u64 {
        self.inner.id().get()
    }

    /// The name given at opening.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// Watches the node with this number. ``NotFound``: it left, or died and was cleaned up.
    fn watch(&self, id: u64) -> PyResult<Watch> {
        let watch = self.inner.watch(NodeId::from_raw(id)).or_raise()?;
        Ok(Watch { inner: Port::new(watch) })
    }

    fn __repr__(&self) -> String {
        format!("Node(name={:?}, id={})", self.inner.name(), self.inner.id())
    }
}

/// Tells of a node's death in the instant of it.
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) inner: Port<CoreWatch>,
}

#[pymethods]
impl Watch {
    /// Whether the node lives. A stopped process is alive.
    #[getter]
    fn is_alive(&self) -> PyResult<bool> {
        Ok(self.inner.hold()?.is_alive())
    }

    /// Waits until the node dies or leaves; False when `timeout` seconds passed first.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let watch = self.inner.hold()?;
        let watch: &CoreWatch = &watch;
        wait_until_true(py, timeout, |time| Ok(watch.wait(time)))
    }
}
