//! Sending device memory.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use outlive::{Loan, Publisher};

use super::frame::{DeviceFrame, Refused};
use super::memory::Inner;
use super::socket::Key;
use super::vmm::Allocation;
use crate::aside::DROP_WAIT;
use crate::event::COPY_WAIT;
use crate::handle::{DevicePtr, Stream};
use crate::{Error, Result};

/// Sends device memory on a topic; as [`Publisher`], it waits for `reliable` subscribers only.
///
/// Takes one allocation for each chunk of the topic that is in use at once: depth + borrowed +
/// loaned. Dropped, it waits for the device, at most a second for each of them that nobody else
/// here has.
#[derive(Debug)]
pub struct DevicePublisher {
    publisher: Publisher<DeviceFrame>,
    /// Of each chunk, by its address.
    allocations: RefCell<HashMap<usize, (Key, Arc<Allocation>)>>,
    share: Arc<Inner>,
}

impl DevicePublisher {
    pub(super) fn new(share: Arc<Inner>, publisher: Publisher<DeviceFrame>) -> Self {
        Self { publisher, allocations: RefCell::default(), share }
    }

    /// The topic's port itself.
    pub fn port(&self) -> &Publisher<DeviceFrame> {
        &self.publisher
    }

    /// Device memory that this publisher takes, bytes.
    pub fn device_bytes(&self) -> usize {
        self.allocations.borrow().values().map(|(_, a)| a.bytes()).sum()
    }

    /// Device memory of at least `bytes` bytes to fill and send; holds whatever was there before.
    ///
    /// # Errors
    /// Those of [`Publisher::loan`]; `Driver` when the device's memory is exhausted.
    ///
    /// # Real-time
    /// As [`Publisher::loan`], except for the first use of a chunk, which allocates.
    pub fn loan(&self, bytes: usize) -> Result<DeviceLoan<'_>> {
        let loan = self.publisher.loan()?;
        let at = std::ptr::from_ref(&*loan).addr();
        let mut allocations = self.allocations.borrow_mut();
        let fitting = allocations.get(&at).filter(|(_, a)| a.bytes() >= bytes).cloned();
        let (key, allocation) = match fitting {
            Some(found) => found,
            None => {
                // Nobody borrows the chunk, so nobody needs what it named.
                if let Some((old, _)) = allocations.remove(&at) {
                    self.share.withdraw(old);
                }
                let (key, allocation) = self.share.create(bytes)?;
                let made = (key, Arc::new(allocation));
                allocations.insert(at, made.clone());
                made
            }
        };
        let share = &self.share;
        let loan = ManuallyDrop::new(loan);
        Ok(DeviceLoan { loan, key, allocation, bytes, share, in_doubt: false })
    }
}

impl Drop for DevicePublisher {
    fn drop(&mut self) {
        for (key, _) in self.allocations.get_mut().values() {
            self.share.withdraw(*key);
        }
    }
}

/// Device memory lent to a publisher. Dropped unpublished it waits for the device, at most a
/// second, since kernels may be writing it; after that it stays reserved. That wait spoils a
/// capture of any stream of the device, so a loan whose stream was refused stays reserved at once.
#[derive(Debug)]
#[must_use = "dropping it publishes nothing"]
pub struct DeviceLoan<'p> {
    loan: ManuallyDrop<Loan<'p, DeviceFrame>>,
    key: Key,
    allocation: Arc<Allocation>,
    bytes: usize,
    share: &'p Arc<Inner>,
    /// Its stream was refused: nobody can wait for what writes it.
    in_doubt: bool,
}

impl<'p> DeviceLoan<'p> {
    /// Where to write.
    pub fn ptr(&self) -> DevicePtr {
        self.allocation.ptr()
    }

    /// How much, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Waits until the device has done what is on `stream` now, at most 10 s, and sends; returns
    /// the message's `seq`.
    ///
    /// # Safety
    /// `stream` is one of this device and lives; all that writes this memory is on it or done.
    ///
    /// # Errors
    /// `Unsupported`, `InvalidArgument`: nothing was sent, and the loan comes back; to publish it
    /// again is all that it is good for. `Driver`, `Timeout`: nothing was sent, and the memory
    /// stays reserved, since the device may still write it. Those of [`Loan::publish`].
    ///
    /// # Crash safety
    /// **Strict.** Commit point: that of [`Loan::publish`], after the device is done.
    pub unsafe fn publish(
        mut self,
        stream: Stream,
        tag: [u64; 8],
    ) -> std::result::Result<u64, Refused<Self>> {
        let cuda = &self.share.cuda;
        let checked = cuda.inner.enter_and_check(stream);
        self.in_doubt = checked.is_err();
        let prepared = match checked.and_then(|()| cuda.inner.events.prepare()) {
            Ok(prepared) => prepared,
            Err(why) => return Err(Refused { back: Some(Box::new(self)), why }),
        };
        let done = prepared.begin(stream).and_then(|event| event.wait(COPY_WAIT));
        **self.loan = DeviceFrame {
            owner: self.key.node,
            serial: self.key.serial,
            allocation_bytes: self.allocation.bytes() as u64,
            bytes: self.bytes as u64,
            uuid: cuda.info().device.uuid,
            tag,
        };
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped; the fields are taken out or dropped once.
        let loan = unsafe {
            std::ptr::drop_in_place(&raw mut this.allocation);
            ManuallyDrop::take(&mut this.loan)
        };
        if let Err(e) = done {
            std::mem::forget(loan);
            this.share.cuda.inner.registrar.quarantine();
            return Err(e.into());
        }
        Ok(loan.publish().map_err(Error::from)?)
    }
}

impl Drop for DeviceLoan<'_> {
    fn drop(&mut self) {
        if self.in_doubt {
            // Waiting would spoil the capture, and says nothing of another device.
            std::mem::forget(Arc::clone(&self.allocation));
            self.share.cuda.inner.registrar.quarantine();
        } else if self.share.cuda.synchronize_timeout(DROP_WAIT).is_ok() {
            // SAFETY: dropped here once; nothing uses it after.
            unsafe { ManuallyDrop::drop(&mut self.loan) };
        } else {
            self.share.cuda.inner.registrar.quarantine();
        }
    }
}
