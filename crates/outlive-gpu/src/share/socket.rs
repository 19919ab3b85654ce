//! Descriptors of allocations, handed from process to process.
//!
//! Each member has a socket in the abstract namespace, which the kernel removes with the process:
//! nothing is left after a kill. Whoever has an allocation serves it, its maker or not. A stopped
//! member answers nobody and takes connections until its queue is full: neither is waited for long.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{io, mem, ptr};

use crate::process::{fork_generation, this_process};
use crate::{Error, ErrorKind, Result};

/// Longest wait for a peer's answer; a stopped one is asked in vain.
const ANSWER_WAIT: Duration = Duration::from_millis(500);
/// Before it is tried again to take a connection, where there is no descriptor for it.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Which allocation: its maker's node, and a number of the maker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) node: u64,
    pub(crate) serial: u64,
}

type Table = Arc<Mutex<HashMap<Key, OwnedFd>>>;

/// Serves the allocations of this process to others, from a thread of its own.
#[derive(Debug)]
pub(crate) struct Server {
    table: Table,
    stop: Arc<AtomicBool>,
    listener: Arc<UnixListener>,
    started_by: u32,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// The socket of node `node` in the domain that `domain` tells from others.
fn address(domain: &str, node: u64) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("outlive-gpu/{domain}/{node}"))
}

impl Server {
    pub(crate) fn start(domain: &str, node: u64) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::new(ErrorKind::Io, format!("opening a socket for device memory ({e})"), "")
        };
        let address = address(domain, node).map_err(failed)?;
        let listener = Arc::new(UnixListener::bind_addr(&address).map_err(failed)?);
        let (table, stop) = (Table::default(), Arc::new(AtomicBool::new(false)));
        let of_thread = (Arc::clone(&table), Arc::clone(&stop), Arc::clone(&listener));
        let thread = std::thread::Builder::new()
            .name("outlive-gpu".into())
            .spawn(move || serve(&of_thread.2, &of_thread.0, &of_thread.1))
            .map_err(failed)?;
        let started_by = this_process();
        Ok(Self { table, stop, listener, started_by, thread: Some(thread) })
    }

    fn is_own_process(&self) -> bool {
        self.started_by == fork_generation()
    }

    pub(crate) fn put(&self, key: Key, fd: OwnedFd) {
        self.table.lock().unwrap_or_else(|e| e.into_inner()).insert(key, fd);
    }

    pub(crate) fn remove(&self, key: Key) {
        if !self.is_own_process() {
            // A forked child: a thread of the parent may have the lock.
            return;
        }
        self.table.lock().unwrap_or_else(|e| e.into_inner()).remove(&key);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.is_own_process() {
            // A forked child: thread and socket are the parent's.
            return;
        }
        self.stop.store(true, Relaxed);
        // Wakes it, also when nobody else could connect any more.
        // SAFETY: a system call without pointers, on a socket that is open.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &UnixListener, table: &Table, stop: &AtomicBool) {
    loop {
        let accepted = listener.accept();
        if stop.load(Relaxed) {
            return;
        }
        match accepted {
            // Whoever goes wrong is alone with it.
            Ok((stream, _)) => drop(answer(&stream, table)),
            Err(_) => std::thread::sleep(ACCEPT_AGAIN),
        }
    }
}

fn answer(stream: &UnixStream, table: &Table) -> io::Result<()> {
    if !is_ours(stream) {
        return Ok(());
    }
    stream.set_read_timeout(Some(ANSWER_WAIT))?;
    stream.set_write_timeout(Some(ANSWER_WAIT))?;
    let mut words = [0u8; 16];
    io::Read::read_exact(&mut { stream }, &mut words)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| words[at + i]));
    let key = Key { node: word(0), serial: word(8) };
    let fd = {
        let table = table.lock().unwrap_or_else(|e| e.into_inner());
        table.get(&key).map(OwnedFd::try_clone).transpose()?
    };
    send(stream, fd.as_ref().map(OwnedFd::as_fd))
}

