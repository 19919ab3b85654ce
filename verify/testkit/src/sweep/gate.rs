//! The page that driver and victim share, and the gate a victim passes.

use super::arch;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// How far the victim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Phase {
    Preparing,
    Inside,
    AtCrashPoint,
    Left,
}

const TEXT_BYTES: usize = 2048;
const NAMES_MAX: usize = 256;
const NAME_BYTES: usize = 60;

#[repr(C)]
struct NameCount {
    hits: AtomicU32,
    name: [AtomicU8; NAME_BYTES],
}

/// Anonymous shared memory; all zero is a valid start.
#[repr(C)]
pub(crate) struct Control {
    phase: AtomicU32,
    untraced: AtomicU32,
    mark: AtomicU64,
    text_len: AtomicU32,
    text: [AtomicU8; TEXT_BYTES],
    names: [NameCount; NAMES_MAX],
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

impl Control {
    /// Maps a control block; it stays mapped for the life of the process and of its forks.
    pub(crate) fn map() -> io::Result<&'static Self> {
        let (read_write, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping cannot disturb existing memory.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), size_of::<Self>(), read_write, flags, -1, 0)
        };
        match NonNull::new(at.cast::<Self>()) {
            // SAFETY: the mapping is zeroed, large enough, page aligned and never unmapped; every
            // field is an atomic.
            Some(control) if at != libc::MAP_FAILED => Ok(unsafe { control.as_ref() }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(crate) fn reset(&self) {
        self.set_phase(Phase::Preparing);
        self.untraced.store(0, Ordering::Relaxed);
        self.mark.store(0, Ordering::Relaxed);
        self.text_len.store(0, Ordering::Relaxed);
    }

    /// Nobody takes traps any more.
    pub(crate) fn set_untraced(&self) {
        self.untraced.store(1, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u32, Ordering::Release);
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Preparing,
            1 => Phase::Inside,
            2 => Phase::AtCrashPoint,
            _ => Phase::Left,
        }
    }

    pub(crate) fn mark(&self) -> u64 {
        self.mark.load(Ordering::Acquire)
    }

    /// Leaves a message for the driver.
    pub(crate) fn say(&self, message: &str) {
        let len = message.len().min(TEXT_BYTES);
        for (to, from) in self.text.iter().zip(message.bytes()) {
            to.store(from, Ordering::Relaxed);
        }
        self.text_len.store(len as u32, Ordering::Release);
    }

    pub(crate) fn text(&self) -> String {
        let len = self.text_len.load(Ordering::Acquire) as usize;
        let bytes: Vec<u8> =
            self.text.iter().take(len).map(|b| b.load(Ordering::Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Counts a hit of a crash point; the caller holds the lock of the recorder.
    pub(crate) fn count(&self, name: &str) {
        for slot in &self.names {
            let free = slot.hits.load(Ordering::Relaxed) == 0;
            if free {
                for (to, from) in slot.name.iter().zip(name.bytes()) {
                    to.store(from, Ordering::Relaxed);
                }
            }
            if free || slot.name() == name {
                slot.hits.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }

    /// The crash points counted so far, in the order of their first hit, and how often; then none.
    pub(crate) fn take_counts(&self) -> Vec<(String, u32)> {
        let taken = |slot: &NameCount| {
            let found = (slot.name(), slot.hits.swap(0, Ordering::Relaxed));
            slot.name.iter().for_each(|b| b.store(0, Ordering::Relaxed));
            found
        };
        self.names.iter().map(taken).take_while(|(_, hits)| *hits > 0).collect()
    }
}

impl NameCount {
    fn name(&self) -> String {
        let bytes = self.name.iter().map(|b| b.load(Ordering::Relaxed));
        let bytes: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Marks the beginning and the end of the operation under test inside a victim.
pub struct Gate {
    control: &'static Control,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("phase", &self.control.phase()).finish()
    }
}

impl Gate {
    pub(crate) fn new(control: &'static Control) -> Self {
        Self { control }
    }

    /// The operation starts with the next instruction; call it on the thread that runs the victim.
    #[inline(always)]
    pub fn enter(&self) {
        arch::trap();
        self.control.set_phase(Phase::Inside);
    }

    /// The operation has returned. The victim does not live on beyond this call.
    #[inline(always)]
    pub fn leave(&self) {
        self.control.set_phase(Phase::Left);
        while self.control.untraced.load(Ordering::Acquire) != 0 {
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        arch::trap();
    }

    /// Tells the survivor how far a victim with several operations came; see `Point::mark`.
    #[inline(always)]
    pub fn mark(&self, done: u64) {
        self.control.mark.store(done, Ordering::Release);
    }
}
