//! Where the queues of a service are.

use std::path::{Path, PathBuf};

use crate::ErrorKind;
use crate::Result;
use crate::domain::name::TopicName;
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::os::fs::file;
use crate::os::sleep::slice::slice_ns_max;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::queue::membership::Site;
use crate::queue::membership::reclaim::{Unread, reclaim};
use crate::queue::membership::table::Table;
use crate::sync::fault;
use crate::types::PayloadType;
use crate::wait::wake::call::Caller;

/// The directory of a service.
pub(in crate::service) fn dir(domain: &DomainPath, name: &TopicName) -> PathBuf {
    domain.services().join(name.file())
}

/// The queue of its requests.
pub(in crate::service) fn requests(domain: &DomainPath, name: &TopicName) -> Site {
    // A server answers nobody who is gone.
    site(domain, name, "requests", Unread::OfTheLiving)
}

/// The queue of replies to the client that calls itself `port` of `node`.
pub(in crate::service) fn replies(
    domain: &DomainPath,
    name: &TopicName,
    node: NodeId,
    port: u64,
) -> Site {
    // What a server had answered before its death, its client receives.
    site(domain, name, &format!("reply.{node}.{port}"), Unread::Remove)
}

fn site(domain: &DomainPath, name: &TopicName, queue: &str, unread: Unread) -> Site {
    let service = dir(domain, name);
    Site {
        name: name.clone(),
        dir: service.join(queue),
        parents: vec![domain.services(), service],
        unread,
    }
}

/// Removes the queues of the service in `dir` that have no live member; returns how many files.
///
/// # Errors
/// The first thing that is strange or could not be found out, after all else was done.
pub(in crate::service) fn sweep(domain: &DomainPath, dir: &Path) -> Result<usize> {
    let (mut files, mut strange) = (0, None);
    for queue in file::open_dir(dir)?.entries()? {
        match reclaim(domain, &dir.join(queue), Unread::Remove) {
            Ok(r) => files += r.files,
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // What is strange in one keeps nobody from the others.
            Err(e) => strange = strange.or(Some(e)),
        }
    }
    strange.map_or(Ok(files), Err)
}

/// Calls the clients of the service in `dir` that asked for it: its server came, or left. Those
/// that sleep on words have the bell of the requests; the others would hear nothing from a server
/// that has no way back to them yet. `false`: not all could be called.
///
/// # Crash safety
/// **Strict.** Dying before a call: who waits for the next server is called by that one.
pub(in crate::service) fn call_clients(domain: &DomainPath, dir: &Path) -> bool {
    if fault("service.clients_uncalled") {
        return true;
    }
    let queues = match file::open_dir(dir).and_then(|dir| dir.entries()) {
        Ok(queues) => queues,
        Err(e) => return e.kind() == ErrorKind::NotFound,
    };
    let clients = queues.iter().filter(|name| name.starts_with("reply."));
    // All of them, whoever cannot be reached.
    clients.filter(|queue| !call_client(domain, &dir.join(queue))).count() == 0
}

fn call_client(domain: &DomainPath, replies: &Path) -> bool {
    match Table::open_existing(replies, domain) {
        Ok(table) => table
            .owner()
            .node()
            .is_none_or(|client| Caller::default().call(domain, client, table.request())),
        Err(e) => e.kind() == ErrorKind::NotFound,
    }
}

/// Between two calls to clients that could not be reached.
const RECALL_NS: u64 = 10_000_000;

/// Clients that could not be called when their server came. Until they look by themselves, after a
/// second, they are called again.
#[derive(Debug)]
pub(in crate::service) struct Uncalled {
    next_ns: u64,
    end_ns: u64,
}

impl Uncalled {
    /// Calls them when their server comes; `None` when all were reached.
    pub(in crate::service) fn after_call(domain: &DomainPath, dir: &Path) -> Option<Self> {
        let (all, now) = (call_clients(domain, dir), clock::now_ns());
        (!all).then_some(Self { next_ns: now, end_ns: now + slice_ns_max() })
    }

    /// Calls them again if that is due.
    #[cold]
    pub(in crate::service) fn again(self, domain: &DomainPath, dir: &Path) -> Option<Self> {
        let now = clock::now_ns();
        if now < self.next_ns {
            return Some(self);
        }
        let done = call_clients(domain, dir) || now >= self.end_ns;
        (!done).then_some(Self { next_ns: now + RECALL_NS, ..self })
    }

    /// When that is.
    pub(in crate::service) fn due(&self) -> Deadline {
        Deadline::at_ns(self.next_ns)
    }
}

/// How the types of a service are written: both, since clients and servers meet in one queue.
pub(in crate::service) fn type_name(request: &PayloadType, reply: &PayloadType) -> String {
    format!("{}{ARROW}{}", one(request), one(reply))
}

const ARROW: &str = " -> ";

fn one(of: &PayloadType) -> String {
    format!("{}[{}, {} B]", of.name(), of.encoding().as_str(), of.size())
}

/// The names of both types in what `type_name` made.
pub(in crate::service) fn names(type_name: &str) -> (&str, &str) {
    let (q, r) = type_name.split_once(ARROW).unwrap_or((type_name, ""));
    let name = |one: &str| one.rfind('[').unwrap_or(one.len());
    (&q[..name(q)], &r[..name(r)])
}
