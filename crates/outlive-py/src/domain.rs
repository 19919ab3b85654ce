//! A domain seen from outside. What it tells are the named tuples of `outlive._domain`.

use std::path::PathBuf;

use outlive::lock::LockState;
use outlive::topic::PublisherInfo;
use outlive::{Domain as CoreDomain, TypeDescription};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::node::{Node, settings};

/// Node and port, or node and thread.
type Pair = (u64, u64);

/// A row of a list.
fn row<'py>(
    py: Python<'py>,
    class: &str,
    fields: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("outlive._domain")?.getattr(class)?.call1(fields)
}

fn text(schema: &[u8]) -> String {
    TypeDescription::parse(schema).map(|d| d.to_text()).unwrap_or_default()
}

fn publisher<'py>(py: Python<'py>, p: &PublisherInfo) -> PyResult<Bound<'py, PyAny>> {
    let id: Pair = (p.id.node.get(), p.id.port);
    let fields = (id, p.alive, p.closed, p.messages, p.payload_bytes, p.newest_ns, p.memory_bytes);
    row(py, "PublisherInfo", fields)
}

/// The domain that nodes with these settings join, or that of a node (``Domain.of``), seen from
/// outside: who is there, and cleaning up. Joins nothing, creates nothing.
///
/// >>> [known.name for known in outlive.Domain().nodes()]
/// ['planner']
#[pyclass(frozen, module = "outlive")]
#[derive(Debug)]
pub(crate) struct Domain {
    inner: CoreDomain,
}

#[pymethods]
impl Domain {
    #[new]
    #[pyo3(signature = (domain=None, *, root=None, group=None))]
    fn new(domain: Option<String>, root: Option<PathBuf>, group: Option<u32>) -> PyResult<Self> {
        Ok(Self { inner: CoreDomain::of(&settings(domain, root, group)).or_raise()? })
    }

    /// The domain that `node` joined.
    ///
    /// >>> outlive.Domain.of(node).dir.name
    /// 'default'
    #[staticmethod]
    fn of(node: &Node) -> PyResult<Self> {
        Ok(Self { inner: CoreDomain::of_node(&*node.open()?) })
    }

    /// Its directory.
    #[getter]
    fn dir(&self) -> PathBuf {
        self.inner.dir().to_owned()
    }

