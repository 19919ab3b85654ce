//! Two processes on two cores over one shared map: the stage on which everything is measured.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use std::{io, mem, slice};

use measure::cores::Pinned;
use outlive::{Error, ErrorKind, Result};

/// The longest that one hand-over may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Anonymous memory that a forked child shares with us, all zeroes and present.
#[derive(Debug)]
pub(crate) struct SharedMap {
    base: NonNull<u8>,
    size_bytes: usize,
}

impl SharedMap {
    pub(crate) fn new(size_bytes: usize) -> Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let base = unsafe { libc::mmap(ptr::null_mut(), size_bytes, rights, flags, -1, 0) };
        match NonNull::new(base.cast::<u8>()) {
            Some(start) if base != libc::MAP_FAILED => Ok(Self { base: start, size_bytes }),
            _ => Err(os_error("map", "shared memory for the measurement")),
        }
    }

    /// Its size.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// `N` words at `offset` bytes.
    pub(crate) fn words<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        &self.slots(offset, 1)[0]
    }

    /// `count` slots of `N` words each, from `offset` bytes on.
    pub(crate) fn slots<const N: usize>(&self, offset: usize, count: usize) -> &[[AtomicU64; N]] {
        let at = self.at(offset, count * N * 8).cast();
        // SAFETY: `at` checked bounds and alignment to 8; the map is zeroed, lives as long as
        // `self`, and both processes touch these bytes through atomics only.
        unsafe { slice::from_raw_parts(at, count) }
    }

    /// A futex word at `offset` bytes.
    pub(crate) fn futex(&self, offset: usize) -> &AtomicU32 {
        let at = self.at(offset, 8).cast();
        // SAFETY: as in `slots`; 8-aligned is 4-aligned.
        unsafe { &*at }
    }

    /// `size_bytes` plain bytes at `offset`, for payloads whose owner a word elsewhere decides.
    pub(crate) fn at(&self, offset: usize, size_bytes: usize) -> *mut u8 {
        let fits = offset.checked_add(size_bytes).is_some_and(|end| end <= self.size_bytes);
        assert!(fits && offset % 8 == 0, "{offset} + {size_bytes} of {}", self.size_bytes);
        // SAFETY: within the mapping, just checked.
        unsafe { self.base.as_ptr().add(offset) }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; references into it borrow `self`.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.size_bytes) };
    }
}

/// A forked child that plays the other side. Dies with us; is killed when dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    pid: libc::pid_t,
}

impl Peer {
    /// Forks; the child pins itself and runs `body`. It must not allocate, lock or print: other
    /// threads of this process may have held the allocator's locks at the fork.
    pub(crate) fn spawn(cpu: usize, body: impl FnOnce()) -> Result<Self> {
        // SAFETY: the child calls only system calls and `body`, under the rule above.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(os_error("fork", "the measuring peer"));
        }
        if pid > 0 {
            return Ok(Self { pid });
        }
        // SAFETY: plain system calls; the child never returns into the parent's code.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let status = match Pinned::to(cpu) {
                Ok(pinned) => {
                    body();
                    mem::forget(pinned);
                    0
                }
                Err(_) => 1,
            };
            libc::_exit(status)
        }
    }

    /// Waits for `ready` at full speed, yet not for ever: the peer may have died.
    #[inline(always)]
    pub(crate) fn spin_until(&self, mut ready: impl FnMut() -> bool) -> Result<()> {
        let mut tries = 0u32;
        while !ready() {
            tries += 1;
            if tries == 1 << 20 {
                return self.spin_on(ready);
            }
        }
        Ok(())
    }

    /// Takes the closure by value: with its address taken, the fast path would keep it in memory.
    #[cold]
    #[inline(never)]
    fn spin_on(&self, mut ready: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE && !self.has_ended() {
            for _ in 0..1 << 16 {
                if ready() {
                    return Ok(());
                }
            }
        }
        if ready() { Ok(()) } else { Err(self.lost()) }
    }

    /// Sends SIGKILL. It is reaped by the drop.
    pub(crate) fn kill(&self) {
        // SAFETY: our own child, not reaped before the drop.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    pub(crate) fn lost(&self) -> Error {
        Error::new(
            ErrorKind::OwnerDied,
            "measure with",
            format!("peer process {}", self.pid),
            "it ended or stopped answering; run again on a machine that is not overloaded",
        )
    }

    /// The child has exited or was killed. Leaves it to be reaped.
    pub(crate) fn has_ended(&self) -> bool {
        // SAFETY: all zeroes is a valid siginfo_t; the kernel fills it in.
        let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: `info` is writable; the id is our child's, not yet reaped.
        let done = unsafe { libc::waitid(libc::P_PID, self.pid as u32, &mut info, how) };
        // SAFETY: waitid set si_pid, or left it 0 when no child has ended.
        done != 0 || unsafe { info.si_pid() } != 0
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: our own child, reaped here and only here, so the id is still its; where the
        // kernel reaps our children, the first call says so.
        unsafe {
            if libc::waitpid(self.pid, &mut status, libc::WNOHANG) != 0 {
                return;
            }
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, &mut status, 0);
        }
    }
}

/// While it lives, the kernel reaps our children: no zombies.
#[derive(Debug)]
pub(crate) struct Reaper(libc::sighandler_t);

impl Reaper {
    pub(crate) fn kernel() -> Self {
        // SAFETY: no handler runs; children end without leaving a zombie.
        Self(unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) })
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        // SAFETY: what was in force before.
        unsafe { libc::signal(libc::SIGCHLD, self.0) };
    }
}

fn os_error(what: &str, object: &str) -> Error {
    Error::new(ErrorKind::Io, what, object, "").with_source(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::cores::Cores;
    use std::sync::atomic::Ordering::{Acquire, Release};

    #[test]
    fn a_peer_shares_the_map_and_a_dead_one_ends_the_wait() -> Result<()> {
        let Ok(cores) = Cores::first_two() else {
            return Ok(());
        };
        let map = SharedMap::new(4096)?;
        let [word] = map.words(8);
        let peer = Peer::spawn(cores.peers, || word.store(7, Release))?;
        peer.spin_until(|| word.load(Acquire) == 7)?;
        let error = peer.spin_until(|| word.load(Acquire) == 8).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OwnerDied);
        Ok(())
    }

    #[test]
    #[should_panic(expected = "4096 + 8 of 4096")]
    fn words_outside_the_map_are_refused() {
        let map = SharedMap::new(4096).unwrap();
        map.words::<1>(4096);
    }
}
