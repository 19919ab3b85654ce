//! Host memory that the driver has registered: a device copies to and from it fastest, and without
//! its driver waiting.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use crate::aside::{Aside, DROP_WAIT};
use crate::driver::{Api, register};
use crate::event::Event;
use crate::process::fork_generation;
use crate::{Error, ErrorKind, Result};

const PAGE: usize = 4096;

/// Registered host memory, freed when it is dropped. The device must be done with it by then. The
/// driver may wait for the whole device, the caller waits at most a second; after that it is freed
/// once the device is done.
#[derive(Debug)]
pub struct PinnedBuffer {
    aside: Arc<Aside>,
    at: *mut c_void,
    bytes: usize,
    len: usize,
    is_pinned: bool,
    mapped_by: u32,
}

// SAFETY: memory of its own, reached through raw pointers alone.
unsafe impl Send for PinnedBuffer {}

impl PinnedBuffer {
    /// With the driver's answer: where it refuses to register, the memory is there all the same.
    /// In the process that opened the device, with its context current.
    ///
    /// # Errors
    /// `Io` for 0 bytes or without memory.
    pub(crate) fn map(api: &Api, aside: &Arc<Aside>, bytes: usize) -> Result<(Self, i32)> {
        let (aside, mapped_by) = (Arc::clone(aside), fork_generation());
        let len = bytes.next_multiple_of(PAGE);
        // SAFETY: a new mapping touches nothing of ours; registered while it is mapped.
        unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            // Shared: of private memory a fork would leave the device the pages and give us copies.
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            let at = libc::mmap(std::ptr::null_mut(), len, prot, flags, -1, 0);
            if bytes == 0 || at == libc::MAP_FAILED {
                let what = format!("mapping {bytes} bytes to register");
                return Err(Error::new(ErrorKind::Io, what, "ask for what there is"));
            }
            let code = (api.register)(at, len, register::PORTABLE);
            let is_pinned = code == 0;
            Ok((Self { aside, at, bytes, len, is_pinned, mapped_by }, code))
        }
    }

    /// Its first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.at.cast()
    }

    /// Its length, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if self.is_pinned && self.mapped_by == fork_generation() {
            // SAFETY: registered and mapped by `map`; nothing uses it after.
            unsafe { unmap_registered(&self.aside, self.at, self.len, DROP_WAIT) };
        } else if !self.is_pinned {
            // SAFETY: mapped by `map`; no device knows it.
            unsafe { libc::munmap(self.at, self.len) };
        }
    }
}

/// Unregisters and unmaps host memory; its caller waits for that at most `wait`.
///
/// # Safety
/// It is a mapping of this process, of `len` bytes, registered as a whole. Nothing uses it after.
pub(crate) unsafe fn unmap_registered(aside: &Aside, at: *mut c_void, len: usize, wait: Duration) {
    let at = at.expose_provenance();
    aside.does(wait, move |api| {
        let at = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: passed on from the caller; unregistering waits for the device.
        unsafe { (api.unregister)(at) == 0 && libc::munmap(at, len) == 0 }
    });
}

/// Pinned memory for parts of copies, used again and again.
#[derive(Default)]
pub(crate) struct Stages {
    pub(crate) free: Vec<PinnedBuffer>,
    /// Given up before the device was done.
    pub(crate) stuck: Vec<(PinnedBuffer, Event)>,
}
