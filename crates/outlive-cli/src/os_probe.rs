//! What this kernel and this process can do, tried out rather than looked up.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

/// A kernel feature that outlive builds on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Feature {
    RobustList,
    OfdLocks,
    TmpFile,
    FutexWaitv,
}

/// A resource limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    OpenFiles,
    RtPriority,
    LockedMemory,
}

/// A file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub(crate) total_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) in_memory: bool,
}

/// Whether the kernel lets this process use it.
pub(crate) fn has(feature: Feature) -> bool {
    match feature {
        Feature::RobustList => {
            let (mut head, mut len) = (0usize, 0usize);
            // SAFETY: both are writable words, which the call fills in.
            let done = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &mut head, &mut len) };
            done == 0 && head != 0
        }
        Feature::OfdLocks => File::open("/proc/self/exe").is_ok_and(|file| {
            // SAFETY: all zeroes is a valid flock: a lock of the whole file.
            let mut lock: libc::flock = unsafe { std::mem::zeroed() };
            lock.l_type = libc::F_RDLCK as i16;
            // SAFETY: the descriptor is open, `lock` is writable.
            unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) == 0 }
        }),
        Feature::TmpFile => {
            let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
            // SAFETY: the path ends in NUL.
            let fd = unsafe { libc::open(c"/dev/shm".as_ptr(), flags, 0o600) };
            if fd >= 0 {
                // SAFETY: the descriptor is ours.
                unsafe { libc::close(fd) };
            }
            fd >= 0
        }
        Feature::FutexWaitv => {
            let nothing = std::ptr::null::<u8>();
            // Of no words at all: a kernel that knows the call says so.
            // SAFETY: with a count of 0 nothing is read.
            let done = unsafe { libc::syscall(449, nothing, 0, 0, nothing, 0) };
            let error = std::io::Error::last_os_error().raw_os_error();
            done >= 0 || error == Some(libc::EINVAL)
        }
    }
}

/// Soft and hard limit of this process; `u64::MAX` is none.
pub(crate) fn limit(of: Limit) -> Option<(u64, u64)> {
    let of = match of {
        Limit::OpenFiles => libc::RLIMIT_NOFILE,
        Limit::RtPriority => libc::RLIMIT_RTPRIO,
        Limit::LockedMemory => libc::RLIMIT_MEMLOCK,
    };
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let done = unsafe { libc::getrlimit(of, &mut limit) };
    (done == 0).then_some((limit.rlim_cur, limit.rlim_max))
}

pub(crate) fn uid() -> u32 {
    // SAFETY: no pointers are passed.
    unsafe { libc::geteuid() }
}

pub(crate) fn is_root() -> bool {
    uid() == 0
}

/// Whose files log-out leaves alone: users below `SYS_UID_MAX`.
pub(crate) fn is_system_user() -> bool {
    uid() < 1000
}

/// Whether this process may make files in `dir`.
pub(crate) fn can_write(dir: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()) else { return false };
    // SAFETY: `path` ends in NUL.
    unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) == 0 }
}

/// The file system at `path`.
pub(crate) fn disk(path: &Path) -> Option<Disk> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let path =
        std::ffi::CString::new(fs::canonicalize(path).ok()?.into_os_string().into_encoded_bytes());
    let path = path.ok()?;
    // SAFETY: all zeroes is a valid statfs; the call fills it in.
    let mut info: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends in NUL, `info` is writable.
    if unsafe { libc::statfs(path.as_ptr(), &mut info) } != 0 {
        return None;
    }
    let block = info.f_bsize as u64;
    Some(Disk {
        total_bytes: info.f_blocks.saturating_mul(block),
        free_bytes: info.f_bavail.saturating_mul(block),
        in_memory: [TMPFS, RAMFS].contains(&(info.f_type as u64)),
    })
}
