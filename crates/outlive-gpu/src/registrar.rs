//! Which data segments the driver knows, and which copies are under way in them.
//!
//! # Theory of operation
//! A registered segment is pinned, and the device reads and writes it by itself; without, the
//! driver copies by way of buffers of its own. A segment is registered with the first copy in or
//! out of it, in pieces of bounded size, and unregistered before it is unmapped. All devices of a
//! process have one registrar: the driver knows a page once, for all of them, and one that still
//! copies keeps the segment registered. Registering takes long: who needs the segment waits, who
//! unmaps it for a while, others do not. Whoever starts a copy leaves its event here. A segment
//! with a copy or a call under way that does not end is never unmapped: the device must not write
//! into memory that is somebody else's by then.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outlive::topic::segments::{self, Segment, SegmentWatcher, Unmap};

use crate::aside::Aside;
use crate::device::DeviceInfo;
use crate::driver::{ALREADY_REGISTERED, Api, register};
use crate::event::Event;
use crate::process::{fork_generation, this_process};

/// Overrides the size of a piece, bytes.
const PIECE_VARIABLE: &str = "OUTLIVE_GPU_PIECE_BYTES";
/// Most bytes registered in one call; a piece's start is a multiple of it from the segment's.
const PIECE_BYTES: usize = 1 << 30;
const PAGE: usize = 4096;
/// Longest wait for copies when a segment is about to be unmapped, and then for the driver.
const UNMAP_WAIT: Duration = Duration::from_secs(5);

/// How much of the process's data segments the driver knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registered {
    /// Segments registered now.
    pub segments: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Segments that the driver refused, at least in part: copied through its own buffers there.
    pub refused: usize,
    /// Copies under way.
    pub copies: usize,
    /// Loans and samples that stay reserved for as long as the process lives, because the copy in
    /// or out of them was given up before it was done.
    pub quarantined: u64,
}

/// One segment.
#[derive(Default)]
struct Entry {
    state: Mutex<State>,
    settled: Condvar,
}

/// Start and length of each piece that is registered.
type Pieces = Vec<(usize, usize)>;

#[derive(Default)]
enum State {
    #[default]
    New,
    /// Somebody is in the driver with it.
    Registering,
    Pinned(Pieces),
    /// As a whole; these are registered all the same.
    Refused(Pieces),
    /// Its last user has let it go.
    Gone,
}

impl Entry {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
pub(crate) struct Registrar {
    api: Api,
    aside: Arc<Aside>,
    piece_bytes: usize,
    can_read_only: bool,
    segments: Mutex<HashMap<u64, Arc<Entry>>>,
    flights: Mutex<Vec<Arc<Flight>>>,
    quarantined: AtomicU64,
    told: AtomicBool,
    opened_by: u32,
}

/// A copy under way in a segment.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Serial of the segment; `None` for memory of the process.
    segment: Option<u64>,
    pub(crate) event: Event,
}

impl Registrar {
    pub(crate) fn new(api: Api, aside: Arc<Aside>, device: &DeviceInfo) -> Self {
        let wanted = std::env::var(PIECE_VARIABLE).ok().and_then(|v| v.parse::<usize>().ok());
        let piece_bytes = wanted.unwrap_or(PIECE_BYTES).max(PAGE) / PAGE * PAGE;
        Self {
            api,
            aside,
            piece_bytes,
            can_read_only: device.registers_read_only,
            segments: Mutex::default(),
            flights: Mutex::default(),
            quarantined: AtomicU64::new(0),
            told: AtomicBool::new(false),
            opened_by: this_process(),
        }
    }

