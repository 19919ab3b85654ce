//! Receiving device memory.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use outlive::{ErrorKind as CoreKind, NodeId, Sample, Subscriber};

use super::frame::{ALLOCATION_BYTES_MAX, DeviceFrame, Refused, shorter};
use super::memory::Inner;
use super::socket::Key;
use super::vmm::Allocation;
use crate::aside::DROP_WAIT;
use crate::handle::{DevicePtr, Stream};
use crate::take::Take;
use crate::{Error, ErrorKind, Result};

/// Receives device memory that others sent.
#[derive(Debug)]
pub struct DeviceSubscriber {
    subscriber: Subscriber<DeviceFrame>,
    share: Arc<Inner>,
}

impl DeviceSubscriber {
    pub(super) fn new(share: Arc<Inner>, subscriber: Subscriber<DeviceFrame>) -> Self {
        Self { subscriber, share }
    }

    /// The topic's port itself: events, losses, descriptors to wait for.
    pub fn port(&mut self) -> &mut Subscriber<DeviceFrame> {
        &mut self.subscriber
    }

    /// The next message, or `None` when there is none now.
    ///
    /// The message is held from now on: its publisher does not write its memory again. That takes a
    /// publisher that has noticed this subscriber, or one that is certainly dead.
    ///
    /// # Errors
    /// Those of [`Subscriber::receive`]. These consume the message: `NotHeld` for one sent before
    /// its publisher noticed us; `PeerDied` when no live process has the memory; `Unsupported` for
    /// memory of another device; `Corrupt`.
    pub fn receive(&mut self) -> Result<Option<DeviceSample>> {
        self.receive_by(|subscriber| subscriber.receive())
    }

    /// As `receive`, and waits at most `timeout`.
    ///
    /// # Errors
    /// As `receive`.
    pub fn receive_timeout(&mut self, timeout: Duration) -> Result<Option<DeviceSample>> {
        self.receive_by(|subscriber| subscriber.receive_timeout(timeout))
    }

    fn receive_by(
        &mut self,
        receive: impl FnOnce(
            &mut Subscriber<DeviceFrame>,
        ) -> outlive::Result<Option<Sample<DeviceFrame>>>,
    ) -> Result<Option<DeviceSample>> {
        // Before the message is read: who is dead now wrote nothing after it.
        let gone = self.gone();
        let Some(sample) = receive(&mut self.subscriber)? else { return Ok(None) };
        if !sample.is_borrowed() && !gone.contains(&sample.publisher().node) {
            return Err(Error::new(
                ErrorKind::NotHeld,
                format!("receiving message {} of {}", sample.seq(), sample.publisher()),
                "its publisher had not noticed this subscriber when it sent it: take the next",
            ));
        }
        let frame: DeviceFrame = *sample;
        if frame.uuid != self.share.cuda.info().device.uuid {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "receiving memory of another device",
                "open the publisher's device, or send through host memory",
            ));
        }
        if frame.bytes > frame.allocation_bytes || frame.allocation_bytes > ALLOCATION_BYTES_MAX {
            return Err(shorter());
        }
        let key = Key { node: frame.owner, serial: frame.serial };
        let allocation = self.share.import(key, frame.allocation_bytes as usize)?;
        let (sample, share) = (ManuallyDrop::new(sample), Arc::clone(&self.share));
        Ok(Some(DeviceSample { sample, frame, allocation, share, in_doubt: false }))
    }

    /// Nodes of publishers that are dead for certain.
    fn gone(&self) -> HashSet<NodeId> {
        let is_gone = |node: &NodeId| match self.share.node.watch(*node) {
            Ok(watch) => !watch.is_alive(),
            Err(e) => e.kind() == CoreKind::NotFound,
        };
        self.subscriber.publishers().into_iter().map(|p| p.node).filter(is_gone).collect()
    }
}

