//! Two processes on two cores over a few shared words.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use std::{io, mem, slice};

use outlive::{Error, ErrorKind, Result};

/// Who answers nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The first two processors that this process may use: its own, and its peer's.
pub(super) fn cores() -> Result<[usize; 2]> {
    // SAFETY: a cpu_set_t is an array of integers; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is writable and of the size given; where it fails, the set stays empty.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    // SAFETY: reads a bit of the initialised set; the index is below its size.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let mut cpus = (0..libc::CPU_SETSIZE as usize).filter(allowed);
    cpus.next().zip(cpus.next()).map(|(ours, peers)| [ours, peers]).ok_or_else(|| {
        let remedy = "two cores are needed; see taskset and the container's cpuset";
        Error::new(ErrorKind::Unsupported, "measure between processes", "this machine", remedy)
    })
}

/// Ties the calling thread to a processor of [`cores`].
pub(super) fn pin(cpu: usize) {
    // SAFETY: as in `cores`; a set that the kernel refuses leaves the thread where it was.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

/// Words that a forked child shares with us, all zeroes and present.
pub(super) struct Words(NonNull<AtomicU64>, usize);

impl Words {
    pub(super) fn new(count: usize) -> Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), count * 8, rights, flags, -1, 0) };
        match NonNull::new(at.cast()) {
            Some(first) if at != libc::MAP_FAILED => Ok(Self(first, count)),
            _ => Err(failed("map", "memory for the measurement")),
        }
    }

    /// Word `i` as a futex.
    pub(super) fn futex(&self, i: usize) -> &AtomicU32 {
        // SAFETY: `self[i]` is in bounds and aligned to more; nobody uses it as another word.
        unsafe { &*self[i].as_ptr().cast::<AtomicU32>() }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds so many zeroed words, lives as long as `self`, and both
        // processes touch it through atomics only.
        unsafe { slice::from_raw_parts(self.0.as_ptr(), self.1) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; references into it borrow `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.1 * 8) };
    }
}

/// A forked child that plays the other side. Dies with us; is killed when dropped.
pub(super) struct Peer(libc::pid_t);

impl Peer {
    /// Runs `body` in a child on processor `cpu`.
    pub(super) fn fork(cpu: usize, body: impl FnOnce() -> Result<()>) -> Result<Self> {
        // SAFETY: no other thread of this command is at work: nodes of earlier runs are closed.
        let pid = unsafe { libc::fork() };
        if pid != 0 {
            return if pid > 0 { Ok(Self(pid)) } else { Err(failed("fork", "the measuring peer")) };
        }
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        pin(cpu);
        if let Err(error) = body() {
            crate::exit::note(error);
        }
        // SAFETY: the child never returns into the parent's code.
        unsafe { libc::_exit(0) }
    }

    /// Spins until `ready`, yet not for ever: the peer may have died.
    #[inline(always)]
    pub(super) fn until(&self, mut ready: impl FnMut() -> bool) -> Result<()> {
        let (mut tries, mut begun) = (0u32, None);
        while !ready() {
            tries = tries.wrapping_add(1);
            if tries % (1 << 20) == 0 {
                self.check(begun.get_or_insert_with(Instant::now))?;
            }
        }
        Ok(())
    }

    /// Fails if the peer has ended, or is waited for too long.
    #[cold]
    pub(super) fn check(&self, begun: &Instant) -> Result<()> {
        // SAFETY: a null pointer is allowed, and the child is ours; one that is reaped here is gone
        // for good.
        let lives = unsafe { libc::waitpid(self.0, ptr::null_mut(), libc::WNOHANG) } == 0;
        if lives && begun.elapsed() < PATIENCE {
            return Ok(());
        }
        let remedy = "it ended or stopped answering; run again on a machine that is less busy";
        Err(Error::new(ErrorKind::OwnerDied, "measure with", "the peer process", remedy))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: our own child: as long as it is not reaped the number is its own, and where
        // `check` has reaped it the first call says so.
        unsafe {
            if libc::waitpid(self.0, ptr::null_mut(), libc::WNOHANG) == 0 {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, ptr::null_mut(), 0);
            }
        }
    }
}

fn failed(what: &str, object: &str) -> Error {
    Error::new(ErrorKind::Io, what, object, "").with_source(io::Error::last_os_error())
}
