//! Waiting for file descriptors: `ppoll` for one wait, epoll where others are to wait for ours.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

use crate::Result;
use crate::os::fs::kept::KeptFd;
use crate::os::process::sched;
use crate::os::syserr;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;

/// There is something to read, or an end or error to be read.
pub(crate) const READABLE: i16 = libc::POLLIN;
/// There is room to write.
pub(crate) const WRITABLE: i16 = libc::POLLOUT;
/// The other side is gone; reported unasked.
pub(crate) const HUNG_UP: i16 = libc::POLLHUP;
/// Broken, or no open descriptor; reported unasked.
pub(crate) const FAILED: i16 = libc::POLLERR | libc::POLLNVAL;

/// One descriptor of a wait, and what was found out about it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollFd(libc::pollfd);

impl PollFd {
    /// Waits for `events`, a union of `READABLE` and `WRITABLE`.
    pub(crate) fn new(fd: RawFd, events: i16) -> Self {
        Self(libc::pollfd { fd, events, revents: 0 })
    }

    /// What the last `poll` found.
    pub(crate) fn found(&self) -> i16 {
        self.0.revents
    }
}

impl std::fmt::Debug for PollFd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "fd {}: {:#x} of {:#x}", self.0.fd, self.0.revents, self.0.events)
    }
}

/// Between two looks at descriptors that the kernel does not wait for.
const LOOK_NS: u64 = 2_000_000;

/// Waits until one of `fds` is ready or `deadline` has come. Returns how many are ready: 0 also
/// after a signal, and after 2 ms where the kernel cannot wait for all of them.
///
/// # Real-time
/// One system call; blocks until the deadline at the latest.
pub(crate) fn poll(fds: &mut [PollFd], deadline: Deadline) -> usize {
    match ppoll(fds, deadline) {
        Ok(ready) => ready,
        Err(libc::EINTR) => 0,
        Err(_) => poll_each(fds, deadline),
    }
}

/// As `poll`, where the kernel does not take `fds` together: they are more than RLIMIT_NOFILE
/// allows, or it has no memory for the list. A list of one needs neither.
#[cold]
fn poll_each(fds: &mut [PollFd], deadline: Deadline) -> usize {
    if fault("poll.refused_at_once") {
        return 0;
    }
    let each = fds.chunks_mut(1);
    let ready = each.filter_map(|fd| ppoll(fd, Deadline::AT_ONCE).ok()).sum();
    if ready == 0 {
        sched::sleep_until(deadline.min(Deadline::in_ns(LOOK_NS)));
    }
    ready
}

/// Returns how many are ready, or the error's code; nothing is found then.
fn ppoll(fds: &mut [PollFd], deadline: Deadline) -> std::result::Result<usize, i32> {
    let timeout = clock::timespec(deadline.remaining().as_nanos() as u64);
    // SAFETY: `PollFd` is transparent over `pollfd`; the slice and `timeout` live through the
    // call, and no signal mask is given. A number that is no descriptor is reported in `revents`.
    let n = unsafe {
        let (list, n) = (fds.as_mut_ptr().cast(), fds.len() as libc::nfds_t);
        libc::ppoll(list, n, &timeout, std::ptr::null())
    };
    if n < 0 {
        fds.iter_mut().for_each(|fd| fd.0.revents = 0);
        return Err(syserr::errno());
    }
    Ok(n as usize)
}

/// A set of descriptors that is itself one: readable while one of them has something new.
///
/// Each is watched for edges: it is reported once per event, whether or not anybody reads from it.
#[derive(Debug)]
pub(crate) struct Epoll(KeptFd);

impl Epoll {
    /// Errors: `Io` when the process is out of descriptors.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
        unsafe {
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                fd if fd >= 0 => {
                    KeptFd::new(OwnedFd::from_raw_fd(fd), Path::new("epoll")).map(Self)
                }
                _ => Err(syserr::last("make", "an epoll descriptor")),
            }
        }
    }

    /// Whether the descriptor is still that of this.
    pub(crate) fn is_open(&self) -> bool {
        self.0.ours().is_some()
    }

    /// Adds a descriptor; `key` tells which one it was.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>, key: u32) -> Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        let mut event = libc::epoll_event { events, u64: u64::from(key) };
        // SAFETY: both descriptors are open for the call, `event` lives through it.
        let rc = unsafe {
            let (set, add) = (self.0.number(), libc::EPOLL_CTL_ADD);
            libc::epoll_ctl(set, add, fd.as_raw_fd(), &raw mut event)
        };
        if rc == 0 { Ok(()) } else { Err(syserr::last("watch", "a descriptor")) }
    }

    /// Takes the news, without waiting: until there are new ones the set is not readable. Calls
    /// `each` with the keys of those that had some.
    pub(crate) fn take(&self, mut each: impl FnMut(u32)) {
        const AT_ONCE: usize = 16;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        loop {
            // SAFETY: the array has the length given and lives through the call.
            let n = unsafe {
                let (set, n) = (self.0.number(), AT_ONCE as i32);
                libc::epoll_wait(set, events.as_mut_ptr(), n, 0)
            };
            let n = n.max(0) as usize;
            events[..n].iter().for_each(|event| each(event.u64 as u32));
            if n < AT_ONCE {
                return;
            }
        }
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor that has news every so often, each time after it was read.
#[derive(Debug)]
pub(crate) struct Ticker(KeptFd);

impl Ticker {
    /// Errors: `Io` when the process is out of descriptors.
    pub(crate) fn every(period_ns: u64) -> Result<Self> {
        // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
        let ticker = unsafe {
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            match libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) {
                fd if fd >= 0 => KeptFd::new(OwnedFd::from_raw_fd(fd), Path::new("a timer"))?,
                _ => return Err(syserr::last("make", "a timer descriptor")),
            }
        };
        let ticker = Self(ticker);
        ticker.set(period_ns)?;
        Ok(ticker)
    }

    /// From now on every `period_ns`.
    pub(crate) fn set(&self, period_ns: u64) -> Result<()> {
        let period = clock::timespec(period_ns.max(1));
        let spec = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: a descriptor of ours; `spec` lives through the call, and the old setting is not
        // asked for.
        let rc = unsafe { libc::timerfd_settime(self.0.number(), 0, &spec, std::ptr::null_mut()) };
        if rc == 0 { Ok(()) } else { Err(syserr::last("set", "a timer descriptor")) }
    }

    /// Takes the news; only then does the kernel wind it up for the next.
    pub(crate) fn read(&self) {
        let Some(fd) = self.0.ours() else { return };
        let mut ticks = 0u64;
        // SAFETY: a descriptor of ours and a buffer of the length given.
        unsafe { libc::read(fd.as_raw_fd(), (&raw mut ticks).cast(), size_of_val(&ticks)) };
    }
}

