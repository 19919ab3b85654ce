//! Shared mappings of files, and checked ways into them.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::ptr;
use std::ptr::NonNull;

use super::sigbus::{self, Guarded};
use crate::os::syserr;
use crate::os::syserr::show;
use crate::sync::{AtomicU32, AtomicU64};
use crate::{Error, ErrorKind, Result};

/// Larger mappings stay out of core dumps: a death is told when the dump is written.
const DUMPED_BYTES_MAX: usize = 1 << 20;

/// A file in memory, `MAP_SHARED`: one's own writable, a peer's read-only. Unmapped on drop.
///
/// Its bytes change under the reader's eyes: they are reached as atomics or raw pointers only.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
    guarded: Option<Guarded>,
    path: PathBuf,
}

// SAFETY: an address range valid until drop; all access goes through atomics or raw pointers.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps one's own file for reading and writing; `path` is for messages.
    ///
    /// # Errors
    /// `Corrupt` when the file is shorter than `len`, `OutOfMemory`, `TooManyMembers`.
    pub(crate) fn map_own(fd: &impl AsFd, len: usize, path: &Path) -> Result<Self> {
        must_hold(fd, len, path)?;
        Self::map(fd, len, path, true)
    }

    /// As `map_own`, for a file that will grow to `len`: see `Draft::map_reserve`.
    pub(in crate::os) fn map_own_beyond(fd: &impl AsFd, len: usize, path: &Path) -> Result<Self> {
        Self::map(fd, len, path, true)
    }

    /// As `map_peer`, for a file that may grow to `len`.
    pub(crate) fn map_peer_beyond(fd: &impl AsFd, len: usize, path: &Path) -> Result<Self> {
        Self::map(fd, len, path, false)
    }

    /// Maps a peer's file read-only: the MMU keeps us from writing it. Errors as `map_own`.
    pub(crate) fn map_peer(fd: &impl AsFd, len: usize, path: &Path) -> Result<Self> {
        must_hold(fd, len, path)?;
        Self::map(fd, len, path, false)
    }

    fn map(fd: &impl AsFd, len: usize, path: &Path, writable: bool) -> Result<Self> {
        let prot = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        let raw = fd.as_fd().as_raw_fd();
        #[cfg(test)]
        crate::os::fixture::may("map", path)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, prot, libc::MAP_SHARED, raw, 0) };
        if start == libc::MAP_FAILED {
            return Err(match syserr::errno() {
                libc::EAGAIN => too_much_locked(len, path),
                _ => syserr::last("map", show(path)),
            });
        }
        let Some(start) = NonNull::new(start.cast::<u8>()) else {
            return Err(corrupt("map", path, "the kernel put it at 0".into()));
        };
        if len >= DUMPED_BYTES_MAX {
            // SAFETY: the range just mapped; the advice changes no contents. A core without it is
            // smaller, and what is in it is in the file.
            unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_DONTDUMP) };
        }
        let mut mapping = Self { start, len, writable, guarded: None, path: path.into() };
        mapping.guarded = sigbus::guard(start.as_ptr(), len, writable)?;
        Ok(mapping)
    }

    /// Size in bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The file, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file's name, for messages.
    pub(crate) fn name(&self) -> String {
        syserr::show(&self.path)
    }

    /// Whether a page had vanished (the file was truncated) and reads as zeros now.
    #[inline]
    pub(crate) fn is_poisoned(&self) -> bool {
        self.guarded.as_ref().is_some_and(Guarded::is_poisoned)
    }

    /// `Corrupt` if poisoned.
    #[inline]
    pub(crate) fn check_poisoned(&self) -> Result<()> {
        if self.is_poisoned() {
            return Err(corrupt("read", &self.path, "the file was truncated".into()));
        }
        Ok(())
    }

    /// Brings all pages in, so that later accesses do not fault. Does nothing on kernels before
    /// 5.14.
    ///
    /// # Real-time
    /// Blocks for as long as clearing the pages takes.
    pub(crate) fn prefault(&self) {
        let advice =
            if self.writable { libc::MADV_POPULATE_WRITE } else { libc::MADV_POPULATE_READ };
        // SAFETY: our own range; the advice changes no contents.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
    }

    /// The first byte.
    #[inline]
    pub(crate) fn base(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The first byte, to write through. Only an own mapping may be written: in a peer's the store
    /// faults.
    #[cfg(test)]
    pub(crate) fn base_mut(&self) -> *mut u8 {
        debug_assert!(self.writable, "a peer's file is read-only");
        self.start.as_ptr()
    }

    /// The 64-bit word at `offset` bytes. Errors: `Corrupt` outside the mapping or unaligned.
    #[inline]
    pub(crate) fn atomic_u64(&self, offset: usize) -> Result<&AtomicU64> {
        let at = self.word_at(offset, 8)?;
        // SAFETY: `word_at` checked bounds and alignment; mapped while `self` is borrowed; in a
        // read-only mapping callers only load.
        Ok(unsafe { AtomicU64::from_ptr(at.cast()) })
    }

    /// The 32-bit word at `offset` bytes. Errors: `Corrupt` outside the mapping or unaligned.
    #[inline]
    pub(crate) fn atomic_u32(&self, offset: usize) -> Result<&AtomicU32> {
        let at = self.word_at(offset, 4)?;
        // SAFETY: as in `atomic_u64`.
        Ok(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// Where `len` bytes at `offset` start. Errors: `Corrupt` when they are not all inside.
    #[inline]
    pub(crate) fn bytes(&self, offset: usize, len: usize) -> Result<*const u8> {
        match offset.checked_add(len) {
            // SAFETY: the whole range was just found inside the mapping.
            Some(end) if end <= self.len => Ok(unsafe { self.start.as_ptr().add(offset) }),
            _ => Err(self.outside(offset as u64, len)),
        }
    }

    /// A copy of `len` bytes, whoever may be writing them. Errors: `Corrupt` when outside, or when
    /// a page was found to have vanished.
    pub(crate) fn copy_out(&self, offset: usize, len: usize) -> Result<Vec<u8>> {
        let from = self.bytes(offset, len)?;
        // SAFETY: `bytes` checked the range; volatile, because a peer may write meanwhile (bytes of
        // different moments are the caller's to judge).
        let copy = (0..len).map(|i| unsafe { from.add(i).read_volatile() }).collect();
        self.check_poisoned()?;
        Ok(copy)
    }

    /// Puts bytes into an own mapping before anybody sees the file. Errors: `Corrupt` when outside.
    ///
    /// # Crash safety
    /// **Strict** in a draft, which is all it is for: nobody sees it.
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let to = self.bytes(offset, bytes.len())?.cast_mut();
        debug_assert!(self.writable, "a peer's file is read-only");
        // SAFETY: `bytes` checked the range; the source is ordinary memory, so they do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    #[inline]
    fn word_at(&self, offset: usize, size: usize) -> Result<*mut u8> {
        if offset % size != 0 {
            return Err(self.outside(offset as u64, size));
        }
        Ok(self.bytes(offset, size)?.cast_mut())
    }

    #[cold]
    fn outside(&self, offset: u64, len: usize) -> Error {
        let why = format!("{len} bytes at {offset} are unaligned or beyond its {}", self.len);
        corrupt("read", &self.path, why)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.guarded = None; // out of the table first: the range may be anybody's right after
        // SAFETY: our own range; nothing borrowed from it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

fn must_hold(fd: &impl AsFd, len: usize, path: &Path) -> Result<()> {
    let have = super::file::len_of(fd, path)?;
    if len == 0 || have < len as u64 {
        let why = format!("it has {have} bytes instead of {len}");
        return Err(corrupt("map", path, why));
    }
    Ok(())
}

/// After `mlockall(MCL_FUTURE)` each mapping counts in full, whether it is touched or not.
#[cold]
fn too_much_locked(len: usize, path: &Path) -> Error {
    let remedy = format!(
        "this process locks its memory (mlockall), and {len} bytes more are over its limit: raise \
         `ulimit -l`, LimitMEMLOCK= of its unit, or `--ulimit memlock=-1` of its container"
    );
    Error::new(ErrorKind::OutOfMemory, "map", show(path), remedy)
        .with_source(std::io::Error::from_raw_os_error(libc::EAGAIN))
}

#[cold]
fn corrupt(what: &'static str, path: &Path, why: String) -> Error {
    let remedy = format!("{why}; remove it, or run `outlive clean`");
    Error::new(ErrorKind::Corrupt, what, show(path), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::fixture::TempDir;
    use crate::os::fs::file::Draft;
    use crate::sync::Ordering;

    #[test]
    fn claims_beyond_the_mapping_are_corrupt() {
        let dir = TempDir::new("map");
        let draft = Draft::new(dir.path(), 8192, 0o600).unwrap();
        let own = draft.map().unwrap();
        assert_eq!(own.len(), 8192);
        assert!(own.atomic_u64(8184).is_ok() && own.atomic_u32(8188).is_ok());
        assert!(own.bytes(8192, 0).is_ok() && own.bytes(0, 8192).is_ok());
        for (offset, len) in [(8192, 1), (8191, 2), (usize::MAX, 2), (1, usize::MAX)] {
            assert_eq!(own.bytes(offset, len).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        for offset in [4, 8188, 8192, usize::MAX - 7] {
            assert_eq!(own.atomic_u64(offset).unwrap_err().kind(), ErrorKind::Corrupt);
        }
        assert_eq!(own.atomic_u32(2).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn a_peer_sees_what_the_owner_stores() {
        let dir = TempDir::new("map");
        let draft = Draft::new(dir.path(), 8192, 0o600).unwrap();
        let own = draft.map().unwrap();
        let peer = Mapping::map_peer(&draft.fd(), 8192, dir.path()).unwrap();
        own.prefault();
        peer.prefault();
        own.atomic_u64(4096).unwrap().store(3, Ordering::Release);
        assert_eq!(peer.atomic_u64(4096).unwrap().load(Ordering::Acquire), 3);
        assert!(!peer.is_poisoned() && peer.check_poisoned().is_ok());
    }

    #[test]
    fn a_file_shorter_than_asked_for_is_not_mapped() {
        let dir = TempDir::new("map");
        let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
        for len in [0, 4097, usize::MAX] {
            let mapped = Mapping::map_peer(&draft.fd(), len, dir.path());
            assert_eq!(mapped.unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
