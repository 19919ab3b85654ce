//! Streams, events and copies.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::options::options;
use crate::{
    Answer, CAPTURED, INVALID_HANDLE, INVALID_VALUE, NOT_READY, NOT_SUPPORTED, SUCCESS, answer,
    failing, memory, not_beside_a_capture,
};

/// Rows of bytes between two places.
#[derive(Clone, Copy, Debug)]
struct Copy {
    to: usize,
    from: usize,
    to_pitch: usize,
    from_pitch: usize,
    width: usize,
    rows: usize,
    to_host: bool,
}

impl Copy {
    /// The first or the second half of each row.
    fn half(&self, second: bool) {
        let middle = self.width / 2;
        let range = if second { middle..self.width } else { 0..middle };
        for row in 0..self.rows {
            let to = self.to + row * self.to_pitch + range.start;
            let from = self.from + row * self.from_pitch + range.start;
            // SAFETY: the ranges of the caller's copy, which it keeps until the copy is done.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    std::ptr::with_exposed_provenance::<u8>(from),
                    std::ptr::with_exposed_provenance_mut::<u8>(to),
                    range.len(),
                );
            }
        }
    }

    /// What it writes and what it reads, with the gaps between rows.
    fn ranges(&self) -> [Touched; 2] {
        let rows = self.rows.saturating_sub(1);
        [
            (self.to, rows * self.to_pitch + self.width),
            (self.from, rows * self.from_pitch + self.width),
        ]
    }

    fn run(&self) {
        let s = options();
        if s.by_process && self.to_host {
            return self.run_by_process(s.delay_us);
        }
        self.half(false);
        if s.delay_us > 0 {
            std::thread::sleep(Duration::from_micros(s.delay_us));
        }
        self.half(true);
    }

    /// As a device does it: who asked for the copy may die meanwhile.
    fn run_by_process(&self, delay_us: u64) {
        // SAFETY: the child makes system calls and touches the ranges of the copy, nothing else.
        unsafe {
            match libc::fork() {
                0 => {
                    libc::close_range(0, c_uint::MAX, 0);
                    self.half(false);
                    libc::usleep(delay_us as libc::useconds_t);
                    self.half(true);
                    libc::_exit(0);
                }
                child if child > 0 => {
                    libc::waitpid(child, std::ptr::null_mut(), 0);
                }
                _ => std::process::abort(),
            }
        }
    }
}

#[derive(Default)]
struct Event {
    recorded: AtomicU32,
    done: AtomicU32,
}

impl Event {
    fn is_done(&self) -> bool {
        self.done.load(SeqCst) == self.recorded.load(SeqCst)
    }
}

enum Op {
    Copy(Copy),
    Record(Arc<Event>, u32),
    AwaitEvent(Arc<Event>, u32),
    AwaitValue { at: usize, value: u32, flags: c_uint },
    Write { at: usize, value: u32 },
}

impl Op {
    fn run(self) {
        let word = |at: usize| {
            // SAFETY: an aligned word of the caller's that it keeps until the operation is done.
            unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(at)) }
        };
        match self {
            Self::Copy(copy) => {
                copy.run();
                lock(&RANGES).retain(|range| *range != copy.ranges());
                COPIES.fetch_sub(1, SeqCst);
            }
            Self::Record(event, n) => event.done.store(n, SeqCst),
            Self::AwaitEvent(event, n) => {
                while event.done.load(SeqCst) < n {
                    nap();
                }
            }
            Self::AwaitValue { at, value, flags } => {
                let there = |now: u32| match flags & 3 {
                    0 => now.wrapping_sub(value) as i32 >= 0,
                    1 => now == value,
                    2 => now & value != 0,
                    _ => !(now | value) != 0,
                };
                while !there(word(at).load(SeqCst)) {
                    nap();
                }
            }
            Self::Write { at, value } => word(at).store(value, SeqCst),
        }
    }
}

fn nap() {
    std::thread::sleep(Duration::from_micros(20));
}

#[derive(Default)]
struct Stream {
    /// Waiting operations; the one in front is being done.
    queue: Mutex<VecDeque<Op>>,
    /// Operations that are not done.
    open: AtomicUsize,
    wake: Condvar,
}

