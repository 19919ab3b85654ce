//! Device memory that can be handed to other processes: an allocation that is a file descriptor.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::aside::DROP_WAIT;
use crate::cuda::{Cuda, Inner};
use crate::driver::{Access, AllocationProperties, Api, Location};
use crate::handle::DevicePtr;
use crate::{Error, ErrorKind, Result};

const PINNED: i32 = 1;
const FILE_DESCRIPTOR: i32 = 1;
const ON_DEVICE: i32 = 1;
const READ_WRITE: i32 = 3;

/// A mapped allocation; its memory lives until the last process that has it lets go.
#[derive(Debug)]
pub(crate) struct Allocation {
    cuda: Cuda,
    handle: u64,
    address: u64,
    bytes: usize,
}

fn unsupported() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "sharing device memory",
        "this driver or device cannot export allocations: send through host memory instead",
    )
}

fn function<F>(f: Option<F>) -> Result<F> {
    f.ok_or_else(unsupported)
}

fn properties(inner: &Inner) -> AllocationProperties {
    AllocationProperties {
        kind: PINNED,
        handle_kinds: FILE_DESCRIPTOR,
        location: location(inner),
        ..AllocationProperties::default()
    }
}

fn location(inner: &Inner) -> Location {
    Location { kind: ON_DEVICE, id: inner.device }
}

impl Allocation {
    /// At least `bytes` bytes, and the descriptor that others import.
    pub(crate) fn create(cuda: &Cuda, bytes: usize) -> Result<(Self, OwnedFd)> {
        let inner = &cuda.inner;
        if !cuda.info().device.shares {
            return Err(unsupported());
        }
        let _context = inner.enter()?;
        let api = &inner.api;
        let (granularity, create) = (function(api.granularity)?, function(api.create)?);
        let properties = properties(inner);
        let (mut unit, mut handle) = (0, 0);
        // SAFETY: valid pointers, with the context current.
        unsafe {
            let code = granularity(&raw mut unit, &raw const properties, 0);
            api.check(code, "cuMemGetAllocationGranularity")?;
        }
        let bytes = bytes.max(1).next_multiple_of(unit.max(1));
        // SAFETY: as above.
        let code = unsafe { create(&raw mut handle, bytes, &raw const properties, 0) };
        api.check(code, "cuMemCreate")?;
        let allocation = Self::map(cuda, handle, bytes)?;
        let mut fd = -1;
        // SAFETY: as above; the handle is live.
        let code = unsafe { function(api.export)?(&raw mut fd, handle, FILE_DESCRIPTOR, 0) };
        api.check(code, "cuMemExportToShareableHandle")?;
        // SAFETY: a new descriptor that the driver made for us; it does not close it on exec.
        let fd = unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            OwnedFd::from_raw_fd(fd)
        };
        Ok((allocation, fd))
    }

    /// What another process exported; `bytes` as it says.
    pub(crate) fn import(cuda: &Cuda, fd: &OwnedFd, bytes: usize) -> Result<Self> {
        let api = &cuda.inner.api;
        let _context = cuda.inner.enter()?;
        let mut handle = 0;
        let by_value = std::ptr::without_provenance_mut(fd.as_raw_fd() as usize);
        // SAFETY: a valid pointer; the descriptor is open.
        let code = unsafe { function(api.import)?(&raw mut handle, by_value, FILE_DESCRIPTOR) };
        api.check(code, "cuMemImportFromShareableHandle")?;
        Self::map(cuda, handle, bytes)
    }

    /// Owns `handle` from here on.
    fn map(cuda: &Cuda, handle: u64, bytes: usize) -> Result<Self> {
        let api = &cuda.inner.api;
        let mut address = 0;
        let reserved = function(api.reserve).and_then(|reserve| {
            // SAFETY: a valid pointer, with the context current.
            let code = unsafe { reserve(&raw mut address, bytes, 0, 0, 0) };
            api.check(code, "cuMemAddressReserve")
        });
        if let Err(e) = reserved {
            release(api, handle);
            return Err(e);
        }
        let access = Access { location: location(&cuda.inner), flags: READ_WRITE };
        // SAFETY: the range was just reserved; the driver refuses an allocation that is shorter.
        let mapped = unsafe {
            let code = function(api.map)?(address, bytes, 0, handle, 0);
            api.check(code, "cuMemMap").and_then(|()| {
                let code = function(api.set_access)?(address, bytes, &raw const access, 1);
                api.check(code, "cuMemSetAccess").inspect_err(|_| unmap(api, address, bytes))
            })
        };
        if let Err(e) = mapped {
            free(api, address, bytes);
            release(api, handle);
            return Err(e);
        }
        Ok(Self { cuda: cuda.clone(), handle, address, bytes })
    }

    pub(crate) fn ptr(&self) -> DevicePtr {
        DevicePtr(self.address)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn release(api: &Api, handle: u64) {
    if let Some(release) = api.release {
        // SAFETY: a handle of ours, released once.
        unsafe { release(handle) };
    }
}

fn unmap(api: &Api, address: u64, bytes: usize) {
    if let Some(unmap) = api.unmap {
        // SAFETY: mapped by `map` with this length.
        unsafe { unmap(address, bytes) };
    }
}

fn free(api: &Api, address: u64, bytes: usize) {
    if let Some(free) = api.free_reserved {
        // SAFETY: reserved by `map` with this length, and nothing is mapped there.
        unsafe { free(address, bytes) };
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.cuda.inner.refuse_child().is_err() {
            // They are the parent's.
            return;
        }
        let Self { handle, address, bytes, .. } = *self;
        self.cuda.inner.aside.does(DROP_WAIT, move |api| {
            // Nothing on the device may touch it any more; else its addresses stay taken.
            // SAFETY: with the context current.
            let done = unsafe { (api.synchronize)() } == 0;
            if done {
                unmap(api, address, bytes);
                free(api, address, bytes);
            }
            release(api, handle);
            done
        });
    }
}
