//! A socket file that anybody who may write it can use to make its owner's descriptor readable.
//!
//! Datagrams, because one sending socket of a process then reaches all receivers, a full queue
//! tells the sender that nothing more is needed, and nothing raises SIGPIPE. A path too long for a
//! socket address goes through `/proc/self/fd`.
#![allow(unsafe_code)]

use std::fs::Permissions;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::{dir, file, fork, syserr};
use crate::{Error, ErrorKind, Result};

/// The receiving end; its file goes with it.
#[derive(Debug)]
pub(crate) struct WakeSocket {
    fd: OwnedFd,
    path: PathBuf,
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
        let rc = unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) };
        if rc != 0 {
            let e = match syserr::errno() {
                libc::EADDRINUSE => libc::EEXIST,
                e => e,
            };
            return Err(syserr::from_code("create socket", syserr::show(path), e));
        }
        let socket = Self { fd, path: path.into(), generation: fork::fork_generation() };
        // Not in `bind`: the umask would take the group's bits away.
        std::fs::set_permissions(path, Permissions::from_mode(mode))
            .map_err(|e| syserr::from_io("set mode of", syserr::show(path), e))?;
        Ok(socket)
    }

    /// Takes everything that was sent.
    pub(crate) fn drain(&self) {
        // SAFETY: the buffer has the length given and lives through the call.
        let take = || unsafe {
            let mut byte = [0u8; 1];
            let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
            libc::recv(self.fd.as_raw_fd(), byte.as_mut_ptr().cast(), byte.len(), flags)
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

impl Drop for WakeSocket {
    fn drop(&mut self) {
        if self.generation == fork::fork_generation() {
            let _ = file::unlink(&self.path); // else a sweep does it
        }
    }
}

/// Makes the descriptor of the socket at `path` readable.
///
/// # Real-time
/// One system call that does not block; a few more the first time, or where the path is long.
pub(crate) fn call(path: &Path) -> Sent {
    static SENDER: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let Some(sender) = SENDER.get_or_init(|| socket().ok()) else { return Sent::Failed };
    let Ok((address, len, _dir)) = address(path) else { return Sent::Failed };
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: one byte and an address initialised for `len` bytes, both alive through the call.
    let rc = unsafe {
        let to = (&raw const address).cast();
        libc::sendto(sender.as_raw_fd(), [0u8; 1].as_ptr().cast(), 1, flags, to, len)
    };
    if rc >= 0 {
        return Sent::Readable;
    }
    match syserr::errno() {
        libc::EAGAIN => Sent::Readable,
        libc::ECONNREFUSED | libc::ENOENT => Sent::Nobody,
        _ => Sent::Failed,
    }
}

fn socket() -> Result<OwnedFd> {
    // SAFETY: a system call without pointers; the descriptor it returns is ours alone.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        match libc::socket(libc::AF_UNIX, kind, 0) {
            fd if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
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
        path = Path::new(&format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd())).join(name);
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
    use super::super::fixture::TempDir;
    use super::super::poll::{PollFd, READABLE, poll};
    use super::*;

    fn readable(socket: &WakeSocket) -> bool {
        poll(&mut [PollFd::new(socket.as_fd().as_raw_fd(), READABLE)], 0) == 1
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
    fn the_file_of_a_dead_owner_is_nobodys() {
        let dir = TempDir::new("socket-dead");
        let path = dir.join("s");
        let socket = WakeSocket::bind(&path, 0o600).unwrap();
        // As the kernel does at death: the descriptor goes, the file stays.
        drop(std::mem::replace(&mut { socket }.fd, super::socket().unwrap()));
        assert_eq!(call(&path), Sent::Nobody);
    }
}
