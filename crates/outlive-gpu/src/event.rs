//! Events: when is what was asked for done?
//!
//! # Theory of operation
//! An event that is in use stands for an operation that is not known to be done, also where nobody
//! holds it any more; so their number bounds what is under way. Seen to be done, its handle is used
//! again at once, whoever still holds the event.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::driver::{Api, Handle, NOT_READY, forked};
use crate::handle::Stream;
use crate::process::fork_generation;
use crate::{Error, ErrorKind, Result};

/// Looks before a waiting thread gives the core away between them.
const SPINS: u32 = 200;
/// Longest wait for a copy that the caller did not bound.
pub(crate) const COPY_WAIT: Duration = Duration::from_secs(10);
/// Looks before it sleeps between them.
const YIELDS: u32 = 2000;
const NAP: Duration = Duration::from_micros(50);
/// Most events of a device that are in use at once: copies under way, and waits at gates. Well
/// below the 1020 operations that a driver was seen to take on a stream that stands still: the next
/// call waits there, without a deadline.
pub(crate) const EVENTS_MAX: usize = 512;

struct Raw(Handle);

// SAFETY: the driver's handles may be used from any thread; it locks by itself.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// The events of one device.
#[derive(Clone)]
pub(crate) struct Events {
    shared: Arc<Shared>,
}

struct Shared {
    api: Api,
    context: Raw,
    handles: Mutex<Handles>,
    opened_by: u32,
}

#[derive(Default)]
struct Handles {
    free: Vec<Raw>,
    /// Of events that were dropped before they were seen to be done.
    pending: Vec<Raw>,
    /// Events that somebody holds.
    held: Vec<Weak<Slot>>,
    made: usize,
}

impl Shared {
    /// Before any lock, which may be that of a thread of the parent.
    ///
    /// # Errors
    /// `Unsupported` in a forked child.
    fn refuse_child(&self) -> Result<()> {
        if self.opened_by == fork_generation() { Ok(()) } else { Err(forked()) }
    }

    fn handles(&self) -> MutexGuard<'_, Handles> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the device has passed it; with the context current.
    fn is_done(&self, raw: &Raw) -> Result<bool> {
        // SAFETY: a live event.
        match unsafe { (self.api.query_event)(raw.0) } {
            NOT_READY => Ok(false),
            code => self.api.check(code, "cuEventQuery").map(|()| true),
        }
    }

    /// Takes back what was dropped and is done by now.
    fn sweep_pending(&self) {
        let pending = std::mem::take(&mut self.handles().pending);
        // Of a context that is beyond use nothing is under way.
        let is_open = |raw: &Raw| matches!(self.is_done(raw), Ok(false));
        let (open, done): (Vec<_>, Vec<_>) = pending.into_iter().partition(is_open);
        let mut handles = self.handles();
        handles.pending.extend(open);
        handles.free.extend(done);
    }

    /// The same for those that somebody holds.
    fn sweep_held(&self) {
        let held: Vec<_> = self.handles().held.iter().filter_map(Weak::upgrade).collect();
        for slot in held {
            let _ = slot.is_done();
        }
    }
}

impl Events {
    pub(crate) fn new(api: Api, context: Handle, opened_by: u32) -> Self {
        let (context, handles) = (Raw(context), Mutex::default());
        Self { shared: Arc::new(Shared { api, context, handles, opened_by }) }
    }

    /// The first half: whatever can be refused is refused here, before anything is begun on the
    /// device of which nobody would know when it ends.
    pub(crate) fn prepare(&self) -> Result<Prepared> {
        let shared = &self.shared;
        let _context = Context::enter(&shared.api, shared.context.0)?;
        let free = || shared.handles().free.pop();
        let raw = free().or_else(|| {
            shared.sweep_pending();
            free()
        });
        let raw = match raw {
            Some(raw) => raw,
            None => match self.make()? {
                Some(raw) => raw,
                None => {
                    shared.sweep_held();
                    free().ok_or_else(too_many)?
                }
            },
        };
        Ok(Prepared { raw: Some(raw), shared: Arc::clone(shared) })
    }

    /// One more, unless there are as many as there may be.
    fn make(&self) -> Result<Option<Raw>> {
        let mut handles = self.shared.handles();
        if handles.made >= EVENTS_MAX {
            return Ok(None);
        }
        let (mut raw, no_timing) = (std::ptr::null_mut(), 2);
        // SAFETY: a valid pointer, with the context current.
        let code = unsafe { (self.shared.api.create_event)(&raw mut raw, no_timing) };
        self.shared.api.check(code, "cuEventCreate")?;
        handles.made += 1;
        Ok(Some(Raw(raw)))
    }
}