impl AsFd for Ticker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::os::fixture::fork_child;

    fn ready(fd: &impl AsFd) -> bool {
        poll(&mut [PollFd::new(fd.as_fd().as_raw_fd(), READABLE)], Deadline::AT_ONCE) == 1
    }

    #[test]
    fn a_wait_ends_with_news_or_at_its_deadline() {
        let (mut reader, mut writer) = UnixStream::pair().unwrap();
        let mut fds = [PollFd::new(reader.as_raw_fd(), READABLE)];
        let deadline = Deadline::in_ns(5_000_000);
        assert_eq!(poll(&mut fds, deadline), 0);
        assert!(deadline.has_passed());
        writer.write_all(b"x").unwrap();
        assert_eq!(poll(&mut fds, Deadline::NEVER), 1);
        assert_eq!(fds[0].found(), READABLE);
        reader.read_exact(&mut [0]).unwrap();
        // Not a drop: a child that another test forks meanwhile has a copy.
        writer.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(poll(&mut fds, Deadline::AT_ONCE), 1);
        assert_ne!(fds[0].found() & HUNG_UP, 0);
        let mut fds = [PollFd::new(1 << 20, WRITABLE)];
        assert_eq!(poll(&mut fds, Deadline::AT_ONCE), 1);
        assert_ne!(fds[0].found() & FAILED, 0);
    }

    #[test]
    fn a_set_tells_each_event_once_without_anybody_reading_it() {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        let (set, outer) = (Epoll::new().unwrap(), Epoll::new().unwrap());
        set.add(reader.as_fd(), 7).unwrap();
        outer.add(set.as_fd(), 1).unwrap();
        for _ in 0..3 {
            assert!(!ready(&set) && !ready(&outer));
            writer.write_all(b"x").unwrap();
            assert!(ready(&set) && ready(&set) && ready(&outer));
            let mut keys = Vec::new();
            outer.take(|key| keys.push(key));
            set.take(|key| keys.push(key));
            assert_eq!(keys, [1, 7]);
        }
    }

    #[test]
    fn a_ticker_ticks_again_and_again() {
        let (set, timer) = (Epoll::new().unwrap(), Ticker::every(u64::MAX / 4).unwrap());
        timer.set(2_000_000).unwrap();
        set.add(timer.as_fd(), 0).unwrap();
        for _ in 0..3 {
            crate::os::fixture::until(|| ready(&set));
            set.take(|_| timer.read());
        }
    }

    /// A sandbox may have lowered the limit: the call was refused at once, again and again, and no
    /// descriptor was reported.
    #[test]
    fn more_descriptors_than_the_limit_allows_are_looked_at_one_by_one() {
        let ((quiet, _end), (reader, writer)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let numbers = [&quiet, &quiet, &reader].map(|stream| stream.as_raw_fd());
        // In a child: the limit is of the process.
        let child = fork_child(|| {
            let mut fds = numbers.map(|number| PollFd::new(number, READABLE));
            let limit = libc::rlimit { rlim_cur: 2, rlim_max: 2 };
            // SAFETY: a struct that lives through the call.
            let limited = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0;
            let began = clock::now_ns();
            let none = poll(&mut fds, Deadline::in_ns(50_000_000)) == 0;
            let slept = clock::now_ns() >= began + 1_000_000;
            let sent = (&writer).write(b"x").is_ok();
            let one = poll(&mut fds, Deadline::NEVER) == 1 && fds[2].found() == READABLE;
            i32::from(!limited)
                | i32::from(!none) << 1
                | i32::from(!slept) << 2
                | i32::from(!sent) << 3
                | i32::from(!one) << 4
        });
        assert_eq!(child.wait(), 0);
    }
}
