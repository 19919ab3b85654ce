//! A lock repaired by a central process: every member has a socket to the tracker, which asks each
//! of them without blocking, every millisecond, and frees what a member held whose socket broke.
//!
//! Nobody tells of the tracker's own death; from then on a dead holder keeps the lock for ever.

use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use outlive::Result;

use crate::memory::{SharedFile, failed};
use crate::process::Process;
use crate::{Lock, Told, Use};

/// How often the tracker looks.
const PERIOD: Duration = Duration::from_millis(1);
/// The word of a lock whose holder died.
const BROKEN: u32 = u32::MAX;
const PATIENCE: Duration = Duration::from_secs(10);

/// The lock that a tracker repairs.
#[derive(Clone, Copy, Debug)]
pub struct TrackerLock;

/// The tracker's process; dropped, it is gone.
#[derive(Debug)]
pub struct Tracker(Process);

impl Tracker {
    /// SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill();
    }
}

/// The lock, in one process: a member.
#[derive(Debug)]
pub struct OpenTrackerLock {
    page: SharedFile,
    me: u32,
    _socket: OwnedFd,
}

fn os_error(what: &str) -> outlive::Error {
    failed(what, "a tracker's socket", std::io::Error::last_os_error())
}

fn socket() -> Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: takes numbers, gives a new descriptor.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(os_error("open"));
    }
    // SAFETY: just opened, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of the tracker, and its length.
fn address(dir: &Path) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: integers; all zeroes is an unnamed address.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as _;
    let path = dir.join("tracker");
    for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_encoded_bytes()) {
        *to = *from as _;
    }
    (address, size_of::<libc::sockaddr_un>() as _)
}

impl Lock for TrackerLock {
    type Open = OpenTrackerLock;
    type Keeper = Tracker;

    fn name(self) -> &'static str {
        "central tracker"
    }

    fn shares(self) -> bool {
        false
    }

    fn make(self, dir: &Path) -> Result<Tracker> {
        let (page, listener) = (SharedFile::open(dir)?, socket()?);
        let (address, len) = address(dir);
        // SAFETY: an address of `len` bytes and an open socket.
        unsafe {
            let bound = libc::bind(listener.as_raw_fd(), (&raw const address).cast(), len);
            let flag = libc::O_NONBLOCK;
            if bound != 0
                || libc::listen(listener.as_raw_fd(), 128) != 0
                || libc::fcntl(listener.as_raw_fd(), libc::F_SETFL, flag) != 0
            {
                return Err(os_error("bind"));
            }
        }
        Process::fork(|| track(&page, &listener)).map(Tracker)
    }

    fn open(self, dir: &Path) -> Result<OpenTrackerLock> {
        let (page, socket) = (SharedFile::open(dir)?, socket()?);
        let me = page.word32(8).fetch_add(1, Relaxed) + 1;
        let (address, len) = address(dir);
        let start = Instant::now();
        // SAFETY: an address of `len` bytes, an open socket, and four bytes of ours.
        unsafe {
            while libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) != 0 {
                if start.elapsed() > PATIENCE {
                    return Err(os_error("connect"));
                }
                std::thread::sleep(PERIOD);
            }
            let id = me.to_ne_bytes();
            if libc::send(socket.as_raw_fd(), id.as_ptr().cast(), 4, libc::MSG_NOSIGNAL) != 4 {
                return Err(os_error("send to"));
            }
        }
        Ok(OpenTrackerLock { page, me, _socket: socket })
    }
}

/// The tracker's life.
fn track(page: &SharedFile, listener: &OwnedFd) {
    let mut members: Vec<(OwnedFd, u32)> = Vec::new();
    loop {
        // SAFETY: no address wanted; the new descriptor is ours.
        unsafe {
            let fd: RawFd =
                libc::accept(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut());
            if fd >= 0 {
                members.push((OwnedFd::from_raw_fd(fd), 0));
                continue;
            }
        }
        members.retain_mut(|(socket, id)| {
            let mut said = [0_u8; 4];
            // SAFETY: room for four bytes, without blocking.
            let got = unsafe {
                let flags = libc::MSG_DONTWAIT;
                libc::recv(socket.as_raw_fd(), said.as_mut_ptr().cast(), 4, flags)
            };
            if got == 4 {
                *id = u32::from_ne_bytes(said);
            }
            let waits =
                got < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock;
            if got == 4 || waits {
                return true;
            }
            if *id != 0 {
                // Its stores are visible: its process is gone.
                let _ = page.word32(0).compare_exchange(*id, BROKEN, Release, Relaxed);
            }
            false
        });
        std::thread::sleep(PERIOD);
    }
}

impl OpenTrackerLock {
    fn word(&self) -> &AtomicU32 {
        self.page.word32(0)
    }
}

impl Use for OpenTrackerLock {
    fn alone(&self, inside: impl FnOnce(Told)) {
        let told = loop {
            let seen = self.word().load(Relaxed);
            let free = seen == 0 || seen == BROKEN;
            if free && self.word().compare_exchange(seen, self.me, Acquire, Relaxed).is_ok() {
                break if seen == 0 { Told::Nothing } else { Told::OwnerDied };
            }
            std::thread::yield_now();
        };
        inside(told);
        let _ = self.word().compare_exchange(self.me, 0, Release, Relaxed);
    }

    fn shared(&self, inside: impl FnOnce(Told)) {
        self.alone(inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{TempDir, hold_and_die};

    #[test]
    fn a_living_tracker_frees_the_lock_of_the_dead() {
        let dir = TempDir::new("tracker");
        let _tracker = TrackerLock.make(&dir.0).unwrap();
        hold_and_die(TrackerLock, &dir.0);
        let mut told = Told::Nothing;
        TrackerLock.open(&dir.0).unwrap().alone(|said| told = said);
        assert_eq!(told, Told::OwnerDied);
    }

    #[test]
    fn a_dead_tracker_frees_nothing() {
        let dir = TempDir::new("tracker");
        let mut tracker = TrackerLock.make(&dir.0).unwrap();
        let page = SharedFile::open(&dir.0).unwrap();
        let holder = crate::tests::hold(TrackerLock, &dir.0);
        tracker.kill();
        drop(holder);
        // Nothing that could free it is left.
        assert!(![0, BROKEN].contains(&page.word32(0).load(Relaxed)));
    }
}