    fn segments(&self) -> MutexGuard<'_, HashMap<u64, Arc<Entry>>> {
        self.segments.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn flights(&self) -> MutexGuard<'_, Vec<Arc<Flight>>> {
        self.flights.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub(crate) fn registered(&self) -> Registered {
        let copies = {
            let mut flights = self.flights();
            flights.retain(|f| Arc::strong_count(f) > 1 || !matches!(f.event.is_done(), Ok(true)));
            flights.len()
        };
        let segments = self.segments();
        let quarantined = self.quarantined.load(Relaxed);
        let mut out = Registered { copies, quarantined, ..Registered::default() };
        for entry in segments.values() {
            match &*entry.state() {
                State::New | State::Registering | State::Gone => {}
                State::Refused(_) => out.refused += 1,
                State::Pinned(pieces) => {
                    out.segments += 1;
                    out.bytes += pieces.iter().map(|(_, bytes)| bytes).sum::<usize>();
                }
            }
        }
        out
    }

    /// Registers `segment` unless it is, or was refused; with the context current. The caller keeps
    /// it mapped.
    pub(crate) fn ensure(&self, segment: &Segment) {
        self.ensure_in(&self.entry(segment), segment);
    }

    /// The same for a segment that nothing keeps mapped: one that is gone is left alone.
    pub(crate) fn ensure_mapped(&self, segment: &Segment) {
        let entry = self.entry(segment);
        // Entered first: whoever unmaps it from now on finds the entry, and waits for it.
        if segments::segments().contains(segment) {
            self.ensure_in(&entry, segment);
        } else {
            let mut segments = self.segments();
            drop(entry);
            // Registered already, or by somebody just now: whoever unmaps it takes it out.
            let unused =
                |e: &Arc<Entry>| Arc::strong_count(e) == 1 && matches!(*e.state(), State::New);
            if segments.get(&segment.serial()).is_some_and(unused) {
                segments.remove(&segment.serial());
            }
        }
    }

    fn entry(&self, segment: &Segment) -> Arc<Entry> {
        Arc::clone(self.segments().entry(segment.serial()).or_default())
    }

    fn ensure_in(&self, entry: &Entry, segment: &Segment) {
        let is_registering = |state: &mut State| matches!(state, State::Registering);
        let state = entry.settled.wait_while(entry.state(), is_registering);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if !matches!(*state, State::New) {
            return;
        }
        *state = State::Registering;
        drop(state);
        let registered = self.register(segment);
        let mut state = entry.state();
        let is_gone = matches!(*state, State::Gone);
        match registered {
            // It stays mapped; nobody else knows that it is registered.
            Ok(pieces) | Err((pieces, _)) if is_gone => {
                drop(state);
                self.aside.does(UNMAP_WAIT, move |api| unregister(api, &pieces));
            }
            Ok(pieces) => *state = State::Pinned(pieces),
            Err((pieces, code)) => {
                *state = State::Refused(pieces);
                drop(state);
                self.tell(segment, code);
            }
        }
        entry.settled.notify_all();
    }

    /// `Err` with what is registered of it nevertheless, and why not all is: whoever unregisters
    /// waits for the whole device.
    fn register(&self, segment: &Segment) -> Result<Pieces, (Pieces, i32)> {
        let mut flags = register::PORTABLE | register::DEVICEMAP;
        if !segment.is_writable() {
            if !self.can_read_only {
                return Err((Pieces::new(), 801));
            }
            flags |= register::READ_ONLY;
        }
        let end = segment.start() + segment.bytes();
        let mut pieces = Pieces::new();
        for start in (segment.start()..end).step_by(self.piece_bytes) {
            let bytes = self.piece_bytes.min(end - start);
            // SAFETY: inside a segment that its caller keeps mapped.
            match unsafe { (self.api.register)(pointer(start), bytes, flags) } {
                0 => pieces.push((start, bytes)),
                // By someone else in this process; theirs to undo.
                ALREADY_REGISTERED => {}
                code => return Err((pieces, code)),
            }
        }
        Ok(pieces)
    }

