//! Directories of a domain: who owns them, and their locks.
//! Begin with `Dir`, one that is open and may be locked; `Access` says who may use a domain.
#![allow(unsafe_code)]

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::stat::same_file;
use crate::os::process::fork::NotInChild;
use crate::os::process::sched;
use crate::os::syserr;
use crate::os::syserr::show;
use crate::os::time::deadline::Deadline;
use crate::{Error, ErrorKind, Result};

/// Who may use a domain's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Mode of directories.
    pub(crate) dir_mode: u32,
    /// Mode of files that only their owner writes.
    pub(crate) own_mode: u32,
    /// Mode of files that every member writes (bells, locks).
    pub(crate) shared_mode: u32,
    /// The user that must own private directories and files.
    pub(crate) owner: u32,
    /// The group of a shared domain; none for a private one.
    pub(crate) gid: Option<u32>,
}

impl Access {
    /// This user only: 0700 and 0600.
    pub(crate) fn private() -> Self {
        let owner = sched::uid();
        Self { dir_mode: 0o700, own_mode: 0o600, shared_mode: 0o600, owner, gid: None }
    }

    /// This user and the members of a group; new files inherit the group from the directory.
    pub(crate) fn group(gid: u32) -> Self {
        let owner = sched::uid();
        Self { dir_mode: 0o2770, own_mode: 0o640, shared_mode: 0o660, owner, gid: Some(gid) }
    }

    /// The user every file must belong to; any member's will do in group mode.
    pub(crate) fn owner_required(&self) -> Option<u32> {
        if self.gid.is_none() { Some(self.owner) } else { None }
    }
}

/// Whether a real directory of this user lies there.
pub(crate) fn is_own_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir() && m.uid() == sched::uid())
}

/// Makes the directory if it is missing, and checks in any case that it is one of ours.
///
/// # Errors
/// `NotFound` without a parent; `Corrupt` when a file or a symbolic link lies there; `NotOwned`
/// when it is a stranger's, another group's, or writable by everybody.
///
/// # Crash safety
/// **Strict** when private. In group mode dying between making and opening it to the group is
/// repaired by its owner's next call; until then other members get `NotOwned`.
pub(crate) fn make_dir(path: &Path, access: &Access) -> Result<()> {
    match DirBuilder::new().mode(access.dir_mode & 0o1777).create(path) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(syserr::from_io("make directory", show(path), e)),
    }
    // Before opening it, which a stranger's mode may forbid.
    let there =
        std::fs::symlink_metadata(path).map_err(|e| syserr::from_io("check", show(path), e))?;
    if there.is_dir() {
        check_owner(path, there.uid(), access)?;
    }
    let dir = open_dir(path)?;
    // Another member may be between making it and opening it to the group.
    for _ in 0..20 {
        match check_dir(&dir, access) {
            Ok(()) => return Ok(()),
            Err(_) if access.gid.is_some() => sched::sleep_until(Deadline::in_ns(1_000_000)),
            Err(e) => return Err(e),
        }
    }
    check_dir(&dir, access)
}

fn check_dir(dir: &Dir, access: &Access) -> Result<()> {
    let meta = dir.file().metadata().map_err(|e| syserr::from_io("check", show(&dir.path), e))?;
    check_owner(&dir.path, meta.uid(), access)?;
    let mine = meta.uid() == sched::uid();
    if mine {
        repair_dir(dir, access, &meta)?;
    }
    let meta = dir.file().metadata().map_err(|e| syserr::from_io("check", show(&dir.path), e))?;
    if access.gid.is_some_and(|gid| gid != meta.gid()) {
        return Err(not_owned(&dir.path, &format!("it belongs to group {}", meta.gid())));
    }
    if access.gid.is_some() && meta.mode() & 0o070 != 0o070 {
        return Err(not_owned(&dir.path, "its group may not write to it"));
    }
    if meta.mode() & 0o002 != 0 {
        return Err(not_owned(&dir.path, "everybody may write to it"));
    }
    Ok(())
}

fn check_owner(path: &Path, uid: u32, access: &Access) -> Result<()> {
    match access.owner_required() {
        Some(owner) if owner != uid => {
            Err(not_owned(path, &format!("it belongs to user {uid}, not to {owner}")))
        }
        _ => Ok(()),
    }
}

/// Gives our own directory its group and mode where the umask or a death took them away. A wider
/// mode than asked for is left alone: the user may have set it.
fn repair_dir(dir: &Dir, access: &Access, meta: &std::fs::Metadata) -> Result<()> {
    let fail = |e| syserr::from_io("set up directory", show(&dir.path), e);
    if let Some(gid) = access.gid.filter(|gid| *gid != meta.gid()) {
        fchown(&dir.fd, None, Some(gid)).map_err(fail)?;
    }
    let lacks = access.dir_mode & !meta.mode() & 0o7777;
    if lacks != 0 {
        let mode = (meta.mode() & 0o7777) | access.dir_mode;
        dir.file().set_permissions(Permissions::from_mode(mode)).map_err(fail)?;
    }
    Ok(())
}

/// An open directory; its lock belongs to this descriptor and goes with it. A forked child, which
/// would keep the lock, loses the descriptor.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: NotInChild,
    path: PathBuf,
}

