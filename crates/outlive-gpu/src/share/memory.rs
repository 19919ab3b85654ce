//! The allocations that a process has: its own, which it hands out, and those of others.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use outlive::{Domain, Node};

use super::frame::shorter;
use super::socket;
use super::socket::{Key, Server};
use super::vmm::Allocation;
use crate::cuda::Cuda;
use crate::{Error, ErrorKind, Result};

/// Imported allocations kept for the next message, unless samples of more are held.
const IMPORTED_MAX: usize = 64;
/// Longest search for who has an allocation, however many members do not answer.
const FETCH_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) cuda: Cuda,
    pub(super) node: Node,
    domain: Domain,
    /// Tells the domain from others of this machine.
    domain_name: String,
    server: Server,
    serials: AtomicU64,
    imported: Mutex<Vec<(Key, Arc<Allocation>)>>,
}

impl Inner {
    /// Opens the socket of `node` and starts its thread.
    pub(super) fn open(cuda: &Cuda, node: &Node) -> Result<Self> {
        let domain = Domain::of_node(node);
        let at = std::fs::metadata(domain.dir()).map_err(|e| {
            Error::new(ErrorKind::Io, format!("looking at {} ({e})", domain.dir().display()), "")
        })?;
        let domain_name = format!("{:x}-{:x}", at.dev(), at.ino());
        let server = Server::start(&domain_name, node.id().get())?;
        let (cuda, node) = (cuda.clone(), node.clone());
        let (serials, imported) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { cuda, node, domain, domain_name, server, serials, imported })
    }

    pub(super) fn imported(&self) -> MutexGuard<'_, Vec<(Key, Arc<Allocation>)>> {
        self.imported.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(super) fn create(&self, bytes: usize) -> Result<(Key, Allocation)> {
        let (allocation, fd) = Allocation::create(&self.cuda, bytes)?;
        let serial = self.serials.fetch_add(1, Relaxed) + 1;
        let key = Key { node: self.node.id().get(), serial };
        self.server.put(key, fd);
        Ok((key, allocation))
    }

    /// Hands an allocation of its own out no more.
    pub(super) fn withdraw(&self, key: Key) {
        self.server.remove(key);
    }

    /// The allocation that a message names: had already, or of whoever has it.
    pub(super) fn import(&self, key: Key, bytes: usize) -> Result<Arc<Allocation>> {
        if let Some(found) = self.had(key, bytes) {
            return found;
        }
        // Without the lock: others need not wait for a peer that does not answer.
        let fd = self.fetch(key)?;
        let allocation = Arc::new(Allocation::import(&self.cuda, &fd, bytes)?);
        if let Some(found) = self.had(key, bytes) {
            return found;
        }
        let mut imported = self.imported();
        let is_free = |(_, a): &(Key, Arc<Allocation>)| Arc::strong_count(a) == 1;
        let mut unused = None;
        if imported.len() >= IMPORTED_MAX
            && let Some(at) = imported.iter().position(is_free)
        {
            let old = imported.remove(at);
            self.server.remove(old.0);
            unused = Some(old);
        }
        // From here on we serve it too.
        self.server.put(key, fd);
        imported.push((key, Arc::clone(&allocation)));
        drop(imported);
        drop(unused);
        Ok(allocation)
    }

    /// The allocation of that name, if this process has it.
    fn had(&self, key: Key, bytes: usize) -> Option<Result<Arc<Allocation>>> {
        let mut imported = self.imported();
        // The one used last goes last.
        let at = imported.iter().position(|(k, _)| *k == key)?;
        let found = imported.remove(at);
        let allocation = Arc::clone(&found.1);
        imported.push(found);
        Some(if allocation.bytes() < bytes { Err(shorter()) } else { Ok(allocation) })
    }

    fn fetch(&self, key: Key) -> Result<OwnedFd> {
        let deadline = Instant::now() + FETCH_WAIT;
        let ask = |node| socket::ask(&self.domain_name, node, key, deadline);
        if let Some(fd) = ask(key.node) {
            return Ok(fd);
        }
        // Its maker is dead, has left, or is stopped: anybody who has it will do.
        let nodes = self.domain.nodes()?;
        let others = nodes.iter().filter(|n| n.alive && n.id.get() != key.node);
        others.map(|n| n.id.get()).find_map(ask).ok_or_else(|| {
            Error::new(
                ErrorKind::PeerDied,
                format!("asking for device memory {} of node {}", key.serial, key.node),
                "nobody who is alive has it any more: wait for the next message",
            )
        })
    }
}
