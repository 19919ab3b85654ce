//! Memory of a device.
#![allow(unsafe_code)]

use std::time::Instant;

use crate::aside::DROP_WAIT;
use crate::copier::{Job, Place};
use crate::cuda::Cuda;
use crate::event::{COPY_WAIT, Event};
use crate::handle::{DevicePtr, Stream};
use crate::pinned::PinnedBuffer;
use crate::{Error, ErrorKind, Result};

/// A part of an upload or a download.
const STAGE_BYTES: usize = 4 << 20;
/// Most of them that the device may have for good, before the next copy is refused.
const STUCK_MAX: usize = 4;
/// So much memory that is not pinned a driver takes at once, by CUDA's reference.
const PAGEABLE_BYTES: usize = 64 << 10;

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

    /// Allocates device memory with a copy of `data`, staged through pinned memory. Waits for the
    /// copy at most 10 s, and a second more where it gives up; where the driver refuses to pin
    /// it, also for what is on the default stream, for as long as that takes.
    ///
    /// # Errors
    /// As [`Cuda::alloc`]; `Unsupported` where nothing can be begun; `Io` without memory;
    /// `Timeout`: 4 MiB stay until the device is done, since it may still read them; while it has
    /// 16 MiB, nothing more is begun.
    pub fn upload(&self, data: &[u8]) -> Result<DeviceBuffer> {
        let buffer = self.alloc(data.len())?;
        let until = Instant::now() + COPY_WAIT;
        for (i, part) in data.chunks(STAGE_BYTES).enumerate() {
            let stage = self.stage()?;
            // SAFETY: it has room for a part, and is ours alone.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), stage.as_ptr(), part.len()) };
            let to = Place::device(buffer.ptr.offset(i * STAGE_BYTES));
            let job = Job::flat(to, Place::host(stage.as_ptr()), part.len());
            // SAFETY: both ranges have this length; the driver frees what it writes once it is
            // done.
            let stage = unsafe { self.copy_staged(&job, stage, until) }?;
            self.inner.stages().free.push(stage);
        }
        Ok(buffer)
    }

    /// Pinned memory for a part of a copy: of memory that is not pinned the driver may wait for
    /// the stream before its call returns, and it knows no deadline.
    ///
    /// # Errors
    /// `Timeout` while the device still has what was given up before; `Io` without memory;
    /// `Unsupported` in a forked child, where the lock may be that of a thread of the parent.
    fn stage(&self) -> Result<PinnedBuffer> {
        self.inner.refuse_child()?;
        let mut stages = self.inner.stages();
        let is_open = |(_, event): &(PinnedBuffer, Event)| matches!(event.is_done(), Ok(false));
        let (stuck, done): (Vec<_>, Vec<_>) = stages.stuck.drain(..).partition(is_open);
        stages.free.extend(done.into_iter().map(|(stage, _)| stage));
        stages.stuck = stuck;
        if let Some(stage) = stages.free.pop() {
            return Ok(stage);
        }
        if stages.stuck.len() >= STUCK_MAX {
            return Err(Error::new(
                ErrorKind::Timeout,
                format!("copying behind {STUCK_MAX} copies that were given up"),
                "look for what keeps the device's default stream",
            ));
        }
        drop(stages);
        self.map(STAGE_BYTES).map(|(stage, _)| stage)
    }

    /// Copies to or from `stage` until `until`; it is given back once the device is done with it.
    ///
    /// # Safety
    /// As `copy_now` for the other place.
    unsafe fn copy_staged(
        &self,
        job: &Job,
        stage: PinnedBuffer,
        until: Instant,
    ) -> Result<PinnedBuffer> {
        // SAFETY: passed on from the caller.
        let begun = match unsafe { self.start(job, Stream::DEFAULT) } {
            Ok(begun) => begun,
            Err(e) => {
                match e.kind() {
                    // Nobody knows when the device is done.
                    ErrorKind::Timeout => std::mem::forget(stage),
                    _ => self.inner.stages().free.push(stage),
                }
                return Err(e);
            }
        };
        let left = until.saturating_duration_since(Instant::now());
        let Err(e) = begun.wait(left) else { return Ok(stage) };
        if let Some(event) = begun.into_event() {
            self.inner.stages().stuck.push((stage, event));
        }
        Err(e)
    }

    /// A copy of `data` that a device can read without its driver waiting for it; `None` where
    /// that is no gain, or cannot be had.
    pub(crate) fn pinned_copy(&self, data: &[u8]) -> Option<PinnedBuffer> {
        if data.len() <= PAGEABLE_BYTES {
            return None;
        }
        let copy = self.pinned(data.len()).ok()?;
        // SAFETY: it has room for as much, and is ours alone.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), copy.as_ptr(), data.len()) };
        Some(copy)
    }

    /// Begins a copy from device memory to device memory, in the order of `stream`.
    ///
    /// # Safety
    /// Both are device memory of `bytes` bytes, valid until the stream has done the copy, and do
    /// not overlap. `stream` belongs to this device and lives until then.
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
        let (buffer, code) = self.map(bytes)?;
        self.inner.api.check(code, "cuMemHostRegister").map(|()| buffer)
    }

    /// As `pinned`, with the driver's answer: where it refuses, the memory is there all the same.
    fn map(&self, bytes: usize) -> Result<(PinnedBuffer, i32)> {
        let _context = self.inner.enter()?;
        PinnedBuffer::map(&self.inner.api, &self.inner.aside, bytes)
    }

    /// Makes one copy and waits for it, at most 10 s. Where host memory is not registered the
    /// driver may wait for what is on the default stream before it has begun, for as long as that
    /// takes.
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
        let until = Instant::now() + COPY_WAIT;
        while data.len() < self.bytes {
            let stage = self.cuda.stage()?;
            let bytes = STAGE_BYTES.min(self.bytes - data.len());
            let from = Place::device(self.ptr.offset(data.len()));
            let job = Job::flat(Place::host(stage.as_ptr()), from, bytes);
            // SAFETY: both ranges have this length, and the stage is kept while it is written.
            let stage = unsafe { self.cuda.copy_staged(&job, stage, until) }?;
            // SAFETY: written by the copy, and ours alone.
            data.extend_from_slice(unsafe { std::slice::from_raw_parts(stage.as_ptr(), bytes) });
            self.cuda.inner.stages().free.push(stage);
        }
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
