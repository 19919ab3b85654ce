//! A CUDA driver made of host memory: `libcuda.so.1` for machines without a GPU.
//!
//! "Device memory" is memory of this process, streams are threads that work through their queue,
//! and a copy can be made to take its time, so that everything that may happen between its begin
//! and its end can be made to happen. Numbers it gives say nothing about any GPU.
//!
//! `OUTLIVE_STUB` holds options, separated by blanks; `cuInit` reads it, and
//! `outlive_stub_configure` sets it anew.
//!
//! | setting | does |
//! |---|---|
//! | `delay_us=N` | each copy takes N us: half of it is there at once, the rest at the end |
//! | `engine=process` | copies to the host go on after the program's death, as a device's do |
//! | `init=N` | `cuInit` answers N |
//! | `devices=N` | there are N devices; 1 unless set |
//! | `refuse_register=1` | `cuMemHostRegister` answers `OUT_OF_MEMORY` |
//! | `register_bytes_max=N` | the same above N bytes in one piece |
//! | `no_read_only=1` | no registration of memory that cannot be written |
//! | `no_vmm=1`, `no_stream_wait=1` | the device cannot |
//! | `parts=1` | the devices are parts of one (MIG): the older function gives all the same number |
//! | `capturing=1` | every stream is being captured into a graph |
//! | `capture_elsewhere=1` | another stream is: calls that wait spoil it, but relaxed |
//! | `hold_register=1` | `cuMemHostRegister` does not return while this is set |
//! | `fail=NAME:N:CODE` | the Nth call of function NAME, from 1, answers CODE |
//!
//! `cuCtxSynchronize` spoils each capture, relaxed or not.
//!
//! # Safety
//! All functions are the C interface of the driver, whose rules are the caller's.
#![allow(clippy::missing_safety_doc, non_snake_case, missing_docs)]

mod engine;
mod memory;
mod options;
mod streams;
mod vmm;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

pub use engine::*;
pub use memory::*;
pub use vmm::*;

use options::{options, told_to_fail};

/// A CUresult.
pub type Answer = c_int;

pub(crate) const SUCCESS: Answer = 0;
pub(crate) const INVALID_VALUE: Answer = 1;
pub(crate) const OUT_OF_MEMORY: Answer = 2;
pub(crate) const NOT_INITIALIZED: Answer = 3;
pub(crate) const INVALID_DEVICE: Answer = 101;
pub(crate) const INVALID_CONTEXT: Answer = 201;
pub(crate) const INVALID_HANDLE: Answer = 400;
pub(crate) const NOT_READY: Answer = 600;
pub(crate) const ALREADY_REGISTERED: Answer = 712;
pub(crate) const NOT_REGISTERED: Answer = 713;
pub(crate) const NOT_SUPPORTED: Answer = 801;
pub(crate) const CAPTURED: Answer = 900;
pub(crate) const CAPTURE_IMPLICIT: Answer = 906;

/// Where the driver lies that was built beside the calling test, example or program.
pub fn library() -> Option<std::path::PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let mut dirs = exe.ancestors().skip(1).take(3).flat_map(|d| [d.join("deps"), d.to_path_buf()]);
    dirs.find_map(|d| {
        let path = d.join("liboutlive_gpu_stub.so");
        path.is_file().then_some(path)
    })
}

/// The context of device 0; the others' follow.
pub(crate) const FIRST_CONTEXT: usize = 0x1000;

macro_rules! answer {
    ($name:ident) => {
        if let Some(code) = $crate::options::told_to_fail(stringify!($name)) {
            return code;
        }
    };
}
pub(crate) use answer;

/// Captures that were spoilt by calls that are not allowed beside them.
static SPOILT: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    /// CU_STREAM_CAPTURE_MODE_GLOBAL unless exchanged.
    static CAPTURE_MODE: Cell<c_int> = const { Cell::new(0) };
    static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}
/// The first process that called `cuInit`; 0: none.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// The context that is current; 0: none.
fn context() -> usize {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(0))
}

/// As the driver with a call that may wait, beside a capture: it fails, and so does the capture.
fn spoils_a_capture() -> bool {
    const RELAXED: c_int = 2;
    let spoils = options().capture_elsewhere && CAPTURE_MODE.get() != RELAXED;
    SPOILT.fetch_add(usize::from(spoils), SeqCst);
    spoils
}

/// As the driver with a call that waits for the whole context: no capture mode allows it.
fn spoils_every_capture() -> bool {
    let s = options();
    let spoils = s.capturing || s.capture_elsewhere;
    SPOILT.fetch_add(usize::from(spoils), SeqCst);
    spoils
}

