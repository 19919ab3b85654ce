//! A RAM disk of this process and its members alone, so that it can be filled.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

const SHM: &str = "/dev/shm";
const FILLER: &str = "/dev/shm/filler";
/// More than what the largest history needs.
const OPTIONS: &std::ffi::CStr = c"size=256m,mode=1777";

static OWN: AtomicBool = AtomicBool::new(false);

/// Whether the disk is nobody else's.
pub(super) fn is_own() -> bool {
    OWN.load(Relaxed)
}

/// Mounts a disk over /dev/shm that only this process and its children see, before it has a second
/// thread. Where that is not allowed all goes on without: no disk is filled then.
pub fn mount() -> bool {
    let done = unshare().and_then(|()| mount_over_shm());
    OWN.store(done.is_ok(), Relaxed);
    done.is_ok()
}

fn unshare() -> io::Result<()> {
    // SAFETY: takes no pointers, and so does each of these.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let user = if uid == 0 { 0 } else { libc::CLONE_NEWUSER };
    // SAFETY: as above.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS | user) })?;
    if user != 0 {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    Ok(())
}

fn mount_over_shm() -> io::Result<()> {
    if !Path::new(SHM).is_dir() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let none = std::ptr::null();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the strings are literals, and null pointers are allowed where nothing is said.
    check(unsafe { libc::mount(none, c"/".as_ptr(), none, private, none.cast()) })?;
    let (what, at) = (c"tmpfs".as_ptr(), c"/dev/shm".as_ptr());
    // SAFETY: the strings are literals.
    check(unsafe { libc::mount(what, at, what, 0, OPTIONS.as_ptr().cast()) })
}

/// Fills the disk but for so many bytes; with `None` makes room again.
pub(super) fn fill(left: Option<u64>) -> io::Result<()> {
    let Some(left) = left else { return fs::remove_file(FILLER) };
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(FILLER)?;
    let room = free_bytes(&file)?.saturating_sub(left);
    if room > 0 {
        // SAFETY: the descriptor is open for the whole call.
        check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, room as i64) })?;
    }
    Ok(())
}

fn free_bytes(file: &File) -> io::Result<u64> {
    // SAFETY: plain numbers, for which zeros are values.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local, the descriptor is open.
    check(unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut stat) })?;
    Ok(stat.f_bavail * stat.f_frsize)
}

fn check(result: i32) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
