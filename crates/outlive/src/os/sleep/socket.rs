//! A socket file that anybody who may write it can use to make its owner's descriptor readable.
//!
//! Datagrams, because one sending socket of a process then reaches all receivers, a full queue
//! tells the sender that nothing more is needed, and nothing raises SIGPIPE. A path too long for a
//! socket address goes through `/proc/thread-self/fd`.
//!
//! What a receiver has not read yet, a stopped one for instance, stays in the send buffer of the
//! socket it came from. Once that buffer is full, EAGAIN says nothing about the receiver at hand,
//! so the call is made again from a new socket, which takes the old one's place: the kernel keeps
//! the old one for as long as its datagrams are unread, and nobody waits for them.
#![allow(unsafe_code)]

use std::fs::Permissions;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::os::fs::kept::KeptFd;
use crate::os::fs::{dir, file};
use crate::os::process::fork;
use crate::os::process::fork::per_process::PerProcess;
use crate::os::syserr;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// A child that was forked while another thread made it has one of its own.
static SENDER: PerProcess<Option<Arc<KeptFd>>> = PerProcess::new();

/// The receiving end; its file goes with it.
#[derive(Debug)]
pub(crate) struct WakeSocket {
    fd: KeptFd,
    path: PathBuf,
    /// Which file that is: the name may become another's.
    file: Option<(u64, u64)>,
    generation: u32,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Its descriptor is readable: by this call, or because its queue was full already.
    Readable,
    /// Nobody is there to be called any more.
    Nobody,
    /// It could not be called: no descriptor or memory left, no permission.
    Failed,
}

impl WakeSocket {
    /// Makes the socket file at `path`.
    ///
    /// # Errors
    /// `AlreadyExists`, `NoSpace`, `Io` when the process is out of descriptors.
    ///
    /// # Crash safety
    /// **Strict.** Dying later leaves the file, which goes with its node (`sweep_dead`).
    pub(crate) fn bind(path: &Path, mode: u32) -> Result<Self> {
        let fd = socket()?;
        let (address, len, _dir) = address(path)?;
        // SAFETY: `address` is initialised for `len` bytes and lives through the call.
        let rc = unsafe { libc::bind(fd.number(), (&raw const address).cast(), len) };
        if rc != 0 {
            let e = match syserr::errno() {
                libc::EADDRINUSE => libc::EEXIST,
                e => e,
            };
            return Err(syserr::from_code("create socket", syserr::show(path), e));
        }
        let file = identity(path);
        let socket = Self { fd, path: path.into(), file, generation: fork::fork_generation() };
        // Not in `bind`: the umask would take the group's bits away.
        std::fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|e| syserr::from_io("set mode of", syserr::show(path), e))?;
        Ok(socket)
    }

    /// Takes everything that was sent.
    pub(crate) fn drain(&self) {
        let Some(fd) = self.fd.ours() else { return };
        // SAFETY: the buffer has the length given and lives through the call.
        let take = || unsafe {
            let mut byte = [0u8; 1];
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            libc::recv(fd.as_raw_fd(), byte.as_mut_ptr().cast(), byte.len(), flags)
        };
        // The queue is bounded (net.unix.max_dgram_qlen); so is this, whoever keeps sending.
        for _ in 0..4096 {
            if take() < 0 {
                return;
            }
        }
    }

    /// Makes its own descriptor readable.
    pub(crate) fn call_self(&self) -> Sent {
        call(&self.path)
    }
}

impl AsFd for WakeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Device and inode of the file at `path`, if there is one.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for WakeSocket {
    fn drop(&mut self) {
        let ours = self.file.is_some() && identity(&self.path) == self.file;
        if ours && self.generation == fork::fork_generation() {
            let _ = file::unlink(&self.path); // else a sweep does it
        }
    }
}

/// Makes the descriptor of the socket at `path` readable.
///
/// # Real-time
/// One system call that does not block; a few more the first time, where the path is long, and
/// where the send buffer or the receiver's queue is full.
pub(crate) fn call(path: &Path) -> Sent {
    let Some(sender) = sender() else { return Sent::Failed };
    let (sent, fresh) = call_from(&sender, path);
    if let Some(fresh) = fresh {
        *SENDER.get().lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(fresh));
    }
    sent
}

/// The socket that this process sends from; `None` while there is no descriptor for one.
fn sender() -> Option<Arc<KeptFd>> {
    let mut sender = SENDER.get().lock().unwrap_or_else(|e| e.into_inner());
    if sender.as_ref().is_none_or(|sender| sender.ours().is_none()) {
        *sender = socket().ok().map(Arc::new);
    }
    sender.clone()
}