macro_rules! not_beside_a_capture {
    () => {
        if $crate::spoils_a_capture() {
            return $crate::CAPTURED;
        }
    };
}
pub(crate) use not_beside_a_capture;

/// Sets all options anew, as `OUTLIVE_STUB` would.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn outlive_stub_configure(text: *const c_char) {
    // SAFETY: a string of C, by the caller.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    options::set(&text);
}

/// Counters for tests: 0 ranges registered now, 1 events alive, 2 allocations alive, 3 copies
/// under way, 4 ranges that were unmapped while registered, 5 captures of others that were spoilt,
/// 6 registrations that are held.
#[unsafe(no_mangle)]
pub extern "C" fn outlive_stub_count(what: c_int) -> usize {
    match what {
        0 => memory::registered(),
        1 => engine::events_alive(),
        2 => memory::allocations() + vmm::allocations(),
        4 => memory::registered_unmapped(),
        5 => SPOILT.load(SeqCst),
        6 => memory::held(),
        _ => streams::under_way(),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> Answer {
    options::read();
    answer!(cuInit);
    let now = std::process::id();
    let by = INITIALISED_BY.compare_exchange(0, now, Relaxed, Relaxed).unwrap_or_else(|by| by);
    // As the driver, which does not survive a fork.
    if by == 0 || by == now { options().init } else { NOT_INITIALIZED }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> Answer {
    answer!(cuDriverGetVersion);
    // SAFETY: a valid pointer by the caller, here and below.
    unsafe { *version = 12_090 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> Answer {
    answer!(cuDeviceGetCount);
    let Some(devices) = options::devices() else { return NOT_INITIALIZED };
    // SAFETY: as above.
    unsafe { *count = devices };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> Answer {
    answer!(cuDeviceGet);
    match options::devices() {
        Some(n) if (0..n).contains(&ordinal) => {
            // SAFETY: as above.
            unsafe { *device = ordinal };
            SUCCESS
        }
        _ => INVALID_DEVICE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) -> Answer {
    let text = format!("stub device {device}\0");
    let n = text.len().min(len.max(0) as usize);
    // SAFETY: `len` bytes by the caller.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, n) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> Answer {
    let device = if options().parts { 0 } else { device };
    // SAFETY: as above.
    unsafe { *uuid = [0x57 + device as u8; 16] };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> Answer {
    // SAFETY: as above.
    unsafe { *uuid = [0x57 + device as u8; 16] };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> Answer {
    // SAFETY: as above.
    unsafe { *bytes = 1 << 30 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    _device: c_int,
) -> Answer {
    answer!(cuDeviceGetAttribute);
    let s = options();
    let answer = match attribute {
        // Unified addressing, host registration, virtual memory management, POSIX handles.
        41 | 99 => 1,
        102 | 103 => c_int::from(!s.no_vmm),
        113 => c_int::from(!s.no_read_only),
        122 => c_int::from(!s.no_stream_wait),
        75 => 9,
        _ => 0,
    };
    // SAFETY: as above.
    unsafe { *value = answer };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(
    context: *mut *mut c_void,
    device: c_int,
) -> Answer {
    answer!(cuDevicePrimaryCtxRetain);
    // SAFETY: as above.
    unsafe { *context = std::ptr::without_provenance_mut(FIRST_CONTEXT + device as usize) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> Answer {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxPushCurrent_v2(context: *mut c_void) -> Answer {
    answer!(cuCtxPushCurrent_v2);
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context.addr()));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxPopCurrent_v2(context: *mut *mut c_void) -> Answer {
    let last = CONTEXTS.with_borrow_mut(Vec::pop).unwrap_or(0);
    // SAFETY: as above.
    unsafe { *context = std::ptr::without_provenance_mut(last) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: *mut c_void, status: *mut c_int) -> Answer {
    if options().capture_elsewhere && stream.addr() <= 1 {
        // The legacy default stream waits for all others.
        return CAPTURE_IMPLICIT;
    }
    // SAFETY: as above.
    unsafe { *status = c_int::from(options().capturing) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_int) -> Answer {
    // SAFETY: as above.
    unsafe { *mode = CAPTURE_MODE.replace(*mode) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Answer, name: *mut *const c_char) -> Answer {
    let text = match code {
        1 => c"CUDA_ERROR_INVALID_VALUE",
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        100 => c"CUDA_ERROR_NO_DEVICE",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        801 => c"CUDA_ERROR_NOT_SUPPORTED",
        _ => c"CUDA_ERROR_OF_THE_STUB",
    };
    // SAFETY: as above.
    unsafe { *name = text.as_ptr() };
    SUCCESS
}

/// What a test told function `name` to answer.
pub(crate) fn failing(name: &str) -> Option<Answer> {
    told_to_fail(name)
}
