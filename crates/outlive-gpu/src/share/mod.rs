//! One device's memory in several processes: a message names it, nobody copies it.
//!
//! # Theory of operation
//! A message is a chunk of a topic that names a piece of device memory, one piece for each chunk.
//! So the topic's own rules hold for the device memory too: it is written again only when nobody
//! borrows the message any more, a dead reader's borrows come back, and a dead writer's message was
//! either sent or not. A message is sent once the device has done what was on the writer's stream.
//!
//! The memory is an allocation of the driver with a file descriptor. It is handed over once for
//! each pair of processes, over a socket, and kept; each process that has it hands it on, so that a
//! latecomer gets it even if its maker is dead. The driver frees it with its last user.
//!
//! # Examples
//! ```no_run
//! # fn main() -> outlive_gpu::Result<()> {
//! use outlive_gpu::share::{DeviceFrame, DeviceShare};
//! use outlive_gpu::{Cuda, Stream};
//!
//! let node = outlive::Node::open("camera")?;
//! let share = DeviceShare::open(&Cuda::open(0)?, &node)?;
//! let publisher = share.publisher(node.topic::<DeviceFrame>("/image/device")?)?;
//! let mut subscriber = share.subscriber(node.topic::<DeviceFrame>("/image/device")?)?;
//!
//! let loan = publisher.loan(640 * 480)?;
//! // ... fill it from kernels on a stream ...
//! // SAFETY: the default stream always lives.
//! unsafe { loan.publish(Stream::DEFAULT, [640, 480, 0, 0, 0, 0, 0, 0]) }?;
//! if let Some(sample) = subscriber.receive()? {
//!     println!("{} bytes at {:?}", sample.bytes(), sample.ptr());
//! }
//! # Ok(())
//! # }
//! ```
#![allow(unsafe_code)]

mod publisher;
mod socket;
mod subscriber;
mod vmm;

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use outlive::topic;
use outlive::{Domain, Node};

pub use publisher::{DeviceLoan, DevicePublisher};
pub use subscriber::{DeviceSample, DeviceSubscriber, Reading};

use crate::cuda::Cuda;
use crate::{Error, ErrorKind, Result};
use socket::{Key, Server};
use vmm::Allocation;

/// Imported allocations kept for the next message, unless samples of more are held.
const IMPORTED_MAX: usize = 64;
/// Longest search for who has an allocation, however many members do not answer.
const FETCH_WAIT: Duration = Duration::from_secs(2);
/// Largest allocation that another process is believed to have, bytes.
const ALLOCATION_BYTES_MAX: u64 = 1 << 40;

/// What a message says about device memory.
#[outlive::message("outlive_gpu/DeviceFrame")]
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceFrame {
    /// Node of the allocation's maker.
    owner: u64,
    /// The maker's number for it.
    serial: u64,
    /// Length of the allocation, bytes.
    allocation_bytes: u64,
    /// Bytes that count, from its start.
    bytes: u64,
    /// The device.
    uuid: [u8; 16],
    /// Anything about the contents: width, height, element type.
    tag: [u64; 8],
}

/// This node's part in sharing device memory: a socket and a thread that hand allocations out.
///
/// One for each node of a process. Members run as the same user and on the same device; others get
/// an error and go through host memory. In containers the members must share a network namespace,
/// which holds the socket's name.
///
/// Dropping the last clone waits for the device, at most a second for each imported allocation;
/// there may be 64.
#[derive(Clone, Debug)]
pub struct DeviceShare {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cuda: Cuda,
    node: Node,
    domain: Domain,
    /// Tells the domain from others of this machine.
    domain_name: String,
    server: Server,
    serials: AtomicU64,
    imported: Mutex<Vec<(Key, Arc<Allocation>)>>,
}

/// Device memory that was not given to a stream, and why.
#[derive(Debug)]
#[must_use = "it may hold what was refused"]
pub struct Refused<T> {
    /// The memory, if it was refused before anything was started: try again on another stream, or
    /// when the capture has ended. `None` if it is gone or stays reserved.
    pub back: Option<Box<T>>,
    /// Why.
    pub why: Error,
}

impl<T> From<Refused<T>> for Error {
    #[cold]
    fn from(refused: Refused<T>) -> Self {
        refused.why
    }
}

impl<T> From<Error> for Refused<T> {
    #[cold]
    fn from(why: Error) -> Self {
        Self { back: None, why }
    }
}

impl DeviceShare {
    /// Opens the socket of `node` and starts its thread.
    ///
    /// # Errors
    /// `Unsupported` where the device cannot share; `Io` when the node has one already.
    pub fn open(cuda: &Cuda, node: &Node) -> Result<Self> {
        if !cuda.info().device.shares {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("sharing memory of {}", cuda.name()),
                "send through host memory instead",
            ));
        }
        let domain = Domain::of_node(node);
        let at = std::fs::metadata(domain.dir()).map_err(|e| {
            Error::new(ErrorKind::Io, format!("looking at {} ({e})", domain.dir().display()), "")
        })?;
        let domain_name = format!("{:x}-{:x}", at.dev(), at.ino());
        let server = Server::start(&domain_name, node.id().get())?;
        let (cuda, node) = (cuda.clone(), node.clone());
        let (serials, imported) = (AtomicU64::new(0), Mutex::default());
        let inner = Inner { cuda, node, domain, domain_name, server, serials, imported };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the publishing port of a topic of device memory.
    ///
    /// # Errors
    /// Those of [`topic::Builder::publisher`].
    pub fn publisher(&self, topic: topic::Builder<DeviceFrame>) -> Result<DevicePublisher> {
        Ok(DevicePublisher::new(self.inner.clone(), topic.publisher()?))
    }

    /// Opens the receiving port of a topic of device memory.
    ///
    /// # Errors
    /// Those of [`topic::Builder::subscriber`].
    pub fn subscriber(&self, topic: topic::Builder<DeviceFrame>) -> Result<DeviceSubscriber> {
        Ok(DeviceSubscriber::new(self.inner.clone(), topic.subscriber()?))
    }

    /// Allocations of other processes that this one has imported.
    pub fn imported(&self) -> usize {
        self.inner.imported().len()
    }
}

impl Inner {
    fn imported(&self) -> MutexGuard<'_, Vec<(Key, Arc<Allocation>)>> {
        self.imported.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn create(&self, bytes: usize) -> Result<(Key, Allocation)> {
        let (allocation, fd) = Allocation::create(&self.cuda, bytes)?;
        let serial = self.serials.fetch_add(1, Relaxed) + 1;
        let key = Key { node: self.node.id().get(), serial };
        self.server.put(key, fd);
        Ok((key, allocation))
    }

    /// The allocation that a message names: had already, or of whoever has it.
    fn import(&self, key: Key, bytes: usize) -> Result<Arc<Allocation>> {
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

#[cold]
fn shorter() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "reading a message of device memory",
        "it names more than there is: restart its publisher",
    )
}