    #[cold]
    fn tell(&self, segment: &Segment, code: i32) {
        if !self.told.swap(true, Relaxed) {
            let whose = if segment.is_writable() { "this" } else { "another" };
            // The kernel lets no device write the pages of a file on a disk.
            let why = if code == 1 { ", as for a domain on a disk; use /dev/shm" } else { "" };
            eprintln!(
                "outlive-gpu: the driver does not pin a data segment of {whose} process, {} bytes \
                 (error {code}{why}): copies through it are slower; see 'outlive doctor'",
                segment.bytes()
            );
        }
    }

    /// Where `[at, at + bytes)` of `segment` must be cut, since no copy may cross the border of
    /// two registrations: lengths in order.
    pub(crate) fn cuts(&self, segment: &Segment, at: usize, bytes: usize) -> Vec<usize> {
        let (mut lengths, mut from, end) = (Vec::new(), at - segment.start(), at + bytes);
        let end = end - segment.start();
        while from < end {
            let border = (from / self.piece_bytes + 1) * self.piece_bytes;
            lengths.push(border.min(end) - from);
            from = border;
        }
        lengths
    }

    /// Notes a copy under way in the segment of this serial.
    pub(crate) fn fly(&self, segment: Option<u64>, event: Event) -> Arc<Flight> {
        let flight = Arc::new(Flight { segment, event });
        let mut flights = self.flights();
        flights.retain(|f| Arc::strong_count(f) > 1 || !matches!(f.event.is_done(), Ok(true)));
        flights.push(Arc::clone(&flight));
        flight
    }

    /// The copy is done.
    pub(crate) fn land(&self, flight: &Arc<Flight>) {
        self.flights().retain(|f| !Arc::ptr_eq(f, flight));
    }

    /// Somebody gave up waiting: what the copy touches is never used again.
    pub(crate) fn quarantine(&self) {
        self.quarantined.fetch_add(1, Relaxed);
    }
}

impl SegmentWatcher for Registrar {
    fn unmapping(&self, segment: &Segment) -> Unmap {
        if self.opened_by != fork_generation() {
            // A forked child: the registration is the parent's.
            return Unmap::Now;
        }
        let serial = Some(segment.serial());
        let under_way: Vec<_> =
            self.flights().iter().filter(|f| f.segment == serial).cloned().collect();
        let until = Instant::now() + UNMAP_WAIT;
        let left = |until: Instant| until.saturating_duration_since(Instant::now());
        if under_way.iter().any(|f| f.event.wait(left(until)).is_err()) {
            return Unmap::Never;
        }
        self.flights().retain(|f| f.segment != serial);
        let Some(entry) = self.segments().remove(&segment.serial()) else { return Unmap::Now };
        // Nobody copies there any more, but somebody may be registering all that there is.
        let until = Instant::now() + UNMAP_WAIT;
        let is_registering = |state: &mut State| matches!(state, State::Registering);
        let waited = entry.settled.wait_timeout_while(entry.state(), left(until), is_registering);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let was = std::mem::replace(&mut *state, State::Gone);
        drop(state);
        entry.settled.notify_all();
        match was {
            State::New | State::Gone => Unmap::Now,
            State::Refused(pieces) if pieces.is_empty() => Unmap::Now,
            // Once it is registered it is unregistered, and stays mapped.
            State::Registering => Unmap::Never,
            State::Pinned(pieces) | State::Refused(pieces) => {
                match self.aside.does(left(until), move |api| unregister(api, &pieces)) {
                    true => Unmap::Now,
                    // The driver still has it: what is mapped there next would be taken for it.
                    false => Unmap::Never,
                }
            }
        }
    }
}

/// False when the driver keeps any of them.
fn unregister(api: &Api, pieces: &[(usize, usize)]) -> bool {
    let mut all = true;
    for (start, _) in pieces {
        // SAFETY: registered by us and still mapped, unregistered once.
        all &= unsafe { (api.unregister)(pointer(*start)) } == 0;
    }
    all
}

fn pointer(address: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(address)
}