static STREAMS: Mutex<Option<HashMap<usize, Arc<Stream>>>> = Mutex::new(None);
/// Of each stream.
static CONTEXTS: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);
static EVENTS: Mutex<Option<HashMap<usize, Arc<Event>>>> = Mutex::new(None);
static HANDLES: AtomicUsize = AtomicUsize::new(0x100);
static COPIES: AtomicUsize = AtomicUsize::new(0);
/// What copies that are not done touch.
static RANGES: Mutex<Vec<[Touched; 2]>> = Mutex::new(Vec::new());

/// So much memory that is not registered is copied to a device without waiting for the stream.
const PAGEABLE_BYTES: usize = 64 << 10;
/// Most operations, events aside, that a stream takes before it has done the first of them: an H200
/// with driver 580 took 1020.
const OPERATIONS_MAX: usize = 1020;

/// Address and length.
type Touched = (usize, usize);

/// Whether a copy that is not done touches `[at, at + bytes)`.
pub(crate) fn copies_touch(at: usize, bytes: usize) -> bool {
    let ranges = lock(&RANGES);
    ranges.iter().flatten().any(|(start, len)| *start < at + bytes && at < start + len)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

pub(crate) fn events_alive() -> usize {
    lock(&EVENTS).as_ref().map_or(0, HashMap::len)
}

pub(crate) fn under_way() -> usize {
    COPIES.load(SeqCst)
}

/// The stream of a handle; 0 to 2 are the default ones.
fn stream(handle: *mut c_void) -> Option<Arc<Stream>> {
    let id = handle.addr();
    let mut streams = lock(&STREAMS);
    let streams = streams.get_or_insert_default();
    if let Some(stream) = streams.get(&id) {
        return Some(Arc::clone(stream));
    }
    (id <= 2).then(|| start(streams, id))
}

fn start(streams: &mut HashMap<usize, Arc<Stream>>, id: usize) -> Arc<Stream> {
    let stream = Arc::new(Stream::default());
    streams.insert(id, Arc::clone(&stream));
    let of_thread = Arc::clone(&stream);
    std::thread::spawn(move || {
        loop {
            let op = {
                let mut queue = lock(&of_thread.queue);
                loop {
                    match queue.pop_front() {
                        Some(op) => break op,
                        None => {
                            let waited = of_thread.wake.wait(queue);
                            queue = waited.unwrap_or_else(|e| e.into_inner());
                        }
                    }
                }
            };
            op.run();
            of_thread.open.fetch_sub(1, SeqCst);
        }
    });
    stream
}

fn push(handle: *mut c_void, op: Op) -> Answer {
    if options().capturing {
        // As the driver where an operation must not be captured, and the capture is spoilt.
        return CAPTURED;
    }
    let Some(stream) = stream(handle) else { return INVALID_HANDLE };
    // As the driver, whose calls wait for room and know no deadline.
    let waiting = || {
        let queue = lock(&stream.queue);
        queue.iter().filter(|op| !matches!(op, Op::Record(..))).count()
    };
    while waiting() >= OPERATIONS_MAX {
        nap();
    }
    stream.open.fetch_add(1, SeqCst);
    lock(&stream.queue).push_back(op);
    stream.wake.notify_one();
    SUCCESS
}

fn push_copy(handle: *mut c_void, copy: Copy) -> Answer {
    COPIES.fetch_add(1, SeqCst);
    lock(&RANGES).push(copy.ranges());
    let answer = push(handle, Op::Copy(copy));
    if answer != SUCCESS {
        lock(&RANGES).retain(|range| *range != copy.ranges());
        COPIES.fetch_sub(1, SeqCst);
    }
    answer
}

fn finish(stream: &Stream) {
    while stream.open.load(SeqCst) > 0 {
        nap();
    }
}

/// Waits for all streams.
pub(crate) fn finish_all() {
    let streams: Vec<_> =
        lock(&STREAMS).iter().flat_map(|s| s.values().cloned().collect::<Vec<_>>()).collect();
    streams.iter().for_each(|s| finish(s));
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
        && let Some(stream) = self::stream(stream)
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
