//! Words in a file that several processes map.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};

use outlive::{Error, ErrorKind, Result};

/// Bytes of every lock here.
const BYTES: usize = 4096;

pub(crate) fn failed(what: &str, object: impl Into<String>, source: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, what, object.into(), "").with_source(source)
}

/// The page in which a lock lies, mapped shared; all zeroes at first.
#[derive(Debug)]
pub struct SharedFile(NonNull<u8>);

// SAFETY: shared memory that is used through atomics and the C library's locks only.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// Opens or makes the page of the lock in `dir`, and `dir` itself.
    ///
    /// # Errors
    /// `Io` when the file cannot be made or mapped.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join("lock-page");
        let said = |e| failed("open", path.display().to_string(), e);
        std::fs::create_dir_all(dir).map_err(said)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(said)?;
        file.set_len(BYTES as u64).map_err(said)?;
        let (rights, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), BYTES, rights, shared, file.as_raw_fd(), 0) };
        match NonNull::new(at.cast::<u8>()) {
            Some(start) if at != libc::MAP_FAILED => Ok(Self(start)),
            _ => Err(said(std::io::Error::last_os_error())),
        }
    }

    /// `size` bytes at `offset`.
    ///
    /// # Panics
    /// Outside of the page.
    pub fn at(&self, offset: usize, size: usize) -> *mut u8 {
        assert!(offset % 8 == 0 && offset + size <= BYTES, "{offset} + {size} of {BYTES}");
        // SAFETY: within the mapping, just checked.
        unsafe { self.0.as_ptr().add(offset) }
    }

    /// A 32-bit word.
    pub fn word32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: in the mapping, aligned, atomic, mapped as long as `self`.
        unsafe { &*self.at(offset, 8).cast() }
    }

    /// A 64-bit word.
    pub fn word64(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { &*self.at(offset, 8).cast() }
    }

    /// `N` 32-bit words in a row.
    pub fn words32<const N: usize>(&self, offset: usize) -> &[AtomicU32; N] {
        // SAFETY: as above.
        unsafe { &*self.at(offset, 4 * N).cast() }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `open`; references into it borrow `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES) };
    }
}
