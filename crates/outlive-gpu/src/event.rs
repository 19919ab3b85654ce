//! Events: when is what was asked for done?
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::context::Context;
use crate::driver::{Api, Handle, NOT_READY};
use crate::handle::Stream;
use crate::{Error, ErrorKind, Result};

/// Looks before a waiting thread gives the core away between them.
const SPINS: u32 = 200;
/// Looks before it sleeps between them.
const YIELDS: u32 = 2000;
const NAP: Duration = Duration::from_micros(50);
/// Most events of a device that are in use at once: copies under way, and waits at gates. Well below
/// the 1020 operations that a driver was seen to take on a stream that stands still: the next call
/// waits there, without a deadline.
const EVENTS_MAX: usize = 512;

struct Raw(Handle);

// SAFETY: the driver's handles may be used from any thread; it locks by itself.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// Events of one device, used again and again.
pub(crate) struct Events {
    api: Api,
    context: Raw,
    free: Arc<Mutex<Vec<Raw>>>,
    made: AtomicUsize,
}

impl Events {
    pub(crate) fn new(api: Api, context: Handle) -> Self {
        Self { api, context: Raw(context), free: Arc::default(), made: AtomicUsize::new(0) }
    }

    fn one_more(&self) -> Result<()> {
        let more = |made| (made < EVENTS_MAX).then_some(made + 1);
        if self.made.fetch_update(Relaxed, Relaxed, more).is_ok() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("beginning more than {EVENTS_MAX} copies and waits at once"),
            "wait for those that are under way, or look for what keeps their stream",
        ))
    }

    /// As `prepare` and `begin`, where nothing is begun in between.
    pub(crate) fn record(&self, stream: Stream) -> Result<Event> {
        let prepared = self.prepare()?;
        self.begin(prepared, stream)
    }

    /// The first half: whatever can be refused is refused here, before anything is begun on the
    /// device of which nobody would know when it ends.
    pub(crate) fn prepare(&self) -> Result<Prepared> {
        let _context = Context::enter(&self.api, self.context.0)?;
        let free = self.free.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let raw = match free {
            Some(raw) => raw,
            None => {
                self.one_more()?;
                let (mut raw, no_timing) = (std::ptr::null_mut(), 2);
                // SAFETY: a valid pointer, with the context current.
                let code = unsafe { (self.api.create_event)(&raw mut raw, no_timing) };
                if code != 0 {
                    self.made.fetch_sub(1, Relaxed);
                }
                self.api.check(code, "cuEventCreate")?;
                Raw(raw)
            }
        };
        let context = Raw(self.context.0);
        let (api, free) = (self.api, Arc::clone(&self.free));
        Ok(Prepared(Event { api, raw: Some(raw), context, free }))
    }

    /// The second half: an event that is done when all that is on `stream` now is.
    pub(crate) fn begin(&self, prepared: Prepared, stream: Stream) -> Result<Event> {
        let _context = Context::enter(&self.api, self.context.0)?;
        let Prepared(mut event) = prepared;
        // SAFETY: a live event; the stream is the caller's word.
        let code = unsafe { (self.api.record_event)(event.handle(), stream.0) };
        if code != 0
            && let Some(raw) = event.raw.take()
        {
            // Of no use any more.
            // SAFETY: a live event that nobody else knows, destroyed once.
            unsafe { (self.api.destroy_event)(raw.0) };
            self.made.fetch_sub(1, Relaxed);
        }
        self.api.check(code, "cuEventRecord").map(|()| event)
    }
}

/// An event that stands for nothing yet.
#[derive(Debug)]
pub(crate) struct Prepared(Event);

/// A point in a stream.
pub(crate) struct Event {
    api: Api,
    raw: Option<Raw>,
    context: Raw,
    free: Arc<Mutex<Vec<Raw>>>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Event").field(&self.handle()).finish()
    }
}

impl Event {
    fn handle(&self) -> Handle {
        self.raw.as_ref().map_or(std::ptr::null_mut(), |raw| raw.0)
    }

    /// Whether the device has passed it.
    ///
    /// # Errors
    /// `Driver`: an operation before it failed.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let _context = Context::enter(&self.api, self.context.0)?;
        // SAFETY: a live event.
        match unsafe { (self.api.query_event)(self.handle()) } {
            NOT_READY => Ok(false),
            code => self.api.check(code, "cuEventQuery").map(|()| true),
        }
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

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            self.free.lock().unwrap_or_else(|e| e.into_inner()).push(raw);
        }
    }
}