/// `call` by `sender`; with the socket to send from next, once its send buffer is full.
fn call_from(sender: &KeptFd, path: &Path) -> (Sent, Option<KeptFd>) {
    let Ok((address, len, _dir)) = address(path) else { return (Sent::Failed, None) };
    let (mut code, mut next) = (send(sender, &address, len), None);
    if code == libc::EAGAIN && !fault("socket.full_is_the_peers") {
        // Its send buffer or the receiver's queue: a new socket's buffer is empty.
        let Ok(fresh) = socket() else { return (Sent::Failed, None) };
        code = send(&fresh, &address, len);
        next = (code == 0).then_some(fresh);
    }
    let sent = match code {
        0 | libc::EAGAIN => Sent::Readable,
        libc::ECONNREFUSED | libc::ENOENT => Sent::Nobody,
        _ => Sent::Failed,
    };
    (sent, next)
}

/// Sends a byte; returns 0 or the error's code.
fn send(sender: &KeptFd, address: &libc::sockaddr_un, len: libc::socklen_t) -> i32 {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: one byte and an address initialised for `len` bytes, both alive through the call.
    let rc = unsafe {
        let to = std::ptr::from_ref(address).cast();
        libc::sendto(sender.number(), [0u8; 1].as_ptr().cast(), 1, flags, to, len)
    };
    if rc >= 0 { 0 } else { syserr::errno() }
}

fn socket() -> Result<KeptFd> {
    // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        match libc::socket(libc::AF_UNIX, kind, 0) {
            fd if fd >= 0 => KeptFd::new(OwnedFd::from_raw_fd(fd), Path::new("a wake-up socket")),
            _ => Err(syserr::last("make", "a wake-up socket")),
        }
    }
}

