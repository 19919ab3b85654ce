//! A stream that waits for a peer, and never for a dead one.
//!
//! # Theory of operation
//! A stream cannot look at a liveness token: told to wait for a word that a dead process should
//! have written, it waits for ever, and so does all that is behind it. So a stream waits only for
//! a word of its own process. A thread of that process watches the peer and writes the word: when
//! the peer is ready, when it is dead, and when the deadline has passed. Dropping the gate opens
//! it.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::aside::DROP_WAIT;
use crate::cuda::Cuda;
use crate::driver::register;
use crate::event::Event;
use crate::handle::Stream;
use crate::pinned::unmap_registered;
use crate::{Error, ErrorKind, Result};

const PAGE: usize = 4096;
const NAP: Duration = Duration::from_micros(20);
const SPINS: u32 = 500;
/// CU_STREAM_WAIT_VALUE_GEQ.
const AT_LEAST: u32 = 0;

/// Where streams of this process wait; opened by the process itself, whatever becomes of its peers.
pub struct Gate {
    cuda: Cuda,
    page: *mut c_void,
    /// The word as the device sees it.
    address: u64,
    last: AtomicU32,
    /// After each wait that is not known to be over.
    waits: Mutex<Vec<Event>>,
}

// SAFETY: the page is the gate's alone and reached as an atomic.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("last", &self.last).finish()
    }
}

/// One wait of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// The state of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The stream may go on.
    Ready,
    /// Not yet.
    NotYet,
    /// The peer is dead: it will never be ready.
    Dead,
}

impl Gate {
    /// A closed gate.
    ///
    /// # Errors
    /// `Unsupported` where streams cannot wait for a word of host memory; `Driver`.
    pub fn new(cuda: &Cuda) -> Result<Self> {
        if !cuda.info().device.waits {
            return Err(unsupported());
        }
        let _context = cuda.inner.enter()?;
        // SAFETY: a new mapping touches nothing of ours.
        let page = unsafe {
            let prot = libc::PROT_READ | libc::PROT_WRITE;
            // Shared: of private memory a fork would leave the device the page and give us a copy.
            let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), PAGE, prot, flags, -1, 0)
        };
        if page == libc::MAP_FAILED {
            return Err(Error::new(ErrorKind::Io, "mapping the page of a gate", ""));
        }
        let api = &cuda.inner.api;
        let mut address = 0;
        // SAFETY: a page of our own, mapped until it is unregistered.
        let registered = unsafe {
            let flags = register::PORTABLE | register::DEVICEMAP;
            api.check((api.register)(page, PAGE, flags), "cuMemHostRegister")
        };
        if let Err(e) = registered {
            // SAFETY: mapped above; no device knows it.
            unsafe { libc::munmap(page, PAGE) };
            return Err(e);
        }
        // SAFETY: registered above.
        let code = unsafe { (api.registered_address)(&raw mut address, page, 0) };
        if let Err(e) = api.check(code, "cuMemHostGetDevicePointer") {
            // SAFETY: registered and mapped above; no stream knows its address.
            unsafe { unmap_registered(&cuda.inner.aside, page, PAGE, DROP_WAIT) };
            return Err(e);
        }
        let (cuda, last) = (cuda.clone(), AtomicU32::new(0));
        Ok(Self { cuda, page, address, last, waits: Mutex::default() })
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the aligned start of our page, mapped while `self` lives.
        unsafe { AtomicU32::from_ptr(self.page.cast()) }
    }

    /// Makes `stream` wait here: what is put on it from now on runs once the ticket, or a later
    /// one, is let through.
    ///
    /// # Safety
    /// `stream` is one of this device and lives until it has passed.
    ///
    /// # Errors
    /// `Driver`, `Unsupported`: it does not wait.
    pub unsafe fn hold(&self, stream: Stream) -> Result<Ticket> {
        let inner = &self.cuda.inner;
        let await_value = inner.api.await_value.ok_or_else(unsupported)?;
        let _context = inner.enter()?;
        inner.check_stream(stream)?;
        let mut all = self.waits.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|event| !matches!(event.is_done(), Ok(true)));
        let mut prepared = inner.events.prepare()?;
        // What fails after the wait was put on the stream would let earlier tickets through, too.
        prepared.probe(stream)?;
        let ticket = self.last.fetch_add(1, SeqCst) + 1;
        // SAFETY: our own registered word, which stays until the stream has passed (`drop`).
        let code = unsafe { await_value(stream.0, self.address, ticket, AT_LEAST) };
        inner.api.check(code, "cuStreamWaitValue32")?;
        let recorded = prepared.begin(stream);
        let waits = recorded.inspect_err(|_| self.open(Ticket(ticket)))?;
        all.push(waits);
        Ok(Ticket(ticket))
    }

    /// Lets the ticket's stream continue, and those of all earlier tickets: streams that wait for
    /// different peers need a gate each. Does nothing in a forked child.
    pub fn open(&self, ticket: Ticket) {
        if self.cuda.inner.refuse_child().is_err() {
            return;
        }
        let word = self.word();
        let _ = word.fetch_update(SeqCst, SeqCst, |now| {
            (ticket.0.wrapping_sub(now) as i32 > 0).then_some(ticket.0)
        });
    }

    /// Looks at the peer until it is ready or dead or `timeout` has passed, and lets the stream
    /// continue in each of these cases, even when `look` panics.
    ///
    /// # Errors
    /// `PeerDied`, `Timeout`: the stream continues, and does not read what it waited for.
    pub fn open_when(
        &self,
        ticket: Ticket,
        timeout: Duration,
        mut look: impl FnMut() -> Look,
    ) -> Result<()> {
        struct OpenAnyway<'a>(&'a Gate, Ticket);
        impl Drop for OpenAnyway<'_> {
            fn drop(&mut self) {
                self.0.open(self.1);
            }
        }
        let _open = OpenAnyway(self, ticket);
        let deadline = Instant::now() + timeout;
        for n in 0u32.. {
            match look() {
                Look::Ready => return Ok(()),
                Look::Dead => {
                    return Err(Error::new(
                        ErrorKind::PeerDied,
                        "waiting for a peer on behalf of a stream",
                        "the stream goes on; do not use what it was to wait for",
                    ));
                }
                Look::NotYet if Instant::now() >= deadline => break,
                Look::NotYet if n < SPINS => std::hint::spin_loop(),
                Look::NotYet => std::thread::sleep(NAP),
            }
        }
        Err(Error::new(
            ErrorKind::Timeout,
            format!("waiting {} ms for a peer on behalf of a stream", timeout.as_millis()),
            "the stream goes on; do not use what it was to wait for",
        ))
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if self.cuda.inner.refuse_child().is_err() {
            // Its streams are the parent's.
            return;
        }
        self.open(Ticket(self.last.load(SeqCst)));
        let waits = std::mem::take(self.waits.get_mut().unwrap_or_else(|e| e.into_inner()));
        let until = Instant::now() + DROP_WAIT;
        let left = || until.saturating_duration_since(Instant::now());
        if waits.iter().any(|event| event.wait(left()).is_err()) {
            // Somebody else keeps the stream: the word stays, and stays open.
            return;
        }
        // SAFETY: registered and mapped in `new`; no stream looks at it any more.
        unsafe { unmap_registered(&self.cuda.inner.aside, self.page, PAGE, left()) };
    }
}

#[cold]
fn unsupported() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "waiting on a stream",
        "this driver or device cannot: wait for the message first, then begin the copy",
    )
}
