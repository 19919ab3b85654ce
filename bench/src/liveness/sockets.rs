//! A connection to the process: it breaks when the process dies.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use outlive::Result;

use super::method::{Method, Stage, os_error};

/// Two connected sockets.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(os_error("connect to"));
    }
    // SAFETY: just opened, nobody else's.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Room for one descriptor in a control message.
const CONTROL_BYTES: usize = 64;

/// Fills a message that carries one byte and room for one descriptor, and hands it to `call`.
fn with_message<R>(call: impl FnOnce(&mut libc::msghdr) -> R) -> R {
    let mut byte = [0_u8; 1];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = MaybeUninit::<[u64; CONTROL_BYTES / 8]>::zeroed();
    // SAFETY: a msghdr is integers and pointers; all zeroes is an empty one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    call(&mut message)
}

/// Sends a descriptor (SCM_RIGHTS).
pub(super) fn send_fd(socket: &OwnedFd, fd: &OwnedFd) -> Result<()> {
    let sent = with_message(|message| {
        // SAFETY: the control buffer holds the header and one descriptor; all of it lives through
        // the call.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(fd.as_raw_fd());
            libc::sendmsg(socket.as_raw_fd(), message, 0)
        }
    });
    if sent == 1 { Ok(()) } else { Err(os_error("send a descriptor of")) }
}

/// Receives a descriptor.
pub(super) fn receive_fd(socket: &OwnedFd) -> Result<OwnedFd> {
    let fd = with_message(|message| {
        // SAFETY: as in `send_fd`; the header is read only where the kernel put one.
        unsafe {
            let got = libc::recvmsg(socket.as_raw_fd(), message, libc::MSG_CMSG_CLOEXEC);
            let header = libc::CMSG_FIRSTHDR(message);
            if got != 1 || header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
                return None;
            }
            Some(libc::CMSG_DATA(header).cast::<i32>().read_unaligned())
        }
    });
    match fd {
        // SAFETY: the kernel made it for us.
        Some(fd) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        None => Err(os_error("receive a descriptor of")),
    }
}

/// The connection of a watcher: our end, and the watched process's, which only it keeps.
struct Link {
    ours: OwnedFd,
    theirs: Option<OwnedFd>,
}

impl Link {
    fn new() -> Result<Self> {
        let (ours, theirs) = pair()?;
        Ok(Self { ours, theirs: Some(theirs) })
    }
}

/// `poll` of a connected socket.
pub(super) struct Poll(Link);

impl Method for Poll {
    const NAME: &'static str = "SEQPACKET socket, poll";
    const WRONG: &'static str = "a forked child with a copy of the socket keeps it open; one \
        connection for each pair; told only once the process's memory is gone";
    const CHECKS: u64 = 1_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self(Link::new()?))
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        self.0.theirs = None;
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        let fd = self.0.ours.as_raw_fd();
        let mut poll = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
        // SAFETY: one pollfd, no waiting.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 0 }
    }
}

fn epoll() -> Result<OwnedFd> {
    // SAFETY: takes flags, gives a new descriptor.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(os_error("make an epoll for"));
    }
    // SAFETY: just opened, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn is_quiet(epoll: &OwnedFd) -> bool {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event, no waiting.
    unsafe { libc::epoll_wait(epoll.as_raw_fd(), &raw mut event, 1, 0) == 0 }
}

/// `epoll_wait` on an epoll with that socket, as one asks about many at once.
pub(super) struct Epoll {
    link: Link,
    epoll: OwnedFd,
}

impl Method for Epoll {
    const NAME: &'static str = "SEQPACKET socket, epoll";
    const WRONG: &'static str = "as poll; asks about any number of processes at once";
    const CHECKS: u64 = 1_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self { link: Link::new()?, epoll: epoll()? })
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        self.link.theirs = None;
        let mut event = libc::epoll_event { events: libc::EPOLLRDHUP as u32, u64: 0 };
        let (epoll, fd) = (self.epoll.as_raw_fd(), self.link.ours.as_raw_fd());
        // SAFETY: open descriptors and an event of ours.
        let done = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        if done == 0 { Ok(()) } else { Err(os_error("watch the socket of")) }
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        is_quiet(&self.epoll)
    }
}

/// `epoll_wait` on an epoll with nothing in it: what the call itself costs.
pub(super) struct EmptyEpoll {
    epoll: OwnedFd,
    real: Poll,
    looks: u64,
}

impl Method for EmptyEpoll {
    const NAME: &'static str = "epoll, empty";
    const WRONG: &'static str = "everything; every 1000th look is a poll of a socket";
    const CHECKS: u64 = 1_000_000;

    fn new(stage: &Stage) -> Result<Self> {
        Ok(Self { epoll: epoll()?, real: Poll::new(stage)?, looks: 0 })
    }

    fn watch(&mut self, stage: &Stage, pid: i32) -> Result<()> {
        self.real.watch(stage, pid)
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        self.looks += 1;
        is_quiet(&self.epoll) && (self.looks % 1000 != 0 || self.real.is_alive())
    }
}
