//! The queue that a command names, and what is said if there is none.

use outlive::{Domain, queue};

use crate::absent::missing;
use crate::exit::Failure;

/// The queue of this name, with or without its leading slash.
pub(super) fn find(domain: &Domain, name: &str) -> Result<queue::Info, Failure> {
    let mut queues = domain.queues()?;
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    match queues.iter().position(|q| bare(&q.name) == bare(name)) {
        Some(at) => Ok(queues.swap_remove(at)),
        None => Err(missing(domain, "queue", name, queues.into_iter().map(|q| q.name))),
    }
}
