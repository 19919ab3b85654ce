//! Ways from one stage to the next that are not outlive's: mutex and condition variable, a
//! bare word, pipe, socket.

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use outlive::{Error, ErrorKind, Result, now_ns};

use super::work::{PACKET_WORDS, Packet};
use crate::pair::SharedMap;
use crate::raw::{futex_wait, futex_wake};

/// How a reader waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    Sleep,
    Yield,
    Spin,
}

impl Waiting {
    fn between_looks(self) {
        match self {
            Self::Yield => std::thread::yield_now(),
            _ => std::hint::spin_loop(),
        }
    }
}

/// Longest wait for a packet before the run is given up, ns.
const PATIENCE_NS: u64 = 20_000_000_000;

/// A packet under a mutex, and a condition variable that says it is new.
#[repr(C, align(64))]
pub(super) struct Slot {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    condition: UnsafeCell<libc::pthread_cond_t>,
    packet: UnsafeCell<Packet>,
    count: UnsafeCell<u64>,
}

// SAFETY: the C library's objects are made for sharing; packet and count are touched under the
// mutex only.
unsafe impl Sync for Slot {}

impl Slot {
    /// Initialises a slot in zeroed memory.
    ///
    /// # Safety
    /// `at` leads to writable bytes for a `Slot`, aligned, that nobody uses yet and that stay.
    pub(super) unsafe fn init<'a>(at: *mut Self, shared: bool) -> &'a Self {
        let sharing =
            if shared { libc::PTHREAD_PROCESS_SHARED } else { libc::PTHREAD_PROCESS_PRIVATE };
        // SAFETY: the caller's memory; attributes are initialised before use and destroyed after.
        unsafe {
            at.write_bytes(0, 1);
            let slot = &*at;
            let mut attr: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attr);
            libc::pthread_mutexattr_setpshared(&mut attr, sharing);
            libc::pthread_mutex_init(slot.mutex.get(), &attr);
            libc::pthread_mutexattr_destroy(&mut attr);
            let mut attr: libc::pthread_condattr_t = std::mem::zeroed();
            libc::pthread_condattr_init(&mut attr);
            libc::pthread_condattr_setpshared(&mut attr, sharing);
            libc::pthread_condattr_setclock(&mut attr, libc::CLOCK_MONOTONIC);
            libc::pthread_cond_init(slot.condition.get(), &attr);
            libc::pthread_condattr_destroy(&mut attr);
            slot
        }
    }

    pub(super) fn lock(&self) {
        // SAFETY: initialised by `init`.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    pub(super) fn unlock(&self) {
        // SAFETY: as in `lock`; this thread holds it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    pub(super) fn notify(&self) {
        // SAFETY: as in `lock`.
        unsafe { libc::pthread_cond_signal(self.condition.get()) };
    }

    fn send(&self, packet: &Packet) {
        self.lock();
        // SAFETY: under the mutex.
        unsafe {
            *self.packet.get() = *packet;
            *self.count.get() += 1;
        }
        self.unlock();
        self.notify();
    }

    fn receive(&self, seen: &mut u64, waiting: Waiting) -> Result<Packet> {
        let deadline = now_ns() + PATIENCE_NS;
        loop {
            self.lock();
            loop {
                // SAFETY: under the mutex.
                let (count, packet) = unsafe { (*self.count.get(), *self.packet.get()) };
                if count != *seen {
                    *seen = count;
                    self.unlock();
                    return Ok(packet);
                }
                if waiting != Waiting::Sleep {
                    break;
                }
                let ts = libc::timespec {
                    tv_sec: (deadline / 1_000_000_000) as _,
                    tv_nsec: (deadline % 1_000_000_000) as _,
                };
                // SAFETY: both initialised; this thread holds the mutex.
                let rc = unsafe {
                    libc::pthread_cond_timedwait(self.condition.get(), self.mutex.get(), &ts)
                };
                if rc != 0 {
                    break;
                }
            }
            self.unlock();
            if now_ns() >= deadline {
                return Err(lost());
            }
            waiting.between_looks();
        }
    }
}

#[cold]
fn lost() -> Error {
    let remedy = "a stage ended or hangs; run again on a machine that is not overloaded";
    Error::new(ErrorKind::Timeout, "measure", "pipeline", remedy)
}

/// Room for slots, on the heap or shared with forked children.
pub(super) enum Slots {
    Heap(Vec<UnsafeCell<std::mem::MaybeUninit<Slot>>>),
    Shared(SharedMap),
}

