//! What lies in a queue's directory: whose file is whose, by its name.

use std::path::Path;

use crate::Result;
use crate::domain::name::kind_and_numbers;
use crate::node::NodeId;
use crate::os::fs::file;
use crate::queue::lane::ProducerId;

/// What a file in a queue's directory is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Lane { owner: ProducerId, segment: u32 },
    Consumer,
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
            ("consumer", Some([])) => Self::Consumer,
            ("lane", Some(&[node, port, segment])) if segment <= u64::from(u32::MAX) => {
                let node = NodeId::from_raw(node);
                Self::Lane { owner: ProducerId { node, port }, segment: segment as u32 }
            }
            _ => Self::Unknown,
        }
    }
}

pub(crate) fn list(dir: &Path) -> Result<Vec<Entry>> {
    Ok(file::open_dir(dir)?.entries()?.iter().map(|name| Entry::parse(name)).collect())
}
