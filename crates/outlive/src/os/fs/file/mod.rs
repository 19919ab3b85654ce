//! Files that appear complete or not at all, and the checks before a file is believed.
//! Begin with `Draft`, a file that has no name yet, and `open_checked`, its other half.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::CString;
use std::fs::{File, OpenOptions, Permissions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use super::dir::{
    Access, Dir, is_own_dir, lock_dir, make_dir, names_in, now_dir_lock_shared, open_dir,
    remove_dir, touch,
};
use super::filelock;
use super::map::Mapping;
pub(crate) use super::stat::{identity, len_of, same_file};
use crate::os::PAGE;
use crate::os::process::sched;
use crate::os::syserr;
use crate::os::syserr::show;
use crate::sync::{AtomicU32, Ordering, fault};
use crate::{Error, ErrorKind, Result};

/// Names of unfinished files where the file system has no unnamed ones. Their maker holds their
/// lock; once that is free anybody may unlink them.
pub(crate) const TMP_PREFIX: &str = ".tmp-";
/// Reserved at once; a signal makes tmpfs start a request over, so requests stay short.
const RESERVE_STEP: u64 = 16 << 20;

/// A file that is being built and that nobody sees yet.
#[derive(Debug)]
pub(crate) struct Draft {
    file: File,
    dir: PathBuf,
    len: u64,
    /// Its temporary name, where it must have one.
    tmp: Option<TmpName>,
    locked: Cell<bool>,
}

/// Unlinks an unfinished file whose maker is gone: its lock is free. Answers with how many went.
pub(crate) fn remove_unfinished(path: &Path) -> Result<usize> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match open_checked(path, expect) {
        Ok((fd, _)) if !filelock::is_locked(&fd)? => Ok(usize::from(unlink(path)?)),
        _ => Ok(0),
    }
}

/// A name that goes away when dropped.
#[derive(Debug)]
struct TmpName(PathBuf);

impl Drop for TmpName {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // a leftover is a cleaner's business
    }
}

impl Draft {
    /// Starts a file of `len` zero bytes, reserved in full, for a place in `dir`.
    ///
    /// # Errors
    /// `NoSpace` when the RAM disk or the quota is full, `NotFound` when `dir` is gone.
    ///
    /// # Crash safety
    /// **Strict.** An unnamed file goes with its descriptor. Where the file system has none, a
    /// `.tmp-` file is left, its lock free, for the next cleaner.
    pub(crate) fn new(dir: &Path, len: u64, mode: u32) -> Result<Self> {
        Self::start(dir, len, mode, has_proc())
    }

