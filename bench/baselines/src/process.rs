//! Forked children, and whether a process is there.

use std::time::{Duration, Instant};

use outlive::Result;

use crate::memory::failed;

/// A forked child that dies with the thread that made it; killed and reaped when dropped.
#[derive(Debug)]
pub struct Process {
    pid: i32,
    parent: u32,
    reaped: bool,
}

impl Process {
    /// Forks a child that runs `body` and ends.
    ///
    /// # Errors
    /// `Io` when fork fails.
    pub fn fork(body: impl FnOnce()) -> Result<Self> {
        let parent = std::process::id();
        // SAFETY: the child runs `body` alone, which keeps to what a forked child may do, and ends
        // without the parent's exit handlers.
        match unsafe { libc::fork() } {
            -1 => Err(failed("fork", "a process", std::io::Error::last_os_error())),
            0 => {
                // SAFETY: plain system calls without pointers.
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    if libc::getppid() as u32 != parent {
                        libc::_exit(102);
                    }
                }
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            pid => Ok(Self { pid, parent, reaped: false }),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// SIGKILL, and its body is gone.
    pub fn kill(&mut self) {
        if !self.reaped {
            self.signal(libc::SIGKILL);
            self.reap(0);
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: i32) {
        if !self.reaped {
            // SAFETY: our own child, not reaped, so the id is still its.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// Whether it ended within `limit`.
    pub fn ends_within(&mut self, limit: Duration) -> bool {
        let start = Instant::now();
        while !self.reap(libc::WNOHANG) {
            if start.elapsed() > limit {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }

    fn reap(&mut self, how: i32) -> bool {
        let mut status = 0;
        // SAFETY: our own child; `status` is writable.
        self.reaped |= unsafe { libc::waitpid(self.pid, &raw mut status, how) } != 0;
        self.reaped
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A forked sibling holds a copy of this value; the process is not its child.
        if self.parent == std::process::id() {
            self.kill();
        }
    }
}

/// Whether no process has this id, asked by `stat` of /proc. A zombie is there, and so is a
/// stranger who got the number since.
pub(crate) fn is_gone(pid: u32) -> bool {
    let mut path = [0_u8; 24];
    path[..6].copy_from_slice(b"/proc/");
    let digits = pid.checked_ilog10().unwrap_or(0) as usize + 1;
    let mut rest = pid;
    for at in (6..6 + digits).rev() {
        path[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path ends with 0; `stat` has room for the answer, which is not read.
    let found = unsafe { libc::stat(path.as_ptr().cast(), stat.as_mut_ptr()) };
    found != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT)
}

/// The calling process's id, asked of the kernel each time.
pub(crate) fn own_pid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::getpid() as u32 }
}

/// The microsecond between two looks.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_micros(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_living_are_there_and_the_reaped_are_gone() {
        let mut child = Process::fork(|| std::thread::sleep(Duration::from_secs(60))).unwrap();
        let pid = child.pid() as u32;
        assert!(!is_gone(own_pid()) && !is_gone(pid));
        child.kill();
        assert!(is_gone(pid));
    }
}
