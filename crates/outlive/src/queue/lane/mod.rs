//! A producer's lane: a ring of records that grows from file to file. One writes (`tail`), one
//! reads (`head`) and says how far (`position`); loom models these.

pub(crate) mod head;
pub(crate) mod layout;
pub(crate) mod position;
pub(crate) mod record;
pub(crate) mod segment;
pub(crate) mod tail;

use crate::node::NodeId;

/// A producer of a queue: the node it belongs to and its number there.
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
