//! A device of this process: its context, and what this crate keeps for it.
#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::aside::Aside;
use crate::context::Context;
use crate::copier::Copiers;
use crate::device::{Info, look_at};
use crate::driver::{self, Api, Device, Handle, INVALID_CONTEXT, attribute};
use crate::event::Events;
use crate::handle::{DevicePtr, Stream};
use crate::pinned::Stages;
use crate::process::{fork_generation, this_process};
use crate::registrar::{Registered, Registrar};
use crate::{Error, ErrorKind, Result};

/// CUDA_ERROR_STREAM_CAPTURE_*.
const CAPTURES: std::ops::RangeInclusive<i32> = 900..=908;

/// A CUDA device as this process uses it; clones are the same device.
///
/// Opened once per process and device, and kept for as long as the process lives, even if every
/// clone is dropped: segments are registered with the driver once, and must be unregistered before
/// they are unmapped. Uses the device's primary context, the one that torch, cupy and the CUDA
/// runtime use.
///
/// After `fork` a child cannot use it: CUDA does not survive a fork. Nor does a stream that is
/// being captured into a graph: its copies would run again, into chunks that are others' by then.
/// Both are refused ([`ErrorKind::Unsupported`]).
#[derive(Clone)]
pub struct Cuda {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) api: Api,
    pub(crate) device: Device,
    ordinal: usize,
    library: OsString,
    context: ContextHandle,
    info: Info,
    pub(crate) events: Events,
    pub(crate) registrar: Arc<Registrar>,
    pub(crate) aside: Arc<Aside>,
    copiers: Mutex<Copiers>,
    stages: Mutex<Stages>,
    opened_by: u32,
}

struct ContextHandle(Handle);

// SAFETY: the driver's handles may be used from any thread; it locks by itself.
unsafe impl Send for ContextHandle {}
// SAFETY: as above.
unsafe impl Sync for ContextHandle {}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuda").field("info", &self.inner.info).finish()
    }
}

/// Devices opened by this process, or by the parents of a forked child; never given back.
static OPEN: Mutex<Vec<Arc<Inner>>> = Mutex::new(Vec::new());

/// Devices that are open and calls that may open one, and above that the generation of the process
/// they are of. A child that is forked in the middle of one finds `OPEN` locked for ever.
static USES: AtomicU64 = AtomicU64::new(0);
const USES_BITS: u32 = 32;

/// # Errors
/// `Unsupported` in a child of a process that used a device, which inherits what it did.
fn refuse_forked() -> Result<()> {
    used_by(this_process(), USES.load(Relaxed)).map(drop).ok_or_else(driver::forked)
}

/// How many of `uses` are of `process`; `None` where they are another's.
fn used_by(process: u32, uses: u64) -> Option<u64> {
    let (by, count) = (uses >> USES_BITS, uses & u64::from(u32::MAX));
    (count == 0 || by == u64::from(process)).then_some(count)
}

/// One of `USES`.
struct Use;

impl Use {
    /// # Errors
    /// As `refuse_forked`.
    fn begin() -> Result<Self> {
        let process = this_process();
        let one_more = |uses| Some(u64::from(process) << USES_BITS | (used_by(process, uses)? + 1));
        let begun = USES.fetch_update(Relaxed, Relaxed, one_more);
        begun.map(|_| Self).map_err(|_| driver::forked())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        USES.fetch_sub(1, Relaxed);
    }
}

/// With a `Use` that lives on.
fn open_devices() -> MutexGuard<'static, Vec<Arc<Inner>>> {
    OPEN.lock().unwrap_or_else(|e| e.into_inner())
}

impl Cuda {
    /// Opens device `ordinal`, counted from 0 (after `CUDA_VISIBLE_DEVICES`).
    ///
    /// The library is `libcuda.so.1`, or what `OUTLIVE_CUDA_DRIVER` names.
    ///
    /// # Errors
    /// `NoDriver`, `NoDevice`, `DriverTooOld` (which names what it lacks), `Driver`; `Io` without a
    /// thread, of which each device has one that waits until memory can be given back.
    ///
    /// # Real-time
    /// The first call starts the driver: some 100 ms.
    pub fn open(ordinal: usize) -> Result<Self> {
        Self::open_library(driver::library_name(), ordinal)
    }