/// Device memory that somebody sent, to read for as long as this is kept.
///
/// Dropped, it waits for the device, at most a second, since kernels may be reading it (after that
/// it stays borrowed), and a second more if it is the last that has this memory here;
/// [`DeviceSample::release_on`] waits for one stream alone. To wait for the device spoils a capture
/// of any of its streams, so a sample whose stream was refused stays borrowed at once.
#[derive(Debug)]
pub struct DeviceSample {
    sample: ManuallyDrop<Sample<DeviceFrame>>,
    frame: DeviceFrame,
    allocation: Arc<Allocation>,
    share: Arc<Inner>,
    /// Its stream was refused: nobody can wait for what reads it.
    in_doubt: bool,
}

impl DeviceSample {
    /// Where it is; do not write there.
    pub fn ptr(&self) -> DevicePtr {
        self.allocation.ptr()
    }

    /// How much, bytes.
    pub fn bytes(&self) -> usize {
        self.frame.bytes as usize
    }

    /// What the publisher said about it.
    pub fn tag(&self) -> [u64; 8] {
        self.frame.tag
    }

    /// Where the message comes from.
    pub fn meta(&self) -> &outlive::topic::Meta {
        self.sample.meta()
    }

    /// Releases it once the device has done what is on `stream` now.
    ///
    /// # Safety
    /// `stream` is one of this device and lives; all that reads this memory is on it or done.
    ///
    /// # Errors
    /// `Unsupported`, `InvalidArgument`: it comes back, to be released later or on another stream.
    /// `Driver`: it stays borrowed.
    pub unsafe fn release_on(
        mut self,
        stream: Stream,
    ) -> std::result::Result<Reading, Refused<Self>> {
        let cuda = self.share.cuda.clone();
        let checked = cuda.inner.enter_and_check(stream);
        self.in_doubt = checked.is_err();
        let prepared = match checked.and_then(|()| cuda.inner.events.prepare()) {
            Ok(prepared) => prepared,
            Err(why) => return Err(Refused { back: Some(Box::new(self)), why }),
        };
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped; each field is taken out or dropped once.
        let (sample, allocation) = unsafe {
            let sample = ManuallyDrop::take(&mut this.sample);
            let allocation = std::ptr::read(&raw const this.allocation);
            std::ptr::drop_in_place(&raw mut this.share);
            (sample, allocation)
        };
        match prepared.begin(stream) {
            Ok(event) => {
                let flight = cuda.inner.registrar.fly(None, event);
                Ok(Reading { take: Take::new(sample, flight, cuda), _allocation: allocation })
            }
            Err(e) => {
                std::mem::forget((sample, allocation));
                cuda.inner.registrar.quarantine();
                Err(e.into())
            }
        }
    }
}

impl Drop for DeviceSample {
    fn drop(&mut self) {
        if self.in_doubt {
            // Waiting would spoil the capture, and says nothing of another device.
            std::mem::forget(Arc::clone(&self.allocation));
            self.share.cuda.inner.registrar.quarantine();
        } else if self.share.cuda.synchronize_timeout(DROP_WAIT).is_ok() {
            // SAFETY: dropped here once; nothing uses it after.
            unsafe { ManuallyDrop::drop(&mut self.sample) };
        } else {
            self.share.cuda.inner.registrar.quarantine();
        }
    }
}

/// Device memory that a stream is reading; released when the stream is done.
#[derive(Debug)]
#[must_use = "dropping it waits for the stream"]
pub struct Reading {
    take: Take<DeviceFrame>,
    _allocation: Arc<Allocation>,
}

impl Reading {
    /// Whether the stream is done.
    ///
    /// # Errors
    /// `Driver`.
    pub fn is_done(&self) -> Result<bool> {
        self.take.is_done()
    }

    /// Waits until the stream is done, at most 10 s, and releases the memory.
    ///
    /// # Errors
    /// `Timeout`, `Driver`: it stays borrowed.
    pub fn finish(self) -> Result<()> {
        self.take.finish()
    }
}
