//! What the kernel offers to send messages with.

use std::ffi::CString;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::{Error, ErrorKind, Result};

use super::ours::child;
use crate::pair::{Peer, SharedMap};
use crate::topic::same;

/// A kind of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Pipe,
    SeqPacket,
    PosixMq,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Pipe, Self::SeqPacket, Self::PosixMq];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::SeqPacket => "Unix SEQPACKET",
            Self::PosixMq => "POSIX mq",
        }
    }

    /// Both ends: to read from, to write to.
    fn open(self, message_bytes: usize) -> Result<[i32; 2]> {
        let mut fds = [0; 2];
        // SAFETY: room for two descriptors.
        let done = unsafe {
            match self {
                Self::Pipe => libc::pipe(fds.as_mut_ptr()),
                Self::SeqPacket => {
                    libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0, fds.as_mut_ptr())
                }
                Self::PosixMq => return posix_mq(message_bytes),
            }
        };
        if done == 0 { Ok(fds) } else { Err(failed("open", self.name())) }
    }

    /// Bytes moved, or an error.
    fn write(self, fd: i32, bytes: &[u8]) -> isize {
        // SAFETY: the bytes are readable; the descriptor is ours.
        unsafe {
            match self {
                Self::PosixMq => match libc::mq_send(fd, bytes.as_ptr().cast(), bytes.len(), 0) {
                    0 => bytes.len() as isize,
                    _ => -1,
                },
                _ => libc::write(fd, bytes.as_ptr().cast(), bytes.len()),
            }
        }
    }

    fn read(self, fd: i32, bytes: &mut [u8]) -> isize {
        let (to, len) = (bytes.as_mut_ptr(), bytes.len());
        // SAFETY: the bytes are writable; the descriptor is ours.
        unsafe {
            match self {
                Self::PosixMq => libc::mq_receive(fd, to.cast(), len, std::ptr::null_mut()),
                _ => libc::read(fd, to.cast(), len),
            }
        }
    }
}

fn posix_mq(message_bytes: usize) -> Result<[i32; 2]> {
    let name = CString::new(format!("/outlive-bench-{}", std::process::id())).unwrap_or_default();
    // SAFETY: all zeroes is a valid mq_attr; the name outlives the calls; the queue goes with its
    // descriptor once its name is gone.
    let fd = unsafe {
        let mut attr: libc::mq_attr = std::mem::zeroed();
        (attr.mq_maxmsg, attr.mq_msgsize) = (10, message_bytes as _);
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
        let fd = libc::mq_open(name.as_ptr(), flags, 0o600, &raw mut attr);
        libc::mq_unlink(name.as_ptr());
        fd
    };
    if fd < 0 { Err(failed("open", "a POSIX message queue")) } else { Ok([fd, fd]) }
}

fn failed(what: &str, object: &str) -> Error {
    Error::new(ErrorKind::Io, what, object, "").with_source(io::Error::last_os_error())
}

/// Messages of `W` words per second, `batch` of them with one call.
pub(super) fn stream<const W: usize>(
    cores: Cores,
    way: Way,
    batch: usize,
    count: u64,
) -> Result<Samples> {
    let (bytes, count) = (8 * W * batch, count / batch as u64 * batch as u64);
    let fds = way.open(bytes)?;
    let [from, to] = fds;
    let map = SharedMap::new(4096)?;
    let [ready, sum_seen] = map.words(0);
    let peer = Peer::spawn(cores.peers, || {
        child(|| {
            let (mut buffer, mut sum, mut got) = (vec![0; bytes], 0u64, 0);
            ready.store(1, Release);
            while got < count {
                let mut filled = 0;
                // A pipe may hand over a part.
                while filled < bytes {
                    let n = way.read(from, &mut buffer[filled..]);
                    if n <= 0 {
                        return Err(failed("read from", way.name()));
                    }
                    filled += n as usize;
                }
                for message in buffer.chunks_exact(8 * W) {
                    let last = message[8 * (W - 1)..].try_into().unwrap_or_default();
                    sum = sum.wrapping_add(u64::from_ne_bytes(last));
                }
                got += batch as u64;
            }
            sum_seen.store(sum, Relaxed);
            ready.store(2, Release);
            loop {
                std::thread::park();
            }
        });
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    let _pinned = Pinned::to(cores.ours)?;
    let (start, mut buffer) = (Instant::now(), vec![0; bytes]);
    let mut done = Ok(());
    for i in (1..=count).step_by(batch) {
        for (k, message) in buffer.chunks_exact_mut(8 * W).enumerate() {
            for word in message.chunks_exact_mut(8) {
                word.copy_from_slice(&(i + k as u64).to_ne_bytes());
            }
        }
        if way.write(to, &buffer) != bytes as isize {
            done = Err(failed("write to", way.name()));
            break;
        }
    }
    let done = done.and_then(|()| peer.spin_until(|| ready.load(Acquire) == 2));
    let seconds = start.elapsed().as_secs_f64();
    // SAFETY: our own descriptors, closed once.
    unsafe {
        libc::close(from);
        if to != from {
            libc::close(to);
        }
    }
    done?;
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}