    /// As [`Cuda::open`] with a driver library of your own: a name or a path.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn open_library(library: impl Into<OsString>, ordinal: usize) -> Result<Self> {
        let library = library.into();
        let using = Use::begin()?;
        let mut open = open_devices();
        let ours = || open.iter().filter(|c| c.library == library && c.is_own_process());
        if let Some(inner) = ours().find(|c| c.ordinal == ordinal) {
            return Ok(Self { inner: Arc::clone(inner) });
        }
        // A registration counts for all devices, and ends when none of them copies any more.
        let registrar = ours().next().map(|c| Arc::clone(&c.registrar));
        let api = Api::open(&library)?;
        let inner = Arc::new(Inner::open(api, ordinal, library, registrar)?);
        std::mem::forget(using);
        open.push(Arc::clone(&inner));
        Ok(Self { inner })
    }

    /// Opens the device whose memory lies at `ptr`, where an array does not say which that is.
    ///
    /// # Errors
    /// As [`Cuda::open`]; `InvalidArgument` if it belongs to no device, or the driver cannot tell.
    pub fn open_of(ptr: DevicePtr) -> Result<Self> {
        match Self::ordinal_of(ptr)? {
            Some(ordinal) => Self::open(ordinal),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("asking on which device {:#x} lies", ptr.0),
                "name the device",
            )),
        }
    }

    /// On which device `ptr` lies. A device that is opened to ask has its context for good: so in
    /// one that is open, else in the context of whoever made the array.
    fn ordinal_of(ptr: DevicePtr) -> Result<Option<usize>> {
        let library = driver::library_name();
        if let Some(open) = Self::any_open(&library)? {
            let _context = open.inner.enter()?;
            return Ok(ask_ordinal(&open.inner.api, ptr).1);
        }
        match ask_ordinal(&Api::open(&library)?, ptr) {
            (INVALID_CONTEXT, _) => {
                let first = Self::open(0)?;
                let _context = first.inner.enter()?;
                Ok(ask_ordinal(&first.inner.api, ptr).1)
            }
            (_, ordinal) => Ok(ordinal),
        }
    }

    fn any_open(library: &OsString) -> Result<Option<Self>> {
        let _using = Use::begin()?;
        let open = open_devices();
        let found = open.iter().find(|c| c.library == *library && c.is_own_process());
        Ok(found.map(|inner| Self { inner: Arc::clone(inner) }))
    }

    /// All devices that the driver has, without opening one.
    ///
    /// # Errors
    /// As [`Cuda::open`].
    pub fn devices() -> Result<Vec<Info>> {
        refuse_forked()?;
        let api = Api::open(&driver::library_name())?;
        let mut count = 0;
        // SAFETY: a valid pointer.
        api.check(unsafe { (api.device_count)(&raw mut count) }, "cuDeviceGetCount")?;
        (0..count as usize).map(|ordinal| Ok(look_at(&api, ordinal)?.1)).collect()
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.inner.info.device.name
    }

    /// Driver and device.
    pub fn info(&self) -> &Info {
        &self.inner.info
    }

    /// Which of the process's data segments the driver knows.
    pub fn registered(&self) -> Registered {
        self.inner.registrar.registered()
    }

    /// Registers all data segments that are mapped now, which else happens with the first copy
    /// in or out of each: some 100 us per MiB.
    ///
    /// Segments that the driver refuses are copied through its own buffers, and reported once on
    /// standard error.
    ///
    /// # Errors
    /// `Driver` when the context cannot be used.
    pub fn register_segments(&self) -> Result<Registered> {
        let _context = self.inner.enter()?;
        for segment in outlive::topic::segments::segments() {
            self.inner.registrar.ensure_mapped(&segment);
        }
        Ok(self.registered())
    }

    /// A new stream of the device, destroyed when it is dropped.
    ///
    /// # Errors
    /// `Driver`.
    pub fn stream(&self) -> Result<StreamGuard> {
        let _context = self.inner.enter()?;
        let mut handle = std::ptr::null_mut();
        let non_blocking = 1;
        // SAFETY: a valid pointer, with the context current.
        let code = unsafe { (self.inner.api.create_stream)(&raw mut handle, non_blocking) };
        self.inner.api.check(code, "cuStreamCreate")?;
        Ok(StreamGuard { cuda: self.clone(), stream: Stream(handle) })
    }

    /// Waits until everything this process began on the device is done, however long that takes.
    ///
    /// # Errors
    /// `Driver`, also for earlier operations that failed.
    pub fn synchronize(&self) -> Result<()> {
        let _context = self.inner.enter()?;
        // SAFETY: with the context current.
        self.inner.api.check(unsafe { (self.inner.api.synchronize)() }, "cuCtxSynchronize")
    }

    /// As [`Cuda::synchronize`], and waits at most `timeout`: the device's thread waits in the
    /// driver, which knows no deadline.
    ///
    /// # Errors
    /// `Timeout`; as `synchronize`.
    pub fn synchronize_timeout(&self, timeout: Duration) -> Result<()> {
        self.inner.refuse_child()?;
        // SAFETY: with the context current.
        let code = self.inner.aside.call(timeout, |api| unsafe { (api.synchronize)() })?;
        self.inner.api.check(code, "cuCtxSynchronize")
    }

    /// How copies are made: change it to put a copier of your own in front.
    pub fn copiers(&self) -> MutexGuard<'_, Copiers> {
        self.inner.copiers.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// The driver's answer, and the device if it knows.
