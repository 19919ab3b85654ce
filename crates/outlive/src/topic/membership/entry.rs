//! What lies in a topic's directory: whose file is whose, by its name.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::domain::name::kind_and_numbers;
use crate::node::NodeId;
use crate::os::fs::file;

/// A publisher of a topic: the node it belongs to and its number there.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// let left = node.topic::<u32>("/wheel")?.publisher()?;
/// let right = node.topic::<u32>("/wheel")?.publisher()?;
/// let mut wheels = node.topic::<u32>("/wheel")?.subscriber()?;
/// right.publish(&7)?;
/// let sender = wheels.receive()?.expect("sent just now").publisher();
/// assert_eq!(sender, right.id());
/// assert_eq!((sender.node, left.id().node), (node.id(), node.id())); // the ports differ
/// assert_eq!(sender.to_string(), format!("{}.{}", sender.node, sender.port));
/// # Ok::<(), outlive::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublisherId {
    /// The node.
    pub node: NodeId,
    /// Number of the port within the node; never reused.
    pub port: u64,
}

impl fmt::Display for PublisherId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.port)
    }
}

/// What a file in a topic's directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Publisher(PublisherId),
    Subscriber { node: NodeId, port: u64 },
    Data { owner: PublisherId, segment: usize },
    Meta,
    Bell,
    Unknown,
}

impl Entry {
    pub(crate) fn parse(name: &str) -> Self {
        let (kind, numbers) = kind_and_numbers(name);
        match (kind, numbers.as_deref()) {
            ("meta", Some([])) => Self::Meta,
            ("bell", Some([])) => Self::Bell,
            ("pub", Some(&[n, port])) => Self::Publisher(PublisherId { node: NodeId(n), port }),
            ("sub", Some(&[n, port])) => Self::Subscriber { node: NodeId(n), port },
            ("data", Some(&[n, port, k])) => {
                Self::Data { owner: PublisherId { node: NodeId(n), port }, segment: k as usize }
            }
            _ => Self::Unknown,
        }
    }
}

pub(crate) fn ring_path(dir: &Path, id: PublisherId) -> PathBuf {
    dir.join(format!("pub.{}.{}", id.node, id.port))
}

pub(crate) fn subscriber_path(dir: &Path, node: NodeId, port: u64) -> PathBuf {
    dir.join(format!("sub.{node}.{port}"))
}

pub(crate) fn list(dir: &Path) -> Result<Vec<Entry>> {
    Ok(file::open_dir(dir)?.entries()?.iter().map(|name| Entry::parse(name)).collect())
}