/// Whether the other end runs as our user, or as root, who may read our memory anyway: an abstract
/// name has no owner of its own.
fn is_ours(stream: &UnixStream) -> bool {
    // SAFETY: plain bytes, and their length.
    unsafe {
        let mut peer: libc::ucred = mem::zeroed();
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
        let to = (&raw mut peer).cast();
        let rc = libc::getsockopt(stream.as_raw_fd(), level, name, to, &raw mut len);
        rc == 0 && may_share(peer.uid, libc::geteuid())
    }
}

/// That we are root ourselves says nothing of the peer.
fn may_share(peer: libc::uid_t, us: libc::uid_t) -> bool {
    peer == us || peer == 0
}

/// Connects without waiting: to a stopped peer whose queue is full that would last for ever.
fn connect(address: &SocketAddr) -> io::Result<UnixStream> {
    let name = address.as_abstract_name().ok_or(io::ErrorKind::InvalidInput)?;
    // SAFETY: plain structures that live through the calls; the descriptor is ours alone.
    unsafe {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let fd = libc::socket(libc::AF_UNIX, kind, 0);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let stream = UnixStream::from_raw_fd(fd);
        let mut to: libc::sockaddr_un = mem::zeroed();
        to.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // Behind a byte of 0, which says that it is such a name.
        let room = to.sun_path.len() - 1;
        for (to, from) in to.sun_path[1..].iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        if name.len() > room {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let len = mem::offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
        if libc::connect(fd, (&raw const to).cast(), len as libc::socklen_t) != 0 {
            return Err(io::Error::last_os_error());
        }
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

/// Asks node `node` for an allocation, at most until `deadline`; `None` when it has none, is not
/// there or does not answer.
pub(crate) fn ask(domain: &str, node: u64, key: Key, deadline: Instant) -> Option<OwnedFd> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return None;
    }
    let stream = connect(&address(domain, node).ok()?).ok()?;
    if !is_ours(&stream) {
        return None;
    }
    let wait = Some(ANSWER_WAIT.min(left));
    stream.set_read_timeout(wait).ok()?;
    stream.set_write_timeout(wait).ok()?;
    let mut words = [0u8; 16];
    words[..8].copy_from_slice(&key.node.to_le_bytes());
    words[8..].copy_from_slice(&key.serial.to_le_bytes());
    io::Write::write_all(&mut &stream, &words).ok()?;
    receive(&stream).ok()?
}

/// Room for one descriptor, aligned for the kernel's header.
type Control = [u64; 8];

fn send(stream: &UnixStream, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut byte = [u8::from(fd.is_some())];
    let mut control: Control = [0; 8];
    // SAFETY: plain structures whose pointers live through the call; `control` has room for one
    // descriptor (CMSG_SPACE is 24 bytes).
    unsafe {
        let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(fd) = fd {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as _;
            ptr::write_unaligned(libc::CMSG_DATA(header).cast(), fd.as_raw_fd());
        }
        match libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn receive(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0u8; 1];
    let mut control: MaybeUninit<Control> = MaybeUninit::zeroed();
    // SAFETY: as in `send`; a descriptor that arrives is ours alone.
    unsafe {
        let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>() as _;
        if libc::recvmsg(stream.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) != 1 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let is_fd = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len as usize == libc::CMSG_LEN(4) as usize;
        if !is_fd {
            return Ok(None);
        }
        let fd: libc::c_int = ptr::read_unaligned(libc::CMSG_DATA(header).cast());
        Ok(Some(OwnedFd::from_raw_fd(fd)))
    }
}

#[cfg(test)]
mod tests {
    use super::may_share;

    #[test]
    fn our_user_and_root_may_share_and_to_root_others_are_others() {
        for (peer, us, may) in [(7, 7, true), (0, 7, true), (8, 7, false), (8, 0, false)] {
            assert_eq!(may_share(peer, us), may, "{peer} {us}");
        }
    }
}