    fn start(dir: &Path, len: u64, mode: u32, try_unnamed: bool) -> Result<Self> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).mode(0o600);
        let unnamed = if try_unnamed {
            open.clone().custom_flags(libc::O_TMPFILE).open(dir)
        } else {
            Err(std::io::Error::from_raw_os_error(libc::EOPNOTSUPP))
        };
        let draft = match unnamed {
            Ok(file) => Self { file, dir: dir.into(), len, tmp: None, locked: Cell::new(false) },
            Err(e) => match e.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL) => Self::named(dir, len)?,
                _ => return Err(syserr::from_io("create file in", show(dir), e)),
            },
        };
        draft.reserve()?;
        // Not in `open`: the umask would take the group's bits away.
        let set = draft.file.set_permissions(Permissions::from_mode(mode));
        set.map_err(|e| syserr::from_io("set mode of file in", show(dir), e))?;
        Ok(draft)
    }

    /// The fallback: a temporary name, and the lock that says it is in use.
    fn named(dir: &Path, len: u64) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // A leftover of an earlier process with our pid may have the name: try the next.
        for _ in 0..1000 {
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let tmp = dir.join(format!("{TMP_PREFIX}{}-{n}", sched::pid()));
            let mut open = OpenOptions::new();
            open.read(true).write(true).create_new(true).mode(0o600);
            match open.custom_flags(libc::O_NOFOLLOW).open(&tmp) {
                Ok(file) => {
                    filelock::try_lock_write(&file)?;
                    return Ok(Self {
                        file,
                        dir: dir.into(),
                        len,
                        tmp: Some(TmpName(tmp)),
                        locked: Cell::new(false),
                    });
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(syserr::from_io("create file in", show(dir), e)),
            }
        }
        let remedy = "remove its `.tmp-` files, or run `outlive clean`";
        Err(Error::new(ErrorKind::AlreadyExists, "create file in", show(dir), remedy))
    }

    fn reserve(&self) -> Result<()> {
        has_room(&self.file, self.len, || self.show())?;
        if fault("file.unreserved") {
            return self
                .file
                .set_len(self.len)
                .map_err(|e| syserr::from_io("size", self.show(), e));
        }
        reserve(&self.file, 0, self.len).map_err(|e| syserr::from_io("reserve", self.show(), e))
    }

    /// The open file.
    #[cfg(test)]
    pub(crate) fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Maps it for writing.
    pub(crate) fn map(&self) -> Result<Mapping> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        Mapping::map_own(&self.file, len, &self.dir)
    }

    /// Maps `len` bytes of address space from the start of the file, which may be shorter: what
    /// lies behind its end may be used once `grow` has made it real, and only then (a touch before
    /// is taken for a truncated file and poisons the mapping). `path` is for messages.
    pub(crate) fn map_reserve(&self, len: usize, path: &Path) -> Result<Mapping> {
        Mapping::map_own_beyond(&self.file, len, path)
    }

    /// Opens it once more. A lock on this descriptor ends when it is closed; one on the draft's own
    /// lives for as long as anything is mapped through that, in a forked child for instance.
    pub(crate) fn reopen(&self) -> Result<OwnedFd> {
        let path = match &self.tmp {
            Some(TmpName(tmp)) => tmp.clone(),
            None => format!("{OWN_FDS}/{}", self.file.as_raw_fd()).into(),
        };
        let file = OpenOptions::new().read(true).write(true).open(&path);
        Ok(file.map_err(|e| syserr::from_io("open once more", self.show(), e))?.into())
    }

    /// Device and inode.
    pub(crate) fn identity(&self) -> Result<(u64, u64)> {
        identity(&self.file, &self.dir)
    }

    /// Takes the OFD write lock that `link` passes on with the descriptor.
    #[cfg(test)]
    pub(crate) fn lock_ofd(&self) -> Result<bool> {
        self.locked.set(filelock::try_lock_write(&self.file)?);
        Ok(self.locked.get())
    }

    /// Makes the file visible at `path`, in the directory it was made for; the descriptor keeps its
    /// lock.
    ///
    /// # Errors
    /// `AlreadyExists` when something lies there, `NotFound` when the directory is gone.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link. Where a temporary name was needed, dying right after it
    /// leaves that name too.
    pub(crate) fn link(self, path: &Path) -> Result<OwnedFd> {
        match &self.tmp {
            Some(TmpName(tmp)) => {
                let linked = std::fs::hard_link(tmp, path);
                linked.map_err(|e| syserr::from_io("create file", show(path), e))?;
                if !self.locked.get() {
                    filelock::unlock(&self.file);
                }
            }
            None => link_unnamed(&self.file, path)?,
        }
        Ok(self.file.into())
    }

    fn show(&self) -> String {
        format!("{} bytes in {}", self.len, self.dir.display())
    }
}

/// Unprivileged, unlike AT_EMPTY_PATH.
fn link_unnamed(file: &File, path: &Path) -> Result<()> {
    let from = syserr::c_path(Path::new(&format!("{OWN_FDS}/{}", file.as_raw_fd())))?;
    let to = syserr::c_path(path)?;
    // SAFETY: two C strings that live through the call.
    let rc = unsafe {
        let (cwd, flags) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
        libc::linkat(cwd, from.as_ptr(), cwd, to.as_ptr(), flags)
    };
    if rc == 0 { Ok(()) } else { Err(syserr::last("create file", show(path))) }
}

