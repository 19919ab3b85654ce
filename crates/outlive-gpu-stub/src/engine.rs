//! The driver's functions of streams, events and copies.

use std::collections::HashMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use crate::options::options;
use crate::streams::{
    Copy, Event, Op, STREAMS, finish, finish_all, lock, nap, push, push_copy, start, stream,
};
use crate::{
    Answer, CAPTURED, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, SUCCESS, answer,
    failing, memory, not_beside_a_capture,
};

/// Of each stream.
static CONTEXTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);
static EVENTS: Mutex<Option<HashMap<usize, Arc<Event>>>> = Mutex::new(None);
static HANDLES: AtomicUsize = AtomicUsize::new(0x100);

/// So much memory that is not registered is copied to a device without waiting for the stream.
const PAGEABLE_BYTES: usize = 64 << 10;

pub(crate) fn events_alive() -> usize {
    lock(&EVENTS).as_ref().map_or(0, HashMap::len)
}

fn event(handle: *mut c_void) -> Option<Arc<Event>> {
    lock(&EVENTS).as_ref()?.get(&handle.addr()).cloned()
}

fn rows(to: usize, from: usize, bytes: usize, to_host: bool) -> Copy {
    Copy { to, from, to_pitch: bytes, from_pitch: bytes, width: bytes, rows: 1, to_host }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Answer {
    answer!(cuCtxSynchronize);
    if crate::spoils_every_capture() {
        return CAPTURED;
    }
    finish_all();
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(handle: *mut *mut c_void, _flags: c_uint) -> Answer {
    answer!(cuStreamCreate);
    let id = HANDLES.fetch_add(0x10, SeqCst);
    start(lock(&STREAMS).get_or_insert_default(), id);
    lock(&CONTEXTS).get_or_insert_default().insert(id, crate::context());
    // SAFETY: a valid pointer by the caller, here and below.
    unsafe { *handle = std::ptr::without_provenance_mut(id) };
    SUCCESS
}

/// The default streams are those of whatever is current.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(handle: *mut c_void, context: *mut *mut c_void) -> Answer {
    if stream(handle).is_none() {
        return INVALID_HANDLE;
    }
    let known = lock(&CONTEXTS).as_ref().and_then(|all| all.get(&handle.addr()).copied());
    let of = known.unwrap_or_else(crate::context);
    // SAFETY: a valid pointer by the caller.
    unsafe { *context = std::ptr::without_provenance_mut(of) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(handle: *mut c_void) -> Answer {
    // Its thread goes on with what is queued, and then waits for ever.
    match lock(&STREAMS).as_mut().and_then(|s| s.remove(&handle.addr())) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(handle: *mut c_void) -> Answer {
    answer!(cuStreamSynchronize);
    not_beside_a_capture!();
    let Some(stream) = stream(handle) else { return INVALID_HANDLE };
    finish(&stream);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(handle: *mut c_void) -> Answer {
    let Some(stream) = stream(handle) else { return INVALID_HANDLE };
    if stream.open.load(SeqCst) == 0 { SUCCESS } else { NOT_READY }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(
    handle: *mut c_void,
    event_handle: *mut c_void,
    _flags: c_uint,
) -> Answer {
    answer!(cuStreamWaitEvent);
    let Some(event) = event(event_handle) else { return INVALID_HANDLE };
    let n = event.recorded.load(SeqCst);
    push(handle, Op::AwaitEvent(event, n))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWaitValue32_v2(
    handle: *mut c_void,
    at: u64,
    value: u32,
    flags: c_uint,
) -> Answer {
    answer!(cuStreamWaitValue32_v2);
    if options().no_stream_wait {
        return NOT_SUPPORTED;
    }
    push(handle, Op::AwaitValue { at: at as usize, value, flags })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamWriteValue32_v2(
    handle: *mut c_void,
    at: u64,
    value: u32,
    _flags: c_uint,
) -> Answer {
    answer!(cuStreamWriteValue32_v2);
    push(handle, Op::Write { at: at as usize, value })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(handle: *mut *mut c_void, _flags: c_uint) -> Answer {
    answer!(cuEventCreate);
    let id = HANDLES.fetch_add(0x10, SeqCst);
    lock(&EVENTS).get_or_insert_default().insert(id, Arc::default());
    // SAFETY: as above.
    unsafe { *handle = std::ptr::without_provenance_mut(id) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(handle: *mut c_void) -> Answer {
    match lock(&EVENTS).as_mut().and_then(|e| e.remove(&handle.addr())) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(handle: *mut c_void, stream: *mut c_void) -> Answer {
    answer!(cuEventRecord);
    let Some(event) = event(handle) else { return INVALID_HANDLE };
    let n = event.recorded.fetch_add(1, SeqCst) + 1;
    push(stream, Op::Record(event, n))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(handle: *mut c_void) -> Answer {
    answer!(cuEventQuery);
    not_beside_a_capture!();
    match event(handle) {
        None => INVALID_HANDLE,
        Some(event) if event.is_done() => SUCCESS,
        Some(_) => NOT_READY,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(handle: *mut c_void) -> Answer {
    if let Some(code) = failing("cuEventSynchronize") {
        return code;
    }
    let Some(event) = event(handle) else { return INVALID_HANDLE };
    while !event.is_done() {
        nap();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: u64,
    bytes: usize,
    stream: *mut c_void,
) -> Answer {
    answer!(cuMemcpyDtoHAsync_v2);
    let to = to.expose_provenance();
    if !memory::host_range_is_whole(to, bytes) {
        return INVALID_VALUE;
    }
    push_copy(stream, rows(to, from as usize, bytes, true))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const c_void,
    bytes: usize,
    stream: *mut c_void,
) -> Answer {
    answer!(cuMemcpyHtoDAsync_v2);
    let from = from.expose_provenance();
    if !memory::host_range_is_whole(from, bytes) {
        return INVALID_VALUE;
    }
    // As the driver may, which copies such memory by way of its own.
    if bytes > PAGEABLE_BYTES
        && !memory::is_registered(from)
        && let Some(stream) = crate::streams::stream(stream)
    {
        finish(&stream);
    }
    push_copy(stream, rows(to as usize, from, bytes, false))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(
    to: u64,
    from: u64,
    bytes: usize,
    stream: *mut c_void,
) -> Answer {
    answer!(cuMemcpyDtoDAsync_v2);
    push_copy(stream, rows(to as usize, from as usize, bytes, false))
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Debug)]
pub struct Copy2D {
    from_x_bytes: usize,
    from_y: usize,
    from_kind: c_int,
    from_host: *const c_void,
    from_device: u64,
    from_array: *mut c_void,
    from_pitch: usize,
    to_x_bytes: usize,
    to_y: usize,
    to_kind: c_int,
    to_host: *mut c_void,
    to_device: u64,
    to_array: *mut c_void,
    to_pitch: usize,
    width_bytes: usize,
    height: usize,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpy2DAsync_v2(copy: *const Copy2D, stream: *mut c_void) -> Answer {
    answer!(cuMemcpy2DAsync_v2);
    // SAFETY: a valid structure by the caller.
    let c = unsafe { &*copy };
    if c.from_pitch < c.width_bytes || c.to_pitch < c.width_bytes {
        return INVALID_VALUE;
    }
    let host = 1;
    let from = match c.from_kind == host {
        true => c.from_host.expose_provenance(),
        false => c.from_device as usize,
    };
    let to = match c.to_kind == host {
        true => c.to_host.expose_provenance(),
        false => c.to_device as usize,
    };
    for (kind, at, pitch) in [(c.from_kind, from, c.from_pitch), (c.to_kind, to, c.to_pitch)] {
        if kind == host && !memory::host_range_is_whole(at, pitch * (c.height - 1) + c.width_bytes)
        {
            return INVALID_VALUE;
        }
    }
    push_copy(
        stream,
        Copy {
            to: to + c.to_y * c.to_pitch + c.to_x_bytes,
            from: from + c.from_y * c.from_pitch + c.from_x_bytes,
            to_pitch: c.to_pitch,
            from_pitch: c.from_pitch,
            width: c.width_bytes,
            rows: c.height,
            to_host: c.to_kind == host,
        },
    )
}