#[cold]
fn too_many() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("beginning more than {EVENTS_MAX} copies and waits at once"),
        "wait for those that are under way, or look for what keeps their stream",
    )
}

/// An event that stands for nothing yet.
pub(crate) struct Prepared {
    raw: Option<Raw>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prepared")
    }
}

impl Prepared {
    /// Whether `begin` can be done on `stream`.
    pub(crate) fn probe(&mut self, stream: Stream) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let _context = Context::enter(&shared.api, shared.context.0)?;
        let Some(raw) = &self.raw else { return Ok(()) };
        // SAFETY: a live event; the stream is the caller's word.
        let code = unsafe { (shared.api.record_event)(raw.0, stream.0) };
        if code != 0 {
            self.destroy();
        }
        shared.api.check(code, "cuEventRecord")
    }

    /// The second half: an event that is done when all that is on `stream` now is.
    pub(crate) fn begin(mut self, stream: Stream) -> Result<Event> {
        self.probe(stream)?;
        let slot = Slot { handle: Mutex::new(self.raw.take()), shared: Arc::clone(&self.shared) };
        let slot = Arc::new(slot);
        let mut handles = self.shared.handles();
        if handles.held.len() >= 2 * EVENTS_MAX {
            handles.held.retain(|slot| slot.strong_count() > 0);
        }
        handles.held.push(Arc::downgrade(&slot));
        Ok(Event { slot })
    }

    /// It is of no use any more.
    fn destroy(&mut self) {
        if let Some(raw) = self.raw.take() {
            // SAFETY: a live event that nobody else knows, destroyed once.
            unsafe { (self.shared.api.destroy_event)(raw.0) };
            self.shared.handles().made -= 1;
        }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.shared.handles().free.push(raw);
        }
    }
}

/// A point in a stream.
pub(crate) struct Event {
    slot: Arc<Slot>,
}

struct Slot {
    /// `None` once it was seen to be done.
    handle: Mutex<Option<Raw>>,
    shared: Arc<Shared>,
}

impl Slot {
    fn is_done(&self) -> Result<bool> {
        self.shared.refuse_child()?;
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(raw) = &*handle else { return Ok(true) };
        let shared = &self.shared;
        let _context = Context::enter(&shared.api, shared.context.0)?;
        let done = shared.is_done(raw)?;
        if done {
            shared.handles().free.extend(handle.take());
        }
        Ok(done)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.shared.refuse_child().is_err() {
            // It is the parent's.
            return;
        }
        let handle = self.handle.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.shared.handles().pending.extend(handle.take());
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Event")
    }
}

impl Event {
    /// Whether the device has passed it.
    ///
    /// # Errors
    /// `Driver`: an operation before it failed.
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.slot.is_done()
    }

    /// Waits until it is done, at most `timeout`.
    ///
    /// Looks again and again rather than sleeping in the driver, which knows no deadline.
    ///
    /// # Errors
    /// `Timeout`; `Driver`: an operation before it failed.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        for look in 0u32.. {
            if self.is_done()? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            match look {
                0..SPINS => std::hint::spin_loop(),
                SPINS..YIELDS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
        }
        Err(Error::new(
            ErrorKind::Timeout,
            format!("waiting {} ms for a copy", timeout.as_millis()),
            "look for what keeps the stream; what the copy touches stays reserved until it is done",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::Cuda;

    /// An alarm ends it where it hangs.
    fn in_child(body: impl FnOnce() -> bool) -> bool {
        let child = testkit::fork_child(|| {
            // SAFETY: a system call without pointers.
            unsafe { libc::alarm(10) };
            i32::from(!body())
        });
        child.unwrap().wait().success()
    }

    fn is_refused<T>(answer: Result<T>) -> bool {
        answer.is_err_and(|e| e.kind() == ErrorKind::Unsupported)
    }

    /// A thread that holds them is not in the child.
    #[test]
    fn a_forked_child_is_refused_before_it_waits_for_locks_of_its_parents_threads() {
        let driver = outlive_gpu_stub::library().expect("the stub driver is built with the tests");
        let cuda = Cuda::open_library(driver, 0).unwrap();
        let buffer = cuda.alloc(100).unwrap();
        let event = cuda.inner.events.prepare().unwrap().begin(Stream::DEFAULT).unwrap();
        let stages = cuda.inner.stages();
        assert!(in_child(|| is_refused(buffer.download())));
        drop(stages);
        let handles = event.slot.shared.handles();
        let handle = event.slot.handle.lock().unwrap();
        assert!(in_child(|| {
            // SAFETY: the child's own copy, dropped once; the parent drops its own.
            let event = unsafe { std::ptr::read(&raw const event) };
            is_refused(event.is_done())
        }));
        drop((handle, handles));
        event.wait(Duration::from_secs(20)).unwrap();
    }
}