/// Of the thread: those of the process are gone once its main thread has ended.
const OWN_FDS: &str = "/proc/thread-self/fd";

/// Whether unnamed files can be linked here: that takes /proc.
fn has_proc() -> bool {
    Path::new(OWN_FDS).exists()
}

/// What a file must be before it is believed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expect {
    /// Open it for writing too.
    pub(crate) writable: bool,
    /// The least it must hold.
    pub(crate) min_len: u64,
    /// The user it must belong to, if only one will do.
    pub(crate) owner: Option<u32>,
}

/// Opens a file of the domain and checks it; returns it with its length.
///
/// # Errors
/// `NotFound`; `Corrupt` for anything but a regular file and for a short one; `NotOwned` for a
/// stranger's file or one that everybody may write; `Permission`.
pub(crate) fn open_checked(path: &Path, expect: Expect) -> Result<(OwnedFd, u64)> {
    #[cfg(test)]
    crate::os::fixture::may("open", path)?;
    // Not blocking on a FIFO, not following a link.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(expect.writable).custom_flags(flags).open(path);
    let file = file.map_err(|e| match std::fs::symlink_metadata(path) {
        // Some of these cannot be opened everywhere.
        Ok(there) if !there.is_file() && !there.is_symlink() => not_a_file(path, &there),
        _ => syserr::from_io("open", show(path), e),
    })?;
    let meta = file.metadata().map_err(|e| syserr::from_io("check", show(path), e))?;
    if !meta.is_file() && !fault("file.any_kind") {
        return Err(not_a_file(path, &meta));
    }
    if let Some(owner) = expect.owner.filter(|o| *o != meta.uid()) {
        let why = format!("it belongs to user {}, not to {owner}", meta.uid());
        let remedy =
            "run as that user, or share the domain by a group; remove it if nobody uses it";
        return Err(refuse(ErrorKind::NotOwned, path, &format!("{why}: {remedy}")));
    }
    if meta.mode() & 0o002 != 0 && !fault("file.open_to_all") {
        let why = "everybody may write to it: take that right away, or remove it";
        return Err(refuse(ErrorKind::NotOwned, path, why));
    }
    if meta.len() < expect.min_len && !fault("file.length_unchecked") {
        let (has, needs) = (meta.len(), expect.min_len);
        let why = format!("it has {has} bytes instead of {needs}: stop who uses it and remove it");
        return Err(refuse(ErrorKind::Corrupt, path, &why));
    }
    Ok((file.into(), meta.len()))
}

#[cold]
fn not_a_file(path: &Path, meta: &std::fs::Metadata) -> Error {
    let kind = match meta.file_type() {
        t if t.is_fifo() => "FIFO",
        t if t.is_dir() => "directory",
        t if t.is_socket() => "socket",
        _ => "device",
    };
    refuse(ErrorKind::Corrupt, path, &format!("it is a {kind}, not a file: remove it"))
}

#[cold]
fn refuse(kind: ErrorKind, path: &Path, why: &str) -> Error {
    Error::new(kind, "open", show(path), why)
}

/// The words at `at`, one after the other, without mapping the file.
pub(crate) fn read_words<const N: usize>(
    fd: OwnedFd,
    at: [u64; N],
    path: &Path,
) -> Result<[u64; N]> {
    let (file, mut words) = (File::from(fd), [0; N]);
    for (word, at) in words.iter_mut().zip(at) {
        let mut bytes = [0; 8];
        let read = file.read_exact_at(&mut bytes, at);
        read.map_err(|e| syserr::from_io("read", show(path), e))?;
        *word = u64::from_le_bytes(bytes);
    }
    Ok(words)
}