fn ask_ordinal(api: &Api, ptr: DevicePtr) -> (i32, Option<usize>) {
    let Some(attribute_of) = api.pointer_attribute else { return (0, None) };
    let mut ordinal = -1;
    let to = (&raw mut ordinal).cast();
    // SAFETY: room for the int that this attribute is.
    let code = unsafe { attribute_of(to, attribute::OF_POINTER_ORDINAL, ptr.0) };
    (code, usize::try_from(ordinal).ok())
}

impl Inner {
    fn open(
        api: Api,
        ordinal: usize,
        library: OsString,
        registrar: Option<Arc<Registrar>>,
    ) -> Result<Self> {
        let (device, info) = look_at(&api, ordinal)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: a valid pointer; retained for as long as the process lives, as torch does.
        let code = unsafe { (api.retain_context)(&raw mut context, device) };
        api.check(code, "cuDevicePrimaryCtxRetain")?;
        let context = ContextHandle(context);
        let (raw, opened_by) = (context.0, this_process());
        let aside = Arc::new(Aside::start(api, raw)?);
        let registrar = registrar.unwrap_or_else(|| {
            let registrar = Arc::new(Registrar::new(api, Arc::clone(&aside), &info.device));
            outlive::topic::segments::watch(&registrar);
            registrar
        });
        Ok(Self {
            api,
            device,
            ordinal,
            library,
            registrar,
            info,
            events: Events::new(api, raw, opened_by),
            aside,
            context,
            copiers: Mutex::new(Copiers::standard(api)),
            stages: Mutex::default(),
            opened_by,
        })
    }

    pub(crate) fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn is_own_process(&self) -> bool {
        self.opened_by == fork_generation()
    }

    /// # Errors
    /// `Unsupported` in a forked child.
    pub(crate) fn refuse_child(&self) -> Result<()> {
        if self.is_own_process() { Ok(()) } else { Err(driver::forked()) }
    }

    /// Makes the device's context current until the result is dropped.
    pub(crate) fn enter(&self) -> Result<Context> {
        self.refuse_child()?;
        Context::enter(&self.api, self.context.0)
    }

    /// Refuses a stream that is being captured: what is asked for would not be done now, and again
    /// whenever the graph is launched. And one of another device: nobody would know when what is
    /// asked for there is done. With the context current.
    ///
    /// # Errors
    /// `Unsupported`, `InvalidArgument`, `Driver`.
    pub(crate) fn check_stream(&self, stream: Stream) -> Result<()> {
        let mut status = 0;
        // SAFETY: a valid pointer; the stream is the caller's word.
        let code = self.api.is_capturing.map_or(0, |f| unsafe { f(stream.0, &raw mut status) });
        // The default stream cannot be asked while another one is being captured.
        if status != 0 || CAPTURES.contains(&code) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "copying or waiting on a stream that is being captured into a graph",
                "a graph would copy again into chunks that are others' by then: end the capture \
                 first, or use another stream",
            ));
        }
        self.api.check(code, "cuStreamIsCapturing")?;
        let Some(context_of) = self.api.stream_context.filter(|_| !stream.is_default()) else {
            return Ok(());
        };
        let mut context = std::ptr::null_mut();
        // SAFETY: as above.
        let code = unsafe { context_of(stream.0, &raw mut context) };
        self.api.check(code, "cuStreamGetCtx")?;
        if context == self.context.0 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("using a stream of another device or context with {}", self.info.device.name),
            "use a stream of the device that the array is on",
        ))
    }

    /// As `check_stream`, without the context.
    pub(crate) fn enter_and_check(&self, stream: Stream) -> Result<()> {
        let _context = self.enter()?;
        self.check_stream(stream)
    }
}

/// A stream of this process, destroyed when it is dropped; the driver finishes what is on it.
#[derive(Debug)]
#[must_use = "dropping it destroys the stream"]
pub struct StreamGuard {
    cuda: Cuda,
    stream: Stream,
}

impl StreamGuard {
    /// The stream.
    pub fn stream(&self) -> Stream {
        self.stream
    }

    /// Waits until all that is on it is done.
    ///
    /// # Errors
    /// `Driver`, also for earlier operations that failed.
    pub fn synchronize(&self) -> Result<()> {
        let inner = &self.cuda.inner;
        let _context = inner.enter()?;
        // SAFETY: a stream that lives.
        let code = unsafe { (inner.api.synchronize_stream)(self.stream.0) };
        inner.api.check(code, "cuStreamSynchronize")
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let inner = &self.cuda.inner;
        if let Ok(_context) = inner.enter() {
            // SAFETY: a stream that lives, destroyed once.
            unsafe { (inner.api.destroy_stream)(self.stream.0) };
        }
    }
}
