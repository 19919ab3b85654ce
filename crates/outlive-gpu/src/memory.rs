//! Memory of a device.
#![allow(unsafe_code)]

use crate::copier::{Job, Place};
use crate::cuda::{COPY_WAIT, Cuda};
use crate::driver::register;
use crate::handle::{DevicePtr, Stream};
use crate::{Error, ErrorKind, Result};

const PAGE: usize = 4096;

/// Device memory of this process, freed when it is dropped.
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

    /// Allocates device memory that holds `data`.
    ///
    /// # Errors
    /// As [`Cuda::alloc`].
    pub fn upload(&self, data: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.alloc(data.len())?;
        let from = Place::host(data.as_ptr().cast_mut());
        let job = Job::flat(Place::device(buffer.ptr), from, data.len());
        // SAFETY: both ranges have this length and outlive the copy, which is waited for.
        unsafe { self.copy_now(&job) }?;
        Ok(buffer)
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

    /// Makes one copy and waits for it, at most 10 s.
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

    /// What it holds.
    ///
    /// # Errors
    /// `Driver`, `Timeout`.
    pub fn download(&self) -> Result<Vec<u8>> {
        let mut data = vec![0; self.bytes];
        let to = Place::host(data.as_mut_ptr());
        let job = Job::flat(to, Place::device(self.ptr), self.bytes);
        // SAFETY: both ranges have this length and outlive the copy, which is waited for.
        let copied = unsafe { self.cuda.copy_now(&job) };
        if copied.is_err() {
            // The device may still write there.
            std::mem::forget(std::mem::take(&mut data));
        }
        copied.map(|()| data)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(_context) = self.cuda.inner.enter() {
            // SAFETY: allocated by `alloc`, freed once; the driver waits for what uses it.
            unsafe { (self.cuda.inner.api.free)(self.ptr.0) };
        }
    }
}

/// Registered host memory, freed when it is dropped. The device must be done with it by then.
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
        if let Ok(_context) = self.cuda.inner.enter() {
            // SAFETY: registered and mapped by `pinned`; unregistering waits for the device.
            unsafe {
                if (self.cuda.inner.api.unregister)(self.at) == 0 {
                    libc::munmap(self.at, self.len);
                }
            }
        }
    }
}
