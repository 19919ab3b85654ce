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

mod frame;
mod memory;
mod publisher;
mod socket;
mod subscriber;
mod vmm;

use std::sync::Arc;

use outlive::Node;
use outlive::topic;

pub use frame::{DeviceFrame, Refused};
pub use publisher::{DeviceLoan, DevicePublisher};
pub use subscriber::{DeviceSample, DeviceSubscriber, Reading};

use crate::cuda::Cuda;
use crate::{Error, ErrorKind, Result};
use memory::Inner;

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
        Ok(Self { inner: Arc::new(Inner::open(cuda, node)?) })
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