/// The address of `path`, and the open directory that a long one goes through.
fn address(path: &Path) -> Result<(libc::sockaddr_un, libc::socklen_t, Option<dir::Dir>)> {
    // SAFETY: plain bytes, of which all zero is the empty address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let fits = |path: &Path| path.as_os_str().len() < address.sun_path.len();
    let mut through = None;
    let mut path = path.to_path_buf();
    if !fits(&path)
        && let (Some(parent), Some(name)) = (path.parent(), path.file_name())
    {
        let dir = dir::open_dir(parent)?;
        path = Path::new(&format!("/proc/thread-self/fd/{}", dir.as_fd().as_raw_fd())).join(name);
        through = Some(dir);
    }
    if !fits(&path) {
        let remedy = "use a shorter name";
        return Err(Error::new(ErrorKind::InvalidName, "use path", syserr::show(&path), remedy));
    }
    let bytes = path.as_os_str().as_bytes();
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let len = std::mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, len as libc::socklen_t, through))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::poll::{PollFd, READABLE, poll};
    use super::*;
    use crate::os::fixture::TempDir;
    use crate::os::time::deadline::Deadline;

    fn readable(socket: &WakeSocket) -> bool {
        poll(&mut [PollFd::new(socket.as_fd().as_raw_fd(), READABLE)], Deadline::AT_ONCE) == 1
    }

    #[test]
    fn a_socket_of_the_same_name_stays_when_the_first_one_goes() {
        let dir = TempDir::new("socket-again");
        let first = WakeSocket::bind(&dir.join("s"), 0o600).unwrap();
        std::fs::remove_file(dir.join("s")).unwrap();
        let second = WakeSocket::bind(&dir.join("s"), 0o600).unwrap();
        drop(first);
        assert_eq!(call(&dir.join("s")), Sent::Readable);
        drop(second);
        assert!(!dir.join("s").exists());
    }

    #[test]
    fn a_call_makes_it_readable_until_it_is_drained() {
        let dir = TempDir::new("socket");
        let long = dir.join(&"x".repeat(150));
        std::fs::create_dir(&long).unwrap();
        for path in [dir.join("s"), long.join("7.wake.1")] {
            assert_eq!(call(&path), Sent::Nobody);
            let socket = WakeSocket::bind(&path, 0o660).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
            assert!(!readable(&socket));
            // Also when nobody reads for long: the queue is full, and it stays readable.
            for _ in 0..2000 {
                assert_eq!(call(&path), Sent::Readable);
            }
            assert!(readable(&socket));
            socket.drain();
            assert!(!readable(&socket));
            assert_eq!(socket.call_self(), Sent::Readable);
            assert!(readable(&socket));
            let again = WakeSocket::bind(&path, 0o600).unwrap_err();
            assert_eq!(again.kind(), ErrorKind::AlreadyExists);
            drop(socket);
            assert!(!path.exists());
        }
    }

    #[test]
    fn what_stopped_receivers_have_not_read_keeps_no_call_from_another() {
        let dir = TempDir::new("socket-stopped");
        let mut sender = socket().unwrap();
        let small: libc::c_int = 1; // the kernel takes its minimum, a few datagrams
        // SAFETY: an int that lives through the call.
        let rc = unsafe {
            let value = (&raw const small).cast();
            let len = size_of_val(&small) as libc::socklen_t;
            libc::setsockopt(sender.number(), libc::SOL_SOCKET, libc::SO_SNDBUF, value, len)
        };
        assert_eq!(rc, 0);
        let mut call_from = |path: &Path| {
            let (sent, fresh) = call_from(&sender, path);
            if let Some(fresh) = fresh {
                sender = fresh;
            }
            sent
        };
        let bind = |n| WakeSocket::bind(&dir.join(&format!("{n}")), 0o600).unwrap();
        let stopped: Vec<_> = (0..40).map(bind).collect();
        for socket in &stopped {
            assert_eq!(call_from(&socket.path), Sent::Readable);
        }
        let healthy = bind(40);
        assert_eq!(call_from(&healthy.path), Sent::Readable);
        assert!(readable(&healthy), "it was told so, but nothing came");
        let unread = stopped.iter().filter(|s| !readable(s)).count();
        assert_eq!(unread, 0, "of those that read nothing, some were never called");
        // Full receivers are readable, and leave the sender as it is.
        for _ in 0..2000 {
            assert_eq!(call_from(&stopped[0].path), Sent::Readable);
        }
        healthy.drain();
        assert_eq!(call_from(&healthy.path), Sent::Readable);
        assert!(readable(&healthy));
        drop(healthy);
        assert_eq!(call_from(&dir.join("40")), Sent::Nobody);
    }

    #[test]
    fn a_child_that_was_forked_in_the_middle_of_the_first_call_calls_all_the_same() {
        let dir = TempDir::new("socket-fork");
        let socket = WakeSocket::bind(&dir.join("s"), 0o600).unwrap();
        let path = dir.join("s");
        let making = SENDER.get().lock().unwrap();
        let child = crate::os::fixture::fork_child(|| {
            // SAFETY: ends this child if it waits for what nobody will ever let go.
            unsafe { libc::alarm(20) };
            i32::from(call(&path) != Sent::Readable)
        });
        assert_eq!(child.wait(), 0);
        drop(making);
        assert!(readable(&socket));
    }

    /// What a program sees that closed all descriptors and has connections under their numbers.
    fn strangers_are_left_alone(dir: &TempDir) -> std::io::Result<i32> {
        let path = dir.join("s");
        let socket = WakeSocket::bind(&path, 0o600).unwrap();
        assert_eq!(call(&path), Sent::Readable);
        crate::os::fixture::close_all_descriptors();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut links = Vec::new();
        for _ in 0..20 {
            let ours = TcpStream::connect(listener.local_addr()?)?;
            let (mut theirs, _) = listener.accept()?;
            theirs.write_all(b"answer")?;
            theirs.set_nonblocking(true)?;
            links.push((ours, theirs));
        }
        call(&path);
        socket.drain();
        drop(socket);
        for (ours, theirs) in &mut links {
            let mut bytes = [0; 6];
            if theirs.read(&mut bytes).is_ok() {
                return Ok(1);
            }
            ours.set_nonblocking(true)?;
            if !ours.read(&mut bytes).is_ok_and(|n| bytes[..n] == *b"answer") {
                return Ok(2);
            }
        }
        Ok(0)
    }

    #[test]
    fn a_number_that_is_another_sockets_is_neither_written_nor_read() {
        let dir = TempDir::new("socket-closed");
        let child = crate::os::fixture::fork_child(|| strangers_are_left_alone(&dir).unwrap_or(3));
        assert_eq!(child.wait(), 0);
    }

    #[test]
    fn the_file_of_a_dead_owner_is_nobodys() {
        let dir = TempDir::new("socket-dead");
        let path = dir.join("s");
        let socket = WakeSocket::bind(&path, 0o600).unwrap();
        // As the kernel does at death: the descriptor goes, the file stays.
        drop(std::mem::replace(&mut { socket }.fd, super::socket().unwrap()));
        assert_eq!(call(&path), Sent::Nobody);
    }
}
