//! Streams at work: threads that do one operation after the other, and what copies touch meanwhile.

use std::collections::{HashMap, VecDeque};
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::options::options;
use crate::{Answer, CAPTURED, INVALID_HANDLE, SUCCESS};

/// Rows of bytes between two places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) to_pitch: usize,
    pub(crate) from_pitch: usize,
    pub(crate) width: usize,
    pub(crate) rows: usize,
    pub(crate) to_host: bool,
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
pub(crate) struct Event {
    pub(crate) recorded: AtomicU32,
    pub(crate) done: AtomicU32,
}

impl Event {
    pub(crate) fn is_done(&self) -> bool {
        self.done.load(SeqCst) == self.recorded.load(SeqCst)
    }
}

pub(crate) enum Op {
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

pub(crate) fn nap() {
    std::thread::sleep(Duration::from_micros(20));
}

#[derive(Default)]
pub(crate) struct Stream {
    /// Waiting operations; the one in front is being done.
    queue: Mutex<VecDeque<Op>>,
    /// Operations that are not done.
    pub(crate) open: AtomicUsize,
    wake: Condvar,
}

pub(crate) static STREAMS: Mutex<Option<HashMap<usize, Arc<Stream>>>> = Mutex::new(None);
static COPIES: AtomicUsize = AtomicUsize::new(0);
/// What copies that are not done touch.
static RANGES: Mutex<Vec<[Touched; 2]>> = Mutex::new(Vec::new());

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

pub(crate) fn under_way() -> usize {
    COPIES.load(SeqCst)
}

/// The stream of a handle; 0 to 2 are the default ones.
pub(crate) fn stream(handle: *mut c_void) -> Option<Arc<Stream>> {
    let id = handle.addr();
    let mut streams = lock(&STREAMS);
    let streams = streams.get_or_insert_default();
    if let Some(stream) = streams.get(&id) {
        return Some(Arc::clone(stream));
    }
    (id <= 2).then(|| start(streams, id))
}

pub(crate) fn start(streams: &mut HashMap<usize, Arc<Stream>>, id: usize) -> Arc<Stream> {
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

pub(crate) fn push(handle: *mut c_void, op: Op) -> Answer {
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

pub(crate) fn push_copy(handle: *mut c_void, copy: Copy) -> Answer {
    COPIES.fetch_add(1, SeqCst);
    lock(&RANGES).push(copy.ranges());
    let answer = push(handle, Op::Copy(copy));
    if answer != SUCCESS {
        lock(&RANGES).retain(|range| *range != copy.ranges());
        COPIES.fetch_sub(1, SeqCst);
    }
    answer
}

pub(crate) fn finish(stream: &Stream) {
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
