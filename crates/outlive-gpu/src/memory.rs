//! Memory of a device.
#![allow(unsafe_code)]

use std::time::Duration;

use crate::copier::{Job, Place};
use crate::cuda::{COPY_WAIT, Cuda, DROP_WAIT};
use crate::driver::register;
use crate::handle::{DevicePtr, Stream};
use crate::{Error, ErrorKind, Result};

const PAGE: usize = 4096;

/// Device memory of this process, freed when it is dropped: the driver waits for the whole device,
/// the caller at most a second. After that it is freed once the device is done.
#[derive(Debug)]
pub struct DeviceBuffer {
    cuda: Cuda,
    ptr: DevicePtr,
    bytes: usize,
}

impl Cuda {
    /// Allocates device memory; its contents are whatever was there.
    ///
    /// # Errors
    /// `InvalidArgument` for 0 bytes, `Driver` when there is not enough.
    pub fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        if bytes == 0 {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                "allocating 0 bytes of device memory",
                "ask for at least one",
            ));
        }
        let _context = self.inner.enter()?;
        let mut address = 0;
        // SAFETY: a valid pointer, with the context current.
        let code = unsafe { (self.inner.api.allocate)(&raw mut address, bytes) };
        self.inner.api.check(code, "cuMemAlloc")?;
        Ok(DeviceBuffer { cuda: self.clone(), ptr: DevicePtr(address), bytes })
    }

    /// Allocates device memory that holds `data`. Waits for the copy at most 10 s; before it has
    /// begun the driver may wait for what is on the default stream, for as long as that takes.
    ///
    /// # Errors
    /// As [`Cuda::alloc`]; `Unsupported` where nothing can be begun; `Io` without memory;
    /// `Timeout`: a copy of `data` stays for as long as the process lives, since the device may
    /// still read it.
    pub fn upload(&self, data: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.alloc(data.len())?;
        // Ours: the caller's may go before a copy that is given up.
        let mut ours = room_for(data.len())?;
        ours.extend_from_slice(data);
        let from = Place::host(ours.as_mut_ptr());
        let job = Job::flat(Place::device(buffer.ptr), from, data.len());
        // SAFETY: both ranges have this length and outlive the copy: `ours` by the function, and
        // the driver frees what it writes once it is done.
        unsafe { self.copy_with(&job, ours) }.map(|_| buffer)
    }

    /// As `copy_now`, to or from `data`, which is kept where the device may still touch it.
    ///
    /// # Safety
    /// As `copy_now` for the other place.
    unsafe fn copy_with(&self, job: &Job, data: Vec<u8>) -> Result<Vec<u8>> {
        // SAFETY: passed on from the caller.
        let begun = match unsafe { self.start(job, Stream::DEFAULT) } {
            // Nothing is under way.
            Err(e) if e.kind() != ErrorKind::Timeout => return Err(e),
            begun => begun,
        };
        match begun.and_then(|copy| copy.wait(COPY_WAIT)) {
            Ok(()) => Ok(data),
            Err(e) => {
                std::mem::forget(data);
                Err(e)
            }
        }
    }

    /// Begins a copy from device memory to device memory, in the order of `stream`.
    ///
    /// # Safety
    /// Both are device memory of `bytes` bytes, valid until the stream has done the copy, and do
    /// not overlap. `stream` is one of this device and lives until then.
    ///
    /// # Errors
    /// `Driver`.
    pub unsafe fn copy_on_device(
        &self,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<()> {
        let job = Job::flat(Place::device(to), Place::device(from), bytes);
        // SAFETY: passed on from the caller.
        unsafe { self.start(&job, stream) }.map(drop)
    }

    /// Host memory of this process that the driver has registered: the fastest a copy can be.
    ///
    /// # Errors
    /// `InvalidArgument` for 0 bytes, `Io` without memory, `Driver` when it refuses to register.
    pub fn pinned(&self, bytes: usize) -> Result<PinnedBuffer> {
        let len = bytes.next_multiple_of(PAGE);
        let _context = self.inner.enter()?;
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
            let code = (self.inner.api.register)(at, len, register::PORTABLE);
            if code != 0 {
                libc::munmap(at, len);
            }
            self.inner.api.check(code, "cuMemHostRegister")?;
            Ok(PinnedBuffer { cuda: self.clone(), at, bytes, len })
        }
    }

    /// Makes one copy and waits for it, at most 10 s. Where host memory is not registered the
    /// driver may wait before it has begun, as with [`Cuda::upload`].
    ///
    /// # Safety
    /// As [`crate::copier::Copier::start`], but only until this returns `Ok`.
    ///
    /// # Errors
    /// `Driver`, `Timeout`.
    pub unsafe fn copy_now(&self, job: &Job) -> Result<()> {
        // SAFETY: passed on from the caller.
        let done = unsafe { self.start(job, Stream::DEFAULT) }?;
        done.wait(COPY_WAIT)
    }
}

impl DeviceBuffer {
    /// Its address.
    pub fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// Its length, bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What it holds. Waits as [`Cuda::upload`].
    ///
    /// # Errors
    /// `Driver`, `Timeout`; `Unsupported` where nothing can be begun; `Io` without memory.
    pub fn download(&self) -> Result<Vec<u8>> {
        let mut data = room_for(self.bytes)?;
        let to = Place::host(data.as_mut_ptr());
        let job = Job::flat(to, Place::device(self.ptr), self.bytes);
        // SAFETY: both ranges have this length and outlive the copy, or what it writes is kept.
        let mut data = unsafe { self.cuda.copy_with(&job, data) }?;
        // SAFETY: room for as many, and the copy has written them all.
        unsafe { data.set_len(self.bytes) };
        Ok(data)
    }
}

fn room_for(bytes: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| {
        Error::new(ErrorKind::Io, format!("reserving {bytes} bytes to copy"), "copy in parts")
    })?;
    Ok(room)
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if self.cuda.inner.refuse_child().is_ok() {
            let at = self.ptr.0;
            // SAFETY: allocated by `alloc`, freed once; the driver waits for what uses it.
            self.cuda.inner.aside.does(DROP_WAIT, move |api| unsafe { (api.free)(at) } == 0);
        }
    }
}

/// Registered host memory, freed when it is dropped. The device must be done with it by then. The
/// driver may wait for the whole device, the caller waits at most a second; after that it is freed
/// once the device is done.
#[derive(Debug)]
pub struct PinnedBuffer {
    cuda: Cuda,
    at: *mut std::ffi::c_void,
    bytes: usize,
    len: usize,
}

// SAFETY: memory of its own, reached through raw pointers alone.
unsafe impl Send for PinnedBuffer {}

impl PinnedBuffer {
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
        if self.cuda.inner.refuse_child().is_ok() {
            // SAFETY: registered and mapped by `pinned`; nothing uses it after.
            unsafe { unmap_registered(&self.cuda, self.at, self.len, DROP_WAIT) };
        }
    }
}

/// Unregisters and unmaps host memory; its caller waits for that at most `wait`.
///
/// # Safety
/// It is a mapping of this process, of `len` bytes, registered as a whole. Nothing uses it after.
pub(crate) unsafe fn unmap_registered(
    cuda: &Cuda,
    at: *mut std::ffi::c_void,
    len: usize,
    wait: Duration,
) {
    let at = at.expose_provenance();
    cuda.inner.aside.does(wait, move |api| {
        let at = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: passed on from the caller; unregistering waits for the device.
        unsafe { (api.unregister)(at) == 0 && libc::munmap(at, len) == 0 }
    });
}