impl Slots {
    pub(super) fn new(count: usize, shared: bool) -> Result<Self> {
        Ok(match shared {
            true => Self::Shared(SharedMap::new(count * size_of::<Slot>())?),
            false => {
                let empty = || UnsafeCell::new(std::mem::MaybeUninit::uninit());
                Self::Heap((0..count).map(|_| empty()).collect())
            }
        })
    }

    /// The slots, initialised. Call once.
    pub(super) fn init(&self) -> Vec<&Slot> {
        match self {
            Self::Heap(slots) => {
                // SAFETY: room for a slot each, aligned by its type, and used for nothing else.
                let init = |slot: *mut Slot| unsafe { Slot::init(slot, false) };
                slots.iter().map(|slot| init(slot.get().cast())).collect()
            }
            Self::Shared(map) => {
                let count = map.size_bytes() / size_of::<Slot>();
                (0..count)
                    .map(|i| {
                        let at = map.at(i * size_of::<Slot>(), size_of::<Slot>());
                        // SAFETY: in bounds by `at`; a page and multiples of 64 are aligned.
                        unsafe { Slot::init(at.cast(), true) }
                    })
                    .collect()
            }
        }
    }
}

/// From one stage to the next.
#[derive(Clone, Copy)]
pub(super) enum Hop<'a> {
    Slot(&'a Slot, Waiting),
    /// How many were sent, and the last one.
    Word(&'a AtomicU32, &'a [AtomicU64; PACKET_WORDS], Waiting),
    /// Descriptors to read from and to write to.
    Stream {
        from: i32,
        to: i32,
    },
}

impl Hop<'_> {
    pub(super) fn send(&self, packet: &Packet) -> Result<()> {
        match *self {
            Self::Slot(slot, _) => {
                slot.send(packet);
                Ok(())
            }
            Self::Word(count, words, waiting) => {
                words.iter().zip(packet).for_each(|(word, value)| word.store(*value, Relaxed));
                count.fetch_add(1, Release);
                if waiting == Waiting::Sleep {
                    futex_wake(count, 1);
                }
                Ok(())
            }
            Self::Stream { to, .. } => {
                // SAFETY: a packet's bytes; the descriptor is open.
                let sent = unsafe { libc::write(to, packet.as_ptr().cast(), size_of_val(packet)) };
                if sent == size_of_val(packet) as isize { Ok(()) } else { Err(lost()) }
            }
        }
    }

    /// The next packet; for a slot the newest.
    pub(super) fn receive(&self, seen: &mut u64) -> Result<Packet> {
        match *self {
            Self::Slot(slot, waiting) => slot.receive(seen, waiting),
            Self::Word(count, words, waiting) => {
                let deadline = now_ns() + PATIENCE_NS;
                loop {
                    let sent = count.load(Acquire);
                    if u64::from(sent) != *seen {
                        *seen = sent.into();
                        return Ok(std::array::from_fn(|i| words[i].load(Relaxed)));
                    }
                    match waiting {
                        Waiting::Sleep => _ = futex_wait(count, sent),
                        _ => waiting.between_looks(),
                    }
                    if now_ns() >= deadline {
                        return Err(lost());
                    }
                }
            }
            Self::Stream { from, .. } => {
                let mut packet = [0; PACKET_WORDS];
                let size = size_of_val(&packet);
                // Writes below PIPE_BUF are atomic, and a packet socket keeps them apart.
                // SAFETY: room for a packet; the descriptor is open.
                let got = unsafe { libc::read(from, packet.as_mut_ptr().cast(), size) };
                if got == size as isize { Ok(packet) } else { Err(lost()) }
            }
        }
    }
}

/// Both ends of a pipe or of a pair of sockets; closed on drop.
pub(super) struct Ends {
    pub(super) from: i32,
    pub(super) to: i32,
}

impl Ends {
    pub(super) fn pipe() -> Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
            0 => Ok(Self { from: ends[0], to: ends[1] }),
            _ => Err(failed("pipe")),
        }
    }

    pub(super) fn socket() -> Result<Self> {
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: room for two descriptors.
        match unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } {
            0 => Ok(Self { from: ends[0], to: ends[1] }),
            _ => Err(failed("Unix socket")),
        }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        // SAFETY: ours, closed once.
        unsafe {
            libc::close(self.from);
            libc::close(self.to);
        }
    }
}

fn failed(what: &str) -> Error {
    Error::new(ErrorKind::Io, "make", what, "").with_source(io::Error::last_os_error())
}