    /// All nodes in order of joining, including dead ones that nobody has cleaned up.
    ///
    /// >>> for known in outlive.Domain.of(node).nodes():
    /// ...     print(known.name, known.alive, known.id == node.id)
    /// planner True True
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.inner.nodes()).or_raise()?;
        let rows = found.into_iter();
        rows.map(|n| row(py, "NodeInfo", (n.id.get(), n.name, n.pid, n.alive, n.started_ns)))
            .collect()
    }

    /// All topics in order of names.
    ///
    /// >>> publisher = outlive.Publisher(node, "/scan", np.float32, (360,))
    /// >>> publisher.publish(np.zeros(360))
    /// 0
    /// >>> for topic in outlive.Domain.of(node).topics():
    /// ...     print(topic.name, topic.element_bytes, [it.messages for it in topic.publishers])
    /// /scan 1440 [1]
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.inner.topics()).or_raise()?;
        let rows = found.into_iter().map(|t| {
            let publishers = t.publishers.iter().map(|p| publisher(py, p));
            let publishers = publishers.collect::<PyResult<Vec<_>>>()?;
            let subscribers: Vec<u64> = t.subscribers.iter().map(|node| node.get()).collect();
            let (encoding, description) = (format!("{:?}", t.encoding), text(&t.schema));
            let (bytes, depth) = (t.element_bytes, t.depth);
            row(
                py,
                "TopicInfo",
                (
                    t.name,
                    t.type_name,
                    encoding,
                    bytes,
                    description,
                    depth,
                    publishers,
                    subscribers,
                    t.attributes,
                ),
            )
        });
        rows.collect()
    }

    /// The subscribers of a topic: what they hold and how far they have read. None if there is no
    /// such topic.
    ///
    /// >>> viewer = outlive.Subscriber(node, "/scan", borrows=4, reliable=True)
    /// >>> for seen in outlive.Domain.of(node).subscribers("/scan"):
    /// ...     print(seen.id[0] == node.id, seen.borrows, seen.reliable, seen.held)
    /// True 4 True []
    fn subscribers<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let Some(found) = py.detach(|| self.inner.subscribers(topic)).or_raise()? else {
            return Ok(None);
        };
        let rows = found.into_iter().map(|s| {
            let pair = |id: outlive::topic::PublisherId| -> Pair { (id.node.get(), id.port) };
            let sources: Vec<_> = s.sources.iter().map(|f| (pair(f.publisher), f.next)).collect();
            let held: Vec<_> = s.held.iter().map(|h| (pair(h.publisher), h.seq)).collect();
            let id: Pair = (s.node.get(), s.port);
            let fields = (id, s.alive, s.reliable, s.waiting, s.borrows, sources, held);
            row(py, "SubscriberInfo", fields)
        });
        rows.collect::<PyResult<Vec<_>>>().map(Some)
    }

    /// All queues in order of names.
    ///
    /// >>> consumer, producer = outlive.Consumer(node, "/jobs"), outlive.Producer(node, "/jobs")
    /// >>> producer.send("weld")
    /// >>> for queue in outlive.Domain.of(node).queues():
    /// ...     print(queue.name, queue.consumer == node.id, [lane.unread for lane in queue.lanes])
    /// /jobs True [1]
    fn queues<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.inner.queues()).or_raise()?;
        let rows = found.into_iter().map(|q| {
            let lanes = q.lanes.iter().map(|l| {
                let id: Pair = (l.producer.node.get(), l.producer.port);
                row(py, "LaneInfo", (id, l.alive, l.closed, l.unread, l.received, l.memory_bytes))
            });
            let lanes = lanes.collect::<PyResult<Vec<_>>>()?;
            let consumer = q.consumer.map(|node| node.get());
            row(py, "QueueInfo", (q.name, q.type_name, text(&q.schema), q.stamped, consumer, lanes))
        });
        rows.collect()
    }

    /// All services in order of names.
    ///
    /// >>> server = outlive.Server(node, "/plan", bytes, bytes)
    /// >>> for service in outlive.Domain.of(node).services():
    /// ...     print(service.name, service.request, service.server == node.id, service.clients)
    /// /plan u8 True []
    fn services<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.inner.services()).or_raise()?;
        let rows = found.into_iter().map(|s| {
            let request = s.request.name().to_owned();
            let response = s.response.name().to_owned();
            let clients: Vec<u64> = s.clients.iter().map(|node| node.get()).collect();
            let server = s.server.map(|node| node.get());
            let fields = (s.name, request, response, server, clients, s.unread, s.memory_bytes);
            row(py, "ServiceInfo", fields)
        });
        rows.collect()
    }

    /// All locks, condition variables, semaphores, sets and segments in order of names.
    ///
    /// >>> arm = outlive.RobustMutex(node, "/arm")
    /// >>> with arm:
    /// ...     [(lock.name, lock.kind, lock.state) for lock in outlive.Domain.of(node).locks()]
    /// [('/arm', 'mutex', 'held')]
    fn locks<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = py.detach(|| self.inner.locks()).or_raise()?;
        let rows = found.into_iter().map(|l| {
            let (state, owner) = match l.state {
                LockState::Held { node, thread, alive } => {
                    (if alive { "held" } else { "owner died" }, Some((node.get(), thread)))
                }
                LockState::Abandoned => ("owner died", None),
                LockState::Unrecoverable => ("unrecoverable", None),
                _ => ("free", None),
            };
            let kind = l.kind.as_str();
            let fields = (
                l.name,
                kind,
                l.type_name,
                l.data_bytes,
                l.count,
                state,
                owner,
                l.waiters,
                l.users,
            );
            row(py, "LockInfo", fields)
        });
        rows.collect()
    }

    /// Removes everything that dead processes left and no live one needs, and the domain's
    /// directory, too, when nobody is left. Never touches what a live or stopped process uses.
    ///
    /// ``Timeout``: a stopped process holds the domain's lock.
    ///
    /// >>> report = outlive.Domain.of(node).clean()
    /// >>> report.live_nodes, report.node_files, report.domain_removed
    /// (1, 0, False)
    fn clean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let r = py.detach(|| self.inner.clean()).or_raise()?;
        let fields = (
            r.node_files,
            r.topic_files,
            r.queue_files,
            r.service_files,
            r.realtime_files,
            r.topics,
            r.queues,
            r.services,
            r.locks,
            r.live_nodes,
            r.domain_removed,
        );
        row(py, "CleanReport", fields)
    }

    /// Checks the invariants of all files, read-only, while members keep running: how many files,
    /// and a line for each broken invariant.
    ///
    /// >>> report = outlive.Domain.of(node).audit()
    /// >>> report.files > 0, report.faults
    /// (True, [])
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = py.detach(|| self.inner.audit()).or_raise()?;
        row(py, "AuditReport", (report.files, report.faults))
    }

    fn __repr__(&self) -> String {
        format!("Domain({:?})", self.inner.dir())
    }
}