/// Makes a file longer, reserved in full. Errors: `NoSpace`.
///
/// # Crash safety
/// **Strict** for readers: the new bytes are zeros, and no shorter file is ever seen.
pub(crate) fn grow(fd: &impl AsFd, new_len: u64) -> Result<()> {
    let object = format!("{new_len} bytes");
    let from = len_of(fd, Path::new(&object))?;
    has_room(fd, new_len.saturating_sub(from), || object.clone())?;
    reserve(fd, from, new_len).map_err(|e| syserr::from_io("grow file to", object, e))
}

/// Removes a file; false if it is absent.
///
/// # Crash safety
/// **Strict.** One system call; whoever has it mapped keeps it.
pub(crate) fn unlink(path: &Path) -> Result<bool> {
    #[cfg(test)]
    crate::os::fixture::may("unlink", path)?;
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(syserr::from_io("remove", show(path), e)),
    }
}

/// Refuses what cannot fit before filling the disk with the attempt.
fn has_room(fd: &impl AsFd, len: u64, object: impl Fn() -> String) -> Result<()> {
    // SAFETY: a system call on a descriptor that is open for the borrow; it fills the struct.
    match lacks_room(len, |stat| unsafe { libc::fstatvfs(fd.as_fd().as_raw_fd(), stat) }) {
        true => Err(syserr::from_code("reserve", object(), libc::ENOSPC)),
        false => Ok(()),
    }
}

/// Whether the disk has no room for `len` bytes more. A limit of this process is another matter.
pub(crate) fn is_full(dir: &Path, len: u64) -> bool {
    let Ok(path) = CString::new(dir.as_os_str().as_bytes()) else { return false };
    // A page for the file's header.
    let len = len.saturating_add(PAGE as u64);
    // SAFETY: a system call with a string; it fills the struct.
    lacks_room(len, |stat| unsafe { libc::statvfs(path.as_ptr(), stat) })
}

fn lacks_room(len: u64, ask: impl FnOnce(&mut libc::statvfs) -> i32) -> bool {
    // SAFETY: a statvfs struct is integers.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    let asked = ask(&mut stat) == 0;
    // No blocks at all: a RAM disk without a limit.
    asked && stat.f_blocks != 0 && len.div_ceil(stat.f_frsize.max(1)) > stat.f_bavail
}

/// Reserves the bytes from `from` to `to`, so that no later store can hit a full disk.
fn reserve(fd: &impl AsFd, mut from: u64, to: u64) -> std::io::Result<()> {
    if to > size_max() && !fault("file.over_the_limit") {
        // Asking would raise SIGXFSZ, which by default ends the process.
        return Err(std::io::Error::from_raw_os_error(libc::EFBIG));
    }
    while from < to {
        let step = (to - from).min(RESERVE_STEP);
        // SAFETY: a system call on a descriptor that is open for the borrow.
        let rc = unsafe {
            libc::fallocate(fd.as_fd().as_raw_fd(), 0, from as libc::off_t, step as libc::off_t)
        };
        if rc == 0 {
            from += step;
            continue;
        }
        match syserr::errno() {
            libc::EINTR => {}
            libc::EOPNOTSUPP => return write_zeros(fd, from, to),
            e => return Err(std::io::Error::from_raw_os_error(e)),
        }
    }
    Ok(())
}

/// The largest file that this process may make (RLIMIT_FSIZE), bytes.
fn size_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: filled by the call; on failure it stays without a limit.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

/// For file systems that cannot reserve.
fn write_zeros(fd: &impl AsFd, mut from: u64, to: u64) -> std::io::Result<()> {
    let file = File::from(fd.as_fd().try_clone_to_owned()?);
    let zeros = [0u8; 16 << 10];
    while from < to {
        let step = (to - from).min(zeros.len() as u64);
        file.write_all_at(&zeros[..step as usize], from)?;
        from += step;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