/// Opens a directory, following no link at its end. Errors: `NotFound`, `Corrupt`, `Permission`.
pub(crate) fn open_dir(path: &Path) -> Result<Dir> {
    #[cfg(test)]
    crate::os::fixture::may("opendir", path)?;
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let fd = NotInChild::open(|| {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
        file.map(OwnedFd::from).map_err(|e| syserr::from_io("open directory", show(path), e))
    })?;
    Ok(Dir { fd, path: path.to_path_buf() })
}

/// The names in the directory at `path`; none if there is no such.
pub(crate) fn names_in(path: &Path) -> Result<Vec<String>> {
    match open_dir(path).and_then(|dir| dir.entries()) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        names => names,
    }
}

/// Opens the directory at `path` and holds it shared: while held nobody removes it.
///
/// # Errors
/// `Timeout` when a remover holds it past `deadline`; `NotFound` when it is gone: make it again
/// and retry.
pub(crate) fn now_dir_lock_shared(path: &Path, deadline: Deadline) -> Result<Dir> {
    let mut pause_ns = 50_000;
    loop {
        let dir = open_dir(path)?;
        if dir.try_lock_shared()? && dir.still_at(path)? {
            return Ok(dir);
        }
        if deadline.has_passed() {
            let remedy = "a process is removing it for long: see `outlive doctor`";
            return Err(Error::new(ErrorKind::Timeout, "join directory", show(path), remedy));
        }
        sched::sleep_until(deadline.min(Deadline::in_ns(pause_ns)));
        pause_ns = (pause_ns * 2).min(2_000_000);
    }
}

/// The directory, locked for this one alone.
///
/// # Errors
/// `Timeout` past `deadline`; `NotFound`.
pub(crate) fn lock_dir(path: &Path, deadline: Deadline) -> Result<Dir> {
    loop {
        let dir = open_dir(path)?;
        if dir.try_lock_exclusive()? && dir.still_at(path)? {
            return Ok(dir);
        }
        if deadline.has_passed() {
            let remedy = "a stopped process holds it: continue or end it";
            return Err(Error::new(ErrorKind::Timeout, "locking directory", show(path), remedy));
        }
        sched::sleep_until(deadline.min(Deadline::in_ns(500_000)));
    }
}

impl Dir {
    /// What the standard library knows to do with it.
    fn file(&self) -> ManuallyDrop<File> {
        // SAFETY: open for the borrow; the copy is not closed.
        ManuallyDrop::new(unsafe { File::from_raw_fd(self.fd.as_fd().as_raw_fd()) })
    }

    /// Takes or turns the lock to shared, without waiting.
    pub(crate) fn try_lock_shared(&self) -> Result<bool> {
        self.flock(libc::LOCK_SH | libc::LOCK_NB)
    }

    /// Takes or turns the lock to exclusive, without waiting. A failed turn may lose the shared
    /// lock.
    pub(crate) fn try_lock_exclusive(&self) -> Result<bool> {
        self.flock(libc::LOCK_EX | libc::LOCK_NB)
    }

    /// Lets the lock go.
    pub(crate) fn unlock(&self) {
        let _ = self.flock(libc::LOCK_UN); // cannot fail on an open descriptor
    }

    /// Whether the directory at `path` is still this one. Check after locking: a remover may have
    /// been quicker.
    pub(crate) fn still_at(&self, path: &Path) -> Result<bool> {
        same_file(&self.fd, path)
    }

    /// The names in it, in no order; names that are not UTF-8 cannot be ours and are skipped.
    pub(crate) fn entries(&self) -> Result<Vec<String>> {
        let fail = |e| syserr::from_io("list directory", show(&self.path), e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(fail)? {
            names.extend(entry.map_err(fail)?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn flock(&self, operation: libc::c_int) -> Result<bool> {
        loop {
            // SAFETY: a system call on a descriptor that is open for the borrow.
            if unsafe { libc::flock(self.fd.as_fd().as_raw_fd(), operation) } == 0 {
                return Ok(true);
            }
            match syserr::errno() {
                libc::EINTR => {}
                libc::EWOULDBLOCK => return Ok(false),
                e => return Err(syserr::from_code("lock directory", show(&self.path), e)),
            }
        }
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// Removes an empty directory; false if it is absent or not empty.
///
/// # Crash safety
/// **Strict.** One system call.
pub(crate) fn remove_dir(path: &Path) -> Result<bool> {
    use std::io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotFound};
    match std::fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(e) if matches!(e.kind(), NotFound | DirectoryNotEmpty | AlreadyExists) => Ok(false),
        Err(e) => Err(syserr::from_io("remove directory", show(path), e)),
    }
}

/// Sets the time of a directory's last change to now. Whom the kernel refuses that does without.
///
/// # Crash safety
/// **Strict.** One system call.
pub(crate) fn touch(path: &Path) {
    let Ok(path) = syserr::c_path(path) else { return };
    let now = std::ptr::null();
    // SAFETY: the path ends in NUL and outlives the call; without times it is now.
    unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), now, libc::AT_SYMLINK_NOFOLLOW) };
}

#[cold]
fn not_owned(path: &Path, why: &str) -> Error {
    let remedy = format!("{why}: choose another place with OUTLIVE_DIR, or correct its owner");
    Error::new(ErrorKind::NotOwned, "use", show(path), remedy)
}

#[cfg(test)]
mod tests;
