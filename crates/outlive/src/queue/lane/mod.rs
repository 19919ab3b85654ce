//! A producer's lane: a ring of records that grows from file to file. One writes (`tail`), one
//! reads (`head`) and says how far (`position`); loom models these.
//! Begin with `record`.

pub(crate) mod head;
pub(crate) mod layout;
pub(crate) mod position;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod tail;

use crate::node::NodeId;

/// A producer of a queue: the node it belongs to and its number there.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use std::collections::HashMap;
///
/// let mut jobs = node.queue::<u64>("/jobs")?.consumer()?;
/// let mut arm = node.queue::<u64>("/jobs")?.producer()?;
/// let mut base = node.queue::<u64>("/jobs")?.producer()?;
/// arm.send_batch(&[1, 2])?;
/// base.send(&3)?;
/// let mut received = HashMap::new();
/// while let Some(job) = jobs.receive()? {
///     *received.entry(job.producer()).or_insert(0) += 1;
/// }
/// assert_eq!((received[&arm.id()], received[&base.id()]), (2, 1));
/// assert_eq!(arm.id().node, node.id());
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId {
    /// The node.
    pub node: NodeId,
    /// Number of the port within the node; never reused.
    pub port: u64,
}

impl std::fmt::Display for ProducerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.node, self.port)
    }
}
