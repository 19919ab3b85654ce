//! One system call for each look.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use outlive::Result;
use outlive_baselines::{OpenPthreadMutex, PthreadMutex};

use super::method::{Method, Stage, os_error};
use super::sockets::{pair, receive_fd, send_fd};

/// `kill(pid, 0)`.
pub(super) struct Signal(i32);

impl Method for Signal {
    const NAME: &'static str = "kill(pid, 0)";
    const WRONG: &'static str = "a number used again is a stranger; a zombie lives; other PID \
        namespaces do not exist; threads are not told apart";
    const CHECKS: u64 = 1_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self(0))
    }

    fn watch(&mut self, _: &Stage, pid: i32) -> Result<()> {
        self.0 = pid;
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        // SAFETY: signal 0 is never delivered.
        unsafe { libc::kill(self.0, 0) == 0 }
    }
}

/// `faccessat` on the directory `/proc/self` that the watched process opened and sent us.
pub(super) struct Proc {
    sockets: (OwnedFd, OwnedFd),
    dir: Option<OwnedFd>,
}

impl Proc {
    pub(super) fn dir(&self) -> Option<&OwnedFd> {
        self.dir.as_ref()
    }
}

pub(super) fn exists(dir: &OwnedFd) -> bool {
    let name = c"stat";
    // SAFETY: an open descriptor and a string that ends with 0.
    unsafe { libc::faccessat(dir.as_raw_fd(), name.as_ptr(), libc::F_OK, 0) == 0 }
}

impl Method for Proc {
    const NAME: &'static str = "/proc directory, faccessat";
    const WRONG: &'static str = "a zombie lives; needs /proc, also where containers hide it; told \
        only once the process's memory is gone";
    const CHECKS: u64 = 1_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self { sockets: pair()?, dir: None })
    }

    fn live(&mut self, _: &Stage) -> Result<()> {
        let dir = File::open("/proc/self").map_err(|_| os_error("open /proc of"))?;
        send_fd(&self.sockets.1, &dir.into())
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        self.dir = Some(receive_fd(&self.sockets.0)?);
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.dir.as_ref().is_some_and(exists)
    }
}

/// `pthread_mutex_trylock` of a robust mutex that the process holds.
pub(super) struct TryLock(OpenPthreadMutex);

const ROBUST: PthreadMutex = PthreadMutex { robust: true };

impl Method for TryLock {
    const NAME: &'static str = "robust mutex trylock";
    const WRONG: &'static str = "takes the end of the thread for the process's; needs memory that \
        the watcher may write, and whose trylock succeeds has taken the word away from all others";
    const CHECKS: u64 = 10_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        // SAFETY: zeroes that both processes share, mapped as long as the stage.
        unsafe { ROBUST.make_at(stage.map.at(0, 64)) }.map(Self)
    }

    fn live(&mut self, _: &Stage) -> Result<()> {
        self.0.seize();
        Ok(())
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.0.is_held()
    }
}

/// A question for the OFD lock of a file.
pub(super) struct FileLock(File);

fn lock_file(stage: &Stage) -> Result<File> {
    std::fs::create_dir_all(&stage.root.0).map_err(|_| os_error("make the directory of"))?;
    let path = stage.root.0.join("lock");
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    open.map_err(|_| os_error("open the lock file of"))
}

fn whole_file(kind: i32) -> libc::flock {
    // SAFETY: a flock is integers; all zeroes is the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock
}

impl Method for FileLock {
    const NAME: &'static str = "OFD file lock";
    const WRONG: &'static str = "a forked child with a copy of the descriptor keeps the lock; told \
        only once the process's memory is gone";
    const CHECKS: u64 = 1_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        Ok(Self(lock_file(stage)?))
    }

    fn live(&mut self, stage: &Stage) -> Result<()> {
        let file = lock_file(stage)?;
        let mut lock = whole_file(libc::F_WRLCK);
        // SAFETY: an open descriptor and a flock of ours.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw mut lock) };
        std::mem::forget(file);
        if done == 0 { Ok(()) } else { Err(os_error("lock the file of")) }
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        let mut lock = whole_file(libc::F_WRLCK);
        // SAFETY: as in `live`.
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
        done == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
    }
}

/// `poll` of a pidfd.
pub(super) struct PidFd(Option<OwnedFd>);

impl Method for PidFd {
    const NAME: &'static str = "pidfd, poll";
    const WRONG: &'static str = "from a number it may be a stranger's; Linux 5.3; told only once \
        the process's memory is gone; threads since 6.9";
    const CHECKS: u64 = 1_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self(None))
    }

    fn watch(&mut self, _: &Stage, pid: i32) -> Result<()> {
        // SAFETY: takes numbers, gives a new descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as i32;
        if fd < 0 {
            return Err(os_error("open the pidfd of"));
        }
        // SAFETY: just opened, nobody else's.
        self.0 = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        let Some(fd) = &self.0 else { return false };
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, no waiting.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 0 }
    }
}
